/* Curating data sets: which pairs to keep, which rows repeat or stand alone, which to label next,
 * and the scoring of candidate answers.
 *
 * Everything works on embeddings and captions that are there already; nothing is encoded here.
 * Definitions: docs/numerics.md#filtering, #near-duplicates, #selection, #vqa. The same input and
 * seed give the same result whatever the number of threads. A NULL ctx means one thread. */
#ifndef PENUMBRA_CURATE_H
#define PENUMBRA_CURATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/dataset.h"
#include "penumbra/error.h"
#include "penumbra/eval.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far a long call is; false stops it with INTERRUPTED. Called from the caller's thread. */
typedef struct pnb_watch {
    bool (*step)(void *user, size_t done, size_t total); /* NULL: nobody watches */
    void *user;
} pnb_watch;

/* ---- captions ---- */
/* X(name, text, sentence): the rules of a filter, in the order they are tried; a pair is counted
 * at the first one it fails. Bit number = position. */
#define PNB_RULE_LIST(X)                                                                           \
    X(WITHIN, "within", "a sample outside the subset")                                             \
    X(NO_CAPTION, "no_caption", "there is no caption")                                             \
    X(MIN_WORDS, "min_words", "fewer words")                                                       \
    X(MAX_WORDS, "max_words", "more words")                                                        \
    X(MIN_CHARS, "min_chars", "fewer characters")                                                  \
    X(MAX_CHARS, "max_chars", "more characters")                                                   \
    X(ASCII, "min_ascii", "a smaller share of ASCII characters")                                   \
    X(SCRIPT, "min_script", "a smaller share of letters of the script")                            \
    X(REPEATED, "max_repeated", "a larger share of repeated words")                                \
    X(LETTERS, "needs_letter", "no letter: numbers and signs only")                                \
    X(MATCH, "match", "the expression is not found")                                               \
    X(NO_MATCH, "no_match", "the expression is found")                                             \
    X(BLOCKED, "blocked", "holds a blocked word or phrase")                                        \
    X(MIN_SCORE, "min_score", "a lower score")                                                     \
    X(MIN_P_MATCH, "min_p_match", "a lower probability of a match")                                \
    X(MAX_IMAGE_U, "max_image_uncertainty", "a more uncertain picture")                            \
    X(MAX_TEXT_U, "max_text_uncertainty", "a more uncertain caption")                              \
    X(CERTAIN_IMAGES, "certain_images", "picture not among the most certain share")                \
    X(CERTAIN_TEXTS, "certain_texts", "caption not among the most certain share")                  \
    X(TOP, "top", "not among the best share by score")

typedef enum pnb_rule {
#define PNB_RULE_ENUM(name, text, sentence) PNB_RULE_##name,
    PNB_RULE_LIST(PNB_RULE_ENUM)
#undef PNB_RULE_ENUM
        PNB_N_RULES
} pnb_rule;

const char *pnb_rule_name(pnb_rule rule);     /* "unknown" outside the list */
const char *pnb_rule_sentence(pnb_rule rule); /* what a dropped pair has */

/* Scripts by Unicode block. X(name, text) */
#define PNB_SCRIPT_LIST(X)                                                                         \
    X(LATIN, "latin")                                                                              \
    X(GREEK, "greek")                                                                              \
    X(CYRILLIC, "cyrillic")                                                                        \
    X(ARMENIAN, "armenian")                                                                        \
    X(HEBREW, "hebrew")                                                                            \
    X(ARABIC, "arabic")                                                                            \
    X(DEVANAGARI, "devanagari")                                                                    \
    X(BENGALI, "bengali")                                                                          \
    X(TAMIL, "tamil")                                                                              \
    X(THAI, "thai")                                                                                \
    X(GEORGIAN, "georgian")                                                                        \
    X(HANGUL, "hangul")                                                                            \
    X(KANA, "kana")                                                                                \
    X(HAN, "han")

