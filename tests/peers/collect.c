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

#ifdef PNB_FAULTS
/* The k-th allocation of rank 1 fails, whatever is done together: it says so, and rank 0 hears
 * whose failure it is. Rank 1 tells by its exit status whether there was one. */
static long failing;

static pnb_status do_all(pnb_peers *r, pnb_error *e)
{
    pnb__buf told[2] = {{.data = NULL}, {.data = NULL}}, shared = {.data = NULL};
    float numbers[5] = {1, 2, 3, 4, 5};
    pnb_status status = pnb__peers_tell_all(r, "some bytes", 10, told, e);
    if (status == PNB_OK)
        status = pnb__peers_sum(r, numbers, 5, false, NULL, e);
    if (status == PNB_OK)
        status = pnb__peers_share(r, &shared, e);
    if (status == PNB_OK)
        status = pnb__peers_compare(r, "option", "a: 1\n", e);
    pnb__buf_reset(&told[0]);
    pnb__buf_reset(&told[1]);
    pnb__buf_reset(&shared);
    return status;
}

static int run_out(pnb_peers *r)
{
    size_t rank = pnb_peers_rank(r), n_ranks = pnb_peers_count(r);
    pnb_error e = PNB_ERROR_INIT;
    if (rank == 1)
        pnb__alloc_fail_after(failing);
    pnb_status status = do_all(r, &e);
    pnb__alloc_fail_after(-1);
    if (status == PNB_OK) /* the other may have failed behind the last trade */
        status = pnb_peers_agree(r, PNB_OK, &e);
    if (status == PNB_OK)
        return 0;
    pnb_peers_fail(r, status, &e);
    CHECK(status == PNB_NOMEM && strncmp(e.text, "rank 1: ", 8) == 0);
    return 40;
}

static void test_memory(void **state)
{
    int how[2] = {40, 40}, n_failed = 0;
    (void)state;
    for (failing = 0; failing < 40 && how[1] != 0; failing++) {
        play_together(2, 20, run_out, how);
        assert_true(how[0] == how[1] && (how[0] == 0 || how[0] == 40));
        n_failed += how[1] == 40;
    }
    assert_int_equal(how[1], 0);
    assert_true(n_failed >= 6);
}
#endif

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
#ifdef PNB_FAULTS
        cmocka_unit_test(test_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
