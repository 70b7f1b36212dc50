/* Embedding sets for the tests of adapters: random rows around a mean, with a chain. */
#ifndef TESTS_ADAPT_WORLD_H
#define TESTS_ADAPT_WORLD_H

#include "tests/io/scratch.h"

#include <math.h>
#include <unistd.h>

#include "penumbra/adapt.h"
#include "penumbra/prob.h"

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define TWOS "2222222222222222222222222222222222222222222222222222222222222222"

static inline pnb_embeddings *empty_set(const char *modality, size_t n, size_t dim)
{
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, PNB_POINT, n, dim, &err), &err);
    snprintf(e->info.modality, sizeof e->info.modality, "%s", modality);
    snprintf(e->info.model, sizeof e->info.model, "tiny");
    snprintf(e->info.weights_sha256, sizeof e->info.weights_sha256, ONES);
    return e;
}

/* Rows of unit length around a common direction, with ids "row-0", ... */
static inline pnb_embeddings *unit_set(const char *modality, size_t n, size_t dim, uint64_t seed)
{
    pnb_embeddings *e = empty_set(modality, n, dim);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        char id[24];
        double square = 0;
        for (size_t d = 0; d < dim; d++) {
            double x = pnb__rng_normal(&rng) * (1 + (double)(d % 3)) + (d == 1 ? 4 : 0);
            e->mean[i * dim + d] = (float)x;
            square += x * x;
        }
        for (size_t d = 0; d < dim; d++)
            e->mean[i * dim + d] = (float)(e->mean[i * dim + d] / sqrt(square));
        snprintf(id, sizeof id, "row-%zu", i);
        assert_int_equal(pnb_embeddings_set_id(e, i, id, NULL), PNB_OK);
    }
    return e;
}

static inline pnb_ctx *make_ctx(void)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 2;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    return ctx;
}

/* A group's state is a context. */
static inline int setup_ctx(void **state)
{
    *state = make_ctx();
    return 0;
}

static inline int teardown_ctx(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

/* An adapter's folder in that of the test. */
static inline void remove_folder(scratch *s, const char *name)
{
    char path[600];
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s/%s", s->dir, name, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    rmdir(path);
}

/* sum of exp(log_var) of a row: what pnb_uncertainty's trace is. */
static inline double trace_of(const pnb_embeddings *e, size_t row)
{
    double sum = 0;
    for (size_t d = 0; d < e->dim; d++)
        sum += exp((double)e->log_var[row * e->dim + d]);
    return sum;
}

static inline void require_near(double found, double wanted, double relative, const char *what)
{
    if (!(fabs(found - wanted) <= relative * fmax(fabs(wanted), 1e-6)))
        fail_msg("%s: %.17g, wanted %.17g", what, found, wanted);
}

/* Learns from one set, of the side its modality names, and puts `apply` through. */
static inline pnb_embeddings *adapt(pnb_ctx *ctx, const char *method, const pnb_embeddings *learn,
                                    const pnb_adapter_opts *opts, const pnb_embeddings *apply)
{
    bool is_image = strcmp(learn->info.modality, "image") == 0;
    const pnb_adapter_data data = {.images = is_image ? learn : NULL,
                                   .texts = is_image ? NULL : learn};
    pnb_adapter *a = NULL;
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, ctx, method, &data, opts, &err), &err);
    assert_ok(
        pnb_adapter_apply(&out, a, is_image ? PNB_ADAPTER_IMAGES : PNB_ADAPTER_TEXTS, apply, &err),
        &err);
    pnb_adapter_free(a);
    return out;
}

#endif
