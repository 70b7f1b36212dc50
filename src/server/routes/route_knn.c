/* POST /knn-service, GET /indices-list, POST /metadata, as clip-retrieval has them.
 *
 * Its clients go on working: ids are row numbers, replies bare arrays. What its service does beside
 * searching (safety and violence models, aesthetic scores, deduplication) is not done here; those
 * fields are taken and have no effect, but a URL to be fetched is refused. */
#include <string.h>

#include "server/routes.h"
#include "server/searching/search_queries.h"

enum { MAX_K = 10000 };

static const pnb__field knn_fields[] = {
    PNB__VALUE("text", TEXT, "A caption to look for"),
    PNB__VALUE("image", TEXT, "A picture to look for, in base64"),
    PNB__VALUE("image_url", TEXT, "Refused: nothing is fetched"),
    PNB__VALUE("embedding_input", LIST, "An embedding of the model to look for",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"),
    PNB__VALUE("modality", TEXT, "What to look through; image by default, else that of indice_name",
               .choices = "image|text"),
    PNB__VALUE("num_images", INT, "Hits with their fields; 10 by default", .min = 1, .max = MAX_K),
    PNB__VALUE("num_result_ids", INT, "Hits in all; by default num_images", .min = 1, .max = MAX_K),
    PNB__VALUE("indice_name", TEXT, "Name of what to look through"),
    PNB__VALUE("deduplicate", FLAG, "No effect"),
    PNB__VALUE("use_safety_model", FLAG, "No effect"),
    PNB__VALUE("use_violence_detector", FLAG, "No effect"),
    PNB__VALUE("use_mclip", FLAG, "No effect"),
    PNB__VALUE("aesthetic_score", ANY, "No effect", .schema = "{\"type\":[\"number\",\"string\"]}"),
    PNB__VALUE("aesthetic_weight", ANY, "No effect",
               .schema = "{\"type\":[\"number\",\"string\"]}"),
};

static const pnb__field metadata_fields[] = {
    PNB__VALUE("indice_name", TEXT, "Name of what the rows are in"),
    PNB__VALUE("ids", LIST, "Numbers of rows", .required = true,
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"),
};

/* ---- /knn-service ---- */

static pnb_status find_query(pnb__served *s, const pnb__http_request *q, const json_t *body,
                             pnb__query_row *out, pnb_error *err)
{
    const json_t *text = pnb__field_of(body, "text"), *image = pnb__field_of(body, "image");
    const json_t *vector = pnb__field_of(body, "embedding_input");
    if (pnb__field_of(body, "image_url") != NULL)
        return pnb__fail(err, PNB_ARG,
                         "'image_url': nothing is fetched; send the picture in 'image'");
    if ((text != NULL) + (image != NULL) + (vector != NULL) != 1)
        return pnb__fail(err, PNB_FORMAT, "one of 'text', 'image', 'embedding_input' is wanted");
    return vector != NULL ? pnb__query_of_vector(s, vector, NULL, false, out, err)
                          : pnb__query_of_input(s, q, text, image, out, err);
}

static pnb_status put_found(const pnb__gallery *g, const pnb__found *found, size_t n,
                            size_t n_shown, pnb__buf *b, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf_putc(b, '[');
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb__buf fields = {0};
        pnb__buf_puts(b, i > 0 ? "," : "");
        pnb__json_put(b, "{\"id\":%zu,\"similarity\":%f", found[i].row, found[i].score);
        if (i < n_shown)
            status = g->calls->put_fields(g->self, found[i].row, &fields, err);
        /* "id" is the number here; the row's own name goes under "key" */
        if (fields.size > 5)
            pnb__buf_printf(b, ",\"key\":%s", fields.data + strlen("\"id\":"));
        b->failed = b->failed || fields.failed;
        pnb__buf_reset(&fields);
        pnb__buf_putc(b, '}');
    }
    pnb__buf_puts(b, "]\n");
    return status;
}

/* Of both a name and a modality the two must agree: hits of another kind than what was asked for
 * are none. */
static pnb_status find_gallery(const pnb__served *s, const json_t *body, const pnb__gallery **g,
                               pnb_error *err)
{
    const char *name = pnb__field_text(body, "indice_name", NULL);
    const char *modality = pnb__field_text(body, "modality", NULL);
    pnb_status status = pnb__gallery_find(g, s, name, modality != NULL ? modality : "image", err);
    if (status != PNB_OK || modality == NULL || strcmp((*g)->modality, modality) == 0)
        return status;
    return pnb__fail(err, PNB_ARG, "'modality' is %s, and '%s' is of %ss: leave it out, or say %s",
                     modality, (*g)->name, (*g)->modality, (*g)->modality);
}

static pnb_status run_knn(pnb__served *s, const pnb__http_request *q, const json_t *body,
                          pnb__http_reply *r, pnb_error *err)
{
    const pnb__gallery *g = NULL;
    pnb__query_row query = {0};
    pnb__found *found = NULL;
    pnb__gallery_way way;
    size_t n = 0, n_rows = 0, n_shown = pnb__field_size(body, "num_images", 10);
    size_t k = pnb__field_size(body, "num_result_ids", n_shown);
    pnb_status status;
    PNB_TRY(find_gallery(s, body, &g, err));
    PNB_TRY(find_query(s, q, body, &query, err));
    PNB_TRY(g->calls->count(g->self, &n_rows, err)); /* asked once: rows may come meanwhile */
    k = PNB_MIN(k, n_rows);
    PNB_TRY(PNB_ALLOC(found, k + 1, err));
    PNB_TRY(pnb__server_search(s, g, &query, &(pnb__gallery_ask){.k = k}, found, &n, &way, err));
    status = put_found(g, found, n, n_shown, &r->body, err);
done:
    pnb__free(found);
    pnb_embeddings_free(query.set);
    return status;
}

/* ---- /indices-list, /metadata ---- */

static pnb_status run_indices(pnb__served *s, const pnb__http_request *q, const json_t *body,
                              pnb__http_reply *r, pnb_error *err)
{
    (void)q;
    (void)body;
    (void)err;
    pnb__buf_putc(&r->body, '[');
    for (size_t i = 0; i < s->n_galleries; i++) {
        pnb__buf_puts(&r->body, i > 0 ? "," : "");
        pnb__json_append_string(&r->body, s->galleries[i].name);
    }
    pnb__buf_puts(&r->body, "]\n");
    return PNB_OK;
}

static pnb_status put_row(const pnb__gallery *g, const json_t *id, size_t at, pnb__buf *b,
                          pnb_error *err)
{
    json_int_t row = json_integer_value(id);
    size_t n_rows = 0;
    bool has = false;
    pnb_status status;
    if (json_is_integer(id) && row >= 0)
        PNB_TRY(g->calls->has_row(g->self, (size_t)row, &has, err));
    if (!has)
        PNB_TRY(g->calls->count(g->self, &n_rows, err));
    if (!has)
        PNB_TRY(pnb__fail(err, PNB_ARG, "'ids' has at %zu no row of %s, which has %zu", at, g->name,
                          n_rows));
    pnb__json_put(b, "{\"id\":%lld,\"metadata\":{", row);
    status = g->calls->put_fields(g->self, (size_t)row, b, err);
    pnb__buf_puts(b, "}}");
done:
    return status;
}

static pnb_status put_rows(const pnb__gallery *g, const json_t *ids, pnb__buf *b, pnb_error *err)
{
    const json_t *id;
    size_t i;
    pnb__buf_putc(b, '[');
    json_array_foreach(ids, i, id)
    {
        pnb__buf_puts(b, i > 0 ? "," : "");
        pnb_status status = put_row(g, id, i, b, err);
        if (status != PNB_OK)
            return status;
    }
    pnb__buf_puts(b, "]\n");
    return PNB_OK;
}

static pnb_status run_metadata(pnb__served *s, const pnb__http_request *q, const json_t *body,
                               pnb__http_reply *r, pnb_error *err)
{
    const pnb__gallery *g = NULL;
    double begin = pnb__now_s();
    (void)q;
    pnb_status status =
        pnb__gallery_find(&g, s, pnb__field_text(body, "indice_name", NULL), NULL, err);
    if (status == PNB_OK)
        status = put_rows(g, pnb__field_of(body, "ids"), &r->body, err);
    pnb__metrics_stage(&s->server->metrics, PNB__STAGE_METADATA, pnb__now_s() - begin);
    return status;
}

#define OBJECTS(required)                                                                          \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[" required "]}}"

const pnb__route pnb__route_knn_service = {
    .method = "POST",
    .path = "/knn-service",
    .summary = "The nearest rows, as clip-retrieval's service gives them",
    PNB__FIELDS(knn_fields),
    .answer = OBJECTS("\"id\",\"similarity\""),
    .run = run_knn};

const pnb__route pnb__route_indices_list = {
    .method = "GET",
    .path = "/indices-list",
    .summary = "Names of what can be searched, as clip-retrieval's service gives them",
    .answer = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
    .is_quick = true,
    .run = run_indices};

const pnb__route pnb__route_metadata = {
    .method = "POST",
    .path = "/metadata",
    .summary = "Fields of rows by their numbers, as clip-retrieval's service gives them",
    PNB__FIELDS(metadata_fields),
    .answer = OBJECTS("\"id\",\"metadata\""),
    .run = run_metadata};
