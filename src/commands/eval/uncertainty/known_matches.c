/* eval uncertainty --of-matches: how much is open about what a row matches.
 *
 * Without a calibration it is the entropy of a softmax, which counts what a row fits and what the
 * model cannot tell together. A calibration gives each pair a probability of its own, and the doubt
 * is what is left of yes or no: nothing of a picture whose every caption is clearly true or
 * clearly false, however many are true. */
#include "commands/eval/uncertainty/known_matches.h"

#include <string.h>

#include "base/base.h"
#include "commands/common/match_probability_use.h"
#include "commands/common/set_use.h"
#include "penumbra/match_entropy.h"
#include "penumbra/view.h"
#include "sets/set_rows.h"

/* ---- the gallery ---- */

/* Captions of one level, *out the caller's; NULL where all rows of the set are meant. */
static pnb_status one_level(const pnb_embeddings *set, const int *level, pnb_embeddings **out,
                            pnb_error *err)
{
    size_t n = 0, *row = NULL;
    pnb_status status;
    *out = NULL;
    if (level == NULL || strcmp(set->info.modality, "text") != 0)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(row, set->n, err));
    for (size_t i = 0; i < set->n; i++) {
        int own;
        PNB_TRY(pnb__row_level(&own, set, i, err));
        if (own == *level)
            row[n++] = i;
    }
    if (n == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "no caption of level %d to match", *level));
    status = pnb_embeddings_select(out, set, row, n, err);
done:
    pnb__free(row);
    return status;
}

/* ---- the entropy of a softmax ---- */

/* At the scale that was given, else the model's. */
static pnb_status add_entropy(pnb__app *app, double scale, pnb__known_side *side,
                              const pnb_embeddings *gallery)
{
    pnb_error *err = &app->err;
    pnb_view rows = {0}, items = {0};
    double own = scale > 0 ? scale : side->set->info.logit_scale;
    pnb_status status;
    side->name[0] = "entropy of matches";
    if (!(own > 0))
        return pnb__fail(err, PNB_ARG,
                         "the sets do not tell the scale of their model: name one with --scale");
    PNB_TRY(pnb_view_init(&rows, side->set, err));
    PNB_TRY(pnb_view_init(&items, gallery, err));
    status = pnb_match_entropy_compute(app->ctx, &rows.rows, &items.rows, own, side->score[0], err);
done:
    pnb_view_reset(&rows);
    pnb_view_reset(&items);
    return status;
}

/* ---- the doubt of a calibration ---- */

/* Whose scores it speaks of must be these. */
static pnb_status check_origin(pnb__app *app, const pnb__known_opts *o,
                               const pnb_match_probability_fit *fit, const pnb__known_side *side,
                               const pnb_embeddings *gallery)
{
    static const pnb_fit_words words = {"queries", "gallery rows"};
    const pnb__match_probability_use use = {
        o->calibration,        gallery, side->set, fit->origin.measure, &fit->origin.measure_opts,
        .match_is_told = false};
    char why[320];
    pnb_fit_origin origin = pnb__match_probability_origin(&use);
    pnb_fit_agreement found = pnb_fit_origin_check(&fit->origin, &origin, &words, why, sizeof why);
    if (found == PNB_FIT_DIFFERS || (found == PNB_FIT_UNKNOWN && !o->trust))
        return pnb__fail(&app->err, PNB_ARG, "%s %s%s", o->calibration, why,
                         found == PNB_FIT_UNKNOWN ? "; --trust-calibration takes it on your word"
                                                  : "");
    if (found == PNB_FIT_UNKNOWN)
        pnb__warn(app, "%s %s: it is used on your word", o->calibration, why);
    return PNB_OK;
}

static pnb_status add_doubt(pnb__app *app, const pnb__known_opts *o,
                            const pnb_match_probability_fit *fit, pnb__known_side *side,
                            const pnb_embeddings *gallery)
{
    pnb_error *err = &app->err;
    pnb_view rows = {0}, items = {0};
    pnb_measure measure = fit->origin.measure;
    pnb_status status;
    side->name[0] = "doubt about matches";
    PNB_TRY(check_origin(app, o, fit, side, gallery));
    PNB_TRY(pnb__set_view(&rows, side->set, measure, err));
    PNB_TRY(pnb__set_view(&items, gallery, measure, err));
    status = pnb_match_doubt_compute(app->ctx, &rows.rows, &items.rows, fit, side->score[0], err);
done:
    pnb_view_reset(&rows);
    pnb_view_reset(&items);
    return status;
}

/* Was it fitted on rows of this kind that searched such a gallery? Where it does not say it may
 * have been: check_origin asks. */
static bool speaks_of(const pnb_match_probability_fit *fit, const pnb_embeddings *gallery)
{
    const char *of = fit->origin.gallery.modality;
    return of[0] == '\0' || strcmp(of, gallery->info.modality) == 0;
}

pnb_status pnb__known_matches(pnb__app *app, const pnb__known_opts *o, pnb__known_side *side,
                              const pnb_embeddings *other)
{
    pnb_error *err = &app->err;
    pnb_match_probability_fit fit = {0};
    pnb_embeddings *chosen = NULL;
    pnb_status status;
    side->name[0] = "entropy of matches";
    if (other == NULL)
        return pnb__fail(err, PNB_ARG, "the entropy of matches needs both sets");
    PNB_TRY(PNB_ALLOC(side->score[0], side->set->n, err));
    PNB_TRY(one_level(other, o->match_level, &chosen, err));
    const pnb_embeddings *gallery = chosen != NULL ? chosen : other;
    if (o->calibration != NULL)
        PNB_TRY(pnb_match_probability_fit_load(&fit, o->calibration, err));
    status = o->calibration != NULL && speaks_of(&fit, gallery)
                 ? add_doubt(app, o, &fit, side, gallery)
                 : add_entropy(app, o->scale, side, gallery);
done:
    pnb_match_probability_fit_reset(&fit);
    pnb_embeddings_free(chosen);
    return status;
}
