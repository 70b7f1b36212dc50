/* Learns an adapter from sets and saves it; puts a set through one.
 *
 * Sets stay in their files (pnb__set_map): a side at a time is gone through in blocks. */
#include "commands/adapt/adapt.h"

#include <string.h>

#include "commands/common/model_path.h"
#include "commands/common/set_use.h"
#include "encode/encoder.h"
#include "program/progress.h"
#include "program/together.h"

/* ---- train ---- */

typedef struct train_run {
    pnb_embeddings *images, *texts, *val_images, *val_texts;
    pnb_truth *truth, *val_truth;
    pnb_adapter *adapter;
} train_run;

static pnb_status map_if(pnb_embeddings **out, const char *path, pnb__app *app)
{
    return path != NULL ? pnb__set_map(out, path, app) : PNB_OK;
}

static pnb_status load_truth(pnb__app *app, pnb_truth **out, const char *path,
                             const pnb_embeddings *images, const pnb_embeddings *texts,
                             const pnb_truth_read_opts *opts)
{
    const pnb_truth_rows image_rows = pnb_truth_rows_of(images);
    const pnb_truth_rows text_rows = pnb_truth_rows_of(texts);
    return pnb_truth_read(out, path, &image_rows, &text_rows, opts, NULL, &app->err);
}

/* Leaves of the truth what is learned from. */
static pnb_status draw_pairs(pnb__app *app, const pnb__adapt_train_opts *o, train_run *run)
{
    pnb_truth *fewer = NULL;
    if (!pnb__fewer_pairs_draws(&o->fewer))
        return PNB_OK;
    pnb_status status = pnb__fewer_pairs(&fewer, run->truth, run->images, o->images, &o->fewer,
                                         (uint64_t)app->common.seed, &app->err);
    if (status != PNB_OK)
        return status;
    pnb_truth_free(run->truth);
    run->truth = fewer;
    return PNB_OK;
}

static pnb_status load_sets(pnb__app *app, const pnb__adapt_train_opts *o, train_run *run)
{
    pnb_truth_read_opts val_read = o->read;
    pnb_status status;
    val_read.split = o->val_split;
    PNB_TRY(map_if(&run->images, o->images, app));
    PNB_TRY(map_if(&run->texts, o->texts, app));
    PNB_TRY(map_if(&run->val_images, o->val_images, app));
    PNB_TRY(map_if(&run->val_texts, o->val_texts, app));
    if (o->truth != NULL)
        PNB_TRY(load_truth(app, &run->truth, o->truth, run->images, run->texts, &o->read));
    PNB_TRY(draw_pairs(app, o, run));
    if (o->val_truth != NULL)
        status = load_truth(app, &run->val_truth, o->val_truth, run->val_images, run->val_texts,
                            &val_read);
done:
    return status;
}

/* What a file of another folder is blamed for has its name already. */
static bool begins_with(const char *text, const char *folder)
{
    size_t n = folder != NULL ? strlen(folder) : 0;
    return n > 0 && strncmp(text, folder, n) == 0 && (text[n] == ':' || text[n] == '/');
}

static void name_sides(pnb__app *app, const pnb__adapt_train_opts *o)
{
    if (begins_with(app->err.text, o->hessians) || begins_with(app->err.text, o->model))
        return;
    if (o->images != NULL && o->texts != NULL)
        pnb__error_prefix(&app->err, "%s and %s", o->images, o->texts);
    else
        pnb__error_prefix(&app->err, "%s", o->images != NULL ? o->images : o->texts);
}

static pnb_status fit(pnb__app *app, const pnb__adapt_train_opts *o, train_run *run)
{
    pnb_adapter_opts options = o->options;
    pnb__watching watching;
    pnb_adapter_data data = {.images = run->images,
                             .texts = run->texts,
                             .truth = run->truth,
                             .model = o->model,
                             .hessians = o->hessians,
                             .val_images = run->val_images,
                             .val_texts = run->val_texts,
                             .val_truth = run->val_truth,
                             .logs = o->logs,
                             .name = o->name,
                             .resume = o->resume,
                             .n_passes = (size_t)o->n_passes,
                             .ranks = app->ranks};
    if (pnb_adapter_method_reads(o->method, "seed")) /* --seed is every command's; not all draw */
        options.seed = (uint64_t)app->common.seed;
    data.watch = pnb__watch_begin(&watching, app, "learning", "steps");
    pnb_status status =
        pnb_adapter_fit(&run->adapter, app->ctx, o->method, &data, &options, &app->err);
    pnb__watch_end(&watching);
    if (status != PNB_OK && status != PNB_INTERRUPTED)
        name_sides(app, o);
    return status;
}

