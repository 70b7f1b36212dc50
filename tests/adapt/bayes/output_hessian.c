/* The curvature by the projected rows against differences: J of the logits, Lambda of the loss, and
 * the product written out; and that rows add up whatever tile they lie in. */
#include "tests/adapt/world.h"

#include "adapt/bayes/kronecker.h"

enum { M = 5, Q = 4 };

typedef struct world {
    pnb__contrast c;
    double v[M][Q]; /* unit rows */
} world;

static void make_world(world *w, pnb_adapt_loss loss, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    w->c = (pnb__contrast){loss, 3.0, -0.7};
    for (size_t k = 0; k < M; k++) {
        double square = 0;
        for (size_t d = 0; d < Q; d++) {
            w->v[k][d] = pnb__rng_normal(&rng);
            square += w->v[k][d] * w->v[k][d];
        }
        for (size_t d = 0; d < Q; d++)
            w->v[k][d] /= sqrt(square);
    }
}

static void logits(const world *w, const double *g, double *z)
{
    double square = 0;
    for (size_t d = 0; d < Q; d++)
        square += g[d] * g[d];
    for (size_t k = 0; k < M; k++) {
        z[k] = w->c.bias;
        for (size_t d = 0; d < Q; d++)
            z[k] += w->c.scale * w->v[k][d] * g[d] / sqrt(square);
    }
}

/* Of a row whose match is number 2. */
static double loss_of(const world *w, const double *z)
{
    double sum = 0;
    if (w->c.loss == PNB_ADAPT_LOSS_INFONCE) {
        for (size_t k = 0; k < M; k++)
            sum += exp(z[k]);
        return log(sum) - z[2];
    }
    for (size_t k = 0; k < M; k++)
        sum += log1p(exp(k == 2 ? -z[k] : z[k]));
    return sum;
}

static double second_difference(const world *w, const double *z, size_t k, size_t l)
{
    const double step = 1e-3;
    double sum = 0;
    for (int i = -1; i <= 1; i += 2)
        for (int j = -1; j <= 1; j += 2) {
            double at[M];
            memcpy(at, z, sizeof at);
            at[k] += i * step;
            at[l] += j * step;
            sum += i * j * loss_of(w, at);
        }
    return sum / (4 * step * step);
}

/* b += J^T Lambda J of one row, all by differences */
static void add_naive(const world *w, const double *g, double b[Q][Q])
{
    double z[M], high[M], low[M], j[M][Q], at[Q];
    const double step = 1e-5;
    logits(w, g, z);
    for (size_t d = 0; d < Q; d++) {
        memcpy(at, g, sizeof at);
        at[d] = g[d] + step;
        logits(w, at, high);
        at[d] = g[d] - step;
        logits(w, at, low);
        for (size_t k = 0; k < M; k++)
            j[k][d] = (high[k] - low[k]) / (2 * step);
    }
    for (size_t k = 0; k < M; k++)
        for (size_t l = 0; l < M; l++)
            for (size_t d = 0; d < Q; d++)
                for (size_t e = 0; e < Q; e++)
                    b[d][e] += j[k][d] * second_difference(w, z, k, l) * j[l][e];
}

static void split(const double *g, size_t n, double *unit, double *length)
{
    for (size_t i = 0; i < n; i++) {
        double square = 0;
        for (size_t d = 0; d < Q; d++)
            square += g[i * Q + d] * g[i * Q + d];
        length[i] = sqrt(square);
        for (size_t d = 0; d < Q; d++)
            unit[i * Q + d] = g[i * Q + d] / length[i];
    }
}

static void against_differences(void **state)
{
    enum { N = 6 };
    for (int loss = 0; loss < PNB_N_ADAPT_LOSSES; loss++) {
        double g[N * Q], unit[N * Q], length[N], b[Q * Q] = {0}, wanted[Q][Q] = {{0}};
        world w;
        pnb__rng rng;
        make_world(&w, (pnb_adapt_loss)loss, 7);
        pnb__rng_init(&rng, 8, 0);
        for (size_t i = 0; i < N * Q; i++)
            g[i] = 2 * pnb__rng_normal(&rng);
        split(g, N, unit, length);
        for (size_t i = 0; i < N; i++)
            add_naive(&w, g + i * Q, wanted);
        assert_int_equal(
            pnb__output_hessian_add(b, *state, &w.c, unit, length, N, &w.v[0][0], M, Q, NULL),
            PNB_OK);
        for (size_t d = 0; d < Q; d++)
            for (size_t e = 0; e < Q; e++)
                if (!(fabs(b[d * Q + e] - wanted[d][e]) <= 1e-5 * fabs(wanted[d][d])))
                    fail_msg("%d: (%zu,%zu) is %.12g, wanted %.12g", loss, d, e, b[d * Q + e],
                             wanted[d][e]);
    }
}

static void rows_add_up(void **state)
{
    enum { N = 300 };
    static double g[N * Q], unit[N * Q], length[N];
    for (int loss = 0; loss < PNB_N_ADAPT_LOSSES; loss++) {
        double all[Q * Q] = {0}, each[Q * Q] = {0};
        world w;
        pnb__rng rng;
        make_world(&w, (pnb_adapt_loss)loss, 9);
        pnb__rng_init(&rng, 10, 0);
        for (size_t i = 0; i < N * Q; i++)
            g[i] = pnb__rng_normal(&rng);
        split(g, N, unit, length);
        pnb__output_hessian_add(all, *state, &w.c, unit, length, N, &w.v[0][0], M, Q, NULL);
        for (size_t i = 0; i < N; i++)
            pnb__output_hessian_add(each, *state, &w.c, unit + i * Q, length + i, 1, &w.v[0][0], M,
                                    Q, NULL);
        for (size_t d = 0; d < Q * Q; d++)
            assert_true(fabs(all[d] - each[d]) <= 1e-10 * fabs(all[0]));
    }
}

static int set_up(void **state)
{
    *state = make_ctx();
    return 0;
}

static int tear_down(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_differences),
                                       cmocka_unit_test(rows_add_up)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
