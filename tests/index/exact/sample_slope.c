/* What bytes take of a row's samples together, and the bound that follows: never below the mean it
 * bounds, whatever the errors are that the lengths allow. */
#include "index/exact/sample_slope.h"

#include <math.h>

#include "tests/index/exact/shapes.h"

enum { DIM = 96, MOST_J = 4 };

typedef struct samples {
    double all[MOST_J][DIM]; /* as they are */
    float row[MOST_J][DIM];  /* as floats */
    signed char bytes[MOST_J][DIM];
    float scale[MOST_J];
    double square[MOST_J], off[MOST_J]; /* of the floats, and what they took */
} samples;

/* J samples around one point, spread as far as it is long. */
static void draw(samples *s, size_t n, uint64_t stream)
{
    double point[DIM];
    pnb__rng rng;
    pnb__rng_init(&rng, 5, stream);
    pnb__rng_normals(&rng, DIM, point);
    for (size_t j = 0; j < n; j++) {
        double most = 0.0;
        pnb__rng_normals(&rng, DIM, s->all[j]);
        s->square[j] = s->off[j] = 0.0;
        for (size_t d = 0; d < DIM; d++) {
            s->all[j][d] += point[d];
            s->row[j][d] = (float)s->all[j][d];
            most = fmax(most, fabs((double)s->row[j][d]));
            s->square[j] += (double)s->row[j][d] * (double)s->row[j][d];
            s->off[j] += pow(s->all[j][d] - (double)s->row[j][d], 2);
        }
        s->off[j] = sqrt(s->off[j]);
        s->scale[j] = (float)(most / 127.0);
        for (size_t d = 0; d < DIM; d++)
            s->bytes[j][d] = (signed char)lrintf(s->row[j][d] / s->scale[j]);
    }
}

static pnb__byte_lengths lengths_of(const samples *s, size_t n)
{
    float room[2][DIM] = {{0}};
    pnb__byte_sums sums = {.dim = DIM, .row = room[0], .lost = room[1]};
    pnb__byte_lengths first = {0}, again;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t j = 0; j < n; j++) {
            const pnb__float_sample sample = {s->row[j], s->square[j], s->off[j]};
            pnb__byte_sums_add(&sums, &sample, s->bytes[j], s->scale[j]);
        }
        again = pnb__byte_sums_end(&sums, n);
        first = pass == 0 ? again : first;
    }
    assert_memory_equal(&first, &again, sizeof first); /* they begin again */
    return first;
}

static double lost_at(const samples *s, size_t j, size_t d)
{
    return s->all[j][d] - (double)s->scale[j] * s->bytes[j][d];
}

/* At least the lengths of the sums, and hardly more. */
static void test_lengths(void **state)
{
    (void)state;
    for (size_t n = 1; n <= MOST_J; n++) {
        samples s;
        double all = 0.0, lost = 0.0;
        draw(&s, n, n);
        const pnb__byte_lengths got = lengths_of(&s, n);
        for (size_t d = 0; d < DIM; d++) {
            double sum = 0.0, gone = 0.0;
            for (size_t j = 0; j < n; j++) {
                sum += s.all[j][d];
                gone += lost_at(&s, j, d);
            }
            all += sum * sum;
            lost += gone * gone;
        }
        assert_true((double)got.all >= sqrt(all) && (double)got.all <= 1.0005 * sqrt(all));
        assert_true((double)got.lost >= sqrt(lost) && (double)got.lost <= 1.001 * sqrt(lost));
    }
}

static double length_of(const samples *s, size_t j, bool of_bytes)
{
    double square = 0.0;
    for (size_t d = 0; d < DIM; d++) {
        double x = of_bytes ? (double)s->scale[j] * s->bytes[j][d] : s->all[j][d];
        square += x * x;
    }
    return sqrt(square);
}

static double lost_of(const samples *s, size_t j)
{
    double square = 0.0;
    for (size_t d = 0; d < DIM; d++)
        square += pow(lost_at(s, j, d), 2);
    return sqrt(square);
}

/* The terms of a pair as sample_bytes.c gives them, and its mean in doubles. */
static double fill(pnb__slope_pair *p, const samples *x, const samples *y, size_t n, double a,
                   double b)
{
    double mean = 0.0;
    for (size_t k = 0; k < n * n; k++) {
        size_t i = k / n, j = k % n;
        double t = 0.0;
        p->products[k] = 0;
        for (size_t d = 0; d < DIM; d++) {
            p->products[k] += x->bytes[i][d] * y->bytes[j][d];
            t += pow(x->all[i][d] - y->all[j][d], 2);
        }
        p->square[k] = (float)x->square[i] + (float)y->square[j];
        p->scale[k] = x->scale[i] * y->scale[j];
        p->off[k] = (float)(2.0002 * (lost_of(x, i) * length_of(y, j, false) +
                                      length_of(x, i, true) * lost_of(y, j)));
        mean += 1.0 / (1.0 + exp(a * sqrt(t + 1e-6) - b)) / (double)(n * n);
    }
    return mean;
}

