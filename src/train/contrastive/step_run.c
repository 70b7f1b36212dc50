/* Running the graphs of a step, which step.c makes: batches in, masks and draws, values out.
 *
 *     one graph     batch -> towers -> losses -> gradients
 *     three parts   encode each micro-batch; gather; losses and d loss / d distributions; gather
 *                   back; each micro-batch again, backward from sum <distribution, gradient>
 *
 * A caption loses its words here, and pictures are mixed, before they are copied, masked or
 * encoded: all parts see the same. All that is random is a function of (seed, step), so part 3,
 * another process and a resumed run meet the same masks and samples. Batches are copied where part
 * 3 needs them again. */
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "train/contrastive/step_graphs.h"
#include "train/pcme/word_drop.h"

/* Draws of the loss are the step's, the same in all processes and however its pairs are cut into
 * micro-batches. */
static pnb_status draw_samples(const pnb__step_graphs *s, pnb_error *err)
{
    return pnb__loss_set_step(&s->loss, s->owner->opts->seed, s->owner->step, s->row_of, err);
}

/* One number a step and micro-batch, those of all processes counted. */
static uint64_t draw_number(const pnb__step_graphs *s, size_t micro)
{
    return (uint64_t)s->owner->step * s->n_all + s->first_micro + micro;
}

/* Patches are drawn once a step, for all rows and processes; tokens per micro-batch. Both are
 * functions of (seed, step), so that part 3 and a resumed run meet the same masks. */
static void draw_masks(pnb__step_graphs *s, size_t micro, const int32_t *ids)
{
    const pnb__contrastive *c = s->owner;
    const pnb_train_opts *o = c->opts;
    if (s->n_masked == 0)
        return;
    pnb__mask_patches(o->seed, c->step, s->n_patches, s->n_kept, s->patch_scratch,
                      s->kept_positions);
    for (size_t b = 0; b < s->n_masked; b++)
        for (size_t i = 0; i < s->n_kept; i++)
            s->kept[b * s->n_kept + i] = (int32_t)(b * s->n_patches) + s->kept_positions[i];
    const pnb__text_masker masker = pnb__contrastive_masker(c);
    pnb__mask_texts(&masker, draw_number(s, micro), ids, s->n_masked, s->length, s->text_scratch,
                    s->masked_ids + micro * s->n_masked * s->length);
}

/* The captions of a micro-batch as the step trains on them: without the words they lose in it. The
 * draw is a function of (seed, step), as those of the masks. */
static const int32_t *take_texts(pnb__step_graphs *s, size_t micro, const int32_t *ids)
{
    const pnb__contrastive *c = s->owner;
    int32_t *taken = s->ids + micro * s->batch * s->length;
    const pnb__word_drop drop = {c->tokenizer, c->opts->word_drop, c->opts->word_drop_removes,
                                 c->opts->seed};
    if (drop.prob > 0) /* 0 needs no token for the unknown */
        pnb__word_drop_texts(&drop, draw_number(s, micro), ids, s->batch, s->length,
                             s->text_scratch, taken);
    else
        memcpy(taken, ids, s->batch * s->length * sizeof *taken);
    return taken;
}

/* The pictures of a micro-batch as the step trains on them: a copy, some of them mixed; the
 * loader's own where nothing needs another. */
static const float *take_images(pnb__step_graphs *s, size_t micro, const float *pixels)
{
    const pnb_tower_info *v = &s->owner->info->vision;
    const size_t size[2] = {v->image_height, v->image_width};
    float *taken = s->pixels != NULL ? s->pixels + micro * s->n_pixels : NULL;
    if (taken == NULL)
        return pixels;
    if (s->mix.order == NULL) {
        memcpy(taken, pixels, s->n_pixels * sizeof *taken);
        return taken;
    }
    pnb__mix_draw(&s->mixer, draw_number(s, micro), s->batch, size, &s->mix);
    pnb__mix_apply(&s->mix, pixels, s->batch, size, taken);
    return taken;
}

