/* Rows of several processes as one set: their numbers, the inputs they are of, what was skipped;
 * ranks without a row too. */
#include "encode/job/embed_gather.h"
#include "tests/peers/together.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

enum { DIM = 3 };

/* Rank r has r rows, of inputs 100 r + 2 k, and skipped the one behind each. */
static int gather(pnb_peers *ranks)
{
    size_t rank = pnb_peers_rank(ranks), n_ranks = pnb_peers_count(ranks), at = 0, from[17];
    size_t n = n_ranks * (n_ranks - 1) / 2;
    pnb__embed_known mine = {.n_truncated = rank, .n_unknown = 1}, all;
    pnb_embeddings *rows = NULL, *set = NULL;
    mine.input = pnb__alloc_array(rank + 1, sizeof *mine.input);
    CHECK(pnb_embeddings_create(&rows, PNB_GAUSSIAN_DIAG, rank + 1, DIM, NULL) == PNB_OK);
    for (size_t i = 0; i < rank; i++) {
        mine.input[mine.n_rows++] = 100 * rank + 2 * i;
        CHECK(pnb__embed_known_skip(&mine, 100 * rank + 2 * i + 1, i == 0 ? "" : "a\nb", NULL) ==
              PNB_OK);
        for (size_t d = 0; d < DIM; d++) {
            rows->mean[i * DIM + d] = (float)(1000 * rank + 10 * i + d);
            rows->log_var[i * DIM + d] = -rows->mean[i * DIM + d];
        }
    }
    CHECK(pnb__embed_gather_known(ranks, &mine, &all, from, NULL) == PNB_OK);
    CHECK(all.n_rows == n && all.n_skips == n && all.n_truncated == n && all.n_unknown == n_ranks);
    CHECK(from[n_ranks] == n);
    CHECK(pnb_embeddings_create(&set, PNB_GAUSSIAN_DIAG, n, DIM, NULL) == PNB_OK);
    CHECK(pnb__embed_gather_rows(ranks, rows, set, from, NULL) == PNB_OK);
    for (size_t p = 0; p < n_ranks; p++)
        for (size_t i = 0; i < p; i++, at++) {
            CHECK(all.input[at] == 100 * p + 2 * i && all.skips[at].input == all.input[at] + 1);
            CHECK(strcmp(all.skips[at].why, i == 0 ? "" : "a\nb") == 0);
            CHECK(set->mean[at * DIM + 2] == (float)(1000 * p + 10 * i + 2));
            CHECK(set->log_var[at * DIM] == -(float)(1000 * p + 10 * i));
        }
    pnb_embeddings_free(rows);
    pnb_embeddings_free(set);
    pnb__embed_known_reset(&mine);
    pnb__embed_known_reset(&all);
    return 0;
}

static void rows_come_together(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 5; n += 3)
        play_together(n, 20, gather, NULL);
}

/* Counts that what follows them does not hold. */
static int lie(pnb_peers *ranks)
{
    static const uint64_t lies[][5] = {{2, 0, 0, 0, 7},          {0, 0, 0, 1, 7},
                                       {UINT64_MAX, 0, 0, 0, 1}, {UINT64_MAX / 8, 0, 0, 0, 1},
                                       {0, 0, 0, UINT64_MAX, 0}, {0, 0, 0, 0, 9}};
    size_t n_ranks = pnb_peers_count(ranks), from[17];
    for (size_t k = 0; k <= PNB_COUNT(lies); k++) {
        pnb__embed_known none = {0}, all;
        pnb_error err = PNB_ERROR_INIT;
        if (pnb_peers_rank(ranks) == 1) {
            pnb__buf told[17] = {{.data = NULL}};
            size_t n = k < PNB_COUNT(lies) ? sizeof lies[k] : 3;
            CHECK(pnb__peers_tell_all(ranks, lies[k % PNB_COUNT(lies)], n, told, NULL) == PNB_OK);
            for (size_t p = 0; p < n_ranks; p++)
                pnb__buf_reset(&told[p]);
        } else {
            CHECK(pnb__embed_gather_known(ranks, &none, &all, from, &err) == PNB_FORMAT);
            CHECK(strstr(err.text, "not whole") != NULL && all.input == NULL && all.skips == NULL);
        }
    }
    return 0;
}

static void lies_are_refused(void **state)
{
    (void)state;
    play_together(2, 20, lie, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_come_together),
                                       cmocka_unit_test(lies_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
