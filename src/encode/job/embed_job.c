/* Embeds a list: fill a batch, encode it, append the rows, save a part now and then, join.
 *
 * There is one loop. Into memory the whole list is one part, which becomes the set; into a file a
 * part is saved after `save_every` rows or 20 seconds, always at the end of a batch, and a
 * continued run starts at that input with the same batches, so its rows are those of an
 * uninterrupted run. What a batch is made of lies in embed_batch.c, the parts in embed_journal.c.
 */
#include "encode/job/embed_job.h"

#include <assert.h>
#include <string.h>

#include "encode/job/clip_retrieval.h"
#include "encode/job/embed_batch.h"
#include "encode/job/embed_journal.h"
#include "encode/job/embed_sign.h"
#include "models/model.h"
#include "sets/provenance.h"

#define SAVE_PAUSE_S 20.0

typedef struct job {
    pnb_encoder *encoder;
    const pnb__embed_source *source;
    const pnb_encode_opts *opts;
    const pnb_encode_file *file; /* NULL: into memory, without a journal */
    pnb_error *err;
    pnb__embed_journal journal;
    pnb__embed_batch batch;
    pnb_embeddings *set; /* rows since the last part; room for part_rows */
    size_t part_rows, n_rows, n_truncated, n_unknown, n_skipped, n_continued;
    uint64_t *stamps; /* (n) inputs with stamps, with a journal; else NULL */
    double start_s, saved_s, waited_s;
} job;

/* ---- rows ---- */

/* Rows before the last projection are no embeddings: their chain says so, and nothing compares them
 * with those. The link's hash is that of the weights. */
static pnb_status describe_activations(const job *j, pnb_embeddings_info *info)
{
    pnb_adapter_link link = {.name = "activations"};
    snprintf(link.sha256, sizeof link.sha256, "%s", info->weights_sha256);
    return pnb__adapter_links_add(&info->adapters, &link, j->err);
}

/* Activations are points of a width of their own. */
static pnb_status create_set(const job *j, pnb_encode_side side, size_t n, pnb_embeddings **out)
{
    if (!j->opts->activations && j->opts->ttda > 0)
        return pnb_embeddings_create(out, PNB_GAUSSIAN_DIAG, n, pnb__encoder_dim(j->encoder, side),
                                     j->err);
    if (!j->opts->activations)
        return pnb__encoder_make_rows(j->encoder, side, n, out, j->err);
    bool is_text = side == PNB_ENCODE_TEXTS;
    size_t width =
        pnb__model_activations(j->encoder->model, is_text ? PNB__TEXT_SIDE : PNB__IMAGE_SIDE);
    pnb_status status = pnb__encoder_need_plain(j->encoder, "encoding activations", j->err);
    if (status != PNB_OK)
        return status;
    if (width == 0)
        return pnb__fail(j->err, PNB_UNSUPPORTED,
                         "%s: its %s tower ends in no projection, nothing stands before one",
                         j->encoder->name, is_text ? "text" : "image");
    return pnb_embeddings_create(out, PNB_POINT, n, width, j->err);
}

static pnb_status make_set(const job *j, size_t n, pnb_embeddings **out)
{
    bool is_text = j->source->is_text;
    pnb_encode_side side = is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES;
    pnb_status status = create_set(j, side, n, out);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_info *info = &(*out)->info;
    pnb_encoder_describe(j->encoder, side, j->opts->seed, info);
    size_t length = strlen(info->preprocess), size = sizeof info->preprocess;
    if (j->opts->exif && !is_text)
        snprintf(info->preprocess + length, size - length, ", EXIF applied");
    length = strlen(info->preprocess);
    if (j->opts->ttda > 0)
        snprintf(info->preprocess + length, size - length, ", %zu augmented passes", j->opts->ttda);
    if (j->opts->masked && is_text)
        snprintf(info->preprocess + length, size - length, ", tokens deleted with %g",
                 j->opts->mask_drop);
    else if (j->opts->masked)
        snprintf(info->preprocess + length, size - length, ", patches kept %g", j->opts->mask_keep);
    length = strlen(info->preprocess);
    if (j->opts->raw || pnb__encoder_keeps_lengths(j->encoder, side))
        snprintf(info->preprocess + length, size - length, PNB__LENGTHS_KEPT);
    return j->opts->activations ? describe_activations(j, info) : PNB_OK;
}

/* Encodes the batch behind the rows of the set and names its rows. */
static pnb_status append_batch(job *j)
{
    const pnb__embed_source *source = j->source;
    pnb__embed_batch *b = &j->batch;
    pnb_embeddings *set = j->set;
    size_t first = j->n_rows;
    pnb_status status = pnb__embed_batch_encode(b, set, first, j->journal.n_rows + first, j->err);
    if (status != PNB_OK)
        pnb__error_prefix(j->err, "inputs %zu to %zu", b->input[0], b->input[b->n - 1]);
    for (size_t i = 0; status == PNB_OK && i < b->n; i++) {
        j->n_truncated += b->cut[i];
        j->n_unknown += b->unknown[i];
        if (source->label != NULL)
            status = source->label(source->user, b->input[i], set, first + i, j->err);
    }
    j->n_rows += b->n;
    return status;
}

