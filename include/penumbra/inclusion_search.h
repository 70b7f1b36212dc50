/* Inclusion search: which items include a query, or lie inside it.
 *
 * H(1 in 2) is the inclusion hypothesis of prob.h, positive when 1 lies in 2. Items with H > 0 are
 * the members of a query, all others are never shown: unlike a top-k search the answer may be empty
 * or everything. H alone is no sign of relation: for a wider item it grows with the distance of the
 * means, so a very wide item includes everything. Each member therefore has its nearness beside it,
 * the csd similarity of the pair, and a lower limit on it can be set. A NULL ctx means one thread;
 * no result depends on their number. docs/numerics.md#inclusion-search
 *
 *     pnb_inclusion_search_opts opts = pnb_inclusion_search_opts_default();
 *     opts.min_nearness = 0.2;
 *     if (pnb_inclusion_search(ctx, &captions, &pictures, &opts, &hits, &err) == PNB_OK)
 *         ... hits.n_all[q] pictures include caption q, hits.index[q * hits.k] most clearly
 *     pnb_inclusion_hits_reset(&hits); */
#ifndef PENUMBRA_INCLUSION_SEARCH_H
#define PENUMBRA_INCLUSION_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text, sentence): the order of the members. Ties go to the lower index.
 *
 * - INCLUSION: what the query most surely lies in, or what most surely lies in it; the widest
 *   items win, related or not, unless min_nearness keeps them out.
 * - NEARNESS: what is most alike among all that pass the test. */
#define PNB_INCLUSION_ORDER_LIST(X)                                                                \
    X(INCLUSION, "inclusion", "by H, the clearest inclusion first")                                \
    X(NEARNESS, "nearness", "by the csd similarity, the nearest member first")

typedef enum pnb_inclusion_order {
#define PNB_INCLUSION_ORDER_ENUM(name, text, sentence) PNB_INCLUSION_BY_##name,
    PNB_INCLUSION_ORDER_LIST(PNB_INCLUSION_ORDER_ENUM)
#undef PNB_INCLUSION_ORDER_ENUM
        PNB_N_INCLUSION_ORDERS /* how many there are */
} pnb_inclusion_order;

/* "inclusion"; "unknown" outside the list. */
const char *pnb_inclusion_order_name(pnb_inclusion_order order);

/* A general caption includes many pictures: with captions as queries `inside` finds what a caption
 * covers, without it what says the same more generally. */
typedef struct pnb_inclusion_search_opts {
    bool inside;                   /* false: items that include the query; true: items inside it */
    bool published;                /* H as ProLIP's code has it; false: exact */
    pnb_inclusion_order order;     /* INCLUSION */
    double min_nearness;           /* members have at least this csd similarity; -INFINITY */
    size_t k;                      /* members that are listed, at most. 10 */
    pnb_measure_opts measure_opts; /* inclusion_eps of the published form; 0 */
    pnb_index_kind kind;           /* of index: EXACT */
} pnb_inclusion_search_opts;

/* The values that stand beside the fields, and false. */
pnb_inclusion_search_opts pnb_inclusion_search_opts_default(void);

/* The members of every query, best first; where a query has fewer than k, the rest of its row is
 * index -1, h and nearness -INFINITY. */
typedef struct pnb_inclusion_hits {
    size_t n_queries; /* rows that asked */
    size_t k;         /* entries of a row: as asked for, at most the rows of the gallery */
    int64_t *index;   /* [n_queries][k] row of the gallery */
    double *h;        /* [n_queries][k] H(query in item), or H(item in query) with `inside` */
    double *nearness; /* [n_queries][k] csd similarity of the pair: 1 - csd/2 */
    size_t *n_all;    /* [n_queries] all members, also those beyond k */
} pnb_inclusion_hits;

/* Frees the arrays, all zero afterwards; NULL is fine. */
void pnb_inclusion_hits_reset(pnb_inclusion_hits *members);

/* Looks at every pair once. The sign of H, the order and the values are those of the f64 scores of
 * single pairs. opts NULL: the defaults. `out` need not be initialised and is all zero on failure;
 * free it with pnb_inclusion_hits_reset.
 * Shape   queries (Q,D), gallery (N,D), both Gaussians
 * Memory  O(Q*k + threads*N)      Time  O(Q*N*D)
 * Errors  SHAPE (widths differ, an empty set), ARG (k = 0, a side without variances, an order that
 *         does not exist, min_nearness NaN), NUMERIC (H of a pair is no number: names it), NOMEM
 * Source  ProLIP section 3.3 (H) */
pnb_status pnb_inclusion_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                const pnb_gaussians *gallery, const pnb_inclusion_search_opts *opts,
                                pnb_inclusion_hits *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
