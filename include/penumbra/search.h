/* Exact search by a measure between two sets of Gaussians: top-k, and all pairs above a limit.
 *
 * Scores: larger is always nearer, whatever the measure (pnb_measure_score): mean is the cosine,
 * csd is 1 - csd/2, distances are negated. Ties go to the lower index. Results are those of the f64
 * scores of all pairs and do not depend on the number of threads. Candidates of mean, csd, w2, the
 * inclusion tests, likelihoods on the sphere and measures over samples are chosen in f32 with
 * bounds on its rounding and scored again in f64, so that nothing is missed:
 * docs/numerics.md#search. ctx may be NULL: one thread.
 *
 *     pnb_hits hits;
 *     if (pnb_search(ctx, &captions, &pictures, NULL, &hits, &err) == PNB_OK)
 *         ... hits.index[q * hits.k] is the picture nearest to caption q
 *     pnb_hits_reset(&hits); */
#ifndef PENUMBRA_SEARCH_H
#define PENUMBRA_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of index, X(NAME, name). EXACT looks at every row and misses nothing. The others find
 * candidates and score those in f64; they serve measures that are inner products: csd, mean,
 * and vmf of rows with concentrations.
 * - INT8, BF16: a scan over a copy of the rows in one or two bytes a number; hits->n_unsure says
 *   for how many queries a hit may have been missed.
 * - HNSW, IVF: a graph, or cells, of FAISS (UNSUPPORTED in a build without it); the recall that
 *   `recall` asks for is aimed at, and pnb_index_describe says what was measured. */
#define PNB_INDEX_LIST(X) X(EXACT, exact) X(INT8, int8) X(BF16, bf16) X(HNSW, hnsw) X(IVF, ivf)

typedef enum pnb_index_kind {
#define PNB_INDEX_ENUM(NAME, name) PNB_INDEX_##NAME,
    PNB_INDEX_LIST(PNB_INDEX_ENUM)
#undef PNB_INDEX_ENUM
        PNB_N_INDEX_KINDS /* how many there are */
} pnb_index_kind;

/* What "near" means and what looks for it; shared by everything that ranks. */
typedef struct pnb_search_opts {
    pnb_measure measure;           /* csd */
    pnb_measure_opts measure_opts; /* pnb_measure_opts_default() */
    bool reverse; /* asymmetric measures: false kl(query||item), H(query in item); true swapped */
    size_t k;     /* hits of a query, 1 or more. 10 */
    pnb_index_kind kind; /* EXACT */
    size_t shortlist; /* pnb_search: only so many items of a query, those whose means are nearest,
                       * are scored; as many as there are items, or 0: all, nothing is missed. 0 */
    double recall;    /* HNSW, IVF: share of the true hits to aim at, above 0 up to 1. 0.99 */
    pnb_watch watch;  /* HNSW, IVF: of pnb_index_create, steps are rows. Nobody */
} pnb_search_opts;

/* The values that stand beside the fields. */
pnb_search_opts pnb_search_opts_default(void);

/* The k best items of every query, best first. Where the gallery has fewer than k items the rest of
 * the row is index -1, score -inf. */
typedef struct pnb_hits {
    size_t n_queries, k; /* as asked for */
    int64_t *index;      /* [n_queries][k] row of the gallery */
    double *score;       /* [n_queries][k] exact f64 score of the pair */
    size_t n_unsure;     /* queries for which an exact search may find others; 0 where it is one */
} pnb_hits;

void pnb_hits_reset(pnb_hits *hits); /* frees the arrays, all zero afterwards; NULL is fine */

/* Searches all queries. `hits` need not be initialised; on failure it is all zero. opts NULL: the
 * defaults.
 * Shape   queries (Q,D), gallery (N,D)
 * Memory  O(Q*k + N + block): the gallery is read in place, never copied
 * Errors  SHAPE (width differs, empty set), ARG (k = 0, a shortlist shorter than k, a measure that
 *         does not fit the families: the text names others), NOMEM, NUMERIC (a score is not a
 * number: the text names query and item), UNSUPPORTED (a measure that the kind of index does not
 * serve; EXACT serves all) */
pnb_status pnb_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                      const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_hits *hits,
                      pnb_error *err);

