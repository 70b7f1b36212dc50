/* The rounding bounds of the search against rows whose roundings all go one way.
 *
 * For each bound: every f64 score lies within it, and rows are known that use at least a fifth of
 * it. So a bound that promises too much fails, and so does one that a proof could make 5 times
 * narrower. */
#include "index/exact/bound.h"
#include "tests/prob/support.h"

enum {
    N_QUERIES = 32,
    ISAS = 3
}; /* more queries than the inner products take: the matrix product */
static const pnb_isa ISA[ISAS] = {PNB_ISA_GENERIC, PNB_ISA_AVX2, PNB_ISA_AVX512};
static const size_t LANES[ISAS] = {4, 8, 16};

/* NULL where the machine lacks it. */
static pnb_ctx *context(pnb_isa isa)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = 1;
    opts.isa = isa;
    return pnb_ctx_create(&ctx, &opts, &err) == PNB_OK ? ctx : NULL;
}

/* Score less the query's term against value and bounds of one pair; the share of the bound used. */
static double look_at(const pnb__values *v, size_t i, size_t j, double want, double margin)
{
    float low, high;
    size_t at = i * v->ld + j;
    double slack = v->slack[i], value = (double)v->value[at] * v->mul[i] + v->upper[i] - slack;
    if (v->spread != NULL)
        slack += v->spread_bound * v->spread[at];
    pnb__values_bounds(v, i, j, 1, &low, &high);
    if (!(want >= low - margin && want <= high + margin))
        fail_msg("item %zu, query %zu: %.17g is not within [%.9g, %.9g], value %.9g, slack %.3g",
                 v->item + i, v->query + j, want, (double)low, (double)high, value, slack);
    return fabs(want - value) / slack;
}

typedef struct used { /* the largest share, and its pair */
    double share;
    size_t query, item;
} used;

/* by_halves: where bounds of rows in bfloat16 gain. */
static used look_at_bounds(const pnb_ctx *ctx, const pnb_search_opts *o, const pnb_gaussians *q,
                           const pnb_gaussians *x, bool by_halves)
{
    used most = {0};
    pnb__exact scan;
    pnb__exact_run run;
    pnb__bound pass;
    pnb__bound_work work;
    assert_ok(pnb__exact_init(&scan, ctx, x, o, err));
    assert_ok(pnb__exact_run_init(&run, &scan, ctx, q, err));
    assert_true(run.way != PNB__EXACT_F64);
    run.bounds_by_halves = by_halves;
    assert_ok(pnb__bound_init(&pass, &run, ctx, 0, q->n, err));
    assert_ok(pnb__bound_work_init(&work, &run, err));
    assert_int_equal(pass.half.panels != NULL, by_halves);
    for (size_t strip = 0; strip * pass.strip < q->n; strip++)
        for (size_t item = 0; item < x->n; item += pass.n_items) {
            pnb__values v;
            size_t items[2] = {item, PNB_MIN(item + pass.n_items, x->n)};
            assert_ok(pnb__bound_score(&pass, &work, strip, items, &v, err));
            for (size_t i = 0; i < v.n_items; i++)
                for (size_t j = 0; j < v.n_queries; j++) {
                    size_t query = v.query + j;
                    double score = pnb__exact_pair(&run, &work.scan, query, v.item + i);
                    double share = look_at(&v, i, j, score - pnb__bound_term(&run, query),
                                           pnb__bound_margin(&run, query));
                    if (share > most.share)
                        most = (used){share, query, v.item + i};
                }
        }
    pnb__bound_work_reset(&work);
    pnb__bound_reset(&pass);
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    return most;
}

static used look_at_all(const pnb_ctx *ctx, const pnb_search_opts *o, const pnb_gaussians *q,
                        const pnb_gaussians *x)
{
    return look_at_bounds(ctx, o, q, x, false);
}

static pnb_search_opts of_measure(pnb_measure measure)
{
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = measure;
    return o;
}

static void expect_sharp(const char *what, double most)
{
    if (!(most >= 0.2))
        fail_msg("%s: the rows use %.3f of the bound, which is more than 5 times too wide", what,
                 most);
}

/* ---- inner products ---- */

