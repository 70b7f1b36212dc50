/* GroVE: two sparse Gaussian processes over one latent space give frozen embeddings a mean and a
 * variance (Venkataramanan, Bodesheim and Denzler, UAI 2025; docs/numerics.md#grove).
 *
 * Kernel, inducing points and noise are shared by all outputs of a side, as the paper has it (one
 * factor of k(Z,Z) a step); a covariance of q(v) for each output, or one for all. This file is the
 * method's calls, its options and its arrays on disk; grove.h says where the rest is. */
#include "adapt/grove/grove.h"

#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "base/names.h"

enum { LATENT_DIM = 16, PUBLISHED_LATENT_DIM = 5, INDUCING = 250, MOST_POINTS = 1 << 16 };

static const char *const names[PNB_N_ADAPTER_SIDES][9] = {
    {"image.z", "image.kernel", "image.constant", "image.q_mean", "image.factors",
     "image.recognise", "image.found", "image.missed", "image.mixing"},
    {"text.z", "text.kernel", "text.constant", "text.q_mean", "text.factors", "text.recognise",
     "text.found", "text.missed", "text.mixing"}};
enum { Z, KERNEL, CONSTANT, Q_MEAN, FACTORS, RECOGNISE, FOUND, MISSED, MIXING };

/* ---- memory ---- */

size_t pnb__grove_n_kernels(const pnb__grove *g, int side)
{
    return g->is_mixed ? g->part[side].d : 1;
}

size_t pnb__grove_n_factors(const pnb__grove *g, int side)
{
    return g->is_shared || g->is_mixed ? 1 : g->part[side].d;
}

size_t pnb__grove_factor_bytes(const pnb__grove *g, int side)
{
    return pnb__grove_n_kernels(g, side) * pnb__factors_size(g->m, pnb__grove_n_factors(g, side)) *
           PNB__REAL_SIZE(g->is_shared ? PNB__F64 : PNB__F32);
}

double pnb__grove_jitter(const pnb__grove *g)
{
    return g->is_mixed ? PNB__GROVE_LMC_JITTER : PNB__GROVE_JITTER;
}

/* The numbers of the kernels and, behind them, the unit: as the file has them. */
static size_t n_numbers(const pnb__grove *g, int side)
{
    return PNB__GROVE_N_NUMBERS * pnb__grove_n_kernels(g, side) + 1;
}

pnb_status pnb__grove_alloc(pnb__grove *g, int side, pnb_error *err)
{
    pnb__grove_part *p = &g->part[side];
    size_t bytes = pnb__grove_factor_bytes(g, side), kernels = pnb__grove_n_kernels(g, side);
    p->z = pnb__alloc_array(kernels * g->m, g->q * sizeof *p->z);
    double *numbers = p->number[0] = pnb__alloc_array(n_numbers(g, side), sizeof *numbers);
    for (size_t i = 1; numbers != NULL && i < PNB__GROVE_N_NUMBERS; i++)
        p->number[i] = numbers + i * kernels;
    if (g->is_mixed)
        p->mixing = pnb__alloc_array(p->d, p->d * sizeof *p->mixing);
    p->constant = pnb__alloc_array(p->d, sizeof *p->constant);
    p->q_mean = pnb__alloc_array(p->d, g->m * sizeof *p->q_mean);
    p->recognise = pnb__alloc_array(g->q, (p->d + 1) * sizeof *p->recognise);
    p->factors = pnb__alloc_array(bytes, 1);
    p->found = pnb__alloc_array(p->n_missed, g->q * sizeof *p->found);
    p->missed = pnb__alloc_array(p->n_missed, g->q * sizeof *p->missed);
    bool has_room = p->z != NULL && numbers != NULL && (p->mixing != NULL || !g->is_mixed) &&
                    p->constant != NULL && p->q_mean != NULL && p->recognise != NULL &&
                    p->factors != NULL && p->found != NULL && p->missed != NULL;
    return has_room ? PNB_OK : pnb__fail_nomem(err, bytes);
}

