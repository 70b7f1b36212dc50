/* An adapter's folder: what is written is read, what does not fit is refused by name. */
#include "tests/models/lora/adapted.h"

static void test_folder(void **state)
{
    (void)state;
    char *dir = temp_path("adapter");
    pnb_error err = PNB_ERROR_INIT;
    pnb_model *m = make_model();
    pnb__lora *l = NULL, *again = NULL;
    pnb__param *const heads[] = {pnb__model_find_param(m, "visual.proj")};
    assert_int_equal(pnb__lora_create(&l, m, &usual, sha, &err), PNB_OK);
    assert_non_null(heads[0]);
    assert_false(pnb__lora_is_dir(dir));
    ((float *)l->items[3].b.data)[1] = 7;
    ((float *)heads[0]->data)[2] = 5;
    assert_int_equal(pnb__lora_save(l, heads, 1, "base", dir, &err), PNB_OK);
    assert_true(pnb__lora_is_dir(dir));
    ((float *)heads[0]->data)[2] = 0;
    assert_int_equal(pnb__lora_create(&again, m, &usual, sha, &err), PNB_OK);
    assert_int_equal(pnb__lora_load(again, heads, 1, dir, &err), PNB_OK);
    assert_true(((float *)again->items[3].b.data)[1] == 7 && ((float *)heads[0]->data)[2] == 5);
    for (size_t i = 0; i < l->n; i++)
        assert_memory_equal(l->items[i].a.data, again->items[i].a.data,
                            l->items[i].a.n * sizeof(float));
    assert_int_equal(pnb__lora_load(again, NULL, 0, dir, &err), PNB_ARG); /* heads are locked */
    pnb_error_reset(&err);
    again->base_sha256[0] = 'f';
    assert_int_equal(pnb__lora_load(again, heads, 1, dir, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "factors of another base"));
    pnb__lora_free(l);
    pnb__lora_free(again);
    pnb_model_free(m);
    pnb__free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
