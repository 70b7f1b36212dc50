/* Golden family bprw, by what a case holds: EM mixing weights, BPRW with given noise, prompt
 * filters and ensembling, traversal (case_hcaps.c). Filters are named in the case as the released
 * functions; each is looked up in the table below. */
#include <math.h>
#include <string.h>

#include "eval/zeroshot/prompts.h"
#include "tests/golden/golden.h"

/* Most steps that a case may ask for in a name: pi_K are the weights after K steps. */
enum { MAX_NAMED_STEPS = 1000 };

/* `name` NULL, for a case that does not say, is uniform, as in the released code. */
static pnb_status read_prior(const char *name, pnb_em_prior *out, pnb_error *err)
{
    static const struct {
        const char *name;
        pnb_em_prior prior;
    } priors[] = {{"uniform", PNB_EM_UNIFORM},
                  {"inverse", PNB_EM_INVERSE},
                  {"inverse_sq", PNB_EM_INVERSE_SQ},
                  {"inverse_5", PNB_EM_INVERSE_5}};
    *out = PNB_EM_UNIFORM;
    if (name == NULL)
        return PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(priors); i++)
        if (strcmp(name, priors[i].name) == 0) {
            *out = priors[i].prior;
            return PNB_OK;
        }
    return pnb__fail(err, PNB_UNSUPPORTED, "prior \"%s\"", name);
}

/* As the released code computes. */
static pnb_em_opts released(double alpha, double var_scale, double eps, pnb_em_prior prior)
{
    pnb_em_opts o = pnb_em_opts_default();
    o.alpha = alpha;
    o.var_scale = var_scale;
    o.eps = eps;
    o.scale_twice = o.one_step_old = true;
    o.prior = prior;
    return o;
}

/* ---- em_* ---- */

/* pi_init, every pi_K that is asked for, and at last the result. */
static pnb_status give_weights(golden_case *c, const pnb_em_data *x, pnb_em_opts *o, double *weight,
                               pnb_error *err)
{
    double last = golden_number(c, "max_iter", 1000);
    pnb_status status = PNB_OK;
    char name[32];
    for (size_t k = 0; k <= MAX_NAMED_STEPS && status == PNB_OK; k++) {
        snprintf(name, sizeof name, k == 0 ? "pi_init" : "pi_%zu", k);
        if (!golden_wants(c, name))
            continue;
        o->max_steps = k;
        status = pnb_em_mixing_weights(x, o, weight, NULL, err);
        if (status == PNB_OK)
            golden_give(c, name, weight, x->n_components);
    }
    o->max_steps = last >= 0 ? (size_t)last : 0;
    if (status == PNB_OK)
        status = pnb_em_mixing_weights(x, o, weight, NULL, err);
    if (status == PNB_OK) {
        golden_give(c, "pi", weight, x->n_components);
        golden_give(c, "final_f32", weight, x->n_components);
    }
    return status;
}

static void give_aggregate(golden_case *c, const pnb_em_data *x, const double *weight)
{
    double *mean = pnb__alloc_zero(x->dim, sizeof *mean),
           *var = pnb__alloc_zero(x->dim, sizeof *var);
    for (size_t n = 0; n < x->n_components; n++)
        for (size_t d = 0; d < x->dim; d++) {
            mean[d] += weight[n] * x->mean[n * x->dim + d];
            var[d] += weight[n] * weight[n] * x->var[n * x->dim + d];
        }
    golden_give(c, "aggregated_mean", mean, x->dim);
    golden_give(c, "aggregated_var", var, x->dim);
    pnb__free(mean);
    pnb__free(var);
}

static pnb_status run_em(golden_case *c, pnb_error *err)
{
    const pnb_array_view *points = golden_find(c, "observations"), *means = golden_find(c, "means");
    if (points == NULL || means == NULL || points->n_dims != 2 || means->n_dims != 2)
        return pnb__fail(err, PNB_FORMAT, "observations and means of rank 2 are wanted");
    double *x = golden_f64(c, "observations", NULL, err), *mean = golden_f64(c, "means", NULL, err);
    double *var = golden_f64(c, "vars", NULL, err);
    size_t n = (size_t)means->shape[0];
    double *weight = pnb__alloc_array(n, sizeof *weight);
    pnb_em_prior prior;
    pnb_status status = PNB_OK;
    if (x == NULL || mean == NULL || var == NULL || weight == NULL)
        PNB_TRY(pnb__fail(err, PNB_NOMEM, "the case's tensors"));
    PNB_TRY(read_prior(json_string_value(golden_value(c, "prior")), &prior, err));
    pnb_em_opts o = released(golden_number(c, "alpha", 100), golden_number(c, "var_multi", 1),
                             golden_number(c, "stable_eps", 0), prior);
    o.tolerance = golden_number(c, "tol", 1e-12);
    const pnb_em_data data = {(size_t)points->shape[0], n, (size_t)means->shape[1], x, mean, var};
    PNB_TRY(give_weights(c, &data, &o, weight, err));
    give_aggregate(c, &data, weight);
done:
    pnb__free(x);
    pnb__free(mean);
    pnb__free(var);
    pnb__free(weight);
    return status;
}

