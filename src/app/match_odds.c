/* Probabilities of hits: from the calibration beside a set, else from the model's a and b.
 *
 * The model's s(a*score + b) is given for csd and mean, whose scores are the similarity the model
 * was trained on; other measures have a probability only through a calibration. */
#include "app/match_odds.h"

#include <math.h>
#include <string.h>

#include "app/calibrate.h"
#include "base/base.h"
#include "io/embeddings.h"

bool pnb__has_limits(const pnb__list_limits *limits)
{
    return !isnan(limits->min_probability) || !isnan(limits->conformal_alpha);
}

void pnb__match_odds_reset(pnb__match_odds *odds)
{
    pnb_match_fit_reset(&odds->fit);
    pnb__free(odds->path);
    odds->path = NULL;
}

double pnb__match_odds_p(const pnb__match_odds *odds, double score)
{
    if (odds->has_fit)
        return pnb_match_fit_apply(&odds->fit, score, odds->n_gallery);
    return odds->has_model ? pnb_match_probability(score, odds->a, odds->b) : (double)NAN;
}

double pnb__match_odds_first(const pnb__match_odds *odds, double score)
{
    bool is_known = odds->has_fit && odds->fit.has_first && odds->fit.n_gallery == odds->n_gallery;
    return is_known ? pnb_platt_apply(&odds->fit.first, score) : (double)NAN;
}

size_t pnb__match_odds_list(const pnb__match_odds *odds, const double *score, size_t n)
{
    const pnb__list_limits *limits = &odds->limits;
    size_t n_likely = 0;
    if (!isnan(limits->conformal_alpha))
        return pnb_conformal_list(odds->kind, odds->cutoff, score, n);
    if (isnan(limits->min_probability))
        return n;
    while (n_likely < n && pnb__match_odds_p(odds, score[n_likely]) >= limits->min_probability)
        n_likely++;
    return n_likely;
}

/* ---- loading ---- */

/* odds->path stays NULL when there is nothing to read. */
static pnb_status find_file(const char *set_path, pnb__match_odds *odds, pnb_error *err)
{
    const char *asked = odds->limits.calibration;
    if (asked != NULL && strcmp(asked, "none") == 0)
        return PNB_OK;
    if (asked != NULL) {
        odds->path = pnb__strdup(asked);
        return odds->path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(asked));
    }
    if (!pnb__ends_with(set_path, ".safetensors") && !pnb__ends_with(set_path, ".npy"))
        return PNB_OK;
    pnb_status status = pnb__calibration_path(&odds->path, set_path, err);
    if (status == PNB_OK && !pnb__path_is_file(odds->path)) {
        pnb__free(odds->path);
        odds->path = NULL;
    }
    return status;
}

/* Whether the fit speaks of this search: its measure and its weights. */
static bool belongs(const pnb__match_odds *odds, const pnb_embeddings *set, pnb_measure measure,
                    char why[320])
{
    const char *fitted = odds->fit.weights_sha256, *used = set->info.weights_sha256;
    if (odds->fit.measure != measure) {
        snprintf(why, 320, "%.150s was fitted for the measure %s, this search uses %s", odds->path,
                 pnb_measure_name(odds->fit.measure), pnb_measure_name(measure));
        return false;
    }
    if (fitted[0] != '\0' && used[0] != '\0' && strcmp(fitted, used) != 0) {
        snprintf(why, 320, "%.150s was fitted for the weights %.12s, the set comes from %.12s",
                 odds->path, fitted, used);
        return false;
    }
    if (odds->fit.depth > 0 && odds->fit.n_gallery != set->n) {
        snprintf(why, 320, "%.150s was fitted to first hits among %zu rows, the set has %zu",
                 odds->path, odds->fit.n_gallery, set->n);
        return false;
    }
    return true;
}

static bool has_other_rows(const pnb_match_fit *fit, const pnb_embeddings *set)
{
    char ids[65];
    pnb__ids_hash(set, ids);
    return fit->gallery_ids_sha256[0] != '\0' && strcmp(fit->gallery_ids_sha256, ids) != 0;
}

static pnb_status load_fit(pnb__app *app, const pnb_embeddings *set, pnb_measure measure,
                           pnb__match_odds *odds)
{
    char why[320];
    pnb_status status = pnb_match_fit_load(&odds->fit, odds->path, &app->err);
    if (status != PNB_OK)
        return status;
    odds->has_fit = belongs(odds, set, measure, why);
    if (odds->has_fit && odds->fit.n_gallery != set->n)
        pnb__warn(app,
                  "%s was fitted on %zu rows, the set has %zu: the odds of a match are scaled by "
                  "their ratio",
                  odds->path, odds->fit.n_gallery, set->n);
    else if (odds->has_fit && has_other_rows(&odds->fit, set))
        pnb__warn(app, "%s was fitted on other rows than the set has now: is it of an older set?",
                  odds->path);
    if (odds->has_fit)
        return PNB_OK;
    if (odds->limits.calibration != NULL || pnb__has_limits(&odds->limits))
        return pnb__fail(
            &app->err, PNB_ARG,
            "%s; make one with `penumbra calibrate`, or go without by --calibration none", why);
    pnb__warn(app, "%s: it is not used", why);
    return PNB_OK;
}

static pnb_status settle_conformal(pnb__match_odds *odds, pnb_error *err)
{
    const char *by = odds->limits.conformal_by;
    bool is_other_size = odds->has_fit && odds->fit.n_gallery != odds->n_gallery;
    if (!odds->has_fit)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "--conformal: no calibration of this set is at hand; "
                         "make one with `penumbra calibrate`");
    odds->kind = is_other_size ? PNB_CONFORMAL_SCORE : odds->fit.conformal.kind;
    pnb_status status = by != NULL ? pnb_conformal_parse(&odds->kind, by, err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    if (is_other_size && odds->kind != PNB_CONFORMAL_SCORE)
        return pnb__fail(
            err, PNB_ARG,
            "--conformal-by %s holds for the %zu rows it was fitted on, the set has %zu; "
            "by score it holds for any number",
            pnb_conformal_name(odds->kind), odds->fit.n_gallery, odds->n_gallery);
    return pnb_conformal_cutoff(&odds->fit.conformal, odds->kind, odds->limits.conformal_alpha,
                                &odds->cutoff, err);
}

pnb_status pnb__match_odds_load(pnb__app *app, const char *path, const pnb_embeddings *set,
                                pnb_measure measure, const pnb__list_limits *limits,
                                pnb__match_odds *odds)
{
    bool is_similarity = measure == PNB_MEASURE_CSD || measure == PNB_MEASURE_MEAN;
    pnb_status status;
    *odds = (pnb__match_odds){.a = set->info.logit_scale,
                              .b = set->info.logit_bias,
                              .n_gallery = set->n,
                              .limits = *limits};
    odds->has_model = is_similarity && isfinite(odds->a) && isfinite(odds->b);
    PNB_TRY(find_file(path, odds, &app->err));
    if (odds->path != NULL)
        PNB_TRY(load_fit(app, set, measure, odds));
    if (!isnan(limits->min_probability) && !odds->has_fit && !odds->has_model)
        PNB_TRY(pnb__fail(&app->err, PNB_NOT_FOUND,
                          "--min-probability: nothing says what a score of this set and measure is "
                          "worth; fit it with `penumbra calibrate`"));
    if (!isnan(limits->conformal_alpha))
        PNB_TRY(settle_conformal(odds, &app->err));
done:
    return status;
}
