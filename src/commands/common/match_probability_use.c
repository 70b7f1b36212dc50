/* Probabilities of hits: from the calibration beside a set, else from the model's a and b.
 *
 * The model's s(a*score + b) is given for csd and mean between a picture and a caption, the scores
 * the model was trained on. match_prob is PCME's probability itself, under an a and b that were
 * trained or told; the defaults of 5 are nobody's. All others have a probability only through a
 * calibration, and only through one that was fitted on such queries and such rows. */
#include "commands/common/match_probability_use.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/match_use.h"
#include "prob/measure.h"
#include "sets/embeddings.h"
#include "sets/set_rows.h"

pnb_status pnb__calibration_path(char **out, const char *set_path, pnb_error *err)
{
    const char *suffix = pnb__ends_with(set_path, ".npy") ? ".npy" : ".safetensors";
    return pnb__swap_suffix(out, set_path, suffix, ".calibration.json", err);
}

bool pnb__has_limits(const pnb__list_limits *limits)
{
    return !isnan(limits->min_probability) || !isnan(limits->conformal_alpha);
}

void pnb__match_probability_reset(pnb__match_probability *odds)
{
    pnb_match_probability_fit_reset(&odds->fit);
    pnb__free(odds->path);
    odds->path = NULL;
}

const char *pnb__match_probability_source(const pnb__match_probability *odds)
{
    return odds->has_fit      ? "calibration"
           : odds->is_measure ? "measure"
           : odds->has_model  ? "model"
                              : NULL;
}

double pnb__match_probability_of(const pnb__match_probability *odds, double score)
{
    if (odds->has_fit)
        return pnb_match_probability_fit_apply(&odds->fit, score, odds->n_gallery);
    if (odds->is_measure)
        return score;
    return odds->has_model ? pnb_match_probability(score, odds->a, odds->b) : (double)NAN;
}

double pnb__match_probability_first(const pnb__match_probability *odds, double score)
{
    bool is_known = odds->has_fit && odds->fit.has_first && odds->fit.n_gallery == odds->n_gallery;
    return is_known ? pnb_platt_apply(&odds->fit.first, score) : (double)NAN;
}

size_t pnb__match_probability_list(const pnb__match_probability *odds, const double *score,
                                   size_t n)
{
    const pnb__list_limits *limits = &odds->limits;
    size_t n_likely = 0;
    if (!isnan(limits->conformal_alpha))
        return pnb_conformal_list(odds->kind, odds->cutoff, score, n);
    if (isnan(limits->min_probability))
        return n;
    while (n_likely < n &&
           pnb__match_probability_of(odds, score[n_likely]) >= limits->min_probability)
        n_likely++;
    return n_likely;
}

/* ---- loading ---- */

