/* Values in truth files that mean nothing: each is refused by the name of the file and its line or
 * row, and the nearest value that means something is read. */
#include <math.h>
#include <unistd.h>

#include "penumbra/npy.h"
#include "penumbra/truth.h"
#include "tests/prob/support.h"

static char dir[] = "/tmp/penumbra_values_XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static char path_text[256];

static const char *write_file(const char *name, const char *text)
{
    snprintf(path_text, sizeof path_text, "%s/%s", dir, name);
    assert_ok(pnb__write_file(path_text, text, strlen(text), err));
    return path_text;
}

static const char *const images[] = {"a.jpg", "42"}, *const texts[] = {"7", "8"};
static const pnb_truth_rows image_rows = {.n = 2, .ids = images};
static const pnb_truth_rows text_rows = {.n = 2, .ids = texts};

typedef struct bad_case {
    const char *name, *text, *says; /* NULL: is read */
    pnb_truth_format format;
} bad_case;

static const bad_case CASES[] = {
    {"p.tsv", "a.jpg\t7\n42\t8\n", NULL, PNB_TRUTH_AUTO},
    {"p.tsv", "a.jpg\t7\n42\t8\t1\n", "p.tsv line 2: there is a third column", PNB_TRUTH_AUTO},
    {"p.tsv", "a.jpg\t7\t\n", "p.tsv line 1: there is a third column", PNB_TRUTH_AUTO},
    {"p.tsv", "0\t0\n1\t1.5\n", "line 2: '1.5' is not a row number", PNB_TRUTH_AUTO},
    {"p.tsv", "0\t0\n-1\t1\n", "line 2: '-1' is not a row number", PNB_TRUTH_AUTO},
    {"l.tsv", "a.jpg\tx\n7\tx\n", NULL, PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\n7\tx\n", NULL, PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\t3\n", "l.tsv line 2: there is a third column", PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\t\n7\t\n", "l.tsv line 1: the class is empty", PNB_TRUTH_LABELS},
    {"l.tsv", "a.jpg\tx\n7\tx\na.jpg\ty\n", "line 3: 'a.jpg' is of the class 'y'",
     PNB_TRUTH_LABELS},
    {"h.csv", "id,c,url\n42,a=>b,x.jpg\n", "no pair fits", PNB_TRUTH_AUTO},
    {"h.csv", "id,c,url\n42,a=> =>b,x.jpg\n", "h.csv line 2: the caption of level 1 is empty",
     PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42}]}", NULL,
     PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42.0}],\"annotations\":[{\"id\":7,\"image_id\":42}]}",
     "images[0] needs a whole number from 0 as \"id\"", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":-42}],\"annotations\":[{\"id\":7,\"image_id\":-42}]}",
     "c.json: images[0] needs a whole number", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7.5,\"image_id\":42}]}",
     "c.json: annotations[0] needs a whole number", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42.5}]}",
     "annotations[0]", PNB_TRUTH_AUTO},
    {"c.json",
     "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42,\"caption\":5}]}",
     "annotations[0] has \"caption\" that is no text", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42,\"file_name\":3}],\"annotations\":[]}",
     "images[0] has \"file_name\" that is no text", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"sentid\":7}]}]}", NULL,
     PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"sentid\":7.5}]}]}",
     "k.json: images[0] needs a whole number from 0 or a text as \"sentid\"", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"x\":7}]}]}",
     "\"sentid\" or \"raw\"", PNB_TRUTH_AUTO},
    {"k.json",
     "{\"images\":[{\"filename\":\"a.jpg\",\"cocoid\":1.5,\"sentences\":[{\"sentid\":7}]}]}",
     "images[0] needs a whole number from 0 as \"cocoid\"", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"split\":1,\"sentences\":[{\"sentid\":7}]}]}",
     "images[0] has \"split\" that is no text", PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, \"8\"]}", NULL, PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, 8.5]}", "\"42\"[1] is not an id", PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, -8]}", "\"42\"[1] is not an id", PNB_TRUTH_AUTO},
};

static void files(void **state)
{
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(CASES); k++) {
        const bad_case *c = &CASES[k];
        const pnb_truth_read_opts o = {.format = c->format};
        pnb_error err = PNB_ERROR_INIT;
        pnb_truth *t = NULL;
        const char *path = write_file(c->name, c->text);
        pnb_status status = pnb_truth_read(&t, path, &image_rows, &text_rows, &o, NULL, &err);
        if (c->says == NULL && status != PNB_OK)
            fail_msg("case %zu: %s", k, err.text);
        if (c->says != NULL && (status == PNB_OK || strstr(err.text, c->says) == NULL))
            fail_msg("case %zu says '%s', '%s' is wanted", k, err.text, c->says);
        pnb_truth_free(t);
    }
}

/* ---- the truth of other rows ---- */

