/* The whitened norm against the Mahalanobis distance by elimination, the shrinkage against its
 * formula pair by pair, and what whitening must be indifferent to. */
#include "tests/adapt/world.h"

enum { MAX = 40 };

/* Naive mean and covariance of the rows, with a share r of the mean variance. */
typedef struct naive {
    size_t dim;
    double mean[MAX], s[MAX][MAX];
} naive;

static double centred(const pnb_embeddings *e, const naive *w, size_t i, size_t d)
{
    return (double)e->mean[i * e->dim + d] - w->mean[d];
}

static void find_moments(naive *w, const pnb_embeddings *e)
{
    memset(w, 0, sizeof *w);
    w->dim = e->dim;
    for (size_t i = 0; i < e->n; i++)
        for (size_t d = 0; d < e->dim; d++)
            w->mean[d] += (double)e->mean[i * e->dim + d] / (double)e->n;
    for (size_t i = 0; i < e->n; i++)
        for (size_t a = 0; a < e->dim; a++)
            for (size_t b = 0; b < e->dim; b++)
                w->s[a][b] += centred(e, w, i, a) * centred(e, w, i, b) / (double)e->n;
}

static double mean_variance(const naive *w)
{
    double sum = 0;
    for (size_t d = 0; d < w->dim; d++)
        sum += w->s[d][d];
    return sum / (double)w->dim;
}

/* Ledoit and Wolf (2004), matrices written out. */
static double shrinkage(const naive *w, const pnb_embeddings *e)
{
    double m = mean_variance(w), d2 = 0, b2 = 0;
    for (size_t a = 0; a < w->dim; a++)
        for (size_t b = 0; b < w->dim; b++)
            d2 += pow(w->s[a][b] - (a == b ? m : 0), 2);
    for (size_t i = 0; i < e->n; i++)
        for (size_t a = 0; a < w->dim; a++)
            for (size_t b = 0; b < w->dim; b++)
                b2 += pow(centred(e, w, i, a) * centred(e, w, i, b) - w->s[a][b], 2);
    b2 /= (double)e->n * (double)e->n;
    double r = fmin(b2, d2) / d2;
    return e->n <= e->dim ? fmax(r, 1.0 / (double)e->n) : r;
}

static void shrink(naive *w, double r)
{
    double m = mean_variance(w);
    for (size_t a = 0; a < w->dim; a++)
        for (size_t b = 0; b < w->dim; b++)
            w->s[a][b] = (1 - r) * w->s[a][b] + (a == b ? r * m : 0);
}

/* (x - m)^T S^-1 (x - m) / D by elimination with pivots: no eigenvalue anywhere. */
static double distance(const naive *w, const float *x)
{
    double a[MAX][MAX + 1], y[MAX], q = 0;
    size_t n = w->dim;
    for (size_t i = 0; i < n; i++) {
        memcpy(a[i], w->s[i], n * sizeof(double));
        y[i] = a[i][n] = (double)x[i] - w->mean[i];
    }
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k; i < n; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k]))
                pivot = i;
        for (size_t j = 0; j <= n; j++) {
            double swap = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = swap;
        }
        for (size_t i = 0; i < n; i++) {
            double f = i != k ? a[i][k] / a[k][k] : 0;
            for (size_t j = k; j <= n && f != 0; j++)
                a[i][j] -= f * a[k][j];
        }
    }
    for (size_t i = 0; i < n; i++)
        q += y[i] * a[i][n] / a[i][i];
    return q / (double)n;
}

