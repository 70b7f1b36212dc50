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

/* Captions of other levels match with other odds than those that were fitted on: as a gallery they
 * are left out, as queries refused. */
static pnb_status refuse_other_levels(const pnb_match_probability_fit *fit, const char *path,
                                      const pnb_embeddings *queries, pnb_error *err)
{
    pnb_status status = PNB_OK;
    bool is_of_text = strcmp(queries->info.modality, "text") == 0;
    for (size_t i = 0; i < queries->n && fit->has_level && is_of_text; i++) {
        int own;
        PNB_TRY(pnb__row_level(&own, queries, i, err));
        if (own != fit->level)
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "%s was fitted on captions of level %d, row %zu is of level %d", path,
                              fit->level, i, own));
    }
done:
    return status;
}

/* Adds the doubt of one calibration, over the captions of its level, to the score. */
static pnb_status add_doubt(pnb__app *app, const char *path, bool trust,
                            const pnb_match_probability_fit *fit, pnb__known_side *side,
                            const pnb_embeddings *other)
{
    pnb_error *err = &app->err;
    pnb_view rows = {0}, items = {0};
    pnb_embeddings *chosen = NULL;
    double *doubt = NULL;
    pnb_status status;
    PNB_TRY(refuse_other_levels(fit, path, side->set, err));
    PNB_TRY(of_levels(other, &fit->level, fit->has_level ? 1 : 0, &chosen, err));
    const pnb_embeddings *gallery = chosen != NULL ? chosen : other;
    const pnb__match_probability_use use = {NULL,
                                            gallery,
                                            side->set,
                                            fit->origin.measure,
                                            &fit->origin.measure_opts,
                                            .match_is_told = false};
    PNB_TRY(pnb__match_probability_require(app, &use, fit, path, trust));
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
 * have been: its origin is asked for. */
static bool speaks_of(const pnb_match_probability_fit *fit, const pnb_embeddings *gallery)
{
    const char *of = fit->origin.gallery.modality;
    return of[0] == '\0' || strcmp(of, gallery->info.modality) == 0;
}

/* Of several calibrations each has captions of its own: one that is of all, or of a level that came
 * before, would count them twice. */
static pnb_status refuse_twice(const pnb__known_matching *m, size_t k,
                               const pnb_match_probability_fit *fit, bool seen[], size_t n_seen,
                               pnb_error *err)
{
    if (m->n_calibrations == 1)
        return PNB_OK;
    if (!fit->has_level || (size_t)fit->level >= n_seen)
        return pnb__fail(err, PNB_ARG,
                         "%s is not of one level, 0 to %zu (calibrate --level): beside others it "
                         "would count captions twice",
                         m->calibration[k], n_seen - 1);
    if (seen[fit->level])
        return pnb__fail(err, PNB_ARG, "%s is of level %d, as one before it", m->calibration[k],
                         fit->level);
    seen[fit->level] = true;
    return PNB_OK;
}

/* *is_spoken_of: the first calibration is of this side, and the score is the doubt of all; else
 * nothing is done. */
static pnb_status add_doubts(pnb__app *app, const pnb__known_matching *m, pnb__known_side *side,
                             const pnb_embeddings *other, bool *is_spoken_of)
{
    bool seen[PNB__MAX_MATCH_LEVELS] = {false};
    pnb_status status = PNB_OK;
    *is_spoken_of = m->n_calibrations > 0;
    for (size_t k = 0; k < m->n_calibrations && *is_spoken_of && status == PNB_OK; k++) {
        pnb_match_probability_fit fit = {0};
        status = pnb_match_probability_fit_load(&fit, m->calibration[k], &app->err);
        if (status == PNB_OK && k == 0)
            *is_spoken_of = speaks_of(&fit, other);
        if (status == PNB_OK && *is_spoken_of)
            status = refuse_twice(m, k, &fit, seen, PNB_COUNT(seen), &app->err);
        if (status == PNB_OK && *is_spoken_of)
            status = add_doubt(app, m->calibration[k], m->trust, &fit, side, other);
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
