/* Golden family asymvlm: the log normalisers of the von Mises-Fisher and the power spherical
 * density (`lognorm`), and retrieval by their likelihoods with a fixed adapter (`eval_...`). Which
 * of them a case is shows in its tensors; training the adapter (`adapter_...`) is in
 * case_asymvlm.c. */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

#include "penumbra/distributions.h"
#include "penumbra/retrieval.h"
#include "penumbra/search.h"
#include "penumbra/uncertainty_calibration.h"

typedef double (*norm_fn)(size_t dim, double kappa);

/* Name of the tensor, what computes it. The released code's own forms are the approximation and the
 * exact power spherical one, so they have no function of their own. */
static const struct {
    const char *name;
    norm_fn compute;
} norms[] = {
    {"vmf_exact", pnb_vmf_log_norm},
    {"vmf_exact_dkappa", pnb_vmf_log_norm_slope},
    {"vmf_approx", pnb_vmf_log_norm_approx},
    {"vmf_approx_dkappa", pnb_vmf_log_norm_approx_slope},
    {"ps_exact", pnb_power_spherical_log_norm},
    {"ps_exact_dkappa", pnb_power_spherical_log_norm_slope},
    {"ps_code", pnb_power_spherical_log_norm},
    {"vmf_approx_f32", pnb_vmf_log_norm_approx},
    {"ps_code_f32", pnb_power_spherical_log_norm},
};

static pnb_status run_lognorm(golden_case *c, pnb_error *err)
{
    size_t n_dims = 0, n_kappas = 0;
    int32_t *dim = golden_i32(c, "d", &n_dims, err);
    double *kappa = golden_f64(c, "kappa", &n_kappas, err);
    double *out = pnb__alloc_array(n_dims * n_kappas + 1, sizeof *out);
    pnb_status status = PNB_OK;
    if (dim == NULL || kappa == NULL || out == NULL)
        PNB_TRY(err->status != PNB_OK ? err->status : pnb__fail_nomem(err, n_dims * n_kappas));
    for (size_t f = 0; f < PNB_COUNT(norms); f++) {
        for (size_t i = 0; i < n_dims; i++)
            for (size_t j = 0; j < n_kappas; j++)
                out[i * n_kappas + j] = norms[f].compute((size_t)dim[i], kappa[j]);
        golden_give(c, norms[f].name, out, n_dims * n_kappas);
    }
done:
    pnb__free(dim);
    pnb__free(kappa);
    pnb__free(out);
    return status;
}

/* ---- retrieval with a fixed adapter ---- */

typedef struct eval_case {
    size_t n_images, n_texts, dim, n_levels;
    pnb_measure measure;
    float *image, *mean, *kappa; /* images; texts after the adapter */
    double *uncertainty;         /* [texts] 1/kappa */
    pnb_truth *texts, *images;   /* queries are texts; queries are images */
} eval_case;

/* y = W x + b, with ReLU but for the last layer. Returns y in place of x. */
static pnb_status apply_layer(const golden_case *c, int layer, size_t n, float **x, size_t *width,
                              pnb_error *err)
{
    char name[64];
    size_t n_weights = 0, n_out = 0;
    pnb_status status = PNB_OK;
    snprintf(name, sizeof name, "param.text_adaptor.etta.%d.weight", layer);
    float *weight = golden_f32(c, name, &n_weights, err);
    snprintf(name, sizeof name, "param.text_adaptor.etta.%d.bias", layer);
    float *bias = golden_f32(c, name, &n_out, err);
    float *y = pnb__alloc_array(n * n_out + 1, sizeof *y);
    if (weight == NULL || bias == NULL || y == NULL)
        PNB_TRY(err->status != PNB_OK ? err->status : pnb__fail_nomem(err, n * n_out));
    if (n_weights != n_out * *width)
        PNB_TRY(pnb__fail(err, PNB_SHAPE, "%s does not fit its input", name));
    for (size_t i = 0; i < n; i++)
        for (size_t o = 0; o < n_out; o++) {
            double sum = bias[o];
            for (size_t d = 0; d < *width; d++)
                sum += (double)weight[o * *width + d] * (*x)[i * *width + d];
            y[i * n_out + o] = (float)(layer < 6 && sum < 0.0 ? 0.0 : sum);
        }
    pnb__free(*x);
    *x = y;
    y = NULL;
    *width = n_out;
done:
    pnb__free(weight);
    pnb__free(bias);
    pnb__free(y);
    return status;
}

/* eta = kappa mu */
static pnb_status split_eta(eval_case *e, pnb_error *err)
{
    e->kappa = pnb__alloc_array(e->n_texts, sizeof *e->kappa);
    e->uncertainty = pnb__alloc_array(e->n_texts, sizeof *e->uncertainty);
    if (e->kappa == NULL || e->uncertainty == NULL)
        return pnb__fail_nomem(err, e->n_texts);
    for (size_t i = 0; i < e->n_texts; i++) {
        double square = 0.0;
        for (size_t d = 0; d < e->dim; d++)
            square += (double)e->mean[i * e->dim + d] * e->mean[i * e->dim + d];
        e->kappa[i] = (float)sqrt(square);
        for (size_t d = 0; d < e->dim; d++)
            e->mean[i * e->dim + d] /= e->kappa[i];
    }
    return pnb_uncertainty_inv_kappa(e->kappa, e->n_texts, e->uncertainty, err);
}

