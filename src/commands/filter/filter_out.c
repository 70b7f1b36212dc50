/* What a filter leaves behind: lists of pairs, DataComp's subset file, and new shards.
 *
 * A sample is kept when one of its pairs is. Shards hold samples as they were, all captions
 * included. What names a sample in the subset file is found in filter_uid.c. */
#include <string.h>

#include "commands/filter/filter.h"
#include "io/json/json.h"
#include "program/progress.h"
#include "program/together.h"
#include "sets/set_rows.h"

/* ---- lists ---- */

/* One pair with all that is known of it. */
static void put_pair(const pnb__filter_run *run, size_t i, pnb__buf *b)
{
    size_t image = run->pairs.image[i], text = run->pairs.text[i];
    uint32_t failed = run->filter.failed[i];
    pnb__json_put(b, "{\"id\":%s,\"text_id\":%s,\"image_row\":%zu,\"text_row\":%zu,\"score\":%f",
                  pnb__set_id(run->images, image), pnb__set_id(run->texts, text), image, text,
                  run->score[i]);
    if (run->p_match != NULL)
        pnb__json_put(b, ",\"p_match\":%f", run->p_match[i]);
    pnb__json_put(b, ",\"image_uncertainty\":%f,\"text_uncertainty\":%f", run->image_u[i],
                  run->text_u[i]);
    if (run->pair_texts != NULL && run->pair_texts[i] != NULL)
        pnb__json_put(b, ",\"text\":%s", run->pair_texts[i]);
    if (failed != 0) {
        pnb__buf_puts(b, ",\"failed\":[");
        for (int rule = 0, n = 0; rule < PNB_N_RULES; rule++)
            if ((failed >> rule & 1u) != 0)
                pnb__buf_printf(b, "%s\"%s\"", n++ > 0 ? "," : "", pnb_rule_name((pnb_rule)rule));
        pnb__buf_putc(b, ']');
    }
    pnb__buf_puts(b, "}\n");
}

/* A list being written: pairs as lines of JSON, or the ids of pictures, each once. */
typedef struct list {
    const pnb__filter_run *run;
    const unsigned char *keep; /* [pictures] one of its pairs is kept */
    unsigned char *is_listed;  /* [pictures] */
    bool is_jsonl, kept;       /* which form, and which side */
} list;

/* The line of pair i, empty where it has none. A picture stands on one side only: that of the
 * samples kept when one of its pairs is. */
static void put_line(list *l, size_t i, pnb__buf *line)
{
    size_t image = l->run->pairs.image[i];
    line->size = 0;
    if (l->is_jsonl) {
        if ((l->run->filter.failed[i] == 0) == l->kept)
            put_pair(l->run, i, line);
    } else if (!l->is_listed[image] && (l->keep[image] != 0) == l->kept) {
        pnb__buf_printf(line, "%s\n", pnb__set_id(l->run->images, image));
        l->is_listed[image] = 1;
    }
}

static pnb_status write_list(const pnb__filter_run *run, const unsigned char *keep,
                             const char *path, bool kept, pnb_error *err)
{
    pnb__out_file out = {0};
    pnb__buf line = {0};
    list l = {run, keep, NULL, pnb__ends_with(path, ".jsonl"), kept};
    pnb_status status;
    PNB_TRY(pnb__out_open(&out, path, err));
    PNB_TRY(PNB_ALLOC_ZERO(l.is_listed, run->images->n, err));
    for (size_t i = 0; i < run->pairs.n; i++) {
        put_line(&l, i, &line);
        if (line.failed)
            PNB_TRY(pnb__fail_nomem(err, line.size));
        if (line.size > 0 && fwrite(line.data, 1, line.size, out.file) != line.size)
            PNB_TRY(pnb__fail_errno(err, "cannot write", path));
    }
    status = pnb__out_commit(&out, err);
done:
    pnb__out_abort(&out);
    pnb__buf_reset(&line);
    pnb__free(l.is_listed);
    return status;
}

/* ---- which pictures ---- */

