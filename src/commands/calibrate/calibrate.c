/* Two sets and their true pairs to a calibration file beside the set that is searched in.
 *
 * Fit and figures are eval's; this file joins files, names and tables. Queries and gallery are told
 * apart because a search has a direction: conformal lists and asymmetric measures depend on it. */
#include "commands/calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/match_probability_use.h"
#include "commands/common/set_use.h"
#include "commands/eval/eval_retrieval.h"
#include "penumbra/embeddings.h"
#include "prob/measure.h"
#include "report/figure_interval.h"
#include "sets/embeddings.h"

typedef struct calibrate_run {
    pnb__retrieval sets;
    const pnb_embeddings *queries, *gallery; /* the two in their roles */
    pnb_match_job job;
    pnb_match_probability_fit fit;
    pnb_match_assessment *assessment;
    char *path; /* of the calibration file */
} calibrate_run;

static pnb_status load(pnb__app *app, calibrate_run *run, const pnb__calibrate_opts *o)
{
    pnb__retrieval *sets = &run->sets;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb__retrieval_load(app, &o->sets, sets));
    run->gallery = o->gallery_is_texts ? sets->texts : sets->images;
    run->queries = o->gallery_is_texts ? sets->images : sets->texts;
    run->job = o->gallery_is_texts
                   ? (pnb_match_job){&sets->image_rows, &sets->text_rows, sets->truth, NULL}
                   : (pnb_match_job){&sets->text_rows, &sets->image_rows, sets->backward, NULL};
    if (o->out == NULL)
        return pnb__calibration_path(&run->path,
                                     o->gallery_is_texts ? o->sets.texts : o->sets.images, err);
    run->path = pnb__strdup(o->out);
    if (run->path == NULL)
        status = pnb__fail_nomem(err, strlen(o->out));
done:
    return status;
}

/* What the fit belongs to. */
static void note_origin(calibrate_run *run, const pnb__calibrate_opts *o)
{
    pnb_match_probability_fit *fit = &run->fit;
    fit->origin.queries = pnb_fit_side_of(run->queries);
    fit->origin.gallery = pnb_fit_side_of(run->gallery);
    snprintf(fit->gallery, sizeof fit->gallery, "%s",
             o->gallery_is_texts ? o->sets.texts : o->sets.images);
    snprintf(fit->queries, sizeof fit->queries, "%s",
             o->gallery_is_texts ? o->sets.images : o->sets.texts);
    snprintf(fit->truth, sizeof fit->truth, "%s", o->sets.truth != NULL ? o->sets.truth : "");
    pnb__ids_hash(run->gallery, fit->gallery_ids_sha256);
    fit->has_level = o->sets.level >= 0;
    fit->level = fit->has_level ? o->sets.level : 0;
}

static pnb_status compute(pnb__app *app, calibrate_run *run, const pnb__calibrate_opts *o)
{
    pnb_match_opts match = o->match;
    match.search.measure = run->sets.measure;
    match.search.measure_opts = run->sets.measure_opts;
    const pnb__match_probability_use use = {NULL,
                                            run->gallery,
                                            run->queries,
                                            match.search.measure,
                                            &match.search.measure_opts,
                                            .match_is_told =
                                                !isnan(o->sets.match.a) && !isnan(o->sets.match.b)};
    char why[200];
    match.model_is_score = pnb__measure_is_probability(&use, why, sizeof why);
    bool has_model =
        pnb__measure_has_logits(match.search.measure) &&
        pnb__model_speaks_of(run->gallery, run->queries, match.search.measure, why, sizeof why);
    match.model_a = has_model ? run->gallery->info.logit_scale : (double)NAN;
    match.model_b = has_model ? run->gallery->info.logit_bias : (double)NAN;
    if (PNB_ALLOC_ZERO(run->assessment, 1, &app->err) != PNB_OK)
        return PNB_NOMEM;
    run->job.opts = &match;
    pnb_status status = pnb_match_probability_fit_compute(app->ctx, &run->job, &run->fit,
                                                          run->assessment, &app->err);
    run->job.opts = NULL;
    if (status != PNB_OK)
        return status;
    note_origin(run, o);
    return pnb_match_probability_fit_save(&run->fit, run->path, &app->err);
}

/* ---- printing ---- */

static void put_platt(const pnb_platt *p, const char *key, pnb__result *r)
{
    pnb__result_begin(r, key, NULL);
    pnb__result_real(r, "a", NULL, p->a, 6);
    pnb__result_real(r, "b", NULL, p->b, 6);
    pnb__result_flag(r, "smoothed", NULL, p->is_smoothed);
    pnb__result_end(r);
}

