/* The graph of a batch: rows in, what the sides make of them, the loss.
 *
 * Built and planned once for a number of rows, then run with other rows each step. Constants that a
 * loss asks for (labels, signs) are inputs that are filled once; noise is drawn before every run,
 * from the seed and the step. */
#include <assert.h>
#include <string.h>

#include "adapt/heads/learned.h"

/* ---- what `side` and `loss` ask for ---- */

pnb__tensor *pnb__learned_apply(const pnb__learned_graph *lg, int side, int place, pnb__tensor *x)
{
    const pnb__learned_head *h = &lg->l->head[side][place];
    pnb__head head = {.n_layers = h->n_layers};
    for (size_t i = 0; i < h->n_layers; i++) {
        head.w[i] = pnb__param_tensor(lg->g, h->w[i]);
        head.b[i] = pnb__param_tensor(lg->g, h->b[i]);
    }
    return pnb__head_apply(&head, x);
}

pnb__tensor *pnb__learned_scale(const pnb__learned_graph *lg)
{
    return pnb__param_tensor(lg->g, lg->l->scale);
}

pnb__tensor *pnb__learned_shift(const pnb__learned_graph *lg)
{
    return pnb__param_tensor(lg->g, lg->l->shift);
}

static pnb__tensor *make_once(pnb__learned_graph *lg, pnb__tensor **place, pnb__kind kind,
                              int n_dims)
{
    if (*place == NULL)
        *place = pnb__input(lg->g, kind, n_dims, (size_t[]){lg->n, lg->n});
    return *place;
}

pnb__tensor *pnb__learned_matches(pnb__learned_graph *lg)
{
    return make_once(lg, &lg->matches, PNB__INT32, 1);
}

pnb__tensor *pnb__learned_first(pnb__learned_graph *lg)
{
    return make_once(lg, &lg->first, PNB__INT32, 1);
}

pnb__tensor *pnb__learned_signs(pnb__learned_graph *lg)
{
    return make_once(lg, &lg->signs, PNB__REAL, 2);
}

pnb__tensor *pnb__learned_identity(pnb__learned_graph *lg)
{
    return make_once(lg, &lg->identity, PNB__REAL, 2);
}

pnb__tensor *pnb__learned_noise(pnb__learned_graph *lg, int side, size_t n_samples)
{
    size_t dim = lg->a->part[side].dim_out;
    lg->noise[side] = pnb__input(lg->g, PNB__REAL, 3, (size_t[]){lg->n, n_samples, dim});
    return lg->noise[side];
}

void pnb__learned_tell(pnb__learned_graph *lg, const char *name, pnb__tensor *value)
{
    assert(lg->n_terms < PNB__LEARNED_MAX_TERMS);
    lg->term[lg->n_terms].name = name;
    lg->term[lg->n_terms++].value = value;
    if (value != NULL)
        pnb__keep(value);
    lg->total = lg->total == NULL ? value : pnb__add(lg->total, value);
}

void pnb__learned_gaussian_side(pnb__learned_graph *lg, int side, pnb__tensor *x,
                                pnb__learned_side *out)
{
    out->mean = x;
    out->log_var = pnb__learned_apply(lg, side, 0, x);
}

/* ---- constants ---- */

/* diagonal where row and column agree, elsewhere `other`. */
static void fill_square(pnb__tensor *t, size_t n, float diagonal, float other, float *room)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < n * n; i++)
        room[i] = i / n == i % n ? diagonal : other;
    pnb__write_f32(t, room);
}

static pnb_status fill_constants(const pnb__learned_graph *lg, pnb_error *err)
{
    size_t n = lg->n;
    float *room = NULL;
    int32_t *rows = NULL;
    pnb_status status;
    bool has_square = lg->signs != NULL || lg->identity != NULL;
    PNB_TRY(PNB_ALLOC(room, has_square ? n * n : 1, err));
    PNB_TRY(PNB_ALLOC(rows, n, err));
    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)i;
    if (lg->matches != NULL)
        pnb__write_i32(lg->matches, rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)(i * n + i);
    if (lg->first != NULL)
        pnb__write_i32(lg->first, rows);
    fill_square(lg->signs, n, 1.0f, -1.0f, room);
    fill_square(lg->identity, n, 1.0f, 0.0f, room);
done:
    pnb__free(room);
    pnb__free(rows);
    return status;
}

/* ---- building ---- */

static pnb_status begin(pnb__learned_graph *lg, const pnb_adapter *a, size_t n, bool is_training,
                        pnb_error *err)
{
    *lg = (pnb__learned_graph){.a = a, .l = a->self, .n = n, .is_training = is_training};
    return pnb__graph_create(&lg->g, a->ctx, PNB__F32, is_training, err);
}

