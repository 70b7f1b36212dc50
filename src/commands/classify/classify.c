/* From options to figures: opens pictures, makes the classes, scores, rejects, measures.
 *
 * Names and texts are settled before anything is embedded, so that a wrong template does not cost
 * an hour. The steps on prompts are classify_prompts.c's, scalings classify_scaling.c's; printing
 * and files follow when all of this has succeeded. */
#include "commands/classify/classify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "penumbra/view.h"
#include "prob/measure.h"
#include "program/output_name.h"
#include "sets/settle.h"

/* CLIP's logit scale, which most models reach. */
#define DEFAULT_SCALE 100.0
enum { DRAWS = 400 }; /* of --predict sampling, as BayesVLM draws */

pnb__classify_opts pnb__classify_opts_default(void)
{
    return (pnb__classify_opts){.source = {.split = "test"},
                                .measure = PNB__MEASURE_AUTO,
                                .match = {.a = NAN, .b = NAN},
                                .scale = NAN,
                                .n_bins = 15,
                                .filter_value = NAN,
                                .bprw_alpha = NAN,
                                .bprw_eps = NAN,
                                .none_threshold = NAN,
                                .none_reject = NAN,
                                .none_fpr = NAN,
                                .changed = {.eps = NAN, .step = NAN}};
}

/* ---- opening ---- */

static pnb_status open_one(pnb__app *app, pnb__classified *c, const char *what,
                           const pnb__class_source_opts *opts)
{
    return what != NULL ? pnb__class_source_open(&c->source, app, what, opts) : PNB_OK;
}

static pnb_status open_sources(pnb__app *app, pnb__classify *run)
{
    const pnb__classify_opts *o = run->opts;
    pnb_status status;
    PNB_TRY(open_one(app, &run->images, o->images, &o->source));
    pnb__class_source_opts val = o->source;
    val.words = NULL;
    PNB_TRY(open_one(app, &run->negatives, o->negatives, &val));
    val.split = o->val_split;
    PNB_TRY(open_one(app, &run->val_images, o->val_images, &val));
    PNB_TRY(open_one(app, &run->val_negatives, o->val_negatives, &val));
    if (o->bprw_images != NULL) {
        pnb__class_source_opts shots = val;
        shots.split = o->bprw_split;
        PNB_TRY(pnb__class_source_open(&run->shots, app, o->bprw_images, &shots));
        if (strcmp(run->images.source.what, run->shots.what) == 0)
            pnb__warn(app, "%s gives the prompts' weights and is judged: the figures will flatter",
                      run->shots.what);
    }
    if (o->val_images != NULL && strcmp(run->images.source.what, run->val_images.source.what) == 0)
        pnb__warn(app, "%s is fitted on and judged on: the figures will flatter",
                  run->images.source.what);
done:
    return status;
}

static bool needs_images(const pnb__classify *run)
{
    const pnb__class_source *all[] = {&run->images.source, &run->negatives.source,
                                      &run->val_images.source, &run->val_negatives.source,
                                      &run->shots};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        if (all[i]->images != NULL)
            return true;
    return false;
}

/* A class is one vector, the mean of its prompts: of K embeddings a row that would mix the k-th of
 * all, which mean nothing together. */
static pnb_status check_single(pnb__app *app, const char *name, size_t n_embeddings)
{
    if (n_embeddings <= 1)
        return PNB_OK;
    return pnb__fail(&app->err, PNB_UNSUPPORTED,
                     "%s gives %zu embeddings each, and a class is one: PVSE models search and "
                     "retrieve, they do not classify",
                     name, n_embeddings);
}

