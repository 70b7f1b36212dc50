/* The table of routes: each of a method and path of its own with words and a schema that is JSON;
 * which model a request may name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "io/json/json.h"
#include "server/routes.h"

static void every_route_is_described(void **state)
{
    (void)state;
    assert_true(pnb__n_routes > 0);
    for (size_t i = 0; i < pnb__n_routes; i++) {
        const pnb__route *route = pnb__routes[i];
        assert_true(route->path[0] == '/' && strlen(route->summary) > 10 && route->run != NULL);
        assert_true(strcmp(route->method, "GET") == 0 || strcmp(route->method, "POST") == 0 ||
                    strcmp(route->method, "DELETE") == 0);
        assert_true(route->n_fields == 0 || strcmp(route->method, "GET") != 0);
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(route->path, pnb__routes[k]->path) != 0 ||
                        strcmp(route->method, pnb__routes[k]->method) != 0);
        if (route->answer == NULL)
            continue;
        json_t *schema = NULL;
        pnb__json_load_bytes(&schema, route->answer, strlen(route->answer), route->path, NULL);
        if (!json_is_object(schema))
            fail_msg("%s: the schema of its answer is no JSON object", route->path);
        json_decref(schema);
    }
}

static void only_the_model_that_is_served(void **state)
{
    (void)state;
    pnb__server s = {.name = "small"};
    pnb_error err = PNB_ERROR_INIT;
    json_t *none = json_object(), *same = json_pack("{s:s}", "model", "small");
    json_t *other = json_pack("{s:s}", "model", "large");
    assert_int_equal(pnb__server_check_model(&s, none, &err), PNB_OK);
    assert_int_equal(pnb__server_check_model(&s, same, &err), PNB_OK);
    assert_int_equal(pnb__server_check_model(&s, other, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "'large' is not served here; 'small' is"));
    json_decref(none);
    json_decref(same);
    json_decref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_route_is_described),
                                       cmocka_unit_test(only_the_model_that_is_served)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
