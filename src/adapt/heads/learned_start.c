/* Heads that begin as the frozen rows.
 *
 *   h_1 = max(0, (x, -x, W x + b)),  h_i = max(0, (h_i-1 of those units, W h_i-1 + b)),
 *   y = s (x_+ - x_-) = s x
 *
 * Two units of a coordinate hand it on through every layer; the rest are drawn as ever and begin
 * with weight 0 in the output, so that what they find is added to what the rows say. s is such that
 * the first concentration is that of pairs of this mean cosine: kappa(c) / mean length of rows. A
 * network that begins anywhere has to learn the identity from pairs before it is as good as the
 * frozen model, which a few thousand of them do not teach. */
#include <math.h>

#include "adapt/heads/learned.h"

enum { MAX_PAIRS = 4096 };

/* ---- how far rows of a pair are apart ---- */

static double cosine_of(const float *a, const float *b, size_t dim)
{
    double dot = 0, of_a = 0, of_b = 0;
    for (size_t d = 0; d < dim; d++) {
        dot += (double)a[d] * b[d];
        of_a += (double)a[d] * a[d];
        of_b += (double)b[d] * b[d];
    }
    return dot / sqrt(of_a * of_b);
}

/* Over pairs of the first epoch, in its order. */
static double mean_cosine(const pnb_adapter *a, pnb__learned_pairs *pairs)
{
    size_t n = PNB_MIN(pairs->n_order, (size_t)MAX_PAIRS), dim = pairs->set[0]->dim;
    double sum = 0;
    pnb__learned_pairs_shuffle(pairs, a->opts.seed, 0);
    for (size_t i = 0; i < n; i++) {
        size_t pair = pairs->order[i], image = pairs->row[PNB_ADAPTER_IMAGES][pair];
        size_t text = pairs->row[PNB_ADAPTER_TEXTS][pair];
        sum += cosine_of(pairs->set[PNB_ADAPTER_IMAGES]->mean + image * dim,
                         pairs->set[PNB_ADAPTER_TEXTS]->mean + text * dim, dim);
    }
    return sum / (double)n;
}

/* ---- weights ---- */

typedef struct writer {
    const pnb__learned *l;
    size_t dim;
    double *row; /* (the widest layer's inputs) */
} writer;

/* Row r of a layer: `x` at one place, `y` at another (SIZE_MAX: none), else 0; bias 0. */
static pnb_status write_row(const writer *w, const pnb__learned_head *h, size_t layer, size_t r,
                            const size_t at[2], const double x[2], pnb_error *err)
{
    size_t in = h->w[layer]->shape[1];
    const double zero = 0;
    for (size_t k = 0; k < in; k++)
        w->row[k] = 0;
    for (int i = 0; i < 2; i++)
        if (at[i] != SIZE_MAX)
            w->row[at[i]] = x[i];
    pnb_status status = pnb__param_write(h->w[layer], &w->l->kernels, r * in, in, w->row, err);
    return status == PNB_OK ? pnb__param_write(h->b[layer], &w->l->kernels, r, 1, &zero, err)
                            : status;
}

static pnb_status write_head(const writer *w, const pnb__learned_head *h, double scale,
                             pnb_error *err)
{
    size_t last = h->n_layers - 1, dim = w->dim;
    pnb_status status = PNB_OK;
    for (size_t layer = 0; layer < last; layer++)
        for (size_t r = 0; r < 2 * dim; r++) {
            const size_t at[2] = {layer == 0 ? r % dim : r, SIZE_MAX};
            const double x[2] = {layer == 0 && r >= dim ? -1 : 1, 0};
            PNB_TRY(write_row(w, h, layer, r, at, x, err));
        }
    for (size_t r = 0; r < dim; r++)
        PNB_TRY(write_row(w, h, last, r, (const size_t[]){r, dim + r},
                          (const double[]){scale, -scale}, err));
done:
    return status;
}

/* ---- the choice ---- */

static bool is_wide_enough(const pnb_adapter *a)
{
    const pnb__learned *l = a->self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        if (l->head[s][0].may_start_as_rows && (size_t)a->opts.hidden < 2 * a->part[s].dim)
            return false;
    return true;
}

static pnb_status choose(pnb_adapter *a, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    if (o->start == PNB_ADAPT_START_AUTO)
        o->start = o->recipe == PNB_ADAPT_RECIPE_SMALL && is_wide_enough(a)
                       ? PNB_ADAPT_START_ROWS
                       : PNB_ADAPT_START_RANDOM;
    if (o->start == PNB_ADAPT_START_ROWS && !is_wide_enough(a))
        return pnb__fail(err, PNB_ARG,
                         "%s: to start as the rows, hidden layers need twice their width of %zu; "
                         "they have %lld",
                         a->about->name, a->part[PNB_ADAPTER_TEXTS].dim, (long long)o->hidden);
    return PNB_OK;
}

static pnb_status start_side(pnb_adapter *a, int side, double cosine, pnb_error *err)
{
    const pnb__learned *l = a->self;
    const pnb__learned_head *h = &l->head[side][0];
    writer w = {.l = l, .dim = a->part[side].dim};
    double length = 1, kappa = 1;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(w.row, PNB_MAX(w.dim, (size_t)a->opts.hidden), err));
    if (l->length[side] != NULL)
        PNB_TRY(pnb__param_read(l->length[side], &l->kernels, 0, 1, &length, err));
    if (a->calls->learned->first_kappa != NULL && cosine > 0)
        kappa = a->calls->learned->first_kappa(a, w.dim, PNB_MIN(cosine, 0.99));
    status = write_head(&w, h, kappa / length, err);
done:
    pnb__free(w.row);
    return status;
}

pnb_status pnb__learned_start(pnb_adapter *a, pnb__learned_pairs *pairs, pnb_error *err)
{
    const pnb__learned *l = a->self;
    pnb_status status = PNB_OK;
    bool may = false;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        may = may || l->head[s][0].may_start_as_rows;
    if (!may)
        return PNB_OK;
    PNB_TRY(choose(a, err));
    if (a->opts.start != PNB_ADAPT_START_ROWS)
        return PNB_OK;
    double cosine = mean_cosine(a, pairs);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (l->head[s][0].may_start_as_rows)
            status = start_side(a, s, cosine, err);
done:
    return status;
}
