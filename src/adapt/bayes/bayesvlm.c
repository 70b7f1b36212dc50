/* BayesVLM (Baumann et al., Post-hoc Probabilistic Vision-Language Models): the weights of the last
 * projection of either side get a Gaussian, by a Laplace approximation of the contrastive loss.
 *
 *   g = W phi + h,   g ~ N(W phi + h, (phi^T A'^-1 phi) diag(B'^-1))
 *
 * h is what SigLIP's head adds to its last product, else 0. kronecker.h has the factors; here rows
 * are read, factors summed over a calibration set, the prior precision chosen and sets made. Where
 * rows are embeddings and not activations, what stands before the last projection is not to be had:
 * phi is the embedding itself and W the identity, and the figure `projection` of the adapter is 0.
 * A row's uncertainty says then how far it lies from the calibration rows in the model's own space,
 * weighted as the loss bends there. */
#include <math.h>
#include <string.h>

#include "adapt/bayes/kronecker.h"

enum { BATCH = 4096 }; /* rows of the larger side in one contrast, unless --batch-size says */

typedef struct side_state {
    pnb__kronecker k;
    pnb__last_layer w;
    pnb__posterior posterior;
} side_state;

typedef struct bayesvlm {
    side_state side[PNB_N_ADAPTER_SIDES];
} bayesvlm;

static const char *const a_names[] = {"image.a", "text.a"};
static const char *const b_names[] = {"image.b", "text.b"};
static const char *const prior_names[] = {"image.prior", "text.prior"}; /* n, lambda */
static const char *const w_names[] = {"image.projection", "text.projection"};

/* ---- a block of rows as the posterior reads them ---- */

typedef struct block {
    size_t n;
    double *phi;    /* (n,p) */
    double *rest;   /* (n,q) h, where there is one */
    double *unit;   /* (n,q) g/|g| */
    double *length; /* (n) |g| */
} block;

static pnb_status make_block(block *b, size_t n, const pnb__last_layer *w, pnb_error *err)
{
    b->n = n;
    b->phi = pnb__alloc_array(n, w->p * sizeof(double));
    b->rest = pnb__alloc_array(n, (w->has_rest ? w->q : 1) * sizeof(double));
    b->unit = pnb__alloc_array(n, w->q * sizeof(double));
    b->length = pnb__alloc_array(n, sizeof(double));
    return b->phi != NULL && b->rest != NULL && b->unit != NULL && b->length != NULL
               ? PNB_OK
               : pnb__fail_nomem(err, n * (w->p + 2 * w->q + 1) * sizeof(double));
}

static void reset_block(block *b)
{
    pnb__free(b->phi);
    pnb__free(b->rest);
    pnb__free(b->unit);
    pnb__free(b->length);
    *b = (block){0};
}

static pnb_status copy_row(block *b, size_t i, const float *x, const pnb__last_layer *w, size_t row,
                           const char *what, pnb_error *err)
{
    double square = 0.0;
    pnb_status status = pnb__adapter_square(x, pnb__last_layer_width(w), row, what, &square, err);
    for (size_t d = 0; d < w->p && status == PNB_OK; d++)
        b->phi[i * w->p + d] = d < w->n_read ? (double)x[d] : 1.0;
    for (size_t d = 0; w->has_rest && d < w->q && status == PNB_OK; d++)
        b->rest[i * w->q + d] = (double)x[w->n_read + d];
    return status;
}

/* unit and length of row i from its g, which stands in unit. */
static pnb_status normalise(block *b, size_t i, size_t q, size_t row, const char *what,
                            pnb_error *err)
{
    double square = 0.0, *g = b->unit + i * q;
    for (size_t d = 0; d < q; d++)
        square += g[d] * g[d];
    if (!(square > 0.0) || !isfinite(square))
        return pnb__fail(err, PNB_NUMERIC,
                         "row %zu of the %s embeddings has length %g: it has no direction", row,
                         what, sqrt(square));
    b->length[i] = sqrt(square);
    for (size_t d = 0; d < q; d++)
        g[d] /= b->length[i];
    return PNB_OK;
}

static void project(const pnb_ctx *ctx, const pnb__last_layer *w, block *b)
{
    if (w->w == NULL)
        memcpy(b->unit, b->phi, b->n * w->q * sizeof(double));
    else
        pnb__product_of_rows(ctx, b->phi, w->w, b->n, w->q, w->p, b->unit);
    for (size_t i = 0; w->has_rest && i < b->n * w->q; i++)
        b->unit[i] += b->rest[i];
}

