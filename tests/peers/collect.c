/* Parts gathered, numbers summed, texts told: over sockets, by 1 to 7 processes. */
#include <math.h>

#include "tests/peers/together.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %zu of %zu: line %d: %s\n", rank, n_ranks, __LINE__,             \
                    #condition);                                                                   \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Parts of different lengths, one of them of nothing. */
static int gather_parts(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r), from[17] = {0};
    float data[17 * 17];
    for (size_t p = 0; p < n_ranks; p++)
        from[p + 1] = from[p] + p * sizeof *data;
    for (size_t i = 0; i < rank; i++)
        data[from[rank] / sizeof *data + i] = (float)(100 * rank + i);
    CHECK(pnb__peers_gather(r, data, from, NULL) == PNB_OK);
    for (size_t p = 0; p < n_ranks; p++)
        for (size_t i = 0; i < p; i++)
            CHECK(data[from[p] / sizeof *data + i] == (float)(100 * p + i));
    return 0;
}

/* Numbers whose sum shows its order; more and fewer than there are ranks. */
static float number(size_t rank, size_t i)
{
    return sinf((float)(rank * 131 + i)) * (i % 2 == 0 ? 1e6F : 1e-3F);
}

static int sum_all(pnb_peers *r)
{
    enum { MOST = 200000 };
    static float data[MOST];
    static double twice[MOST];
    static const size_t sizes[] = {1, 2, 5, 1000, MOST};
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    for (size_t k = 0; k < PNB_COUNT(sizes); k++) {
        int culprit = 5;
        for (size_t i = 0; i < sizes[k]; i++)
            twice[i] = data[i] = number(rank, i);
        CHECK(pnb__peers_sum(r, data, sizes[k], false, &culprit, NULL) == PNB_OK);
        CHECK(culprit == -1);
        CHECK(pnb__peers_sum(r, twice, sizes[k], true, NULL, NULL) == PNB_OK);
        for (size_t i = 0; i < sizes[k]; i++) {
            float sum = number(0, i);
            double wide = number(0, i);
            for (size_t p = 1; p < n_ranks; p++) {
                sum += number(p, i);
                wide += number(p, i);
            }
            CHECK(data[i] == sum && twice[i] == wide);
        }
    }
    return 0;
}

/* The last two ranks bring what is not finite: the lower one is named to all. */
static int name_culprit(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    float data[100] = {0};
    int culprit = -1;
    if (rank == n_ranks - 1)
        data[3] = INFINITY;
    if (rank == n_ranks - 2)
        data[90] = NAN;
    CHECK(pnb__peers_sum(r, data, 100, false, &culprit, NULL) == PNB_OK);
    CHECK(culprit == (int)n_ranks - 2);
    return 0;
}

static int tell_texts(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    pnb__buf all[16] = {{0}}, shared = {0};
    char mine[64];
    int n = snprintf(mine, sizeof mine, "%.*s", (int)rank * 3, "abcdefghijklmnopqrstuvwxyz");
    CHECK(pnb__peers_tell_all(r, mine, (size_t)n, all, NULL) == PNB_OK);
    for (size_t p = 0; p < n_ranks; p++) {
        CHECK(all[p].size == 3 * p);
        CHECK(memcmp(all[p].size > 0 ? all[p].data : "", "abcdefghijklmnopqrstuvwxyz", 3 * p) == 0);
        pnb__buf_reset(&all[p]);
    }
    pnb__buf_puts(&shared, rank == 0 ? "from the first" : "mine");
    CHECK(pnb__peers_share(r, &shared, NULL) == PNB_OK);
    CHECK(strcmp(shared.data, "from the first") == 0);
    pnb__buf_reset(&shared);
    return 0;
}

static int ask_any(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    bool flag = false, last = rank == n_ranks - 1;
    CHECK(pnb__peers_any(r, &flag, NULL) == PNB_OK && !flag);
    CHECK(pnb__peers_any(r, &last, NULL) == PNB_OK && last);
    CHECK(pnb_peers_agree(r, PNB_OK, NULL) == PNB_OK);
    CHECK(pnb_peers_is_speaker(r) == (rank == 0));
    return 0;
}

/* A rank with another line is named with it, everywhere. */
static int compare_texts(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    pnb_error e = PNB_ERROR_INIT;
    CHECK(pnb__peers_compare(r, "option", "lr: 1\nseed: 2\n", &e) == PNB_OK);
    const char *text = rank == 2 ? "lr: 1\nseed: 3\nwd: 1\n" : "lr: 1\nseed: 2\nwd: 1\n";
    CHECK(pnb__peers_compare(r, "option", text, &e) == PNB_ARG);
    CHECK(strcmp(e.text,
                 "rank 2: its option is not that of rank 0: \"seed: 2\" there, \"seed: 3\" here") ==
          0);
    CHECK(n_ranks > 2 && pnb_peers_is_speaker(r) == (rank == 0));
    return 0;
}

static void over_ranks(part_fn part, size_t least)
{
    static const size_t counts[] = {2, 3, 4, 7};
    for (size_t i = 0; i < PNB_COUNT(counts); i++)
        if (counts[i] >= least)
            play_together(counts[i], 20, part, NULL);
}

static void test_gather(void **state)
{
    (void)state;
    over_ranks(gather_parts, 2);
}

static void test_sum(void **state)
{
    (void)state;
    over_ranks(sum_all, 2);
}

static void test_culprit(void **state)
{
    (void)state;
    over_ranks(name_culprit, 2);
}

static void test_tell(void **state)
{
    (void)state;
    over_ranks(tell_texts, 2);
}

static void test_any(void **state)
{
    (void)state;
    over_ranks(ask_any, 2);
}

static void test_compare(void **state)
{
    (void)state;
    over_ranks(compare_texts, 3);
}

/* One process: nothing moves. */
static void test_alone(void **state)
{
    const size_t from[] = {0, sizeof(float)};
    float one = 3;
    bool flag = true;
    pnb__buf b = {0};
    (void)state;
    ASSERT_OK(pnb__peers_gather(NULL, &one, from, &err));
    ASSERT_OK(pnb__peers_sum(NULL, &one, 1, false, NULL, &err));
    ASSERT_OK(pnb__peers_any(NULL, &flag, &err));
    ASSERT_OK(pnb__peers_share(NULL, &b, &err));
    ASSERT_OK(pnb_peers_agree(NULL, PNB_OK, &err));
    assert_int_equal(pnb_peers_agree(NULL, PNB_IO, NULL), PNB_IO);
    assert_true(one == 3 && flag && pnb_peers_is_speaker(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather), cmocka_unit_test(test_sum), cmocka_unit_test(test_culprit),
        cmocka_unit_test(test_tell),   cmocka_unit_test(test_any), cmocka_unit_test(test_compare),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