/* Never below the mean, nearer to it than the bound by each error alone, and that very bound where
 * the slope says nothing: above one half, and with an offset below 0. */
static void test_bound(void **state)
{
    (void)state;
    static const struct {
        double a, b;
        bool is_closer;
    } cases[] = {
        {0.1, 1.5, true}, {0.2, 3, true}, {1, 25, false}, {0.05, 4, false}, {0.1, -1, false}};
    pnb_ctx *ctx = context(PNB_ISA_GENERIC);
    pnb__kernels k;
    pnb__kernels_fill_host(&k, ctx, PNB__F32);
    for (size_t c = 0; c < PNB_COUNT(cases); c++)
        for (uint64_t draws = 0; draws < 50; draws++) {
            samples x, y;
            pnb__slope_pair p;
            const double match[2] = {cases[c].a, cases[c].b};
            assert_int_equal(pnb__slope_pair_init(&p, MOST_J * MOST_J, NULL), PNB_OK);
            draw(&x, MOST_J, 100 + 2 * draws);
            draw(&y, MOST_J, 101 + 2 * draws);
            double mean = fill(&p, &x, &y, MOST_J, match[0], match[1]);
            const pnb__byte_lengths lengths[2] = {lengths_of(&x, MOST_J), lengths_of(&y, MOST_J)};
            float got = pnb__slope_bound(&p, &k, ctx, match, lengths, 1.0f);
            float each = 0.0f;
            for (size_t i = 0; i < p.n; i++)
                each += p.high[i] / (float)p.n;
            assert_true((double)got >= mean);
            if (cases[c].is_closer)
                assert_true((double)got - mean < 0.7 * ((double)each - mean));
            else
                assert_true(got == 1.0f);
            /* a value that is closer already stays */
            assert_true(pnb__slope_bound(&p, &k, ctx, match, lengths, (float)mean) == (float)mean);
            pnb__slope_pair_reset(&p);
        }
    pnb_ctx_free(ctx);
}

/* Errors as bad as they may be: every pair of samples at that end of its own that the mean suffers
 * from, and lengths that allow no more than their sum. */
static void test_worst_errors(void **state)
{
    (void)state;
    enum { N = 9 };
    const double match[2] = {1.5, 1};
    pnb_ctx *ctx = context(PNB_ISA_GENERIC);
    pnb__kernels k;
    pnb__slope_pair p;
    pnb__kernels_fill_host(&k, ctx, PNB__F32);
    assert_int_equal(pnb__slope_pair_init(&p, N, NULL), PNB_OK);
    for (int spread = 0; spread < 8; spread++) {
        double ends[2][N], rise = 0, width = 0, sum = 0, mean = 0;
        for (size_t i = 0; i < N; i++) {
            p.square[i] = 2.0f + 0.2f * (float)spread * (float)i;
            p.off[i] = 0.3f + 0.05f * (float)(i % 4);
            for (int e = 0; e < 2; e++) {
                double t = (double)p.square[i] + (e == 0 ? -1 : 1) * (double)p.off[i];
                ends[e][i] = 1 / (1 + exp(match[0] * sqrt(t + 1e-6) - match[1]));
            }
            rise += ends[0][i] - ends[1][i];
            width += 2 * (double)p.off[i];
        }
        for (size_t i = 0; i < N; i++) {
            double turn = rise / width * (double)p.off[i];
            int e = ends[0][i] - turn < ends[1][i] + turn;
            sum += e == 0 ? (double)p.off[i] : -(double)p.off[i];
            mean += ends[e][i] / N;
        }
        /* 2 / N of the lengths' product is the mean of errors of this sum */
        const pnb__byte_lengths lengths[2] = {{.lost = (float)fmax(sum, 0)}, {.all = 0.5f}};
        float got = pnb__slope_bound(&p, &k, ctx, match, lengths, 1.0f);
        double room = rise / width * fmax(-sum, 0) / N;
        assert_true((double)got >= mean && (double)got <= 1.0003 * (mean + room));
    }
    pnb__slope_pair_reset(&p);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_worst_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
