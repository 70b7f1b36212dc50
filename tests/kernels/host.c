/* Memory of tables that compute on the host: alignment, blocks of nothing, bytes as they were,
 * zeros by several threads, and what is said when there is no more. */
#include "kernels/host.h"

#include "tests/kernels/harness.h"

static void test_blocks(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 4097, ((size_t)4 << 20) + 1}; /* huge pages */
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        void *p = NULL, *q = NULL;
        assert_int_equal(pnb__host_mem_alloc(NULL, &p, sizes[i], NULL), PNB_OK);
        assert_int_equal(pnb__host_mem_alloc(NULL, &q, sizes[i], NULL), PNB_OK);
        assert_true(p != NULL && q != NULL && p != q);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, sizes[i]);
        memset(q, 2, sizes[i]);
        pnb__host_mem_free(NULL, p, sizes[i]);
        pnb__host_mem_free(NULL, q, sizes[i]);
    }
    pnb__host_mem_free(NULL, NULL, 7);
}

/* To the device, on it and back: what was asked for and nothing beside it. */
static void test_copies(void **state)
{
    enum { N = 300, AT = 7 };
    (void)state;
    for (size_t n = 0; n <= 200; n += 100) {
        unsigned char in[N], there[N], other[N], back[N];
        for (size_t i = 0; i < N; i++)
            in[i] = (unsigned char)(i * 7);
        memset(there, 9, N);
        memset(other, 9, N);
        memset(back, 9, N);
        assert_int_equal(pnb__host_mem_write(NULL, there + AT, in, n, NULL), PNB_OK);
        assert_int_equal(pnb__host_mem_copy(NULL, other + AT, there + AT, n, NULL), PNB_OK);
        assert_int_equal(pnb__host_mem_read(NULL, back + AT, other + AT, n, NULL), PNB_OK);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(back[i], i < AT || i >= AT + n ? 9 : in[i - AT]);
        assert_memory_equal(there, back, N);
        assert_memory_equal(other, back, N);
    }
    assert_int_equal(pnb__host_mem_write(NULL, NULL, NULL, 0, NULL), PNB_OK);
}

static void test_zeros(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, ((size_t)1 << 20) + 1, ((size_t)3 << 20) + 5};
    (void)state;
    for (int n_threads = 0; n_threads <= 3; n_threads += 3)
        for (size_t k = 0; k < PNB_COUNT(sizes); k++) {
            size_t n = sizes[k];
            pnb_ctx *ctx = n_threads > 0 ? test_ctx(PNB_ISA_GENERIC, n_threads) : NULL;
            unsigned char *p = malloc(n + 20);
            assert_non_null(p);
            memset(p, 5, n + 20);
            assert_int_equal(pnb__host_mem_zero(ctx, p + 10, n, NULL), PNB_OK);
            for (size_t i = 0; i < 10; i++)
                assert_true(p[i] == 5 && p[n + 10 + i] == 5);
            for (size_t i = 0; i < n; i++)
                if (p[10 + i] != 0)
                    fail_msg("byte %zu of %zu is not zero", i, n);
            free(p);
            pnb_ctx_free(ctx);
        }
}

#ifdef PNB_FAULTS
static void test_no_memory(void **state)
{
    (void)state;
    int mine;
    void *p = &mine;
    pnb_error err = PNB_ERROR_INIT;
    pnb__alloc_fail_after(0);
    pnb_status status = pnb__host_mem_alloc(NULL, &p, 4096, &err);
    pnb__alloc_fail_after(-1);
    assert_int_equal(status, PNB_NOMEM);
    assert_ptr_equal(p, &mine); /* untouched */
    assert_non_null(strstr(err.text, "4096"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_zeros),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
