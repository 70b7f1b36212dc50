/* The caption encoder of PCME: word vectors, two GRUs, two heads. */
#ifndef PNB_MODELS_PCME_TEXT_TOWER_H
#define PNB_MODELS_PCME_TEXT_TOWER_H

#include "models/pcme/pcme_heads.h"

/* The name of `words` below. */
#define PNB__PCME_WORDS "text.embed.weight"

typedef struct pnb__pcme_text {
    pnb__param *words;         /* (V,C), row 0 is the padding's */
    pnb__gru_layer rnn;        /* both directions, D / 2 states each */
    pnb__pie_head pie;         /* w1 NULL: without attention */
    pnb__log_std_head log_std; /* w1 NULL: without uncertainty */
    pnb__gru_layer log_std_rnn;
} pnb__pcme_text;

/* Declares it and leaves it in w->tower[PNB__TEXT_SIDE]; names as the reference's behind "text.".
 */
void pnb__pcme_declare_text(pnb__weights *w, const pnb__pcme_config *c);

/* Captions: ids (B,T) int32, 0 behind the words; lengths (B) int32, each at least 1; last_rows (B)
 * int32, b*T + length - 1. The mean has L2 norm 1 if `unit`. */
typedef struct pnb__texts {
    pnb__tensor *ids, *lengths, *last_rows;
} pnb__texts;
pnb__pcme_embedding pnb__pcme_text_apply(pnb__graph *g, const pnb__pcme_text *t,
                                         const pnb__texts *texts, bool unit);

/* The calls of tower.h that need no configuration of the family: two places, which are the length
 * and last row of a caption. A caption is what stands before its trailing padding (id 0).
 * Errors  ARG (a caption without words) */
enum { PNB__PCME_LENGTH, PNB__PCME_LAST_ROW, PNB__PCME_N_PLACES };
size_t pnb__pcme_n_places(const pnb__config *c);
pnb_status pnb__pcme_find_places(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                                 int32_t places[PNB__MAX_PLACES], pnb_error *err);
pnb__dist pnb__pcme_build_text(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                               const pnb__tower_in *in, bool unit);

#endif
