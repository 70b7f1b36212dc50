/* pnb_loss_compute: the training losses on plain double arrays.
 *
 * Builds the same graph as the trainer (loss.c) in double precision with every array as an input,
 * runs it once and reads values and gradients back. Formulas are in include/penumbra/loss.h. For
 * whoever trains elsewhere and wants our losses, and for the tests, which compare them with plain
 * loops and central differences: what the trainer minimises is what is checked. Shapes are those of
 * pnb_loss_in; the first n_masked rows of image and text are the originals of the masked rows. */
#include "train/losses/loss.h"

#include <math.h>

enum { IMAGE, TEXT, MASKED_IMAGE, MASKED_TEXT, NEGATIVE, N_SIDES };
enum { N_SET_SIDES = NEGATIVE }; /* of pnb_loss_out.d_mean */
enum { SCALE, BIAS, POINT_SCALE, POINT_BIAS, N_SCALARS };

/* Every array of the caller as an input whose gradient is wanted. */
typedef struct leaves {
    pnb__dist side[N_SIDES];
    pnb__dist teacher[2]; /* no leaves: they have no gradient */
    pnb__tensor *scalar[N_SCALARS];
} leaves;

/* Sides by number, so that one loop serves all five. */
static const pnb_loss_side *side_of(const pnb_loss_in *in, int s)
{
    const pnb_loss_side *sides[N_SIDES] = {&in->image, &in->text, &in->masked_image,
                                           &in->masked_text, &in->negative};
    return sides[s];
}

/* Rows of a side, by its number. */
static size_t rows_of(const pnb_loss_in *in, int s)
{
    return s < MASKED_IMAGE ? in->n : s < NEGATIVE ? in->n_masked : in->n_negatives;
}

/* Of a teacher's side. */
static const pnb_loss_side *teacher_of(const pnb_loss_in *in, int s)
{
    return s == 0 ? &in->teacher_image : &in->teacher_text;
}

/* Terms over samples. */
static bool needs_draws(const pnb_loss_opts *o)
{
    return o->weight[PNB_LOSS_PCME] > 0 || o->weight[PNB_LOSS_UNIFORMITY] > 0 ||
           (o->weight[PNB_LOSS_PCME_KL] > 0 && o->pcme_kl_published);
}

/* Labels and drawn rows are numbers of the caller's. */
static pnb_status check_given(const pnb_loss_opts *opts, const pnb_loss_in *in, pnb_error *err)
{
    size_t n_samples = 2 * in->n * opts->n_samples;
    for (size_t i = 0; in->labels != NULL && i < in->n * in->n; i++)
        if (!(in->labels[i] >= 0 && in->labels[i] <= 1))
            return pnb__fail(err, PNB_ARG, "label %zu is %g, it must lie in 0..1", i,
                             in->labels[i]);
    if (!(opts->weight[PNB_LOSS_UNIFORMITY] > 0) || !opts->uniformity_published ||
        n_samples <= PNB_UNIFORMITY_DRAWN)
        return PNB_OK;
    if (in->drawn == NULL)
        return pnb__fail(err, PNB_ARG, "the published uniformity compares %d samples: give drawn",
                         PNB_UNIFORMITY_DRAWN);
    for (size_t i = 0; i < PNB_UNIFORMITY_DRAWN; i++)
        if (in->drawn[i] < 0 || (size_t)in->drawn[i] >= n_samples)
            return pnb__fail(err, PNB_ARG, "drawn sample %d of %zu", (int)in->drawn[i], n_samples);
    return PNB_OK;
}

/* What indexing relies on; the terms' own needs are checked where they are built. */
static pnb_status check_in(const pnb_loss_opts *opts, const pnb_loss_in *in, pnb_error *err)
{
    if (in->n == 0 || in->dim == 0)
        return pnb__fail(err, PNB_ARG, "%zu pairs of width %zu: both must be at least 1", in->n,
                         in->dim);
    if (in->n_masked > in->n)
        return pnb__fail(err, PNB_SHAPE, "%zu masked rows of %zu pairs", in->n_masked, in->n);
    if (in->image.mean == NULL || in->text.mean == NULL)
        return pnb__fail(err, PNB_ARG, "means of the %s are missing",
                         in->image.mean == NULL ? "images" : "texts");
    if (needs_draws(opts) && (in->image_noise == NULL || in->text_noise == NULL))
        return pnb__fail(err, PNB_ARG,
                         "pcme and uniformity look at samples: give image_noise and text_noise");
    if (in->n_negatives > 0 && in->negative.mean == NULL)
        return pnb__fail(err, PNB_ARG, "means of the %zu negatives are missing", in->n_negatives);
    if (in->dim % PNB_MAX(in->n_embeddings, (size_t)1) != 0)
        return pnb__fail(err, PNB_ARG, "%zu embeddings in %zu numbers: it does not come out even",
                         in->n_embeddings, in->dim);
    if ((in->point_scale == NULL) != (in->point_bias == NULL))
        return pnb__fail(err, PNB_ARG, "point_%s is given without point_%s; give both or neither",
                         in->point_scale == NULL ? "bias" : "scale",
                         in->point_scale == NULL ? "scale" : "bias");
    return check_given(opts, in, err);
}

