/* One optimiser step: forward, losses with the masked pass, backward.
 *
 * In one process without accumulation everything is one graph. With A micro-batches in R processes
 * the loss must still see all A micro-batches at once, so a step runs in three parts (GradCache,
 * Gao et al. 2021):
 *   1. encode each micro-batch without gradients, collect the distributions, gather those of the
 *      other processes;
 *   2. losses over all of them, or of our rows against all, and gradients with respect to the
 *      distributions (exchange.h);
 *   3. per micro-batch, forward again and backward from sum(dist * d_dist), which adds into the
 *      weights' gradient stores.
 * The result is the gradient of the big batch. In part 2 rows are ordered so that the masked rows
 * of every micro-batch come first, where loss.c expects their originals; the losses do not depend
 * on the order of pairs. Process r has the micro-batches floor(r A / R) to floor((r + 1) A / R)
 * - 1.
 */
#include <string.h>

#include "train/contrastive/step_graphs.h"

/* Room of the host for n things of a step, counted; of a step that is only planned none is taken.
 */
static pnb_status take(pnb__step_graphs *s, void *array, size_t n, size_t bytes, pnb_error *err)
{
    s->host_bytes += n * bytes;
    return s->owner->is_planning ? PNB_OK : pnb__alloc_to(array, n, bytes, err);
}

#define TAKE(s, array, n, err) take((s), &(array), (n), sizeof *(array), (err))

/* Pair p is row p % B of micro-batch p / B of all processes. */
static pnb_status number_rows(pnb__step_graphs *s, pnb_error *err)
{
    size_t n = s->n_all * s->batch;
    pnb_status status = TAKE(s, s->row_of, n, err);
    for (size_t p = 0; s->row_of != NULL && p < n; p++)
        s->row_of[p] = pnb__step_row(s, IMAGE, p / s->batch - s->first_micro, p % s->batch);
    return status;
}

/* ---- building ---- */

/* The masked pass on the first M rows. Pictures: the kept patches alone go through the tower, (M,P)
 * flat row numbers b N + patch of the (B N) patches. Captions: rows of ids with tokens gone. */
static void add_masked(pnb__step_graphs *s, pnb_model *m, towers *tw)
{
    const pnb_loss_opts *loss = &s->owner->opts->loss;
    if (loss->weight[PNB_LOSS_IMG_INCLUSION] > 0 && s->n_masked > 0) {
        tw->kept = pnb__input(tw->graph, PNB__INT32, 2, (size_t[]){s->n_masked, s->n_kept});
        tw->kept_positions = pnb__input(tw->graph, PNB__INT32, 1, &s->n_kept);
        pnb__tensor *first = pnb__slice(tw->pixels, 0, 0, s->n_masked);
        const pnb__tower_in in = {
            .pixels = first, .kept = tw->kept, .kept_positions = tw->kept_positions};
        tw->side[MASKED_IMAGE] = pnb__model_build(m, PNB__IMAGE_SIDE, tw->graph, &in, true);
    }
    if (loss->weight[PNB_LOSS_TXT_INCLUSION] > 0 && s->n_masked > 0) {
        tw->masked_ids = pnb__input(tw->graph, PNB__INT32, 2, (size_t[]){s->n_masked, s->length});
        const pnb__tower_in in = {.ids = tw->masked_ids};
        tw->side[MASKED_TEXT] = pnb__model_build(m, PNB__TEXT_SIDE, tw->graph, &in, true);
    }
}

/* Captions that fit no picture of the batch go through the text tower in a pass of their own. */
static void add_negatives(pnb__step_graphs *s, pnb_model *m, towers *tw)
{
    if (s->n_negatives == 0)
        return;
    tw->negative.ids = pnb__input(tw->graph, PNB__INT32, 2, (size_t[]){s->n_negatives, s->length});
    pnb__model_add_places(m, tw->graph, s->n_negatives, &tw->negative);
    tw->side[NEGATIVE] = pnb__model_build(m, PNB__TEXT_SIDE, tw->graph, &tw->negative, true);
}

