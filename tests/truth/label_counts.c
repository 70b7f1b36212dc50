/* Entropy of what people called pictures: counts and probabilities by hand, rows that the file does
 * not name, and values that mean nothing, each refused by its line or row. */
#include <math.h>

#include "penumbra/npy.h"
#include "tests/truth/support.h"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12))
        fail_msg("%.17g, want %.17g", got, want);
}

static void tables(void **state)
{
    (void)state;
    const char *const images[] = {"a", "b", "c"};
    const pnb_truth_rows i = rows(images, 3);
    double bits[3];
    const char *path = write_file("h.csv", "id,cat,dog,sun\nb,5,5,0\nother,1,1,1\na,10,0,0\n");
    assert_ok(pnb_label_entropy_load(bits, path, &i, err));
    near(bits[0], 0);
    near(bits[1], 1);
    assert_true(isnan(bits[2]));
    path = write_file("h.tsv", "id\tcat\tdog\na\t0.25\t0.75\nb\t1\t3\n");
    assert_ok(pnb_label_entropy_load(bits, path, &i, err));
    near(bits[0], -0.25 * log2(0.25) - 0.75 * log2(0.75));
    near(bits[1], bits[0]); /* counts and probabilities say the same */
    path = write_file("h.csv", "id,cat,dog,sun\na,1e200,1e200,1e-200\n");
    assert_ok(pnb_label_entropy_load(bits, path, &i, err));
    near(bits[0], 1); /* a share that is no double any more adds nothing */
    path = write_file("h.csv", "id,cat,dog\na,1e308,1e308\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "line 2: the counts");
    path = write_file("h.csv", "id,cat,dog\na,1,1\na,1,1\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "'a' has labels already");
    path = write_file("h.csv", "id,cat,dog\na,1,-1\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "label 1 is -1");
    path = write_file("h.csv", "id,cat,dog\na,0,0\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "nobody");
    path = write_file("h.csv", "id,cat,dog\na,1,many\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "column 3 is 'many'");
    path = write_file("h.csv", "id,cat\na,1\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_FORMAT, "1 labels");
    path = write_file("h.csv", "id,cat,dog\nx,1,1\n");
    assert_fails(pnb_label_entropy_load(bits, path, &i, err), PNB_NOT_FOUND, "none of the 3");
}

static void matrices(void **state)
{
    (void)state;
    const char *const images[] = {"a", "b"};
    const pnb_truth_rows i = rows(images, 2);
    double bits[2], values[] = {2, 2, 2, 2, 0, 0, 7, 0};
    pnb_array_view view = {
        .dtype = PNB_F64, .n_dims = 2, .shape = {2, 4}, .data = values, .n_bytes = sizeof values};
    assert_ok(pnb_npy_save(in_dir("h.npy"), &view, err));
    assert_ok(pnb_label_entropy_load(bits, in_dir("h.npy"), &i, err));
    near(bits[0], 2);
    near(bits[1], 0);
    const char *const more[] = {"a", "b", "c"};
    const pnb_truth_rows three = rows(more, 3);
    double room[3];
    assert_fails(pnb_label_entropy_load(room, in_dir("h.npy"), &three, err), PNB_SHAPE, "3 rows");
    values[6] = NAN;
    assert_ok(pnb_npy_save(in_dir("h.npy"), &view, err));
    assert_fails(pnb_label_entropy_load(bits, in_dir("h.npy"), &i, err), PNB_FORMAT,
                 "row 1: label 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables), cmocka_unit_test(matrices)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
