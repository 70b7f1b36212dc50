/* Triplet losses against their definitions in doubles and by differences: all negatives, the
 * hardest, ties, one pair; best of K x K; diversity and discrepancy of PVSE. */
#include "train/losses/triplet.h"

#include "tests/adapt/loss_case.h"

enum { B = 4, K = 3, D = 5 };
#define MARGIN 0.2

static pnb__negatives which;
static pnb__tensor *unit;

/* Scores as products of their rows with those of the identity. */
static pnb__tensor *build_triplet(pnb__graph *g, pnb__tensor *const *leaf)
{
    unit = pnb__input(g, PNB__REAL, 3, (size_t[]){B, 1, B});
    return pnb__triplet(pnb__reshape(leaf[0], 3, (size_t[]){B, 1, B}), unit, MARGIN, which, NULL);
}

static void fill_unit(void)
{
    double eye[B * B];
    for (size_t i = 0; i < B * B; i++)
        eye[i] = i % (B + 1) == 0;
    pnb__write_f64(unit, eye);
}

/* One direction: rows when `turn` is false. */
static double one_way(const double *s, bool turn)
{
    double sum = 0;
    for (size_t i = 0; i < B; i++) {
        double most = 0, all = 0;
        for (size_t t = 0; t < B; t++) {
            size_t at = turn ? t * B + i : i * B + t;
            double hinge = t == i ? 0 : fmax(0, MARGIN + s[at] - s[i * B + i]);
            most = fmax(most, hinge);
            all += hinge;
        }
        sum += which == PNB__NEGATIVES_HARDEST ? most : all;
    }
    return sum;
}

static double value_triplet(const double *s)
{
    return one_way(s, false) + one_way(s, true);
}

static void triplets(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 1,
                         .rank = {2},
                         .shape = {{B, B}},
                         .build = build_triplet,
                         .value = value_triplet,
                         .fill = fill_unit,
                         .step = 1e-6,
                         .tolerance = 1e-7};
    for (int v = 0; v < 2 * PNB__N_NEGATIVES; v++) {
        double x[B * B];
        which = (pnb__negatives)(v % PNB__N_NEGATIVES);
        draw(x, B * B, 0.3, 0.3, (uint64_t)v);
        require_loss(&c, x);
    }
}

/* ---- PVSE ---- */

static pnb__tensor *build_best(pnb__graph *g, pnb__tensor *const *leaf)
{
    (void)g;
    pnb__tensor *x = pnb__reshape(leaf[0], 3, (size_t[]){B, K, D});
    pnb__tensor *y = pnb__reshape(leaf[1], 3, (size_t[]){B, K, D});
    return pnb__triplet(x, y, MARGIN, which, NULL);
}

static double product(const double *x, const double *y)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += x[d] * y[d];
    return sum;
}

static double value_best(const double *x)
{
    const double *y = x + B * K * D;
    double s[B * B];
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++) {
            double best = -INFINITY;
            for (size_t k = 0; k < K * K; k++)
                best = fmax(best, product(x + (i * K + k / K) * D, y + (t * K + k % K) * D));
            s[i * B + t] = best;
        }
    return value_triplet(s);
}

static void best_of_pairs(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 2,
                         .rank = {2, 2},
                         .shape = {{B * K, D}, {B * K, D}},
                         .build = build_best,
                         .value = value_best,
                         .step = 1e-6,
                         .tolerance = 1e-6};
    double x[2 * B * K * D];
    draw(x, PNB_COUNT(x), 0, 0.5, 7);
    for (int v = 0; v < PNB__N_NEGATIVES; v++) {
        which = (pnb__negatives)v;
        require_loss(&c, x);
    }
}

static pnb__tensor *off;

static pnb__tensor *build_diversity(pnb__graph *g, pnb__tensor *const *leaf)
{
    off = pnb__input(g, PNB__REAL, 2, (size_t[]){K, K});
    return pnb__diversity(pnb__reshape(leaf[0], 3, (size_t[]){B, K, D}), off);
}

static void fill_off(void)
{
    double v[K * K];
    for (size_t i = 0; i < K * K; i++)
        v[i] = i / K != i % K;
    pnb__write_f64(off, v);
}

