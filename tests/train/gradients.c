/* The gradient of a step at given weights: the same in one batch and in micro-batches, the same
 * bits with gradient checkpointing, and made without allocating anything once a run is steady. */
#include "tests/train/fixture.h"

#include <math.h>

#include "train/contrastive/contrastive.h"

/* A run and what it trains, stopped before its first step. */
typedef struct run {
    pnb__trainer trainer;
    pnb__contrastive contrastive;
    pnb__run_opts opts;
    pnb__run_result result;
    pnb_train_result figures;
    pnb_model *model;
} run;

static void open_run(run *t, const fixture *f, const pnb_train_opts *o)
{
    t->figures = (pnb_train_result){0};
    t->opts = pnb__contrastive_run_opts(o);
    const pnb__objective objective =
        pnb__contrastive_objective(&t->contrastive, f->ctx, o, &t->figures);
    pnb__trainer_init(&t->trainer, f->ctx, &t->opts, &objective, &t->result);
    ASSERT_OK(pnb__trainer_setup(&t->trainer, NULL, &err));
    t->model = t->contrastive.model;
}

static void close_run(run *t)
{
    pnb__trainer_reset(&t->trainer);
}

static void run_step(run *t, pnb__step_values *v)
{
    ASSERT_OK(pnb__trainer_step(&t->trainer, v, &err));
}

static void update(run *t, pnb__step_values *v)
{
    ASSERT_OK(pnb__trainer_update(&t->trainer, v, &err));
}

static size_t n_weights(const run *t)
{
    size_t n = 0;
    for (size_t i = 0; i < pnb__model_n_params(t->model); i++)
        n += pnb__model_param(t->model, i)->n;
    return n;
}

/* Root of the sum of squared differences, over all weights or gradients. */
static double distance(run *a, run *b, bool gradients)
{
    double sum = 0;
    for (size_t i = 0; i < pnb__model_n_params(a->model); i++) {
        const pnb__param *p = pnb__model_param(a->model, i), *q = pnb__model_param(b->model, i);
        const float *x = gradients ? p->grad : p->data, *y = gradients ? q->grad : q->data;
        for (size_t j = 0; x != NULL && y != NULL && j < p->n; j++)
            sum += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
    }
    return sqrt(sum);
}

/* Each weight's gradient by itself, so that a small one cannot hide behind a large one. */
static void assert_same_gradients(run *one, run *many, double bound)
{
    for (size_t i = 0; i < pnb__model_n_params(one->model); i++) {
        const pnb__param *p = pnb__model_param(one->model, i);
        const float *x = p->grad, *y = pnb__model_param(many->model, i)->grad;
        double difference = 0, norm = 0;
        assert_true((x == NULL) == (y == NULL));
        for (size_t j = 0; x != NULL && j < p->n; j++) {
            difference += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
            norm += (double)x[j] * (double)x[j];
        }
        if (!(sqrt(difference) <= bound * sqrt(norm) + 1e-9))
            fail_msg("%s: gradients %g apart, their norm is %g", p->name, sqrt(difference),
                     sqrt(norm));
    }
}

/* The last terms are of several embeddings an input, and of a teacher: tests/train/mixing.c and
 * tests/train/contrastive/teacher.c have them. */
enum { N_TERMS = PNB_LOSS_DIVERSITY };
_Static_assert((int)N_TERMS + 3 == (int)PNB_N_LOSS_TERMS, "those left out are the last");

/* Twelve pairs a step, every loss on. All rows are masked, and every token or none of a caption
 * goes: then the masks do not depend on how the pairs are cut into micro-batches. */
static pnb_train_opts every_loss(const fixture *f, double drop_prob)
{
    pnb_train_opts o = fixture_opts(f, "gradient");
    for (int i = 0; i < N_TERMS; i++)
        o.loss.weight[i] = 0.1 * (i + 1);
    o.loss.inclusion_scale = 1;
    o.drop_ratio = 1;
    o.drop_prob = drop_prob;
    o.batch_size = 12;
    o.init_logit_bias = -2;
    o.workers = 0;
    return o;
}

static void test_micro_batches_give_the_gradient_of_the_batch(void **state)
{
    const fixture *f = *state;
    static const int cuts[] = {2, 3, 12};
    for (int masked = 0; masked < 2; masked++) {
        pnb_train_opts big = every_loss(f, masked);
        run one, many;
        pnb__step_values v, w;
        open_run(&one, f, &big);
        run_step(&one, &v);
        for (size_t i = 0; i < PNB_COUNT(cuts); i++) {
            pnb_train_opts micro = big;
            micro.accum_freq = cuts[i];
            micro.batch_size = big.batch_size / (size_t)cuts[i];
            micro.grad_checkpointing = i % 2 == 1;
            open_run(&many, f, &micro);
            assert_true(distance(&one, &many, false) == 0);
            run_step(&many, &w);
            for (int k = 0; k < N_TERMS; k++) {
                assert_true(v.terms.items[k].value != 0);
                assert_true(fabs(v.terms.items[k].value - w.terms.items[k].value) <=
                            2e-6 * fabs(v.terms.items[k].value));
            }
            assert_same_gradients(&one, &many, 1e-5);
            close_run(&many);
        }
        close_run(&one);
    }
}

