/* Lists and probabilities on other queries: by definition on a few rows, the promise of conformal
 * prediction on a hundred splits where nothing shifts, and what a shift takes and few queries give
 * back. */
#include "penumbra/shift.h"

#include "base/order.h"
#include "tests/prob/support.h"

enum { QUERIES = 600, GALLERY = 40 };

typedef struct world {
    double score[QUERIES][GALLERY]; /* each row descending */
    size_t first_match[QUERIES];
    pnb_shift_queries q;
} world;

static int descending(const void *a, const void *b)
{
    return -pnb__compare_doubles(a, b);
}

/* One match a query, `better` above the others on average, whose level differs by query. */
static void world_make(world *w, double better, double level, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < QUERIES; i++) {
        double own = level * pnb__rng_normal(&rng);
        for (size_t j = 0; j < GALLERY; j++)
            w->score[i][j] = own + pnb__rng_normal(&rng) + (j == 0 ? better : 0);
        double match = w->score[i][0];
        qsort(w->score[i], GALLERY, sizeof(double), descending);
        w->first_match[i] = 0;
        while (w->score[i][w->first_match[i]] != match)
            w->first_match[i]++;
    }
    w->q = (pnb_shift_queries){QUERIES, GALLERY, w->score[0], w->first_match, NULL};
}

static void lists_by_definition(void **state)
{
    (void)state;
    static world w;
    const double cutoff[PNB_N_CONFORMALS] = {0.7, 1.3, 4};
    world_make(&w, 1.5, 0.5, 1);
    for (int kind = 0; kind < PNB_N_CONFORMALS; kind++) {
        pnb_shift_lists got;
        double n_held = 0, size = 0;
        for (size_t i = 0; i < QUERIES; i++)
            for (size_t j = 0; j < GALLERY; j++) {
                double s = w.score[i][j], first = w.score[i][0];
                bool is_in = kind == PNB_CONFORMAL_SCORE    ? s >= cutoff[kind]
                             : kind == PNB_CONFORMAL_MARGIN ? first - s <= cutoff[kind]
                                                            : (double)(j + 1) <= cutoff[kind];
                size += is_in;
                n_held += is_in && j == w.first_match[i];
            }
        assert_ok(pnb_shift_brought(&w.q, (pnb_conformal_kind)kind, cutoff[kind], NULL, &got, err));
        assert_near(got.coverage.value, n_held / QUERIES, 1e-12, 0);
        assert_near(got.mean_size, size / QUERIES, 1e-9, 0);
        assert_true(got.coverage.low < got.coverage.value &&
                    got.coverage.value < got.coverage.high);
    }
}

/* Within 1% of ceil((m+1)(1-alpha))/(m+1), on a hundred splits, for every kind. */
static void coverage_is_as_promised(void **state)
{
    (void)state;
    static world w;
    static const double alphas[] = {0.05, 0.1, 0.2};
    static const size_t fitted[] = {50, QUERIES / 2};
    world_make(&w, 1.5, 0.5, 2);
    for (int kind = 0; kind < PNB_N_CONFORMALS; kind++)
        for (size_t a = 0; a < 3; a++)
            for (size_t f = 0; f < 2; f++) {
                pnb_shift_lists got;
                double m = (double)fitted[f];
                double want = ceil((m + 1) * (1 - alphas[a])) / (m + 1);
                assert_ok(pnb_shift_refitted(&w.q, (pnb_conformal_kind)kind, alphas[a], fitted[f],
                                             100, 3, &got, err));
                if (kind == PNB_CONFORMAL_RANK) /* ranks tie: never less, at times more */
                    assert_true(got.coverage.value > want - 0.01);
                else
                    assert_near(got.coverage.value, want, 0.01, 0);
                assert_true(got.coverage.low <= got.coverage.value &&
                            got.coverage.value <= got.coverage.high);
            }
}