pnb_status pnb__adapt_train(pnb__app *app, const pnb__adapt_train_opts *o, pnb__result *r)
{
    train_run run = {0};
    pnb_status status;
    PNB_TRY(load_sets(app, o, &run));
    PNB_TRY(fit(app, o, &run));
    if (pnb__together_writes(app))
        PNB_TRY(pnb_adapter_save(run.adapter, o->out, &app->err));
    pnb__result_text(r, "out", "written", o->out);
    pnb__adapt_put(run.adapter, r);
done:
    pnb_adapter_free(run.adapter);
    pnb_truth_free(run.truth);
    pnb_truth_free(run.val_truth);
    pnb_embeddings_free(run.images);
    pnb_embeddings_free(run.texts);
    pnb_embeddings_free(run.val_images);
    pnb_embeddings_free(run.val_texts);
    return status;
}

/* ---- apply ---- */

static pnb_status write_npy(const char *out, const pnb_adapter *adapter, pnb_adapter_side side,
                            const pnb_embeddings *set, pnb_error *err)
{
    pnb_embeddings *made = NULL;
    pnb_status status = pnb_adapter_apply(&made, adapter, side, set, err);
    if (status == PNB_OK)
        status = pnb_embeddings_save_npy(made, out, err);
    pnb_embeddings_free(made);
    return status;
}

static void put_made(const pnb_adapter *adapter, const pnb__adapt_apply_opts *o,
                     const pnb_embeddings *set, pnb__result *r)
{
    char chain[PNB_PROVENANCE_BYTES];
    pnb_adapter_facts facts;
    pnb_embeddings_info info = set->info;
    pnb_adapter_describe(adapter, &facts);
    info.adapters.items[info.adapters.n++] = *facts.link;
    pnb_provenance_text(&info, chain, sizeof chain);
    pnb__result_text(r, "out", "written", o->out);
    pnb__result_text(r, "family", "family", pnb_family_name(facts.family));
    pnb__result_int(r, "n", "rows", (int64_t)set->n);
    pnb__result_text(r, "method", "method", facts.about->name);
    pnb__result_text(r, "provenance", "comes from", chain);
    pnb__result_text(r, "measure", "compared by", facts.measure);
}

pnb_status pnb__adapt_apply(pnb__app *app, const pnb__adapt_apply_opts *o, pnb__result *r)
{
    pnb_adapter *adapter = NULL;
    pnb_embeddings *set = NULL;
    const char *path = o->images != NULL ? o->images : o->texts;
    const pnb_adapter_side side = o->images != NULL ? PNB_ADAPTER_IMAGES : PNB_ADAPTER_TEXTS;
    pnb__watching watching = {0};
    pnb_status status;
    PNB_TRY(pnb_adapter_load(&adapter, app->ctx, o->adapter, &app->err));
    PNB_TRY(pnb__set_map(&set, path, app));
    const pnb_watch watch = pnb__watch_begin(&watching, app, "adapting", "rows");
    status = pnb__ends_with(o->out, ".npy")
                 ? write_npy(o->out, adapter, side, set, &app->err)
                 : pnb_adapter_apply_to(o->out, adapter, side, set, &watch, &app->err);
    pnb__watch_end(&watching);
    if (status == PNB_OK)
        put_made(adapter, o, set, r);
    else if (status != PNB_INTERRUPTED)
        pnb__error_prefix(&app->err, "%s", path);
done:
    pnb_embeddings_free(set);
    pnb_adapter_free(adapter);
    return status;
}

/* ---- attach ---- */

static void put_chain(const pnb_encoder *e, pnb_encode_side side, pnb__result *r)
{
    bool is_text = side == PNB_ENCODE_TEXTS;
    char chain[PNB_PROVENANCE_BYTES];
    pnb_embeddings_info info;
    pnb_encoder_describe(e, side, 0, &info);
    pnb_provenance_text(&info, chain, sizeof chain);
    pnb__result_text(r, is_text ? "texts" : "images", is_text ? "captions" : "pictures", chain);
}

pnb_status pnb__adapt_attach(pnb__app *app, const pnb__adapt_attach_opts *o, pnb__result *r)
{
    const pnb_encoder_opts weights_alone = {0};
    const char *adapter = o->folders.items[1];
    pnb_encoder e = {.model = NULL};
    char *dir = NULL;
    pnb_status status;
    PNB_TRY(pnb__model_path(app, o->folders.items[0], &dir, &app->err));
    PNB_TRY(pnb_encoder_attach(app->ctx, dir, adapter, o->out, &app->err));
    PNB_TRY(pnb__encoder_init(&e, app->ctx, o->out, &weights_alone, &app->err));
    pnb__result_text(r, "out", "written", o->out);
    put_chain(&e, PNB_ENCODE_IMAGES, r);
    put_chain(&e, PNB_ENCODE_TEXTS, r);
done:
    pnb__encoder_reset(&e);
    pnb__free(dir);
    return status;
}