/* ---- prompts of a case: means and vars (classes, templates, D) ---- */

typedef struct prompt_case {
    pnb_prompts prompts;
    size_t n_templates;
    size_t *offset;
    float *mean, *var;
} prompt_case;

static void prompt_case_reset(prompt_case *p)
{
    pnb__free(p->offset);
    pnb__free(p->mean);
    pnb__free(p->var);
}

static pnb_status read_prompts(const golden_case *c, prompt_case *p, pnb_error *err)
{
    const pnb_array_view *means = golden_find(c, "means");
    *p = (prompt_case){0};
    if (means == NULL || means->n_dims != 3)
        return pnb__fail(err, PNB_FORMAT, "means of rank 3 are wanted");
    size_t n_classes = (size_t)means->shape[0];
    p->n_templates = (size_t)means->shape[1];
    p->mean = golden_f32(c, "means", NULL, err);
    p->var = golden_f32(c, "vars", NULL, err);
    p->offset = pnb__alloc_array(n_classes + 1, sizeof *p->offset);
    if (p->mean == NULL || p->var == NULL || p->offset == NULL)
        return pnb__fail(err, PNB_NOMEM, "the case's tensors");
    for (size_t i = 0; i <= n_classes; i++)
        p->offset[i] = i * p->n_templates;
    p->prompts = (pnb_prompts){.n_classes = n_classes,
                               .dim = (size_t)means->shape[2],
                               .offset = p->offset,
                               .mean = p->mean,
                               .var = p->var};
    return PNB_OK;
}

/* [K][D] given as [D][K]. */
static void give_transposed(golden_case *c, const char *name, const double *values,
                            size_t n_classes, size_t dim)
{
    double *turned = pnb__alloc_array(n_classes * dim, sizeof *turned);
    for (size_t k = 0; k < n_classes; k++)
        for (size_t d = 0; d < dim; d++)
            turned[d * n_classes + k] = values[k * dim + d];
    golden_give(c, name, turned, n_classes * dim);
    pnb__free(turned);
}

static void give_classifier(golden_case *c, const char *name, const pnb_classifier *made)
{
    char full[96];
    const char *dot = name[0] != '\0' ? "." : "";
    snprintf(full, sizeof full, "%s%sclassifier", name, dot);
    give_transposed(c, full, made->mean, made->n_classes, made->dim);
    snprintf(full, sizeof full, "%s%svar", name, dot);
    give_transposed(c, full, made->var, made->n_classes, made->dim);
}

/* ---- filters ---- */

static pnb_status apply_filter(const prompt_case *p, const char *function, const json_t *value,
                               const double *u, double *weight, pnb_error *err)
{
    static const struct {
        const char *function;
        pnb_prompt_filter filter;
    } filters[] = {{"by_std_values_per_class", PNB_FILTER_PROMPTS_CLASS_STD},
                   {"by_std_values_all", PNB_FILTER_PROMPTS_GLOBAL_TOP},
                   {"by_ranking", PNB_FILTER_PROMPTS_TOP_K},
                   {"by_abs_value", PNB_FILTER_PROMPTS_GLOBAL}};
    size_t n_classes = p->prompts.n_classes;
    if (json_is_array(value)) {
        size_t *k = pnb__alloc_array(n_classes, sizeof *k);
        for (size_t i = 0; i < n_classes; i++)
            k[i] = (size_t)json_integer_value(json_array_get(value, i));
        pnb_status status = pnb_prompts_top_k(k, p->offset, n_classes, u, weight, err);
        pnb__free(k);
        return status;
    }
    double number = json_number_value(value);
    for (size_t i = 0; i < PNB_COUNT(filters); i++) {
        if (strcmp(function, filters[i].function) != 0)
            continue;
        /* The limit may be one of the sums, which another order of adding rounds differently. */
        if (filters[i].filter == PNB_FILTER_PROMPTS_GLOBAL)
            number += 1e-13 * fabs(number);
        return pnb_prompts_filter(filters[i].filter, number, p->offset, n_classes, u, weight, err);
    }
    return pnb__fail(err, PNB_UNSUPPORTED, "filter %s", function);
}

