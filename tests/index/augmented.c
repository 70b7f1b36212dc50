/* Inner products of augmented rows with [mean of the query, 1] are in the order of the measure, for
 * 1,000 queries. */
#include "tests/sets/made_rows.h"

#include "index/augmented.h"
#include "penumbra/search.h"
#include "penumbra/view.h"

enum { ROWS = 200, QUERIES = 1000, K = 10 };

static double product(const float *row, const float *query, size_t dim, size_t width)
{
    double sum = width > dim ? (double)row[dim] : 0;
    for (size_t d = 0; d < dim; d++)
        sum += (double)row[d] * (double)query[d];
    return sum;
}

/* The product of the hit of each rank is that rank among the products, but for rounding to f32. */
static void assert_same_order(const pnb_embeddings *set, pnb_embeddings *queries,
                              pnb_measure measure)
{
    pnb__augmented form;
    pnb_view gallery, asked;
    pnb_hits hits;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.measure = measure;
    assert_ok(pnb__augmented_form(set->family, set->dim, &form, &err), &err);
    float *vectors = calloc(set->n * form.width, sizeof *vectors);
    assert_ok(pnb__augmented_rows(set, vectors, &err), &err);
    assert_ok(pnb_view_init(&gallery, set, &err), &err);
    assert_ok(pnb_view_init(&asked, queries, &err), &err);
    assert_ok(pnb_search(NULL, &asked.rows, &gallery.rows, &opts, &hits, &err), &err);
    for (size_t q = 0; q < QUERIES; q++)
        for (size_t r = 0; r < K; r++) {
            const float *query = queries->mean + q * queries->dim;
            size_t n_better = 0, row = (size_t)hits.index[q * K + r];
            double own = product(vectors + row * form.width, query, set->dim, form.width);
            for (size_t i = 0; i < set->n; i++)
                n_better += product(vectors + i * form.width, query, set->dim, form.width) >
                            own + 1e-5 * (1 + fabs(own));
            assert_true(n_better <= r);
        }
    pnb_hits_reset(&hits);
    pnb_view_reset(&gallery);
    pnb_view_reset(&asked);
    free(vectors);
}

static void by_csd(void **state)
{
    (void)state;
    pnb_embeddings *set = rows_from(0, ROWS), *queries = rows_from(9000, QUERIES);
    for (size_t i = 0; i < ROWS * WIDTH; i++)
        set->log_var[i] += (float)(i / WIDTH % 5); /* traces that matter */
    assert_same_order(set, queries, PNB_MEASURE_CSD);
    for (size_t i = 0; i < ROWS * WIDTH; i++) /* and means of other lengths */
        set->mean[i] *= (float)(1 + i / WIDTH % 3) / 2;
    assert_same_order(set, queries, PNB_MEASURE_CSD);
    pnb_embeddings_free(set);
    pnb_embeddings_free(queries);
}

/* Rows of another family with the same means. */
static pnb_embeddings *as_family(pnb_family family, size_t first, size_t n)
{
    pnb_embeddings *from = rows_from(first, n), *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, family, n, WIDTH, &err), &err);
    memcpy(e->mean, from->mean, n * WIDTH * sizeof(float));
    for (size_t i = 0; i < n && e->kappa != NULL; i++)
        e->kappa[i] = (float)(1 + i % 30);
    pnb_embeddings_free(from);
    return e;
}

static void by_likelihood_and_cosine(void **state)
{
    (void)state;
    pnb_embeddings *set = as_family(PNB_VMF, 0, ROWS), *points = as_family(PNB_POINT, 0, ROWS);
    pnb_embeddings *queries = as_family(PNB_POINT, 9000, QUERIES), *power = NULL;
    pnb__augmented form;
    pnb_error err = PNB_ERROR_INIT;
    assert_same_order(set, queries, PNB_MEASURE_VMF);
    assert_same_order(points, queries, PNB_MEASURE_MEAN);
    for (size_t i = 0; i < ROWS * WIDTH; i++) /* a cosine, whatever their lengths */
        points->mean[i] *= (float)(1 + i / WIDTH % 7);
    assert_same_order(points, queries, PNB_MEASURE_MEAN);
    power = as_family(PNB_POWER_SPHERICAL, 0, 2);
    assert_failed(pnb__augmented_form(power->family, WIDTH, &form, &err), &err, PNB_UNSUPPORTED,
                  "power_spherical");
    pnb_error_reset(&err);
    points->mean[3] = INFINITY;
    float vectors[ROWS * WIDTH];
    assert_failed(pnb__augmented_rows(points, vectors, &err), &err, PNB_NUMERIC, "row 0");
    pnb_embeddings_free(set);
    pnb_embeddings_free(points);
    pnb_embeddings_free(queries);
    pnb_embeddings_free(power);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_csd),
                                       cmocka_unit_test(by_likelihood_and_cosine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