/* Means and log-variances (B,D) or (M,D), scalars (): each a leaf whose gradient is wanted. */
static leaves make_leaves(pnb__graph *g, const pnb_loss_in *in)
{
    leaves l = {0};
    for (int s = 0; s < N_SIDES; s++) {
        const size_t shape[2] = {rows_of(in, s), in->dim};
        if (shape[0] == 0 || side_of(in, s)->mean == NULL)
            continue;
        l.side[s].mean = pnb__input_with_grad(g, 2, shape);
        l.side[s].n_embeddings = in->n_embeddings;
        if (side_of(in, s)->log_var != NULL)
            l.side[s].log_var = pnb__input_with_grad(g, 2, shape);
        if (side_of(in, s)->residual != NULL)
            l.side[s].residual = pnb__input_with_grad(g, 2, shape);
    }
    for (int s = 0; s < 2; s++) {
        const size_t shape[2] = {in->n, in->teacher_dim > 0 ? in->teacher_dim : in->dim};
        if (teacher_of(in, s)->mean != NULL)
            l.teacher[s].mean = pnb__input(g, PNB__REAL, 2, shape);
        if (teacher_of(in, s)->log_var != NULL)
            l.teacher[s].log_var = pnb__input(g, PNB__REAL, 2, shape);
    }
    for (int i = 0; i < N_SCALARS; i++)
        /* a and b of the point losses only where the caller has them apart */
        if (i < POINT_SCALE || (in->point_scale != NULL && in->point_bias != NULL))
            l.scalar[i] = pnb__input_with_grad(g, 0, NULL);
    return l;
}

/* In the order in which make_leaves made them. */
static void write_leaves(const leaves *l, const pnb_loss_in *in)
{
    for (int s = 0; s < N_SIDES; s++) {
        if (l->side[s].mean != NULL)
            pnb__write_f64(l->side[s].mean, side_of(in, s)->mean);
        if (l->side[s].log_var != NULL)
            pnb__write_f64(l->side[s].log_var, side_of(in, s)->log_var);
        if (l->side[s].residual != NULL)
            pnb__write_f64(l->side[s].residual, side_of(in, s)->residual);
    }
    for (int s = 0; s < 2; s++) {
        if (l->teacher[s].mean != NULL)
            pnb__write_f64(l->teacher[s].mean, teacher_of(in, s)->mean);
        if (l->teacher[s].log_var != NULL)
            pnb__write_f64(l->teacher[s].log_var, teacher_of(in, s)->log_var);
    }
    const double *values[N_SCALARS] = {&in->scale, &in->bias, in->point_scale, in->point_bias};
    for (int i = 0; i < N_SCALARS; i++)
        if (l->scalar[i] != NULL)
            pnb__write_f64(l->scalar[i], values[i]);
}

/* Weighted terms and their sum; a term that is not finite has no gradient worth reading. */
static pnb_status read_terms(const pnb__loss *loss, pnb_loss_out *out, pnb_error *err)
{
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        out->term[i] = loss->term[i] == NULL ? 0 : pnb__read_scalar(loss->term[i]);
        if (!isfinite(out->term[i]))
            return pnb__fail(err, PNB_NUMERIC, "loss %s is %g", pnb_loss_name((pnb_loss_term)i),
                             out->term[i]);
    }
    out->total = pnb__read_scalar(loss->total);
    return PNB_OK;
}

/* dL/dx of a leaf, in its shape; one the loss does not depend on has gradient 0. */
static void read_grad(const pnb__tensor *t, double *out, size_t n)
{
    if (out == NULL)
        return;
    if (t != NULL && pnb__read_grad_f64(t, out))
        return;
    for (size_t i = 0; i < n; i++)
        out[i] = 0;
}

