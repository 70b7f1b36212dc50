/* Answers to visual questions: votes against counting subsets, one form for answers, confidence and
 * choice by hand, calibration against sums over bins, and what is refused. */
#include "penumbra/vqa.h"
#include "tests/prob/support.h"

/* VQA's definition word for word: leave each person out, count among the rest. */
static double counted(size_t m, size_t n)
{
    double sum = 0;
    for (size_t out = 0; out < n; out++)
        sum += fmin((double)(out < m ? m - 1 : m) / 3, 1);
    return sum / (double)n;
}

static void counts_votes(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 12; n++)
        for (size_t m = 0; m <= n; m++) {
            assert_near(pnb_vqa_vote(m, n, false), counted(m, n), 1e-15, 1e-12);
            assert_near(pnb_vqa_vote(m, n, true), fmin((double)m / 3, 1), 0, 0);
        }
    /* the known figures of ten people: 0.3, 0.6, 0.9, 1 */
    assert_near(pnb_vqa_vote(1, 10, false), 0.3, 1e-12, 0);
    assert_near(pnb_vqa_vote(2, 10, false), 0.6, 1e-12, 0);
    assert_near(pnb_vqa_vote(3, 10, false), 0.9, 1e-12, 0);
    assert_near(pnb_vqa_vote(4, 10, false), 1.0, 1e-12, 0);
    assert_near(pnb_vqa_vote(1, 1, false), 1, 0, 0);
    assert_near(pnb_vqa_vote(0, 1, true), 0, 0, 0);
    assert_near(pnb_vqa_vote(0, 0, false), 0, 0, 0);
}

static void scores_a_question(void **state)
{
    (void)state;
    static const char *const candidates[] = {"cat", "2", "red"};
    static const char *const answers[] = {"Two", "2", "two.", "cat", "3"};
    const double scores[] = {0.1, 0.7, 0.7}, u[] = {1, 2, 0.5};
    pnb_vqa_question q = {3, candidates, scores, u, 5, answers};
    pnb_vqa_answer a;
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_int_equal(a.choice, 1); /* the first of the best */
    assert_near(a.confidence, 1 - exp(2) / (exp(1) + exp(2) + exp(0.5)), 1e-12, 0);
    assert_near(a.accuracy, counted(3, 5), 1e-12, 0);
    const pnb_vqa_opts exact = {.exact = true}, simple = {.simple = true};
    assert_ok(pnb_vqa_score(&q, &exact, &a, err));
    assert_near(a.accuracy, counted(1, 5), 1e-12, 0);
    assert_ok(pnb_vqa_score(&q, &simple, &a, err));
    assert_near(a.accuracy, 1, 0, 0);
    /* without scores the most certain one, without uncertainties u = -score */
    q.scores = NULL;
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_int_equal(a.choice, 2);
    q.scores = scores;
    q.uncertainty = NULL;
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_near(a.confidence, 1 - exp(-0.7) / (exp(-0.1) + 2 * exp(-0.7)), 1e-12, 0);
    /* one candidate has nothing beside it; huge differences neither overflow nor cancel */
    q.n_candidates = 1;
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_near(a.confidence, 0, 0, 0);
    const double far[] = {-1000, 1000, 999}, close[] = {700, -4, 0};
    q = (pnb_vqa_question){3, candidates, NULL, far, 5, answers};
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_near(a.confidence, 1, 0, 0);
    q.scores = far;
    q.uncertainty = close;
    assert_ok(pnb_vqa_score(&q, NULL, &a, err));
    assert_int_equal(a.choice, 1);
    assert_near(a.confidence, 1, 0, 0);
}

