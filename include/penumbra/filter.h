/* Which pairs of a data set to keep, and what is written of them: rules on captions, limits on
 * scores and uncertainties, DataComp's subset files, copied shards.
 *
 * Everything works on figures and captions that are there already; nothing is encoded here. Every
 * rule is tried on every pair, so that the counts tell what each does alone; a pair is dropped by
 * the first rule it fails. ProLIP keeps the best 20% by csd, DataComp's baselines do by cosine:
 *
 *     pnb_pair_filter_opts opts = pnb_pair_filter_opts_default();
 *     opts.top = 0.2;
 *     if (pnb_pair_filter_apply(&figures, &opts, &kept, &err) == PNB_OK)
 *         ... pair i is kept where kept.failed[i] is 0
 *     pnb_pair_filter_reset(&kept);
 *
 * Definitions: docs/numerics.md#filtering; files: docs/formats.md#kept-pairs.
 *
 * Source  ProLIP's preprint, Table C.7; DataComp for subset files */
#ifndef PENUMBRA_FILTER_H
#define PENUMBRA_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/dataset.h"
#include "penumbra/error.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rules ---- */

/* X(name, text, sentence): the rules of a filter with what a dropped pair has, in the order they
 * are tried; a pair is counted at the first one it fails. Bit number = position. A pair is kept by
 *
 * - WITHIN: where within[i] is not 0.
 * - NO_TEXT: where there is a caption; only asked where another rule is about captions.
 * - MIN_WORDS to MAX_CHARS: at a length from the one to the other, both included.
 * - ASCII, SCRIPT: at a share of min_ascii, min_script or more; 0 without any such character.
 * - REPEATED: where 1 - distinct words / words is max_repeated or less.
 * - LETTERS: where there is a letter (Unicode L).
 * - MATCH, NO_MATCH: where the expression is found anywhere in the caption, is not found.
 * - BLOCKED: where no entry stands as whole words in a row, whatever signs stand between them.
 * - MIN_SCORE, MIN_P_MATCH: where the figure is the limit or more.
 * - MAX_IMAGE_U, MAX_TEXT_U: where the uncertainty is the limit or less.
 * - CERTAIN_IMAGES, CERTAIN_TEXTS: where u is at most the u at place ceil(share * n) of all n
 * pairs, ascending; equal values stay. The uncertainty of captions rises with their generality, so
 *   CERTAIN_TEXTS drops vague ones first.
 * - TOP: where it is among the best by score of those left by all other rules, floor(share * n +
 *   1/2) of them but at least one; n counts all pairs, equal scores go to the lower row. */
#define PNB_RULE_LIST(X)                                                                           \
    X(WITHIN, "within", "a sample outside the subset")                                             \
    X(NO_TEXT, "no_caption", "there is no caption")                                                \
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
        PNB_N_RULES /* how many there are */
} pnb_rule;

/* The key of the rule in results ("min_words"); "unknown" outside the list. */
const char *pnb_rule_name(pnb_rule rule);
/* What a dropped pair has, for people; "unknown" outside the list. */
const char *pnb_rule_sentence(pnb_rule rule);

/* ---- captions ---- */

/* X(name, text): scripts whose letters are counted, told by the Unicode blocks they stand in. A
 * letter of another script counts among all letters, so that min_script 0.5 of LATIN drops captions
 * that are mostly something else. Blocks are coarser than Unicode's Script property, and enough to
 * tell alphabets apart. KANA is hiragana and katakana; a Japanese caption has letters of HAN too.
 */
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

/* One of them. As words of an option (--script latin) they are read by the list's order. */
typedef enum pnb_script {
#define PNB_SCRIPT_ENUM(name, text) PNB_SCRIPT_##name,
    PNB_SCRIPT_LIST(PNB_SCRIPT_ENUM)
#undef PNB_SCRIPT_ENUM
        PNB_N_SCRIPTS /* how many there are */
} pnb_script;

/* A word is a run of letters, marks and digits; a Han or kana letter is a word of its own. A
 * character is a code point; white space at both ends does not count. */
