/* Rows in bytes of every table: what they stand for and how long what was taken is; and bounds on
 * samples from them, which hold whatever the rows. */
#include "tests/kernels/harness.h"

/* ---- byte_rows ---- */

static void check_rows(int table, size_t rows, size_t width, size_t ld_to, double size)
{
    pnb__kernels k;
    pnb_ctx *ctx;
    if (!table_at(table, &k, 2, &ctx))
        return;
    size_t ld = width + 3;
    float *x = calloc(rows * ld + 1, sizeof *x), *scale = calloc(rows + 1, sizeof *scale);
    signed char *to = malloc(rows * ld_to + 1);
    double *off = calloc(rows + 1, sizeof *off);
    int32_t *sum = calloc(rows + 1, sizeof *sum);
    pnb__rng rng;
    assert_true(x && scale && to && off && sum);
    pnb__rng_init(&rng, width, (uint64_t)table);
    for (size_t i = 0; i < rows * ld; i++)
        x[i] = (float)(size * pnb__rng_normal(&rng));
    memset(to, 0x55, rows * ld_to + 1);
    const pnb__byte_rows_args args = {.rows = rows,
                                      .width = width,
                                      .ld = ld,
                                      .ld_to = ld_to,
                                      .x = x,
                                      .to = to,
                                      .scale = scale,
                                      .off = off,
                                      .sum = sum};
    k.host.byte_rows(ctx, &args);
    assert_int_equal(to[rows * ld_to], 0x55);
    for (size_t i = 0; i < rows; i++) {
        double lost = 0, most = 0;
        int32_t all = 0;
        for (size_t d = 0; d < width; d++) {
            double left = (double)x[i * ld + d] - (double)scale[i] * to[i * ld_to + d];
            most = fmax(most, fabs((double)x[i * ld + d]));
            lost += left * left;
            all += to[i * ld_to + d];
            assert_true(to[i * ld_to + d] >= -127);
            assert_true(fabs(left) <= 0.501 * (double)scale[i] + 1e-30);
        }
        for (size_t d = width; d < ld_to; d++)
            assert_int_equal(to[i * ld_to + d], 0);
        assert_int_equal(sum[i], all);
        assert_true((double)scale[i] <= most / 126.9);
        double wide =
            1.01 * sqrt(lost) + sqrt((double)width) * (0x1p-15 * (double)scale[i] + 0x1p-74);
        if (!(off[i] >= sqrt(lost) && off[i] <= wide))
            fail_msg("%s: row %zu of %zu: %.9g is told as %.9g", k.name, i, width, sqrt(lost),
                     off[i]);
    }
    free(x), free(scale), free(to), free(off), free(sum);
    pnb_ctx_free(ctx);
}

static void test_rows(void **state)
{
    (void)state;
    const double sizes[] = {1, 1e-3, 1e12, 1e-22, 1e-28, 1e-35, 0};
    for (int t = 0; t < N_TABLES; t++)
        for (size_t c = 0; c < PNB_COUNT(sizes) * 4; c++) {
            size_t width = (const size_t[]){1, 17, 64, 515}[c % 4];
            check_rows(t, c % 5, width, width + c % 3, sizes[c / 4]);
        }
}

/* ---- sample_nearest ---- */

enum { N1 = 2, N2 = 37, J = 3, DIM = 24, ROWS1 = N1 * J, ROWS2 = N2 * J };

typedef struct side { /* rows, in bytes, and what is known of them */
    float x[ROWS2][DIM], scale[ROWS2], square[ROWS2], length[ROWS2], off[ROWS2];
    signed char q[ROWS2][DIM];
    int32_t sum[ROWS2];
} side;

