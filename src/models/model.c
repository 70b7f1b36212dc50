/* A model as an object: what it says of itself, saving it, and what training does with it. Opening
 * is model_open.c's, encoding model_encode.c's; what the towers are, their family's (tower.h). The
 * model owns its configuration as text, its weights, and the towers that it encodes with itself;
 * threads that encode at once bring towers of their own (src/encode/worker.c). */
#include "models/model.h"

#include <math.h>
#include <string.h>

#include "models/weights/quantized_weights.h"

/* Everything that may fail later frees it as it is. */
pnb_status pnb__model_create(pnb_model **out, const pnb_ctx *ctx, pnb_error *err)
{
    *out = pnb__alloc_zero(1, sizeof **out);
    if (*out == NULL)
        return pnb__fail_nomem(err, sizeof **out);
    (*out)->ctx = ctx;
    return PNB_OK;
}

void pnb_model_free(pnb_model *m)
{
    if (m == NULL)
        return;
    pnb__towers_reset(&m->own);
    pnb__weights_reset(&m->weights);
    pnb__free(m->config_text);
    pnb__free(m);
}

/* logit = a cos + b with a = exp(logit_scale): what is stored is the logarithm, so that training
 * keeps a positive. 1 and 0 in a pair without these numbers. */
static pnb_status read_logit(pnb_model *m, pnb_error *err)
{
    const pnb__param *const params[] = {m->weights.logit_scale, m->weights.logit_bias};
    double values[PNB_COUNT(params)] = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(params) && status == PNB_OK; i++)
        if (params[i] != NULL)
            status = pnb__param_read(params[i], &m->weights.kernels, 0, 1, &values[i], err);
    m->info.logit_scale = exp(values[0]);
    m->info.logit_bias = values[1];
    m->info.match_a = m->info.match_b = NAN;
    /* csd = 2 - 2 S of unit means, S the similarity that a and b are told for: -a csd + b is
     * 2a S + b - 2a */
    if (pnb__family_of(&m->config)->scale_is_distance) {
        m->info.logit_bias -= 2 * m->info.logit_scale;
        m->info.logit_scale *= 2;
    }
    if (pnb__family_of(&m->config)->scale_is_match) { /* points of it have no logits at all */
        bool has = m->info.is_probabilistic;
        m->info.match_a = has ? m->info.logit_scale : (double)NAN;
        m->info.match_b = has ? m->info.logit_bias : (double)NAN;
        m->info.logit_scale = m->info.logit_bias = NAN;
    }
    return status;
}

/* Known as soon as the weights are: scalars of the logits are among them. */
pnb_status pnb__model_fill_info(pnb_model *m, pnb_error *err)
{
    pnb_model_info *info = &m->info;
    *info = (pnb_model_info){.has_logit_bias = m->weights.logit_bias != NULL};
    pnb__describe_towers(info, &m->config, &m->weights.layout);
    for (size_t i = 0; i < m->weights.n; i++)
        info->n_params += m->weights.items[i].param.n;
    info->weight_bytes = pnb__quantized_total_bytes(&m->weights);
    info->weights_stored = pnb__quantized_describe(&m->weights);
    return read_logit(m, err);
}

/* Under the names and in the types the model came in. Each file appears whole or not at all; a
 * failure between the two leaves a model that was there before with its old configuration. */
pnb_status pnb_model_save(const pnb_model *m, const char *dir, pnb_error *err)
{
    pnb_status status = pnb__make_dirs(dir, err);
    if (status != PNB_OK)
        return status;
    char *weights = pnb__path_join(dir, "model.safetensors");
    char *config = pnb__path_join(dir, "config.json");
    if (weights == NULL || config == NULL)
        status = pnb__fail_nomem(err, 0);
    if (status == PNB_OK)
        status = pnb__weights_save(&m->weights, weights, err);
    if (status == PNB_OK)
        status = pnb__write_file(config, m->config_text, strlen(m->config_text), err);
    pnb__free(weights);
    pnb__free(config);
    return status;
}

const pnb_model_info *pnb_model_get_info(const pnb_model *m)
{
    return &m->info;
}

