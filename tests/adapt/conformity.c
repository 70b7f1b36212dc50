/* Conformity against its definition: the mean cosine of a row to all the others. */
#include "tests/adapt/world.h"

/* cos(x_i, x_j) in f64 */
static double cosine(const pnb_embeddings *e, size_t i, const float *y)
{
    double xy = 0, xx = 0, yy = 0;
    for (size_t d = 0; d < e->dim; d++) {
        double x = e->mean[i * e->dim + d];
        xy += x * (double)y[d];
        xx += x * x;
        yy += (double)y[d] * (double)y[d];
    }
    return xy / sqrt(xx * yy);
}

/* (1/N) sum_j cos(x_i, x_j) over the rows of `e`, which the method gets by one product with the
 * mean; |m|^2 is the same mean over all pairs. */
static double mean_cosine(const pnb_embeddings *e, const float *x)
{
    double sum = 0;
    for (size_t j = 0; j < e->n; j++)
        sum += cosine(e, j, x);
    return sum / (double)e->n;
}

static void against_all_pairs(void **state)
{
    pnb_ctx *ctx = *state;
    static const size_t sizes[][2] = {{2, 3}, {7, 5}, {50, 16}, {3, 64}};
    for (size_t k = 0; k < PNB_COUNT(sizes); k++)
        for (int common = 0; common < 2; common++) {
            pnb_embeddings *e = unit_set("image", sizes[k][0], sizes[k][1], k);
            pnb_embeddings *other = unit_set("image", 9, sizes[k][1], 100 + k);
            pnb_adapter_opts opts = pnb_adapter_opts_default();
            double all = 0;
            opts.uncertain = common ? PNB_ADAPT_COMMON : PNB_ADAPT_RARE;
            for (size_t d = 0; d < e->dim; d++) { /* lengths do not matter on either side */
                e->mean[d] *= 8;
                other->mean[d] *= 17;
            }
            pnb_embeddings *out = adapt(ctx, "conformity", e, &opts, other);
            for (size_t i = 0; i < e->n; i++)
                all += mean_cosine(e, e->mean + i * e->dim) / (double)e->n;
            assert_int_equal(out->family, PNB_GAUSSIAN_DIAG);
            for (size_t i = 0; i < other->n; i++) {
                double c = mean_cosine(e, other->mean + i * e->dim) / sqrt(all);
                require_near(trace_of(out, i), common ? 1 + c : 1 - c, 1e-5, "uncertainty");
            }
            assert_memory_equal(out->mean, other->mean, 9 * e->dim * sizeof(float));
            pnb_embeddings_free(out);
            pnb_embeddings_free(other);
            pnb_embeddings_free(e);
        }
}

/* What eval reads as the uncertainty of a row is the figure itself. */
static void the_row_uncertainty_is_the_figure(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *e = unit_set("text", 20, 8, 5), *out = adapt(ctx, "conformity", e, NULL, e);
    pnb_rows rows = {.n = out->n, .dim = out->dim, .mean = out->mean, .log_var = out->log_var};
    double u[20], all = 0;
    assert_int_equal(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &rows, u, NULL), PNB_OK);
    for (size_t i = 0; i < e->n; i++)
        all += mean_cosine(e, e->mean + i * e->dim) / (double)e->n;
    for (size_t i = 0; i < e->n; i++)
        require_near(u[i], 1 - mean_cosine(e, e->mean + i * e->dim) / sqrt(all), 1e-5, "trace");
    pnb_embeddings_free(out);
    pnb_embeddings_free(e);
}

/* One row, and rows that are all the same, conform to themselves: the least uncertainty there is.
 */
static void rows_that_are_the_mean(void **state)
{
    pnb_ctx *ctx = *state;
    for (size_t n = 1; n < 4; n++) {
        pnb_embeddings *e = empty_set("image", n, 3);
        for (size_t i = 0; i < n; i++)
            memcpy(e->mean + 3 * i, (float[]){1, 2, 2}, 3 * sizeof(float));
        pnb_embeddings *out = adapt(ctx, "conformity", e, NULL, e);
        for (size_t i = 0; i < n; i++)
            require_near(trace_of(out, i), 1e-6, 1e-4, "least");
        pnb_embeddings_free(out);
        pnb_embeddings_free(e);
    }
}

static void numbers_that_cannot_be(void **state)
{
    pnb_ctx *ctx = *state;
    static const struct {
        float rows[2][2];
        const char *says;
    } cases[] = {
        {{{1, 0}, {NAN, 0}}, "row 1 of the image embeddings holds a number that is not finite"},
        {{{INFINITY, 0}, {1, 0}}, "row 0 of the image embeddings holds a number"},
        {{{1, 0}, {0, 0}}, "row 1 of the image embeddings has length 0"},
        {{{1, 2}, {-2, -4}}, "cancel out"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_embeddings *e = empty_set("image", 2, 2);
        const pnb_adapter_data data = {.images = e};
        pnb_adapter *a = NULL;
        pnb_error err = PNB_ERROR_INIT;
        memcpy(e->mean, cases[i].rows, sizeof cases[i].rows);
        assert_failed(pnb_adapter_fit(&a, ctx, "conformity", &data, NULL, &err), &err, PNB_NUMERIC,
                      cases[i].says);
        assert_null(a);
        pnb_embeddings_free(e);
    }
}

static void rows_that_cannot_be_applied(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *e = unit_set("image", 5, 4, 1), *out = NULL;
    const pnb_adapter_data data = {.images = e};
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, ctx, "conformity", &data, NULL, &err), &err);
    e->mean[2 * 4 + 1] = NAN;
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_IMAGES, e, &err), &err, PNB_NUMERIC,
                  "row 2 of the image embeddings holds a number that is not finite");
    pnb_error_reset(&err);
    memset(e->mean + 2 * 4, 0, 4 * sizeof(float));
    assert_failed(pnb_adapter_apply(&out, a, PNB_ADAPTER_IMAGES, e, &err), &err, PNB_NUMERIC,
                  "row 2 of the image embeddings has length 0");
    assert_null(out);
    pnb_adapter_free(a);
    pnb_embeddings_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_all_pairs),
        cmocka_unit_test(the_row_uncertainty_is_the_figure),
        cmocka_unit_test(rows_that_are_the_mean),
        cmocka_unit_test(numbers_that_cannot_be),
        cmocka_unit_test(rows_that_cannot_be_applied),
    };
    return cmocka_run_group_tests(tests, setup_ctx, teardown_ctx);
}
