/* The chain behind a set: weights, then adapters. Comparing, saying, writing and reading it.
 *
 * Equal chains may be compared. A chain that goes on from another by an adapter that leaves the
 * other's modality alone may be compared with it too: that adapter was made to meet those very
 * rows. Two adapters that were made beside each other know nothing of each other's rows, also when
 * one changed pictures only and the other captions only, so chains that part are refused. */
#include "sets/provenance.h"

#include <string.h>

/* What a link may leave alone, as files say it; the words of pnb_embeddings_info.modality. */
static const char image_word[] = "image", text_word[] = "text";

pnb__chain pnb__chain_of(const pnb_embeddings_info *info)
{
    return (pnb__chain){info->weights_sha256, &info->adapters};
}

/* ---- comparing ---- */

static bool is_unknown(pnb__chain c)
{
    return c.weights_sha256[0] == '\0' && c.adapters->n == 0;
}

static bool weights_differ(pnb__chain a, pnb__chain b)
{
    return a.weights_sha256[0] != '\0' && b.weights_sha256[0] != '\0' &&
           strcmp(a.weights_sha256, b.weights_sha256) != 0;
}

/* Links that both begin with. A hash says all that a link is; its name is for people. */
static size_t common_links(const pnb_adapter_links *a, const pnb_adapter_links *b)
{
    size_t n = 0, most = PNB_MIN(a->n, b->n);
    while (n < most && strcmp(a->items[n].sha256, b->items[n].sha256) == 0)
        n++;
    return n;
}

static bool same_links(const pnb_adapter_links *a, const pnb_adapter_links *b)
{
    return a->n == b->n && common_links(a, b) == a->n;
}

bool pnb__chains_differ(pnb__chain a, pnb__chain b)
{
    if (weights_differ(a, b))
        return true;
    return !is_unknown(a) && !is_unknown(b) && !same_links(a.adapters, b.adapters);
}

static bool leaves(const pnb_adapter_link *link, const char *modality)
{
    return (link->leaves_images && strcmp(modality, image_word) == 0) ||
           (link->leaves_texts && strcmp(modality, text_word) == 0);
}

/* ---- in words ---- */

/* Appends as much of `more` as there is room for. */
static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

static void append_links(const pnb_adapter_links *links, char *text, size_t size)
{
    for (size_t i = 0; i < links->n; i++) {
        char link[64];
        snprintf(link, sizeof link, " > %s %.12s", links->items[i].name, links->items[i].sha256);
        append(text, size, link);
    }
}

void pnb__chain_text(pnb__chain chain, char *text, size_t size)
{
    snprintf(text, size, "%.12s",
             chain.weights_sha256[0] != '\0' ? chain.weights_sha256 : "unknown");
    if (chain.weights_sha256[0] == '\0')
        append(text, size, " weights");
    append_links(chain.adapters, text, size);
}

void pnb_provenance_text(const pnb_embeddings_info *info, char *text, size_t size)
{
    if (size == 0)
        return;
    text[0] = '\0';
    if (info->model[0] != '\0') {
        append(text, size, info->model);
        append(text, size, " ");
    }
    size_t used = strlen(text);
    pnb__chain_text(pnb__chain_of(info), text + used, size - used);
}

/* ---- the rule ---- */

/* Two sets of a model each, as they were before there were adapters. */
static pnb_status refuse_weights(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                 pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "embeddings of different weights (%s%s%.12s..., %s%s%.12s...) cannot be "
                     "compared; embed both with one model",
                     a->model, a->model[0] != '\0' ? " " : "", a->weights_sha256, b->model,
                     b->model[0] != '\0' ? " " : "", b->weights_sha256);
}

/* "tiny 69081b72e4cd > whitened 0a1b2c3d4e5f (image)" */
static void name_side(const pnb_embeddings_info *info, char *text, size_t size)
{
    pnb_provenance_text(info, text, size - sizeof info->modality - 4); /* an error's text ends */
    if (info->modality[0] != '\0') {
        append(text, size, " (");
        append(text, size, info->modality);
        append(text, size, ")");
    }
}

