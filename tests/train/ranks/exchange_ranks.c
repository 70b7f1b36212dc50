/* The exchange over tied processes: rows gathered, gradients summed whether they
 * were begun early or not, who brought what is no number, and what a failure leaves. */
#include "tests/peers/together.h"

#include <math.h>
#include <stdlib.h>

#include "train/ranks/exchange.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static pnb_ctx *ctx;

static int move_rows(pnb_peers *r)
{
    pnb__exchange *x = NULL;
    CHECK(pnb__exchange_create(&x, r, NULL) == PNB_OK);
    const size_t from[] = {0, 2, 3, 6};
    float rows[6] = {0};
    for (size_t i = from[x->rank]; i < from[x->rank + 1]; i++)
        rows[i] = (float)(10 * x->rank + i);
    CHECK(x->gather(x->self, rows, from, NULL) == PNB_OK);
    const float wanted[] = {0, 1, 12, 23, 24, 25};
    CHECK(memcmp(rows, wanted, sizeof wanted) == 0);
    /* 2^25 + 1 - 2^25 is lost where floats are added one after the other */
    static const float of_rank[] = {33554432, 1, -33554432};
    for (size_t i = 0; i < 6; i++)
        rows[i] = of_rank[x->rank] + 4 * (float)i;
    CHECK(x->sum_part(x->self, rows, from, NULL) == PNB_OK);
    for (size_t i = 0; i < 6; i++) {
        bool is_ours = i >= from[x->rank] && i < from[x->rank + 1];
        CHECK(rows[i] == (is_ours ? 1 + 12 * (float)i : of_rank[x->rank] + 4 * (float)i));
    }
    pnb__exchange_free(x);
    return 0;
}

/* Buffers of which some are larger than a bucket, some begun, in several steps. */
static int sum_gradients(pnb_peers *r)
{
    enum { BUFFERS = 5, MOST = 5000000 };
    static const size_t sizes[BUFFERS] = {3, MOST, 1, 1000, 70000};
    float *data[BUFFERS];
    pnb__flat flat[BUFFERS];
    pnb__kernels k;
    pnb__exchange *x = NULL;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    CHECK(pnb__exchange_create(&x, r, NULL) == PNB_OK);
    for (int i = 0; i < BUFFERS; i++) {
        data[i] = malloc(sizes[i] * sizeof(float));
        flat[i] = (pnb__flat){data[i], sizes[i]};
    }
    for (int step = 0; step < 3; step++) {
        int culprit = 7;
        for (int i = 0; i < BUFFERS; i++)
            for (size_t j = 0; j < sizes[i]; j++)
                data[i][j] = (float)((x->rank + 1) * (j % 100 + (size_t)i + (size_t)step));
        if (step < 2) /* and in the last one nothing is opened */
            CHECK(x->open(x->self, flat, BUFFERS, NULL) == PNB_OK);
        for (int i = BUFFERS - 1; i >= step && step < 2; i--) /* fewer of them early in each step */
            CHECK(x->begin(x->self, &k, &flat[i], 1, NULL) == PNB_OK);
        CHECK(x->sum(x->self, &k, flat, BUFFERS, &culprit, NULL) == PNB_OK);
        CHECK(culprit == -1);
        for (int i = 0; i < BUFFERS; i++)
            for (size_t j = 0; j < sizes[i]; j++)
                CHECK(data[i][j] == (float)(6 * (j % 100 + (size_t)i + (size_t)step)));
    }
    data[3][7] = x->rank == 1 ? NAN : 0;
    int culprit = -1;
    CHECK(x->sum(x->self, &k, flat, BUFFERS, &culprit, NULL) == PNB_OK && culprit == 1);
    for (int i = 0; i < BUFFERS; i++)
        free(data[i]);
    pnb__exchange_free(x);
    return 0;
}

/* Value j of micro-batch `micro`, of all sizes: what floats added in another order would show. */
static float micro_value(size_t micro, size_t j)
{
    return sinf((float)(17 * micro + j)) * (j % 3 == 0 ? 1e4F : 1e-3F) * (micro % 2 == 0 ? 1 : 37);
}

