/* A model directory into a model of another picture size or context, and with fresh uncertainty
 * heads where asked.
 *
 * Weights of the same shape are copied; position embeddings are interpolated by the rule of
 * LongProLIP (position_resize.h), their extra rows are kept. Numbers go through the host in pieces,
 * since either model may lie on a device. Reading and initialising models is left to weights.c. */
#include "models/retarget.h"

#include <string.h>

#include "models/model.h"
#include "models/position_resize.h"

/* (n_old,C) -> (n_new,C). Texts: all rows, the extra ones last. Pictures: the extra rows come first
 * and are copied, the grid behind them is stretched. */
static pnb_status resize_rows(const pnb__param *from, const pnb_model_info *a, const double *in,
                              const pnb__param *to, const pnb_model_info *b, double *out,
                              pnb_error *err)
{
    size_t width = to->shape[1];
    if (pnb__starts_with(to->name, "text.")) {
        const pnb__text_resize r = {.n_old = from->shape[0],
                                    .n_new = to->shape[0],
                                    .n_extra = to->shape[0] - b->text.context_length,
                                    .width = width,
                                    .rule = PNB__POSITIONS_LONGPROLIP};
        return pnb__positions_resize_text(&r, in, out, err);
    }
    size_t extra = (to->shape[0] - b->vision.n_patches) * width;
    const pnb_tower_info *old = &a->vision, *now = &b->vision;
    const pnb__grid_resize r = {.old_h = old->image_height / old->patch,
                                .old_w = old->image_width / old->patch,
                                .new_h = now->image_height / now->patch,
                                .new_w = now->image_width / now->patch,
                                .width = width,
                                .rule = PNB__POSITIONS_LONGPROLIP};
    memcpy(out, in, extra * sizeof *out);
    return pnb__positions_resize_grid(&r, in + extra, out + extra, err);
}

/* One table through doubles on the host: (n_old,C) out of one model, (n_new,C) into the other. */
static pnb_status resize_param(pnb_model *from, const pnb__param *old, pnb_model *to, pnb__param *p,
                               pnb_error *err)
{
    pnb__kernels k_from, k_to;
    double *in = pnb__alloc_array(old->n, sizeof *in), *out = pnb__alloc_array(p->n, sizeof *out);
    pnb_status status = PNB_OK;
    pnb__kernels_fill(&k_from, pnb__model_ctx(from), pnb__model_real(from));
    pnb__kernels_fill(&k_to, pnb__model_ctx(to), pnb__model_real(to));
    if (in == NULL || out == NULL) {
        status = pnb__fail_nomem(err, (old->n + p->n) * sizeof *in);
        goto done;
    }
    PNB_TRY(pnb__param_read(old, &k_from, 0, old->n, in, err));
    PNB_TRY(resize_rows(old, pnb_model_get_info(from), in, p, pnb_model_get_info(to), out, err));
    status = pnb__param_write(p, &k_to, 0, p->n, out, err);
done:
    pnb__free(in);
    pnb__free(out);
    return status;
}

/* Through doubles, which both models' real types fit into; exact where those are the same. */
static pnb_status copy_param(pnb_model *from, const pnb__param *old, pnb_model *to, pnb__param *p,
                             pnb_error *err)
{
    enum { PIECE = 4096 };
    double piece[PIECE];
    pnb__kernels k_from, k_to;
    pnb__kernels_fill(&k_from, pnb__model_ctx(from), pnb__model_real(from));
    pnb__kernels_fill(&k_to, pnb__model_ctx(to), pnb__model_real(to));
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < p->n && status == PNB_OK; at += PIECE) {
        size_t n = PNB_MIN((size_t)PIECE, p->n - at);
        status = pnb__param_read(old, &k_from, at, n, piece, err);
        if (status == PNB_OK)
            status = pnb__param_write(p, &k_to, at, n, piece, err);
    }
    return status;
}

/* The uncertainty token and head of a tower. */
static bool is_uncertainty(const char *name)
{
    return strstr(name, "unc_embedding") != NULL || strstr(name, "unc_emb") != NULL ||
           strstr(name, "uncertainty") != NULL;
}

/* The only tables whose first dimension is a number of places. */
static bool is_positions(const char *name)
{
    return strcmp(name, "visual.positional_embedding") == 0 ||
           strcmp(name, "text.positional_embedding") == 0;
}

/* By the names of `to`: what it has not got is left behind (a mask, a head of another family). */
pnb_status pnb__model_retarget(pnb_model *from, pnb_model *to, bool keep_uncertainty,
                               pnb_error *err)
{
    pnb_status status = pnb__model_make_trainable(to, err);
    if (status == PNB_OK)
        status = pnb__weights_widen(&from->weights, err);
    for (size_t i = 0; i < pnb__model_n_params(to) && status == PNB_OK; i++) {
        pnb__param *p = pnb__model_param(to, i);
        const pnb__param *old = pnb__model_find_param(from, p->name);
        if (!keep_uncertainty && is_uncertainty(p->name))
            continue;
        bool fits = old != NULL && old->n_dims == p->n_dims;
        bool same = fits && memcmp(old->shape, p->shape, (size_t)p->n_dims * sizeof *p->shape) == 0;
        if (same)
            status = copy_param(from, old, to, p, err);
        else if (fits && is_positions(p->name))
            status = resize_param(from, old, to, p, err);
        else
            status = pnb__fail(err, PNB_SHAPE, "%s has another shape in the model to start from",
                               p->name);
    }
    return status;
}
