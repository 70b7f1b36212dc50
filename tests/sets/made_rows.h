/* An endless list of rows, of which tests take what they need. */
#ifndef TESTS_SETS_MADE_ROWS_H
#define TESTS_SETS_MADE_ROWS_H

#include "tests/io/scratch.h"

#include <math.h>

#include "sets/embeddings.h"

enum { WIDTH = 8 };
#define WEIGHTS "69081b72e4cd21dd2b45bc1a2dd26f9cb36b02b53bb145eef8720fd265a15691"
#define OTHER_WEIGHTS "0a1b2c3d4e5f21dd2b45bc1a2dd26f9cb36b02b53bb145eef8720fd265a15691"

/* Rows number first .. first + n - 1 of an endless list: Gaussians with unit means, ids r0, r1, ...
 * and a caption every other row. A row is a function of its number. */
static inline pnb_embeddings *rows_from(size_t first, size_t n)
{
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, PNB_GAUSSIAN_DIAG, n, WIDTH, &err), &err);
    for (size_t i = 0; i < n; i++) {
        pnb__rng rng;
        double norm = 0;
        char name[32];
        pnb__rng_init(&rng, 5, first + i);
        for (size_t d = 0; d < WIDTH; d++) {
            float x = (float)pnb__rng_normal(&rng);
            e->mean[i * WIDTH + d] = x;
            norm += (double)x * (double)x;
            e->log_var[i * WIDTH + d] = (float)(pnb__rng_normal(&rng) - 4);
        }
        for (size_t d = 0; d < WIDTH; d++)
            e->mean[i * WIDTH + d] /= (float)sqrt(norm);
        snprintf(name, sizeof name, "r%zu", first + i);
        assert_ok(pnb_embeddings_set_id(e, i, name, &err), &err);
        if ((first + i) % 2 == 0)
            assert_ok(pnb_embeddings_set_text(e, i, "an even \"row\"", &err), &err);
    }
    strcpy(e->info.modality, "image");
    strcpy(e->info.model, "tiny");
    strcpy(e->info.weights_sha256, WEIGHTS);
    return e;
}

#endif
