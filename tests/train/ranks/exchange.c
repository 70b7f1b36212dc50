/* Two processes, played by two threads with an exchange over shared memory, take the steps of one
 * process that has all the pairs: the same losses, the same gradients up to the order of sums, and
 * after an update the same bits on both sides. */
#include "tests/train/fixture.h"

#include <math.h>
#include <pthread.h>

#include "train/contrastive/contrastive.h"

enum { RANKS = 2, STEPS = 2 };

/* Where the threads meet; slot[r] is what rank r shows the others. */
typedef struct hall {
    pthread_barrier_t barrier;
    float *slot[RANKS];
} hall;

typedef struct seat {
    hall *hall;
    size_t rank;
    int n_gathered, n_summed;
} seat;

static void show(const seat *s, float *rows)
{
    s->hall->slot[s->rank] = rows;
    pthread_barrier_wait(&s->hall->barrier);
}

static pnb_status gather(void *self, float *rows, const size_t *from, pnb_error *err)
{
    seat *s = self;
    (void)err;
    show(s, rows);
    for (size_t r = 0; r < RANKS; r++)
        if (r != s->rank)
            memcpy(rows + from[r], s->hall->slot[r] + from[r],
                   (from[r + 1] - from[r]) * sizeof *rows);
    pthread_barrier_wait(&s->hall->barrier);
    s->n_gathered++;
    return PNB_OK;
}

/* Adds n numbers from `at` on of all slots in order of the ranks. */
static float *sum_of_slots(const seat *s, size_t at, size_t n)
{
    float *sum = calloc(n + 1, sizeof *sum);
    for (size_t r = 0; sum != NULL && r < RANKS; r++)
        for (size_t i = 0; i < n; i++)
            sum[i] += s->hall->slot[r][at + i];
    pthread_barrier_wait(&s->hall->barrier);
    return sum;
}

static pnb_status sum_buffers(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                              int *culprit, pnb_error *err)
{
    seat *s = self;
    *culprit = -1;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = buffers[i].n * sizeof(float);
        float *mine = malloc(bytes + 1);
        if (mine == NULL)
            return pnb__fail_nomem(err, bytes);
        if (k->mem_read(k->ctx, mine, buffers[i].data, bytes, err) != PNB_OK)
            return PNB_IO;
        show(s, mine);
        float *sum = sum_of_slots(s, 0, buffers[i].n);
        free(mine);
        if (sum == NULL)
            return pnb__fail_nomem(err, bytes);
        k->mem_write(k->ctx, buffers[i].data, sum, bytes, err);
        free(sum);
    }
    s->n_summed++;
    return PNB_OK;
}

/* One process of a training. */
typedef struct process {
    pnb_ctx *ctx;
    seat seat;
    pnb__exchange exchange;
    pnb_train_opts opts;
    pnb__run_opts run_opts;
    pnb__contrastive contrastive;
    pnb__trainer trainer;
    pnb__run_result result;
    pnb_train_result figures;
    pnb__step_values values;
    pnb_status status;
    pnb_error error;
} process;

static void open_process(process *p, const pnb__exchange *exchange)
{
    const pnb_ctx_opts ctx_opts = {.n_threads = 1};
    ASSERT_OK(pnb_ctx_create(&p->ctx, &ctx_opts, &err));
    p->run_opts = pnb__contrastive_run_opts(&p->opts);
    pnb__objective o = pnb__contrastive_objective(&p->contrastive, p->ctx, &p->opts, &p->figures);
    o.exchange = exchange;
    pnb__trainer_init(&p->trainer, p->ctx, &p->run_opts, &o, &p->result);
    ASSERT_OK(pnb__trainer_setup(&p->trainer, NULL, &err));
}

static void close_process(process *p)
{
    pnb__trainer_reset(&p->trainer);
    pnb_ctx_free(p->ctx);
}

static void *step_of(void *user)
{
    process *p = user;
    p->status = pnb__trainer_step(&p->trainer, &p->values, &p->error);
    return NULL;
}

static void step_together(process *ranks)
{
    pthread_t threads[RANKS];
    for (size_t r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&threads[r], NULL, step_of, &ranks[r]), 0);
    for (size_t r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    for (size_t r = 0; r < RANKS; r++)
        if (ranks[r].status != PNB_OK)
            fail_msg("rank %zu: %s", r, ranks[r].error.text);
}

static void assert_same_gradients(const process *a, const process *b, double bound)
{
    for (size_t i = 0; i < a->trainer.objective.n_params; i++) {
        const pnb__param *p = a->trainer.objective.params[i];
        const float *x = p->grad, *y = b->trainer.objective.params[i]->grad;
        double apart = 0, norm = 0;
        assert_true((x == NULL) == (y == NULL));
        for (size_t j = 0; x != NULL && j < p->n; j++) {
            apart += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
            norm += (double)x[j] * (double)x[j];
        }
        if (!(sqrt(apart) <= bound * sqrt(norm) + 1e-9))
            fail_msg("%s: gradients %g apart, their norm is %g", p->name, sqrt(apart), sqrt(norm));
    }
}

