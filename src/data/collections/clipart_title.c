/* The rule for titles of clip art. In order: underscores are blanks and letters small; "Clipart by
 * NAME - " goes; so do parentheses with an address or a date, the author's name, " - " before the
 * name of a series, codes ("tigre01", "v0.2", "#208", a number at the end). What is left is no
 * description where it
 *   names a collection: a word of `themes`, or four and more pictures of the author have it and
 *     neither this file's name, nor its folders or keywords share a word with it;
 *   is a code: no word of three letters with a vowel, or one of `empty_titles`;
 *   is in another language: dc:language says so, a letter outside of ASCII, a function word of
 *     `foreign_words`, or an author who writes so, unless keywords or folders share a word.
 * Two words are shared when their first four letters agree. The name of the file goes through the
 * same rule, without its number and without the author's name at its end. */
#include "data/collections/clipart_title.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { BUFFER = 512, SHARED_LETTERS = 4, MANY_CARRIERS = 4 };

static const char *const themes[] = {"clipart", "cliparts",   "collection", "theme",
                                     "iconset", "submission", "sibmission", "gramastar",
                                     "icons",   "iconos",     "aiga",       "openclipart"};
static const char *const empty_titles[] = {
    "untitled", "no title", "unnamed", "title", "test",  "new document", "drawing", "none",
    "unknown",  "svg",      "image",   "file",  "other", "clip art",     "picture", "hash"};
static const char *const foreign_words[] = {
    "di",  "del", "della", "dei",  "delle", "dell", "con", "il",   "gli", "per", "senza", "da",
    "du",  "des", "avec",  "sans", "pour",  "et",   "und", "mit",  "der", "ein", "eine",  "von",
    "het", "een", "el",    "para", "sul",   "alla", "nel", "dans", "aux", "los", "una",   "uno"};
/* Folders and keywords that say nothing of a picture. */
static const char *const no_keywords[] = {"unsorted", "duplicates", "special", "examples", "theme",
                                          "hash",     "none",       "n/a",     "other"};
static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};

static bool is_in(const char *word, size_t n, const char *const *list, size_t n_list)
{
    for (size_t i = 0; i < n_list; i++)
        if (strlen(list[i]) == n && memcmp(list[i], word, n) == 0)
            return true;
    return false;
}
#define IS_IN(word, n, list) is_in(word, n, list, PNB_COUNT(list))

/* ---- words of a small text ---- */

/* The next run of letters from *at on; its length, 0 at the end. */
static size_t next_word(const char *text, size_t *at)
{
    while (text[*at] && !isalpha((unsigned char)text[*at]))
        ++*at;
    size_t n = 0;
    while (isalpha((unsigned char)text[*at + n]))
        n++;
    return n;
}

static bool has_word_of(const char *text, const char *const *list, size_t n_list)
{
    for (size_t at = 0, n; (n = next_word(text, &at)) > 0; at += n)
        if (is_in(text + at, n, list, n_list))
            return true;
    return false;
}

/* Whether `text` (small letters) and `other` (any) share a word by its first letters. */
static bool share_word(const char *text, const char *other)
{
    for (size_t at = 0, n; other != NULL && (n = next_word(text, &at)) > 0; at += n) {
        if (n < 3)
            continue;
        for (size_t b = 0, m; (m = next_word(other, &b)) > 0; b += m) {
            size_t most = PNB_MIN(PNB_MIN(n, m), (size_t)SHARED_LETTERS), k = 0;
            while (k < most && text[at + k] == tolower((unsigned char)other[b + k]))
                k++;
            if (k == most && m >= 3)
                return true;
        }
    }
    return false;
}

static bool shares_with_folders(const pnb__title_facts *f, const char *text)
{
    const char *base = f->file != NULL ? strrchr(f->file, '/') : NULL;
    char folders[BUFFER] = "";
    if (base == NULL || (size_t)(base - f->file) >= sizeof folders)
        return false;
    memcpy(folders, f->file, (size_t)(base - f->file));
    return share_word(text, folders);
}

