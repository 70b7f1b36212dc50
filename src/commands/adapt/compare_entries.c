/* The entries of a comparison: frozen rows, controls, then every method with every seed; and the
 * sets of each, learned on train, chosen on val, applied to test.
 *
 * What a method cannot do (sets of two widths, a truth it needs, rows that are all the same) is a
 * line of the table with the reason, and the others go on. */
#include <math.h>
#include <string.h>

#include "adapt/controls.h"
#include "base/base.h"
#include "commands/adapt/compare.h"
#include "commands/common/set_use.h"
#include "program/progress.h"

/* ---- the list ---- */

static pnb_status add(pnb__adapt_comparison *c, const char *name, pnb__entry_kind kind,
                      uint64_t seed)
{
    c->entry[c->n++] = (pnb__compare_entry){
        .name = name, .kind = kind, .seed = seed, .learn_s = NAN, .apply_s = NAN};
    return PNB_OK;
}

static bool is_wanted(const pnb__adapt_compare_opts *o, const char *name)
{
    bool is_wanted = o->methods.n == 0;
    for (size_t i = 0; i < o->methods.n; i++)
        is_wanted = is_wanted || strcmp(o->methods.items[i], "all") == 0 ||
                    strcmp(o->methods.items[i], name) == 0;
    return is_wanted;
}

static pnb_status check_names(const pnb__adapt_compare_opts *o, pnb_error *err)
{
    for (size_t i = 0; i < o->methods.n; i++)
        if (strcmp(o->methods.items[i], "all") != 0 &&
            pnb_adapter_method_find(o->methods.items[i]) == NULL)
            return pnb__fail(err, PNB_NOT_FOUND,
                             "no method is called '%.60s': `penumbra adapt methods` lists them",
                             o->methods.items[i]);
    return PNB_OK;
}

/* ---- sweeps ---- */

/* An option of the pairs that are learned from, which every method has. */
static bool is_of_pairs(const char *option)
{
    pnb__fewer_pairs_opts unused = {0};
    bool is_one;
    (void)pnb__fewer_pairs_set(&unused, option, "1", &is_one, NULL);
    return is_one;
}

/* Seeds of a method: what draws nothing, pairs neither, has one. */
static size_t n_seeds_of(const pnb__adapt_compare_opts *o, const pnb_adapter_about *about,
                         bool draws_pairs)
{
    return draws_pairs || pnb_adapter_method_reads(about->name, "seed") ? o->n_seeds : 1;
}

/* The next value of a sweep and where it ends; NULL behind the last. */
static const char *value_end(const char *at)
{
    return at + strcspn(at, ",");
}

static size_t count_values(const pnb__text_list *sweeps)
{
    size_t n = 0;
    for (size_t i = 0; i < sweeps->n; i++) {
        n++;
        for (const char *c = sweeps->items[i]; *c != '\0'; c++)
            n += *c == ',';
    }
    return n;
}

static bool has_entry(const pnb__adapt_comparison *c, const char *label, uint64_t seed)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->entry[i].seed == seed && strcmp(c->entry[i].name, label) == 0)
            return true;
    return false;
}

/* One entry a seed of a method with one value. */
static pnb_status add_value(pnb__adapt_comparison *c, const pnb_adapter_about *about,
                            const char *option, const char *value, const uint64_t seeds[2],
                            pnb_error *err)
{
    pnb_adapter_opts unused = pnb_adapter_opts_default();
    pnb__fewer_pairs_opts fewer = {0};
    bool is_of_pairs = false;
    pnb_status status = pnb__fewer_pairs_set(&fewer, option, value, &is_of_pairs, err);
    if (status == PNB_OK && !is_of_pairs)
        status = pnb_adapter_opts_set(&unused, about, option, value, err);
    for (uint64_t s = seeds[0]; s < seeds[1] && status == PNB_OK; s++) {
        pnb__compare_entry *e = &c->entry[c->n];
        char *label = pnb__format("%s@%s=%s", about->name, option, value);
        if (label != NULL && has_entry(c, label, s)) {
            status = pnb__fail(err, PNB_ARG, "--sweep: %s=%.60s stands there twice", option, value);
            pnb__free(label);
            break;
        }
        add(c, NULL, PNB__ENTRY_METHOD, s);
        e->method = about;
        e->label = label;
        e->option = pnb__strdup(option);
        e->value = pnb__strdup(value);
        e->name = e->label != NULL ? e->label : "";
        if (e->label == NULL || e->option == NULL || e->value == NULL)
            status = pnb__fail_nomem(err, strlen(value));
    }
    return status;
}

