/* Embedding sets of every family as rows: what a view holds, and search through it by measures of
 * every kind, against the one-pair form. */
#include "tests/prob/support.h"

#include "penumbra/distributions.h"
#include "penumbra/embeddings.h"
#include "penumbra/search.h"
#include "penumbra/view.h"

enum { D = 6 };

static pnb_embeddings *make_set(pnb_family family, size_t n, uint64_t seed)
{
    pnb_embeddings *set = NULL;
    gaussians g = random_gaussians(n, D, -3, 0, seed);
    assert_ok(pnb_embeddings_create(&set, family, n, D, err));
    memcpy(set->mean, g.mean, n * D * sizeof(float));
    for (size_t i = 0; i < n * D; i++) {
        if (set->log_var != NULL)
            set->log_var[i] = g.log_var[i];
        if (set->beta != NULL) {
            set->beta[i] = 0.5f + 0.1f * (float)(i % 30);
            set->inv_alpha[i] = 1.0f + (float)(i % 7);
        }
    }
    for (size_t i = 0; set->kappa != NULL && i < n; i++)
        set->kappa[i] = 0.5f * (float)(i * i % 1000);
    free_gaussians(&g);
    return set;
}

static void views_of_all_families(void **state)
{
    (void)state;
    for (int f = 0; f < PNB_N_FAMILIES; f++) {
        pnb_embeddings *set = make_set((pnb_family)f, 4, 1);
        pnb_view view;
        assert_ok(pnb_view_init(&view, set, err));
        assert_string_equal(pnb_rows_family(&view.rows), pnb_family_name((pnb_family)f));
        assert_true(view.rows.n == 4 && view.rows.dim == D && view.rows.mean == set->mean);
        assert_true(view.rows.kappa == set->kappa && view.rows.beta == set->beta);
        assert_true((view.owned != NULL) == (f == PNB_GEN_GAUSSIAN));
        if (f != PNB_GEN_GAUSSIAN)
            assert_true(view.rows.log_var == set->log_var);
        pnb_view_reset(&view);
        assert_true(view.rows.n == 0 && view.owned == NULL);
        pnb_embeddings_free(set);
    }
    pnb_view_reset(NULL);
}

/* The variances are those of the samples. */
static void moments_are_matched(void **state)
{
    (void)state;
    enum { J = 40000 };
    pnb_embeddings *set = make_set(PNB_GEN_GAUSSIAN, 1, 2);
    pnb_sample_opts opts = {.n_samples = J, .seed = 3};
    pnb_view view;
    double *z = malloc(J * D * sizeof *z), variance, csd, w2;
    assert_non_null(z);
    assert_ok(pnb_view_init(&view, set, err));
    assert_ok(pnb_sample_rows(&view.rows, &opts, z, err));
    for (size_t d = 0; d < D; d++) {
        double sum = 0, square = 0;
        for (size_t j = 0; j < J; j++) {
            double x = z[j * D + d] - (double)set->mean[d];
            sum += x / J;
            square += x * x / J;
        }
        variance = exp(pnb_gen_gaussian_log_var(set->inv_alpha[d], set->beta[d]));
        assert_near(exp((double)view.rows.log_var[d]), variance, 0, 1e-6);
        assert_near(sum, 0, 5 * sqrt(variance / J), 0);
        assert_near(square, variance, 0, 0.15); /* beta 0.5: the fourth moment is 25 variances^2 */
    }
    assert_ok(pnb_measure_rows(PNB_MEASURE_CSD, &view.rows, &view.rows, NULL, &csd, err));
    assert_ok(pnb_measure_rows(PNB_MEASURE_W2, &view.rows, &view.rows, NULL, &w2, err));
    assert_true(csd > 0.0 && w2 == 0.0);
    free(z);
    pnb_view_reset(&view);
    pnb_embeddings_free(set);
}

static double score(const pnb_search_opts *o, const pnb_rows *q, size_t i, const pnb_rows *x,
                    size_t j)
{
    return pnb_measure_score(o->measure,
                             pnb_measure_pair(o->measure, q, i, x, j, &o->measure_opts));
}

/* Each hit has the pair's score, and no item left out beats the last one. */
static void expect_best(const pnb_rows *q, const pnb_rows *x, const pnb_search_opts *o,
                        const pnb_hits *hits)
{
    for (size_t i = 0; i < q->n; i++) {
        const int64_t *index = hits->index + i * o->k;
        const double *got = hits->score + i * o->k;
        size_t n_better = 0;
        for (size_t r = 0; r < o->k; r++) {
            double want = score(o, q, i, x, (size_t)index[r]);
            assert_near(got[r], want, 1e-10, 1e-10);
            assert_true(r == 0 || got[r] <= got[r - 1]);
        }
        for (size_t j = 0; j < x->n; j++)
            n_better += score(o, q, i, x, j) > got[o->k - 1] + 1e-12 + 1e-10 * fabs(got[o->k - 1]);
        assert_true(n_better < o->k);
    }
}

