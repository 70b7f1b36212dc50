/* JSON objects: keys found among few and among many, kept in their order, replaced and removed. */
#include "tests/io/json/support.h"

#include "io/json/value_internal.h"

static void objects_keep_order_and_find_keys(void **state)
{
    (void)state;
    json_t *o = json_object();
    char key[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3000; i++) {
            snprintf(key, sizeof key, "key %d", i * 7919 % 3001);
            assert_int_equal(json_object_set_new(o, key, json_integer(i + round)), 0);
        }
    assert_int_equal(json_object_size(o), 3000);
    assert_int_equal(json_object_del(o, "key 0"), 0);
    assert_int_equal(json_object_del(o, "key 0"), -1);
    const char *found;
    json_t *value;
    int i = 1;
    json_object_foreach(o, found, value)
    {
        snprintf(key, sizeof key, "key %d", i * 7919 % 3001);
        assert_string_equal(found, key);
        assert_int_equal(json_integer_value(value), i + 1);
        assert_ptr_equal(json_object_get(o, key), value);
        i++;
    }
    assert_int_equal(i, 3000);
    assert_null(json_object_get(o, "key 0"));
    json_t *copy = json_deep_copy(o), *other = json_copy(o);
    assert_true(json_equal(o, copy) && json_equal(o, other));
    json_object_set_new(copy, "key 1", json_real(1));
    assert_false(json_equal(o, copy));
    json_decref(copy);
    json_decref(other);
    json_decref(o);
}

/* Around the number from which a table is used, where it is made and given up. */
static void few_and_many(void **state)
{
    (void)state;
    json_t *o = json_object();
    char key[8];
    for (int n = 0; n < 12; n++) {
        snprintf(key, sizeof key, "k%d", n);
        assert_null(json_object_get(o, key));
        json_object_set_new(o, key, json_integer(n));
        for (int i = 0; i <= n; i++) {
            snprintf(key, sizeof key, "k%d", i);
            assert_int_equal(json_integer_value(json_object_get(o, key)), i);
        }
    }
    for (int n = 11; n >= 0; n--) { /* the first goes first: the others move */
        snprintf(key, sizeof key, "k%d", 11 - n);
        assert_int_equal(json_object_del(o, key), 0);
        assert_null(json_object_get(o, key));
        assert_int_equal(json_object_size(o), n);
        for (int i = 12 - n; i < 12; i++) {
            snprintf(key, sizeof key, "k%d", i);
            assert_int_equal(json_integer_value(json_object_get(o, key)), i);
        }
    }
    assert_null(json_object_iter(o));
    json_decref(o);
}

/* The last goes first: nothing behind it is touched, however full the object is. */
static void the_last_is_removed(void **state)
{
    (void)state;
    for (int n = 1; n <= 33; n++) {
        json_t *o = json_object();
        char key[8];
        for (int i = 0; i < n; i++) {
            snprintf(key, sizeof key, "k%d", i);
            json_object_set_new(o, key, json_integer(i));
        }
        assert_int_equal(json_object_del(o, key), 0);
        assert_null(json_object_get(o, key));
        assert_int_equal(json_object_size(o), n - 1);
        for (int i = 0; i + 1 < n; i++) {
            snprintf(key, sizeof key, "k%d", i);
            assert_int_equal(json_integer_value(json_object_get(o, key)), i);
        }
        json_decref(o);
    }
}

static void keys_are_bytes_of_a_length(void **state)
{
    (void)state;
    json_t *o = json_object();
    assert_int_equal(json_object_setn_new(o, "abc", 2, json_integer(1)), 0);
    assert_int_equal(json_object_setn_new(o, "", 0, json_integer(2)), 0);
    assert_int_equal(json_object_setn_new(o, "a\0b", 3, json_integer(3)), 0);
    assert_int_equal(json_integer_value(json_object_get(o, "ab")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "")), 2);
    assert_int_equal(json_integer_value(json_object_getn(o, "a\0b", 3)), 3);
    assert_null(json_object_get(o, "a"));
    assert_null(json_object_get(o, NULL));
    assert_null(json_object_get(json_null(), "ab"));
    json_decref(o);
}

/* The value is taken also where it fails; only want of a value makes the object incomplete. */
static void what_is_refused(void **state)
{
    (void)state;
    json_t *o = json_object();
    assert_int_equal(json_object_set_new(o, "self", json_incref(o)), -1);
    assert_int_equal(json_object_set_new(o, NULL, json_string("x")), -1);
    assert_int_equal(json_object_set_new(json_null(), "a", json_string("x")), -1);
    assert_int_equal(json_object_del(o, "a"), -1);
    assert_int_equal(json_object_del(json_null(), "a"), -1);
    assert_true(json_is_complete(o) && o->n_refs == 1);
    json_t *part = json_string("x");
    assert_int_equal(json_object_set(o, "a", part), 0);
    assert_int_equal(part->n_refs, 2);
    assert_int_equal(pnb__jv_object_add(o, "a", 1, part), PNB__JV_DUPLICATE);
    assert_int_equal(part->n_refs, 2);
    assert_int_equal(json_object_set_new(o, "a", json_integer(4)), 0); /* in its place */
    assert_int_equal(part->n_refs, 1);
    assert_int_equal(json_object_set_new(o, "b", NULL), -1);
    assert_false(json_is_complete(o));
    json_decref(part);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_keep_order_and_find_keys),
        cmocka_unit_test(few_and_many),
        cmocka_unit_test(the_last_is_removed),
        cmocka_unit_test(keys_are_bytes_of_a_length),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
