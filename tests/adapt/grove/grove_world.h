/* A small world for GroVE, and a fit in it.
 *
 * Pairs have latents of 3 axes and both sides are smooth functions of them; the captions of every
 * second pair are of a latent of which two axes are wiped out, so that they fit many images. */
#ifndef PNB_TESTS_ADAPT_GROVE_WORLD_H
#define PNB_TESTS_ADAPT_GROVE_WORLD_H

#include "adapt/grove/grove.h"
#include "tests/adapt/world.h"

enum { N = 300, D = 24, AXES = 3 };

typedef struct world {
    pnb_ctx *ctx;
    pnb_embeddings *images, *texts;
    pnb_truth *truth;
} world;

static inline double wave(const double *z, size_t d)
{
    pnb__rng rng;
    double angle;
    pnb__rng_init(&rng, 77, d);
    angle = 6 * pnb__rng_uniform(&rng);
    for (size_t a = 0; a < AXES; a++)
        angle += 0.8 * pnb__rng_normal(&rng) * z[a];
    return cos(angle);
}

static inline bool is_general(size_t i)
{
    return i % 2 == 1;
}

static inline void make_world(world *w, size_t n)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    *w = (world){
        .ctx = make_ctx(), .images = empty_set("image", n, D), .texts = empty_set("text", n, D)};
    for (size_t i = 0; i < n; i++) {
        double z[AXES];
        for (size_t a = 0; a < AXES; a++)
            z[a] = pnb__rng_normal(&rng);
        for (size_t d = 0; d < D; d++)
            w->images->mean[i * D + d] = (float)(wave(z, d) + 0.05 * pnb__rng_normal(&rng));
        if (is_general(i))
            z[1] = z[2] = 0;
        for (size_t d = 0; d < D; d++)
            w->texts->mean[i * D + d] = (float)(0.2 + wave(z, d) + 0.05 * pnb__rng_normal(&rng));
    }
    assert_int_equal(pnb_truth_create_aligned(&w->truth, n, NULL), PNB_OK);
}

static inline void free_world(world *w)
{
    pnb_embeddings_free(w->images);
    pnb_embeddings_free(w->texts);
    pnb_truth_free(w->truth);
    pnb_ctx_free(w->ctx);
}

static inline pnb_adapter_opts small_opts(void)
{
    pnb_adapter_opts o = pnb_adapter_opts_default();
    o.latent_dim = 3;
    o.inducing = 24;
    o.epochs = 10;
    o.batch_size = 32;
    o.seed = 3;
    return o;
}

static inline pnb_status learn(pnb_adapter **out, const world *w, const pnb_adapter_opts *o,
                               pnb_error *err)
{
    const pnb_adapter_data data = {.images = w->images, .texts = w->texts, .truth = w->truth};
    return pnb_adapter_fit(out, w->ctx, "grove", &data, o, err);
}

static inline pnb_embeddings *apply_to(const pnb_adapter *a, const world *w, pnb_adapter_side side)
{
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(
        pnb_adapter_apply(&out, a, side, side == PNB_ADAPTER_IMAGES ? w->images : w->texts, &err),
        &err);
    return out;
}

#endif
