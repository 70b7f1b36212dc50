/* Label vectors of pictures from COCO's instances, a matrix and a table: what is read, and values
 * that mean nothing, each refused by the name of the file and its line or row. */
#include <math.h>

#include "penumbra/npy.h"
#include "tests/truth/support.h"

static void label_vectors(void **state)
{
    (void)state;
    const char *const images[] = {"COCO_val2014_000000000042.jpg", "7"};
    const pnb_truth_rows i = rows(images, 2);
    const uint8_t want[] = {1, 0, 1, 0, 0, 0};
    pnb_label_matrix m;
    const char *path = write_file(
        "instances_val2014.json",
        "{\"images\":[{\"id\":42,\"file_name\":\"COCO_val2014_000000000042.jpg\"},{\"id\":7},"
        "{\"id\":9}],\"annotations\":[{\"image_id\":42,\"category_id\":90},{\"image_id\":42,"
        "\"category_id\":1},{\"image_id\":42,\"category_id\":1},{\"image_id\":9,\"category_id\":3}]"
        ","
        "\"categories\":[{\"id\":1},{\"id\":3},{\"id\":90}]}");
    assert_ok(pnb_label_matrix_load(&m, path, &i, err));
    assert_true(m.n == 2 && m.n_labels == 3);
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    path = write_file("v.csv", "id,cat,dog,sun\n7,0,0,0\nother,1,1,1\n42,1,0,1\n");
    assert_ok(pnb_label_matrix_load(&m, path, &i, err));
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    float values[] = {1, 0, 1, 0, 0, 0};
    const pnb_array_view view = {
        .dtype = PNB_F32, .n_dims = 2, .shape = {2, 3}, .data = values, .n_bytes = sizeof values};
    assert_ok(pnb_npy_save(in_dir("v.npy"), &view, err));
    assert_ok(pnb_label_matrix_load(&m, in_dir("v.npy"), &i, err));
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    const char *const more[] = {"42", "7", "8"};
    const pnb_truth_rows three = rows(more, 3);
    assert_fails(pnb_label_matrix_load(&m, in_dir("v.npy"), &three, err), PNB_SHAPE, "3 rows");
    assert_fails(pnb_label_matrix_load(&m, path, &three, err), PNB_NOT_FOUND, "row 2 ('8')");
    path = write_file("v.csv", "id,cat\n7,2\n42,1\n");
    assert_fails(pnb_label_matrix_load(&m, path, &i, err), PNB_FORMAT, "'2'");
    path = write_file("v.csv", "id\n7\n42\n");
    assert_fails(pnb_label_matrix_load(&m, path, &i, err), PNB_FORMAT, "0 labels");
    path = write_file("x.json", "{\"images\":[{\"id\":7}],\"categories\":[{\"id\":1}],"
                                "\"annotations\":[{\"image_id\":7,\"category_id\":5}]}");
    const char *const one[] = {"7"};
    const pnb_truth_rows single = rows(one, 1);
    assert_fails(pnb_label_matrix_load(&m, path, &single, err), PNB_FORMAT, "annotations[0]");
}

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
        assert_fails(pnb_label_matrix_load(&m, path, &IMAGE_ROWS, err), PNB_FORMAT, says);
        assert_null(m.label);
        return;
    }
    assert_ok(pnb_label_matrix_load(&m, path, &IMAGE_ROWS, err));
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
            pnb_label_matrix_load(&m, write_file(bad[k].name, bad[k].text), &IMAGE_ROWS, err),
            PNB_FORMAT, bad[k].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_vectors),
        cmocka_unit_test(label_numbers),
        cmocka_unit_test(label_tables),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