static pnb_status open_model(pnb__app *app, const pnb__classify *run, pnb_encoder *encoder)
{
    const pnb__classify_opts *o = run->opts;
    bool images = needs_images(run), texts = pnb__classify_wants_texts(run);
    const pnb_encoder_opts parts = {.sides = (images ? PNB_ENCODE_IMAGES : 0) |
                                             (texts ? PNB_ENCODE_TEXTS : 0),
                                    .tokenizer = o->tokenizer,
                                    .preprocess = o->preprocess,
                                    .precision = o->precision};
    if (parts.sides == 0)
        return PNB_OK;
    const char *what = images ? "pictures"
                       : o->prompts == NULL && o->load_clfs.n == 0
                           ? "prompts"
                           : "dummy prompts (or give --none-set)";
    if (o->model == NULL)
        return pnb__usage(app, "--model is missing: it embeds the %s", what);
    pnb_status status = pnb__encoder_open_named(encoder, app, o->model, &parts);
    return status == PNB_OK ? check_single(app, o->model, encoder->info->n_embeddings) : status;
}

/* With --skip-existing: whether the result is there. */
static void look_for_result(const pnb__app *app, pnb__classify *run, const char *path)
{
    if (path == NULL || !run->opts->skip_existing || access(path, F_OK) != 0)
        return;
    pnb__say(app, "%s exists: nothing to do", path);
    run->is_skipped = true;
}

/* The name of the result, known as soon as the model is. */
static pnb_status name_output(pnb__app *app, pnb__classify *run, const pnb_encoder *encoder)
{
    const pnb__classify_opts *o = run->opts;
    const pnb_embeddings *set = run->images.source.set; /* NULL: pictures for the encoder */
    char pretrained[PNB__PRETRAINED_BYTES] = "";
    if (set != NULL)
        pnb__set_pretrained(&set->info, pretrained);
    const pnb__output_words words = {o->dataset != NULL ? o->dataset : o->images,
                                     set != NULL ? pretrained : encoder->weights_sha256,
                                     set != NULL ? set->info.model : encoder->name, o->language,
                                     PNB__CLASSIFY_TASK};
    return o->output != NULL ? pnb__output_name(&run->output, o->output, &words, &app->err)
                             : PNB_OK;
}

/* ---- pictures ---- */

static pnb_status embed_one(pnb__app *app, pnb__classify *run, pnb__classified *c,
                            pnb_encoder *encoder)
{
    pnb_status status;
    if (c->source.what == NULL)
        return PNB_OK;
    PNB_TRY(pnb__class_source_embed(&c->source, app, encoder));
    if (run->images.source.set != c->source.set) {
        status = pnb_embeddings_check_mix(run->images.source.set, c->source.set, &app->err);
        if (status != PNB_OK)
            pnb__error_prefix(&app->err, "%s and %s", run->opts->images, c->source.what);
    }
    if (status == PNB_OK)
        status = pnb__row_uncertainty(c->source.set, PNB_UNCERTAINTY_TRACE, &c->u, &app->err);
done:
    return status;
}

static pnb_status embed_sources(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    pnb_status status;
    PNB_TRY(embed_one(app, run, &run->images, encoder));
    PNB_TRY(embed_one(app, run, &run->negatives, encoder));
    PNB_TRY(embed_one(app, run, &run->val_images, encoder));
    PNB_TRY(embed_one(app, run, &run->val_negatives, encoder));
    PNB_TRY(
        pnb__class_source_label(&run->images.source, &run->classes, run->opts->labels, &app->err));
    if (run->val_images.source.set != NULL)
        PNB_TRY(pnb__class_source_label(&run->val_images.source, &run->classes,
                                        run->opts->val_labels, &app->err));
done:
    return status;
}

/* ---- scores ---- */