enum { STRETCH = 256 }; /* multiply-adds of one chain of the matrix product: TILE_DEPTH */

/* Rows (head, tail, tail, ...), with so many heads. */
static void fill_rows(float *to, size_t n, size_t dim, size_t heads, float head, float tail)
{
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dim; d++)
            to[i * dim + d] = d < heads ? head : tail;
}

/* The sum stays at its first term: each that follows is half a unit in its last place, or nearly,
 * and lost. (K - 1) u |x| |q| is the whole of Higham's bound. */
static void inner_products(void **state)
{
    (void)state;
    const size_t dims[] = {64, STRETCH, 4096};
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2,
                                    PNB_MEASURE_VMF, PNB_MEASURE_POWER_SPHERICAL};
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = of_measure(measures[m]);
        bool is_sphere = m >= 3;
        double most = 0.0;
        for (size_t s = 0; s < ISAS; s++)
            for (size_t c = 0; c < PNB_COUNT(dims) * 2; c++) {
                size_t dim = dims[c / 2], few = c % 2;
                gaussians q = random_gaussians(N_QUERIES, dim, -3, 0, 1),
                          x = random_gaussians(9, dim, -3, 0, 2);
                float kappa[N_QUERIES];
                pnb_ctx *ctx = context(ISA[s]);
                /* Unit queries are scaled to a little under 1: heads of items to a little over. */
                fill_rows(q.mean, N_QUERIES, dim, 1, 1.0f, 0x1p-12f);
                fill_rows(x.mean, 9, dim, 1,
                          o.measure == PNB_MEASURE_MEAN || is_sphere ? 1.001f : 1.0f, 0x1p-12f);
                for (size_t d = 0; d < dim; d++) /* one item looks away */
                    x.mean[8 * dim + d] *= -1.0f;
                for (size_t i = 0; i < N_QUERIES; i++)
                    kappa[i] = 100.0f;
                q.view.log_var = x.view.log_var = NULL;
                q.view.kappa = is_sphere ? kappa : NULL;
                q.view.is_power = x.view.is_power = o.measure == PNB_MEASURE_POWER_SPHERICAL;
                q.view.n = few ? 5 : N_QUERIES;
                if (ctx != NULL)
                    most = fmax(most, look_at_all(ctx, &o, &q.view, &x.view).share);
                pnb_ctx_free(ctx);
                free_gaussians(&q);
                free_gaussians(&x);
            }
        expect_sharp(pnb_measure_name(o.measure), most);
    }
}

/* In bfloat16: all of a row is rounded down by the most that can be, so that both errors add up;
 * rows of any kind beside them. */
static void inner_products_of_halves(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2};
    const pnb_isa isas[] = {PNB_ISA_EMULATED, PNB_ISA_AVX512_BF16, PNB_ISA_AMX};
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = of_measure(measures[m]);
        double most = 0.0;
        for (size_t c = 0; c < PNB_COUNT(isas) * 4; c++) {
            size_t dim = (const size_t[]){32, 45, 64, 300}[c % 4], n = 40;
            gaussians q = random_gaussians(n, dim, -5, 0, c),
                      x = random_gaussians(9, dim, -5, 0, 9);
            pnb_ctx *ctx = context(isas[c / 4]);
            for (size_t i = 0; i < 20 * dim; i++)
                q.mean[i] = 1.0f + 0x1p-8f;
            for (size_t i = 0; i < 4 * dim; i++)
                x.mean[i] = i / dim % 2 ? -1.0f - 0x1p-8f : 1.0f + 0x1p-8f;
            for (size_t d = 0; d < dim; d++) /* nothing, and mostly less than the unit takes */
                x.mean[4 * dim + d] = 0.0f, x.mean[5 * dim + d] = d == 0 ? 1.0f : 1e-39f;
            if (m == 0) /* points, too */
                x.view.log_var = NULL;
            if (ctx != NULL)
                most = fmax(most, look_at_bounds(ctx, &o, &q.view, &x.view, true).share);
            pnb_ctx_free(ctx);
            free_gaussians(&q);
            free_gaussians(&x);
        }
        expect_sharp(pnb_measure_name(o.measure), most);
    }
}

/* ---- samples ---- */

