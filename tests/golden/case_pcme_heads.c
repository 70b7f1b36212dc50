/* Cases of family pcme that are about the caption encoder, or about the heads over a given feature
 * map: what the towers declare gets the case's weights by its names, and the towers' own graph is
 * run in doubles. Which parts there are shows in the names, sizes in the shapes. */
#include <string.h>

#include "models/pcme/image_head.h"
#include "models/pcme/text_tower.h"
#include "models/weights/weights.h"
#include "tests/golden/golden.h"

typedef struct heads {
    golden_case *c;
    pnb_error *err;
    pnb__pcme_config config;
    pnb__weights weights;
    pnb__pcme_image_head image;
    pnb__graph *g;
    pnb__pcme_embedding out;
    pnb__tensor *features, *cot_mean, *cot_sigma;
} heads;

static size_t dim_of(const golden_case *c, const char *name, int axis)
{
    const pnb_array_view *view = golden_find(c, name);
    return view != NULL && axis < view->n_dims ? (size_t)view->shape[axis] : 0;
}

/* ---- weights ---- */

static void declare(heads *h, bool is_text)
{
    if (is_text)
        pnb__pcme_declare_text(&h->weights, &h->config);
    else
        pnb__pcme_declare_image_head(&h->weights, &h->config, &h->image);
}

/* "text.rnn.bias_hh_l0" is "rnn.bias_hh_l0" in a case, behind "param." or "grad.". */
static const char *case_name(char out[128], const char *before, const pnb__param *p)
{
    snprintf(out, 128, "%s%s", before, strchr(p->name, '.') + 1);
    return out;
}

static pnb_status fill(heads *h, pnb__weight *item)
{
    char name[128];
    size_t n = 0;
    double *values = golden_f64(h->c, case_name(name, "param.", &item->param), &n, h->err);
    pnb_status status = values == NULL ? h->err->status : PNB_OK;
    if (status == PNB_OK && n != item->param.n)
        status = pnb__fail(h->err, PNB_SHAPE, "%s has %zu values, the tower declares %zu", name, n,
                           item->param.n);
    if (status == PNB_OK)
        status = pnb__param_alloc(&item->param, &h->weights.kernels, n * sizeof *values, h->err);
    if (status == PNB_OK) {
        item->owned = true;
        status = pnb__param_write(&item->param, &h->weights.kernels, 0, n, values, h->err);
    }
    pnb__free(values);
    return status;
}

static pnb_status make_weights(heads *h, bool is_text)
{
    pnb__weights *w = &h->weights;
    pnb__arena_init(&w->arena, 4096);
    pnb__kernels_fill(&w->kernels, h->c->ctx, PNB__F64);
    declare(h, is_text); /* counts */
    w->items = pnb__alloc_zero(w->capacity + 1, sizeof *w->items);
    if (w->items == NULL)
        return pnb__fail_nomem(h->err, w->capacity * sizeof *w->items);
    declare(h, is_text);
    pnb_status status = w->failed ? pnb__fail_nomem(h->err, sizeof *w->items) : PNB_OK;
    for (size_t i = 0; i < w->n && status == PNB_OK; i++)
        status = fill(h, &w->items[i]);
    return status;
}

/* ---- inputs ---- */

static pnb__tensor *real_input(heads *h, const char *name, bool with_grad)
{
    const pnb_array_view *view = golden_find(h->c, name);
    size_t shape[PNB__DIMS];
    for (int i = 0; view != NULL && i < view->n_dims && i < PNB__DIMS; i++)
        shape[i] = (size_t)view->shape[i];
    if (view == NULL)
        return NULL;
    return with_grad ? pnb__input_with_grad(h->g, view->n_dims, shape)
                     : pnb__input(h->g, PNB__REAL, view->n_dims, shape);
}

static pnb_status write_real(heads *h, const char *name, pnb__tensor *t)
{
    double *values = t != NULL ? golden_f64(h->c, name, NULL, h->err) : NULL;
    if (values != NULL)
        pnb__write_f64(t, values);
    pnb__free(values);
    return t != NULL && values == NULL ? h->err->status : PNB_OK;
}

static pnb_status write_texts(heads *h, const pnb__texts *texts)
{
    size_t n_batch = dim_of(h->c, "ids", 0), n = dim_of(h->c, "ids", 1);
    int32_t *ids = golden_i32(h->c, "ids", NULL, h->err);
    int32_t *lengths = golden_i32(h->c, "lengths", NULL, h->err);
    int32_t *rows = pnb__alloc_zero(n_batch + 1, sizeof *rows);
    if (ids != NULL && lengths != NULL && rows != NULL) {
        for (size_t b = 0; b < n_batch; b++)
            rows[b] = (int32_t)(b * n) + lengths[b] - 1;
        pnb__write_i32(texts->ids, ids);
        pnb__write_i32(texts->lengths, lengths);
        pnb__write_i32(texts->last_rows, rows);
    } else if (h->err->status == PNB_OK) {
        pnb__fail_nomem(h->err, n_batch * sizeof *rows);
    }
    pnb__free(ids);
    pnb__free(lengths);
    pnb__free(rows);
    return h->err->status;
}

/* ---- running ---- */

static void give(heads *h, const char *name, const pnb__tensor *t)
{
    double *values = t != NULL ? pnb__alloc_array(pnb__n(t) + 1, sizeof *values) : NULL;
    if (values != NULL) {
        pnb__read_f64(t, values);
        golden_give(h->c, name, values, pnb__n(t));
    }
    pnb__free(values);
}

