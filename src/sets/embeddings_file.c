/* Embedding sets on disk: `x.safetensors` with `x.ids.jsonl`, and joining the parts of a long job.
 *
 * Metadata keys: format, version, family, modality, model, weights_sha256, adapters, preprocess,
 * measure, seed, logit_scale, logit_bias, match_a, match_b, match_samples, ids_sha256. Both files
 * are complete on the disk before either replaces its target; an old array file is taken away
 * before the new ids appear, so that it never stands beside names of other rows. Ids that came
 * there otherwise do not fit ids_sha256, and loading says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/json/json.h"
#include "io/weights/safetensors.h"
#include "sets/embeddings.h"
#include "sets/provenance.h"

#define FORMAT_NAME "penumbra-embeddings"

/* ---- metadata ---- */

enum { N_METADATA = 19, MOST_SAMPLES = 10000 };

/* Key, value, ..., NULL over text that lives in `values`. */
typedef struct metadata_text {
    const char *pairs[2 * N_METADATA + 1];
    char version[8], seed[24], n_embeddings[24], match_samples[24], ids_hash[65];
    pnb__buf scale, bias, match_a, match_b, adapters;
} metadata_text;

static void add_pair(metadata_text *m, size_t *n, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    m->pairs[(*n)++] = key;
    m->pairs[(*n)++] = value;
}

/* The links behind the weights as JSON text; nothing where there are none. */
static pnb_status write_adapters(pnb__buf *out, const pnb_adapter_links *links, pnb_error *err)
{
    if (links->n == 0)
        return PNB_OK;
    json_t *array = pnb__adapter_links_json(links);
    if (array != NULL)
        pnb__json_append_value(out, array);
    bool is_whole = array != NULL && !out->failed;
    json_decref(array);
    return is_whole ? PNB_OK : pnb__fail_nomem(err, out->size);
}

static pnb_status make_metadata(metadata_text *m, const pnb_embeddings *e, pnb_error *err)
{
    const pnb_embeddings_info *info = &e->info;
    size_t n = 0;
    snprintf(m->seed, sizeof(m->seed), "%llu", (unsigned long long)info->seed);
    if (isfinite(info->logit_scale))
        pnb__json_append_double(&m->scale, info->logit_scale);
    if (isfinite(info->logit_bias))
        pnb__json_append_double(&m->bias, info->logit_bias);
    if (isfinite(info->match_a) && info->match_a > 0 && isfinite(info->match_b)) {
        pnb__json_append_double(&m->match_a, info->match_a);
        pnb__json_append_double(&m->match_b, info->match_b);
    }
    if (m->scale.failed || m->bias.failed || m->match_a.failed || m->match_b.failed)
        return pnb__fail_nomem(err, sizeof(m->seed));
    pnb_status status = write_adapters(&m->adapters, &info->adapters, err);
    snprintf(m->version, sizeof(m->version), "%d", pnb__embeddings_version(info));
    add_pair(m, &n, "format", FORMAT_NAME);
    add_pair(m, &n, "version", m->version);
    add_pair(m, &n, "family", pnb_family_name(e->family));
    add_pair(m, &n, "modality", info->modality);
    add_pair(m, &n, "model", info->model);
    add_pair(m, &n, "weights_sha256", info->weights_sha256);
    add_pair(m, &n, PNB__ADAPTERS_KEY, m->adapters.data);
    add_pair(m, &n, "preprocess", info->preprocess);
    add_pair(m, &n, "precision", info->precision);
    add_pair(m, &n, "measure", info->measure);
    add_pair(m, &n, "seed", m->seed);
    add_pair(m, &n, "logit_scale", m->scale.data);
    add_pair(m, &n, "logit_bias", m->bias.data);
    if (info->n_embeddings > 1)
        snprintf(m->n_embeddings, sizeof m->n_embeddings, "%zu", info->n_embeddings);
    add_pair(m, &n, "n_embeddings", m->n_embeddings);
    add_pair(m, &n, "match_a", m->match_a.data);
    add_pair(m, &n, "match_b", m->match_b.data);
    if (info->match_samples > 0)
        snprintf(m->match_samples, sizeof m->match_samples, "%zu", info->match_samples);
    add_pair(m, &n, "match_samples", m->match_samples);
    add_pair(m, &n, "ids_sha256", m->ids_hash);
    if (m->ids_hash[0] == '\0')
        add_pair(m, &n, "ids", "none");
    m->pairs[n] = NULL;
    return status;
}

