/* Caption rules: limits on length, alphabet and repetition, expressions, and blocked words.
 *
 * Expressions are POSIX extended ones (regcomp), applied to the caption as it is. Blocked entries
 * are taken apart into words as captions are and found by hash: each run of words of the caption
 * that is not longer than the longest entry is looked up, so time does not grow with the list.
 * Every rule is tried, so that all that a caption fails is known. */
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map.h"
#include "eval/curation/text_words.h"

struct pnb_text_rules {
    pnb_text_rules_opts opts; /* without the pointers */
    bool is_empty;
    double match_places, no_match_places; /* 0: no such expression */
    regex_t match, no_match;
    char **blocked;
    size_t n_blocked, longest; /* words of the longest entry */
    pnb__key_map places;       /* in blocked, by text */
    pnb__text_words words;
};

pnb_text_rules_opts pnb_text_rules_opts_default(void)
{
    return (pnb_text_rules_opts){.max_repeated = 1.0};
}

static bool no_rule(const pnb_text_rules_opts *o)
{
    return o->min_words == 0 && o->max_words == 0 && o->min_chars == 0 && o->max_chars == 0 &&
           !(o->min_ascii > 0) && !(o->min_script > 0) && !(o->max_repeated < 1) &&
           !o->needs_letter && o->match == NULL && o->no_match == NULL && o->n_blocked == 0;
}

static pnb_status check_opts(const pnb_text_rules_opts *o, pnb_error *err)
{
    const double share[] = {o->min_ascii, o->min_script, o->max_repeated};
    static const char *const names[] = {"min_ascii", "min_script", "max_repeated"};
    for (size_t i = 0; i < PNB_COUNT(share); i++)
        if (!(share[i] >= 0 && share[i] <= 1))
            return pnb__fail(err, PNB_ARG, "%s is %g; a share from 0 to 1 is wanted", names[i],
                             share[i]);
    if (o->max_words > 0 && o->min_words > o->max_words)
        return pnb__fail(err, PNB_ARG, "at least %zu and at most %zu words: no caption has that",
                         o->min_words, o->max_words);
    if (o->max_chars > 0 && o->min_chars > o->max_chars)
        return pnb__fail(err, PNB_ARG,
                         "at least %zu and at most %zu characters: no caption has that",
                         o->min_chars, o->max_chars);
    if ((unsigned)o->script >= PNB_N_SCRIPTS)
        return pnb__fail(err, PNB_ARG, "script number %d does not exist", (int)o->script);
    return PNB_OK;
}

/* ---- expressions ---- */

/* regcomp copies what is repeated, so that ((a{255}){255}){255} takes gigabytes; searching makes at
 * most a state of glibc's automaton for each byte of the caption, and no more than sets of places
 * there are, each seen in four contexts. Both are known before. */
enum { MOST_PLACES = 20000, MOST_DEPTH = 64, MOST_BITS = 62, STATE_BYTES = 2048, PLACE_BYTES = 16 };
static const double most_search = 256e6; /* bytes of states, made in about a second */

/* regexec begins anew at every byte, which takes hours on a long caption; behind a beginning that
 * takes anything it goes through once. */
static const char once_begin[] = "^.*(", once_end[] = ")";

/* Behind '[': the place behind the bracket expression. */
static const char *skip_bracket(const char *at)
{
    at += *at == '^';
    at += *at == ']';
    for (; *at != '\0' && *at != ']'; at++)
        if (*at == '[' && at[1] != '\0' && strchr(".:=", at[1]) != NULL) {
            char kind = at[1];
            for (at += 2; *at != '\0' && (*at != kind || at[1] != ']'); at++)
                ;
            at += *at != '\0';
        }
    return *at != '\0' ? at + 1 : at;
}

/* How often "{m,n}" at `at` repeats, at most; at is moved behind it. */
static double read_bound(const char **at)
{
    char *end;
    double low = (double)strtoul(*at + 1, &end, 10), high = low;
    if (*end == ',')
        high = end[1] >= '0' && end[1] <= '9' ? (double)strtoul(end + 1, &end, 10) : low + 1;
    end += strcspn(end, "}");
    *at = *end != '\0' ? end + 1 : end;
    return high > low ? high : low;
}

/* Places of an expression when all repetitions are written out; infinite beyond MOST_DEPTH. */
static double count_places(const char *at)
{
    double sum[MOST_DEPTH + 1] = {0}, last = 0;
    int depth = 0;
    while (*at != '\0') {
        char c = *at++;
        if (c == '(') {
            if (++depth > MOST_DEPTH)
                return HUGE_VAL;
            sum[depth] = last = 0;
            continue;
        }
        if (c == '{' && *at >= '0' && *at <= '9') {
            at--;
            double times = read_bound(&at);
            sum[depth] += last * (times - 1 > 0 ? times - 1 : 0);
            last *= times > 1 ? times : 1;
            continue;
        }
        if (c == ')' && depth > 0) {
            last = 1 + sum[depth--];
            sum[depth] += last;
            continue;
        }
        if (c == '[')
            at = skip_bracket(at);
        else if (c == '\\' && *at != '\0')
            at++;
        if (strchr("*+?|", c) == NULL)
            last = 1;
        sum[depth] += strchr("*+?|", c) == NULL;
    }
    for (; depth > 0; depth--)
        sum[depth - 1] += sum[depth];
    return sum[0];
}

