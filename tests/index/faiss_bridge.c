/* A graph whose walk keeps more rows finds more: the effort of one search is its own. Graphs are
 * made and walked by the product that is given, also after they were read. */
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

static size_t n_products;

static double count_dot(size_t n, const void *a, const void *b)
{
    const float *x = a, *y = b;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    n_products++;
    return sum;
}

typedef struct file_bytes {
    char *bytes;
    size_t n;
} file_bytes;

static bool collect(void *user, const void *bytes, size_t n)
{
    file_bytes *file = user;
    file->bytes = realloc(file->bytes, file->n + n + 1);
    if (file->bytes == NULL)
        return false;
    memcpy(file->bytes + file->n, bytes, n);
    file->n += n;
    return true;
}

/* Products of one search. */
static size_t products_of_search(const pnb__faiss *graph, const float *x, int64_t *id)
{
    float product;
    pnb__faiss_error why;
    pnb__faiss_query query = {.x = x, .n = 1, .k = 1, .effort = 16, .n_threads = 1};
    n_products = 0;
    assert_true(pnb__faiss_search(graph, &query, id, &product, &why));
    return n_products;
}

static void products(void **state)
{
    (void)state;
    float *x = malloc(N * DIM * sizeof *x);
    file_bytes file = {0};
    int64_t id, again;
    pnb__rng rng;
    pnb__faiss *graph = NULL, *read = NULL;
    pnb__faiss_error why;
    pnb__rng_init(&rng, 9, 0);
    for (size_t i = 0; i < N * DIM; i++)
        x[i] = (float)pnb__rng_normal(&rng);
    pnb__faiss_rows rows = {.x = x, .n = N, .width = DIM, .n_threads = 1, .dot = count_dot};
    n_products = 0;
    assert_true(pnb__faiss_hnsw(&graph, &rows, 4, 8, &why));
    assert_true(n_products > N); /* none is left to FAISS */
    size_t n_walked = products_of_search(graph, x, &id);
    assert_true(n_walked > 16);
    assert_true(pnb__faiss_write(graph, collect, &file, &why));
    assert_true(pnb__faiss_read(&read, file.bytes, file.n, N, DIM, &why));
    assert_int_equal(products_of_search(read, x, &again), 0); /* FAISS's own */
    assert_true(again == id);
    assert_true(pnb__faiss_use_dot(read, count_dot, &why));
    assert_int_equal(products_of_search(read, x, &again), n_walked);
    assert_true(again == id);
    assert_true(pnb__faiss_use_dot(read, NULL, &why));
    assert_int_equal(products_of_search(read, x, &again), 0);
    assert_true(again == id);
    pnb__faiss_free(read);
    pnb__faiss_free(graph);
    free(file.bytes);
    free(x);
}

int main(void)
{
    if (pnb__faiss_version() == NULL)
        return without_faiss();
    const struct CMUnitTest tests[] = {cmocka_unit_test(effort), cmocka_unit_test(products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