static void against_elimination(void **state)
{
    pnb_ctx *ctx = *state;
    static const struct {
        size_t n, dim;
        double r; /* NaN: chosen */
    } cases[] = {{200, 5, 0},   {200, 5, 0.3},  {2000, 12, 0}, {60, 12, NAN}, {2500, 3, NAN},
                 {10, 12, NAN}, {5, 30, 0.125}, {2, 4, NAN},   {40, 1, 0},    {3, 40, 1}};
    for (size_t k = 0; k < PNB_COUNT(cases); k++)
        for (int common = 0; common < 2; common++) {
            pnb_embeddings *e = unit_set("text", cases[k].n, cases[k].dim, k);
            pnb_embeddings *other = unit_set("text", 30, cases[k].dim, 50 + k);
            pnb_adapter_opts opts = pnb_adapter_opts_default();
            naive w;
            opts.shrinkage = cases[k].r;
            opts.uncertain = common ? PNB_ADAPT_COMMON : PNB_ADAPT_RARE;
            for (size_t i = 0; i < e->n && e->dim == 1; i++) /* unit rows of width 1 are constant */
                e->mean[i] = (float)i;
            pnb_embeddings *out = adapt(ctx, "whitened", e, &opts, other);
            find_moments(&w, e);
            shrink(&w, isnan(cases[k].r) ? shrinkage(&w, e) : cases[k].r);
            for (size_t i = 0; i < other->n; i++) {
                double q = distance(&w, other->mean + i * e->dim);
                require_near(trace_of(out, i), common ? 1 / q : q, 2e-5, "uncertainty");
            }
            assert_memory_equal(out->mean, other->mean, 30 * e->dim * sizeof(float));
            pnb_embeddings_free(out);
            pnb_embeddings_free(other);
            pnb_embeddings_free(e);
        }
}

/* Rows of a known Gaussian: what is whitened with its sample moments has norm D on average,
 * exactly, and is nearly the distance by the true moments. */
static void a_known_gaussian(void **state)
{
    pnb_ctx *ctx = *state;
    enum { N = 20000, D = 4 };
    static const double l[D][D] = {{2, 0, 0, 0}, {1, 0.5, 0, 0}, {-3, 0, 4, 0}, {0, 0, 1, 0.1}};
    pnb_embeddings *e = empty_set("image", N, D);
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    naive truth = {.dim = D, .mean = {5, -1, 0, 2}};
    pnb__rng rng;
    double sum = 0, off = 0;
    pnb__rng_init(&rng, 1, 0);
    opts.shrinkage = 0;
    for (size_t i = 0; i < N; i++) {
        double z[D];
        for (size_t d = 0; d < D; d++)
            z[d] = pnb__rng_normal(&rng);
        for (size_t d = 0; d < D; d++) {
            double x = truth.mean[d];
            for (size_t k = 0; k < D; k++)
                x += l[d][k] * z[k];
            e->mean[i * D + d] = (float)x;
        }
    }
    for (size_t a = 0; a < D; a++)
        for (size_t b = 0; b < D; b++)
            for (size_t k = 0; k < D; k++)
                truth.s[a][b] += l[a][k] * l[b][k];
    pnb_embeddings *out = adapt(ctx, "whitened", e, &opts, e);
    for (size_t i = 0; i < N; i++) {
        double u = trace_of(out, i);
        sum += u / N;
        double q = distance(&truth, e->mean + i * D);
        off = fmax(off, fabs(u - q) / (1 + q));
    }
    require_near(sum, 1, 1e-6, "mean of the squared coordinates");
    assert_true(off < 0.05);
    pnb_embeddings_free(out);
    pnb_embeddings_free(e);
}

/* Whitening undoes every invertible map of the rows. */
static void a_linear_map_changes_nothing(void **state)
{
    pnb_ctx *ctx = *state;
    enum { N = 300, D = 6 };
    pnb_embeddings *e = unit_set("image", N, D, 8), *turned = empty_set("image", N, D);
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    pnb__rng rng;
    double m[D][D];
    opts.shrinkage = 0;
    pnb__rng_init(&rng, 2, 0);
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < D; j++)
            m[i][j] = pnb__rng_normal(&rng) + (i == j ? 3 : 0);
    for (size_t i = 0; i < N; i++)
        for (size_t a = 0; a < D; a++) {
            double x = (double)a; /* and a shift */
            for (size_t b = 0; b < D; b++)
                x += m[a][b] * (double)e->mean[i * D + b];
            turned->mean[i * D + a] = (float)x;
        }
    pnb_embeddings *x = adapt(ctx, "whitened", e, &opts, e);
    pnb_embeddings *y = adapt(ctx, "whitened", turned, &opts, turned);
    for (size_t i = 0; i < N; i++)
        require_near(trace_of(x, i), trace_of(y, i), 1e-4, "uncertainty");
    pnb_embeddings_free(x);
    pnb_embeddings_free(y);
    pnb_embeddings_free(e);
    pnb_embeddings_free(turned);
}

