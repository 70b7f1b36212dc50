/* Entropy of matches: by definition on a few rows, its ends, and what is refused. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_definition),
                                       cmocka_unit_test(from_all_to_the_equals_on_top),
                                       cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
