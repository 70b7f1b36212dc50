/* Rows of a loss shared out: whatever the number of processes, what they compute adds up to the
 * loss of all rows, term by term, and so do the gradients of every distribution and of the scalars,
 * also where samples are drawn in blocks; a share of a loss over pairs costs its part, and what no
 * row makes has a gate of its own. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/losses/loss.h"

enum { MICRO = 4, ROWS = 3, N = MICRO * ROWS, M = MICRO, D = 4, K = 2, J = 3 };
enum { IMAGE, TEXT, MASKED_IMAGE, MASKED_TEXT, NEGATIVE, N_SIDES };

/* One term of a batch whose first M rows are the originals of masked ones. */
typedef struct share_case {
    pnb_loss_term term;
    bool has_labels, has_negatives, is_published, is_hardest;
    size_t n_embeddings, n_samples; /* 0: J */
    bool is_whole;                  /* every process computes it all */
} share_case;

static const share_case cases[] = {
    {.term = PNB_LOSS_PPCL},
    {.term = PNB_LOSS_PPCL, .has_negatives = true},
    {.term = PNB_LOSS_PPCL, .has_labels = true},
    {.term = PNB_LOSS_SIGLIP},
    {.term = PNB_LOSS_SIGLIP, .has_negatives = true},
    {.term = PNB_LOSS_CLIP},
    {.term = PNB_LOSS_CLIP, .has_negatives = true},
    {.term = PNB_LOSS_PCMEPP},
    {.term = PNB_LOSS_PCMEPP, .has_labels = true},
    {.term = PNB_LOSS_PCMEPP_PSEUDO},
    {.term = PNB_LOSS_PCMEPP_PSEUDO, .has_labels = true},
    {.term = PNB_LOSS_INCLUSION},
    {.term = PNB_LOSS_IMG_INCLUSION},
    {.term = PNB_LOSS_TXT_INCLUSION},
    {.term = PNB_LOSS_VIB},
    {.term = PNB_LOSS_PCME},
    {.term = PNB_LOSS_PCME, .has_labels = true},
    {.term = PNB_LOSS_PCME_KL},
    {.term = PNB_LOSS_PCME_KL, .is_published = true},
    {.term = PNB_LOSS_UNIFORMITY, .is_whole = true},
    {.term = PNB_LOSS_UNIFORMITY, .is_whole = true, .is_published = true, .n_samples = 6},
    {.term = PNB_LOSS_TRIPLET},
    {.term = PNB_LOSS_TRIPLET, .is_hardest = true, .n_embeddings = K},
    {.term = PNB_LOSS_MMD, .is_whole = true},
    {.term = PNB_LOSS_DIVERSITY, .n_embeddings = K},
    {.term = PNB_LOSS_DISTILL},
    {.term = PNB_LOSS_DISTILL_KL},
};

/* What a loss gave: its value, and the gradients of all sides' parts and both scalars. */
typedef struct outcome {
    double value, flops, grad[N_SIDES][3][N * D], scalar[2], gated;
    size_t n_gates;
} outcome;

static double *numbers(size_t n, double shift, uint64_t seed)
{
    double *x = malloc(n * sizeof *x);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 11);
    for (size_t i = 0; i < n; i++)
        x[i] = 0.6 * pnb__rng_normal(&rng) + shift;
    return x;
}

static void write_numbers(pnb__tensor *x, double shift, uint64_t seed)
{
    if (x == NULL)
        return;
    double *values = numbers(pnb__n(x), shift, seed);
    pnb__write_f64(x, values);
    free(values);
}

static size_t rows_of(int side)
{
    return side == MASKED_IMAGE || side == MASKED_TEXT ? M : N;
}

/* The rows of process `rank` of `n_ranks`, as a step lays them out. */
static pnb__row_share share_of(size_t rank, size_t n_ranks)
{
    size_t first = rank * MICRO / n_ranks, n = (rank + 1) * MICRO / n_ranks - first;
    return (pnb__row_share){{first, M + first * (ROWS - 1)}, {n, n * (ROWS - 1)}, N};
}