typedef enum pnb_script {
#define PNB_SCRIPT_ENUM(name, text) PNB_SCRIPT_##name,
    PNB_SCRIPT_LIST(PNB_SCRIPT_ENUM)
#undef PNB_SCRIPT_ENUM
        PNB_N_SCRIPTS
} pnb_script;

/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_script_parse(pnb_script *out, const char *name, pnb_error *err);

/* A word is a run of letters, marks and digits; a Han or kana letter is a word of its own. A
 * character is a code point; white space at both ends does not count. */
typedef struct pnb_caption_rules_opts {
    size_t min_words, max_words; /* 0: no limit */
    size_t min_chars, max_chars; /* 0: no limit */
    double min_ascii;            /* share of ASCII among characters that are not space; 0: off */
    double min_script;           /* share of `script` among letters; 0: off */
    pnb_script script;
    double max_repeated; /* 1 - distinct words / words, in lower case; 1: off */
    bool needs_letter;
    const char *match, *no_match; /* POSIX extended expressions; NULL: off */
    bool ignore_case;             /* of the expressions; blocked words always do */
    const char *const *blocked;   /* words or phrases, compared word by word in lower case */
    size_t n_blocked;
} pnb_caption_rules_opts;

pnb_caption_rules_opts pnb_caption_rules_opts_default(void); /* nothing is dropped */

/* Rules made ready; one thread at a time may use one. */
typedef struct pnb_caption_rules pnb_caption_rules;
/* Errors  ARG (limits upside down, a share outside 0..1, an expression that does not compile: its
 *         own message is quoted; a blocked entry without a word), NOMEM */
pnb_status pnb_caption_rules_create(pnb_caption_rules **out, const pnb_caption_rules_opts *opts,
                                    pnb_error *err);
void pnb_caption_rules_free(pnb_caption_rules *rules); /* NULL is fine */
/* True when no rule is set: nothing can fail, not even a missing caption. */
bool pnb_caption_rules_is_empty(const pnb_caption_rules *rules);
/* Bits of the rules the caption fails; NULL fails NO_CAPTION only.  Errors  FORMAT (not UTF-8),
 * NOMEM, LIMIT (an expression that takes too much memory) */
pnb_status pnb_caption_rules_check(pnb_caption_rules *rules, const char *caption, uint32_t *failed,
                                   pnb_error *err);

/* ---- pairs ---- */
typedef struct pnb_pair_figures {
    size_t n;
    const double *score;         /* [n] larger is nearer */
    const double *p_match;       /* [n] or NULL: not known */
    const double *image_u;       /* [n] uncertainty of each pair's picture, or NULL */
    const double *text_u;        /* [n] of its caption, or NULL */
    const char *const *captions; /* [n] or NULL; single ones may be NULL */
    const unsigned char *within; /* [n] 0: the pair lies outside a subset; NULL: there is none */
} pnb_pair_figures;

/* NaN means off. Shares are of all n pairs, in (0, 1]. */
typedef struct pnb_pair_filter_opts {
    double min_score, min_p_match, max_image_u, max_text_u;
    double certain_images, certain_texts; /* u <= the u at place ceil(share * n) */
    double top; /* of those left by every other rule, the round(top * n) best, at least one; equal
                   scores to the lower row */
    pnb_caption_rules_opts captions;
} pnb_pair_filter_opts;

pnb_pair_filter_opts pnb_pair_filter_opts_default(void);         /* everything off */
bool pnb_pair_filter_opts_is_off(const pnb_pair_filter_opts *o); /* no rule is set */

typedef struct pnb_pair_filter {
    size_t n, n_kept;
    uint32_t *failed;               /* [n] bits of the rules each pair fails; 0: kept */
    size_t n_failed[PNB_N_RULES];   /* pairs that fail it, whatever else they fail */
    size_t n_first[PNB_N_RULES];    /* pairs it dropped: no earlier rule did */
    double lowest_kept;             /* score; NaN when nothing is kept */
    double image_u_cut, text_u_cut; /* largest kept by limit or share; NaN: no such rule */
} pnb_pair_filter;

