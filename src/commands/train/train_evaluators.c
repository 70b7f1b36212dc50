/* Zero-shot classification and retrieval between the steps of a training.
 *
 * They are `classify` and `eval retrieval` of the weights as they are: the same functions on the
 * model that trains, so the figures are those that the commands find for the checkpoint of the same
 * step. Retrieval takes every caption of a picture, where validation takes one. A run that is
 * interrupted meanwhile finishes the measurement first: all processes of a job go by its figures.
 */
#include "commands/train/train_evaluators.h"

#include <string.h>

#include "base/grow.h"
#include "commands/common/encode_use.h"
#include "penumbra/retrieval.h"
#include "penumbra/view.h"
#include "sets/settle.h"

/* Messages of the command are for one run of it; here it runs again and again. What is skipped is
 * counted once, where it is first met. */
typedef struct quiet_app {
    pnb__app app;
    pnb__app *outer;
} quiet_app;

static void begin_quiet(quiet_app *q, pnb__app *outer)
{
    q->app = *outer;
    q->outer = outer;
    q->app.common.quiet = true;
    q->app.interrupted = NULL;
    q->app.err = (pnb_error)PNB_ERROR_INIT;
}

static pnb_status end_quiet(quiet_app *q, pnb_status status, const char *what, pnb_error *err)
{
    q->outer->n_skipped = PNB_MAX(q->outer->n_skipped, q->app.n_skipped);
    return status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s: %s", what, q->app.err.text);
}

/* ---- zero-shot classification ---- */

static pnb_status run_zeroshot(void *user, const pnb_train_snapshot *now, pnb_train_figure *out,
                               size_t *n, pnb_error *err)
{
    pnb__train_evaluators *e = user;
    pnb__classify run = {0};
    pnb_encoder encoder = {0};
    quiet_app q;
    begin_quiet(&q, e->app);
    pnb_status status = pnb__encoder_borrow(&encoder, "training", now->model, now->tokenizer,
                                            now->preprocess, &q.app.err);
    encoder.max_image_pixels = q.app.common.max_image_pixels;
    e->zeroshot.encoder = &encoder;
    if (status == PNB_OK)
        status = pnb__classify_run(&q.app, &e->zeroshot, &run);
    if (status == PNB_OK) {
        const pnb_train_figure figures[] = {
            {"zeroshot_top1", "imagenet-zeroshot-val-top1", run.figures.acc1},
            {"zeroshot_top5", "imagenet-zeroshot-val-top5", run.figures.acc5},
            {"zeroshot_class_mean", NULL, run.figures.mean_per_class_recall}};
        memcpy(out, figures, sizeof figures);
        *n = PNB_COUNT(figures);
    }
    e->zeroshot.encoder = NULL;
    pnb__classify_reset(&run);
    pnb__encoder_reset(&encoder);
    return end_quiet(&q, status, "zero-shot classification", err);
}

/* Without a frequency every second epoch, as open_clip has it; its 0 is never. */
static pnb_status open_zeroshot(pnb__train_evaluators *e, pnb__app *app, pnb__train_args *a)
{
    enum { USUAL = 2, BEST_OF = 5 };
    size_t n_classes = 0;
    const bool is_asked = a->zeroshot_frequency != PNB__INT_UNSET && a->zeroshot_frequency > 0;
    if (a->imagenet_val == NULL && is_asked)
        return pnb__usage(app, "--zeroshot-frequency %lld: give the pictures with --imagenet-val",
                          (long long)a->zeroshot_frequency);
    if (a->imagenet_val == NULL && (a->zeroshot_classnames != NULL ||
                                    a->zeroshot_templates != NULL || a->zeroshot_split != NULL))
        return pnb__usage(app, "--zeroshot-classnames, --zeroshot-templates and --zeroshot-split "
                               "speak of the pictures of --imagenet-val, and there are none");
    if (a->imagenet_val == NULL || a->zeroshot_frequency == 0)
        return PNB_OK;
    e->zeroshot = pnb__classify_opts_default();
    e->zeroshot.images = a->imagenet_val;
    e->zeroshot.classnames = a->zeroshot_classnames;
    e->zeroshot.templates = a->zeroshot_templates;
    if (a->zeroshot_split != NULL)
        e->zeroshot.source.split = a->zeroshot_split;
    pnb_status status = pnb__classify_preflight(app, &e->zeroshot, &n_classes);
    if (status == PNB_OK && n_classes < BEST_OF && a->job.best_by != NULL &&
        strcmp(a->job.best_by, "zeroshot_top5") == 0)
        status = pnb__fail(&app->err, PNB_ARG,
                           "%zu classes have no figure of the best %d, and --best-by zeroshot_top5 "
                           "would find no checkpoint the best",
                           n_classes, (int)BEST_OF);
    if (status != PNB_OK) {
        pnb__error_prefix(&app->err, "--imagenet-val");
        return status;
    }
    a->job.evaluators[a->job.n_evaluators++] =
        (pnb_train_evaluator){.prefix = "zeroshot_",
                              .frequency = is_asked ? a->zeroshot_frequency : USUAL,
                              .run = run_zeroshot,
                              .user = e};
    return PNB_OK;
}

