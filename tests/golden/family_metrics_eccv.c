/* The ECCV Caption table on a ranking that a hash defines, over the COCO test ids.
 *
 *   a = splitmix64(seed ^ image * 2654435761), u = (splitmix64(a ^ caption) >> 11) * 2^-53
 *   a positive of ECCV or of COCO: u -> 1 - (1 - u) 2^-bits, COCO's bits winning
 * so 125 million scores are made a row at a time. The lists of ids are data of ECCV Caption's
 * package, checked by their SHA-256; a case without them is skipped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penumbra/coco.h"
#include "penumbra/npy.h"
#include "penumbra/truth.h"
#include "tests/golden/golden.h"

enum { ORIGINAL_I2T, ORIGINAL_T2I, CXC_I2T, CXC_T2I, ECCV_I2T, ECCV_T2I, N_LISTS };
static const char *const LISTS[N_LISTS] = {
    "original_image_to_caption.json", "original_caption_to_image.json",
    "cxc_image_to_caption.json",      "cxc_caption_to_image.json",
    "eccv_image_to_caption.json",     "eccv_caption_to_image.json"};
static const char IDS[] = "coco_test_ids.npy";

typedef struct table {
    size_t n_images, n_texts;
    int64_t *image_id, *text_id;
    const char **image_name, **text_name; /* the ids as texts */
    pnb_truth *truth[N_LISTS];            /* queries are pictures in I2T, captions in T2I */
    pnb_truth *eccv_by_text;              /* ECCV_I2T transposed */
    uint64_t seed;
    double original, eccv; /* 2^-bits */
} table;

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static double raw_score(const table *t, size_t image, size_t text)
{
    uint64_t a = splitmix64(t->seed ^ ((uint64_t)t->image_id[image] * 2654435761u));
    return (double)(splitmix64(a ^ (uint64_t)t->text_id[text]) >> 11) * 0x1p-53;
}

static void boost(const table *t, const pnb_truth *truth, size_t query, bool query_is_image,
                  double factor, double *score)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++) {
        size_t item = truth->item[p];
        double u = query_is_image ? raw_score(t, query, item) : raw_score(t, item, query);
        score[item] = 1 - (1 - u) * factor;
    }
}

static void image_row(void *user, size_t image, double *score)
{
    const table *t = user;
    for (size_t i = 0; i < t->n_texts; i++)
        score[i] = raw_score(t, image, i);
    boost(t, t->truth[ECCV_I2T], image, true, t->eccv, score);
    boost(t, t->truth[ORIGINAL_I2T], image, true, t->original, score);
}

static void text_row(void *user, size_t text, double *score)
{
    const table *t = user;
    for (size_t i = 0; i < t->n_images; i++)
        score[i] = raw_score(t, i, text);
    boost(t, t->eccv_by_text, text, false, t->eccv, score);
    boost(t, t->truth[ORIGINAL_T2I], text, false, t->original, score);
}

/* ---- the lists ---- */

