/* The truth of a field of the rows: who belongs to whom, by hand; and fields that make none. */
#include "commands/eval/eval_retrieval.h"
#include "tests/prob/support.h"

enum { N_IMAGES = 4, N_TEXTS = 5 };

static pnb_embeddings *make_set(const char *const *extra, size_t n)
{
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, PNB_POINT, n, 2, err));
    for (size_t i = 0; i < n; i++)
        if (extra[i] != NULL)
            assert_ok(pnb_embeddings_set_extra(set, i, extra[i], err));
    return set;
}

typedef struct world {
    pnb__app app;
    pnb__retrieval run;
    pnb__retrieval_opts opts;
} world;

static pnb_status read_classes(world *w, const char *key)
{
    static const char *const images[N_IMAGES] = {"{\"class\":\"wren\",\"n\":3}", NULL,
                                                 "{\"class\":\"owl\"}", "{\"class\":\"crow\"}"};
    static const char *const texts[N_TEXTS] = {"{\"class\":\"owl\"}", "{\"other\":1}",
                                               "{\"class\":\"wren\",\"n\":3}",
                                               "{\"class\":\"owl\",\"n\":[1]}", NULL};
    *w = (world){.opts = pnb__retrieval_opts_default()};
    w->opts.images = "i";
    w->opts.texts = "t";
    w->opts.class_key = key;
    w->run.images = make_set(images, N_IMAGES);
    w->run.texts = make_set(texts, N_TEXTS);
    return pnb__retrieval_class_truth(&w->app, &w->opts, &w->run);
}

static void by_hand(void **state)
{
    (void)state;
    world w;
    assert_int_equal(read_classes(&w, "class"), PNB_OK);
    const pnb_truth *t = w.run.truth;
    const pnb__row_classes *c = &w.run.classes;
    static const size_t offset[] = {0, 1, 1, 3, 3};
    static const size_t item[] = {2, 0, 3};
    assert_int_equal(t->n_queries, N_IMAGES);
    assert_int_equal(t->n_pairs, 3);
    for (size_t i = 0; i <= N_IMAGES; i++)
        assert_int_equal(t->offset[i], offset[i]);
    for (size_t p = 0; p < 3; p++)
        assert_int_equal(t->item[p], item[p]);
    assert_int_equal(c->n, 3);
    assert_string_equal(c->name[0], "crow");
    assert_string_equal(c->name[2], "wren");
    static const int32_t image[] = {2, -1, 1, 0}, text[] = {1, -1, 2, 1, -1};
    assert_memory_equal(c->image, image, sizeof image);
    assert_memory_equal(c->text, text, sizeof text);
    pnb__retrieval_reset(&w.run);
}

static void no_truth(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        pnb_status status;
        const char *says;
    } cases[] = {{"nothing", PNB_NOT_FOUND, "no row of i has this field"},
                 {"other", PNB_NOT_FOUND, "no row of i has this field"},
                 {"n", PNB_FORMAT, "neither a text nor a whole number"}};
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        world w;
        assert_int_equal(read_classes(&w, cases[k].key), cases[k].status);
        assert_non_null(strstr(w.app.err.text, cases[k].says));
        assert_null(w.run.truth);
        pnb__retrieval_reset(&w.run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(no_truth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
