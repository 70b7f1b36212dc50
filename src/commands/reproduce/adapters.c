/* Post-hoc methods in an experiment. The sets of a method are made by adapt compare's code, in the
 * folders of the experiment, and ranked by eval's; uncertainty is each family's own, that of frozen
 * rows 1 - cosine of a query and its first hit. */
#include "commands/reproduce/adapters.h"

#include <string.h>

#include "base/base.h"
#include "commands/common/set_use.h"

/* ---- sets ---- */

static pnb_status load_pairs(pnb__reproduction *run, pnb__adapt_comparison *c)
{
    const pnb__adapt_compare_opts *o = c->opts;
    pnb__app *app = run->app;
    pnb_status status;
    PNB_TRY(pnb__pair_load(app, &o->train, &o->read, NULL, &c->train));
    PNB_TRY(pnb__pair_load(app, &o->val, &o->read, NULL, &c->val));
    PNB_TRY(pnb__pair_load(app, &o->test, &o->read, NULL, &c->test));
    if (o->known != NULL)
        status = pnb__set_load(&c->known, o->known, app);
done:
    return status;
}

static bool is_control(const char *name)
{
#define IS_IT(key, label) || strcmp(name, key) == 0
    return false PNB__ADAPTED_CONTROLS(IS_IT);
#undef IS_IT
}

static pnb_status describe(const pnb__adapted_opts *opts, pnb__compare_entry *e, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *e = (pnb__compare_entry){.name = opts->row != NULL ? opts->row : opts->method,
                              .method = pnb_adapter_method_find(opts->method),
                              .kind = PNB__ENTRY_METHOD,
                              .seed = opts->seed};
    if (e->method == NULL)
        e->kind = is_control(opts->method) ? PNB__ENTRY_CONTROL : PNB__ENTRY_FROZEN;
    if (opts->option != NULL)
        status = pnb__copy_text(&e->option, opts->option, err);
    if (opts->option != NULL && status == PNB_OK)
        status = pnb__copy_text(&e->value, opts->value, err);
    return status;
}

/* Paths of the sets in *e, or why there are none, and scores against what is known. */
static pnb_status make_sets(pnb__reproduction *run, const pnb__adapted_opts *opts,
                            pnb__compare_entry *e)
{
    const pnb__adapt_compare_opts compare = {.train = run->train,
                                             .val = run->val,
                                             .test = run->test,
                                             .read = pnb_truth_read_opts_default(),
                                             .known = run->known,
                                             .n_seeds = 1,
                                             .recipe = PNB_ADAPT_RECIPE_AUTO,
                                             .steps = run->opts->n_steps,
                                             .out = run->opts->out};
    pnb__adapt_comparison c = {.opts = &compare};
    pnb_status status = load_pairs(run, &c);
    if (status == PNB_OK)
        status = describe(opts, e, &run->app->err);
    if (status == PNB_OK)
        status = pnb__compare_make(run->app, &c, e);
    pnb__pair_reset(&c.train);
    pnb__pair_reset(&c.val);
    pnb__pair_reset(&c.test);
    pnb_embeddings_free(c.known);
    return status;
}

/* ---- figures ---- */

static void put_side(const pnb__reproduction *run, json_t *found, const char *row, const char *side,
                     const pnb_figures *f)
{
    static const char *const keys[] = {"s", "r2", "minus_s_r2"};
    static const pnb_figure figures[] = {PNB_FIGURE_SPEARMAN_S, PNB_FIGURE_R2,
                                         PNB_FIGURE_MINUS_S_R2};
    char key[32];
    snprintf(key, sizeof key, "%s_r1", side);
    pnb__reproduce_put(run, found, row, key, f->recall[0]);
    for (size_t i = 0; i < PNB_COUNT(keys); i++) {
        snprintf(key, sizeof key, "%s_%s", side, keys[i]);
        pnb__reproduce_put(run, found, row, key, f->value[figures[i]]);
    }
}

