/* An adapter on disk: config.json says what it is, model.safetensors holds its arrays.
 *
 * The link that chains get has the SHA-256 of config.json, in which stands one of the arrays: who
 * has the folder can check a chain with sha256sum, and a folder whose two files are of different
 * writings is refused. docs/formats.md#adapters has the keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/adapter.h"
#include "base/grow.h"
#include "base/names.h"
#include "io/json/json.h"
#include "io/weights/safetensors.h"
#include "sets/provenance.h"

#define FORMAT_NAME "penumbra-adapter"
#define CONFIG "config.json"
#define ARRAYS "model.safetensors"
enum { VERSION = 1, MAX_BYTES = 1 << 20, MAX_DIM = 1 << 20 };

static const char *const side_keys[] = {"images", "texts"};

/* ---- the hash of the arrays ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const pnb_array_view *const *)a)->name,
                  (*(const pnb_array_view *const *)b)->name);
}

static void hash_array(pnb__sha256 *hash, const pnb_array_view *a)
{
    pnb__sha256_update(hash, a->name, strlen(a->name) + 1);
    pnb__sha256_update(hash, pnb_dtype_name(a->dtype), strlen(pnb_dtype_name(a->dtype)) + 1);
    for (int d = 0; d < a->n_dims; d++) {
        char size[32];
        snprintf(size, sizeof size, "%lld,", (long long)a->shape[d]);
        pnb__sha256_update(hash, size, strlen(size));
    }
    pnb__sha256_update(hash, "", 1);
    pnb__sha256_update(hash, a->data, a->n_bytes);
}

/* Of each in the order of their names: name, type, sizes, bytes. */
static pnb_status hash_arrays(const pnb_array_view *const *views, size_t n, char hex[65],
                              pnb_error *err)
{
    const pnb_array_view **sorted = pnb__alloc_array(n + 1, sizeof *sorted);
    pnb__sha256 hash;
    if (sorted == NULL)
        return pnb__fail_nomem(err, n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = views[i];
    qsort(sorted, n, sizeof *sorted, compare_names);
    pnb__sha256_init(&hash);
    for (size_t i = 0; i < n; i++)
        hash_array(&hash, sorted[i]);
    pnb__sha256_hex(&hash, hex);
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status hash_list(const pnb__adapter_arrays *list, char hex[65], pnb_error *err)
{
    const pnb_array_view **views = pnb__alloc_array(list->n + 1, sizeof *views);
    if (views == NULL)
        return pnb__fail_nomem(err, list->n * sizeof *views);
    for (size_t i = 0; i < list->n; i++)
        views[i] = &list->views[i];
    pnb_status status = hash_arrays(views, list->n, hex, err);
    pnb__free(views);
    return status;
}

pnb_status pnb__adapter_hash(const pnb_safetensors *file, char hex[65], pnb_error *err)
{
    size_t n = pnb_safetensors_count(file);
    const pnb_array_view **views = pnb__alloc_array(n + 1, sizeof *views);
    if (views == NULL)
        return pnb__fail_nomem(err, n * sizeof *views);
    for (size_t i = 0; i < n; i++)
        views[i] = pnb_safetensors_at(file, i);
    pnb_status status = hash_arrays(views, n, hex, err);
    pnb__free(views);
    return status;
}

/* ---- arrays ---- */

pnb_status pnb__adapter_put(pnb__adapter_arrays *to, const char *name, const double *data, size_t n,
                            size_t m, pnb_error *err)
{
    pnb_array_view view = {.name = name,
                           .dtype = PNB_F64,
                           .n_dims = m > 0 ? 2 : 1,
                           .data = data,
                           .n_bytes = n * PNB_MAX(m, (size_t)1) * sizeof(double)};
    view.shape[0] = (int64_t)n;
    view.shape[1] = (int64_t)m;
    return PNB_PUSH(to->views, to->n, err, view);
}

static pnb_status find_array(const pnb_array_view **out, const pnb_safetensors *file,
                             const char *name, size_t n, size_t m, const char *where,
                             pnb_error *err)
{
    const pnb_array_view *a = pnb_safetensors_find(file, name);
    if (a == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s: no array \"%s\"", where, name);
    bool fits = m > 0 ? a->n_dims == 2 && a->shape[1] == (int64_t)m : a->n_dims == 1;
    if (!fits || a->shape[0] != (int64_t)n)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %s has %d dimensions of (%lld, %lld), wanted %zu%s%.0zu", where, name,
                         a->n_dims, (long long)a->shape[0], (long long)a->shape[1], n,
                         m > 0 ? " by " : "", m);
    if (a->dtype != PNB_F64)
        return pnb__fail(err, PNB_DTYPE, "%s: %s is %s, wanted F64", where, name,
                         pnb_dtype_name(a->dtype));
    *out = a;
    return PNB_OK;
}

pnb_status pnb__adapter_find(const pnb_safetensors *file, const char *name, size_t n, size_t m,
                             const char *where, pnb_error *err)
{
    const pnb_array_view *a;
    return find_array(&a, file, name, n, m, where, err);
}

pnb_status pnb__adapter_get(const pnb_safetensors *file, const char *name, double *out, size_t n,
                            size_t m, const char *where, pnb_error *err)
{
    const pnb_array_view *a = NULL;
    pnb_status status;
    PNB_TRY(find_array(&a, file, name, n, m, where, err));
    PNB_TRY(pnb_array_to_f64(a, out, err));
    for (size_t i = 0; i < pnb_array_size(a); i++)
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s: number %zu of %s is not finite", where, i,
                             name);
done:
    return status;
}

