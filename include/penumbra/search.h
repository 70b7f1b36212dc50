/* Exact top-k search by a measure between two sets of Gaussians.
 *
 * Scores: larger is always nearer, whatever the measure (pnb_measure_score): mean is the cosine,
 * csd is 1 - csd/2, distances are negated. Ties go to the lower index. Results do not depend on the
 * number of threads. Candidates of mean, csd and w2 are chosen by f32 products and scored again in
 * f64; what that can and cannot miss is in docs/numerics.md#search. ctx may be NULL: one thread. */
#ifndef PENUMBRA_SEARCH_H
#define PENUMBRA_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pnb_embeddings;

/* Views an embedding set (embeddings.h) as rows of Gaussians; point sets have log_var NULL.
 * Errors  UNSUPPORTED (a family that is neither point nor gaussian_diag) */
pnb_status pnb_gaussians_view(pnb_gaussians *out, const struct pnb_embeddings *set, pnb_error *err);

typedef struct pnb_search_opts {
    pnb_measure measure; /* csd */
    pnb_measure_opts measure_opts;
    bool reverse; /* asymmetric measures: false kl(query||item), H(query in item); true swapped */
    size_t k;     /* 10 */
} pnb_search_opts;

pnb_search_opts pnb_search_opts_default(void);

/* The k best items of every query, best first. Where the gallery has fewer than k items the rest of
 * the row is index -1, score -inf. */
typedef struct pnb_hits {
    size_t n_queries, k;
    int64_t *index; /* [n_queries][k] row of the gallery */
    double *score;  /* [n_queries][k] exact f64 score of the pair */
} pnb_hits;

void pnb_hits_reset(pnb_hits *hits); /* frees the arrays, all zero afterwards; NULL is fine */

/* Searches all queries. `hits` need not be initialised; on failure it is all zero.
 * Memory  O(Q*k + N + block): the gallery is read in place, never copied
 * Errors  SHAPE (width differs, empty set), ARG (k = 0, variances missing), NOMEM,
 *         NUMERIC (a score is not a number: the text names query and item) */
pnb_status pnb_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                      const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_hits *hits,
                      pnb_error *err);

/* A gallery prepared once for many searches: holds per-row terms (16 bytes a row), the rows stay
 * the caller's and must outlive it. opts->k is ignored here. */
typedef struct pnb_index pnb_index;
pnb_status pnb_index_create(pnb_index **out, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                            const pnb_search_opts *opts, pnb_error *err);
void pnb_index_free(pnb_index *index); /* NULL is fine */
/* As pnb_search, with a prepared gallery. Safe from several threads at once. */
pnb_status pnb_index_search(const pnb_index *index, const pnb_ctx *ctx,
                            const pnb_gaussians *queries, size_t k, pnb_hits *hits, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
