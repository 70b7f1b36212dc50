/* The provenance of an .npy set: `x.json` beside `x.npy` holds what the metadata of a safetensors
 * set hold, as one JSON object with the same names.
 *
 * An .npy file has room for numbers only; without this file nobody knows which model, modality,
 * family, a and b the rows have. `x.json` may be anybody's name for anything: a file that does not
 * say it is ours is not read, and never written over. */
#include "sets/embeddings_origin.h"

#include <math.h>
#include <string.h>

#include "io/json/json.h"
#include "sets/embeddings.h"
#include "sets/provenance.h"

#define FORMAT_NAME "penumbra-embeddings"
enum { MAX_BYTES = 1 << 20 };

static pnb_status origin_path(char **out, const char *path, pnb_error *err)
{
    return pnb__swap_suffix(out, path, ".npy", ".json", err);
}

/* The object of the file when it is one of ours, else NULL: not there, no JSON, of something else.
 * Only a lack of memory and an unreadable file are errors. */
static pnb_status open_ours(json_t **out, const char *file, pnb_error *err)
{
    json_t *root = NULL;
    pnb_error inner = PNB_ERROR_INIT;
    *out = NULL;
    if (!pnb__path_is_file(file))
        return PNB_OK;
    pnb_status status = pnb__json_load_file(&root, file, MAX_BYTES, &inner);
    if (status == PNB_NOMEM || status == PNB_IO)
        return pnb__fail(err, status, "%s", inner.text);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (status == PNB_OK && format != NULL && strcmp(format, FORMAT_NAME) == 0)
        *out = json_incref(root);
    json_decref(root);
    return PNB_OK;
}

/* ---- writing ---- */

pnb_status pnb__origin_check_free(const char *path, pnb_error *err)
{
    char *file = NULL;
    json_t *ours = NULL;
    pnb_status status;
    PNB_TRY(origin_path(&file, path, err));
    PNB_TRY(open_ours(&ours, file, err));
    if (ours == NULL && pnb__path_is_file(file))
        status = pnb__fail(err, PNB_EXISTS,
                           "%s is needed for the provenance of %s and holds something else; "
                           "choose another name for the set, or move that file",
                           file, path);
done:
    json_decref(ours);
    pnb__free(file);
    return status;
}

/* Empty text and unknown numbers are left out. */
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

static void put_number(json_t *root, bool *ok, const char *key, double value)
{
    if (isfinite(value))
        put(root, ok, key, json_real(value));
}

json_t *pnb__origin_json(const pnb_embeddings *e, const char *ids_sha256)
{
    const pnb_embeddings_info *info = &e->info;
    json_t *root = json_object();
    bool ok = root != NULL;
    put(root, &ok, "format", json_string(FORMAT_NAME));
    put(root, &ok, "version", json_integer(pnb__embeddings_version(info)));
    put(root, &ok, "family", json_string(pnb_family_name(e->family)));
    put(root, &ok, "n", json_integer((json_int_t)e->n));
    put(root, &ok, "dim", json_integer((json_int_t)e->dim));
    put_text(root, &ok, "modality", info->modality);
    put_text(root, &ok, "model", info->model);
    put_text(root, &ok, "weights_sha256", info->weights_sha256);
    pnb__adapter_links_put(root, &info->adapters, &ok);
    put_text(root, &ok, "preprocess", info->preprocess);
    put_text(root, &ok, "precision", info->precision);
    put_text(root, &ok, "measure", info->measure);
    put(root, &ok, "seed", json_integer((json_int_t)info->seed));
    put_number(root, &ok, "logit_scale", info->logit_scale);
    put_number(root, &ok, "logit_bias", info->logit_bias);
    if (isfinite(info->match_a) && info->match_a > 0) {
        put_number(root, &ok, "match_a", info->match_a);
        put_number(root, &ok, "match_b", info->match_b);
    }
    if (info->match_samples > 0)
        put(root, &ok, "match_samples", json_integer((json_int_t)info->match_samples));
    if (info->n_embeddings > 1)
        put(root, &ok, "n_embeddings", json_integer((json_int_t)info->n_embeddings));
    put_text(root, &ok, "ids_sha256", ids_sha256);
    if (ok)
        return root;
    json_decref(root);
    return NULL;
}