/* ---- writing config.json ---- */

static void put(json_t *root, bool *ok, const char *key, json_t *value)
{
    if (json_object_set_new(root, key, value) != 0)
        *ok = false;
}

static void put_text(json_t *root, bool *ok, const char *key, const char *value)
{
    if (value[0] != '\0')
        put(root, ok, key, json_string(value));
}

/* Null where no set of this side was there. */
static json_t *part_json(const pnb__adapter_part *p, bool *ok)
{
    if (p->dim == 0)
        return json_null();
    json_t *o = json_object();
    put(o, ok, "adapted", json_boolean(p->is_adapted));
    put(o, ok, "dim", json_integer((json_int_t)p->dim));
    put(o, ok, "dim_out", json_integer((json_int_t)p->dim_out));
    put(o, ok, "rows", json_integer((json_int_t)p->n_rows));
    put_text(o, ok, "model", p->origin.model);
    put_text(o, ok, "weights_sha256", p->origin.weights_sha256);
    pnb__adapter_links_put(o, &p->origin.adapters, ok);
    put_text(o, ok, "preprocess", p->origin.preprocess);
    return o;
}

static json_t *figures_json(const pnb_adapter *a)
{
    json_t *o = json_object();
    for (size_t i = 0; i < a->n_figures; i++)
        json_object_set_new(o, a->figures[i].name, json_real(a->figures[i].value));
    return o;
}

/* The bytes of config.json. */
static pnb_status write_config(const pnb_adapter *a, const char arrays_sha256[65], pnb__buf *out,
                               pnb_error *err)
{
    bool ok = true;
    json_t *root = json_object();
    put(root, &ok, "format", json_string(FORMAT_NAME));
    put(root, &ok, "version", json_integer(VERSION));
    put(root, &ok, "method", json_string(a->about->name));
    put(root, &ok, "options", pnb__adapter_options(a));
    put(root, &ok, "figures", figures_json(a));
    put(root, &ok, "family", json_string(pnb_family_name(a->family)));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        put(root, &ok, side_keys[s], part_json(&a->part[s], &ok));
    put(root, &ok, "arrays_sha256", json_string(arrays_sha256));
    if (ok)
        pnb__json_append_pretty(out, root);
    ok = ok && !out->failed;
    json_decref(root);
    return ok ? PNB_OK : pnb__fail_nomem(err, out->size);
}