/* What else of a batch part 3 or the teacher needs, when the loader's own is gone. */
static pnb_status take_rest(pnb__step_graphs *s, size_t micro, const pnb_batch *batch,
                            pnb_error *err)
{
    const pnb__contrastive *c = s->owner;
    size_t first = (s->first_micro + micro) * s->batch;
    if (s->n_negatives > 0)
        memcpy(s->negative_ids + micro * s->n_negatives * s->length, batch->negatives,
               s->n_negatives * s->length * sizeof *batch->negatives);
    for (size_t i = 0; c->teacher != NULL && i < s->batch; i++)
        for (int side = 0; side < 2; side++) {
            int32_t row = pnb__teacher_row(c->teacher, side, batch->samples[i], batch->picks[i]);
            if (row < 0)
                return pnb__fail(err, PNB_FORMAT,
                                 "sample %lld has no row of the teacher: it could not be read, or "
                                 "had other captions, when training began",
                                 (long long)batch->samples[i]);
            s->teacher_row[side][first + i] = row;
        }
    return PNB_OK;
}

/* The teacher's rows of all pairs, each where its pair stands. */
static void show_teacher(const pnb__step_graphs *s)
{
    const pnb__contrastive *c = s->owner;
    size_t n = s->n_all * s->batch;
    for (int i = 0; c->teacher != NULL && i < 4; i++) {
        int side = i / 2, has_log_var = i % 2;
        pnb__tensor *x = has_log_var ? s->teacher[side].log_var : s->teacher[side].mean;
        size_t dim = pnb__teacher_dim(c->teacher);
        for (size_t p = 0; x != NULL && p < n; p++)
            memcpy(s->teacher_scratch + (s->row_of != NULL ? s->row_of[p] : p) * dim,
                   pnb__teacher_part(c->teacher, side, has_log_var, s->teacher_row[side][p]),
                   dim * sizeof *s->teacher_scratch);
        if (x != NULL)
            pnb__write_f32(x, s->teacher_scratch);
    }
}

/* Labels of all pairs of the step. The mixes of other micro-batches and processes are drawn again:
 * they are functions of their numbers. */
static pnb_status label_pairs(pnb__step_graphs *s, pnb_error *err)
{
    const pnb_tower_info *v = &s->owner->info->vision;
    const size_t size[2] = {v->image_height, v->image_width};
    size_t n = s->n_all * s->batch;
    pnb__mix_marks *l = &s->labels;
    if (l->columns[0] == NULL)
        return PNB_OK;
    pnb__mix_label_own(n, l);
    for (size_t m = 0; m < s->n_all && s->mix.order != NULL; m++) {
        uint64_t draw = (uint64_t)s->owner->step * s->n_all + m;
        pnb__mix_draw(&s->mixer, draw, s->batch, size, &s->mix);
        pnb__mix_label(&s->mix, m * s->batch, s->row_of, l);
    }
    pnb__mix_smooth(s->owner->opts->label_smoothing, n, l);
    const pnb__pair_labels labels = {{l->columns[0], l->columns[1]},
                                     {l->weights[0], l->weights[1]}};
    return pnb__loss_set_labels(&s->loss, &labels, err);
}

static pnb_status write_inputs(pnb__step_graphs *s, const towers *tw, size_t micro,
                               const float *pixels, const int32_t *ids, pnb_error *err)
{
    pnb__write_f32(tw->pixels, pixels);
    pnb__write_i32(tw->text.ids, ids);
    if (tw->masked_ids != NULL)
        pnb__write_i32(tw->masked_ids, s->masked_ids + micro * s->n_masked * s->length);
    if (tw->kept != NULL) {
        pnb__write_i32(tw->kept, s->kept);
        pnb__write_i32(tw->kept_positions, s->kept_positions);
    }
    pnb_status status = pnb__model_write_places(s->owner->model, &tw->text, ids,
                                                (const size_t[]){s->batch, s->length}, err);
    if (status != PNB_OK || s->n_negatives == 0)
        return status;
    /* as the loader gave them: no word of theirs is dropped or masked */
    const int32_t *negatives = s->negative_ids + micro * s->n_negatives * s->length;
    pnb__write_i32(tw->negative.ids, negatives);
    return pnb__model_write_places(s->owner->model, &tw->negative, negatives,
                                   (const size_t[]){s->n_negatives, s->length}, err);
}

