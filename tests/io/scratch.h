/* A folder of its own for a test program, removed at the end, and small helpers to fill it. */
#ifndef TESTS_IO_SCRATCH_H
#define TESTS_IO_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <unistd.h>

#include "base/base.h"

typedef struct scratch {
    char dir[64];
    char path[512]; /* of the last scratch_path */
} scratch;

static inline int scratch_setup(void **state)
{
    scratch *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return -1;
    *state = s;
    /* In memory where possible: the out-of-memory tests sync files thousands of times. */
    snprintf(s->dir, sizeof(s->dir), "/dev/shm/pnb-test-XXXXXX");
    if (mkdtemp(s->dir) != NULL)
        return 0;
    snprintf(s->dir, sizeof(s->dir), "/tmp/pnb-test-XXXXXX");
    return mkdtemp(s->dir) != NULL ? 0 : -1;
}

static inline size_t scratch_count(const scratch *s)
{
    size_t n = 0;
    DIR *d = opendir(s->dir);
    for (struct dirent *entry = d != NULL ? readdir(d) : NULL; entry != NULL; entry = readdir(d))
        n += entry->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

/* Removes the files in the folder. */
static inline void scratch_clear(const scratch *s)
{
    char path[512];
    DIR *d = opendir(s->dir);
    for (struct dirent *entry = d != NULL ? readdir(d) : NULL; entry != NULL; entry = readdir(d)) {
        snprintf(path, sizeof(path), "%s/%s", s->dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (d != NULL)
        closedir(d);
}

static inline int scratch_teardown(void **state)
{
    scratch *s = *state;
    scratch_clear(s);
    rmdir(s->dir);
    free(s);
    return 0;
}

static inline const char *scratch_path(scratch *s, const char *name)
{
    snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
    return s->path;
}

/* Writes a file and returns its path. */
static inline const char *scratch_file(scratch *s, const char *name, const void *data, size_t n)
{
    FILE *f = fopen(scratch_path(s, name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return s->path;
}

/* The call must fail so, and its text must contain the words. */
static inline void assert_failed(pnb_status found, const pnb_error *err, pnb_status wanted,
                                 const char *words)
{
    if (found != wanted || err->status != wanted || strstr(err->text, words) == NULL)
        fail_msg("found %s \"%s\", wanted %s \"...%s...\"", pnb_status_name(found), err->text,
                 pnb_status_name(wanted), words);
}

static inline void assert_ok(pnb_status found, const pnb_error *err)
{
    if (found != PNB_OK)
        fail_msg("%s: %s", pnb_status_name(found), err->text);
}

#ifdef PNB_FAULTS
typedef pnb_status (*faulty_fn)(scratch *s, pnb_error *err);

/* Runs `fn` with allocation 0, 1, 2, ... failing until it makes fewer; every run must end as NOMEM
 * or (a fault that costs nothing) well. Leaks are ASan's matter. */
static inline void fail_every_allocation(faulty_fn fn, scratch *s)
{
    long n = 0, n_failed = 0;
    for (;; n++) {
        pnb_error err = PNB_ERROR_INIT;
        long before = pnb__alloc_count();
        pnb__alloc_fail_after(n);
        pnb_status found = fn(s, &err);
        pnb__alloc_fail_after(-1);
        if (pnb__alloc_count() - before <= n)
            break;
        if (found != PNB_NOMEM && found != PNB_OK)
            fail_msg("allocation %ld: %s %s", n, pnb_status_name(found), err.text);
        n_failed += found != PNB_OK;
    }
    assert_true(n_failed > 0 && n_failed >= n / 2);
}
#endif

#endif
