/* The loss of pairs that training does not see. They have no latent of their own: what a pair is
 * worth is how well either row's latent explains both, which is what a latent is for once the other
 * row is not there. */
#include <math.h>
#include <string.h>

#include "adapt/gp/pair_terms.h"
#include "adapt/grove/grove.h"

enum { MOST_PAIRS = 1024 };

pnb_status pnb__grove_held_out_open(pnb__grove_held_out *out, const pnb_adapter_data *data,
                                    size_t q, const pnb_adapter_opts *opts, pnb_error *err)
{
    pnb_status status;
    *out = (pnb__grove_held_out){
        .job = {.side = {{.set = data->val_images, .n = data->val_images->n, .what = "image"},
                         {.set = data->val_texts, .n = data->val_texts->n, .what = "text"}},
                .truth = data->val_truth}};
    PNB_TRY(pnb__grove_list(&out->pairs, &out->job, q, opts, err));
    out->n = PNB_MIN(out->pairs.n, (size_t)MOST_PAIRS);
    status = pnb__grove_sample(&out->sample, out->pairs.n, out->n, 0, err);
done:
    if (status != PNB_OK) {
        pnb__error_prefix(err, "held-out rows");
        pnb__grove_held_out_reset(out);
    }
    return status;
}

void pnb__grove_held_out_reset(pnb__grove_held_out *held)
{
    pnb__grove_pairs_reset(&held->pairs);
    pnb__free(held->sample);
    *held = (pnb__grove_held_out){.n = 0};
}

/* Room for a chunk: of a side y, mean, var and two slopes nobody reads (D,n), and x (n,Q). */
typedef struct chunk {
    double *room, *side[PNB_N_ADAPTER_SIDES], *dnoise, *x;
    pnb__grove_reading *reading[PNB_N_ADAPTER_SIDES];
} chunk;

static pnb_status open_chunk(chunk *c, const pnb__grove *g, pnb_error *err)
{
    size_t n = PNB__GROVE_CHUNK, sizes[PNB_N_ADAPTER_SIDES], most = 1;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        sizes[s] = 5 * n * g->part[s].d;
        most = PNB_MAX(most, g->part[s].d);
    }
    c->room = pnb__alloc_array(sizes[0] + sizes[1] + n * g->q + most, sizeof *c->room);
    if (c->room == NULL)
        return pnb__fail_nomem(err, (sizes[0] + sizes[1]) * sizeof *c->room);
    c->side[0] = c->room;
    c->side[1] = c->room + sizes[0];
    c->x = c->side[1] + sizes[1];
    c->dnoise = c->x + n * g->q;
    return PNB_OK;
}

/* Sum over n pairs at the latents of one side's rows. */
static pnb_status chunk_loss(const chunk *c, const pnb__grove *g, const pnb__grove_held_out *held,
                             int by, size_t begin, size_t n, const pnb__grove_loss_opts *loss,
                             double *out, pnb_error *err)
{
    pnb__pair_side terms[PNB_N_ADAPTER_SIDES];
    const uint32_t *pair = held->sample + begin;
    pnb_status status = pnb__grove_place(c->reading[by], &held->pairs, pair, n, c->x, err);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        size_t dn = g->part[s].d * n;
        double *y = c->side[s];
        pnb__grove_columns(g, &held->pairs, s, pair, n, y);
        status = pnb__grove_say(c->reading[s], c->x, n, y + dn, y + 2 * dn, err);
        terms[s] = (pnb__pair_side){.n_outputs = g->part[s].d,
                                    .n_factors = g->part[s].d,
                                    .y = y,
                                    .mean = y + dn,
                                    .var = y + 2 * dn,
                                    .noise = g->part[s].number[PNB__GROVE_NOISE],
                                    .n_noises = pnb__grove_n_kernels(g, s),
                                    .dmean = y + 3 * dn,
                                    .dvar = y + 4 * dn,
                                    .dnoise = c->dnoise};
    }
    if (status != PNB_OK)
        return status;
    pnb__pair_loss_terms value = pnb__pair_terms(terms, n, loss);
    *out += (double)n * (value.fit + value.align);
    return PNB_OK;
}

pnb_status pnb__grove_held_out_loss(const pnb__grove_held_out *held, pnb__grove *g,
                                    const pnb_ctx *ctx, const pnb__grove_pairs *pairs,
                                    const pnb__grove_loss_opts *loss, double *out, pnb_error *err)
{
    chunk c = {0};
    double sum = 0;
    pnb_status status;
    PNB_TRY(open_chunk(&c, g, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(pnb__grove_recognise(g, ctx, pairs, s, err));
        PNB_TRY(pnb__grove_reader_make(g, s, ctx, err));
        PNB_TRY(pnb__grove_reading_open(&c.reading[s], g, s, err));
    }
    for (int by = 0; by < PNB_N_ADAPTER_SIDES; by++)
        for (size_t begin = 0; begin < held->n; begin += PNB__GROVE_CHUNK)
            PNB_TRY(chunk_loss(&c, g, held, by, begin,
                               PNB_MIN(held->n - begin, (size_t)PNB__GROVE_CHUNK), loss, &sum,
                               err));
    *out = sum / (double)(2 * held->n);
done:
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__grove_reading_free(c.reading[s]);
    pnb__free(c.room);
    return status;
}