/* Errors  ARG (a limit outside its range, or on figures that are NULL), NUMERIC (a figure is not
 *         finite: names the pair), those of caption rules, NOMEM. Nothing kept is not an error. */
pnb_status pnb_pair_filter_apply(const pnb_pair_figures *pairs, const pnb_pair_filter_opts *opts,
                                 pnb_pair_filter *out, pnb_error *err);
void pnb_pair_filter_reset(pnb_pair_filter *f); /* NULL is fine */

/* ---- results as files ---- */
/* 128 bits that name a sample, as DataComp's subset files hold them. */
typedef struct pnb_uid {
    uint64_t high, low;
} pnb_uid;

/* From 32 hexadecimal digits (more are ignored: a SHA-256 is cut). False: it is none. */
bool pnb_uid_parse(pnb_uid *out, const char *hex);
/* Writes a subset file: .npy of dtype "u8,u8" and shape (n), ascending. Sorts `uids` in place and
 * writes each once; *n_written may be NULL.  Errors  ARG (n = 0), IO, NOMEM */
pnb_status pnb_uids_save(const char *path, pnb_uid *uids, size_t n, size_t *n_written,
                         pnb_error *err);
/* Reads one, in the order of the file; free with pnb_uids_free.  Errors  FORMAT, those of reading
 */
pnb_status pnb_uids_load(pnb_uid **out, size_t *n, const char *path, pnb_error *err);
pnb_status pnb_uids_load_bytes(pnb_uid **out, size_t *n, const void *bytes, size_t n_bytes,
                               pnb_error *err);
void pnb_uids_free(pnb_uid *uids);
void pnb_uids_sort(pnb_uid *uids, size_t n);
bool pnb_uids_contain(const pnb_uid *sorted, size_t n, pnb_uid uid);

typedef struct pnb_copy_opts {
    size_t shard_size; /* samples of a shard. 10000 */
    pnb_watch watch;
    void (*skipped)(void *user, const char *what,
                    const char *why); /* NULL: they are only counted */
    void *skipped_user;
} pnb_copy_opts;

pnb_copy_opts pnb_copy_opts_default(void);

typedef struct pnb_copied {
    size_t n_samples, n_shards, n_skipped; /* skipped: a picture that could not be read */
} pnb_copied;

/* Copies the samples i with keep[i] into new shards DIR/00000.tar ..., in order. What comes from
 * tar shards is copied member by member with its headers, byte for byte; pictures and captions of
 * folders and tables become members "000000000.jpg", "000000000.json" or ".txt". DIR/sizes.json
 * tells the number of samples of each shard. `dir` must not exist or be empty; it appears whole or
 * not at all.
 * Errors  EXISTS (dir holds something), ARG (shard_size 0, nothing to keep), INTERRUPTED, IO, NOMEM
 */
pnb_status pnb_dataset_copy(const pnb_dataset *ds, const unsigned char *keep, const char *dir,
                            const pnb_copy_opts *opts, pnb_copied *out, pnb_error *err);

/* ---- near-duplicates ---- */
typedef struct pnb_duplicates_opts {
    pnb_measure measure; /* mean: the cosine. A symmetric one */
    pnb_measure_opts measure_opts;
    double min_score;      /* pairs with at least this score are near-duplicates. 0.95 */
    size_t max_pairs;      /* up to so many (24 bytes each) all pairs are found. 2e7 */
    size_t max_neighbours; /* where there are more, only so many nearest of each row. 100 */
    pnb_watch watch;
} pnb_duplicates_opts;

pnb_duplicates_opts pnb_duplicates_opts_default(void);

typedef struct pnb_duplicate {
    size_t a, b; /* rows, a < b */
    double score;
} pnb_duplicate;

