/* What the processes of a step tell each other: their rows before the loss, and behind it, where
 * each has computed the losses of its own rows alone (--local-loss), its terms and the gradients of
 * the others' rows.
 *
 * A term over its limit counts 0 as a whole, which no process knows before the shares are added: a
 * step runs as the gates stood, and runs again, with the same shares, where they stood wrong. That
 * is seldom, and all decide it by the same sums. */
#include <string.h>

#include "peers/peers.h"
#include "train/contrastive/step_graphs.h"

/* ---- whose rows ---- */

pnb__row_share pnb__step_row_share(const pnb__step_graphs *s)
{
    const size_t masked = s->n_masked, others = s->batch - s->n_masked;
    pnb__row_share share = {0};
    if (!s->shares_rows)
        return share;
    share.n_all = s->n_all * s->batch;
    share.begin[0] = s->first_micro * masked;
    share.n[0] = s->n_micro * masked;
    share.begin[1] = s->n_all * masked + s->first_micro * others;
    share.n[1] = s->n_micro * others;
    return share;
}

/* ---- rows ---- */

typedef pnb_status (*trade)(void *self, float *rows, const size_t *from, pnb_error *err);

/* Rows of one array between the processes. Those of a process lie in two blocks, masked originals
 * and the others; of masked sides in one. `in_one`: numbers in the place of a float. */
static pnb_status trade_rows(const pnb__step_graphs *s, int side, trade how, float *rows,
                             size_t in_one, pnb_error *err)
{
    const pnb__exchange *x = s->owner->exchange;
    const size_t first = side == NEGATIVE ? s->n_negatives : s->n_masked;
    const size_t widths[2] = {first * s->dim, (s->batch - s->n_masked) * s->dim};
    pnb_status status = PNB_OK;
    for (int block = 0; block < (side < MASKED_IMAGE ? 2 : 1) && status == PNB_OK; block++) {
        for (size_t p = 0; p <= x->n_ranks; p++)
            s->from[p] = pnb__step_first_micro(s, p) * widths[block] / in_one;
        if (widths[block] > 0)
            status = how(x->self, rows, s->from, err);
        rows += s->n_all * widths[block] / in_one;
    }
    return status;
}

/* Which rows of the teacher belong to the pairs of the step: all processes have all of its rows. */
static pnb_status gather_teacher(const pnb__step_graphs *s, pnb_error *err)
{
    const pnb__exchange *x = s->owner->exchange;
    pnb_status status = PNB_OK;
    for (size_t p = 0; p <= x->n_ranks; p++)
        s->from[p] = pnb__step_first_micro(s, p) * s->batch;
    for (int side = 0; side < 2 && s->owner->teacher != NULL && status == PNB_OK; side++)
        status = x->gather(x->self, (float *)(void *)s->teacher_row[side], s->from, err);
    return status;
}

/* Rounded rows go as they are kept, two numbers in the place of one: bytes are what is moved. */
pnb_status pnb__step_gather_rows(const pnb__step_graphs *s, pnb_error *err)
{
    pnb_status status = gather_teacher(s, err);
    for (int i = 0; i < N_SIDES * N_PARTS && status == PNB_OK; i++) {
        const side_arrays *a = &s->arrays[i / N_PARTS];
        uint16_t *rounded = a->rounded[i % N_PARTS];
        float *rows = rounded != NULL ? (float *)(void *)rounded : a->value[i % N_PARTS];
        if (pnb__step_has_part(s, i))
            status = trade_rows(s, i / N_PARTS, s->owner->exchange->gather, rows,
                                rounded != NULL ? 2 : 1, err);
    }
    return status;
}

/* ---- the loss ---- */

/* As the graph has them: of our rows, where those are not all. */
static pnb__step_loss_values read_values(const pnb__step_graphs *s)
{
    pnb__step_loss_values v = {0};
    const pnb__tensor *const unc[2] = {s->image_unc, s->text_unc};
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        v.term[i] = s->loss.term[i] == NULL ? 0 : pnb__read_scalar(s->loss.term[i]);
    for (int side = 0; side < 2; side++)
        v.unc[side] = unc[side] == NULL ? 0 : pnb__read_scalar(unc[side]);
    for (size_t i = 0; i < s->loss.n_gates; i++)
        v.gated[i] = pnb__read_scalar(s->loss.gates[i].share);
    v.total = pnb__read_scalar(s->loss.total);
    return v;
}

pnb__step_loss_values pnb__step_loss_values_of(const pnb__step_graphs *s)
{
    return s->shares_rows ? s->values : read_values(s);
}

/* The shares of all added up; the total is the sum of what the record has as terms. */
static pnb_status sum_values(pnb__step_graphs *s, pnb_error *err)
{
    s->values = read_values(s);
    pnb_status status = pnb__peers_sum(s->owner->exchange->ranks, &s->values,
                                       sizeof s->values / sizeof(double), true, NULL, err);
    s->values.total = 0;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        s->values.total += s->values.term[i];
    return status;
}

/* Gates as the sums want them; whether one stood otherwise. */
static bool move_gates(pnb__step_graphs *s)
{
    bool moved = false;
    for (size_t i = 0; i < s->loss.n_gates; i++) {
        const pnb__loss_gate *gate = &s->loss.gates[i];
        const bool closes = s->values.gated[i] > gate->limit;
        const double open = closes ? 0 : 1;
        if (closes == s->is_closed[i])
            continue;
        pnb__write_f64(gate->open, &open);
        s->is_closed[i] = closes;
        moved = true;
    }
    return moved;
}

pnb_status pnb__step_run_loss(pnb__step_graphs *s, pnb_error *err)
{
    pnb_status status;
    do {
        status = pnb__graph_run(s->loss_graph, err);
        if (status == PNB_OK && s->shares_rows)
            status = sum_values(s, err);
    } while (status == PNB_OK && s->shares_rows && move_gates(s));
    return status;
}

/* ---- gradients ---- */

/* Of our rows what the others' rows found. Only texts, and what stands beside them, are columns of
 * every loss; masked copies and residuals are columns of none. */
static pnb_status sum_row_grads(const pnb__step_graphs *s, pnb_error *err)
{
    const bool asks_images = pnb__loss_asks_images(&s->owner->opts->loss);
    pnb_status status = PNB_OK;
    for (int i = 0; i < N_SIDES * N_PARTS && status == PNB_OK; i++) {
        int side = i / N_PARTS;
        bool is_column = side == TEXT || side == NEGATIVE || (side == IMAGE && asks_images);
        if (is_column && i % N_PARTS != RESIDUAL && pnb__step_has_part(s, i))
            status = trade_rows(s, side, s->owner->exchange->sum_part,
                                s->arrays[side].d[i % N_PARTS], 1, err);
    }
    return status;
}

/* The scalars of the logits have the gradient of the whole loss in every process: it counts once.
 */
static pnb_status count_once(const pnb__step_graphs *s, pnb_error *err)
{
    const pnb__contrastive *c = s->owner;
    pnb__param *const scalars[] = {c->logit_scale, c->logit_bias};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(scalars) && c->exchange->rank > 0 && status == PNB_OK; i++) {
        const pnb__param *p = scalars[i];
        if (p != NULL && p->grad_store != NULL)
            status = s->kernels.mem_zero(c->ctx, p->grad_store,
                                         p->n * PNB__REAL_SIZE(s->kernels.real), err);
    }
    return status;
}

pnb_status pnb__step_settle_grads(const pnb__step_graphs *s, pnb_error *err)
{
    return s->shares_rows ? sum_row_grads(s, err) : count_once(s, err);
}
