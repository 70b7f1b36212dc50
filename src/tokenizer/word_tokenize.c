/* NLTK's word_tokenize, by which PCME and its relatives cut captions into words.
 *
 * Sentences first (Kiss and Strunk 2006, "Punkt"), because a full stop is a word of its own only at
 * the end of one; then the rules of the Penn Treebank as NLTK's NLTKWordTokenizer has them, each a
 * substitution over the whole sentence in a fixed order, and what white space then divides are the
 * words. Quotes become `` and ''. Punkt's trained list of abbreviations is data that are not here:
 * a dozen common ones stand below. What it does beyond them for text in lower case is followed:
 * initials and numbers end no sentence before a small letter, nor does an ellipsis. */
#include <string.h>
#include <utf8proc.h>

#include "tokenizer/text.h"

/* ---- characters ---- */

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_word_at(const char *s, size_t n, size_t at)
{
    uint32_t c;
    if (at >= n)
        return false;
    pnb__next_char(s + at, n - at, &c);
    return pnb__is_word(c);
}

static bool is_word_before(const char *s, size_t n, size_t at)
{
    if (at == 0)
        return false;
    size_t begin = at - 1;
    while (begin > 0 && ((unsigned char)s[begin] & 0xC0) == 0x80)
        begin--;
    return is_word_at(s, n, begin);
}

static bool is_space_at(const char *s, size_t n, size_t at)
{
    uint32_t c;
    if (at >= n)
        return false;
    pnb__next_char(s + at, n - at, &c);
    return pnb__is_python_space(c);
}

/* \b in front of s[at], in either direction. */
static bool is_boundary(const char *s, size_t n, size_t at)
{
    return is_word_before(s, n, at) != is_word_at(s, n, at);
}

/* Does `word`, in small letters, stand at s[at], in letters of either size? */
static bool stands_at(const char *s, size_t n, size_t at, const char *word)
{
    size_t length = strlen(word);
    if (length > n - at)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = s[at + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c | 32) : c) != word[i])
            return false;
    }
    return true;
}

/* ---- substitutions ----
 *
 * A rule looks at s[at] and, where it matches, writes what takes the place of the bytes it returns;
 * 0: no match. `taken` is the end of the match before: a rule that looks back may not pass it. */
typedef size_t (*rule_fn)(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken);

static void substitute(pnb__buf *out, const char *s, size_t n, rule_fn rule)
{
    for (size_t at = 0, taken = 0; at < n;) {
        size_t used = rule(out, s, n, at, taken);
        if (used == 0) {
            pnb__buf_putc(out, s[at++]);
            continue;
        }
        at += used;
        taken = at;
    }
}

static size_t put_apart(pnb__buf *out, const char *s, size_t n)
{
    pnb__buf_putc(out, ' ');
    pnb__buf_append(out, s, n);
    pnb__buf_putc(out, ' ');
    return n;
}

/* Length of one of the UTF-8 characters at s, 0 for none; all of a set are of one length. */
static size_t quote_at(const char *s, size_t n, const char *const *quotes)
{
    for (; *quotes != NULL; quotes++) {
        size_t length = strlen(*quotes);
        if (length <= n && memcmp(s, *quotes, length) == 0)
            return length;
    }
    return 0;
}

static const char *const opening[] = {"\xC2\xAB", "\xE2\x80\x9C", "\xE2\x80\x98", "\xE2\x80\x9E",
                                      NULL};
static const char *const closing[] = {"\xC2\xBB", "\xE2\x80\x9D", "\xE2\x80\x99", NULL};

static size_t run_of(const char *s, size_t n, size_t at, char c)
{
    size_t end = at;
    while (end < n && s[end] == c)
        end++;
    return end - at;
}

/* An opening quote, or [`]+ */
static size_t opening_quote(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    size_t length = quote_at(s + at, n - at, opening);
    if (length == 0)
        length = run_of(s, n, at, '`');
    return length > 0 ? put_apart(out, s + at, length) : 0;
}

/* ^" becomes `` */
static size_t first_quote(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)n;
    (void)taken;
    if (at > 0 || s[at] != '"')
        return 0;
    pnb__buf_puts(out, "``");
    return 1;
}

static size_t double_backtick(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    return run_of(s, n, at, '`') >= 2 ? put_apart(out, s + at, 2) : 0;
}

/* ([ ([{<])("|'{2}): a quote behind a space or bracket opens. */
static size_t quote_in_front(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    if (!is_one_of(s[at], " ([{<") || at + 1 == n)
        return 0;
    bool is_pair = run_of(s, n, at + 1, '\'') >= 2;
    if (s[at + 1] != '"' && !is_pair)
        return 0;
    pnb__buf_putc(out, s[at]);
    pnb__buf_puts(out, " `` ");
    return is_pair ? 3 : 2;
}