static pnb_status next_batch(pnb__contrastive *c, const pnb_batch **batch, double *data_s,
                             pnb_error *err)
{
    double start = pnb__now_s();
    pnb_status status = pnb_loader_next(c->loader, batch, err);
    *data_s += pnb__now_s() - start;
    if (status == PNB_OK && *batch == NULL)
        return pnb__fail(err, PNB_ARG, "the data set has no batch of %zu", c->opts->batch_size);
    if (status == PNB_OK)
        c->result->n_truncated += (*batch)->n_truncated;
    return status;
}

static pnb_status run_whole(pnb__step_graphs *s, pnb__contrastive *c, double *data_s,
                            pnb_error *err)
{
    const pnb_batch *batch = NULL;
    pnb_status status = next_batch(c, &batch, data_s, err);
    if (status != PNB_OK)
        return status;
    const int32_t *ids = take_texts(s, 0, batch->tokens);
    status = take_rest(s, 0, batch, err);
    if (status != PNB_OK)
        return status;
    show_teacher(s);
    draw_masks(s, 0, ids);
    status = write_inputs(s, &s->whole, 0, take_images(s, 0, batch->pixels), ids, err);
    if (status == PNB_OK)
        status = label_pairs(s, err);
    if (status == PNB_OK)
        status = draw_samples(s, err);
    return status == PNB_OK ? pnb__graph_run(s->whole.graph, err) : status;
}

/* Copies a micro-batch's rows from (collect) or to (false) the arrays of the step. */
static void move_rows(pnb__step_graphs *s, int side, size_t micro, float *all, bool collect)
{
    for (size_t r = 0; r < pnb__step_side_rows(s, side); r++) {
        float *in_step = all + pnb__step_row(s, side, micro, r) * s->dim;
        float *in_micro = s->row_scratch + r * s->dim;
        memcpy(collect ? in_step : in_micro, collect ? in_micro : in_step, s->dim * sizeof(float));
    }
}

/* A micro-batch's rows into the step's, as they are kept. */
static void keep_rows(pnb__step_graphs *s, int side, int part, size_t micro)
{
    uint16_t *rounded = s->arrays[side].rounded[part];
    /* to nearest: what rounds one way would shift all logits of the step */
    if (rounded == NULL) {
        move_rows(s, side, micro, s->arrays[side].value[part], true);
        return;
    }
    for (size_t r = 0; r < pnb__step_side_rows(s, side); r++)
        for (size_t j = 0; j < s->dim; j++)
            rounded[pnb__step_row(s, side, micro, r) * s->dim + j] =
                pnb__bf16_of(s->row_scratch[r * s->dim + j]);
}

/* All rows of a part as floats; the scratch of gradients has room for them until there are any. */
static const float *kept_rows(pnb__step_graphs *s, int side, int part, size_t n)
{
    const uint16_t *rounded = s->arrays[side].rounded[part];
    float *wide = (float *)(void *)s->grad_scratch;
    if (rounded == NULL)
        return s->arrays[side].value[part];
    for (size_t i = 0; i < n; i++)
        wide[i] = pnb__bf16_widen(rounded[i]);
    return wide;
}

/* Part 1. The batch is copied: the loader's own is gone when part 3 needs it again. */
static pnb_status encode_micro(pnb__step_graphs *s, pnb__contrastive *c, size_t micro,
                               double *data_s, pnb_error *err)
{
    const pnb_batch *batch = NULL;
    pnb_status status = next_batch(c, &batch, data_s, err);
    if (status != PNB_OK)
        return status;
    const float *pixels = take_images(s, micro, batch->pixels);
    const int32_t *ids = take_texts(s, micro, batch->tokens);
    status = take_rest(s, micro, batch, err);
    if (status != PNB_OK)
        return status;
    draw_masks(s, micro, ids);
    status = write_inputs(s, &s->encode, micro, pixels, ids, err);
    if (status == PNB_OK)
        status = pnb__graph_run(s->encode.graph, err);
    for (int i = 0; i < N_SIDES * N_PARTS && status == PNB_OK; i++) {
        const pnb__tensor *x = *pnb__dist_part(&s->encode.side[i / N_PARTS], i % N_PARTS);
        if (x == NULL)
            continue;
        pnb__read_f32(x, s->row_scratch);
        keep_rows(s, i / N_PARTS, i % N_PARTS, micro);
    }
    return status == PNB_OK ? pnb__graph_check(s->encode.graph, err) : status;
}

