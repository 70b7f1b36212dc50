/* POST /v1/embeddings: captions and pictures to embeddings, in OpenAI's form.
 *
 * A stock client works unchanged. `return_uncertainty` adds what it has never heard of to each
 * item: the scalar, and the arrays of the family beside the mean. */
#include <string.h>

#include "server/batching/encoding.h"
#include "server/routes.h"
#include "server/set_json.h"
#include "sets/settle.h"

#define INPUT_SCHEMA                                                                               \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"},{\"type\":\"array\",\"items\":"       \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}}]}"

static const pnb__field fields[] = {
    PNB__VALUE("input", ANY,
               "A caption, a picture as data:image/...;base64, string, {\"image\": ...}, a part of "
               "a chat, or an array of them",
               .schema = INPUT_SCHEMA),
    PNB__VALUE("messages", LIST,
               "In place of input: messages of a chat, each part of which is an input",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"),
    PNB__VALUE("model", TEXT, "Name of the model, which must be the one that is served"),
    PNB__VALUE("encoding_format", TEXT, "Numbers, or base64 of little-endian f32",
               .choices = "float|base64"),
    PNB__VALUE("dimensions", INT, "The model's own width, no other"),
    PNB__VALUE("user", TEXT, "Not looked at"),
    PNB__VALUE("return_uncertainty", FLAG,
               "Adds uncertainty, and log_var or what else the family has beside the mean"),
};

static pnb_status check_dimensions(const pnb__served *s, const json_t *body, pnb_error *err)
{
    size_t dim = pnb__encoder_dim(s->encoder, PNB_ENCODE_TEXTS);
    size_t wanted = pnb__field_size(body, "dimensions", dim);
    if (wanted == dim)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "'dimensions' is %zu: embeddings of %s have %zu, and the first few of them "
                     "are no embedding, as the model was not trained for that",
                     wanted, s->server->name, dim);
}

static pnb_status read_inputs(const json_t *body, pnb__inputs *in, pnb_error *err)
{
    const json_t *input = pnb__field_of(body, "input"), *messages = pnb__field_of(body, "messages");
    if ((input == NULL) == (messages == NULL))
        return pnb__fail(err, PNB_FORMAT, "one of 'input' and 'messages' is wanted");
    return input != NULL ? pnb__inputs_read(in, input, "input", err)
                         : pnb__inputs_read_messages(in, messages, err);
}

static pnb_status find_uncertainty(const pnb__served *s, const pnb_embeddings *set, double **u,
                                   pnb_error *err)
{
    if (set == NULL)
        return PNB_OK;
    if (set->family == PNB_POINT)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s gives points without uncertainty; ask without return_uncertainty",
                         s->server->name);
    return pnb__row_uncertainty(set, PNB__UNCERTAINTY_AUTO, u, err);
}

static void put_reply(const pnb__served *s, const pnb__inputs *in, const pnb__encoded *e,
                      double *const u[2], bool base64, pnb__buf *b)
{
    pnb__buf_puts(b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < in->n; i++) {
        bool is_image = in->items[i].is_image;
        const pnb_embeddings *set = is_image ? e->images : e->texts;
        size_t row = e->row[i];
        pnb__buf_printf(
            b, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i > 0 ? "," : "", i);
        pnb__floats_put(b, set->mean + row * set->dim, set->dim, base64);
        if (u[is_image] != NULL) {
            pnb__json_put(b, ",\"uncertainty\":%f", u[is_image][row]);
            pnb__row_parameters_put(b, set, row, base64);
        }
        pnb__buf_putc(b, '}');
    }
    pnb__json_put(b, "],\"model\":%s,\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}\n",
                  s->server->name, e->n_tokens, e->n_tokens);
}

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    pnb__inputs in = {0};
    pnb__encoded e = {0};
    double *u[2] = {NULL, NULL};
    bool base64 = strcmp(pnb__field_text(body, "encoding_format", "float"), "base64") == 0;
    pnb_status status;
    PNB_TRY(pnb__server_check_model(s, body, err));
    PNB_TRY(check_dimensions(s, body, err));
    PNB_TRY(read_inputs(body, &in, err));
    PNB_TRY(pnb__server_encode(s, q, &in, &e, err));
    if (pnb__field_flag(body, "return_uncertainty", false)) {
        PNB_TRY(find_uncertainty(s, e.texts, &u[0], err));
        PNB_TRY(find_uncertainty(s, e.images, &u[1], err));
    }
    put_reply(s, &in, &e, u, base64, &r->body);
done:
    pnb__free(u[0]);
    pnb__free(u[1]);
    pnb__encoded_reset(&e);
    pnb__inputs_reset(&in);
    return status;
}

const pnb__route pnb__route_embeddings = {
    .method = "POST",
    .path = "/v1/embeddings",
    .summary = "Captions and pictures to embeddings, in OpenAI's form",
    PNB__FIELDS(fields),
    .answer =
        "{\"type\":\"object\",\"required\":[\"object\",\"data\",\"model\",\"usage\"],"
        "\"properties\":{\"object\":{\"type\":\"string\"},\"data\":{\"type\":\"array\",\"items\":"
        "{\"type\":\"object\",\"required\":[\"object\",\"index\",\"embedding\"]}},\"model\":"
        "{\"type\":\"string\"},\"usage\":{\"type\":\"object\"}}}",
    .run = run};
