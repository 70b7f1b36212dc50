/* Rows of an embedding set: what to call one, what its further fields say, and the view that a
 * measure takes.
 *
 * Names come from the ids file (embeddings_ids.c); further fields are its JSON objects. */
#include "sets/set_rows.h"

#include <string.h>

bool pnb__set_is_known(const pnb_embeddings *set)
{
    return set->info.weights_sha256[0] != '\0' && set->info.modality[0] != '\0';
}

pnb_status pnb__set_view(pnb_view *out, const pnb_embeddings *set, pnb_measure measure,
                         pnb_error *err)
{
    if (measure != PNB_MEASURE_MEAN)
        return pnb_view_init(out, set, err);
    *out = (pnb_view){.rows = {.n = set->n, .dim = set->dim, .mean = set->mean}};
    return PNB_OK;
}

const char *pnb__set_id(const pnb_embeddings *set, size_t row)
{
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
}

const char *pnb__set_label(const pnb_embeddings *set, size_t row)
{
    if (set->texts != NULL && set->texts[row] != NULL)
        return set->texts[row];
    if (set->paths != NULL && set->paths[row] != NULL)
        return set->paths[row];
    return pnb__set_id(set, row);
}

pnb_status pnb__set_extra(json_t **out, const pnb_embeddings *set, size_t row, pnb_error *err)
{
    const char *extra = set->extras != NULL ? set->extras[row] : NULL;
    *out = NULL;
    return extra != NULL ? pnb__json_try_bytes(out, extra, strlen(extra), err) : PNB_OK;
}

pnb_status pnb__extra_text(char **out, const char *extra, const char *key, pnb_error *err)
{
    json_t *root = NULL;
    *out = NULL;
    if (extra == NULL)
        return PNB_OK;
    pnb_status status = pnb__json_try_bytes(&root, extra, strlen(extra), err);
    const char *text = json_string_value(json_object_get(root, key));
    if (status == PNB_OK && text != NULL)
        status = pnb__copy_text(out, text, err);
    json_decref(root);
    return status;
}

pnb_status pnb__row_level(int *level, const pnb_embeddings *set, size_t row, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__set_extra(&root, set, row, err);
    const json_t *value = json_object_get(root, "level");
    *level = pnb__json_small_int(value, -1);
    if (status == PNB_OK && *level < 0 && value != NULL && !json_is_null(value) &&
        !(json_is_integer(value) && json_integer_value(value) == -1))
        status = pnb__fail(err, PNB_FORMAT,
                           "row %zu: its \"level\" is no whole number from 0 (-1: unknown)", row);
    json_decref(root);
    return status;
}
