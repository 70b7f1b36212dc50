/* The probability that a pair matches, learned from true pairs, and how good it is on other
 * queries.
 *
 * Queries with a match are split by seed. On one part a sigmoid and an isotonic regression of the
 * score are fitted to all its pairs, a sigmoid to its first hits, and conformal coordinates are
 * kept; the other part says how good they are, which of the two fits to take, and which conformal
 * coordinate gives the smallest lists. Since nothing of the second part enters the cut-offs,
 * choosing by it leaves their coverage intact. With folds every query is assessed by a fit on the
 * other folds, and the fit that is kept is on all. docs/numerics.md#calibrated-probability */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "eval/calibration/match_pairs.h"

enum { MIN_QUERIES = 10, MAX_CONFORMAL = 10000 };

PNB_DEFINE_NAME(pnb_match_estimator_name, pnb_match_estimator, PNB_NAMES(PNB_MATCH_ESTIMATOR_LIST),
                "unknown")

pnb_match_opts pnb_match_opts_default(void)
{
    return (pnb_match_opts){.search = pnb_search_opts_default(),
                            .method = PNB_MATCH_BOTH,
                            .holdout = 0.3,
                            .max_pairs = 2000000,
                            .n_bins = 15,
                            .model_a = (double)NAN,
                            .model_b = (double)NAN,
                            .alpha = {0.01, 0.05, 0.1, 0.2},
                            .n_alphas = 4};
}

void pnb_match_probability_fit_reset(pnb_match_probability_fit *fit)
{
    if (fit == NULL)
        return;
    pnb_isotonic_reset(&fit->isotonic);
    pnb_conformal_reset(&fit->conformal);
    *fit = (pnb_match_probability_fit){0};
}

double pnb_match_probability_fit_apply(const pnb_match_probability_fit *fit, double score,
                                       size_t n_gallery)
{
    double p = fit->method == PNB_MATCH_ISOTONIC ? pnb_isotonic_apply(&fit->isotonic, score)
                                                 : pnb_platt_apply(&fit->platt, score);
    if (n_gallery == 0 || n_gallery == fit->n_gallery)
        return p;
    if (fit->depth > 0)
        return (double)NAN;
    double odds = p * ((double)fit->n_gallery / (double)n_gallery);
    return odds / (odds + (1.0 - p));
}

/* ---- the two parts ---- */

typedef struct part {
    uint32_t *query; /* [n] in the order of the shuffle */
    size_t n;
    size_t n_matches;
    double base_rate;        /* share of matches among the pairs, sampled or not */
    pnb_scored pairs, first; /* first: one row a query */
    double *score, *weight, *first_score;
    int *label, *first_label;
} part;

static void reset_part(part *p)
{
    pnb__free(p->score);
    pnb__free(p->weight);
    pnb__free(p->label);
    pnb__free(p->first_score);
    pnb__free(p->first_label);
    *p = (part){0};
}