void pnb__grove_reset(pnb__grove *g)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__grove_part *p = &g->part[s];
        pnb__grove_reader_free(g->reader[s]);
        pnb__free(p->z);
        pnb__free(p->number[0]);
        pnb__free(p->mixing);
        pnb__free(p->constant);
        pnb__free(p->q_mean);
        pnb__free(p->recognise);
        pnb__free(p->factors);
        pnb__free(p->found);
        pnb__free(p->missed);
        pnb__free(p->strayed);
    }
    *g = (pnb__grove){0};
}

pnb__process pnb__grove_process(const pnb__grove *g, int side)
{
    const pnb__grove_part *p = &g->part[side];
    return (pnb__process){.kernel = {g->kind, g->q, 1, p->number[PNB__GROVE_LENGTHSCALE],
                                     p->number[PNB__GROVE_SCALE][0]},
                          .z = p->z,
                          .constant = p->constant,
                          .q_mean = p->q_mean,
                          .factors = p->factors};
}

pnb__lmc_process pnb__grove_lmc_process(const pnb__grove *g, int side)
{
    const pnb__grove_part *p = &g->part[side];
    return (pnb__lmc_process){.kind = g->kind,
                              .z = p->z,
                              .lengthscale = p->number[PNB__GROVE_LENGTHSCALE],
                              .scale = p->number[PNB__GROVE_SCALE],
                              .constant = p->constant,
                              .q_mean = p->q_mean,
                              .factors = p->factors,
                              .mixing = p->mixing};
}

/* ---- learning ---- */

static pnb__gp_kind kind_of(pnb_grove_kernel kernel)
{
    static const pnb__gp_kind kinds[PNB_N_GROVE_KERNELS] = {[PNB_GROVE_RBF] = PNB__GP_RBF,
                                                            [PNB_GROVE_MATERN32] = PNB__GP_MATERN32,
                                                            [PNB_GROVE_MATERN52] = PNB__GP_MATERN52,
                                                            [PNB_GROVE_COSINE] = PNB__GP_COSINE};
    return kinds[kernel];
}

static bool is_weight(double x)
{
    return isnan(x) || (isfinite(x) && x >= 0);
}

static pnb_status check_opts(const pnb_adapter_opts *o, pnb_error *err)
{
    if (!isnan(o->lr) && !(o->lr > 0 && isfinite(o->lr)))
        return pnb__fail(err, PNB_ARG, "lr is %g, it must be above 0", o->lr);
    if (!is_weight(o->elbo_weight) || !is_weight(o->align_weight))
        return pnb__fail(err, PNB_ARG, "elbo-weight is %g and align-weight %g: 0 or more",
                         o->elbo_weight, o->align_weight);
    if (o->epochs < 0 || o->steps < 0 || o->batch_size < 0 || o->latent_dim < 0 || o->inducing < 0)
        return pnb__fail(err, PNB_ARG,
                         "%lld epochs, %lld steps, batches of %lld, %lld axes and %lld inducing "
                         "points: none may be below 0",
                         (long long)o->epochs, (long long)o->steps, (long long)o->batch_size,
                         (long long)o->latent_dim, (long long)o->inducing);
    if (o->epochs != 0 && o->steps != 0)
        return pnb__fail(err, PNB_ARG, "grove: epochs and steps were given, one of them is enough");
    if (o->grove_fit != PNB_GROVE_STEPS && o->batch_size != 0)
        return pnb__fail(err, PNB_ARG,
                         "a collapsed or exact fit is of all pairs at once: no "
                         "batch-size");
    if (o->per_output && (o->shared_covariance || o->grove_fit != PNB_GROVE_STEPS))
        return pnb__fail(err, PNB_ARG,
                         "per-output has a covariance and inducing points for each output: no "
                         "shared-covariance, and no fit but steps");
    return PNB_OK;
}

/* The paper's values for what was not given. Its code counts latents as known too: that is
 * latent_uncertainty, which is about applying. */
static void choose_published(pnb_adapter_opts *o)
{
    if (o->recipe != PNB_ADAPT_RECIPE_PUBLISHED)
        return;
    o->lr = isnan(o->lr) ? 1e-5 : o->lr;
    o->epochs = o->epochs == 0 && o->steps == 0 ? 200 : o->epochs;
    o->elbo_weight = isnan(o->elbo_weight) ? 0.01 : o->elbo_weight;
    o->align_weight = isnan(o->align_weight) ? 400 : o->align_weight;
}