typedef struct pnb_text_rules_opts {
    size_t min_words, max_words;  /* 0: no limit */
    size_t min_chars, max_chars;  /* 0: no limit */
    double min_ascii;             /* share of ASCII among characters that are not space; 0: off */
    double min_script;            /* share of `script` among letters; 0: off */
    pnb_script script;            /* that min_script speaks of */
    double max_repeated;          /* 1 - distinct words / words, in lower case; 1: off */
    bool needs_letter;            /* drops captions of numbers and signs only */
    const char *match, *no_match; /* POSIX extended expressions; NULL: off */
    bool ignore_case;             /* of the expressions; blocked words always do */
    const char *const *blocked;   /* words or phrases, compared word by word in lower case */
    size_t n_blocked;             /* any number of them */
} pnb_text_rules_opts;

pnb_text_rules_opts pnb_text_rules_opts_default(void); /* nothing is dropped */

/* Rules made ready; one thread at a time may use one. */
typedef struct pnb_text_rules pnb_text_rules;

/* Compiles expressions and takes blocked entries apart; nothing of opts is needed afterwards. Free
 * with pnb_text_rules_free; on failure *out is NULL.
 * Errors  ARG (limits upside down, a share outside 0..1, an expression that does not compile: its
 *         own message is quoted; a blocked entry without a word), FORMAT (a blocked entry that is
 *         not UTF-8), LIMIT (an expression of more than 20,000 places with its repetitions written
 *         out), UNSUPPORTED (an expression that refers back to a group), NOMEM */
pnb_status pnb_text_rules_create(pnb_text_rules **out, const pnb_text_rules_opts *opts,
                                 pnb_error *err);
void pnb_text_rules_free(pnb_text_rules *rules); /* NULL is fine */
/* True when no rule is set: nothing can fail, not even a missing caption, and captions need not be
 * read at all. */
bool pnb_text_rules_is_empty(const pnb_text_rules *rules);
/* Bits of the rules the caption fails, all of them; NULL fails NO_TEXT only, and nothing where
 * the rules are empty. Time does not grow with the number of blocked entries.
 * Errors  FORMAT (not UTF-8), LIMIT (a caption too long for an expression), NOMEM */
pnb_status pnb_text_rules_check(pnb_text_rules *rules, const char *text, uint32_t *failed,
                                pnb_error *err);

/* ---- pairs ---- */

/* What is known of each pair of a picture and a caption; borrowed during the call. */
typedef struct pnb_pair_figures {
    size_t n;                    /* 1 or more */
    const double *score;         /* [n] larger is nearer, as search.h gives it; needed */
    const double *p_match;       /* [n] or NULL: not known */
    const double *image_u;       /* [n] uncertainty of each pair's picture, or NULL */
    const double *text_u;        /* [n] of its caption, or NULL */
    const char *const *texts;    /* [n] or NULL; single ones may be NULL */
    const unsigned char *within; /* [n] 0: the pair lies outside a subset; NULL: there is none */
} pnb_pair_figures;

/* NaN means off. Shares are of all n pairs, in (0, 1]; the rules above say what each keeps. */
typedef struct pnb_pair_filter_opts {
    double min_score, min_p_match, max_image_u, max_text_u; /* limits */
    double certain_images, certain_texts;                   /* shares by uncertainty */
    double top;                                             /* share by score, taken last */
    pnb_text_rules_opts texts;
} pnb_pair_filter_opts;

/* Everything off. */
pnb_pair_filter_opts pnb_pair_filter_opts_default(void);
/* Whether no rule is set; one that is wrong counts as set. */
bool pnb_pair_filter_opts_is_off(const pnb_pair_filter_opts *o);

/* What the rules came to. A rule that drops much in n_failed and little in n_first is one that an
 * earlier rule makes needless. */
typedef struct pnb_pair_filter {
    size_t n, n_kept;               /* pairs, and those that fail no rule */
    uint32_t *failed;               /* [n] bits of the rules each pair fails; 0: kept */
    size_t n_failed[PNB_N_RULES];   /* pairs that fail it, whatever else they fail */
    size_t n_first[PNB_N_RULES];    /* pairs it dropped: no earlier rule did */
    double lowest_kept;             /* score; NaN when nothing is kept */
    double image_u_cut, text_u_cut; /* largest kept by limit or share; NaN: no such rule */
} pnb_pair_filter;