static pnb_loss_opts opts_of(const share_case *c)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    memset(o.weight, 0, sizeof o.weight);
    o.weight[c->term] = 1;
    o.n_samples = c->n_samples > 0 ? c->n_samples : J;
    o.uniformity_published = c->is_published;
    o.pcme_kl_published = c->is_published;
    o.triplet_hardest = c->is_hardest;
    return o;
}

/* All inputs of a graph, whether the term reads them or not. */
static pnb__loss_in make_inputs(pnb__graph *g, const share_case *c, pnb__row_share share,
                                size_t block)
{
    pnb__dist side[N_SIDES];
    for (int s = 0; s < N_SIDES; s++) {
        const size_t shape[2] = {rows_of(s), D};
        side[s] = (pnb__dist){.mean = pnb__input_with_grad(g, 2, shape),
                              .log_var = pnb__input_with_grad(g, 2, shape),
                              .residual = pnb__input_with_grad(g, 2, shape),
                              .n_embeddings = c->n_embeddings};
    }
    pnb__loss_in in = {.image = side[IMAGE],
                       .text = side[TEXT],
                       .masked_image = side[MASKED_IMAGE],
                       .masked_text = side[MASKED_TEXT],
                       .scale = pnb__input_with_grad(g, 0, NULL),
                       .bias = pnb__input_with_grad(g, 0, NULL),
                       .has_labels = c->has_labels,
                       .n_marks = 2,
                       .label_base = c->has_labels ? 0.1 : 0,
                       .teacher_scale = 3,
                       .share = share,
                       .draws = true,
                       .block = block};
    if (c->has_negatives)
        in.negative = side[NEGATIVE];
    for (int s = 0; s < 2; s++)
        in.teacher[s] = (pnb__dist){.mean = pnb__input(g, PNB__REAL, 2, (size_t[]){N, D}),
                                    .log_var = pnb__input(g, PNB__REAL, 2, (size_t[]){N, D})};
    return in;
}

/* Each pair matches its own by most, and the next by the rest. */
static void write_labels(const pnb__loss *loss)
{
    int32_t columns[2][2 * N];
    float weights[2][2 * N];
    for (size_t b = 0; b < N; b++)
        for (size_t way = 0; way < 2; way++) {
            columns[way][2 * b] = (int32_t)b;
            columns[way][2 * b + 1] = (int32_t)((b + (way == 0 ? 1 : N - 1)) % N);
            weights[way][2 * b] = 0.6F;
            weights[way][2 * b + 1] = 0.2F;
        }
    const pnb__pair_labels labels = {{columns[0], columns[1]}, {weights[0], weights[1]}};
    ASSERT_OK(pnb__loss_set_labels(loss, &labels, &err));
}

static pnb__dist *side_at(pnb__loss_in *in, int s)
{
    pnb__dist *const sides[N_SIDES] = {&in->image, &in->text, &in->masked_image, &in->masked_text,
                                       &in->negative};
    return sides[s];
}

/* Adds the gradient of x to what is there; 0 where the loss does not depend on it. */
static void add_grad(const pnb__tensor *x, double *sum)
{
    double grad[N * D];
    if (x == NULL || !pnb__read_grad_f64(x, grad))
        return;
    for (size_t i = 0; i < pnb__n(x); i++)
        sum[i] += grad[i];
}

static void add_outcome(pnb__loss_in *in, const pnb__loss *loss, const pnb__graph *g, outcome *out)
{
    out->value += pnb__read_scalar(loss->total);
    out->flops = fmax(out->flops, pnb__graph_flops(g)); /* of the process that has most to do */
    out->n_gates = loss->n_gates;
    for (size_t i = 0; i < loss->n_gates; i++)
        out->gated += pnb__read_scalar(loss->gates[i].share);
    for (int s = 0; s < N_SIDES; s++) {
        pnb__tensor *const parts[3] = {side_at(in, s)->mean, side_at(in, s)->log_var,
                                       side_at(in, s)->residual};
        for (int part = 0; part < 3; part++)
            add_grad(parts[part], out->grad[s][part]);
    }
    add_grad(in->scale, &out->scalar[0]);
    add_grad(in->bias, &out->scalar[1]);
}

