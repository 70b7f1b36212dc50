/* Label vectors of pictures: COCO's instances, a matrix of numbers, or a table.
 *
 * A category of COCO is a place of the vector, in the order of the file's "categories"; a picture
 * without annotations is a vector of zeros. PCME takes pictures as plausible matches whose vectors
 * differ in few places. */
#include <stdlib.h>
#include <string.h>

#include "io/json/json.h"
#include "io/tables/csv.h"
#include "penumbra/npy.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

#define MAX_LABELS 65536

void pnb_label_matrix_reset(pnb_label_matrix *labels)
{
    if (labels == NULL)
        return;
    pnb__free(labels->label);
    *labels = (pnb_label_matrix){0};
}

static pnb_status alloc_matrix(pnb_label_matrix *m, size_t n, size_t n_labels, const char *path,
                               pnb_error *err)
{
    if (n == 0 || n_labels == 0 || n_labels > MAX_LABELS)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu labels for %zu pictures; 1 to %d are read", path,
                         n_labels, n, MAX_LABELS);
    *m = (pnb_label_matrix){n, n_labels, pnb__alloc_zero(n, n_labels)};
    return m->label == NULL ? pnb__fail_nomem(err, n * n_labels) : PNB_OK;
}

static pnb_status check_all_known(const uint8_t *known, const pnb_truth_rows *images,
                                  const char *path, pnb_error *err)
{
    for (size_t i = 0; i < images->n; i++)
        if (!known[i])
            return pnb__fail(err, PNB_NOT_FOUND,
                             "%s has no labels for the picture of row %zu ('%.200s')", path, i,
                             images->ids != NULL && images->ids[i] != NULL ? images->ids[i] : "");
    return PNB_OK;
}

/* ---- COCO ---- */

typedef struct numbered {
    json_int_t id;
    size_t index; /* row of a picture (SIZE_MAX: in none), place of a category */
} numbered;

static int compare_numbered(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static const numbered *find_numbered(const numbered *list, size_t n, const json_t *id)
{
    const numbered key = {.id = json_integer_value(id)};
    return json_is_integer(id) ? bsearch(&key, list, n, sizeof *list, compare_numbered) : NULL;
}

static pnb_status find_image(const pnb__id_resolver *names, const json_t *image, int64_t *row,
                             pnb_error *err)
{
    char number[32];
    const char *file = json_string_value(json_object_get(image, "file_name"));
    pnb_status status = PNB_OK;
    *row = -1;
    if (file != NULL)
        status = pnb__id_resolver_find(names, file, row, err);
    if (status != PNB_OK || *row >= 0)
        return status;
    snprintf(number, sizeof number, "%lld",
             (long long)json_integer_value(json_object_get(image, "id")));
    return pnb__id_resolver_find(names, number, row, err);
}

/* Sorts them; an id that stands twice is refused. */
static pnb_status sort_numbered(numbered *list, size_t n, const char *path, const char *what,
                                pnb_error *err)
{
    qsort(list, n, sizeof *list, compare_numbered);
    for (size_t i = 1; i < n; i++)
        if (list[i].id == list[i - 1].id)
            return pnb__fail(err, PNB_FORMAT, "%s: two %s have the id %lld", path, what,
                             (long long)list[i].id);
    return PNB_OK;
}

static pnb_status number_images(const json_t *images, const pnb__id_resolver *names, numbered *list,
                                uint8_t *known, const char *path, pnb_error *err)
{
    size_t n = json_array_size(images);
    for (size_t i = 0; i < n; i++) {
        int64_t row;
        const json_t *image = json_array_get(images, i);
        pnb_status status = pnb__json_check_id(image, "id", true, path, "images", i, err);
        if (status == PNB_OK)
            status = find_image(names, image, &row, err);
        if (status != PNB_OK)
            return status;
        list[i] = (numbered){json_integer_value(json_object_get(image, "id")),
                             row < 0 ? SIZE_MAX : (size_t)row};
        if (row >= 0)
            known[row] = 1;
    }
    return sort_numbered(list, n, path, "images", err);
}

static pnb_status number_categories(const json_t *list, numbered *out, const char *path,
                                    pnb_error *err)
{
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        const json_t *category = json_array_get(list, i);
        pnb_status status = pnb__json_check_id(category, "id", true, path, "categories", i, err);
        if (status != PNB_OK)
            return status;
        out[i] = (numbered){json_integer_value(json_object_get(category, "id")), i};
    }
    return sort_numbered(out, n, path, "categories", err);
}

static pnb_status mark(const json_t *annotations, const numbered *images, size_t n_images,
                       const numbered *categories, pnb_label_matrix *m, const char *path,
                       pnb_error *err)
{
    for (size_t i = 0; i < json_array_size(annotations); i++) {
        const json_t *a = json_array_get(annotations, i);
        const numbered *image = find_numbered(images, n_images, json_object_get(a, "image_id"));
        const numbered *category =
            find_numbered(categories, m->n_labels, json_object_get(a, "category_id"));
        if (image == NULL || category == NULL)
            return pnb__fail(err, PNB_FORMAT,
                             "%s: annotations[%zu] names an image or a category that is not in the "
                             "file",
                             path, i);
        if (image->index != SIZE_MAX)
            m->label[image->index * m->n_labels + category->index] = 1;
    }
    return PNB_OK;
}

