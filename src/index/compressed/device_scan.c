/* Candidates on a device: products of queries with blocks of the copy, and the best columns of
 * them.
 *
 * Scores of a pass lie in one piece of the device's memory, some columns of the gallery at a time:
 * as many as fit it, blocks or parts of one, so that few queries are asked of many rows at once and
 * many of few. The lists of the best go on from one piece to the next (keep_best), and come back to
 * the host once a pass. */
#include "index/compressed/compressed.h"

#include <math.h>
#include <string.h>

#include "index/product_form.h"

enum { PASS_QUERIES = 2048, GROUP = 1024 };

typedef struct scan {
    const pnb__compressed *c;
    const pnb__kernels *k;
    const pnb__among *among;
    size_t most, columns; /* queries of a pass, rows of a piece */
    size_t kept;
    bool rounds;     /* scores are bfloat16 */
    bool is_rounded; /* queries are rounded once a pass, to `work`, and not by each product */
    float *rows;     /* [most][D] on the host, as all up to `only` */
    float *best;
    uint32_t *which;
    /* on the device */
    void *query, *score, *device_best, *device_which, *work, *only;
} scan;

/* ---- memory ---- */

typedef struct piece {
    void **at;
    size_t bytes;
} piece;

enum { PIECES = 6 };

static size_t score_bytes(const scan *s)
{
    return s->rounds ? sizeof(uint16_t) : sizeof(float);
}

static void list_pieces(scan *s, piece out[PIECES])
{
    const pnb__kernels *k = s->k;
    size_t dim = s->c->gallery.dim, lists = s->most * s->kept;
    size_t work =
        s->c->is_bf16 ? k->gemm_bf16_work(s->most, dim, 1) : k->gemm_i8_work(s->most, dim);
    const piece all[PIECES] = {{&s->query, s->most * dim * sizeof(float)},
                               {&s->score, s->most * s->columns * score_bytes(s)},
                               {&s->device_best, lists * sizeof(float)},
                               {&s->device_which, lists * sizeof(uint32_t)},
                               {&s->work, PNB_MAX(work, (size_t)64)},
                               {&s->only, s->among->only != NULL ? s->c->gallery.n : 0}};
    memcpy(out, all, sizeof all);
}

static void release(scan *s)
{
    piece all[PIECES];
    list_pieces(s, all);
    for (size_t i = 0; i < PIECES; i++)
        if (*all[i].at != NULL)
            s->k->mem_free(s->k->ctx, *all[i].at, all[i].bytes);
    pnb__free(s->rows);
    pnb__free(s->best);
    pnb__free(s->which);
}

static pnb_status reserve(scan *s, pnb_error *err)
{
    piece all[PIECES];
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(s->rows, s->most, s->c->gallery.dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(s->best, s->most, s->kept, err));
    PNB_TRY(PNB_ALLOC_ROWS(s->which, s->most, s->kept, err));
    list_pieces(s, all);
    for (size_t i = 0; i < PIECES; i++)
        if (all[i].bytes > 0)
            PNB_TRY(s->k->mem_alloc(s->k->ctx, all[i].at, all[i].bytes, err));
    if (s->only != NULL)
        status = s->k->mem_write(s->k->ctx, s->only, s->among->only, s->c->gallery.n, err);
done:
    return status;
}

/* ---- a pass ---- */

/* Scores of n queries with rows begin .. end - 1: a product for each block that has some of them.
 */
static void multiply(const scan *s, size_t n, size_t begin, size_t end)
{
    const pnb__compressed *c = s->c;
    size_t dim = c->gallery.dim;
    for (size_t at = begin, stop; at < end; at = stop) {
        const pnb__packed *block = &c->blocks[at / c->block];
        stop = PNB_MIN(end, (at / c->block + 1) * c->block);
        const pnb__gemm_args args = {.trans_b = true,
                                     .m = n,
                                     .n = stop - at,
                                     .k = dim,
                                     .lda = dim,
                                     .ldc = s->columns,
                                     .n_batch = 1,
                                     .alpha = 1,
                                     .act = PNB__IDENTITY,
                                     .a = s->is_rounded ? s->work : s->query,
                                     .c = (char *)s->score + (at - begin) * score_bytes(s),
                                     .bias = (const float *)c->device_term + at,
                                     .packed = block,
                                     .packed_first = at % c->block,
                                     .work = s->work,
                                     .a_halves = s->is_rounded,
                                     .c_halves = s->rounds};
        if (c->is_bf16)
            s->k->gemm_bf16(s->k->ctx, &args);
        else
            s->k->gemm_i8(s->k->ctx, &args);
    }
}

