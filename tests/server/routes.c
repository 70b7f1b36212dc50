/* The description of the routes against what they do with requests of every wrong form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/server/ask.h"

static pnb__server s;

static int start(void **state)
{
    (void)state;
    assert_int_equal(pnb__server_init(&s, pnb__n_routes, NULL), PNB_OK);
    snprintf(s.name, sizeof s.name, "served");
    pnb__server_open(&s);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pnb__server_reset(&s);
    return 0;
}

/* The operation of a route in /openapi.json. */
static json_t *describe(const pnb__route *route, json_t **all)
{
    pnb__http_reply r = {0};
    assert_int_equal(ask(&s, "GET", "/openapi.json", NULL, &r), 200);
    assert_int_equal(pnb__json_load_bytes(all, r.body.data, r.body.size, "openapi", NULL), PNB_OK);
    pnb__http_reply_reset(&r);
    json_t *path = json_object_get(json_object_get(*all, "paths"), route->path);
    return json_object_get(path, strcmp(route->method, "GET") == 0 ? "get" : "post");
}

static size_t n_paths(void)
{
    size_t n = 0;
    for (size_t i = 0; i < pnb__n_routes; i++) {
        size_t k = 0;
        while (strcmp(pnb__routes[k]->path, pnb__routes[i]->path) != 0)
            k++;
        n += k == i;
    }
    return n;
}

static void paths_with_words(void **state)
{
    static const pnb__route route = {.path = "/v1/of/{name}/rows/{row}"};
    static const char *const wrong[] = {"",
                                        "/",
                                        "/v1/of",
                                        "/v1/of/a/rows",
                                        "/v1/of/a/rows/",
                                        "/v1/of//rows/3",
                                        "/v1/of/a/rows/3/",
                                        "/v1/of/a/rows/3/4",
                                        "/v1/off/a/rows/3",
                                        "v1/of/a/rows/3"};
    char word[8] = "";
    (void)state;
    assert_true(pnb__route_takes(&route, "/v1/of/a b/rows/31"));
    for (size_t i = 0; i < PNB_COUNT(wrong); i++)
        assert_false(pnb__route_takes(&route, wrong[i]));
    assert_true(pnb__route_word(&route, "/v1/of/a b/rows/31", "name", word, sizeof word));
    assert_string_equal(word, "a b");
    assert_true(pnb__route_word(&route, "/v1/of/a b/rows/31", "row", word, sizeof word));
    assert_string_equal(word, "31");
    assert_true(pnb__route_word(&route, "/v1/of/1234567/rows/31", "name", word, sizeof word));
    assert_false(pnb__route_word(&route, "/v1/of/12345678/rows/31", "name", word, sizeof word));
    assert_false(pnb__route_word(&route, "/v1/of/a/rows/31", "ro", word, sizeof word));
    for (size_t i = 0; i < pnb__n_routes; i++)
        assert_true(pnb__route_takes(pnb__routes[i], pnb__routes[i]->path));
}

static void every_route_is_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < pnb__n_routes; i++) {
        const pnb__route *route = pnb__routes[i];
        json_t *all = NULL, *operation = describe(route, &all), *answer = NULL;
        assert_true(json_is_object(operation));
        assert_string_equal(json_string_value(json_object_get(operation, "summary")),
                            route->summary);
        assert_int_equal(json_object_get(operation, "requestBody") != NULL, route->n_fields > 0);
        assert_int_equal(json_object_size(json_object_get(all, "paths")), n_paths());
        size_t n_words = 0;
        for (const char *at = route->path; (at = strchr(at, '{')) != NULL; at++)
            n_words++;
        assert_int_equal(json_array_size(json_object_get(operation, "parameters")), n_words);
        if (route->answer != NULL) /* what is said of the answer is JSON */
            assert_int_equal(pnb__json_load_bytes(&answer, route->answer, strlen(route->answer),
                                                  route->path, NULL),
                             PNB_OK);
        json_decref(answer);
        json_decref(all);
    }
}

static void refuses(const pnb__route *route, const char *body, const char *says)
{
    pnb__http_reply r = {0};
    int status = ask(&s, "POST", route->path, body, &r);
    if (status != 400 || strstr(r.body.data, says) == NULL)
        fail_msg("%s with %s: %d %s, wanted is '%s'", route->path, body, status, r.body.data, says);
    pnb__http_reply_reset(&r);
}

/* A value that is not of the type described. */
static const char *wrong_value(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (type == NULL)
        return NULL; /* of several kinds: the route looks at it itself */
    return strcmp(type, "string") == 0 ? "7" : "\"seven\"";
}

static void fields_are_what_is_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < pnb__n_routes; i++) {
        const pnb__route *route = pnb__routes[i];
        json_t *all = NULL, *operation = describe(route, &all), *schema;
        const char *name;
        char body[256], says[128];
        json_t *object = json_object_get(operation, "requestBody");
        if (object != NULL) {
            object = json_object_get(json_object_get(object, "content"), "application/json");
            json_t *properties = json_object_get(json_object_get(object, "schema"), "properties");
            assert_int_equal(json_object_size(properties), route->n_fields);
            json_object_foreach(properties, name, schema)
            {
                const char *wrong = wrong_value(schema);
                const json_t *most = json_object_get(schema, "maximum");
                snprintf(says, sizeof says, "'%s' is", name);
                snprintf(body, sizeof body, "{\"%s\":%s}", name, wrong != NULL ? wrong : "1");
                if (wrong != NULL)
                    refuses(route, body, says);
                snprintf(body, sizeof body, "{\"%s\":%.0f}", name, json_number_value(most) + 1);
                if (most != NULL)
                    refuses(route, body, says);
                snprintf(body, sizeof body, "{\"%s\":\"no such word\"}", name);
                if (json_object_get(schema, "enum") != NULL)
                    refuses(route, body, says);
            }
            const json_t *required = json_object_get(json_object_get(object, "schema"), "required");
            for (size_t k = 0; k < json_array_size(required); k++) {
                snprintf(says, sizeof says, "'%s' is missing",
                         json_string_value(json_array_get(required, k)));
                if (k == 0) /* the first that is missing is named */
                    refuses(route, "{}", says);
            }
            refuses(route, "{\"zzz\":1}", "unknown key");
            refuses(route, "[]", "object");
            refuses(route, "{\"a\":", "the request");
        }
        json_decref(all);
    }
}

static void only_the_model_that_is_served(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    json_t *body = json_pack("{s:s}", "model", "served");
    (void)state;
    assert_int_equal(pnb__server_check_model(s.now, body, &err), PNB_OK);
    json_object_set_new(body, "model", json_string("other"));
    assert_int_equal(pnb__server_check_model(s.now, body, &err), PNB_NOT_FOUND);
    json_object_set_new(body, "model", json_null());
    assert_int_equal(pnb__server_check_model(s.now, body, NULL), PNB_OK);
    json_decref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths_with_words),
                                       cmocka_unit_test(every_route_is_described),
                                       cmocka_unit_test(fields_are_what_is_described),
                                       cmocka_unit_test(only_the_model_that_is_served)};
    return cmocka_run_group_tests(tests, start, end);
}
