/* The mean of weights: its formula and steps, taking it into use and back, a refresh that fails,
 * its file, files that do not fit, and memory that runs out. */
#include "tests/train/fixture.h"

#include <math.h>

#include "penumbra/safetensors.h"
#include "train/optim/weight_average.h"

enum { N = 5 };

typedef struct world {
    pnb__param weight, statistic; /* the second is not trained */
    float weight_data[N], statistic_data[1];
    pnb__param *params[2];
    pnb__weight_average *average;
} world;

static void make_world(world *w, const pnb_ctx *ctx, int64_t from_step, int64_t every)
{
    const pnb__weight_average_opts opts = {from_step, every, 0};
    *w = (world){.weight = {.name = "w", .n_dims = 1, .shape = {N}, .n = N, .trainable = true},
                 .statistic = {.name = "bn.running_mean", .n_dims = 1, .shape = {1}, .n = 1}};
    w->weight.data = w->weight_data;
    w->statistic.data = w->statistic_data;
    w->params[0] = &w->weight;
    w->params[1] = &w->statistic;
    ASSERT_OK(pnb__weight_average_create(&w->average, ctx, PNB__F32, w->params, 2, &opts, &err));
}

static float weight_at(int64_t step, int i)
{
    return (float)(step * step) + 0.25f * (float)i;
}

static void train_to(world *w, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; step++) {
        for (int i = 0; i < N; i++)
            w->weight_data[i] = weight_at(step, i);
        w->statistic_data[0] = (float)step;
        pnb__weight_average_step(w->average, step);
    }
}

static pnb_status refreshed(void *user, pnb_error *e)
{
    world *w = user;
    (void)e;
    w->statistic_data[0] = 2 * w->weight_data[0]; /* of the mean, which is in place */
    return PNB_OK;
}

static pnb_status refused(void *user, pnb_error *e)
{
    (void)user;
    return pnb__fail(e, PNB_IO, "no data");
}

/* Steps 4, 7 and 10 of 11. */
static void mean_and_back(void **state)
{
    world w;
    make_world(&w, *state, 4, 3);
    ASSERT_FAILS(pnb__weight_average_apply(w.average, NULL, NULL, &err), PNB_ARG, "no weights");
    ASSERT_FAILS(pnb__weight_average_restore(w.average, &err), PNB_ARG, "not in place");
    train_to(&w, 0, 11);
    assert_int_equal(w.average->n_models, 3);
    ASSERT_FAILS(pnb__weight_average_apply(w.average, refused, &w, &err), PNB_IO, "no data");
    for (int i = 0; i < N; i++)
        assert_true(w.weight_data[i] == weight_at(11, i));
    ASSERT_OK(pnb__weight_average_apply(w.average, refreshed, &w, &err));
    for (int i = 0; i < N; i++)
        assert_true(fabsf(w.weight_data[i] - (16.0f + 49 + 100) / 3 - 0.25f * (float)i) < 1e-4f);
    assert_true(w.statistic_data[0] == 2 * w.weight_data[0]);
    ASSERT_FAILS(pnb__weight_average_apply(w.average, NULL, NULL, &err), PNB_ARG, "already");
    ASSERT_FAILS(pnb__weight_average_save(w.average, "x", &err), PNB_ARG, "in place");
    pnb__weight_average_step(w.average, 13); /* the mean does not take itself up */
    assert_int_equal(w.average->n_models, 3);
    ASSERT_OK(pnb__weight_average_restore(w.average, &err));
    for (int i = 0; i < N; i++)
        assert_true(w.weight_data[i] == weight_at(11, i));
    pnb__weight_average_free(w.average);
}

/* Three quarters of the old mean and one of the weights, from those at creation on: 0, then steps 1
 * to 3. */