/* Of all kernels of a side the geometric mean. */
static double middle_of(const pnb__grove *g, int side, int number)
{
    size_t n = pnb__grove_n_kernels(g, side);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += log(g->part[side].number[number][i]);
    return exp(sum / (double)n);
}

static void tell(pnb_adapter *a, const pnb__grove_result *result)
{
    static const char *const words[] = {"lengthscale", "scale", "noise"};
    const pnb__grove *g = a->self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        for (int i = 0; i < PNB__GROVE_N_NUMBERS; i++)
            pnb__adapter_tell(a, (pnb_adapter_side)s, words[i], middle_of(g, s, i));
        pnb__adapter_tell(a, (pnb_adapter_side)s, "jitter", result->jitter);
    }
    pnb__adapter_tell(a, PNB_ADAPTER_IMAGES, "loss_first", result->first);
    pnb__adapter_tell(a, PNB_ADAPTER_IMAGES, "loss_last", result->last);
    pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "steps", (double)result->steps);
    if (!isnan(result->best_loss)) {
        pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "val_loss", result->best_loss);
        pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "best_step", result->best_step);
    }
    if (result->jitter > pnb__grove_jitter(g))
        pnb__log(
            a->ctx, PNB_LOG_WARN,
            "grove: k(Z,Z) needed a jitter of %g (%g was asked for): inducing points are close "
            "for the lengthscale",
            result->jitter, pnb__grove_jitter(g));
}

/* Few axes are the paper's; where more than that is shared, rows that differ come to lie together.
 */
static size_t latent_dim(const pnb_adapter *a, const pnb__adapter_job *job)
{
    size_t least = SIZE_MAX;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        least = PNB_MIN(least, PNB_MIN(a->part[s].dim, job->side[s].n));
    if (a->opts.latent_dim != 0)
        return (size_t)a->opts.latent_dim;
    if (a->opts.recipe == PNB_ADAPT_RECIPE_PUBLISHED)
        return PUBLISHED_LATENT_DIM;
    return PNB_MAX(PNB_MIN((size_t)LATENT_DIM, least / 2), (size_t)1);
}

/* Once both sides have their readers. */
static pnb_status find_strays(pnb_adapter *a, pnb_error *err)
{
    pnb_status status = PNB_OK;
    bool is_wanted = a->opts.latent_uncertainty == PNB_GROVE_LATENT_COUNTERPARTS;
    for (int s = 0; is_wanted && s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        status = pnb__grove_find_strays(a->self, s, err);
    return status;
}

static pnb_status fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    pnb__grove *g = a->self;
    const pnb_adapter_opts *o = &a->opts;
    pnb__grove_pairs pairs = {0};
    pnb__grove_result result;
    pnb_status status;
    choose_published(&a->opts);
    PNB_TRY(check_opts(o, err));
    g->kind = kind_of(o->kernel);
    g->q = latent_dim(a, job);
    g->m = INDUCING;
    g->is_mixed = o->per_output;
    g->is_shared = o->shared_covariance || o->grove_fit != PNB_GROVE_STEPS;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        g->part[s].d = a->part[s].dim;
    PNB_TRY(pnb__grove_start(g, a->ctx, job, o, &pairs, err));
    const pnb__grove_run run = {o, job->data, {a->calls->fields, a->calls->n_fields, o}};
    PNB_TRY(pnb__grove_train(g, a->ctx, &pairs, &run, &result, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(pnb__grove_recognise(g, a->ctx, &pairs, s, err));
        PNB_TRY(pnb__grove_reader_make(g, s, a->ctx, err));
        PNB_TRY(pnb__grove_find_misses(g, s, &pairs, err));
    }
    PNB_TRY(find_strays(a, err));
    tell(a, &result);
done:
    pnb__grove_pairs_reset(&pairs);
    return status;
}

/* ---- files ---- */

static pnb_status put_factors(const pnb__grove *g, int side, pnb__adapter_arrays *to,
                              pnb_error *err)
{
    size_t bytes = pnb__grove_factor_bytes(g, side);
    pnb_array_view view = {.name = names[side][FACTORS],
                           .dtype = g->is_shared ? PNB_F64 : PNB_F32,
                           .n_dims = 1,
                           .data = g->part[side].factors,
                           .n_bytes = bytes};
    view.shape[0] = (int64_t)(bytes / pnb_dtype_size(view.dtype));
    return PNB_PUSH(to->views, to->n, err, view);
}

static pnb_status arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err)
{
    const pnb__grove *g = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        const pnb__grove_part *p = &g->part[s];
        PNB_TRY(
            pnb__adapter_put(to, names[s][Z], p->z, pnb__grove_n_kernels(g, s) * g->m, g->q, err));
        PNB_TRY(pnb__adapter_put(to, names[s][KERNEL], p->number[0], n_numbers(g, s), 0, err));
        if (g->is_mixed)
            PNB_TRY(pnb__adapter_put(to, names[s][MIXING], p->mixing, p->d, p->d, err));
        PNB_TRY(pnb__adapter_put(to, names[s][CONSTANT], p->constant, p->d, 0, err));
        PNB_TRY(pnb__adapter_put(to, names[s][Q_MEAN], p->q_mean, p->d, g->m, err));
        PNB_TRY(pnb__adapter_put(to, names[s][RECOGNISE], p->recognise, g->q, p->d + 1, err));
        PNB_TRY(pnb__adapter_put(to, names[s][FOUND], p->found, p->n_missed, g->q, err));
        PNB_TRY(pnb__adapter_put(to, names[s][MISSED], p->missed, p->n_missed, g->q, err));
        PNB_TRY(put_factors(g, s, to, err));
    }
