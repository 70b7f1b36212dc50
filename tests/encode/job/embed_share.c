/* Dealing a list: every input is somebody's once, in batches that lie where they always do; and
 * meeting over sockets. */
#include "encode/job/embed_share.h"
#include "tests/peers/together.h"

/* Gaps between parts, dealt to n_ranks: all of them and nothing else, cut at batches only. */
static void check_deal(const pnb__embed_part *parts, size_t n_parts, size_t n, size_t batch,
                       size_t n_ranks)
{
    unsigned char owned[256] = {0};
    size_t most = 0, least = SIZE_MAX, at = 0;
    assert_true(n <= sizeof owned);
    for (size_t r = 0; r < n_ranks; r++) {
        pnb__embed_range *ranges = NULL;
        size_t n_ranges = 0, n_batches = 0;
        ASSERT_OK(pnb__embed_gaps(parts, n_parts, n, &ranges, &n_ranges, &err));
        pnb__embed_deal(ranges, &n_ranges, batch, r, n_ranks);
        for (size_t k = 0; k < n_ranges; k++) {
            assert_true(ranges[k].begin >= at && ranges[k].begin < ranges[k].end);
            assert_int_equal(ranges[k].begin % batch, 0);
            assert_true(ranges[k].end % batch == 0 || ranges[k].end == n);
            at = ranges[k].end;
            n_batches += (ranges[k].end - ranges[k].begin + batch - 1) / batch;
            for (size_t i = ranges[k].begin; i < ranges[k].end; i++)
                owned[i]++;
        }
        most = PNB_MAX(most, n_batches);
        least = PNB_MIN(least, n_batches);
        pnb__free(ranges);
    }
    assert_true(most - least <= 1);
    for (size_t i = 0; i < n; i++) {
        bool is_done = false;
        for (size_t k = 0; k < n_parts; k++)
            is_done = is_done || (i >= parts[k].begin && i < parts[k].end);
        assert_int_equal(owned[i], !is_done);
    }
}

static void every_input_is_dealt_once(void **state)
{
    static const pnb__embed_part parts[] = {{.begin = 12, .end = 24},
                                            {.begin = 60, .end = 72},
                                            {.begin = 72, .end = 84},
                                            {.begin = 192, .end = 200}};
    (void)state;
    for (size_t n_ranks = 1; n_ranks <= 9; n_ranks++)
        for (size_t batch = 1; batch <= 12; batch += batch == 1 ? 1 : 10) {
            check_deal(NULL, 0, 0, batch, n_ranks);
            check_deal(NULL, 0, 1, batch, n_ranks);
            check_deal(NULL, 0, 199, batch, n_ranks);
            check_deal(parts, 1, 25, batch, n_ranks);
            check_deal(parts, 4, 200, batch, n_ranks);
        }
    check_deal(parts, 4, 200, 4, 3);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Rank r has ended after r rounds; all see the sum, and the round of all is as long. */
static int meet(pnb_peers *ranks)
{
    size_t rank = pnb_peers_rank(ranks), n_ranks = pnb_peers_count(ranks);
    pnb__embed_rounds rounds;
    pnb__embed_place all = {0};
    pnb__embed_rounds_init(&rounds, ranks);
    for (size_t k = 0; !all.has_ended; k++) {
        const pnb__embed_place mine = {
            .n_done = 10 * rank + k, .stops = rank == 1 && k == 2, .has_ended = k >= rank};
        CHECK(pnb__embed_rounds_step(&rounds) || rounds.n_batches > 1);
        CHECK(pnb__embed_rounds_meet(&rounds, &mine, &all, NULL) == PNB_OK);
        CHECK(all.n_done == 10 * n_ranks * (n_ranks - 1) / 2 + n_ranks * k);
        CHECK(all.stops == (k == 2) && all.has_ended == (k + 1 == n_ranks));
        CHECK(rounds.n_batches >= 1 && rounds.n_batches <= (size_t)2 << k && rounds.n_since == 0);
        size_t n_batches = rounds.n_batches;
        pnb__buf b = {.data = NULL};
        pnb__buf_append(&b, &n_batches, sizeof n_batches);
        CHECK(pnb__peers_share(ranks, &b, NULL) == PNB_OK);
        CHECK(memcmp(b.data, &rounds.n_batches, sizeof n_batches) == 0);
        pnb__buf_reset(&b);
    }
    return 0;
}

static void ranks_meet(void **state)
{
    pnb__embed_rounds alone;
    (void)state;
    pnb__embed_rounds_init(&alone, NULL);
    assert_false(pnb__embed_rounds_step(&alone));
    play_together(4, 20, meet, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_input_is_dealt_once),
                                       cmocka_unit_test(ranks_meet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
