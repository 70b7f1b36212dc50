/* The "pre_tokenizer" section of tokenizer.json: where a text may be cut into words.
 *
 * Each regular expression of the reference files is written out as a scanner. Steps run one inside
 * the other; words are handed on as they are found, nothing is collected. */
#include <string.h>

#include "tokenizer/text.h"

static const char metaspace[] = "\xE2\x96\x81"; /* U+2581 */

typedef struct walk {
    const pnb__split_step *steps;
    size_t n_steps;
    bool is_first;
    pnb__word_fn fn;
    void *user;
} walk;

static pnb_status run(const walk *w, size_t step, const char *s, size_t n, pnb_error *err);

typedef enum char_class { CLASS_SPACE, CLASS_LETTER, CLASS_NUMBER, CLASS_OTHER } char_class;

static char_class class_of(uint32_t c)
{
    if (pnb__is_letter(c))
        return CLASS_LETTER;
    if (pnb__is_number(c))
        return CLASS_NUMBER;
    return pnb__is_space(c) ? CLASS_SPACE : CLASS_OTHER;
}

/* End of the run of characters of one class that begins at `at`. */
static size_t run_end(const char *s, size_t n, size_t at, char_class wanted)
{
    while (at < n) {
        uint32_t c;
        size_t used = pnb__next_char(s + at, n - at, &c);
        if (class_of(c) != wanted)
            break;
        at += used;
    }
    return at;
}

/* `lower` is a lower-case letter or no letter at all. */
static bool is_same_letter(char c, char lower, bool ignore_case)
{
    return c == lower || (ignore_case && c >= 'A' && c <= 'Z' && (c | 32) == lower);
}

/* Length of 's 't 're 've 'm 'll 'd at s, 0 for none. open_clip's expression ignores case, so that
 * the long s (U+017F) matches too; Hugging Face's does not. */
static size_t contraction(const char *s, size_t n, bool ignore_case)
{
    static const char *const tails[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (n < 2 || s[0] != '\'')
        return 0;
    if (ignore_case && n >= 3 && memcmp(s + 1, "\xC5\xBF", 2) == 0)
        return 3;
    for (size_t i = 0; i < PNB_COUNT(tails); i++) {
        size_t k = strlen(tails[i]), same = 0;
        while (same < k && same + 1 < n && is_same_letter(s[1 + same], tails[i][same], ignore_case))
            same++;
        if (same == k)
            return 1 + k;
    }
    return 0;
}

/* One match of GPT-2's expression at s[at]; never empty. */
static size_t gpt2_end(const char *s, size_t n, size_t at)
{
    size_t short_form = contraction(s + at, n - at, false);
    if (short_form > 0)
        return at + short_form;
    uint32_t c;
    size_t body = at, used = pnb__next_char(s + at, n - at, &c);
    if (c == ' ' && at + 1 < n) {
        body = at + 1;
        used = pnb__next_char(s + body, n - body, &c);
    }
    char_class k = class_of(c);
    if (k != CLASS_SPACE)
        return run_end(s, n, body + used, k);
    /* \s+(?!\S): a run of whitespace leaves its last character to the word behind it */
    size_t end = run_end(s, n, at, CLASS_SPACE);
    if (end == n)
        return end;
    size_t last = end - 1;
    while (last > at && ((unsigned char)s[last] & 0xC0) == 0x80)
        last--;
    return last > at ? last : end;
}

static pnb_status split_gpt2(const walk *w, size_t step, const char *s, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < n && status == PNB_OK;) {
        size_t end = gpt2_end(s, n, at);
        status = run(w, step + 1, s + at, end - at, err);
        at = end;
    }
    return status;
}

/* Length of one of the step's own strings at s, 0 for none. */
static size_t word_at(const pnb__split_step *rule, const char *s, size_t n)
{
    for (size_t i = 0; i < rule->n_words; i++) {
        const pnb__added *word = &rule->words[i];
        size_t same = 0;
        while (same < word->n && same < n && is_same_letter(s[same], word->content[same], true))
            same++;
        if (same == word->n)
            return same;
    }
    return 0;
}

static pnb_status split_clip(const walk *w, size_t step, const char *s, size_t n, pnb_error *err)
{
    const pnb__split_step *rule = &w->steps[step];
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < n && status == PNB_OK;) {
        uint32_t c;
        size_t end = at + word_at(rule, s + at, n - at);
        if (end == at)
            end = at + contraction(s + at, n - at, rule->n_words > 0);
        if (end == at) {
            end = at + pnb__next_char(s + at, n - at, &c);
            char_class k = class_of(c);
            if (k == CLASS_SPACE) {
                at = end;
                continue;
            }
            if (k != CLASS_NUMBER)
                end = run_end(s, n, end, k);
        }
        status = run(w, step + 1, s + at, end - at, err);
        at = end;
    }
    return status;
}

