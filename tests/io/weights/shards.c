/* A sharded archive: names that an index may give, shards opened beside it, arrays of all of them
 * by name. */
#include "io/weights/shards.h"

#include "tests/io/scratch.h"

static json_t *map_of(const char *text)
{
    json_t *map = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__json_load_bytes(&map, text, strlen(text), "map", &err), &err);
    return map;
}

static void names_are_sorted_once_each(void **state)
{
    (void)state;
    json_t *map =
        map_of("{\"a\":\"m-2.bin\",\"b\":\"m-1.bin\",\"c\":\"m-2.bin\",\"d\":\"x.y.bin\"}");
    const char *names[4];
    size_t n = 99;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__shard_names(map, ".bin", names, &n, "i.json", &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "m-1.bin");
    assert_string_equal(names[1], "m-2.bin");
    assert_string_equal(names[2], "x.y.bin");
    json_decref(map);
    map = map_of("{}");
    assert_ok(pnb__shard_names(map, ".bin", names, &n, "i.json", &err), &err);
    assert_int_equal(n, 0);
    json_decref(map);
}

/* No index leads a reader elsewhere. */
static void names_are_plain(void **state)
{
    (void)state;
    static const char *const bad[] = {"\"../m.bin\"",
                                      "\"/m.bin\"",
                                      "\"a/m.bin\"",
                                      "\"a\\\\m.bin\"",
                                      "\".m.bin\"",
                                      "\".bin\"",
                                      "\"m.safetensors\"",
                                      "\"\"",
                                      "7",
                                      "null"};
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        char text[64];
        const char *names[2];
        size_t n = 99;
        pnb_error err = PNB_ERROR_INIT;
        snprintf(text, sizeof text, "{\"v\":\"m.bin\",\"w\":%s}", bad[i]);
        json_t *map = map_of(text);
        assert_failed(pnb__shard_names(map, ".bin", names, &n, "i.json", &err), &err, PNB_FORMAT,
                      "wanted a plain .bin file name beside the index");
        assert_non_null(strstr(err.text, "i.json: weight_map puts \"w\" in"));
        assert_int_equal(n, 99);
        json_decref(map);
    }
}

typedef struct visit {
    pnb__buf seen;
    size_t stop_at;
} visit;

static pnb_status see(void *user, size_t i, const char *name, const char *at, pnb_error *err)
{
    visit *v = user;
    pnb__buf_printf(&v->seen, "%zu %s %s|", i, name, at);
    return i == v->stop_at ? pnb__fail(err, PNB_BUSY, "shard %zu", i) : PNB_OK;
}

/* In their order, beside the index; the first failure ends it. */
static void shards_lie_beside_the_index(void **state)
{
    (void)state;
    static const char *const names[] = {"b.bin", "a.bin", "c.bin"};
    static const struct {
        const char *index, *want;
        size_t stop_at;
    } cases[] = {{"dir/i.json", "0 b.bin dir/b.bin|1 a.bin dir/a.bin|2 c.bin dir/c.bin|", 9},
                 {"i.json", "0 b.bin ./b.bin|1 a.bin ./a.bin|", 1}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        visit v = {.stop_at = cases[i].stop_at};
        pnb__arena arena;
        pnb_error err = PNB_ERROR_INIT;
        pnb__arena_init(&arena, 1024);
        pnb_status found = pnb__shards_open(names, 3, cases[i].index, &arena, see, &v, &err);
        if (cases[i].stop_at > 2)
            assert_ok(found, &err);
        else
            assert_failed(found, &err, PNB_BUSY, "shard 1");
        assert_string_equal(v.seen.data, cases[i].want);
        pnb__buf_reset(&v.seen);
        pnb__arena_free(&arena);
    }
}

static const pnb_array_view FIRST[] = {{.name = "x", .n_bytes = 1}, {.name = "b", .n_bytes = 2}};
static const pnb_array_view SECOND[] = {{.name = "a", .n_bytes = 3}, {.name = "x", .n_bytes = 4}};

static pnb__shard_content content(const void *user, size_t i)
{
    const char *const *names = user;
    return i == 0 ? (pnb__shard_content){names[0], FIRST, 2}
                  : (pnb__shard_content){names[1], SECOND, 2};
}

static void arrays_of_all_shards(void **state)
{
    (void)state;
    static const char *const names[] = {"1.bin", "2.bin"};
    pnb__archive all = {0}, placed = {0}, one = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__archive_join(&all, content, names, 2, NULL, &err), &err);
    assert_int_equal(all.n, 4);
    assert_string_equal(all.views[2].name, "a"); /* in the order of the shards */
    assert_int_equal(pnb__archive_find(&all, "b")->n_bytes, 2);
    assert_null(pnb__archive_find(&all, "y"));
    assert_null(pnb__archive_find(&all, NULL));
    pnb__archive_reset(&all);
    /* the index decides which "x" counts, and leaves out what it does not name */
    json_t *map = map_of("{\"x\":\"2.bin\",\"b\":\"1.bin\",\"lost\":\"1.bin\"}");
    assert_ok(pnb__archive_join(&placed, content, names, 2, map, &err), &err);
    assert_int_equal(placed.n, 2);
    assert_int_equal(pnb__archive_find(&placed, "x")->n_bytes, 4);
    assert_null(pnb__archive_find(&placed, "a"));
    assert_failed(pnb__archive_check(&placed, map, "i.json", &err), &err, PNB_FORMAT,
                  "i.json: \"lost\" is not in its shard 1.bin");
    json_object_del(map, "lost");
    assert_int_equal(pnb__archive_check(&placed, map, "i.json", NULL), PNB_OK);
    pnb__archive_reset(&placed);
    json_decref(map);
    assert_ok(pnb__archive_join(&one, content, names, 0, NULL, NULL), &err); /* of no shards */
    assert_true(one.n == 0 && pnb__archive_find(&one, "x") == NULL);
    pnb__archive_reset(&one);
    pnb__archive_reset(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted_once_each),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(shards_lie_beside_the_index),
        cmocka_unit_test(arrays_of_all_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
