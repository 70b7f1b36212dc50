/* A graph whose walk keeps more rows finds more: the effort of one search is its own. */
#include "tests/index/heaps.h"

/* Queries whose nearest row a graph finds, of those that looking at all finds. */
static size_t count_found(const pnb__faiss *graph, const pnb__faiss *flat, const float *x, size_t n,
                          size_t effort)
{
    int64_t *id = malloc(2 * n * sizeof *id);
    float *product = malloc(n * sizeof *product);
    pnb__faiss_error why;
    pnb__faiss_query query = {.x = x, .n = n, .k = 1, .effort = effort, .n_threads = 1};
    size_t n_found = 0;
    assert_true(pnb__faiss_search(graph, &query, id, product, &why));
    assert_true(pnb__faiss_search(flat, &query, id + n, product, &why));
    for (size_t q = 0; q < n; q++)
        n_found += id[q] == id[n + q];
    free(product);
    free(id);
    return n_found;
}

static bool stop_at_once(void *user, size_t done, size_t total)
{
    (void)user, (void)done, (void)total;
    return false;
}

static void effort(void **state)
{
    (void)state;
    enum { ASKED = 300 };
    float *x = malloc((N + ASKED) * DIM * sizeof *x);
    pnb__rng rng;
    pnb__faiss *graph = NULL, *flat = NULL;
    pnb__faiss_error why;
    pnb__rng_init(&rng, 8, 0);
    for (size_t i = 0; i < (N + ASKED) * DIM; i++)
        x[i] = (float)pnb__rng_normal(&rng);
    pnb__faiss_rows rows = {.x = x, .n = N, .width = DIM, .n_threads = 1};
    assert_true(pnb__faiss_hnsw(&graph, &rows, 4, 8, &why)); /* as poor as can be */
    assert_true(pnb__faiss_flat(&flat, DIM, &why));
    assert_true(pnb__faiss_add(flat, x, N, &why));
    size_t few = count_found(graph, flat, x + N * DIM, ASKED, 1);
    size_t many = count_found(graph, flat, x + N * DIM, ASKED, N);
    assert_true(few < many && (double)many > 0.95 * ASKED);
    pnb__faiss_free(graph);
    pnb__faiss_free(flat);
    rows.step = stop_at_once;
    assert_false(pnb__faiss_hnsw(&graph, &rows, 4, 8, &why));
    assert_true(why.is_stopped && !why.is_memory);
    free(x);
}

int main(void)
{
    if (pnb__faiss_version() == NULL)
        return without_faiss();
    const struct CMUnitTest tests[] = {cmocka_unit_test(effort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
