/* Rows of another model, kind or width are refused, and both sides are named. */
#include "tests/store/fixture.h"

static void assert_refused(pnb_store *store, pnb_embeddings *e, pnb_status wanted,
                           const char *words, const char *more)
{
    pnb_error err = PNB_ERROR_INIT;
    const pnb_store_batch batch = {.set = e};
    pnb_status found = pnb_store_add(store, &batch, NULL, &err);
    assert_failed(found, &err, wanted, words);
    assert_failed(found, &err, wanted, more);
    assert_int_equal(count_rows(store), 4);
    pnb_embeddings_free(e);
}

static void rows_of_another_kind(void **state)
{
    pnb_store *store = filled(*state, 4, 4);
    pnb_embeddings *e = rows_from(4, 2), *wide = NULL;
    pnb_error err = PNB_ERROR_INIT;
    strcpy(e->info.weights_sha256, OTHER_WEIGHTS);
    strcpy(e->info.model, "other");
    assert_refused(store, e, PNB_ARG, "tiny 69081b72e4cd", "other 0a1b2c3d4e5f");
    e = rows_from(4, 2);
    e->info.weights_sha256[0] = '\0';
    assert_refused(store, e, PNB_ARG, "tiny 69081b72e4cd", "do not tell their weights");
    e = rows_from(4, 2);
    strcpy(e->info.modality, "text");
    assert_ok(pnb_embeddings_create(&wide, PNB_GAUSSIAN_DIAG, 1, 2 * WIDTH, &err), &err);
    wide->info = e->info;
    assert_refused(store, e, PNB_ARG, "image and text", "collection ");
    assert_refused(store, wide, PNB_SHAPE, "width 8", "width 16");
    assert_ok(pnb_embeddings_create(&e, PNB_POINT, 1, WIDTH, &err), &err);
    strcpy(e->info.weights_sha256, WEIGHTS);
    assert_refused(store, e, PNB_SHAPE, "point", "gaussian_diag");
    e = rows_from(4, 2);
    e->log_var[3] = NAN;
    assert_refused(store, e, PNB_NUMERIC, "log-variances", "row 0");
    pnb_store_close(store);
}

/* A collection that was made for a model refuses the first rows of another one, too. */
static void made_for_a_model(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = rows_from(0, 2);
    const pnb_store_model model = {.dir = "models/tiny", .info = &e->info};
    const pnb_store_batch batch = {.set = e};
    pnb_store_about about;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_create(fresh(s), &model, &err), &err);
    pnb_store *store = opened(scratch_path(s, "c"));
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_string_equal(about.model_dir, "models/tiny");
    assert_string_equal(about.info.weights_sha256, WEIGHTS);
    assert_false(about.is_settled);
    strcpy(e->info.weights_sha256, OTHER_WEIGHTS);
    assert_failed(pnb_store_add(store, &batch, NULL, &err), &err, PNB_ARG, "69081b72e4cd");
    pnb_error_reset(&err);
    strcpy(e->info.weights_sha256, WEIGHTS);
    assert_ok(pnb_store_add(store, &batch, NULL, &err), &err);
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_true(about.is_settled && about.family == PNB_GAUSSIAN_DIAG && about.dim == WIDTH);
    assert_failed(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err, PNB_EXISTS,
                  "is there already");
    pnb_embeddings_free(e);
    pnb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_another_kind),
                                       cmocka_unit_test(made_for_a_model)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