/* Gradient of an input of part 2, 0 where the loss does not depend on it. */
static void read_input_grad(const pnb__step_graphs *s, const pnb__tensor *x, float *out)
{
    if (x == NULL)
        return;
    bool has = pnb__read_grad_f64(x, s->grad_scratch);
    for (size_t i = 0; i < pnb__n(x); i++)
        out[i] = has ? (float)s->grad_scratch[i] : 0;
}

/* Part 2. */
static pnb_status run_loss(pnb__step_graphs *s, pnb_error *err)
{
    for (int i = 0; i < N_SIDES * N_PARTS; i++) {
        pnb__tensor *x = *pnb__dist_part(&s->loss_side[i / N_PARTS], i % N_PARTS);
        if (x != NULL)
            pnb__write_f32(x, kept_rows(s, i / N_PARTS, i % N_PARTS, pnb__n(x)));
    }
    show_teacher(s);
    pnb_status status = label_pairs(s, err);
    if (status == PNB_OK)
        status = draw_samples(s, err);
    if (status == PNB_OK)
        status = pnb__step_run_loss(s, err);
    for (int i = 0; i < N_SIDES * N_PARTS && status == PNB_OK; i++)
        read_input_grad(s, *pnb__dist_part(&s->loss_side[i / N_PARTS], i % N_PARTS),
                        s->arrays[i / N_PARTS].d[i % N_PARTS]);
    return status == PNB_OK ? pnb__graph_check(s->loss_graph, err) : status;
}

/* Part 3: the same forward pass again, now with gradients: one micro-batch's activations at a time.
 */
static pnb_status back_micro(pnb__step_graphs *s, size_t micro, pnb_error *err)
{
    pnb_status status = write_inputs(s, &s->back, micro, s->pixels + micro * s->n_pixels,
                                     s->ids + micro * s->batch * s->length, err);
    for (int i = 0; i < N_SIDES * N_PARTS; i++) {
        pnb__tensor *seed = *pnb__dist_part(&s->seed[i / N_PARTS], i % N_PARTS);
        if (seed == NULL)
            continue;
        move_rows(s, i / N_PARTS, micro, s->arrays[i / N_PARTS].d[i % N_PARTS], false);
        pnb__write_f32(seed, s->row_scratch);
    }
    return status == PNB_OK ? pnb__graph_run(s->back.graph, err) : status;
}

/* Called in the backward pass of the last micro-batch, when a weight has all of its gradient: those
 * of earlier micro-batches were added already. The order is the graph's, so all processes begin
 * the same sums. What fails is told behind the run, which cannot be stopped from here. */
static void begin_sum(void *user, pnb__param *p)
{
    pnb__step_graphs *s = user;
    const pnb__exchange *x = s->owner->exchange;
    const pnb__flat grad = {p->grad, p->n};
    if (s->begin_status == PNB_OK && p->trainable)
        s->begin_status = x->begin(x->self, &s->kernels, &grad, 1, &s->begin_error);
}

/* Every backward pass adds to the stores. */
static pnb_status clear_stores(const pnb__step_graphs *s, pnb_error *err)
{
    const pnb__contrastive *c = s->owner;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < s->n_stores && status == PNB_OK; i++)
        status = s->kernels.mem_zero(c->ctx, s->stores[i].data,
                                     s->stores[i].n * PNB__REAL_SIZE(s->kernels.real), err);
    return status;
}

/* What the stores hold goes to the sums of the exchange, where it has any; else it stays. Gradients
 * of LoRA's factors are linear in those of their matrices, so they are made, and added, a
 * micro-batch at a time. */
static pnb_status add_stores(const pnb__step_graphs *s, bool has_run, pnb_error *err)
{
    const pnb__exchange *x = s->owner->exchange;
    if (x->add == NULL)
        return PNB_OK;
    if (s->owner->lora != NULL && has_run)
        pnb__lora_project(s->owner->lora);
    pnb_status status = x->add(x->self, &s->kernels, s->sums, s->n_sums, err);
    return status == PNB_OK ? clear_stores(s, err) : status;
}

