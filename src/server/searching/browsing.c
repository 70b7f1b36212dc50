/* Most and least certain rows, rows that stand alone, rows that are nearly the same.
 *
 * The last two compare every pair, so of a large gallery only the newest rows are looked at, and
 * whoever asks is told how many. */
#include "server/searching/browsing.h"

#include <math.h>

#include "penumbra/duplicates.h"
#include "penumbra/outliers.h"
#include "penumbra/view.h"

void pnb__browsed_reset(pnb__browsed *b)
{
    pnb__free(b->rows);
    pnb__free(b->group);
    *b = (pnb__browsed){0};
}

pnb_status pnb__browse_order(const pnb__gallery *g, pnb_store_order order, size_t k,
                             pnb__browsed *out, pnb_error *err)
{
    pnb_status status = PNB_ALLOC(out->rows, k, err);
    if (status == PNB_OK)
        status = g->calls->pick(g->self, order, k, out->rows, &out->n, err);
    return status == PNB_OK ? g->calls->count(g->self, &out->n_looked, err) : status;
}

/* ---- rows against each other ---- */

/* The newest rows with their embeddings. */
typedef struct newest {
    pnb__found *rows;
    size_t n;
    pnb_embeddings *set;
    pnb_view view;
} newest;

static void reset_newest(newest *w)
{
    pnb_view_reset(&w->view);
    pnb_embeddings_free(w->set);
    pnb__free(w->rows);
}

/* Fewer than three are not looked at: nothing is said of them. */
static pnb_status take_newest(const pnb__gallery *g, newest *w, pnb_error *err)
{
    size_t *numbers = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(w->rows, PNB__MAX_LOOKED, err));
    PNB_TRY(g->calls->pick(g->self, PNB_STORE_NEWEST, PNB__MAX_LOOKED, w->rows, &w->n, err));
    PNB_TRY(PNB_ALLOC(numbers, w->n + 1, err));
    for (size_t i = 0; i < w->n; i++)
        numbers[i] = w->rows[i].row;
    if (w->n >= 3) {
        PNB_TRY(g->calls->take(g->self, numbers, w->n, &w->set, err));
        status = pnb_view_init(&w->view, w->set, err);
    }
done:
    pnb__free(numbers);
    return status;
}

pnb_status pnb__browse_outliers(const pnb_ctx *ctx, const pnb__gallery *g, size_t k,
                                pnb__browsed *out, pnb_error *err)
{
    pnb_outliers_opts opts = pnb_outliers_opts_default();
    pnb_outliers far = {0};
    newest w = {0};
    pnb_status status;
    PNB_TRY(take_newest(g, &w, err));
    out->n_looked = w.n;
    if (w.set == NULL)
        goto done;
    opts.k = PNB_MIN(opts.k, w.n - 1);
    PNB_TRY(pnb_outliers_rank(ctx, &w.view.rows, NULL, &opts, &far, err));
    PNB_TRY(PNB_ALLOC(out->rows, k, err));
    for (out->n = 0; out->n < PNB_MIN(k, far.n); out->n++) {
        size_t at = far.order[out->n];
        out->rows[out->n] = w.rows[at];
        out->rows[out->n].score = far.value[at];
    }
done:
    pnb_outliers_reset(&far);
    reset_newest(&w);
    return status;
}

static void take_groups(const pnb_duplicates *d, const newest *w, size_t k, pnb__browsed *out)
{
    for (size_t i = 0; i < d->n_groups; i++) {
        size_t n = d->offset[i + 1] - d->offset[i];
        for (size_t at = d->offset[i]; out->n + n <= k && at < d->offset[i + 1]; at++, n--) {
            out->group[out->n] = i;
            out->rows[out->n++] = w->rows[d->row[at]];
        }
    }
}

pnb_status pnb__browse_duplicates(const pnb_ctx *ctx, const pnb__gallery *g, double min_score,
                                  size_t k, pnb__browsed *out, pnb_error *err)
{
    pnb_duplicates_opts opts = pnb_duplicates_opts_default();
    pnb_duplicates same = {0};
    newest w = {0};
    pnb_status status;
    PNB_TRY(take_newest(g, &w, err));
    out->n_looked = w.n;
    if (w.set == NULL)
        goto done;
    opts.min_score = min_score;
    PNB_TRY(pnb_duplicates_find(ctx, &w.view.rows, NULL, &opts, &same, err));
    PNB_TRY(PNB_ALLOC(out->rows, k, err));
    PNB_TRY(PNB_ALLOC(out->group, k, err));
    take_groups(&same, &w, k, out);
done:
    pnb_duplicates_reset(&same);
    reset_newest(&w);
    return status;
}