static pnb_status load_instances(pnb_label_matrix *m, const char *path, const pnb_truth_rows *rows,
                                 pnb_error *err)
{
    json_t *root = NULL;
    pnb__id_resolver names = {0};
    numbered *images = NULL, *categories = NULL;
    uint8_t *known = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, PNB__MAX_TRUTH_BYTES, err));
    const json_t *image_list = json_object_get(root, "images");
    const json_t *category_list = json_object_get(root, "categories");
    size_t n_images = json_array_size(image_list), n_labels = json_array_size(category_list);
    if (n_images == 0 || n_labels == 0)
        PNB_TRY(
            pnb__fail(err, PNB_FORMAT, "%s: lists \"images\" and \"categories\" are wanted", path));
    if (!json_is_array(json_object_get(root, "annotations")))
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: has no list \"annotations\", so no picture would have a label",
                          path));
    PNB_TRY(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, rows, err));
    PNB_TRY(alloc_matrix(m, rows->n, n_labels, path, err));
    PNB_TRY(PNB_ALLOC(images, n_images, err));
    PNB_TRY(PNB_ALLOC(categories, n_labels, err));
    PNB_TRY(PNB_ALLOC_ZERO(known, rows->n, err));
    PNB_TRY(number_images(image_list, &names, images, known, path, err));
    PNB_TRY(check_all_known(known, rows, path, err));
    PNB_TRY(number_categories(category_list, categories, path, err));
    status = mark(json_object_get(root, "annotations"), images, n_images, categories, m, path, err);
done:
    json_decref(root);
    pnb__id_resolver_reset(&names);
    pnb__free(images);
    pnb__free(categories);
    pnb__free(known);
    return status;
}

/* ---- npy ---- */

static pnb_status load_npy(pnb_label_matrix *m, const char *path, const pnb_truth_rows *rows,
                           pnb_error *err)
{
    pnb_npy file = {0};
    double *values = NULL;
    pnb_status status;
    PNB_TRY(pnb_npy_load(&file, path, err));
    if (file.view.n_dims != 2 || (size_t)file.view.shape[0] != rows->n)
        PNB_TRY(pnb__fail(err, PNB_SHAPE, "%s: a matrix of %zu rows is wanted, one a picture", path,
                          rows->n));
    PNB_TRY(alloc_matrix(m, rows->n, (size_t)file.view.shape[1], path, err));
    PNB_TRY(PNB_ALLOC(values, m->n * m->n_labels, err));
    PNB_TRY(pnb_array_to_f64(&file.view, values, err));
    for (size_t i = 0; i < m->n * m->n_labels; i++) {
        if (values[i] != 0.0 && values[i] != 1.0) /* NaN is neither */
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: row %zu, column %zu is %g; 0 or 1 is wanted",
                              path, i / m->n_labels, i % m->n_labels, values[i]));
        m->label[i] = values[i] == 1.0;
    }
done:
    pnb__free(values);
    pnb_npy_reset(&file);
    return status;
}

/* ---- table ---- */

static pnb_status load_row(pnb_label_matrix *m, const pnb__csv *csv, size_t line, size_t row,
                           const char *path, pnb_error *err)
{
    for (size_t l = 0; l < m->n_labels; l++) {
        const char *field = csv->fields[l + 1];
        if (strcmp(field, "0") != 0 && strcmp(field, "1") != 0)
            return pnb__fail(err, PNB_FORMAT,
                             "%s line %zu: column %zu is '%.80s'; 0 or 1 is wanted", path, line,
                             l + 2, field);
        m->label[row * m->n_labels + l] = field[0] == '1';
    }
    return PNB_OK;
}

static pnb_status load_table(pnb_label_matrix *m, const char *path, const pnb_truth_rows *rows,
                             pnb_error *err)
{
    pnb__csv csv = {0};
    pnb__id_resolver names = {0};
    uint8_t *known = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(known, PNB_MAX(rows->n, 1), err));
    PNB_TRY(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, rows, err));
    PNB_TRY(pnb__csv_open(&csv, path, pnb__ends_with(path, ".tsv") ? '\t' : ',', err));
    PNB_TRY(alloc_matrix(m, rows->n, csv.n_columns - 1, path, err));
    for (bool more;;) {
        int64_t row;
        size_t line = csv.line; /* where the row begins */
        PNB_TRY(pnb__csv_next(&csv, &more, err));
        if (!more)
            break;
        PNB_TRY(pnb__id_resolver_find(&names, csv.fields[0], &row, err));
        if (row < 0)
            continue;
        if (known[row])
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s line %zu: '%.200s' has labels already", path,
                              line, csv.fields[0]));
        PNB_TRY(load_row(m, &csv, line, (size_t)row, path, err));
        known[row] = 1;
    }
    status = check_all_known(known, rows, path, err);
done:
    pnb__csv_close(&csv);
    pnb__id_resolver_reset(&names);
    pnb__free(known);
    return status;
}

pnb_status pnb_label_matrix_load(pnb_label_matrix *out, const char *path,
                                 const pnb_truth_rows *images, pnb_error *err)
{
    pnb_label_matrix m = {0};
    pnb_status status;
    if (pnb__ends_with(path, ".json"))
        status = load_instances(&m, path, images, err);
    else if (pnb__ends_with(path, ".npy"))
        status = load_npy(&m, path, images, err);
    else
        status = load_table(&m, path, images, err);
    if (status == PNB_OK)
        *out = m;
    else
        pnb_label_matrix_reset(&m);
    return status;
}
