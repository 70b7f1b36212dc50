/* Collections in a folder of a test, and batches of rows to put into them. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "tests/io/scratch.h"

#include <ftw.h>

#include "penumbra/store.h"
#include "tests/sets/made_rows.h"

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
