/* A weight: numbers of either type, the ones asked for and nothing beside them; memory of its own
 * or a place in a map; what a device does not do is said. */
#include "tests/tensor/graphs.h"

enum { N = 1040, AT = 5 };

static double f64[N];
static float f32[N];

static pnb__param weight_of(pnb__real real)
{
    for (size_t i = 0; i < N; i++)
        f64[i] = f32[i] = (float)i;
    return (pnb__param){.name = "w",
                        .n_dims = 1,
                        .shape = {N},
                        .n = N,
                        .data = real == PNB__F32 ? (void *)f32 : f64,
                        .store = PNB__STORE_REAL};
}

/* Lengths around the block that conversions go through, from a place inside. */
static void test_numbers(void **state)
{
    static const size_t lengths[] = {0, 1, 511, 512, 513, 1030};
    static double out[N + 1], values[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = -1.0 / (1 + (double)i);
    for (int real = PNB__F32; real <= PNB__F64; real++)
        for (size_t k = 0; k < PNB_COUNT(lengths); k++) {
            size_t n = lengths[k];
            pnb__param p = weight_of((pnb__real)real);
            begin_graph((pnb__real)real, false);
            const pnb__kernels *table = pnb__graph_kernels(g);
            out[n] = -7;
            assert_int_equal(pnb__param_read(&p, table, AT, n, out, NULL), PNB_OK);
            for (size_t i = 0; i < n; i++)
                assert_true(out[i] == (double)(AT + i));
            assert_true(out[n] == -7);
            assert_int_equal(pnb__param_write(&p, table, AT, n, values, NULL), PNB_OK);
            for (size_t i = 0; i < N; i++) {
                bool is_inside = i >= AT && i < AT + n;
                double want = is_inside ? values[i - AT] : (double)i;
                assert_true(real == PNB__F32 ? f32[i] == (float)want : f64[i] == want);
            }
            end_graph();
        }
}

/* Mapped numbers are used where they lie; owned they are a copy, and the map stays as it is. */
static void test_memory(void **state)
{
    static const float mapped[4] = {1, 2, 3, 4};
    pnb__param p = {.name = "w", .n_dims = 1, .shape = {4}, .n = 4};
    float back[4];
    (void)state;
    begin_graph(PNB__F32, false);
    const pnb__kernels *table = pnb__graph_kernels(g);
    pnb__param_map(&p, mapped);
    assert_true(p.mapped && p.fixed && p.data == mapped);
    assert_ptr_equal(pnb__param_on_host(&p, table), mapped);
    assert_int_equal(pnb__param_own(&p, table, sizeof mapped, NULL), PNB_OK);
    assert_true(!p.mapped && p.data != mapped);
    assert_int_equal(pnb__param_write(&p, table, 1, 1, (const double[]){9}, NULL), PNB_OK);
    assert_int_equal(pnb__param_read_bytes(&p, table, sizeof back, back, NULL), PNB_OK);
    assert_memory_equal(back, ((const float[]){1, 9, 3, 4}), sizeof back);
    assert_true(mapped[1] == 2);
    pnb__param_free(&p, table, sizeof mapped);
    assert_null(p.data);
    assert_int_equal(pnb__param_alloc(&p, table, 0, NULL), PNB_OK); /* of nothing: memory too */
    assert_non_null(p.data);
    pnb__param_free(&p, table, 0);
    pnb__kernels device = *table;
    device.host_memory = false;
    assert_null(pnb__param_on_host(&p, &device));
    end_graph();
}

static void test_copies_and_checks(void **state)
{
    (void)state;
    for (int real = PNB__F32; real <= PNB__F64; real++) {
        static double room[N + 1];
        pnb__param p = weight_of((pnb__real)real), to = p;
        size_t bytes = N * PNB__REAL_SIZE(real);
        begin_graph((pnb__real)real, false);
        const pnb__kernels *table = pnb__graph_kernels(g);
        memset(room, 0x5A, sizeof room);
        to.data = room;
        assert_int_equal(pnb__param_copy(&to, &p, table, NULL), PNB_OK);
        assert_memory_equal(room, p.data, bytes);
        assert_int_equal(((unsigned char *)room)[bytes], 0x5A);
        assert_true(pnb__param_is_finite(&p, table));
        f32[N - 1] = NAN;
        f64[N - 1] = NAN;
        assert_false(pnb__param_is_finite(&p, table));
        assert_true(pnb__param_is_finite(&to, table));
        end_graph();
    }
}

/* ---- a device that fails ---- */

static int n_passing;

static pnb_status fail_soon(pnb_error *err)
{
    return n_passing-- > 0 ? PNB_OK : pnb__fail(err, PNB_IO, "the device is gone");
}

static pnb_status write_or_fail(const pnb_ctx *c, void *device, const void *host, size_t bytes,
                                pnb_error *err)
{
    (void)c;
    memcpy(device, host, bytes);
    return fail_soon(err);
}

static pnb_status read_or_fail(const pnb_ctx *c, void *host, const void *device, size_t bytes,
                               pnb_error *err)
{
    (void)c;
    memcpy(host, device, bytes);
    return fail_soon(err);
}

static void test_failures_are_said(void **state)
{
    static double values[N];
    (void)state;
    for (int real = PNB__F32; real <= PNB__F64; real++)
        for (int passing = 0; passing < 3; passing++) { /* f32 goes in blocks of 512 */
            bool is_enough = passing > (real == PNB__F32 ? 1 : 0);
            pnb_error err = PNB_ERROR_INIT;
            pnb__param p = weight_of((pnb__real)real);
            begin_graph((pnb__real)real, false);
            pnb__kernels device = *pnb__graph_kernels(g);
            device.mem_write = write_or_fail;
            device.mem_read = read_or_fail;
            n_passing = passing;
            assert_int_equal(pnb__param_read(&p, &device, 0, 600, values, &err),
                             is_enough ? PNB_OK : PNB_IO);
            n_passing = passing;
            assert_int_equal(pnb__param_write(&p, &device, 0, 600, values, &err),
                             is_enough ? PNB_OK : PNB_IO);
            assert_int_equal(strcmp(err.text, "the device is gone") == 0, !is_enough);
            end_graph();
        }
}

/* What could not become memory of its own stays mapped. */
static void test_failed_owning(void **state)
{
    static const float mapped[2] = {1, 2};
    pnb__param p = {.name = "w", .n_dims = 1, .shape = {2}, .n = 2};
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    begin_graph(PNB__F32, false);
    pnb__kernels device = *pnb__graph_kernels(g);
    device.mem_write = write_or_fail;
    n_passing = 0;
    pnb__param_map(&p, mapped);
    assert_int_equal(pnb__param_own(&p, &device, sizeof mapped, &err), PNB_IO);
    assert_true(p.mapped && p.data == mapped);
#ifdef PNB_FAULTS
    pnb_error_reset(&err);
    pnb__alloc_fail_after(0);
    pnb_status status = pnb__param_own(&p, &device, sizeof mapped, &err);
    pnb__alloc_fail_after(-1);
    assert_int_equal(status, PNB_NOMEM);
    assert_true(p.mapped && p.data == mapped);
#endif
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_copies_and_checks), cmocka_unit_test(test_failures_are_said),
        cmocka_unit_test(test_failed_owning)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