/* The values of one sweep for one method. */
static pnb_status sweep_method(pnb__adapt_comparison *c, const pnb_adapter_about *about,
                               const char *sweep, const uint64_t seeds[2], bool *is_read,
                               pnb_error *err)
{
    const char *equals = strchr(sweep, '=');
    char *option = pnb__strndup(sweep, (size_t)(equals - sweep));
    pnb_status status = option != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(sweep));
    for (char *k = option; k != NULL && *k != '\0'; k++)
        *k = *k == '-' ? '_' : *k;
    bool has =
        option != NULL && (is_of_pairs(option) || pnb_adapter_method_reads(about->name, option));
    *is_read = *is_read || has;
    for (const char *at = equals + 1; status == PNB_OK && has; at = value_end(at) + 1) {
        char *value = pnb__strndup(at, (size_t)(value_end(at) - at));
        status = value != NULL ? add_value(c, about, option, value, seeds, err)
                               : pnb__fail_nomem(err, strlen(at));
        pnb__free(value);
        if (*value_end(at) == '\0')
            break;
    }
    pnb__free(option);
    return status;
}

static pnb_status check_sweep(const char *sweep, pnb_error *err)
{
    const char *equals = strchr(sweep, '=');
    bool is_whole = equals != NULL && equals > sweep;
    for (const char *at = equals; is_whole && *at != '\0'; at = value_end(at + 1))
        is_whole = value_end(at + 1) > at + 1;
    if (!is_whole)
        return pnb__fail(err, PNB_ARG, "--sweep '%.60s': NAME=VALUE,VALUE,... is wanted", sweep);
    if (strncmp(sweep, "seed=", 5) == 0)
        return pnb__fail(err, PNB_ARG,
                         "--sweep '%.60s': which seeds there are is said by --seed and --seeds",
                         sweep);
    return PNB_OK;
}

static bool sweeps_pairs(const char *sweep)
{
    char *option = pnb__strndup(sweep, strcspn(sweep, "="));
    bool is_one = option != NULL && is_of_pairs(option);
    pnb__free(option);
    return is_one;
}

