/* What each precision promises against floats (penumbra/model.h) on the golden models, on every set
 * of instructions; choosing, going back, and what is refused. */
#include "penumbra/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "models/model.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"
/* Made pictures, or as many as the environment's PNB_PICTURES says, up to MOST, and captions; of
 * the tiles of plain C, which take their time, fewer. */
enum { N = 48, N_EMULATED = 4, MOST = 1000 };

static const char *const cases[] = {
    "base",        "clip_quickgelu",   "no_unc",          "siglip_tanh",
    "so400m_like", "pcmepp_two_paths", "open_clip_siglip"};

typedef struct rows {
    size_t n, dim;
    bool has_var;
    float *mean, *log_var; /* (N, D) */
} rows;

static pnb_model *open_on(const pnb_ctx *ctx, const char *name)
{
    char dir[512];
    pnb_model *m = NULL;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(dir, sizeof dir, CASES "%s", name);
    if (pnb_model_load(&m, ctx, dir, &err) != PNB_OK)
        fail_msg("%s: %s", dir, err.text);
    return m;
}

/* Pictures of waves and noise, captions of random words that end where the vocabulary does. */
static rows embed(pnb_model *m, bool text, size_t n)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    const pnb_tower_info *t = text ? &info->text : &info->vision;
    size_t n_pixels = 3 * info->vision.image_height * info->vision.image_width;
    size_t n_ids = info->text.context_length;
    rows r = {.n = n, .dim = info->embed_dim, .has_var = t->family == PNB_GAUSSIAN_DIAG};
    float *pixels = malloc((n * n_pixels + 1) * sizeof *pixels);
    int32_t *ids = malloc((n * n_ids + 1) * sizeof *ids);
    r.mean = malloc(n * r.dim * sizeof *r.mean);
    r.log_var = malloc(n * r.dim * sizeof *r.log_var);
    assert_true(pixels != NULL && ids != NULL && r.mean != NULL && r.log_var != NULL);
    pnb__rng rng;
    pnb_error err = PNB_ERROR_INIT;
    pnb__rng_init(&rng, 5, text);
    for (size_t i = 0; i < n * n_pixels; i++)
        pixels[i] = (float)(sin((double)(i % n_pixels) * (0.01 + 0.02 * (double)(i / n_pixels))) +
                            0.3 * pnb__rng_normal(&rng));
    for (size_t i = 0; i < n * n_ids; i++)
        ids[i] = (int32_t)(i % n_ids + 1 == n_ids ? info->text.vocab_size - 1
                                                  : pnb__rng_below(&rng, info->text.vocab_size));
    const pnb_encode_out out = {.mean = r.mean, .log_var = r.has_var ? r.log_var : NULL};
    pnb_status status = text ? pnb_model_encode_text(m, ids, n, n_ids, &out, &err)
                             : pnb_model_encode_image(m, pixels, n, &out, &err);
    if (status != PNB_OK)
        fail_msg("%s", err.text);
    free(pixels);
    free(ids);
    return r;
}

static void free_rows(rows *r)
{
    free(r->mean);
    free(r->log_var);
}

static double cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

/* The variance of each row, summed over its dimensions. */
static void sums(const rows *r, double sum[MOST])
{
    for (size_t i = 0; i < r->n; i++) {
        sum[i] = 0;
        for (size_t d = 0; d < r->dim; d++)
            sum[i] += exp((double)r->log_var[i * r->dim + d]);
    }
}

/* How many rows have less. */
static void ranks(const rows *r, double rank[MOST])
{
    double sum[MOST];
    sums(r, sum);
    for (size_t i = 0; i < r->n; i++) {
        rank[i] = 0;
        for (size_t j = 0; j < r->n; j++)
            rank[i] += sum[j] < sum[i];
    }
}

static double spearman(const rows *a, const rows *b)
{
    double x[MOST], y[MOST], squares = 0;
    ranks(a, x);
    ranks(b, y);
    double n = (double)a->n;
    for (size_t i = 0; i < a->n; i++)
        squares += (x[i] - y[i]) * (x[i] - y[i]);
    return 1 - 6 * squares / (n * (n * n - 1));
}

/* Largest relative change of a row's variance, and of a single dimension's. */
static void variances(const rows *whole, const rows *half, double most[2])
{
    double a[MOST], b[MOST];
    sums(whole, a);
    sums(half, b);
    most[0] = most[1] = 0;
    for (size_t i = 0; i < whole->n; i++)
        most[0] = fmax(most[0], fabs(b[i] / a[i] - 1));
    for (size_t i = 0; i < whole->n * whole->dim; i++)
        most[1] = fmax(most[1], fabs(expm1((double)half->log_var[i] - (double)whole->log_var[i])));
}

/* And of a single dimension's variance. Of int8 no variances and ranks: the golden models have
 * random weights, whose variances are nearly alike. */
static const struct {
    pnb_precision precision;
    double dimension;
} promises[] = {{PNB_PRECISION_FP32_TILES, 1e-5},
                {PNB_PRECISION_FP32_TILES_FAST, 5e-5},
                {PNB_PRECISION_BF16, 0.02},
                {PNB_PRECISION_INT8, 1}};

