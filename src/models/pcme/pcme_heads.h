/* What the two towers of PCME share: the heads' parameters under the names the reference has behind
 * "img_enc." and "txt_enc.", and what a tower ends in. */
#ifndef PNB_MODELS_PCME_PCME_HEADS_H
#define PNB_MODELS_PCME_PCME_HEADS_H

#include "models/pcme/pcme_config.h"
#include "models/tower.h"
#include "nn/gru.h"
#include "nn/pie_head.h"

/* What a tower ends in. log_std is the logarithm of the deviation, as the reference's `logsigma`;
 * pnb__pcme_dist makes log_var = 2 log_std of it. What is not there is NULL. */
typedef struct pnb__pcme_embedding {
    pnb__tensor *mean;                      /* (B,K,D) */
    pnb__tensor *log_std;                   /* (B,D) */
    pnb__tensor *weights, *log_std_weights; /* of the two attentions: (B,K,T), (B,1,T) */
    pnb__tensor *residual;                  /* (B,K,D), what attention adds to the mean */
} pnb__pcme_embedding;

/* As embedding sets and losses take it: mean (B, K D), K embeddings beside each other; log_var
 * (B,D). */
pnb__dist pnb__pcme_dist(const pnb__pcme_embedding *e);

/* base, or the PIE head over it: fills mean, weights, residual. h NULL: VSE's plain embedding. */
void pnb__pcme_mean(pnb__graph *g, const pnb__pie_head *h, pnb__tensor *base, pnb__tensor *x,
                    pnb__tensor *lengths, bool unit, pnb__pcme_embedding *out);

/* Parameters <prefix>.attention.w_1.weight, ..., of heads over vectors of `width`. */
void pnb__pcme_declare_pie(pnb__weights *w, pnb__side side, const char *prefix, size_t width,
                           const pnb__pcme_config *c, pnb__pie_head *out);
void pnb__pcme_declare_log_std(pnb__weights *w, pnb__side side, const char *prefix, size_t width,
                               const pnb__pcme_config *c, pnb__log_std_head *out);
/* <prefix>.weight (rows, columns) and .bias, as torch starts a Linear: U(+-columns^-1/2). */
void pnb__pcme_declare_linear(pnb__weights *w, pnb__side side, const char *prefix,
                              const size_t shape[2], pnb__param *out[2]);
/* <prefix>.weight_ih_l0, ..., of both directions with D / 2 states each: U(+-(D/2)^-1/2). */
void pnb__pcme_declare_gru(pnb__weights *w, pnb__side side, const char *prefix,
                           const pnb__pcme_config *c, pnb__gru_layer *out);

/* What the arrays of a released file say of its configuration (pcme_shapes.c); NULL: it is none. */
json_t *pnb__pcme_config_of(const pnb__weight_file *file);

/* Names of the arrays in the released files: "img_enc.cnn.*", "img_enc.fc.*", "txt_enc.rnn.*", ...
 * behind whose prefixes the names are our own. */
extern const pnb__key_mapping_table pnb__pcme_image_keys, pnb__pcme_text_keys;
/* Without uncertainty: the reference's text encoder has its uncertain_net all the same. */
extern const pnb__key_mapping_table pnb__pcme_point_text_keys;

#endif
