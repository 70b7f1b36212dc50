/* Entropy of matches and doubt about them: by definition on a few rows, their ends, and what is
 * refused. */
#include "penumbra/match_entropy.h"

#include "tests/prob/support.h"

enum { QUERIES = 7, ITEMS = 23, DIM = 5 };

static void unit_rows(float *mean, size_t n, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        double length = 0.0;
        for (size_t d = 0; d < DIM; d++) {
            mean[i * DIM + d] = (float)pnb__rng_normal(&rng);
            length += (double)mean[i * DIM + d] * (double)mean[i * DIM + d];
        }
        for (size_t d = 0; d < DIM; d++)
            mean[i * DIM + d] /= (float)sqrt(length);
    }
}

/* -sum p log2 p, p written out. */
static double entropy_of(const float *q, const float *items, double scale)
{
    double p[ITEMS], sum = 0.0, h = 0.0;
    for (size_t j = 0; j < ITEMS; j++) {
        double cosine = 0.0;
        for (size_t d = 0; d < DIM; d++)
            cosine += (double)q[d] * (double)items[j * DIM + d];
        p[j] = exp(scale * cosine);
        sum += p[j];
    }
    for (size_t j = 0; j < ITEMS; j++)
        h -= p[j] / sum * log2(p[j] / sum);
    return h;
}

typedef struct world {
    float query[QUERIES * DIM], item[ITEMS * DIM];
    pnb_rows queries, items;
} world;

static void world_make(world *w)
{
    unit_rows(w->query, QUERIES, 1);
    unit_rows(w->item, ITEMS, 2);
    w->queries = (pnb_rows){.mean = w->query, .n = QUERIES, .dim = DIM};
    w->items = (pnb_rows){.mean = w->item, .n = ITEMS, .dim = DIM};
}

static void by_definition(void **state)
{
    static const double scales[] = {0.1, 3.0, 40.0};
    world w;
    double h[QUERIES];
    (void)state;
    world_make(&w);
    for (size_t k = 0; k < PNB_COUNT(scales); k++) {
        assert_ok(pnb_match_entropy_compute(NULL, &w.queries, &w.items, scales[k], h, err));
        for (size_t i = 0; i < QUERIES; i++)
            assert_near(h[i], entropy_of(w.query + i * DIM, w.item, scales[k]), 1e-5, 1e-5);
    }
}

/* log2 of the gallery where all items are alike; of the equals on top where the scale is large, and
 * no overflow on the way. */
static void from_all_to_the_equals_on_top(void **state)
{
    world w;
    double h[QUERIES];
    (void)state;
    world_make(&w);
    assert_ok(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 1e-9, h, err));
    assert_near(h[0], log2(ITEMS), 1e-9, 0);
    memcpy(w.item + 4 * DIM, w.query, DIM * sizeof(float));
    memcpy(w.item + 9 * DIM, w.query, DIM * sizeof(float));
    assert_ok(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 1e6, h, err));
    assert_near(h[0], 1.0, 1e-9, 0);
    for (size_t i = 0; i < QUERIES; i++)
        assert_true(h[i] >= 0.0);
}

static void what_is_refused(void **state)
{
    world w;
    double h[QUERIES] = {-1};
    (void)state;
    world_make(&w);
    assert_fails(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 0, h, err), PNB_ARG,
                 "scale is 0, must be above 0");
    assert_fails(pnb_match_entropy_compute(NULL, &w.queries, &w.items, NAN, h, err), PNB_ARG,
                 "must be above 0");
    w.items.n = 0;
    assert_fails(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 1, h, err), PNB_SHAPE,
                 "7 queries and 0 items");
    w.items.n = ITEMS;
    w.item[3 * DIM] = NAN;
    assert_fails(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 1, h, err), PNB_NUMERIC,
                 "3");
    assert_true(h[0] == -1); /* untouched */
}

/* ---- doubt ---- */

static pnb_match_probability_fit platt_fit(double a, double b)
{
    pnb_match_probability_fit fit = {.n_gallery = ITEMS,
                                     .has_platt = true,
                                     .platt = {.a = a, .b = b},
                                     .method = PNB_MATCH_PLATT};
    fit.origin.has_measure = true;
    fit.origin.measure = PNB_MEASURE_MEAN;
    fit.origin.measure_opts = pnb_measure_opts_default();
    return fit;
}