static void compare(const rows *whole, const rows *other, size_t promise, const char *what)
{
    double least = 1, most[2] = {0, 0}, rank = 1;
    for (size_t i = 0; i < whole->n; i++)
        least = fmin(
            least, cosine(whole->mean + i * whole->dim, other->mean + i * whole->dim, whole->dim));
    if (whole->has_var) {
        variances(whole, other, most);
        rank = whole->n >= N ? spearman(whole, other) : 1;
    }
    print_message("%s: 1 - cosine %.2e, variance of a row %.2e, of a dimension %.2e, 1 - rank "
                  "%.2e\n",
                  what, 1 - least, most[0], most[1], 1 - rank);
    pnb_precision_promise p = pnb_precision_get_promise(promises[promise].precision);
    assert_true(least >= p.least_cosine && most[0] <= p.variance && rank >= p.rank &&
                most[1] <= promises[promise].dimension);
}

static size_t n_wanted(bool text)
{
    const char *wanted = getenv("PNB_PICTURES");
    size_t n = wanted != NULL && !text ? strtoul(wanted, NULL, 10) : N;
    assert_true(n >= N && n <= MOST);
    return n;
}

/* In floats, in `promise`, and in floats again, which 8 bits refuse. */
static void check_side(pnb_model *m, pnb_isa isa, bool text, size_t promise, const char *name)
{
    const pnb_precision precision = promises[promise].precision;
    const size_t n = isa == PNB_ISA_EMULATED ? N_EMULATED : n_wanted(text);
    bool is_back = precision != PNB_PRECISION_INT8;
    char what[128];
    snprintf(what, sizeof what, "%s, %s, %s, %s", name, pnb_isa_name(isa),
             pnb_precision_name(precision), text ? "text" : "image");
    rows whole = embed(m, text, n);
    assert_int_equal(pnb_model_set_precision(m, precision, NULL), PNB_OK);
    assert_int_equal(pnb_model_get_precision(m), precision);
    rows other = embed(m, text, n);
    compare(&whole, &other, promise, what);
    bool differs = memcmp(whole.mean, other.mean, whole.n * whole.dim * sizeof(float)) != 0;
    assert_int_equal(differs, !pnb_model_precision_is_floats(m, precision));
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_FP32, NULL),
                     is_back ? PNB_OK : PNB_UNSUPPORTED);
    rows again = embed(m, text, n);
    assert_memory_equal(is_back ? whole.mean : other.mean, again.mean,
                        whole.n * whole.dim * sizeof(float));
    free_rows(&whole);
    free_rows(&other);
    free_rows(&again);
}

static void check_case(const char *name, pnb_isa isa)
{
    pnb_ctx_opts opts = {.isa = isa, .n_threads = 2};
    pnb_ctx *ctx = NULL;
    if (pnb_ctx_create(&ctx, &opts, NULL) != PNB_OK)
        return;
    for (int text = 0; text < 2; text++) {
        pnb_model *m = open_on(ctx, name);
        const pnb_model_info *info = pnb_model_get_info(m);
        for (size_t i = 0; i < PNB_COUNT(promises); i++)
            if (text ? info->text.present : info->vision.present)
                check_side(m, isa, text, i, name);
        pnb_model_free(m);
    }
    pnb_ctx_free(ctx);
}

/* All models with what this machine takes by itself and with the tiles of plain C, one with every
 * set it has. */
static void test_promises(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        check_case(cases[i], PNB_ISA_AUTO);
        check_case(cases[i], PNB_ISA_EMULATED);
    }
    for (int isa = PNB_ISA_GENERIC; isa < PNB_ISA_EMULATED; isa++)
        check_case("base", (pnb_isa)isa);
}

static void test_refused(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_precision kept = PNB_PRECISION_BF16;
    pnb_ctx *ctx = NULL;
    pnb_model *m = NULL;
    assert_int_equal(pnb_precision_parse(&kept, "fp8", &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "fp32-tiles-fast, bf16, int8"));
    assert_int_equal(kept, PNB_PRECISION_BF16);
    assert_string_equal(pnb_precision_name(PNB_PRECISION_BF16), "bf16");
    assert_int_equal(pnb_ctx_create(&ctx, NULL, NULL), PNB_OK);
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 1, NULL), PNB_OK);
    assert_int_equal(pnb_model_set_precision(m, (pnb_precision)7, NULL), PNB_ARG);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_BF16, NULL), PNB_OK);
    assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_INT8, 7, NULL), PNB_OK);
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_BF16, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "8 bits"));
    assert_int_equal(pnb_model_get_precision(m), PNB_PRECISION_FP32);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_FP32, NULL), PNB_OK);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_INT8, NULL), PNB_OK); /* it is that */
    assert_int_equal(pnb_model_get_precision(m), PNB_PRECISION_FP32);
    pnb_model_free(m);
    m = NULL;
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 1, NULL), PNB_OK);
    assert_int_equal(pnb_model_quantize(m, PNB_WEIGHTS_BF16, 7, NULL), PNB_OK);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_INT8, NULL), PNB_ARG);
    pnb_model_free(m);
    m = NULL;
    assert_int_equal(pnb_model_init(&m, ctx, "tiny", 1, NULL), PNB_OK);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_INT8, NULL), PNB_OK);
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_BF16, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "open it again"));
    pnb_model_free(m);
    m = NULL;
    assert_int_equal(pnb_model_init(&m, ctx, "pcme-coco", 1, NULL), PNB_OK);
    for (int p = PNB_PRECISION_FP32_TILES; p <= PNB_PRECISION_INT8; p++)
        assert_int_equal(pnb_model_set_precision(m, (pnb_precision)p, NULL), PNB_UNSUPPORTED);
    pnb_error_reset(&err);
    assert_int_equal(pnb_model_set_precision(m, PNB_PRECISION_BF16, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no transformer blocks"));
    pnb_model_free(m);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_promises),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
