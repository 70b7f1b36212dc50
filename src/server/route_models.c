/* GET /v1/models: the one model that is served, in OpenAI's form.
 *
 * What it is stands in "meta", which clients of OpenAI do not look at: width, families, and the
 * hash of the weights, by which stored embeddings are known to belong to it. */
#include "server/routes.h"

static pnb_status run(pnb__server *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    const pnb_encoder *e = s->encoder;
    pnb__buf *b = &r->body;
    (void)q;
    (void)body;
    (void)err;
    pnb__json_put(b,
                  "{\"object\":\"list\",\"data\":[{\"id\":%s,\"object\":\"model\",\"created\":%lld,"
                  "\"owned_by\":\"penumbra\",\"meta\":{\"dim\":%zu,\"weights_sha256\":%s,",
                  s->name, (long long)s->created_s, pnb__encoder_dim(e, PNB_ENCODE_TEXTS),
                  e->weights_sha256);
    pnb__json_put(b, "\"image_family\":%s,\"text_family\":%s,\"context_length\":%zu}}]}\n",
                  pnb_family_name(pnb__encoder_family(e, PNB_ENCODE_IMAGES)),
                  pnb_family_name(pnb__encoder_family(e, PNB_ENCODE_TEXTS)),
                  e->info->text.context_length);
    return PNB_OK;
}

const pnb__route pnb__route_models = {
    .method = "GET",
    .path = "/v1/models",
    .summary = "The model that is served",
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"data\"],\"properties\":{\"object\":"
              "{\"type\":\"string\"},\"data\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
              "}}",
    .is_quick = true,
    .run = run};
