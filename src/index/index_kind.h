/* What a kind of index is: the calls behind pnb_index. exact/ is one, compressed/ and ann/ have two
 * each; another is a folder beside them, a table of these calls and its row in PNB_INDEX_LIST
 * (penumbra/search.h).
 *
 * An index is made of a set's rows (a view) for one measure and one direction, and answers any
 * number of times, from several threads at once, each with a context of its own. Arguments come
 * checked as far as they are the same for every kind (index.c); results come zeroed, and are reset
 * by the caller when a call fails. */
#ifndef PNB_INDEX_INDEX_KIND_H
#define PNB_INDEX_INDEX_KIND_H

#include "base/base.h"
#include "penumbra/search.h"

/* score[N] of one query, by the measure's f64 loops; `thread` is below the context's threads, and
 * no two calls that run at once share it. */
typedef void (*pnb__visit_fn)(void *user, int thread, size_t query, const double *score);

/* Queries and what is wanted of them. */
typedef struct pnb__among {
    const pnb_gaussians *queries;
    size_t k;                  /* 1 or more */
    const unsigned char *only; /* [row of the gallery] 0: never a hit; NULL: all may be */
} pnb__among;

/* A file of an index, and what it has to be for. */
typedef struct pnb__index_file {
    const char *path;
    const pnb_search_opts *opts;
} pnb__index_file;

/* `self` is the index's own struct. */
typedef struct pnb__index_calls {
    const char *name;
    /* Is there an answer for these rows, this measure, this direction?  Errors  SHAPE (no rows),
     * ARG (a measure that does not fit them), UNSUPPORTED: the text says which there are */
    pnb_status (*check)(const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_error *err);
    /* The rows stay the caller's. */
    pnb_status (*create)(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                         const pnb_search_opts *opts, pnb_error *err);
    void (*free)(void *self);
    /* The k best rows of every query, of those that may be hits. */
    pnb_status (*nearest)(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err);
    /* All pairs of at least min_score, or those of the gallery with itself, query < item. NULL:
     * this kind cannot promise to find all of them. */
    pnb_status (*range)(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                        const pnb_range_opts *opts, pnb_pairs *out, pnb_error *err);
    pnb_status (*self_join)(const void *self, const pnb_ctx *ctx, const pnb_range_opts *opts,
                            pnb_pairs *out, pnb_error *err);
    /* Every query's scores of all rows: what inclusion and evaluation need. NULL: likewise. */
    pnb_status (*rows)(const void *self, const pnb_ctx *ctx, const pnb_gaussians *queries,
                       pnb__visit_fn visit, void *user, pnb_error *err);
    /* Adds to a zeroed *out that has the name; NULL: nothing to say. */
    void (*describe)(const void *self, pnb_index_about *out);
    /* To an open output that is committed when all went well, and back; NULL: not worth a file. */
    pnb_status (*save)(const void *self, const pnb_ctx *ctx, pnb__out_file *f, pnb_error *err);
    pnb_status (*open)(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                       const pnb__index_file *file, pnb_error *err);
} pnb__index_calls;

/* What loops of one thread take: the caller's context, or, for NULL, a plain one. */
static inline pnb_ctx pnb__index_context(const pnb_ctx *ctx)
{
    pnb_ctx inner = ctx != NULL ? *ctx : (pnb_ctx){.isa = PNB_ISA_GENERIC};
    inner.n_threads = 1;
    return inner;
}

#endif