/* '(?!m|t|s|d|n|...)(\w)\b: a quote in front of a single letter that is no ending. */
static size_t quote_of_letter(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    uint32_t c;
    if (s[at] != '\'' || at + 1 == n || is_one_of(s[at + 1], "mtsdnMTSDN"))
        return 0;
    size_t length = pnb__next_char(s + at + 1, n - at - 1, &c);
    if (!pnb__is_word(c) || is_word_at(s, n, at + 1 + length))
        return 0;
    pnb__buf_puts(out, "' ");
    pnb__buf_append(out, s + at + 1, length);
    return 1 + length;
}

/* Length of what may stand between the last full stop and the end: brackets, quotes and spaces,
 * then white space. False: something else does. */
static bool closes(const char *s, size_t n, size_t at)
{
    for (size_t length; at < n; at += length) {
        length = quote_at(s + at, n - at, closing);
        if (length == 0)
            length = is_one_of(s[at], "])}>\"' ");
        if (length == 0)
            break;
    }
    for (uint32_t c; at < n;) {
        at += pnb__next_char(s + at, n - at, &c);
        if (!pnb__is_python_space(c))
            return false;
    }
    return true;
}

/* ([^\.])(\.)(closers)\s*$: the full stop of a sentence. */
static size_t last_stop(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    if (s[at] != '.' || at == taken || s[at - 1] == '.' || !closes(s, n, at + 1))
        return 0;
    return put_apart(out, s + at, 1);
}

static bool is_digit_at(const char *s, size_t n, size_t at)
{
    uint32_t c;
    pnb__next_char(s + at, n - at, &c);
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

/* ([:,])([^\d]), and at the very end: not inside numbers and times. */
static size_t colon_or_comma(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    uint32_t c;
    if (!is_one_of(s[at], ":,") || (at + 1 < n && is_digit_at(s, n, at + 1)))
        return 0;
    put_apart(out, s + at, 1);
    if (at + 1 == n)
        return 1;
    size_t length = pnb__next_char(s + at + 1, n - at - 1, &c);
    pnb__buf_append(out, s + at + 1, length);
    return 1 + length;
}

/* What the second character of a pair above still is at the end of the text: ([:,])$ */
static size_t last_colon_or_comma(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    bool is_last = at + 1 == n || (at + 2 == n && s[at + 1] == '\n');
    return is_last && is_one_of(s[at], ":,") ? put_apart(out, s + at, 1) : 0;
}

static size_t dots(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    size_t length = run_of(s, n, at, '.');
    return length >= 2 ? put_apart(out, s + at, length) : 0;
}

static size_t symbol(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)n;
    (void)taken;
    return is_one_of(s[at], ";@#$%&") ? put_apart(out, s + at, 1) : 0;
}

static size_t question(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)n;
    (void)taken;
    return is_one_of(s[at], "?!") ? put_apart(out, s + at, 1) : 0;
}

/* ([^'])'[ ]: a quote at the end of a word. */
static size_t quote_behind(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    bool fits = s[at] == '\'' && at + 1 < n && s[at + 1] == ' ' && at > taken && s[at - 1] != '\'';
    if (!fits)
        return 0;
    pnb__buf_puts(out, " ' ");
    return 2;
}

static size_t star_or_bracket(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)n;
    (void)taken;
    return is_one_of(s[at], "*[](){}<>") ? put_apart(out, s + at, 1) : 0;
}

static size_t double_dash(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    return run_of(s, n, at, '-') >= 2 ? put_apart(out, s + at, 2) : 0;
}

static size_t closing_quote(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    size_t length = quote_at(s + at, n - at, closing);
    return length > 0 ? put_apart(out, s + at, length) : 0;
}

static size_t double_quote(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    size_t length = run_of(s, n, at, '\'') >= 2 ? 2 : s[at] == '"';
    if (length > 0)
        pnb__buf_puts(out, " '' ");
    return length;
}

/* ([^' ])(ending)[ ] at s[at], the ending's first byte. */
static size_t ending_at(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken,
                        const char *const *endings)
{
    if (at == 0 || at <= taken || s[at - 1] == '\'' || s[at - 1] == ' ')
        return 0;
    for (; *endings != NULL; endings++) {
        size_t length = strlen(*endings);
        if (length < n - at && memcmp(s + at, *endings, length) == 0 && s[at + length] == ' ') {
            put_apart(out, s + at, length);
            return length + 1;
        }
    }
    return 0;
}

