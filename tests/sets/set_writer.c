/* A set that is written in blocks has the bytes of one that is saved whole, and appears whole or
 * not at all. */
#include "tests/io/scratch.h"

#include <math.h>

#include "sets/set_writer.h"

enum { ROWS = 11, WIDTH = 3 };

static pnb_embeddings *make_set(pnb_family family)
{
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, family, ROWS, WIDTH, &err), &err);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        for (size_t j = 0; pnb__embedding_has_array(e, i) && j < pnb__embedding_count(e, i); j++)
            (*pnb__embedding_field(e, i))[j] = (float)(100 * i) + (float)j + 0.25f;
    for (size_t i = 0; i < ROWS; i++) {
        char name[24];
        snprintf(name, sizeof name, "row-%zu", i);
        assert_ok(pnb_embeddings_set_id(e, i, name, &err), &err);
    }
    strcpy(e->info.modality, "text");
    return e;
}

/* Rows first..first+n as a set that borrows them. */
static pnb_embeddings rows_of(const pnb_embeddings *e, size_t first, size_t n)
{
    pnb_embeddings part = {.family = e->family, .n = n, .dim = e->dim};
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(e, i))
            *pnb__embedding_field(&part, i) = (float *)(uintptr_t)pnb__embedding_values(e, i) +
                                              first * (pnb__embedding_count(e, i) / e->n);
    return part;
}

static void assert_same_file(scratch *s, const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(pnb__read_file(scratch_path(s, a), 1 << 20, &x, &n, NULL), PNB_OK);
    assert_int_equal(pnb__read_file(scratch_path(s, b), 1 << 20, &y, &m, NULL), PNB_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    pnb__free(x);
    pnb__free(y);
}

static void blocks_make_the_same_file(void **state)
{
    scratch *s = *state;
    static const size_t sizes[] = {1, 4, ROWS};
    for (int family = 0; family < PNB_N_FAMILIES; family++)
        for (size_t k = 0; k < PNB_COUNT(sizes); k++) {
            pnb_embeddings *e = make_set((pnb_family)family);
            pnb__set_writer w = {0};
            pnb_error err = PNB_ERROR_INIT;
            assert_ok(pnb_embeddings_save(e, scratch_path(s, "whole.safetensors"), &err), &err);
            assert_ok(pnb__set_writer_open(&w, e, scratch_path(s, "parts.safetensors"), &err),
                      &err);
            for (size_t at = 0; at < ROWS; at += sizes[k]) {
                pnb_embeddings part = rows_of(e, at, PNB_MIN(sizes[k], (size_t)ROWS - at));
                assert_ok(pnb__set_writer_append(&w, &part, &err), &err);
            }
            assert_ok(pnb__set_writer_commit(&w, &err), &err);
            assert_same_file(s, "whole.safetensors", "parts.safetensors");
            assert_same_file(s, "whole.ids.jsonl", "parts.ids.jsonl");
            pnb_embeddings_free(e);
            scratch_clear(s);
        }
}

static void what_does_not_fit(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_GAUSSIAN_DIAG), *points = make_set(PNB_POINT);
    pnb__set_writer w = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__set_writer_open(&w, e, scratch_path(s, "x.npy"), &err), &err, PNB_ARG,
                  "does not end in");
    pnb_error_reset(&err);
    assert_ok(pnb__set_writer_open(&w, e, scratch_path(s, "x.safetensors"), &err), &err);
    assert_failed(pnb__set_writer_append(&w, points, &err), &err, PNB_ARG, "family or width");
    pnb_error_reset(&err);
    pnb_embeddings part = rows_of(e, 0, 6);
    assert_ok(pnb__set_writer_append(&w, &part, &err), &err);
    assert_failed(pnb__set_writer_append(&w, &part, &err), &err, PNB_ARG, "6 rows behind 6");
    pnb_error_reset(&err);
    /* rows are missing: nothing appears */
    assert_failed(pnb__set_writer_commit(&w, &err), &err, PNB_ARG, "the header promises");
    assert_int_equal(scratch_count(s), 0);
    pnb_error_reset(&err);
    /* a number that no set may hold */
    e->log_var[WIDTH] = NAN;
    assert_ok(pnb__set_writer_open(&w, e, scratch_path(s, "x.safetensors"), &err), &err);
    assert_failed(pnb__set_writer_append(&w, &part, &err), &err, PNB_NUMERIC, "log_var of row 1");
    pnb__set_writer_abort(&w);
    assert_int_equal(scratch_count(s), 0);
    pnb_embeddings_free(e);
    pnb_embeddings_free(points);
}

/* Rows of two arrays come in turn: a pipe has one way only. */
static void a_pipe_is_refused(void **state)
{
    (void)state;
    pnb_embeddings *e = make_set(PNB_GAUSSIAN_DIAG);
    pnb__set_writer w = {0};
    int ends[2];
    char path[64];
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pipe(ends), 0);
    /* a name that leads to the pipe and has the ending of a set */
    scratch *s = *state;
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    assert_int_equal(symlink(path, scratch_path(s, "p.safetensors")), 0);
    assert_failed(pnb__set_writer_open(&w, e, s->path, &err), &err, PNB_UNSUPPORTED,
                  "only a file allows");
    close(ends[0]);
    close(ends[1]);
    pnb_embeddings_free(e);
    scratch_clear(s);
}

#ifdef PNB_FAULTS
static pnb_status write_blocks(scratch *s, pnb_error *err)
{
    float mean[] = {1, 2, 3, 4}, log_var[] = {0, 0, 0, 0};
    pnb_embeddings e = {
        .family = PNB_GAUSSIAN_DIAG, .n = 2, .dim = 2, .mean = mean, .log_var = log_var};
    pnb__set_writer w = {0};
    pnb_status status;
    PNB_TRY(pnb__set_writer_open(&w, &e, scratch_path(s, "x.safetensors"), err));
    PNB_TRY(pnb__set_writer_append(&w, &e, err));
    status = pnb__set_writer_commit(&w, err);
done:
    pnb__set_writer_abort(&w);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(write_blocks, *state);
    scratch_clear(*state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_make_the_same_file),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(a_pipe_is_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
