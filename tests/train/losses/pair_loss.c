/* Losses of Gaussian heads against their formulas in doubles: PFE's mutual likelihood; PCME++'s two
 * distances, its pseudo positives and the weights of its terms. */
#include "train/losses/pair_loss.h"

#include "tests/adapt/loss_case.h"

enum { B = 3, D = 4, N = B * D };

/* ---- PFE: image mean, variance, text mean, variance ---- */

static pnb__tensor *build_pfe(pnb__graph *g, pnb__tensor *const *leaf)
{
    (void)g;
    return pnb__mutual_likelihood((pnb__side_rows){.mean = leaf[0], .var = leaf[1]},
                                  (pnb__side_rows){.mean = leaf[2], .var = leaf[3]});
}

static double value_pfe(const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        double far = x[i] - x[2 * N + i], var = x[N + i] + x[3 * N + i];
        sum += far * far / var + log(var);
    }
    return sum / B;
}

static void test_pfe(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 4,
                         .rank = {2, 2, 2, 2},
                         .shape = {{B, D}, {B, D}, {B, D}, {B, D}},
                         .build = build_pfe,
                         .value = value_pfe,
                         .step = 1e-6,
                         .tolerance = 1e-7};
    double x[4 * N];
    draw(x, 4 * N, 0, 1, 1);
    draw(x + N, N, 1, 0.1, 2);
    draw(x + 3 * N, N, 1, 0.1, 3);
    require_loss(&c, x);
}

/* ---- PCME++: image mean, log_var, text mean, log_var, scale, shift ---- */

static pnb__pcmepp_distance distance;
static const double labels[B * B] = {1, 0, 0, 0, 1, 0.5, 0.25, 0, 0.6};
/* their labels: of a whole picture 1, of a mixed one its share */
static const double values[2][B] = {{1, 1, 0.6}, {1, 1, 0.6}};
/* first match of image b in row b of the logits, of text b in row b of their transpose */
static const int32_t firsts[2][B] = {{0, 1 * B + 1, 2 * B + 2}, {0, 1 * B + 1, 2 * B + 2}};
static pnb__tensor *matched, *first[2], *value[2];
#define VIB 0.01
#define SMOOTHNESS 0.1

static pnb__tensor *build_pcmepp(pnb__graph *g, pnb__tensor *const *leaf)
{
    pnb__pcmepp_in in = {.images = {.mean = leaf[0], .log_var = leaf[1]},
                         .texts = {.mean = leaf[2], .log_var = leaf[3]},
                         .scale = leaf[4],
                         .shift = leaf[5],
                         .distance = distance,
                         .factor = PNB_PCMEPP_FACTOR,
                         .vib_beta = VIB,
                         .smoothness = SMOOTHNESS};
    in.matched = matched = pnb__input(g, PNB__REAL, 2, (size_t[]){B, B});
    for (int way = 0; way < 2; way++) {
        in.first[way] = first[way] = pnb__input(g, PNB__INT32, 1, (size_t[]){B});
        in.value[way] = value[way] = pnb__input(g, PNB__REAL, 2, (size_t[]){B, 1});
    }
    return pnb__pcmepp_build(&in).loss;
}

static void fill_pcmepp(void)
{
    pnb__write_f64(matched, labels);
    for (int way = 0; way < 2; way++) {
        pnb__write_i32(first[way], firsts[way]);
        pnb__write_f64(value[way], values[way]);
    }
}

static double apart(const double *x, size_t i, size_t t)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++) {
        double m = x[i * D + d] - x[2 * N + t * D + d];
        double li = x[N + i * D + d], lt = x[3 * N + t * D + d];
        double s = exp(li / 2) - exp(lt / 2);
        sum += m * m + (distance == PNB__PCMEPP_W2 ? s * s : exp(li) + exp(lt));
    }
    return sum;
}

static double cross_entropy(double z, double y)
{
    return log1p(exp(-fabs(z))) + fmax(z, 0) - y * z;
}

static double value_pcmepp(const double *x)
{
    double z[B][B], sum = 0, pseudo = 0, vib = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++)
            z[i][t] = -x[4 * N] * apart(x, i, t) + x[4 * N + 1];
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++) {
            double y = labels[i * B + t];
            sum += cross_entropy(z[i][t], y) / (B * B);
            pseudo += cross_entropy(z[i][t], z[i][t] >= z[i][i] ? values[0][i] : y) / (B * B);
            pseudo += cross_entropy(z[i][t], z[i][t] >= z[t][t] ? values[1][t] : y) / (B * B);
        }
    for (size_t side = 0; side < 2; side++)
        for (size_t k = 0; k < N; k++) {
            double m = x[2 * side * N + k], l = x[(2 * side + 1) * N + k];
            vib -= 0.5 * (1 + l - m * m - exp(l)) / N;
        }
    return 2 * sum + VIB * vib + SMOOTHNESS * pseudo;
}

static void test_pcmepp(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 6,
                         .rank = {2, 2, 2, 2, 0, 0},
                         .shape = {{B, D}, {B, D}, {B, D}, {B, D}},
                         .build = build_pcmepp,
                         .value = value_pcmepp,
                         .fill = fill_pcmepp,
                         .step = 1e-6,
                         .tolerance = 1e-7};
    for (int d = 0; d < PNB__N_PCMEPP_DISTANCES; d++) {
        double x[4 * N + 2];
        distance = (pnb__pcmepp_distance)d;
        draw(x, 4 * N, 0, 0.7, 5);
        x[4 * N] = 0.8;
        x[4 * N + 1] = 1.5;
        require_loss(&c, x);
    }
}

/* ---- without a matrix of labels: training's form ---- */

static bool negative_only;

static pnb__tensor *build_own(pnb__graph *g, pnb__tensor *const *leaf)
{
    (void)g;
    const pnb__pcmepp_in in = {.images = {.mean = leaf[0], .log_var = leaf[1]},
                               .texts = {.mean = leaf[2], .log_var = leaf[3]},
                               .scale = leaf[4],
                               .shift = leaf[5],
                               .distance = distance,
                               .negative_only = negative_only,
                               .factor = 1};
    return pnb__pcmepp_build(&in).loss;
}

static double value_own(const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++)
            sum +=
                cross_entropy(-x[4 * N] * apart(x, i, t) + x[4 * N + 1], i == t && !negative_only) /
                (B * B);
    return sum;
}

static void test_own(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 6,
                         .rank = {2, 2, 2, 2, 0, 0},
                         .shape = {{B, D}, {B, D}, {B, D}, {B, D}},
                         .build = build_own,
                         .value = value_own,
                         .step = 1e-6,
                         .tolerance = 1e-7};
    for (int v = 0; v < 4; v++) {
        double x[4 * N + 2];
        distance = v % 2 ? PNB__PCMEPP_W2 : PNB__PCMEPP_CSD;
        negative_only = v > 1;
        draw(x, 4 * N, 0, 0.7, 6);
        x[4 * N] = 0.8;
        x[4 * N + 1] = 1.5;
        require_loss(&c, x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pfe), cmocka_unit_test(test_pcmepp),
                                       cmocka_unit_test(test_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
