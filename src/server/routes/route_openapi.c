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
        pnb__buf_puts(b, "\"text/plain\":{\"schema\":{\"type\":\"string\"}}");
    pnb__buf_puts(b, "}},\"default\":{\"description\":\"What was wrong\",\"content\":{"
                     "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/error\"}}}"
                     "}}");
}

static void put_route(const pnb__route *route, pnb__buf *b)
{
    pnb__json_put(b, "%s:{", route->path);
    pnb__buf_puts(b, strcmp(route->method, "GET") == 0 ? "\"get\":{" : "\"post\":{");
    pnb__json_put(b, "\"summary\":%s,", route->summary);
    if (route->is_open)
        pnb__buf_puts(b, "\"security\":[],");
    if (route->n_fields > 0) {
        pnb__buf_puts(b, "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                         "\"schema\":");
        pnb__fields_schema(route->fields, route->n_fields, b);
        pnb__buf_puts(b, "}}},");
    }
    put_answers(route, b);
    pnb__buf_puts(b, "}}");
}

static pnb_status run(pnb__server *s, const pnb__http_request *q, const json_t *body,
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
    for (size_t i = 0; i < pnb__n_routes; i++) {
        pnb__buf_puts(b, i > 0 ? "," : "");
        put_route(pnb__routes[i], b);
    }
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
