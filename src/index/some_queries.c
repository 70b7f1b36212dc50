/* Queries are copied with all that their family has, so that a measure finds them as they were;
 * their samples are a function of their numbers, which change: no measure by samples is asked
 * again. */
#include "index/some_queries.h"

#include <string.h>

typedef struct some_queries {
    pnb_gaussians rows;
    size_t *of; /* [rows.n] their numbers among all */
    float *mean, *log_var, *kappa;
} some_queries;

static size_t count(const bool *wanted, size_t n)
{
    size_t n_wanted = 0;
    for (size_t q = 0; q < n; q++)
        n_wanted += wanted[q];
    return n_wanted;
}

static pnb_status take(some_queries *s, const pnb_gaussians *all, const bool *wanted,
                       pnb_error *err)
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

static void drop(some_queries *s)
{
    pnb__free(s->mean);
    pnb__free(s->log_var);
    pnb__free(s->kappa);
    pnb__free(s->of);
}

static void put(const some_queries *s, const pnb_hits *hits, const bool *still, pnb_hits *all,
                bool *unsure)
{
    size_t k = hits->k;
    for (size_t i = 0; i < s->rows.n; i++) {
        memcpy(all->index + s->of[i] * k, hits->index + i * k, k * sizeof *hits->index);
        memcpy(all->score + s->of[i] * k, hits->score + i * k, k * sizeof *hits->score);
        unsure[s->of[i]] = still[i];
    }
    all->n_unsure = hits->n_unsure; /* of the others nobody was */
}

pnb_status pnb__ask_unsure(const pnb__among *among, pnb__ask_fn ask, void *user, pnb_hits *hits,
                           bool *unsure, pnb_error *err)
{
    some_queries some = {0};
    pnb_hits found = {0};
    bool *still = NULL;
    pnb_status status;
    PNB_TRY(take(&some, among->queries, unsure, err));
    PNB_TRY(PNB_ALLOC_ZERO(still, some.rows.n, err));
    const pnb__among again = {&some.rows, among->k, among->only};
    PNB_TRY(ask(user, &again, &found, still, err));
    put(&some, &found, still, hits, unsure);
done:
    drop(&some);
    pnb_hits_reset(&found);
    pnb__free(still);
    return status;
}