/* ---- retrieval ---- */

/* Pairs of rows, of the pictures that could be read. */
static pnb_status make_truth(const pnb__train_evaluators *e, pnb_truth **out, pnb_error *err)
{
    size_t n_texts = e->texts.n, n = 0, *row = NULL;
    int64_t *pairs = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(row, pnb__image_inputs_count(e->images.images), err));
    PNB_TRY(PNB_ALLOC(pairs, 2 * n_texts, err));
    PNB_TRY(pnb__class_source_rows(&e->images, row, err));
    for (size_t j = 0; j < n_texts; j++) {
        if (row[e->image_of[j]] == SIZE_MAX)
            continue;
        pairs[2 * n] = (int64_t)row[e->image_of[j]];
        pairs[2 * n++ + 1] = (int64_t)j;
    }
    status = pnb_truth_create_pairs(out, e->images.set->n, n_texts, pairs, n, err);
done:
    pnb__free(row);
    pnb__free(pairs);
    return status;
}

/* As eval_load.c and eval_retrieval.c do it: the measure by the families, ranks both ways. */
static pnb_status rank(const pnb__train_evaluators *e, const pnb__app *app,
                       const pnb_embeddings *texts, pnb_retrieval *out, pnb_error *err)
{
    pnb_truth *truth = NULL;
    pnb_view of_images = {0}, of_texts = {0};
    pnb_search_opts search = pnb_search_opts_default();
    pnb_status status;
    search.measure = PNB__MEASURE_AUTO;
    search.measure_opts = pnb_measure_opts_default();
    search.measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(make_truth(e, &truth, err));
    PNB_TRY(pnb_view_init(&of_images, e->images.set, err));
    PNB_TRY(pnb_view_init(&of_texts, texts, err));
    PNB_TRY(pnb__measure_of_sets(&search.measure, e->images.set, texts, err));
    PNB_TRY(
        pnb__measure_settle(&search.measure, search.measure, &of_images.rows, &of_texts.rows, err));
    const pnb_retrieval_job job = {
        .a = &of_images.rows, .b = &of_texts.rows, .truth = truth, .opts = &search};
    status = pnb_retrieval_compute(app->ctx, &job, out, NULL, NULL, err);
done:
    pnb_view_reset(&of_images);
    pnb_view_reset(&of_texts);
    pnb_truth_free(truth);
    return status;
}

static pnb_status run_retrieval(void *user, const pnb_train_snapshot *now, pnb_train_figure *out,
                                size_t *n, pnb_error *err)
{
    pnb__train_evaluators *e = user;
    pnb_embeddings *texts = NULL;
    pnb_encoder encoder = {0};
    pnb_retrieval r;
    quiet_app q;
    pnb_status status;
    begin_quiet(&q, e->app);
    const pnb__embed_source source = pnb__text_inputs_source(&e->texts);
    PNB_TRY(pnb__encoder_borrow(&encoder, "training", now->model, now->tokenizer, now->preprocess,
                                &q.app.err));
    encoder.max_image_pixels = q.app.common.max_image_pixels;
    PNB_TRY(pnb__class_source_embed(&e->images, &q.app, &encoder));
    PNB_TRY(pnb__embed_all(&q.app, &encoder, &source, "captions", false, &texts));
    PNB_TRY(rank(e, &q.app, texts, &r, &q.app.err));
    const pnb_train_figure figures[] = {
        {"retrieval_i2t_r1", "retrieval_image_to_text_R@1", r.forward.recall[0]},
        {"retrieval_i2t_r5", "retrieval_image_to_text_R@5", r.forward.recall[1]},
        {"retrieval_i2t_r10", "retrieval_image_to_text_R@10", r.forward.recall[2]},
        {"retrieval_t2i_r1", "retrieval_text_to_image_R@1", r.backward.recall[0]},
        {"retrieval_t2i_r5", "retrieval_text_to_image_R@5", r.backward.recall[1]},
        {"retrieval_t2i_r10", "retrieval_text_to_image_R@10", r.backward.recall[2]}};
    memcpy(out, figures, sizeof figures);
    *n = PNB_COUNT(figures);
done:
    pnb_embeddings_free(e->images.set);
    e->images.set = NULL;
    pnb_embeddings_free(texts);
    pnb__encoder_reset(&encoder);
    return end_quiet(&q, status, "retrieval", err);
}