static pnb_status read_lists(const scan *s, size_t first, size_t n, pnb_hits *near, pnb_error *err)
{
    const pnb__kernels *k = s->k;
    pnb_status status;
    PNB_TRY(k->mem_read(k->ctx, s->best, s->device_best, n * s->kept * sizeof *s->best, err));
    PNB_TRY(k->mem_read(k->ctx, s->which, s->device_which, n * s->kept * sizeof *s->which, err));
    for (size_t i = 0; i < n * s->kept; i++) {
        bool is_there = s->which[i] != PNB__BEST_NONE;
        near->index[first * s->kept + i] = is_there ? (int64_t)s->which[i] : -1;
        near->score[first * s->kept + i] = is_there ? (double)s->best[i] : -(double)INFINITY;
    }
done:
    return status;
}

static pnb_status scan_pass(const scan *s, size_t first, size_t n, pnb_hits *near, pnb_error *err)
{
    const pnb__compressed *c = s->c;
    size_t dim = c->gallery.dim;
    pnb_status status;
    for (size_t q = 0; q < n; q++)
        pnb__linear_query(s->among->queries, c->opts.measure, first + q, s->rows + q * dim);
    PNB_TRY(s->k->mem_write(s->k->ctx, s->query, s->rows, n * dim * sizeof(float), err));
    if (s->is_rounded)
        s->k->halves_of(s->k->ctx, n * dim, s->query, s->work);
    for (size_t at = 0; at < c->gallery.n; at += s->columns) {
        size_t end = PNB_MIN(at + s->columns, c->gallery.n);
        const pnb__best_args best = {.m = n,
                                     .n = end - at,
                                     .ld = s->columns,
                                     .scores = s->score,
                                     .halves = s->rounds,
                                     .only = s->only != NULL ? (unsigned char *)s->only + at : NULL,
                                     .first = (uint32_t)at,
                                     .kept = s->kept,
                                     .goes_on = at > 0,
                                     .best = s->device_best,
                                     .which = s->device_which};
        multiply(s, n, at, end);
        s->k->keep_best(s->k->ctx, &best);
    }
    status = read_lists(s, first, n, near, err);
done:
    return status;
}

/* Whole blocks, or a part of one that products may begin at. */
static size_t choose_columns(const pnb__compressed *c, size_t n_queries)
{
    size_t columns = c->device_scores / n_queries;
    if (columns >= c->block)
        columns = columns / c->block * c->block;
    else
        while (c->block % (columns = PNB_MAX(columns / GROUP * GROUP, (size_t)GROUP)) != 0)
            columns -= GROUP;
    return PNB_MIN(columns, (c->gallery.n + GROUP - 1) / GROUP * GROUP);
}

pnb_status pnb__compressed_scan_device(const pnb__compressed *c, const pnb__among *among,
                                       bool rounds, pnb_hits *near, pnb_error *err)
{
    size_t n = among->queries->n;
    scan s = {.c = c, .k = &c->kernels, .among = among, .kept = near->k, .rounds = rounds};
    s.is_rounded = c->is_bf16 && c->kernels.halves_gain;
    s.most = PNB_MIN(n, (size_t)PASS_QUERIES);
    s.columns = choose_columns(c, s.most);
    pnb_status status = reserve(&s, err);
    for (size_t first = 0; status == PNB_OK && first < n; first += s.most)
        status = scan_pass(&s, first, PNB_MIN(s.most, n - first), near, err);
    release(&s);
    return status;
}