/* A digit behind a backslash refers back to a group: glibc searches those by trying. */
static bool refers_back(const char *at)
{
    for (; *at != '\0'; at++)
        if (*at == '\\' && *++at >= '1' && *at <= '9')
            return true;
        else if (*at == '\0')
            return false;
    return false;
}

static pnb_status check_places(const char *text, double *places, pnb_error *err)
{
    *places = count_places(text);
    if (*places > MOST_PLACES)
        return pnb__fail(err, PNB_LIMIT,
                         "the expression '%.100s' has %.3g places with its repetitions written "
                         "out; at most %d are searched for: use * or + for long repetitions",
                         text, *places, MOST_PLACES);
    if (refers_back(text))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "the expression '%.100s' refers back to a group, which can take for ever",
                         text);
    return PNB_OK;
}

/* Errors  LIMIT, ARG; on success the expression is to be freed */
static pnb_status compile_one(regex_t *out, const char *text, const char *shown, bool ignore_case,
                              pnb_error *err)
{
    int code = regcomp(out, text, REG_EXTENDED | REG_NOSUB | (ignore_case ? REG_ICASE : 0));
    if (code == REG_ESPACE)
        return pnb__fail(err, PNB_LIMIT, "the expression '%s' takes too much memory", shown);
    if (code != 0) {
        char why[160];
        regerror(code, out, why, sizeof why);
        return pnb__fail(err, PNB_ARG, "the expression '%s' is no POSIX extended one: %s", shown,
                         why);
    }
    return PNB_OK;
}

static pnb_status compile(regex_t *out, double *places, const char *text, bool ignore_case,
                          pnb_error *err)
{
    if (text == NULL)
        return PNB_OK;
    double n;
    pnb_status status = check_places(text, &n, err);
    if (status == PNB_OK) /* as it stands: between brackets "a)(b" would pass */
        status = compile_one(out, text, text, ignore_case, err);
    if (status != PNB_OK)
        return status;
    regfree(out);
    char *once = pnb__format("%s%s%s", once_begin, text, once_end);
    status = once != NULL ? compile_one(out, once, text, ignore_case, err)
                          : pnb__fail_nomem(err, strlen(text));
    pnb__free(once);
    if (status == PNB_OK)
        *places = PNB_MAX(n, 1.0); /* from here on the expression is there to be freed */
    return status;
}

/* Whether a caption may be looked into: what its states can take at most is known before. */
static bool is_searched(double places, const char *text)
{
    double states = (double)strlen(text) + 1;
    if (places + 4 < MOST_BITS)
        states = PNB_MIN(states, ldexp(1, (int)places + 4));
    return states * (STATE_BYTES + PLACE_BYTES * places) <= most_search;
}

/* A caption that is not looked into fails, whether the expression is wanted or not: `otherwise`. */
static pnb_status is_found(const regex_t *expression, double places, const char *text,
                           bool otherwise, bool *found, pnb_error *err)
{
    *found = otherwise;
    if (!is_searched(places, text))
        return PNB_OK;
    int code = regexec(expression, text, 0, NULL, 0);
    if (code == REG_ESPACE)
        return pnb__fail(err, PNB_LIMIT, "an expression takes too much memory on a caption");
    *found = code == 0;
    return PNB_OK;
}

/* ---- blocked words ---- */

static bool is_blocked_text(const pnb_text_rules *r, const char *text, size_t n)
{
    size_t i, step = 0;
    uint64_t hash = pnb__hash_bytes(text, n, 0);
    while ((i = pnb__key_map_next(&r->places, hash, &step)) != PNB__NO_KEY &&
           (strlen(r->blocked[i]) != n || memcmp(r->blocked[i], text, n) != 0)) {
    }
    return i != PNB__NO_KEY;
}

static pnb_status add_blocked(pnb_text_rules *r, const char *entry, pnb_error *err)
{
    pnb_status status = pnb__text_words_read(&r->words, entry, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "blocked entry");
        return status;
    }
    if (r->words.n_words == 0)
        return pnb__fail(err, PNB_ARG, "blocked entry '%s' holds no word", entry);
    const pnb__buf *text = &r->words.text;
    if (is_blocked_text(r, text->data, text->size))
        return PNB_OK;
    char *copy = pnb__strndup(text->data, text->size);
    if (copy == NULL)
        return pnb__fail_nomem(err, text->size);
    status = PNB_PUSH(r->blocked, r->n_blocked, err, copy);
    if (status != PNB_OK) {
        pnb__free(copy);
        return status;
    }
    r->longest = PNB_MAX(r->longest, r->words.n_words);
    return pnb__key_map_add(&r->places, pnb__hash_bytes(copy, text->size, 0), r->n_blocked - 1,
                            err);
}