/* The gradient of the loss alone, that of the logits' scalars, is added before any micro-batch. */
static pnb_status run_accumulation(pnb__step_graphs *s, pnb__contrastive *c, double *data_s,
                                   pnb_error *err)
{
    const pnb__exchange *x = c->exchange;
    pnb_status status = clear_stores(s, err);
    if (status == PNB_OK && x->open != NULL)
        status = x->open(x->self, s->sums, s->n_sums, err);
    for (size_t micro = 0; micro < s->n_micro && status == PNB_OK; micro++)
        status = encode_micro(s, c, micro, data_s, err);
    if (status == PNB_OK)
        status = pnb__step_gather_rows(s, err);
    if (status == PNB_OK)
        status = run_loss(s, err);
    if (status == PNB_OK)
        status = pnb__step_settle_grads(s, err);
    if (status == PNB_OK)
        status = add_stores(s, false, err);
    for (size_t micro = 0; micro < s->n_micro && status == PNB_OK; micro++) {
        bool is_last = micro + 1 == s->n_micro;
        /* of LoRA the factors are summed, which have no gradient yet */
        if (is_last && x->begin != NULL && c->lora == NULL)
            pnb__graph_watch_grads(s->back.graph, begin_sum, s);
        status = back_micro(s, micro, err);
        if (status == PNB_OK && !is_last)
            status = add_stores(s, true, err);
    }
    pnb__graph_watch_grads(s->back.graph, NULL, NULL);
    if (status == PNB_OK && s->begin_status != PNB_OK)
        status = pnb__fail(err, s->begin_status, "%s", s->begin_error.text);
    return status;
}

/* One number of the distributions of a step, as it is kept. */
static bool is_finite_at(const side_arrays *a, int part, size_t at)
{
    const uint16_t exponent = 0x7f80; /* all ones: infinite, or no number */
    return a->rounded[part] != NULL ? (a->rounded[part][at] & exponent) != exponent
                                    : isfinite(a->value[part][at]);
}

/* The first process whose distributions are not finite; -1: all are. Looked for once the loss is
 * not: the loss has all rows in it, and would blame everybody. */
static int find_culprit(const pnb__step_graphs *s)
{
    for (size_t p = 0; p < s->owner->exchange->n_ranks; p++)
        for (size_t m = pnb__step_first_micro(s, p); m < pnb__step_first_micro(s, p + 1); m++)
            for (int i = 0; i < N_SIDES * N_PARTS; i++)
                for (size_t r = 0; r < pnb__step_side_rows(s, i / N_PARTS); r++) {
                    size_t at = pnb__step_row(s, i / N_PARTS, m - s->first_micro, r) * s->dim;
                    for (size_t j = 0; j < s->dim; j++)
                        if (!is_finite_at(&s->arrays[i / N_PARTS], i % N_PARTS, at + j))
                            return (int)p;
                }
    return -1;
}

/* Values stay on the device until here. */
static pnb_status read_values(const pnb__step_graphs *s, pnb__contrastive *c, pnb__step_values *out,
                              pnb_error *err)
{
    const pnb__step_loss_values v = pnb__step_loss_values_of(s);
    memcpy(c->term, v.term, sizeof v.term);
    out->total = v.total;
    pnb__figures_add(&out->batch, "image_uncertainty", NULL, v.unc[0]);
    pnb__figures_add(&out->batch, "text_uncertainty", NULL, v.unc[1]);
    return pnb__graph_check(pnb__step_is_whole(s) ? s->whole.graph : s->loss_graph, err);
}

pnb_status pnb__step_run(pnb__step_graphs *s, pnb__contrastive *c, pnb__step_values *out,
                         pnb_error *err)
{
    pnb_status status = pnb__step_is_whole(s) ? run_whole(s, c, &out->data_s, err)
                                              : run_accumulation(s, c, &out->data_s, err);
    if (status == PNB_OK)
        status = read_values(s, c, out, err);
    if (status == PNB_OK && c->exchange->n_ranks > 1 && !isfinite(out->total))
        out->culprit = find_culprit(s);
    return status;
}
