/* The attention slots against the f64 reference, and that reference against softmax written out
 * and against central differences. */
#include "kernels/bf16.h"
#include "tests/kernels/harness.h"

typedef struct attention_case {
    size_t n_batch, n_heads, n_q, n_kv, head_dim;
    bool causal, limited, add_q, add_kv, fused; /* fused: q, k, v side by side in one array */
    bool rounds;                                /* where the table takes halves */
    double spread;
    int q, k, v, out, lse, d_out, dq, dk, dv;
    int32_t kv_len[8];
} attention_case;

static pnb__attention_args attention_args_of(const attention_case *c)
{
    size_t width = c->n_heads * c->head_dim, row = c->fused ? 3 * width : width + 5;
    pnb__attention_args a = {.n_batch = c->n_batch, .n_heads = c->n_heads, .n_q = c->n_q};
    a.n_kv = c->n_kv, a.head_dim = c->head_dim, a.causal = c->causal;
    a.row_q = a.row_kv = row;
    a.batch_q = c->n_q * row, a.batch_kv = c->n_kv * row;
    a.row_out = width, a.batch_out = c->n_q * width;
    a.kv_len = c->limited ? c->kv_len : NULL;
    a.scale = 1 / sqrt((double)c->head_dim);
    a.accumulate_q = c->add_q, a.accumulate_kv = c->add_kv;
    a.rounds = c->rounds;
    return a;
}

static char *at(const run *r, void *base, size_t index)
{
    return (char *)base + index * (r->is_double ? sizeof(double) : sizeof(float));
}

static void attention_body(run *r, fixture *x)
{
    const attention_case *c = r->user;
    pnb__attention_args a = attention_args_of(c);
    size_t shift = c->fused ? c->n_heads * c->head_dim : 0;
    a.q = P(r, x, c->q);
    a.k = at(r, P(r, x, c->k), shift);
    a.v = at(r, P(r, x, c->v), 2 * shift);
    a.out = P(r, x, c->out);
    a.lse = P(r, x, c->lse);
    size_t bytes = r->k.attention_work(r->ctx, &a, false);
    a.work = work_alloc(bytes);
    r->k.attention(r->ctx, &a);
    work_free(a.work, bytes);
    a.d_out = P(r, x, c->d_out);
    a.dq = P(r, x, c->dq);
    a.dk = at(r, P(r, x, c->dk), shift);
    a.dv = at(r, P(r, x, c->dv), 2 * shift);
    bytes = r->k.attention_work(r->ctx, &a, true);
    a.work = work_alloc(bytes);
    r->k.attention_bwd(r->ctx, &a);
    work_free(a.work, bytes);
}

static void check_attention(attention_case c)
{
    fixture x;
    /* rounded weights are off by 2^-9 each, scores by as much of their size */
    double tolerance = c.rounds ? 0.02 * (1 + c.spread) : 2e-5;
    fixture_init(&x, 7 + c.n_q + 1000 * c.n_kv + c.head_dim, tolerance, 1e-5);
    pnb__attention_args a = attention_args_of(&c);
    size_t n_q = a.batch_q * c.n_batch, n_kv = a.batch_kv * c.n_batch;
    c.q = c.k = c.v = input(&x, n_q, -c.spread, c.spread);
    if (!c.fused) {
        c.k = input(&x, n_kv, -c.spread, c.spread);
        c.v = input(&x, n_kv, -1, 1);
    }
    c.out = output(&x, a.batch_out * c.n_batch, false);
    c.lse = output(&x, c.n_batch * c.n_heads * c.n_q, false);
    c.d_out = input(&x, a.batch_out * c.n_batch, -1, 1);
    /* not written between the rows: those values must stay, so the arrays count as added to */
    c.dq = c.dk = c.dv = output(&x, n_q, true);
    if (!c.fused) {
        c.dk = output(&x, n_kv, true);
        c.dv = output(&x, n_kv, true);
    }
    compare_all(&x, attention_body, &c);
}

static const attention_case plain = {
    .n_batch = 2, .n_heads = 2, .n_q = 9, .n_kv = 9, .head_dim = 50, .spread = 1};

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 16},   {0, 5, 16},    {5, 0, 16},
                                      {14, 32, 64}, {15, 33, 17},  {29, 31, 80},
                                      {70, 7, 72},  {3, 100, 128}, {20, 20, 150}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        attention_case c = plain;
        c.n_q = sizes[i][0], c.n_kv = sizes[i][1], c.head_dim = sizes[i][2];
        check_attention(c);
        c.add_q = c.add_kv = true;
        c.n_batch = 1, c.n_heads = 3;
        check_attention(c);
    }
}