/* Masks that hide nothing make each copy the equal of its original: H is 0 and each masked term
 * c log 2. A masked row that met another pair's original would give another value. */
static void test_masked_rows_meet_their_originals(void **state)
{
    const fixture *f = *state;
    double whole[N_TERMS] = {0};
    for (int cut = 1; cut <= 3; cut++) {
        pnb_train_opts o = every_loss(f, 0);
        run t;
        pnb__step_values v;
        o.mask_keep = 1;
        o.drop_ratio = 0.5;
        o.accum_freq = cut;
        o.batch_size = 12 / (size_t)cut;
        open_run(&t, f, &o);
        run_step(&t, &v);
        for (int k = PNB_LOSS_IMG_INCLUSION; k <= PNB_LOSS_TXT_INCLUSION; k++) {
            double wanted = o.loss.weight[k] * log(2);
            if (!(fabs(v.terms.items[k].value - wanted) < 1e-4 * wanted))
                fail_msg("%d micro-batches: %s is %g, wanted %g", cut,
                         pnb_loss_name((pnb_loss_term)k), v.terms.items[k].value, wanted);
        }
        for (int k = 0; k < N_TERMS; k++) { /* nor is a row lost that is not masked */
            whole[k] = cut == 1 ? v.terms.items[k].value : whole[k];
            if (!(fabs(v.terms.items[k].value - whole[k]) <= 2e-6 * fabs(whole[k])))
                fail_msg("%d micro-batches: %s is %g, of one %g", cut,
                         pnb_loss_name((pnb_loss_term)k), v.terms.items[k].value, whole[k]);
        }
        close_run(&t);
    }
}

static void move_by_an_ulp(run *t)
{
    for (size_t i = 0; i < pnb__model_n_params(t->model); i++) {
        float *x = pnb__model_param(t->model, i)->data;
        for (size_t j = 0; j < pnb__model_param(t->model, i)->n; j++)
            x[j] = nextafterf(x[j], j % 2 == 0 ? INFINITY : -INFINITY);
    }
}

/* Runs of many steps do drift apart, but no farther than rounding drives any two runs: a run whose
 * first weights are moved by one unit in the last place is the measure. */
static void test_micro_batches_drift_as_rounding_does(void **state)
{
    const fixture *f = *state;
    enum { STEPS = 8 };
    pnb_train_opts big = every_loss(f, 1), micro;
    run one, moved, many;
    pnb__step_values v;
    big.optim.kind = PNB_OPTIM_SGD;
    big.optim.lr = 0.05;
    big.batch_size = 14; /* divides the set's 42 samples, so that no cut drops any of them */
    micro = big;
    micro.accum_freq = 7;
    micro.batch_size = 2;
    open_run(&one, f, &big);
    open_run(&moved, f, &big);
    open_run(&many, f, &micro);
    move_by_an_ulp(&moved);
    for (int i = 0; i < STEPS; i++) {
        run *const all[] = {&one, &moved, &many};
        for (size_t k = 0; k < PNB_COUNT(all); k++) {
            run_step(all[k], &v);
            update(all[k], &v);
        }
        double by_ulp = distance(&one, &moved, false), by_cut = distance(&one, &many, false);
        if (!(by_cut <= by_ulp))
            fail_msg("step %d: %g apart, one ulp gives %g", i + 1, by_cut, by_ulp);
    }
    assert_true(n_weights(&one) > 1000);
    close_run(&one);
    close_run(&moved);
    close_run(&many);
}

static void test_checkpointing_keeps_the_bits(void **state)
{
    const fixture *f = *state;
    for (int micro = 1; micro <= 2; micro++) {
        pnb_train_opts plain = fixture_opts(f, "plain"), lean;
        run a, b;
        pnb__step_values v, w;
        /* wide enough for activations to outweigh the weights' gradients */
        plain.config_overrides = "{\"vision_cfg\": {\"layers\": 8}, \"text_cfg\": {\"layers\": 8}}";
        plain.batch_size = 40;
        plain.accum_freq = micro;
        lean = plain;
        lean.grad_checkpointing = true;
        open_run(&a, f, &plain);
        open_run(&b, f, &lean);
        for (int i = 0; i < 2; i++) {
            run_step(&a, &v);
            run_step(&b, &w);
            assert_true(v.total == w.total && v.grad_norm == w.grad_norm);
            assert_true(distance(&a, &b, true) == 0);
            update(&a, &v);
            update(&b, &w);
        }
        assert_true(distance(&a, &b, false) == 0);
        double less = (double)b.trainer.objective.graph_bytes;
        double more = (double)a.trainer.objective.graph_bytes;
        if (!(less < 0.8 * more))
            fail_msg("%g bytes with checkpointing, %g without", less, more);
        close_run(&a);
        close_run(&b);
    }
}

