/* Embeddings of every family go to Postgres and come back as they were. */
#include "tests/store/postgres/server.h"

static server pg;

static pnb_embeddings *rows_of(pnb_family family, size_t n, bool epistemic)
{
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, family, n, WIDTH, &err), &err);
    if (epistemic)
        assert_ok(pnb_embeddings_add_epistemic(e, &err), &err);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        for (size_t k = 0; pnb__embedding_has_array(e, i) && k < pnb__embedding_count(e, i); k++)
            (*pnb__embedding_field(e, i))[k] = 1.0f + (float)k / 4096 + (float)i;
    strcpy(e->info.modality, "image");
    strcpy(e->info.weights_sha256, WEIGHTS);
    return e;
}

static void there_and_back(void **state)
{
    scratch *s = *state;
    static const pnb_family families[] = {PNB_POINT, PNB_GAUSSIAN_DIAG, PNB_VMF, PNB_GEN_GAUSSIAN};
    for (size_t f = 0; f < PNB_COUNT(families); f++) {
        char schema[16], path[512];
        pnb_embeddings *e = rows_of(families[f], 50, families[f] == PNB_GEN_GAUSSIAN), *back = NULL;
        const pnb_store_batch batch = {.set = e};
        pnb_store_place place = {.address = pg.address, .schema = schema};
        pnb_store_rows rows = {0};
        pnb_error err = PNB_ERROR_INIT;
        snprintf(schema, sizeof schema, "f%zu", f);
        snprintf(path, sizeof path, "%s", fresh(s));
        assert_ok(pnb_store_create_at(path, &place, NULL, &err), &err);
        pnb_store *store = opened(path);
        assert_ok(pnb_store_add(store, &batch, NULL, &err), &err);
        pnb_store_close(store);
        place.join = true; /* a folder without a shard: it has to be fetched */
        snprintf(path, sizeof path, "%s", fresh(s));
        assert_ok(pnb_store_create_at(path, &place, NULL, &err), &err);
        store = opened(path);
        assert_ok(pnb_store_list(store, NULL, 0, 100, &rows, &err), &err);
        assert_int_equal(rows.n, 50);
        assert_ok(pnb_store_set(store, &rows, &back, &err), &err);
        for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
            assert_int_equal(pnb__embedding_has_array(e, i), pnb__embedding_has_array(back, i));
            if (pnb__embedding_has_array(e, i))
                assert_memory_equal(pnb__embedding_values(e, i), pnb__embedding_values(back, i),
                                    pnb__embedding_count(e, i) * sizeof(float));
        }
        pnb_store_rows_reset(&rows);
        pnb_embeddings_free(back);
        pnb_embeddings_free(e);
        pnb_store_close(store);
    }
}

int main(void)
{
    server_start(&pg);
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back)};
    int n_failed = cmocka_run_group_tests(tests, scratch_setup, store_teardown);
    server_end(&pg);
    return n_failed;
}
