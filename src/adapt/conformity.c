/* Conformity: how usual an embedding is among those of its side (Levi and Gilboa, ICML 2025).
 *
 *   m = (1/N) sum_i x_i/|x_i|,   c(x) = x.m / (|x| |m|)
 *   (1/N) sum_i cos(x, x_i) = |m| c(x)
 *
 * so the cosine to the mean is, up to one factor, the mean cosine to all rows that were learned
 * from, and nothing has to be compared with them. Rows enter the mean with unit length: only then
 * is the second line exact. Uncertainty of a row: 1 - c ("rare"), or 1 + c ("common"): the paper
 * has common themes be the uncertain ones, as false negatives pull them to the middle. */
#include <math.h>
#include <string.h>

#include "adapt/adapter.h"

typedef struct conformity {
    double *mean[PNB_N_ADAPTER_SIDES];  /* (dim) m */
    double length[PNB_N_ADAPTER_SIDES]; /* |m| */
} conformity;

static const char *const mean_names[] = {"image.mean", "text.mean"};

/* A mean of unit rows that is shorter says nothing but rounding. */
static const double least_length = 1e-9;

static pnb_status measure_length(conformity *c, const pnb_adapter *a, int side, const char *where,
                                 pnb_error *err)
{
    double square = 0.0;
    for (size_t d = 0; d < a->part[side].dim; d++)
        square += c->mean[side][d] * c->mean[side][d];
    c->length[side] = sqrt(square);
    if (c->length[side] >= least_length && isfinite(c->length[side]))
        return PNB_OK;
    return pnb__fail(err, PNB_NUMERIC,
                     "%sthe %s embeddings cancel out: their mean has length %g, no row has an "
                     "angle to it",
                     where, pnb__adapter_side_word((pnb_adapter_side)side), c->length[side]);
}

static pnb_status make_room(conformity *c, const pnb_adapter *a, int side, pnb_error *err)
{
    c->mean[side] = pnb__alloc_array(a->part[side].dim, sizeof *c->mean[side]);
    return c->mean[side] != NULL ? PNB_OK
                                 : pnb__fail_nomem(err, a->part[side].dim * sizeof(double));
}

static pnb_status fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    conformity *c = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        if (!a->part[s].is_adapted)
            continue;
        PNB_TRY(make_room(c, a, s, err));
        PNB_TRY(pnb__adapter_mean(&job->side[s], true, c->mean[s], err));
        PNB_TRY(measure_length(c, a, s, "", err));
        pnb__adapter_tell(a, (pnb_adapter_side)s, "mean_length", c->length[s]);
    }
done:
    return status;
}

static pnb_status open_file(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                            pnb_error *err)
{
    conformity *c = a->self;
    char prefix[300];
    pnb_status status = pnb__adapter_check_kept(a, where, err);
    if (status != PNB_OK)
        return status;
    snprintf(prefix, sizeof prefix, "%.290s: ", where);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        if (!a->part[s].is_adapted)
            continue;
        PNB_TRY(make_room(c, a, s, err));
        PNB_TRY(pnb__adapter_get(file, mean_names[s], c->mean[s], a->part[s].dim, 0, where, err));
        PNB_TRY(measure_length(c, a, s, prefix, err));
    }
done:
    return status;
}

static pnb_status arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err)
{
    const conformity *c = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (a->part[s].is_adapted)
            status = pnb__adapter_put(to, mean_names[s], c->mean[s], a->part[s].dim, 0, err);
    return status;
}

static pnb_status apply(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err)
{
    const conformity *c = a->self;
    const double *mean = c->mean[block->side];
    for (size_t i = 0; i < block->n; i++) {
        const float *x = block->x + i * block->dim;
        double square = 0.0, product = 0.0;
        pnb_status status =
            pnb__adapter_square(x, block->dim, block->first + i, block->what, &square, err);
        if (status != PNB_OK)
            return status;
        if (square == 0.0)
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu of the %s embeddings has length 0: it has no angle to the "
                             "mean",
                             block->first + i, block->what);
        for (size_t d = 0; d < block->dim; d++)
            product += (double)x[d] * mean[d];
        double cosine = fmin(fmax(product / (sqrt(square) * c->length[block->side]), -1.0), 1.0);
        pnb__adapter_spread(block, i,
                            a->opts.uncertain == PNB_ADAPT_COMMON ? 1.0 + cosine : 1.0 - cosine);
    }
    return PNB_OK;
}

static void reset(void *self)
{
    conformity *c = self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__free(c->mean[s]);
}

static const pnb__field fields[] = {
    {"uncertain", offsetof(pnb_adapter_opts, uncertain), pnb__adapt_uncertain_word, PNB__FIELD_ENUM,
     true, PNB__ALSO_NONE},
};

const pnb__adapter_calls pnb__adapter_conformity = {.self_bytes = sizeof(conformity),
                                                    .fields = fields,
                                                    .n_fields = PNB_COUNT(fields),
                                                    .fit = fit,
                                                    .open = open_file,
                                                    .arrays = arrays,
                                                    .apply = apply,
                                                    .reset = reset};