done:
    return status;
}

/* Sizes of a side, from the file: z says M and Q, and the others must fit them. */
static pnb_status find_sizes(pnb__grove *g, const pnb_safetensors *file, int side,
                             const char *where, pnb_error *err)
{
    const pnb_array_view *z = pnb_safetensors_find(file, names[side][Z]);
    g->is_mixed = pnb_safetensors_find(file, names[side][MIXING]) != NULL;
    int64_t kernels = (int64_t)pnb__grove_n_kernels(g, side);
    if (z == NULL || z->n_dims != 2 || z->shape[0] < 1 || z->shape[0] % kernels != 0 ||
        z->shape[0] / kernels > MOST_POINTS || z->shape[1] < 1 ||
        (size_t)z->shape[1] >= g->part[side].d)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: %s is missing or not (%lld M,Q) with M up to %d and Q below the "
                         "width %zu",
                         where, names[side][Z], (long long)kernels, (int)MOST_POINTS,
                         g->part[side].d);
    g->m = (size_t)(z->shape[0] / kernels);
    g->q = (size_t)z->shape[1];
    const pnb_array_view *found = pnb_safetensors_find(file, names[side][FOUND]);
    if (found == NULL || found->n_dims != 2 || found->shape[0] < 1 ||
        found->shape[0] > PNB__GROVE_SAMPLE)
        return pnb__fail(err, PNB_FORMAT, "%s: %s is missing or not (S,Q) with S up to %d", where,
                         names[side][FOUND], (int)PNB__GROVE_SAMPLE);
    g->part[side].n_missed = (size_t)found->shape[0];
    return PNB_OK;
}

