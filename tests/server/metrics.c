/* Counters as Prometheus reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/metrics.h"

static void has(const pnb__buf *b, const char *line)
{
    if (strstr(b->data, line) == NULL)
        fail_msg("'%s' is not in\n%s", line, b->data);
}

static void counts_are_written(void **state)
{
    static const char *const names[] = {"/a", "/b"};
    pnb__metrics m;
    pnb__buf b = {0};
    (void)state;
    assert_int_equal(pnb__metrics_init(&m, 2, NULL), PNB_OK);
    pnb__metrics_answered(&m, 0, 200, 0.003);
    pnb__metrics_answered(&m, 0, 200, 0.2);
    pnb__metrics_answered(&m, 0, 400, 100);
    pnb__metrics_answered(&m, 2, 404, 0);
    pnb__metrics_answered(&m, 7, 418, 0); /* no such route, no such code */
    pnb__metrics_stage(&m, PNB__STAGE_SEARCH, 0.5);
    pnb__metrics_batch(&m, true, 1);
    pnb__metrics_batch(&m, false, 3);
    pnb__metrics_batch(&m, true, 100000);
    pnb__metrics_add(&m, &m.n_gone, 2);
    pnb__metrics_move(&m, &m.n_waiting, 5);
    pnb__metrics_move(&m, &m.n_waiting, -2);
    pnb__metrics_write(&m, names, "a \"b\"", &b);
    has(&b, "penumbra_requests_total{route=\"/a\",code=\"200\"} 2\n");
    has(&b, "penumbra_requests_total{route=\"/a\",code=\"400\"} 1\n");
    has(&b, "penumbra_requests_total{route=\"none\",code=\"404\"} 1\n");
    has(&b, "penumbra_request_seconds_bucket{route=\"/a\",le=\"0.0025\"} 0\n");
    has(&b, "penumbra_request_seconds_bucket{route=\"/a\",le=\"0.005\"} 1\n");
    has(&b, "penumbra_request_seconds_bucket{route=\"/a\",le=\"10\"} 2\n");
    has(&b, "penumbra_request_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3\n");
    has(&b, "penumbra_request_seconds_sum{route=\"/a\"} 100.203000\n");
    has(&b, "penumbra_stage_seconds_count{stage=\"search\"} 1\n");
    has(&b, "penumbra_batch_size_bucket{le=\"2\"} 1\n");
    has(&b, "penumbra_batch_size_bucket{le=\"4\"} 2\n");
    has(&b, "penumbra_batch_size_sum 100004\n");
    has(&b, "penumbra_embeddings_total{modality=\"text\"} 100001\n");
    has(&b, "penumbra_refused_total{reason=\"client_gone\"} 2\n");
    has(&b, "penumbra_requests_waiting 3\n");
    has(&b, "model=\"a \\\"b\\\"\"");
    assert_null(strstr(b.data, "route=\"/b\""));
    pnb__buf_reset(&b);
    pnb__metrics_reset(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
