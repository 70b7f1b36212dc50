/* The weights of prompts as a JSON file, written and read back: weights learned once, by BPRW or by
 * a filter, serve every later set of pictures. docs/formats.md#classification has the keys.
 *
 * A weight belongs to a prompt's text: reading finds classes by name, and wants their prompts to be
 * the same in the same order. How prompts become a class with them (their variances weighted once
 * or squared, the mean's length) is part of the file. Drawing them is classify_weights.c's. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "io/json/json.h"
#include "sets/provenance.h"

#define FORMAT "penumbra-prompt-weights"

const char *pnb__prompt_text(const pnb__classify *run, size_t i)
{
    const pnb_embeddings *set = run->prompts;
    return set->texts != NULL && set->texts[i] != NULL ? set->texts[i] : pnb__row_name(set, i);
}

/* ---- writing ---- */

static void put_class(const pnb__classify *run, size_t c, pnb__buf *b)
{
    pnb__buf_puts(b, c > 0 ? "," : "");
    pnb__json_put(b, "\n{\"class\":%s,\"prompts\":[", run->classes.items[c]);
    for (size_t i = run->offset[c]; i < run->offset[c + 1]; i++) {
        pnb__buf_puts(b, i > run->offset[c] ? "," : "");
        pnb__json_put(b, "\n {\"prompt\":%s,\"weight\":%f,\"uncertainty\":%f}",
                      pnb__prompt_text(run, i), run->weight[i], run->prompt_u[i]);
    }
    pnb__buf_puts(b, "]}");
}

/* ,"adapters":[...] where the prompts went through any. */
static void put_adapters(const pnb_adapter_links *links, pnb__buf *b)
{
    if (links->n == 0)
        return;
    json_t *array = pnb__adapter_links_json(links);
    pnb__buf_puts(b, "\"" PNB__ADAPTERS_KEY "\":");
    pnb__json_append_value(b, array);
    pnb__buf_puts(b, ",\n");
    json_decref(array);
}

pnb_status pnb__classify_save_weights(const pnb__classify *run, const char *path, pnb_error *err)
{
    bool squared = run->making.variance == PNB_CLASS_VARIANCE_SQUARED;
    pnb__buf b = {0};
    pnb__buf_printf(&b,
                    "{\"format\":\"" FORMAT "\",\"version\":1,\"method\":\"%s\",\n"
                    "\"variance\":\"%s\",\"normalised\":%s,\"weights_sha256\":\"%s\",\n",
                    run->method, squared ? "squared" : "mean",
                    run->making.normalise ? "true" : "false", run->prompts->info.weights_sha256);
    put_adapters(&run->prompts->info.adapters, &b);
    pnb__buf_puts(&b, "\"classes\":[");
    for (size_t c = 0; c < run->classes.n; c++)
        put_class(run, c, &b);
    pnb__buf_puts(&b, "]}\n");
    return pnb__buf_write(&b, path, err);
}

/* ---- reading ---- */

/* Weights of class c from its entry of the file. */
static pnb_status read_class(pnb__classify *run, size_t c, const json_t *entry, const char *path,
                             pnb_error *err)
{
    const json_t *prompts = json_object_get(entry, "prompts");
    size_t first = run->offset[c], n = run->offset[c + 1] - first;
    double sum = 0.0;
    if (json_array_size(prompts) != n)
        return pnb__fail(err, PNB_ARG, "%s: class \"%s\" has weights of %zu prompts, here are %zu",
                         path, run->classes.items[c], json_array_size(prompts), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(prompts, i), *weight = json_object_get(row, "weight");
        const char *text = json_string_value(json_object_get(row, "prompt"));
        if (text == NULL || !json_is_number(weight) || !(json_number_value(weight) >= 0.0))
            return pnb__fail(err, PNB_FORMAT,
                             "%s: class \"%s\": entry %zu wants a prompt and a weight from 0 to 1",
                             path, run->classes.items[c], i);
        if (strcmp(text, pnb__prompt_text(run, first + i)) != 0)
            return pnb__fail(err, PNB_ARG,
                             "%s: class \"%s\": prompt %zu is \"%.60s\", here it is \"%.60s\"; "
                             "weights belong to the prompts they were made of",
                             path, run->classes.items[c], i, text,
                             pnb__prompt_text(run, first + i));
        sum += run->weight[first + i] = json_number_value(weight);
    }
    if (!(fabs(sum - 1.0) <= 1e-6))
        return pnb__fail(err, PNB_FORMAT, "%s: the weights of class \"%s\" sum to %.9g, not to 1",
                         path, run->classes.items[c], sum);
    return PNB_OK;
}