/* Shapes: pixels (B,3,H,W), ids (B,T) -> means and log-variances (B,D); masked ones (M,D). */
static pnb_status build_towers(pnb__step_graphs *s, towers *tw, bool with_grad, pnb_error *err)
{
    pnb__contrastive *c = s->owner;
    const pnb_tower_info *v = &c->info->vision;
    pnb_status status =
        pnb__graph_create(&tw->graph, c->ctx, pnb__model_real(c->model), with_grad, err);
    if (status != PNB_OK)
        return status;
    if (c->is_planning)
        pnb__graph_only_plan(tw->graph);
    pnb__graph_set_checkpointing(tw->graph, c->opts->grad_checkpointing);
    /* the losses have a graph of their own, in floats */
    pnb__graph_round_products(tw->graph, c->opts->precision == PNB_TRAIN_AMP_BF16);
    tw->pixels = pnb__input(tw->graph, PNB__REAL, 4,
                            (size_t[]){s->batch, 3, v->image_height, v->image_width});
    tw->text.ids = pnb__input(tw->graph, PNB__INT32, 2, (size_t[]){s->batch, s->length});
    pnb__model_add_places(c->model, tw->graph, s->batch, &tw->text);
    /* Backward runs in reverse: the largest tower last here lets the gradients of its weights take
     * the place of its activations as they die. A masked pass built last would give every weight
     * its gradient before any activation is gone. */
    add_masked(s, c->model, tw);
    add_negatives(s, c->model, tw);
    const pnb__tower_in image = {.pixels = tw->pixels};
    tw->side[TEXT] = pnb__model_build(c->model, PNB__TEXT_SIDE, tw->graph, &tw->text, true);
    tw->side[IMAGE] = pnb__model_build(c->model, PNB__IMAGE_SIDE, tw->graph, &image, true);
    for (int i = 0; i < N_SIDES; i++)
        if (!(c->opts->loss.weight[PNB_LOSS_DIVERSITY] > 0))
            tw->side[i].residual = NULL;
    return PNB_OK;
}

/* (1/B) sum_b sum_d exp(lv): the mean uncertainty of a side, (B,D) -> (), or what our rows are of
 * it. Only looked at. */
static pnb__tensor *mean_trace(const pnb__row_share *share, const pnb__dist *d)
{
    if (d->log_var == NULL)
        return NULL;
    pnb__tensor *ours = pnb__share_rows(share, d->log_var);
    pnb__tensor *u = pnb__mean(pnb__sum(pnb__apply(PNB__EXP, ours), -1), PNB__ALL_AXES);
    u = pnb__share_part(share, u);
    if (u != NULL)
        pnb__keep(u);
    return u;
}

/* Inputs for the teacher's rows of all pairs, means and what else the terms read. */
static pnb_status add_teacher(pnb__step_graphs *s, pnb__graph *g, pnb_error *err)
{
    const pnb__contrastive *c = s->owner;
    size_t n = s->n_all * s->batch;
    if (c->teacher == NULL)
        return PNB_OK;
    /* inputs without gradient: nothing of a teacher learns */
    const size_t shape[2] = {n, pnb__teacher_dim(c->teacher)};
    for (int side = 0; side < 2; side++) {
        s->teacher[side].mean = pnb__input(g, PNB__REAL, 2, shape);
        if (c->opts->loss.weight[PNB_LOSS_DISTILL_KL] > 0)
            s->teacher[side].log_var = pnb__input(g, PNB__REAL, 2, shape);
        if (TAKE(s, s->teacher_row[side], n, err) != PNB_OK)
            return PNB_NOMEM;
    }
    return TAKE(s, s->teacher_scratch, n * shape[1], err);
}

/* Whether pairs match by shares. */
static bool has_labels(const pnb__step_graphs *s)
{
    return pnb__mix_count(&s->mixer, s->batch) > 0 || s->owner->opts->label_smoothing > 0;
}

