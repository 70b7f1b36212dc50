/* Gradients of LoRA's factors by differences of the loss of a step, and what stands still. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

typedef struct run {
    pnb__trainer trainer;
    pnb__contrastive contrastive;
    pnb__run_opts opts;
    pnb__run_result result;
    pnb_train_result figures;
} run;

static void open_run(run *t, const fixture *f, const pnb_train_opts *o)
{
    t->figures = (pnb_train_result){0};
    t->opts = pnb__contrastive_run_opts(o);
    const pnb__objective objective =
        pnb__contrastive_objective(&t->contrastive, f->ctx, o, &t->figures);
    pnb__trainer_init(&t->trainer, f->ctx, &t->opts, &objective, &t->result);
    ASSERT_OK(pnb__trainer_setup(&t->trainer, NULL, &err));
}

/* Of the first batch, whatever was read before. */
static double loss_of(run *t, pnb__step_values *v)
{
    ASSERT_OK(pnb_loader_set_position(t->contrastive.loader, (pnb_loader_position){0, 0}, &err));
    ASSERT_OK(pnb__lora_apply(t->contrastive.lora, &err));
    ASSERT_OK(pnb__trainer_step(&t->trainer, v, &err));
    return v->total;
}

static void draw(double *out, size_t n, double scale, uint64_t stream)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 5, stream);
    for (size_t i = 0; i < n; i++)
        out[i] = scale * pnb__rng_normal(&rng);
}

/* p += h d */
static void move(const run *t, pnb__param *p, const double *d, double h)
{
    const pnb__kernels *k = &t->contrastive.lora->kernels;
    double *x = pnb__alloc_array(p->n, sizeof *x);
    ASSERT_OK(pnb__param_read(p, k, 0, p->n, x, &err));
    for (size_t i = 0; i < p->n; i++)
        x[i] += h * d[i];
    ASSERT_OK(pnb__param_write(p, k, 0, p->n, x, &err));
    pnb__free(x);
}

/* d L along d by central differences against <g, d>, of one factor. */
static void check_factor(run *t, pnb__param *p, uint64_t stream)
{
    const double h = 4e-3;
    pnb__step_values v;
    double *d = pnb__alloc_array(p->n, sizeof *d), along = 0;
    draw(d, p->n, 1, stream);
    (void)loss_of(t, &v);
    const float *g = p->grad;
    assert_non_null(g);
    for (size_t i = 0; i < p->n; i++)
        along += (double)g[i] * d[i];
    move(t, p, d, h);
    double up = loss_of(t, &v);
    move(t, p, d, -2 * h);
    double down = loss_of(t, &v), by_difference = (up - down) / (2 * h);
    move(t, p, d, h);
    if (!(fabs(by_difference - along) <= 0.02 * fabs(along) + 2e-3))
        fail_msg("%s: %g by differences, %g by the gradient", p->name, by_difference, along);
    pnb__free(d);
}

/* A trained model to start from: one step. */
static char *make_base(const fixture *f)
{
    pnb_train_opts o = fixture_opts(f, "base");
    pnb_train_result r;
    o.max_steps = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    return pnb__strdup(r.checkpoint_dir);
}

static pnb_train_opts lora_opts(const fixture *f, const char *base)
{
    pnb_train_opts o = fixture_opts(f, "lora");
    o.model = base;
    o.lora_rank = 2;
    o.lora_alpha = 3;
    o.workers = 0;
    o.logs = NULL;
    return o;
}

static void test_gradients_by_differences(void **state)
{
    const fixture *f = *state;
    char *base = make_base(f);
    for (int micro = 1; micro <= 2; micro++) {
        pnb_train_opts o = lora_opts(f, base);
        run t;
        o.batch_size = 8 / (size_t)micro;
        o.accum_freq = micro;
        o.grad_checkpointing = micro == 2;
        open_run(&t, f, &o);
        pnb__lora *l = t.contrastive.lora;
        assert_int_equal(l->n, 8); /* a block of four matrices in each tower */
        for (size_t i = 0; i < l->n; i++) {
            double *b = pnb__alloc_array(l->items[i].b.n, sizeof *b);
            draw(b, l->items[i].b.n, 0.3, 100 + i);
            ASSERT_OK(pnb__param_write(&l->items[i].b, &l->kernels, 0, l->items[i].b.n, b, &err));
            pnb__free(b);
        }
        for (size_t i = 0; i < l->n; i++) {
            check_factor(&t, &l->items[i].a, 2 * i);
            check_factor(&t, &l->items[i].b, 2 * i + 1);
        }
        pnb__trainer_reset(&t.trainer);
    }
    pnb__free(base);
}

/* Optimiser and gradient norm know of factors, heads and scalars alone. */
static void test_what_trains(void **state)
{
    const fixture *f = *state;
    char *base = make_base(f);
    pnb_train_opts o = lora_opts(f, base);
    run t;
    open_run(&t, f, &o);
    const pnb__objective *objective = &t.trainer.objective;
    for (size_t i = 0; i < objective->n_params; i++) {
        const char *name = objective->params[i]->name;
        bool is_factor = strstr(name, ".lora_") != NULL;
        assert_true(is_factor == (strstr(name, ".resblocks.") != NULL));
        assert_null(strstr(name, "token_embedding"));
    }
    double numbers = pnb__optim_state_bytes(t.trainer.optim) / (2 * sizeof(float));
    size_t n = 0;
    for (size_t i = 0; i < objective->n_params; i++)
        n += objective->params[i]->n;
    assert_true(numbers == (double)n && n < t.contrastive.info->n_params / 2);
    pnb__trainer_reset(&t.trainer);
    pnb__free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gradients_by_differences, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_what_trains, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
