/* Embeds a list: fill a batch, encode it, append the rows, save a part now and then, join.
 *
 * There is one loop. Into memory the whole list is one part, which becomes the set; into a file a
 * part is saved after `save_every` rows or 20 seconds, always at the end of a batch, and a
 * continued run embeds what no part covers in the same batches, so its rows are those of an
 * uninterrupted run. Several processes embed a run of batches each; rank 0 joins their parts, and
 * sets in memory are gathered. What a batch is made of lies in embed_batch.c, the parts in
 * embed_journal.c, who embeds what in embed_share.c.
 */
#include "encode/job/embed_job.h"

#include <assert.h>
#include <string.h>

#include "adapt/adapter.h"
#include "base/grow.h"
#include "encode/job/embed_batch.h"
#include "encode/job/embed_gather.h"
#include "encode/job/embed_journal.h"
#include "encode/job/embed_rows.h"
#include "encode/job/embed_share.h"
#include "encode/job/embed_sign.h"
#include "peers/peers.h"

#define SAVE_PAUSE_S 20.0

typedef struct job {
    pnb_encoder *encoder;
    const pnb__embed_source *source;
    const pnb_encode_opts *opts;
    const pnb_encode_file *file; /* NULL: into memory, without a journal */
    pnb_error *err;
    pnb_peers *ranks;
    pnb__embed_rounds rounds;
    pnb__embed_range *ranges; /* of inputs, this process's */
    size_t n_ranges;
    pnb__embed_job_key key;
    char signature[PNB__EMBED_SIGNATURE_BYTES];
    pnb__embed_journal journal;
    pnb__embed_batch batch;
    pnb_embeddings *set; /* rows since the last part; room for part_rows */
    size_t part_rows, part_begin, n_rows, n_truncated, n_unknown;
    size_t n_kept;         /* rows in parts */
    size_t n_done;         /* inputs of this process */
    size_t n_others;       /* of the others, when they met last */
    size_t n_continued;    /* of earlier runs */
    pnb__embed_known mine; /* of several processes in memory: what rows are of, what was skipped */
    uint64_t *stamps;      /* (n) inputs with stamps, with a journal; else NULL */
    pnb_encode_result counts;
    double start_s, saved_s, waited_s;
} job;

/* ---- rows ---- */

static pnb_status make_set(const job *j, size_t n, pnb_embeddings **out)
{
    return pnb__embed_rows_make(j->encoder, j->source, j->opts, n, out, j->err);
}

/* Whether sets of several processes are put together in memory, where rows get their names. */
static bool is_gathered(const job *j)
{
    return j->ranks != NULL && j->file == NULL;
}

/* Encodes the batch behind the rows of the set and names its rows. */
static pnb_status append_batch(job *j)
{
    const pnb__embed_source *source = j->source;
    pnb__embed_batch *b = &j->batch;
    pnb_embeddings *set = j->set;
    size_t first = j->n_rows;
    pnb_status status = pnb__embed_batch_encode(b, set, first, j->n_kept + first, j->err);
    if (status != PNB_OK)
        pnb__error_prefix(j->err, "inputs %zu to %zu", b->input[0], b->input[b->n - 1]);
    for (size_t i = 0; status == PNB_OK && i < b->n; i++) {
        j->n_truncated += b->cut[i];
        j->n_unknown += b->unknown[i];
        if (is_gathered(j))
            status = PNB_PUSH(j->mine.input, j->mine.n_rows, j->err, b->input[i]);
        else if (source->label != NULL)
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

/* Several processes tell of all at the end, in the order of inputs. */
static pnb_status on_skip(void *user, size_t input, const char *why)
{
    job *j = user;
    if (j->opts->skipped == NULL)
        return pnb__fail(j->err, PNB_FORMAT, "%s", why);
    j->counts.n_skipped++;
    if (is_gathered(j))
        return pnb__embed_known_skip(&j->mine, input, why, j->err);
    pnb_status status = j->ranks == NULL ? report_skip(j, input, why) : PNB_OK;
    return status != PNB_OK || j->file == NULL
               ? status
               : pnb__embed_journal_skip(&j->journal, input, why, j->err);
}

static pnb_status report_skips(const job *j, const pnb__embed_skip *skips, size_t n)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; j->opts->skipped != NULL && i < n && status == PNB_OK; i++)
        status = report_skip(j, skips[i].input, skips[i].why);
    return status;
}

