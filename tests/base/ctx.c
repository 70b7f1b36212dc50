/* The context and the parallel loop: resolved defaults, refusals, log hook, a split that covers the
 * range once and is the same in every run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

#define N_ITEMS 1000
#define MAX_CHUNKS 64

static void defaults_are_resolved(void **state)
{
    (void)state;
    pnb_ctx *ctx = NULL;
    assert_int_equal(pnb_ctx_create(&ctx, NULL, NULL), PNB_OK);
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
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    assert_int_equal(pnb_ctx_n_threads(ctx), 3);
    assert_int_equal(ctx->device, PNB_DEVICE_REF);
    assert_int_equal(ctx->isa, PNB_ISA_GENERIC);
    pnb_ctx_free(ctx);
}

static void assert_refused(pnb_ctx_opts opts, const char *word)
{
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, &err), PNB_ARG);
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
    pnb_ctx *best = NULL;
    assert_int_equal(pnb_ctx_create(&best, NULL, NULL), PNB_OK);
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_AVX512_VNNI; isa++) {
        pnb_ctx_opts opts = {.isa = (pnb_isa)isa};
        pnb_ctx *ctx = NULL;
        pnb_status status = pnb_ctx_create(&ctx, &opts, NULL);
        assert_int_equal(status, isa <= (int)best->isa ? PNB_OK : PNB_UNSUPPORTED);
        pnb_ctx_free(ctx);
    }
    pnb_ctx_free(best);
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

typedef struct split {
    int n_visits[N_ITEMS];
    size_t begin[MAX_CHUNKS], end[MAX_CHUNKS];
    int n_calls[MAX_CHUNKS];
} split;

static void record_range(void *user, size_t begin, size_t end, int thread)
{
    split *s = user;
    for (size_t i = begin; i < end; i++)
        s->n_visits[i]++; /* ranges do not overlap: ASan and the assertions below would tell */
    s->begin[thread] = begin;
    s->end[thread] = end;
    s->n_calls[thread]++;
}

static void ranges_cover_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 999, N_ITEMS};
    static const size_t min_chunks[] = {0, 1, 100, 5000};
    for (int n_threads = 1; n_threads <= 9; n_threads += 2) {
        struct pnb_ctx ctx = {.n_threads = n_threads};
        for (size_t k = 0; k < PNB_COUNT(sizes) * PNB_COUNT(min_chunks); k++) {
            size_t n = sizes[k % PNB_COUNT(sizes)];
            size_t min_chunk = min_chunks[k / PNB_COUNT(sizes)];
            split first, second;
            memset(&first, 0, sizeof first);
            memset(&second, 0, sizeof second);
            pnb__parallel_for(&ctx, n, min_chunk, record_range, &first);
            pnb__parallel_for(&ctx, n, min_chunk, record_range, &second);
            assert_memory_equal(&first, &second, sizeof first);
            for (size_t i = 0; i < N_ITEMS; i++)
                assert_int_equal(first.n_visits[i], i < n);
            for (int c = 0; c < MAX_CHUNKS; c++) {
                assert_true(first.n_calls[c] <= 1);
                assert_true(c < n_threads || first.n_calls[c] == 0);
            }
        }
    }
}

static void small_work_stays_on_one_thread(void **state)
{
    (void)state;
    struct pnb_ctx ctx = {.n_threads = 8};
    split s;
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 100, 100, record_range, &s);
    assert_int_equal(s.begin[0], 0);
    assert_int_equal(s.end[0], 100);
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 101, 100, record_range, &s);
    assert_int_equal(s.n_calls[1], 1);
    assert_int_equal(s.n_calls[2], 0);
    memset(&s, 0, sizeof s);
    pnb__parallel_for(NULL, 100, 1, record_range, &s);
    assert_int_equal(s.end[0], 100);
}

typedef struct nested {
    const pnb_ctx *ctx;
    split inner[2];
} nested;

static void run_inner(void *user, size_t begin, size_t end, int thread)
{
    nested *outer = user;
    (void)thread;
    for (size_t i = begin; i < end; i++)
        pnb__parallel_for(outer->ctx, N_ITEMS, 1, record_range, &outer->inner[i]);
}

static void nested_loops_run_inline(void **state)
{
    (void)state;
    struct pnb_ctx ctx = {.n_threads = 2};
    nested outer;
    memset(&outer, 0, sizeof outer);
    outer.ctx = &ctx;
    pnb__parallel_for(&ctx, 2, 1, run_inner, &outer);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(outer.inner[i].end[0], N_ITEMS);
        assert_int_equal(outer.inner[i].n_calls[1], 0);
    }
}

static void time_goes_forward(void **state)
{
    (void)state;
    double before = pnb__now_s();
    assert_true(before > 0);
    assert_true(pnb__now_s() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_resolved),
        cmocka_unit_test(choices_are_kept),
        cmocka_unit_test(bad_choices_are_refused),
        cmocka_unit_test(isa_is_a_ceiling),
        cmocka_unit_test(log_reaches_the_hook),
        cmocka_unit_test(ranges_cover_once),
        cmocka_unit_test(small_work_stays_on_one_thread),
        cmocka_unit_test(nested_loops_run_inline),
        cmocka_unit_test(time_goes_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