/* A cut-off from where matches stand out does not hold where they do not; 50 queries mend it. */
static void a_shift_and_what_mends_it(void **state)
{
    (void)state;
    static world there, here;
    pnb_shift_lists fitted, brought, mended;
    pnb_conformal fit = {0};
    double score[QUERIES], cutoff;
    world_make(&there, 3.0, 0.1, 4);
    world_make(&here, 1.0, 0.1, 5);
    for (size_t i = 0; i < QUERIES; i++)
        score[i] = there.score[i][there.first_match[i]];
    double *zero = calloc(QUERIES, sizeof *zero), *one = malloc(QUERIES * sizeof *one);
    for (size_t i = 0; i < QUERIES; i++)
        one[i] = 1;
    assert_ok(pnb_conformal_create(&fit, score, zero, one, QUERIES, err));
    assert_ok(pnb_conformal_cutoff(&fit, PNB_CONFORMAL_SCORE, 0.1, &cutoff, err));
    assert_ok(pnb_shift_brought(&there.q, PNB_CONFORMAL_SCORE, cutoff, NULL, &fitted, err));
    assert_ok(pnb_shift_brought(&here.q, PNB_CONFORMAL_SCORE, cutoff, NULL, &brought, err));
    assert_ok(pnb_shift_refitted(&here.q, PNB_CONFORMAL_SCORE, 0.1, 50, 100, 0, &mended, err));
    assert_near(fitted.coverage.value, 0.9, 0.01, 0);
    assert_true(brought.coverage.high < 0.5);
    assert_near(mended.coverage.value, 46.0 / 51, 0.01, 0);
    assert_true(mended.mean_size > 2 * brought.mean_size);
    pnb_conformal_reset(&fit);
    free(zero);
    free(one);
}

static void probabilities_of_first_hits(void **state)
{
    (void)state;
    static world there, here;
    double score[QUERIES];
    int right[QUERIES];
    pnb_platt fit;
    pnb_shift_ece own, brought, mended, few;
    world_make(&there, 4.0, 0.3, 6);
    world_make(&here, 1.5, 0.3, 7);
    for (size_t i = 0; i < QUERIES * GALLERY; i++)
        ((double *)here.score)[i] += 2; /* every score is higher here */
    double brier = 0, p_mean = 0;
    for (size_t i = 0; i < QUERIES; i++) {
        score[i] = there.score[i][0];
        right[i] = there.first_match[i] == 0;
    }
    const pnb_scored data = {.n = QUERIES, .score = score, .label = right};
    assert_ok(pnb_platt_fit(&data, true, &fit, err));
    assert_ok(pnb_shift_first_brought(&there.q, &fit, 10, &own, err));
    assert_ok(pnb_shift_first_brought(&here.q, &fit, 10, &brought, err));
    assert_ok(pnb_shift_first_refitted(&here.q, 50, 100, 0, 10, &mended, err));
    for (size_t i = 0; i < QUERIES; i++) {
        double p = pnb_platt_apply(&fit, here.score[i][0]);
        brier += (p - (here.first_match[i] == 0)) * (p - (here.first_match[i] == 0)) / QUERIES;
        p_mean += p / QUERIES;
    }
    assert_near(brought.brier, brier, 1e-12, 0);
    assert_near(brought.p_mean, p_mean, 1e-12, 0);
    assert_true(own.ece < 0.08 && brought.ece > 0.3 && mended.ece < 0.6 * brought.ece);
    assert_true(mended.n_splits > 60 && brought.n_splits == 1);
    /* one query is right or wrong: nothing to fit */
    assert_ok(pnb_shift_first_refitted(&here.q, 1, 10, 0, 10, &few, err));
    assert_true(few.n_splits == 0 && isnan(few.ece));
}

static void bad_input(void **state)
{
    (void)state;
    static world w;
    pnb_shift_lists lists;
    pnb_shift_ece f;
    world_make(&w, 1, 0, 1);
    pnb_shift_queries q = w.q;
    assert_fails(pnb_shift_refitted(&q, PNB_CONFORMAL_SCORE, 0.1, QUERIES, 9, 0, &lists, err),
                 PNB_ARG, "one to judge");
    assert_fails(pnb_shift_refitted(&q, PNB_CONFORMAL_SCORE, 1.5, 9, 9, 0, &lists, err), PNB_ARG,
                 "1.5");
    assert_fails(pnb_shift_first_refitted(&q, 0, 9, 0, 9, &f, err), PNB_ARG, "0 to fit on");
    w.first_match[7] = GALLERY;
    assert_fails(pnb_shift_brought(&q, PNB_CONFORMAL_RANK, 3, NULL, &lists, err), PNB_ARG,
                 "query 7 has its first match at place 40 of 40");
    q.n = 0;
    assert_fails(pnb_shift_brought(&q, PNB_CONFORMAL_RANK, 3, NULL, &lists, err), PNB_ARG,
                 "0 queries");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_by_definition),
        cmocka_unit_test(coverage_is_as_promised),
        cmocka_unit_test(a_shift_and_what_mends_it),
        cmocka_unit_test(probabilities_of_first_hits),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
