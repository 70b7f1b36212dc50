/* Truth in JSON: COCO's captions, Karpathy's splits, and the id lists of ECCV Caption and CxC.
 *
 *   COCO      {"images": [{"id", "file_name"}], "annotations": [{"id", "image_id", "caption"}]}
 *   Karpathy  {"images": [{"filename", "cocoid"?, "split", "sentences": [{"raw", "sentid"}]}]}
 *   id lists  {"query id": [item ids]}
 * Which of the three it is, the file shows by its keys. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "io/json/json.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

/* A string or whole number as a text of the pool; 0 for anything else. */
static size_t text_of(pnb__ground_truth *c, const json_t *value)
{
    char number[32];
    const char *text = json_string_value(value);
    if (json_is_integer(value)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        text = number;
    }
    return text == NULL ? 0 : pnb__ground_truth_intern(c, text, strlen(text));
}

/* A caption; white space at its ends is no part of it. */
static size_t raw_text_of(pnb__ground_truth *c, const json_t *value)
{
    size_t n = 0;
    const char *text = json_string_value(value);
    if (text == NULL)
        return 0;
    text = pnb__trimmed(text, strlen(text), &n);
    return pnb__ground_truth_intern(c, text, n);
}

/* A field that should be a text and is there as something else would be lost without a word. */
static pnb_status check_text(const json_t *entry, const char *key, const char *path,
                             const char *list, size_t i, pnb_error *err)
{
    const json_t *value = json_object_get(entry, key);
    if (value == NULL || json_is_null(value) || json_is_string(value))
        return PNB_OK;
    return pnb__fail(err, PNB_FORMAT, "%s: %s[%zu] has \"%s\" that is no text", path, list, i, key);
}

static pnb_status wrong(const char *path, const char *list, size_t i, const char *want,
                        pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT, "%s: %s[%zu] needs %s", path, list, i, want);
}

/* ---- COCO ---- */

/* Pictures by id, to find the owners of annotations. */
typedef struct owner {
    json_int_t id;
    size_t image, n_texts;
} owner;