/* Groups are the connected components of the pairs: chains join rows that are not near. */
typedef struct pnb_duplicates {
    size_t n_pairs;
    pnb_duplicate *pair; /* by a, then b */
    size_t n_groups;
    size_t *offset; /* [n_groups + 1] into row; larger groups first, then by lowest row */
    size_t *row;    /* rows of each group, ascending */
    size_t *keep;   /* [n_groups] the most certain row of each, the lowest among equals */
    size_t n_cut;   /* rows whose list was full at max_neighbours: they may have more; 0 where all
                       pairs were found */
} pnb_duplicates;

/* All pairs of rows with at least the score, grouped. u [n] is what `keep` is decided by; NULL: the
 * lowest row stays.
 * Memory  O(N + min(pairs, max_pairs + N * max_neighbours)), never N*N. Time O(N^2 D)
 * Errors  SHAPE, ARG (an asymmetric measure, a limit that is no number), NUMERIC, INTERRUPTED,
 *         NOMEM */
pnb_status pnb_duplicates_find(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                               const pnb_duplicates_opts *opts, pnb_duplicates *out,
                               pnb_error *err);
void pnb_duplicates_reset(pnb_duplicates *d); /* NULL is fine */

/* ---- outliers ---- */
/* X(name, text, sentence) */
#define PNB_OUTLIER_LIST(X)                                                                        \
    X(KNN, "knn", "lowest mean score to the k nearest other rows")                                 \
    X(NEAREST, "nearest", "lowest score to the nearest other row")                                 \
    X(KTH, "kth", "lowest score to the k-th nearest other row")                                    \
    X(UNCERTAINTY, "uncertainty", "highest uncertainty")

typedef enum pnb_outlier {
#define PNB_OUTLIER_ENUM(name, text, sentence) PNB_OUTLIER_##name,
    PNB_OUTLIER_LIST(PNB_OUTLIER_ENUM)
#undef PNB_OUTLIER_ENUM
        PNB_N_OUTLIERS
} pnb_outlier;

const char *pnb_outlier_name(pnb_outlier kind); /* "unknown" outside the list */
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_outlier_parse(pnb_outlier *out, const char *name, pnb_error *err);

typedef struct pnb_outliers_opts {
    pnb_outlier kind;    /* knn */
    size_t k;            /* neighbours; NEAREST takes one whatever it says. 10 */
    pnb_measure measure; /* mean */
    pnb_measure_opts measure_opts;
    pnb_watch watch;
} pnb_outliers_opts;

pnb_outliers_opts pnb_outliers_opts_default(void);

typedef struct pnb_outliers {
    size_t n;
    size_t *order;    /* [n] rows, the furthest out first; ties to the lower row */
    double *value;    /* [n] by row: the score (low is far out) or the uncertainty (high is) */
    int64_t *nearest; /* [n] by row: its nearest other row; NULL for UNCERTAINTY */
} pnb_outliers;

/* u [n] is needed by UNCERTAINTY only, rows by the others.
 * Errors  SHAPE, ARG (k = 0 or k >= n: a row has n - 1 neighbours; u missing), NUMERIC,
 *         INTERRUPTED, NOMEM */
pnb_status pnb_outliers_rank(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                             const pnb_outliers_opts *opts, pnb_outliers *out, pnb_error *err);
void pnb_outliers_reset(pnb_outliers *o); /* NULL is fine */

/* ---- selection for labelling ---- taken[i] != 0: row i is labelled already and never chosen;
 * NULL: none is. Each fills row[count], first choice first.
 * Errors  ARG (count 0, or more than there are rows left), NUMERIC, NOMEM */
pnb_status pnb_select_uncertain(const double *u, size_t n, const unsigned char *taken, size_t count,
                                size_t *row, pnb_error *err);
pnb_status pnb_select_random(size_t n, const unsigned char *taken, size_t count, uint64_t seed,
                             size_t *row, pnb_error *err);