static void metadata_reset(metadata_text *m)
{
    pnb__buf_reset(&m->scale);
    pnb__buf_reset(&m->bias);
    pnb__buf_reset(&m->match_a);
    pnb__buf_reset(&m->match_b);
    pnb__buf_reset(&m->adapters);
}

/* ---- saving ---- */

pnb_status pnb__embeddings_open_arrays(pnb__st_writer *w, const pnb__array_target *to,
                                       const pnb_embeddings *e, size_t n, const char *ids_hash,
                                       int which[PNB__N_EMBEDDING_ARRAYS], pnb_error *err)
{
    pnb_array_view views[PNB__N_EMBEDDING_ARRAYS];
    metadata_text metadata = {0};
    size_t n_views = 0;
    pnb_status status;
    snprintf(metadata.ids_hash, sizeof(metadata.ids_hash), "%s", ids_hash);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (pnb__embedding_has_array(e, i)) {
            which[n_views] = i;
            views[n_views++] = pnb__embedding_view(e, i, n);
        }
    }
    PNB_TRY(make_metadata(&metadata, e, err));
    status = to->file != NULL
                 ? pnb__st_writer_open_on(w, to->file, views, n_views, metadata.pairs, err)
                 : pnb__st_writer_open(w, to->path, views, n_views, metadata.pairs, err);
done:
    metadata_reset(&metadata);
    return status;
}

pnb_status pnb__embeddings_commit(pnb__ids_writer *ids, pnb__st_writer *arrays, pnb_error *err)
{
    pnb__out_file *const files[] = {&ids->out, &arrays->out};
    pnb_status status = pnb__st_writer_sync(arrays, err);
    return status == PNB_OK ? pnb__out_commit_all(files, PNB_COUNT(files), err) : status;
}

static pnb_status ids_path_of(char **out, const char *path, pnb_error *err)
{
    return pnb__swap_suffix(out, path, ".safetensors", ".ids.jsonl", err);
}

static pnb_status append_arrays(pnb__st_writer *arrays, const pnb_embeddings *e, const int *which,
                                pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < arrays->n && status == PNB_OK; i++) {
        int array = which[arrays->order[i]];
        status = pnb__st_writer_append(arrays, pnb__embedding_values(e, array),
                                       pnb__embedding_count(e, array) * sizeof(float), err);
    }
    return status;
}

pnb_status pnb__embeddings_stream(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err)
{
    int which[PNB__N_EMBEDDING_ARRAYS];
    pnb__st_writer arrays = {0};
    pnb_status status;
    PNB_TRY(pnb_embeddings_check_values(e, err));
    PNB_TRY(pnb__embeddings_open_arrays(&arrays, &(pnb__array_target){NULL, f}, e, e->n, "", which,
                                        err));
    PNB_TRY(append_arrays(&arrays, e, which, err));
    status = pnb__st_writer_commit(&arrays, err);
done:
    pnb__st_writer_abort(&arrays);
    pnb__out_abort(f);
    return status;
}

pnb_status pnb_embeddings_save(const pnb_embeddings *e, const char *path, pnb_error *err)
{
    char *ids_path = NULL, hash[65];
    int which[PNB__N_EMBEDDING_ARRAYS];
    pnb__ids_writer ids = {0};
    pnb__st_writer arrays = {0};
    pnb_status status;
    PNB_TRY(ids_path_of(&ids_path, path, err));
    PNB_TRY(pnb_embeddings_check_values(e, err));
    pnb__ids_hash(e, hash);
    PNB_TRY(pnb__ids_writer_open(&ids, ids_path, err));
    PNB_TRY(pnb__ids_writer_append(&ids, e, err));
    PNB_TRY(pnb__embeddings_open_arrays(&arrays, &(pnb__array_target){path, NULL}, e, e->n, hash,
                                        which, err));
    PNB_TRY(append_arrays(&arrays, e, which, err));
    status = pnb__embeddings_commit(&ids, &arrays, err);
done:
    pnb__st_writer_abort(&arrays);
    pnb__ids_writer_abort(&ids);
    pnb__free(ids_path);
    return status;
}