static void give_gradient(heads *h, const char *name, const pnb__tensor *t)
{
    double *values = pnb__alloc_array(pnb__n(t) + 1, sizeof *values);
    if (values != NULL && pnb__read_grad_f64(t, values))
        golden_give(h->c, name, values, pnb__n(t));
    pnb__free(values);
}

/* loss = sum(cot_mean * embedding) + sum(cot_sigma * log sigma) */
static pnb__tensor *loss_of(heads *h, pnb__tensor *mean)
{
    pnb__tensor *loss = pnb__sum(pnb__mul(mean, h->cot_mean), PNB__ALL_AXES);
    if (h->out.log_std == NULL || h->cot_sigma == NULL)
        return loss;
    return pnb__add(loss, pnb__sum(pnb__mul(h->out.log_std, h->cot_sigma), PNB__ALL_AXES));
}

/* (B,K,T) as the reference has them: (B,T,K) */
static pnb__tensor *attention_of(pnb__tensor *weights)
{
    return weights == NULL ? NULL : pnb__permute(weights, (const int[]){0, 2, 1});
}

typedef struct named {
    const char *name;
    pnb__tensor *t;
} named;

/* Plans what was built, writes by `write`, gives every output and gradient. */
static pnb_status finish(heads *h, const pnb__texts *texts)
{
    char name[128];
    pnb__tensor *mean = pnb__pcme_dist(&h->out).mean;
    h->cot_mean = real_input(h, "cot_mean", false);
    h->cot_sigma = real_input(h, "cot_sigma", false);
    const named outputs[] = {{"embedding", mean},
                             {"logsigma", h->out.log_std},
                             {"residual", h->out.residual},
                             {"attention", attention_of(h->out.weights)},
                             {"uncertainty_attention", attention_of(h->out.log_std_weights)}};
    for (size_t i = 0; i < PNB_COUNT(outputs); i++)
        if (outputs[i].t != NULL)
            pnb__keep(outputs[i].t);
    pnb_status status = pnb__graph_plan(h->g, loss_of(h, mean), h->err);
    if (status == PNB_OK)
        status = write_real(h, "cot_mean", h->cot_mean);
    if (status == PNB_OK)
        status = write_real(h, "cot_sigma", h->cot_sigma);
    if (status == PNB_OK)
        status = write_real(h, "features", h->features);
    if (status == PNB_OK && texts != NULL)
        status = write_texts(h, texts);
    if (status == PNB_OK)
        status = pnb__graph_run(h->g, h->err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < PNB_COUNT(outputs); i++)
        give(h, outputs[i].name, outputs[i].t);
    for (size_t i = 0; i < h->weights.n; i++) {
        pnb__param *p = &h->weights.items[i].param;
        give_gradient(h, case_name(name, "grad.", p), pnb__param_tensor(h->g, p));
    }
    if (h->features != NULL)
        give_gradient(h, "grad.features", h->features);
    return PNB_OK;
}

static pnb_status begin(heads *h, bool is_text)
{
    golden_case *c = h->c;
    h->config.n_embeddings = PNB_MAX(dim_of(c, "param.pie_net.attention.w_2.weight", 0), (size_t)1);
    h->config.with_attention = golden_find(c, "param.pie_net.fc.weight") != NULL;
    h->config.with_uncertainty = golden_find(c, "param.uncertain_net.fc.weight") != NULL;
    pnb_status status = pnb__pcme_config_check(&h->config, c->dir, h->err);
    if (status == PNB_OK)
        status = make_weights(h, is_text);
    if (status == PNB_OK)
        status = pnb__graph_create(&h->g, c->ctx, PNB__F64, true, h->err);
    return status;
}

static void end(heads *h)
{
    pnb__graph_free(h->g);
    pnb__weights_reset(&h->weights);
}

pnb_status golden_case_pcme_text(golden_case *c, pnb_error *err)
{
    heads h = {.c = c, .err = err};
    size_t n_batch = dim_of(c, "ids", 0), n = dim_of(c, "ids", 1);
    h.config.vocab_size = dim_of(c, "param.embed.weight", 0);
    h.config.word_dim = h.config.image_dim = dim_of(c, "param.embed.weight", 1);
    h.config.embed_dim = 2 * dim_of(c, "param.rnn.weight_hh_l0", 1);
    pnb_status status = begin(&h, true);
    if (status == PNB_OK) {
        pnb__texts texts = {pnb__input(h.g, PNB__INT32, 2, (size_t[]){n_batch, n}),
                            pnb__input(h.g, PNB__INT32, 1, &n_batch),
                            pnb__input(h.g, PNB__INT32, 1, &n_batch)};
        h.out = pnb__pcme_text_apply(h.g, h.weights.tower[PNB__TEXT_SIDE], &texts, true);
        status = finish(&h, &texts);
    }
    end(&h);
    return status;
}

pnb_status golden_case_pcme_image(golden_case *c, pnb_error *err)
{
    heads h = {.c = c, .err = err};
    h.config.vocab_size = h.config.word_dim = 2; /* of the other tower */
    h.config.image_dim = dim_of(c, "features", 1);
    h.config.embed_dim = dim_of(c, "param.fc.weight", 0);
    pnb_status status = begin(&h, false);
    if (status == PNB_OK) {
        h.features = real_input(&h, "features", true);
        h.out = pnb__pcme_image_head_apply(h.g, &h.image, pnb__pcme_positions_of(h.features), NULL,
                                           true);
        status = finish(&h, NULL);
    }
    end(&h);
    return status;
}
