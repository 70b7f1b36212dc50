/* Weights of one tower of PCME as the reference starts them, without a family around it. */
#ifndef PNB_TESTS_MODELS_PCME_DRAWN_H
#define PNB_TESTS_MODELS_PCME_DRAWN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/pcme/image_head.h"
#include "models/pcme/text_tower.h"
#include "models/weights/weights.h"

static pnb_ctx *ctx;

static inline int open_ctx(void **state)
{
    (void)state;
    pnb_ctx_opts opts = {.n_threads = 2, .device = PNB_DEVICE_CPU};
    if (pnb_ctx_create(&ctx, &opts, NULL) != PNB_OK)
        return -1;
    ctx->batch_invariant = true; /* no product that BLAS cuts by size */
    return 0;
}

static inline int close_ctx(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return 0;
}

static const pnb__pcme_config small = {.vocab_size = 11,
                                       .word_dim = 6,
                                       .embed_dim = 8,
                                       .n_embeddings = 1,
                                       .image_dim = 10,
                                       .with_attention = true,
                                       .with_uncertainty = true};

/* `head` NULL: the text tower. */
static inline void drawn_weights(pnb__weights *w, const pnb__pcme_config *c,
                                 pnb__pcme_image_head *head)
{
    pnb_error err = PNB_ERROR_INIT;
    memset(w, 0, sizeof *w);
    pnb__arena_init(&w->arena, 4096);
    pnb__kernels_fill(&w->kernels, ctx, PNB__F32);
    for (int pass = 0; pass < 2; pass++) {
        if (head != NULL)
            pnb__pcme_declare_image_head(w, c, head);
        else
            pnb__pcme_declare_text(w, c);
        if (pass == 0)
            w->items = pnb__alloc_zero(w->capacity + 1, sizeof *w->items);
    }
    assert_false(w->failed);
    assert_int_equal(w->n, w->capacity);
    if (pnb__weights_init(w, 5, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static inline const pnb__weight *weight_of(const pnb__weights *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->items[i].param.name, name) == 0)
            return &w->items[i];
    fail_msg("there is no weight %s", name);
    return NULL;
}

#endif