static pnb_status predict(pnb__app *app, const pnb__classify *run, pnb__classified *c)
{
    pnb_view images = {0}, classes = {0}, dummies = {0};
    pnb_status status;
    if (c->source.set == NULL)
        return PNB_OK;
    PNB_TRY(pnb_view_init(&images, c->source.set, &app->err));
    PNB_TRY(pnb_view_init(&classes, run->clf, &app->err));
    if (run->dummies != NULL)
        PNB_TRY(pnb_view_init(&dummies, run->dummies, &app->err));
    const pnb_classify_job job = {.images = &images.rows,
                                  .classes = &classes.rows,
                                  .dummies = run->dummies != NULL ? &dummies.rows : NULL,
                                  .labels = c->source.label,
                                  .measure = run->measure,
                                  .opts = &run->measure_opts,
                                  .scale = run->scale,
                                  .prediction = run->opts->prediction,
                                  .n_draws = run->opts->n_draws > 0 ? run->opts->n_draws : DRAWS,
                                  .seed = (uint64_t)app->common.seed,
                                  .k = PNB_MIN((size_t)5, run->clf->n)};
    status = pnb_classify(app->ctx, &job, &c->p, &app->err);
    if (status != PNB_OK)
        pnb__error_prefix(&app->err, "%s", c->source.what);
done:
    pnb_view_reset(&images);
    pnb_view_reset(&classes);
    pnb_view_reset(&dummies);
    return status;
}

static pnb_status find_dummies(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    static const char *const one_dummy[] = {"a photo"};
    const pnb__text_list *given = &run->opts->none_prompts;
    const char *const *texts = given->n > 0 ? given->items : one_dummy;
    pnb__text_inputs inputs = {0};
    pnb_status status = PNB_OK;
    if (!run->opts->has_none || run->opts->none != PNB_NONE_DUMMY)
        return PNB_OK;
    if (run->opts->none_set != NULL)
        return pnb__set_load(&run->dummies, run->opts->none_set, app);
    for (size_t i = 0; i < PNB_MAX(given->n, (size_t)1); i++)
        PNB_TRY(pnb__text_inputs_add_text(&inputs, texts[i], &app->err));
    if (inputs.n_bad > 0)
        PNB_TRY(pnb__fail(&app->err, PNB_FORMAT, "%s", inputs.bad[0]));
    const pnb__embed_source source = pnb__text_inputs_source(&inputs);
    PNB_TRY(pnb__embed_all(app, encoder, &source, "prompts", false, &run->dummies));
done:
    pnb__text_inputs_reset(&inputs);
    return status;
}

/* run->measure, by the families where none is asked for; means that are not unit are told. */
static pnb_status settle_measure(pnb__app *app, pnb__classify *run)
{
    pnb_view images = {0}, classes = {0};
    pnb_status status;
    PNB_TRY(check_single(app, run->images.source.what, run->images.source.set->info.n_embeddings));
    PNB_TRY(pnb_view_init(&images, run->images.source.set, &app->err));
    PNB_TRY(pnb_view_init(&classes, run->clf, &app->err));
    run->measure = run->opts->measure;
    if (run->opts->prediction != PNB_PREDICTION_PLAIN && run->measure == PNB__MEASURE_AUTO)
        run->measure = PNB_MEASURE_MEAN; /* what has a variance there is the cosine */
    PNB_TRY(pnb__measure_of_sets(&run->measure, run->images.source.set, run->clf, &app->err));
    PNB_TRY(
        pnb__measure_settle(&run->measure, run->measure, &images.rows, &classes.rows, &app->err));
    run->measure_opts = pnb_measure_opts_default();
    run->measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb__match_settle(app, &run->opts->match, run->measure, &run->images.source.set->info,
                              &run->clf->info, &run->measure_opts));
    pnb__check_means(app, run->measure, run->images.source.what, &images.rows);
done:
    pnb_view_reset(&images);
    pnb_view_reset(&classes);
    return status;
}

/* The model's scale belongs to the similarity it was trained on; other scores are in nats. */
static void choose_scale(pnb__classify *run)
{
    double given = run->opts->scale, model = run->clf->info.logit_scale;
    bool is_similarity = pnb__measure_has_logits(run->measure);
    if (!isnan(given))
        run->scale = given;
    else if (run->scaling.has_temperature)
        run->scale = 1.0 / run->scaling.temperature.t;
    else if ((is_similarity || run->clf->kappa != NULL) && isfinite(model) && model > 0.0)
        run->scale = model;
    else
        run->scale = is_similarity ? DEFAULT_SCALE : 1.0;
}