static void build_side(pnb__learned_graph *lg, int side)
{
    const pnb__adapter_part *part = &lg->a->part[side];
    lg->x[side] = pnb__input(lg->g, PNB__REAL, 2, (size_t[]){lg->n, part->dim});
    lg->side[side].mean = lg->x[side];
    if (part->is_adapted)
        lg->a->calls->learned->side(lg, side, lg->x[side], &lg->side[side]);
}

/* The loss over both sides, and the plan. */
static pnb_status end(pnb__learned_graph *lg, bool is_training, pnb_error *err)
{
    lg->a->calls->learned->loss(lg);
    if (lg->total != NULL)
        pnb__keep(lg->total);
    pnb_status status = pnb__graph_plan(lg->g, is_training ? lg->total : NULL, err);
    return status == PNB_OK ? fill_constants(lg, err) : status;
}

pnb_status pnb__learned_graph_init(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                   bool is_training, pnb_error *err)
{
    pnb_status status = begin(lg, a, n, is_training, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        build_side(lg, s);
    return status == PNB_OK ? end(lg, is_training, err) : status;
}

pnb__tensor **pnb__learned_part(pnb__learned_side *s, int part)
{
    pnb__tensor **const parts[PNB__LEARNED_N_PARTS] = {&s->mean,  &s->log_var,   &s->var,
                                                       &s->kappa, &s->inv_alpha, &s->beta};
    return parts[part];
}

pnb_status pnb__learned_graph_sides(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                    bool with_grad, pnb_error *err)
{
    *lg = (pnb__learned_graph){.a = a, .l = a->self, .n = n, .is_training = true};
    pnb_status status = pnb__graph_create(&lg->g, a->ctx, PNB__F32, with_grad, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        build_side(lg, s);
    return status;
}

/* A part of a side as an input like that of another number of rows. */
static void add_leaf(pnb__learned_graph *lg, const pnb__learned_graph *of, int side, int part)
{
    pnb__learned_side theirs = of->side[side];
    const pnb__tensor *x = *pnb__learned_part(&theirs, part);
    if (x == NULL)
        return;
    const size_t shape[2] = {lg->n, pnb__n(x) / of->n};
    *pnb__learned_part(&lg->side[side], part) =
        x == of->x[side] ? lg->x[side] : pnb__input_with_grad(lg->g, pnb__n_dims(x), shape);
}

pnb_status pnb__learned_graph_loss(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                   const pnb__learned_graph *of, pnb_error *err)
{
    pnb_status status = begin(lg, a, n, true, err);
    if (status != PNB_OK)
        return status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        lg->x[s] = pnb__input(lg->g, PNB__REAL, 2, (size_t[]){n, a->part[s].dim});
        for (int part = 0; part < PNB__LEARNED_N_PARTS; part++)
            add_leaf(lg, of, s, part);
    }
    return end(lg, true, err);
}

pnb_status pnb__learned_graph_side(pnb__learned_graph *lg, const pnb_adapter *a, int side, size_t n,
                                   bool wants_keep, pnb_error *err)
{
    pnb_status status = begin(lg, a, n, false, err);
    if (status != PNB_OK)
        return status;
    lg->wants_keep = wants_keep;
    build_side(lg, side);
    pnb__learned_side *s = &lg->side[side];
    pnb__tensor *const made[] = {s->mean, s->log_var, s->var, s->kappa, s->inv_alpha, s->beta};
    for (size_t i = 0; i < PNB_COUNT(made); i++)
        if (made[i] != NULL)
            pnb__keep(made[i]);
    return pnb__graph_plan(lg->g, NULL, err);
}

void pnb__learned_graph_reset(pnb__learned_graph *lg)
{
    pnb__graph_free(lg->g);
    *lg = (pnb__learned_graph){0};
}

/* ---- running ---- */

static pnb_status draw_noise(const pnb__learned_graph *lg, int side, uint64_t step, pnb_error *err)
{
    size_t n = pnb__n(lg->noise[side]);
    float *values = NULL;
    pnb__rng rng;
    pnb_status status = PNB_ALLOC(values, n, err);
    if (status != PNB_OK)
        return status;
    pnb__rng_init(&rng, lg->a->opts.seed, PNB__STREAM_NOISE + 2 * step + (uint64_t)side);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)pnb__rng_normal(&rng);
    pnb__write_f32(lg->noise[side], values);
    pnb__free(values);
    return PNB_OK;
}

pnb_status pnb__learned_graph_run(pnb__learned_graph *lg, float *const x[PNB_N_ADAPTER_SIDES],
                                  uint64_t step, pnb_error *err)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__write_f32(lg->x[s], x[s]);
        pnb_status status = lg->noise[s] != NULL ? draw_noise(lg, s, step, err) : PNB_OK;
        if (status != PNB_OK)
            return status;
    }
    pnb__graph_set_stream(lg->g, step);
    return pnb__graph_run(lg->g, err);
}
