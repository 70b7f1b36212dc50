/* Class names and templates from every kind of source, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commands/classify/class_names.h"

#define ASSERT_FAILS(call, want, part)                                                             \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        assert_int_equal((call), want);                                                            \
        if (strstr(err.text, part) == NULL)                                                        \
            fail_msg("'%s' does not say '%s'", err.text, part);                                    \
    } while (0)

typedef struct scratch {
    char dir[64], path[128];
} scratch;

static int make_scratch(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    strcpy(s->dir, "/tmp/pnb-names-XXXXXX");
    *state = s;
    return s == NULL || mkdtemp(s->dir) == NULL;
}

static int remove_scratch(void **state)
{
    scratch *s = *state;
    int failed = rmdir(s->dir);
    free(s);
    return failed;
}

static const char *put(scratch *s, const char *name, const char *text)
{
    snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
    assert_int_equal(pnb__write_file(s->path, text, strlen(text), NULL), PNB_OK);
    return s->path;
}

static void expect_names(const char *spec, size_t n, const char *first, const char *last)
{
    pnb__texts names = {0};
    assert_int_equal(pnb__classnames_read(&names, spec, NULL, NULL), PNB_OK);
    assert_int_equal(names.n, n);
    assert_string_equal(names.items[0], first);
    assert_string_equal(names.items[n - 1], last);
    pnb__texts_reset(&names);
}

static void refuse_names(const char *spec, pnb_status want, const char *part)
{
    pnb__texts names = {0};
    ASSERT_FAILS(pnb__classnames_read(&names, spec, NULL, &err), want, part);
    pnb__texts_reset(&names);
}

static void test_names(void **state)
{
    scratch *s = *state;
    expect_names("cat, dog ,tench", 3, "cat", "tench");
    expect_names("cat", 1, "cat", "cat");
    expect_names(put(s, "n.txt", "cat\r\nice cream, vanilla\n\n"), 2, "cat", "ice cream, vanilla");
    unlink(s->path);
    expect_names(put(s, "n.json", "[\"a\",\"b\"]"), 2, "a", "b");
    unlink(s->path);
    refuse_names("cat,,dog", PNB_FORMAT, "class name 2 is empty");
    refuse_names("/nowhere/names.txt", PNB_NOT_FOUND, "no such file");
    refuse_names(put(s, "n.txt", "\n\n"), PNB_FORMAT, "no class name");
    refuse_names(put(s, "n.txt", "a\n\nb\n"), PNB_FORMAT, "class name 2 is empty");
    refuse_names(put(s, "n.txt", "\xFF\n"), PNB_FORMAT, "UTF-8");
    unlink(s->path);
    refuse_names(put(s, "n.json", "[1]"), PNB_FORMAT, "entry 0");
    refuse_names(put(s, "n.json", "{\"a\":1}"), PNB_FORMAT, "a list of class names");
    unlink(s->path);
}

/* CLIP_benchmark's custom files: one object for many data sets. */
static void test_names_by_dataset(void **state)
{
    scratch *s = *state;
    static const char text[] = "{\"vtab/pets\":[\"pug\"],\"cifar10\":[\"airplane\",\"bird\"]}";
    pnb__texts names = {0};
    const char *path = put(s, "n.json", text);
    assert_int_equal(pnb__classnames_read(&names, path, "cifar10", NULL), PNB_OK);
    assert_int_equal(names.n, 2);
    assert_string_equal(names.items[1], "bird");
    pnb__texts_reset(&names);
    assert_int_equal(pnb__classnames_read(&names, path, "wds/cifar10", NULL), PNB_OK);
    pnb__texts_reset(&names);
    assert_int_equal(pnb__classnames_read(&names, path, "vtab/pets", NULL), PNB_OK);
    assert_string_equal(names.items[0], "pug");
    pnb__texts_reset(&names);
    ASSERT_FAILS(pnb__classnames_read(&names, path, "mnist", &err), PNB_NOT_FOUND,
                 "no class names of data set \"mnist\"");
    ASSERT_FAILS(pnb__classnames_read(&names, path, NULL, &err), PNB_FORMAT, "--dataset");
    pnb__texts_reset(&names);
    unlink(s->path);
}

