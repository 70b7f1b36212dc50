/* Gather and scatter, patches; the adjoints by <A x, y> = <x, A^T y>. */
#include "tests/kernels/harness.h"

typedef struct gather_case {
    size_t n, n_table, width;
    int table, y, dy, dtable;
    int32_t *ids;
} gather_case;

static void gather_body(run *r, fixture *x)
{
    const gather_case *c = r->user;
    r->k.gather_rows(r->ctx, c->n, c->width, P(r, x, c->table), c->ids, P(r, x, c->y));
    r->k.scatter_add_rows(r->ctx, c->n, c->n_table, c->width, P(r, x, c->dy), c->ids,
                          P(r, x, c->dtable));
}

static void test_gather(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {
        {0, 3, 4}, {1, 1, 1}, {9, 4, 17}, {100, 7, 192}, {300, 50, 33}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        gather_case c = {sizes[i][0], sizes[i][1], sizes[i][2], 0, 0, 0, 0, NULL};
        fixture x;
        fixture_init(&x, i, 1e-5, 1e-6);
        c.table = input(&x, c.n_table * c.width, -1, 1);
        c.y = output(&x, c.n * c.width, false);
        c.dy = input(&x, c.n * c.width, -1, 1);
        c.dtable = output(&x, c.n_table * c.width, true);
        c.ids = malloc((c.n + 1) * sizeof *c.ids);
        assert_non_null(c.ids);
        for (size_t j = 0; j < c.n; j++)
            c.ids[j] = (int32_t)(j * j % c.n_table);
        compare_all(&x, gather_body, &c);
        free(c.ids);
    }
}

typedef struct patch_case {
    size_t bchw[4], patch;
    bool accumulate;
    int x, y, dy, dx;
} patch_case;

static void patch_body(run *r, fixture *x)
{
    const patch_case *c = r->user;
    r->k.patchify(r->ctx, c->bchw, c->patch, P(r, x, c->x), P(r, x, c->y));
    r->k.patchify_bwd(r->ctx, c->bchw, c->patch, P(r, x, c->dy), P(r, x, c->dx), c->accumulate);
}

static void test_patches(void **state)
{
    (void)state;
    static const size_t shapes[][5] = {
        {1, 3, 4, 4, 2}, {2, 3, 17, 20, 4}, {3, 1, 8, 8, 8}, {0, 3, 8, 8, 4}, {4, 3, 64, 48, 16}};
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        const size_t *s = shapes[i];
        patch_case c = {{s[0], s[1], s[2], s[3]}, s[4], i % 2, 0, 0, 0, 0};
        size_t n = s[0] * s[1] * s[2] * s[3];
        size_t n_out = s[0] * s[1] * (s[2] / s[4]) * (s[3] / s[4]) * s[4] * s[4];
        fixture x;
        fixture_init(&x, i, 0, 1e-7);
        c.x = input(&x, n, -1, 1);
        c.y = output(&x, n_out, false);
        c.dy = input(&x, n_out, -1, 1);
        c.dx = output(&x, n, c.accumulate);
        compare_all(&x, patch_body, &c);
    }
}

/* Feature order of a patch: channel, then row, then column; patches row by row. */
static void test_patch_order(void **state)
{
    (void)state;
    double x[2 * 4 * 4], y[2 * 4 * 4];
    for (int i = 0; i < 32; i++)
        x[i] = i;
    const size_t bchw[4] = {1, 2, 4, 4};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.patchify(NULL, bchw, 2, x, y);
    static const double second[8] = {2, 3, 6, 7, 18, 19, 22, 23};
    for (int i = 0; i < 8; i++)
        assert_true(y[8 + i] == second[i]);
    assert_true(y[16] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gather),
                                       cmocka_unit_test(test_patches),
                                       cmocka_unit_test(test_patch_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
