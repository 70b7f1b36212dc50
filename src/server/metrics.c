/* Counters under one lock, written as Prometheus reads them: HELP and TYPE, then a line a value.
 *
 * A lock a request is nothing beside encoding, and one lock makes what is read at once belong
 * together: a histogram's count is the sum of its buckets. */
#include "server/metrics.h"

#include <string.h>

#include "base/names.h"
#include "io/json/json.h"

static const double second_limits[PNB__N_SECOND_BUCKETS - 1] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
static const int codes[PNB__N_CODES] = {200, 204, 400, 401, 403, 404, 405, 408, 409,
                                        413, 415, 429, 431, 499, 500, 501, 503};

pnb_status pnb__metrics_init(pnb__metrics *m, size_t n_routes, pnb_error *err)
{
    *m = (pnb__metrics){.n_routes = n_routes, .start_s = pnb__now_s()};
    pthread_mutex_init(&m->lock, NULL);
    return PNB_ALLOC_ZERO(m->routes, n_routes + 1, err);
}

void pnb__metrics_reset(pnb__metrics *m)
{
    pnb__free(m->routes);
    pthread_mutex_destroy(&m->lock);
    *m = (pnb__metrics){0};
}

/* ---- counting ---- */

static void observe(pnb__histogram_seconds *h, double seconds)
{
    size_t i = 0;
    while (i < PNB_COUNT(second_limits) && seconds > second_limits[i])
        i++;
    h->n[i]++;
    h->count++;
    h->sum += seconds;
}

/* The place of a code; the last one is for any other. */
static size_t place_of(int code)
{
    size_t i = 0;
    while (i < PNB__N_CODES - 1 && codes[i] != code)
        i++;
    return i;
}

void pnb__metrics_answered(pnb__metrics *m, size_t route, int code, double seconds)
{
    pthread_mutex_lock(&m->lock);
    pnb__route_counts *r = &m->routes[PNB_MIN(route, m->n_routes)];
    r->by_code[place_of(code)]++;
    observe(&r->seconds, seconds);
    pthread_mutex_unlock(&m->lock);
}

void pnb__metrics_stage(pnb__metrics *m, pnb__stage stage, double seconds)
{
    pthread_mutex_lock(&m->lock);
    observe(&m->stages[stage], seconds);
    pthread_mutex_unlock(&m->lock);
}

void pnb__metrics_batch(pnb__metrics *m, bool is_text, size_t n)
{
    size_t i = 0;
    while (i < PNB__N_SIZE_BUCKETS - 1 && n > (size_t)1 << i)
        i++;
    pthread_mutex_lock(&m->lock);
    m->batch_n[i]++;
    m->n_batches++;
    m->n_batched += n;
    *(is_text ? &m->n_texts : &m->n_images) += n;
    pthread_mutex_unlock(&m->lock);
}

void pnb__metrics_add(pnb__metrics *m, uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&m->lock);
    *counter += n;
    pthread_mutex_unlock(&m->lock);
}

size_t pnb__metrics_working(pnb__metrics *m)
{
    pthread_mutex_lock(&m->lock);
    int64_t n = m->n_working;
    pthread_mutex_unlock(&m->lock);
    return n > 0 ? (size_t)n : 0;
}

void pnb__metrics_move(pnb__metrics *m, int64_t *gauge, int64_t by)
{
    pthread_mutex_lock(&m->lock);
    *gauge += by;
    pthread_mutex_unlock(&m->lock);
}

/* ---- writing ---- */

static void head(pnb__buf *b, const char *name, const char *type, const char *help)
{
    pnb__buf_printf(b, "# HELP penumbra_%s %s\n# TYPE penumbra_%s %s\n", name, help, name, type);
}

static void put_int(pnb__buf *b, const char *name, const char *type, const char *help, int64_t n)
{
    head(b, name, type, help);
    pnb__buf_printf(b, "penumbra_%s %lld\n", name, (long long)n);
}

/* `label` is `key="value"`. */
static void put_seconds(pnb__buf *b, const char *name, const char *label,
                        const pnb__histogram_seconds *h)
{
    uint64_t n = 0;
    for (size_t i = 0; i < PNB_COUNT(second_limits); i++) {
        n += h->n[i];
        pnb__buf_printf(b, "penumbra_%s_bucket{%s,le=\"%g\"} %llu\n", name, label, second_limits[i],
                        (unsigned long long)n);
    }
    pnb__buf_printf(b,
                    "penumbra_%s_bucket{%s,le=\"+Inf\"} %llu\npenumbra_%s_sum{%s} %.6f\n"
                    "penumbra_%s_count{%s} %llu\n",
                    name, label, (unsigned long long)h->count, name, label, h->sum, name, label,
                    (unsigned long long)h->count);
}

