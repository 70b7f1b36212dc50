/* POST /v1/browse: rows of a collection without a query.
 *
 * The most and the least certain, the newest, those that stand alone, and groups that are nearly
 * the same. */
#include <math.h>
#include <string.h>

#include "server/routes.h"
#include "server/searching/browsing.h"
#include "server/searching/search_queries.h"

enum { MAX_K = 1000 };

static const pnb__field fields[] = {
    PNB__VALUE("collection", TEXT, "What to look through; by default the first that is served"),
    PNB__VALUE("by", TEXT, "What stands first; newest by default",
               .choices = "newest|certain|uncertain|outliers|duplicates"),
    PNB__VALUE("k", INT, "Rows at most; 24 by default", .min = 1, .max = MAX_K),
    PNB__VALUE("min_score", REAL, "Cosine at which two rows are duplicates; 0.95 by default",
               .min = -1, .max = 1),
    PNB__VALUE("thumbnails", FLAG, "Says of each row whether it has a thumbnail"),
};

static pnb_status browse(pnb__served *s, const pnb__gallery *g, const json_t *body, const char *by,
                         pnb__browsed *out, pnb_error *err)
{
    size_t k = pnb__field_size(body, "k", 24);
    if (strcmp(by, "outliers") == 0)
        return pnb__browse_outliers(s->server->ctx, g, k, out, err);
    if (strcmp(by, "duplicates") == 0)
        return pnb__browse_duplicates(s->server->ctx, g, pnb__field_real(body, "min_score", 0.95),
                                      k, out, err);
    pnb_store_order order = strcmp(by, "certain") == 0     ? PNB_STORE_CERTAIN
                            : strcmp(by, "uncertain") == 0 ? PNB_STORE_UNCERTAIN
                                                           : PNB_STORE_NEWEST;
    return pnb__browse_order(g, order, k, out, err);
}

static pnb_status put_reply(const pnb__gallery *g, const char *by, const pnb__browsed *found,
                            bool thumbnails, pnb__buf *b, pnb_error *err)
{
    size_t n_rows = 0;
    pnb_status status = g->calls->count(g->self, &n_rows, err);
    pnb__json_put(b, "{\"object\":\"list\",\"collection\":%s,\"by\":%s,\"n_rows\":%zu,", g->name,
                  by, n_rows);
    pnb__buf_printf(b, "\"n_looked\":%zu,\"hits\":[", found->n_looked);
    for (size_t i = 0; i < found->n && status == PNB_OK; i++) {
        pnb__buf_puts(b, i > 0 ? ",{" : "{");
        if (found->group != NULL)
            pnb__buf_printf(b, "\"group\":%zu,", found->group[i]);
        if (!isnan(found->rows[i].score))
            pnb__json_put(b, "\"score\":%f,", found->rows[i].score);
        status = pnb__found_put(g, &found->rows[i], thumbnails, b, err);
        pnb__buf_putc(b, '}');
    }
    pnb__buf_puts(b, "]}\n");
    return status;
}

static pnb_status run(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    const char *by = pnb__field_text(body, "by", "newest");
    const pnb__gallery *g = NULL;
    pnb__browsed found = {0};
    pnb_status status;
    (void)q;
    PNB_TRY(pnb__gallery_find(&g, s, pnb__field_text(body, "collection", NULL), NULL, err));
    PNB_TRY(browse(s, g, body, by, &found, err));
    status = put_reply(g, by, &found, pnb__field_flag(body, "thumbnails", false), &r->body, err);
done:
    pnb__browsed_reset(&found);
    return status;
}

const pnb__route pnb__route_browse = {
    .method = "POST",
    .path = "/v1/browse",
    .summary = "Rows of a collection: newest, most and least certain, outliers, near-duplicates",
    PNB__FIELDS(fields),
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"collection\",\"by\",\"n_rows\","
              "\"n_looked\",\"hits\"],\"properties\":{\"hits\":{\"type\":\"array\",\"items\":"
              "{\"type\":\"object\",\"required\":[\"row\",\"uncertainty\",\"id\"]}}}}",
    .run = run};