static void test_masks(void **state)
{
    (void)state;
    for (int bits = 1; bits < 8; bits++) {
        attention_case c = plain;
        c.n_batch = 4, c.n_q = 21, c.n_kv = bits & 4 ? 33 : 21;
        c.causal = bits & 1, c.limited = bits & 2;
        c.kv_len[0] = 21, c.kv_len[1] = 1, c.kv_len[2] = 0, c.kv_len[3] = 17;
        check_attention(c);
        c.n_kv = 11; /* fewer keys than queries: with causal the first ones see nothing */
        c.kv_len[0] = 11, c.kv_len[3] = 7;
        check_attention(c);
    }
}

/* More keys and queries than one block holds, inputs side by side as a network lays them out. */
static void test_blocks(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        attention_case c = plain;
        c.n_batch = 1, c.n_heads = 1, c.n_q = c.n_kv = 300, c.head_dim = 40;
        c.fused = true, c.causal = causal, c.spread = 2;
        check_attention(c);
    }
}

/* Scores of several hundred: exponentials must neither overflow nor vanish altogether. */
static void test_extreme_scores(void **state)
{
    (void)state;
    fixture x;
    attention_case c = plain;
    c.n_q = c.n_kv = 40, c.spread = 30, c.n_heads = 1, c.n_batch = 1;
    fixture_init(&x, 3, 5e-3, 2e-3); /* scores of +-300 carry an error of 3e-5 into the exponent */
    pnb__attention_args a = attention_args_of(&c);
    c.q = input(&x, a.batch_q, -c.spread, c.spread);
    c.k = input(&x, a.batch_kv, -c.spread, c.spread);
    c.v = input(&x, a.batch_kv, -1, 1);
    c.out = output(&x, a.batch_out, false);
    c.lse = output(&x, c.n_q, false);
    c.d_out = input(&x, a.batch_out, -1, 1);
    c.dq = output(&x, a.batch_q, true);
    c.dk = output(&x, a.batch_kv, true);
    c.dv = output(&x, a.batch_kv, true);
    compare_all(&x, attention_body, &c);
}

/* ---- the f64 reference itself ---- */

enum { T = 5, S = 7, W = 4 };

typedef struct problem {
    double *q, *k, *v, *weight, out[T * W], lse[T], work[4 * S * W];
    bool causal;
} problem;

static pnb__attention_args problem_args(problem *p)
{
    pnb__attention_args a = {.n_batch = 1, .n_heads = 1, .n_q = T, .n_kv = S, .head_dim = W};
    a.row_q = a.row_kv = a.row_out = W;
    a.q = p->q, a.k = p->k, a.v = p->v, a.out = p->out, a.lse = p->lse, a.work = p->work;
    a.scale = 0.7, a.causal = p->causal;
    return a;
}

static double problem_loss(void *user)
{
    problem *p = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__attention_args a = problem_args(p);
    k.attention(NULL, &a);
    return dot_values(p->out, p->weight, T * W);
}

static void check_by_hand(const problem *p)
{
    for (int i = 0; i < T; i++) {
        double weight[S], total = 0;
        for (int j = 0; j < S; j++) {
            double s = 0.7 * dot_values(p->q + i * W, p->k + j * W, W);
            weight[j] = p->causal && j > i + S - T ? 0 : exp(s);
            total += weight[j];
        }
        assert_true(is_close(p->lse[i], log(total), 1e-12, 0));
        for (int d = 0; d < W; d++) {
            double sum = 0;
            for (int j = 0; j < S; j++)
                sum += weight[j] / total * p->v[j * W + d];
            assert_true(is_close(p->out[i * W + d], sum, 1e-12, 0));
        }
    }
}

static void test_reference(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        problem p = {.q = random_values(T * W, 1, -1, 1), .k = random_values(S * W, 2, -1, 1)};
        p.v = random_values(S * W, 3, -1, 1);
        p.weight = random_values(T * W, 4, -1, 1);
        p.causal = causal;
        problem_loss(&p);
        check_by_hand(&p);
        double dq[T * W], dk[S * W], dv[S * W];
        pnb__kernels k;
        pnb__kernels_ref_f64(&k);
        pnb__attention_args a = problem_args(&p);
        a.d_out = p.weight, a.dq = dq, a.dk = dk, a.dv = dv;
        k.attention_bwd(NULL, &a);
        check_gradient(problem_loss, &p, p.q, dq, T * W, 1e-8);
        check_gradient(problem_loss, &p, p.k, dk, S * W, 1e-8);
        check_gradient(problem_loss, &p, p.v, dv, S * W, 1e-8);
        free(p.q), free(p.k), free(p.v), free(p.weight);
    }
}