/* logits = 100 f.W, and - 50 sum(var) of the class. */
static pnb_status give_logits(golden_case *c, const pnb_classifier *made, pnb_error *err)
{
    size_t n = 0, n_classes = made->n_classes, dim = made->dim;
    double *f = golden_f64(c, "image_mean", &n, err);
    if (f == NULL)
        return PNB_NOT_FOUND;
    n /= dim;
    double *plain = pnb__alloc_array(n * n_classes, sizeof *plain);
    double *unsure = pnb__alloc_array(n * n_classes, sizeof *unsure);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_classes; k++) {
            double dot = 0, trace = 0;
            for (size_t d = 0; d < dim; d++) {
                dot += f[i * dim + d] * made->mean[k * dim + d];
                trace += made->var[k * dim + d];
            }
            plain[i * n_classes + k] = 100 * dot;
            unsure[i * n_classes + k] = 100 * dot - 50 * trace;
        }
    golden_give(c, "logits", plain, n * n_classes);
    golden_give(c, "unc_logits", unsure, n * n_classes);
    pnb__free(f);
    pnb__free(plain);
    pnb__free(unsure);
    return PNB_OK;
}

static pnb_status run_filters(golden_case *c, pnb_error *err)
{
    prompt_case p;
    pnb_classifier made = {0};
    double *u = NULL, *weight = NULL;
    pnb_status status = read_prompts(c, &p, err);
    if (status != PNB_OK)
        goto done;
    size_t n = p.offset[p.prompts.n_classes];
    u = pnb__alloc_array(n, sizeof *u);
    weight = pnb__alloc_array(n, sizeof *weight);
    PNB_TRY(pnb_prompts_uncertainty(&p.prompts, u, err));
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)golden_value(c, "coeffs"), name, entry)
    {
        const char *function = json_string_value(json_array_get(entry, 0));
        PNB_TRY(apply_filter(&p, function != NULL ? function : "", json_array_get(entry, 1), u,
                             weight, err));
        PNB_TRY(pnb_classifier_build(&made, &p.prompts, weight, NULL, err));
        give_classifier(c, name, &made);
        pnb_classifier_reset(&made);
    }
    PNB_TRY(pnb_classifier_build(&made, &p.prompts, NULL, NULL, err));
    give_classifier(c, "ensemble", &made);
    if (golden_wants(c, "logits"))
        PNB_TRY(give_logits(c, &made, err));
done:
    pnb_classifier_reset(&made);
    pnb__free(u);
    pnb__free(weight);
    prompt_case_reset(&p);
    return status;
}

/* ---- bprw ---- */

/* "alpha-multiplier-NN-K-eps-prior", or the released defaults where the text has not six parts. */
typedef struct coeff {
    double alpha, scale, eps;
    int nearest, samples;
    char prior[32];
} coeff;

static pnb_status read_coeff(const golden_case *c, bool labelled, coeff *out, pnb_error *err)
{
    const char *text = json_string_value(golden_value(c, "coeff"));
    if (text == NULL || sscanf(text, "%lf-%lf-%d-%d-%lf-%31s", &out->alpha, &out->scale,
                               &out->nearest, &out->samples, &out->eps, out->prior) != 6)
        *out = (coeff){100, 1, 0, 100, 10, "uniform"};
    if (out->nearest < 1 || out->samples < 1)
        return pnb__fail(err, PNB_FORMAT, "%d pictures a class, %d samples each", out->nearest,
                         out->samples);
    if (labelled) /* ImageNet has 50 pictures a class */
        out->nearest = PNB_MIN(out->nearest, 50);
    return PNB_OK;
}

/* Points of class k: mean + eps exp(log_var / 2) of each neighbour and sample. */
static void make_points(const pnb_gaussians *images, const int64_t *row, const coeff *o,
                        const double *noise, double *points)
{
    size_t dim = images->dim, n_samples = (size_t)o->samples;
    for (size_t i = 0; i < (size_t)o->nearest * n_samples; i++) {
        size_t at = (size_t)row[i / n_samples] * dim;
        for (size_t d = 0; d < dim; d++)
            points[i * dim + d] = (double)images->mean[at + d] +
                                  noise[i * dim + d] * exp(0.5 * (double)images->log_var[at + d]);
    }
}

/* "use_gt", as a flag or a number. */
static bool is_labelled(const golden_case *c)
{
    return golden_flag(c, "use_gt", golden_number(c, "use_gt", 0) != 0);
}

/* The nearest pictures, or with labels pictures 50 c, 50 c + 1, ... as the released code has it for
 * ImageNet; fewer a class where the case holds fewer. */