/* L = sum_k weight_k term_k over all rows given. */
static pnb_status build_loss(pnb__step_graphs *s, pnb__graph *g, const pnb__dist *side,
                             pnb_error *err)
{
    pnb__contrastive *c = s->owner;
    pnb__loss_in in = {.image = side[IMAGE],
                       .text = side[TEXT],
                       .masked_image = side[MASKED_IMAGE],
                       .masked_text = side[MASKED_TEXT],
                       .negative = side[NEGATIVE],
                       .has_labels = has_labels(s),
                       .n_marks = has_labels(s) ? PNB__MIX_N_MARKS : 1,
                       .label_base = c->opts->label_smoothing,
                       .share = pnb__step_row_share(s),
                       .draws = true};
    in.scale = c->logit_scale != NULL ? pnb__apply(PNB__EXP, pnb__param_tensor(g, c->logit_scale))
                                      : pnb__constant(g, c->info->logit_scale);
    if (c->logit_bias != NULL)
        in.bias = pnb__param_tensor(g, c->logit_bias);
    pnb_status status = add_teacher(s, g, err);
    if (status != PNB_OK)
        return status;
    if (c->teacher != NULL) {
        in.teacher[0] = s->teacher[0];
        in.teacher[1] = s->teacher[1];
        in.teacher_scale = pnb__teacher_scale(c->teacher);
    }
    status = pnb__loss_build(&s->loss, g, &in, &c->opts->loss, err);
    s->image_unc = mean_trace(&in.share, &side[IMAGE]);
    s->text_unc = mean_trace(&in.share, &side[TEXT]);
    if (status == PNB_OK)
        status = pnb__graph_plan(g, s->loss.total, err);
    return status == PNB_OK && !c->is_planning ? pnb__loss_start(&s->loss, err) : status;
}

static pnb_status build_whole(pnb__step_graphs *s, pnb_error *err)
{
    pnb_status status = build_towers(s, &s->whole, true, err);
    return status == PNB_OK ? build_loss(s, s->whole.graph, s->whole.side, err) : status;
}

/* Of one weight. A step that is only planned has a mark in its place, by which its graphs see that
 * the gradient lies outside of them. */
static pnb_status take_store(pnb__step_graphs *s, pnb__param *p, pnb_error *err)
{
    static const unsigned char mark;
    size_t bytes = p->n * PNB__REAL_SIZE(s->kernels.real);
    s->host_bytes += bytes;
    p->grad_store = (void *)(uintptr_t)&mark;
    return s->owner->is_planning ? PNB_OK
                                 : s->kernels.mem_alloc(s->owner->ctx, &p->grad_store, bytes, err);
}