static pnb_status add_sweeps(pnb__adapt_comparison *c, uint64_t first, pnb_error *err)
{
    const pnb__adapt_compare_opts *o = c->opts;
    for (size_t k = 0; k < o->sweeps.n; k++) {
        const char *sweep = o->sweeps.items[k];
        bool is_read = false;
        pnb_status status = check_sweep(sweep, err);
        for (size_t m = 0; status == PNB_OK && pnb_adapter_method_at(m) != NULL; m++) {
            const pnb_adapter_about *about = pnb_adapter_method_at(m);
            bool draws = sweeps_pairs(sweep) || pnb__fewer_pairs_draws(&o->fewer);
            const uint64_t seeds[] = {first, first + n_seeds_of(o, about, draws)};
            if (is_wanted(o, about->name))
                status = sweep_method(c, about, sweep, seeds, &is_read, err);
        }
        if (status == PNB_OK && !is_read)
            status =
                pnb__fail(err, PNB_ARG, "--sweep '%.60s': none of the methods reads it", sweep);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* A method without anything to draw has one seed. */
pnb_status pnb__compare_plan(pnb__app *app, pnb__adapt_comparison *c)
{
    const pnb__adapt_compare_opts *o = c->opts;
    uint64_t first = (uint64_t)app->common.seed;
    pnb_status status = check_names(o, &app->err);
    size_t n_methods = 0;
    while (pnb_adapter_method_at(n_methods) != NULL)
        n_methods++;
    c->capacity = (n_methods * (1 + count_values(&o->sweeps)) + 1) * o->n_seeds + 2;
    if (status == PNB_OK)
        status = PNB_ALLOC_ZERO(c->entry, c->capacity, &app->err);
    if (status != PNB_OK)
        return status;
    add(c, "frozen", PNB__ENTRY_FROZEN, 0);
    for (size_t s = 0; s < o->n_seeds; s++)
        add(c, "untrained", PNB__ENTRY_CONTROL, first + s);
    add(c, "length", PNB__ENTRY_CONTROL, 0);
    for (size_t m = 0; m < n_methods; m++) {
        const pnb_adapter_about *about = pnb_adapter_method_at(m);
        size_t n = n_seeds_of(o, about, pnb__fewer_pairs_draws(&o->fewer));
        for (size_t s = 0; is_wanted(o, about->name) && s < n; s++)
            add(c, about->name, PNB__ENTRY_METHOD, first + s);
    }
    for (size_t i = 0; i < c->n; i++)
        c->entry[i].method = pnb_adapter_method_find(c->entry[i].name);
    return add_sweeps(c, first, &app->err);
}

void pnb__compare_entries_reset(pnb__adapt_comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        pnb__free(c->entry[i].images);
        pnb__free(c->entry[i].texts);
        pnb__free(c->entry[i].failed);
        pnb__free(c->entry[i].label);
        pnb__free(c->entry[i].option);
        pnb__free(c->entry[i].value);
    }
    pnb__free(c->entry);
}

/* ---- the sets of an entry ---- */

static pnb_status in_folder(char **path, const pnb__adapt_comparison *c,
                            const pnb__compare_entry *e, const char *folder, const char *ending,
                            pnb_error *err)
{
    char *dir = pnb__path_join(c->opts->out, folder);
    *path = pnb__format("%s/%s/%s-%llu%s", c->opts->out, folder, e->name,
                        (unsigned long long)e->seed, ending);
    pnb_status status =
        dir != NULL && *path != NULL ? pnb__make_dirs(dir, err) : pnb__fail_nomem(err, 256);
    pnb__free(dir);
    return status;
}

static pnb_status make_control(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e)
{
    pnb_embeddings *made = NULL;
    pnb_status status;
    PNB_TRY(in_folder(&e->texts, c, e, "sets", ".texts.safetensors", &app->err));
    PNB_TRY(pnb__copy_text(&e->images, c->opts->test.images, &app->err));
    status = strcmp(e->name, "length") == 0
                 ? pnb__control_length(&made, c->test.texts, &app->err)
                 : pnb__control_untrained(&made, app->ctx, c->test.texts, e->seed, &app->err);
    if (status == PNB_OK) {
        e->family = made->family;
        status = pnb_embeddings_save(made, e->texts, &app->err);
    }
done:
    pnb_embeddings_free(made);
    return status;
}

static pnb_status options_of(const pnb__adapt_comparison *c, const pnb__compare_entry *e,
                             pnb_adapter_opts *out, pnb_error *err)
{
    const pnb_adapter_about *about = e->method;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    if (pnb_adapter_method_reads(about->name, "seed"))
        o.seed = e->seed;
    if (pnb_adapter_method_reads(about->name, "recipe"))
        o.recipe = c->opts->recipe;
    if (pnb_adapter_method_reads(about->name, "steps"))
        o.steps = c->opts->steps;
    *out = o;
    return e->option != NULL && !is_of_pairs(e->option)
               ? pnb_adapter_opts_set(out, about, e->option, e->value, err)
               : PNB_OK;
}

/* *out is NULL where all pairs are learned from. */
static pnb_status draw_pairs(pnb__app *app, const pnb__adapt_comparison *c,
                             const pnb__compare_entry *e, pnb_truth **out)
{
    pnb__fewer_pairs_opts fewer = c->opts->fewer;
    bool is_one;
    pnb_status status = PNB_OK;
    if (e->option != NULL)
        status = pnb__fewer_pairs_set(&fewer, e->option, e->value, &is_one, &app->err);
    if (status != PNB_OK || !pnb__fewer_pairs_draws(&fewer))
        return status;
    if (c->train.truth == NULL)
        return pnb__fail(&app->err, PNB_ARG, "without --truth there are no pairs to draw from");
    return pnb__fewer_pairs(out, c->train.truth, c->train.images, c->opts->train.images, &fewer,
                            e->seed, &app->err);
}

static pnb_status learn(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e,
                        pnb_adapter **out)
{
    pnb_adapter_opts options;
    pnb_truth *fewer = NULL;
    const bool has_val = c->val.truth != NULL;
    pnb__watching watching = {0};
    pnb_adapter_data data = {.images = c->train.images,
                             .texts = c->train.texts,
                             .truth = c->train.truth,
                             .val_images = has_val ? c->val.images : NULL,
                             .val_texts = has_val ? c->val.texts : NULL,
                             .val_truth = c->val.truth};
    char *dir = NULL;
    double before = pnb__now_s();
    pnb_status status;
    PNB_TRY(options_of(c, e, &options, &app->err));
    PNB_TRY(draw_pairs(app, c, e, &fewer));
    data.truth = fewer != NULL ? fewer : c->train.truth;
    data.watch = pnb__watch_begin(&watching, app, e->name, "steps");
    status = pnb_adapter_fit(out, app->ctx, e->method->name, &data, &options, &app->err);
    pnb__watch_end(&watching);
    if (status != PNB_OK)
        goto done;
    e->learn_s = pnb__now_s() - before;
    PNB_TRY(in_folder(&dir, c, e, "adapters", "", &app->err));
    status = pnb_adapter_save(*out, dir, &app->err);
done:
    pnb_truth_free(fewer);
    pnb__free(dir);
    return status;
}

static pnb_status apply_side(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e,
                             const pnb_adapter *adapter, pnb_adapter_side side)
{
    bool is_image = side == PNB_ADAPTER_IMAGES;
    char **path = is_image ? &e->images : &e->texts;
    pnb_adapter_facts facts;
    pnb__watching watching = {0};
    pnb_adapter_describe(adapter, &facts);
    if (!is_image)
        e->family = facts.side[side].is_adapted ? facts.family : c->test.texts->family;
    if (!facts.side[side].is_adapted)
        return pnb__copy_text(path, is_image ? c->opts->test.images : c->opts->test.texts,
                              &app->err);
    pnb_status status = in_folder(
        path, c, e, "sets", is_image ? ".images.safetensors" : ".texts.safetensors", &app->err);
    const pnb_watch watch = pnb__watch_begin(&watching, app, e->name, "rows");
    if (status == PNB_OK)
        status = pnb_adapter_apply_to(*path, adapter, side,
                                      is_image ? c->test.images : c->test.texts, &watch, &app->err);
    pnb__watch_end(&watching);
    return status;
}

static pnb_status make_method(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e)
{
    pnb_adapter *adapter = NULL;
    double before;
    pnb_status status;
    PNB_TRY(learn(app, c, e, &adapter));
    before = pnb__now_s();
    PNB_TRY(apply_side(app, c, e, adapter, PNB_ADAPTER_IMAGES));
    PNB_TRY(apply_side(app, c, e, adapter, PNB_ADAPTER_TEXTS));
    e->apply_s = pnb__now_s() - before;
done:
    pnb_adapter_free(adapter);
    return status;
}

static pnb_status score_known(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e)
{
    pnb_embeddings *texts = NULL;
    pnb_status status;
    if (c->known == NULL)
        return PNB_OK;
    PNB_TRY(pnb__set_load(&texts, e->texts, app));
    PNB_TRY(pnb_known_scores_compute(texts, c->known, c->test.images, c->test.truth, &e->known,
                                     &app->err));
    e->has_known = true;
done:
    pnb_embeddings_free(texts);
    return status;
}

pnb_status pnb__compare_make(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e)
{
    pnb_status status = PNB_OK;
    if (e->kind == PNB__ENTRY_METHOD) {
        status = make_method(app, c, e);
    } else if (e->kind == PNB__ENTRY_CONTROL) {
        status = make_control(app, c, e);
    } else {
        e->family = c->test.texts->family;
        PNB_TRY(pnb__copy_text(&e->images, c->opts->test.images, &app->err));
        PNB_TRY(pnb__copy_text(&e->texts, c->opts->test.texts, &app->err));
    }
    if (status == PNB_OK)
        status = score_known(app, c, e);
    if (status == PNB_OK || status == PNB_NOMEM || status == PNB_INTERRUPTED)
        return status;
    status = pnb__copy_text(&e->failed, app->err.text, NULL);
    app->err = (pnb_error)PNB_ERROR_INIT;
done:
    return status;
}
