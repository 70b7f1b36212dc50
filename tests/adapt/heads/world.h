/* A made set for the tests of trained heads: concepts of known generality.
 *
 * A picture is a direction of its leaf; captions of level 0 name the topic, of level 1 the leaf. A
 * topic has N_LEAVES leaves, so captions of level 0 fit that many times the pictures, and their
 * density must be the wider one. */
#ifndef TESTS_ADAPT_HEADS_WORLD_H
#define TESTS_ADAPT_HEADS_WORLD_H

#include "tests/adapt/world.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

enum { HEADS_DIM = 16, N_TOPICS = 4, N_LEAVES = 8, N_LEVELS = 2 };

typedef struct heads_world {
    pnb_embeddings *images, *texts; /* text k n + i is of level k and of image i */
    pnb_truth *truth;
    size_t n;
} heads_world;

static inline void add_direction(float *x, uint64_t number, double length)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 99, number);
    for (size_t d = 0; d < HEADS_DIM; d++)
        x[d] += (float)(length * pnb__rng_normal(&rng) / sqrt((double)HEADS_DIM));
}

static inline void scale_to(float *x, double length)
{
    double square = 0;
    for (size_t d = 0; d < HEADS_DIM; d++)
        square += (double)x[d] * (double)x[d];
    for (size_t d = 0; d < HEADS_DIM; d++)
        x[d] = (float)(x[d] * length / sqrt(square));
}

/* n pictures and 2 n captions; captions have the length `text_length`. */
static inline heads_world make_heads_world(size_t n, uint64_t seed, double text_length)
{
    heads_world w = {.n = n};
    int64_t *pairs = pnb__alloc_array(2 * N_LEVELS * n, sizeof *pairs);
    w.images = empty_set("image", n, HEADS_DIM);
    w.texts = empty_set("text", N_LEVELS * n, HEADS_DIM);
    for (size_t i = 0; i < n; i++) {
        uint64_t topic = i % N_TOPICS, leaf = N_TOPICS + topic * N_LEAVES + i / N_TOPICS % N_LEAVES;
        float *image = w.images->mean + i * HEADS_DIM;
        add_direction(image, topic, 1);
        add_direction(image, leaf, 1.5);
        add_direction(image, 1000 + 10 * i + seed * 100000, 0.3);
        scale_to(image, 1);
        for (size_t k = 0; k < N_LEVELS; k++) {
            float *text = w.texts->mean + (k * n + i) * HEADS_DIM;
            add_direction(text, topic, 1);
            if (k > 0)
                add_direction(text, leaf, 1.5);
            add_direction(text, 1001 + k + 10 * i + seed * 100000, 0.1);
            scale_to(text, text_length);
            pairs[2 * (k * n + i)] = (int64_t)i;
            pairs[2 * (k * n + i) + 1] = (int64_t)(k * n + i);
        }
    }
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_truth_create_pairs(&w.truth, n, N_LEVELS * n, pairs, N_LEVELS * n, &err), &err);
    pnb__free(pairs);
    return w;
}

static inline void free_heads_world(heads_world *w)
{
    pnb_embeddings_free(w->images);
    pnb_embeddings_free(w->texts);
    pnb_truth_free(w->truth);
}

static inline pnb_adapter_data data_of(const heads_world *w)
{
    return (pnb_adapter_data){.images = w->images, .texts = w->texts, .truth = w->truth};
}

/* A second's work. */
static inline pnb_adapter_opts short_opts(void)
{
    pnb_adapter_opts o = pnb_adapter_opts_default();
    o.hidden = 24;
    o.steps = 60;
    o.batch_size = 32;
    return o;
}

static inline pnb_adapter *fit_ok(pnb_ctx *ctx, const char *method, const pnb_adapter_data *data,
                                  const pnb_adapter_opts *opts)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, ctx, method, data, opts, &err), &err);
    return a;
}

static inline void fit_fails(pnb_ctx *ctx, const char *method, const pnb_adapter_data *data,
                             const pnb_adapter_opts *opts, pnb_status wanted, const char *part)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status found = pnb_adapter_fit(&a, ctx, method, data, opts, &err);
    if (found != wanted || strstr(err.text, part) == NULL)
        fail_msg("%s: %s \"%s\", wanted %s with \"%s\"", method, pnb_status_name(found), err.text,
                 pnb_status_name(wanted), part);
    assert_null(a);
}

static inline double figure_of(const pnb_adapter *a, const char *name)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(a, &facts);
    for (size_t i = 0; i < facts.n_figures; i++)
        if (strcmp(facts.figures[i].name, name) == 0)
            return facts.figures[i].value;
    return NAN;
}

static inline char *scratch_create(void)
{
    const char *base = getenv("TMPDIR");
    char *path = pnb__format("%s/pnb-heads-XXXXXX", base ? base : "/tmp");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int flag,
                                     struct FTW *ftw)
{
    (void)info;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void scratch_remove(char *path)
{
    assert_int_equal(nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    pnb__free(path);
}

/* The hash of what was learned: arrays, options and figures stand in it. */
static inline const char *hash_of(const pnb_adapter *a)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(a, &facts);
    return facts.link->sha256;
}

#endif
