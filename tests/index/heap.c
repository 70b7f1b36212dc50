/* The heap keeps what a full sort would put first, in whatever order hits come, ties too. */
#include "index/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

enum { N = 200 };

static void test_best_are_kept(void **state)
{
    (void)state;
    static const size_t capacities[] = {0, 1, 2, 7, N - 1, N, N + 5};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            pnb__hit all[N], kept[N + 5];
            pnb__heap heap = {.hit = kept, .capacity = capacities[c]};
            pnb__rng rng;
            pnb__rng_init(&rng, seed, 0);
            for (size_t i = 0; i < N; i++) {
                /* few scores, so that most are tied; indices in no order */
                all[i] = (pnb__hit){.score = (double)pnb__rng_below(&rng, 9),
                                    .index = (int64_t)((i * 77 + seed) % N)};
                pnb__heap_push(&heap, all[i]);
                assert_true(heap.n <= heap.capacity);
            }
            pnb__hits_sort(all, N);
            pnb__hits_sort(kept, heap.n);
            assert_int_equal(heap.n, PNB_MIN((size_t)N, capacities[c]));
            for (size_t i = 0; i < heap.n; i++) {
                assert_true(kept[i].score == all[i].score);
                assert_int_equal(kept[i].index, all[i].index);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