/* Rows begin.. of those that are learned from. */
static pnb_status read_block(block *b, const pnb_ctx *ctx, const pnb__last_layer *w,
                             const pnb__adapter_rows *rows, size_t begin, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < b->n && status == PNB_OK; i++)
        status = copy_row(b, i, pnb__adapter_row(rows, begin + i), w,
                          rows->row != NULL ? rows->row[begin + i] : begin + i, rows->what, err);
    if (status != PNB_OK)
        return status;
    project(ctx, w, b);
    for (size_t i = 0; i < b->n && status == PNB_OK; i++)
        status = normalise(b, i, w->q, rows->row != NULL ? rows->row[begin + i] : begin + i,
                           rows->what, err);
    pnb__adapter_rows_done(rows, begin, begin + b->n);
    return status;
}

/* ---- options ---- */

static double chosen(double given, double of_images, double of_texts, double otherwise)
{
    if (!isnan(given))
        return given;
    double known = isnan(of_images) ? of_texts : of_images;
    return isnan(known) ? otherwise : known;
}

/* The scale and bias of the loss: those given, those that the sets know of their model, or CLIP's
 * 100. They stand in the adapter's options from then on. */
static pnb_status choose_contrast(pnb_adapter *a, pnb_error *err)
{
    const pnb_embeddings_info *image = &a->part[0].origin, *text = &a->part[1].origin;
    bool is_siglip = a->opts.loss == PNB_ADAPT_LOSS_SIGLIP;
    double scale = chosen(a->opts.logit_scale, image->logit_scale, text->logit_scale,
                          is_siglip ? (double)NAN : 100.0);
    double bias = is_siglip
                      ? chosen(a->opts.logit_bias, image->logit_bias, text->logit_bias, (double)NAN)
                      : 0.0; /* a softmax does not see it */
    if (isnan(scale) || isnan(bias))
        return pnb__fail(err, PNB_ARG,
                         "the sets do not know their model's logit scale and bias, which the "
                         "sigmoid loss needs: give logit_scale and logit_bias");
    if (!(scale > 0.0) || !isfinite(scale) || !isfinite(bias))
        return pnb__fail(err, PNB_ARG,
                         "logit_scale %g and logit_bias %g: a scale is above 0, both "
                         "are finite",
                         scale, bias);
    a->opts.logit_scale = scale;
    a->opts.logit_bias = bias;
    return PNB_OK;
}

static pnb_status check_options(const pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    size_t least = PNB_MIN(job->side[0].n, job->side[1].n);
    size_t most = PNB_MAX(job->side[0].n, job->side[1].n);
    if (a->opts.prior_precision <= 0.0 || isinf(a->opts.prior_precision))
        return pnb__fail(err, PNB_ARG, "prior_precision is %g, it must be above 0",
                         a->opts.prior_precision);
    if (a->opts.pseudo_count < 0)
        return pnb__fail(err, PNB_ARG, "pseudo_count is %lld, it must be above 0",
                         (long long)a->opts.pseudo_count);
    if (job->data->hessians != NULL)
        return PNB_OK;
    if (least < 2)
        return pnb__fail(err, PNB_ARG,
                         "%zu images and %zu texts: a contrast needs two or more of both",
                         job->side[0].n, job->side[1].n);
    if (a->opts.batch_size != 0 && (a->opts.batch_size < 2 || (size_t)a->opts.batch_size > most))
        return pnb__fail(err, PNB_ARG,
                         "a batch of %lld rows: it must be from 2 to the %zu there "
                         "are",
                         (long long)a->opts.batch_size, most);
    return PNB_OK;
}

/* ---- factors ---- */

/* Adds one contrast: the rows of both sides against each other. */
static pnb_status add_contrast(pnb_adapter *a, const pnb__contrast *c, const block *rows,
                               const size_t *n_all, pnb_error *err)
{
    bayesvlm *m = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        pnb__kronecker *k = &m->side[s].k;
        const block *own = &rows[s], *other = &rows[1 - s];
        pnb__gram_add(a->ctx, 1.0 / (double)n_all[s], own->phi, own->phi, own->n, k->p, k->p, k->a);
        status = pnb__output_hessian_add(k->b, a->ctx, c, own->unit, own->length, own->n,
                                         other->unit, other->n, k->q, err);
    }
    return status;
}

/* First row of part `part` of n rows; nothing overflows. */
static size_t share(size_t n, size_t part, size_t n_parts)
{
    return n / n_parts * part + n % n_parts * part / n_parts;
}