static pnb_status choose(const golden_case *c, const prompt_case *p, const pnb_gaussians *images,
                         const coeff *o, int64_t *row, pnb_error *err)
{
    size_t nearest = (size_t)o->nearest, n_classes = p->prompts.n_classes, of_class = 50;
    if (nearest > images->n)
        return pnb__fail(err, PNB_FORMAT, "%zu pictures a class of %zu", nearest, images->n);
    if (!is_labelled(c))
        return pnb__bprw_nearest(c->ctx, &p->prompts, images, nearest, row, err);
    if (of_class * (n_classes - 1) + nearest > images->n)
        of_class = images->n / n_classes;
    if (of_class * (n_classes - 1) + nearest > images->n)
        return pnb__fail(err, PNB_FORMAT, "%zu pictures for %zu classes", images->n, n_classes);
    for (size_t i = 0; i < n_classes * nearest; i++)
        row[i] = (int64_t)(of_class * (i / nearest) + i % nearest);
    return PNB_OK;
}

static pnb_status give_bprw(golden_case *c, const prompt_case *p, const double *weight,
                            const int64_t *row, size_t nearest, pnb_error *err)
{
    const pnb_classifier_opts opts = {.normalise = false, .variance = PNB_CLASS_VARIANCE_SQUARED};
    size_t n_classes = p->prompts.n_classes;
    pnb_classifier made;
    double *rows = pnb__alloc_array(n_classes * nearest, sizeof *rows);
    for (size_t i = 0; i < n_classes * nearest; i++)
        rows[i] = (double)row[i];
    golden_give(c, "neighbours", rows, n_classes * nearest);
    golden_give(c, "weights", weight, p->offset[n_classes]);
    pnb__free(rows);
    pnb_status status = pnb_classifier_build(&made, &p->prompts, weight, &opts, err);
    if (status == PNB_OK)
        give_classifier(c, "", &made);
    pnb_classifier_reset(&made);
    return status;
}

static pnb_status run_bprw(golden_case *c, pnb_error *err)
{
    prompt_case p = {0};
    coeff o;
    pnb_em_prior prior;
    float *mean = golden_f32(c, "image_mean", NULL, err);
    float *log_var = golden_f32(c, "image_logvar", NULL, err);
    size_t n_noise = 0;
    double *noise = golden_f64(c, "eps", &n_noise, err), *points = NULL, *weight = NULL;
    int64_t *row = NULL;
    pnb_status status;
    if (mean == NULL || log_var == NULL || noise == NULL)
        PNB_TRY(pnb__fail(err, PNB_NOMEM, "the case's tensors"));
    PNB_TRY(read_coeff(c, is_labelled(c), &o, err));
    PNB_TRY(read_prior(o.prior, &prior, err));
    PNB_TRY(read_prompts(c, &p, err));
    size_t n_classes = p.prompts.n_classes, dim = p.prompts.dim;
    size_t nearest = (size_t)o.nearest, n_points = nearest * (size_t)o.samples;
    const pnb_gaussians images = {.n = (size_t)golden_find(c, "image_mean")->shape[0],
                                  .dim = dim,
                                  .mean = mean,
                                  .log_var = log_var};
    if (n_noise != n_classes * n_points * dim)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "eps of %zu values for %zu classes of %zu points of %zu",
                          n_noise, n_classes, n_points, dim));
    row = pnb__alloc_array(n_classes * nearest, sizeof *row);
    points = pnb__alloc_array(n_points * dim, sizeof *points);
    weight = pnb__alloc_array(p.offset[n_classes], sizeof *weight);
    PNB_TRY(choose(c, &p, &images, &o, row, err));
    const pnb_em_opts opts = released(o.alpha, o.scale, o.eps, prior);
    for (size_t k = 0; k < n_classes; k++) {
        make_points(&images, row + k * nearest, &o, noise + k * n_points * dim, points);
        PNB_TRY(pnb__bprw_class(&p.prompts, k, points, n_points, &opts, weight + p.offset[k], NULL,
                                err));
    }
    PNB_TRY(give_bprw(c, &p, weight, row, nearest, err));
done:
    pnb__free(mean);
    pnb__free(log_var);
    pnb__free(noise);
    pnb__free(points);
    pnb__free(weight);
    pnb__free(row);
    prompt_case_reset(&p);
    return status;
}

pnb_status golden_family_bprw(golden_case *c, pnb_error *err)
{
    static const struct {
        const char *tensor; /* the first one found decides */
        golden_family_fn run;
    } kinds[] = {
        {"unc_root_index", golden_case_hcaps},
        {"observations", run_em},
        {"eps", run_bprw},
        {"means", run_filters},
    };
    for (size_t i = 0; i < PNB_COUNT(kinds); i++)
        if (golden_find(c, kinds[i].tensor) != NULL)
            return kinds[i].run(c, err);
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "the case holds neither points, noise, prompts nor a traversal");
}
