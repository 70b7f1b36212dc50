/* Inputs that somebody else prepared, from a safetensors file: normalised pixels or token ids.
 *
 * The whole tensor is read and checked before anything is encoded; the rows are then copied into
 * batches like those of any other source, but have no names. */
#include "encode/job/embed_tensor.h"

#include <string.h>

#include "penumbra/safetensors.h"

/* The array called `name`, else the only one of that rank. */
static const pnb_array_view *pick_array(const pnb_safetensors *file, const char *name, int n_dims)
{
    const pnb_array_view *found = pnb_safetensors_find(file, name);
    for (size_t i = 0; found == NULL && i < pnb_safetensors_count(file); i++) {
        const pnb_array_view *a = pnb_safetensors_at(file, i);
        if (a->n_dims == n_dims)
            found = a;
    }
    return found != NULL && found->n_dims == n_dims ? found : NULL;
}

static pnb_status check_tensor(const pnb_encoder *e, const pnb_array_view *a, bool is_text,
                               const char *path, pnb_error *err)
{
    const pnb_tower_info *v = &e->info->vision;
    size_t context = e->info->text.context_length;
    if (a == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "%s: no array %s", path,
                         is_text ? "\"tokens\" (B,T)" : "\"pixels\" (B,3,H,W)");
    if (a->shape[0] < 1)
        return pnb__fail(err, PNB_SHAPE, "%s: %s is empty", path, a->name);
    if (is_text && (a->shape[1] < 1 || (size_t)a->shape[1] > context))
        return pnb__fail(err, PNB_SHAPE, "%s: %s has %lld tokens a row, the model takes 1 to %zu",
                         path, a->name, (long long)a->shape[1], context);
    if (!is_text && (a->shape[1] != 3 || (size_t)a->shape[2] != v->image_height ||
                     (size_t)a->shape[3] != v->image_width))
        return pnb__fail(
            err, PNB_SHAPE, "%s: %s is (%lld,%lld,%lld,%lld), the model takes (B,3,%zu,%zu)", path,
            a->name, (long long)a->shape[0], (long long)a->shape[1], (long long)a->shape[2],
            (long long)a->shape[3], v->image_height, v->image_width);
    return PNB_OK;
}

/* Ids as the encoder takes them. */
static pnb_status read_tokens(const pnb_array_view *a, int32_t *ids, pnb_error *err)
{
    size_t n = pnb_array_size(a);
    int64_t *wide = pnb__alloc_array(n, sizeof *wide);
    pnb_status status =
        wide == NULL ? pnb__fail_nomem(err, n * sizeof *wide) : pnb_array_to_i64(a, wide, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        if (wide[i] < 0 || wide[i] > INT32_MAX)
            status = pnb__fail(err, PNB_ARG, "%s[%zu] is %lld, not a token id", a->name, i,
                               (long long)wide[i]);
        else
            ids[i] = (int32_t)wide[i];
    }
    pnb__free(wide);
    return status;
}

/* pnb__embed_source.row; values of both kinds have four bytes. */
static pnb_status copy_row(const void *user, size_t i, void *row, pnb_error *err)
{
    const pnb__embed_tensor *t = user;
    (void)err;
    memcpy(row, (const char *)t->values + i * t->row_bytes, t->row_bytes);
    return PNB_OK;
}

pnb_status pnb__embed_tensor_load(pnb__embed_tensor *t, const pnb_encoder *encoder,
                                  const char *path, bool is_text, pnb_error *err)
{
    pnb_safetensors *file = NULL;
    pnb_status status;
    *t = (pnb__embed_tensor){0};
    PNB_TRY(pnb_safetensors_open(&file, path, err));
    const pnb_array_view *a = pick_array(file, is_text ? "tokens" : "pixels", is_text ? 2 : 4);
    PNB_TRY(check_tensor(encoder, a, is_text, path, err));
    size_t size = pnb_array_size(a), n = (size_t)a->shape[0];
    t->values = pnb__alloc_array(size, sizeof(float));
    if (t->values == NULL)
        PNB_TRY(pnb__fail_nomem(err, size * sizeof(float)));
    PNB_TRY(is_text ? read_tokens(a, t->values, err) : pnb_array_to_f32(a, t->values, err));
    t->row_bytes = size / n * sizeof(float);
    t->source = (pnb__embed_source){.n = n,
                                    .is_text = is_text,
                                    .user = t,
                                    .row = copy_row,
                                    .n_tokens = is_text ? (size_t)a->shape[1] : 0};
done:
    pnb_safetensors_free(file);
    return status;
}

void pnb__embed_tensor_reset(pnb__embed_tensor *t)
{
    pnb__free(t->values);
    *t = (pnb__embed_tensor){0};
}