/* ---- loading ---- */

static pnb_status copy_text(char *out, size_t size, const pnb_safetensors *st, const char *key,
                            const char *path, pnb_error *err)
{
    const char *value = pnb_safetensors_metadata(st, key);
    if (value == NULL)
        return PNB_OK;
    if (strlen(value) >= size)
        return pnb__fail(err, PNB_FORMAT, "%s: %s of %zu bytes, at most %zu", path, key,
                         strlen(value), size - 1);
    memcpy(out, value, strlen(value) + 1);
    return PNB_OK;
}

/* A number as JSON writes it, in any locale; untouched when the key is absent. */
static pnb_status copy_number(double *out, const pnb_safetensors *st, const char *key,
                              const char *path, pnb_error *err)
{
    const char *value = pnb_safetensors_metadata(st, key);
    json_t *array = NULL;
    if (value == NULL)
        return PNB_OK;
    char *text = pnb__format("[%s]", value);
    if (text == NULL)
        return pnb__fail_nomem(err, strlen(value) + 2);
    pnb_status status = pnb__json_load_bytes(&array, text, strlen(text), key, NULL);
    const json_t *number = json_array_get(array, 0);
    if (status == PNB_NOMEM)
        status = pnb__fail_nomem(err, strlen(text));
    else if (status == PNB_OK && json_array_size(array) == 1 && json_is_number(number))
        *out = json_number_value(number);
    else
        status = pnb__fail(err, PNB_FORMAT, "%s: %s \"%.40s\" is not a number", path, key, value);
    json_decref(array);
    pnb__free(text);
    return status;
}

static pnb_status load_adapters(pnb_adapter_links *out, const pnb_safetensors *st, const char *path,
                                pnb_error *err)
{
    const char *text = pnb_safetensors_metadata(st, PNB__ADAPTERS_KEY);
    return text != NULL ? pnb__adapter_links_parse(out, text, path, err) : PNB_OK;
}

enum { MOST_EMBEDDINGS = 1024 };

/* A whole number from 1 to `most`, *out stays where the file has none. */
static pnb_status copy_count(size_t *out, size_t most, const pnb_safetensors *st, const char *key,
                             const char *path, pnb_error *err)
{
    double n = NAN;
    pnb_status status = copy_number(&n, st, key, path, err);
    if (status != PNB_OK || isnan(n))
        return status;
    if (!(n >= 1 && n <= (double)most) || n != floor(n))
        return pnb__fail(err, PNB_FORMAT, "%s: %s is %g, wanted is 1 to %zu", path, key, n, most);
    *out = (size_t)n;
    return PNB_OK;
}

static pnb_status load_info(pnb_embeddings_info *info, const pnb_safetensors *st, const char *path,
                            pnb_error *err)
{
    pnb_status status;
    const char *seed = pnb_safetensors_metadata(st, "seed");
    PNB_TRY(copy_text(info->modality, sizeof(info->modality), st, "modality", path, err));
    PNB_TRY(copy_text(info->model, sizeof(info->model), st, "model", path, err));
    PNB_TRY(copy_text(info->weights_sha256, sizeof(info->weights_sha256), st, "weights_sha256",
                      path, err));
    PNB_TRY(load_adapters(&info->adapters, st, path, err));
    PNB_TRY(copy_text(info->preprocess, sizeof(info->preprocess), st, "preprocess", path, err));
    PNB_TRY(copy_text(info->precision, sizeof(info->precision), st, "precision", path, err));
    PNB_TRY(copy_text(info->measure, sizeof(info->measure), st, "measure", path, err));
    PNB_TRY(copy_number(&info->logit_scale, st, "logit_scale", path, err));
    PNB_TRY(copy_number(&info->logit_bias, st, "logit_bias", path, err));
    PNB_TRY(copy_number(&info->match_a, st, "match_a", path, err));
    PNB_TRY(copy_number(&info->match_b, st, "match_b", path, err));
    PNB_TRY(copy_count(&info->match_samples, MOST_SAMPLES, st, "match_samples", path, err));
    PNB_TRY(copy_count(&info->n_embeddings, MOST_EMBEDDINGS, st, "n_embeddings", path, err));
    if (seed != NULL) {
        if (seed[0] == '\0' || strspn(seed, "0123456789") != strlen(seed) || strlen(seed) > 20)
            return pnb__fail(err, PNB_FORMAT, "%s: seed \"%.40s\" is not a whole number", path,
                             seed);
        info->seed = strtoull(seed, NULL, 10);
    }
done:
    return status;
}

