/* Clusters of rows by a field of their ids file.
 *
 * Retrieval draws pictures with their captions and finds its clusters in the truth
 * (eval_clusters.c); commands that judge pictures alone have nothing but what the rows say of
 * themselves. A field is a text or a whole number, compared as text. */
#include "commands/common/rows/row_clusters.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "sets/set_rows.h"

/* ---- labels ---- */

pnb_status pnb__label_names(char *const *names, size_t n, int64_t *label, size_t *n_labels,
                            pnb_error *err)
{
    pnb__named *rows = pnb__alloc_array(PNB_MAX(n, 1), sizeof *rows);
    size_t n_named = 0;
    if (rows == NULL)
        return pnb__fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        label[i] = -1;
        if (names[i] != NULL)
            rows[n_named++] = (pnb__named){names[i], i};
    }
    qsort(rows, n_named, sizeof *rows, pnb__by_name);
    *n_labels = 0;
    for (size_t i = 0; i < n_named; i++) {
        *n_labels += i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0;
        label[rows[i].place] = (int64_t)*n_labels - 1;
    }
    pnb__free(rows);
    return PNB_OK;
}

/* ---- fields ---- */

/* Value of a row's field as text, to be freed; NULL without one. Id, path and text are fields too.
 */
static pnb_status field_of(const pnb_embeddings *set, size_t row, const char *key, char **out,
                           pnb_error *err)
{
    char **const own = strcmp(key, "id") == 0     ? set->ids
                       : strcmp(key, "path") == 0 ? set->paths
                       : strcmp(key, "text") == 0 ? set->texts
                                                  : NULL;
    json_t *root = NULL;
    pnb_status status = own == NULL ? pnb__set_extra(&root, set, row, err) : PNB_OK;
    const json_t *value = json_object_get(root, key);
    *out = NULL;
    if (status != PNB_OK)
        return status;
    if (own != NULL && own[row] != NULL)
        *out = pnb__strdup(own[row]);
    else if (json_is_string(value))
        *out = pnb__strdup(json_string_value(value));
    else if (json_is_integer(value))
        *out = pnb__format("%lld", (long long)json_integer_value(value));
    else if (value != NULL && !json_is_null(value))
        status = pnb__fail(err, PNB_FORMAT,
                           "row %zu: \"%s\" is neither a text nor a whole number; clusters are "
                           "told apart by one of these",
                           row, key);
    bool is_missing = (own == NULL || own[row] == NULL) && (value == NULL || json_is_null(value));
    if (status == PNB_OK && *out == NULL && !is_missing)
        status = pnb__fail_nomem(err, strlen(key));
    json_decref(root);
    return status;
}

pnb_status pnb__row_fields(const pnb_embeddings *set, const char *path, const char *key,
                           char **names, pnb_error *err)
{
    for (size_t i = 0; i < set->n; i++) {
        pnb_status status = field_of(set, i, key, &names[i], err);
        if (status != PNB_OK) {
            pnb__error_prefix(err, "%s", path);
            return status;
        }
    }
    return PNB_OK;
}

/* ---- pictures ---- */

static pnb_status label_rows(pnb__image_clusters *c, const pnb_embeddings *set, const size_t *row,
                             pnb_error *err)
{
    char **names = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC_ZERO(names, PNB_MAX(c->n, 1), err));
    for (size_t i = 0; i < c->n; i++) {
        PNB_TRY(field_of(set, row[i], c->key, &names[i], err));
        if (names[i] == NULL)
            PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                              "--cluster %s: picture %zu ('%.200s') has no such field in its ids "
                              "file",
                              c->key, row[i], pnb__set_label(set, row[i])));
    }
    status = pnb__label_names(names, c->n, c->label, &c->n_clusters, err);
done:
    for (size_t i = 0; names != NULL && i < c->n; i++)
        pnb__free(names[i]);
    pnb__free(names);
    return status;
}

pnb_status pnb__image_clusters_init(pnb__image_clusters *c, pnb__app *app,
                                    const pnb_embeddings *set, const size_t *row, size_t n,
                                    const char *key, const char *alone)
{
    pnb_status status = PNB_OK;
    *c = (pnb__image_clusters){.n = n, .n_clusters = n, .key = key};
    if (PNB_ALLOC(c->label, PNB_MAX(n, 1), &app->err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        c->label[i] = (int64_t)i;
    snprintf(c->unit, sizeof c->unit, "%s", alone);
    if (key == NULL)
        return PNB_OK;
    snprintf(c->unit, sizeof c->unit, "pictures of one \"%s\"", key);
    status = label_rows(c, set, row, &app->err);
    if (status == PNB_OK && c->n_clusters < 2)
        pnb__warn(app, "all are %s, so there are no intervals", c->unit);
    else if (status == PNB_OK && c->n_clusters < PNB__FEW_CLUSTERS)
        pnb__warn(app, "%zu clusters (%s): intervals from so few are rough", c->n_clusters,
                  c->unit);
    return status;
}

void pnb__image_clusters_reset(pnb__image_clusters *c)
{
    pnb__free(c->label);
    *c = (pnb__image_clusters){0};
}

void pnb__image_clusters_put(const pnb__image_clusters *c, pnb__result *r)
{
    pnb__result_begin(r, "resampling", NULL);
    pnb__result_text(r, "unit", "resampled unit", c->unit);
    pnb__result_text(r, "key", NULL, c->key);
    pnb__result_int(r, "n_clusters", "clusters", (int64_t)c->n_clusters);
    pnb__result_end(r);
}