/* Adds what the rows of a share give to `out`. */
static void run_share(const pnb_ctx *ctx, const share_case *c, pnb__row_share share, size_t block,
                      outcome *out)
{
    const pnb_loss_opts o = opts_of(c);
    const double scale = 1.5, bias = -0.5;
    pnb__graph *g = NULL;
    pnb__loss loss;
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F64, true, &err));
    pnb__graph_set_checkpointing(g, block > 0);
    pnb__loss_in in = make_inputs(g, c, share, block);
    ASSERT_OK(pnb__loss_build(&loss, g, &in, &o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    ASSERT_OK(pnb__loss_start(&loss, &err));
    for (int s = 0; s < N_SIDES; s++) {
        write_numbers(side_at(&in, s)->mean, 0, (uint64_t)s);
        write_numbers(side_at(&in, s)->log_var, -1, 10 + (uint64_t)s);
        write_numbers(side_at(&in, s)->residual, 0, 20 + (uint64_t)s);
    }
    for (int s = 0; s < 2; s++) {
        write_numbers(in.teacher[s].mean, 0, 30 + (uint64_t)s);
        write_numbers(in.teacher[s].log_var, -1, 40 + (uint64_t)s);
    }
    pnb__write_f64(in.scale, &scale);
    pnb__write_f64(in.bias, &bias);
    if (c->has_labels)
        write_labels(&loss);
    ASSERT_OK(pnb__loss_set_step(&loss, 5, 1, NULL, &err));
    ASSERT_OK(pnb__graph_run(g, &err));
    add_outcome(&in, &loss, g, out);
    pnb__graph_free(g);
}

static void require_near(const char *what, const share_case *c, size_t n_ranks, const double *a,
                         const double *b, size_t n)
{
    double most = 1e-3;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-12 * most))
            fail_msg("%s of %s by %zu: %.17g, wanted %.17g", what, pnb_loss_name(c->term), n_ranks,
                     b[i], a[i]);
}

static void test_shares_add_up(void **state)
{
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const share_case *c = &cases[i];
        outcome whole = {0};
        run_share(*state, c, (pnb__row_share){0}, 0, &whole);
        assert_true(whole.value != 0 && whole.n_gates == 0);
        for (size_t n_ranks = 1; n_ranks <= 4; n_ranks++) {
            outcome sum = {0};
            size_t block = n_ranks == 2 ? 0 : n_ranks * J * D; /* numbers: that many rows */
            for (size_t rank = 0; rank < n_ranks; rank++)
                run_share(*state, c, n_ranks > 1 ? share_of(rank, n_ranks) : (pnb__row_share){0},
                          block, &sum);
            require_near("the value", c, n_ranks, &whole.value, &sum.value, 1);
            require_near("gradients", c, n_ranks, whole.grad[0][0], sum.grad[0][0],
                         sizeof whole.grad / sizeof(double));
            require_near("gradients of scalars", c, n_ranks, whole.scalar, sum.scalar, 2);
            if (sum.n_gates > 0)
                require_near("what is gated", c, n_ranks, &whole.value, &sum.gated, 1);
            double part = (double)((MICRO + n_ranks - 1) / n_ranks) / MICRO;
            if (!c->is_whole && whole.flops > 0 && sum.flops > part * whole.flops * 1.0001)
                fail_msg("%s by %zu: %g operations of %g", pnb_loss_name(c->term), n_ranks,
                         sum.flops, whole.flops);
        }
    }
}

/* Who shares rows is told whose gradients have parts elsewhere. */
static void test_columns(void **state)
{
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const pnb_loss_opts o = opts_of(&cases[i]);
        outcome ours = {0};
        run_share(*state, &cases[i], share_of(0, 2), 0, &ours);
        double beyond[2] = {0};
        for (int side = 0; side < 2; side++)
            for (size_t row = MICRO / 2; row < M; row++) /* originals of the other process */
                for (size_t d = 0; d < D; d++)
                    beyond[side] += fabs(ours.grad[side][0][row * D + d]);
        if ((beyond[IMAGE] > 0) != pnb__loss_asks_images(&o))
            fail_msg("%s: gradients of others' pictures are %g", pnb_loss_name(cases[i].term),
                     beyond[IMAGE]);
        if (beyond[IMAGE] > 0)
            assert_true(beyond[TEXT] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_add_up),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