/* \w+|[^\w\s]+ , or whatever is not whitespace when words_apart is false. */
static pnb_status split_spaces(const walk *w, size_t step, const char *s, size_t n,
                               bool words_apart, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t begin = 0;
    int now = 0; /* 0 in space, 1 in \w, 2 in the rest */
    for (size_t at = 0; at <= n && status == PNB_OK;) {
        uint32_t c = ' ';
        size_t used = at < n ? pnb__next_char(s + at, n - at, &c) : 1;
        int next = 0;
        if (at < n && !pnb__is_space(c))
            next = !words_apart || pnb__is_word(c) ? 1 : 2;
        if (next != now) {
            if (now != 0)
                status = run(w, step + 1, s + begin, at - begin, err);
            begin = at;
            now = next;
        }
        at += used;
    }
    return status;
}

/* Spaces become U+2581, one is put in front when asked, and words begin at each of them. */
static pnb_status split_metaspace(const walk *w, size_t step, const char *s, size_t n,
                                  pnb_error *err)
{
    const pnb__split_step *rule = &w->steps[step];
    pnb_status status = PNB_OK;
    pnb__buf b = {0};
    bool wants =
        rule->prefix == PNB__PREFIX_ALWAYS || (rule->prefix == PNB__PREFIX_FIRST && w->is_first);
    bool has = n > 0 && s[0] == ' '; /* a U+2581 in the text is none, as in SentencePiece */
    if (n > 0 && wants && !has)
        pnb__buf_puts(&b, metaspace);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ')
            pnb__buf_puts(&b, metaspace);
        else
            pnb__buf_putc(&b, s[i]);
    }
    if (b.failed)
        status = pnb__fail_nomem(err, n);
    size_t begin = 0;
    for (size_t at = 1; at <= b.size && status == PNB_OK; at++) {
        bool is_cut = at == b.size ||
                      (rule->splits && at + 3 <= b.size && memcmp(b.data + at, metaspace, 3) == 0);
        if (!is_cut)
            continue;
        status = run(w, step + 1, b.data + begin, at - begin, err);
        begin = at;
    }
    pnb__buf_reset(&b);
    return status;
}

typedef struct word_step {
    const walk *w;
    size_t step;
} word_step;

static pnb_status next_step(void *user, const char *word, size_t n, pnb_error *err)
{
    const word_step *at = user;
    return run(at->w, at->step + 1, word, n, err);
}

static pnb_status split_words(const walk *w, size_t step, const char *s, size_t n, pnb_error *err)
{
    word_step at = {w, step};
    return pnb__word_tokenize(s, n, next_step, &at, err);
}

static pnb_status split(const walk *w, size_t step, const char *s, size_t n, pnb_error *err)
{
    switch (w->steps[step].kind) {
    case PNB__SPLIT_WHITESPACE:
        return split_spaces(w, step, s, n, true, err);
    case PNB__SPLIT_WHITESPACE_ONLY:
        return split_spaces(w, step, s, n, false, err);
    case PNB__SPLIT_GPT2:
        return split_gpt2(w, step, s, n, err);
    case PNB__SPLIT_CLIP:
        return split_clip(w, step, s, n, err);
    case PNB__SPLIT_METASPACE:
        return split_metaspace(w, step, s, n, err);
    case PNB__SPLIT_WORD_TOKENIZE:
        return split_words(w, step, s, n, err);
    case PNB__SPLIT_NONE:
        break;
    }
    return run(w, step + 1, s, n, err);
}

static pnb_status run(const walk *w, size_t step, const char *s, size_t n, pnb_error *err)
{
    if (n == 0)
        return PNB_OK;
    if (step == w->n_steps)
        return w->fn(w->user, s, n, err);
    const pnb__split_step *rule = &w->steps[step];
    if (rule->kind == PNB__SPLIT_METASPACE || rule->prefix == PNB__PREFIX_NEVER || s[0] == ' ')
        return split(w, step, s, n, err);
    pnb__buf b = {0};
    pnb__buf_putc(&b, ' ');
    pnb__buf_append(&b, s, n);
    pnb_status status =
        b.failed ? pnb__fail_nomem(err, n + 1) : split(w, step, b.data, b.size, err);
    pnb__buf_reset(&b);
    return status;
}

pnb_status pnb__pretokenize(const pnb__split_step *steps, size_t n_steps, const char *text,
                            size_t n, bool is_first, pnb__word_fn fn, void *user, pnb_error *err)
{
    walk w = {steps, n_steps, is_first, fn, user};
    return run(&w, 0, text, n, err);
}