static void what_has_no_covariance(void **state)
{
    pnb_ctx *ctx = *state;
    static const struct {
        size_t n;
        float rows[3][3];
        double r;
        pnb_status status;
        const char *says;
    } cases[] = {
        {1, {{1, 2, 3}}, NAN, PNB_NUMERIC, "1 image embedding has no covariance"},
        {3,
         {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}},
         NAN,
         PNB_NUMERIC,
         "all 3 image embeddings are the same"},
        {3, {{0}}, 0.5, PNB_NUMERIC, "are the same"},
        {3, {{1, 0, 0}, {0, 1, 0}, {0.5f, 0.5f, 0}}, 0, PNB_NUMERIC, "spread along 1 of 3"},
        {3, {{1, 0, 0}, {NAN, 1, 0}, {0, 0, 1}}, NAN, PNB_NUMERIC, "row 1 of the image embeddings"},
        {3, {{1, 0, 0}, {0, 1, 0}, {0, 0, INFINITY}}, NAN, PNB_NUMERIC, "row 2 of the image"},
        {3, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, -0.5, PNB_ARG, "from 0 to 1"},
        {3, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, 1.5, PNB_ARG, "from 0 to 1"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_embeddings *e = empty_set("image", cases[i].n, 3);
        const pnb_adapter_data data = {.images = e};
        pnb_adapter_opts opts = pnb_adapter_opts_default();
        pnb_adapter *a = NULL;
        pnb_error err = PNB_ERROR_INIT;
        opts.shrinkage = cases[i].r;
        memcpy(e->mean, cases[i].rows, cases[i].n * 3 * sizeof(float));
        assert_failed(pnb_adapter_fit(&a, ctx, "whitened", &data, &opts, &err), &err,
                      cases[i].status, cases[i].says);
        assert_null(a);
        pnb_embeddings_free(e);
    }
}

/* What was chosen is told: the share by the formula, and the one that was asked for. */
static void shrinkage_is_told(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *e = unit_set("image", 60, 12, 3);
    const pnb_adapter_data data = {.images = e};
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    naive w;
    find_moments(&w, e);
    for (int given = 0; given < 2; given++) {
        pnb_adapter *a = NULL;
        pnb_adapter_facts facts;
        opts.shrinkage = given ? 0.25 : NAN;
        assert_int_equal(pnb_adapter_fit(&a, ctx, "whitened", &data, &opts, NULL), PNB_OK);
        pnb_adapter_describe(a, &facts);
        assert_int_equal(facts.n_figures, 1);
        assert_string_equal(facts.figures[0].name, "image_shrinkage");
        require_near(facts.figures[0].value, given ? 0.25 : shrinkage(&w, e), 1e-9, "shrinkage");
        pnb_adapter_free(a);
    }
    pnb_embeddings_free(e);
}

/* Fewer rows than dimensions have a documented answer, and a row far off the rows learned from is
 * more uncertain than these are. */
static void fewer_rows_than_dimensions(void **state)
{
    pnb_ctx *ctx = *state;
    for (size_t n = 2; n < 20; n += 3) {
        pnb_embeddings *e = unit_set("image", n, 24, n), *far = unit_set("image", n, 24, n);
        for (size_t i = 0; i < n * 24; i++)
            far->mean[i] = -far->mean[i];
        pnb_embeddings *near_out = adapt(ctx, "whitened", e, NULL, e);
        pnb_embeddings *far_out = adapt(ctx, "whitened", e, NULL, far);
        for (size_t i = 0; i < n; i++)
            assert_true(trace_of(near_out, i) < trace_of(far_out, i));
        pnb_embeddings_free(near_out);
        pnb_embeddings_free(far_out);
        pnb_embeddings_free(e);
        pnb_embeddings_free(far);
    }
}

static int setup(void **state)
{
    *state = make_ctx();
    return 0;
}

static int teardown(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_elimination),          cmocka_unit_test(a_known_gaussian),
        cmocka_unit_test(a_linear_map_changes_nothing), cmocka_unit_test(what_has_no_covariance),
        cmocka_unit_test(fewer_rows_than_dimensions),   cmocka_unit_test(shrinkage_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
