/* What to call a row of a set, what its further fields say, and the view a measure takes of it. */
#include "sets/set_rows.h"

#include "base/base.h"
#include "tests/prob/support.h"

static pnb_embeddings *make_set(void)
{
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, PNB_GAUSSIAN_DIAG, 3, 2, err));
    assert_ok(pnb_embeddings_set_id(set, 0, "a", err));
    assert_ok(pnb_embeddings_set_path(set, 0, "a.png", err));
    assert_ok(pnb_embeddings_set_text(set, 0, "a star", err));
    assert_ok(pnb_embeddings_set_path(set, 1, "b.png", err));
    assert_ok(pnb_embeddings_set_extra(set, 1, "{\"level\": 2}", err));
    return set;
}

static void names(void **state)
{
    (void)state;
    pnb_embeddings *set = make_set();
    assert_string_equal(pnb__set_label(set, 0), "a star");
    assert_string_equal(pnb__set_label(set, 1), "b.png");
    assert_string_equal(pnb__set_label(set, 2), "");
    assert_string_equal(pnb__set_id(set, 0), "a");
    assert_string_equal(pnb__set_id(set, 2), "");
    assert_false(pnb__set_is_known(set));
    memset(set->info.weights_sha256, 'a', 64);
    assert_false(pnb__set_is_known(set));
    snprintf(set->info.modality, sizeof set->info.modality, "image");
    assert_true(pnb__set_is_known(set));
    pnb_embeddings_free(set);
}

static void level_of_a_row(void **state)
{
    (void)state;
    pnb_embeddings *set = make_set();
    int level = 7;
    assert_ok(pnb__row_level(&level, set, 1, err));
    assert_int_equal(level, 2);
    assert_ok(pnb__row_level(&level, set, 0, err));
    assert_int_equal(level, -1);
    static const char *const bad[] = {"{\"level\": -2}", "{\"level\": 1.5}", "{\"level\": \"0\"}"};
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        assert_ok(pnb_embeddings_set_extra(set, 0, bad[i], err));
        assert_fails(pnb__row_level(&level, set, 0, err), PNB_FORMAT, "level");
    }
    assert_ok(pnb_embeddings_set_extra(set, 0, "{\"level\": null}", err));
    assert_ok(pnb__row_level(&level, set, 0, err));
    assert_int_equal(level, -1);
    pnb_embeddings_free(set);
}

static void texts_of_further_fields(void **state)
{
    char *text = NULL;
    (void)state;
    assert_ok(pnb__extra_text(&text, "{\"caption\": \"a ring\", \"n\": 3}", "caption", err));
    assert_string_equal(text, "a ring");
    pnb__free(text);
    assert_ok(pnb__extra_text(&text, "{\"caption\": 3}", "caption", err));
    assert_null(text);
    assert_ok(pnb__extra_text(&text, NULL, "caption", err));
    assert_null(text);
}

/* `mean` reads nothing but means, whatever else the family has. */
static void view_of_means(void **state)
{
    (void)state;
    pnb_embeddings *set = make_set();
    pnb_view view;
    assert_ok(pnb__set_view(&view, set, PNB_MEASURE_MEAN, err));
    assert_true(view.rows.mean == set->mean && view.rows.log_var == NULL && view.rows.n == 3);
    pnb_view_reset(&view);
    assert_ok(pnb__set_view(&view, set, PNB_MEASURE_CSD, err));
    assert_true(view.rows.log_var == set->log_var);
    pnb_view_reset(&view);
    pnb_embeddings_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(level_of_a_row),
        cmocka_unit_test(texts_of_further_fields),
        cmocka_unit_test(view_of_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
