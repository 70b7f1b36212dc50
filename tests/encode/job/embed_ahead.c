/* Reading ahead: order, errors, bounds, and that rows lie ready while their consumer is busy, so
 * that it does not wait for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "encode/job/embed_ahead.h"

typedef struct source {
    atomic_int n_reads, n_at_once, most_at_once;
    int pause_ms;
} source;

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, (ms % 1000) * 1000000L}, NULL);
}

/* Row of input i is (i, -i); every fifth cannot be read. Later inputs are often faster. */
static pnb_status read_row(void *user, size_t input, float *row, pnb_error *err)
{
    source *s = user;
    int now = atomic_fetch_add(&s->n_at_once, 1) + 1;
    if (now > atomic_load(&s->most_at_once))
        atomic_store(&s->most_at_once, now);
    pause_ms(input % 3 == 0 ? s->pause_ms : 0);
    atomic_fetch_add(&s->n_reads, 1);
    atomic_fetch_sub(&s->n_at_once, 1);
    if (input % 5 == 4)
        return pnb__fail(err, PNB_FORMAT, "input %zu is bad", input);
    row[0] = (float)input;
    row[1] = -(float)input;
    return PNB_OK;
}

static pnb__embed_ahead *start(source *s, size_t first, size_t end, size_t n_rows, int n_threads)
{
    pnb__embed_ahead *a = NULL;
    const pnb__embed_ahead_opts opts = {.read = read_row,
                                        .user = s,
                                        .first = first,
                                        .end = end,
                                        .row_values = 2,
                                        .n_rows = n_rows,
                                        .n_threads = n_threads};
    assert_int_equal(pnb__embed_ahead_start(&a, &opts, NULL), PNB_OK);
    return a;
}

static void order_and_errors_are_kept(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        source s = {.pause_ms = 2};
        pnb__embed_ahead *a = start(&s, 3, 60, 7, n_threads);
        for (size_t i = 3; i < 60; i++) {
            size_t input = 0;
            float row[2] = {0, 0};
            pnb_error why = PNB_ERROR_INIT;
            assert_true(pnb__embed_ahead_next(a, &input, row, &why));
            assert_int_equal(input, i);
            assert_int_equal(why.status, i % 5 == 4 ? PNB_FORMAT : PNB_OK);
            if (i % 5 != 4)
                assert_true(row[0] == (float)i && row[1] == -(float)i);
            else
                assert_non_null(strstr(why.text, "is bad"));
        }
        size_t input;
        float row[2];
        pnb_error why = PNB_ERROR_INIT;
        assert_false(pnb__embed_ahead_next(a, &input, row, &why));
        pnb__embed_ahead_free(a);
        assert_int_equal(atomic_load(&s.n_reads), 57);
        assert_true(atomic_load(&s.most_at_once) <= n_threads);
    }
}

/* The consumer asks for nothing, as an encoder does that computes: the room fills, and no further.
 */
static void rows_are_ready_before_they_are_asked_for(void **state)
{
    (void)state;
    source s = {.pause_ms = 1};
    pnb__embed_ahead *a = start(&s, 0, 1000, 16, 2);
    for (int i = 0; i < 5000 && pnb__embed_ahead_ready(a) < 16; i++)
        pause_ms(1);
    assert_int_equal(pnb__embed_ahead_ready(a), 16);
    pause_ms(5);
    assert_int_equal(atomic_load(&s.n_reads), 16);
    for (size_t i = 0; i < 8; i++) {
        size_t input;
        float row[2];
        pnb_error why = PNB_ERROR_INIT;
        assert_true(pnb__embed_ahead_next(a, &input, row, &why));
    }
    for (int i = 0; i < 5000 && pnb__embed_ahead_ready(a) < 16; i++)
        pause_ms(1);
    assert_int_equal(pnb__embed_ahead_ready(a), 16);
    assert_int_equal(atomic_load(&s.n_reads), 24);
    pnb__embed_ahead_free(a); /* 976 were never read */
    assert_int_equal(atomic_load(&s.n_reads), 24);
    pnb__embed_ahead_free(NULL);
}

#ifdef PNB_FAULTS
static void memory_may_run_out(void **state)
{
    (void)state;
    source s = {0};
    int n_failed = 0;
    for (long k = 0; k < 20; k++) {
        pnb__embed_ahead *a = NULL;
        pnb_error err = PNB_ERROR_INIT;
        const pnb__embed_ahead_opts opts = {
            .read = read_row, .user = &s, .end = 4, .row_values = 2, .n_rows = 4, .n_threads = 2};
        pnb__alloc_fail_after(k);
        pnb_status status = pnb__embed_ahead_start(&a, &opts, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && a == NULL));
        n_failed += status != PNB_OK;
        pnb__embed_ahead_free(a);
    }
    assert_int_equal(n_failed, 4);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_errors_are_kept),
        cmocka_unit_test(rows_are_ready_before_they_are_asked_for),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