static int compare_owners(const void *a, const void *b)
{
    const owner *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static pnb_status read_coco_images(pnb__ground_truth *c, const char *path, const json_t *images,
                                   owner *owners, pnb_error *err)
{
    size_t n = json_array_size(images);
    for (size_t i = 0; i < n; i++) {
        const json_t *image = json_array_get(images, i), *id = json_object_get(image, "id");
        pnb_status status = pnb__json_check_id(image, "id", true, path, "images", i, err);
        if (status == PNB_OK)
            status = check_text(image, "file_name", path, "images", i, err);
        if (status != PNB_OK)
            return status;
        pnb__image p = {{text_of(c, json_object_get(image, "file_name")), text_of(c, id), 0}, -1};
        status = pnb__ground_truth_image(c, p, err);
        if (status != PNB_OK)
            return status;
        owners[i] = (owner){json_integer_value(id), i, 0};
    }
    qsort(owners, n, sizeof *owners, compare_owners);
    for (size_t i = 1; i < n; i++)
        if (owners[i].id == owners[i - 1].id)
            return pnb__fail(err, PNB_FORMAT, "%s: two images have the id %lld", path,
                             (long long)owners[i].id);
    return PNB_OK;
}

/* Its id, the picture's, and that the caption is one. */
static pnb_status check_annotation(const json_t *a, const char *path, size_t i, pnb_error *err)
{
    pnb_status status = check_text(a, "caption", path, "annotations", i, err);
    if (status == PNB_OK && json_object_get(a, "id") != NULL)
        status = pnb__json_check_id(a, "id", true, path, "annotations", i, err);
    return status;
}

static pnb_status read_coco(pnb__ground_truth *c, const char *path, const json_t *root,
                            pnb_error *err)
{
    const json_t *images = json_object_get(root, "images");
    const json_t *annotations = json_object_get(root, "annotations");
    size_t n = json_array_size(images), n_texts = json_array_size(annotations);
    owner *owners = pnb__alloc_array(PNB_MAX(n, 1), sizeof *owners);
    if (owners == NULL)
        return pnb__fail_nomem(err, n * sizeof *owners);
    pnb_status status = read_coco_images(c, path, images, owners, err);
    for (size_t i = 0; status == PNB_OK && i < n_texts; i++) {
        const json_t *a = json_array_get(annotations, i);
        const json_t *image = json_object_get(a, "image_id");
        const owner key = {.id = json_integer_value(image)};
        owner *found = !json_is_integer(image)
                           ? NULL
                           : bsearch(&key, owners, n, sizeof *owners, compare_owners);
        status = check_annotation(a, path, i, err);
        if (status == PNB_OK && found == NULL)
            status = wrong(path, "annotations", i, "the \"image_id\" of one of the images", err);
        else if (status == PNB_OK)
            status = pnb__ground_truth_text(
                c,
                (pnb__text_ref){found->image, found->n_texts++,
                                text_of(c, json_object_get(a, "id")),
                                raw_text_of(c, json_object_get(a, "caption")), -1},
                err);
    }
    pnb__free(owners);
    return status;
}

/* ---- Karpathy ---- */

/* "train+restval" holds "train". */
static bool split_holds(const char *wanted, const char *split)
{
    size_t n = strlen(split);
    for (const char *at = wanted; at != NULL; at = strchr(at, '+')) {
        at += *at == '+';
        if (strncmp(at, split, n) == 0 && (at[n] == '\0' || at[n] == '+'))
            return true;
    }
    return false;
}

static const char *split_of(const json_t *image)
{
    const char *split = json_string_value(json_object_get(image, "split"));
    return split == NULL ? "" : split;
}

static pnb_status add_sentences(pnb__ground_truth *c, const char *path, size_t i,
                                const json_t *sentences, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (!json_is_array(sentences))
        return wrong(path, "images", i, "a list \"sentences\"", err);
    for (size_t k = 0; status == PNB_OK && k < json_array_size(sentences); k++) {
        const json_t *s = json_array_get(sentences, k);
        if (json_object_get(s, "sentid") != NULL)
            PNB_TRY(pnb__json_check_id(s, "sentid", false, path, "images", i, err));
        PNB_TRY(check_text(s, "raw", path, "images", i, err));
        if (json_object_get(s, "sentid") == NULL && json_object_get(s, "raw") == NULL)
            return wrong(path, "images", i, "\"sentid\" or \"raw\" in each of its sentences", err);
        status = pnb__ground_truth_text(
            c,
            (pnb__text_ref){c->n_images - 1, k, text_of(c, json_object_get(s, "sentid")),
                            raw_text_of(c, json_object_get(s, "raw")), -1},
            err);
    }
done:
    return status;
}

/* Splits, files and numbers are what they are taken for. */
static pnb_status check_image(const json_t *image, const char *path, size_t i, pnb_error *err)
{
    pnb_status status = check_text(image, "split", path, "images", i, err);
    if (status == PNB_OK)
        status = check_text(image, "filename", path, "images", i, err);
    if (status == PNB_OK && json_object_get(image, "cocoid") != NULL)
        status = pnb__json_check_id(image, "cocoid", true, path, "images", i, err);
    return status;
}

static pnb_status read_karpathy(pnb__ground_truth *c, const char *path, const json_t *images,
                                const char *split, pnb_error *err)
{
    size_t n = json_array_size(images);
    bool has_test = false;
    for (size_t i = 0; i < n && split == NULL; i++)
        has_test = has_test || strcmp(split_of(json_array_get(images, i)), "test") == 0;
    if (split == NULL)
        split = has_test ? "test" : "all";
    for (size_t i = 0; i < n; i++) {
        const json_t *image = json_array_get(images, i);
        pnb_status status = check_image(image, path, i, err);
        if (status != PNB_OK)
            return status;
        if (strcmp(split, "all") != 0 && !split_holds(split, split_of(image)))
            continue;
        pnb__image p = {{text_of(c, json_object_get(image, "filename")),
                         text_of(c, json_object_get(image, "cocoid")), 0},
                        -1};
        if (p.name[0] == 0)
            return wrong(path, "images", i, "a \"filename\"", err);
        status = pnb__ground_truth_image(c, p, err);
        if (status == PNB_OK)
            status = add_sentences(c, path, i, json_object_get(image, "sentences"), err);
        if (status != PNB_OK)
            return status;
    }
    if (c->n_images == 0)
        return pnb__fail(
            err, PNB_ARG,
            "%s: none of its %zu pictures is in the split '%s'; splits are named as in "
            "the file (train, restval, val, test), joined with +, or all",
            path, n, split);
    return PNB_OK;
}

/* ---- id lists ---- */

/* Items of the lists, each a catalogue entry once. */
static size_t find_item(const pnb__ground_truth *c, const pnb__key_map *items, uint64_t hash,
                        const char *name, bool is_text)
{
    size_t i, step = 0;
    while ((i = pnb__key_map_next(items, hash, &step)) != PNB__NO_KEY &&
           strcmp(pnb__ground_truth_get(c, is_text ? c->text[i].id : c->image[i].name[0]), name) !=
               0) {
    }
    return i;
}

/* Index of the item of that id, a new one if need be. */
static pnb_status item_index(pnb__ground_truth *c, pnb__key_map *items, const json_t *id,
                             bool is_text, size_t *index, pnb_error *err)
{
    size_t text = text_of(c, id);
    if (text == 0)
        return pnb__fail(err, PNB_NOMEM, "out of memory while reading ids");
    const char *name = pnb__ground_truth_get(c, text);
    uint64_t hash = pnb__hash_bytes(name, strlen(name), 0);
    *index = find_item(c, items, hash, name, is_text);
    if (*index != PNB__NO_KEY)
        return PNB_OK;
    *index = is_text ? c->n_texts : c->n_images;
    pnb_status status = pnb__key_map_add(items, hash, *index, err);
    if (status != PNB_OK)
        return status;
    if (is_text)
        return pnb__ground_truth_text(c, (pnb__text_ref){PNB__NO_OWNER, 0, text, 0, -1}, err);
    return pnb__ground_truth_image(c, (pnb__image){{text, 0, 0}, -1}, err);
}

static pnb_status add_query(pnb__ground_truth *c, const char *key, bool is_text, pnb_error *err)
{
    size_t text = pnb__ground_truth_intern(c, key, strlen(key));
    if (is_text)
        return pnb__ground_truth_text(c, (pnb__text_ref){PNB__NO_OWNER, 0, text, 0, -1}, err);
    return pnb__ground_truth_image(c, (pnb__image){{text, 0, 0}, -1}, err);
}

static pnb_status read_id_lists(pnb__ground_truth *c, const char *path, json_t *root,
                                bool texts_ask, pnb_error *err)
{
    pnb__key_map items = {0};
    pnb_status status = PNB_OK;
    const char *key;
    json_t *list;
    json_object_foreach(root, key, list)
    {
        size_t query = texts_ask ? c->n_texts : c->n_images;
        if (!json_is_array(list))
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: \"%s\" is not a list of ids", path, key));
        PNB_TRY(add_query(c, key, texts_ask, err));
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *id = json_array_get(list, i);
            size_t found = 0;
            if (!(json_is_integer(id) && json_integer_value(id) >= 0) && !json_is_string(id))
                PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: \"%s\"[%zu] is not an id", path, key, i));
            PNB_TRY(item_index(c, &items, id, !texts_ask, &found, err));
            PNB_TRY(texts_ask ? pnb__ground_truth_pair(c, found, query, err)
                              : pnb__ground_truth_pair(c, query, found, err));
        }
    }
