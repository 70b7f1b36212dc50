/* Hierarchies among embeddings: which rows include which, the way from a picture to the root of all
 * captions, uncertainty by length, and the set algebra of erased and mixed pictures.
 *
 * H(1 in 2) is the inclusion hypothesis of prob.h: positive when 1 lies in 2. Shares are fractions
 * in [0,1]. Definitions and what the released code does otherwise: docs/numerics.md#traversal and
 * docs/numerics.md#set-algebra. A NULL ctx means one thread; no result depends on their number. */
#ifndef PENUMBRA_HIERARCHY_H
#define PENUMBRA_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inclusion search ---- */
/* X(name, text, sentence) */
#define PNB_INCLUSION_ORDER_LIST(X)                                                                \
    X(INCLUSION, "inclusion", "by H, the clearest inclusion first")                                \
    X(NEARNESS, "nearness", "by the csd similarity, the nearest member first")

typedef enum pnb_inclusion_order {
#define PNB_INCLUSION_ORDER_ENUM(name, text, sentence) PNB_INCLUSION_BY_##name,
    PNB_INCLUSION_ORDER_LIST(PNB_INCLUSION_ORDER_ENUM)
#undef PNB_INCLUSION_ORDER_ENUM
        PNB_N_INCLUSION_ORDERS
} pnb_inclusion_order;

const char *pnb_inclusion_order_name(pnb_inclusion_order order);
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_inclusion_order_parse(pnb_inclusion_order *out, const char *name, pnb_error *err);

typedef struct pnb_inclusion_search_opts {
    bool inside;    /* false: items that include the query; true: items inside the query */
    bool published; /* H as ProLIP's code has it; false: exact */
    pnb_inclusion_order order; /* INCLUSION */
    double min_nearness; /* items with a smaller csd similarity are no candidates; -INFINITY */
    size_t k;            /* 10 */
    pnb_measure_opts measure_opts;
} pnb_inclusion_search_opts;

pnb_inclusion_search_opts pnb_inclusion_search_opts_default(void);

/* The members of every query, best first. Only items with H > 0 are members; where a query has
 * fewer than k the rest of its row is index -1, h and nearness -INFINITY. */
typedef struct pnb_inclusion_hits {
    size_t n_queries, k;
    int64_t *index;   /* [n_queries][k] row of the gallery */
    double *h;        /* [n_queries][k] H(query in item), or H(item in query) with `inside` */
    double *nearness; /* [n_queries][k] csd similarity of the pair */
    size_t *n_all;    /* [n_queries] all members, also those beyond k */
} pnb_inclusion_hits;

void pnb_inclusion_hits_reset(pnb_inclusion_hits *members); /* frees the arrays; NULL is fine */

/* Looks at every pair once. A wide item that lies far away includes too: H grows with the distance
 * of the means when the variances differ, so `nearness` and min_nearness say what is also related.
 * Ties: lower index first.  Memory  O(Q*k + threads*N)
 * Errors  SHAPE (widths differ, an empty set), ARG (k = 0, a side is points), NUMERIC, NOMEM */
pnb_status pnb_inclusion_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                const pnb_gaussians *gallery, const pnb_inclusion_search_opts *opts,
                                pnb_inclusion_hits *out, pnb_error *err);

/* ---- traversal ---- */
/* X(name, text, sentence) */
#define PNB_ROOT_LIST(X)                                                                           \
    X(AVERAGE, "average", "mean of the null text and the caption that includes the picture most")  \
    X(NULL_TEXT, "null", "the embedding of the empty text, for every picture the same")            \
    X(INCLUDING, "including", "the caption that includes the picture most")

typedef enum pnb_root {
#define PNB_ROOT_ENUM(name, text, sentence) PNB_ROOT_##name,
    PNB_ROOT_LIST(PNB_ROOT_ENUM)
#undef PNB_ROOT_ENUM
        PNB_N_ROOTS
} pnb_root;

const char *pnb_root_name(pnb_root root);
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_root_parse(pnb_root *out, const char *name, pnb_error *err);

/* How captions are ranked for "includes the picture most"; 1 is the picture, 2 the caption.
 * X(name, text, sentence) */
#define PNB_INCLUDING_LIST(X)                                                                      \
    X(INTEGRAL, "integral", "by log int p1^2 p2: wide enough, and near")                           \
    X(PUBLISHED, "published", "by the same as ProLIP's released evaluation computes it")           \
    X(H, "h", "by the test H(1 in 2), which prefers the widest caption whatever the picture is")

typedef enum pnb_including {
#define PNB_INCLUDING_ENUM(name, text, sentence) PNB_INCLUDING_BY_##name,
    PNB_INCLUDING_LIST(PNB_INCLUDING_ENUM)
#undef PNB_INCLUDING_ENUM
        PNB_N_INCLUDINGS
} pnb_including;

const char *pnb_including_name(pnb_including by);
/* Errors  NOT_FOUND: the text lists the known names */
pnb_status pnb_including_parse(pnb_including *out, const char *name, pnb_error *err);