/* ---- figures ---- */

static bool has_labels(const pnb__classified *c)
{
    for (size_t i = 0; c->source.label != NULL && i < c->source.set->n; i++)
        if (c->source.label[i] >= 0)
            return true;
    return false;
}

static pnb_status cluster_images(pnb__app *app, pnb__classify *run)
{
    const pnb__classified *c = &run->images;
    size_t n = 0, *row = pnb__alloc_array(c->p.n, sizeof *row);
    if (row == NULL)
        return pnb__fail_nomem(&app->err, c->p.n * sizeof *row);
    for (size_t i = 0; i < c->p.n; i++)
        if (c->source.label[i] >= 0)
            row[n++] = i;
    pnb_status status = pnb__image_clusters_init(&run->clusters, app, c->source.set, row, n,
                                                 run->opts->cluster, "picture");
    pnb__free(row);
    return status;
}

/* How every figure of the pictures with a label is resampled. */
static pnb_bootstrap_opts resampling(const pnb__classify *run, uint64_t seed)
{
    pnb_bootstrap_opts bootstrap = pnb_bootstrap_opts_default();
    bootstrap.seed = seed;
    bootstrap.cluster = run->clusters.label;
    return bootstrap;
}

/* Accuracy against the pictures' uncertainty, and against the doubt of the prediction itself. */
static pnb_status relate_uncertainty(pnb__classify *run, uint64_t seed, pnb_error *err)
{
    const pnb__classified *c = &run->images;
    const pnb_bootstrap_opts bootstrap = resampling(run, seed);
    size_t n = 0;
    double *u = NULL, *right, *doubt;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(u, c->p.n, 3, err));
    right = u + c->p.n;
    doubt = right + c->p.n;
    for (size_t i = 0; i < c->p.n; i++) {
        if (c->source.label[i] < 0)
            continue;
        right[n] = c->p.top[i * c->p.k] == c->source.label[i];
        doubt[n] = 1.0 - c->p.probability[i * c->p.k];
        u[n++] = c->u[i];
    }
    PNB_TRY(pnb_bootstrap_mean(right, n, &bootstrap, &run->acc1, err));
    PNB_TRY(pnb_uncertainty_calibration_compute(u, right, n, PNB_BINS_EQUAL_COUNT,
                                                PNB_MIN((size_t)10, n), &run->bins, err));
    PNB_TRY(pnb_selective_compute(u, right, n, &run->by_uncertainty, err));
    status = pnb_selective_compute(doubt, right, n, &run->by_doubt, err);
done:
    pnb__free(u);
    return status;
}

/* Figures that count classes alike, and groups. */
static pnb_status score_classes(pnb__classify *run, uint64_t seed, pnb_error *err)
{
    const pnb__classified *c = &run->images;
    const pnb_bootstrap_opts bootstrap = resampling(run, seed);
    pnb__labelled_images rows;
    pnb_status status;
    PNB_TRY(pnb__labelled_images_init(&rows, &c->p, c->source.label, run->groups.group, err));
    PNB_TRY(PNB_ALLOC(run->f1, run->clf->n, err));
    PNB_TRY(pnb_class_scores_compute(rows.label, rows.predicted, rows.n, run->clf->n, &bootstrap,
                                     &run->scores, run->f1, err));
    if (run->groups.names.n > 0)
        status = pnb__image_groups_judge(&run->groups, &rows, run->clf->n, &bootstrap, err);
done:
    pnb__labelled_images_reset(&rows);
    return status;
}