static size_t short_ending(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    static const char *const endings[] = {"'s", "'S", "'m", "'M", "'d", "'D", "'", NULL};
    return s[at] == '\'' ? ending_at(out, s, n, at, taken, endings) : 0;
}

static size_t long_ending(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    static const char *const endings[] = {"'ll", "'LL", "'re", "'RE", "'ve",
                                          "'VE", "n't", "N'T", NULL};
    return ending_at(out, s, n, at, taken, endings);
}

/* Words that are two (Robert MacIntyre's list): \b(can)(not)\b, ... */
static size_t joined_word(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    static const struct {
        const char *word;
        size_t first;
        bool before_space;
    } words[] = {{"cannot", 3, false}, {"d'ye", 1, false},  {"gimme", 3, false},
                 {"gonna", 3, false},  {"gotta", 3, false}, {"lemme", 3, false},
                 {"more'n", 4, false}, {"wanna", 3, true}};
    (void)taken;
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        size_t length = strlen(words[i].word), end = at + length;
        if (!stands_at(s, n, at, words[i].word) || !is_boundary(s, n, at))
            continue;
        if (words[i].before_space ? !is_space_at(s, n, end) : !is_boundary(s, n, end))
            continue;
        put_apart(out, s + at, words[i].first);
        pnb__buf_append(out, s + at + words[i].first, length - words[i].first);
        pnb__buf_putc(out, ' ');
        return length;
    }
    return 0;
}

/* [ ]('t)(is)\b, and was. */
static size_t old_word(pnb__buf *out, const char *s, size_t n, size_t at, size_t taken)
{
    (void)taken;
    bool is = stands_at(s, n, at, " 'tis"), was = stands_at(s, n, at, " 'twas");
    size_t length = is ? 5 : 6;
    if ((!is && !was) || !is_boundary(s, n, at + length))
        return 0;
    put_apart(out, s + at + 1, 2);
    pnb__buf_append(out, s + at + 3, length - 3);
    pnb__buf_putc(out, ' ');
    return length;
}

/* In NLTK's order; the rest follows a space put on both ends. */
static const rule_fn rules[] = {
    opening_quote, first_quote,    double_backtick,     quote_in_front, quote_of_letter,
    last_stop,     colon_or_comma, last_colon_or_comma, dots,           symbol,
    question,      quote_behind,   star_or_bracket,     double_dash,
};
static const rule_fn later_rules[] = {closing_quote, double_quote, short_ending,
                                      long_ending,   joined_word,  old_word};

/* Replaces the text by what a rule makes of it; `other` is a buffer to do it in. */
static void apply(pnb__buf *text, pnb__buf *other, rule_fn rule)
{
    other->size = 0;
    substitute(other, text->data, text->size, rule);
    pnb__buf made = *other;
    *other = *text;
    *text = made;
}

/* ---- sentences ---- */

static size_t skip_space(const char *s, size_t n, size_t at)
{
    uint32_t c;
    while (at < n) {
        size_t used = pnb__next_char(s + at, n - at, &c);
        if (!pnb__is_python_space(c))
            break;
        at += used;
    }
    return at;
}

static bool is_abbreviation(const char *s, size_t n)
{
    static const char *const list[] = {"mr",   "mrs", "ms",  "dr", "jr",  "sr",  "st", "co",
                                       "corp", "inc", "ltd", "vs", "a.m", "p.m", "u.s"};
    for (size_t i = 0; i < PNB_COUNT(list); i++)
        if (strlen(list[i]) == n && stands_at(s, n, 0, list[i]))
            return true;
    return false;
}

/* One letter, or digits with . , - between them. */
static bool is_initial_or_number(const char *s, size_t n)
{
    uint32_t c;
    size_t used = n > 0 ? pnb__next_char(s, n, &c) : 0;
    if (used > 0 && used == n && pnb__is_letter(c))
        return true;
    bool has_digit = false;
    for (size_t i = 0; i < n; i++) {
        bool is_digit = s[i] >= '0' && s[i] <= '9';
        if (!is_digit && !is_one_of(s[i], ".,-"))
            return false;
        has_digit |= is_digit;
    }
    return has_digit;
}

static bool begins_small(const char *s, size_t n, size_t at)
{
    uint32_t c;
    pnb__next_char(s + at, n - at, &c);
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL;
}

/* Where the word begins that ends in front of s[at]: behind white space or what is part of no word,
 * but a quote may begin one. */
static size_t word_begin(const char *s, size_t first, size_t at)
{
    size_t begin = at;
    while (begin > first && !is_one_of(s[begin - 1], " \t\r\n)\";}]*:@'({[!?"))
        begin--;
    begin -= begin > first && s[begin - 1] == '\'';
    while (begin < at && is_one_of(s[begin], "\"(`{[:;&#*@)}]-,"))
        begin++;
    return begin;
}