/* Tries all rules on all pairs. Nothing kept is not an error. `out` need not be initialised and is
 * all zero on failure; free it with pnb_pair_filter_reset.
 * Errors  ARG (no pairs, a share outside (0,1], a limit on figures that are NULL), NUMERIC (a
 * figure is not finite: names the pair), those of caption rules (which name the pair), NOMEM */
pnb_status pnb_pair_filter_apply(const pnb_pair_figures *pairs, const pnb_pair_filter_opts *opts,
                                 pnb_pair_filter *out, pnb_error *err);
void pnb_pair_filter_reset(pnb_pair_filter *f); /* frees, all zero; NULL is fine */

/* ---- subset files ---- */

/* 128 bits that name a sample, as DataComp's subset files hold them. */
typedef struct pnb_uid {
    uint64_t high, low; /* the first and the last 16 hexadecimal digits */
} pnb_uid;

/* From 32 hexadecimal digits or more, of which the further ones are dropped: a SHA-256 is cut.
 * False
 * (*out untouched): fewer digits, or a character that is none. */
bool pnb_uid_parse(pnb_uid *out, const char *hex);
/* Writes a subset file: .npy of dtype "u8,u8" and shape (n), ascending by high, then low, whole or
 * not at all. Sorts `uids` in place and writes each once.
 *   n_written  how many that were; may be NULL
 * Errors  ARG (n = 0), IO, NOT_FOUND (no such folder), NOMEM */
pnb_status pnb_uids_save(const char *path, pnb_uid *uids, size_t n, size_t *n_written,
                         pnb_error *err);
/* Reads one, in the order of the file; free with pnb_uids_free. On failure *out is NULL, *n 0.
 * Errors  FORMAT (no such array, or not as long as it says), NOT_FOUND, IO, NOMEM */
pnb_status pnb_uids_load(pnb_uid **out, size_t *n, const char *path, pnb_error *err);
/* The same of a file in memory.
 * Errors  FORMAT, NOMEM */
pnb_status pnb_uids_load_bytes(pnb_uid **out, size_t *n, const void *bytes, size_t n_bytes,
                               pnb_error *err);
void pnb_uids_free(pnb_uid *uids);           /* NULL is fine */
void pnb_uids_sort(pnb_uid *uids, size_t n); /* ascending, as files are */
/* Whether one is there, by bisection: `sorted` is ascending. So `within` of pnb_pair_figures is
 * made of a subset file. */
bool pnb_uids_contain(const pnb_uid *sorted, size_t n, pnb_uid uid);

/* ---- copied shards ---- */

/* How shards are written, and who is told. */
typedef struct pnb_copy_opts {
    size_t shard_size; /* samples of a shard, 1 or more. 10000 */
    pnb_watch watch;   /* steps are samples to keep; all zero */
    /* told of each sample that is left out, and why; NULL: they are only counted */
    void (*skipped)(void *user, const char *what, const char *why);
    void *skipped_user; /* given to skipped as it is */
} pnb_copy_opts;

pnb_copy_opts pnb_copy_opts_default(void); /* the values that stand beside the fields */

/* What was written. A sample that cannot be read is left out and does not fail the call. */
typedef struct pnb_copied {
    size_t n_samples, n_shards, n_skipped; /* skipped: a picture that could not be read */
} pnb_copied;

/* May shards be written there? Asks what pnb_dataset_copy will ask, before work is done in vain.
 * Errors  EXISTS (dir holds something, or is a file), those of reading a folder */
pnb_status pnb_dataset_copy_check(const char *dir, pnb_error *err);

/* Copies the samples i with keep[i] into new shards DIR/00000.tar ..., in order. What comes from
 * tar shards is copied member by member with its headers, byte for byte; pictures and captions of
 * folders and tables become members "000000000.jpg", "000000000.json" or ".txt". DIR/sizes.json
 * tells the number of samples of each shard. `dir` must not exist or be empty; it appears whole or
 * not at all. opts NULL: the defaults.
 *   keep  one byte for each sample of the data set
 * Errors  EXISTS (dir holds something), ARG (shard_size 0, nothing to keep, a synthetic data set),
 *         INTERRUPTED, IO (a source changed since it was opened, none of the samples can be read),
 *         NOMEM */
pnb_status pnb_dataset_copy(const pnb_dataset *ds, const unsigned char *keep, const char *dir,
                            const pnb_copy_opts *opts, pnb_copied *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
