/* A GRU layer: the products with the words, all positions at once, then the recurrence.
 *
 *   gx = x W_ih^T + b_ih,  h_t = GRU(gx_t, h_{t-1}),  two directions side by side
 * torch.nn.GRU of one layer with batch_first, whose padded output pad_packed_sequence gives. */
#include "nn/gru.h"

static pnb__tensor *gates_of(pnb__graph *g, const pnb__gru_direction *d, pnb__tensor *x)
{
    pnb__linear_opts opts = {.bias = pnb__param_tensor(g, d->b_ih), .act = PNB__IDENTITY};
    return pnb__linear(x, pnb__param_tensor(g, d->w_ih), &opts);
}

static pnb__tensor *run_direction(pnb__graph *g, const pnb__gru_direction *d, pnb__tensor *x,
                                  pnb__tensor *lengths, pnb__gru_opts opts)
{
    return pnb__gru(gates_of(g, d, x), pnb__param_tensor(g, d->w_hh), pnb__param_tensor(g, d->b_hh),
                    lengths, &opts);
}

static bool has_back(const pnb__gru_layer *layer)
{
    return layer->back.w_ih != NULL;
}

pnb__tensor *pnb__gru_apply(pnb__graph *g, const pnb__gru_layer *layer, const pnb__sequences *s)
{
    pnb__gru_opts opts = {.reverse = false};
    pnb__tensor *parts[2] = {run_direction(g, &layer->ahead, s->x, s->lengths, opts)};
    if (!has_back(layer))
        return parts[0];
    opts.reverse = true;
    parts[1] = run_direction(g, &layer->back, s->x, s->lengths, opts);
    return pnb__concat(parts, 2, 2);
}

/* The last words of all sequences (B,1,C): a batch of sequences of one word. */
static pnb__tensor *last_words(const pnb__sequences *s)
{
    size_t n_batch = pnb__dim(s->x, 0), n = pnb__dim(s->x, 1), width = pnb__dim(s->x, 2);
    pnb__tensor *rows = pnb__reshape(s->x, 2, (size_t[]){n_batch * n, width});
    return pnb__reshape(pnb__gather(rows, s->last_rows), 3, (size_t[]){n_batch, 1, width});
}

pnb__tensor *pnb__gru_read_last(pnb__graph *g, const pnb__gru_layer *layer, const pnb__sequences *s)
{
    const pnb__gru_opts opts = {.last = true};
    pnb__tensor *parts[2] = {run_direction(g, &layer->ahead, s->x, s->lengths, opts)};
    if (!has_back(layer))
        return parts[0];
    parts[1] = run_direction(g, &layer->back, last_words(s), NULL, opts);
    return pnb__concat(parts, 2, 1);
}
