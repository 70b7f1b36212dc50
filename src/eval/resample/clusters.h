/* Units of resampling: rows that were sampled together are drawn together.
 *
 * Captions of one picture succeed and fail together, so a bootstrap that draws them one by one
 * takes a sample for larger than it is. A cluster is a set of rows; a resample draws as many
 * clusters as there are, with all their rows. */
#ifndef PNB_EVAL_RESAMPLE_CLUSTERS_H
#define PNB_EVAL_RESAMPLE_CLUSTERS_H

#include "base/base.h"

typedef struct pnb__clusters {
    size_t n, n_rows;
    size_t *offset; /* [n + 1] into row */
    size_t *row;    /* [n_rows] rows of each cluster, ascending */
} pnb__clusters;

/* Rows of equal label are one cluster, clusters in the order of their first rows. label NULL: every
 * row its own, so that cluster i is row i. The caller frees with pnb__clusters_reset in any case.
 * Errors  NOMEM */
pnb_status pnb__clusters_init(pnb__clusters *c, const int64_t *label, size_t n_rows,
                              pnb_error *err);
void pnb__clusters_reset(pnb__clusters *c);

/* How often each row stands in resample `r` of `seed`, into weight[n_rows]: n draws from stream r
 * of the counter generator. */
void pnb__clusters_draw(const pnb__clusters *c, uint64_t seed, size_t r, uint32_t *weight);

/* Leaving clusters out for the jackknife, in at most PNB__MAX_JACKKNIFE groups of about one size:
 * cluster k is in group k mod n_groups. */
enum { PNB__MAX_JACKKNIFE = 100 };
size_t pnb__clusters_groups(const pnb__clusters *c);
/* 1 for every row but those of group `group`. */
void pnb__clusters_leave_out(const pnb__clusters *c, size_t group, uint32_t *weight);

#endif