/* Products in bfloat16, where a table has them; others compute as ever. */
static void test_rounded(void **state)
{
    (void)state;
    static const size_t sizes[][5] = {{2, 3, 64, 64, 64}, {1, 2, 9, 70, 16}, {2, 2, 130, 5, 80},
                                      {3, 1, 1, 1, 8},    {1, 2, 77, 77, 7}, {1, 1, 50, 200, 128},
                                      {1, 2, 20, 20, 130}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (int masks = 0; masks < 3; masks++) {
            const size_t *z = sizes[i];
            attention_case c = {.n_batch = z[0], .n_heads = z[1], .n_q = z[2], .n_kv = z[3]};
            c.head_dim = z[4];
            c.spread = 1;
            c.rounds = true;
            c.fused = z[2] == z[3];
            c.causal = masks == 1;
            c.limited = masks == 2;
            c.add_q = masks == 1;
            c.add_kv = masks == 2;
            for (size_t b = 0; b < z[0]; b++)
                c.kv_len[b] = (int32_t)((b * 37 + 3) % (z[3] + 1));
            check_attention(c);
        }
}

/* ---- values that are halves themselves ---- */

enum { N_BATCH = 3 };

typedef struct halves_case {
    size_t n_q, n_kv, head_dim, n_batch, n_heads;
    size_t pad, shift; /* between rows; before the first one, in halves alone */
    bool packed;       /* q, k, v side by side */
    bool causal, limited;
    bool extreme; /* all scores far below 0 */
    int32_t kv_len[N_BATCH];
    size_t k, v, n_values, n_out, n_rows; /* where they begin among the values; lengths */
} halves_case;

enum { VALUES, OUT, LSE, D_OUT, D_VALUES };

static pnb__attention_args halves_args(halves_case *c)
{
    const size_t width = c->n_heads * c->head_dim, row = (c->packed ? 3 * width : width) + c->pad;
    pnb__attention_args a = {.n_batch = c->n_batch,
                             .n_heads = c->n_heads,
                             .n_q = c->n_q,
                             .n_kv = c->n_kv,
                             .head_dim = c->head_dim,
                             .causal = c->causal};
    a.row_q = a.row_kv = row;
    a.batch_q = c->n_q * row;
    a.batch_kv = c->n_kv * row;
    a.row_out = width + c->pad;
    a.batch_out = c->n_q * a.row_out;
    a.kv_len = c->limited ? c->kv_len : NULL;
    a.scale = 1 / sqrt((double)c->head_dim);
    c->k = c->packed ? width : c->n_batch * a.batch_q;
    c->v = c->packed ? 2 * width : c->k + c->n_batch * a.batch_kv;
    c->n_values = c->packed ? c->n_batch * a.batch_q : c->v + c->n_batch * a.batch_kv;
    c->n_out = c->n_batch * a.batch_out;
    c->n_rows = c->n_batch * c->n_heads * c->n_q;
    return a;
}

/* A table's slots on these values and gradients, of `size` bytes each. */
static void attend_both_ways(run *r, pnb__attention_args a, const halves_case *c, size_t size,
                             char *const values[4])
{
    a.q = values[0], a.k = values[0] + c->k * size, a.v = values[0] + c->v * size;
    a.out = values[1], a.d_out = values[2];
    a.dq = values[3], a.dk = values[3] + c->k * size, a.dv = values[3] + c->v * size;
    for (int backward = 0; backward < 2; backward++) {
        size_t bytes = r->k.attention_work(r->ctx, &a, backward);
        a.work = work_alloc(bytes);
        (backward ? r->k.attention_bwd : r->k.attention)(r->ctx, &a);
        wait_for(&r->k, r->ctx);
        work_free(a.work, bytes);
    }
}

/* n numbers as halves, the first one `shift` behind a border. */
static uint16_t *shifted_halves(const float *from, size_t n, size_t shift)
{
    uint16_t *to = malloc((n + shift) * sizeof *to);
    assert_non_null(to);
    for (size_t i = 0; i < n; i++)
        to[shift + i] = pnb__bf16_of(from[i]);
    return to;
}

static void halves_body(run *r, fixture *x)
{
    halves_case *c = r->user;
    pnb__attention_args a = halves_args(c);
    static const int which[4] = {VALUES, OUT, D_OUT, D_VALUES};
    uint16_t *halves[4] = {NULL};
    char *values[4];
    a.lse = P(r, x, LSE);
    const bool by_halves = !r->is_double && r->k.halves_head_dim >= c->head_dim;
    for (int i = 0; i < 4; i++) {
        values[i] = P(r, x, which[i]);
        if (!by_halves)
            continue;
        halves[i] = shifted_halves(P(r, x, which[i]), x->arrays[which[i]].n, c->shift);
        values[i] = (char *)(halves[i] + c->shift);
    }
    a.rounds = a.halves = by_halves;
    attend_both_ways(r, a, c,
                     by_halves      ? sizeof(uint16_t)
                     : r->is_double ? sizeof(double)
                                    : sizeof(float),
                     values);
    for (int i = 0; i < 4 && by_halves; i++) {
        float *to = P(r, x, which[i]);
        for (size_t j = 0; j < x->arrays[which[i]].n; j++)
            to[j] = pnb__bf16_widen(halves[i][c->shift + j]);
        free(halves[i]);
    }
    /* sums of exact products: held to a hundredth of what is rounded */
    for (size_t i = 0; i < c->n_rows; i++)
        if (r->is_double)
            ((double *)a.lse)[i] *= 100;
        else
            ((float *)a.lse)[i] *= 100;
}

/* Queries of 4 to 5, keys of -4 to -5: exp(score - lse) is infinite where a score is 0. */
static void make_extreme(const halves_case *c, array *values)
{
    assert_false(c->packed);
    for (size_t i = 0; i < c->v; i++)
        values->init[i] = (i < c->k ? 1 : -1) * (4 + fabs(values->init[i]));
}

static void check_halves(halves_case c)
{
    fixture x;
    halves_args(&c);
    /* Weights and slopes are off by 2^-9 of their size each, and so is the result: a key's sums
     * hold n_q / n_kv of them, those of a key that many queries see alone more. */
    double share = (double)c.n_q / (double)PNB_MAX(c.n_kv, (size_t)1);
    fixture_init(&x, 11 + c.n_q + 7 * c.n_kv + c.head_dim,
                 ldexp(2 + fmin(share, 4), -9) * (c.extreme ? 5 : 1), ldexp(3, -9));
    input(&x, c.n_values, -1, 1);
    if (c.extreme)
        make_extreme(&c, &x.arrays[VALUES]);
    output(&x, c.n_out, true); /* what lies between rows stays */
    output(&x, c.n_rows, false);
    input(&x, c.n_out, -1, 1);
    output(&x, c.n_values, true);
    for (int i = 0; i < x.n_arrays; i++)
        for (size_t j = 0; j < x.arrays[i].n; j++)
            x.arrays[i].init[j] = (double)pnb__bf16_widen(pnb__bf16_of((float)x.arrays[i].init[j]));
    compare_all(&x, halves_body, &c);
}

/* Tiles of 16 and of 64 rows, and one more; odd distances and odd beginnings. */
static void test_halves(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 16, 17, 64, 65, 197};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        halves_case c = {.n_q = sizes[i], .n_kv = sizes[i], .head_dim = 64, .n_batch = 1};
        c.n_heads = 1;
        c.packed = true;
        check_halves(c);
        c.causal = true;
        if (sizes[i] % 8 == 5 || sizes[i] % 8 == 1) /* the others end where tiles do */
            check_halves(c);
    }
    static const size_t others[][5] = {
        {70, 70, 80, 0, 0},   {33, 33, 40, 0, 0},  {130, 130, 7, 0, 0}, {64, 64, 128, 0, 0},
        {129, 20, 128, 0, 0}, {65, 65, 64, 3, 0},  {65, 65, 64, 0, 1},  {208, 30, 56, 8, 0},
        {30, 197, 56, 0, 0},  {17, 140, 64, 0, 0}, {140, 17, 64, 0, 0}, {0, 9, 64, 0, 0},
        {9, 0, 64, 0, 0},     {40, 40, 12, 4, 0}};
    for (size_t i = 0; i < PNB_COUNT(others); i++) {
        const size_t *z = others[i];
        halves_case c = {.n_q = z[0], .n_kv = z[1], .head_dim = z[2], .n_batch = 1, .pad = z[3]};
        c.n_heads = 1 + i % 2, c.shift = z[4];
        check_halves(c);
        c.extreme = c.head_dim == 64;
        if (c.extreme)
            check_halves(c);
    }
}

