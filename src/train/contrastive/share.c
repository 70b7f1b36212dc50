/* Several processes on one step: how many micro-batches there are, whether all read the same data,
 * and what each of them could not read. Which rows of the batch are whose is step.c's; here are the
 * counts that all must share before the first step. */
#include <string.h>

#include "base/map.h"
#include "data/sources/data_mark.h"
#include "peers/peers.h"
#include "train/contrastive/contrastive.h"

/* A global batch is so many forward passes, whoever makes them: a run goes on with another number
 * of processes and meets the same batches. Masked rows, mixes and words that drop out are drawn by
 * the number of a forward pass, so --batch-size is a part of what stays the same. */
pnb_status pnb__contrastive_settle_share(pnb_train_opts *o, pnb_error *err)
{
    size_t n_ranks = pnb_peers_count(o->ranks);
    size_t passes = (size_t)PNB_MAX(o->accum_freq, 0) * n_ranks;
    if (o->global_batch > 0 && o->memory > 0 && o->accum_freq <= 1) {
        o->batch_size = o->global_batch; /* memory_fit.c cuts it */
        passes = 1;
    } else if (o->global_batch > 0) {
        if (o->accum_freq > 1)
            return pnb__fail(err, PNB_ARG,
                             "--global-batch %zu says how many forward passes a step has, "
                             "--accum-freq %d too: give one of them",
                             o->global_batch, o->accum_freq);
        if (o->batch_size == 0 || o->global_batch % o->batch_size != 0)
            return pnb__fail(err, PNB_ARG, "--global-batch %zu is no multiple of --batch-size %zu",
                             o->global_batch, o->batch_size);
        passes = o->global_batch / o->batch_size;
    }
    if (passes > INT32_MAX)
        return pnb__fail(err, PNB_ARG, "%zu forward passes of a step, at most 2^31 - 1", passes);
    if (passes < n_ranks && o->global_batch > 0 && !(o->memory > 0))
        return pnb__fail(err, PNB_ARG,
                         "--global-batch %zu has %zu batches of %zu for %zu processes: one would "
                         "have nothing to do; lower --batch-size",
                         o->global_batch, passes, o->batch_size, n_ranks);
    if (o->batch_by_class && passes > 1)
        return pnb__fail(err, PNB_ARG,
                         "--batch-by-class: a step of %zu batches, in %zu processes, would have a "
                         "class more than once",
                         passes, n_ranks);
    o->accum_freq = (int)passes;
    return PNB_OK;
}

/* There are fewer kinds of marks than room for them, whatever the options. */
static void add_mark(pnb__objective *o, const char *name, uint64_t value)
{
    o->marks[o->n_marks++] = (pnb__mark){name, value};
}

/* Of one process too: its checkpoints say what they were trained on. In the order in which people
 * would look for a difference: which samples, what they say, which pictures; then what is read
 * beside them. The validation data may change: they shape no weight. */
pnb_status pnb__contrastive_mark_data(const pnb__contrastive *c, pnb__objective *o, pnb_error *err)
{
    pnb__data_mark mark;
    pnb_status status = pnb__dataset_mark(c->ctx, c->train, &mark, err);
    if (status != PNB_OK)
        return status;
    add_mark(o, "names of samples", mark.names);
    add_mark(o, "captions", mark.texts);
    add_mark(o, "sizes of pictures", mark.sizes);
    add_mark(o, "pictures", mark.images);
    if (c->teacher != NULL)
        add_mark(o, "rows of the teacher", pnb__teacher_mark(c->teacher));
    if (c->lora != NULL) /* frozen weights are no parameters, and must be the same everywhere */
        add_mark(o, "weights of the base", pnb__hash_bytes(c->lora->base_sha256, 64, 0));
    return PNB_OK;
}

/* ---- at the end ---- */

/* How many captions were cut, and the samples that this process could not read, a line each: all of
 * them, since a later epoch gives the same sample to another process, and it is one sample still.
 * As text, since what another process could not read is of interest to people alone. */
static void list_skipped(const pnb__contrastive *c, pnb__buf *out)
{
    /* what validation put another pair in place of makes its figures those of fewer */
    pnb_loader *const loaders[] = {c->loader, c->val_loader};
    static const char *const whose[] = {"sample", "validation sample"};
    size_t n[2] = {pnb_loader_n_skipped(c->loader),
                   c->val_loader != NULL ? pnb_loader_n_skipped(c->val_loader) : 0};
    pnb__buf_printf(out, "%zu\n", c->result->n_truncated);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < n[k]; i++) {
            const char *why = "";
            int64_t sample = pnb_loader_skipped(loaders[k], i, &why);
            pnb__buf_printf(out, "  %s %lld: %s\n", whose[k], (long long)sample, why);
        }
}