/* The file's bytes, and its arrays, whose views the caller frees. */
static pnb_status describe(const pnb_adapter *a, pnb__adapter_arrays *arrays, pnb__buf *config,
                           pnb_error *err)
{
    char hex[65];
    pnb_status status = a->calls->arrays(a, arrays, err);
    if (status == PNB_OK)
        status = hash_list(arrays, hex, err);
    return status == PNB_OK ? write_config(a, hex, config, err) : status;
}

static void name_link(pnb_adapter *a, const void *config, size_t size)
{
    pnb__sha256 hash;
    snprintf(a->link.name, sizeof a->link.name, "%s", a->about->name);
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, config, size);
    pnb__sha256_hex(&hash, a->link.sha256);
    a->link.leaves_images = !a->part[PNB_ADAPTER_IMAGES].is_adapted;
    a->link.leaves_texts = !a->part[PNB_ADAPTER_TEXTS].is_adapted;
}

pnb_status pnb__adapter_identify(pnb_adapter *a, pnb_error *err)
{
    pnb__adapter_arrays arrays = {0};
    pnb__buf config = {0};
    pnb_status status = describe(a, &arrays, &config, err);
    if (status == PNB_OK)
        name_link(a, config.data, config.size);
    pnb__buf_reset(&config);
    pnb__free(arrays.views);
    return status;
}

/* ---- the folder ---- */

/* Both paths, allocated. */
static pnb_status find_paths(const char *dir, char **config, char **arrays, pnb_error *err)
{
    *config = pnb__path_join(dir, CONFIG);
    *arrays = pnb__path_join(dir, ARRAYS);
    return *config != NULL && *arrays != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(dir) + 32);
}

pnb_status pnb_adapter_is_dir(bool *is_adapter, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, CONFIG);
    json_t *root = NULL;
    pnb_status status = PNB_FORMAT;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir) + 32);
    if (pnb__path_is_file(path))
        status = pnb__json_load_file(&root, path, MAX_BYTES, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (status == PNB_NOMEM)
        status = pnb__fail_nomem(err, MAX_BYTES);
    else
        *is_adapter = status == PNB_OK && format != NULL && strcmp(format, FORMAT_NAME) == 0;
    json_decref(root);
    pnb__free(path);
    return status == PNB_NOMEM ? status : PNB_OK;
}

static pnb_status check_free(const char *dir, pnb_error *err)
{
    bool is_taken = pnb__path_has_file(dir, CONFIG) || pnb__path_has_file(dir, ARRAYS);
    bool is_adapter = false;
    pnb_status status = is_taken ? pnb_adapter_is_dir(&is_adapter, dir, err) : PNB_OK;
    if (!is_taken || is_adapter || status != PNB_OK)
        return status;
    return pnb__fail(err, PNB_EXISTS,
                     "%s holds a " CONFIG " or " ARRAYS " that is no adapter's; choose another "
                     "folder",
                     dir);
}

static pnb_status write_arrays(pnb__st_writer *w, const char *path, const char *method,
                               const pnb__adapter_arrays *arrays, pnb_error *err)
{
    const char *const metadata[] = {"format", FORMAT_NAME, "method", method, NULL};
    pnb_status status = pnb__st_writer_open(w, path, arrays->views, arrays->n, metadata, err);
    for (size_t i = 0; i < arrays->n && status == PNB_OK; i++) {
        const pnb_array_view *a = &arrays->views[w->order[i]];
        status = pnb__st_writer_append(w, a->data, a->n_bytes, err);
    }
    return status == PNB_OK ? pnb__st_writer_sync(w, err) : status;
}

