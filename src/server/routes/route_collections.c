/* /v1/collections: what is searched, and in collections adding and removing.
 *
 * What is added comes with the request, in the forms of /v1/embeddings; nothing of this machine is
 * read because a request names it. Adding is atomic: all of a request's inputs, or none. */
#include "io/image/data_url.h"
#include "io/image/thumbnail.h"
#include "program/options.h"
#include "server/batching/encoding.h"
#include "server/routes.h"
#include "server/searching/search_queries.h"

/* ---- listing ---- */

static pnb_status put_one(const pnb__gallery *g, pnb__buf *b, pnb_error *err)
{
    size_t n_rows = 0;
    pnb_status status = g->calls->count(g->self, &n_rows, err);
    pnb__json_put(b, "{\"name\":%s,\"modality\":%s,\"n_rows\":%zu,\"can_change\":%i}", g->name,
                  g->modality, n_rows, g->calls->add != NULL);
    return status;
}

static pnb_status run_list(pnb__served *s, const pnb__http_request *q, const json_t *body,
                           pnb__http_reply *r, pnb_error *err)
{
    size_t n = s->n_galleries;
    pnb_status status = PNB_OK;
    (void)q;
    (void)body;
    pnb__json_put(&r->body, "{\"object\":\"list\",\"can_create\":%i,\"data\":[", s->create != NULL);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb__buf_puts(&r->body, i > 0 ? "," : "");
        status = put_one(&s->galleries[i], &r->body, err);
    }
    pnb__buf_puts(&r->body, "]}\n");
    return status;
}

#define ONE_SCHEMA                                                                                 \
    "{\"type\":\"object\",\"required\":[\"name\",\"modality\",\"n_rows\",\"can_change\"]}"

const pnb__route pnb__route_collections = {
    .method = "GET",
    .path = "/v1/collections",
    .summary = "What can be searched",
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"data\",\"can_create\"],"
              "\"properties\":{\"data\":{\"type\":\"array\",\"items\":" ONE_SCHEMA "}}}",
    .run = run_list};

/* ---- making ---- */

static const pnb__field create_fields[] = {
    PNB__VALUE("name", TEXT, "1 to 64 letters, digits, '-', '_' and dots", .required = true),
    PNB__VALUE("modality", TEXT, "What it is of; image by default", .choices = "image|text"),
};

static pnb_status run_create(pnb__served *s, const pnb__http_request *q, const json_t *body,
                             pnb__http_reply *r, pnb_error *err)
{
    const char *name = pnb__field_text(body, "name", "");
    const pnb__gallery *g = NULL;
    (void)q;
    if (s->create == NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "requests may make no collections here: start the server with "
                         "--collection-root");
    pnb_status status = s->create(s, name, pnb__field_text(body, "modality", "image"), err);
    if (status == PNB_OK)
        status = pnb__gallery_find(&g, s, name, NULL, err);
    return status == PNB_OK ? put_one(g, &r->body, err) : status;
}

const pnb__route pnb__route_collection_create = {.method = "POST",
                                                 .path = "/v1/collections",
                                                 .summary = "Makes an empty collection",
                                                 PNB__FIELDS(create_fields),
                                                 .answer = ONE_SCHEMA,
                                                 .run = run_create};

/* ---- adding ---- */

#define TEXTS_SCHEMA "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"

static const pnb__field add_fields[] = {
    PNB__VALUE("input", ANY, "Pictures or captions, as input of /v1/embeddings", .required = true),
    PNB__VALUE("ids", LIST, "Their ids; by default the beginning of the hash of each",
               .schema = TEXTS_SCHEMA),
    PNB__VALUE("captions", LIST, "What to call the pictures", .schema = TEXTS_SCHEMA),
    PNB__VALUE("tags", LIST, "Tags that all of them get", .schema = TEXTS_SCHEMA),
    PNB__VALUE("model", TEXT, "Name of the model, which must be the one that is served"),
};

/* What a request adds. */
typedef struct adding {
    pnb__inputs in;
    pnb__encoded encoded;
    pnb_embeddings *set; /* of the encoded ones; in order of the inputs */
    char (*sha256)[65];
    pnb__buf *images; /* thumbnails */
    pnb_store_thumbnail *thumbnails;
    const char **tags;
} adding;

static void reset(adding *a)
{
    for (size_t i = 0; a->images != NULL && i < a->in.n; i++)
        pnb__buf_reset(&a->images[i]);
    pnb__free(a->images);
    pnb__free(a->thumbnails);
    pnb__free(a->sha256);
    pnb__free(a->tags);
    pnb__encoded_reset(&a->encoded);
    pnb__inputs_reset(&a->in);
}

