/* Embeds a list: fill a batch, encode it, append the rows, save a part now and then, join.
 *
 * A part is saved after `save_every` rows or 20 seconds, always at the end of a batch, and a
 * continued run starts at that input with the same batches, so its rows are those of an
 * uninterrupted run. What a batch is made of lies in embed_batch.c, the parts in embed_journal.c.
 */
#include "encode/embed_job.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "encode/clip_retrieval.h"
#include "encode/embed_batch.h"
#include "encode/embed_journal.h"
#include "encode/embed_sign.h"
#include "penumbra/safetensors.h"
#include "program/progress.h"
#include "sets/embeddings.h"

#define SAVE_PAUSE_S 20.0

typedef struct job {
    pnb__app *app;
    pnb__embedder *encoder;
    const pnb__pictures *pictures;
    const pnb__captions *captions;
    const pnb__embed_opts *opts;
    pnb__embed_journal journal;
    pnb__embed_batch batch;
    pnb_embeddings *set; /* rows since the last part; room for part_rows */
    size_t part_rows, n_rows, n_truncated;
    size_t n_inputs;
    uint64_t *stamps; /* (n_inputs) pictures with a journal; else NULL */
    double saved_s, waited_s;
} job;

/* ---- rows ---- */

static pnb_status make_set(const job *j, size_t n, pnb_embeddings **out)
{
    pnb_status status = pnb_embeddings_create(out, pnb__embedder_family(j->encoder), n,
                                              j->encoder->info->embed_dim, &j->app->err);
    if (status == PNB_OK)
        pnb__embedder_describe(j->encoder, j->captions != NULL, (uint64_t)j->app->common.seed,
                               &(*out)->info);
    if (status == PNB_OK && j->opts->exif && j->captions == NULL) {
        size_t length = strlen((*out)->info.preprocess);
        snprintf((*out)->info.preprocess + length, sizeof(*out)->info.preprocess - length,
                 ", EXIF applied");
    }
    if (status == PNB_OK && j->opts->masked) {
        char *text = (*out)->info.preprocess;
        size_t length = strlen(text), size = sizeof(*out)->info.preprocess;
        if (j->captions != NULL)
            snprintf(text + length, size - length, ", tokens deleted with %g", j->opts->mask_drop);
        else
            snprintf(text + length, size - length, ", patches kept %g", j->opts->mask_keep);
    }
    return status;
}

/* Encodes the batch into rows `row`... of the set and names them. */
static pnb_status append_batch(job *j, size_t row)
{
    pnb_embeddings *set = j->set;
    pnb__embed_batch *b = &j->batch;
    pnb_error *err = &j->app->err;
    float *log_var = set->log_var != NULL ? set->log_var + row * set->dim : NULL;
    pnb_status status = pnb__embed_batch_encode(b, set->mean + row * set->dim, log_var, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "inputs %zu to %zu", b->input[0], b->input[b->n - 1]);
    for (size_t i = 0; status == PNB_OK && i < b->n; i++) {
        j->n_truncated += b->cut[i];
        status = j->captions != NULL
                     ? pnb__captions_label(j->captions, b->input[i], set, row + i, err)
                     : pnb__pictures_label(j->pictures, b->input[i], set, row + i, err);
    }
    return status;
}

static pnb_status report_skip(const job *j, size_t input, const char *why)
{
    char name[1200];
    pnb_status status = PNB_OK;
    if (j->pictures != NULL)
        status = pnb__pictures_name(j->pictures, input, name, sizeof name, &j->app->err);
    else
        snprintf(name, sizeof name, "caption %zu", input);
    if (status != PNB_OK)
        return status;
    size_t length = strlen(name); /* a reader's text often starts with the path already */
    if (strncmp(why, name, length) == 0 && why[length] == ':')
        why += length + 1 + (why[length + 1] == ' ');
    pnb__skipped(j->app, name, why);
    return PNB_OK;
}

static pnb_status on_skip(void *user, size_t input, const char *why)
{
    job *j = user;
    pnb_status status = report_skip(j, input, why);
    return status != PNB_OK ? status
                            : pnb__embed_journal_skip(&j->journal, input, why, &j->app->err);
}

/* ---- parts ---- */

/* Of the inputs as they were when they were read. */
static uint64_t stamp_of(const job *j, size_t begin, size_t end)
{
    return j->stamps == NULL
               ? 0
               : pnb__hash_bytes(j->stamps + begin, (end - begin) * sizeof *j->stamps, 0);
}