/* Norm of the difference of a weight's gradients over the norm of one's. */
static double share_apart(run *a, run *b, size_t i)
{
    const pnb__param *p = pnb__model_param(a->model, i), *q = pnb__model_param(b->model, i);
    const float *x = p->grad, *y = q->grad;
    double difference = 0, norm = 0;
    for (size_t j = 0; x != NULL && j < p->n; j++) {
        difference += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
        norm += (double)x[j] * (double)x[j];
    }
    return norm > 0 ? sqrt(difference / norm) : 0;
}

/* A rounding changes each factor by 2^-9 of it at most, and every gradient behind one a little; in
 * micro-batches and with checkpointing the factors are the same. */
static void test_rounded_products(void **state)
{
    const fixture *f = *state;
    pnb_train_opts floats = every_loss(f, 0), rounded, micro, lean;
    floats.config_overrides = "{\"vision_cfg\": {\"layers\": 2, \"ls_init_value\": 0.5}}";
    rounded = floats;
    rounded.precision = PNB_TRAIN_AMP_BF16;
    micro = lean = rounded;
    micro.batch_size = 4;
    micro.accum_freq = 3;
    lean.grad_checkpointing = true;
    run a, b, c, d;
    pnb__step_values v, w, x, y;
    open_run(&a, f, &floats);
    open_run(&b, f, &rounded);
    open_run(&c, f, &micro);
    open_run(&d, f, &lean);
    run_step(&a, &v);
    run_step(&b, &w);
    run_step(&c, &x);
    run_step(&d, &y);
    assert_true(v.total != w.total && fabs(v.total - w.total) < 0.01 * fabs(v.total));
    size_t n_apart = 0;
    for (size_t i = 0; i < pnb__model_n_params(a.model); i++) {
        double share = share_apart(&a, &b, i);
        if (!(share < 0.05))
            fail_msg("%s: gradients are %g of their norm apart", pnb__model_param(a.model, i)->name,
                     share);
        n_apart += share > 1e-5;
    }
    assert_true(n_apart > pnb__model_n_params(a.model) / 2);
    assert_same_gradients(&b, &c, 1e-3);
    assert_true(w.total == y.total && distance(&b, &d, true) == 0);
    close_run(&a);
    close_run(&b);
    close_run(&c);
    close_run(&d);
}

#ifdef PNB_FAULTS
/* Forward, losses, backward and update of a steady run. Reading a caption into tokens takes short
 * allocations, the same for each batch of a synthetic set; nothing else may. */
static void test_steady_step_allocates_nothing(void **state)
{
    const fixture *f = *state;
    for (int micro = 1; micro <= 2; micro++) {
        pnb_train_opts o = fixture_opts(f, "steady");
        run t;
        pnb__step_values v;
        o.dataset.kind = PNB_DATASET_SYNTHETIC;
        o.train_num_samples = 16;
        o.template_share = 0;
        o.workers = 0;
        o.accum_freq = micro;
        o.grad_checkpointing = micro == 2;
        open_run(&t, f, &o);
        for (int i = 0; i < 4; i++) { /* pictures enter the cache, buffers reach their size */
            run_step(&t, &v);
            update(&t, &v);
        }
        const pnb_batch *batch = NULL;
        long before = pnb__alloc_count();
        ASSERT_OK(pnb_loader_next(t.contrastive.loader, &batch, &err));
        long of_batch = pnb__alloc_count() - before;
        before = pnb__alloc_count();
        for (int i = 0; i < 4; i++) {
            run_step(&t, &v);
            update(&t, &v);
        }
        assert_int_equal(pnb__alloc_count() - before, 4 * micro * of_batch);
        close_run(&t);
    }
}

static void test_steady_encoding_allocates_nothing(void **state)
{
    const fixture *f = *state;
    enum { BATCH = 4, SIDE = 16, CONTEXT = 12, DIM = 16 };
    static float pixels[BATCH * 3 * SIDE * SIDE], mean[BATCH * DIM], log_var[BATCH * DIM];
    static int32_t ids[BATCH * CONTEXT];
    const pnb_encode_out out = {.mean = mean, .log_var = log_var};
    pnb_model *m = NULL;
    ASSERT_OK(pnb_model_init(&m, f->ctx, f->config, 1, &err));
    long before = 0;
    for (int i = 0; i < 6; i++) {
        if (i == 2)
            before = pnb__alloc_count();
        ASSERT_OK(pnb_model_encode_image(m, pixels, BATCH, &out, &err));
        ASSERT_OK(pnb_model_encode_text(m, ids, BATCH, CONTEXT, &out, &err));
    }
    assert_int_equal(pnb__alloc_count(), before);
    pnb_model_free(m);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_micro_batches_give_the_gradient_of_the_batch),
        cmocka_unit_test(test_masked_rows_meet_their_originals),
        cmocka_unit_test(test_micro_batches_drift_as_rounding_does),
        cmocka_unit_test(test_checkpointing_keeps_the_bits),
        cmocka_unit_test(test_rounded_products),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_steady_step_allocates_nothing),
        cmocka_unit_test(test_steady_encoding_allocates_nothing),
#endif
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
