/* penumbra data corrupt: copies of a set spoiled on purpose, with the truth of it.
 *
 * Options and the counts; doses, swaps and files are src/data's. */
#include "commands/commands.h"
#include "commands/data/data_stats.h"
#include "penumbra/corrupt.h"
#include "prob/choices.h"
#include "program/result_end.h"

struct corrupt_args {
    const char *data, *out;
    pnb_corrupt_opts job;
};

#define AT(field) PNB__FIELD(struct corrupt_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("data", AT(data), "DATA",
                  "Data set to copy: tar shards, csv, jsonl or a folder, as for --train-data",
                  .required = true),
    PNB__MADE_OUT_ROW(AT(out)),
    PNB__ROW_CHOICE("change", AT(job.change), "HOW", PNB__CHOICES(PNB_CHANGE_LIST(PNB__CHOICE_OF)),
                    "What a dose d between 0 and 1 does to a picture: a grey rectangle over the "
                    "share d, that share of the pixels lost, that share of the colour lost, or "
                    "another picture mixed in with weight d/2",
                    .fallback = "none", .group = "Pictures"),
    PNB__ROW_REAL("max-dose", AT(job.max_dose), "D",
                  "Doses are uniform between 0 and D; the record's field dose has each",
                  PNB__RANGE(0, 1), .fallback = "1"),
    PNB__ROW_REAL("swap", AT(job.swap_share), "SHARE",
                  "Share of the samples that get the captions of another of them; the record's "
                  "field swapped is 1 there and 0 elsewhere",
                  PNB__RANGE(0, 1), .fallback = "0", .group = "Captions"),
    PNB__ROW_TEXT("split", AT(job.split), "NAME", "Folder of the copy below DIR",
                  .fallback = "train", .group = "Files"),
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
};
#undef AT

static void report_skipped(void *user, const char *key, const char *why)
{
    pnb__skipped(user, key, why);
}

static void defaults(void *args)
{
    *(struct corrupt_args *)args = (struct corrupt_args){.job = pnb_corrupt_opts_default()};
}

static void put_stats(const struct corrupt_args *a, const pnb_corrupt_stats *s, pnb__result *r)
{
    pnb__result_text(r, "dir", "folder", a->out);
    pnb__result_flag(r, "reused", "was there already", s->reused);
    pnb__result_int(r, "n_images", "pictures", (int64_t)s->n_images);
    if (s->reused)
        return;
    pnb__result_text(r, "change", "change of the pictures", pnb_change_name(a->job.change));
    pnb__result_int(r, "n_swapped", "with captions of another", (int64_t)s->n_swapped);
    pnb__result_int(r, "n_skipped", "left out: unreadable", (int64_t)s->n_skipped);
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct corrupt_args *a = args;
    pnb_dataset *data = NULL;
    pnb_corrupt_stats stats;
    pnb_dataset_opts how = pnb_dataset_opts_default();
    if (a->job.change == PNB_CHANGE_NONE && a->job.swap_share == 0.0)
        return pnb__usage(app, "--change or --swap is wanted; a copy that is clean says nothing");
    if (a->job.max_dose == 0.0)
        return pnb__usage(app, "--max-dose 0 changes nothing");
    a->job.seed = (uint64_t)app->common.seed;
    a->job.skipped = report_skipped;
    a->job.user = app;
    how.allow_no_caption = a->job.swap_share == 0.0;
    pnb_status status = pnb_dataset_open(&data, a->data, &how, &app->err);
    if (status == PNB_OK)
        status = pnb_corrupt_build(data, a->data, a->out, &a->job, &stats, &app->err);
    if (status == PNB_OK)
        put_stats(a, &stats, r);
    pnb_dataset_free(data);
    return status;
}

const pnb__command pnb__cmd_data_corrupt = {
    .name = "corrupt",
    .summary = "copy a set with pictures and captions spoiled by a known amount",
    .about = "Every record says what was done to it: dose, the share of a picture that was lost, "
             "and swapped, whether its captions belong to another picture. `embed` carries both "
             "to the rows, where `eval uncertainty --entropy dose` and `eval noise` find them. "
             "Keys stay, so that the truth of the clean set still speaks of the pictures; captions "
             "of another picture may happen to be true all the same.",
    .examples = "penumbra data corrupt --data emoji/test --change erase --out erased --split test\n"
                "penumbra data corrupt --data shapes/train --swap 0.2 --out noisy",
    .defaults = defaults,
    PNB__RUNS(options, struct corrupt_args, run)};