/* dL/d mean and dL/d lv of every side, and of the scalars a, b (of a, not of its logarithm). */
static void read_grads(const leaves *l, const pnb_loss_in *in, pnb_loss_out *out)
{
    for (int s = 0; s < N_SET_SIDES; s++) {
        size_t n = rows_of(in, s) * in->dim;
        read_grad(l->side[s].mean, out->d_mean[s], n);
        read_grad(l->side[s].log_var, out->d_log_var[s], n);
        if (s < MASKED_IMAGE)
            read_grad(l->side[s].residual, out->d_residual[s], n);
    }
    read_grad(l->side[NEGATIVE].mean, out->d_negative[0], in->n_negatives * in->dim);
    read_grad(l->side[NEGATIVE].log_var, out->d_negative[1], in->n_negatives * in->dim);
    double *scalars[N_SCALARS] = {&out->d_scale, &out->d_bias, &out->d_point_scale,
                                  &out->d_point_bias};
    for (int i = 0; i < N_SCALARS; i++)
        read_grad(l->scalar[i], scalars[i], 1);
}

/* The caller's matrix of labels is what he has in memory anyway: all of a row are marks. */
static pnb_status write_labels(const pnb__loss *loss, const pnb_loss_in *in, pnb_error *err)
{
    size_t n = in->n;
    int32_t *columns = NULL;
    float *weights[2] = {NULL, NULL};
    pnb_status status;
    PNB_TRY(PNB_ALLOC(columns, n * n, err));
    for (int way = 0; way < 2; way++)
        PNB_TRY(PNB_ALLOC(weights[way], n * n, err));
    for (size_t i = 0; i < n * n; i++) {
        columns[i] = (int32_t)(i % n);
        weights[0][i] = (float)in->labels[i];
        weights[1][i] = (float)in->labels[i % n * n + i / n];
    }
    const pnb__pair_labels labels = {{columns, columns}, {weights[0], weights[1]}};
    status = pnb__loss_set_labels(loss, &labels, err);
done:
    pnb__free(columns);
    pnb__free(weights[0]);
    pnb__free(weights[1]);
    return status;
}

/* What a step draws or says of its pairs, as the caller has it. */
static pnb_status write_given(const pnb__loss *loss, const pnb_loss_in *in, pnb_error *err)
{
    const double *noise[PNB__LOSS_N_DRAWN] = {in->image_noise, in->text_noise};
    for (int s = 0; s < PNB__LOSS_N_DRAWN; s++)
        if (loss->noise[s] != NULL)
            pnb__write_f64(loss->noise[s], noise[s]);
    if (loss->drawn != NULL)
        pnb__write_i32(loss->drawn, in->drawn);
    return in->labels != NULL ? write_labels(loss, in, err) : PNB_OK;
}

/* In double: a caller's gradient check by central differences needs about half of the digits. */
pnb_status pnb_loss_compute(const pnb_ctx *ctx, const pnb_loss_opts *opts, const pnb_loss_in *in,
                            pnb_loss_out *out, pnb_error *err)
{
    pnb__graph *g = NULL;
    pnb__loss loss;
    pnb_status status = check_in(opts, in, err);
    if (status != PNB_OK)
        return status;
    /* the trainer's graph, in f64 and with every array a leaf */
    PNB_TRY(pnb__graph_create(&g, ctx, PNB__F64, true, err));
    leaves l = make_leaves(g, in);
    const pnb__loss_in graph_in = {
        .image = l.side[IMAGE],
        .text = l.side[TEXT],
        .masked_image = l.side[MASKED_IMAGE],
        .masked_text = l.side[MASKED_TEXT],
        .negative = l.side[NEGATIVE],
        .teacher = {l.teacher[0], l.teacher[1]},
        .teacher_scale = in->teacher_scale,
        .scale = l.scalar[SCALE],
        .bias = l.scalar[BIAS],
        .point_scale = l.scalar[POINT_SCALE],
        .point_bias = l.scalar[POINT_BIAS],
        .negative_only = in->negative_only,
        .has_labels = in->labels != NULL,
        .n_marks = in->labels != NULL ? in->n : 1,
    };
    pnb_loss_opts settled = *opts; /* there is no step: behind the warm-up */
    settled.triplet_warmup = 0;
    PNB_TRY(pnb__loss_build(&loss, g, &graph_in, &settled, err));
    PNB_TRY(pnb__graph_plan(g, loss.total, err));
    PNB_TRY(pnb__loss_start(&loss, err));
    write_leaves(&l, in);
    PNB_TRY(write_given(&loss, in, err));
    PNB_TRY(pnb__graph_run(g, err));
    PNB_TRY(read_terms(&loss, out, err));
    read_grads(&l, in, out);
    status = pnb__graph_check(g, err);
done:
    pnb__graph_free(g);
    return status;
}