static void assert_same_weights(const process *a, const process *b)
{
    for (size_t i = 0; i < a->trainer.objective.n_params; i++) {
        const pnb__param *p = a->trainer.objective.params[i];
        assert_memory_equal(p->data, b->trainer.objective.params[i]->data, p->n * sizeof(float));
    }
}

/* mixes: half of the pictures of a micro-batch, with the terms that know labels. */
static pnb_train_opts shared_opts(const fixture *f, int accum_freq, bool mixes)
{
    pnb_train_opts o = fixture_opts(f, "exchange");
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        o.loss.weight[i] = 0.1 * (i + 1);
    o.loss.weight[PNB_LOSS_DIVERSITY] = 0; /* of several embeddings an input */
    o.loss.weight[PNB_LOSS_DISTILL] = o.loss.weight[PNB_LOSS_DISTILL_KL] = 0; /* of one process */
    if (mixes) {
        o.loss.weight[PNB_LOSS_CLIP] = o.loss.weight[PNB_LOSS_TRIPLET] = 0;
        o.loss.weight[PNB_LOSS_INCLUSION] = 0;
        o.mix_share = 0.5;
    }
    o.loss.inclusion_scale = 1;
    o.drop_ratio = 0.5; /* of masked rows some are moved, some are not */
    o.batch_size = 4;
    o.accum_freq = accum_freq;
    o.workers = 0;
    o.warmup = 0;
    return o;
}

static void compare(const fixture *f, int passes, bool mixes)
{
    process whole = {.opts = shared_opts(f, passes, mixes)};
    process ranks[RANKS] = {{.opts = shared_opts(f, passes, mixes)},
                            {.opts = shared_opts(f, passes, mixes)}};
    hall meeting = {0};
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, RANKS), 0);
    open_process(&whole, NULL);
    for (size_t r = 0; r < RANKS; r++) {
        ranks[r].seat = (seat){.hall = &meeting, .rank = r};
        ranks[r].exchange = (pnb__exchange){.rank = r,
                                            .n_ranks = RANKS,
                                            .self = &ranks[r].seat,
                                            .gather = gather,
                                            .sum = sum_buffers};
        open_process(&ranks[r], &ranks[r].exchange);
    }
    for (int step = 0; step < STEPS; step++) {
        step_of(&whole);
        if (whole.status != PNB_OK)
            fail_msg("%s", whole.error.text);
        step_together(ranks);
        double wanted = whole.values.total;
        assert_true(fabs(ranks[0].values.total - wanted) <= 1e-5 * fabs(wanted));
        assert_true(ranks[0].values.total == ranks[1].values.total);
        assert_true(ranks[0].values.grad_norm == ranks[1].values.grad_norm);
        assert_same_gradients(&whole, &ranks[0], step == 0 ? 1e-5 : 1e-2);
        assert_same_gradients(&ranks[0], &ranks[1], 0);
        ASSERT_OK(pnb__trainer_update(&whole.trainer, &whole.values, &err));
        for (size_t r = 0; r < RANKS; r++)
            ASSERT_OK(pnb__trainer_update(&ranks[r].trainer, &ranks[r].values, &err));
        assert_same_weights(&ranks[0], &ranks[1]);
        for (size_t r = 0; r < RANKS; r++) /* a checkpoint of any of them is one of all */
            assert_memory_equal(&ranks[r].trainer.state.position, &whole.trainer.state.position,
                                sizeof whole.trainer.state.position);
    }
    assert_true(ranks[0].seat.n_gathered > 0);
    assert_int_equal(ranks[0].seat.n_summed, STEPS);
    assert_true(pnb__trainer_samples_per_step(&ranks[0].trainer) ==
                pnb__trainer_samples_per_step(&whole.trainer));
    close_process(&whole);
    for (size_t r = 0; r < RANKS; r++)
        close_process(&ranks[r]);
    pthread_barrier_destroy(&meeting.barrier);
}

static void test_two_processes_take_the_steps_of_one(void **state)
{
    compare(*state, 2, false);
}

static void test_two_processes_may_accumulate(void **state)
{
    compare(*state, 4, false);
}

/* One has a micro-batch more than the other. */
static void test_two_processes_share_unevenly(void **state)
{
    compare(*state, 3, false);
}

/* Labels of the other's pictures are drawn, not sent. */
static void test_two_processes_mix_images(void **state)
{
    compare(*state, 4, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes_take_the_steps_of_one),
        cmocka_unit_test(test_two_processes_may_accumulate),
        cmocka_unit_test(test_two_processes_share_unevenly),
        cmocka_unit_test(test_two_processes_mix_images),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