/* DIR/NAME when its hash is the case's. */
static char *find_file(const golden_case *c, const char *name)
{
    const char *const dirs[] = {c->dir, c->data_dir};
    const char *want =
        json_string_value(json_object_get(json_object_get(c->root, "data_sha256"), name));
    for (size_t i = 0; i < PNB_COUNT(dirs) && want != NULL; i++) {
        char *path = dirs[i] == NULL ? NULL : pnb__path_join(dirs[i], name), hex[65];
        pnb__map map = {0};
        pnb__sha256 hash;
        if (path != NULL && pnb__map_open(&map, path, NULL) == PNB_OK) {
            pnb__sha256_init(&hash);
            pnb__sha256_update(&hash, map.data, map.size);
            pnb__sha256_hex(&hash, hex);
            pnb__map_close(&map);
            if (strcmp(hex, want) == 0)
                return path;
        }
        pnb__free(path);
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static const char **name_ids(const int64_t *id, size_t n)
{
    const char **names = pnb__alloc_array(n + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < n; i++)
        names[i] = pnb__format("%lld", (long long)id[i]);
    return names;
}

/* Captions in the order of coco_test_ids.npy; pictures are the keys of the original list. Rows
 * ascend in id, so that ties of the order "by id" go to the lower row. */
static pnb_status load_ids(table *t, const char *ids_path, const char *original_path,
                           size_t **order, pnb_error *err)
{
    pnb_npy file = {0};
    json_t *root = NULL;
    int64_t *given = NULL;
    const char *key;
    json_t *list;
    pnb_status status = pnb_npy_load(&file, ids_path, err);
    if (status != PNB_OK)
        return status;
    t->n_texts = pnb_array_size(&file.view);
    given = pnb__alloc_array(t->n_texts, sizeof *given);
    t->text_id = pnb__alloc_array(t->n_texts, sizeof *t->text_id);
    *order = pnb__alloc_array(t->n_texts, sizeof **order);
    PNB_TRY(pnb_array_to_i64(&file.view, given, err));
    memcpy(t->text_id, given, t->n_texts * sizeof *given);
    qsort(t->text_id, t->n_texts, sizeof *t->text_id, compare_ids);
    for (size_t i = 0; i < t->n_texts; i++) {
        const int64_t *found =
            bsearch(&given[i], t->text_id, t->n_texts, sizeof *given, compare_ids);
        (*order)[i] = (size_t)(found - t->text_id);
    }
    PNB_TRY(pnb__json_load_file(&root, original_path, 0, err));
    t->image_id = pnb__alloc_array(json_object_size(root) + 1, sizeof *t->image_id);
    json_object_foreach(root, key, list) t->image_id[t->n_images++] = atoll(key);
    qsort(t->image_id, t->n_images, sizeof *t->image_id, compare_ids);
    t->image_name = name_ids(t->image_id, t->n_images);
    t->text_name = name_ids(t->text_id, t->n_texts);
done:
    json_decref(root);
    pnb__free(given);
    pnb_npy_reset(&file);
    return status;
}

static pnb_status load_truths(table *t, char *const *path, pnb_error *err)
{
    const pnb_truth_rows images = {.n = t->n_images, .ids = t->image_name};
    const pnb_truth_rows texts = {.n = t->n_texts, .ids = t->text_name};
    pnb_status status = PNB_OK;
    for (int i = 0; status == PNB_OK && i < N_LISTS; i++) {
        pnb_truth *read = NULL;
        status = pnb_truth_read(&read, path[i], &images, &texts, NULL, NULL, err);
        if (status == PNB_OK && i % 2 == 1) {
            status = pnb_truth_transpose(&t->truth[i], read, err);
            pnb_truth_free(read);
        } else {
            t->truth[i] = read;
        }
    }
    if (status == PNB_OK)
        status = pnb_truth_transpose(&t->eccv_by_text, t->truth[ECCV_I2T], err);
    return status;
}

/* ---- what the case asks for ---- */

static void give_ways(golden_case *c, const char *name, pnb_both_ways b)
{
    char path[64];
    snprintf(path, sizeof path, "%s.i2t", name);
    golden_give_scalar(c, path, b.i2t);
    snprintf(path, sizeof path, "%s.t2i", name);
    golden_give_scalar(c, path, b.t2i);
}

static void give_recalls(golden_case *c, const char *prefix, const pnb_both_ways r[3])
{
    static const int K[] = {1, 5, 10};
    char name[32];
    for (size_t k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "%s_r%d", prefix, K[k]);
        give_ways(c, name, r[k]);
    }
}

typedef struct scored {
    double score;
    int64_t id;
} scored;

static int compare_scored(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The first ids for some queries, by sorting a row: it checks the hash, not the ranks. */
static void give_top(golden_case *c, const table *t, bool images_ask, const char *queries,
                     const char *top)
{
    const pnb_array_view *view = golden_find(c, top);
    size_t n = 0, n_items = images_ask ? t->n_texts : t->n_images;
    const int64_t *item_id = images_ask ? t->text_id : t->image_id;
    const int64_t *query_id = images_ask ? t->image_id : t->text_id;
    double *ids = golden_f64(c, queries, &n, NULL);
    if (view == NULL || ids == NULL || view->n_dims != 2)
        return;
    size_t width = (size_t)view->shape[1];
    double *row = pnb__alloc_array(n_items, sizeof *row);
    double *out = pnb__alloc_array(n * width, sizeof *out);
    scored *sorted = pnb__alloc_array(n_items, sizeof *sorted);
    golden_give(c, queries, ids, n);
    for (size_t q = 0; q < n; q++) {
        int64_t id = (int64_t)ids[q];
        const int64_t *found =
            bsearch(&id, query_id, images_ask ? t->n_images : t->n_texts, sizeof id, compare_ids);
        if (images_ask)
            image_row((void *)(uintptr_t)t, (size_t)(found - query_id), row);
        else
            text_row((void *)(uintptr_t)t, (size_t)(found - query_id), row);
        for (size_t i = 0; i < n_items; i++)
            sorted[i] = (scored){row[i], item_id[i]};
        qsort(sorted, n_items, sizeof *sorted, compare_scored);
        for (size_t i = 0; i < width; i++)
            out[q * width + i] = (double)sorted[i].id;
    }
    golden_give(c, top, out, n * width);
    pnb__free(ids);
    pnb__free(row);
    pnb__free(out);
    pnb__free(sorted);
}

static pnb_status compute(golden_case *c, table *t, const size_t *order, pnb_error *err)
{
    pnb_coco_figures f;
    pnb_status status;
    int32_t *image_fold = pnb__alloc_array(t->n_images, sizeof *image_fold);
    int32_t *text_fold = pnb__alloc_array(t->n_texts, sizeof *text_fold);
    PNB_TRY(pnb_coco_folds(t->truth[ORIGINAL_T2I], order, t->n_texts, image_fold, text_fold, err));
    const pnb_coco_rows rows = {image_row, text_row, t};
    const pnb_coco_truth truth = {.original_i2t = t->truth[ORIGINAL_I2T],
                                  .original_t2i = t->truth[ORIGINAL_T2I],
                                  .cxc_i2t = t->truth[CXC_I2T],
                                  .cxc_t2i = t->truth[CXC_T2I],
                                  .eccv_i2t = t->truth[ECCV_I2T],
                                  .eccv_t2i = t->truth[ECCV_T2I],
                                  .image_fold = image_fold,
                                  .text_fold = text_fold};
    PNB_TRY(pnb_coco_from_rows(c->ctx, &rows, &truth, &f, err));
    give_recalls(c, "coco_1k", f.coco_1k_r);
    give_recalls(c, "coco_5k", f.coco_5k_r);
    give_recalls(c, "cxc", f.cxc_r);
    give_recalls(c, "eccv", f.eccv_r);
    give_ways(c, "eccv_map_at_r", f.eccv_map_at_r);
    give_ways(c, "eccv_rprecision", f.eccv_rprecision);
    give_top(c, t, true, "check.iid", "check.top10");
    give_top(c, t, false, "check.cid", "check.t2i_top10");
done:
    pnb__free(image_fold);
    pnb__free(text_fold);
    return status;
}

static void table_reset(table *t)
{
    for (size_t i = 0; t->image_name != NULL && i < t->n_images; i++)
        pnb__free((char *)(uintptr_t)t->image_name[i]);
    for (size_t i = 0; t->text_name != NULL && i < t->n_texts; i++)
        pnb__free((char *)(uintptr_t)t->text_name[i]);
    pnb__free(t->image_name);
    pnb__free(t->text_name);
    pnb__free(t->image_id);
    pnb__free(t->text_id);
    for (int i = 0; i < N_LISTS; i++)
        pnb_truth_free(t->truth[i]);
    pnb_truth_free(t->eccv_by_text);
}

pnb_status golden_metrics_eccv(golden_case *c, pnb_error *err)
{
    char *path[N_LISTS + 1] = {NULL};
    size_t *order = NULL;
    table t = {.seed = (uint64_t)golden_number(c, "seed", 0),
               .original = exp2(-golden_number(c, "boost_bits_original", 12)),
               .eccv = exp2(-golden_number(c, "boost_bits_eccv", 10))};
    bool complete = true;
    pnb_status status = PNB_OK;
    for (int i = 0; i <= N_LISTS; i++) {
        path[i] = find_file(c, i < N_LISTS ? LISTS[i] : IDS);
        complete = complete && path[i] != NULL;
    }
    if (!complete) {
        c->skipped_case = "it needs the files of eccv_caption/data, beside the case or by --data";
        goto done;
    }
    PNB_TRY(load_ids(&t, path[N_LISTS], path[ORIGINAL_I2T], &order, err));
    PNB_TRY(load_truths(&t, path, err));
    status = compute(c, &t, order, err);
done:
    table_reset(&t);
    pnb__free(order);
    for (int i = 0; i <= N_LISTS; i++)
        pnb__free(path[i]);
    return status;
}