/* What a search must have to be given these probabilities. */
static void put_side(const pnb_fit_side *side, const char *key, const char *label, pnb__result *r)
{
    pnb__result_begin(r, key, NULL);
    pnb__result_text(r, "modality", NULL, side->modality[0] != '\0' ? side->modality : NULL);
    pnb__result_text(r, "family", NULL, side->family);
    pnb__result_text(r, "weights_sha256", NULL,
                     side->weights_sha256[0] != '\0' ? side->weights_sha256 : NULL);
    pnb__put_adapters(&side->adapters, r);
    pnb__result_text(r, "preprocess", NULL, side->preprocess[0] != '\0' ? side->preprocess : NULL);
    pnb__result_end(r);
    pnb__result_text(r, NULL, label,
                     side->modality[0] != '\0' ? side->modality
                                               : "unknown: search wants --trust-calibration");
}

static void put_fit(const calibrate_run *run, pnb__result *r)
{
    const pnb_match_probability_fit *f = &run->fit;
    const pnb_match_assessment *a = run->assessment;
    bool is_isotonic = f->method == PNB_MATCH_ISOTONIC;
    pnb__result_text(r, "file", "written", run->path);
    pnb__put_measure(r, "measure", f->origin.measure,
                     (const pnb_embeddings *[]){run->sets.images, run->sets.texts},
                     (const char *[]){"images", "texts"});
    pnb__put_match(r, f->origin.measure, &run->sets.measure_opts, true);
    pnb__result_text(r, "method", "method", is_isotonic ? "isotonic" : "platt");
    put_side(&f->origin.queries, "query_origin", "queries", r);
    put_side(&f->origin.gallery, "gallery_origin", "searched in", r);
    pnb__result_int(r, "n_gallery", "rows searched in", (int64_t)f->n_gallery);
    if (f->has_level)
        pnb__result_int(r, "level", "captions of level", f->level);
    pnb__result_int(r, "n_fit", "queries fitted on", (int64_t)a->n_fit);
    pnb__result_int(r, "n_held", "queries assessed on", (int64_t)a->n_held);
    pnb__result_int(r, "n_folds", a->n_folds > 0 ? "by fits on the others of folds" : NULL,
                    (int64_t)a->n_folds);
    pnb__result_int(r, "n_skipped", a->n_skipped > 0 ? "queries without a match" : NULL,
                    (int64_t)a->n_skipped);
    pnb__result_int(r, "n_pairs", "pairs looked at",
                    (int64_t)(a->n_fit_pairs + (a->n_folds > 0 ? 0 : a->n_held_pairs)));
    pnb__result_text(r, "pairs", "which are",
                     f->depth > 0  ? "first hits"
                     : a->is_exact ? "all"
                                   : "a weighted sample");
    pnb__result_int(r, "depth", f->depth > 0 ? "first hits of a query" : NULL, (int64_t)f->depth);
    pnb__result_real(r, "base_rate", "share of pairs that match", f->base_rate, 6);
    if (f->has_platt) {
        put_platt(&f->platt, "platt", r);
        pnb__result_real(r, NULL, "a", f->platt.a, 4);
        pnb__result_real(r, NULL, "b", f->platt.b, 4);
    }
    if (f->has_platt && f->platt.is_smoothed)
        pnb__result_note(r, "every match scores above every other pair: a and b come from smoothed "
                            "targets");
    if (f->has_isotonic)
        pnb__result_int(r, "isotonic_knots", "isotonic knots", (int64_t)f->isotonic.n);
    if (f->has_first)
        put_platt(&f->first, "first_hit", r);
}

static void put_forecasts(const pnb_match_assessment *a, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"forecast", "forecast"},     {"nll_fit", "NLL fitted"},
        {"nll_held", "NLL held out"}, {"brier_held", "Brier"},
        {"ece_held", "ECE"},          {"p_held", "mean p"},
        {"rate_held", "matching"},    {"first_ece", "first hits: ECE"},
        {"first_brier", "Brier"},     {"first_p", "mean p"},
        {"first_rate", "matching"}};
    pnb__result_table(r, "forecasts", "pairs and first hits, held out", columns,
                      PNB_COUNT(columns));
    for (int f = 0; f < PNB_N_MATCH_ESTIMATORS; f++) {
        const pnb_match_ece *c = &a->estimate[f];
        bool has_pairs = f != PNB_MATCH_ESTIMATOR_FIRST;
        if (!c->is_known)
            continue;
        pnb__result_row(r, "%s %.5f %.5f %.5f %.5f %.5f %.5f %.4f %.4f %.4f %.4f",
                        pnb_match_estimator_name((pnb_match_estimator)f),
                        has_pairs ? c->fit.nll : NAN, has_pairs ? c->held.nll : NAN,
                        has_pairs ? c->held.brier : NAN, has_pairs ? c->held.ece : NAN,
                        has_pairs ? c->held.p_mean : NAN, has_pairs ? c->held.base_rate : NAN,
                        c->first.ece, c->first.brier, c->first.p_mean, c->first.base_rate);
    }
}

static void put_bins(const pnb_weighted_ece *c, const char *key, const char *heading,
                     pnb__result *r)
{
    static const pnb__column columns[] = {{"p_low", "p from"},
                                          {"p_high", "to"},
                                          {"share", "share"},
                                          {"p_mean", "mean p"},
                                          {"rate", "matching"}};
    pnb__result_table(r, key, heading, columns, PNB_COUNT(columns));
    for (size_t b = 0; b < c->n_bins; b++) {
        pnb__result_row(r, "%.4f %.4f %.4f %.4f %.4f", c->bin[b].p_low, c->bin[b].p_high,
                        c->bin[b].weight, c->bin[b].p_mean, c->bin[b].rate);
    }
}

