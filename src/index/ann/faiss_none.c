/* A build without FAISS: its version says so, and nothing else is asked, because ann_index.c
 * refuses graphs and cells before it would. Copies of one or two bytes a number need no FAISS and
 * stay as they are. */
#include <stdio.h>

#include "index/ann/faiss_bridge.h"

static bool fail(pnb__faiss_error *why)
{
    why->is_memory = why->is_stopped = false;
    snprintf(why->text, sizeof why->text, "this program was built without it");
    return false;
}

bool pnb__faiss_hnsw(pnb__faiss **out, const pnb__faiss_rows *rows, int n_links, int breadth,
                     pnb__faiss_error *why)
{
    (void)out, (void)rows, (void)n_links, (void)breadth;
    return fail(why);
}

bool pnb__faiss_ivf(pnb__faiss **out, const pnb__faiss_rows *rows, size_t n_lists,
                    pnb__faiss_error *why)
{
    (void)out, (void)rows, (void)n_lists;
    return fail(why);
}

bool pnb__faiss_flat(pnb__faiss **out, size_t width, pnb__faiss_error *why)
{
    (void)out, (void)width;
    return fail(why);
}

bool pnb__faiss_add(pnb__faiss *index, const float *x, size_t n, pnb__faiss_error *why)
{
    (void)index, (void)x, (void)n;
    return fail(why);
}

void pnb__faiss_free(pnb__faiss *index)
{
    (void)index;
}

bool pnb__faiss_search(const pnb__faiss *index, const pnb__faiss_query *query, int64_t *id,
                       float *product, pnb__faiss_error *why)
{
    (void)index, (void)query, (void)id, (void)product;
    return fail(why);
}

bool pnb__faiss_write(const pnb__faiss *index, pnb__faiss_write_fn write, void *user,
                      pnb__faiss_error *why)
{
    (void)index, (void)write, (void)user;
    return fail(why);
}

bool pnb__faiss_read(pnb__faiss **out, const void *bytes, size_t n, size_t n_rows, size_t width,
                     pnb__faiss_error *why)
{
    (void)out, (void)bytes, (void)n, (void)n_rows, (void)width;
    return fail(why);
}

bool pnb__faiss_use_dot(pnb__faiss *index, pnb__faiss_dot_fn dot, pnb__faiss_error *why)
{
    (void)index, (void)dot;
    return fail(why);
}

const char *pnb__faiss_version(void)
{
    return NULL;
}