static pnb_status read_truth(eval_case *e, const golden_case *c, pnb_error *err)
{
    size_t n = 0;
    int32_t *image_of = golden_i32(c, "cap_to_img", &n, err);
    int64_t *pairs = pnb__alloc_array(2 * n + 1, sizeof *pairs);
    pnb_status status = PNB_OK;
    if (image_of == NULL || pairs == NULL)
        PNB_TRY(err->status != PNB_OK ? err->status : pnb__fail_nomem(err, n));
    for (size_t i = 0; i < n; i++) {
        pairs[2 * i] = (int64_t)i;
        pairs[2 * i + 1] = image_of[i];
    }
    PNB_TRY(pnb_truth_create_pairs(&e->texts, e->n_texts, e->n_images, pairs, n, err));
    status = pnb_truth_transpose(&e->images, e->texts, err);
done:
    pnb__free(image_of);
    pnb__free(pairs);
    return status;
}

static pnb_status read_eval(eval_case *e, const golden_case *c, pnb_error *err)
{
    const char *distribution = json_string_value(golden_value(c, "distribution"));
    size_t n = 0;
    e->image = golden_f32(c, "z_image", &n, err);
    if (e->image == NULL)
        return err->status;
    e->n_images = (size_t)golden_find(c, "z_image")->shape[0];
    e->dim = n / e->n_images;
    e->n_levels = (size_t)golden_number(c, "levels", 10);
    e->measure = distribution != NULL && strcmp(distribution, "vmf") == 0
                     ? PNB_MEASURE_VMF
                     : PNB_MEASURE_POWER_SPHERICAL;
    e->mean = golden_f32(c, "z_text", &n, err);
    if (e->mean == NULL)
        return err->status;
    size_t width = e->dim;
    e->n_texts = n / e->dim;
    for (int layer = 0; layer <= 6; layer += 2) {
        pnb_status status = apply_layer(c, layer, e->n_texts, &e->mean, &width, err);
        if (status != PNB_OK)
            return status;
    }
    if (width != e->dim)
        return pnb__fail(err, PNB_SHAPE, "the adapter's width is %zu, images have %zu", width,
                         e->dim);
    pnb_status status = split_eta(e, err);
    return status == PNB_OK ? read_truth(e, c, err) : status;
}

/* One direction: accuracy by bins of uncertainty, and S, R^2, -S R^2. */
static pnb_status give_direction(golden_case *c, const eval_case *e, bool from_text,
                                 const pnb_rows rows[2], pnb_error *err)
{
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_ranks ranks = {0};
    pnb_uncertainty_calibration bins;
    double *u = NULL, *correct = NULL, accuracy[PNB_MAX_BINS];
    pnb_status status;
    opts.measure = e->measure;
    PNB_TRY(pnb_ranks_compute(c->ctx, &rows[from_text], &rows[!from_text],
                              from_text ? e->texts : e->images, &opts, &ranks, err));
    u = pnb__alloc_array(ranks.n_queries, sizeof *u);
    correct = pnb__alloc_array(ranks.n_queries, sizeof *correct);
    if (u == NULL || correct == NULL)
        PNB_TRY(pnb__fail_nomem(err, ranks.n_queries * sizeof *u));
    for (size_t i = 0; i < ranks.n_queries; i++) {
        u[i] = e->uncertainty[from_text ? i : (size_t)ranks.top1[i]];
        correct[i] = ranks.best_rank[i] == 1;
    }
    PNB_TRY(pnb_uncertainty_calibration_compute(u, correct, ranks.n_queries, PNB_BINS_EQUAL_COUNT,
                                                e->n_levels, &bins, err));
    for (size_t b = 0; b < bins.n_bins; b++)
        accuracy[b] = bins.bin[b].accuracy;
    golden_give(c, from_text ? "t2i_acc" : "i2t_acc", accuracy, bins.n_bins);
    golden_give(c, from_text ? "t2i_S_R2_mSR2" : "i2t_S_R2_mSR2",
                (const double[]){bins.s, bins.r2, bins.minus_s_r2}, 3);
done:
    pnb_ranks_reset(&ranks);
    pnb__free(u);
    pnb__free(correct);
    return status;
}

static pnb_status run_eval(golden_case *c, pnb_error *err)
{
    eval_case e = {0};
    double *likelihood = NULL;
    pnb_status status;
    PNB_TRY(read_eval(&e, c, err));
    const pnb_rows rows[2] = {{.n = e.n_images, .dim = e.dim, .mean = e.image},
                              {.n = e.n_texts,
                               .dim = e.dim,
                               .mean = e.mean,
                               .kappa = e.kappa,
                               .is_power = e.measure == PNB_MEASURE_POWER_SPHERICAL}};
    likelihood = pnb__alloc_array(e.n_images * e.n_texts, sizeof *likelihood);
    if (likelihood == NULL)
        PNB_TRY(pnb__fail_nomem(err, e.n_images * e.n_texts * sizeof *likelihood));
    PNB_TRY(pnb_measure_block(e.measure, &rows[0], &rows[1], NULL, likelihood, err));
    golden_give(c, "log_likelihood", likelihood, e.n_images * e.n_texts);
    golden_give(c, "uncertainty", e.uncertainty, e.n_texts);
    PNB_TRY(give_direction(c, &e, true, rows, err));
    status = give_direction(c, &e, false, rows, err);
done:
    pnb_truth_free(e.texts);
    pnb_truth_free(e.images);
    pnb__free(e.image);
    pnb__free(e.mean);
    pnb__free(e.kappa);
    pnb__free(e.uncertainty);
    pnb__free(likelihood);
    return status;
}

pnb_status golden_family_asymvlm(golden_case *c, pnb_error *err)
{
    if (golden_find(c, "kappa") != NULL && golden_find(c, "d") != NULL)
        return run_lognorm(c, err);
    if (golden_find(c, "cap_to_img") != NULL)
        return run_eval(c, err);
    return golden_case_asymvlm(c, err);
}
