/* Rows and pairs that heads are trained on: the order of an epoch, and a batch of it in memory.
 *
 * Pairs are those of the truth, a picture with each of its captions. Where an epoch takes one
 * caption a picture, the caption is drawn anew each epoch. The order is a function of seed and
 * epoch alone, so that a run resumes from its position. Sets stay in their files: what was read of
 * a map is let go of from time to time. */
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"

enum { LET_GO_AFTER = 1 << 28 }; /* bytes of rows */

/* ---- pairs ---- */

static pnb_status count_pairs(pnb__learned_pairs *p, const pnb_truth *t, pnb_error *err)
{
    p->n = t->n_pairs;
    for (size_t i = 0; i < t->n_queries; i++)
        p->n_groups += t->offset[i + 1] > t->offset[i];
    if (t->n_pairs < 2)
        return pnb__fail(err, PNB_ARG,
                         "the truth has %zu pair%s: a method that tells pairs apart needs two at "
                         "least",
                         t->n_pairs, t->n_pairs == 1 ? "" : "s");
    if (t->n_pairs > UINT32_MAX || t->n_queries > UINT32_MAX || t->n_items > UINT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "%zu pairs of %zu images and %zu texts, at most 2^32 - 1",
                         t->n_pairs, t->n_queries, t->n_items);
    return PNB_OK;
}

static void list_pairs(pnb__learned_pairs *p, const pnb_truth *t)
{
    size_t n = 0, group = 0;
    for (size_t i = 0; i < t->n_queries; i++) {
        if (t->offset[i + 1] > t->offset[i])
            p->group[group++] = (uint32_t)n;
        for (size_t k = t->offset[i]; k < t->offset[i + 1]; k++) {
            p->row[PNB_ADAPTER_IMAGES][n] = (uint32_t)i;
            p->row[PNB_ADAPTER_TEXTS][n++] = (uint32_t)t->item[k];
        }
    }
    p->group[group] = (uint32_t)n;
}

pnb_status pnb__learned_pairs_init(pnb__learned_pairs *p, const pnb_embeddings *images,
                                   const pnb_embeddings *texts, const pnb_truth *truth,
                                   pnb_adapt_captions captions, pnb_error *err)
{
    pnb_status status;
    *p = (pnb__learned_pairs){.set = {images, texts}};
    PNB_TRY(count_pairs(p, truth, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(PNB_ALLOC(p->row[s], p->n, err));
    PNB_TRY(PNB_ALLOC(p->group, p->n_groups + 1, err));
    p->n_order = captions == PNB_ADAPT_CAPTIONS_ONE ? p->n_groups : p->n;
    PNB_TRY(PNB_ALLOC(p->order, p->n_order, err));
    list_pairs(p, truth);
    if (p->n_order < 2)
        status = pnb__fail(err, PNB_ARG,
                           "all pairs are of one picture: one of its captions is no batch");
done:
    if (status != PNB_OK)
        pnb__learned_pairs_reset(p);
    return status;
}

void pnb__learned_pairs_reset(pnb__learned_pairs *p)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__free(p->row[s]);
    pnb__free(p->group);
    pnb__free(p->order);
    *p = (pnb__learned_pairs){0};
}

void pnb__learned_pairs_shuffle(pnb__learned_pairs *p, uint64_t seed, uint64_t epoch)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, PNB__STREAM_EPOCH + epoch);
    for (size_t i = 0; i < p->n_order; i++) {
        p->order[i] = (uint32_t)i;
        if (p->n_order < p->n) { /* one of the picture's captions */
            uint32_t n = p->group[i + 1] - p->group[i];
            p->order[i] = p->group[i] + (uint32_t)pnb__rng_below(&rng, n);
        }
    }
    pnb__rng_shuffle(&rng, p->order, p->n_order);
}

/* ---- rows ---- */

void pnb__learned_copy_row(const float *row, size_t dim, bool is_unit, float *out)
{
    double square = 0.0;
    if (!is_unit) {
        memcpy(out, row, dim * sizeof *out);
        return;
    }
    for (size_t d = 0; d < dim; d++)
        square += (double)row[d] * (double)row[d];
    double scale = square > 0.0 ? 1.0 / sqrt(square) : 0.0;
    for (size_t d = 0; d < dim; d++)
        out[d] = (float)(row[d] * scale);
}

static void let_go(pnb__learned_pairs *p)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        const pnb__adapter_rows all = {.set = p->set[s], .n = p->set[s]->n};
        pnb__adapter_rows_done(&all, 0, all.n);
    }
    p->n_read_bytes = 0;
}

void pnb__learned_pairs_read(pnb__learned_pairs *p, const pnb__learned *l, size_t first, size_t n,
                             float *const x[PNB_N_ADAPTER_SIDES])
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = p->set[s]->dim;
        for (size_t i = 0; i < n; i++) {
            size_t row = p->row[s][p->order[(first + i) % p->n_order]];
            pnb__learned_copy_row(p->set[s]->mean + row * dim, dim, l->is_unit[s], x[s] + i * dim);
        }
        p->n_read_bytes += n * dim * sizeof(float);
    }
    if (p->n_read_bytes > LET_GO_AFTER)
        let_go(p);
}

/* A unit row in floats is off by less than this, one in half floats too. */
static const double unit_within = 2e-3;

pnb_status pnb__learned_check_rows(const pnb__adapter_rows *rows, double *length, pnb_error *err)
{
    size_t dim = rows->set->dim, done = 0;
    const float *one = pnb__adapter_row(rows, 0);
    bool is_constant = rows->n > 1, are_unit = true;
    double sum = 0.0;
    for (size_t i = 0; i < rows->n; i++) {
        const float *x = pnb__adapter_row(rows, i);
        size_t row = rows->row != NULL ? rows->row[i] : i;
        double square = 0.0;
        pnb_status status = pnb__adapter_square(x, dim, row, rows->what, &square, err);
        if (status != PNB_OK)
            return status;
        if (square == 0.0)
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu of the %s embeddings has length 0: it has no direction", row,
                             rows->what);
        sum += sqrt(square);
        are_unit = are_unit && fabs(sqrt(square) - 1.0) <= unit_within;
        is_constant = is_constant && memcmp(x, one, dim * sizeof *x) == 0;
        if (i - done >= 4096) {
            pnb__adapter_rows_done(rows, done, i);
            done = i;
        }
    }
    if (is_constant)
        return pnb__fail(err, PNB_NUMERIC,
                         "all %zu rows of the %s embeddings are the same: there is nothing to tell "
                         "apart",
                         rows->n, rows->what);
    *length = are_unit ? 1.0 : sum / (double)rows->n;
    return PNB_OK;
}