static bool is_version_read(const char *version)
{
    for (int known = 1; version != NULL && known <= PNB__EMBEDDINGS_VERSION; known++)
        if (version[0] == (char)('0' + known) && version[1] == '\0')
            return true;
    return false;
}

/* By its metadata, or by its arrays when another program wrote the file. */
static pnb_status find_family(pnb_family *family, const pnb_safetensors *st, const char *path,
                              pnb_error *err)
{
    const char *name = pnb_safetensors_metadata(st, "family");
    const char *format = pnb_safetensors_metadata(st, "format");
    const char *version = pnb_safetensors_metadata(st, "version");
    if (format != NULL && strcmp(format, FORMAT_NAME) == 0 && !is_version_read(version))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: embedding set of version %.20s, this program reads 1 to %d", path,
                         version != NULL ? version : "(none)", PNB__EMBEDDINGS_VERSION);
    if (name != NULL)
        return pnb_family_from_name(family, name)
                   ? PNB_OK
                   : pnb__fail(err, PNB_UNSUPPORTED, "%s: family \"%.40s\" is not known", path,
                               name);
    *family = pnb_safetensors_find(st, "log_var") != NULL     ? PNB_GAUSSIAN_DIAG
              : pnb_safetensors_find(st, "inv_alpha") != NULL ? PNB_GEN_GAUSSIAN
              : pnb_safetensors_find(st, "kappa") != NULL     ? PNB_VMF
                                                              : PNB_POINT;
    return PNB_OK;
}

/* The view of an array, of the shape that a set of n rows must have. */
static pnb_status find_array(const pnb_array_view **out, const pnb_safetensors *st, int which,
                             int64_t n, int64_t dim, const char *path, pnb_error *err)
{
    const pnb__embedding_array *array = pnb__embedding_array_at(which);
    const pnb_array_view *a = pnb_safetensors_find(st, array->name);
    if (a == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s: no array \"%s\"", path, array->name);
    bool fits = array->is_per_row ? a->n_dims == 1 && a->shape[0] == n
                                  : a->n_dims == 2 && a->shape[0] == n && a->shape[1] == dim;
    if (!fits)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %s has %d dimensions of (%lld, %lld), wanted %lld rows%s", path,
                         array->name, a->n_dims, (long long)a->shape[0], (long long)a->shape[1],
                         (long long)n, array->is_per_row ? "" : " of the width of mean");
    if (!pnb_dtype_is_float(a->dtype))
        return pnb__fail(err, PNB_DTYPE, "%s: %s is %s, wanted floating point", path, array->name,
                         pnb_dtype_name(a->dtype));
    *out = a;
    return PNB_OK;
}

/* As it lies in the file where it can be used so and that is wanted, else a copy. */
static pnb_status take_array(pnb_embeddings *e, int which, const pnb_array_view *a, bool is_mapped,
                             pnb_error *err)
{
    if (is_mapped && a->dtype == PNB_F32 && pnb_array_is_aligned(a)) {
        *pnb__embedding_field(e, which) = (float *)(uintptr_t)a->data;
        e->mapped_arrays |= 1u << which;
        return PNB_OK;
    }
    pnb_status status = pnb__embedding_alloc(e, which, err);
    return status == PNB_OK ? pnb_array_to_f32(a, *pnb__embedding_field(e, which), err) : status;
}

