/* Queries are copied with all that their family has, so that a measure finds them as they were;
 * their samples are a function of their numbers, which change: no measure by samples is asked
 * again. */
#include "index/some_queries.h"

#include <string.h>

static size_t count(const bool *wanted, size_t n)
{
    size_t n_wanted = 0;
    for (size_t q = 0; q < n; q++)
        n_wanted += wanted[q];
    return n_wanted;
}

pnb_status pnb__some_queries_init(pnb__some_queries *s, const pnb_gaussians *all,
                                  const bool *wanted, pnb_error *err)
{
    size_t dim = all->dim, at = 0, n = count(wanted, all->n);
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(s->mean, n, dim, err));
    PNB_TRY(PNB_ALLOC(s->of, n, err));
    if (all->log_var != NULL)
        PNB_TRY(PNB_ALLOC_ROWS(s->log_var, n, dim, err));
    if (all->kappa != NULL)
        PNB_TRY(PNB_ALLOC(s->kappa, n, err));
    for (size_t q = 0; q < all->n; q++) {
        if (!wanted[q])
            continue;
        memcpy(s->mean + at * dim, all->mean + q * dim, dim * sizeof(float));
        if (s->log_var != NULL)
            memcpy(s->log_var + at * dim, all->log_var + q * dim, dim * sizeof(float));
        if (s->kappa != NULL)
            s->kappa[at] = all->kappa[q];
        s->of[at++] = q;
    }
    s->rows = *all;
    s->rows.n = n;
    s->rows.mean = s->mean;
    s->rows.log_var = s->log_var;
    s->rows.kappa = s->kappa;
done:
    return status;
}

void pnb__some_queries_put(const pnb__some_queries *s, const pnb_hits *hits, pnb_hits *all)
{
    size_t k = hits->k;
    for (size_t i = 0; i < s->rows.n; i++) {
        memcpy(all->index + s->of[i] * k, hits->index + i * k, k * sizeof *hits->index);
        memcpy(all->score + s->of[i] * k, hits->score + i * k, k * sizeof *hits->score);
    }
}

void pnb__some_queries_reset(pnb__some_queries *s)
{
    pnb__free(s->mean);
    pnb__free(s->log_var);
    pnb__free(s->kappa);
    pnb__free(s->of);
    *s = (pnb__some_queries){0};
}