/* A list of texts that is absent, or as long as there are inputs. */
static pnb_status check_texts(const json_t *body, const char *name, size_t n, pnb_error *err)
{
    const json_t *list = pnb__field_of(body, name), *text;
    size_t i;
    if (list != NULL && n > 0 && json_array_size(list) != n)
        return pnb__fail(err, PNB_FORMAT, "'%s' has %zu texts, 'input' has %zu inputs", name,
                         json_array_size(list), n);
    json_array_foreach(list, i, text) if (!json_is_string(text)) return pnb__fail(
        err, PNB_FORMAT, "'%s' has at %zu %s; wanted is a string", name, i, pnb__json_kind(text));
    return PNB_OK;
}

/* Bytes of a picture's file, or a caption, hashed as the command line does; and its thumbnail. */
static pnb_status look_at(const pnb__served *s, adding *a, size_t i, pnb_error *err)
{
    const pnb__input *input = &a->in.items[i];
    pnb_image_opts opts = pnb_image_opts_default();
    pnb__buf bytes = {0};
    pnb_image image = {0};
    pnb__sha256 hash;
    pnb_status status = PNB_OK;
    pnb__sha256_init(&hash);
    if (!input->is_image) {
        pnb__sha256_update(&hash, input->text, input->n_bytes);
        pnb__sha256_hex(&hash, a->sha256[i]);
        return PNB_OK;
    }
    PNB_TRY(pnb__image_text_read(&bytes, input->text, input->n_bytes, err));
    pnb__sha256_update(&hash, bytes.data, bytes.size);
    pnb__sha256_hex(&hash, a->sha256[i]);
    opts.budget = s->budget;
    opts.exif = true; /* as people hold it; the model sees it as the file has it */
    if (s->encoder->max_image_pixels > 0)
        opts.max_pixels = s->encoder->max_image_pixels;
    PNB_TRY(pnb_image_decode(&image, bytes.data, bytes.size, &opts, err));
    PNB_TRY(pnb__thumbnail_make(&image, &a->images[i], err));
    a->thumbnails[i] = (pnb_store_thumbnail){a->images[i].data, a->images[i].size};
done:
    pnb_image_free(&image);
    pnb__buf_reset(&bytes);
    return status;
}

static pnb_status name_rows(const adding *a, const json_t *body, pnb_error *err)
{
    const json_t *ids = pnb__field_of(body, "ids"), *texts = pnb__field_of(body, "captions");
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < a->in.n && status == PNB_OK; i++) {
        const pnb__input *input = &a->in.items[i];
        const char *text = json_string_value(json_array_get(texts, i));
        status = pnb_embeddings_set_id(a->set, i, json_string_value(json_array_get(ids, i)), err);
        if (status == PNB_OK && (text != NULL || !input->is_image))
            status = pnb_embeddings_set_text(a->set, i, text != NULL ? text : input->text, err);
    }
    return status;
}

static pnb_status prepare(pnb__served *s, const pnb__http_request *q, const json_t *body, adding *a,
                          pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__inputs_read(&a->in, pnb__field_of(body, "input"), "input", err));
    for (size_t i = 1; i < a->in.n; i++)
        if (a->in.items[i].is_image != a->in.items[0].is_image)
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "captions and pictures in one list: add each kind by "
                              "itself"));
    PNB_TRY(check_texts(body, "ids", a->in.n, err));
    PNB_TRY(check_texts(body, "captions", a->in.n, err));
    PNB_TRY(check_texts(body, "tags", 0, err));
    PNB_TRY(PNB_ALLOC(a->sha256, a->in.n, err));
    PNB_TRY(PNB_ALLOC_ZERO(a->images, a->in.n, err));
    PNB_TRY(PNB_ALLOC_ZERO(a->thumbnails, a->in.n, err));
    for (size_t i = 0; i < a->in.n; i++) {
        status = look_at(s, a, i, err);
        if (status != PNB_OK)
            pnb__error_prefix(err, "input %zu", i);
        PNB_TRY(status);
    }
    PNB_TRY(pnb__server_encode(s, q, &a->in, &a->encoded, err));
    a->set = a->encoded.images != NULL ? a->encoded.images : a->encoded.texts;
    status = name_rows(a, body, err);
done:
    return status;
}

static pnb_status find_changeable(const pnb__gallery **g, const pnb__served *s,
                                  const pnb__route *route, const pnb__http_request *q,
                                  pnb_error *err)
{
    char name[256] = "";
    if (!pnb__route_word(route, q->path, "name", name, sizeof name))
        return pnb__fail(err, PNB_NOT_FOUND, "there is no collection of such a name");
    pnb_status status = pnb__gallery_find(g, s, name, NULL, err);
    if (status == PNB_OK && (*g)->calls->add == NULL)
        status = pnb__fail(err, PNB_ARG, "'%s' is an embedding set: it stays as it is", name);
    return status;
}