/* What lies in parts counts, and where one process works it is told before the rest. */
static pnb_status take_parts(job *j)
{
    pnb_status status = PNB_OK;
    j->n_kept = 0;
    j->counts = (pnb_encode_result){0};
    for (size_t i = 0; i < j->journal.n_parts && status == PNB_OK; i++) {
        const pnb__embed_part *part = &j->journal.parts[i];
        j->n_kept += part->n_rows;
        j->counts.n_skipped += part->n_skips;
        j->counts.n_truncated += part->n_truncated;
        j->counts.n_unknown += part->n_unknown;
        status = report_skips(j, part->skips, part->n_skips);
    }
    return status;
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
    if (end == j->part_begin)
        return PNB_OK;
    if (rows != NULL)
        rows->n = j->n_rows; /* the rest of its room was never named */
    const pnb__embed_part part = {.begin = j->part_begin,
                                  .end = end,
                                  .n_truncated = j->n_truncated,
                                  .n_unknown = j->n_unknown,
                                  .stamp = stamp_of(j, j->part_begin, end)};
    pnb_status status = pnb__embed_journal_add(&j->journal, rows, &part, j->err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_free(j->set);
    j->set = NULL;
    j->part_begin = end;
    j->n_kept += j->n_rows;
    j->counts.n_truncated += j->n_truncated;
    j->counts.n_unknown += j->n_unknown;
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

/* The rows so far as the one set of the job, which was made before the loop. */
static pnb_embeddings *close_set(job *j)
{
    assert(j->set != NULL);
    j->set->n = j->n_rows; /* the rest of its room was never named */
    return j->set;
}

static pnb_status check_rows(const job *j, size_t n)
{
    return n > 0 ? PNB_OK
                 : pnb__fail(j->err, PNB_NOT_FOUND, "none of the %zu inputs could be read",
                             j->source->n);
}

/* The parts of others too, which must be where this process sees them. */
static pnb_status collect(job *j)
{
    pnb__embed_range *gaps = NULL;
    size_t n = 0;
    pnb_status status;
    PNB_TRY(pnb__embed_journal_collect(&j->journal, &j->key, pnb_peers_count(j->ranks), j->err));
    PNB_TRY(take_parts(j));
    PNB_TRY(pnb__embed_gaps(j->journal.parts, j->journal.n_parts, j->source->n, &gaps, &n, j->err));
    if (n > 0)
        status = pnb__fail(j->err, PNB_IO,
                           "inputs %zu to %zu were embedded by another process and are not in %s: "
                           "all processes must see that folder under its name",
                           gaps[0].begin, gaps[0].end - 1, j->journal.dir);
done:
    pnb__free(gaps);
    return status;
}

static pnb_status write_file(job *j)
{
    if (j->ranks == NULL && j->journal.n_parts == 0) {
        pnb_status status = check_rows(j, j->n_rows);
        return status == PNB_OK
                   ? pnb__embed_save(close_set(j), j->file->format, j->file->out, j->err)
                   : status;
    }
    if (pnb_peers_rank(j->ranks) != 0)
        return PNB_OK;
    pnb_status status = j->ranks != NULL ? collect(j) : PNB_OK;
    if (status == PNB_OK)
        status = check_rows(j, j->n_kept);
    return status == PNB_OK ? pnb__embed_join(&j->journal, j->file, j->err) : status;
}

/* The set of several processes on all of them, named from the list that all have. */
static pnb_status gather(job *j)
{
    const pnb__embed_source *source = j->source;
    pnb__embed_known all = {0};
    pnb_embeddings *set = NULL;
    size_t *from = NULL;
    pnb_status status;
    j->mine.n_truncated = j->n_truncated;
    j->mine.n_unknown = j->n_unknown;
    PNB_TRY(PNB_ALLOC(from, pnb_peers_count(j->ranks) + 1, j->err));
    PNB_TRY(pnb__embed_gather_known(j->ranks, &j->mine, &all, from, j->err));
    PNB_TRY(report_skips(j, all.skips, all.n_skips));
    PNB_TRY(check_rows(j, all.n_rows));
    PNB_TRY(make_set(j, all.n_rows, &set));
    PNB_TRY(pnb__embed_gather_rows(j->ranks, j->set, set, from, j->err));
    for (size_t i = 0; source->label != NULL && i < all.n_rows; i++)
        PNB_TRY(source->label(source->user, all.input[i], set, i, j->err));
    pnb_embeddings_free(j->set);
    j->set = set;
    set = NULL;
    j->n_rows = all.n_rows;
    j->n_truncated = all.n_truncated;
    j->n_unknown = all.n_unknown;
    j->counts.n_skipped = all.n_skips;
done:
    pnb_embeddings_free(set);
    pnb__embed_known_reset(&all);
    pnb__free(from);
    return status;
}

/* ---- the loop ---- */

static bool is_part_due(const job *j, bool more)
{
    if (!more || j->file == NULL)
        return false;
    return j->n_rows + j->batch.capacity > j->part_rows || pnb__now_s() - j->saved_s > SAVE_PAUSE_S;
}

static size_t n_behind(const job *j)
{
    return j->n_continued + j->n_done + j->n_others;
}

static pnb_status interrupted(job *j, size_t next)
{
    size_t n = j->source->n;
    if (j->file == NULL)
        return pnb__fail(j->err, PNB_INTERRUPTED, "stopped after %zu of %zu inputs", n_behind(j),
                         n);
    pnb_status status = save_part(j, next);
    if (j->ranks != NULL)
        status = pnb_peers_agree(j->ranks, status, j->err);
    return status != PNB_OK ? status
                            : pnb__fail(j->err, PNB_INTERRUPTED,
                                        "%zu of %zu inputs are kept in %s; the same command "
                                        "continues",
                                        n_behind(j), n, j->journal.dir);
}

static bool watch(const job *j)
{
    const pnb_watch *w = &j->opts->watch;
    return w->step == NULL || w->step(w->user, n_behind(j), j->source->n);
}

/* With all others. What was embedded before one of them failed is kept. */
static pnb_status meet(job *j, size_t next, bool stops, bool has_ended, pnb__embed_place *all)
{
    const pnb__embed_place mine = {j->n_done, stops, has_ended};
    pnb_status status = pnb__embed_rounds_meet(&j->rounds, &mine, all, j->err);
    if (status != PNB_OK && j->file != NULL)
        (void)save_part(j, next);
    if (status == PNB_OK)
        j->n_others = all->n_done - j->n_done;
    return status;
}

/* Before a batch: whether to go on, which several processes ask each other at the end of a round.
 */
static pnb_status go_on(job *j, size_t next)
{
    bool stops = !watch(j);
    pnb__embed_place all = {.stops = stops};
    if (j->ranks != NULL) {
        if (!pnb__embed_rounds_step(&j->rounds))
            return PNB_OK;
        pnb_status status = meet(j, next, stops, false, &all);
        if (status != PNB_OK)
            return status;
    }
    return all.stops ? interrupted(j, next) : PNB_OK;
}

static pnb_status embed_range(job *j, const pnb__embed_range *range, bool is_last)
{
    pnb_status status = PNB_OK;
    j->part_begin = range->begin;
    for (size_t next = range->begin; next < range->end;) {
        size_t before = next;
        bool is_first = next == range->begin; /* nothing can be read ahead of it */
        PNB_TRY(go_on(j, next));
        double before_s = pnb__now_s();
        PNB_TRY(pnb__embed_batch_fill(&j->batch, &next, range->end, on_skip, j, j->err));
        if (!is_first)
            j->waited_s += pnb__now_s() - before_s;
        if (j->batch.n > 0)
            PNB_TRY(append_batch(j));
        j->n_done += next - before;
        if (is_part_due(j, next < range->end))
            PNB_TRY(save_part(j, next));
    }
    bool is_alone = is_last && j->ranks == NULL && j->journal.n_parts == 0;
    if (j->file != NULL && !is_alone)
        status = save_part(j, range->end);
done:
    return status;
}

static pnb_status embed_inputs(job *j)
{
    pnb__embed_place all = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < j->n_ranges; i++)
        PNB_TRY(embed_range(j, &j->ranges[i], i + 1 == j->n_ranges));
    while (j->ranks != NULL && !all.has_ended) {
        PNB_TRY(meet(j, j->part_begin, !watch(j), true, &all));
        if (all.stops)
            return interrupted(j, j->part_begin);
    }
    watch(j);
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

/* ---- what is to be done ---- */

/* Whether what an adapter draws for a row depends on how many rows stand before it. */
static bool is_in_order(const job *j)
{
    pnb_encode_side side = j->source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES;
    return !j->opts->activations && pnb__encoder_adapts(j->encoder, side) &&
           pnb__adapter_draws(j->encoder->adapter);
}

/* What a row is made with, and of what; the same for all ranks, who are told which of these is not.
 */
static pnb_status sign(job *j)
{
    pnb_embeddings *one = NULL;
    char *text = NULL;
    pnb_status status;
    PNB_TRY(make_set(j, 1, &one));
    const pnb__embed_signed what = {j->encoder, j->source, j->opts,
                                    j->file != NULL ? j->file->maker : NULL, &one->info};
    PNB_TRY(pnb__embed_sign(&what, j->signature, j->err));
    if (j->ranks != NULL) {
        text = pnb__format("inputs: %zu\nweights: %s\noutput: %s\njob: %s", j->source->n,
                           one->info.weights_sha256, j->file != NULL ? j->file->out : "",
                           j->signature);
        status = text != NULL ? pnb__peers_compare(j->ranks, "work", text, j->err)
                              : pnb__fail_nomem(j->err, sizeof j->signature);
    }
done:
    pnb__free(text);
    pnb_embeddings_free(one);
    return status;
}

static pnb_status open_journal(job *j)
{
    size_t rank = pnb_peers_rank(j->ranks);
    pnb_status status = PNB_OK;
    if (j->source->stamp != NULL) {
        j->stamps = pnb__alloc_zero(j->source->n, sizeof *j->stamps);
        if (j->stamps == NULL)
            return pnb__fail_nomem(j->err, j->source->n * sizeof *j->stamps);
        j->key.stamp = stamp_inputs;
    }
    if (rank == 0)
        status = pnb__embed_journal_open(&j->journal, j->file->out, &j->key, j->err);
    if (j->ranks != NULL)
        status = pnb_peers_agree(j->ranks, status, j->err);
    if (status == PNB_OK && rank != 0)
        status = pnb__embed_journal_join(&j->journal, j->file->out, rank, j->err);
    return status;
}

/* What rank 0 found to do is what all deal out. */
static pnb_status deal(job *j)
{
    size_t rank = pnb_peers_rank(j->ranks), n = 0;
    pnb__buf told = {0};
    pnb_status status;
    PNB_TRY(pnb__embed_gaps(j->journal.parts, j->journal.n_parts, j->source->n, &j->ranges,
                            &j->n_ranges, j->err));
    if (j->ranks != NULL) {
        pnb__buf_append(&told, j->ranges, j->n_ranges * sizeof *j->ranges);
        PNB_TRY(pnb__buf_check(&told, j->err));
        PNB_TRY(pnb__peers_share(j->ranks, &told, j->err));
        pnb__free(j->ranges);
        j->n_ranges = told.size / sizeof *j->ranges;
        j->ranges = NULL;
        PNB_TRY(PNB_ALLOC(j->ranges, j->n_ranges + 1, j->err));
        if (told.size > 0)
            memcpy(j->ranges, told.data, j->n_ranges * sizeof *j->ranges);
    }
    for (size_t i = 0; i < j->n_ranges; i++)
        n += j->ranges[i].end - j->ranges[i].begin;
    j->n_continued = j->source->n - n;
    if (j->ranks != NULL && j->key.in_order)
        j->n_ranges = rank == 0 ? j->n_ranges : 0;
    else if (j->ranks != NULL)
        pnb__embed_deal(j->ranges, &j->n_ranges, j->key.batch, rank, pnb_peers_count(j->ranks));
done:
    pnb__buf_reset(&told);
    return status;
}

/* Everything up to the rows of the last part. */
static pnb_status run(job *j)
{
    pnb_status status;
    size_t n = 0;
    j->ranks = pnb_peers_count(j->opts->ranks) > 1 ? j->opts->ranks : NULL;
    j->key = (pnb__embed_job_key){.signature = j->signature,
                                  .n_inputs = j->source->n,
                                  .batch = PNB_MAX(j->opts->batch_size, (size_t)1),
                                  .in_order = is_in_order(j),
                                  .user = j};
    if (j->file != NULL || j->ranks != NULL)
        PNB_TRY(sign(j));
    if (j->file != NULL)
        PNB_TRY(open_journal(j));
    PNB_TRY(deal(j));
    PNB_TRY(pnb__embed_batch_init(&j->batch, j->encoder, j->source, j->opts, j->err));
    j->batch.stamps = j->stamps;
    for (size_t i = 0; i < j->n_ranges; i++)
        n += j->ranges[i].end - j->ranges[i].begin;
    j->part_rows = j->file != NULL ? rows_of_part(j) : PNB_MAX(n, (size_t)1);
    PNB_TRY(make_set(j, j->part_rows, &j->set));
    if (j->ranks == NULL)
        PNB_TRY(take_parts(j));
    pnb__embed_rounds_init(&j->rounds, j->ranks);
    status = embed_inputs(j);
done:
    return status;
}

static void fill_result(const job *j, pnb_encode_result *result)
{
    if (result != NULL)
        *result = (pnb_encode_result){.n_inputs = j->source->n,
                                      .n_rows = j->n_kept + j->n_rows,
                                      .n_skipped = j->counts.n_skipped,
                                      .n_continued = j->n_continued,
                                      .n_truncated = j->counts.n_truncated + j->n_truncated,
                                      .n_unknown = j->counts.n_unknown + j->n_unknown,
                                      .seconds = pnb__now_s() - j->start_s,
                                      .waited_s = j->waited_s};
}

/* The others learn why this process gives up; that all stop, all know. */
static pnb_status tell(const job *j, pnb_status status)
{
    if (status != PNB_OK && status != PNB_INTERRUPTED)
        pnb_peers_fail(j->ranks, status, j->err);
    return status;
}

static void reset(job *j)
{
    pnb__embed_batch_free(&j->batch); /* its threads write stamps: they end first */
    pnb__free(j->stamps);
    pnb__free(j->ranges);
    pnb__embed_known_reset(&j->mine);
    pnb_embeddings_free(j->set);
}

pnb_status pnb__embed_set(pnb_encoder *encoder, const pnb__embed_source *source,
                          const pnb_encode_opts *opts, pnb_embeddings **out,
                          pnb_encode_result *result, pnb_error *err)
{
    job j = {encoder, source, opts, .err = err, .start_s = pnb__now_s()};
    pnb_status status = run(&j);
    if (status == PNB_OK)
        status = j.ranks != NULL ? gather(&j) : check_rows(&j, j.n_rows);
    if (status == PNB_OK) {
        fill_result(&j, result);
        *out = close_set(&j);
        j.set = NULL;
    }
    status = tell(&j, status);
    reset(&j);
    return status;
}

pnb_status pnb__embed_file(pnb_encoder *encoder, const pnb__embed_source *source,
                           const pnb_encode_opts *opts, const pnb_encode_file *file,
                           pnb_encode_result *result, pnb_error *err)
{
    double now_s = pnb__now_s();
    job j = {encoder, source, opts, file, err, .journal = {.lock_fd = -1}, .start_s = now_s};
    j.saved_s = now_s;
    pnb_status status = run(&j);
    if (status == PNB_OK)
        status = write_file(&j);
    if (status == PNB_OK)
        fill_result(&j, result);
    status = tell(&j, status);
    pnb__embed_journal_close(&j.journal, status == PNB_OK);
    reset(&j);
    return status;
}