typedef struct pnb_k_centre_opts {
    bool with_spread; /* distance of (mean, std), 2-Wasserstein; false: of the means alone */
    uint64_t seed;    /* draws the first row where none is taken */
    pnb_watch watch;
} pnb_k_centre_opts;

/* Greedy k-centre: always the row furthest from all that is taken or chosen, ties to the lower row.
 * distance [count] (may be NULL): of each choice to what was there before, infinite for the first
 * one where nothing was; the last is the covering radius before it was chosen.
 * Time    O(N * D * (count + taken))
 * Source  Sener and Savarese 2018, section 4 (greedy part); Gonzalez 1985 */
pnb_status pnb_select_k_centre(const pnb_ctx *ctx, const pnb_gaussians *rows,
                               const unsigned char *taken, size_t count,
                               const pnb_k_centre_opts *opts, size_t *row, double *distance,
                               pnb_error *err);

/* ---- visual question answering ---- */
/* One question with its candidate answers and what people answered. */
typedef struct pnb_vqa_question {
    size_t n_candidates;
    const char *const *candidates;
    const double *scores;      /* [n_candidates], larger is better; NULL: the lowest u is chosen */
    const double *uncertainty; /* [n_candidates] u(a); NULL: -scores */
    size_t n_answers;
    const char *const *answers; /* of people, usually ten */
} pnb_vqa_question;

typedef struct pnb_vqa_opts {
    bool exact;  /* compare texts as they are; false: after pnb_vqa_normalise */
    bool simple; /* min(m/3, 1) of all answers; false: averaged over leaving each one out */
} pnb_vqa_opts;

typedef struct pnb_vqa_answer {
    size_t choice;
    double confidence; /* 1 - softmax(u) of the choice, over the question's candidates */
    double accuracy;   /* soft vote in [0,1] */
} pnb_vqa_answer;

/* Share of right answers of one question: m of n people gave the candidate.
 *   simple  min(m/3, 1)      else  (m/n) min((m-1)/3, 1) + ((n-m)/n) min(m/3, 1)
 * the second being the average over the n subsets of n - 1 people. One person alone counts fully.
 * Source  VQA's evaluation (Antol et al. 2015; Goyal et al. 2017) */
double pnb_vqa_vote(size_t m, size_t n, bool simple);

/* Answers in one form: lower case, no articles, number words up to ten as digits, no commas and
 * full stops but in numbers, other punctuation as space, contractions without apostrophe. Free with
 * pnb_vqa_text_free.  Errors  NOMEM */
pnb_status pnb_vqa_normalise(char **out, const char *answer, pnb_error *err);
void pnb_vqa_text_free(char *text);

/* Chooses the candidate with the highest score, ties to the first.
 * Errors  ARG (no candidate, no answer, neither scores nor uncertainty), NUMERIC, NOMEM
 * Source  GroVE section 4.1: conf(a) = 1 - softmax(u(a)) */
pnb_status pnb_vqa_score(const pnb_vqa_question *question, const pnb_vqa_opts *opts,
                         pnb_vqa_answer *out, pnb_error *err);

/* Confidence against soft accuracy: sum over bins of (n_bin/n) |mean accuracy - mean confidence|.
 * Bins k of n_bins are (k/n, (k+1)/n], 0 joins the first; `equal_count` cuts the sorted values
 * into bins of equal size instead. The arrays [n_bins] may be NULL; empty bins are NaN. */
typedef struct pnb_soft_calibration {
    double ece, mce;
    size_t *n_in_bin;
    double *confidence, *accuracy;
} pnb_soft_calibration;
/* Errors  ARG (n = 0, n_bins 0 or above PNB_MAX_BINS), NUMERIC (outside [0,1]), NOMEM */
pnb_status pnb_soft_calibration_compute(const double *confidence, const double *accuracy, size_t n,
                                        size_t n_bins, bool equal_count, pnb_soft_calibration *out,
                                        pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