static pnb_status refuse_chains(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                const char *advice, pnb_error *err)
{
    char of_a[180], of_b[180];
    name_side(a, of_a, sizeof of_a);
    name_side(b, of_b, sizeof of_b);
    return pnb__fail(err, PNB_ARG, "embeddings of %s and of %s cannot be compared; %s", of_a, of_b,
                     advice);
}

/* `longer` went through the links from number `first` on, `shorter` did not. */
static pnb_status check_left_alone(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                   size_t first, pnb_error *err)
{
    const pnb_embeddings_info *longer = a->adapters.n > b->adapters.n ? a : b;
    const pnb_embeddings_info *shorter = longer == a ? b : a;
    for (size_t i = first; i < longer->adapters.n; i++) {
        const pnb_adapter_link *link = &longer->adapters.items[i];
        char advice[200];
        if (leaves(link, shorter->modality))
            continue;
        if (shorter->modality[0] == '\0')
            snprintf(advice, sizeof advice,
                     "the set that %s did not adapt does not tell whether it is of images or texts",
                     link->name);
        else
            snprintf(advice, sizeof advice,
                     "%s does not leave %s embeddings alone: put them through it too, by "
                     "`penumbra adapt apply`",
                     link->name, shorter->modality);
        return refuse_chains(a, b, advice, err);
    }
    return PNB_OK;
}

pnb_status pnb__provenance_check_mix(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                     pnb_error *err)
{
    pnb__chain of_a = pnb__chain_of(a), of_b = pnb__chain_of(b);
    size_t common = common_links(&a->adapters, &b->adapters);
    if (weights_differ(of_a, of_b))
        return a->adapters.n + b->adapters.n == 0
                   ? refuse_weights(a, b, err)
                   : refuse_chains(a, b, "embed both with one model", err);
    if (is_unknown(of_a) || is_unknown(of_b))
        return PNB_OK;
    if (common < PNB_MIN(a->adapters.n, b->adapters.n))
        return refuse_chains(a, b, "adapt both with one adapter", err);
    return check_left_alone(a, b, common, err);
}

pnb_status pnb__provenance_check_same(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                      pnb_error *err)
{
    if (!pnb__chains_differ(pnb__chain_of(a), pnb__chain_of(b)))
        return PNB_OK;
    if (a->adapters.n + b->adapters.n == 0)
        return refuse_weights(a, b, err);
    char of_a[160], of_b[160];
    pnb_provenance_text(a, of_a, sizeof of_a);
    pnb_provenance_text(b, of_b, sizeof of_b);
    return pnb__fail(err, PNB_ARG, "embeddings of %s and of %s cannot be in one set", of_a, of_b);
}

/* ---- in files ---- */

pnb_status pnb__adapter_links_add(pnb_adapter_links *links, const pnb_adapter_link *link,
                                  pnb_error *err)
{
    if (links->n == PNB_MAX_ADAPTERS)
        return pnb__fail(err, PNB_LIMIT, "the embeddings went through %zu adapters already",
                         links->n);
    links->items[links->n++] = *link;
    return PNB_OK;
}

static json_t *link_json(const pnb_adapter_link *link)
{
    json_t *sides = json_array();
    if (link->leaves_images)
        json_array_append_new(sides, json_string(image_word));
    if (link->leaves_texts)
        json_array_append_new(sides, json_string(text_word));
    return json_pack("{s:s,s:s,s:o}", "name", link->name, "sha256", link->sha256, "leaves", sides);
}

json_t *pnb__adapter_links_json(const pnb_adapter_links *links)
{
    json_t *array = json_array();
    for (size_t i = 0; i < links->n; i++)
        json_array_append_new(array, link_json(&links->items[i]));
    return array;
}