/* Hands the rows so far to the journal and starts the next part. */
static pnb_status save_part(job *j, size_t end)
{
    pnb_embeddings *rows = j->n_rows > 0 ? j->set : NULL;
    if (rows == NULL && end == j->journal.n_done)
        return PNB_OK;
    if (rows != NULL)
        rows->n = j->n_rows; /* the rest of its room was never named */
    const pnb__embed_span span = {end, j->n_truncated, stamp_of(j, j->journal.n_done, end)};
    pnb_status status = pnb__embed_journal_add(&j->journal, rows, &span, &j->app->err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_free(j->set);
    j->set = NULL;
    j->n_rows = j->n_truncated = 0;
    j->saved_s = pnb__now_s();
    return make_set(j, j->part_rows, &j->set);
}

/* pnb__embed_job_key.stamp of pictures; they are kept, as those read in this run will be. */
static uint64_t stamp_pictures(void *user, size_t begin, size_t end)
{
    job *j = user;
    for (size_t i = begin; i < end; i++)
        j->stamps[i] = pnb__pictures_stamp(j->pictures, i);
    return stamp_of(j, begin, end);
}

/* Parts into one file; formats without a merge go through one safetensors file. */
static pnb_status join_parts(job *j)
{
    pnb_error *err = &j->app->err;
    const char *const *parts = (const char *const *)j->journal.parts;
    if (j->opts->format == PNB__EMBED_SAFETENSORS)
        return pnb_embeddings_merge(j->opts->out, parts, j->journal.n_parts, err);
    pnb_embeddings *all = NULL;
    char *path = pnb__path_join(j->journal.dir, "all.safetensors");
    if (path == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb_embeddings_merge(path, parts, j->journal.n_parts, err);
    if (status == PNB_OK)
        status = pnb_embeddings_load(&all, path, err);
    if (status == PNB_OK)
        status = pnb__embed_save(all, j->opts, err);
    pnb_embeddings_free(all);
    pnb__free(path);
    return status;
}

static pnb_status finish(job *j)
{
    if (j->journal.n_rows + j->n_rows == 0)
        return pnb__fail(&j->app->err, PNB_NOT_FOUND, "none of the %zu inputs could be read",
                         j->n_inputs);
    if (j->journal.n_parts == 0) {
        assert(j->set != NULL); /* made before the loop, and after every part */
        j->set->n = j->n_rows;
        return pnb__embed_save(j->set, j->opts, &j->app->err);
    }
    pnb_status status = save_part(j, j->n_inputs);
    return status == PNB_OK ? join_parts(j) : status;
}

/* ---- the loop ---- */

static bool is_part_due(const job *j, bool more)
{
    if (!more)
        return false;
    return j->n_rows + j->batch.capacity > j->part_rows || pnb__now_s() - j->saved_s > SAVE_PAUSE_S;
}

static pnb_status interrupted(job *j, size_t next)
{
    pnb_status status = save_part(j, next);
    return status != PNB_OK ? status
                            : pnb__fail(&j->app->err, PNB_INTERRUPTED,
                                        "%zu of %zu inputs are kept in %s; the same command "
                                        "continues",
                                        next, j->n_inputs, j->journal.dir);
}

static pnb_status embed_inputs(job *j)
{
    pnb__progress progress;
    size_t next = j->journal.n_done;
    bool is_first = true; /* nothing can be read ahead of it */
    pnb_status status = PNB_OK;
    pnb__progress_start(&progress, j->app, "embedding",
                        j->captions != NULL ? "captions" : "pictures", next, j->n_inputs);
    while (next < j->n_inputs) {
        if (pnb__is_interrupted(j->app))
            return interrupted(j, next);
        double before_s = pnb__now_s();
        PNB_TRY(pnb__embed_batch_fill(&j->batch, j->app->ctx, &next, j->n_inputs, on_skip, j,
                                      &j->app->err));
        if (!is_first)
            j->waited_s += pnb__now_s() - before_s;
        is_first = false;
        if (j->batch.n > 0)
            PNB_TRY(append_batch(j, j->n_rows));
        j->n_rows += j->batch.n;
        pnb__progress_update(&progress, next, NULL);
        if (is_part_due(j, next < j->n_inputs))
            PNB_TRY(save_part(j, next));
    }
    pnb__progress_finish(&progress, next);
done:
    return status;
}

/* Rows of a part: whole batches, and no more than there are inputs. */
static size_t rows_of_part(const job *j)
{
    size_t batch = j->batch.capacity;
    size_t rows = PNB_MAX(j->opts->save_every, batch) / batch * batch;
    return PNB_MIN(rows, (j->n_inputs + batch - 1) / batch * batch);
}

static pnb_status embed_to_stream(pnb__app *app, pnb__embedder *encoder,
                                  const pnb__pictures *pictures, const pnb__captions *captions,
                                  const pnb__embed_opts *opts, pnb__embed_result *result);

static pnb_status open_journal(job *j, bool *continued)
{
    char signature[PNB__EMBED_SIGNATURE_BYTES];
    pnb_embeddings *one = NULL;
    pnb_error *err = &j->app->err;
    pnb__embed_job_key key = {.signature = signature, .n_inputs = j->n_inputs, .user = j};
    pnb_status status;
    if (j->pictures != NULL) {
        j->stamps = pnb__alloc_zero(j->n_inputs, sizeof *j->stamps);
        if (j->stamps == NULL)
            return pnb__fail_nomem(err, j->n_inputs * sizeof *j->stamps);
        key.stamp = stamp_pictures;
    }
    PNB_TRY(make_set(j, 1, &one)); /* its record says what a row is made with */
    const pnb__embed_signed what = {
        .app = j->app,
        .encoder = j->encoder,
        .pictures = j->pictures,
        .captions = j->captions,
        .opts = j->opts,
        .info = &one->info,
        .n_inputs = j->n_inputs,
    };
    PNB_TRY(pnb__embed_sign(&what, signature, err));
    status = pnb__embed_journal_open(&j->journal, j->opts->out, &key, continued, err);
done:
    pnb_embeddings_free(one);
    return status;
}

pnb_status pnb__embed_run(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                          const pnb__captions *captions, const pnb__embed_opts *opts,
                          pnb__embed_result *result)
{
    job j = {.app = app,
             .encoder = encoder,
             .pictures = pictures,
             .captions = captions,
             .opts = opts,
             .journal = {.lock_fd = -1},
             .n_inputs = pictures != NULL ? pnb__pictures_count(pictures) : captions->n};
    bool continued = false;
    double start_s = j.saved_s = pnb__now_s();
    pnb_status status;
    if (opts->stream != NULL)
        return embed_to_stream(app, encoder, pictures, captions, opts, result);
    PNB_TRY(open_journal(&j, &continued));
    PNB_TRY(pnb__embed_batch_init(&j.batch, encoder, pictures, captions, opts,
                                  (uint64_t)app->common.seed, &app->err));
    j.batch.stamps = j.stamps;
    j.part_rows = rows_of_part(&j);
    PNB_TRY(make_set(&j, j.part_rows, &j.set));
    *result = (pnb__embed_result){.n_inputs = j.n_inputs, .n_continued = j.journal.n_done};
    for (size_t i = 0; i < j.journal.n_skips; i++)
        PNB_TRY(report_skip(&j, j.journal.skips[i].input, j.journal.skips[i].why));
    if (continued)
        pnb__say(app, "continuing after %zu of %zu inputs", j.journal.n_done, j.n_inputs);
    PNB_TRY(embed_inputs(&j));
    result->n_truncated = j.journal.n_truncated + j.n_truncated;
    result->n_rows = j.journal.n_rows + j.n_rows;
    result->n_skipped = j.journal.n_skips;
    result->waited_s = j.waited_s;
    PNB_TRY(finish(&j));
    result->seconds = pnb__now_s() - start_s;
done:
    pnb__embed_journal_close(&j.journal, status == PNB_OK);
    pnb__embed_batch_free(&j.batch); /* its threads write stamps: they end first */
    pnb__free(j.stamps);
    pnb_embeddings_free(j.set);
    return status;
}

/* ---- sets in memory ---- */

static pnb_status fail_on_skip(void *user, size_t input, const char *why)
{
    job *j = user;
    (void)input;
    return pnb__fail(&j->app->err, PNB_FORMAT, "%s", why);
}

static pnb_status embed_in_memory(job *j, pnb_embeddings **out)
{
    size_t next = 0, row = 0;
    pnb_status status;
    PNB_TRY(pnb__embed_batch_init(&j->batch, j->encoder, j->pictures, j->captions, j->opts,
                                  (uint64_t)j->app->common.seed, &j->app->err));
    PNB_TRY(make_set(j, j->n_inputs, &j->set));
    while (next < j->n_inputs) {
        PNB_TRY(pnb__embed_batch_fill(&j->batch, j->app->ctx, &next, j->n_inputs, fail_on_skip, j,
                                      &j->app->err));
        PNB_TRY(append_batch(j, row));
        row += j->batch.n;
    }
    *out = j->set;
    j->set = NULL;
done:
    pnb__embed_batch_free(&j->batch);
    pnb_embeddings_free(j->set);
    return status;
}

pnb_status pnb__embed_captions(pnb__app *app, pnb__embedder *encoder, const pnb__captions *captions,
                               pnb_embeddings **out)
{
    const pnb__embed_opts opts = {.batch_size = 32};
    job j = {.app = app,
             .encoder = encoder,
             .captions = captions,
             .opts = &opts,
             .n_inputs = captions->n};
    return embed_in_memory(&j, out);
}

pnb_status pnb__embed_pictures(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                               bool exif, pnb_embeddings **out)
{
    const pnb__embed_opts opts = {.batch_size = 32, .exif = exif};
    job j = {.app = app,
             .encoder = encoder,
             .pictures = pictures,
             .opts = &opts,
             .n_inputs = pnb__pictures_count(pictures)};
    return embed_in_memory(&j, out);
}

static pnb_status name_skip(void *user, size_t input, const char *why)
{
    return report_skip(user, input, why);
}

/* Rows of the set; n_rows counts what could be read. */
static pnb_status embed_readable(job *j)
{
    pnb__progress progress;
    size_t next = 0;
    pnb_status status = PNB_OK;
    pnb__progress_start(&progress, j->app, "embedding",
                        j->captions != NULL ? "prompts" : "pictures", 0, j->n_inputs);
    while (next < j->n_inputs) {
        if (pnb__is_interrupted(j->app))
            return pnb__fail(&j->app->err, PNB_INTERRUPTED, "stopped after %zu of %zu inputs", next,
                             j->n_inputs);
        PNB_TRY(pnb__embed_batch_fill(&j->batch, j->app->ctx, &next, j->n_inputs, name_skip, j,
                                      &j->app->err));
        if (j->batch.n > 0)
            PNB_TRY(append_batch(j, j->n_rows));
        j->n_rows += j->batch.n;
        pnb__progress_update(&progress, next, NULL);
    }
    pnb__progress_finish(&progress, next);
    if (j->n_rows == 0)
        status = pnb__fail(&j->app->err, PNB_NOT_FOUND, "none of the %zu inputs could be read",
                           j->n_inputs);
done:
    return status;
}

pnb_status pnb__embed_all(pnb__app *app, pnb__embedder *encoder, const pnb__pictures *pictures,
                          const pnb__captions *captions, bool exif, pnb_embeddings **out)
{
    const pnb__embed_opts opts = {.batch_size = 32, .exif = exif};
    job j = {.app = app,
             .encoder = encoder,
             .pictures = pictures,
             .captions = captions,
             .opts = &opts,
             .n_inputs = pictures != NULL ? pnb__pictures_count(pictures) : captions->n};
    pnb_status status;
    PNB_TRY(pnb__embed_batch_init(&j.batch, encoder, pictures, captions, &opts,
                                  (uint64_t)app->common.seed, &app->err));
    PNB_TRY(make_set(&j, j.n_inputs, &j.set));
    PNB_TRY(embed_readable(&j));
    j.set->n = j.n_rows; /* the rest of its room was never named */
    *out = j.set;
    j.set = NULL;
done:
    pnb__embed_batch_free(&j.batch);
    pnb_embeddings_free(j.set);
    return status;
}

static pnb_status embed_to_stream(pnb__app *app, pnb__embedder *encoder,
                                  const pnb__pictures *pictures, const pnb__captions *captions,
                                  const pnb__embed_opts *opts, pnb__embed_result *result)
{
    job j = {.app = app,
             .encoder = encoder,
             .pictures = pictures,
             .captions = captions,
             .opts = opts,
             .n_inputs = pictures != NULL ? pnb__pictures_count(pictures) : captions->n};
    double start_s = pnb__now_s();
    pnb_status status;
    PNB_TRY(pnb__embed_batch_init(&j.batch, encoder, pictures, captions, opts,
                                  (uint64_t)app->common.seed, &app->err));
    PNB_TRY(make_set(&j, j.n_inputs, &j.set));
    PNB_TRY(embed_readable(&j));
    j.set->n = j.n_rows; /* the rest of its room was never named */
    PNB_TRY(pnb__embed_save(j.set, opts, &app->err));
    *result = (pnb__embed_result){.n_inputs = j.n_inputs,
                                  .n_rows = j.n_rows,
                                  .n_skipped = j.n_inputs - j.n_rows,
                                  .n_truncated = j.n_truncated,
                                  .seconds = pnb__now_s() - start_s};
done:
    pnb__embed_batch_free(&j.batch);
    pnb_embeddings_free(j.set);
    return status;
}

/* ---- ready tensors ---- */

/* The array called `name`, else the only one of that rank. */
static const pnb_array_view *pick_array(const pnb_safetensors *file, const char *name, int n_dims)
{
    const pnb_array_view *found = pnb_safetensors_find(file, name);
    for (size_t i = 0; found == NULL && i < pnb_safetensors_count(file); i++) {
        const pnb_array_view *a = pnb_safetensors_at(file, i);
        if (a->n_dims == n_dims)
            found = a;
    }
    return found != NULL && found->n_dims == n_dims ? found : NULL;
}

static pnb_status check_tensor(const pnb__embedder *e, const pnb_array_view *a, bool is_text,
                               const char *path, pnb_error *err)
{
    const pnb_tower_info *v = &e->info->vision;
    size_t context = e->info->text.context_length;
    if (a == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "%s: no array %s", path,
                         is_text ? "\"tokens\" (B,T)" : "\"pixels\" (B,3,H,W)");
    if (a->shape[0] < 1)
        return pnb__fail(err, PNB_SHAPE, "%s: %s is empty", path, a->name);
    if (is_text && (a->shape[1] < 1 || (size_t)a->shape[1] > context))
        return pnb__fail(err, PNB_SHAPE, "%s: %s has %lld tokens a row, the model takes 1 to %zu",
                         path, a->name, (long long)a->shape[1], context);
    if (!is_text && (a->shape[1] != 3 || (size_t)a->shape[2] != v->image_height ||
                     (size_t)a->shape[3] != v->image_width))
        return pnb__fail(
            err, PNB_SHAPE, "%s: %s is (%lld,%lld,%lld,%lld), the model takes (B,3,%zu,%zu)", path,
            a->name, (long long)a->shape[0], (long long)a->shape[1], (long long)a->shape[2],
            (long long)a->shape[3], v->image_height, v->image_width);
    return PNB_OK;
}

static pnb_status encode_pixels(const job *j, const pnb_array_view *a)
{
    size_t n = (size_t)a->shape[0], width = pnb_array_size(a) / n;
    float *pixels = pnb__alloc_array(pnb_array_size(a), sizeof *pixels);
    pnb_embeddings *set = j->set;
    if (pixels == NULL)
        return pnb__fail_nomem(&j->app->err, pnb_array_size(a) * sizeof *pixels);
    pnb_status status = pnb_array_to_f32(a, pixels, &j->app->err);
    for (size_t i = 0; status == PNB_OK && i < n; i += j->opts->batch_size) {
        pnb_encode_out out = {.mean = set->mean + i * set->dim,
                              .log_var = set->log_var ? set->log_var + i * set->dim : NULL};
        status = pnb_model_encode_image(j->encoder->model, pixels + i * width,
                                        PNB_MIN(j->opts->batch_size, n - i), &out, &j->app->err);
    }
    pnb__free(pixels);
    return status;
}

static pnb_status encode_tokens(const job *j, const pnb_array_view *a)
{
    size_t n = (size_t)a->shape[0], width = (size_t)a->shape[1];
    int64_t *wide = pnb__alloc_array(n * width, sizeof *wide);
    int32_t *ids = pnb__alloc_array(n * width, sizeof *ids);
    pnb_embeddings *set = j->set;
    pnb_status status = wide == NULL || ids == NULL
                            ? pnb__fail_nomem(&j->app->err, n * width * sizeof *wide)
                            : pnb_array_to_i64(a, wide, &j->app->err);
    for (size_t i = 0; status == PNB_OK && i < n * width; i++) {
        if (wide[i] < 0 || wide[i] > INT32_MAX)
            status = pnb__fail(&j->app->err, PNB_ARG, "%s[%zu] is %lld, not a token id", a->name, i,
                               (long long)wide[i]);
        else
            ids[i] = (int32_t)wide[i];
    }
    for (size_t i = 0; status == PNB_OK && i < n; i += j->opts->batch_size) {
        pnb_encode_out out = {.mean = set->mean + i * set->dim,
                              .log_var = set->log_var ? set->log_var + i * set->dim : NULL};
        status =
            pnb_model_encode_text(j->encoder->model, ids + i * width,
                                  PNB_MIN(j->opts->batch_size, n - i), width, &out, &j->app->err);
    }
    pnb__free(wide);
    pnb__free(ids);
    return status;
}

pnb_status pnb__embed_tensor(pnb__app *app, pnb__embedder *encoder, const char *path, bool is_text,
                             const pnb__embed_opts *opts, pnb__embed_result *result)
{
    static const pnb__captions no_captions = {0};
    job j = {
        .app = app, .encoder = encoder, .opts = opts, .captions = is_text ? &no_captions : NULL};
    pnb_safetensors *file = NULL;
    double start_s = pnb__now_s();
    pnb_status status;
    PNB_TRY(pnb_safetensors_open(&file, path, &app->err));
    const pnb_array_view *a = pick_array(file, is_text ? "tokens" : "pixels", is_text ? 2 : 4);
    PNB_TRY(check_tensor(encoder, a, is_text, path, &app->err));
    PNB_TRY(make_set(&j, (size_t)a->shape[0], &j.set));
    PNB_TRY(is_text ? encode_tokens(&j, a) : encode_pixels(&j, a));
    PNB_TRY(pnb__embed_save(j.set, opts, &app->err));
    *result = (pnb__embed_result){
        .n_inputs = j.set->n, .n_rows = j.set->n, .seconds = pnb__now_s() - start_s};
done:
    pnb_embeddings_free(j.set);
    pnb_safetensors_free(file);
    return status;
}

/* A copy of the stream's descriptor, so that closing the output leaves the stream alone. */
static pnb_status open_stream(pnb__out_file *f, FILE *stream, pnb_error *err)
{
    int fd = fflush(stream) == 0 ? dup(fileno(stream)) : -1;
    *f = (pnb__out_file){.path = pnb__strdup("the standard output")};
    if (f->path == NULL) {
        if (fd >= 0)
            close(fd);
        return pnb__fail_nomem(err, 32);
    }
    f->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (f->file != NULL)
        return PNB_OK;
    pnb_status status = pnb__fail_errno(err, "cannot write", f->path);
    if (fd >= 0)
        close(fd);
    pnb__out_abort(f);
    return status;
}

static pnb_status save_to_stream(const pnb_embeddings *set, const pnb__embed_opts *opts,
                                 pnb_error *err)
{
    pnb__out_file f = {0};
    pnb_status status = open_stream(&f, opts->stream, err);
    if (status != PNB_OK)
        return status;
    switch (opts->format) {
    case PNB__EMBED_NPY:
        return pnb__embeddings_stream_npy(set, &f, err);
    case PNB__EMBED_JSONL:
        return pnb__embeddings_stream_jsonl(set, &f, err);
    case PNB__EMBED_CLIP_RETRIEVAL: /* has no stream */
    case PNB__EMBED_SAFETENSORS:
        break;
    }
    return pnb__embeddings_stream(set, &f, err);
}

pnb_status pnb__embed_save(const pnb_embeddings *set, const pnb__embed_opts *opts, pnb_error *err)
{
    if (opts->stream != NULL)
        return save_to_stream(set, opts, err);
    switch (opts->format) {
    case PNB__EMBED_NPY:
        return pnb_embeddings_save_npy(set, opts->out, err);
    case PNB__EMBED_JSONL:
        return pnb_embeddings_save_jsonl(set, opts->out, err);
    case PNB__EMBED_CLIP_RETRIEVAL:
        return pnb__clip_retrieval_save(set, opts->out, err);
    case PNB__EMBED_SAFETENSORS:
        break;
    }
    return pnb_embeddings_save(set, opts->out, err);
}