static pnb_status get_factors(pnb__grove *g, int side, const pnb_safetensors *file,
                              const char *where, pnb_error *err)
{
    const pnb_array_view *a = pnb_safetensors_find(file, names[side][FACTORS]);
    void *out = g->part[side].factors;
    size_t each = pnb_dtype_size(a->dtype), bytes = pnb__grove_factor_bytes(g, side);
    size_t n = bytes / each, lists = pnb__grove_n_kernels(g, side);
    size_t n_factors = pnb__grove_n_factors(g, side);
    for (size_t l = 0; a->n_bytes != bytes && l < lists; l++)
        pnb__factors_from_before(g->m, n_factors, each,
                                 (const char *)a->data + l * (a->n_bytes / lists),
                                 (char *)out + l * (bytes / lists));
    if (a->n_bytes == bytes)
        memcpy(out, a->data, bytes);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(g->is_shared ? ((double *)out)[i] : (double)((float *)out)[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s: number %zu of %s is not finite", where, i,
                             names[side][FACTORS]);
    return PNB_OK;
}

/* All arrays are there and fit, before memory is taken for them. */
static pnb_status find_arrays(pnb__grove *g, int side, const pnb_safetensors *file,
                              const char *where, pnb_error *err)
{
    size_t m = g->m, d = g->part[side].d, s = g->part[side].n_missed;
    pnb_status status;
    PNB_TRY(pnb__adapter_find(file, names[side][KERNEL], n_numbers(g, side), 0, where, err));
    if (g->is_mixed)
        PNB_TRY(pnb__adapter_find(file, names[side][MIXING], d, d, where, err));
    PNB_TRY(pnb__adapter_find(file, names[side][CONSTANT], d, 0, where, err));
    PNB_TRY(pnb__adapter_find(file, names[side][Q_MEAN], d, m, where, err));
    PNB_TRY(pnb__adapter_find(file, names[side][RECOGNISE], g->q, d + 1, where, err));
    PNB_TRY(pnb__adapter_find(file, names[side][FOUND], s, g->q, where, err));
    PNB_TRY(pnb__adapter_find(file, names[side][MISSED], s, g->q, where, err));
    const pnb_array_view *a = pnb_safetensors_find(file, names[side][FACTORS]);
    if (a == NULL || (a->dtype != PNB_F32 && a->dtype != PNB_F64) || a->n_dims != 1)
        return pnb__fail(err, PNB_FORMAT, "%s: %s is missing, or no list of F32 or F64", where,
                         names[side][FACTORS]);
    g->is_shared = a->dtype == PNB_F64;
    if (g->is_shared && g->is_mixed)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: %s has processes of their own and one covariance",
                          where, names[side][MIXING]));
    size_t before = pnb__grove_n_kernels(g, side) * pnb_dtype_size(a->dtype) *
                    pnb__factors_size_before(m, pnb__grove_n_factors(g, side));
    if (a->n_bytes != pnb__grove_factor_bytes(g, side) && a->n_bytes != before)
        return pnb__fail(err, PNB_SHAPE, "%s: %s has %lld numbers, wanted %zu", where,
                         names[side][FACTORS], (long long)a->shape[0],
                         pnb__grove_factor_bytes(g, side) / pnb_dtype_size(a->dtype));
done:
    return status;
}

static pnb_status open_side(pnb__grove *g, int side, const pnb_ctx *ctx,
                            const pnb_safetensors *file, const char *where, pnb_error *err)
{
    pnb__grove_part *p = &g->part[side];
    pnb_status status;
    PNB_TRY(find_sizes(g, file, side, where, err));
    PNB_TRY(find_arrays(g, side, file, where, err));
    PNB_TRY(pnb__grove_alloc(g, side, err));
    size_t n_points = pnb__grove_n_kernels(g, side) * g->m, n = n_numbers(g, side);
    PNB_TRY(pnb__adapter_get(file, names[side][Z], p->z, n_points, g->q, where, err));
    PNB_TRY(pnb__adapter_get(file, names[side][KERNEL], p->number[0], n, 0, where, err));
    if (g->is_mixed)
        PNB_TRY(pnb__adapter_get(file, names[side][MIXING], p->mixing, p->d, p->d, where, err));
    PNB_TRY(pnb__adapter_get(file, names[side][CONSTANT], p->constant, p->d, 0, where, err));
    PNB_TRY(pnb__adapter_get(file, names[side][Q_MEAN], p->q_mean, p->d, g->m, where, err));
    PNB_TRY(
        pnb__adapter_get(file, names[side][RECOGNISE], p->recognise, g->q, p->d + 1, where, err));
    PNB_TRY(pnb__adapter_get(file, names[side][FOUND], p->found, p->n_missed, g->q, where, err));
    PNB_TRY(pnb__adapter_get(file, names[side][MISSED], p->missed, p->n_missed, g->q, where, err));
    PNB_TRY(get_factors(g, side, file, where, err));
    for (size_t i = 0; i < n; i++)
        if (!(p->number[0][i] > 0))
            return pnb__fail(err, PNB_NUMERIC, "%s: number %zu of %s is %g, it must be above 0",
                             where, i, names[side][KERNEL], p->number[0][i]);
    g->unit = p->number[0][n - 1];
    status = pnb__grove_reader_make(g, side, ctx, err);
done:
    return status;
}