static bool shares_with_keywords(const pnb__title_facts *f, const char *text)
{
    for (size_t i = 0; i < f->n_keywords; i++)
        if (share_word(text, f->keywords[i]))
            return true;
    return false;
}

/* ---- cleaning ---- */

/* Small letters, '_' as blanks, one blank between words, &#39; and the like as letters. */
static void normalise(const char *text, char out[BUFFER])
{
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < BUFFER;) {
        unsigned char letter = (unsigned char)*p++;
        if (letter == '&' && *p == '#') {
            char *end;
            unsigned long code = strtoul(p + 1, &end, 10);
            if (*end == ';' && code >= 32 && code < 127) {
                letter = (unsigned char)code;
                p = end + 1;
            }
        }
        if (letter == '_' || letter < ' ')
            letter = ' ';
        if (letter != ' ' || (n > 0 && out[n - 1] != ' '))
            out[n++] = (char)tolower(letter);
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/* Removes n bytes at `at`; a blank stays between what was on both sides. */
static void cut(char *text, size_t at, size_t n)
{
    size_t rest = at + n;
    while (at > 0 && text[at - 1] == ' ')
        at--;
    while (text[rest] == ' ')
        rest++;
    if (at > 0 && text[rest])
        text[at++] = ' ';
    memmove(text + at, text + rest, strlen(text + rest) + 1);
}

static bool is_date_or_address(const char *text, size_t n)
{
    size_t n_digits = 0, n_colons = 0;
    bool has_month = false;
    for (size_t i = 0; i < n; i++) {
        n_digits += isdigit((unsigned char)text[i]) != 0;
        n_colons += text[i] == ':' || text[i] == '/' || text[i] == '-';
        if (text[i] == '@' || !strncmp(text + i, "http", 4) || !strncmp(text + i, "www.", 4))
            return true;
        for (size_t m = 0; m < PNB_COUNT(months); m++)
            has_month |= i + 3 <= n && !memcmp(text + i, months[m], 3);
    }
    return n_digits >= 4 && (has_month || n_colons >= 2);
}

/* Parentheses and single words that are an address or a date. */
static void drop_addresses(char *text)
{
    for (char *open = strpbrk(text, "(["); open != NULL; open = strpbrk(open, "([")) {
        size_t n = strcspn(open, ")]");
        n += open[n] != '\0';
        if (is_date_or_address(open, n))
            cut(text, (size_t)(open - text), n);
        else
            open++;
        if ((size_t)(open - text) > strlen(text))
            break;
    }
    for (size_t at = 0; text[at];) {
        size_t n = strcspn(text + at, " ");
        if (is_date_or_address(text + at, n))
            cut(text, at, n);
        else
            at += n + strspn(text + at + n, " ");
    }
}

/* Words of the author's name of four letters and more, but only where other words stay. */
static void drop_author(const char *creator, char *text)
{
    char name[BUFFER];
    normalise(creator != NULL ? creator : "", name);
    for (size_t b = 0, m; (m = next_word(name, &b)) > 0; b += m)
        for (size_t at = 0, n; m >= SHARED_LETTERS && (n = next_word(text, &at)) > 0;) {
            bool is_name = n == m && !memcmp(text + at, name + b, n);
            if (is_name)
                cut(text, at, n);
            else
                at += n;
        }
}

/* "clipart by somebody - " in front, and " - series" behind. */
static void drop_series(const pnb__title_facts *f, char *text)
{
    char *dash = strstr(text, " - ");
    if (pnb__starts_with(text, "clipart by ") && dash != NULL)
        memmove(text, dash + 3, strlen(dash + 3) + 1);
    dash = strstr(text, " - ");
    if (dash != NULL && dash > text) {
        static const char *const kinds[] = {"elements", "part", "clothing", "iconset", "theme"};
        if (has_word_of(dash, kinds, PNB_COUNT(kinds)) || shares_with_folders(f, dash))
            *dash = '\0';
    }
}

/* What a word without its code is: its length, 0 for a code alone. */
static size_t without_code(const char *word, size_t n, bool is_first, bool is_last)
{
    size_t letters = 0;
    if (n > 1 && word[0] == 'v' && isdigit((unsigned char)word[1]))
        return 0;
    if (n > 1 && word[0] == '0' && (word[1] == 'x' || isdigit((unsigned char)word[1])))
        return 0;
    while (letters < n && !isdigit((unsigned char)word[letters]) && word[letters] != '#')
        letters++;
    if (letters == 0 && is_last && !is_first)
        return 0;
    return letters >= 3 ? letters : n;
}

static void drop_codes(char *text)
{
    char out[BUFFER] = "";
    size_t n_out = 0;
    for (size_t at = 0; text[at];) {
        size_t n = strcspn(text + at, " "), next = at + n + strspn(text + at + n, " ");
        size_t kept = without_code(text + at, n, at == 0, text[next] == '\0');
        if (n == 2 && !memcmp(text + at, "bw", 2)) {
            n_out += (size_t)snprintf(out + n_out, sizeof out - n_out, "%sblack and white",
                                      n_out > 0 ? " " : "");
        } else if (kept > 0) {
            if (n_out > 0)
                out[n_out++] = ' ';
            memcpy(out + n_out, text + at, kept);
            n_out += kept;
        }
        if (n_out + BUFFER / 4 > sizeof out)
            break;
        out[n_out] = '\0';
        at = next;
    }
    out[n_out] = '\0';
    memcpy(text, out, n_out + 1);
}

/* Parentheses go, "(b and w)" is said in words, hyphens of a title without blanks are blanks. */
static void settle_marks(char *text)
{
    char *bw = strstr(text, "(b and w)");
    if (bw != NULL && strlen(text) + 8 < BUFFER) {
        memmove(bw + 15, bw + 9, strlen(bw + 9) + 1);
        memcpy(bw, "black and white", 15);
    }
    bool is_one = strchr(text, ' ') == NULL;
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        bool is_mark = strchr("()[]\"*;", text[i]) != NULL;
        bool is_hyphen = text[i] == '-' && is_one && i >= 2 && strlen(text + i) > 2;
        char letter = is_mark || is_hyphen ? ' ' : text[i];
        if (letter != ' ' || (n > 0 && text[n - 1] != ' '))
            text[n++] = letter;
    }
    while (n > 0 && strchr(" .,:-#", text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    size_t first = strspn(text, " .,:-#");
    memmove(text, text + first, strlen(text + first) + 1);
}

/* ---- verdict ---- */

static bool has_real_word(const char *text)
{
    for (size_t at = 0, n; (n = next_word(text, &at)) > 0; at += n) {
        bool has_vowel = false;
        for (size_t i = 0; i < n; i++)
            has_vowel |= strchr("aeiouy", text[at + i]) != NULL;
        if (n >= 3 && has_vowel)
            return true;
    }
    return false;
}

bool pnb__title_is_foreign(const char *title)
{
    char text[BUFFER];
    normalise(title, text);
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p >= 128)
            return true;
    return has_word_of(text, foreign_words, PNB_COUNT(foreign_words));
}

static bool is_english(const char *language)
{
    static const char *const others[] = {"", "all", "n/a"};
    char text[BUFFER];
    normalise(language != NULL ? language : "", text);
    return pnb__starts_with(text, "en") || IS_IN(text, strlen(text), others);
}

static bool is_of_collection(const pnb__title_facts *f, const char *text, bool is_file)
{
    if (has_word_of(text, themes, PNB_COUNT(themes)))
        return true;
    const char *base = f->file != NULL ? strrchr(f->file, '/') : NULL;
    return !is_file && f->n_carriers >= MANY_CARRIERS &&
           !share_word(text, base != NULL ? base : f->file) && !shares_with_folders(f, text) &&
           !shares_with_keywords(f, text);
}

/* `before`: the text before codes and marks went; `text`: after. */
static pnb__title_kind judge(const pnb__title_facts *f, const char *before, const char *text,
                             bool is_file)
{
    if (!is_file && is_of_collection(f, before, is_file))
        return PNB__TITLE_COLLECTION;
    if (!has_real_word(text) || strlen(text) > PNB__TITLE_MAX ||
        IS_IN(text, strlen(text), empty_titles) || strstr(text, "hash 0x") != NULL)
        return PNB__TITLE_CODE;
    if (!is_english(f->language) || pnb__title_is_foreign(before))
        return PNB__TITLE_LANGUAGE;
    if (f->is_creator_foreign && !shares_with_keywords(f, text) && !shares_with_folders(f, text))
        return PNB__TITLE_LANGUAGE;
    return PNB__TITLE_DESCRIBES;
}

static pnb__title_kind clean(const pnb__title_facts *f, char text[BUFFER], bool is_file,
                             char out[PNB__TITLE_MAX + 1])
{
    char before[BUFFER];
    drop_addresses(text);
    bool was_something = has_real_word(text);
    normalise(f->creator != NULL ? f->creator : "", before);
    if (was_something && !strcmp(text, before))
        return PNB__TITLE_AUTHOR;
    drop_author(f->creator, text);
    if (was_something && !has_real_word(text))
        return PNB__TITLE_AUTHOR;
    /* "Clipart by NAME - smiley111" stands on each picture of a series: only its own file's. */
    bool is_series = pnb__starts_with(text, "clipart by ");
    drop_series(f, text);
    memcpy(before, text, strlen(text) + 1);
    drop_codes(text);
    settle_marks(text);
    const char *base = f->file != NULL ? strrchr(f->file, '/') : NULL;
    if (is_series && !share_word(text, base != NULL ? base : f->file))
        return PNB__TITLE_COLLECTION;
    pnb__title_kind kind = judge(f, before, text, is_file);
    if (kind == PNB__TITLE_DESCRIBES)
        memcpy(out, text, strlen(text) + 1);
    return kind;
}

pnb__title_kind pnb__title_clean(const pnb__title_facts *facts, char out[PNB__TITLE_MAX + 1])
{
    char text[BUFFER];
    out[0] = '\0';
    normalise(facts->title != NULL ? facts->title : "", text);
    if (pnb__ends_with(text, ".svg"))
        text[strlen(text) - 4] = '\0';
    return text[0] ? clean(facts, text, false, out) : PNB__TITLE_MISSING;
}

/* "desk lamp gerald g" by Gerald G. is "desk lamp": the longest end that begins the author's name.
 */
static void drop_author_tail(const char *creator, char *text)
{
    char name[BUFFER];
    normalise(creator != NULL ? creator : "", name);
    for (size_t i = 0; text[i] && name[0]; i++)
        if ((i == 0 || text[i - 1] == ' ') && strlen(text + i) >= 2 &&
            pnb__starts_with(name, text + i)) {
            text[i > 0 ? i - 1 : 0] = '\0';
            return;
        }
}

pnb__title_kind pnb__title_of_file(const pnb__title_facts *facts, char out[PNB__TITLE_MAX + 1])
{
    static const char *const prefixes[] = {"aiga ", "action ", "app ", "mimetype "};
    char text[BUFFER];
    const char *base = facts->file != NULL ? pnb__path_base(facts->file) : "";
    out[0] = '\0';
    normalise(base, text);
    size_t n = strlen(text);
    if (n > 4 && text[n - 4] == '.')
        n -= 4;
    while (n > 0 && (isdigit((unsigned char)text[n - 1]) || text[n - 1] == ' '))
        n--;
    text[n] = '\0';
    for (size_t i = 0; i < PNB_COUNT(prefixes); i++)
        if (pnb__starts_with(text, prefixes[i]))
            cut(text, 0, strlen(prefixes[i]));
    drop_author_tail(facts->creator, text);
    return clean(facts, text, true, out);
}

void pnb__keyword_clean(const char *keyword, const char *creator, char out[PNB__TITLE_MAX + 1])
{
    char text[BUFFER], name[BUFFER];
    out[0] = '\0';
    normalise(keyword, text);
    normalise(creator != NULL ? creator : "", name);
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p >= 128)
            return;
    if (pnb__starts_with(text, "hash") || pnb__starts_with(text, "0x") || !has_real_word(text) ||
        IS_IN(text, strlen(text), no_keywords) || !strcmp(text, name) ||
        strlen(text) > PNB__TITLE_MAX)
        return;
    memcpy(out, text, strlen(text) + 1);
}
