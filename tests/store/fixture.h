/* Collections in a folder of a test, and batches of rows to put into them. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "tests/io/scratch.h"

#include <ftw.h>
#include <math.h>

#include "penumbra/store.h"
#include "sets/embeddings.h"

enum { WIDTH = 8 };
#define WEIGHTS "69081b72e4cd21dd2b45bc1a2dd26f9cb36b02b53bb145eef8720fd265a15691"
#define OTHER_WEIGHTS "0a1b2c3d4e5f21dd2b45bc1a2dd26f9cb36b02b53bb145eef8720fd265a15691"

static inline int fixture_remove_one(const char *path, const struct stat *info, int type,
                                     struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

/* Path of the collection "c", which is not there. */
static inline const char *fresh(scratch *s)
{
    nftw(scratch_path(s, "c"), fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return scratch_path(s, "c");
}

static inline int store_teardown(void **state)
{
    fresh(*state);
    return scratch_teardown(state);
}

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

static inline pnb_store *opened(const char *path)
{
    pnb_store *store = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_open(&store, path, &err), &err);
    return store;
}

static inline pnb_status try_add(pnb_store *store, size_t first, size_t n, pnb_store_added *added,
                                 pnb_error *err)
{
    pnb_embeddings *e = rows_from(first, n);
    const pnb_store_batch batch = {.set = e};
    pnb_status status = pnb_store_add(store, &batch, added, err);
    pnb_embeddings_free(e);
    return status;
}

static inline pnb_store_added add_rows(pnb_store *store, size_t first, size_t n)
{
    pnb_store_added added = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(try_add(store, first, n, &added, &err), &err);
    return added;
}

/* A fresh collection of rows 0 .. n - 1, added so many at a time. */
static inline pnb_store *filled(scratch *s, size_t n, size_t step)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_create(fresh(s), NULL, &err), &err);
    pnb_store *store = opened(scratch_path(s, "c"));
    for (size_t at = 0; at < n; at += step)
        assert_int_equal(add_rows(store, at, PNB_MIN(step, n - at)).n_added, PNB_MIN(step, n - at));
    return store;
}

static inline size_t count_rows(pnb_store *store)
{
    pnb_store_about about;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    return about.n_rows;
}

static inline void remove_row(pnb_store *store, size_t number)
{
    char id[32];
    const char *ids[] = {id};
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(id, sizeof id, "r%zu", number);
    assert_ok(pnb_store_remove(store, ids, 1, &n, &err), &err);
    assert_int_equal(n, 1);
}

#endif
