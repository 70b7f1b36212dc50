/* CUB and Flowers: folders of classes with a text file for each picture; splits by lists of
 * classes. */
#include "tests/truth/support.h"

#include "truth/ground_truth.h"

static void class_folders(void **state)
{
    (void)state;
    make_folder("cub/text_c10/001.Black_footed_Albatross");
    make_folder("cub/text_c10/002.Laysan_Albatross");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0001_796111.txt",
               "the bird is black\nit has a long beak\n");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0002_55.txt", "a dark bird\n\n");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0002_55.h5", "not a caption");
    write_file("cub/text_c10/002.Laysan_Albatross/Laysan_0001_545.txt", "a white bird\n");
    write_file("cub/testclasses.txt", "002.Laysan_Albatross\n");
    const char *const images[] = {"002.Laysan_Albatross/Laysan_0001_545.jpg",
                                  "images/001.Black_footed_Albatross/Black_0001_796111.jpg",
                                  "Black_0002_55"};
    const char *const texts[] = {"a white bird", "the bird is black", "it has a long beak",
                                 "a dark bird"};
    const char *const hashes[] = {"002.Laysan_Albatross/Laysan_0001_545.jpg#0",
                                  "Black_0001_796111#0", "Black_0001_796111.txt#1",
                                  "Black_0002_55.jpg#0"};
    const size_t own[] = {0, 0, 1, 1, 1, 2, 2, 3};
    const size_t class_pairs[] = {0, 0, 1, 1, 1, 2, 1, 3, 2, 1, 2, 2, 2, 3}, split[] = {0, 0};
    pnb_truth_read_opts o = pnb_truth_read_opts_default();
    pnb_truth_rows by_text = {.n = 4, .texts = texts};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(in_dir("cub"), NULL, rows(images, 3), by_text, own, 4, &report);
    assert_int_equal(report.format, PNB_TRUTH_FOLDERS);
    pnb_truth_report_reset(&report);
    expect(in_dir("cub/text_c10"), NULL, rows(images, 3), rows(hashes, 4), own, 4, NULL);
    o.by_class = true;
    expect(in_dir("cub"), &o, rows(images, 3), by_text, class_pairs, 7, NULL);
    o.split = "test";
    expect(in_dir("cub"), &o, rows(images, 3), by_text, split, 1, NULL);
    o.split = in_dir("cub/testclasses.txt");
    expect(in_dir("cub"), &o, rows(images, 3), by_text, split, 1, NULL);
    o.split = "val";
    const pnb_truth_rows i = rows(images, 3);
    assert_fails(pnb_truth_read(&t, in_dir("cub"), &i, &by_text, &o, NULL, err), PNB_ARG,
                 "valclasses.txt");
    make_folder("empty");
    o = (pnb_truth_read_opts){.format = PNB_TRUTH_FOLDERS};
    assert_fails(pnb_truth_read(&t, in_dir("empty"), &i, &by_text, &o, NULL, err), PNB_ARG,
                 "no captions");
}

/* What the reader makes of the folders: both names of a picture, its class, places of captions. */
static void folder_entries(void **state)
{
    (void)state;
    make_folder("flowers/class_00001");
    make_folder("flowers/class_00002");
    make_folder("flowers/.git");
    write_file("flowers/.git/x.txt", "hidden folders are no class\n");
    write_file("flowers/readme.txt", "no class either\n");
    write_file("flowers/class_00001/.hidden.txt", "no picture\n");
    write_file("flowers/class_00001/.txt", "no picture\n");
    write_file("flowers/class_00001/image_06734.txt", " red petals \r\n\n yellow middle\n");
    write_file("flowers/class_00002/image_05087.txt", "blue\n");
    pnb_truth_read_opts o = pnb_truth_read_opts_default();
    const pnb__truth_source source = {in_dir("flowers"), &o};
    pnb__ground_truth c = {0};
    assert_ok(pnb__read_truth_folders(&c, &source, err));
    assert_true(c.n_images == 2 && c.n_texts == 3);
    assert_string_equal(pnb__ground_truth_get(&c, c.image[0].name[0]), "class_00001/image_06734");
    assert_string_equal(pnb__ground_truth_get(&c, c.image[0].name[1]), "image_06734");
    assert_true(c.image[0].group >= 0 && c.image[0].group != c.image[1].group);
    assert_string_equal(pnb__ground_truth_get(&c, c.text[0].text), "red petals");
    assert_string_equal(pnb__ground_truth_get(&c, c.text[1].text), "yellow middle");
    assert_true(c.text[1].owner == 0 && c.text[1].place == 1 && c.text[2].owner == 1 &&
                c.text[2].place == 0);
    pnb__ground_truth_reset(&c);
    write_file("flowers/valclasses.txt", "\n class_00009\n"); /* names no folder */
    o.split = "val";
    assert_fails(pnb__read_truth_folders(&c, &source, err), PNB_ARG,
                 "named as in the file of the split");
    assert_int_equal(c.n_images, 0);
    pnb__ground_truth_reset(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class_folders),
        cmocka_unit_test(folder_entries),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
