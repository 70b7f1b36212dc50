/* An item's product with a query and its term rank as the measure does: against its own scores. */
#include "tests/index/heaps.h"

#include "index/product_form.h"

static double product(const made *m, pnb_measure measure, size_t query, size_t item)
{
    float x[DIM], y[DIM];
    bool ok = true;
    double sum = pnb__linear_item(&m->rows, measure, item, x, &ok);
    assert_true(ok);
    pnb__linear_query(&m->queries, measure, query, y);
    for (size_t d = 0; d < DIM; d++)
        sum += (double)x[d] * (double)y[d];
    return sum;
}

static void as_the_measure(void **state)
{
    (void)state;
    static const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN};
    made *m = make();
    for (size_t k = 0; k < PNB_COUNT(measures); k++) {
        pnb_search_opts opts = pnb_search_opts_default();
        pnb_hits hits;
        pnb_error err = PNB_ERROR_INIT;
        opts.measure = measures[k];
        opts.k = 40;
        assert_ok(pnb_search(NULL, &m->queries, &m->rows, &opts, &hits, &err), &err);
        for (size_t q = 0; q < QUERIES; q++) {
            double shift =
                hits.score[q * 40] - product(m, measures[k], q, (size_t)hits.index[q * 40]);
            for (size_t i = 0; i < 40; i++) /* the same but for a term of the query */
                assert_true(fabs(product(m, measures[k], q, (size_t)hits.index[q * 40 + i]) +
                                 shift - hits.score[q * 40 + i]) < 1e-5);
        }
        pnb_hits_reset(&hits);
    }
    free(m);
}

static void what_is_none(void **state)
{
    (void)state;
    made *m = make();
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.measure = PNB_MEASURE_KL;
    assert_failed(pnb__linear_check(&m->rows, &opts, "x", &err), &err, PNB_UNSUPPORTED, "kind x");
    pnb_error_reset(&err);
    opts.measure = PNB_MEASURE_CSD;
    m->query[5 * DIM] = NAN;
    assert_failed(pnb__linear_check_queries(&m->rows, &m->queries, &opts, &err), &err, PNB_NUMERIC,
                  "query 5");
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_measure),
                                       cmocka_unit_test(what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