/* odds->path stays NULL when there is nothing to read. */
static pnb_status find_file(const char *set_path, pnb__match_probability *odds, pnb_error *err)
{
    const char *asked = odds->limits.calibration;
    if (asked != NULL && strcmp(asked, "none") == 0)
        return PNB_OK;
    if (asked != NULL) {
        return pnb__copy_text(&odds->path, asked, err);
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

pnb_fit_origin pnb__match_probability_origin(const pnb__match_probability_use *use)
{
    return (pnb_fit_origin){.has_measure = true,
                            .measure = use->measure,
                            .measure_opts = *use->measure_opts,
                            .queries = pnb_fit_side_of(use->queries),
                            .gallery = pnb_fit_side_of(use->gallery)};
}

pnb_status pnb__match_probability_require(pnb__app *app, const pnb__match_probability_use *use,
                                          const pnb_match_probability_fit *fit, const char *path,
                                          bool trust)
{
    static const pnb_fit_words words = {"queries", "gallery rows"};
    char why[320];
    pnb_fit_origin origin = pnb__match_probability_origin(use);
    pnb_fit_agreement found = pnb_fit_origin_check(&fit->origin, &origin, &words, why, sizeof why);
    if (found == PNB_FIT_DIFFERS || (found == PNB_FIT_UNKNOWN && !trust))
        return pnb__fail(&app->err, PNB_ARG, "%s %s%s", path, why,
                         found == PNB_FIT_UNKNOWN ? "; --trust-calibration takes it on your word"
                                                  : "");
    if (found == PNB_FIT_UNKNOWN)
        pnb__warn(app, "%s %s: it is used on your word", path, why);
    return PNB_OK;
}

/* A Laplace approximation of the last projections leaves the cosines that a and b were trained on.
 */
static bool keeps_cosines(const pnb_embeddings *set)
{
    static const char *const keeping[] = {"bayesvlm", "activations"};
    size_t n = 0;
    for (size_t i = 0; i < set->info.adapters.n; i++)
        for (size_t k = 0; k < PNB_COUNT(keeping); k++)
            n += strcmp(set->info.adapters.items[i].name, keeping[k]) == 0;
    return n == set->info.adapters.n;
}

bool pnb__model_speaks_of(const pnb_embeddings *a, const pnb_embeddings *b, pnb_measure measure,
                          char *why, size_t size)
{
    bool is_cosine = measure == PNB_MEASURE_MEAN && keeps_cosines(a) && keeps_cosines(b);
    const char *kind_a = a->info.modality, *kind_b = b->info.modality;
    if (!pnb__set_is_known(a) || !pnb__set_is_known(b))
        snprintf(why, size, "model or modality of one side is unknown");
    else if (strcmp(kind_a, kind_b) == 0)
        snprintf(why, size,
                 "the model's a and b speak of a picture and a caption, here both are %s", kind_a);
    else if (strcmp(a->info.weights_sha256, b->info.weights_sha256) != 0)
        snprintf(why, size, "the two sides come from different weights");
    else if (a->info.adapters.n + b->info.adapters.n > 0 && !is_cosine)
        snprintf(why, size,
                 "the model's a and b do not speak of rows that went through an adapter");
    else
        return true;
    return false;
}

/* Whether the fit speaks of this search. */
static pnb_fit_agreement compare(const pnb__match_probability *odds,
                                 const pnb__match_probability_use *use, char *why, size_t size)
{
    static const pnb_fit_words words = {"queries", "gallery rows"};
    pnb_fit_origin origin = pnb__match_probability_origin(use);
    pnb_fit_agreement found = pnb_fit_origin_check(&odds->fit.origin, &origin, &words, why, size);
    if (found != PNB_FIT_DIFFERS && odds->fit.depth > 0 && odds->fit.n_gallery != use->gallery->n) {
        snprintf(why, size, "was fitted to first hits among %zu rows, the set has %zu",
                 odds->fit.n_gallery, use->gallery->n);
        return PNB_FIT_DIFFERS;
    }
    return found;
}

static bool has_other_rows(const pnb_match_probability_fit *fit, const pnb_embeddings *set)
{
    char ids[65];
    pnb__ids_hash(set, ids);
    return fit->gallery_ids_sha256[0] != '\0' && strcmp(fit->gallery_ids_sha256, ids) != 0;
}

/* What does not agree is refused where it was asked for, else said. */
static pnb_status leave_aside(pnb__app *app, const pnb__match_probability *odds, const char *why,
                              bool is_unknown)
{
    const pnb__list_limits *limits = &odds->limits;
    if (pnb__has_limits(limits) || (limits->calibration != NULL && !is_unknown))
        return pnb__fail(&app->err, PNB_ARG,
                         "%s %s; fit one with `penumbra calibrate`, %sor go without by "
                         "--calibration none",
                         odds->path, why,
                         is_unknown ? "take it on your word by --trust-calibration, " : "");
    if (limits->for_figures)
        pnb__warn(app, "%s %s: it is not used", odds->path, why);
    else
        pnb__warn(app, "%s %s: it is not used, and no probability is given; %s", odds->path, why,
                  is_unknown ? "--trust-calibration takes it on your word"
                             : "--calibration none takes the model's a and b");
    return PNB_OK;
}

static void warn_of_rows(const pnb__app *app, const pnb__match_probability *odds,
                         const pnb__match_probability_use *use)
{
    const pnb_embeddings *gallery = use->gallery;
    if (odds->fit.n_gallery != gallery->n)
        pnb__warn(app,
                  "%s was fitted on %zu rows, the set has %zu: the odds of a match are scaled by "
                  "their ratio",
                  odds->path, odds->fit.n_gallery, gallery->n);
    else if (!use->gallery_is_sample && has_other_rows(&odds->fit, gallery))
        pnb__warn(app, "%s was fitted on other rows than the set has now: is it of an older set?",
                  odds->path);
}

static pnb_status load_fit(pnb__app *app, const pnb__match_probability_use *use,
                           pnb__match_probability *odds)
{
    char why[320];
    pnb_status status = pnb_match_probability_fit_load(&odds->fit, odds->path, &app->err);
    if (status != PNB_OK)
        return status;
    pnb_fit_agreement found = compare(odds, use, why, sizeof why);
    bool is_trusted = found == PNB_FIT_UNKNOWN && odds->limits.trust;
    odds->has_fit = found == PNB_FIT_AGREES || is_trusted;
    if (!odds->has_fit) {
        odds->has_model = odds->has_model && odds->limits.for_figures;
        odds->is_measure = odds->is_measure && odds->limits.for_figures;
        return leave_aside(app, odds, why, found == PNB_FIT_UNKNOWN);
    }
    if (is_trusted)
        pnb__warn(app, "%s %s: it is used on your word", odds->path, why);
    warn_of_rows(app, odds, use);
    return PNB_OK;
}

/* Says of which gallery, of several that are searched: a set by its file, a collection by its
 * folder, in which its calibration lies as if it were such a set. */
static void warn_of_none(pnb__app *app, const pnb__match_probability_use *use, const char *why)
{
    const char *path = use->path != NULL ? use->path : "";
    const char *base = pnb__path_base(path);
    bool is_collection = strcmp(base, "collection.safetensors") == 0 && base > path + 1;
    int n = (int)(is_collection ? base - path - 1 : (ptrdiff_t)strlen(path));
    pnb__warn(app, "%.*s%sno probability is given: %s; `penumbra calibrate` fits one", n, path,
              n > 0 ? ": " : "", why);
}

/* Takes the model's a and b where they speak of these rows and this measure. */
static void take_model(pnb__app *app, const pnb__match_probability_use *use,
                       pnb__match_probability *odds)
{
    char why[200];
    bool is_similarity = pnb__measure_has_logits(use->measure);
    odds->a = use->gallery->info.logit_scale;
    odds->b = use->gallery->info.logit_bias;
    if (!is_similarity || !isfinite(odds->a) || !isfinite(odds->b))
        return;
    odds->has_model =
        pnb__model_speaks_of(use->gallery, use->queries, use->measure, why, sizeof why);
    if (!odds->has_model && odds->path == NULL && !odds->limits.for_figures)
        warn_of_none(app, use, why);
}

bool pnb__measure_is_probability(const pnb__match_probability_use *use, char *why, size_t size)
{
    bool is_carried =
        pnb__carries_match(&use->gallery->info) || pnb__carries_match(&use->queries->info);
    if (pnb__measure_traits_of(use->measure)->reads != PNB__READS_MATCH)
        snprintf(why, size, "%s is no probability", pnb_measure_name(use->measure));
    else if (use->match_is_told)
        return true;
    else if (!is_carried)
        snprintf(why, size,
                 "no set carries a and b of match_prob, --match-a and --match-b say them");
    else
        return pnb__model_speaks_of(use->gallery, use->queries, use->measure, why, size);
    return false;
}

/* Takes the values of match_prob, where its constants are more than defaults. */
static void take_measure(pnb__app *app, const pnb__match_probability_use *use,
                         pnb__match_probability *odds)
{
    char why[200];
    if (pnb__measure_traits_of(use->measure)->reads != PNB__READS_MATCH)
        return;
    odds->is_measure = pnb__measure_is_probability(use, why, sizeof why);
    if (!odds->is_measure && odds->path == NULL && !odds->limits.for_figures)
        warn_of_none(app, use, why);
}

static pnb_status settle_conformal(pnb__match_probability *odds, pnb_error *err)
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

pnb_status pnb__match_probability_load(pnb__app *app, const pnb__match_probability_use *use,
                                       const pnb__list_limits *limits, pnb__match_probability *odds)
{
    pnb_status status;
    *odds = (pnb__match_probability){.n_gallery = use->gallery->n, .limits = *limits};
    PNB_TRY(find_file(use->path, odds, &app->err));
    take_model(app, use, odds);
    take_measure(app, use, odds);
    if (odds->path != NULL)
        PNB_TRY(load_fit(app, use, odds));
    if (!isnan(limits->min_probability) && pnb__match_probability_source(odds) == NULL)
        PNB_TRY(pnb__fail(&app->err, PNB_NOT_FOUND,
                          "--min-probability: nothing says what a score of these queries in this "
                          "set is worth; fit it with `penumbra calibrate`"));
    if (!isnan(limits->conformal_alpha))
        PNB_TRY(settle_conformal(odds, &app->err));
done:
    return status;
}