static double value_diversity(const double *x)
{
    double mean = 0;
    for (size_t i = 0; i < B; i++) {
        double square = 0;
        for (size_t k = 0; k < K * K; k++) {
            const double *a = x + (i * K + k / K) * D, *b = x + (i * K + k % K) * D;
            double c = product(a, b) / sqrt(product(a, a) * product(b, b));
            square += k / K != k % K ? c * c : 0;
        }
        mean += sqrt(square + 1e-12) / (K * K) / B;
    }
    return mean;
}

static void diversity(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 1,
                         .rank = {2},
                         .shape = {{B * K, D}},
                         .build = build_diversity,
                         .value = value_diversity,
                         .fill = fill_off,
                         .step = 1e-6,
                         .tolerance = 1e-7};
    double x[B * K * D];
    draw(x, PNB_COUNT(x), 0, 0.5, 8);
    require_loss(&c, x);
}

static bool is_published;

static pnb__tensor *build_discrepancy(pnb__graph *g, pnb__tensor *const *leaf)
{
    (void)g;
    return pnb__domain_discrepancy(leaf[0], leaf[1], 0.5, is_published);
}

static double kernel(const double *x, const double *y, size_t n, size_t m)
{
    double mean = 0;
    for (size_t i = 0; i < n * m; i++) {
        double square = 0;
        for (size_t d = 0; d < D; d++) {
            double apart = x[i / m * D + d] - y[i % m * D + d];
            square += apart * apart;
        }
        mean += exp(-0.5 * (is_published ? sqrt(square + 1e-12) : square)) / (double)(n * m);
    }
    return mean;
}

static double value_discrepancy(const double *x)
{
    const double *y = x + B * D;
    return kernel(x, x, B, B) - 2 * kernel(x, y, B, K) + kernel(y, y, K, K);
}

static void discrepancy(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 2,
                         .rank = {2, 2},
                         .shape = {{B, D}, {K, D}},
                         .build = build_discrepancy,
                         .value = value_discrepancy,
                         .step = 1e-6,
                         .tolerance = 1e-6};
    for (int v = 0; v < 2; v++) {
        double x[(B + K) * D];
        is_published = v == 1;
        draw(x, PNB_COUNT(x), 0, 0.5, 9);
        require_loss(&c, x);
    }
}

/* ---- edges ---- */

/* Of equal negatives the first has the gradient; one pair has no negative. */
static void ties_and_one(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 3; n += 2) {
        pnb_ctx *ctx = make_ctx();
        pnb__graph *g = NULL;
        pnb_error err = PNB_ERROR_INIT;
        double s[9] = {0.5, 0.5, 0.5, 0, 0.5, 0, 0, 0, 0.5}, eye[9], grad[9];
        for (size_t i = 0; i < n * n; i++)
            eye[i] = i / n == i % n;
        assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, &err), &err);
        pnb__tensor *x = pnb__input_with_grad(g, 2, (size_t[]){n, n});
        pnb__tensor *o = pnb__input(g, PNB__REAL, 3, (size_t[]){n, 1, n});
        pnb__tensor *rows = pnb__reshape(x, 3, (size_t[]){n, 1, n});
        pnb__tensor *loss = pnb__triplet(rows, o, MARGIN, PNB__NEGATIVES_HARDEST, NULL);
        pnb__keep_grad(x);
        pnb__keep(loss);
        assert_ok(pnb__graph_plan(g, loss, &err), &err);
        pnb__write_f64(x, s);
        pnb__write_f64(o, eye);
        assert_ok(pnb__graph_run(g, &err), &err);
        assert_true(pnb__read_grad_f64(x, grad));
        /* row 0: both negatives are 0.2 over; columns 1 and 2: their first rows too */
        require_near(pnb__read_scalar(loss), n == 1 ? 0 : 3 * MARGIN, 1e-15, "loss");
        if (n == 3)
            assert_true(grad[1] == 2 && grad[2] == 1);
        pnb__graph_free(g);
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(triplets),    cmocka_unit_test(best_of_pairs), cmocka_unit_test(diversity),
        cmocka_unit_test(discrepancy), cmocka_unit_test(ties_and_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
