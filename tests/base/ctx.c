/* The context: resolved defaults, refusals, log hook, a clock that does not go back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

static void defaults_are_resolved(void **state)
{
    (void)state;
    pnb_ctx *ctx = NULL;
    assert_int_equal(pnb__ctx_create(&ctx, NULL, NULL), PNB_OK);
    assert_true(pnb_ctx_n_threads(ctx) >= 1);
    assert_int_equal(ctx->device, PNB_DEVICE_CPU);
    assert_int_not_equal(ctx->isa, PNB_ISA_AUTO);
    pnb_ctx_free(ctx);
    pnb_ctx_free(NULL);
    assert_true(strlen(pnb_version()) >= 5);
}

static void choices_are_kept(void **state)
{
    (void)state;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 3;
    opts.device = PNB_DEVICE_REF;
    opts.isa = PNB_ISA_GENERIC;
    pnb_ctx *ctx = NULL;
    assert_int_equal(pnb__ctx_create(&ctx, &opts, NULL), PNB_OK);
    assert_int_equal(pnb_ctx_n_threads(ctx), 3);
    assert_int_equal(ctx->device, PNB_DEVICE_REF);
    assert_int_equal(ctx->isa, PNB_ISA_GENERIC);
    pnb_ctx_free(ctx);
}

static void assert_refused(pnb_ctx_opts opts, const char *word)
{
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__ctx_create(&ctx, &opts, &err), PNB_ARG);
    assert_null(ctx);
    assert_non_null(strstr(err.text, word));
}

static void bad_choices_are_refused(void **state)
{
    (void)state;
    int outside = 99; /* in a variable: compilers warn about constants outside an enum */
    assert_refused((pnb_ctx_opts){.n_threads = -1}, "-1 threads");
    assert_refused((pnb_ctx_opts){.device = (pnb_device)outside}, "device 99");
    assert_refused((pnb_ctx_opts){.isa = (pnb_isa)outside}, "instruction set 99");
}

/* What this machine lacks is UNSUPPORTED, what it has can be asked for by name. */
static void isa_is_a_ceiling(void **state)
{
    (void)state;
    pnb__cpu cpu = pnb__cpu_look();
    pnb_ctx *chosen = NULL;
    assert_int_equal(pnb__ctx_create(&chosen, NULL, NULL), PNB_OK);
    assert_int_equal(chosen->isa, pnb__cpu_fastest(&cpu));
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_EMULATED; isa++) {
        pnb_ctx_opts opts = {.isa = (pnb_isa)isa};
        pnb_ctx *ctx = NULL;
        pnb_status status = pnb__ctx_create(&ctx, &opts, NULL);
        bool is_here = isa <= (int)pnb__cpu_best(&cpu) || isa == PNB_ISA_EMULATED;
        assert_int_equal(status, is_here ? PNB_OK : PNB_UNSUPPORTED);
        if (ctx != NULL) {
            assert_int_equal(ctx->emulates_tiles, isa == PNB_ISA_EMULATED);
            assert_int_equal(ctx->isa, isa == PNB_ISA_EMULATED ? PNB_ISA_GENERIC : isa);
        }
        pnb_ctx_free(ctx);
    }
    pnb_ctx_free(chosen);
}

/* Words there and back; a stranger is told the words. */
static void isas_have_names(void **state)
{
    (void)state;
    for (int isa = PNB_ISA_AUTO; isa <= PNB_ISA_EMULATED; isa++) {
        pnb_isa back = PNB_ISA_AUTO;
        assert_int_equal(pnb_isa_parse(&back, pnb_isa_name((pnb_isa)isa), NULL), PNB_OK);
        assert_int_equal((int)back, isa);
    }
    assert_string_equal(pnb_isa_name(PNB_ISA_AVX512_VNNI), "avx512vnni");
    pnb_isa kept = PNB_ISA_AVX2;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_isa_parse(&kept, "sse9", &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "avx512bf16"));
    assert_int_equal((int)kept, (int)PNB_ISA_AVX2);
}

typedef struct log_record {
    int n_calls;
    pnb_log_level level;
    char text[64];
} log_record;

static void keep_log(void *user, pnb_log_level level, const char *text)
{
    log_record *record = user;
    record->n_calls++;
    record->level = level;
    snprintf(record->text, sizeof record->text, "%s", text);
}

static void log_reaches_the_hook(void **state)
{
    (void)state;
    log_record record = {0};
    struct pnb_ctx ctx = {.log = keep_log, .log_user = &record};
    pnb__log(&ctx, PNB_LOG_WARN, "%d rows", 3);
    assert_int_equal(record.n_calls, 1);
    assert_int_equal(record.level, PNB_LOG_WARN);
    assert_string_equal(record.text, "3 rows");
    ctx.log = NULL;
    pnb__log(&ctx, PNB_LOG_WARN, "nobody listens");
    pnb__log(NULL, PNB_LOG_WARN, "nobody listens");
    assert_int_equal(record.n_calls, 1);
}

static void time_goes_forward(void **state)
{
    (void)state;
    double before = pnb__now_s();
    assert_true(before > 0);
    assert_true(pnb__now_s() >= before);
}

static void test_device_words(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_device device = PNB_DEVICE_REF;
    int index = 7;
    const char *const wrong[] = {"",        "gpu",        "cuda:",   "cuda:x",
                                 "cuda:-1", "cuda:99999", "cuda:1 ", "cpu:0"};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        pnb_error_reset(&err);
        assert_int_equal(pnb_device_parse(&device, &index, wrong[i], &err), PNB_NOT_FOUND);
        assert_true(device == PNB_DEVICE_REF && index == 7);
        assert_non_null(strstr(err.text, "cpu, ref, cuda, cuda:1"));
    }
    for (unsigned kind = 0; kind <= PNB_DEVICE_CUDA; kind++) {
        assert_int_equal(pnb_device_parse(&device, &index, pnb_device_name((pnb_device)kind), NULL),
                         PNB_OK);
        assert_int_equal(device, kind);
    }
    assert_string_equal(pnb_device_name((pnb_device)99), "unknown");
    assert_int_equal(pnb_device_parse(&device, &index, "cpu", NULL), PNB_OK);
    assert_true(device == PNB_DEVICE_CPU && index == 0);
    assert_int_equal(pnb_device_parse(&device, &index, "ref", NULL), PNB_OK);
    assert_true(device == PNB_DEVICE_REF && index == 0);
    assert_int_equal(pnb_device_parse(&device, &index, "cuda:12", NULL), PNB_OK);
    assert_true(device == PNB_DEVICE_CUDA && index == 12);
    assert_int_equal(pnb_device_parse(&device, &index, "cuda", NULL), PNB_OK);
    assert_true(device == PNB_DEVICE_CUDA && index == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_words),    cmocka_unit_test(defaults_are_resolved),
        cmocka_unit_test(choices_are_kept),     cmocka_unit_test(bad_choices_are_refused),
        cmocka_unit_test(isa_is_a_ceiling),     cmocka_unit_test(isas_have_names),
        cmocka_unit_test(log_reaches_the_hook), cmocka_unit_test(time_goes_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