static pnb_status add_rows(pnb_adapter *a, const pnb__adapter_job *job, const pnb__contrast *c,
                           size_t part, size_t n_parts, pnb_error *err)
{
    bayesvlm *m = a->self;
    block rows[PNB_N_ADAPTER_SIDES] = {0};
    size_t n_all[PNB_N_ADAPTER_SIDES];
    pnb_status status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t begin = share(job->side[s].n, part, n_parts);
        size_t end = share(job->side[s].n, part + 1, n_parts);
        n_all[s] = job->side[s].n;
        PNB_TRY(make_block(&rows[s], end - begin, &m->side[s].w, err));
        PNB_TRY(read_block(&rows[s], a->ctx, &m->side[s].w, &job->side[s], begin, err));
    }
    status = add_contrast(a, c, rows, n_all, err);
done:
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        reset_block(&rows[s]);
    return status;
}

/* Contrasts are of rows beside each other, the same share of both sides. */
static pnb_status sum_factors(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    bayesvlm *m = a->self;
    const pnb__contrast c = {a->opts.loss, a->opts.logit_scale, a->opts.logit_bias};
    size_t least = PNB_MIN(job->side[0].n, job->side[1].n);
    size_t most = PNB_MAX(job->side[0].n, job->side[1].n);
    size_t batch = a->opts.batch_size > 0 ? (size_t)a->opts.batch_size : PNB_MIN(most, BATCH);
    size_t n_parts = PNB_MIN((most + batch - 1) / batch, least / 2);
    a->opts.batch_size = (int64_t)batch;
    for (size_t part = 0; part < n_parts; part++) {
        pnb_status status = add_rows(a, job, &c, part, n_parts, err);
        if (status != PNB_OK)
            return status;
    }
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__kronecker *k = &m->side[s].k;
        for (size_t i = 0; i < k->q * k->q; i++)
            k->b[i] /= (double)job->side[s].n;
        k->n = (double)job->side[s].n;
    }
    return PNB_OK;
}

/* ---- the prior ---- */

static double weight_square(const pnb__last_layer *w)
{
    double sum = 0.0;
    if (w->w == NULL)
        return (double)w->q;
    for (size_t i = 0; i < w->p * w->q; i++)
        sum += w->w[i] * w->w[i];
    return sum;
}

/* Lambda of a side: that given, that of the files where the rows count as they do there, or the one
 * of the largest marginal likelihood. */
static pnb_status choose_prior(pnb_adapter *a, int side, bool is_known, pnb_error *err)
{
    side_state *s = &((bayesvlm *)a->self)->side[side];
    pnb__evidence e = {0};
    pnb_status status = PNB_OK;
    if (a->opts.pseudo_count > 0)
        s->k.n = (double)a->opts.pseudo_count;
    if (!isnan(a->opts.prior_precision))
        s->k.lambda = a->opts.prior_precision;
    else if (!is_known || a->opts.pseudo_count > 0) {
        PNB_TRY(pnb__evidence_init(&e, &s->k, weight_square(&s->w), a->opts.marginal, err));
        PNB_TRY(pnb__evidence_best(&e, pnb__adapter_side_word((pnb_adapter_side)side), &s->k.lambda,
                                   err));
    }
    pnb__adapter_tell(a, (pnb_adapter_side)side, "lambda", s->k.lambda);
    pnb__adapter_tell(a, (pnb_adapter_side)side, "count", s->k.n);
    pnb__adapter_tell(a, (pnb_adapter_side)side, "projection", s->w.w != NULL);
done:
    pnb__evidence_reset(&e);
    return status;
}

/* The projections, and factors of their widths: those of files, else zeros. */
static pnb_status make_sides(pnb_adapter *a, const pnb_adapter_data *data, pnb_error *err)
{
    bayesvlm *m = a->self;
    pnb__last_layer w[PNB_N_ADAPTER_SIDES] = {{0}};
    pnb_status status = PNB_OK;
    if (data->model != NULL)
        status = pnb__last_projections_read(w, a, data->model, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = a->part[s].dim;
        m->side[s].w = data->model != NULL ? w[s] : (pnb__last_layer){dim, dim, dim, NULL, false};
        a->part[s].dim_out = m->side[s].w.q; /* reset frees what was read, after a failure too */
    }
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        pnb__kronecker *k = &m->side[s].k;
        status = pnb__kronecker_init(k, m->side[s].w.p, m->side[s].w.q, err);
        if (status == PNB_OK && data->hessians != NULL)
            status = pnb__hessian_files_read(k, data->hessians, (pnb_adapter_side)s, err);
    }
    return status;
}

