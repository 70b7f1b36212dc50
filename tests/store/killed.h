/* Writers in processes of their own, which tests disturb, and what is there afterwards. */
#ifndef TESTS_STORE_KILLED_H
#define TESTS_STORE_KILLED_H

#include "tests/store/fixture.h"

#include <signal.h>
#include <sys/wait.h>

enum { STEP = 3 }; /* rows of a batch */

/* Adds n rows by batches in a process of its own, each confirmed by a byte once it is there. */
static inline pid_t start_adding(const char *path, size_t n, int confirm)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    pnb_store *store = NULL;
    pnb_error err = PNB_ERROR_INIT;
    bool ok = pnb_store_open(&store, path, &err) == PNB_OK;
    for (size_t at = 0; at < n && ok; at += STEP) {
        ok = try_add(store, at, STEP, NULL, &err) == PNB_OK;
        ok = ok && write(confirm, "+", 1) == 1;
    }
    pnb_store_close(store);
    _exit(ok ? 0 : 1);
}

/* How many rows are there: whole batches, each row once, in order. */
static inline size_t assert_whole(pnb_store *store)
{
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    char id[24];
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    size_t n = rows.n;
    assert_int_equal(n % STEP, 0);
    for (size_t i = 0; i < n; i++) {
        snprintf(id, sizeof id, "r%zu", i);
        assert_string_equal(rows.items[i].id, id);
    }
    pnb_store_rows_reset(&rows);
    return n;
}

/* What a writer that is gone has left can be read at once, checked, and gone on with. */
static inline void assert_survived(const char *path, size_t n_confirmed, size_t n_all)
{
    pnb_store_verified verified;
    pnb_error err = PNB_ERROR_INIT;
    pnb_store *store = opened(path);
    size_t n = assert_whole(store);
    assert_true(n >= STEP * n_confirmed); /* nothing that was confirmed is lost */
    assert_ok(pnb_store_verify(path, NULL, &verified, &err), &err);
    assert_int_equal(verified.n_problems, 0);
    assert_int_equal(verified.n_rows, n);
    assert_ok(pnb_store_begin(store, 20, &err), &err); /* the lock of who is gone goes with it */
    for (size_t at = 0; at < n_all; at += STEP)
        assert_int_equal(add_rows(store, at, STEP).n_added, at < n ? 0 : STEP);
    assert_int_equal(assert_whole(store), n_all);
    pnb_store_close(store);
    assert_ok(pnb_store_verify(path, NULL, &verified, &err), &err);
    assert_int_equal(verified.n_problems + verified.n_leftovers, 0);
}

#endif