/* Lines of all processes, each once, in the order of ranks. */
typedef struct skipped_lines {
    const char **line; /* into the processes' texts */
    size_t *length, n;
    pnb__key_map places;
} skipped_lines;

/* Texts are compared, not their hashes alone: a sample that is left out of the list is lost. */
static bool is_listed(const skipped_lines *s, const char *line, size_t n, uint64_t hash)
{
    size_t place, step = 0;
    while ((place = pnb__key_map_next(&s->places, hash, &step)) != PNB__NO_KEY)
        if (s->length[place] == n && memcmp(s->line[place], line, n) == 0)
            return true;
    return false;
}

/* The lines behind the first, which has the number of captions. */
static pnb_status add_skipped(skipped_lines *s, const char *text, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const char *at = strchr(text, '\n');
    while (at != NULL && at[1] != '\0' && status == PNB_OK) {
        size_t n = strcspn(at + 1, "\n");
        uint64_t hash = pnb__hash_bytes(at + 1, n, 0);
        if (!is_listed(s, at + 1, n, hash)) {
            status = pnb__key_map_add(&s->places, hash, s->n, err);
            s->line[s->n] = at + 1;
            s->length[s->n++] = n;
        }
        at += 1 + n;
    }
    return status;
}

/* Room for all lines, then each once. */
static pnb_status gather_skipped(skipped_lines *s, const pnb__buf *all, size_t n_ranks,
                                 pnb_error *err)
{
    size_t most = 1;
    pnb_status status;
    for (size_t p = 0; p < n_ranks; p++)
        for (size_t i = 0; i < all[p].size; i++)
            most += all[p].data[i] == '\n';
    PNB_TRY(PNB_ALLOC(s->line, most, err));
    PNB_TRY(PNB_ALLOC(s->length, most, err));
    for (size_t p = 0; p < n_ranks && status == PNB_OK; p++)
        status = add_skipped(s, all[p].data, err);
done:
    return status;
}

/* Lines lie in the texts of the processes, which have an owner. */
static void free_skipped(skipped_lines *s)
{
    pnb__key_map_reset(&s->places);
    pnb__free(s->line);
    pnb__free(s->length);
}

/* How many there are, and the first of them. A line may be longer than the log's: it is cut. */
static pnb_status record_skipped(pnb__trainer *t, const skipped_lines *s, pnb_error *err)
{
    enum { MOST_NAMED = 20, MOST_LENGTH = 1000 };
    pnb_status status = PNB_OK;
    if (s->n > 0)
        status = pnb__record_info(t, err, "%zu samples could not be read and were replaced:", s->n);
    for (size_t i = 0; i < PNB_MIN(s->n, (size_t)MOST_NAMED) && status == PNB_OK; i++)
        status = pnb__record_info(t, err, "%.*s", (int)PNB_MIN(s->length[i], (size_t)MOST_LENGTH),
                                  s->line[i]);
    return status;
}

/* Cut captions and unreadable samples: at the end, where their numbers are whole. Every process has
 * read its own samples alone; rank 0 writes of all. */
pnb_status pnb__contrastive_conclude(void *self, pnb__trainer *t, pnb_error *err)
{
    /* the texts of all processes are kept until the last line of them is written */
    const pnb__contrastive *c = self;
    size_t n_ranks = c->exchange->n_ranks, n_cut = 0;
    skipped_lines skipped = {0};
    pnb__buf mine = {0}, *all = NULL;
    pnb_status status;
    list_skipped(c, &mine);
    PNB_TRY(pnb__buf_check(&mine, err));
    PNB_TRY(PNB_ALLOC_ZERO(all, n_ranks, err));
    PNB_TRY(pnb__peers_tell_all(c->exchange->ranks, mine.data, mine.size, all, err));
    for (size_t p = 0; p < n_ranks; p++) {
        size_t cut = 0;
        if (sscanf(all[p].data, "%zu", &cut) == 1)
            n_cut += cut;
    }
    PNB_TRY(gather_skipped(&skipped, all, n_ranks, err));
    c->result->n_truncated = n_cut;
    c->result->n_skipped = skipped.n;
    if (n_cut > 0)
        PNB_TRY(pnb__record_info(t, err, "%zu captions were cut to %zu tokens", n_cut,
                                 c->info->text.context_length));
    PNB_TRY(record_skipped(t, &skipped, err));
    PNB_TRY(pnb__contrastive_conclude_fit(c, t, err));
done:
    free_skipped(&skipped);
    for (size_t p = 0; p < n_ranks && all != NULL; p++)
        pnb__buf_reset(&all[p]);
    pnb__free(all);
    pnb__buf_reset(&mine);
    return status;
}
