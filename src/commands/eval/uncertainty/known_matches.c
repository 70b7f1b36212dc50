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

/* Captions of the levels, *out the caller's; NULL where all rows of the set are meant. */
static pnb_status of_levels(const pnb_embeddings *set, const int *level, size_t n_levels,
                            pnb_embeddings **out, pnb_error *err)
{
    size_t n = 0, *row = NULL;
    pnb_status status;
    *out = NULL;
    if (n_levels == 0 || strcmp(set->info.modality, "text") != 0)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(row, set->n, err));
    for (size_t i = 0; i < set->n; i++) {
        int own;
        bool is_meant = false;
        PNB_TRY(pnb__row_level(&own, set, i, err));
        for (size_t k = 0; k < n_levels; k++)
            is_meant = is_meant || own == level[k];
        if (is_meant)
            row[n++] = i;
    }
    if (n == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "no caption of level %d to match", level[0]));
    status = pnb_embeddings_select(out, set, row, n, err);
done:
    pnb__free(row);
    return status;
}

/* ---- the entropy of a softmax ---- */

/* At the scale that was given, else the model's. */
static pnb_status add_entropy(pnb__app *app, const pnb__known_matching *m, pnb__known_side *side,
                              const pnb_embeddings *other)
{
    pnb_error *err = &app->err;
    pnb_view rows = {0}, items = {0};
    pnb_embeddings *chosen = NULL;
    double own = m->scale > 0 ? m->scale : side->set->info.logit_scale;
    pnb_status status;
    if (!(own > 0))
        return pnb__fail(err, PNB_ARG,
                         "the sets do not tell the scale of their model: name one with --scale");
    PNB_TRY(of_levels(other, m->level, m->n_levels, &chosen, err));
    PNB_TRY(pnb_view_init(&rows, side->set, err));
    PNB_TRY(pnb_view_init(&items, chosen != NULL ? chosen : other, err));
    status = pnb_match_entropy_compute(app->ctx, &rows.rows, &items.rows, own, side->score[0], err);
done:
    pnb_view_reset(&rows);
    pnb_view_reset(&items);
    pnb_embeddings_free(chosen);
    return status;
}

/* ---- the doubt of a calibration ---- */

/* Whose scores it speaks of must be these. */
static pnb_status check_origin(pnb__app *app, const char *path, bool trust,
                               const pnb_match_probability_fit *fit, const pnb_embeddings *queries,
                               const pnb_embeddings *gallery)
{
    static const pnb_fit_words words = {"queries", "gallery rows"};
    const pnb__match_probability_use use = {path,
                                            gallery,
                                            queries,
                                            fit->origin.measure,
                                            &fit->origin.measure_opts,
                                            .match_is_told = false};
    char why[320];
    pnb_fit_origin origin = pnb__match_probability_origin(&use);
    pnb_fit_agreement found = pnb_fit_origin_check(&fit->origin, &origin, &words, why, sizeof why);
    if (found == PNB_FIT_DIFFERS || (found == PNB_FIT_UNKNOWN && !trust))
        return pnb__fail(&app->err, PNB_ARG, "%s %s%s", path, why,
                         found == PNB_FIT_UNKNOWN ? "; --trust-calibration takes it on your word"
                                                  : "");
    if (found == PNB_FIT_UNKNOWN)
        pnb__warn(app, "%s %s: it is used on your word", path, why);
    return PNB_OK;
}

/* Adds the doubt of the k-th calibration, over the captions of its level, to the score; `fit` is
 * that calibration. */
static pnb_status add_doubt(pnb__app *app, const pnb__known_matching *m, size_t k,
                            const pnb_match_probability_fit *fit, pnb__known_side *side,
                            const pnb_embeddings *other)
{
    pnb_error *err = &app->err;
    pnb_view rows = {0}, items = {0};
    pnb_embeddings *chosen = NULL;
    double *doubt = NULL;
    pnb_status status;
    PNB_TRY(of_levels(other, m->level + k, m->n_levels > 0 ? 1 : 0, &chosen, err));
    const pnb_embeddings *gallery = chosen != NULL ? chosen : other;
    PNB_TRY(check_origin(app, m->calibration[k], m->trust, fit, side->set, gallery));
    PNB_TRY(PNB_ALLOC(doubt, side->set->n, err));
    PNB_TRY(pnb__set_view(&rows, side->set, fit->origin.measure, err));
    PNB_TRY(pnb__set_view(&items, gallery, fit->origin.measure, err));
    PNB_TRY(pnb_match_doubt_compute(app->ctx, &rows.rows, &items.rows, fit, doubt, err));
    for (size_t i = 0; i < side->set->n; i++)
        side->score[0][i] += doubt[i];
done:
    pnb_view_reset(&rows);
    pnb_view_reset(&items);
    pnb_embeddings_free(chosen);
    pnb__free(doubt);
    return status;
}

/* Was it fitted on rows of this kind that searched such a gallery? Where it does not say it may
 * have been: check_origin asks. */
static bool speaks_of(const pnb_match_probability_fit *fit, const pnb_embeddings *gallery)
{
    const char *of = fit->origin.gallery.modality;
    return of[0] == '\0' || strcmp(of, gallery->info.modality) == 0;
}

/* *is_spoken_of: the first calibration is of this side, and the score is the doubt of all; else
 * nothing is done. */
static pnb_status add_doubts(pnb__app *app, const pnb__known_matching *m, pnb__known_side *side,
                             const pnb_embeddings *other, bool *is_spoken_of)
{
    pnb_status status = PNB_OK;
    *is_spoken_of = m->n_calibrations > 0;
    for (size_t k = 0; k < m->n_calibrations && *is_spoken_of && status == PNB_OK; k++) {
        pnb_match_probability_fit fit = {0};
        status = pnb_match_probability_fit_load(&fit, m->calibration[k], &app->err);
        if (status == PNB_OK && k == 0)
            *is_spoken_of = speaks_of(&fit, other);
        if (status == PNB_OK && *is_spoken_of)
            status = add_doubt(app, m, k, &fit, side, other);
        pnb_match_probability_fit_reset(&fit);
    }
    return status;
}

pnb_status pnb__known_matches(pnb__app *app, const pnb__known_matching *m, pnb__known_side *side,
                              const pnb_embeddings *other)
{
    pnb_error *err = &app->err;
    bool is_doubt = false;
    side->name[0] = "entropy of matches";
    if (other == NULL)
        return pnb__fail(err, PNB_ARG, "the entropy of matches needs both sets");
    pnb_status status = PNB_ALLOC_ZERO(side->score[0], side->set->n, err);
    if (status == PNB_OK)
        status = add_doubts(app, m, side, other, &is_doubt);
    if (is_doubt)
        side->name[0] = "doubt about matches";
    return status == PNB_OK && !is_doubt ? add_entropy(app, m, side, other) : status;
}