static void another_split(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says[3];
    } bad[] = {
        {"s.tsv", "b.jpg\t9\nc.jpg\t10\n", {"another split", "'b.jpg' and '9'", "'42' and '7'"}},
        {"s.tsv",
         "a.jpg\t7\nb.jpg\t9\nc.jpg\t10\n",
         {"line 2: 'b.jpg'", "only 1 of the 3 pairs fit the sets", "another split"}},
        {"s.tsv", "391895\t770337\n", {"row 391895", "another split", "only 0 of the 1 pairs"}},
        {"s.json",
         "{\"images\":[{\"filename\":\"b.jpg\",\"sentences\":[{\"sentid\":9}]}]}",
         {"another split", "'b.jpg'", "ask for the split"}},
        {"s.json", "{\"50\":[60]}", {"another split", "'50'", "'a.jpg'"}},
    };
    for (size_t k = 0; k < PNB_COUNT(bad); k++)
        for (size_t i = 0; i < 3; i++) {
            pnb_truth *t = NULL;
            pnb_error err = PNB_ERROR_INIT;
            const char *path = write_file(bad[k].name, bad[k].text);
            assert_true(pnb_truth_read(&t, path, &image_rows, &text_rows, NULL, NULL, &err) !=
                        PNB_OK);
            if (strstr(err.text, bad[k].says[i]) == NULL)
                fail_msg("case %zu says '%s', not '%s'", k, err.text, bad[k].says[i]);
        }
    /* a slip in one of many pairs is no other split */
    pnb_truth *t = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const char *path = write_file("s.tsv", "a.jpg\t7\n42\t8\nb.jpg\t8\n");
    assert_true(pnb_truth_read(&t, path, &image_rows, &text_rows, NULL, NULL, &err) ==
                PNB_NOT_FOUND);
    assert_null(strstr(err.text, "split"));
}

/* ---- label vectors ---- */

static void npy_of(double value, const char *says)
{
    double values[] = {1, 0, 1, 0, 0, value};
    char path[256];
    pnb_label_matrix m = {0};
    const pnb_array_view view = {
        .dtype = PNB_F64, .n_dims = 2, .shape = {2, 3}, .data = values, .n_bytes = sizeof values};
    snprintf(path, sizeof path, "%s/v.npy", dir);
    assert_ok(pnb_npy_save(path, &view, err));
    if (says != NULL) {
        assert_fails(pnb_label_matrix_load(&m, path, &image_rows, err), PNB_FORMAT, says);
        assert_null(m.label);
        return;
    }
    assert_ok(pnb_label_matrix_load(&m, path, &image_rows, err));
    assert_int_equal(m.label[5], value == 1);
    pnb_label_matrix_reset(&m);
}

static void label_numbers(void **state)
{
    (void)state;
    npy_of(0, NULL);
    npy_of(-0.0, NULL);
    npy_of(1, NULL);
    npy_of((double)NAN, "v.npy: row 1, column 2 is nan; 0 or 1 is wanted");
    npy_of(7.5, "row 1, column 2 is 7.5");
    npy_of(2, "row 1, column 2 is 2");
    npy_of(-1, "row 1, column 2 is -1");
    npy_of(0.5, "row 1, column 2 is 0.5");
    npy_of((double)INFINITY, "row 1, column 2 is inf");
}

static void label_tables(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } bad[] = {
        {"v.csv", "id,x\na.jpg,nan\n42,1\n", "v.csv line 2: column 2 is 'nan'"},
        {"v.csv", "id,x\na.jpg,0\n42,7.5\n", "v.csv line 3: column 2 is '7.5'"},
        {"v.csv", "id,x\na.jpg,0\n42,1\n42,0\n", "v.csv line 4: '42' has labels already"},
        {"v.json", "{\"images\":[{\"id\":42}],\"categories\":[{\"id\":1}]}", "\"annotations\""},
        {"v.json", "{\"images\":[{\"id\":4.2}],\"categories\":[{\"id\":1}],\"annotations\":[]}",
         "v.json: images[0] needs a whole number"},
        {"v.json",
         "{\"images\":[{\"id\":42},{\"id\":42}],\"categories\":[{\"id\":1}],\"annotations\":[]}",
         "two images have the id 42"},
        {"v.json",
         "{\"images\":[{\"id\":42},{\"id\":1,\"file_name\":\"a.jpg\"}],\"categories\":[{\"id\":1.5}"
         "],\"annotations\":[]}",
         "v.json: categories[0] needs a whole number"},
        {"v.json",
         "{\"images\":[{\"id\":42},{\"id\":1,\"file_name\":\"a.jpg\"}],\"categories\":[{\"id\":1},"
         "{\"id\":1}],\"annotations\":[]}",
         "two categories have the id 1"},
        {"v.json",
         "{\"images\":[{\"id\":42},{\"id\":1,\"file_name\":\"a.jpg\"}],\"categories\":[{\"id\":1}],"
         "\"annotations\":[{\"image_id\":42,\"category_id\":1.5}]}",
         "annotations[0]"},
    };
    pnb_label_matrix m = {0};
    for (size_t k = 0; k < PNB_COUNT(bad); k++)
        assert_fails(
            pnb_label_matrix_load(&m, write_file(bad[k].name, bad[k].text), &image_rows, err),
            PNB_FORMAT, bad[k].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(another_split),
                                       cmocka_unit_test(label_numbers),
                                       cmocka_unit_test(label_tables)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
