/* Evaluators of a training: when they run, what they are given, whose figure the best checkpoint
 * goes by, and that what they return ends the run. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

/* Says that the weights of the epochs were worth so much. */
typedef struct oracle {
    double values[4];
    const char *name; /* of the figure; NULL: oracle_says */
    int64_t epochs[8];
    size_t n;
    pnb_status answer;
} oracle;

static pnb_status ask(void *user, const pnb_train_snapshot *now, pnb_train_figure *out, size_t *n,
                      pnb_error *err)
{
    oracle *o = user;
    assert_true(now->model != NULL && now->tokenizer != NULL && now->preprocess->width == 16);
    assert_true(now->step == now->epoch * 5);
    o->epochs[o->n++] = now->epoch;
    if (o->answer != PNB_OK)
        return pnb__fail(err, o->answer, "the oracle is silent");
    out[0] = (pnb_train_figure){o->name != NULL ? o->name : "oracle_says", "Oracle",
                                o->values[now->epoch]};
    *n = 1;
    return PNB_OK;
}

static pnb_train_opts opts_of(const fixture *f, const char *name, oracle *o, int64_t frequency)
{
    pnb_train_opts opts = fixture_opts(f, name);
    opts.epochs = 3;
    opts.save_frequency = 1;
    opts.evaluators[0] = (pnb_train_evaluator){"oracle_", frequency, ask, o};
    opts.n_evaluators = 1;
    return opts;
}

static void test_when_and_best(void **state)
{
    const fixture *f = *state;
    oracle each = {.values = {0, 0.2, 0.7, 0.4}}, second = each, last = each, doubt = each;
    pnb_train_opts o = opts_of(f, "each", &each, 1);
    pnb_train_result r;
    o.best_by = "oracle_says";
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(each.n == 3 && each.epochs[0] == 1 && each.epochs[2] == 3);
    assert_true(r.n_figures == 1 && r.figures[0].value == 0.4 && !r.eval.done);
    assert_non_null(strstr(r.best_dir, "epoch_2")); /* the highest */
    o = opts_of(f, "second", &second, 2);
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(second.n == 2 && second.epochs[0] == 2 && second.epochs[1] == 3);
    assert_string_equal(r.best_dir, ""); /* by val_loss, which is not there */
    o = opts_of(f, "last", &last, 0);
    o.val_data = f->val;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_true(last.n == 1 && last.epochs[0] == 3 && r.eval.done && r.best_dir[0] != '\0');
    doubt.name = "oracle_unc_r"; /* a correlation of uncertainty and success: the lowest */
    o = opts_of(f, "doubt", &doubt, 1);
    o.best_by = doubt.name;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    assert_non_null(strstr(r.best_dir, "epoch_1"));
}

static void test_refused(void **state)
{
    const fixture *f = *state;
    oracle each = {.values = {0}};
    pnb_train_result r;
    pnb_train_opts o = opts_of(f, "no", &each, 1);
    o.best_by = "oracle_knows";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "no figure is called so");
    o = opts_of(f, "no2", &each, 1);
    o.best_by = "val_loss";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "give --val-data");
    o.best_by = "retrieval_i2t_r1";
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "measures no such figure");
    o = opts_of(f, "no2", &each, -1);
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "frequency of 0 or more");
    o = opts_of(f, "no2", &each, 1);
    o.n_evaluators = PNB_TRAIN_MAX_EVALUATORS + 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "at most 2");
    o = opts_of(f, "silent", &each, 1);
    each.answer = PNB_FORMAT;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_FORMAT, "the oracle is silent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_and_best),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
