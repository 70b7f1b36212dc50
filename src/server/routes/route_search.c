/* POST /v1/search: the nearest rows of what is served, and whether they are any good.
 *
 * "answer" is "none" where nothing reaches min_probability or stays in the conformal list, and
 * "hint" is "too_vague" where the query's own uncertainty lies above what the captions or pictures
 * that are served have; narrower captions that lie inside the query are suggested then. */
#include <math.h>
#include <string.h>

#include "server/batching/encoding.h"
#include "server/routes.h"
#include "server/searching/plane.h"
#include "server/searching/search_queries.h"
#include "sets/settle.h"

enum { MAX_K = 1000, N_SUGGESTIONS = 5 };

static const pnb__field fields[] = {
    PNB__VALUE("text", TEXT, "A caption to look for"),
    PNB__VALUE("image", ANY, "A picture to look for, as data URL or base64",
               .schema = "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}"),
    PNB__VALUE("id", TEXT, "Id of a row, others like it are looked for"),
    PNB__VALUE("vector", LIST, "An embedding of the model to look for",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"),
    PNB__VALUE("log_var", LIST, "Its log-variances, where it has them",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"),
    PNB__VALUE("vector_modality", TEXT, "What the vector was made of; text by default",
               .choices = "text|image"),
    PNB__VALUE("collection", TEXT, "What to search in; by default the first that is served"),
    PNB__VALUE("k", INT, "Hits at most; 10 by default", .min = 1, .max = MAX_K),
    PNB__VALUE("tags", LIST, "Only rows of a collection that have all of these tags",
               .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"),
    PNB__VALUE("since", INT, "Only rows of inputs no older than this, Unix seconds"),
    PNB__VALUE("until", INT, "Only rows of inputs no newer than this, Unix seconds"),
    PNB__VALUE("min_uncertainty", REAL, "Only rows at least this uncertain"),
    PNB__VALUE("max_uncertainty", REAL, "Only rows at most this uncertain"),
    PNB__VALUE("min_probability", REAL, "The list ends where p(match) falls below", .min = 0,
               .max = 1),
    PNB__VALUE("conformal", REAL,
               "The list holds a match but for this share of queries, by the calibration",
               .min = 1e-6, .max = 0.999999),
    PNB__VALUE("exact", FLAG,
               "Looks at every row, where the server would ask an approximate index (--approx)"),
    PNB__VALUE("related", FLAG,
               "Adds captions that are served: narrower ones lie inside the query, broader ones "
               "around it"),
    PNB__VALUE("plane", FLAG, "Adds where query and hits lie on a flat picture, with ellipses"),
    PNB__VALUE("thumbnails", FLAG, "Says of each hit whether it has a thumbnail"),
    PNB__VALUE("model", TEXT, "Name of the model, which must be the one that is served"),
};

/* ---- the query ---- */

static pnb_status check_one(const json_t *body, pnb_error *err)
{
    static const char *const words[] = {"text", "image", "id", "vector"};
    size_t n = 0;
    for (size_t i = 0; i < PNB_COUNT(words); i++)
        n += pnb__field_of(body, words[i]) != NULL;
    if (n != 1)
        return pnb__fail(err, PNB_FORMAT, "one of 'text', 'image', 'id', 'vector' is wanted");
    if (pnb__field_of(body, "log_var") != NULL && pnb__field_of(body, "vector") == NULL)
        return pnb__fail(err, PNB_FORMAT, "'log_var' is that of a 'vector'");
    return PNB_OK;
}

static pnb_status find_query(pnb__served *s, const pnb__gallery *g, const pnb__http_request *q,
                             const json_t *body, pnb__query_row *out, pnb_error *err)
{
    const json_t *vector = pnb__field_of(body, "vector");
    const char *id = pnb__field_text(body, "id", NULL);
    pnb_status status = check_one(body, err);
    if (status != PNB_OK)
        return status;
    if (vector != NULL)
        return pnb__query_of_vector(
            s, vector, pnb__field_of(body, "log_var"),
            strcmp(pnb__field_text(body, "vector_modality", "text"), "image") == 0, out, err);
    if (id != NULL)
        return pnb__query_of_id(g, id, out, err);
    return pnb__query_of_input(s, q, pnb__field_of(body, "text"), pnb__field_of(body, "image"), out,
                               err);
}

/* ---- which rows ---- */

typedef struct row_filter {
    pnb_store_filter only;
    const char **tags;
    bool is_given;
} row_filter;

static int64_t time_of(const json_t *body, const char *name, int64_t fallback, bool *is_given)
{
    const json_t *value = pnb__field_of(body, name);
    *is_given |= value != NULL;
    return value != NULL ? json_integer_value(value) : fallback;
}

static double bound_of(const json_t *body, const char *name, double fallback, bool *is_given)
{
    *is_given |= pnb__field_of(body, name) != NULL;
    return pnb__field_real(body, name, fallback);
}

/* Texts stay the body's. */
static pnb_status read_filter(const json_t *body, row_filter *f, pnb_error *err)
{
    const json_t *tags = pnb__field_of(body, "tags"), *tag;
    size_t i;
    f->only = pnb_store_filter_default();
    f->only.since = time_of(body, "since", f->only.since, &f->is_given);
    f->only.until = time_of(body, "until", f->only.until, &f->is_given);
    f->only.min_uncertainty =
        bound_of(body, "min_uncertainty", f->only.min_uncertainty, &f->is_given);
    f->only.max_uncertainty =
        bound_of(body, "max_uncertainty", f->only.max_uncertainty, &f->is_given);
    if (tags == NULL)
        return PNB_OK;
    f->is_given = true;
    if (PNB_ALLOC(f->tags, json_array_size(tags) + 1, err) != PNB_OK)
        return PNB_NOMEM;
    json_array_foreach(tags, i, tag)
    {
        if (!json_is_string(tag))
            return pnb__fail(err, PNB_FORMAT, "'tags' has at %zu %s; wanted is a string", i,
                             pnb__json_kind(tag));
        f->tags[i] = json_string_value(tag);
    }
    f->only.tags = f->tags;
    f->only.n_tags = json_array_size(tags);
    return PNB_OK;
}

/* ---- the reply ---- */

static pnb_status put_hits(const pnb__gallery *g, const pnb__found *found, size_t n,
                           bool thumbnails, pnb__buf *b, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf_puts(b, ",\"hits\":[");
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb__buf_puts(b, i > 0 ? "," : "");
        pnb__json_put(b, "{\"rank\":%zu,\"score\":%f,\"p_match\":%f,", i + 1, found[i].score,
                      found[i].p_match);
        status = pnb__found_put(g, &found[i], thumbnails, b, err);
        pnb__buf_putc(b, '}');
    }
    pnb__buf_putc(b, ']');
    return status;
}

/* Captions inside of the query, or around it, as a list under a key. */
static pnb_status put_related(pnb__served *s, const pnb__query_row *query, bool inside,
                              const char *key, pnb__buf *b, pnb_error *err)
{
    const pnb__gallery *g = pnb__gallery_of(s, NULL, "text");
    pnb__found found[N_SUGGESTIONS];
    size_t n = 0;
    pnb_status status = PNB_OK;
    if (g != NULL && g->calls->related != NULL)
        status = g->calls->related(g->self, query->set, inside, N_SUGGESTIONS, found, &n, err);
    pnb__buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb__buf_puts(b, i > 0 ? ",{" : "{");
        status = pnb__found_put(g, &found[i], false, b, err);
        pnb__buf_putc(b, '}');
    }
    pnb__buf_putc(b, ']');
    return status;
}

/* What the query's uncertainty means, told by the rows of its kind; NULL: nothing tells it. */
static const char *words_of(const pnb__spread *spread, double u)
{
    if (isnan(u) || isnan(spread->vague))
        return NULL;
    if (u > spread->vague)
        return "vague: matches many things";
    if (isnan(spread->half))
        return NULL; /* only a limit was given */
    return u > spread->most   ? "broad: matches a wide range of things"
           : u > spread->half ? "ordinary: matches a family of things"
                              : "clear: matches few things";
}

static void put_query(const pnb__served *s, const pnb__query_row *query, double u, pnb__buf *b)
{
    const pnb__spread *spread = &s->spread[query->is_image];
    const char *words = words_of(spread, u);
    pnb__json_put(b, "\"query\":{\"uncertainty\":%f,\"vague_above\":%f,\"words\":", u,
                  spread->vague);
    if (words != NULL)
        pnb__json_append_string(b, words);
    else
        pnb__buf_puts(b, "null");
    pnb__buf_putc(b, '}');
}

static pnb_status put_plane(const pnb__gallery *g, const pnb__query_row *query,
                            const pnb__found *found, size_t n, pnb__buf *b, pnb_error *err)
{
    pnb_embeddings *set = NULL;
    size_t *rows = NULL;
    pnb_status status = PNB_OK;
    if (n < 2)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(rows, n, err));
    for (size_t i = 0; i < n; i++)
        rows[i] = found[i].row;
    PNB_TRY(g->calls->take(g->self, rows, n, &set, err));
    status = pnb__plane_put(query->set, set, b, err);
done:
    pnb_embeddings_free(set);
    pnb__free(rows);
    return status;
}

