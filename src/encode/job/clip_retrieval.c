/* Folders as `clip-retrieval inference` leaves them and `clip-retrieval index` and `back` read
 * them: float32 rows of unit length in NAME_0.npy, and a Parquet table with image_path, caption,
 * url and what else the rows carry, null where a row has none. Variances have no place there. */
#include "encode/job/clip_retrieval.h"

#include <string.h>

#include "encode/inputs/inputs.h"
#include "io/json/json.h"
#include "io/tables/npy.h"
#include "io/tables/parquet/parquet.h"

enum { N_COLUMNS = 2 + PNB__N_CARRIED, ID = 0, IMAGE_PATH = 1, FIRST_CARRIED = 2, TEXT = 3 };

/* DIR/SIDE_emb/SIDE_emb_0.npy. */
static char *array_path(const char *dir, bool is_text)
{
    const char *side = is_text ? "text" : "img";
    return pnb__format("%s/%s_emb/%s_emb_0.npy", dir, side, side);
}

pnb_status pnb__clip_retrieval_check(const char *dir, bool is_text, size_t n, pnb_error *err)
{
    char *other = array_path(dir, !is_text);
    pnb_npy array = {0};
    pnb_status status = PNB_OK;
    if (other == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    if (pnb__path_is_file(other))
        status = pnb_npy_load(&array, other, err);
    if (status == PNB_OK && array.view.n_dims > 0 && array.view.shape[0] != (int64_t)n)
        status = pnb__fail(err, PNB_SHAPE,
                           "%s has %lld rows, this set %zu: clip-retrieval takes row i of both as "
                           "one sample; write to another folder",
                           other, (long long)array.view.shape[0], n);
    pnb_npy_reset(&array);
    pnb__free(other);
    return status;
}

/* ---- metadata ---- */

/* Texts of all columns; those from extra fields are owned. */
typedef struct table {
    const char **texts; /* (N_COLUMNS, n) */
    size_t n;
} table;

static void table_free(table *t)
{
    for (size_t i = 0; t->texts != NULL && i < N_COLUMNS * t->n; i++)
        pnb__free((void *)(uintptr_t)t->texts[i]);
    pnb__free(t->texts);
    *t = (table){0};
}

/* Invalid bytes of a file's name as U+FFFD: Parquet's texts are UTF-8. */
static char *clean_copy(const char *text)
{
    pnb__buf b = {0};
    uint32_t code_point;
    size_t n = strlen(text);
    pnb__buf_append(&b, "", 0);
    for (size_t i = 0, step; i < n; i += PNB_MAX(step, (size_t)1)) {
        step = pnb__utf8_decode(text + i, n - i, &code_point);
        pnb__buf_append(&b, step > 0 ? text + i : "\xEF\xBF\xBD", step > 0 ? step : 3);
    }
    if (!b.failed)
        return b.data;
    pnb__buf_reset(&b);
    return NULL;
}

static pnb_status put_cell(table *t, size_t column, size_t row, const char *text, pnb_error *err)
{
    const char **cell = &t->texts[column * t->n + row];
    if (text == NULL || *cell != NULL)
        return PNB_OK;
    *cell = clean_copy(text);
    return *cell != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(text));
}

static pnb_status put_extras(table *t, size_t row, const char *extra, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__json_load_bytes(&root, extra, strlen(extra), "row", err);
    for (size_t i = 0; i < PNB__N_CARRIED && status == PNB_OK; i++) {
        const json_t *value = json_object_get(root, pnb__carried_fields[i]);
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        status = put_cell(t, FIRST_CARRIED + i, row,
                          json_is_integer(value) ? number : json_string_value(value), err);
    }
    json_decref(root);
    return status;
}