const char *pnb_model_config_text(const pnb_model *m)
{
    return m->config_text;
}

bool pnb_model_is_dir(const char *dir)
{
    char *config = NULL;
    bool found = pnb__path_is_dir(dir) &&
                 ((pnb__model_find_config(&config, dir, NULL) == PNB_OK && config != NULL) ||
                  pnb__weight_file_exists(dir));
    pnb__free(config);
    return found;
}

const char *pnb_model_weights_path(const pnb_model *m)
{
    return m->weights.file.path != NULL ? m->weights.file.path : "";
}

/* Of the file's bytes, not of the values: the same numbers in another layout are another model to
 * embedding sets, which is why commands keep the hash beside the weights (src/encode). */
pnb_status pnb_model_weights_sha256(pnb_model *m, const char **hex, pnb_error *err)
{
    *hex = m->sha256;
    if (m->sha256[0] != '\0' || pnb__weight_file_count(&m->weights.file) == 0)
        return PNB_OK;
    return pnb__weight_file_sha256(&m->weights.file, m->sha256, err);
}

/* ---- for training ---- */

size_t pnb__model_n_params(const pnb_model *m)
{
    return m->weights.n;
}

pnb__param *pnb__model_param(pnb_model *m, size_t i)
{
    return &m->weights.items[i].param;
}

/* A walk over some hundred names: asked at the start of a training, not in a step. */
pnb__param *pnb__model_find_param(pnb_model *m, const char *name)
{
    for (size_t i = 0; i < m->weights.n; i++)
        if (strcmp(m->weights.items[i].param.name, name) == 0)
            return &m->weights.items[i].param;
    return NULL;
}

/* What contrastive training needs beyond towers: masks of patches and tokens, and losses of points
 * or Gaussians (loss.c). Both are ProLIP's. */
pnb_status pnb__model_make_trainable(pnb_model *m, pnb_error *err)
{
    const pnb__config *c = &m->config;
    const pnb__family_calls *family = pnb__family_of(c);
    if (!c->vision.present || !c->text.present || !family->trains)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "training wants a ProLIP model, this is %s%s; `penumbra convert DIR --to "
                         "prolip --out NEW` makes one that starts from it",
                         family->name,
                         !c->vision.present || !c->text.present ? " with one tower" : "");
    return pnb__weights_make_owned(&m->weights, err);
}

/* The hash is of a file that this model is not any more; values may have become infinite. */
pnb_status pnb__model_weights_changed(pnb_model *m, pnb_error *err)
{
    m->sha256[0] = '\0';
    m->checked[PNB__IMAGE_SIDE] = m->checked[PNB__TEXT_SIDE] = false;
    return read_logit(m, err);
}

/* Training builds towers into a graph of its own, with the losses behind them. */
pnb__dist pnb__model_build(pnb_model *m, pnb__side side, pnb__graph *g, const pnb__tower_in *in,
                           bool unit)
{
    return pnb__tower_of(&m->config, side)->build(&m->weights, &m->config, g, in, unit);
}

/* A list that is shorter than the table would give words the rows of others, and nobody would see
 * it: ids are in range. */
pnb_status pnb__model_check_vocabulary(const pnb_model *m, size_t n_ids, pnb_error *err)
{
    size_t rows = m->config.vocab_size;
    if (n_ids > rows)
        return pnb__fail(err, PNB_SHAPE,
                         "the tokenizer has ids up to %zu, the model knows %zu: it belongs to "
                         "another model",
                         n_ids - 1, rows);
    if (n_ids < rows && pnb__family_of(&m->config)->rows_are_words)
        return pnb__fail(err, PNB_SHAPE,
                         "the vocabulary has %zu words, the model %zu, a row each: it belongs to "
                         "another model",
                         n_ids, rows);
    return PNB_OK;
}

const pnb_ctx *pnb__model_ctx(const pnb_model *m)
{
    return m->ctx;
}

/* Floats, but for checks of gradients and golden cases. */
pnb__real pnb__model_real(const pnb_model *m)
{
    return m->weights.kernels.real;
}
