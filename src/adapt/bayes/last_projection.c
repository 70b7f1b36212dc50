/* The last projection of a tower, out of a model's folder: what activations become embeddings by.
 *
 * CLIP's are matrices P (C,D) of phi P; SigLIP's text tower ends in a Linear W (D,C) with a bias,
 * which BayesVLM treats as a weight of a constant activation: a 1 is put behind phi, and A is
 * (C+1,C+1). SigLIP's image tower ends in an attention head, e = h + W act(...) + b: W and b are
 * treated alike, and h, which stands behind the activations in a row, is added to what they make.
 */
#include <string.h>

#include "adapt/bayes/kronecker.h"
#include "models/model.h"
#include "models/weights/weights.h"
#include "penumbra/checkpoint.h"

static pnb_status read_param(double *out, pnb_model *m, const pnb__param *p, pnb_error *err)
{
    return pnb__param_read(p, &m->weights.kernels, 0, p->n, out, err);
}

static pnb_status make_room(pnb__last_layer *w, size_t n_read, size_t q, bool has_bias,
                            pnb_error *err)
{
    *w = (pnb__last_layer){.n_read = n_read, .p = n_read + has_bias, .q = q};
    w->w = pnb__alloc_array(q, w->p * sizeof(double));
    return w->w != NULL ? PNB_OK : pnb__fail_nomem(err, q * w->p * sizeof(double));
}

/* P (C,D): W is its transpose. */
static pnb_status read_matrix(pnb__last_layer *w, pnb_model *m, const pnb__param *p, size_t q,
                              pnb_error *err)
{
    size_t n_read = p->n / q;
    double *values = pnb__alloc_array(p->n, sizeof *values);
    pnb_status status = values != NULL ? PNB_OK : pnb__fail_nomem(err, p->n * sizeof *values);
    PNB_TRY(status);
    PNB_TRY(make_room(w, n_read, q, false, err));
    PNB_TRY(read_param(values, m, p, err));
    for (size_t i = 0; i < n_read; i++)
        for (size_t d = 0; d < q; d++)
            w->w[d * n_read + i] = values[i * q + d];
done:
    pnb__free(values);
    return status;
}

/* W (D,C) and its bias (D) in a last column. */
static pnb_status read_linear(pnb__last_layer *w, pnb_model *m, const pnb__param *weight,
                              const pnb__param *bias, size_t q, pnb_error *err)
{
    size_t n_read = weight->n / q;
    double *values = pnb__alloc_array(weight->n + q, sizeof *values);
    pnb_status status =
        values != NULL ? PNB_OK : pnb__fail_nomem(err, (weight->n + q) * sizeof *values);
    PNB_TRY(status);
    PNB_TRY(make_room(w, n_read, q, true, err));
    PNB_TRY(read_param(values, m, weight, err));
    PNB_TRY(read_param(values + weight->n, m, bias, err));
    for (size_t d = 0; d < q; d++) {
        memcpy(w->w + d * w->p, values + d * n_read, n_read * sizeof *values);
        w->w[d * w->p + n_read] = values[weight->n + d];
    }
done:
    pnb__free(values);
    return status;
}

static pnb_status read_side(pnb__last_layer *w, pnb_model *m, pnb_adapter_side side, pnb_error *err)
{
    bool is_text = side == PNB_ADAPTER_TEXTS;
    size_t q = pnb_model_get_info(m)->embed_dim;
    const pnb__param *matrix =
        pnb__model_find_param(m, is_text ? "text.text_projection" : "visual.proj");
    const pnb__param *weight = pnb__model_find_param(
        m, is_text ? "text.text_projection.weight" : "visual.attn_pool.mlp.c_proj.weight");
    const pnb__param *bias = pnb__model_find_param(m, is_text ? "text.text_projection.bias"
                                                              : "visual.attn_pool.mlp.c_proj.bias");
    if (matrix != NULL)
        return read_matrix(w, m, matrix, q, err);
    if (weight != NULL && bias != NULL) {
        pnb_status status = read_linear(w, m, weight, bias, q, err);
        w->has_rest = !is_text;
        return status;
    }
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "its %s tower does not end in a projection alone: learn from its embeddings, "
                     "without a model",
                     pnb__adapter_side_word(side));
}

/* Activations say which weights they were made by, where they know it. */
static pnb_status check_weights(const pnb_model *m, const pnb_embeddings_info *info, pnb_error *err)
{
    pnb_checkpoint *file = NULL;
    char hex[65];
    pnb_status status;
    if (info->weights_sha256[0] == '\0')
        return PNB_OK;
    PNB_TRY(pnb_checkpoint_open(&file, pnb_model_weights_path(m), err));
    PNB_TRY(pnb_checkpoint_sha256(file, hex, err));
    if (strcmp(hex, info->weights_sha256) != 0)
        status = pnb__fail(err, PNB_ARG, "its weights are %.12s, the %s activations are of %.12s",
                           hex, info->modality, info->weights_sha256);
done:
    pnb_checkpoint_free(file);
    return status;
}

pnb_status pnb__last_projections_read(pnb__last_layer out[PNB_N_ADAPTER_SIDES],
                                      const pnb_adapter *a, const char *dir, pnb_error *err)
{
    pnb_model *m = NULL;
    pnb_status status;
    PNB_TRY(pnb_model_load(&m, a->ctx, dir, err));
    PNB_TRY(pnb__weights_widen(&m->weights, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(check_weights(m, &a->part[s].origin, err));
        PNB_TRY(read_side(&out[s], m, (pnb_adapter_side)s, err));
        if (pnb__last_layer_width(&out[s]) != a->part[s].dim)
            PNB_TRY(pnb__fail(err, PNB_SHAPE,
                              "its last projection reads %zu activations, the %s rows are %zu wide",
                              pnb__last_layer_width(&out[s]),
                              pnb__adapter_side_word((pnb_adapter_side)s), a->part[s].dim));
    }
done:
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", dir);
    pnb_model_free(m);
    return status;
}
