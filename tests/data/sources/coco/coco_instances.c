/* instances_*.json as lists: sorted by id, each picture with its annotations and first caption, and
 * every entry that is refused by its number. */
#include "data/sources/coco/coco_instances.h"
#include "tests/data/fixture.h"
#include "tests/prob/support.h"

static char *scratch;

static int set_up(void **state)
{
    (void)state;
    scratch = scratch_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

/* Loads the two texts from files; `captions` may be NULL. */
static pnb_status load(pnb__coco_instances *c, const char *instances, const char *texts,
                       pnb_error *err)
{
    put_text(scratch, "i.json", instances);
    if (texts != NULL)
        put_text(scratch, "c.json", texts);
    char *first = pnb__path_join(scratch, "i.json"), *second = pnb__path_join(scratch, "c.json");
    pnb_status status = pnb__coco_instances_load(c, first, texts != NULL ? second : NULL, err);
    pnb__free(first);
    pnb__free(second);
    return status;
}

static const char three_images[] =
    "{\"categories\":[{\"id\":5,\"name\":\"cat\"},{\"id\":1,\"name\":\"dog\"}],\"images\":["
    "{\"id\":7,\"file_name\":\"b.png\",\"width\":8,\"height\":6},"
    "{\"id\":-3,\"file_name\":\"a/..png\",\"width\":1,\"height\":2},"
    "{\"id\":5,\"file_name\":\"c.png\",\"width\":67108864,\"height\":1}],\"annotations\":[%s]}";
static const char four_annotations[] =
    "{\"id\":30,\"image_id\":7,\"category_id\":5,\"segmentation\":[1]},"
    "{\"id\":10,\"image_id\":-3,\"category_id\":1,\"iscrowd\":1,\"segmentation\":{}},"
    "{\"id\":20,\"image_id\":7,\"category_id\":1,\"iscrowd\":true,\"segmentation\":7},"
    "{\"id\":40,\"image_id\":-3,\"category_id\":5,\"iscrowd\":0,\"segmentation\":[]}";

static void lists(void **state)
{
    (void)state;
    pnb__coco_instances c;
    char *file = pnb__format(three_images, four_annotations);
    assert_ok(load(&c, file,
                   "{\"annotations\":[{\"id\":2,\"image_id\":7,\"caption\":\"second\"},"
                   "{\"id\":1,\"image_id\":7,\"caption\":\"first\"},"
                   "{\"id\":3,\"image_id\":7,\"caption\":\"third\"},"
                   "{\"id\":0,\"image_id\":99,\"caption\":\"of another file\"}]}",
                   err));
    pnb__free(file);
    static const int64_t ids[] = {-3, 5, 7}, annotations[] = {10, 40, 20, 30};
    static const size_t n_of[] = {2, 0, 2};
    assert_true(c.n_images == 3 && c.n_annotations == 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c.image[i].id, ids[i]);
        assert_int_equal(c.image[i].n, n_of[i]);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(c.annotation[i].id, annotations[i]);
    assert_true(c.image[0].first == 0 && c.image[2].first == 2);
    assert_true(c.image[0].width == 1 && c.image[0].height == 2);
    assert_string_equal(c.image[0].file_name, "a/..png");
    assert_string_equal(c.image[2].text, "first"); /* the lowest id, not the first line */
    assert_null(c.image[0].text);
    assert_string_equal(c.annotation[0].category, "dog");
    assert_string_equal(c.annotation[3].category, "cat");
    assert_true(c.annotation[0].is_crowd && c.annotation[2].is_crowd);
    assert_false(c.annotation[1].is_crowd || c.annotation[3].is_crowd);
    assert_int_equal(json_integer_value(c.annotation[2].segmentation), 7);
    pnb__coco_instances_free(&c);
    assert_true(c.image == NULL && c.n_annotations == 0);
    pnb__coco_instances_free(&c);
}

static void file_refused(const char *json, pnb_status status, const char *part)
{
    pnb__coco_instances c;
    assert_fails(load(&c, json, NULL, err), status, part);
    pnb__coco_instances_free(&c); /* after a failure too */
}

static void bad_files(void **state)
{
    (void)state;
#define IMAGE "{\"id\":1,\"file_name\":\"a.png\",\"width\":8,\"height\":6}"
    file_refused("{}", PNB_FORMAT, "no list \"categories\"");
    file_refused("[", PNB_FORMAT, "i.json");
    file_refused("{\"categories\":[{\"id\":1}]}", PNB_FORMAT, "categories[0] has no \"name\"");
    file_refused("{\"categories\":[],\"images\":[{\"id\":\"x\"}]}", PNB_FORMAT,
                 "images[0] has no whole number \"id\"");
    file_refused("{\"categories\":[],\"images\":[{\"id\":1,\"file_name\":\"../x\",\"width\":1,"
                 "\"height\":1}]}",
                 PNB_FORMAT, "inside the folder");
    file_refused("{\"categories\":[],\"images\":[{\"id\":1,\"file_name\":\"x\",\"width\":100000,"
                 "\"height\":100000}]}",
                 PNB_FORMAT, "100000x100000");
    file_refused("{\"categories\":[],\"images\":[" IMAGE "," IMAGE "],\"annotations\":[]}",
                 PNB_FORMAT, "two pictures have the id 1");
    file_refused("{\"categories\":[],\"images\":[" IMAGE
                 "],\"annotations\":[{\"id\":5,\"image_id\":1,\"category_id\":4}]}",
                 PNB_FORMAT, "annotation 5 names category 4");
    file_refused("{\"categories\":[{\"id\":4,\"name\":\"x\"}],\"images\":[" IMAGE
                 "],\"annotations\":[{\"id\":5,\"image_id\":2,\"category_id\":4}]}",
                 PNB_FORMAT, "annotation 5 names picture 2");
    file_refused("{\"categories\":[{\"id\":4,\"name\":\"x\"}],\"images\":[" IMAGE
                 "],\"annotations\":[{\"id\":5,\"image_id\":1,\"category_id\":4}]}",
                 PNB_FORMAT, "annotation 5 has no \"segmentation\"");
    file_refused("{\"categories\":[{\"id\":4,\"name\":\"x\"},{\"id\":4,\"name\":\"y\"}]}",
                 PNB_FORMAT, "two categories have the id 4");
#define ANNOTATION "{\"id\":5,\"image_id\":1,\"category_id\":4,\"segmentation\":[[0,0,4,0,4,4]]}"
    file_refused("{\"categories\":[{\"id\":4,\"name\":\"x\"}],\"images\":[" IMAGE
                 "],\"annotations\":[" ANNOTATION "," ANNOTATION "]}",
                 PNB_FORMAT, "two annotations have the id 5");
#undef IMAGE
#undef ANNOTATION
}

/* Names that lead out of the folder of pictures, and sizes beyond the limit. */
static void bad_images(void **state)
{
    (void)state;
    static const char *const names[] = {"", "/a.png", "..", "../a.png", "a/../../b.png", "a/.."};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *json = pnb__format("{\"categories\":[],\"images\":[{\"id\":1,\"file_name\":\"%s\","
                                 "\"width\":1,\"height\":1}],\"annotations\":[]}",
                                 names[i]);
        file_refused(json, PNB_FORMAT, "images[0] has no \"file_name\" inside the folder");
        pnb__free(json);
    }
    static const char *const sizes[] = {"0,\"height\":1", "1,\"height\":-1",
                                        "67108864,\"height\":2"};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        char *json = pnb__format("{\"categories\":[],\"images\":[{\"id\":1,\"file_name\":\"a\","
                                 "\"width\":%s}],\"annotations\":[]}",
                                 sizes[i]);
        file_refused(json, PNB_FORMAT, "1 to 67108864 pixels are read");
        pnb__free(json);
    }
}

static void bad_texts(void **state)
{
    (void)state;
    static const struct {
        const char *texts, *part;
    } cases[] = {{"{}", "c.json: no list \"annotations\""},
                 {"{\"annotations\":[{\"id\":4,\"image_id\":7}]}",
                  "c.json: annotation 4 has no \"caption\""},
                 {"{\"annotations\":[{\"image_id\":7}]}",
                  "c.json: annotations[0] has no whole number \"id\""}};
    char *instances = pnb__format(three_images, "");
    pnb__coco_instances c;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        assert_fails(load(&c, instances, cases[i].texts, err), PNB_FORMAT, cases[i].part);
        pnb__coco_instances_free(&c);
    }
    assert_fails(pnb__coco_instances_load(&c, "/nonexistent.json", NULL, err), PNB_NOT_FOUND,
                 "/nonexistent.json");
    pnb__coco_instances_free(&c);
    pnb__free(instances);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(bad_files),
                                       cmocka_unit_test(bad_images), cmocka_unit_test(bad_texts)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