static void test_repeated(void **state)
{
    (void)state;
    pnb__texts names = {0};
    pnb__name_index index;
    size_t first, second;
    bool shared;
    assert_int_equal(pnb__classnames_read(&names, "crane,maillot,dog,maillot", NULL, NULL), PNB_OK);
    assert_int_equal(pnb__name_index_make(&index, &names, NULL), PNB_OK);
    assert_true(pnb__classnames_repeated(&index, &first, &second));
    assert_int_equal(first, 1);
    assert_int_equal(second, 3);
    assert_int_equal(pnb__name_find(&index, "dog", &shared), 2);
    assert_false(shared);
    assert_int_equal(pnb__name_find(&index, "maillot", &shared), 1);
    assert_true(shared);
    assert_true(pnb__name_find(&index, "cat", &shared) == SIZE_MAX);
    assert_true(pnb__name_find(&index, "zebra", &shared) == SIZE_MAX);
    pnb__name_index_reset(&index);
    pnb__texts_reset(&names);
    assert_int_equal(pnb__classnames_read(&names, "ice cream,dog", NULL, NULL), PNB_OK);
    assert_int_equal(pnb__name_index_make(&index, &names, NULL), PNB_OK);
    assert_false(pnb__classnames_repeated(&index, &first, &second));
    assert_int_equal(pnb__name_find(&index, "ice_cream", &shared), 0);
    pnb__name_index_reset(&index);
    pnb__texts_reset(&names);
}