/* Calibration error of s(a score + b) of the first class. */
static pnb_status judge_platt(pnb__classify *run, pnb_error *err)
{
    const pnb__classified *c = &run->images;
    double *confidence = pnb__alloc_array(c->p.n, sizeof *confidence);
    int *is_right = pnb__alloc_array(c->p.n, sizeof *is_right);
    pnb_ece estimate = {0};
    size_t n = 0;
    pnb_status status = PNB_OK;
    if (confidence == NULL || is_right == NULL)
        PNB_TRY(pnb__fail_nomem(err, c->p.n * sizeof *confidence));
    for (size_t i = 0; i < c->p.n; i++) {
        if (c->source.label[i] < 0)
            continue;
        confidence[n] = pnb_platt_apply(&run->scaling.platt, c->p.score[i * c->p.k]);
        is_right[n++] = c->p.top[i * c->p.k] == c->source.label[i];
    }
    status = pnb_ece_compute(confidence, is_right, n, run->opts->n_bins, &estimate, err);
    run->platt_ece = estimate.ece;
done:
    pnb__free(confidence);
    pnb__free(is_right);
    return status;
}

/* Groups are read before the long part of a run would be lost to a wrong line. */
static pnb_status read_groups(pnb__app *app, pnb__classify *run)
{
    const pnb__classify_opts *o = run->opts;
    if (o->groups == NULL && o->group_key == NULL)
        return PNB_OK;
    if (!has_labels(&run->images))
        return pnb__fail(&app->err, PNB_ARG,
                         "no picture has a label, and accuracy by group needs them");
    return pnb__image_groups_read(&run->groups, run->images.source.set, o->groups, o->group_key,
                                  &app->err);
}

static pnb_status measure_accuracy(pnb__app *app, pnb__classify *run)
{
    pnb_error *err = &app->err;
    pnb_status status = PNB_OK;
    run->has_figures = has_labels(&run->images);
    if (!run->has_figures && run->opts->cluster != NULL)
        pnb__warn(app,
                  "no picture has a label, so there is no interval and --cluster does nothing");
    if (!run->has_figures)
        return PNB_OK;
    PNB_TRY(cluster_images(app, run));
    PNB_TRY(pnb_classification_compute(&run->images.p, run->images.source.label, run->opts->n_bins,
                                       &run->figures, err));
    if (run->scaling.has_platt)
        PNB_TRY(judge_platt(run, err));
    PNB_TRY(score_classes(run, (uint64_t)app->common.seed, err));
    status = relate_uncertainty(run, (uint64_t)app->common.seed, err);
done:
    return status;
}

/* ---- all of it ---- */

static pnb_status make_classes(pnb__app *app, pnb__classify *run, pnb_encoder *encoder)
{
    pnb_status status;
    PNB_TRY(pnb__classify_prompts(app, run, encoder));
    PNB_TRY(find_dummies(app, run, encoder));
    PNB_TRY(embed_sources(app, run, encoder));
    PNB_TRY(pnb__classify_build(app, run, encoder));
    status = pnb_embeddings_check_mix(run->images.source.set, run->clf, &app->err);
    if (status != PNB_OK)
        pnb__error_prefix(&app->err, "pictures and classes");
    if (status == PNB_OK && run->dummies != NULL) {
        status = pnb_embeddings_check_mix(run->clf, run->dummies, &app->err);
        if (status != PNB_OK)
            pnb__error_prefix(&app->err, "classes and dummy prompts");
    }
done:
    return status;
}

/* Of the first picture: a set has classes or has none. */
static pnb_status check_labels(pnb__app *app, const pnb__classify *run)
{
    const pnb__class_source *source = &run->images.source;
    const pnb_dataset *set = source->images != NULL ? pnb__image_inputs_set(source->images) : NULL;
    pnb_sample sample = {0};
    if (set == NULL)
        return pnb__fail(
            &app->err, PNB_ARG,
            "%s: a data set of pictures with classes is wanted, as `penumbra classify` "
            "reads it",
            run->opts->images);
    pnb_status status = pnb_dataset_get(set, 0, &sample, &app->err);
    if (status == PNB_OK && sample.label < 0 && sample.class_name == NULL)
        status =
            pnb__fail(&app->err, PNB_ARG, "%s: its pictures have no classes", run->opts->images);
    pnb_sample_reset(&sample);
    return status;
}

