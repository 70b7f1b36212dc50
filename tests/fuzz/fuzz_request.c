/* Bodies of requests from strangers: the first byte chooses the route, the rest is its body. No
 * model is behind it: what is well formed ends where it would be encoded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/image/data_url.h"
#include "server/answer.h"
#include "server/batching/inputs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields and inputs as every route reads them. */
static void read_inputs(const pnb__route *route, const char *body, size_t n)
{
    json_t *value = NULL;
    pnb__inputs in = {0};
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__fields_read(&value, route->fields, route->n_fields, body, n, &err) != PNB_OK) {
        if (err.text[0] == '\0')
            abort();
        return;
    }
    for (size_t i = 0; i < route->n_fields; i++) {
        const json_t *field = pnb__field_of(value, route->fields[i].name);
        if (field != NULL && route->fields[i].kind == PNB__VALUE_LIST)
            (void)pnb__inputs_read_messages(&in, field, NULL);
        if (field != NULL && route->fields[i].kind == PNB__VALUE_ANY)
            (void)pnb__inputs_read(&in, field, "fuzz", NULL);
    }
    for (size_t i = 0; i < in.n; i++) {
        pnb__buf bytes = {0};
        if (in.items[i].is_image)
            (void)pnb__image_text_read(&bytes, in.items[i].text, in.items[i].n_bytes, NULL);
        pnb__buf_reset(&bytes);
    }
    pnb__inputs_reset(&in);
    json_decref(value);
}

/* A server that is loading refuses everything but health and the page, in JSON. */
static void ask_whole(const pnb__route *route, const char *body, size_t n)
{
    pnb__server s;
    pnb__http_reply r = {0};
    json_t *reply = NULL;
    const pnb__http_request q = {.method = route->method,
                                 .path = n % 3 == 0 ? body : route->path,
                                 .authorization = body,
                                 .host = body,
                                 .origin = body,
                                 .peer = body,
                                 .body = body,
                                 .n_body = n};
    if (pnb__server_init(&s, pnb__n_routes, NULL) == PNB_OK) {
        s.access.rate = 5;
        pnb__server_answer(&s, &q, &r);
        if (r.status < 200 || r.status > 503 ||
            (r.body.data != NULL && r.content_type == NULL &&
             pnb__json_load_bytes(&reply, r.body.data, r.body.size, "reply", NULL) == PNB_FORMAT))
            abort();
    }
    json_decref(reply);
    pnb__http_reply_reset(&r);
    pnb__server_reset(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const pnb__route *route = pnb__routes[data[0] % pnb__n_routes];
    char *body = malloc(size);
    if (body == NULL)
        return 0;
    memcpy(body, data + 1, size - 1);
    body[size - 1] = '\0'; /* as the body of a request is */
    if (route->n_fields > 0)
        read_inputs(route, body, size - 1);
    ask_whole(route, body, size - 1);
    free(body);
    return 0;
}
