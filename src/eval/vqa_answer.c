/* Answers to visual questions in one form, so that "Two dogs." and "2 dogs" are the same.
 *
 * The steps follow the description of VQA's evaluation: lower case; commas and full stops only
 * inside numbers; other punctuation but apostrophes and colons is a space; number words up to ten
 * are digits; articles go; a contraction reads the same with and without its apostrophe. Words that
 * are others without their apostrophe ("we're", "its") keep it. */
#include <ctype.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/curate.h"

static const char *const numbers[] = {"zero", "one",   "two",   "three", "four", "five",
                                      "six",  "seven", "eight", "nine",  "ten"};
static const char *const articles[] = {"a", "an", "the"};

/* Contractions without their apostrophe, where that is no other word. */
static const char *const contractions[] = {
    "aint",      "arent",   "cant",    "couldnt", "couldve", "didnt",    "doesnt",   "dont",
    "everyones", "hadnt",   "hasnt",   "havent",  "hes",     "howd",     "hows",     "im",
    "isnt",      "itd",     "itll",    "ive",     "lets",    "mightnt",  "mightve",  "mustnt",
    "mustve",    "neednt",  "oclock",  "shant",   "shes",    "shouldnt", "shouldve", "someones",
    "thats",     "theres",  "theyd",   "theyll",  "theyre",  "theyve",   "wasnt",    "werent",
    "weve",      "whatll",  "whatre",  "whats",   "whatve",  "wheres",   "whos",     "whove",
    "wont",      "wouldnt", "wouldve", "yall",    "youd",    "youll",    "youre",    "youve"};

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

/* The answer with punctuation gone and ASCII in lower case; bytes beyond ASCII stay. */
static void put_plain(const char *answer, pnb__buf *out)
{
    for (const char *p = answer; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        bool in_number = p > answer && is_digit(p[-1]) && is_digit(p[1]);
        if (c == '.') {
            if (in_number)
                pnb__buf_putc(out, '.');
        } else if (c == ',') {
            if (!in_number)
                pnb__buf_putc(out, ' ');
        } else if (c >= 0x80 || isalnum(c) || c == '\'' || c == ':') {
            pnb__buf_putc(out, (char)tolower(c));
        } else {
            pnb__buf_putc(out, ' ');
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
