/* CUB Captions through the settings of a folder: captions elsewhere, classes of a split by name and
 * by number, pictures left out, and lists that fit nothing. */
#include "data/sources/dataset_internal.h"
#include "tests/data/sources/opened.h"

static void put_birds(void)
{
    static const char *const keys[] = {"001.Albatross/a1", "001.Albatross/a2", "002.Auklet/b1",
                                       "010.Cardinal/c1", "010.Cardinal/c2"};
    for (size_t i = 0; i < PNB_COUNT(keys); i++) {
        char name[64], text[64];
        snprintf(name, sizeof name, "images/%s.png", keys[i]);
        put_png(scratch, name, (int)i + 1);
        snprintf(name, sizeof name, "text_c10/%s.txt", keys[i]);
        snprintf(text, sizeof text, "first of %zu\nsecond of %zu\n", i, i);
        if (i != 4)
            put_text(scratch, name, text);
    }
}

static pnb_dataset *open_birds(const char *settings)
{
    pnb_dataset *ds = NULL;
    pnb__buf spec = {0};
    pnb__buf_printf(&spec, "%s/images#captions=%s/text_c10", scratch, scratch);
    for (const char *p = settings; *p != 0; p++) /* @ stands for the scratch folder */
        if (*p == '@')
            pnb__buf_puts(&spec, scratch);
        else
            pnb__buf_putc(&spec, *p);
    ASSERT_OK(pnb_dataset_open(&ds, spec.data, NULL, &err));
    pnb__buf_reset(&spec);
    return ds;
}

static void expect_keys(const char *settings, const char *wanted)
{
    char keys[256];
    pnb_dataset *ds = open_birds(settings);
    keys_of(ds, keys, sizeof keys);
    assert_string_equal(keys, wanted);
    pnb_dataset_free(ds);
}

static void classes_and_images(void **state)
{
    (void)state;
    put_birds();
    pnb_dataset *ds = open_birds("");
    assert_int_equal(pnb_dataset_size(ds), 4);
    assert_int_equal(pnb_dataset_n_classes(ds), 3);
    expect_texts(ds, 2, "002.Auklet/b1.png", "first of 2|second of 2");
    expect_image(ds, 2, 3);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1 pictures without a .txt or .json in "));
    pnb_dataset_free(ds);
    put_text(scratch, "names.txt", "001.Albatross\n\n010.Cardinal\n");
    put_text(scratch, "numbers.txt", "1.Albatross\r\n10\r\n");
    expect_keys(",classes=@/names.txt",
                "001.Albatross/a1.png 001.Albatross/a2.png 010.Cardinal/c1.png ");
    expect_keys(",classes=@/numbers.txt",
                "001.Albatross/a1.png 001.Albatross/a2.png 010.Cardinal/c1.png ");
    put_text(scratch, "seen.txt", "001.Albatross/a2.png\n002.Auklet/b1.png\n");
    expect_keys(",classes=@/numbers.txt,omit=@/seen.txt",
                "001.Albatross/a1.png 010.Cardinal/c1.png ");
    ds = open_birds(",classes=@/numbers.txt");
    assert_int_equal(pnb_dataset_n_classes(ds), 2); /* numbered from 0 as they are left */
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
}

static void lists_that_fit_nothing(void **state)
{
    (void)state;
    put_birds();
    put_text(scratch, "classes.txt", "001.Albatross\n77.Wren\n");
    put_text(scratch, "omit.txt", "a1.png\n");
    pnb_dataset *ds = open_birds(",classes=@/classes.txt,omit=@/omit.txt");
    assert_int_equal(pnb_dataset_size(ds), 2);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1 of 2 classes have no folder"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "77.Wren"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 1), "CLASS/PICTURE.jpg"));
    pnb_dataset_free(ds);
    put_text(scratch, "empty.txt", "\n \n");
    char *spec = pnb__format("images#classes=%s/empty.txt", scratch);
    open_fails(spec, NULL, PNB_FORMAT, "holds no name");
    pnb__free(spec);
    open_fails("images#captions=/nonexistent", NULL, PNB_NOT_FOUND, "captions=/nonexistent");
    open_fails("images#omit=/nonexistent.txt", NULL, PNB_NOT_FOUND, "/nonexistent.txt");
    open_fails("images#split=test", NULL, PNB_ARG, "Karpathy's json");
}

/* A "#" in a name stays one. */
static void names_with_a_hash(void **state)
{
    (void)state;
    assert_int_equal(pnb__spec_head("a#b.csv"), 7);
    assert_int_equal(pnb__spec_head("a#b.json#split=val"), 8);
    put_png(scratch, "d#split=x/a.png", 1);
    put_text(scratch, "d#split=x/a.txt", "a");
    pnb_dataset *ds = open_ok("d#split=x", NULL);
    assert_int_equal(pnb_dataset_size(ds), 1);
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(classes_and_images, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_that_fit_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(names_with_a_hash, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
