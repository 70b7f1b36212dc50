/* Learns an adapter from sets and saves it; puts a set through one.
 *
 * Sets stay in their files (pnb__set_map): a side at a time is gone through in blocks. */
#include "commands/adapt/adapt.h"

#include <string.h>

#include "commands/common/set_use.h"

/* ---- train ---- */

typedef struct train_run {
    pnb_embeddings *images, *texts;
    pnb_truth *truth;
    pnb_adapter *adapter;
} train_run;

static pnb_status load_truth(pnb__app *app, const pnb__adapt_train_opts *o, train_run *run)
{
    const pnb_truth_rows images = pnb_truth_rows_of(run->images);
    const pnb_truth_rows texts = pnb_truth_rows_of(run->texts);
    return pnb_truth_read(&run->truth, o->truth, &images, &texts, &o->read, NULL, &app->err);
}

static void name_sides(pnb__app *app, const pnb__adapt_train_opts *o)
{
    if (o->images != NULL && o->texts != NULL)
        pnb__error_prefix(&app->err, "%s and %s", o->images, o->texts);
    else
        pnb__error_prefix(&app->err, "%s", o->images != NULL ? o->images : o->texts);
}

pnb_status pnb__adapt_train(pnb__app *app, const pnb__adapt_train_opts *o, pnb__result *r)
{
    train_run run = {0};
    pnb_status status = PNB_OK;
    if (o->images != NULL)
        PNB_TRY(pnb__set_map(&run.images, o->images, app));
    if (o->texts != NULL)
        PNB_TRY(pnb__set_map(&run.texts, o->texts, app));
    if (o->truth != NULL)
        PNB_TRY(load_truth(app, o, &run));
    const pnb_adapter_data data = {.images = run.images, .texts = run.texts, .truth = run.truth};
    status = pnb_adapter_fit(&run.adapter, app->ctx, o->method, &data, &o->options, &app->err);
    if (status != PNB_OK) {
        name_sides(app, o);
        goto done;
    }
    PNB_TRY(pnb_adapter_save(run.adapter, o->out, &app->err));
    pnb__result_text(r, "out", "written", o->out);
    pnb__adapt_put(run.adapter, r);
done:
    pnb_adapter_free(run.adapter);
    pnb_truth_free(run.truth);
    pnb_embeddings_free(run.images);
    pnb_embeddings_free(run.texts);
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
    pnb_status status;
    PNB_TRY(pnb_adapter_load(&adapter, app->ctx, o->adapter, &app->err));
    PNB_TRY(pnb__set_map(&set, path, app));
    status = pnb__ends_with(o->out, ".npy")
                 ? write_npy(o->out, adapter, side, set, &app->err)
                 : pnb_adapter_apply_to(o->out, adapter, side, set, &app->err);
    if (status == PNB_OK)
        put_made(adapter, o, set, r);
    else
        pnb__error_prefix(&app->err, "%s", path);
done:
    pnb_embeddings_free(set);
    pnb_adapter_free(adapter);
    return status;
}
