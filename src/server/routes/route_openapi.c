/* GET /openapi.json: the table of routes as OpenAPI 3.1.
 *
 * What stands there is what requests are checked by: fields, kinds, ranges and choices come from
 * the same rows. */
#include <string.h>

#include "server/routes.h"

static void put_answers(const pnb__route *route, pnb__buf *b)
{
    pnb__buf_puts(b, "\"responses\":{\"200\":{\"description\":\"The answer\",\"content\":{");
    if (route->answer != NULL)
        pnb__buf_printf(b, "\"application/json\":{\"schema\":%s}", route->answer);
    else
        pnb__json_put(b, "%s:{\"schema\":{\"type\":\"string\"}}",
                      route->content != NULL ? route->content : "text/plain");
    pnb__buf_puts(b, "}},\"default\":{\"description\":\"What was wrong\",\"content\":{"
                     "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/error\"}}}"
                     "}}");
}

/* {words} of the path. */
static void put_words(const pnb__route *route, pnb__buf *b)
{
    const char *at = strchr(route->path, '{');
    if (at == NULL)
        return;
    pnb__buf_puts(b, "\"parameters\":[");
    for (bool is_first = true; at != NULL; at = strchr(at + 1, '{'), is_first = false)
        pnb__buf_printf(b,
                        "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":"
                        "{\"type\":\"string\"}}",
                        is_first ? "" : ",", (int)strcspn(at + 1, "}"), at + 1);
    pnb__buf_puts(b, "],");
}

static void put_route(const pnb__route *route, pnb__buf *b)
{
    pnb__buf_puts(b, strcmp(route->method, "GET") == 0 ? "\"get\":{" : "\"post\":{");
    pnb__json_put(b, "\"summary\":%s,", route->summary);
    if (route->is_open)
        pnb__buf_puts(b, "\"security\":[],");
    put_words(route, b);
    if (route->n_fields > 0) {
        pnb__buf_puts(b, "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                         "\"schema\":");
        pnb__fields_schema(route->fields, route->n_fields, b);
        pnb__buf_puts(b, "}}},");
    }
    put_answers(route, b);
    pnb__buf_putc(b, '}');
}

/* All methods of one path, at the first route that has it. */
static void put_path(size_t first, pnb__buf *b)
{
    const char *path = pnb__routes[first]->path;
    for (size_t i = 0; i < first; i++)
        if (strcmp(pnb__routes[i]->path, path) == 0)
            return;
    pnb__json_put(b, first > 0 ? ",%s:{" : "%s:{", path);
    for (size_t i = first; i < pnb__n_routes; i++) {
        if (strcmp(pnb__routes[i]->path, path) != 0)
            continue;
        pnb__buf_puts(b, i > first ? "," : "");
        put_route(pnb__routes[i], b);
    }
    pnb__buf_putc(b, '}');
}

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    pnb__buf *b = &r->body;
    (void)s;
    (void)q;
    (void)body;
    (void)err;
    pnb__json_put(b,
                  "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Penumbra\",\"version\":%s},"
                  "\"security\":[{\"key\":[]}],\"paths\":{",
                  pnb_version());
    for (size_t i = 0; i < pnb__n_routes; i++)
        put_path(i, b);
    pnb__buf_puts(
        b, "},\"components\":{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":"
           "\"bearer\"}},\"schemas\":{\"error\":{\"type\":\"object\",\"required\":[\"error\"],"
           "\"properties\":{\"error\":{\"type\":\"object\",\"required\":[\"code\",\"message\","
           "\"type\"],\"properties\":{\"code\":{\"type\":\"integer\"},\"message\":{\"type\":"
           "\"string\"},\"type\":{\"type\":\"string\"}}}}}}}}\n");
    return PNB_OK;
}

const pnb__route pnb__route_openapi = {.method = "GET",
                                       .path = "/openapi.json",
                                       .summary = "This description",
                                       .answer = "{\"type\":\"object\",\"required\":[\"openapi\","
                                                 "\"info\",\"paths\"]}",
                                       .is_quick = true,
                                       .run = run};