static void search_between_families(void **state)
{
    (void)state;
    const struct {
        pnb_measure measure;
        pnb_family queries, gallery;
    } cases[] = {
        {PNB_MEASURE_VMF, PNB_VMF, PNB_POINT},
        {PNB_MEASURE_VMF, PNB_POINT, PNB_VMF},
        {PNB_MEASURE_VMF_EXACT, PNB_VMF, PNB_VMF},
        {PNB_MEASURE_POWER_SPHERICAL, PNB_POINT, PNB_POWER_SPHERICAL},
        {PNB_MEASURE_MEAN, PNB_VMF, PNB_POWER_SPHERICAL},
        {PNB_MEASURE_AVG_L2, PNB_GEN_GAUSSIAN, PNB_VMF},
        {PNB_MEASURE_MATCH_PROB, PNB_POWER_SPHERICAL, PNB_GAUSSIAN_DIAG},
        {PNB_MEASURE_CSD, PNB_GEN_GAUSSIAN, PNB_POINT},
        {PNB_MEASURE_W2, PNB_GAUSSIAN_DIAG, PNB_GEN_GAUSSIAN},
        {PNB_MEASURE_INCLUSION, PNB_GEN_GAUSSIAN, PNB_GEN_GAUSSIAN},
    };
    for (size_t c = 0; c < PNB_COUNT(cases); c++)
        for (int reverse = 0; reverse < 2; reverse++) {
            pnb_embeddings *queries = make_set(cases[c].queries, 7, 10);
            pnb_embeddings *gallery = make_set(cases[c].gallery, 61, 11);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_view q, x;
            pnb_hits hits;
            o.measure = cases[c].measure;
            o.reverse = reverse != 0 && pnb_measure_is_symmetric(o.measure);
            o.measure_opts.n_samples = 2;
            o.k = 5;
            assert_ok(pnb_view_init(&q, queries, err));
            assert_ok(pnb_view_init(&x, gallery, err));
            assert_ok(pnb_search(NULL, &q.rows, &x.rows, &o, &hits, err));
            expect_best(&q.rows, &x.rows, &o, &hits);
            pnb_hits_reset(&hits);
            pnb_view_reset(&q);
            pnb_view_reset(&x);
            pnb_embeddings_free(queries);
            pnb_embeddings_free(gallery);
        }
}

static void what_does_not_fit(void **state)
{
    (void)state;
    pnb_embeddings *vmf = make_set(PNB_VMF, 3, 1), *point = make_set(PNB_POINT, 3, 2);
    pnb_embeddings *broken = make_set(PNB_GEN_GAUSSIAN, 3, 3);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_view v, p, b;
    pnb_hits hits;
    pnb_index *index = NULL;
    assert_ok(pnb_view_init(&v, vmf, err));
    assert_ok(pnb_view_init(&p, point, err));
    assert_fails(pnb_search(NULL, &v.rows, &p.rows, &o, &hits, err), PNB_ARG, "family vmf");
    assert_fails(pnb_index_create(&index, NULL, &v.rows, &o, err), PNB_ARG, "csd");
    o.measure = PNB_MEASURE_VMF;
    assert_fails(pnb_search(NULL, &p.rows, &p.rows, &o, &hits, err), PNB_ARG,
                 "neither set has one");
    vmf->kappa[1] = -1;
    assert_fails(pnb_search(NULL, &v.rows, &p.rows, &o, &hits, err), PNB_NUMERIC, "query 1");
    broken->beta[D + 2] = 0;
    assert_fails(pnb_view_init(&b, broken, err), PNB_NUMERIC, "row 1, column 2");
    assert_true(b.owned == NULL && b.rows.n == 0);
    broken->family = (pnb_family)77;
    assert_fails(pnb_view_init(&b, broken, err), PNB_UNSUPPORTED, "77");
    broken->family = PNB_GEN_GAUSSIAN;
    pnb_embeddings_free(vmf);
    pnb_embeddings_free(point);
    pnb_embeddings_free(broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_all_families),
        cmocka_unit_test(moments_are_matched),
        cmocka_unit_test(search_between_families),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