static pnb_status run_add(pnb__served *s, const pnb__http_request *q, const json_t *body,
                          pnb__http_reply *r, pnb_error *err)
{
    const pnb__gallery *g = NULL;
    adding a = {0};
    pnb_store_added added = {0};
    size_t n_rows = 0;
    const json_t *tags = pnb__field_of(body, "tags");
    pnb_status status;
    PNB_TRY(pnb__server_check_model(s, body, err));
    PNB_TRY(find_changeable(&g, s, &pnb__route_collection_add, q, err));
    PNB_TRY(prepare(s, q, body, &a, err));
    PNB_TRY(PNB_ALLOC(a.tags, json_array_size(tags) + 1, err));
    for (size_t i = 0; i < json_array_size(tags); i++)
        a.tags[i] = json_string_value(json_array_get(tags, i));
    const pnb__gallery_batch batch = {.set = a.set,
                                      .sha256 = (const char(*)[65])a.sha256,
                                      .thumbnails = a.thumbnails,
                                      .tags = a.tags,
                                      .n_tags = json_array_size(tags)};
    PNB_TRY(g->calls->add(g->self, &batch, &added, err));
    PNB_TRY(g->calls->count(g->self, &n_rows, err));
    pnb__json_put(&r->body,
                  "{\"collection\":%s,\"n_added\":%zu,\"n_known\":%zu,\"n_replaced\":%zu,"
                  "\"n_rows\":%zu}\n",
                  g->name, added.n_added, added.n_known, added.n_replaced, n_rows);
done:
    reset(&a);
    return status;
}

const pnb__route pnb__route_collection_add = {
    .method = "POST",
    .path = "/v1/collections/{name}/add",
    .summary = "Embeds pictures or captions and adds what is new of them to a collection",
    PNB__FIELDS(add_fields),
    .answer = "{\"type\":\"object\",\"required\":[\"collection\",\"n_added\",\"n_known\","
              "\"n_replaced\",\"n_rows\"]}",
    .run = run_add};

/* ---- removing ---- */

static const pnb__field remove_fields[] = {
    PNB__VALUE("ids", LIST, "Ids of rows; those that are not there are passed over",
               .required = true, .schema = TEXTS_SCHEMA),
};

static pnb_status run_remove(pnb__served *s, const pnb__http_request *q, const json_t *body,
                             pnb__http_reply *r, pnb_error *err)
{
    const json_t *list = pnb__field_of(body, "ids");
    size_t n = json_array_size(list), n_removed = 0, n_rows = 0;
    const pnb__gallery *g = NULL;
    const char **ids = NULL;
    pnb_status status;
    PNB_TRY(find_changeable(&g, s, &pnb__route_collection_remove, q, err));
    PNB_TRY(check_texts(body, "ids", 0, err));
    PNB_TRY(PNB_ALLOC(ids, n + 1, err));
    for (size_t i = 0; i < n; i++)
        ids[i] = json_string_value(json_array_get(list, i));
    PNB_TRY(g->calls->remove(g->self, ids, n, &n_removed, err));
    PNB_TRY(g->calls->count(g->self, &n_rows, err));
    pnb__json_put(&r->body, "{\"collection\":%s,\"n_removed\":%zu,\"n_rows\":%zu}\n", g->name,
                  n_removed, n_rows);
done:
    pnb__free(ids);
    return status;
}

const pnb__route pnb__route_collection_remove = {
    .method = "POST",
    .path = "/v1/collections/{name}/remove",
    .summary = "Removes rows of a collection, all that are named or none",
    PNB__FIELDS(remove_fields),
    .answer = "{\"type\":\"object\",\"required\":[\"collection\",\"n_removed\",\"n_rows\"]}",
    .run = run_remove};

/* ---- thumbnails ---- */

static pnb_status run_thumbnail(pnb__served *s, const pnb__http_request *q, const json_t *body,
                                pnb__http_reply *r, pnb_error *err)
{
    const pnb__route *route = &pnb__route_thumbnail;
    char name[256] = "", row[24] = "";
    int64_t number = -1;
    const pnb__gallery *g = NULL;
    (void)body;
    bool is_named = pnb__route_word(route, q->path, "name", name, sizeof name) &&
                    pnb__route_word(route, q->path, "row", row, sizeof row) &&
                    pnb__read_int(row, &number) && number >= 0;
    if (!is_named)
        return pnb__fail(err, PNB_NOT_FOUND, "there is no row of such a number");
    pnb_status status = pnb__gallery_find(&g, s, name, NULL, err);
    if (status == PNB_OK && g->calls->thumbnail == NULL)
        status =
            pnb__fail(err, PNB_NOT_FOUND, "'%s' is an embedding set: it has no pictures", name);
    if (status == PNB_OK)
        status = g->calls->thumbnail(g->self, (size_t)number, &r->body, err);
    if (status != PNB_OK)
        return status;
    r->content_type = "image/jpeg";
    r->caching = "private, max-age=86400"; /* a number is never another row's */
    return PNB_OK;
}

const pnb__route pnb__route_thumbnail = {.method = "GET",
                                         .path = "/v1/collections/{name}/thumbnails/{row}",
                                         .summary = "The small picture that is kept with a row",
                                         .content = "image/jpeg",
                                         .run = run_thumbnail};
