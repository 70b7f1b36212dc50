/* The two passes: plain and fast loops give the same bytes, and the plain ones those of the sums
 * that the header says. */
#include "io/image/resample.h"
#include "tests/io/image/support.h"

/* Random weights, also negative and extreme ones, through both sets of loops. */
static void fast_loops_equal_plain(void **state)
{
    (void)state;
    enum { N_IN = 300, N_OUT = 41, STRIDE = 28, ROW = 300 * 3 };
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    static unsigned char in[ROW * 40 + 64], a[ROW], b[ROW];
    int first[N_OUT], count[N_OUT];
    int32_t weight[N_OUT * STRIDE] = {0};
    int16_t low[N_OUT * STRIDE] = {0}, high[N_OUT * STRIDE] = {0};
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)pnb__rng_u32(&rng);
    for (int i = 0; i < N_OUT; i++) {
        count[i] = 1 + (int)pnb__rng_below(&rng, STRIDE);
        first[i] = (int)pnb__rng_below(&rng, 12);
        for (int j = 0; j < count[i]; j++) {
            int32_t w = (int32_t)pnb__rng_below(&rng, 1 << 21) - (1 << 20);
            weight[i * STRIDE + j] = w;
            high[i * STRIDE + j] = (int16_t)((w + (1 << 14)) >> 15);
            low[i * STRIDE + j] = (int16_t)(w - high[i * STRIDE + j] * (1 << 15));
        }
    }
    pnb__taps taps = {N_OUT, STRIDE, first, count, weight, low, high, NULL};
    pnb__resampler plain = pnb__resampler_plain(), best = pnb__resampler_best();
    for (int channels = 1; channels <= 4; channels++) {
        plain.horizontal(a, in, &taps, channels);
        best.horizontal(b, in, &taps, channels);
        assert_memory_equal(a, b, (size_t)(N_OUT * channels));
    }
    static const size_t widths[] = {1, 3, 15, 16, 17, 48, 255, ROW};
    for (size_t k = 0; k < PNB_COUNT(widths); k++) {
        for (int y = 0; y < N_OUT; y++) {
            plain.vertical(a, in, widths[k], &taps, y);
            best.vertical(b, in, widths[k], &taps, y);
            assert_memory_equal(a, b, widths[k]);
        }
    }
}

/* clip((2^21 + sum of pixel * weight) / 2^22), cut towards minus infinity, in 64 bits. */
static unsigned char sum_of(const unsigned char *in, size_t step, const pnb__taps *taps, int i)
{
    int64_t sum = 1 << (PNB__RESAMPLE_BITS - 1);
    for (int j = 0; j < taps->count[i]; j++)
        sum +=
            (int64_t)in[(size_t)(taps->first[i] + j) * step] * taps->weight[i * taps->stride + j];
    int64_t v = sum >= 0 ? sum >> PNB__RESAMPLE_BITS : -1;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void plain_loops_are_the_sums(void **state)
{
    (void)state;
    enum { N_IN = 20, N_OUT = 9, STRIDE = 8, MOST = 4 };
    pnb__rng rng;
    pnb__rng_init(&rng, 9, 0);
    unsigned char in[N_IN * N_IN * MOST + PNB__RESAMPLE_SLACK], out[N_IN * MOST];
    int first[N_OUT], count[N_OUT];
    int32_t weight[N_OUT * STRIDE] = {0};
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)pnb__rng_u32(&rng);
    for (int i = 0; i < N_OUT; i++) {
        count[i] = i == 0 ? 1 : 1 + (int)pnb__rng_below(&rng, STRIDE);
        first[i] = (int)pnb__rng_below(&rng, (uint64_t)(N_IN - count[i] + 1));
        for (int j = 0; j < count[i]; j++) /* sums leave 0..255 at both ends */
            weight[i * STRIDE + j] = (int32_t)pnb__rng_below(&rng, 1 << 21) - (1 << 20);
    }
    weight[0] = 1 << PNB__RESAMPLE_BITS; /* exactly one pixel */
    const pnb__taps taps = {N_OUT, STRIDE, first, count, weight, NULL, NULL, NULL};
    const pnb__resampler plain = pnb__resampler_plain();
    for (int channels = 1; channels <= MOST; channels++) {
        plain.horizontal(out, in, &taps, channels);
        for (int x = 0; x < N_OUT; x++)
            for (int c = 0; c < channels; c++)
                assert_int_equal(out[x * channels + c], sum_of(in + c, (size_t)channels, &taps, x));
        assert_int_equal(out[0], in[first[0] * channels]);
        size_t row = (size_t)(N_IN * channels);
        for (int y = 0; y < N_OUT; y++) {
            plain.vertical(out, in, row, &taps, y);
            for (size_t i = 0; i < row; i++)
                assert_int_equal(out[i], sum_of(in + i, row, &taps, y));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_loops_equal_plain),
        cmocka_unit_test(plain_loops_are_the_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
