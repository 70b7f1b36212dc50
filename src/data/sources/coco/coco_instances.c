/* Reads instances_*.json: {"images": [{id, file_name, width, height}], "annotations": [{id,
 * image_id, category_id, segmentation, iscrowd}], "categories": [{id, name}]}, and optionally
 * captions_*.json with "annotations": [{image_id, id, caption}].
 *
 * The parsed trees stay, lists point into them: segmentations are decoded when their turn comes
 * (coco_mask.c). Annotations of pictures that are not listed are an error, as two files that do not
 * belong together would otherwise give an empty set. */
#include "data/sources/coco/coco_instances.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "io/json/json.h"

enum { MAX_PIXELS = 1 << 26 }; /* three masks of a picture are in memory at once */
#define MAX_BYTES ((size_t)1 << 30)

typedef struct category {
    int64_t id;
    const char *name;
} category;

typedef struct reader {
    pnb__coco_instances *c;
    const char *path;
    category *categories;
    size_t n_categories;
} reader;

void pnb__coco_instances_free(pnb__coco_instances *c)
{
    pnb__free(c->image);
    pnb__free(c->annotation);
    json_decref(c->root);
    json_decref(c->texts);
    *c = (pnb__coco_instances){0};
}

static int compare_int64(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

static int by_image_id(const void *a, const void *b)
{
    return compare_int64(((const pnb__coco_image *)a)->id, ((const pnb__coco_image *)b)->id);
}

static int by_category_id(const void *a, const void *b)
{
    return compare_int64(((const category *)a)->id, ((const category *)b)->id);
}

static int by_image_and_id(const void *a, const void *b)
{
    const pnb__coco_annotation *x = a, *y = b;
    int order = compare_int64(x->image_id, y->image_id);
    return order != 0 ? order : compare_int64(x->id, y->id);
}

/* The list `key` of the file, and its length. */
static pnb_status get_list(const json_t *root, const char *path, const char *key,
                           const json_t **list, size_t *n, pnb_error *err)
{
    *list = json_object_get(root, key);
    *n = json_array_size(*list);
    if (!json_is_array(*list))
        return pnb__fail(err, PNB_FORMAT, "%s: no list \"%s\"; a COCO annotation file is wanted",
                         path, key);
    return PNB_OK;
}

static pnb_status get_id(const json_t *entry, const char *key, int64_t *out, const reader *r,
                         const char *list, size_t i, pnb_error *err)
{
    const json_t *value = json_object_get(entry, key);
    if (!json_is_integer(value))
        return pnb__fail(err, PNB_FORMAT, "%s: %s[%zu] has no whole number \"%s\"", r->path, list,
                         i, key);
    *out = (int64_t)json_integer_value(value);
    return PNB_OK;
}

static pnb_status read_categories(reader *r, pnb_error *err)
{
    const json_t *list;
    pnb_status status;
    PNB_TRY(get_list(r->c->root, r->path, "categories", &list, &r->n_categories, err));
    PNB_TRY(PNB_ALLOC(r->categories, r->n_categories + 1, err));
    for (size_t i = 0; i < r->n_categories; i++) {
        const json_t *entry = json_array_get(list, i);
        category *own = &r->categories[i];
        PNB_TRY(get_id(entry, "id", &own->id, r, "categories", i, err));
        own->name = json_string_value(json_object_get(entry, "name"));
        if (own->name == NULL)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: categories[%zu] has no \"name\"", r->path, i));
    }
    qsort(r->categories, r->n_categories, sizeof *r->categories, by_category_id);
    for (size_t i = 1; i < r->n_categories; i++)
        if (r->categories[i].id == r->categories[i - 1].id)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: two categories have the id %lld", r->path,
                              (long long)r->categories[i].id));
done:
    return status;
}

/* A name in the folder of pictures, not a way out of it. */
static bool is_inside(const char *name)
{
    return name != NULL && name[0] != '\0' && name[0] != '/' && strcmp(name, "..") != 0 &&
           strncmp(name, "../", 3) != 0 && strstr(name, "/../") == NULL &&
           !pnb__ends_with(name, "/..");
}

static pnb_status read_image(reader *r, const json_t *entry, size_t i, pnb_error *err)
{
    pnb__coco_image *own = &r->c->image[i];
    int64_t width = 0, height = 0;
    pnb_status status;
    *own = (pnb__coco_image){.file_name = json_string_value(json_object_get(entry, "file_name"))};
    PNB_TRY(get_id(entry, "id", &own->id, r, "images", i, err));
    PNB_TRY(get_id(entry, "width", &width, r, "images", i, err));
    PNB_TRY(get_id(entry, "height", &height, r, "images", i, err));
    if (width < 1 || height < 1 || width > MAX_PIXELS / height)
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: images[%zu] is %lldx%lld pixels; 1 to %d pixels are read", r->path,
                          i, (long long)width, (long long)height, (int)MAX_PIXELS));
    if (!is_inside(own->file_name))
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: images[%zu] has no \"file_name\" inside the folder of pictures",
                          r->path, i));
    own->width = (int)width;
    own->height = (int)height;
done:
    return status;
}

static pnb_status read_images(reader *r, pnb_error *err)
{
    pnb__coco_instances *c = r->c;
    const json_t *list;
    pnb_status status;
    PNB_TRY(get_list(c->root, r->path, "images", &list, &c->n_images, err));
    PNB_TRY(PNB_ALLOC_ZERO(c->image, c->n_images + 1, err));
    for (size_t i = 0; i < c->n_images; i++)
        PNB_TRY(read_image(r, json_array_get(list, i), i, err));
    qsort(c->image, c->n_images, sizeof *c->image, by_image_id);
    for (size_t i = 1; i < c->n_images; i++)
        if (c->image[i].id == c->image[i - 1].id)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: two pictures have the id %lld", r->path,
                              (long long)c->image[i].id));
