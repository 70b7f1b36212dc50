/* Counts of batches in files; the number itself is n_moves of the running variance, which the op
 * counts (tensor/ops/batchnorm.c).
 *
 *     ours         <norm>.running_var  (C)       param, and its n_moves
 *     a file's     <norm>.running_var  (C)
 *                  <norm>.num_batches_tracked  ()  int64 */
#include "models/keys/batch_counts.h"

#include <string.h>

static const char variance[] = ".running_var";

/* The key beside that of a running variance, by whose rule it is named. False: the weight is no
 * running variance, or the layout has no place for it. */
static bool key_of(const pnb__key_mapping *l, const char *name, pnb__key_mapping_part *out)
{
    char count[sizeof out->key];
    pnb__key_mapping_part parts[3];
    if (!pnb__ends_with(name, variance))
        return false;
    snprintf(count, sizeof count, "%.*s.num_batches_tracked",
             (int)(strlen(name) - strlen(variance)), name);
    if (pnb__key_mapping_parts(l, count, parts) != 1)
        return false;
    *out = parts[0];
    return true;
}

bool pnb__batch_count_is(const pnb__weights *w, const pnb__key_mapping *l, const char *key)
{
    pnb__key_mapping_part part;
    for (size_t i = 0; i < w->n; i++)
        if (key_of(l, w->items[i].param.name, &part) && strcmp(part.key, key) == 0)
            return true;
    return false;
}

/* () of an integer type; the oldest files have (1). */
static pnb_status read_count(const pnb_array_view *a, int64_t *out, pnb_error *err)
{
    bool is_whole = a->dtype == PNB_I64 || a->dtype == PNB_I32;
    double value = -1;
    pnb_status status =
        is_whole && pnb_array_size(a) == 1 ? pnb_array_to_f64(a, &value, err) : PNB_OK;
    if (status == PNB_OK && value < 0)
        status = pnb__fail(err, PNB_FORMAT,
                           "%s counts batches, it must be one whole number of 0 or more", a->name);
    if (status == PNB_OK)
        *out = (int64_t)value;
    return status;
}

pnb_status pnb__batch_counts_load(pnb__weights *w, const pnb__key_mapping *l,
                                  const pnb__weight_file *file, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < w->n && status == PNB_OK; i++) {
        pnb__param *p = &w->items[i].param;
        pnb__key_mapping_part part;
        const pnb_array_view *a =
            key_of(l, p->name, &part) ? pnb__weight_file_lookup(file, part.key) : NULL;
        p->n_moves = 0;
        if (a != NULL)
            status = read_count(a, &p->n_moves, err);
    }
    return status;
}

pnb_status pnb__batch_counts_scatter(const pnb__weights *w, const pnb__key_mapping *l,
                                     pnb__arena *arena, pnb_array_view *views, size_t *n,
                                     pnb_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const pnb__param *p = &w->items[i].param;
        pnb__key_mapping_part part;
        if (!key_of(l, p->name, &part))
            continue;
        const char *key = pnb__arena_strdup(arena, part.key);
        if (key == NULL)
            return pnb__fail_nomem(err, sizeof part.key);
        views[(*n)++] = (pnb_array_view){
            .name = key, .dtype = PNB_I64, .data = &p->n_moves, .n_bytes = sizeof p->n_moves};
    }
    return PNB_OK;
}