static pnb_status alloc_part(part *p, size_t n_pairs, pnb_error *err)
{
    if (PNB_ALLOC(p->score, n_pairs, err) != PNB_OK ||
        PNB_ALLOC(p->weight, n_pairs, err) != PNB_OK ||
        PNB_ALLOC(p->label, n_pairs, err) != PNB_OK ||
        PNB_ALLOC(p->first_score, p->n, err) != PNB_OK ||
        PNB_ALLOC(p->first_label, p->n, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

/* Pairs of a query that enter the fit; the first of them are its first hits, best first. */
static size_t n_pairs_of(const pnb__match_pairs *all, size_t q, size_t depth)
{
    size_t n = all->offset[q + 1] - all->offset[q];
    return depth > 0 ? PNB_MIN(depth, n) : n;
}

/* Copies the pairs of the part's queries next to each other. */
static pnb_status gather(part *p, const pnb__match_pairs *all, size_t depth, pnb_error *err)
{
    size_t n = 0, at = 0, n_rows = depth > 0 ? PNB_MIN(depth, all->n_items) : all->n_items;
    for (size_t i = 0; i < p->n; i++)
        n += n_pairs_of(all, p->query[i], depth);
    pnb_status status = alloc_part(p, n, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < p->n; i++) {
        size_t q = p->query[i], from = all->offset[q], n_pairs = n_pairs_of(all, q, depth);
        memcpy(p->score + at, all->score + from, n_pairs * sizeof(double));
        memcpy(p->weight + at, all->weight + from, n_pairs * sizeof(double));
        memcpy(p->label + at, all->label + from, n_pairs * sizeof(int));
        for (size_t k = 0; k < n_pairs; k++)
            p->n_matches += (size_t)all->label[from + k];
        at += n_pairs;
        p->first_score[i] = all->first[q];
        p->first_label[i] = all->first_label[q];
    }
    p->pairs = (pnb_scored){n, p->score, p->label, p->weight};
    p->first = (pnb_scored){p->n, p->first_score, p->first_label, NULL};
    p->base_rate = (double)p->n_matches / (double)p->n / (double)n_rows;
    return PNB_OK;
}

typedef struct split {
    uint32_t *order; /* queries with a match, shuffled */
    size_t n;
    part fit, held;                   /* of the fit that is kept, and all that are assessed */
    size_t n_folds;                   /* 1: the held-out part */
    size_t border[PNB_MAX_FOLDS + 1]; /* of the folds in `order` */
    pnb_match_probability_fit own[PNB_MAX_FOLDS]; /* with folds: without fold f */
    const pnb_match_probability_fit
        *assessed[PNB_MAX_FOLDS]; /* what judges the queries of fold f */
} split;

static void reset_split(split *s)
{
    for (size_t f = 0; f < s->n_folds; f++)
        pnb_match_probability_fit_reset(&s->own[f]);
    pnb__free(s->order);
    reset_part(&s->fit);
    reset_part(&s->held);
}

/* Which queries are fitted on and which are assessed. */
static pnb_status cut(split *s, const pnb_match_opts *o, pnb_error *err)
{
    size_t n_held = (size_t)(o->holdout * (double)s->n + 0.5);
    n_held = PNB_MIN(PNB_MAX(n_held, (size_t)2), s->n - 2);
    if (o->n_folds > s->n / 2)
        return pnb__fail(err, PNB_ARG,
                         "%zu folds of %zu queries with a match; at most %zu are possible",
                         o->n_folds, s->n, s->n / 2);
    s->n_folds = PNB_MAX(o->n_folds, (size_t)1);
    s->held = (part){.query = s->order, .n = o->n_folds > 0 ? s->n : n_held};
    s->fit = o->n_folds > 0 ? s->held : (part){.query = s->order + n_held, .n = s->n - n_held};
    for (size_t f = 0; f <= s->n_folds; f++)
        s->border[f] = s->held.n * f / s->n_folds;
    return PNB_OK;
}

static pnb_status make_split(split *s, const pnb__match_pairs *pairs, const pnb_match_opts *o,
                             pnb_error *err)
{
    pnb_status status;
    pnb__rng rng;
    if (pairs->n_queries > UINT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "%zu queries are more than 2^32", pairs->n_queries);
    PNB_TRY(PNB_ALLOC(s->order, pairs->n_queries, err));
    for (size_t q = 0; q < pairs->n_queries; q++)
        if (pairs->offset[q + 1] > pairs->offset[q])
            s->order[s->n++] = (uint32_t)q;
    if (s->n < MIN_QUERIES)
        return pnb__fail(
            err, PNB_ARG,
            "%zu of %zu queries have a match; at least %d are needed to fit on some and "
            "assess on others",
            s->n, pairs->n_queries, MIN_QUERIES);
    pnb__rng_init(&rng, o->seed, UINT64_MAX); /* streams from 0 belong to the samples of queries */
    pnb__rng_shuffle(&rng, s->order, s->n);
    PNB_TRY(cut(s, o, err));
    PNB_TRY(gather(&s->held, pairs, o->depth, err));
    status = gather(&s->fit, pairs, o->depth, err);
done:
    return status;
}

/* ---- fitting ---- */

static pnb_status fit_conformal(pnb_match_probability_fit *fit, const part *p,
                                const pnb__match_pairs *pairs, pnb_error *err)
{
    size_t n = PNB_MIN(p->n, (size_t)MAX_CONFORMAL); /* any part of a shuffle is a random part */
    double *values = pnb__alloc_array(3 * n, sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, 3 * n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        size_t q = p->query[i];
        values[i] = pairs->best[q];
        values[n + i] = fmax(pairs->first[q] - pairs->best[q], 0.0);
        values[2 * n + i] = pairs->rank[q];
    }
    pnb_status status =
        pnb_conformal_create(&fit->conformal, values, values + n, values + 2 * n, n, err);
    pnb__free(values);
    return status;
}

static pnb_status fit_part(pnb_match_probability_fit *fit, const part *p,
                           const pnb__match_pairs *pairs, const pnb_match_opts *o, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *fit = (pnb_match_probability_fit){.origin = {.has_measure = true,
                                                  .measure = o->search.measure,
                                                  .measure_opts = o->search.measure_opts},
                                       .n_gallery = pairs->n_items,
                                       .n_queries = p->n,
                                       .n_matches = p->n_matches,
                                       .depth = o->depth,
                                       .base_rate = p->base_rate,
                                       .seed = o->seed,
                                       .method = o->method};
    if (o->method != PNB_MATCH_ISOTONIC) {
        PNB_TRY(pnb_platt_fit(&p->pairs, false, &fit->platt, err));
        fit->has_platt = true;
    }
    if (o->method != PNB_MATCH_PLATT) {
        PNB_TRY(pnb_isotonic_fit(&p->pairs, true, &fit->isotonic, err));
        fit->has_isotonic = true;
    }
    /* All first hits right, or the wrong ones scoring higher: no such fit, and no failure. */
    fit->has_first = pnb_platt_fit(&p->first, false, &fit->first, NULL) == PNB_OK;
    return fit_conformal(fit, p, pairs, err);
done:
    pnb__error_prefix(err, "pairs of %zu queries, label 1 for a match", p->n);
    return status;
}

/* The fit without fold f. */
static pnb_status fit_without(split *s, size_t f, const pnb__match_pairs *pairs,
                              const pnb_match_opts *o, pnb_error *err)
{
    size_t begin = s->border[f], end = s->border[f + 1];
    uint32_t *others = pnb__alloc_array(s->n, sizeof *others);
    part p = {.query = others, .n = s->n - (end - begin)};
    pnb_status status;
    if (others == NULL)
        return pnb__fail_nomem(err, s->n * sizeof *others);
    memcpy(others, s->order, begin * sizeof *others);
    memcpy(others + begin, s->order + end, (s->n - end) * sizeof *others);
    PNB_TRY(gather(&p, pairs, o->depth, err));
    status = fit_part(&s->own[f], &p, pairs, o, err);
done:
    reset_part(&p);
    pnb__free(others);
    return status;
}

/* What assesses each fold: fits without it, or with a held-out part the fit that is kept. */
static pnb_status fit_folds(split *s, const pnb__match_pairs *pairs,
                            const pnb_match_probability_fit *kept, const pnb_match_opts *o,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    s->assessed[0] = kept;
    for (size_t f = 0; o->n_folds > 0 && f < s->n_folds && status == PNB_OK; f++) {
        status = fit_without(s, f, pairs, o, err);
        s->assessed[f] = &s->own[f];
    }
    return status;
}

/* ---- assessing ---- */

typedef struct estimate_source {
    const pnb_match_probability_fit *fit;
    const pnb_match_opts *opts;
    pnb_match_estimator which;
} estimate_source;

static bool is_known(const estimate_source *s)
{
    switch (s->which) {
    case PNB_MATCH_ESTIMATOR_MODEL:
        return s->opts->model_is_score ||
               (isfinite(s->opts->model_a) && isfinite(s->opts->model_b));
    case PNB_MATCH_ESTIMATOR_PLATT:
        return s->fit->has_platt;
    case PNB_MATCH_ESTIMATOR_ISOTONIC:
        return s->fit->has_isotonic;
    case PNB_MATCH_ESTIMATOR_FIRST:
        return s->fit->has_first;
    default:
        return true;
    }
}

static double estimate(const estimate_source *s, double score)
{
    switch (s->which) {
    case PNB_MATCH_ESTIMATOR_MODEL:
        return s->opts->model_is_score
                   ? score
                   : pnb_match_probability(score, s->opts->model_a, s->opts->model_b);
    case PNB_MATCH_ESTIMATOR_PLATT:
        return pnb_platt_apply(&s->fit->platt, score);
    case PNB_MATCH_ESTIMATOR_ISOTONIC:
        return pnb_isotonic_apply(&s->fit->isotonic, score);
    case PNB_MATCH_ESTIMATOR_FIRST:
        return pnb_platt_apply(&s->fit->first, score);
    default:
        return s->fit->base_rate;
    }
}

/* Forecasts of consecutive cases; `ends[f]` is the first case behind those that fit f judges. */
static pnb_status judge(const estimate_source sources[], const size_t ends[],
                        const pnb_scored *cases, pnb_weighted_ece *out, pnb_error *err)
{
    double *p = pnb__alloc_array(cases->n, sizeof *p);
    if (p == NULL)
        return pnb__fail_nomem(err, cases->n * sizeof *p);
    for (size_t i = 0, f = 0; i < cases->n; i++) {
        while (i >= ends[f])
            f++;
        p[i] = estimate(&sources[f], cases->score[i]);
    }
    const pnb_scored estimates = {cases->n, p, cases->label, cases->weight};
    pnb_status status = pnb_weighted_ece_compute(&estimates, sources->opts->n_bins, out, err);
    pnb__free(p);
    return status;
}

/* Of the pairs of held.pairs, the first behind each fold. */
static void find_ends(const split *s, const pnb__match_pairs *pairs, size_t depth,
                      size_t ends[PNB_MAX_FOLDS])
{
    size_t n = 0;
    for (size_t f = 0; f < s->n_folds; f++) {
        for (size_t i = s->border[f]; i < s->border[f + 1]; i++)
            n += n_pairs_of(pairs, s->order[i], depth);
        ends[f] = n;
    }
}

static pnb_status judge_all(pnb_match_assessment *a, const split *s, const pnb__match_pairs *pairs,
                            const pnb_match_probability_fit *fit, const pnb_match_opts *o,
                            pnb_error *err)
{
    size_t ends[PNB_MAX_FOLDS] = {0}, n_folds = s->n_folds;
    pnb_status status = PNB_OK;
    assert(n_folds > 0);
    find_ends(s, pairs, o->depth, ends);
    for (int w = 0; w < PNB_N_MATCH_ESTIMATORS; w++) {
        const estimate_source kept = {fit, o, (pnb_match_estimator)w};
        estimate_source source[PNB_MAX_FOLDS];
        pnb_match_ece *out = &a->estimate[w];
        out->is_known = is_known(&kept);
        for (size_t f = 0; f < n_folds; f++) {
            source[f] = (estimate_source){s->assessed[f], o, (pnb_match_estimator)w};
            out->is_known = out->is_known && is_known(&source[f]);
        }
        if (!out->is_known)
            continue;
        PNB_TRY(judge(source, s->border + 1, &s->held.first, &out->first, err));
        if (w == PNB_MATCH_ESTIMATOR_FIRST) /* speaks of first hits only */
            continue;
        PNB_TRY(judge(&kept, &s->fit.pairs.n, &s->fit.pairs, &out->fit, err));
        PNB_TRY(judge(source, ends, &s->held.pairs, &out->held, err));
    }
done:
    return status;
}

/* ---- conformal lists of the held-out queries ---- */

static pnb_status cut_offs(const pnb_match_probability_fit *fit, double alpha,
                           double out[PNB_N_CONFORMALS], pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (int k = 0; status == PNB_OK && k < PNB_N_CONFORMALS; k++)
        status = pnb_conformal_cutoff(&fit->conformal, (pnb_conformal_kind)k, alpha, &out[k], err);
    return status;
}

/* Adds what the lists of query q at these cut-offs hold to n queries' means. Pairs that were
 * sampled count by their weights; lists that end within the first hits, which are all kept, are
 * counted exactly. */
static void add_lists(pnb_match_coverage *c, const pnb__match_pairs *pairs, size_t q,
                      const double cutoff[PNB_N_CONFORMALS], double n)
{
    double n_listed[PNB_N_CONFORMALS] = {0};
    const bool has[PNB_N_CONFORMALS] = {pairs->best[q] >= cutoff[PNB_CONFORMAL_SCORE],
                                        pairs->first[q] - pairs->best[q] <=
                                            cutoff[PNB_CONFORMAL_MARGIN],
                                        pairs->rank[q] <= cutoff[PNB_CONFORMAL_RANK]};
    for (size_t k = pairs->offset[q]; k < pairs->offset[q + 1]; k++) {
        if (pairs->score[k] >= cutoff[PNB_CONFORMAL_SCORE])
            n_listed[PNB_CONFORMAL_SCORE] += pairs->weight[k];
        if (pairs->first[q] - pairs->score[k] <= cutoff[PNB_CONFORMAL_MARGIN])
            n_listed[PNB_CONFORMAL_MARGIN] += pairs->weight[k];
    }
    n_listed[PNB_CONFORMAL_RANK] = fmin(cutoff[PNB_CONFORMAL_RANK], (double)pairs->n_items);
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        c->coverage[k] += has[k] ? 1.0 / n : 0.0;
        c->mean_size[k] += n_listed[k] / n;
    }
}

static pnb_status cover(pnb_match_assessment *a, const split *s, const pnb__match_pairs *pairs,
                        const pnb_match_probability_fit *fit, const pnb_match_opts *o,
                        pnb_error *err)
{
    pnb_status status = PNB_OK;
    a->n_alphas = o->n_alphas;
    for (size_t i = 0; i < o->n_alphas; i++) {
        pnb_match_coverage *c = &a->at[i];
        c->alpha = o->alpha[i];
        PNB_TRY(cut_offs(fit, c->alpha, c->cutoff, err));
        for (size_t f = 0; f < s->n_folds; f++) {
            double cutoff[PNB_N_CONFORMALS];
            PNB_TRY(cut_offs(s->assessed[f], c->alpha, cutoff, err));
            for (size_t j = s->border[f]; j < s->border[f + 1]; j++)
                add_lists(c, pairs, s->order[j], cutoff, (double)s->held.n);
        }
    }
done:
    return status;
}

/* Smallest lists at the error rate nearest to 0.1. */
static pnb_conformal_kind smallest_kind(const pnb_match_assessment *a)
{
    const pnb_match_coverage *at = &a->at[0];
    int best = PNB_CONFORMAL_SCORE;
    for (size_t i = 1; i < a->n_alphas; i++)
        if (fabs(a->at[i].alpha - 0.1) < fabs(at->alpha - 0.1))
            at = &a->at[i];
    for (int k = 1; a->n_alphas > 0 && k < PNB_N_CONFORMALS; k++)
        if (at->mean_size[k] < at->mean_size[best])
            best = k;
    return (pnb_conformal_kind)best;
}

/* ---- all of it ---- */

static pnb_status check_opts(const pnb_match_opts *o, pnb_error *err)
{
    if (!(o->holdout > 0.0 && o->holdout < 1.0))
        return pnb__fail(err, PNB_ARG, "holdout %g; a share between 0 and 1 is needed", o->holdout);
    if (o->n_folds == 1 || o->n_folds > PNB_MAX_FOLDS)
        return pnb__fail(err, PNB_ARG, "%zu folds; 0 for a held-out part, or 2 to %d are possible",
                         o->n_folds, PNB_MAX_FOLDS);
    if (o->n_bins == 0 || o->n_bins > PNB_MAX_BINS || o->max_pairs == 0 ||
        o->n_alphas > PNB_MAX_ALPHAS || (unsigned)o->method > PNB_MATCH_BOTH)
        return pnb__fail(err, PNB_ARG,
                         "%zu bins, %zu pairs, %zu error rates, method %d; 1 to %d, at least 1, at "
                         "most %d and a known method are needed",
                         o->n_bins, o->max_pairs, o->n_alphas, (int)o->method, PNB_MAX_BINS,
                         PNB_MAX_ALPHAS);
    for (size_t i = 0; i < o->n_alphas; i++)
        if (!(o->alpha[i] > 0.0 && o->alpha[i] < 1.0))
            return pnb__fail(err, PNB_ARG, "error rate %g; it must lie between 0 and 1",
                             o->alpha[i]);
    return PNB_OK;
}

static void describe(pnb_match_assessment *a, const split *s, const pnb__match_pairs *pairs,
                     const pnb_match_opts *o)
{
    a->n_fit = s->fit.n;
    a->n_held = s->held.n;
    a->n_folds = o->n_folds;
    a->n_skipped = pairs->n_queries - s->n;
    a->n_fit_pairs = s->fit.pairs.n;
    a->n_held_pairs = s->held.pairs.n;
    a->is_exact = pairs->is_exact;
    a->held_base_rate = s->held.base_rate;
}

static pnb_status compute(const pnb_ctx *ctx, const pnb_match_job *job,
                          pnb_match_probability_fit *fit, pnb_match_assessment *a, pnb_error *err)
{
    const pnb__match_sample sample = {job->opts->max_pairs, job->opts->depth, job->opts->seed};
    pnb__match_pairs pairs = {0};
    split *s = NULL;
    pnb_status status;
    if (PNB_ALLOC_ZERO(s, 1, err) != PNB_OK)
        return PNB_NOMEM;
    PNB_TRY(check_opts(job->opts, err));
    PNB_TRY(pnb__match_pairs_collect(ctx, job, &sample, &pairs, err));
    PNB_TRY(make_split(s, &pairs, job->opts, err));
    PNB_TRY(fit_part(fit, &s->fit, &pairs, job->opts, err));
    PNB_TRY(fit_folds(s, &pairs, fit, job->opts, err));
    describe(a, s, &pairs, job->opts);
    PNB_TRY(judge_all(a, s, &pairs, fit, job->opts, err));
    PNB_TRY(cover(a, s, &pairs, fit, job->opts, err));
    fit->conformal.kind = smallest_kind(a);
    if (fit->method == PNB_MATCH_BOTH)
        fit->method = a->estimate[PNB_MATCH_ESTIMATOR_ISOTONIC].held.nll <
                              a->estimate[PNB_MATCH_ESTIMATOR_PLATT].held.nll
                          ? PNB_MATCH_ISOTONIC
                          : PNB_MATCH_PLATT;
done:
    reset_split(s);
    pnb__free(s);
    pnb__match_pairs_reset(&pairs);
    return status;
}

pnb_status pnb_match_probability_fit_compute(const pnb_ctx *ctx, const pnb_match_job *job,
                                             pnb_match_probability_fit *fit,
                                             pnb_match_assessment *assessment, pnb_error *err)
{
    const pnb_match_opts defaults = pnb_match_opts_default();
    pnb_match_job filled = *job;
    pnb_match_assessment *own = pnb__alloc_zero(1, sizeof *own);
    *fit = (pnb_match_probability_fit){0};
    if (own == NULL)
        return pnb__fail_nomem(err, sizeof *own);
    filled.opts = job->opts != NULL ? job->opts : &defaults;
    pnb_status status = compute(ctx, &filled, fit, own, err);
    if (status == PNB_OK && assessment != NULL)
        *assessment = *own;
    if (status != PNB_OK)
        pnb_match_probability_fit_reset(fit);
    pnb__free(own);
    return status;
}