done:
    pnb__key_map_reset(&items);
    return status;
}

/* ---- which one ---- */

static pnb_truth_format detect(const json_t *root)
{
    const json_t *images = json_object_get(root, "images");
    if (!json_is_array(images))
        return PNB_TRUTH_ID_LISTS;
    return json_is_array(json_object_get(root, "annotations")) ? PNB_TRUTH_COCO
                                                               : PNB_TRUTH_KARPATHY;
}

pnb_status pnb__read_truth_json(pnb__ground_truth *c, const pnb__truth_source *s,
                                pnb_truth_format *format, bool *texts_ask, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__json_load_file(&root, s->path, PNB__MAX_TRUTH_BYTES, err);
    if (status != PNB_OK)
        return status;
    if (*format == PNB_TRUTH_AUTO)
        *format = detect(root);
    const json_t *images = json_object_get(root, "images");
    *texts_ask = s->opts->texts_ask || strstr(pnb__path_base(s->path), "caption_to_image") != NULL;
    if (*format != PNB_TRUTH_KARPATHY && s->opts->split != NULL)
        status = pnb__fail(err, PNB_ARG, "%s has no splits; leave the split '%s' out", s->path,
                           s->opts->split);
    else if (*format != PNB_TRUTH_ID_LISTS && !json_is_array(images))
        status = pnb__fail(err, PNB_FORMAT, "%s: has no list \"images\"", s->path);
    else if (*format == PNB_TRUTH_COCO)
        status = read_coco(c, s->path, root, err);
    else if (*format == PNB_TRUTH_KARPATHY)
        status = read_karpathy(c, s->path, images, s->opts->split, err);
    else if (!json_is_object(root))
        status = pnb__fail(err, PNB_FORMAT, "%s: an object of id lists is wanted", s->path);
    else
        status = read_id_lists(c, s->path, root, *texts_ask, err);
    json_decref(root);
    return status;
}
