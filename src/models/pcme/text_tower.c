/* The caption encoder of PCME (Chun et al. 2021, section 3.2.1; models/caption_encoder.py).
 *
 *     x = E[ids] (B,T,C),  h = GRU(x) at the last word (B,D), both directions
 *     mean = L2(LN(h + s(W p + b)))           p: local attention over the WORD VECTORS x
 *     log sigma = W' p' + b' + GRU'(x) at the last word
 * As released, the backward direction is read where it has seen the last word alone
 * (docs/numerics.md#pcme): the paper's figure shows a bi-GRU and says nothing of it; the weights
 * are trained so, and other outputs would not be theirs. */
#include "models/pcme/text_tower.h"

#include <math.h>

#define SIDE PNB__TEXT_SIDE

/* Xavier, as where no word vectors are given; those come from files into rows of `words`. */
static pnb__param *declare_words(pnb__weights *w, const pnb__pcme_config *c)
{
    double bound = sqrt(6.0 / (double)(c->vocab_size + c->word_dim));
    return pnb__declare_matrix(w, SIDE, PNB__PCME_WORDS, (size_t[]){c->vocab_size, c->word_dim},
                               PNB__INIT_UNIFORM, bound);
}

void pnb__pcme_declare_text(pnb__weights *w, const pnb__pcme_config *c)
{
    pnb__pcme_text *t = pnb__declare_tower(w, SIDE, sizeof *t);
    if (t == NULL)
        return;
    t->words = declare_words(w, c);
    pnb__pcme_declare_gru(w, SIDE, "text.rnn", c, &t->rnn);
    if (c->with_attention)
        pnb__pcme_declare_pie(w, SIDE, "text.pie_net", c->word_dim, c, &t->pie);
    if (!c->with_uncertainty)
        return;
    pnb__pcme_declare_log_std(w, SIDE, "text.uncertain_net", c->word_dim, c, &t->log_std);
    pnb__pcme_declare_gru(w, SIDE, "text.uncertain_net.rnn", c, &t->log_std_rnn);
}

pnb__pcme_embedding pnb__pcme_text_apply(pnb__graph *g, const pnb__pcme_text *t,
                                         const pnb__texts *texts, bool unit)
{
    pnb__pcme_embedding out = {.log_std = NULL};
    pnb__sequences s = {.x = pnb__gather(pnb__param_tensor(g, t->words), texts->ids),
                        .lengths = texts->lengths,
                        .last_rows = texts->last_rows};
    pnb__tensor *base = pnb__gru_read_last(g, &t->rnn, &s);
    const pnb__pie_head *pie = t->pie.attention.w1 != NULL ? &t->pie : NULL;
    pnb__pcme_mean(g, pie, base, s.x, s.lengths, unit, &out);
    if (t->log_std.attention.w1 == NULL)
        return out;
    pnb__tensor *side = pnb__gru_read_last(g, &t->log_std_rnn, &s);
    pnb__log_std spread = pnb__log_std_head_apply(g, &t->log_std, side, s.x, s.lengths);
    out.log_std = spread.log_std;
    out.log_std_weights = spread.weights;
    return out;
}

/* ---- calls of tower.h ---- */

size_t pnb__pcme_n_places(const pnb__config *c)
{
    (void)c;
    return PNB__PCME_N_PLACES;
}

pnb_status pnb__pcme_find_places(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                                 int32_t places[PNB__MAX_PLACES], pnb_error *err)
{
    (void)c;
    size_t length = n;
    while (length > 0 && ids[length - 1] == 0)
        length--;
    if (length == 0)
        return pnb__fail(err, PNB_ARG,
                         "caption %zu has no words: all of its ids are 0, the padding's", row);
    places[PNB__PCME_LENGTH] = (int32_t)length;
    places[PNB__PCME_LAST_ROW] = (int32_t)(row * n + length - 1);
    return PNB_OK;
}

pnb__dist pnb__pcme_build_text(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                               const pnb__tower_in *in, bool unit)
{
    (void)c;
    pnb__texts texts = {in->ids, in->places[PNB__PCME_LENGTH], in->places[PNB__PCME_LAST_ROW]};
    pnb__pcme_embedding e = pnb__pcme_text_apply(g, w->tower[SIDE], &texts, unit);
    return pnb__pcme_dist(&e);
}
