/* The parallel loop: a split that covers the range once, is the same in every run, has chunks of
 * nearly one size, and stays on the calling thread where that is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "base/base.h"

#define N_ITEMS 1000
#define MAX_CHUNKS 64

typedef struct split {
    int n_visits[N_ITEMS];
    size_t begin[MAX_CHUNKS], end[MAX_CHUNKS];
    int n_calls[MAX_CHUNKS];
} split;

static void record_range(void *user, size_t begin, size_t end, int thread)
{
    split *s = user;
    for (size_t i = begin; i < end; i++)
        s->n_visits[i]++; /* ranges do not overlap: ASan and the assertions below would tell */
    s->begin[thread] = begin;
    s->end[thread] = end;
    s->n_calls[thread]++;
}

static void ranges_cover_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 999, N_ITEMS};
    static const size_t min_chunks[] = {0, 1, 100, 5000};
    for (int n_threads = 1; n_threads <= 9; n_threads += 2) {
        struct pnb_ctx ctx = {.n_threads = n_threads};
        for (size_t k = 0; k < PNB_COUNT(sizes) * PNB_COUNT(min_chunks); k++) {
            size_t n = sizes[k % PNB_COUNT(sizes)];
            size_t min_chunk = min_chunks[k / PNB_COUNT(sizes)];
            split first, second;
            memset(&first, 0, sizeof first);
            memset(&second, 0, sizeof second);
            pnb__parallel_for(&ctx, n, min_chunk, record_range, &first);
            pnb__parallel_for(&ctx, n, min_chunk, record_range, &second);
            assert_memory_equal(&first, &second, sizeof first);
            for (size_t i = 0; i < N_ITEMS; i++)
                assert_int_equal(first.n_visits[i], i < n);
            for (int c = 0; c < MAX_CHUNKS; c++) {
                assert_true(first.n_calls[c] <= 1);
                assert_true(c < n_threads || first.n_calls[c] == 0);
            }
        }
    }
}

/* 10 items on 4 threads: the first 10 % 4 chunks are one item longer. */
static void chunks_differ_by_one_at_most(void **state)
{
    (void)state;
    static const size_t begin[] = {0, 3, 6, 8}, end[] = {3, 6, 8, 10};
    struct pnb_ctx ctx = {.n_threads = 4};
    split s;
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 10, 1, record_range, &s);
    assert_memory_equal(s.begin, begin, sizeof begin);
    assert_memory_equal(s.end, end, sizeof end);
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 3, 1, record_range, &s); /* fewer items than threads */
    for (int c = 0; c < 4; c++)
        assert_int_equal(s.end[c] - s.begin[c], c < 3);
}

static void small_work_stays_on_one_thread(void **state)
{
    (void)state;
    struct pnb_ctx ctx = {.n_threads = 8};
    split s;
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 100, 100, record_range, &s);
    assert_int_equal(s.begin[0], 0);
    assert_int_equal(s.end[0], 100);
    memset(&s, 0, sizeof s);
    pnb__parallel_for(&ctx, 101, 100, record_range, &s);
    assert_int_equal(s.n_calls[1], 1);
    assert_int_equal(s.n_calls[2], 0);
    memset(&s, 0, sizeof s);
    pnb__parallel_for(NULL, 100, 1, record_range, &s);
    assert_int_equal(s.end[0], 100);
}

typedef struct pieces {
    int n_visits[N_ITEMS], n_of_thread[MAX_CHUNKS];
    int slow_thread; /* who did piece 0, which takes long where is_slow */
    bool is_slow;
} pieces;

static void record_piece(void *user, size_t begin, size_t end, int thread)
{
    pieces *p = user;
    for (size_t i = begin; i < end; i++) {
        p->n_visits[i]++;
        p->n_of_thread[thread]++; /* no two at once share a number: TSan would tell */
        if (i == 0)
            p->slow_thread = thread;
        if (i == 0 && p->is_slow)
            nanosleep(&(struct timespec){0, 500000000}, NULL);
    }
}

static void pieces_cover_once(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 9; n_threads += 4) {
        struct pnb_ctx ctx = {.n_threads = n_threads};
        for (size_t n = 0; n <= N_ITEMS; n += 125) {
            pieces p;
            memset(&p, 0, sizeof p);
            pnb__parallel_pieces(&ctx, n, record_piece, &p);
            for (size_t i = 0; i < N_ITEMS; i++)
                assert_int_equal(p.n_visits[i], i < n);
            for (int t = n_threads; t < MAX_CHUNKS; t++)
                assert_int_equal(p.n_of_thread[t], 0);
        }
    }
}

/* Nobody has a share of his own: whoever is not held up does the rest. */
static void pieces_go_round_the_slow(void **state)
{
    (void)state;
    struct pnb_ctx ctx = {.n_threads = 2};
    pieces p;
    memset(&p, 0, sizeof p);
    p.is_slow = true;
    pnb__parallel_pieces(&ctx, 10, record_piece, &p);
    assert_int_equal(p.n_of_thread[p.slow_thread], 1);
    assert_int_equal(p.n_of_thread[1 - p.slow_thread], 9);
}

typedef struct nested {
    const pnb_ctx *ctx;
    split inner[2];
} nested;

static void run_inner(void *user, size_t begin, size_t end, int thread)
{
    nested *outer = user;
    (void)thread;
    for (size_t i = begin; i < end; i++)
        pnb__parallel_for(outer->ctx, N_ITEMS, 1, record_range, &outer->inner[i]);
}

static void nested_loops_run_inline(void **state)
{
    (void)state;
    struct pnb_ctx ctx = {.n_threads = 2};
    nested outer;
    memset(&outer, 0, sizeof outer);
    outer.ctx = &ctx;
    pnb__parallel_for(&ctx, 2, 1, run_inner, &outer);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(outer.inner[i].end[0], N_ITEMS);
        assert_int_equal(outer.inner[i].n_calls[1], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_cover_once),
        cmocka_unit_test(chunks_differ_by_one_at_most),
        cmocka_unit_test(small_work_stays_on_one_thread),
        cmocka_unit_test(nested_loops_run_inline),
        cmocka_unit_test(pieces_cover_once),
        cmocka_unit_test(pieces_go_round_the_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
