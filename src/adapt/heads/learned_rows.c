/* Rows and pairs that heads are trained on: the order of an epoch, and a batch of it in memory.
 *
 * Pairs are those of the truth. They stand in groups, those of a caption or those of a picture, and
 * where an epoch takes one of each group it is drawn anew each epoch. The order is a function of
 * seed and epoch alone, so that a run resumes from its position. Sets stay in their files: what was
 * read of a map is let go of from time to time. */
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"

enum { LET_GO_AFTER = 1 << 28 }; /* bytes of rows */

/* ---- pairs ---- */

static pnb_status count_pairs(pnb__learned_pairs *p, const pnb_truth *t, pnb_error *err)
{
    p->n = t->n_pairs;
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

static size_t group_of(const pnb_truth *t, bool is_by_text, size_t image, size_t k)
{
    return is_by_text ? (size_t)t->item[k] : image;
}

/* Counts into group[g + 1], then their sums: where each group begins, in a list of all texts or
 * images; those without a pair begin where the next one does. */
static void begin_groups(pnb__learned_pairs *p, const pnb_truth *t, bool is_by_text, size_t n_all)
{
    memset(p->group, 0, (n_all + 1) * sizeof *p->group);
    for (size_t i = 0; i < t->n_queries; i++)
        for (size_t k = t->offset[i]; k < t->offset[i + 1]; k++)
            p->group[group_of(t, is_by_text, i, k) + 1]++;
    for (size_t g = 0; g < n_all; g++)
        p->group[g + 1] += p->group[g];
}

static void list_pairs(pnb__learned_pairs *p, const pnb_truth *t, bool is_by_text, size_t n_all)
{
    begin_groups(p, t, is_by_text, n_all);
    for (size_t i = 0; i < t->n_queries; i++)
        for (size_t k = t->offset[i]; k < t->offset[i + 1]; k++) {
            size_t at = p->group[group_of(t, is_by_text, i, k)]++;
            p->row[PNB_ADAPTER_IMAGES][at] = (uint32_t)i;
            p->row[PNB_ADAPTER_TEXTS][at] = (uint32_t)t->item[k];
        }
    /* each entry is now the end of its group: the beginnings of those that have pairs stay */
    uint32_t begin = 0;
    for (size_t g = 0; g < n_all; g++) {
        uint32_t end = p->group[g];
        if (end > begin)
            p->group[p->n_groups++] = begin;
        begin = end;
    }
    p->group[p->n_groups] = begin;
}

pnb_status pnb__learned_pairs_init(pnb__learned_pairs *p, const pnb_embeddings *images,
                                   const pnb_embeddings *texts, const pnb_truth *truth,
                                   pnb_adapt_texts order, pnb_error *err)
{
    pnb_status status;
    bool is_by_text = order == PNB_ADAPT_TEXTS_EACH;
    size_t n_all = is_by_text ? truth->n_items : truth->n_queries;
    *p = (pnb__learned_pairs){.set = {images, texts}};
    PNB_TRY(count_pairs(p, truth, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(PNB_ALLOC(p->row[s], p->n, err));
    PNB_TRY(PNB_ALLOC(p->group, n_all + 1, err));
    list_pairs(p, truth, is_by_text, n_all);
    p->n_order = order == PNB_ADAPT_TEXTS_ALL ? p->n : p->n_groups;
    PNB_TRY(PNB_ALLOC(p->order, p->n_order, err));
    if (p->n_order < 2)
        status =
            pnb__fail(err, PNB_ARG, "all pairs are of one %s: one of its %s is no batch",
                      is_by_text ? "caption" : "picture", is_by_text ? "pictures" : "captions");
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
        if (p->n_order < p->n) { /* one of the group */
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