void pnb__adapter_links_put(json_t *o, const pnb_adapter_links *links, bool *ok)
{
    if (links->n > 0 &&
        json_object_set_new(o, PNB__ADAPTERS_KEY, pnb__adapter_links_json(links)) != 0)
        *ok = false;
}

static bool is_name(const char *text, size_t size)
{
    size_t n = strlen(text);
    return n > 0 && n < size && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

static bool is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static void read_leaves(pnb__jobj *o, pnb_adapter_link *out, pnb_error *err)
{
    json_t *sides = pnb__json_get_array(o, "leaves", err);
    for (size_t i = 0; i < json_array_size(sides) && o->status == PNB_OK; i++) {
        const char *side = json_string_value(json_array_get(sides, i));
        if (side != NULL && strcmp(side, image_word) == 0)
            out->leaves_images = true;
        else if (side != NULL && strcmp(side, text_word) == 0)
            out->leaves_texts = true;
        else
            o->status = pnb__fail(err, PNB_FORMAT,
                                  "%s: an adapter leaves \"%.40s\" alone, wanted \"image\" or "
                                  "\"text\"",
                                  o->where, side != NULL ? side : "(no text)");
    }
}

static pnb_status read_link(pnb_adapter_link *out, json_t *value, const char *where, pnb_error *err)
{
    pnb__jobj o = pnb__json_object(value, where, err);
    const char *name = pnb__json_get_string(&o, "name", "", err);
    const char *hash = pnb__json_get_string(&o, "sha256", "", err);
    *out = (pnb_adapter_link){0};
    if (o.status == PNB_OK && !is_name(name, sizeof out->name))
        o.status =
            pnb__fail(err, PNB_FORMAT,
                      "%s: an adapter is called \"%.40s\", wanted 1 to %zu of a to z, 0 to 9, "
                      "- and _",
                      where, name, sizeof out->name - 1);
    if (o.status == PNB_OK && !is_hash(hash))
        o.status = pnb__fail(err, PNB_FORMAT,
                             "%s: sha256 of the adapter %s is \"%.70s\", wanted 64 digits from 0 "
                             "to f",
                             where, name, hash);
    read_leaves(&o, out, err);
    if (o.status != PNB_OK)
        return o.status;
    memcpy(out->name, name, strlen(name) + 1);
    memcpy(out->sha256, hash, sizeof out->sha256);
    return PNB_OK;
}

static pnb_status read_links(pnb_adapter_links *out, const json_t *array, const char *where,
                             pnb_error *err)
{
    pnb_adapter_links links = {0};
    size_t n = json_array_size(array);
    pnb_status status = PNB_OK;
    if (n > PNB_MAX_ADAPTERS)
        return pnb__fail(err, PNB_LIMIT, "%s: %zu adapters, at most %d are read", where, n,
                         (int)PNB_MAX_ADAPTERS);
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        status = read_link(&links.items[links.n++], json_array_get(array, i), where, err);
    if (status == PNB_OK)
        *out = links;
    return status;
}

void pnb__adapter_links_get(pnb__jobj *o, pnb_adapter_links *out, pnb_error *err)
{
    const json_t *array = pnb__json_get_array(o, PNB__ADAPTERS_KEY, err);
    if (o->status == PNB_OK && array != NULL)
        o->status = read_links(out, array, o->where, err);
}

pnb_status pnb__adapter_links_parse(pnb_adapter_links *out, const char *text, const char *where,
                                    pnb_error *err)
{
    json_t *array = NULL;
    pnb_status status = pnb__json_load_bytes(&array, text, strlen(text), where, err);
    if (status != PNB_OK)
        return status;
    status = json_is_array(array)
                 ? read_links(out, array, where, err)
                 : pnb__fail(err, PNB_FORMAT, "%s: " PNB__ADAPTERS_KEY " is no list", where);
    json_decref(array);
    return status;
}