/* Of samples with levels those of --val-level where there are some: the others are less exact. */
static bool is_taken(const pnb_sample *s, size_t k, int level)
{
    bool has_level = false;
    for (size_t i = 0; i < s->n_texts; i++)
        has_level = has_level || s->levels[i] == level;
    return level < 0 || !has_level || s->levels[k] == level;
}

static pnb_status add_texts(pnb__train_evaluators *e, const pnb_dataset *set, int level,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = 0;
    for (size_t i = 0; i < pnb_dataset_size(set) && status == PNB_OK; i++) {
        pnb_sample s = {0};
        status = pnb_dataset_get(set, i, &s, err);
        for (size_t k = 0; k < s.n_texts && status == PNB_OK; k++) {
            if (!is_taken(&s, k, level))
                continue;
            status = pnb__text_inputs_add_text(&e->texts, s.texts[k], err);
            if (status == PNB_OK && e->texts.n > n)
                status = PNB_PUSH(e->image_of, n, err, i);
        }
        pnb_sample_reset(&s);
    }
    return status;
}

static pnb_status open_retrieval(pnb__train_evaluators *e, pnb__app *app, pnb__train_args *a)
{
    const pnb_train_opts *o = &a->job;
    if (a->retrieval_frequency == PNB__INT_UNSET)
        return PNB_OK;
    if (o->val_data == NULL)
        return pnb__usage(app, "--retrieval-frequency ranks pictures and captions of validation: "
                               "give --val-data");
    pnb_dataset_opts opts = o->dataset;
    opts.negatives_key = NULL; /* of the training data alone */
    pnb_status status =
        pnb__image_inputs_open_set(&e->images.images, o->val_data, &opts, &app->err);
    if (status == PNB_OK)
        status = add_texts(e, pnb__image_inputs_set(e->images.images), o->val_level, &app->err);
    if (status != PNB_OK) {
        pnb__error_prefix(&app->err, "--retrieval-frequency");
        return status;
    }
    a->job.evaluators[a->job.n_evaluators++] =
        (pnb_train_evaluator){.prefix = "retrieval_",
                              .frequency = a->retrieval_frequency,
                              .run = run_retrieval,
                              .user = e};
    return PNB_OK;
}

/* ---- both ---- */

/* Named now: after hours of training it would be found out. */
static pnb_status check_best(pnb__app *app, const char *name)
{
    static const char *const known[] = {
        "zeroshot_top1",    "zeroshot_top5",    "zeroshot_class_mean",
        "retrieval_i2t_r1", "retrieval_i2t_r5", "retrieval_i2t_r10",
        "retrieval_t2i_r1", "retrieval_t2i_r5", "retrieval_t2i_r10"};
    bool is_ours = name != NULL &&
                   (pnb__starts_with(name, "zeroshot_") || pnb__starts_with(name, "retrieval_"));
    for (size_t i = 0; is_ours && i < PNB_COUNT(known); i++)
        is_ours = strcmp(name, known[i]) != 0;
    return !is_ours
               ? PNB_OK
               : pnb__usage(app,
                            "--best-by %s: zeroshot_top1, zeroshot_top5, zeroshot_class_mean, "
                            "and retrieval_i2t_r and retrieval_t2i_r with 1, 5 or 10 there are",
                            name);
}

pnb_status pnb__train_evaluators_open(pnb__train_evaluators *e, pnb__app *app, pnb__train_args *a)
{
    *e = (pnb__train_evaluators){.app = app};
    pnb_status status = check_best(app, a->job.best_by);
    if (status == PNB_OK)
        status = open_zeroshot(e, app, a);
    return status == PNB_OK ? open_retrieval(e, app, a) : status;
}

void pnb__train_evaluators_reset(pnb__train_evaluators *e)
{
    pnb__class_source_reset(&e->images);
    pnb__text_inputs_reset(&e->texts);
    pnb__free(e->image_of);
    *e = (pnb__train_evaluators){0};
}