static pnb_status report_skip(const job *j, size_t input, const char *why)
{
    const pnb__embed_source *source = j->source;
    char name[1200];
    pnb_status status = PNB_OK;
    if (source->name != NULL)
        status = source->name(source->user, input, name, sizeof name, j->err);
    else
        snprintf(name, sizeof name, "%s %zu", source->is_text ? "caption" : "picture", input);
    if (status != PNB_OK)
        return status;
    size_t length = strlen(name); /* a reader's text often starts with the path already */
    if (strncmp(why, name, length) == 0 && why[length] == ':')
        why += length + 1 + (why[length + 1] == ' ');
    j->opts->skipped(j->opts->skipped_user, name, why);
    return PNB_OK;
}

static pnb_status on_skip(void *user, size_t input, const char *why)
{
    job *j = user;
    if (j->opts->skipped == NULL)
        return pnb__fail(j->err, PNB_FORMAT, "%s", why);
    pnb_status status = report_skip(j, input, why);
    j->n_skipped++;
    return status != PNB_OK || j->file == NULL
               ? status
               : pnb__embed_journal_skip(&j->journal, input, why, j->err);
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
    const pnb__embed_span span = {end, j->n_truncated, j->n_unknown,
                                  stamp_of(j, j->journal.n_done, end)};
    pnb_status status = pnb__embed_journal_add(&j->journal, rows, &span, j->err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_free(j->set);
    j->set = NULL;
    j->n_rows = j->n_truncated = j->n_unknown = 0;
    j->saved_s = pnb__now_s();
    return make_set(j, j->part_rows, &j->set);
}

/* pnb__embed_job_key.stamp; they are kept, as those read in this run will be. */
static uint64_t stamp_inputs(void *user, size_t begin, size_t end)
{
    job *j = user;
    for (size_t i = begin; i < end; i++)
        j->stamps[i] = j->source->stamp(j->source->user, i);
    return stamp_of(j, begin, end);
}

/* Parts into one file; formats without a merge go through one safetensors file. */
static pnb_status join_parts(job *j)
{
    pnb_error *err = j->err;
    const char *const *parts = (const char *const *)j->journal.parts;
    if (j->file->format == PNB_ENCODE_SAFETENSORS)
        return pnb_embeddings_merge(j->file->out, parts, j->journal.n_parts, err);
    pnb_embeddings *all = NULL;
    char *path = pnb__path_join(j->journal.dir, "all.safetensors");
    if (path == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb_embeddings_merge(path, parts, j->journal.n_parts, err);
    if (status == PNB_OK)
        status = pnb_embeddings_load(&all, path, err);
    if (status == PNB_OK)
        status = pnb__embed_save(all, j->file->format, j->file->out, err);
    pnb_embeddings_free(all);
    pnb__free(path);
    return status;
}

/* The rows so far as the one set of the job, which was made before the loop. */
static pnb_embeddings *close_set(job *j)
{
    assert(j->set != NULL);
    j->set->n = j->n_rows; /* the rest of its room was never named */
    return j->set;
}

static pnb_status write_file(job *j)
{
    if (j->journal.n_parts == 0)
        return pnb__embed_save(close_set(j), j->file->format, j->file->out, j->err);
    pnb_status status = save_part(j, j->source->n);
    return status == PNB_OK ? join_parts(j) : status;
}

/* ---- the loop ---- */

static bool is_part_due(const job *j, bool more)
{
    if (!more || j->file == NULL)
        return false;
    return j->n_rows + j->batch.capacity > j->part_rows || pnb__now_s() - j->saved_s > SAVE_PAUSE_S;
}

static pnb_status interrupted(job *j, size_t next)
{
    size_t n = j->source->n;
    if (j->file == NULL)
        return pnb__fail(j->err, PNB_INTERRUPTED, "stopped after %zu of %zu inputs", next, n);
    pnb_status status = save_part(j, next);
    return status != PNB_OK ? status
                            : pnb__fail(j->err, PNB_INTERRUPTED,
                                        "%zu of %zu inputs are kept in %s; the same command "
                                        "continues",
                                        next, n, j->journal.dir);
}

static bool watch(const job *j, size_t done)
{
    const pnb_watch *w = &j->opts->watch;
    return w->step == NULL || w->step(w->user, done, j->source->n);
}

static pnb_status embed_inputs(job *j)
{
    size_t first = j->journal.n_done, n = j->source->n;
    pnb_status status = PNB_OK;
    for (size_t next = first; next < n;) {
        bool is_first = next == first; /* nothing can be read ahead of it */
        double before_s = pnb__now_s();
        if (!watch(j, next))
            return interrupted(j, next);
        PNB_TRY(pnb__embed_batch_fill(&j->batch, &next, on_skip, j, j->err));
        if (!is_first)
            j->waited_s += pnb__now_s() - before_s;
        if (j->batch.n > 0)
            PNB_TRY(append_batch(j));
        if (is_part_due(j, next < n))
            PNB_TRY(save_part(j, next));
    }
    watch(j, n);
    if (j->journal.n_rows + j->n_rows == 0)
        status = pnb__fail(j->err, PNB_NOT_FOUND, "none of the %zu inputs could be read", n);
done:
    return status;
}

/* Rows of a part: whole batches, and no more than there are inputs. */
static size_t rows_of_part(const job *j)
{
    size_t batch = j->batch.capacity, n = j->source->n;
    size_t rows = PNB_MAX(j->file->save_every, batch) / batch * batch;
    return PNB_MIN(rows, (n + batch - 1) / batch * batch);
}

static pnb_status open_journal(job *j)
{
    char signature[PNB__EMBED_SIGNATURE_BYTES];
    pnb_embeddings *one = NULL;
    bool continued = false;
    pnb__embed_job_key key = {.signature = signature, .n_inputs = j->source->n, .user = j};
    pnb_status status;
    if (j->source->stamp != NULL) {
        j->stamps = pnb__alloc_zero(j->source->n, sizeof *j->stamps);
        if (j->stamps == NULL)
            return pnb__fail_nomem(j->err, j->source->n * sizeof *j->stamps);
        key.stamp = stamp_inputs;
    }
    PNB_TRY(make_set(j, 1, &one)); /* its record says what a row is made with */
    const pnb__embed_signed what = {j->encoder, j->source, j->opts, j->file->maker, &one->info};
    PNB_TRY(pnb__embed_sign(&what, signature, j->err));
    status = pnb__embed_journal_open(&j->journal, j->file->out, &key, &continued, j->err);
done:
    pnb_embeddings_free(one);
    return status;
}

/* Everything up to the rows of the last part. */
static pnb_status run(job *j)
{
    pnb_status status;
    if (j->file != NULL)
        PNB_TRY(open_journal(j));
    PNB_TRY(pnb__embed_batch_init(&j->batch, j->encoder, j->source, j->opts, j->err));
    j->batch.stamps = j->stamps;
    j->part_rows = j->file != NULL ? rows_of_part(j) : j->source->n;
    PNB_TRY(make_set(j, j->part_rows, &j->set));
    j->n_continued = j->journal.n_done;
    j->n_skipped = j->journal.n_skips;
    for (size_t i = 0; j->opts->skipped != NULL && i < j->journal.n_skips; i++)
        PNB_TRY(report_skip(j, j->journal.skips[i].input, j->journal.skips[i].why));
    status = embed_inputs(j);
done:
    return status;
}

static void fill_result(const job *j, pnb_encode_result *result)
{
    if (result != NULL)
        *result = (pnb_encode_result){.n_inputs = j->source->n,
                                      .n_rows = j->journal.n_rows + j->n_rows,
                                      .n_skipped = j->n_skipped,
                                      .n_continued = j->n_continued,
                                      .n_truncated = j->journal.n_truncated + j->n_truncated,
                                      .n_unknown = j->journal.n_unknown + j->n_unknown,
                                      .seconds = pnb__now_s() - j->start_s,
                                      .waited_s = j->waited_s};
}

static void reset(job *j)
{
    pnb__embed_batch_free(&j->batch); /* its threads write stamps: they end first */
    pnb__free(j->stamps);
    pnb_embeddings_free(j->set);
}

pnb_status pnb__embed_set(pnb_encoder *encoder, const pnb__embed_source *source,
                          const pnb_encode_opts *opts, pnb_embeddings **out,
                          pnb_encode_result *result, pnb_error *err)
{
    job j = {encoder, source, opts, .err = err, .start_s = pnb__now_s()};
    pnb_status status = run(&j);
    if (status == PNB_OK) {
        fill_result(&j, result);
        *out = close_set(&j);
        j.set = NULL;
    }
    reset(&j);
    return status;
}

pnb_status pnb__embed_file(pnb_encoder *encoder, const pnb__embed_source *source,
                           const pnb_encode_opts *opts, const pnb_encode_file *file,
                           pnb_encode_result *result, pnb_error *err)
{
    double now_s = pnb__now_s();
    job j = {encoder, source, opts, file, err, .journal = {.lock_fd = -1}, .start_s = now_s};
    pnb_encode_result counted;
    j.saved_s = now_s;
    pnb_status status = run(&j);
    fill_result(&j, &counted); /* before the last part takes its rows along */
    if (status == PNB_OK)
        status = write_file(&j);
    if (status == PNB_OK && result != NULL) {
        *result = counted;
        result->seconds = pnb__now_s() - now_s;
    }
    pnb__embed_journal_close(&j.journal, status == PNB_OK);
    reset(&j);
    return status;
}

pnb_status pnb__embed_save(const pnb_embeddings *set, pnb_encode_format format, const char *path,
                           pnb_error *err)
{
    switch (format) {
    case PNB_ENCODE_NPY:
        return pnb_embeddings_save_npy(set, path, err);
    case PNB_ENCODE_JSONL:
        return pnb_embeddings_save_jsonl(set, path, err);
    case PNB_ENCODE_CLIP_RETRIEVAL:
        return pnb__clip_retrieval_save(set, path, err);
    case PNB_ENCODE_SAFETENSORS:
        break;
    }
    return pnb_embeddings_save(set, path, err);
}
