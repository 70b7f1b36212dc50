/* What the server counts, and how it is read: Prometheus's text. */
#ifndef PNB_SERVER_METRICS_H
#define PNB_SERVER_METRICS_H

#include <pthread.h>

#include "base/base.h"

/* X(NAME, text, sentence): stages of a request whose seconds are counted, the split that
 * clip-retrieval has. */
#define PNB__STAGE_LIST(X)                                                                         \
    X(TEXT_PREPRO, "text_prepro", "captions to tokens")                                            \
    X(IMAGE_PREPRO, "image_prepro", "pictures decoded and resized")                                \
    X(QUEUE, "queue", "waiting for a batch")                                                       \
    X(TEXT_INFERENCE, "text_inference", "a batch of captions through the model")                   \
    X(IMAGE_INFERENCE, "image_inference", "a batch of pictures through the model")                 \
    X(SEARCH, "search", "looking through a collection")                                            \
    X(METADATA, "metadata", "names and fields of what was found")

typedef enum pnb__stage {
#define PNB__STAGE_ENUM(NAME, text, sentence) PNB__STAGE_##NAME,
    PNB__STAGE_LIST(PNB__STAGE_ENUM)
#undef PNB__STAGE_ENUM
        PNB__N_STAGES
} pnb__stage;

enum { PNB__N_SECOND_BUCKETS = 14, PNB__N_SIZE_BUCKETS = 9, PNB__N_CODES = 20 };

typedef struct pnb__histogram_seconds {
    uint64_t n[PNB__N_SECOND_BUCKETS]; /* not cumulated */
    uint64_t count;
    double sum;
} pnb__histogram_seconds;

/* Of one route; the last is of requests that no route takes. */
typedef struct pnb__route_counts {
    uint64_t by_code[PNB__N_CODES];
    pnb__histogram_seconds seconds;
} pnb__route_counts;

/* Every count since the start; any thread may add. */
typedef struct pnb__metrics {
    pthread_mutex_t lock;
    pnb__route_counts *routes; /* [n_routes + 1] */
    size_t n_routes;
    pnb__histogram_seconds stages[PNB__N_STAGES];
    uint64_t batch_n[PNB__N_SIZE_BUCKETS], n_batches, n_batched; /* sizes of batches */
    uint64_t n_texts, n_images, n_tokens;
    uint64_t n_refused_full, n_refused_rate, n_refused_key, n_refused_site, n_gone, n_slow;
    uint64_t n_reloads, n_reloads_failed;
    int64_t n_connections, n_waiting, n_working; /* now */
    double start_s;
} pnb__metrics;

/* Errors  NOMEM */
pnb_status pnb__metrics_init(pnb__metrics *m, size_t n_routes, pnb_error *err);
void pnb__metrics_reset(pnb__metrics *m);

/* A request of a route was answered; `route` n_routes: none took it. */
void pnb__metrics_answered(pnb__metrics *m, size_t route, int code, double seconds);
void pnb__metrics_stage(pnb__metrics *m, pnb__stage stage, double seconds);
void pnb__metrics_batch(pnb__metrics *m, bool is_text, size_t n);
/* Adds to one of the numbers above. */
void pnb__metrics_add(pnb__metrics *m, uint64_t *counter, uint64_t n);
/* Requests that are worked on at the moment. */
size_t pnb__metrics_working(pnb__metrics *m);
void pnb__metrics_move(pnb__metrics *m, int64_t *gauge, int64_t by);

/* Appends all of it; names[n_routes] are the values of the label "route". */
void pnb__metrics_write(pnb__metrics *m, const char *const *names, const char *model, pnb__buf *b);

#endif