static pnb_status fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    bayesvlm *m = a->self;
    bool is_known = job->data->hessians != NULL;
    pnb_status status;
    PNB_TRY(check_options(a, job, err));
    PNB_TRY(choose_contrast(a, err));
    PNB_TRY(make_sides(a, job->data, err));
    if (!is_known)
        PNB_TRY(sum_factors(a, job, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(choose_prior(a, s, is_known, err));
        PNB_TRY(pnb__posterior_init(&m->side[s].posterior, a->ctx, &m->side[s].k,
                                    pnb__adapter_side_word((pnb_adapter_side)s), err));
    }
done:
    return status;
}

/* ---- files ---- */

static pnb_status read_prior(pnb__kronecker *k, const pnb_safetensors *file, int side,
                             const char *where, pnb_error *err)
{
    double prior[2] = {0, 0};
    pnb_status status = pnb__adapter_get(file, prior_names[side], prior, 2, 0, where, err);
    if (status == PNB_OK && !(prior[0] > 0.0 && prior[1] > 0.0))
        status = pnb__fail(err, PNB_NUMERIC, "%s: %s is (%g, %g), both are above 0", where,
                           prior_names[side], prior[0], prior[1]);
    k->n = prior[0];
    k->lambda = prior[1];
    return status;
}

/* Without an array it is the identity; with a column more than the rows have, it has a bias; with
 * one more than the rows have without an embedding behind, that is added to what it makes. */
static pnb_status open_projection(pnb__last_layer *w, const pnb_safetensors *file, int side,
                                  const char *where, pnb_error *err)
{
    const pnb_array_view *view = pnb_safetensors_find(file, w_names[side]);
    pnb_status status = PNB_OK;
    if (view == NULL && w->p == w->q)
        return PNB_OK;
    size_t columns = view != NULL && view->n_dims == 2 ? (size_t)view->shape[1] : 0;
    if (columns == w->n_read + 1) {
        w->p = columns;
    } else if (w->n_read > w->q && columns == w->n_read - w->q + 1 && columns != w->n_read) {
        w->n_read -= w->q;
        w->p = columns;
        w->has_rest = true;
    }
    PNB_TRY(pnb__adapter_find(file, w_names[side], w->q, w->p, where, err));
    w->w = pnb__alloc_array(w->q, w->p * sizeof(double));
    status = w->w == NULL ? pnb__fail_nomem(err, w->p * w->q * sizeof(double))
                          : pnb__adapter_get(file, w_names[side], w->w, w->q, w->p, where, err);
done:
    return status;
}

static pnb_status open_side(pnb_adapter *a, int side, const pnb_safetensors *file,
                            const char *where, pnb_error *err)
{
    side_state *s = &((bayesvlm *)a->self)->side[side];
    size_t dim = a->part[side].dim, q = a->part[side].dim_out;
    char what[300];
    pnb_status status;
    s->w = (pnb__last_layer){.n_read = dim, .p = dim, .q = q};
    snprintf(what, sizeof what, "%.280s: %s", where,
             pnb__adapter_side_word((pnb_adapter_side)side));
    PNB_TRY(open_projection(&s->w, file, side, where, err));
    PNB_TRY(pnb__adapter_find(file, a_names[side], s->w.p, s->w.p, where, err)); /* before memory */
    PNB_TRY(pnb__adapter_find(file, b_names[side], q, q, where, err));
    PNB_TRY(pnb__kronecker_init(&s->k, s->w.p, q, err));
    PNB_TRY(pnb__adapter_get(file, a_names[side], s->k.a, s->w.p, s->w.p, where, err));
    PNB_TRY(pnb__adapter_get(file, b_names[side], s->k.b, q, q, where, err));
    PNB_TRY(read_prior(&s->k, file, side, where, err));
    status = pnb__posterior_init(&s->posterior, a->ctx, &s->k, what, err);
done:
    return status;
}

static pnb_status open_file(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (a->family != PNB_GAUSSIAN_DIAG)
        return pnb__fail(err, PNB_FORMAT, "%s: family %s, bayesvlm makes gaussian_diag", where,
                         pnb_family_name(a->family));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (a->part[s].is_adapted)
            status = open_side(a, s, file, where, err);
    return status;
}