/* Names of the file's classes, in its order. */
static pnb_status read_names(pnb__texts *names, const json_t *classes, const char *path,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < json_array_size(classes) && status == PNB_OK; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(classes, i), "class"));
        status = name != NULL ? pnb__texts_add(names, name, strlen(name), err)
                              : pnb__fail(err, PNB_FORMAT, "%s: class %zu has no name", path, i);
    }
    return status;
}

/* Where class c stands in the file: at its own place if that has its name, for names may repeat. */
static size_t place_of(const pnb__classify *run, size_t c, const pnb__texts *names,
                       const pnb__name_index *index)
{
    bool is_shared;
    if (c < names->n && strcmp(names->items[c], run->classes.items[c]) == 0)
        return c;
    size_t at = pnb__name_find(index, run->classes.items[c], &is_shared);
    return is_shared ? SIZE_MAX : at;
}

static pnb_status read_classes(pnb__classify *run, const json_t *classes, const char *path,
                               pnb_error *err)
{
    pnb__texts names = {0};
    pnb__name_index index = {0};
    pnb_status status;
    if (json_array_size(classes) == 0)
        return pnb__fail(err, PNB_FORMAT, "%s: holds no list of classes", path);
    PNB_TRY(read_names(&names, classes, path, err));
    PNB_TRY(pnb__name_index_make(&index, &names, err));
    for (size_t c = 0; c < run->classes.n; c++) {
        size_t at = place_of(run, c, &names, &index);
        if (at == SIZE_MAX)
            PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                              "%s: has no weights for class \"%s\", or for several of the name",
                              path, run->classes.items[c]));
        PNB_TRY(read_class(run, c, json_array_get(classes, at), path, err));
    }
done:
    pnb__name_index_reset(&index);
    pnb__texts_reset(&names);
    return status;
}

static pnb_status read_head(pnb__classify *run, pnb__jobj *o, const char *path, pnb_error *err)
{
    const char *format = pnb__json_get_string(o, "format", "", err);
    const char *method = pnb__json_get_string(o, "method", "?", err);
    const char *variance = pnb__json_get_string(o, "variance", "", err);
    int64_t version = pnb__json_get_int(o, "version", 1, err);
    pnb_prompt_filter filter;
    run->making.normalise = pnb__json_get_bool(o, "normalised", true, err);
    if (o->status != PNB_OK)
        return o->status;
    if (strcmp(format, FORMAT) != 0 || version != 1)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: no file of prompts' weights (format \"%s\", version %lld); --weights "
                         "writes them",
                         path, format, (long long)version);
    if (strcmp(variance, "mean") != 0 && strcmp(variance, "squared") != 0)
        return pnb__fail(err, PNB_FORMAT, "%s: variance \"%s\"; mean or squared is wanted", path,
                         variance);
    run->making.variance =
        variance[0] == 's' ? PNB_CLASS_VARIANCE_SQUARED : PNB_CLASS_VARIANCE_MEAN;
    if (strcmp(method, "bprw") != 0 && strcmp(method, "equal") != 0 &&
        pnb_prompt_filter_parse(&filter, method, NULL) != PNB_OK)
        return pnb__fail(err, PNB_FORMAT, "%s: method \"%.40s\" is unknown", path, method);
    snprintf(run->method, sizeof run->method, "%s", method);
    return PNB_OK;
}

pnb_status pnb__classify_load_weights(pnb__app *app, pnb__classify *run)
{
    const char *path = run->opts->load_weights;
    pnb_adapter_links adapters = {0};
    pnb__chain made = {"", &adapters}, here = pnb__chain_of(&run->prompts->info);
    json_t *root = NULL;
    pnb__jobj o;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, 0, &app->err));
    o = pnb__json_object(root, path, &app->err);
    PNB_TRY(o.status);
    PNB_TRY(read_head(run, &o, path, &app->err));
    made.weights_sha256 = pnb__json_get_string(&o, "weights_sha256", "", &app->err);
    pnb__adapter_links_get(&o, &adapters, &app->err);
    PNB_TRY(o.status);
    if (pnb__chains_differ(made, here)) {
        char text[200];
        pnb__chain_text(made, text, sizeof text);
        pnb__warn(app, "%s: the weights were learned with another model (%s...)", path, text);
    }
    status = read_classes(run, json_object_get(root, "classes"), path, &app->err);
done:
    json_decref(root);
    return status;
}
