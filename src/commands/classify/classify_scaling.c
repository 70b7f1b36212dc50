/* Temperature and Platt scaling of the scores: loaded, or fitted on the validation pictures.
 *
 * Both are fitted on raw scores (pnb_measure_score), so 1/t is the scale of the softmax and p =
 * s(a score + b) is the probability that a picture is of a class, each class on its own. The fits
 * and the file are eval's calibration. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "penumbra/view.h"

/* What the scores of these pictures with these classes are. */
static pnb_fit_origin origin_of(const pnb__classify *run, const pnb_embeddings *images)
{
    return (pnb_fit_origin){.has_measure = true,
                            .measure = run->measure,
                            .measure_opts = run->measure_opts,
                            .queries = pnb_fit_side_of(images),
                            .gallery = pnb_fit_side_of(run->clf)};
}

static pnb_status load(pnb__app *app, pnb__classify *run)
{
    static const pnb_fit_words words = {"pictures", "classes"};
    const char *path = run->opts->load_scaling;
    char why[320];
    pnb_status status = pnb_scaling_load(&run->scaling, run->opts->load_scaling, &app->err);
    if (status != PNB_OK)
        return status;
    const pnb_scaling *s = &run->scaling;
    if (s->has_temperature && !isnan(run->opts->scale))
        return pnb__usage(app, "%s brings a temperature; --scale has no place beside it",
                          run->opts->load_scaling);
    pnb_fit_origin origin = origin_of(run, run->images.source.set);
    pnb_fit_agreement found = pnb_fit_origin_check(&s->origin, &origin, &words, why, sizeof why);
    if (found == PNB_FIT_DIFFERS)
        return pnb__fail(&app->err, PNB_ARG, "%s %s", path, why);
    if (found == PNB_FIT_UNKNOWN && !run->opts->trust_scaling)
        return pnb__fail(&app->err, PNB_ARG,
                         "%s %s; fit it again with --save-scaling, or take it on your word by "
                         "--trust-scaling",
                         path, why);
    if (found == PNB_FIT_UNKNOWN)
        pnb__warn(app, "%s %s: it is used on your word", path, why);
    return PNB_OK;
}

/* Scores of the labelled validation pictures; *n of them. */
static pnb_status validation_scores(pnb__app *app, const pnb__classify *run, double *scores,
                                    int *label, size_t *n)
{
    const pnb__class_source *val = &run->val_images.source;
    pnb_view images = {0}, classes = {0};
    pnb_predictions unused = {0};
    size_t n_classes = run->clf->n;
    pnb_status status;
    PNB_TRY(pnb_view_init(&images, val->set, &app->err));
    PNB_TRY(pnb_view_init(&classes, run->clf, &app->err));
    const pnb_classify_job job = {.images = &images.rows,
                                  .classes = &classes.rows,
                                  .measure = run->measure,
                                  .opts = &run->measure_opts,
                                  .scale = 1.0,
                                  .k = 1,
                                  .all_scores = scores};
    PNB_TRY(pnb_classify(app->ctx, &job, &unused, &app->err));
    *n = 0;
    for (size_t i = 0; i < val->set->n; i++) {
        if (val->label[i] < 0)
            continue;
        memmove(scores + *n * n_classes, scores + i * n_classes, n_classes * sizeof *scores);
        label[(*n)++] = val->label[i];
    }
done:
    pnb_predictions_reset(&unused);
    pnb_view_reset(&images);
    pnb_view_reset(&classes);
    return status;
}

static pnb_status fit(pnb__app *app, pnb__classify *run)
{
    const pnb__class_source *val = &run->val_images.source;
    size_t n = 0, n_classes = run->clf->n;
    double *scores = NULL;
    int *label = NULL;
    pnb_scaling *s = &run->scaling;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ROWS(scores, val->set->n, n_classes, &app->err));
    PNB_TRY(PNB_ALLOC(label, val->set->n, &app->err));
    PNB_TRY(validation_scores(app, run, scores, label, &n));
    if (run->opts->fit_temperature)
        PNB_TRY(pnb_temperature_fit(scores, label, n, n_classes, &s->temperature, &app->err));
    if (run->opts->fit_platt)
        PNB_TRY(pnb_platt_fit_classes(scores, label, n, n_classes, &s->platt, &app->err));
    s->has_temperature = run->opts->fit_temperature;
    s->has_platt = run->opts->fit_platt;
    run->is_scaling_fitted = true;
    s->origin = origin_of(run, val->set);
done:
    if (status != PNB_OK)
        pnb__error_prefix(&app->err, "fitting on %s", run->opts->val_images);
    pnb__free(scores);
    pnb__free(label);
    return status;
}

pnb_status pnb__classify_scale(pnb__app *app, pnb__classify *run)
{
    if (run->opts->load_scaling != NULL)
        return load(app, run);
    if (run->opts->fit_temperature || run->opts->fit_platt)
        return fit(app, run);
    return PNB_OK;
}
