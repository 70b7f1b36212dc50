/* Where the rows of a collection come from: two facts of its catalog.
 *
 * "model" is what was said when it was made: the model's folder, name, weights and adapters, and
 * what it is of where somebody said that. "origin" is what the first rows are: the object that
 * stands beside .npy sets (embeddings_origin.c), family, width, weights, preprocessing. Later rows
 * are held against it, as rows of one set are. */
#include "sets/embeddings_origin.h"

#include <math.h>
#include <string.h>

#include "sets/embeddings.h"
#include "sets/provenance.h"
#include "store/store_internal.h"

/* ---- the model ---- */

static bool set_text(json_t *o, const char *key, const char *text)
{
    return text == NULL || text[0] == '\0' || json_object_set_new(o, key, json_string(text)) == 0;
}

pnb_status pnb__store_model_text(const pnb_store_model *model, char **out, pnb_error *err)
{
    const pnb_embeddings_info none = {.modality = ""}, *info = model->info;
    json_t *o = json_object();
    bool ok = true;
    if (info == NULL)
        info = &none;
    ok = set_text(o, "dir", model->dir) && set_text(o, "model", info->model) &&
         set_text(o, "weights_sha256", info->weights_sha256) &&
         set_text(o, "modality", info->modality);
    pnb__adapter_links_put(o, &info->adapters, &ok);
    *out = ok ? json_dumps(o, JSON_SORT_KEYS) : NULL;
    json_decref(o);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, 0);
}

/* The object of a fact, NULL where there is none. */
static pnb_status load_fact(pnb_store *store, void *connection, const char *name, json_t **out,
                            pnb_error *err)
{
    char *text = NULL;
    *out = NULL;
    pnb_status status = store->calls->fact(connection, name, &text, err);
    if (status == PNB_OK && text != NULL)
        status =
            pnb__store_blame(store, pnb__json_load_bytes(out, text, strlen(text), name, err), err);
    pnb__free(text);
    return status;
}

pnb_status pnb__store_get_model(pnb_store *store, void *connection, char **dir,
                                pnb_embeddings_info *info, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status;
    *dir = NULL;
    info->logit_scale = info->logit_bias = info->match_a = info->match_b = NAN;
    PNB_TRY(load_fact(store, connection, "model", &root, err));
    if (root == NULL)
        goto done;
    pnb__jobj o = pnb__json_object(root, "model", err);
    pnb__json_get_text(&o, "model", info->model, sizeof info->model, err);
    pnb__json_get_text(&o, "weights_sha256", info->weights_sha256, sizeof info->weights_sha256,
                       err);
    pnb__json_get_text(&o, "modality", info->modality, sizeof info->modality, err);
    pnb__adapter_links_get(&o, &info->adapters, err);
    const char *said = pnb__json_get_string(&o, "dir", NULL, err);
    status = o.status;
    if (status == PNB_OK && said != NULL)
        status = pnb__copy_text(dir, said, err);
done:
    json_decref(root);
    return status;
}

/* ---- the rows ---- */

pnb_status pnb__store_origin(pnb_store *store, void *connection, pnb_embeddings **out,
                             pnb_error *err)
{
    pnb__origin origin;
    json_t *root = NULL;
    pnb_status status;
    *out = NULL;
    PNB_TRY(load_fact(store, connection, "origin", &root, err));
    if (root == NULL)
        goto done;
    PNB_TRY(pnb__origin_read(&origin, root, "origin", err));
    PNB_TRY(pnb__embeddings_create_bare(out, origin.family, 1, origin.dim, err));
    (*out)->info = origin.info;
    (*out)->has_epistemic = json_is_true(json_object_get(root, "has_epistemic"));
done:
    json_decref(root);
    return status;
}

pnb_status pnb__store_put_origin(pnb_store *store, const pnb_embeddings *set, pnb_error *err)
{
    json_t *root = pnb__origin_json(set, "");
    bool ok = root != NULL &&
              (!set->has_epistemic || json_object_set_new(root, "has_epistemic", json_true()) == 0);
    char *text = ok ? json_dumps(root, JSON_SORT_KEYS) : NULL;
    pnb_status status = text != NULL ? store->calls->put_fact(store->writer, "origin", text, err)
                                     : pnb__fail_nomem(err, 0);
    pnb__free(text);
    json_decref(root);
    return status;
}

/* Elsewhere rows of unknown weights pass for any; here nobody could ever tell them apart again. */
static pnb_status check_known(const pnb_embeddings_info *ours, const pnb_embeddings_info *set,
                              pnb_error *err)
{
    char text[PNB_PROVENANCE_BYTES];
    bool is_known = ours->weights_sha256[0] != '\0';
    if (is_known == (set->weights_sha256[0] != '\0'))
        return PNB_OK;
    pnb_provenance_text(is_known ? ours : set, text, sizeof text);
    return pnb__fail(err, PNB_ARG,
                     is_known ? "its rows are of %s, and those to add do not tell their weights"
                              : "its rows do not tell their weights, and those to add are of %s",
                     text);
}

static pnb_status check_rows(const pnb_embeddings *origin, const pnb_embeddings *set,
                             pnb_error *err)
{
    if (origin->dim != set->dim)
        return pnb__fail(err, PNB_SHAPE, "its rows are of width %zu, those to add of width %zu",
                         origin->dim, set->dim);
    pnb_status status = check_known(&origin->info, &set->info, err);
    return status == PNB_OK ? pnb__embeddings_check_same(origin, set, err) : status;
}

static pnb_status check_model(const pnb_embeddings_info *model, const pnb_embeddings_info *set,
                              pnb_error *err)
{
    if (model->weights_sha256[0] == '\0')
        return PNB_OK;
    pnb_status status = check_known(model, set, err);
    return status == PNB_OK ? pnb__provenance_check_same(model, set, err) : status;
}

static pnb_status check_origin(pnb_store *store, void *connection, const pnb_embeddings *set,
                               bool *is_first, pnb_error *err)
{
    pnb_embeddings_info model = {.modality = ""};
    pnb_embeddings *origin = NULL;
    char *dir = NULL;
    pnb_status status;
    PNB_TRY(pnb__store_origin(store, connection, &origin, err));
    *is_first = origin == NULL;
    PNB_TRY(pnb__store_get_model(store, connection, &dir, &model, err));
    status = origin != NULL ? check_rows(origin, set, err) : check_model(&model, &set->info, err);
done:
    pnb_embeddings_free(origin);
    pnb__free(dir);
    return status == PNB_NOMEM ? status : pnb__store_blame(store, status, err);
}

pnb_status pnb__store_check_origin(pnb_store *store, const pnb_embeddings *set, bool *is_first,
                                   pnb_error *err)
{
    return check_origin(store, store->writer, set, is_first, err);
}

pnb_status pnb_store_check(pnb_store *store, const pnb_embeddings *set, pnb_error *err)
{
    bool is_first;
    pthread_mutex_lock(&store->mutex);
    pnb_status status = check_origin(store, store->reader, set, &is_first, err);
    pthread_mutex_unlock(&store->mutex);
    return status;
}
