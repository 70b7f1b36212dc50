/* What is compared, and how unsure a row is, where the user leaves it to the families. */
#include "sets/settle.h"

#include "base/base.h"
#include "penumbra/distributions.h"
#include "penumbra/view.h"
#include "prob/measure.h"
#include "tests/prob/support.h"

enum { N = 3, D = 4 };

static pnb_embeddings *make_set(pnb_family family)
{
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, family, N, D, err));
    for (size_t i = 0; i < (size_t)N * D; i++) {
        set->mean[i] = i % D == 0 ? 1.0f : 0.0f;
        if (set->log_var != NULL)
            set->log_var[i] = (float)(i / D) - 1.0f;
        if (set->beta != NULL)
            set->beta[i] = set->inv_alpha[i] = 2.0f;
    }
    for (size_t i = 0; set->kappa != NULL && i < N; i++)
        set->kappa[i] = (float)(1 << i);
    return set;
}

static pnb_status settle(pnb_measure *out, pnb_measure asked, pnb_family a, pnb_family b,
                         pnb_error *told)
{
    pnb_embeddings *left = make_set(a), *right = make_set(b);
    pnb_view x, y;
    assert_ok(pnb_view_init(&x, left, err));
    assert_ok(pnb_view_init(&y, right, err));
    pnb_status status = pnb__measure_settle(out, asked, &x.rows, &y.rows, told);
    pnb_view_reset(&x);
    pnb_view_reset(&y);
    pnb_embeddings_free(left);
    pnb_embeddings_free(right);
    return status;
}

static void auto_is_by_family(void **state)
{
    (void)state;
    pnb_measure m = PNB_N_MEASURES;
    assert_ok(settle(&m, PNB__MEASURE_AUTO, PNB_GAUSSIAN_DIAG, PNB_GAUSSIAN_DIAG, err));
    assert_int_equal(m, PNB_MEASURE_CSD);
    assert_ok(settle(&m, PNB__MEASURE_AUTO, PNB_VMF, PNB_POINT, err));
    assert_int_equal(m, PNB_MEASURE_VMF);
    assert_ok(settle(&m, PNB__MEASURE_AUTO, PNB_POINT, PNB_POWER_SPHERICAL, err));
    assert_int_equal(m, PNB_MEASURE_POWER_SPHERICAL);
    assert_ok(settle(&m, PNB__MEASURE_AUTO, PNB_GAUSSIAN_DIAG, PNB_VMF, err));
    assert_int_equal(m, PNB_MEASURE_VMF);
    m = PNB_MEASURE_W2;
    assert_fails(settle(&m, PNB_MEASURE_KL, PNB_VMF, PNB_POINT, err), PNB_ARG, "kl");
    assert_int_equal(m, PNB_MEASURE_W2); /* untouched */
}

/* Only variances that a likelihood does not read are told of. */
static void taken_as_points(void **state)
{
    (void)state;
    static const struct {
        pnb_measure measure;
        pnb_family set, other;
        bool wanted;
    } cases[] = {
        {PNB_MEASURE_VMF, PNB_GAUSSIAN_DIAG, PNB_VMF, true},
        {PNB_MEASURE_POWER_SPHERICAL, PNB_GEN_GAUSSIAN, PNB_POWER_SPHERICAL, true},
        {PNB_MEASURE_VMF, PNB_POINT, PNB_VMF, false},
        {PNB_MEASURE_VMF, PNB_VMF, PNB_GAUSSIAN_DIAG, false},
        {PNB_MEASURE_MEAN, PNB_GAUSSIAN_DIAG, PNB_VMF, false},
        {PNB_MEASURE_VMF, PNB_GAUSSIAN_DIAG, PNB_GAUSSIAN_DIAG, false},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_embeddings *set = make_set(cases[i].set), *other = make_set(cases[i].other);
        assert_int_equal(pnb__is_taken_as_points(cases[i].measure, set, other), cases[i].wanted);
        pnb_embeddings_free(set);
        pnb_embeddings_free(other);
    }
}