static void make(pnb__class_prompts *p, const char *spec, const char *dataset)
{
    pnb__texts names = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__classnames_read(&names, "cat,dog", NULL, NULL), PNB_OK);
    if (pnb__class_prompts_make(p, &names, spec, dataset, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb__texts_reset(&names);
}

static void refuse(const char *spec, pnb_status want, const char *part)
{
    pnb__texts names = {0};
    pnb__class_prompts p = {0};
    assert_int_equal(pnb__classnames_read(&names, "cat,dog", NULL, NULL), PNB_OK);
    ASSERT_FAILS(pnb__class_prompts_make(&p, &names, spec, NULL, &err), want, part);
    assert_null(p.offset);
    pnb__texts_reset(&names);
}

static void test_built_in(void **state)
{
    (void)state;
    pnb__class_prompts p;
    make(&p, "openai", NULL);
    assert_int_equal(p.prompts.n, 160);
    assert_int_equal(p.offset[1], 80);
    assert_string_equal(p.prompts.items[0], "a bad photo of a cat.");
    assert_string_equal(p.prompts.items[80 + 39], "a photo of a dog.");
    assert_string_equal(p.prompts.items[159], "a tattoo of the dog.");
    for (size_t i = 0; i < 80; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(p.templates.items[i], p.templates.items[j]);
    pnb__class_prompts_reset(&p);
    make(&p, "simple", NULL);
    assert_int_equal(p.prompts.n, 14);
    assert_string_equal(p.prompts.items[0], "itap of a cat.");
    pnb__class_prompts_reset(&p);
    make(&p, "none", NULL);
    assert_int_equal(p.prompts.n, 2);
    assert_string_equal(p.prompts.items[1], "dog");
    pnb__class_prompts_reset(&p);
}

/* Every letter counts: hashes of the lists as CLIP's authors published them, one a line. */
static void expect_hash(const char *const *templates, size_t n, const char *want)
{
    pnb__sha256 hash;
    char hex[65];
    pnb__sha256_init(&hash);
    for (size_t i = 0; i < n; i++) {
        pnb__sha256_update(&hash, templates[i], strlen(templates[i]));
        pnb__sha256_update(&hash, "\n", 1);
    }
    pnb__sha256_hex(&hash, hex);
    assert_string_equal(hex, want);
}

static void test_published(void **state)
{
    (void)state;
    expect_hash(pnb__openai_templates, 80,
                "717aaf1055595d318aa456669c0de6675d883ccebfa70ca12ff890b7aab710cb");
    expect_hash(pnb__simple_templates, 7,
                "521a62d0a05a423b35c722307363a2ded56bd69f48179cfeeeefb5128f98b362");
}

static void expect_filled(const char *text, const char *name, const char *want)
{
    pnb__buf out = {0};
    assert_true(pnb__fill_template(&out, text, name));
    assert_int_equal(out.size, strlen(want));
    assert_memory_equal(out.data, want, out.size);
    pnb__buf_reset(&out);
}

static void test_placeholders(void **state)
{
    scratch *s = *state;
    expect_filled("a {} of {c}", "cat", "a cat of cat");
    expect_filled("{0}, {class}, {classname}, {label}", "x", "x, x, x, x");
    expect_filled("a photo of a {}.", "aquarium_fish", "a photo of a aquarium fish.");
    expect_filled("a { {} }", "cat", "a { cat }");
    expect_filled("a_b {}", "{}", "a_b {}"); /* a name is not filled again */
    refuse(put(s, "t.txt", "a {}\na {colour} {}\n"), PNB_FORMAT, "{colour} for nothing");
    refuse(put(s, "t.txt", "a {x}\n"), PNB_FORMAT, "template 1");
    refuse(put(s, "t.txt", "a {\n"), PNB_FORMAT, "must say with {} or {c}");
    unlink(s->path);
}

/* CuPL's prompts below the names of data sets; '_' and ' ' in names of classes are the same. */
static void test_own_prompts(void **state)
{
    scratch *s = *state;
    pnb__class_prompts p;
    pnb__texts names = {0};
    pnb_error err = PNB_ERROR_INIT;
    make(&p,
         put(s, "t.json", "{\"pets\":{\"cat\":[\"it purrs\"],\"dog\":[\"it barks\",\"a {}\"]}}"),
         "wds/pets");
    assert_int_equal(p.prompts.n, 3);
    assert_string_equal(p.prompts.items[2], "a dog");
    pnb__class_prompts_reset(&p);
    refuse(s->path, PNB_NOT_FOUND, "(--dataset)");
    assert_int_equal(pnb__classnames_read(&names, "ice_cream,hot dog", NULL, NULL), PNB_OK);
    put(s, "t.json", "{\"ice cream\":[\"cold {}\"],\"hot_dog\":[\"warm {}\"]}");
    assert_int_equal(pnb__class_prompts_make(&p, &names, s->path, NULL, &err), PNB_OK);
    assert_string_equal(p.prompts.items[0], "cold ice cream");
    assert_string_equal(p.prompts.items[1], "warm hot dog");
    pnb__class_prompts_reset(&p);
    pnb__texts_reset(&names);
    unlink(s->path);
}

static void test_files(void **state)
{
    scratch *s = *state;
    pnb__class_prompts p;
    make(&p, put(s, "t.txt", "a {c}, a nice {c}\nthe {}\n"), NULL);
    assert_int_equal(p.prompts.n, 4);
    assert_string_equal(p.prompts.items[2], "a dog, a nice dog");
    assert_string_equal(p.prompts.items[3], "the dog");
    pnb__class_prompts_reset(&p);
    refuse(put(s, "t.txt", "a {}\na photo\n"), PNB_FORMAT, "template 2 is \"a photo\"");
    refuse(put(s, "t.txt", ""), PNB_FORMAT, "holds no template");
    unlink(s->path);
    make(&p, put(s, "t.json", "[\"one {}\"]"), NULL);
    assert_string_equal(p.prompts.items[0], "one cat");
    pnb__class_prompts_reset(&p);
    make(&p, put(s, "t.json", "{\"dog\":[\"it barks\",\"a {}\"],\"cat\":[\"it purrs\"],\"x\":[]}"),
         NULL);
    assert_int_equal(p.prompts.n, 3);
    assert_int_equal(p.templates.n, 0);
    assert_int_equal(p.offset[1], 1);
    assert_string_equal(p.prompts.items[0], "it purrs");
    assert_string_equal(p.prompts.items[2], "a dog");
    pnb__class_prompts_reset(&p);
    make(&p, put(s, "t.json", "{\"cifar10\":[\"a blurry {c}\"],\"mnist\":[\"the number {c}\"]}"),
         "mnist");
    assert_string_equal(p.prompts.items[1], "the number dog");
    pnb__class_prompts_reset(&p);
    refuse(put(s, "t.json", "{\"dog\":[\"it barks\"]}"), PNB_NOT_FOUND, "class \"cat\"");
    refuse(put(s, "t.json", "{\"dog\":[\"x\"],\"cat\":[]}"), PNB_FORMAT, "class \"cat\"");
    refuse(put(s, "t.json", "{\"dog\":[3],\"cat\":[\"x\"]}"), PNB_FORMAT, "class \"dog\"");
    refuse(put(s, "t.json", "[]"), PNB_FORMAT, "holds no template");
    refuse(put(s, "t.json", "{"), PNB_FORMAT, "t.json");
    unlink(s->path);
    refuse("/nowhere/t.txt", PNB_NOT_FOUND, "openai, simple and none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_names_by_dataset),
        cmocka_unit_test(test_repeated),    cmocka_unit_test(test_built_in),
        cmocka_unit_test(test_published),   cmocka_unit_test(test_placeholders),
        cmocka_unit_test(test_own_prompts), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