typedef struct pnb_traverse_opts {
    pnb_root root;           /* AVERAGE */
    size_t n_steps;          /* 50 */
    pnb_measure measure;     /* MEAN: nearest caption of a point; CSD also weighs its variance */
    double including_weight; /* 1: weight of the including caption against 1 for the null text */
    pnb_including including; /* INTEGRAL */
    bool from_picture;       /* start at the picture itself instead of at its nearest caption */
    bool stop_before_root;   /* the last point is one step short of the root, as in ProLIP's code;
                              * false: the last point is the root */
} pnb_traverse_opts;

pnb_traverse_opts pnb_traverse_opts_default(void);
/* What ProLIP's released evaluation does: stop_before_root, including PUBLISHED. */
pnb_traverse_opts pnb_traverse_opts_released(void);

typedef struct pnb_traversal {
    size_t n, n_steps;
    int64_t *step;      /* [n][n_steps] caption nearest to each point, from the picture on */
    int64_t *start;     /* [n] caption nearest to the picture */
    int64_t *root;      /* [n] caption nearest to the root */
    int64_t *including; /* [n] caption that includes the picture most; -1: root is NULL_TEXT */
    double *score;      /* [n] of that caption by opts->including; NaN where including is -1 */
} pnb_traversal;

void pnb_traversal_reset(pnb_traversal *t); /* frees the arrays; NULL is fine */

/* From every picture to the root: point i is start + f_i (root - start) brought to unit length,
 * f_i = i/(n_steps-1), or i/n_steps with stop_before_root; each point finds its nearest caption.
 *   null_text  one row, the embedding of ""; may be NULL when opts->root is INCLUDING
 * Errors  SHAPE (widths differ, an empty set, null_text of several rows), ARG (fewer than 2 steps,
 * a measure other than mean, csd and w2, a weight that is not positive, null_text missing,
 *         variances missing where inclusion decides), NUMERIC, NOMEM
 * Source  Chun et al. 2025 section 4.4; Desai et al. 2023 */
pnb_status pnb_traverse(const pnb_ctx *ctx, const pnb_gaussians *pictures,
                        const pnb_gaussians *captions, const pnb_gaussians *null_text,
                        const pnb_traverse_opts *opts, pnb_traversal *out, pnb_error *err);

/* Which captions are true of each picture. Captions with equal labels are the same text. */
typedef struct pnb_traversal_truth {
    size_t n_captions, n_pictures, n_levels;
    const int64_t *label; /* [n_captions] */
    const int64_t *truth; /* [n_pictures][n_levels] label, level 0 the most general */
} pnb_traversal_truth;

/* Of one picture: P = distinct labels along its path, G = its true labels. */
typedef struct pnb_traversal_row {
    size_t n_distinct; /* |P| */
    double precision;  /* |P and G| / |P| */
    double recall;     /* share of the levels whose label is in P */
    bool any;          /* P and G share a label */
    bool start_true;   /* the nearest caption of the picture is in G */
    bool root_true;    /* the nearest caption of the root is in G */
    bool root_top;     /* ... and is the caption of level 0 */
} pnb_traversal_row;

/* Means over the pictures. */
typedef struct pnb_traversal_figures {
    size_t n;
    double precision, recall, any_recall;
    double recall_at_1;      /* of start_true: R@1 */
    double root_recall_at_1; /* of root_true: R@1[ROOT] */
    double root_is_level_0;  /* of root_top */
    double n_distinct;
} pnb_traversal_figures;

/* rows (n_pictures entries, the caller's) may be NULL.
 * Errors  SHAPE (truth and traversal differ in size), ARG (no picture, no level) */
pnb_status pnb_traversal_score(const pnb_traversal *t, const pnb_traversal_truth *truth,
                               pnb_traversal_row *rows, pnb_traversal_figures *out, pnb_error *err);

/* ---- uncertainty by length ---- */
typedef struct pnb_length_bin {
    size_t low, high; /* lengths, both inclusive */
    size_t n;
    double mean; /* of the values */
} pnb_length_bin;

/* Groups values by length: neighbouring lengths are joined until a bin holds about n/n_bins values;
 * one length is never split. Returns the bins in ascending order.
 *   bins  n_bins entries; *n_out of them are filled       spearman  of length and value, NaN when
 *   all lengths or all values are equal; may be NULL
 * Errors  ARG (n or n_bins 0), NUMERIC (a value is not finite), NOMEM */
pnb_status pnb_length_bins(const double *values, const size_t *length, size_t n,
                           pnb_length_bin *bins, size_t n_bins, size_t *n_out, double *spearman,
                           pnb_error *err);

/* ---- set algebra ---- */
/* Shares of rows with H > 0. A mixed picture lies in the intersection of its sources when it is
 * included in both; an erased one includes its original. */
typedef struct pnb_mixed_share {
    double in_first, in_second, in_both; /* mixed in a, in b, in both */
    double holds_both;                   /* a and b in mixed: the union's direction */
} pnb_mixed_share;

/* Row i of `mixed` was made of row i of a and of b.
 * Errors  SHAPE (different sizes, no rows), ARG (points), NUMERIC, NOMEM
 * Source  PCME section 5.3 (Figure 8), with ProLIP's inclusion test */
pnb_status pnb_mixed_included(const pnb_gaussians *mixed, const pnb_gaussians *a,
                              const pnb_gaussians *b, bool published, pnb_mixed_share *out,
                              pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