/* What an adapter says goes before the family, and what was asked before both. */
static void auto_is_by_adapter(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        pnb_measure asked, wanted;
    } cases[] = {
        {"", "", PNB__MEASURE_AUTO, PNB__MEASURE_AUTO},
        {"mean", "mean", PNB__MEASURE_AUTO, PNB_MEASURE_MEAN},
        {"", "w2", PNB__MEASURE_AUTO, PNB_MEASURE_W2},
        {"w2", "", PNB__MEASURE_AUTO, PNB_MEASURE_W2},
        {"w2", "mean", PNB__MEASURE_AUTO, PNB__MEASURE_AUTO},
        {"mean", "mean", PNB_MEASURE_CSD, PNB_MEASURE_CSD},
    };
    pnb_embeddings *a = make_set(PNB_GAUSSIAN_DIAG), *b = make_set(PNB_GAUSSIAN_DIAG);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_measure m = cases[i].asked;
        strcpy(a->info.measure, cases[i].a);
        strcpy(b->info.measure, cases[i].b);
        assert_ok(pnb__measure_of_sets(&m, a, b, err));
        assert_int_equal(m, cases[i].wanted);
    }
    pnb_measure m = PNB__MEASURE_AUTO;
    strcpy(a->info.measure, "probit");
    strcpy(b->info.measure, "");
    assert_fails(pnb__measure_of_sets(&m, a, b, err), PNB_NOT_FOUND, "probit");
    pnb_embeddings_free(a);
    pnb_embeddings_free(b);
}

static void words(void **state)
{
    (void)state;
    pnb_measure m = PNB_N_MEASURES;
    assert_ok(pnb__measure_parse(&m, "auto", err));
    assert_int_equal(m, PNB__MEASURE_AUTO);
    assert_ok(pnb__measure_parse(&m, "w2", err));
    assert_int_equal(m, PNB_MEASURE_W2);
    assert_true(pnb__measure_parse(&m, "w3", NULL) != PNB_OK);
    assert_true(pnb__measure_reads_lengths(PNB_MEASURE_CSD));
    assert_false(pnb__measure_reads_lengths(PNB_MEASURE_MEAN));
    assert_false(pnb__measure_reads_lengths(PNB_MEASURE_VMF));
}

/* A kind of variances is that of the family; points are sure of nothing and of everything. */
static void uncertainty_of_rows(void **state)
{
    (void)state;
    pnb_embeddings *normal = make_set(PNB_GAUSSIAN_DIAG), *sphere = make_set(PNB_VMF),
                   *points = make_set(PNB_POINT);
    double *u = NULL;
    assert_ok(pnb__row_uncertainty(normal, PNB__UNCERTAINTY_AUTO, &u, err));
    for (size_t i = 0; i < N; i++)
        assert_near(u[i], D * exp((double)i - 1.0), 0, 1e-6);
    pnb__free(u);
    assert_ok(pnb__row_uncertainty(sphere, PNB_UNCERTAINTY_TRACE, &u, err));
    for (size_t i = 0; i < N; i++)
        assert_near(u[i], 1.0 / (double)(1 << i), 0, 1e-12);
    pnb__free(u);
    assert_ok(pnb__row_uncertainty(points, PNB_UNCERTAINTY_TRACE, &u, err));
    assert_true(u[0] == 0.0 && u[N - 1] == 0.0);
    pnb__free(u);
    assert_true(pnb__row_uncertainty(points, PNB_UNCERTAINTY_COSINE, &u, NULL) != PNB_OK);
    assert_int_equal(pnb__own_uncertainty(sphere), PNB_UNCERTAINTY_INV_KAPPA);
    assert_int_equal(pnb__uncertainty_settle(PNB__UNCERTAINTY_AUTO, points, points),
                     PNB_UNCERTAINTY_COSINE);
    assert_int_equal(pnb__uncertainty_settle(PNB__UNCERTAINTY_AUTO, normal, points),
                     PNB_UNCERTAINTY_TRACE);
    assert_int_equal(pnb__uncertainty_settle(PNB_UNCERTAINTY_MEAN_VAR, points, sphere),
                     PNB_UNCERTAINTY_INV_KAPPA);
    pnb_embeddings_free(normal);
    pnb_embeddings_free(sphere);
    pnb_embeddings_free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_by_family),   cmocka_unit_test(auto_is_by_adapter),
        cmocka_unit_test(taken_as_points),     cmocka_unit_test(words),
        cmocka_unit_test(uncertainty_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