pnb_status pnb_adapter_save(const pnb_adapter *a, const char *dir, pnb_error *err)
{
    char *config_path = NULL, *arrays_path = NULL;
    pnb__adapter_arrays arrays = {0};
    pnb__st_writer weights = {0};
    pnb__out_file config = {0};
    pnb__buf text = {0};
    pnb_status status;
    if (a == NULL || dir == NULL)
        return pnb__fail(err, PNB_ARG, "adapter: no adapter or folder to save");
    PNB_TRY(check_free(dir, err));
    PNB_TRY(find_paths(dir, &config_path, &arrays_path, err));
    PNB_TRY(describe(a, &arrays, &text, err));
    PNB_TRY(pnb__make_dirs(dir, err));
    PNB_TRY(write_arrays(&weights, arrays_path, a->about->name, &arrays, err));
    PNB_TRY(pnb__out_open(&config, config_path, err));
    if (fwrite(text.data, 1, text.size, config.file) != text.size)
        PNB_TRY(pnb__fail_errno(err, "cannot write", config_path));
    pnb__out_file *const files[] = {&weights.out, &config};
    status = pnb__out_commit_all(files, PNB_COUNT(files), err);
done:
    pnb__out_abort(&config);
    pnb__st_writer_abort(&weights);
    pnb__buf_reset(&text);
    pnb__free(arrays.views);
    pnb__free(config_path);
    pnb__free(arrays_path);
    return status;
}

/* ---- reading config.json ---- */

static void read_part(pnb__jobj *root, int side, pnb__adapter_part *p, pnb_error *err)
{
    char where[300];
    json_t *value = pnb__json_get_object(root, side_keys[side], err);
    if (root->status != PNB_OK || value == NULL)
        return;
    snprintf(where, sizeof where, "%.280s: %s", root->where, side_keys[side]);
    pnb__jobj o = pnb__json_object(value, where, err);
    p->is_adapted = pnb__json_get_bool(&o, "adapted", false, err);
    p->dim = (size_t)pnb__json_get_int_in(&o, "dim", 0, 1, MAX_DIM, err);
    p->dim_out = (size_t)pnb__json_get_int_in(&o, "dim_out", 0, 1, MAX_DIM, err);
    p->n_rows = (size_t)pnb__json_get_int_in(&o, "rows", 0, 0, (int64_t)1 << 53, err);
    snprintf(p->origin.modality, sizeof p->origin.modality, "%s",
             pnb__adapter_side_word((pnb_adapter_side)side));
    pnb__json_get_text(&o, "model", p->origin.model, sizeof p->origin.model, err);
    pnb__json_get_text(&o, "weights_sha256", p->origin.weights_sha256,
                       sizeof p->origin.weights_sha256, err);
    pnb__adapter_links_get(&o, &p->origin.adapters, err);
    pnb__json_get_text(&o, "preprocess", p->origin.preprocess, sizeof p->origin.preprocess, err);
    if (o.status == PNB_OK && (p->dim == 0 || p->dim_out == 0))
        o.status = pnb__fail(err, PNB_FORMAT, "%s: dim or dim_out is missing", where);
    root->status = o.status;
}

static void read_figures(pnb__jobj *root, pnb_adapter *a, pnb_error *err)
{
    json_t *o = pnb__json_get_object(root, "figures", err), *value;
    const char *name;
    if (root->status != PNB_OK || o == NULL)
        return;
    json_object_foreach(o, name, value)
    {
        pnb_adapter_figure *f = &a->figures[a->n_figures];
        if (a->n_figures == PNB__MAX_ADAPTER_FIGURES || strlen(name) >= sizeof f->name ||
            !json_is_number(value)) {
            root->status =
                pnb__fail(err, PNB_FORMAT,
                          "%s: figures hold \"%.40s\", wanted at most %d numbers with "
                          "names of at most %zu bytes",
                          root->where, name, (int)PNB__MAX_ADAPTER_FIGURES, sizeof f->name - 1);
            return;
        }
        memcpy(f->name, name, strlen(name) + 1);
        f->value = json_number_value(value);
        a->n_figures++;
    }
}

