/* A gradient is told of once, when it is whole, and the last layer's comes before the first's. */
#include "tensor/graph_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, WIDTH = 2 };

typedef struct seen {
    pnb__param *order[8];
    float at[8][WIDTH * WIDTH];
    int n;
} seen;

static void note(void *user, pnb__param *p)
{
    seen *s = user;
    assert_true(s->n < 8);
    memcpy(s->at[s->n], p->grad, p->n * sizeof(float));
    s->order[s->n++] = p;
}

/* x W1 W2 W1: the shared factor is whole only after its first use was gone back through. */
static void test_order(void **state)
{
    float w[N][WIDTH * WIDTH] = {{1, 2, 3, 4}, {2, 0, 1, 1}, {1, 1, 1, 1}};
    const float x[2 * WIDTH] = {1, -1, 2, 3};
    pnb__param p[N];
    pnb_ctx *ctx = NULL;
    pnb__graph *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    seen s = {0};
    (void)state;
    for (int i = 0; i < N; i++)
        p[i] = (pnb__param){.name = "w",
                            .n_dims = 2,
                            .shape = {WIDTH, WIDTH},
                            .n = WIDTH * WIDTH,
                            .data = w[i],
                            .trainable = true};
    assert_int_equal(pnb_ctx_create(&ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__graph_create(&g, ctx, PNB__F32, true, &err), PNB_OK);
    pnb__tensor *in = pnb__input(g, PNB__REAL, 2, (size_t[]){2, WIDTH});
    pnb__tensor *y = pnb__mul(pnb__linear(in, pnb__param_tensor(g, &p[0]), NULL),
                              pnb__linear(in, pnb__param_tensor(g, &p[1]), NULL));
    y = pnb__linear(y, pnb__param_tensor(g, &p[0]), NULL);
    y = pnb__linear(y, pnb__param_tensor(g, &p[2]), NULL);
    assert_int_equal(pnb__graph_plan(g, pnb__sum(y, PNB__ALL_AXES), &err), PNB_OK);
    pnb__graph_watch_grads(g, note, &s);
    pnb__write_f32(in, x);
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    assert_int_equal(s.n, N);
    assert_ptr_equal(s.order[0], &p[2]);
    for (int i = 0; i < N; i++)
        assert_memory_equal(s.at[i], s.order[i]->grad, sizeof s.at[i]);
    pnb__graph_watch_grads(g, NULL, NULL);
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    assert_int_equal(s.n, N); /* nobody is called any more */
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