/* Does the full stop s[at] end the sentence that began at `first`, with `next` the next character
 * that is no white space? */
static bool stop_ends(const char *s, size_t n, size_t first, size_t at, size_t next)
{
    size_t begin = word_begin(s, first, at), length = at - begin;
    if (at > first && s[at - 1] == '.')
        return false; /* an ellipsis */
    const char *dash = length > 0 ? memrchr(s + begin, '-', length) : NULL;
    size_t last = dash != NULL ? (size_t)(dash + 1 - s) : begin;
    if (is_abbreviation(s + begin, length) || is_abbreviation(s + last, at - last))
        return false;
    bool goes_on = begins_small(s, n, next) || is_one_of(s[next], ";:,.!?");
    return !(is_initial_or_number(s + begin, length) && goes_on);
}

/* Closing quotes and brackets that stand by themselves at the start of a sentence belong to the one
 * before: where they end, or `at`. */
static size_t realigned(const char *s, size_t n, size_t at)
{
    size_t end = at;
    while (end < n && is_one_of(s[end], "\"')]}"))
        end++;
    bool alone = end == n || is_space_at(s, n, end) || run_of(s, n, end, '-') >= 2;
    return alone ? end : at;
}

/* May a sentence end behind s[at]: at . ? ! in front of white space or of what is part of no word?
 */
static bool may_end(const char *s, size_t n, size_t at)
{
    if (at + 1 >= n || !is_one_of(s[at], ".?!"))
        return false;
    size_t next = skip_space(s, n, at + 1);
    return next == at + 1 ? is_one_of(s[next], ")\";}]*:@'({[!?") : next < n;
}

/* End of the sentence that begins at s[first]. Of several places without white space between them
 * Punkt asks the last alone, whether any of them ends one. */
static size_t sentence_end(const char *s, size_t n, size_t first)
{
    size_t place = n; /* the last such place in this run, n: none */
    bool ends = false;
    for (size_t at = first; at < n; at++) {
        if (may_end(s, n, at)) {
            ends |= s[at] != '.' || stop_ends(s, n, first, at, skip_space(s, n, at + 1));
            place = at;
        }
        if (at + 1 < n && !is_space_at(s, n, at + 1))
            continue;
        if (place < n && ends) {
            size_t next = skip_space(s, n, place + 1), closed = realigned(s, n, next);
            return closed > next ? closed : place + 1;
        }
        place = n;
        ends = false;
    }
    return n;
}

/* ---- words ---- */

typedef struct token {
    size_t begin, end;
} token;

/* The next run without white space behind t; false when there is none. */
static bool next_token(const char *s, size_t n, token *t)
{
    size_t at = skip_space(s, n, t->end);
    t->begin = at;
    for (uint32_t c; at < n;) {
        size_t used = pnb__next_char(s + at, n - at, &c);
        if (pnb__is_python_space(c))
            break;
        at += used;
    }
    t->end = at;
    return t->end > t->begin;
}

static pnb_status give_words(const pnb__buf *text, pnb__word_fn fn, void *user, pnb_error *err)
{
    token t = {0, 0};
    pnb_status status = PNB_OK;
    while (status == PNB_OK && next_token(text->data, text->size, &t))
        status = fn(user, text->data + t.begin, t.end - t.begin, err);
    return status;
}

static pnb_status tokenize_sentence(const char *s, size_t n, pnb__buf buffers[2], pnb__word_fn fn,
                                    void *user, pnb_error *err)
{
    pnb__buf *text = &buffers[0], *other = &buffers[1];
    text->size = 0;
    pnb__buf_append(text, s, n);
    for (size_t i = 0; i < PNB_COUNT(rules); i++)
        apply(text, other, rules[i]);
    other->size = 0;
    put_apart(other, text->data, text->size);
    for (size_t i = 0; i < PNB_COUNT(later_rules); i++)
        apply(other, text, later_rules[i]);
    if (text->failed || other->failed)
        return pnb__fail_nomem(err, n);
    return give_words(other, fn, user, err);
}

pnb_status pnb__word_tokenize(const char *s, size_t n, pnb__word_fn fn, void *user, pnb_error *err)
{
    pnb__buf buffers[2] = {{0}, {0}};
    pnb_status status = PNB_OK;
    for (size_t at = skip_space(s, n, 0); status == PNB_OK && at < n;) {
        size_t end = sentence_end(s, n, at);
        status = tokenize_sentence(s + at, end - at, buffers, fn, user, err);
        at = skip_space(s, n, end);
    }
    pnb__buf_reset(&buffers[0]);
    pnb__buf_reset(&buffers[1]);
    return status;
}