/* keep[row] for the rows of the pictures. */
static unsigned char *kept_images(const pnb__filter_run *run, pnb_error *err)
{
    unsigned char *keep = pnb__alloc_zero(run->images->n, 1);
    if (keep == NULL)
        pnb__fail_nomem(err, run->images->n);
    for (size_t i = 0; keep != NULL && i < run->pairs.n; i++)
        if (run->filter.failed[i] == 0)
            keep[run->pairs.image[i]] = 1;
    return keep;
}

/* ---- uids ---- */

static pnb_status write_uids(pnb__app *app, const pnb__filter_run *run, const unsigned char *keep,
                             pnb__result *r)
{
    pnb_error *err = &app->err;
    size_t n = 0, n_written = 0;
    const char *field = NULL;
    pnb_status status = PNB_OK;
    pnb_uid *uids = pnb__alloc_array(run->images->n, sizeof *uids);
    if (uids == NULL)
        return pnb__fail_nomem(err, run->images->n * sizeof *uids);
    status = pnb__filter_uids(run, keep, uids, &n, &field, err);
    if (status == PNB_OK && pnb__together_writes(app))
        status = pnb_uids_save(run->opts->uids, uids, n, &n_written, err);
    if (status == PNB_OK) {
        pnb__result_text(r, "uids", "subset file", run->opts->uids);
        pnb__result_text(r, "uid_field", "named by", field);
        pnb__result_int(r, "n_uids", "uids", (int64_t)n_written);
    }
    pnb__free(uids);
    return status;
}

/* ---- shards ---- */

static void skip(void *user, const char *what, const char *why)
{
    pnb__skipped(user, what, why);
}

static pnb_status write_shards(pnb__app *app, const pnb__filter_run *run, const unsigned char *keep,
                               pnb__result *r)
{
    size_t n = pnb_dataset_size(run->data.set);
    pnb_copy_opts opts = pnb_copy_opts_default();
    pnb_copied copied;
    pnb__watching watching;
    unsigned char *keep_sample = pnb__alloc_zero(n, 1);
    if (keep_sample == NULL)
        return pnb__fail_nomem(&app->err, n);
    for (size_t row = 0; row < run->images->n; row++)
        if (keep[row])
            keep_sample[run->data.sample[row]] = 1;
    opts.shard_size = run->opts->shard_size;
    opts.skipped = skip;
    opts.skipped_user = app;
    opts.watch = pnb__watch_begin(&watching, app, "copying", "samples");
    pnb_status status =
        pnb_dataset_copy(run->data.set, keep_sample, run->opts->out_dir, &opts, &copied, &app->err);
    pnb__watch_end(&watching);
    if (status == PNB_OK) {
        pnb__result_text(r, "out", "shards in", run->opts->out_dir);
        pnb__result_int(r, "n_samples", "samples", (int64_t)copied.n_samples);
        pnb__result_int(r, "n_shards", "shards", (int64_t)copied.n_shards);
    }
    pnb__free(keep_sample);
    return status;
}

/* ---- all ---- */

pnb_status pnb__filter_write(pnb__app *app, const pnb__filter_run *run, pnb__result *r)
{
    const pnb__filter_opts *o = run->opts;
    pnb_error *err = &app->err;
    pnb_status status = PNB_OK;
    unsigned char *keep = kept_images(run, err);
    if (keep == NULL)
        return PNB_NOMEM;
    if (o->uids != NULL)
        PNB_TRY(write_uids(app, run, keep, r)); /* which all look for */
    if (!pnb__together_writes(app))
        goto done;
    if (o->list != NULL) {
        PNB_TRY(write_list(run, keep, o->list, true, err));
        pnb__result_text(r, "list", "list of kept", o->list);
    }
    if (o->dropped != NULL) {
        PNB_TRY(write_list(run, keep, o->dropped, false, err));
        pnb__result_text(r, "dropped", "list of dropped", o->dropped);
    }
    if (o->preview != NULL)
        PNB_TRY(pnb__filter_page(run, r, err));
    if (o->out_dir != NULL)
        PNB_TRY(write_shards(app, run, keep, r));
done:
    pnb__free(keep);
    return status;
}