static pnb_status open_file(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                            pnb_error *err)
{
    pnb__grove *g = a->self;
    size_t m = 0, q = 0;
    double unit = 0;
    bool is_mixed = false;
    pnb_status status;
    PNB_TRY(pnb__adapter_check_kept(a, where, err));
    g->kind = kind_of(a->opts.kernel);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        if (!a->part[s].is_adapted)
            return pnb__fail(err, PNB_FORMAT, "%s: grove adapts both sides", where);
        g->part[s].d = a->part[s].dim;
        PNB_TRY(open_side(g, s, a->ctx, file, where, err));
        if (s > 0 && (g->m != m || g->q != q || g->unit != unit || g->is_mixed != is_mixed ||
                      g->part[s].n_missed != g->part[0].n_missed))
            return pnb__fail(
                err, PNB_FORMAT,
                "%s: the sides differ in inducing points, latent axes, unit, mixing or the "
                "sample of pairs",
                where);
        m = g->m;
        q = g->q;
        unit = g->unit;
        is_mixed = g->is_mixed;
    }
    status = find_strays(a, err);
done:
    return status;
}

/* ---- applying ---- */

static pnb_status apply(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err)
{
    return pnb__grove_read(a->self, &a->opts, block, err);
}

/* Only the alignment compares outputs; a fit of all pairs at once has none. */
static bool is_apart(const pnb_adapter *a, bool has_model)
{
    (void)has_model;
    return a->opts.align_weight == 0 || a->opts.grove_fit != PNB_GROVE_STEPS;
}

static void reset(void *self)
{
    pnb__grove_reset(self);
}

/* ---- options ---- */

static const char *fit_word(int value)
{
    return pnb__name_at(PNB_NAMES(PNB_GROVE_FIT_LIST), (unsigned)value, NULL);
}
static const char *kernel_word(int value)
{
    return pnb__name_at(PNB_NAMES(PNB_GROVE_KERNEL_LIST), (unsigned)value, NULL);
}
static const char *align_word(int value)
{
    return pnb__name_at(PNB_NAMES(PNB_GROVE_ALIGN_LIST), (unsigned)value, NULL);
}
static const char *latent_word(int value)
{
    return pnb__name_at(PNB_NAMES(PNB_GROVE_LATENT_LIST), (unsigned)value, NULL);
}
static const char *inference_word(int value)
{
    return pnb__name_at(PNB_NAMES(PNB_GROVE_INFERENCE_LIST), (unsigned)value, NULL);
}

#define AT(field) offsetof(pnb_adapter_opts, field)
static const pnb__field fields[] = {
    {"seed", AT(seed), NULL, PNB__FIELD_U64, true, PNB__ALSO_NONE},
    {"recipe", AT(recipe), pnb__adapt_recipe_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"captions", AT(texts), pnb__adapt_texts_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"epochs", AT(epochs), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"steps", AT(steps), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"batch_size", AT(batch_size), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"patience", AT(patience), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"lr", AT(lr), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NAN},
    {"latent_dim", AT(latent_dim), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"inducing", AT(inducing), NULL, PNB__FIELD_I64, true, PNB__ALSO_NONE},
    {"fit", AT(grove_fit), fit_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"kernel", AT(kernel), kernel_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"align", AT(align), align_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
    {"elbo_weight", AT(elbo_weight), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NAN},
    {"align_weight", AT(align_weight), NULL, PNB__FIELD_DOUBLE, true, PNB__ALSO_NAN},
    {"shared_covariance", AT(shared_covariance), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"per_output", AT(per_output), NULL, PNB__FIELD_BOOL, true, PNB__ALSO_NONE},
    {"latent_uncertainty", AT(latent_uncertainty), latent_word, PNB__FIELD_ENUM, true,
     PNB__ALSO_NONE},
    {"inference", AT(inference), inference_word, PNB__FIELD_ENUM, true, PNB__ALSO_NONE},
};
#undef AT

const pnb__adapter_calls pnb__adapter_grove = {.self_bytes = sizeof(pnb__grove),
                                               .fields = fields,
                                               .n_fields = PNB_COUNT(fields),
                                               .fit = fit,
                                               .open = open_file,
                                               .arrays = arrays,
                                               .apply = apply,
                                               .is_apart = is_apart,
                                               .draws = true,
                                               .reset = reset};
