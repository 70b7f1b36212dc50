/* What can be asked: one table, from which requests are dispatched and /openapi.json is made. */
#ifndef PNB_SERVER_ROUTES_H
#define PNB_SERVER_ROUTES_H

#include "server/fields.h"
#include "server/server.h"

typedef struct pnb__route {
    const char *method;
    const char *path;    /* {word} stands for any part without a slash */
    const char *summary; /* one sentence */
    const pnb__field *fields;
    size_t n_fields;     /* 0: it has no body */
    const char *answer;  /* JSON schema of what 200 brings; NULL: something else */
    const char *content; /* the type of that; NULL: text/plain */
    bool is_open;        /* answered without a key and while the model is loading */
    bool is_quick;       /* never waits: answered where it is read */
    /* `body` is checked, NULL where there are no fields. What fails is left in `err`, and is then
     * the reply. */
    pnb_status (*run)(pnb__served *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err);
} pnb__route;

#define PNB__FIELDS(table) .fields = (table), .n_fields = sizeof(table) / sizeof *(table)

/* Whether a path is one of a route's. */
bool pnb__route_takes(const pnb__route *route, const char *path);
/* What stands in a path of a route for {word}; false where it is longer than `size` - 1 bytes. */
bool pnb__route_word(const pnb__route *route, const char *path, const char *word, char *out,
                     size_t size);

/* NOT_FOUND unless the body's "model", where it has one, is the model that is served. */
pnb_status pnb__server_check_model(const pnb__served *s, const json_t *body, pnb_error *err);

/* Every route, in the order in which they are described. */
extern const pnb__route *const pnb__routes[];
extern const size_t pnb__n_routes;

/* X(name): pnb__route_<name> of route_<topic>.c. */
#define PNB__ROUTE_LIST(X)                                                                         \
    X(page)                                                                                        \
    X(embeddings)                                                                                  \
    X(search)                                                                                      \
    X(browse)                                                                                      \
    X(collections)                                                                                 \
    X(collection_create)                                                                           \
    X(collection_add)                                                                              \
    X(collection_remove)                                                                           \
    X(thumbnail)                                                                                   \
    X(classify)                                                                                    \
    X(similarity)                                                                                  \
    X(inclusion)                                                                                   \
    X(models)                                                                                      \
    X(props)                                                                                       \
    X(slots)                                                                                       \
    X(health)                                                                                      \
    X(healthz)                                                                                     \
    X(livez)                                                                                       \
    X(readyz)                                                                                      \
    X(metrics)                                                                                     \
    X(knn_service)                                                                                 \
    X(indices_list)                                                                                \
    X(metadata)                                                                                    \
    X(openapi)

#define PNB__ROUTE_DECLARE(name) extern const pnb__route pnb__route_##name;
PNB__ROUTE_LIST(PNB__ROUTE_DECLARE)
#undef PNB__ROUTE_DECLARE

#endif
