/* Rates of products of each kind: numbers above 0 on every table of kernels, also on slow ones, and
 * what is said when memory fails. */
#include "commands/common/product_rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_rates(void **state)
{
    (void)state;
    const pnb_isa isas[] = {PNB_ISA_AUTO, PNB_ISA_GENERIC};
    for (size_t i = 0; i < PNB_COUNT(isas); i++) {
        pnb_ctx_opts opts = {.isa = isas[i], .n_threads = 2};
        pnb_ctx *ctx = NULL;
        assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
        for (int kind = PNB__PRODUCT_F32; kind <= PNB__PRODUCT_I8; kind++) {
            double rate = -1;
            assert_int_equal(pnb__product_rate(ctx, (pnb__product_kind)kind, 1, &rate, NULL),
                             PNB_OK);
            assert_true(rate > 0 && isfinite(rate));
        }
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
