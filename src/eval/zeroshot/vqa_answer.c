/* Answers to visual questions in one form, so that "Two dogs." and "2 dogs" are the same.
 *
 * The steps follow the description of VQA's evaluation (visualqa.org/evaluation): lower case;
 * commas and full stops only inside numbers; other punctuation but apostrophes and colons is a
 * space; number words up to ten are digits, and "none" is 0 as in its program; articles go; a
 * contraction reads the same with and without its apostrophe. Words that are others without
 * their apostrophe ("we're", "it's") keep it. */
#include <ctype.h>
#include <string.h>

#include <utf8proc.h>

#include "penumbra/vqa.h"
#include "tokenizer/text.h"

static const char *const numbers[] = {"zero", "one",   "two",   "three", "four", "five",
                                      "six",  "seven", "eight", "nine",  "ten"};
static const char *const none = "none";
static const char *const articles[] = {"a", "an", "the"};

/* Contractions without their apostrophe, where that is no other word. */
static const char *const contractions[] = {
    "aint",      "arent",     "cant",        "couldnt",   "couldve",    "didnt",     "doesnt",
    "dont",      "hadnt",     "hasnt",       "havent",    "hed",        "hes",       "howd",
    "howll",     "hows",      "im",          "isnt",      "itd",        "itll",      "ive",
    "lets",      "maam",      "mightnt",     "mightve",   "mustnt",     "mustve",    "neednt",
    "oclock",    "oughtnt",   "shant",       "shes",      "shouldnt",   "shouldve",  "someones",
    "thats",     "thered",    "therere",     "theres",    "theyd",      "theyll",    "theyre",
    "theyve",    "twas",      "wasnt",       "werent",    "weve",       "whatll",    "whatre",
    "whats",     "whatve",    "whens",       "whered",    "wheres",     "whereve",   "whod",
    "wholl",     "whos",      "whove",       "whyll",     "whyre",      "whys",      "wont",
    "wouldnt",   "wouldve",   "yall",        "youd",      "youll",      "youre",     "youve",
    "everyones", "somebodys", "somethingll", "couldntve", "shouldntve", "wouldntve", "mightntve",
    "hadntve"};

static bool is_one_of(const char *const *words, size_t n, const char *word, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return true;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An ASCII character: in lower case, gone, or a space. */
static void put_ascii(const char *answer, const char *at, pnb__buf *out)
{
    unsigned char c = (unsigned char)*at;
    bool in_number = at > answer && is_digit(at[-1]) && is_digit(at[1]);
    if (c == '.') {
        if (in_number)
            pnb__buf_putc(out, '.');
    } else if (c == ',') {
        if (!in_number)
            pnb__buf_putc(out, ' ');
    } else {
        pnb__buf_putc(out, isalnum(c) || c == '\'' || c == ':' ? (char)tolower(c) : ' ');
    }
}

/* The answer in lower case with punctuation gone. Bytes beyond ASCII that are no UTF-8 stay. */
static void put_plain(const char *answer, pnb__buf *out)
{
    size_t n = strlen(answer);
    bool is_utf8 = pnb__utf8_valid(answer, n);
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        if ((unsigned char)answer[i] < 0x80) {
            put_ascii(answer, answer + i++, out);
        } else if (!is_utf8) {
            pnb__buf_putc(out, answer[i++]);
        } else {
            i += pnb__next_char(answer + i, n - i, &c);
            pnb__put_char(out, pnb__is_space(c) ? ' ' : (uint32_t)utf8proc_tolower((int32_t)c));
        }
    }
}

/* One word in its final form; an article leaves nothing. */
static void put_word(const char *word, size_t n, pnb__buf *out)
{
    char bare[32];
    size_t n_bare = 0;
    if (is_one_of(articles, PNB_COUNT(articles), word, n))
        return;
    if (out->size > 0)
        pnb__buf_putc(out, ' ');
    if (is_one_of(&none, 1, word, n)) {
        pnb__buf_putc(out, '0');
        return;
    }
    for (size_t i = 0; i < PNB_COUNT(numbers); i++)
        if (strlen(numbers[i]) == n && memcmp(numbers[i], word, n) == 0) {
            pnb__buf_printf(out, "%zu", i);
            return;
        }
    for (size_t i = 0; i < n && n_bare < sizeof bare; i++)
        if (word[i] != '\'')
            bare[n_bare++] = word[i];
    if (n_bare < sizeof bare && is_one_of(contractions, PNB_COUNT(contractions), bare, n_bare))
        pnb__buf_append(out, bare, n_bare);
    else
        pnb__buf_append(out, word, n);
}

pnb_status pnb_vqa_normalise(char **out, const char *answer, pnb_error *err)
{
    pnb__buf plain = {0}, words = {0};
    put_plain(answer, &plain);
    for (size_t i = 0; i < plain.size && !plain.failed;) {
        size_t n = 0;
        while (i + n < plain.size && plain.data[i + n] != ' ')
            n++;
        if (n > 0)
            put_word(plain.data + i, n, &words);
        i += n + 1;
    }
    pnb__buf_append(&words, "", 1);
    bool failed = plain.failed || words.failed;
    pnb__buf_reset(&plain);
    if (failed) {
        pnb__buf_reset(&words);
        return pnb__fail_nomem(err, strlen(answer));
    }
    *out = words.data;
    return PNB_OK;
}

void pnb_vqa_text_free(char *text)
{
    pnb__free(text);
}
