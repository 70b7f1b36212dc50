/* Models of an experiment: trained, or gone on with, and the test pictures and captions embedded.
 *
 * A run's folder carries the program's number, so that a model of another program is not gone on
 * with. A run that was interrupted continues at its last checkpoint. */
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/reproduce/reproduce.h"
#include "commands/train/train_run.h"
#include "encode/encoder.h"

/* Steps between two checkpoints, of which the last stays. */
enum { SAVE_EVERY = 100 };

unsigned pnb__reproduce_program(const pnb__reproduction *run)
{
    return (unsigned)pnb__hash_bytes(run->program, strlen(run->program), 0);
}

/* ---- training ---- */

pnb_status pnb__reproduce_train(pnb__reproduction *run, const char *stage, uint64_t seed,
                                pnb_train_opts *opts, char **model)
{
    const pnb__reproduce_opts *o = run->opts;
    pnb_error *err = &run->app->err;
    char *logs = pnb__path_join(o->out, "runs"), *dir = NULL, *latest = NULL;
    char *name =
        pnb__format("%s-%llu.%08x", stage, (unsigned long long)seed, pnb__reproduce_program(run));
    pnb_train_result outcome = {0};
    pnb_status status = PNB_OK;
    if (logs == NULL || name == NULL)
        PNB_TRY(pnb__fail_nomem(err, 256));
    dir = pnb__path_join(logs, name);
    latest = dir != NULL ? pnb__path_join(dir, "checkpoints/latest") : NULL;
    if (latest == NULL)
        PNB_TRY(pnb__fail_nomem(err, 256));
    opts->train_data = run->images.train;
    opts->logs = logs;
    opts->name = name;
    opts->resume = pnb__path_is_dir(latest) ? "latest" : NULL;
    opts->max_steps = o->n_steps;
    opts->save_every_n_steps = SAVE_EVERY;
    opts->save_most_recent = false;
    opts->val_frequency = 0;
    opts->val_every_n_steps = 0;
    opts->seed = seed;
    opts->max_image_pixels = run->app->common.max_image_pixels;
    if (o->batch_size > 0)
        opts->batch_size = o->batch_size;
    status = pnb__train_watched(run->app, opts, &outcome);
    if (status == PNB_INTERRUPTED) { /* the trainer's advice is that of its own command */
        run->app->err = (pnb_error)PNB_ERROR_INIT;
        (void)pnb__fail(err, PNB_INTERRUPTED,
                        "stopped after step %lld of %lld; the same command goes on",
                        (long long)outcome.step, (long long)outcome.n_steps);
    }
    if (status != PNB_OK)
        goto done;
    status = pnb__copy_text(model, outcome.checkpoint_dir, err);
done:
    pnb__free(logs);
    pnb__free(name);
    pnb__free(dir);
    pnb__free(latest);
    return status;
}

/* ---- embedding ---- */

/* Means without what says how sure they are. */
static void take_means(pnb_embeddings *set)
{
    pnb__free(set->log_var);
    set->log_var = NULL;
    set->family = PNB_POINT;
}

static pnb_status embed_source(pnb__reproduction *run, pnb_encoder *encoder,
                               const pnb__embed_source *source, const pnb__repro_part *part,
                               const char *unit, const char *path)
{
    pnb_encode_opts opts = pnb__encode_opts(run->app);
    pnb__encode_watch watch;
    pnb_embeddings *set = NULL;
    opts.ttda = part->ttda;
    opts.raw = part->raw;
    pnb__encode_watch_init(&watch, run->app, unit, &opts);
    pnb_status status = pnb__embed_set(encoder, source, &opts, &set, NULL, &run->app->err);
    if (status == PNB_OK && part->as_points && set->family == PNB_GAUSSIAN_DIAG)
        take_means(set);
    if (status == PNB_OK)
        status = pnb_embeddings_save(set, path, &run->app->err);
    pnb_embeddings_free(set);
    return status;
}

static pnb_status embed_images(pnb__reproduction *run, pnb_encoder *encoder,
                               const pnb__repro_part *part, const char *path)
{
    pnb__image_inputs *inputs = NULL;
    pnb_status status;
    PNB_TRY(pnb__image_inputs_open_set(&inputs, part->images, NULL, &run->app->err));
    const pnb__embed_source source = pnb__image_inputs_source(inputs);
    status = embed_source(run, encoder, &source, part, "pictures", path);
done:
    pnb__image_inputs_free(inputs);
    return status;
}

static pnb_status embed_texts(pnb__reproduction *run, pnb_encoder *encoder,
                              const pnb__repro_part *part, const char *path)
{
    pnb__text_inputs inputs = {0};
    pnb_status status;
    PNB_TRY(pnb__text_inputs_add(&inputs, part->texts, NULL, NULL, &run->app->err));
    const pnb__embed_source source = pnb__text_inputs_source(&inputs);
    status = embed_source(run, encoder, &source, part, "captions", path);
done:
    pnb__text_inputs_reset(&inputs);
    return status;
}

pnb_status pnb__reproduce_embed_part(pnb__reproduction *run, const pnb__repro_part *part,
                                     const char *stage, uint64_t seed, const char *model,
                                     pnb__pair_paths *paths)
{
    const pnb_encoder_opts sides = {.sides = PNB_ENCODE_IMAGES | PNB_ENCODE_TEXTS};
    pnb_encoder encoder = {0};
    char *images = NULL, *texts = NULL, *truth = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_path(run, "sets", stage, seed, ".images.safetensors", &images));
    PNB_TRY(pnb__reproduce_path(run, "sets", stage, seed, ".texts.safetensors", &texts));
    PNB_TRY(pnb__copy_text(&truth, part->truth, &run->app->err));
    PNB_TRY(pnb__encoder_open_named(&encoder, run->app, model, &sides));
    PNB_TRY(embed_images(run, &encoder, part, images));
    PNB_TRY(embed_texts(run, &encoder, part, texts));
    *paths = (pnb__pair_paths){images, texts, truth};
    images = texts = truth = NULL;
done:
    pnb__encoder_reset(&encoder);
    pnb__free(images);
    pnb__free(texts);
    pnb__free(truth);
    return status;
}

pnb_status pnb__reproduce_embed(pnb__reproduction *run, const char *stage, uint64_t seed,
                                const char *model, pnb__pair_paths *paths)
{
    const pnb__repro_part test = {
        .images = run->images.test, .texts = run->images.texts, .truth = run->images.truth};
    return pnb__reproduce_embed_part(run, &test, stage, seed, model, paths);
}
