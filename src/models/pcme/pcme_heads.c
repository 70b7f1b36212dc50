/* Heads of PCME: their names, how the reference starts them, and the end of a tower.
 *
 * Initialisation is that of pie_model.py and uncertainty_module.py, fan-in m and fan-out n:
 *     attention, fc of both heads   U(+-sqrt(6 / (m + n))) (Xavier), biases 0
 *     other Linears                 torch's default U(+-m^-1/2), bias alike
 *     GRU                           torch's default U(+-H^-1/2), biases alike
 * image_encoder.py defines a Xavier start for its fc too, and never calls it. */
#include "models/pcme/pcme_heads.h"

#include <math.h>
#include <stdio.h>

/* "<prefix>.<name>" */
static const char *joined(char out[96], const char *prefix, const char *name)
{
    snprintf(out, 96, "%s.%s", prefix, name);
    return out;
}

static pnb__param *matrix(pnb__weights *w, pnb__side side, const char *name, size_t rows,
                          size_t columns, double bound)
{
    return pnb__declare_matrix(w, side, name, (size_t[]){rows, columns}, PNB__INIT_UNIFORM, bound);
}

static pnb__param *xavier(pnb__weights *w, pnb__side side, const char *name, size_t rows,
                          size_t columns)
{
    return matrix(w, side, name, rows, columns, sqrt(6.0 / (double)(rows + columns)));
}

static pnb__param *constant(pnb__weights *w, pnb__side side, const char *name, size_t n,
                            double value)
{
    return pnb__declare_vector(w, side, name, n, PNB__INIT_CONSTANT, value);
}

/* w1 (C/2,C), w2 (K,C/2), no biases */
static void declare_attention(pnb__weights *w, pnb__side side, const char *prefix, size_t width,
                              size_t n_heads, pnb__attention_pool *out)
{
    char name[96];
    size_t hidden = width / 2;
    out->w1 = xavier(w, side, joined(name, prefix, "attention.w_1.weight"), hidden, width);
    out->w2 = xavier(w, side, joined(name, prefix, "attention.w_2.weight"), n_heads, hidden);
}

void pnb__pcme_declare_pie(pnb__weights *w, pnb__side side, const char *prefix, size_t width,
                           const pnb__pcme_config *c, pnb__pie_head *out)
{
    char name[96];
    size_t dim = c->embed_dim;
    declare_attention(w, side, prefix, width, c->n_embeddings, &out->attention);
    out->fc_w = xavier(w, side, joined(name, prefix, "fc.weight"), dim, width);
    out->fc_b = constant(w, side, joined(name, prefix, "fc.bias"), dim, 0);
    out->ln_w = constant(w, side, joined(name, prefix, "layer_norm.weight"), dim, 1);
    out->ln_b = constant(w, side, joined(name, prefix, "layer_norm.bias"), dim, 0);
}

void pnb__pcme_declare_log_std(pnb__weights *w, pnb__side side, const char *prefix, size_t width,
                               const pnb__pcme_config *c, pnb__log_std_head *out)
{
    char name[96];
    declare_attention(w, side, prefix, width, 1, &out->attention);
    out->fc_w = xavier(w, side, joined(name, prefix, "fc.weight"), c->embed_dim, width);
    out->fc_b = constant(w, side, joined(name, prefix, "fc.bias"), c->embed_dim, c->init_log_std);
}

void pnb__pcme_declare_linear(pnb__weights *w, pnb__side side, const char *prefix,
                              const size_t shape[2], pnb__param *out[2])
{
    char name[96];
    double bound = 1 / sqrt((double)shape[1]);
    out[0] = matrix(w, side, joined(name, prefix, "weight"), shape[0], shape[1], bound);
    out[1] = pnb__declare_vector(w, side, joined(name, prefix, "bias"), shape[0], PNB__INIT_UNIFORM,
                                 bound);
}