/* Points, so that every sample is its mean: queries look both ways, their centre is 0, and products
 * with the items have the rows of inner_products. The last item is a query itself. */
static void sampled_points(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_AVG_L2, PNB_MEASURE_MATCH_PROB};
    const size_t dims[] = {64, STRETCH, 4096}, samples[] = {16, 3, 1}; /* J^2 D pairs in doubles */
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = of_measure(measures[m]);
        double most = 0.0;
        for (size_t s = 0; s < ISAS; s++)
            for (size_t c = 0; c < PNB_COUNT(dims); c++) {
                gaussians q = random_gaussians(N_QUERIES, dims[c], -3, 0, 1),
                          x = random_gaussians(9, dims[c], -3, 0, 2);
                pnb_ctx *ctx = context(ISA[s]);
                o.measure_opts.n_samples = samples[c];
                fill_rows(q.mean, N_QUERIES, dims[c], 1, 1.0f, 0x1p-12f);
                fill_rows(x.mean, 9, dims[c], 1, 1.0f, 0x1p-12f);
                for (size_t i = 1; i < N_QUERIES; i += 2)
                    for (size_t d = 0; d < dims[c]; d++)
                        q.mean[i * dims[c] + d] *= -1.0f;
                for (size_t d = 0; d < dims[c]; d++) /* one item looks away */
                    x.mean[7 * dims[c] + d] *= -2.0f;
                q.view.log_var = x.view.log_var = NULL;
                if (ctx != NULL)
                    most = fmax(most, look_at_all(ctx, &o, &q.view, &x.view).share);
                pnb_ctx_free(ctx);
                free_gaussians(&q);
                free_gaussians(&x);
            }
        expect_sharp(pnb_measure_name(o.measure), most);
    }
}

/* From samples that coincide to sets far from 0, steep and flat: what is true lies within. */
static void sampled_gaussians(void **state)
{
    (void)state;
    const double as[] = {0.1, 5, 400, -3}, spreads[] = {-40, -12, -3, 2};
    for (size_t c = 0; c < PNB_COUNT(as) * PNB_COUNT(spreads) * 2; c++) {
        pnb_search_opts o = of_measure(c % 2 ? PNB_MEASURE_MATCH_PROB : PNB_MEASURE_AVG_L2);
        double spread = spreads[c / 2 / PNB_COUNT(as)];
        gaussians q = random_gaussians(N_QUERIES, 33, spread, spread + 1, 1),
                  x = random_gaussians(40, 33, spread, spread + 1, 2);
        /* floats, then bfloat16 by tiles in plain C and by the instruction where it is */
        const pnb_isa isas[] = {PNB_ISA_AVX2, PNB_ISA_AVX512_BF16, PNB_ISA_EMULATED};
        pnb_ctx *ctx = context(isas[c / 2 % 3]);
        o.measure_opts.match_a = as[c / 2 % PNB_COUNT(as)];
        o.measure_opts.n_samples = 1 + c % 5;
        for (size_t d = 0; d < 33; d++) { /* the same means, and an offset that all share */
            for (size_t i = 0; i < 8; i++)
                x.mean[i * 33 + d] = q.mean[i * 33 + d];
            for (size_t i = 0; i < 40 && c % 3 == 0; i++)
                x.mean[i * 33 + d] += 10.0f;
            for (size_t i = 0; i < N_QUERIES && c % 3 == 0; i++)
                q.mean[i * 33 + d] += 10.0f;
        }
        if (ctx != NULL)
            look_at_all(ctx, &o, &q.view, &x.view);
        pnb_ctx_free(ctx);
        free_gaussians(&q);
        free_gaussians(&x);
    }
}

/* ---- inclusion ---- */

/* Sum of distances: each lane's first term is large, the others are half a unit of its last place.
 * Means scaled so that the bound of the logarithms is small beside it. */
