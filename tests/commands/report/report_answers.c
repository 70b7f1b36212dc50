/* Answers of a search: which half fits which, against a fit made here; and what is not fitted. */
#include "tests/commands/report/fake_report.h"

#include "penumbra/scaling.h"

static int half_of(size_t text)
{
    uint32_t word[4];
    pnb__rng_block(0, text / 2, 0, word);
    return (int)(word[0] & 1);
}

static void other_half_is_fitted(void **state)
{
    static fake f;
    pnb__answers a;
    pnb_platt fit[2];
    (void)state;
    fake_init(&f, N_TEXTS);
    for (int half = 0; half < 2; half++) {
        double score[N_TEXTS];
        int label[N_TEXTS];
        pnb_scored data = {.score = score, .label = label};
        for (size_t t = 0; t < N_TEXTS; t++)
            if (half_of(t) == half) {
                score[data.n] = f.score[t];
                label[data.n++] = f.is_right[t];
            }
        assert_true(data.n > 60 && data.n < 140);
        assert_int_equal(pnb_platt_fit(&data, true, &fit[half], NULL), PNB_OK);
    }
    assert_int_equal(pnb__answers_of_search(&f.report, &a), PNB_OK);
    assert_int_equal(a.n, N_TEXTS);
    assert_int_equal(a.n_choices, N_IMAGES);
    assert_false(a.of_kinds);
    for (size_t i = 0; i < a.n; i++) {
        const pnb__answer *x = &a.at[i];
        size_t t = x->question;
        assert_true(i == 0 || a.at[i - 1].p > x->p ||
                    (a.at[i - 1].p == x->p && a.at[i - 1].question < t));
        assert_int_equal(x->is_right, f.is_right[t]);
        assert_int_equal(x->answer, f.index[t]);
        assert_int_equal(x->truth, t / 2);
        assert_true(fabs(x->p - pnb_platt_apply(&fit[1 - half_of(t)], f.score[t])) < 1e-12);
    }
    pnb__answers_reset(&a);
}

static void what_cannot_be_fitted_is_no_failure(void **state)
{
    static fake f;
    pnb__answers a;
    (void)state;
    fake_init(&f, 30); /* too few of each half */
    assert_int_equal(pnb__answers_of_search(&f.report, &a), PNB_OK);
    assert_int_equal(a.n, 0);
    fake_init(&f, N_TEXTS); /* wrong answers score higher */
    for (size_t t = 0; t < N_TEXTS; t++)
        f.score[t] = -f.score[t];
    assert_int_equal(pnb__answers_of_search(&f.report, &a), PNB_OK);
    assert_int_equal(a.n, 0);
    fake_init(&f, N_TEXTS); /* all are right */
    for (size_t t = 0; t < N_TEXTS; t++)
        f.index[t] = (int64_t)(t / 2);
    assert_int_equal(pnb__answers_of_search(&f.report, &a), PNB_OK);
    assert_int_equal(a.n, 0);
    assert_int_equal(f.app.err.status, PNB_OK);
    f.level[0] = 0; /* one caption of a level divides nothing */
    assert_int_equal(pnb__answers_of_kinds(&f.report, &a), PNB_OK);
    assert_int_equal(a.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_half_is_fitted),
                                       cmocka_unit_test(what_cannot_be_fitted_is_no_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
