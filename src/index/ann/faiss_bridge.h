/* The one place where FAISS is: C functions over its C++ ones. */
#ifndef PNB_INDEX_ANN_FAISS_BRIDGE_H
#define PNB_INDEX_ANN_FAISS_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An index on inner products. */
typedef struct pnb__faiss pnb__faiss;

/* What FAISS says when something fails; "out of memory" where that was it. */
typedef struct pnb__faiss_error {
    bool is_memory, is_stopped;
    char text[240];
} pnb__faiss_error;

/* The inner product of two rows of n floats, from any thread. */
typedef double (*pnb__faiss_dot_fn)(size_t n, const void *a, const void *b);

/* Rows x (n, width). All return false with a text in *why. */
typedef struct pnb__faiss_rows {
    const float *x;
    size_t n, width;
    int n_threads;         /* of this thread's calls */
    pnb__faiss_dot_fn dot; /* a graph is made, and walked later, by it; NULL: by FAISS's own */
    /* How many rows are in; false stops it. NULL: nobody asks. */
    bool (*step)(void *user, size_t done, size_t total);
    void *user;
} pnb__faiss_rows;

/* A graph: each row is joined with up to 2 n_links others, looked for among `breadth`. */
bool pnb__faiss_hnsw(pnb__faiss **out, const pnb__faiss_rows *rows, int n_links, int breadth,
                     pnb__faiss_error *why);
/* n_lists cells around means of rows. */
bool pnb__faiss_ivf(pnb__faiss **out, const pnb__faiss_rows *rows, size_t n_lists,
                    pnb__faiss_error *why);
/* Rows as they are, every one of which is looked at; none at first. */
bool pnb__faiss_flat(pnb__faiss **out, size_t width, pnb__faiss_error *why);
/* Adds n rows of the index's width. */
bool pnb__faiss_add(pnb__faiss *index, const float *x, size_t n, pnb__faiss_error *why);
void pnb__faiss_free(pnb__faiss *index); /* NULL is fine */

/* What is asked. */
typedef struct pnb__faiss_query {
    const float *x; /* (n, width) */
    size_t n, k;
    size_t effort;             /* rows that a graph's walk keeps, cells that are looked into */
    const unsigned char *bits; /* row i may come where bit i%8 of bits[i/8] is set; NULL: all may */
    int n_threads;
} pnb__faiss_query;
/* The best of those that are found, id (n, k), -1 for none, and their products. */
bool pnb__faiss_search(const pnb__faiss *index, const pnb__faiss_query *query, int64_t *id,
                       float *product, pnb__faiss_error *why);

/* FAISS's own form of an index: `write` gets it piece by piece and says whether it went on. */
typedef bool (*pnb__faiss_write_fn)(void *user, const void *bytes, size_t n);
bool pnb__faiss_write(const pnb__faiss *index, pnb__faiss_write_fn write, void *user,
                      pnb__faiss_error *why);
/* Bytes of that form, whose origin is known: FAISS trusts them. */
bool pnb__faiss_read(pnb__faiss **out, const void *bytes, size_t n, size_t n_rows, size_t width,
                     pnb__faiss_error *why);
/* From now on a graph is walked by this; cells are not. */
bool pnb__faiss_use_dot(pnb__faiss *index, pnb__faiss_dot_fn dot, pnb__faiss_error *why);

/* "1.7.3" */
const char *pnb__faiss_version(void);

#ifdef __cplusplus
}
#endif
#endif