static void moving_mean(void **state)
{
    const pnb__weight_average_opts opts = {0, 1, 0.75};
    world w;
    make_world(&w, *state, 0, 1);
    pnb__weight_average_free(w.average);
    for (int i = 0; i < N; i++)
        w.weight_data[i] = weight_at(0, i);
    ASSERT_OK(pnb__weight_average_create(&w.average, *state, PNB__F32, w.params, 2, &opts, &err));
    train_to(&w, 1, 3);
    assert_int_equal(w.average->n_models, 3);
    ASSERT_OK(pnb__weight_average_apply(w.average, NULL, NULL, &err));
    for (int i = 0; i < N; i++) /* 9/64 of step 1, 12/64 of 4, 16/64 of 9 */
        assert_true(fabsf(w.weight_data[i] - (9.0f * 1 + 12 * 4 + 16 * 9) / 64 - 0.25f * (float)i) <
                    1e-5f);
    pnb__weight_average_free(w.average);
}

/* A run that is cut anywhere ends in the mean of one that was not, to the bit. */
static void resumes(void **state)
{
    char *dir = scratch_create(), *path = pnb__path_join(dir, "average.safetensors");
    for (int64_t cut = 0; cut < 9; cut++) {
        world a, b;
        make_world(&a, *state, 2, 2);
        make_world(&b, *state, 2, 2);
        train_to(&a, 0, cut);
        ASSERT_OK(pnb__weight_average_save(a.average, path, &err));
        ASSERT_OK(pnb__weight_average_load(b.average, path, &err));
        train_to(&a, cut + 1, 9);
        train_to(&b, cut + 1, 9);
        assert_int_equal(b.average->n_models, 4);
        ASSERT_OK(pnb__weight_average_apply(a.average, NULL, NULL, &err));
        ASSERT_OK(pnb__weight_average_apply(b.average, NULL, NULL, &err));
        assert_memory_equal(a.weight_data, b.weight_data, sizeof a.weight_data);
        pnb__weight_average_free(a.average);
        pnb__weight_average_free(b.average);
    }
    pnb__free(path);
    scratch_remove(dir);
}

static void files_that_do_not_fit(void **state)
{
    char *dir = scratch_create(), *path = pnb__path_join(dir, "average.safetensors");
    world a, b;
    make_world(&a, *state, 0, 1);
    train_to(&a, 0, 2);
    ASSERT_OK(pnb__weight_average_save(a.average, path, &err));
    make_world(&b, *state, 0, 1);
    b.weight.name = "v";
    ASSERT_FAILS(pnb__weight_average_load(b.average, path, &err), PNB_NOT_FOUND, "average.v");
    b.weight.name = "w";
    b.weight.shape[0] = N - 1;
    ASSERT_FAILS(pnb__weight_average_load(b.average, path, &err), PNB_SHAPE, "average.w");
    ASSERT_OK(pnb_safetensors_write(path, NULL, 0, NULL, &err));
    ASSERT_FAILS(pnb__weight_average_load(b.average, path, &err), PNB_FORMAT, "no file of");
    assert_int_equal(b.average->n_models, 0);
    pnb__weight_average_free(a.average);
    pnb__weight_average_free(b.average);
    pnb__free(path);
    scratch_remove(dir);
}

static void bad_steps(void **state)
{
    const pnb__weight_average_opts bad[] = {{-1, 1, 0}, {0, 0, 0}};
    pnb__weight_average *average = NULL;
    for (size_t i = 0; i < PNB_COUNT(bad); i++)
        ASSERT_FAILS(pnb__weight_average_create(&average, *state, PNB__F32, NULL, 0, &bad[i], &err),
                     PNB_ARG, "weights averaged from");
    assert_null(average);
    const pnb__weight_average_opts decays[] = {{0, 1, 1}, {0, 1, -0.5}};
    for (size_t i = 0; i < PNB_COUNT(decays); i++)
        ASSERT_FAILS(
            pnb__weight_average_create(&average, *state, PNB__F32, NULL, 0, &decays[i], &err),
            PNB_ARG, "a moving mean of decay");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_back), cmocka_unit_test(moving_mean),
        cmocka_unit_test(resumes),       cmocka_unit_test(files_that_do_not_fit),
        cmocka_unit_test(bad_steps),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