static pnb_status load_arrays(pnb_embeddings **out, pnb_safetensors *st, bool is_mapped,
                              const char *path, pnb_error *err)
{
    const pnb_array_view *mean = pnb_safetensors_find(st, "mean"), *a = NULL;
    pnb_embeddings *e = NULL;
    pnb_family family = PNB_POINT;
    pnb_status status;
    if (mean == NULL || mean->n_dims != 2 || mean->shape[0] == 0 || mean->shape[1] == 0)
        return pnb__fail(err, mean == NULL ? PNB_FORMAT : PNB_SHAPE,
                         "%s: not an embedding set, it has no array \"mean\" of rows and columns",
                         path);
    PNB_TRY(find_family(&family, st, path, err));
    PNB_TRY(pnb__embeddings_create_bare(&e, family, (size_t)mean->shape[0], (size_t)mean->shape[1],
                                        err));
    e->has_epistemic =
        family == PNB_GEN_GAUSSIAN &&
        pnb_safetensors_find(st, pnb__embedding_array_at(PNB__EPISTEMIC)->name) != NULL;
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (!pnb__embedding_has_array(e, i))
            continue;
        PNB_TRY(find_array(&a, st, i, mean->shape[0], mean->shape[1], path, err));
        PNB_TRY(take_array(e, i, a, is_mapped, err));
    }
    if (e->mapped_arrays != 0) {
        pnb_safetensors_retain(st);
        e->map = st;
    }
    PNB_TRY(load_info(&e->info, st, path, err));
    *out = e;
    e = NULL;
done:
    pnb_embeddings_free(e);
    return status;
}

/* A set that went to the standard output says that it has no ids file. */
static bool is_without_ids(const pnb_safetensors *st)
{
    const char *ids = pnb_safetensors_metadata(st, "ids");
    return ids != NULL && strcmp(ids, "none") == 0;
}

static pnb_status number_rows(pnb_embeddings *e, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < e->n && status == PNB_OK; i++) {
        char number[24];
        snprintf(number, sizeof(number), "%zu", i);
        status = pnb_embeddings_set_id(e, i, number, err);
    }
    return status;
}

static pnb_status load_names(pnb_embeddings *e, const pnb_safetensors *st, const char *path,
                             const pnb_embeddings_load_opts *opts, pnb_error *err)
{
    char *ids_path = NULL, hash[65];
    const char *wanted = pnb_safetensors_metadata(st, "ids_sha256");
    pnb_status status = ids_path_of(&ids_path, path, err);
    if (status != PNB_OK)
        return status;
    if (opts->allow_missing_ids && !pnb__path_is_file(ids_path))
        goto done;
    if (is_without_ids(st) && !pnb__path_is_file(ids_path)) {
        status = number_rows(e, err);
        goto done;
    }
    status = pnb__ids_load(e, ids_path, err);
    if (status == PNB_NOT_FOUND)
        pnb__error_prefix(err, "%s needs its ids file", path);
    if (status != PNB_OK || wanted == NULL)
        goto done;
    pnb__ids_hash(e, hash);
    if (strcmp(hash, wanted) != 0)
        status = pnb__fail(err, PNB_FORMAT,
                           "%s: the ids are not those %s was written with; write the set again",
                           ids_path, path);
done:
    pnb__free(ids_path);
    return status;
}

static void drop_mapped(const pnb_embeddings *e)
{
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if ((e->mapped_arrays >> i & 1u) != 0)
            pnb__drop_pages(pnb__embedding_values(e, i),
                            pnb__embedding_count(e, i) * sizeof(float));
}

pnb_embeddings_load_opts pnb_embeddings_load_opts_default(void)
{
    return (pnb_embeddings_load_opts){.allow_non_finite = false};
}

pnb_status pnb_embeddings_load(pnb_embeddings **out, const char *path, pnb_error *err)
{
    return pnb_embeddings_load_with(out, path, NULL, err);
}