static void refuses_bad_questions(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "b"};
    const double good[] = {1, 2}, bad[] = {1, NAN};
    pnb_vqa_answer a;
    pnb_vqa_question q = {0, words, good, NULL, 2, words};
    assert_fails(pnb_vqa_score(&q, NULL, &a, err), PNB_ARG, "0 candidates");
    q = (pnb_vqa_question){2, words, good, NULL, 0, words};
    assert_fails(pnb_vqa_score(&q, NULL, &a, err), PNB_ARG, "0 answers");
    q = (pnb_vqa_question){2, words, NULL, NULL, 2, words};
    assert_fails(pnb_vqa_score(&q, NULL, &a, err), PNB_ARG, "neither");
    q = (pnb_vqa_question){2, words, bad, NULL, 2, words};
    assert_fails(pnb_vqa_score(&q, NULL, &a, err), PNB_NUMERIC, "score of candidate 1");
    q = (pnb_vqa_question){2, words, good, bad, 2, words};
    assert_fails(pnb_vqa_score(&q, NULL, &a, err), PNB_NUMERIC, "uncertainty of candidate 1");
}

static void measures_calibration(void **state)
{
    (void)state;
    enum { N = 8, BINS = 4 };
    const double confidence[N] = {0, 0.1, 0.25, 0.26, 0.6, 0.9, 1, 0.95};
    const double accuracy[N] = {0, 0.3, 0.6, 1, 0.3, 1, 0.9, 0};
    size_t n_in_bin[BINS];
    double c[BINS], a[BINS];
    pnb_answer_calibration s = {.n_in_bin = n_in_bin, .confidence = c, .accuracy = a};
    assert_ok(pnb_answer_calibration_compute(confidence, accuracy, N, BINS, false, &s, err));
    assert_true(n_in_bin[0] == 3 && n_in_bin[1] == 1 && n_in_bin[2] == 1 && n_in_bin[3] == 3);
    assert_near(c[0], 0.35 / 3, 1e-12, 0);
    assert_near(a[3], 1.9 / 3, 1e-12, 0);
    assert_near(s.ece, (0.55 + 0.74 + 0.3 + 0.95) / N, 1e-12, 0);
    assert_near(s.mce, 0.74, 1e-12, 0);
    assert_ok(pnb_answer_calibration_compute(confidence, accuracy, N, BINS, true, &s, err));
    for (size_t k = 0; k < BINS; k++)
        assert_int_equal(n_in_bin[k], 2);
    assert_near(c[3], 0.975, 1e-12, 0); /* 0.95 and 1 */
    assert_near(s.ece, (0.2 + 1.09 + 0.2 + 1.05) / N, 1e-12, 0);
    /* empty bins count nothing; arrays may be left out */
    const double one[1] = {0.5}, right[1] = {1};
    assert_ok(pnb_answer_calibration_compute(one, right, 1, BINS, false, &s, err));
    assert_true(isnan(c[0]) && n_in_bin[1] == 1);
    /* an edge belongs to the bin below it, also where 100 * 0.07 rounds to above 7 */
    size_t of_hundred[100];
    const double edge[1] = {0.07};
    pnb_answer_calibration fine = {.n_in_bin = of_hundred};
    assert_ok(pnb_answer_calibration_compute(edge, right, 1, 100, false, &fine, err));
    assert_true(of_hundred[6] == 1 && of_hundred[7] == 0);
    pnb_answer_calibration bare = {0};
    assert_ok(pnb_answer_calibration_compute(one, right, 1, 1, true, &bare, err));
    assert_near(bare.ece, 0.5, 0, 0);
    assert_fails(pnb_answer_calibration_compute(one, right, 0, 1, false, &bare, err), PNB_ARG,
                 "0 questions");
    assert_fails(pnb_answer_calibration_compute(one, right, 1, 0, false, &bare, err), PNB_ARG,
                 "bins");
    const double outside[1] = {1.5};
    assert_fails(pnb_answer_calibration_compute(outside, right, 1, 1, false, &bare, err),
                 PNB_NUMERIC, "question 0");
    assert_fails(pnb_answer_calibration_compute(one, outside, 1, 1, false, &bare, err), PNB_NUMERIC,
                 "accuracy 1.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_votes),
        cmocka_unit_test(scores_a_question),
        cmocka_unit_test(refuses_bad_questions),
        cmocka_unit_test(measures_calibration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