static bool is_blocked(const pnb_text_rules *r)
{
    const pnb__text_words *w = &r->words;
    for (size_t i = 0; i < w->n_words; i++)
        for (size_t n = 1; n <= r->longest && i + n <= w->n_words; n++) {
            size_t begin = w->word[i].begin, end = w->word[i + n - 1].end;
            if (is_blocked_text(r, w->text.data + begin, end - begin))
                return true;
        }
    return false;
}

/* ---- rules ---- */

pnb_status pnb_text_rules_create(pnb_text_rules **out, const pnb_text_rules_opts *opts,
                                 pnb_error *err)
{
    pnb_status status;
    *out = NULL;
    pnb_text_rules *r = NULL;
    PNB_TRY(PNB_ALLOC_ZERO(r, 1, err));
    r->opts = *opts;
    r->is_empty = no_rule(opts);
    PNB_TRY(check_opts(opts, err));
    PNB_TRY(compile(&r->match, &r->match_places, opts->match, opts->ignore_case, err));
    PNB_TRY(compile(&r->no_match, &r->no_match_places, opts->no_match, opts->ignore_case, err));
    for (size_t i = 0; i < opts->n_blocked; i++)
        PNB_TRY(add_blocked(r, opts->blocked[i], err));
    r->opts.match = r->opts.no_match = NULL;
    r->opts.blocked = NULL;
    *out = r;
    r = NULL;
done:
    pnb_text_rules_free(r);
    return status;
}

void pnb_text_rules_free(pnb_text_rules *r)
{
    if (r == NULL)
        return;
    if (r->match_places > 0)
        regfree(&r->match);
    if (r->no_match_places > 0)
        regfree(&r->no_match);
    for (size_t i = 0; i < r->n_blocked; i++)
        pnb__free(r->blocked[i]);
    pnb__free(r->blocked);
    pnb__key_map_reset(&r->places);
    pnb__text_words_reset(&r->words);
    pnb__free(r);
}

bool pnb_text_rules_is_empty(const pnb_text_rules *r)
{
    return r->is_empty;
}

/* part/whole is below `least`; nothing of nothing is below every positive share. */
static bool share_below(size_t part, size_t whole, double least)
{
    return least > 0 && (whole == 0 || (double)part < least * (double)whole);
}

static uint32_t bit(pnb_rule rule, bool fails)
{
    return fails ? (uint32_t)1 << rule : 0;
}

static uint32_t check_lengths(const pnb_text_rules *r)
{
    const pnb_text_rules_opts *o = &r->opts;
    const pnb__text_words *w = &r->words;
    return bit(PNB_RULE_MIN_WORDS, w->n_words < o->min_words) |
           bit(PNB_RULE_MAX_WORDS, o->max_words > 0 && w->n_words > o->max_words) |
           bit(PNB_RULE_MIN_CHARS, w->n_chars < o->min_chars) |
           bit(PNB_RULE_MAX_CHARS, o->max_chars > 0 && w->n_chars > o->max_chars) |
           bit(PNB_RULE_ASCII, share_below(w->n_ascii, w->n_visible, o->min_ascii)) |
           bit(PNB_RULE_SCRIPT, share_below(w->of_script[o->script], w->n_letters, o->min_script)) |
           bit(PNB_RULE_LETTERS, o->needs_letter && w->n_letters == 0);
}

static pnb_status check_repeats(pnb_text_rules *r, uint32_t *failed, pnb_error *err)
{
    if (!(r->opts.max_repeated < 1) || r->words.n_words == 0)
        return PNB_OK;
    size_t n = r->words.n_words, n_distinct = pnb__text_words_distinct(&r->words);
    if (r->words.text.failed)
        return pnb__fail_nomem(err, n * sizeof(char *));
    *failed |= bit(PNB_RULE_REPEATED, (double)(n - n_distinct) > r->opts.max_repeated * (double)n);
    return PNB_OK;
}

pnb_status pnb_text_rules_check(pnb_text_rules *r, const char *text, uint32_t *failed,
                                pnb_error *err)
{
    bool found = true, bad = false;
    uint32_t all = 0;
    pnb_status status = PNB_OK;
    *failed = 0;
    if (r->is_empty)
        return PNB_OK;
    if (text == NULL) {
        *failed = bit(PNB_RULE_NO_TEXT, true);
        return PNB_OK;
    }
    PNB_TRY(pnb__text_words_read(&r->words, text, err));
    all = check_lengths(r) | bit(PNB_RULE_BLOCKED, is_blocked(r));
    PNB_TRY(check_repeats(r, &all, err));
    if (r->match_places > 0)
        PNB_TRY(is_found(&r->match, r->match_places, text, false, &found, err));
    if (r->no_match_places > 0)
        PNB_TRY(is_found(&r->no_match, r->no_match_places, text, true, &bad, err));
    *failed = all | bit(PNB_RULE_MATCH, !found) | bit(PNB_RULE_NO_MATCH, bad);
done:
    return status;
}