static void inclusion_distances(void **state)
{
    (void)state;
    const size_t dims[] = {384, 4096};
    const pnb_measure measures[] = {PNB_MEASURE_INCLUSION, PNB_MEASURE_INCLUSION_PUBLISHED};
    for (size_t m = 0; m < 4; m++) {
        pnb_search_opts o = of_measure(measures[m % 2]);
        double most = 0.0;
        o.reverse = m / 2 == 1;
        o.measure_opts.inclusion_eps = 0.0;
        for (size_t s = 0; s < ISAS; s++)
            for (size_t c = 0; c < PNB_COUNT(dims); c++) {
                size_t dim = dims[c];
                gaussians q = random_gaussians(3, dim, 0, 0, 1),
                          x = random_gaussians(3, dim, -20, -20, 2);
                pnb_ctx *ctx = context(ISA[s]);
                fill_rows(q.mean, 3, dim, 0, 0.0f, 0.0f);
                fill_rows(x.mean, 3, dim, LANES[s], 0x1p9f, 0x1p-3f);
                if (ctx != NULL)
                    most = fmax(most, look_at_all(ctx, &o, &q.view, &x.view).share);
                pnb_ctx_free(ctx);
                free_gaussians(&q);
                free_gaussians(&x);
            }
        expect_sharp(pnb_measure_name(o.measure), most);
    }
}

/* Rows of one log-variance each: what is rounded is the same in every dimension and adds up. Of
 * many pairs the worst is looked at again where it is wide. */
static void inclusion_logarithms(void **state)
{
    (void)state;
    enum { N = 448, D = 16 };
    const size_t wide[] = {384, 4096};
    pnb_search_opts o = of_measure(PNB_MEASURE_INCLUSION);
    double most = 0.0;
    for (size_t s = 0; s < ISAS; s++) {
        pnb_ctx *ctx = context(ISA[s]);
        gaussians q = random_gaussians(N, D, -2, 2, 31), x = random_gaussians(N, D, -0.1, 0.1, 32);
        for (size_t i = 0; i < N * D; i++) {
            q.mean[i] = x.mean[i] = 0.0f;
            q.log_var[i] = q.log_var[i / D * D];
            x.log_var[i] = x.log_var[i / D * D];
        }
        used best = {0};
        if (ctx != NULL)
            best = look_at_all(ctx, &o, &q.view, &x.view);
        for (size_t c = 0; ctx != NULL && c < PNB_COUNT(wide); c++) {
            gaussians a = random_gaussians(1, wide[c], 0, 0, 1),
                      b = random_gaussians(1, wide[c], 0, 0, 1);
            memset(a.mean, 0, wide[c] * sizeof(float));
            memset(b.mean, 0, wide[c] * sizeof(float));
            for (size_t d = 0; d < wide[c]; d++) {
                a.log_var[d] = q.log_var[best.query * D];
                b.log_var[d] = x.log_var[best.item * D];
            }
            double share = look_at_all(ctx, &o, &a.view, &b.view).share;
            most = fmax(most, share);
            free_gaussians(&a);
            free_gaussians(&b);
        }
        pnb_ctx_free(ctx);
        free_gaussians(&q);
        free_gaussians(&x);
    }
    expect_sharp("logarithms of inclusion", most);
}

/* Variances as far apart as the fast way takes them, and any means. */
static void inclusion_extremes(void **state)
{
    (void)state;
    const size_t dims[] = {1, 5, 97, 1000, 4096};
    for (size_t s = 0; s < ISAS; s++)
        for (size_t c = 0; c < PNB_COUNT(dims) * 4; c++) {
            gaussians q = random_gaussians(7, dims[c / 4], -30, 30, c),
                      x = random_gaussians(7, dims[c / 4], c % 2 ? -30 : 29, c % 2 ? -29 : 30,
                                           90 + c);
            pnb_search_opts o = of_measure(PNB_MEASURE_INCLUSION);
            pnb_ctx *ctx = context(ISA[s]);
            o.reverse = c % 4 > 1;
            if (ctx != NULL)
                assert_true(look_at_all(ctx, &o, &q.view, &x.view).share <= 1.0);
            pnb_ctx_free(ctx);
            free_gaussians(&q);
            free_gaussians(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inner_products),      cmocka_unit_test(inner_products_of_halves),
        cmocka_unit_test(sampled_points),      cmocka_unit_test(sampled_gaussians),
        cmocka_unit_test(inclusion_distances), cmocka_unit_test(inclusion_logarithms),
        cmocka_unit_test(inclusion_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