done:
    return status;
}

static pnb__coco_image *find_image(const pnb__coco_instances *c, int64_t id)
{
    const pnb__coco_image key = {.id = id};
    return bsearch(&key, c->image, c->n_images, sizeof *c->image, by_image_id);
}

static pnb_status read_annotation(reader *r, const json_t *entry, size_t i, pnb_error *err)
{
    pnb__coco_annotation *own = &r->c->annotation[i];
    category key = {0};
    const json_t *crowd = json_object_get(entry, "iscrowd");
    pnb_status status;
    *own =
        (pnb__coco_annotation){.is_crowd = json_integer_value(crowd) != 0 || json_is_true(crowd)};
    PNB_TRY(get_id(entry, "id", &own->id, r, "annotations", i, err));
    PNB_TRY(get_id(entry, "image_id", &own->image_id, r, "annotations", i, err));
    PNB_TRY(get_id(entry, "category_id", &key.id, r, "annotations", i, err));
    const category *found =
        bsearch(&key, r->categories, r->n_categories, sizeof key, by_category_id);
    if (found == NULL || find_image(r->c, own->image_id) == NULL)
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: annotation %lld names %s %lld, which is not in the file", r->path,
                          (long long)own->id, found == NULL ? "category" : "picture",
                          (long long)(found == NULL ? key.id : own->image_id)));
    own->category = found->name;
    own->segmentation = json_object_get(entry, "segmentation");
    if (own->segmentation == NULL)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: annotation %lld has no \"segmentation\"", r->path,
                          (long long)own->id));
done:
    return status;
}

/* An annotation that stands twice would count as two segments. */
static pnb_status check_annotation_ids(const reader *r, pnb_error *err)
{
    size_t n = r->c->n_annotations;
    int64_t *id = pnb__alloc_array(n + 1, sizeof *id);
    pnb_status status = PNB_OK;
    if (id == NULL)
        return pnb__fail_nomem(err, n * sizeof *id);
    for (size_t i = 0; i < n; i++)
        id[i] = r->c->annotation[i].id;
    qsort(id, n, sizeof *id, pnb__compare_int64);
    for (size_t i = 1; i < n && status == PNB_OK; i++)
        if (id[i] == id[i - 1])
            status = pnb__fail(err, PNB_FORMAT, "%s: two annotations have the id %lld", r->path,
                               (long long)id[i]);
    pnb__free(id);
    return status;
}

static pnb_status read_annotations(reader *r, pnb_error *err)
{
    pnb__coco_instances *c = r->c;
    const json_t *list;
    pnb_status status;
    PNB_TRY(get_list(c->root, r->path, "annotations", &list, &c->n_annotations, err));
    PNB_TRY(PNB_ALLOC(c->annotation, c->n_annotations + 1, err));
    for (size_t i = 0; i < c->n_annotations; i++)
        PNB_TRY(read_annotation(r, json_array_get(list, i), i, err));
    PNB_TRY(check_annotation_ids(r, err));
    qsort(c->annotation, c->n_annotations, sizeof *c->annotation, by_image_and_id);
    for (size_t i = 0; i < c->n_annotations; i++) {
        pnb__coco_image *own = find_image(c, c->annotation[i].image_id);
        if (own->n++ == 0)
            own->first = i;
    }
done:
    return status;
}

/* The caption with the lowest id of each picture; captions of other pictures are ignored. */
static pnb_status read_texts(reader *r, const char *path, pnb_error *err)
{
    const json_t *list;
    size_t n = 0;
    reader named = {.c = r->c, .path = path};
    pnb_status status;
    int64_t *lowest = NULL;
    PNB_TRY(PNB_ALLOC(lowest, r->c->n_images + 1, err));
    PNB_TRY(pnb__json_load_file(&r->c->texts, path, MAX_BYTES, err));
    PNB_TRY(get_list(r->c->texts, path, "annotations", &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(entry, "caption"));
        int64_t id = 0, image_id = 0;
        PNB_TRY(get_id(entry, "id", &id, &named, "annotations", i, err));
        PNB_TRY(get_id(entry, "image_id", &image_id, &named, "annotations", i, err));
        pnb__coco_image *own = find_image(r->c, image_id);
        if (text == NULL)
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: annotation %lld has no \"caption\"", path,
                              (long long)id));
        if (own == NULL || (own->text != NULL && lowest[own - r->c->image] <= id))
            continue;
        own->text = text;
        lowest[own - r->c->image] = id;
    }
done:
    pnb__free(lowest);
    return status;
}

pnb_status pnb__coco_instances_load(pnb__coco_instances *c, const char *path, const char *texts,
                                    pnb_error *err)
{
    reader r = {.c = c, .path = path};
    pnb_status status;
    *c = (pnb__coco_instances){0};
    PNB_TRY(pnb__json_load_file(&c->root, path, MAX_BYTES, err));
    PNB_TRY(read_categories(&r, err));
    PNB_TRY(read_images(&r, err));
    PNB_TRY(read_annotations(&r, err));
    if (texts != NULL)
        status = read_texts(&r, texts, err);
done:
    pnb__free(r.categories);
    return status;
}
