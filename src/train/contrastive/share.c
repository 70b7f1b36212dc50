/* Several processes on one step: how many micro-batches there are, whether all read the same data,
 * and what each of them could not read. Which rows of the batch are whose is step.c's; here are the
 * counts that all must share before the first step. */
#include <string.h>

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
    add_mark(o, "captions", mark.captions);
    add_mark(o, "sizes of pictures", mark.sizes);
    add_mark(o, "pictures", mark.pictures);
    if (c->teacher != NULL)
        add_mark(o, "rows of the teacher", pnb__teacher_mark(c->teacher));
    if (c->lora != NULL) /* frozen weights are no parameters, and must be the same everywhere */
        add_mark(o, "weights of the base", pnb__hash_bytes(c->lora->base_sha256, 64, 0));
    return PNB_OK;
}

/* ---- at the end ---- */

/* "captions cut" and the samples of this process, a line each. As text, since what another process
 * could not read is of interest to people alone. */
static void list_skipped(const pnb__contrastive *c, size_t most, pnb__buf *out)
{
    /* what validation put another pair in place of makes its figures those of fewer */
    pnb_loader *const loaders[] = {c->loader, c->val_loader};
    static const char *const whose[] = {"sample", "validation sample"};
    size_t n[2] = {pnb_loader_n_skipped(c->loader),
                   c->val_loader != NULL ? pnb_loader_n_skipped(c->val_loader) : 0};
    pnb__buf_printf(out, "%zu %zu\n", c->result->n_truncated, n[0] + n[1]);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < PNB_MIN(n[k], most); i++) {
            const char *why = "";
            int64_t sample = pnb_loader_skipped(loaders[k], i, &why);
            pnb__buf_printf(out, "  %s %lld: %s\n", whose[k], (long long)sample, why);
        }
}

/* Up to *left lines behind the first, which had the numbers. A line may be longer than the log's:
 * it is cut. */
static pnb_status record_lines(pnb__trainer *t, const char *text, size_t *left, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (const char *at = strchr(text, '\n'); at != NULL && at[1] != '\0' && *left > 0;) {
        size_t n = strcspn(at + 1, "\n");
        status = pnb__record_info(t, err, "%.*s", (int)PNB_MIN(n, (size_t)1000), at + 1);
        if (status != PNB_OK)
            break;
        at += 1 + n;
        --*left;
    }
    return status;
}

/* Cut captions and unreadable samples: at the end, where their numbers are whole. Every process has
 * read its own samples alone; rank 0 writes of all, in the order of ranks. */
pnb_status pnb__contrastive_conclude(void *self, pnb__trainer *t, pnb_error *err)
{
    enum { MOST_NAMED = 20 };
    const pnb__contrastive *c = self;
    size_t n_ranks = c->exchange->n_ranks, n_cut = 0, n_skipped = 0, left = MOST_NAMED;
    pnb__buf mine = {0}, *all = NULL;
    pnb_status status;
    list_skipped(c, MOST_NAMED, &mine);
    PNB_TRY(pnb__buf_check(&mine, err));
    PNB_TRY(PNB_ALLOC_ZERO(all, n_ranks, err));
    PNB_TRY(pnb__peers_tell_all(c->exchange->ranks, mine.data, mine.size, all, err));
    for (size_t p = 0; p < n_ranks; p++) {
        size_t cut = 0, skipped = 0;
        if (sscanf(all[p].data, "%zu %zu", &cut, &skipped) == 2) {
            n_cut += cut;
            n_skipped += skipped;
        }
    }
    c->result->n_truncated = n_cut;
    c->result->n_skipped = n_skipped;
    if (n_cut > 0)
        PNB_TRY(pnb__record_info(t, err, "%zu captions were cut to %zu tokens", n_cut,
                                 c->info->text.context_length));
    if (n_skipped > 0)
        PNB_TRY(pnb__record_info(t, err,
                                 "%zu samples could not be read and were replaced:", n_skipped));
    for (size_t p = 0; p < n_ranks; p++)
        PNB_TRY(record_lines(t, all[p].data, &left, err));
    PNB_TRY(pnb__contrastive_conclude_fit(c, t, err));
done:
    for (size_t p = 0; p < n_ranks && all != NULL; p++)
        pnb__buf_reset(&all[p]);
    pnb__free(all);
    pnb__buf_reset(&mine);
    return status;
}