/* Rows that see some of the keys, or none. */
static void test_halves_masks(void **state)
{
    (void)state;
    static const size_t sizes[][4] = {{65, 65, 64, 0},  {17, 80, 64, 0},  {80, 17, 64, 0},
                                      {64, 64, 80, 0},  {70, 100, 32, 5}, {1, 40, 64, 0},
                                      {20, 140, 64, 0}, {140, 20, 64, 0}, {40, 530, 64, 0}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (int bits = 1; bits < 4; bits++) {
            const size_t *z = sizes[i];
            halves_case c = {.n_q = z[0], .n_kv = z[1], .head_dim = z[2], .n_batch = N_BATCH};
            c.n_heads = 1, c.pad = z[3];
            c.causal = bits & 1, c.limited = bits & 2;
            c.kv_len[0] = (int32_t)z[1], c.kv_len[1] = 0, c.kv_len[2] = 1 + (int32_t)z[1] / 3;
            check_halves(c);
        }
}

/* Two heads of 16 numbers whose rows are as far apart as a padded head is long; q, k and v apart.
 */
enum { APART_Q = 40, APART_DIM = 16, APART_ROW = 2 * APART_DIM, APART_ALL = APART_Q * APART_ROW };

/* Output of forward of one batch item in halves, by a table; false where that keeps none. */
static bool attend_apart(int table, const uint16_t *values, int32_t *kv_len, float *out)
{
    pnb__kernels k;
    pnb_ctx *ctx;
    uint16_t halves[APART_ALL];
    if (!table_at(table, &k, 1, &ctx))
        return false;
    pnb__attention_args a = {.n_batch = 1,
                             .n_heads = 2,
                             .n_q = APART_Q,
                             .n_kv = APART_Q,
                             .head_dim = APART_DIM,
                             .row_q = APART_ROW,
                             .row_kv = APART_ROW,
                             .row_out = APART_ROW,
                             .q = values,
                             .k = values + APART_ALL,
                             .v = values + 2 * APART_ALL,
                             .out = halves,
                             .scale = 0.25,
                             .kv_len = kv_len,
                             .rounds = true,
                             .halves = true};
    bool keeps = k.real == PNB__F32 && k.halves_head_dim >= APART_DIM;
    size_t bytes = keeps ? k.attention_work(ctx, &a, false) : 0;
    a.work = work_alloc(bytes);
    if (keeps)
        k.attention(ctx, &a);
    wait_for(&k, ctx);
    for (size_t i = 0; i < APART_ALL && keeps; i++)
        out[i] = pnb__bf16_widen(halves[i]);
    work_free(a.work, bytes);
    pnb_ctx_free(ctx);
    return keeps;
}

static uint16_t *apart_values(void)
{
    uint16_t *values = malloc(3 * APART_ALL * sizeof *values); /* a read behind q, k, v is seen */
    assert_non_null(values);
    for (size_t i = 0; i < 3 * (size_t)APART_ALL; i++)
        values[i] = pnb__bf16_of((float)(i % 17) / 17 - 0.5f);
    return values;
}

/* What is no number in a head, or behind the valid keys, reaches no other head and no query. */
static void test_heads_and_padding_keep_apart(void **state)
{
    (void)state;
    float out[APART_ALL];
    int n_tables = 0;
    int32_t kv_len = 21;
    for (int t = 0; t < N_TABLES; t++) {
        uint16_t *values = apart_values();
        values[3 * APART_ROW + APART_DIM] = pnb__bf16_of(NAN); /* query 3 of head 1 */
        if (attend_apart(t, values, NULL, out)) {
            n_tables++;
            for (size_t i = 0; i < APART_ALL; i++)
                assert_int_equal(isnan(out[i]) != 0,
                                 i / APART_ROW == 3 && i % APART_ROW >= APART_DIM);
        }
        free(values);
        values = apart_values();
        for (size_t i = (size_t)kv_len * APART_ROW; i < APART_ALL; i++)
            values[APART_ALL + i] = values[2 * APART_ALL + i] = pnb__bf16_of(NAN);
        if (attend_apart(t, values, &kv_len, out))
            for (size_t i = 0; i < APART_ALL; i++)
                assert_true(isfinite(out[i]));
        free(values);
    }
    assert_true(n_tables > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounded),      cmocka_unit_test(test_halves),
        cmocka_unit_test(test_halves_masks), cmocka_unit_test(test_heads_and_padding_keep_apart),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_blocks),       cmocka_unit_test(test_extreme_scores),
        cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