static pnb_status uncertainty_of(const pnb__query_row *query, double *u, pnb_error *err)
{
    double *all = NULL;
    pnb_status status = pnb__row_uncertainty(query->set, PNB__UNCERTAINTY_AUTO, &all, err);
    *u = status == PNB_OK ? all[0] : NAN;
    pnb__free(all);
    return status;
}

/* The list that stays; *by is what a conformal one was read from. */
static pnb_status limit_list(const pnb__gallery *g, const pnb__query_row *query, const json_t *body,
                             const pnb__found *found, size_t *n, const char **by, pnb_error *err)
{
    double alpha = pnb__field_real(body, "conformal", NAN);
    pnb_status status =
        pnb__cut_found(found, n, pnb__field_real(body, "min_probability", NAN), err);
    if (status != PNB_OK || isnan(alpha))
        return status;
    if (g->calls->conformal == NULL)
        return pnb__fail(err, PNB_ARG, "'conformal': nothing was calibrated here");
    return g->calls->conformal(g->self, query->is_image, alpha, found, *n, n, by, err);
}

static pnb_status put_extras(pnb__served *s, const pnb__gallery *g, const pnb__query_row *query,
                             const json_t *body, const pnb__found *found, size_t n, pnb__buf *b,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (pnb__field_flag(body, "related", false)) {
        PNB_TRY(put_related(s, query, true, "narrower", b, err));
        PNB_TRY(put_related(s, query, false, "broader", b, err));
    }
    if (pnb__field_flag(body, "plane", false))
        status = put_plane(g, query, found, n, b, err);
done:
    return status;
}