static pnb_status fill_table(table *t, const pnb_embeddings *set, pnb_error *err)
{
    pnb_status status = PNB_OK;
    t->n = set->n;
    t->texts = pnb__alloc_zero(N_COLUMNS * set->n, sizeof *t->texts);
    if (t->texts == NULL)
        return pnb__fail_nomem(err, N_COLUMNS * set->n * sizeof *t->texts);
    for (size_t i = 0; i < set->n && status == PNB_OK; i++) {
        PNB_TRY(put_cell(t, ID, i, set->ids != NULL ? set->ids[i] : NULL, err));
        PNB_TRY(put_cell(t, IMAGE_PATH, i, set->paths != NULL ? set->paths[i] : NULL, err));
        PNB_TRY(put_cell(t, TEXT, i, set->texts != NULL ? set->texts[i] : NULL, err));
        if (set->extras != NULL && set->extras[i] != NULL)
            status = put_extras(t, i, set->extras[i], err);
    }
done:
    return status;
}

static pnb_status write_table(pnb__out_file *f, const table *t, pnb_error *err)
{
    const char *names[N_COLUMNS] = {"id", "image_path"};
    pnb__parquet_column columns[N_COLUMNS];
    for (size_t c = 0; c < N_COLUMNS; c++) {
        names[c] = c < FIRST_CARRIED ? names[c] : pnb__carried_fields[c - FIRST_CARRIED];
        columns[c] = (pnb__parquet_column){
            .name = names[c], .type = PNB__PARQUET_TEXT, .texts = t->texts + c * t->n};
    }
    return pnb__parquet_write(f, columns, N_COLUMNS, t->n, err);
}

/* ---- files ---- */

static pnb_status open_in(pnb__out_file *f, const char *path, pnb_error *err)
{
    char *dir = pnb__path_dir(path);
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(path));
    pnb_status status = pnb__make_dirs(dir, err);
    pnb__free(dir);
    return status == PNB_OK ? pnb__out_open(f, path, err) : status;
}

static pnb_status write_metadata(pnb__out_file *f, const pnb_embeddings *set, const char *dir,
                                 pnb_error *err)
{
    char *path = pnb__format("%s/metadata/metadata_0.parquet", dir);
    table t = {0};
    pnb_status status = path == NULL ? pnb__fail_nomem(err, strlen(dir)) : PNB_OK;
    if (status == PNB_OK)
        status = fill_table(&t, set, err);
    if (status == PNB_OK)
        status = open_in(f, path, err);
    if (status == PNB_OK)
        status = write_table(f, &t, err);
    table_free(&t);
    pnb__free(path);
    return status;
}

static pnb_status write_rows(pnb__out_file *f, const pnb_embeddings *set, const char *path,
                             pnb_error *err)
{
    pnb_array_view view = {.name = "mean",
                           .dtype = PNB_F32,
                           .n_dims = 2,
                           .shape = {(int64_t)set->n, (int64_t)set->dim},
                           .data = set->mean,
                           .n_bytes = set->n * set->dim * sizeof(float)};
    pnb_status status = open_in(f, path, err);
    return status == PNB_OK ? pnb__npy_write(f, &view, err) : status;
}

pnb_status pnb__clip_retrieval_save(const pnb_embeddings *set, const char *dir, pnb_error *err)
{
    bool is_text = strcmp(set->info.modality, "text") == 0;
    char *path = array_path(dir, is_text), *images = array_path(dir, false);
    pnb__out_file rows = {0}, metadata = {0};
    pnb_status status = path == NULL || images == NULL ? pnb__fail_nomem(err, strlen(dir)) : PNB_OK;
    if (status == PNB_OK)
        status = pnb_embeddings_check_values(set, err);
    if (status == PNB_OK)
        status = pnb__clip_retrieval_check(dir, is_text, set->n, err);
    bool has_images = is_text && status == PNB_OK && pnb__path_is_file(images);
    if (status == PNB_OK && !has_images)
        status = write_metadata(&metadata, set, dir, err);
    if (status == PNB_OK)
        status = write_rows(&rows, set, path, err);
    if (status == PNB_OK) {
        pnb__out_file *const files[] = {has_images ? NULL : &metadata, &rows};
        status = pnb__out_commit_all(files, PNB_COUNT(files), err);
    }
    pnb__out_abort(&metadata);
    pnb__out_abort(&rows);
    pnb__free(path);
    pnb__free(images);
    return status;
}
