/* Row 4: a GRU layer over sequences of word vectors, in one direction or both. */
#ifndef PNB_NN_GRU_H
#define PNB_NN_GRU_H

#include "tensor/graph.h"

/* Weights of one direction, as torch names them: weight_ih_l0 (3H,C), weight_hh_l0 (3H,H),
 * bias_ih_l0 (3H), bias_hh_l0 (3H); gates in the order r, z, n. */
typedef struct pnb__gru_direction {
    pnb__param *w_ih, *w_hh, *b_ih, *b_hh;
} pnb__gru_direction;

/* `back` reads from the last word to the first (names *_l0_reverse); all NULL: there is none. */
typedef struct pnb__gru_layer {
    pnb__gru_direction ahead, back;
} pnb__gru_layer;

/* Sequences as rows of a batch. */
typedef struct pnb__sequences {
    pnb__tensor *x;         /* (B,T,C) */
    pnb__tensor *lengths;   /* (B) int32 in [0,T], or NULL: all T */
    pnb__tensor *last_rows; /* (B) int32, b*T + length - 1; for pnb__gru_read_last */
} pnb__sequences;

/* The state after each position: (B,T,H), with two directions (B,T,2H), ahead first; 0 beyond a
 * length. */
pnb__tensor *pnb__gru_apply(pnb__graph *g, const pnb__gru_layer *layer, const pnb__sequences *s);

/* The same at the last position of each sequence alone: (B,H) or (B,2H). Ahead that is the state
 * after the whole sequence; back it is the state after one step from 0, for the last word is the
 * first that this direction reads (PCME, caption_encoder.py). Only that step is computed: w_hh of
 * `back` has no part in it and gets the gradient 0. Every length is at least 1. */
pnb__tensor *pnb__gru_read_last(pnb__graph *g, const pnb__gru_layer *layer,
                                const pnb__sequences *s);

#endif