static pnb_status put_suggestions(pnb__served *s, const pnb__query_row *query, pnb__buf *b,
                                  pnb_error *err)
{
    pnb__buf_puts(b, ",\"hint\":\"too_vague\"");
    return put_related(s, query, true, "suggestions", b, err);
}

static pnb_status answer(pnb__served *s, const pnb__gallery *g, const pnb__query_row *query,
                         const json_t *body, pnb__buf *b, pnb_error *err)
{
    double u;
    size_t wanted = pnb__field_size(body, "k", 10), n_rows = 0, n = 0;
    const char *by = NULL;
    pnb__gallery_way way;
    pnb__found *found = NULL;
    row_filter f = {0};
    pnb_status status;
    PNB_TRY(g->calls->count(g->self, &n_rows, err)); /* asked once: rows may come meanwhile */
    size_t k = PNB_MIN(wanted, n_rows);
    PNB_TRY(read_filter(body, &f, err));
    PNB_TRY(uncertainty_of(query, &u, err));
    PNB_TRY(PNB_ALLOC(found, k + 1, err));
    const pnb__gallery_ask ask = {k, f.is_given ? &f.only : NULL,
                                  pnb__field_flag(body, "exact", false)};
    PNB_TRY(pnb__server_search(s, g, query, &ask, found, &n, &way, err));
    bool is_full = n == k;
    PNB_TRY(limit_list(g, query, body, found, &n, &by, err));
    pnb__json_put(b, "{\"object\":\"list\",\"model\":%s,\"collection\":%s,\"measure\":%s,",
                  s->server->name, g->name, way.measure);
    if (way.approx != NULL)
        pnb__json_put(b, "\"approx\":{\"index\":%s,\"may_differ\":%i},", way.approx,
                      (int)way.may_differ);
    put_query(s, query, u, b);
    pnb__json_put(b, ",\"answer\":%s", n > 0 ? "found" : "none");
    if (by != NULL) /* a list that k cuts short promises nothing */
        pnb__json_put(b, ",\"conformal\":{\"by\":%s,\"is_whole\":%i}", by, !(is_full && n == k));
    if (u > s->spread[query->is_image].vague)
        PNB_TRY(put_suggestions(s, query, b, err));
    PNB_TRY(put_extras(s, g, query, body, found, n, b, err));
    PNB_TRY(put_hits(g, found, n, pnb__field_flag(body, "thumbnails", false), b, err));
    pnb__buf_puts(b, "}\n");
done:
    pnb__free(found);
    pnb__free(f.tags);
    return status;
}

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    pnb__query_row query = {0};
    const pnb__gallery *g = NULL;
    pnb_status status;
    PNB_TRY(pnb__server_check_model(s, body, err));
    PNB_TRY(pnb__gallery_find(&g, s, pnb__field_text(body, "collection", NULL), NULL, err));
    PNB_TRY(find_query(s, g, q, body, &query, err));
    status = answer(s, g, &query, body, &r->body, err);
done:
    pnb_embeddings_free(query.set);
    return status;
}

const pnb__route pnb__route_search = {
    .method = "POST",
    .path = "/v1/search",
    .summary = "The nearest rows to a caption, picture, row or vector, and whether they are good",
    PNB__FIELDS(fields),
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"model\",\"collection\",\"measure\","
              "\"query\",\"answer\",\"hits\"],\"properties\":{\"answer\":{\"type\":\"string\"},"
              "\"approx\":{\"type\":\"object\",\"required\":[\"index\",\"may_differ\"],"
              "\"properties\":{\"index\":{\"type\":\"string\"},\"may_differ\":{\"type\":"
              "\"boolean\"}}},"
              "\"hits\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"rank\","
              "\"row\",\"score\",\"p_match\",\"uncertainty\",\"id\"]}}}}",
    .run = run};