pnb_measure pnb__adapted_measure_of(const pnb__compare_entry *e, pnb_measure measure)
{
    if (e->kind == PNB__ENTRY_FROZEN)
        return PNB_MEASURE_MEAN;
    return e->kind == PNB__ENTRY_METHOD && e->family == PNB_GAUSSIAN_DIAG ? measure
                                                                          : PNB__MEASURE_AUTO;
}

static pnb_status rank(pnb__reproduction *run, const pnb__adapted_opts *opts,
                       const pnb__compare_entry *e, json_t *found)
{
    pnb__retrieval_opts load = pnb__retrieval_opts_default();
    pnb__retrieval ranked = {0};
    load.images = e->images;
    load.texts = e->texts;
    load.truth = run->test.truth;
    load.measure = pnb__adapted_measure_of(e, opts->measure);
    pnb_status status = pnb__retrieval_run(run->app, &load, &ranked);
    if (status == PNB_OK) {
        const pnb__retrieval_side *i2t = &ranked.i2t;
        put_side(run, found, opts->method, "i2t",
                 opts->by_texts ? &i2t->by_hit.value : &i2t->by_query.value);
        put_side(run, found, opts->method, "t2i", &ranked.t2i.by_query.value);
        if (e->has_known)
            pnb__reproduce_put(run, found, opts->method, "known_spearman", e->known.spearman);
    }
    pnb__retrieval_reset(&ranked);
    return status;
}

/* A failure becomes the method's own reason, unless it is nobody's. */
static pnb_status take_reason(pnb__app *app, pnb_status status, pnb__compare_entry *e)
{
    if (status == PNB_OK || status == PNB_NOMEM || status == PNB_INTERRUPTED)
        return status;
    status = pnb__copy_text(&e->failed, app->err.text, NULL);
    app->err = (pnb_error)PNB_ERROR_INIT;
    return status;
}

pnb_status pnb__adapted_make(pnb__reproduction *run, const pnb__adapted_opts *opts,
                             pnb__adapt_comparison *owner)
{
    pnb_status status = PNB_ALLOC_ZERO(owner->entry, 1, &run->app->err);
    if (status != PNB_OK)
        return status;
    owner->n = 1;
    return make_sets(run, opts, owner->entry);
}

void pnb__adapted_keep_failure(const pnb__reproduction *run, const pnb__adapt_comparison *owner,
                               json_t *found)
{
    if (owner->n == 0 || owner->entry->failed == NULL)
        return;
    pnb__warn(run->app, "%s: %s", owner->entry->name, owner->entry->failed);
    json_object_set_new(found, "failed", json_string(owner->entry->failed));
}

pnb_status pnb__adapted_measure(pnb__reproduction *run, const pnb__adapted_opts *opts,
                                json_t *found)
{
    pnb__adapt_comparison owner = {.entry = NULL};
    pnb_status status = pnb__adapted_make(run, opts, &owner);
    pnb__compare_entry *e = owner.entry;
    if (status == PNB_OK && e->failed == NULL)
        status = take_reason(run->app, rank(run, opts, e, found), e);
    pnb__adapted_keep_failure(run, &owner, found);
    pnb__compare_entries_reset(&owner);
    return status;
}

void pnb__adapted_put_failed(const pnb__reproduction *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"method", "method"}, {"reason", "reason"}};
    bool has_any = false;
    for (size_t k = 0; k < run->n_stages; k++) {
        const json_t *first = run->found[k * run->opts->n_seeds];
        const char *reason = json_string_value(json_object_get(first, "failed"));
        if (reason != NULL && !has_any)
            pnb__result_table(r, "absent", "without figures", columns, PNB_COUNT(columns));
        has_any = has_any || reason != NULL;
        if (reason != NULL)
            pnb__result_row(r, "%s %s", pnb__reproduce_stage(run, k), reason);
    }
}