/* Names that the pictures' classes are not among, by rows that are named and hold nothing. */
static pnb_status check_names(pnb__app *app, pnb__classify *run)
{
    pnb__class_source *source = &run->images.source;
    const pnb__embed_source rows = pnb__image_inputs_source(source->images);
    pnb_status status = pnb_embeddings_create(&source->set, PNB_POINT, rows.n, 1, &app->err);
    for (size_t i = 0; i < rows.n && status == PNB_OK; i++)
        status = rows.label(rows.user, i, source->set, i, &app->err);
    return status == PNB_OK
               ? pnb__class_source_label(source, &run->classes, run->opts->labels, &app->err)
               : status;
}

pnb_status pnb__classify_preflight(pnb__app *app, const pnb__classify_opts *opts, size_t *n_classes)
{
    pnb__classify run = {.opts = opts};
    pnb_status status;
    PNB_TRY(pnb__classify_check(opts, &app->err));
    PNB_TRY(open_sources(app, &run));
    PNB_TRY(check_labels(app, &run));
    PNB_TRY(pnb__classify_names(app, &run));
    PNB_TRY(check_names(app, &run));
    *n_classes = run.classes.n;
done:
    pnb__classify_reset(&run);
    return status;
}

pnb_status pnb__classify_run(pnb__app *app, const pnb__classify_opts *opts, pnb__classify *run)
{
    pnb_encoder own = {0}, *encoder = opts->encoder != NULL ? opts->encoder : &own;
    pnb_status status;
    *run = (pnb__classify){.opts = opts};
    look_for_result(app, run, opts->output); /* a name without words needs no model */
    if (run->is_skipped)
        return PNB_OK;
    PNB_TRY(pnb__classify_check(opts, &app->err));
    PNB_TRY(open_sources(app, run));
    PNB_TRY(pnb__classify_names(app, run));
    if (opts->encoder == NULL)
        PNB_TRY(open_model(app, run, &own));
    PNB_TRY(name_output(app, run, encoder));
    look_for_result(app, run, run->output);
    if (run->is_skipped)
        goto done;
    PNB_TRY(make_classes(app, run, encoder));
    PNB_TRY(settle_measure(app, run));
    PNB_TRY(pnb__classify_scale(app, run));
    choose_scale(run);
    PNB_TRY(read_groups(app, run));
    PNB_TRY(predict(app, run, &run->images));
    PNB_TRY(predict(app, run, &run->negatives));
    PNB_TRY(predict(app, run, &run->val_images));
    PNB_TRY(predict(app, run, &run->val_negatives));
    PNB_TRY(measure_accuracy(app, run));
    PNB_TRY(pnb__classify_changed(app, run, encoder));
    PNB_TRY(pnb__classify_reject(run, &app->err));
    status = pnb__classify_write(app, run);
done:
    pnb__encoder_reset(&own);
    return status;
}

static void classified_reset(pnb__classified *c)
{
    pnb__class_source_reset(&c->source);
    pnb_predictions_reset(&c->p);
    pnb__free(c->u);
    pnb__free(c->ood);
}

void pnb__classify_reset(pnb__classify *run)
{
    pnb__free(run->output);
    pnb__image_clusters_reset(&run->clusters);
    pnb__texts_reset(&run->classes);
    pnb__class_prompts_reset(&run->texts);
    pnb_embeddings_free(run->prompts);
    pnb__free(run->offset);
    pnb__free(run->prompt_u);
    pnb__free(run->weight);
    pnb__free(run->by_certainty);
    pnb_embeddings_free(run->clf);
    pnb_embeddings_free(run->dummies);
    classified_reset(&run->images);
    classified_reset(&run->negatives);
    classified_reset(&run->val_images);
    classified_reset(&run->val_negatives);
    pnb__class_source_reset(&run->shots);
    pnb_classification_reset(&run->figures);
    pnb__image_groups_reset(&run->groups);
    pnb__free(run->f1);
    *run = (pnb__classify){0};
}