pnb_status pnb_embeddings_load_with(pnb_embeddings **out, const char *path,
                                    const pnb_embeddings_load_opts *opts, pnb_error *err)
{
    pnb_embeddings_load_opts defaults = pnb_embeddings_load_opts_default();
    pnb_safetensors *st = NULL;
    pnb_embeddings *e = NULL;
    pnb_status status;
    if (out == NULL || path == NULL)
        return pnb__fail(err, PNB_ARG, "embeddings: out or path is NULL");
    if (opts == NULL)
        opts = &defaults;
    PNB_TRY(pnb_safetensors_open(&st, path, err));
    PNB_TRY(load_arrays(&e, st, opts->map, path, err));
    PNB_TRY(load_names(e, st, path, opts, err));
    if (!opts->allow_non_finite) {
        status = pnb_embeddings_check_values(e, err);
        if (status != PNB_OK) {
            pnb__error_prefix(err, "%s", path);
            goto done;
        }
    }
    drop_mapped(e); /* what was checked is read again when it is used */
    *out = e;
    e = NULL;
done:
    pnb_embeddings_free(e);
    pnb_safetensors_free(st);
    return status;
}

/* ---- joining parts ---- */

/* What the first pass over the parts leaves for the second. */
typedef struct merge_plan {
    pnb_embeddings *first; /* family, width, info */
    size_t n;
    pnb__ids_writer ids;
} merge_plan;

/* Loads part after part: checks it, writes its ids, counts its rows. */
static pnb_status plan_merge(merge_plan *plan, const char *const *part_paths, size_t n_parts,
                             pnb_error *err)
{
    pnb_embeddings *part = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n_parts; i++) {
        PNB_TRY(pnb_embeddings_load(&part, part_paths[i], err));
        if (plan->first != NULL &&
            (status = pnb__embeddings_check_same(plan->first, part, err)) != 0) {
            pnb__error_prefix(err, "%s", part_paths[i]);
            goto done;
        }
        PNB_TRY(pnb__ids_writer_append(&plan->ids, part, err));
        plan->n += part->n;
        if (plan->first == NULL)
            plan->first = part;
        else
            pnb_embeddings_free(part);
        part = NULL;
    }
done:
    pnb_embeddings_free(part);
    return status;
}

/* Appends one array of one part. */
static pnb_status append_part(pnb__st_writer *w, const char *path, int which, pnb_error *err)
{
    pnb_safetensors *st = NULL;
    pnb_embeddings *part = NULL;
    pnb_status status;
    PNB_TRY(pnb_safetensors_open(&st, path, err));
    PNB_TRY(load_arrays(&part, st, false, path, err));
    status = pnb__st_writer_append(w, pnb__embedding_values(part, which),
                                   pnb__embedding_count(part, which) * sizeof(float), err);
done:
    pnb_embeddings_free(part);
    pnb_safetensors_free(st);
    return status;
}

pnb_status pnb_embeddings_merge(const char *path, const char *const *part_paths, size_t n_parts,
                                pnb_error *err)
{
    merge_plan plan = {0};
    char *ids_path = NULL, hash[65];
    int which[PNB__N_EMBEDDING_ARRAYS];
    pnb__st_writer arrays = {0};
    pnb_status status;
    if (path == NULL || part_paths == NULL || n_parts == 0)
        return pnb__fail(err, PNB_ARG, "embeddings: no path or no parts to merge");
    PNB_TRY(ids_path_of(&ids_path, path, err));
    PNB_TRY(pnb__ids_writer_open(&plan.ids, ids_path, err));
    PNB_TRY(plan_merge(&plan, part_paths, n_parts, err));
    pnb__sha256_hex(&plan.ids.hash, hash);
    PNB_TRY(pnb__embeddings_open_arrays(&arrays, &(pnb__array_target){path, NULL}, plan.first,
                                        plan.n, hash, which, err));
    for (size_t i = 0; i < arrays.n; i++) {
        for (size_t j = 0; j < n_parts; j++)
            PNB_TRY(append_part(&arrays, part_paths[j], which[arrays.order[i]], err));
    }
    status = pnb__embeddings_commit(&plan.ids, &arrays, err);
done:
    pnb__st_writer_abort(&arrays);
    pnb__ids_writer_abort(&plan.ids);
    pnb_embeddings_free(plan.first);
    pnb__free(ids_path);
    return status;
}
