/* Approximate search by FAISS over augmented vectors; candidates are scored by the measure. */
#ifndef PNB_INDEX_ANN_ANN_H
#define PNB_INDEX_ANN_ANN_H

#include "index/ann/faiss_bridge.h"
#include "index/index_kind.h"

typedef struct pnb__ann {
    const char *kind; /* "hnsw", "ivf" */
    pnb_gaussians gallery;
    pnb_search_opts opts;
    pnb__faiss *faiss;
    size_t width;    /* D + 1 */
    size_t effort;   /* pnb__faiss_query */
    double recall;   /* measured with it */
    size_t n_sample; /* queries of that */
} pnb__ann;

/* Candidates that are asked for k hits: what is lost to rounding in floats is among them. */
static inline size_t pnb__ann_candidates(size_t k)
{
    return k + k / 2 + 16;
}

/* The product of two rows that is fastest here; NULL: of any machine. */
pnb__faiss_dot_fn pnb__ann_dot(const pnb_ctx *ctx);
pnb_status pnb__ann_fail(const char *doing, const pnb__faiss_error *why, pnb_error *err);
/* Queries as vectors of the index: out (n, D + 1). */
void pnb__ann_queries(const pnb__ann *ann, const pnb_gaussians *queries, float *out);
/* Frees it with what it holds; NULL is fine. */
void pnb__ann_free(void *self);

/* ---- ann_tune.c ---- */

/* Finds the least effort with which opts.recall is reached on the last rows of the gallery, 1 or
 * more, which are not in the index yet.  Errors  those of an exact search, NOMEM */
pnb_status pnb__ann_tune(pnb__ann *ann, const pnb_ctx *ctx, size_t n_held, pnb_error *err);

/* ---- ann_file.c ---- */

pnb_status pnb__ann_save(const void *self, const pnb_ctx *ctx, pnb__out_file *f, pnb_error *err);
/* `ann` has kind, gallery, options and width.  Errors  FORMAT (damaged), ARG (of other rows or
 * another measure), NOT_FOUND, IO, NOMEM */
pnb_status pnb__ann_load(pnb__ann *ann, const pnb_ctx *ctx, const char *path, pnb_error *err);

extern const pnb__index_calls pnb__index_hnsw, pnb__index_ivf;

#endif
