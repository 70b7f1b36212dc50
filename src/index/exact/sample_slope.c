/* A closer bound on match probabilities from bytes.
 *
 * With t = |x_a - y_b|^2 = u - h, u from the products of bytes and h = 2 (e_a.y_b + x'_a.g_b) what
 * rounding took, e = x - x' and g = y - y', the bound of sample_bytes.c lets every h be its worst,
 * off. But the h of all J^2 pairs together are small: their sum is 2 ((sum e).(sum y) + (sum x').
 * (sum g)), and of J errors the sum is about as long as sqrt(J) of them. Where f(t) = s(b - a
 * sqrt(t + 1e-6)) is convex, so is f(u - h) - c h in h for any slope c, and largest at an end of
 * [-off, off]:
 *   mean f(t) <= mean max(f(u - off) - c off, f(u + off) + c off) + c mean h
 * With c the mean slope, what off costs is only how far the slopes of the pairs lie apart. f is
 * convex where it is at most 1/2:
 *   f'' = a s (1 - s) (a (1 - 2 s) + 1 / sqrt(t + 1e-6)) / (4 (t + 1e-6))
 * and f(u - off) <= 1/2 says so for all t from there on; with f(0) > 1/2 that point is above 0,
 * where the kernel would have cut it off. */
#include "index/exact/sample_slope.h"

#include <math.h>
#include <string.h>

#include "base/wide.h"

#define RAISE 1.0001                /* of floats that bounds are made of */
#define UNIT 5.9604644775390625e-08 /* 2^-24 */
#define ENDS_APART                                                                                 \
    1e-5 /* of the squares: 80 u that the kernel takes from u, and off as a float                  \
          */
#define NEAREST_ROOT 0.001 /* sqrt(t + 1e-6) of t = 0 */

/* ---- sums ---- */

PNB__WIDE void pnb__byte_sums_add(pnb__byte_sums *sums, const pnb__float_sample *sample,
                                  const signed char *bytes, float scale)
{
    float *row = sums->row, *lost = sums->lost;
    const float *x = sample->row;
#pragma omp simd
    for (size_t d = 0; d < sums->dim; d++) {
        row[d] += x[d];
        lost[d] += x[d] - scale * (float)bytes[d];
    }
    sums->length += sqrt(sample->square);
    sums->off += sample->off;
}

PNB__WIDE static double length_of(const float *x, size_t n)
{
    double square = 0.0;
#pragma omp simd reduction(+ : square)
    for (size_t d = 0; d < n; d++)
        square += (double)x[d] * (double)x[d];
    return sqrt(square);
}

/* Of n additions each is right to u of what is there, at most the lengths' sum; a product of bytes
 * and the difference to it, at most twice a row's length, are rounded too. */
pnb__byte_lengths pnb__byte_sums_end(pnb__byte_sums *sums, size_t n)
{
    double slack = (double)(n + 4) * UNIT * sums->length + sums->off;
    const pnb__byte_lengths lengths = {(float)((length_of(sums->row, sums->dim) + slack) * RAISE),
                                       (float)((length_of(sums->lost, sums->dim) + slack) * RAISE)};
    memset(sums->row, 0, sums->dim * sizeof *sums->row);
    memset(sums->lost, 0, sums->dim * sizeof *sums->lost);
    sums->length = sums->off = 0.0;
    return lengths;
}

/* ---- a pair ---- */

pnb_status pnb__slope_pair_init(pnb__slope_pair *pair, size_t n, pnb_error *err)
{
    pnb_status status;
    float *numbers = NULL;
    *pair = (pnb__slope_pair){.n = n};
    PNB_TRY(PNB_ALLOC_ZERO_ROWS(pair->products, 2, n, err));
    PNB_TRY(PNB_ALLOC_ZERO_ROWS(numbers, 7, n, err));
    pair->no_sum = pair->products + n;
    pair->square = numbers;
    pair->scale = numbers + n;
    pair->off = numbers + 2 * n;
    pair->against = numbers + 3 * n;
    pair->one = numbers + 4 * n;
    pair->high = numbers + 5 * n;
    pair->low = numbers + 6 * n;
    for (size_t k = 0; k < n; k++)
        pair->one[k] = 1.0f;
done:
    if (status != PNB_OK)
        pnb__slope_pair_reset(pair);
    return status;
}

void pnb__slope_pair_reset(pnb__slope_pair *pair)
{
    pnb__free(pair->products);
    pnb__free(pair->square);
    *pair = (pnb__slope_pair){0};
}

/* f(u - off) of each pair of samples, or, with off against it, f(u + off); never too small. */
static void make_ends(const pnb__slope_pair *pair, const pnb__kernels *k, const pnb_ctx *ctx,
                      const double match[2], const float *off, float *value)
{
    static const float none = 0.0f, one = 1.0f;
    static const int32_t no_sum = 0;
    const pnb__sample_nearest_args args = {
        .n1 = 1,
        .n2 = pair->n,
        .n_samples = 1,
        .ld_product = pair->n,
        .ld_sample = pair->n,
        .ld = pair->n,
        .is_match = true,
        .a = match[0],
        .b = match[1],
        .products = pair->products,
        .one = {.scale = &one, .square = &none, .length = &one, .off = &none, .sum = &no_sum},
        .two = {pair->scale, pair->square, pair->one, off, pair->no_sum},
        .value = value};
    k->host.sample_nearest(ctx, &args);
}

/* What floats may lack of a sum of n terms, each of three roundings. */
static double lack(size_t n, float sum)
{
    return (double)(n + 8) * UNIT * (double)sum;
}

float pnb__slope_bound(const pnb__slope_pair *pair, const pnb__kernels *k, const pnb_ctx *ctx,
                       const double match[2], const pnb__byte_lengths lengths[2], float value)
{
    const float *high = pair->high, *low = pair->low, *off = pair->off;
    float most = 0.0f, rise = 0.0f, width = 0.0f, squares = 0.0f, sum = 0.0f, parts = 0.0f;
    if (!(match[1] > NEAREST_ROOT * match[0]))
        return value;
    for (size_t i = 0; i < pair->n; i++)
        pair->against[i] = -off[i];
    make_ends(pair, k, ctx, match, pair->off, pair->high);
    make_ends(pair, k, ctx, match, pair->against, pair->low);
#pragma omp simd reduction(max : most) reduction(+ : rise, width, squares)
    for (size_t i = 0; i < pair->n; i++) {
        most = high[i] > most ? high[i] : most;
        rise += high[i] - low[i];
        width += 2.0f * off[i];
        squares += pair->square[i];
    }
    if (!(most <= 0.5f) || !(width > 0.0f))
        return value;
    float slope = PNB_MAX(rise / width, 0.0f);
#pragma omp simd reduction(+ : sum, parts)
    for (size_t i = 0; i < pair->n; i++) {
        float turn = slope * off[i], from = high[i] - turn, to = low[i] + turn;
        sum += from > to ? from : to;
        parts += high[i] + turn;
    }
    double pairs = (double)pair->n, c = (double)slope;
    double mean_h = 2.0 / pairs *
                    ((double)lengths[0].lost * (double)lengths[1].all +
                     ((double)lengths[0].all + (double)lengths[0].lost) * (double)lengths[1].lost);
    double bound = ((double)sum + lack(pair->n, parts) + c * ENDS_APART * (double)squares) / pairs +
                   c * RAISE * mean_h;
    return fminf(value, nextafterf((float)bound, INFINITY));
}