/* torch.nn.GRU: three gates of H states, W_ih (3H,C) over words, W_hh (3H,H) over states, a bias of
 * each; all start alike, U(+-H^-1/2). */
static void declare_direction(pnb__weights *w, pnb__side side, const char *prefix,
                              const char *suffix, const pnb__pcme_config *c,
                              pnb__gru_direction *out)
{
    char name[96];
    size_t width = c->embed_dim / 2;
    double bound = 1 / sqrt((double)width);
#define NAMED(what) (snprintf(name, sizeof name, "%s." what "_l0%s", prefix, suffix), name)
    out->w_ih = matrix(w, side, NAMED("weight_ih"), 3 * width, c->word_dim, bound);
    out->w_hh = matrix(w, side, NAMED("weight_hh"), 3 * width, width, bound);
    out->b_ih = pnb__declare_vector(w, side, NAMED("bias_ih"), 3 * width, PNB__INIT_UNIFORM, bound);
    out->b_hh = pnb__declare_vector(w, side, NAMED("bias_hh"), 3 * width, PNB__INIT_UNIFORM, bound);
#undef NAMED
}

void pnb__pcme_declare_gru(pnb__weights *w, pnb__side side, const char *prefix,
                           const pnb__pcme_config *c, pnb__gru_layer *out)
{
    declare_direction(w, side, prefix, "", c, &out->ahead);
    declare_direction(w, side, prefix, "_reverse", c, &out->back);
}

/* ---- the end of a tower ---- */

/* (B,K,D): LN(base + residual_k), or base itself as the one embedding of VSE. */
void pnb__pcme_mean(pnb__graph *g, const pnb__pie_head *h, pnb__tensor *base, pnb__tensor *x,
                    pnb__tensor *lengths, bool unit, pnb__pcme_embedding *out)
{
    size_t shape[3] = {pnb__dim(base, 0), 1, pnb__dim(base, 1)};
    if (h == NULL) {
        out->mean = pnb__reshape(pnb__unit_rows(base, unit), 3, shape);
        return;
    }
    pnb__pie pie = pnb__pie_head_apply(g, h, base, x, lengths, unit);
    out->mean = pie.mean;
    out->residual = pie.residual;
    out->weights = pie.weights;
}

/* The boundary: from here on a spread is log sigma^2. */
pnb__dist pnb__pcme_dist(const pnb__pcme_embedding *e)
{
    size_t k = pnb__dim(e->mean, 1);
    pnb__dist out = {.n_embeddings = k};
    out.mean = pnb__reshape(e->mean, 2, (size_t[]){pnb__dim(e->mean, 0), k * pnb__dim(e->mean, 2)});
    if (e->residual != NULL)
        out.residual = pnb__reshape(e->residual, 2,
                                    (size_t[]){pnb__dim(e->mean, 0), k * pnb__dim(e->mean, 2)});
    if (e->log_std != NULL)
        out.log_var = pnb__log_var_of_log_std(e->log_std);
    return out;
}

/* ---- names in files ---- */

static const pnb__key_rule image_rules[] = {{"visual.*", "img_enc.*", PNB__KEY_WHOLE}};
static const pnb__key_rule text_rules[] = {{"text.*", "txt_enc.*", PNB__KEY_WHOLE}};
static const pnb__key_rule point_text_rules[] = {{NULL, "txt_enc.uncertain_net.*", PNB__KEY_WHOLE},
                                                 {"text.*", "txt_enc.*", PNB__KEY_WHOLE}};
const pnb__key_mapping_table pnb__pcme_image_keys = {"PCME", image_rules, PNB_COUNT(image_rules)};
const pnb__key_mapping_table pnb__pcme_text_keys = {"PCME", text_rules, PNB_COUNT(text_rules)};
const pnb__key_mapping_table pnb__pcme_point_text_keys = {"PCME", point_text_rules,
                                                          PNB_COUNT(point_text_rules)};
