/* Heads and losses in doubles, from the arrays that an adapter was saved with. */
#ifndef TESTS_ADAPT_HEADS_REFERENCE_H
#define TESTS_ADAPT_HEADS_REFERENCE_H

#include "tests/adapt/heads/world.h"

#include "penumbra/safetensors.h"

enum { REF_MAX = 4096 }; /* numbers of a batch */

static inline const pnb_array_view *array_of(const pnb_safetensors *file, const char *name)
{
    const pnb_array_view *v = pnb_safetensors_find(file, name);
    if (v == NULL)
        fail_msg("no array %s", name);
    return v;
}

static inline double scalar_of(const pnb_safetensors *file, const char *name)
{
    return (double)*(const float *)array_of(file, name)->data;
}

/* One row through <name>.0, .1, ...: ReLU between. x (in) is changed into out; returns its width.
 */
static inline size_t run_head(const pnb_safetensors *file, const char *name, size_t n_layers,
                              double *x)
{
    double y[1024];
    size_t out = 0;
    for (size_t i = 0; i < n_layers; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s.%zu.weight", name, i);
        const pnb_array_view *w = array_of(file, full);
        snprintf(full, sizeof full, "%s.%zu.bias", name, i);
        const float *b = array_of(file, full)->data, *matrix = w->data;
        size_t in = (size_t)w->shape[1];
        out = (size_t)w->shape[0];
        for (size_t o = 0; o < out; o++) {
            y[o] = (double)b[o];
            for (size_t k = 0; k < in; k++)
                y[o] += (double)matrix[o * in + k] * x[k];
            if (i + 1 < n_layers && y[o] < 0)
                y[o] = 0;
        }
        memcpy(x, y, out * sizeof *x);
    }
    return out;
}

static inline void load_row(const pnb_embeddings *set, size_t row, bool is_unit, double *x)
{
    double square = 0;
    for (size_t d = 0; d < set->dim; d++) {
        x[d] = (double)set->mean[row * set->dim + d];
        square += x[d] * x[d];
    }
    for (size_t d = 0; d < set->dim; d++)
        x[d] /= is_unit ? sqrt(square) : 1;
}

static inline double dot(const double *a, const double *b)
{
    double sum = 0;
    for (size_t d = 0; d < HEADS_DIM; d++)
        sum += a[d] * b[d];
    return sum;
}

/* Mean cross entropy of rows and of columns of S (n,n), matches on the diagonal. */
static inline double info_nce(const double *s, size_t n)
{
    double sum = 0;
    for (int way = 0; way < 2; way++)
        for (size_t i = 0; i < n; i++) {
            double most = -INFINITY, all = 0;
            for (size_t j = 0; j < n; j++)
                most = fmax(most, way ? s[j * n + i] : s[i * n + j]);
            for (size_t j = 0; j < n; j++)
                all += exp((way ? s[j * n + i] : s[i * n + j]) - most);
            sum += most + log(all) - s[i * n + i];
        }
    return sum / (2 * (double)n);
}

/* SigLIP's of scores whose mean is taken from them, with a bias. */
static inline double siglip(const double *s, size_t n, double bias)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n * n; i++)
        mean += s[i] / (double)(n * n);
    for (size_t i = 0; i < n * n; i++) {
        double z = (s[i] - mean + bias) * (i / n == i % n ? 1 : -1);
        sum += z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
    }
    return sum / (double)n;
}

/* An adapter that was trained for a few steps and validated on what it learned from: val_loss is
 * that of the very weights that were kept, over all pairs of the truth, in any order. Saved in
 * `dir`. */
static inline pnb_safetensors *still(pnb_ctx *ctx, const char *method, const heads_world *w,
                                     pnb_adapter_opts o, const char *dir, pnb_adapter **adapter)
{
    pnb_adapter_data data = data_of(w);
    pnb_safetensors *file = NULL;
    pnb_error err = PNB_ERROR_INIT;
    data.val_images = w->images;
    data.val_texts = w->texts;
    data.val_truth = w->truth;
    o.lr = isnan(o.lr) ? 0.01 : o.lr;
    o.steps = 25;
    o.hidden = 16;
    o.batch_size = (int64_t)w->truth->n_pairs;
    *adapter = fit_ok(ctx, method, &data, &o);
    assert_true(figure_of(*adapter, "best_step") > 1); /* weights and scales have moved */
    assert_ok(pnb_adapter_save(*adapter, dir, &err), &err);
    char *path = pnb__path_join(dir, "model.safetensors");
    assert_ok(pnb_safetensors_open(&file, path, &err), &err);
    pnb__free(path);
    return file;
}

/* One caption a picture, that of its leaf: no row of a batch is there twice. */
static inline heads_world make_single_world(size_t n, double text_length)
{
    heads_world w = make_heads_world(n, 1, text_length);
    int64_t *pairs = pnb__alloc_array(2 * n, sizeof *pairs);
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        pairs[2 * i] = (int64_t)i;
        pairs[2 * i + 1] = (int64_t)(n + i);
    }
    pnb_truth_free(w.truth);
    assert_ok(pnb_truth_create_pairs(&w.truth, n, N_LEVELS * n, pairs, n, &err), &err);
    pnb__free(pairs);
    return w;
}

/* A side of pair i of such a world: its row, and what a head of four layers makes of it. */
static inline void head_row(const pnb_safetensors *file, const heads_world *w, int side, size_t i,
                            bool is_unit, const char *head, double *row, double *out)
{
    char name[64];
    load_row(side == 0 ? w->images : w->texts, side == 0 ? i : w->n + i, is_unit, row);
    memcpy(out, row, HEADS_DIM * sizeof *out);
    snprintf(name, sizeof name, "%s_%s", side == 0 ? "image" : "text", head);
    assert_int_equal(run_head(file, name, 4, out), HEADS_DIM);
}

static inline double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* -1/2 mean(1 + l - m^2 - e^l) */
static inline double divergence(const double *mean, const double *log_var, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum -= 0.5 * (1 + log_var[i] - mean[i] * mean[i] - exp(log_var[i]));
    return sum / (double)n;
}

static inline void require_loss(const pnb_adapter *a, double wanted, const char *what)
{
    double found = figure_of(a, "val_loss");
    if (!(fabs(found - wanted) <= 2e-5 * fmax(1, fabs(wanted))))
        fail_msg("%s: loss %.9g, wanted %.9g", what, found, wanted);
}

static int heads_setup(void **state)
{
    *state = make_ctx();
    return 0;
}

static int heads_teardown(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

#endif