/* Bins of every forecast that tells pairs apart, for pages. Intervals are of `exact`, whose bins
 * are plain counts: of first hits, not of pairs, which are weighted. */
static void put_reliability(const pnb_match_assessment *a, bool is_first, int exact, pnb__result *r)
{
    static const pnb__column columns[] = {{"forecast", NULL},
                                          {"p_mean", NULL},
                                          {"rate", NULL},
                                          {"rate_low", NULL},
                                          {"rate_high", NULL}};
    pnb__result_table(r, is_first ? "reliability_of_first_hits" : "reliability_of_pairs", NULL,
                      columns, PNB_COUNT(columns));
    for (int f = 0; f < PNB_N_MATCH_ESTIMATORS; f++) {
        const pnb_weighted_ece *c = is_first ? &a->estimate[f].first : &a->estimate[f].held;
        bool is_drawn = a->estimate[f].is_known && f != PNB_MATCH_ESTIMATOR_BASE_RATE &&
                        (is_first || f != PNB_MATCH_ESTIMATOR_FIRST);
        for (size_t b = 0; is_drawn && b < c->n_bins; b++) {
            double low = NAN, high = NAN;
            if (f == exact)
                pnb__share_interval(c->bin[b].rate, c->bin[b].weight * (double)c->n, &low, &high);
            pnb__result_cell_text(r, pnb_match_estimator_name((pnb_match_estimator)f));
            pnb__result_cell_real(r, c->bin[b].p_mean, 4);
            pnb__result_cell_real(r, c->bin[b].rate, 4);
            pnb__result_cell_real(r, low, 4);
            pnb__result_cell_real(r, high, 4);
        }
    }
}

static void put_coverage(const pnb_match_probability_fit *fit, const pnb_match_assessment *a,
                         pnb__result *r)
{
    static const pnb__column columns[] = {{"alpha", "error rate"},    {"kind", "cut by"},
                                          {"cutoff", "cut-off"},      {"coverage", "with a match"},
                                          {"mean_size", "mean list"}, {"error", NULL}};
    pnb__result_text(r, "conformal_kind", NULL, pnb_conformal_name(fit->conformal.kind));
    pnb__result_table(r, "conformal", "lists with a match, held out", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < a->n_alphas; i++)
        for (int k = 0; k < PNB_N_CONFORMALS; k++) {
            pnb__result_row(r, "%.3f %s %.4f %.4f %.1f %.4f", a->at[i].alpha,
                            pnb_conformal_name((pnb_conformal_kind)k), a->at[i].cutoff[k],
                            a->at[i].coverage[k], a->at[i].mean_size[k],
                            1.0 - a->at[i].coverage[k]);
        }
    if (a->n_alphas > 0)
        pnb__result_text(r, NULL, "search cuts lists by", pnb_conformal_name(fit->conformal.kind));
}

void pnb__assessment_report(const pnb_match_probability_fit *fit, const pnb_match_assessment *a,
                            pnb__result *r)
{
    pnb_match_estimator used = fit->method == PNB_MATCH_ISOTONIC ? PNB_MATCH_ESTIMATOR_ISOTONIC
                                                                 : PNB_MATCH_ESTIMATOR_PLATT;
    put_forecasts(a, r);
    put_bins(&a->estimate[used].held, "reliability_pairs", "p(match) of pairs, held out", r);
    put_bins(&a->estimate[used].first, "reliability_first", "p(match) of first hits, held out", r);
    put_reliability(a, true, (int)used, r);
    put_reliability(a, false, -1, r);
    put_coverage(fit, a, r);
}

static pnb_status write_page(pnb__app *app, const calibrate_run *run, const pnb__result *r,
                             const char *path)
{
    const pnb__match_calibrated c = {.queries = run->queries,
                                     .gallery = run->gallery,
                                     .query_rows = run->job.queries,
                                     .gallery_rows = run->job.gallery,
                                     .truth = run->job.truth,
                                     .fit = &run->fit,
                                     .figures = r};
    return pnb__calibration_page(app, path, &c);
}

pnb_status pnb__calibrate_run(pnb__app *app, const pnb__calibrate_opts *opts, pnb__result *r)
{
    calibrate_run run = {0};
    pnb_status status;
    PNB_TRY(load(app, &run, opts));
    PNB_TRY(compute(app, &run, opts));
    put_fit(&run, r);
    pnb__assessment_report(&run.fit, run.assessment, r);
    if (opts->plot != NULL)
        PNB_TRY(write_page(app, &run, r, opts->plot));
done:
    pnb__retrieval_reset(&run.sets);
    pnb_match_probability_fit_reset(&run.fit);
    pnb__free(run.assessment);
    pnb__free(run.path);
    return status;
}