static void put_routes(const pnb__metrics *m, const char *const *names, pnb__buf *b)
{
    char label[160];
    head(b, "requests_total", "counter", "Requests answered, by route and status.");
    for (size_t i = 0; i <= m->n_routes; i++)
        for (size_t k = 0; k < PNB__N_CODES; k++) {
            const char *name = i < m->n_routes ? names[i] : "none";
            if (m->routes[i].by_code[k] > 0)
                pnb__buf_printf(b, "penumbra_requests_total{route=\"%s\",code=\"%d\"} %llu\n", name,
                                codes[k], (unsigned long long)m->routes[i].by_code[k]);
        }
    head(b, "request_seconds", "histogram", "From the whole request to the reply.");
    for (size_t i = 0; i < m->n_routes; i++) {
        snprintf(label, sizeof label, "route=\"%s\"", names[i]);
        if (m->routes[i].seconds.count > 0)
            put_seconds(b, "request_seconds", label, &m->routes[i].seconds);
    }
}

static void put_stages(const pnb__metrics *m, pnb__buf *b)
{
    char label[80];
    head(b, "stage_seconds", "histogram", "Where the time of requests went.");
    for (unsigned i = 0; i < PNB__N_STAGES; i++) {
        snprintf(label, sizeof label, "stage=\"%s\"",
                 pnb__name_at(PNB_NAMES(PNB__STAGE_LIST), i, ""));
        put_seconds(b, "stage_seconds", label, &m->stages[i]);
    }
}

static void put_batches(const pnb__metrics *m, pnb__buf *b)
{
    uint64_t n = 0;
    head(b, "batch_size", "histogram", "Inputs that were encoded together.");
    for (size_t i = 0; i < PNB__N_SIZE_BUCKETS - 1; i++) {
        n += m->batch_n[i];
        pnb__buf_printf(b, "penumbra_batch_size_bucket{le=\"%zu\"} %llu\n", (size_t)1 << i,
                        (unsigned long long)n);
    }
    pnb__buf_printf(b,
                    "penumbra_batch_size_bucket{le=\"+Inf\"} %llu\npenumbra_batch_size_sum %llu\n"
                    "penumbra_batch_size_count %llu\n",
                    (unsigned long long)m->n_batches, (unsigned long long)m->n_batched,
                    (unsigned long long)m->n_batches);
    head(b, "embeddings_total", "counter", "Inputs encoded.");
    pnb__buf_printf(b,
                    "penumbra_embeddings_total{modality=\"text\"} %llu\n"
                    "penumbra_embeddings_total{modality=\"image\"} %llu\n",
                    (unsigned long long)m->n_texts, (unsigned long long)m->n_images);
    put_int(b, "prompt_tokens_total", "counter", "Tokens of captions encoded.",
            (int64_t)m->n_tokens);
}

static void put_refused(const pnb__metrics *m, pnb__buf *b)
{
    const struct {
        const char *reason;
        uint64_t n;
    } rows[] = {{"queue_full", m->n_refused_full}, {"rate", m->n_refused_rate},
                {"key", m->n_refused_key},         {"site", m->n_refused_site},
                {"client_gone", m->n_gone},        {"client_slow", m->n_slow}};
    head(b, "refused_total", "counter", "Requests that were not worked on, by reason.");
    for (size_t i = 0; i < PNB_COUNT(rows); i++)
        pnb__buf_printf(b, "penumbra_refused_total{reason=\"%s\"} %llu\n", rows[i].reason,
                        (unsigned long long)rows[i].n);
}

void pnb__metrics_write(pnb__metrics *m, const char *const *names, const char *model, pnb__buf *b)
{
    pthread_mutex_lock(&m->lock);
    head(b, "build_info", "gauge", "Version of the program and model served.");
    pnb__buf_printf(b, "penumbra_build_info{version=\"%s\",model=", pnb_version());
    pnb__json_append_string(b, model);
    pnb__buf_puts(b, "} 1\n");
    put_int(b, "uptime_seconds", "gauge", "Seconds since the start.",
            (int64_t)(pnb__now_s() - m->start_s));
    put_int(b, "connections", "gauge", "Open connections.", m->n_connections);
    put_int(b, "requests_waiting", "gauge", "Requests in the queue.", m->n_waiting);
    put_int(b, "requests_processing", "gauge", "Requests being worked on.", m->n_working);
    head(b, "reloads_total", "counter", "Reloads of model and collections, by how they ended.");
    pnb__buf_printf(b,
                    "penumbra_reloads_total{result=\"done\"} %llu\n"
                    "penumbra_reloads_total{result=\"failed\"} %llu\n",
                    (unsigned long long)m->n_reloads, (unsigned long long)m->n_reloads_failed);
    put_refused(m, b);
    put_routes(m, names, b);
    put_batches(m, b);
    put_stages(m, b);
    pthread_mutex_unlock(&m->lock);
}