/* sum of -p log2 p - q log2 q with the odds of `ratio` times as many other rows. */
static double doubt_by_pairs(const float *q, const float *items, size_t n, double a, double b,
                             double ratio)
{
    double doubt = 0.0;
    for (size_t j = 0; j < n; j++) {
        double cosine = 0.0;
        for (size_t d = 0; d < DIM; d++)
            cosine += (double)q[d] * (double)items[j * DIM + d];
        double p = 1.0 / (1.0 + exp(-a * cosine - b) * ratio);
        doubt += -p * log2(p) - (1.0 - p) * log2(1.0 - p);
    }
    return doubt;
}

static void doubt_by_definition(void **state)
{
    static const double a[] = {0.5, 4.0, 9.0}, b[] = {0.0, -2.0, 1.0};
    world w;
    double d[QUERIES], again[QUERIES];
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    (void)state;
    world_make(&w);
    opts.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    for (size_t k = 0; k < PNB_COUNT(a); k++) {
        const pnb_match_probability_fit fit = platt_fit(a[k], b[k]);
        assert_ok(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err));
        for (size_t i = 0; i < QUERIES; i++)
            assert_near(d[i], doubt_by_pairs(w.query + i * DIM, w.item, ITEMS, a[k], b[k], 1), 1e-5,
                        1e-5);
        assert_ok(pnb_match_doubt_compute(ctx, &w.queries, &w.items, &fit, again, err));
        assert_memory_equal(d, again, sizeof d);
    }
    /* as many matches among fewer rows: each pair is likelier */
    const pnb_match_probability_fit fit = platt_fit(4, -2);
    w.items.n = 10;
    assert_ok(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err));
    for (size_t i = 0; i < QUERIES; i++)
        assert_near(d[i], doubt_by_pairs(w.query + i * DIM, w.item, 10, 4, -2, 10.0 / ITEMS), 1e-5,
                    1e-5);
    pnb_ctx_free(ctx);
}

/* A curve that knows each pair for sure leaves nothing, one of 1/2 a bit a pair: whatever the
 * number of matches, which the entropy counts. */
static void doubt_does_not_count_matches(void **state)
{
    double score[] = {-0.5, 0.5}, sure[] = {0, 1}, open[] = {0.5, 0.5};
    world w;
    double d[QUERIES], h[QUERIES];
    (void)state;
    world_make(&w);
    memset(w.query, 0, sizeof w.query);
    memset(w.item, 0, sizeof w.item);
    for (size_t i = 0; i < QUERIES; i++)
        w.query[i * DIM] = 1;
    for (size_t j = 0; j < ITEMS; j++)
        w.item[j * DIM] = j < 9 ? 1 : -1; /* nine match */
    pnb_match_probability_fit fit = platt_fit(1, 0);
    fit.has_isotonic = true;
    fit.method = PNB_MATCH_ISOTONIC;
    fit.isotonic = (pnb_isotonic){.n = 2, .score = score, .p = sure};
    assert_ok(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err));
    assert_true(d[0] == 0.0);
    assert_ok(pnb_match_entropy_compute(NULL, &w.queries, &w.items, 50, h, err));
    assert_near(h[0], log2(9), 1e-9, 0);
    fit.isotonic.p = open;
    assert_ok(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err));
    assert_near(d[0], ITEMS, 1e-9, 0);
}

static void doubt_that_is_refused(void **state)
{
    world w;
    double d[QUERIES] = {-1};
    (void)state;
    world_make(&w);
    pnb_match_probability_fit fit = platt_fit(1, 0);
    fit.depth = 10;
    assert_fails(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err), PNB_ARG,
                 "of the first 10 hits says nothing of other pairs");
    fit.depth = 0;
    fit.origin.has_measure = false;
    assert_fails(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err), PNB_ARG,
                 "does not tell its measure");
    fit.origin.has_measure = true;
    w.queries.n = 0;
    assert_fails(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err), PNB_SHAPE,
                 "0 queries and 23 items");
    w.queries.n = QUERIES;
    w.query[2 * DIM] = NAN;
    assert_fails(pnb_match_doubt_compute(NULL, &w.queries, &w.items, &fit, d, err), PNB_NUMERIC,
                 "2");
    assert_true(d[0] == -1); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_definition),
                                       cmocka_unit_test(doubt_by_definition),
                                       cmocka_unit_test(doubt_does_not_count_matches),
                                       cmocka_unit_test(doubt_that_is_refused),
                                       cmocka_unit_test(from_all_to_the_equals_on_top),
                                       cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
