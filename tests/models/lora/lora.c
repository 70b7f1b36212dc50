/* Sums and gradients of factors against plain loops, the choice of matrices, and what of an
 * adapter's folder is refused. */
#include "tests/models/lora/adapted.h"

#include <math.h>

/* A is of the seed and of its place: the same again, another for another one. */
static void test_draws(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = make_model();
    pnb__lora *l[3] = {NULL};
    pnb__lora_spec other = usual;
    other.seed++;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pnb__lora_create(&l[i], m, i < 2 ? &usual : &other, sha, &err), PNB_OK);
    for (size_t i = 0; i < l[0]->n; i++) {
        const pnb__param *a = &l[0]->items[i].a;
        assert_memory_equal(a->data, l[1]->items[i].a.data, a->n * sizeof(float));
        assert_memory_not_equal(a->data, l[2]->items[i].a.data, a->n * sizeof(float));
        if (i > 0) /* as wide as the one before or not: the first numbers differ */
            assert_memory_not_equal(a->data, l[0]->items[i - 1].a.data, 4 * sizeof(float));
    }
    for (int i = 0; i < 3; i++)
        pnb__lora_free(l[i]);
    pnb_model_free(m);
}

static void test_sum_and_gradients(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = make_model();
    pnb__lora *l = NULL;
    assert_int_equal(pnb__lora_create(&l, m, &usual, sha, &err), PNB_OK);
    assert_int_equal(l->n, 12);
    for (size_t i = 0; i < l->n; i++) {
        pnb__lora_item *item = &l->items[i];
        size_t out = item->w->shape[0], in = item->w->shape[1];
        float *a = item->a.data, *b = item->b.data, *w = item->w->data;
        const float *base = item->base.data;
        float *dw = pnb__alloc_array(out * in, sizeof *dw);
        assert_int_equal(pnb__lora_apply(l, &err), PNB_OK);
        assert_memory_equal(w, base, out * in * sizeof *w); /* B is 0: the base to the bit */
        for (size_t k = 0; k < item->a.n; k++)
            assert_true(fabs((double)a[k]) <= 1 / sqrt((double)in));
        for (size_t k = 0; k < item->b.n; k++)
            b[k] = (float)sin((double)k);
        for (size_t k = 0; k < out * in; k++)
            dw[k] = (float)cos(0.7 * (double)k);
        item->w->grad = dw;
        assert_int_equal(pnb__lora_apply(l, &err), PNB_OK);
        pnb__lora_project(l);
        const float *da = item->a.grad, *db = item->b.grad;
        for (size_t r = 0; r < out; r++)
            for (size_t c = 0; c < in; c++) {
                double sum = (double)base[r * in + c];
                for (size_t k = 0; k < RANK; k++)
                    sum += 2 * (double)b[r * RANK + k] * (double)a[k * in + c];
                assert_true(fabs((double)w[r * in + c] - sum) <= 1e-6);
            }
        for (size_t k = 0; k < RANK; k++) {
            for (size_t c = 0; c < in; c++) {
                double sum = 0;
                for (size_t r = 0; r < out; r++)
                    sum += 2 * (double)b[r * RANK + k] * (double)dw[r * in + c];
                assert_true(fabs((double)da[k * in + c] - sum) <= 1e-5);
            }
            for (size_t r = 0; r < out; r++) {
                double sum = 0;
                for (size_t c = 0; c < in; c++)
                    sum += 2 * (double)a[k * in + c] * (double)dw[r * in + c];
                assert_true(fabs((double)db[r * RANK + k] - sum) <= 1e-5);
            }
        }
        item->w->grad = NULL;
        pnb__lora_project(l);
        assert_null(item->a.grad); /* a matrix that no graph read has none */
        for (size_t k = 0; k < item->b.n; k++)
            b[k] = 0;
        pnb__free(dw);
    }
    pnb__lora_free(l);
    pnb_model_free(m);
}

static size_t n_chosen(pnb_model *m, const char *targets, bool image, bool text)
{
    pnb__lora_spec spec = usual;
    pnb_error err = PNB_ERROR_INIT;
    pnb__lora *l = NULL;
    spec.targets = targets;
    spec.image = image;
    spec.text = text;
    size_t n = pnb__lora_create(&l, m, &spec, sha, &err) == PNB_OK ? l->n : 0;
    pnb__lora_free(l);
    return n;
}

static void test_choice(void **state)
{
    (void)state;
    pnb_model *m = make_model();
    assert_int_equal(n_chosen(m, "all", true, false), 8);
    assert_int_equal(n_chosen(m, "all", false, true), 4);
    assert_int_equal(n_chosen(m, "attn", true, true), 6);
    assert_int_equal(n_chosen(m, "mlp,attn.out_proj", true, true), 9);
    assert_int_equal(n_chosen(m, "visual.*.resblocks.1.*", true, true), 4);
    assert_int_equal(n_chosen(m, "mlp,", true, true), 0);
    assert_int_equal(n_chosen(m, "proj.weight", true, true), 6); /* c_proj and out_proj, no heads */
    assert_int_equal(n_chosen(m, "token_embedding", true, true), 0);
    pnb_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_sum_and_gradients),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