static pnb_status open_config(pnb_adapter **out, const pnb_ctx *ctx, pnb__jobj *o, pnb_error *err)
{
    const char *format = pnb__json_get_string(o, "format", "", err);
    int64_t version = pnb__json_get_int(o, "version", 0, err);
    const char *method = pnb__json_get_string(o, "method", "", err);
    if (o->status != PNB_OK)
        return o->status;
    if (strcmp(format, FORMAT_NAME) != 0)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: format is \"%.40s\", an adapter's is \"" FORMAT_NAME "\"", o->where,
                         format);
    if (version != VERSION)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: adapter of version %lld, this program reads %d",
                         o->where, (long long)version, VERSION);
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status = pnb__adapter_create(out, ctx, method, &inner);
    return status == PNB_OK ? PNB_OK
           : status == PNB_NOT_FOUND
               ? pnb__fail(err, PNB_UNSUPPORTED, "%s: %s", o->where, inner.text)
               : pnb__fail(err, status, "%s", inner.text);
}

static pnb_status read_config(pnb_adapter **out, const pnb_ctx *ctx, json_t *root,
                              const char *where, char arrays_sha256[65], pnb_error *err)
{
    pnb_adapter *a = NULL;
    pnb__jobj o = pnb__json_object(root, where, err);
    pnb_status status = o.status == PNB_OK ? open_config(&a, ctx, &o, err) : o.status;
    if (status != PNB_OK)
        return status;
    const char *family = pnb__json_get_string(&o, "family", "", err);
    pnb__adapter_read_options(&o, a, err);
    read_figures(&o, a, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        read_part(&o, s, &a->part[s], err);
    pnb__json_get_text(&o, "arrays_sha256", arrays_sha256, 65, err);
    if (o.status == PNB_OK && !pnb_family_from_name(&a->family, family))
        o.status =
            pnb__fail(err, PNB_UNSUPPORTED, "%s: family \"%.40s\" is not known", where, family);
    if (o.status == PNB_OK && !a->part[0].is_adapted && !a->part[1].is_adapted)
        o.status = pnb__fail(err, PNB_FORMAT, "%s: neither images nor texts are adapted", where);
    if (o.status == PNB_OK)
        *out = a;
    else
        pnb_adapter_free(a);
    return o.status;
}

pnb_status pnb__adapter_read(pnb_adapter **out, const pnb_ctx *ctx, const char *config, size_t size,
                             const pnb_safetensors *file, const char *where, pnb_error *err)
{
    char wanted[65] = "", found[65];
    json_t *root = NULL;
    pnb_adapter *a = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_bytes(&root, config, size, where, err));
    PNB_TRY(read_config(&a, ctx, root, where, wanted, err));
    PNB_TRY(pnb__adapter_hash(file, found, err));
    if (strcmp(found, wanted) != 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT,
                          "%s: the arrays beside it are not those it was written with", where));
    PNB_TRY(a->calls->open(a, file, where, err));
    name_link(a, config, size);
    *out = a;
    a = NULL;
done:
    pnb_adapter_free(a);
    json_decref(root);
    return status;
}

pnb_status pnb_adapter_load(pnb_adapter **out, const pnb_ctx *ctx, const char *dir, pnb_error *err)
{
    char *config_path = NULL, *arrays_path = NULL, *config = NULL;
    size_t size = 0;
    pnb_safetensors *file = NULL;
    pnb_status status;
    if (out == NULL || ctx == NULL || dir == NULL)
        return pnb__fail(err, PNB_ARG, "adapter: out, ctx or dir is NULL");
    PNB_TRY(find_paths(dir, &config_path, &arrays_path, err));
    PNB_TRY(pnb__read_file(config_path, MAX_BYTES, &config, &size, err));
    PNB_TRY(pnb_safetensors_open(&file, arrays_path, err));
    status = pnb__adapter_read(out, ctx, config, size, file, config_path, err);
done:
    pnb_safetensors_free(file);
    pnb__free(config);
    pnb__free(config_path);
    pnb__free(arrays_path);
    return status;
}