static pnb_status arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err)
{
    const bayesvlm *m = a->self;
    pnb_status status = PNB_OK;
    for (int i = 0; i < PNB_N_ADAPTER_SIDES; i++) {
        const side_state *s = &m->side[i];
        if (!a->part[i].is_adapted)
            continue;
        PNB_TRY(pnb__adapter_put(to, a_names[i], s->k.a, s->k.p, s->k.p, err));
        PNB_TRY(pnb__adapter_put(to, b_names[i], s->k.b, s->k.q, s->k.q, err));
        PNB_TRY(pnb__adapter_put(to, prior_names[i], &s->k.n, 2, 0, err)); /* n, lambda */
        if (s->w.w != NULL)
            PNB_TRY(pnb__adapter_put(to, w_names[i], s->w.w, s->w.q, s->w.p, err));
    }
done:
    return status;
}

/* ---- applying ---- */

/* Row i: the mean as it is where it was an embedding, of unit length where it was projected; the
 * variances of the same scale. */
static void write_row(const side_state *s, const block *b, size_t i, const double *white,
                      const pnb__adapter_block *to)
{
    size_t p = s->w.p, q = s->w.q;
    double spread = 0.0, length = s->w.w != NULL ? b->length[i] : 1.0;
    float *mean = to->out->mean + i * q, *log_var = to->out->log_var + i * q;
    for (size_t r = 0; r < p; r++)
        spread += white[r] * white[r];
    for (size_t d = 0; d < q; d++) {
        mean[d] = s->w.w != NULL ? (float)b->unit[i * q + d] : to->x[i * q + d];
        log_var[d] = (float)(log(spread) + log(s->posterior.diagonal[d]) - 2.0 * log(length));
    }
}

static pnb_status apply(const pnb_adapter *a, const pnb__adapter_block *to, pnb_error *err)
{
    const side_state *s = &((const bayesvlm *)a->self)->side[to->side];
    block b = {0};
    double *white = pnb__alloc_array(to->n, s->w.p * sizeof *white);
    pnb_status status =
        white != NULL ? PNB_OK : pnb__fail_nomem(err, to->n * s->w.p * sizeof(double));
    PNB_TRY(status);
    PNB_TRY(make_block(&b, to->n, &s->w, err));
    for (size_t i = 0; i < to->n; i++)
        PNB_TRY(copy_row(&b, i, to->x + i * to->dim, &s->w, to->first + i, to->what, err));
    project(a->ctx, &s->w, &b);
    for (size_t i = 0; i < to->n; i++)
        PNB_TRY(normalise(&b, i, s->w.q, to->first + i, to->what, err));
    pnb__product_of_rows(a->ctx, b.phi, s->posterior.root, to->n, s->w.p, s->w.p, white);
    for (size_t i = 0; i < to->n; i++)
        write_row(s, &b, i, white + i * s->w.p, to);
done:
    reset_block(&b);
    pnb__free(white);
    return status;
}

/* Behind the projections of a model both sides have one width. */
static bool is_apart(const pnb_adapter *a, bool has_model)
{
    (void)a;
    return has_model;
}

static void reset(void *self)
{
    bayesvlm *m = self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__kronecker_reset(&m->side[s].k);
        pnb__posterior_reset(&m->side[s].posterior);
        pnb__free(m->side[s].w.w);
    }
}

#define FIELD(name, word, kind, also)                                                              \
    {                                                                                              \
#name, offsetof(pnb_adapter_opts, name), word, kind, true, also                            \
    }
static const pnb__field fields[] = {
    FIELD(loss, pnb__adapt_loss_word, PNB__FIELD_ENUM, PNB__ALSO_NONE),
    FIELD(batch_size, NULL, PNB__FIELD_I64, PNB__ALSO_NONE),
    FIELD(logit_scale, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN),
    FIELD(logit_bias, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN),
    FIELD(prior_precision, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN),
    FIELD(pseudo_count, NULL, PNB__FIELD_I64, PNB__ALSO_NONE),
    FIELD(marginal, pnb__adapt_marginal_word, PNB__FIELD_ENUM, PNB__ALSO_NONE),
};

const pnb__adapter_calls pnb__adapter_bayesvlm = {.self_bytes = sizeof(bayesvlm),
                                                  .fields = fields,
                                                  .n_fields = PNB_COUNT(fields),
                                                  .fit = fit,
                                                  .open = open_file,
                                                  .arrays = arrays,
                                                  .apply = apply,
                                                  .is_apart = is_apart,
                                                  .reset = reset};