/* A gallery prepared once for many searches: holds per-row terms (16 bytes a row), the rows stay
 * the caller's and must outlive it. opts->k is ignored here. */
typedef struct pnb_index pnb_index;
/* opts NULL: defaults. Free with pnb_index_free; on failure *out is NULL.
 * Errors  those of pnb_search that the gallery alone can cause; INTERRUPTED (opts->watch) */
pnb_status pnb_index_create(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                            const pnb_search_opts *opts, pnb_error *err);
void pnb_index_free(pnb_index *index); /* NULL is fine */

/* What an index says of itself; 0 for what its kind does not know. */
typedef struct pnb_index_about {
    const char *kind;
    double bytes;    /* of what it keeps beside the rows */
    double recall;   /* HNSW, IVF: at 10, measured on n_sample of its rows, held out. Effort
                      * grew until the lower end of its one-sided 95% interval was what was asked */
    size_t n_sample; /* queries from elsewhere may find less; 0: each row is looked at */
    size_t effort;   /* rows that a walk keeps, or cells that are looked into, for that */
} pnb_index_about;
void pnb_index_describe(const pnb_index *index, pnb_index_about *out);

/* Writes an index to a file, and opens one for the rows, measure and kind that it was made for.
 * Files are trusted: FAISS reads them. ctx may be NULL.
 * Errors  UNSUPPORTED (a kind that is made anew in no time: EXACT, INT8, BF16), ARG (the rows or
 *         the measure are others), FORMAT (damaged), NOT_FOUND, IO, NOMEM */
pnb_status pnb_index_save(const pnb_index *index, const pnb_ctx *ctx, const char *path,
                          pnb_error *err);
pnb_status pnb_index_open(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                          const pnb_search_opts *opts, const char *path, pnb_error *err);

/* "exact", "hnsw", ...; NULL for a number that is none. */
const char *pnb_index_kind_name(pnb_index_kind kind);
/* "1.7.3", of FAISS in this build; NULL: there is none. */
const char *pnb_index_faiss_version(void);
/* As pnb_search, with a prepared gallery. Safe from several threads at once, each with hits of its
 * own; ctx may differ from the one the index was made with.
 * Errors  those of pnb_search */
pnb_status pnb_index_search(const pnb_index *index, const pnb_ctx *ctx,
                            const pnb_gaussians *queries, size_t k, pnb_hits *hits, pnb_error *err);

/* ---- all pairs whose score reaches a limit ---- for duplicates, lists of matches, joins of sets:
 * where a number of hits is not known before. The answer is complete or an error, never cut. */
typedef struct pnb_range_opts {
    double min_score; /* 0. Pairs with a score of at least this */
    size_t max_pairs; /* 10,000,000. More are an error, so that memory is bounded */
} pnb_range_opts;

/* The values that stand beside the fields. */
pnb_range_opts pnb_range_opts_default(void);

/* In order of query, then best first; ties to the lower item. */
typedef struct pnb_pairs {
    size_t n;              /* pairs found */
    int64_t *query, *item; /* [n] rows of the two sets */
    double *score;         /* [n] exact f64 score of the pair */
} pnb_pairs;

void pnb_pairs_reset(pnb_pairs *pairs); /* frees the arrays, all zero afterwards; NULL is fine */

/* Every item that reaches the limit for every query. `out` need not be initialised; on failure it
 * is all zero. opts NULL: the defaults. Safe from several threads at once, as pnb_index_search.
 * Memory  O(pairs + N + block)
 * Errors  SHAPE, ARG (more pairs than allowed, min_score NaN), NOMEM, NUMERIC */
pnb_status pnb_index_range(const pnb_index *index, const pnb_ctx *ctx, const pnb_gaussians *queries,
                           const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err);

/* The gallery against itself: each pair once, query < item (near-duplicates).
 * Errors  as above, ARG (a measure that is not symmetric) */
pnb_status pnb_index_self_join(const pnb_index *index, const pnb_ctx *ctx,
                               const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err);

/* The score at which pnb_match_probability reaches `probability`: (logit(p) - b) / a.
 * Range  probability in [0, 1] (-inf, +inf at its ends), a > 0 */
double pnb_score_of_probability(double probability, double a, double b);

#ifdef __cplusplus
}
#endif
#endif
