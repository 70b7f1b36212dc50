/* The keep_best slot: rows that are longer and shorter than the list, ties, what may not be kept,
 * scores that rise so that every tile has better ones, few rows that are cut in parts. */
#include "tests/kernels/best.h"

static void check(const best_case *c, double step,
                  void (*change)(array *scores, const best_case *c))
{
    fixture x;
    fixture_init(&x, c->n + c->kept, 0, 0);
    best_arrays(&x, c, step);
    if (change != NULL)
        change(&x.arrays[B_SCORES], c);
    compare_all(&x, best_body, (void *)(uintptr_t)c);
}

static void rising(array *scores, const best_case *c)
{
    for (size_t i = 0; i < scores->n; i++)
        scores->init[i] = (double)(float)((double)(i % (c->n + c->gap)) * 0x1p-10 - 3);
}

static void not_numbers(array *scores, const best_case *c)
{
    (void)c;
    for (size_t i = 0; i < scores->n; i += 3)
        scores->init[i] = i % 2 == 0 ? NAN : -INFINITY;
    for (size_t i = 1; i < scores->n; i += 501)
        scores->init[i] = INFINITY;
}

static void nothing(array *scores, const best_case *c)
{
    (void)c;
    for (size_t i = 0; i < scores->n; i++)
        scores->init[i] = i % 2 == 0 ? NAN : -INFINITY;
}

static void test_lists(void **state)
{
    (void)state;
    static const size_t shapes[][5] = {/* m, n, gap, kept, split */
                                       {0, 5, 0, 3, 2},        {1, 0, 0, 4, 0},
                                       {3, 1, 2, 1, 0},        {2, 7, 1, 10, 3},
                                       {5, 300, 0, 104, 299},  {2, 1024, 0, 64, 1024},
                                       {1, 9000, 3, 104, 50},  {2, 3000, 0, PNB__BEST_MOST, 1500},
                                       {40, 2500, 5, 33, 1200}};
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        const size_t *s = shapes[i];
        best_case c = {
            .m = s[0], .n = s[1], .gap = s[2], .kept = s[3], .split = s[4], .first = 70000};
        check(&c, 0x1p-20, NULL);
        check(&c, 0x1p-4, NULL); /* hundreds are equal */
        c.halves = true;
        check(&c, 0x1p-7, NULL);
        check(&c, 0x1p-7, not_numbers);
        c.halves = false;
        check(&c, 0x1p-10, rising);
        check(&c, 0x1p-10, not_numbers);
        check(&c, 0x1p-10, nothing);
    }
}

static void test_filters(void **state)
{
    (void)state;
    best_case c = {.m = 2, .n = 12000, .kept = 40, .split = 6001, .first = 3};
    unsigned char *only = calloc(c.n, 1);
    assert_non_null(only);
    c.only = only;
    check(&c, 0x1p-6, NULL); /* none may be kept */
    for (size_t i = 5; i < c.n; i += 997)
        only[i] = 1;
    check(&c, 0x1p-6, NULL);
    for (size_t i = 0; i < c.n; i++)
        only[i] = i % 5 != 2;
    check(&c, 0x1p-6, NULL);
    check(&c, 0x1p-6, rising);
    c.halves = true;
    check(&c, 0x1p-6, NULL);
    free(only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