/* A buffer a weight for the gradient of a micro-batch, or of all where the exchange adds none. */
static pnb_status make_grad_stores(pnb__step_graphs *s, pnb_error *err)
{
    pnb__contrastive *c = s->owner;
    size_t n = pnb__model_n_params(c->model) + (c->lora != NULL ? c->n_adapted : 0);
    if (PNB_ALLOC(s->stores, n + 1, err) != PNB_OK || PNB_ALLOC(s->sums, n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < pnb__model_n_params(c->model); i++) {
        pnb__param *p = pnb__model_param(c->model, i);
        if (!p->trainable)
            continue;
        pnb_status status = take_store(s, p, err);
        if (status != PNB_OK) {
            p->grad_store = NULL;
            return status;
        }
        s->stores[s->n_stores++] = (pnb__flat){p->grad_store, p->n};
    }
    if (c->lora == NULL && s->n_stores > 0)
        memcpy(s->sums, s->stores, s->n_stores * sizeof *s->sums);
    s->n_sums = c->lora == NULL ? s->n_stores : c->n_adapted;
    for (size_t i = 0; c->lora != NULL && i < c->n_adapted; i++)
        s->sums[i] = s->stores[s->n_stores++] =
            (pnb__flat){c->params[i]->grad_store, c->params[i]->n};
    for (size_t i = 0; i < s->n_sums; i++)
        s->sum_bytes += s->sums[i].n * sizeof(double); /* of the exchange */
    return PNB_OK;
}

static void keep_side(pnb__dist *d)
{
    for (int part = 0; part < N_PARTS; part++)
        if (*pnb__dist_part(d, part) != NULL)
            pnb__keep(*pnb__dist_part(d, part));
}

/* sum(x * seed) with a new input `*seed` of x's shape. */
static pnb__tensor *seeded(pnb__graph *g, pnb__tensor *x, pnb__tensor **seed)
{
    *seed = pnb__input(g, PNB__REAL, 2, (size_t[]){pnb__dim(x, 0), pnb__dim(x, 1)});
    return pnb__sum(pnb__mul(x, *seed), PNB__ALL_AXES);
}

/* Part 3: S = sum_sides <dist, seed> with seed = dL/d dist held fixed. dS/dw = sum <d dist/dw,
 * seed> = dL/dw by the chain rule, so backward of S leaves the loss's gradient of this micro-batch.
 */
static pnb_status build_back(pnb__step_graphs *s, pnb_error *err)
{
    pnb__tensor *total = NULL;
    pnb_status status = build_towers(s, &s->back, true, err);
    if (status != PNB_OK)
        return status;
    for (int i = 0; i < N_SIDES * N_PARTS; i++) {
        pnb__tensor *x = *pnb__dist_part(&s->back.side[i / N_PARTS], i % N_PARTS);
        if (x == NULL)
            continue;
        pnb__tensor **seed = pnb__dist_part(&s->seed[i / N_PARTS], i % N_PARTS);
        pnb__tensor *sum = seeded(s->back.graph, x, seed);
        total = total == NULL ? sum : pnb__add(total, sum);
    }
    return pnb__graph_plan(s->back.graph, total, err);
}

/* One part of a side, (A B, D), and its gradient; those stay floats: they are small where
 * distributions are not. A part that no tower gives is 0, and takes no memory until it is read. */
static pnb_status take_part(pnb__step_graphs *s, int side, int part, pnb_error *err)
{
    size_t n = s->n_all * pnb__step_side_rows(s, side) * s->dim + 1;
    bool is_rounded = s->owner->opts->grad_cache_bf16;
    size_t kept = is_rounded ? sizeof(uint16_t) : sizeof(float);
    side_arrays *a = &s->arrays[side];
    if (*pnb__dist_part(&s->encode.side[side], part) != NULL)
        s->host_bytes += n * (kept + sizeof(float));
    if (s->owner->is_planning)
        return PNB_OK;
    pnb_status status = PNB_ALLOC_ZERO(a->d[part], n, err);
    if (status != PNB_OK)
        return status;
    return is_rounded ? PNB_ALLOC_ZERO(a->rounded[part], n, err)
                      : PNB_ALLOC_ZERO(a->value[part], n, err);
}

/* Host copies of what three parts hand to each other. */
static pnb_status make_arrays(pnb__step_graphs *s, pnb_error *err)
{
    size_t most = PNB_MAX(s->batch, s->n_negatives); /* one scratch for every side */
    pnb_status status = TAKE(s, s->row_scratch, most * s->dim, err);
    if (status == PNB_OK)
        status = TAKE(s, s->grad_scratch, s->n_all * most * s->dim, err);
    for (int i = 0; i < N_SIDES * N_PARTS && status == PNB_OK; i++)
        status = take_part(s, i / N_PARTS, i % N_PARTS, err);
    return status;
}

/* Three graphs, planned for one micro-batch but for the loss, which has all rows as inputs. */
static pnb_status build_accumulation(pnb__step_graphs *s, pnb_error *err)
{
    pnb__contrastive *c = s->owner;
    pnb_status status;
    if (c->opts->grad_cache_bf16 && c->exchange->n_ranks > 1 && s->dim % 2 != 0)
        return pnb__fail(
            err, PNB_UNSUPPORTED,
            "--grad-cache-precision bf16 by several processes exchanges two numbers at "
            "once, and embeddings of this model have %zu: take fp32, or an even width",
            s->dim);
    PNB_TRY(make_grad_stores(s, err));
    PNB_TRY(build_towers(s, &s->encode, false, err));
    PNB_TRY(make_arrays(s, err));
    for (int i = 0; i < N_SIDES; i++)
        if (pnb__towers_has(&s->encode, i))
            keep_side(&s->encode.side[i]);
    PNB_TRY(pnb__graph_plan(s->encode.graph, NULL, err));
    PNB_TRY(build_back(s, err));
    PNB_TRY(pnb__graph_create(&s->loss_graph, c->ctx, pnb__model_real(c->model), true, err));
    if (c->is_planning)
        pnb__graph_only_plan(s->loss_graph);
    pnb__graph_set_checkpointing(s->loss_graph,
                                 true); /* cheap beside towers, and all rows are here */
    for (int i = 0; i < N_SIDES * N_PARTS; i++) {
        int side = i / N_PARTS;
        const size_t shape[2] = {s->n_all * pnb__step_side_rows(s, side), s->dim};
        s->loss_side[side].n_embeddings = s->encode.side[side].n_embeddings;
        if (*pnb__dist_part(&s->encode.side[side], i % N_PARTS) != NULL)
            *pnb__dist_part(&s->loss_side[side], i % N_PARTS) =
                pnb__input_with_grad(s->loss_graph, 2, shape);
    }
    PNB_TRY(build_loss(s, s->loss_graph, s->loss_side, err));
done:
    return status;
}

/* Host memory of one step's masks; part 3 needs those of part 1 again. */
static pnb_status make_masks(pnb__step_graphs *s, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(TAKE(s, s->ids, s->n_micro * s->batch * s->length, err));
    PNB_TRY(TAKE(s, s->masked_ids, s->n_micro * s->n_masked * s->length + 1, err));
    PNB_TRY(TAKE(s, s->negative_ids, s->n_micro * s->n_negatives * s->length + 1, err));
    PNB_TRY(TAKE(s, s->kept, s->n_masked * s->n_kept + 1, err));
    PNB_TRY(TAKE(s, s->kept_positions, s->n_kept, err));
    PNB_TRY(TAKE(s, s->patch_scratch, s->n_patches, err));
    PNB_TRY(TAKE(s, s->text_scratch, s->length, err));
done:
    return status;
}

/* Room for the pictures of our batches, and for a mix of one and the labels of all pairs, where
 * they are not 1 and 0. */
static pnb_status make_mix(pnb__step_graphs *s, pnb_error *err)
{
    const pnb_train_opts *o = s->owner->opts;
    size_t n = s->n_all * s->batch * PNB__MIX_N_MARKS;
    s->mixer = (pnb__mixer){o->mix_share, o->mix_cutmix, o->mix_alpha, o->seed};
    bool mixes = pnb__mix_count(&s->mixer, s->batch) > 0;
    s->n_pixels =
        s->batch * 3 * s->owner->info->vision.image_height * s->owner->info->vision.image_width;
    pnb_status status = PNB_OK;
    if (mixes || !pnb__step_is_whole(s))
        status = TAKE(s, s->pixels, s->n_micro * s->n_pixels, err);
    if (status == PNB_OK && mixes)
        status = TAKE(s, s->mix.order, s->batch, err);
    if (status == PNB_OK && mixes)
        status = TAKE(s, s->mix.each, s->batch, err);
    for (int way = 0; way < 2 && has_labels(s) && status == PNB_OK; way++) {
        status = TAKE(s, s->labels.columns[way], n, err);
        if (status == PNB_OK)
            status = TAKE(s, s->labels.weights[way], n, err);
    }
    return status;
}

/* The masked pass takes int(batch * ratio) pairs, at least one unless the ratio is 0. */
static size_t masked_rows(const pnb_train_opts *o)
{
    if (!(o->loss.weight[PNB_LOSS_IMG_INCLUSION] > 0) &&
        !(o->loss.weight[PNB_LOSS_TXT_INCLUSION] > 0))
        return 0;
    size_t n = (size_t)((double)o->batch_size * o->drop_ratio);
    return o->drop_ratio > 0 ? PNB_MAX(n, (size_t)1) : 0;
}

pnb_status pnb__step_create(pnb__step_graphs **out, pnb__contrastive *c, pnb_error *err)
{
    *out = NULL;
    pnb__step_graphs *s = pnb__alloc_zero(1, sizeof *s);
    if (s == NULL)
        return pnb__fail_nomem(err, sizeof *s);
    s->owner = c;
    s->batch = c->opts->batch_size;
    s->n_masked = masked_rows(c->opts);
    s->n_negatives = s->batch * (size_t)c->opts->n_negatives;
    s->n_all = (size_t)c->opts->accum_freq;
    s->first_micro = pnb__step_first_micro(s, c->exchange->rank);
    s->n_micro = pnb__step_first_micro(s, c->exchange->rank + 1) - s->first_micro;
    if (c->is_planning) /* what is chosen is chosen for the rank that has most */
        s->n_micro = (s->n_all + c->exchange->n_ranks - 1) / c->exchange->n_ranks;
    s->shares_rows = c->opts->local_loss && c->exchange->n_ranks > 1;
    s->length = c->info->text.context_length;
    s->n_patches = c->info->vision.n_patches;
    s->n_kept = pnb__mask_n_kept(s->n_patches, c->opts->mask_keep);
    s->dim = c->info->embed_dim;
    pnb__kernels_fill(&s->kernels, c->ctx, pnb__model_real(c->model));
    pnb_status status = PNB_ALLOC_ZERO(s->from, c->exchange->n_ranks + 1, err);
    if (status == PNB_OK)
        status = make_masks(s, err);
    if (status == PNB_OK)
        status = make_mix(s, err);
    if (status == PNB_OK)
        status = pnb__step_is_whole(s) ? build_whole(s, err) : build_accumulation(s, err);
    if (status == PNB_OK && !pnb__step_is_whole(s))
        status = number_rows(s, err);
    if (status != PNB_OK) {
        pnb__step_free(s);
        return status;
    }
    *out = s;
    return PNB_OK;
}

static void free_grad_stores(pnb__step_graphs *s)
{
    pnb__contrastive *c = s->owner;
    for (size_t i = 0; !pnb__step_is_whole(s) && i < pnb__model_n_params(c->model); i++) {
        pnb__param *p = pnb__model_param(c->model, i);
        if (!c->is_planning)
            s->kernels.mem_free(c->ctx, p->grad_store, p->n * PNB__REAL_SIZE(s->kernels.real));
        p->grad_store = p->grad = NULL;
    }
}

void pnb__step_free(pnb__step_graphs *s)
{
    if (s == NULL)
        return;
    pnb__graph_free(s->whole.graph);
    pnb__graph_free(s->encode.graph);
    pnb__graph_free(s->back.graph);
    pnb__graph_free(s->loss_graph);
    free_grad_stores(s);
    for (int i = 0; i < N_SIDES * N_PARTS; i++) {
        pnb__free(s->arrays[i / N_PARTS].value[i % N_PARTS]);
        pnb__free(s->arrays[i / N_PARTS].d[i % N_PARTS]);
        pnb__free(s->arrays[i / N_PARTS].rounded[i % N_PARTS]);
    }
    pnb__free(s->pixels);
    pnb__free(s->mix.order);
    pnb__free(s->mix.each);
    for (int way = 0; way < 2; way++) {
        pnb__free(s->labels.columns[way]);
        pnb__free(s->labels.weights[way]);
    }
    pnb__free(s->ids);
    pnb__free(s->masked_ids);
    pnb__free(s->negative_ids);
    pnb__free(s->teacher_row[0]);
    pnb__free(s->teacher_row[1]);
    pnb__free(s->teacher_scratch);
    pnb__free(s->kept);
    pnb__free(s->kept_positions);
    pnb__free(s->patch_scratch);
    pnb__free(s->text_scratch);
    pnb__free(s->stores);
    pnb__free(s->sums);
    pnb__free(s->from);
    pnb__free(s->row_of);
    pnb__free(s->row_scratch);
    pnb__free(s->grad_scratch);
    pnb__free(s);
}

size_t pnb__step_bytes(const pnb__step_graphs *s)
{
    const pnb__graph *const graphs[] = {s->whole.graph, s->encode.graph, s->back.graph,
                                        s->loss_graph};
    size_t bytes = 0;
    for (size_t i = 0; i < PNB_COUNT(graphs); i++)
        bytes += graphs[i] != NULL ? pnb__graph_arena_bytes(graphs[i]) : 0;
    return bytes;
}

/* One pass of everything, whose largest part is what passes over the towers do. */
static double step_flops(const pnb__step_graphs *s)
{
    if (pnb__step_is_whole(s))
        return pnb__graph_flops(s->whole.graph);
    return (double)s->n_micro *
               (pnb__graph_flops(s->encode.graph) + pnb__graph_flops(s->back.graph)) +
           pnb__graph_flops(s->loss_graph);
}

pnb_status pnb__step_plan(pnb__step_need *out, pnb__contrastive *c, pnb_error *err)
{
    pnb__step_graphs *s = NULL;
    c->is_planning = true;
    pnb_status status = pnb__step_create(&s, c, err);
    if (status == PNB_OK)
        *out = (pnb__step_need){pnb__step_bytes(s) + s->host_bytes + s->sum_bytes, step_flops(s)};
    pnb__step_free(s);
    c->is_planning = false;
    return status;
}