/* Twelve micro-batches dealt to however many ranks: every rank has the bits of one sum in doubles.
 */
static int sum_micros(pnb_peers *r)
{
    enum { MICROS = 12, A = 3000000, B = 7 };
    float *a = malloc(A * sizeof *a), b[B];
    const pnb__flat flat[] = {{a, A}, {b, B}};
    pnb__kernels k;
    pnb__exchange *x = NULL;
    int culprit = 7;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    CHECK(a != NULL && pnb__exchange_create(&x, r, NULL) == PNB_OK);
    for (int step = 0; step < 2; step++) {
        size_t first = x->rank * MICROS / x->n_ranks, last = (x->rank + 1) * MICROS / x->n_ranks;
        CHECK(x->open(x->self, flat, 2, NULL) == PNB_OK);
        for (size_t micro = first; micro < last; micro++) {
            for (size_t j = 0; j < A; j++)
                a[j] = micro_value(micro, j);
            for (size_t j = 0; j < B; j++)
                b[j] = -micro_value(micro, j);
            if (micro + 1 < last)
                CHECK(x->add(x->self, &k, flat, 2, NULL) == PNB_OK);
            else
                CHECK(x->begin(x->self, &k, &flat[1], 1, NULL) == PNB_OK);
        }
        CHECK(x->sum(x->self, &k, flat, 2, &culprit, NULL) == PNB_OK && culprit == -1);
        for (size_t j = 0; j < A; j++) {
            double sum = 0;
            for (size_t micro = 0; micro < MICROS; micro++)
                sum += (double)micro_value(micro, j);
            CHECK(a[j] == (float)sum && (j >= B || b[j] == -(float)sum));
        }
    }
    free(a);
    pnb__exchange_free(x);
    return 0;
}

/* A rank goes away with sums under way: the others find out and free what they have. */
static int lose_one(pnb_peers *r)
{
    float few[100] = {0};
    const pnb__flat flat = {few, 100};
    pnb__kernels k;
    pnb__exchange *x = NULL;
    pnb_error e = PNB_ERROR_INIT;
    int culprit = -1;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    CHECK(pnb__exchange_create(&x, r, NULL) == PNB_OK);
    if (x->rank == 2)
        _exit(0);
    CHECK(x->open(x->self, &flat, 1, &e) == PNB_OK);
    CHECK(x->begin(x->self, &k, &flat, 1, &e) == PNB_OK);
    CHECK(x->sum(x->self, &k, &flat, 1, &culprit, &e) == PNB_IO);
    CHECK(strstr(e.text, "rank 2") != NULL);
    pnb__exchange_free(x);
    return 0;
}

static void test_rows(void **state)
{
    (void)state;
    play_together(3, 20, move_rows, NULL);
}

static void test_gradients(void **state)
{
    (void)state;
    play_together(3, 20, sum_gradients, NULL);
}

static void test_micros(void **state)
{
    (void)state;
    assert_int_equal(sum_micros(NULL), 0);
    play_together(2, 20, sum_micros, NULL);
    play_together(5, 20, sum_micros, NULL);
}

static void test_loss(void **state)
{
    (void)state;
    play_together(3, 20, lose_one, NULL);
}

static void test_alone(void **state)
{
    pnb__exchange *x = NULL;
    float row = 2;
    const size_t from[] = {0, 1};
    (void)state;
    ASSERT_OK(pnb__exchange_create(&x, NULL, &err));
    ASSERT_OK(x->gather(x->self, &row, from, &err));
    assert_true(x->n_ranks == 1 && row == 2);
    pnb__kernels k;
    const pnb__flat flat = {&row, 1};
    int culprit = 3;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    ASSERT_OK(x->sum(x->self, &k, &flat, 1, &culprit, &err)); /* nothing was opened or copied */
    assert_true(row == 2 && culprit == -1);
    pnb__exchange_free(x);
}

int main(void)
{
    const pnb_ctx_opts opts = {.n_threads = 1};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_micros), cmocka_unit_test(test_loss),
        cmocka_unit_test(test_alone),
    };
    if (pnb_ctx_create(&ctx, &opts, NULL) != PNB_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pnb_ctx_free(ctx);
    return failed;
}