pnb_status pnb__origin_write(const pnb_embeddings *e, const char *path, pnb__out_file *f,
                             pnb_error *err)
{
    char *file = NULL, ids[65];
    json_t *root = NULL;
    pnb__buf text = {0};
    pnb_status status;
    PNB_TRY(pnb__origin_check_free(path, err));
    PNB_TRY(origin_path(&file, path, err));
    pnb__ids_hash(e, ids);
    root = pnb__origin_json(e, ids);
    if (root != NULL)
        pnb__json_append_pretty(&text, root);
    if (root == NULL || text.failed) {
        status = pnb__fail_nomem(err, text.size);
        goto done;
    }
    PNB_TRY(pnb__out_open(f, file, err));
    if (fwrite(text.data, 1, text.size, f->file) != text.size)
        status = pnb__fail_errno(err, "cannot write", file);
done:
    pnb__buf_reset(&text);
    json_decref(root);
    pnb__free(file);
    return status;
}

/* ---- reading ---- */

static void read_family(pnb__jobj *o, pnb_family *out, pnb_error *err)
{
    const char *family = pnb__json_get_string(o, "family", "", err);
    int64_t version = pnb__json_get_int(o, "version", 0, err);
    if (o->status == PNB_OK && (version < 1 || version > PNB__EMBEDDINGS_VERSION))
        o->status = pnb__fail(err, PNB_UNSUPPORTED,
                              "%s: embedding set of version %lld, this program reads 1 to %d",
                              o->where, (long long)version, PNB__EMBEDDINGS_VERSION);
    if (o->status == PNB_OK && !pnb_family_from_name(out, family))
        o->status =
            pnb__fail(err, PNB_UNSUPPORTED, "%s: family \"%.40s\" is not known", o->where, family);
}

static void read_origin(pnb__jobj *o, pnb__origin *out, pnb_error *err)
{
    const int64_t most = (int64_t)1 << 53;
    pnb_embeddings_info *info = &out->info;
    read_family(o, &out->family, err);
    out->n = (size_t)pnb__json_get_int_in(o, "n", 0, 1, most, err);
    out->dim = (size_t)pnb__json_get_int_in(o, "dim", 0, 1, most, err);
    pnb__json_get_text(o, "modality", info->modality, sizeof info->modality, err);
    pnb__json_get_text(o, "model", info->model, sizeof info->model, err);
    pnb__json_get_text(o, "weights_sha256", info->weights_sha256, sizeof info->weights_sha256, err);
    pnb__adapter_links_get(o, &info->adapters, err);
    pnb__json_get_text(o, "preprocess", info->preprocess, sizeof info->preprocess, err);
    pnb__json_get_text(o, "precision", info->precision, sizeof info->precision, err);
    pnb__json_get_text(o, "measure", info->measure, sizeof info->measure, err);
    pnb__json_get_text(o, "ids_sha256", out->ids_sha256, sizeof out->ids_sha256, err);
    info->seed = (uint64_t)pnb__json_get_int_in(o, "seed", 0, 0, INT64_MAX, err);
    info->logit_scale = pnb__json_get_double(o, "logit_scale", (double)NAN, err);
    info->logit_bias = pnb__json_get_double(o, "logit_bias", (double)NAN, err);
    info->n_embeddings = (size_t)pnb__json_get_int_in(o, "n_embeddings", 1, 1, 1024, err);
    info->match_a = pnb__json_get_double(o, "match_a", (double)NAN, err);
    info->match_b = pnb__json_get_double(o, "match_b", (double)NAN, err);
    info->match_samples = (size_t)pnb__json_get_int_in(o, "match_samples", 0, 0, 10000, err);
}

pnb_status pnb__origin_read(pnb__origin *out, json_t *root, const char *where, pnb_error *err)
{
    pnb__origin read = {0};
    pnb__jobj o = pnb__json_object(root, where, err);
    read_origin(&o, &read, err);
    read.is_known = true;
    if (o.status == PNB_OK)
        *out = read;
    return o.status;
}

pnb_status pnb__origin_load(pnb__origin *out, const char *path, pnb_error *err)
{
    char *file = NULL;
    json_t *root = NULL;
    pnb_status status;
    *out = (pnb__origin){0};
    PNB_TRY(origin_path(&file, path, err));
    PNB_TRY(open_ours(&root, file, err));
    if (root != NULL)
        status = pnb__origin_read(out, root, file, err);
done:
    json_decref(root);
    pnb__free(file);
    return status;
}