static void fill_side(side *s, const pnb__kernels *k, size_t rows, bool is_second, uint64_t seed)
{
    double off[ROWS2];
    pnb__rng rng;
    pnb__rng_init(&rng, seed, is_second);
    for (size_t i = 0; i < rows; i++)
        for (size_t d = 0; d < DIM; d++) /* every seventh row spiked: bytes take much */
            s->x[i][d] = (float)(pnb__rng_normal(&rng) * (i % 7 == 3 && d == 5 ? 40 : 0.2));
    const pnb__byte_rows_args args = {.rows = rows,
                                      .width = DIM,
                                      .ld = DIM,
                                      .ld_to = DIM,
                                      .x = s->x,
                                      .to = s->q[0],
                                      .scale = s->scale,
                                      .off = off,
                                      .sum = s->sum};
    k->host.byte_rows(NULL, &args);
    for (size_t i = 0; i < rows; i++) {
        double square = 0;
        for (size_t d = 0; d < DIM; d++)
            square += (double)s->x[i][d] * (double)s->x[i][d];
        s->square[i] = (float)square;
        s->length[i] = (float)((sqrt(square) + (is_second ? 0 : off[i])) * 1.0001);
        s->off[i] = (float)(2 * off[i] * 1.0001);
        s->sum[i] *= is_second ? 128 : 1;
    }
}

/* The measure of a pair of rows in doubles; row q of the second side has its samples N2 apart. */
static double truth_of(const side *one, const side *two, size_t i, size_t q, bool is_match,
                       double a, double b)
{
    double sum = 0;
    for (size_t j = 0; j < J; j++)
        for (size_t l = 0; l < J; l++) {
            double d2 = 0;
            for (size_t d = 0; d < DIM; d++) {
                double delta = (double)one->x[i * J + j][d] - (double)two->x[l * N2 + q][d];
                d2 += delta * delta;
            }
            sum += is_match ? 1 / (1 + exp(a * sqrt(d2 + 1e-6) - b)) : sqrt(d2);
        }
    return sum / (J * J);
}

static void check_nearest(const pnb__kernels *k, bool is_match, double a, double b, uint64_t seed)
{
    static side one, two;
    static int32_t products[ROWS1][ROWS2];
    float value[N1 * N2];
    fill_side(&one, k, ROWS1, false, seed);
    fill_side(&two, k, ROWS2, true, seed);
    for (size_t r = 0; r < ROWS1; r++)
        for (size_t c = 0; c < ROWS2; c++) {
            products[r][c] = 0;
            for (size_t d = 0; d < DIM; d++)
                products[r][c] += (one.q[r][d] + 128) * two.q[c][d];
        }
    const pnb__sample_nearest_args args = {
        .n1 = N1,
        .n2 = N2,
        .n_samples = J,
        .ld_product = ROWS2,
        .ld_sample = N2,
        .ld = N2,
        .is_match = is_match,
        .a = a,
        .b = b,
        .products = products[0],
        .one = {one.scale, one.square, one.length, one.off, one.sum},
        .two = {two.scale, two.square, two.length, two.off, two.sum},
        .value = value};
    k->host.sample_nearest(NULL, &args);
    for (size_t i = 0; i < N1; i++)
        for (size_t q = 0; q < N2; q++) {
            double want = truth_of(&one, &two, i, q, is_match, a, b);
            double got = (double)value[i * N2 + q];
            if (!(is_match ? got >= want && got <= 1.0001 : got <= want && got >= 0))
                fail_msg("%s: row %zu, %zu: %.9g is bounded by %.9g", k->name, i, q, want, got);
        }
}

static void test_nearest(void **state)
{
    (void)state;
    static const double as[] = {0, 0.5, 10, 3000}, bs[] = {-3, 0, 10, 3000};
    for (int t = 0; t < N_TABLES; t++) {
        pnb_ctx *ctx;
        pnb__kernels k;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (size_t c = 0; c < 16; c++)
            check_nearest(&k, true, as[c / 4], bs[c % 4], c);
        for (uint64_t seed = 0; seed < 5; seed++)
            check_nearest(&k, false, 0, 0, seed);
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
