/* Times normal random numbers on one thread: one by one, many at once, and by the C library's own
 * logarithm and cosine, from the same blocks.
 *
 *   normals N ROUNDS
 *
 * Prints the least seconds of the rounds for N numbers each way, in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

enum { PIECE = 1024, WAYS = 3 };

static const char *const names[WAYS] = {"one by one", "many at once", "by libm"};

static double by_libm(pnb__rng *rng)
{
    double u = 1 - pnb__rng_uniform(rng), v = pnb__rng_uniform(rng);
    return sqrt(-2 * log(u)) * cos(6.283185307179586477 * v);
}

/* n normals of a stream, whose sum keeps the compiler from leaving them out. */
static double draw(int way, size_t n)
{
    double some[PIECE], sum = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = PNB_MIN(n - at, (size_t)PIECE);
        if (way == 1)
            pnb__rng_normals(&rng, here, some);
        for (size_t i = 0; way != 1 && i < here; i++)
            some[i] = way == 0 ? pnb__rng_normal(&rng) : by_libm(&rng);
        for (size_t i = 0; i < here; i++)
            sum += some[i];
    }
    return sum;
}

int main(int argc, char **argv)
{
    long n = argc == 3 ? atol(argv[1]) : 0, rounds = argc == 3 ? atol(argv[2]) : 0;
    double least[WAYS] = {INFINITY, INFINITY, INFINITY}, sum[WAYS] = {0};
    if (n < 1 || rounds < 1) {
        fprintf(stderr, "usage: normals N ROUNDS\n");
        return 2;
    }
    for (long r = 0; r < rounds; r++)
        for (int way = 0; way < WAYS; way++) {
            double start = pnb__now_s();
            sum[way] = draw(way, (size_t)n);
            least[way] = fmin(least[way], pnb__now_s() - start);
        }
    for (int way = 0; way < WAYS; way++)
        printf("%-14s %.4f s, %.2f ns each, of the first %.3f (sum %.9g)\n", names[way], least[way],
               1e9 * least[way] / (double)n, least[way] / least[0], sum[way]);
    return 0;
}
