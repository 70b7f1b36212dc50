/* Scores of a block of queries against a block of items.
 *
 * Three measures are inner products of augmented rows (storage view of the measures):
 *   mean   mu_q.mu_n / (|mu_q| |mu_n|)
 *   csd    1 - csd/2 = mu_q.mu_n + t_q + t_n          t = 1/2 - (|mu|^2 + tr)/2
 *   w2     -w2 = 2 (mu_q.mu_n + std_q.std_n) + t_q + t_n   t = -(|mu|^2 + tr)
 * The product runs in f32 on the gallery's own memory; the augmenting column is kept apart in f64
 * and added afterwards, so large traces do not round the product away. For unit means t of csd is
 * -tr/2 to rounding, ProLIP's form. w2 cancels when |mu|^2 + tr is large: above W2_LIMIT, and for
 * all other measures, the fused f64 loops of src/prob are used. */
#include "index/scan.h"

#include <math.h>

#define W2_LIMIT 1e3
#define ITEM_TILE 32 /* items unpacked at once by the fused path */

static void gemm_block(const pnb__scan_run *run, const float *q, size_t n_queries, const float *x,
                       size_t n_items, float *out, bool accumulate)
{
    size_t dim = run->queries.rows.dim;
    pnb__gemm_args args = {.trans_b = true,
                           .m = n_queries,
                           .n = n_items,
                           .k = dim,
                           .lda = dim,
                           .ldb = dim,
                           .ldc = n_items,
                           .n_batch = 1,
                           .alpha = 1.0,
                           .beta = accumulate,
                           .a = q,
                           .b = x,
                           .c = out,
                           .act = PNB__IDENTITY};
    run->kernels.gemm(&run->inner, &args);
}

/* ---- row terms ---- */

typedef struct side_job {
    pnb__scan_side *side;
    pnb_measure measure;
} side_job;

static void fill_side(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    side_job *job = user;
    const pnb_gaussians *g = &job->side->rows;
    for (size_t i = begin; i < end; i++) {
        double square = 0.0, trace = 0.0;
        for (size_t d = 0; d < g->dim; d++)
            square += (double)g->mean[i * g->dim + d] * g->mean[i * g->dim + d];
        if (job->measure == PNB_MEASURE_MEAN) {
            job->side->term[i] = 0.0;
            job->side->scale[i] = square == 0.0 ? 0.0 : 1.0 / sqrt(square);
            continue;
        }
        for (size_t d = 0; g->log_var != NULL && d < g->dim; d++)
            trace += exp((double)g->log_var[i * g->dim + d]);
        job->side->term[i] =
            job->measure == PNB_MEASURE_CSD ? 0.5 - 0.5 * (square + trace) : -(square + trace);
    }
}

static bool has_product_form(pnb_measure measure)
{
    return measure == PNB_MEASURE_MEAN || measure == PNB_MEASURE_CSD || measure == PNB_MEASURE_W2;
}

static void reset_side(pnb__scan_side *side)
{
    pnb__free(side->term);
    pnb__free(side->scale);
    *side = (pnb__scan_side){0};
}

static pnb_status init_side(pnb__scan_side *side, const pnb_ctx *ctx, const pnb_gaussians *rows,
                            pnb_measure measure, pnb_error *err)
{
    *side = (pnb__scan_side){.rows = *rows};
    if (!has_product_form(measure))
        return PNB_OK;
    bool scaled = measure == PNB_MEASURE_MEAN;
    side->term = pnb__alloc_array(rows->n, sizeof(double));
    side->scale = scaled ? pnb__alloc_array(rows->n, sizeof(double)) : NULL;
    if (side->term == NULL || (scaled && side->scale == NULL)) {
        reset_side(side);
        return pnb__fail_nomem(err, rows->n * sizeof(double));
    }
    side_job job = {side, measure};
    pnb__parallel_for(ctx, rows->n, 256, fill_side, &job);
    return PNB_OK;
}

pnb_status pnb__scan_init(pnb__scan *scan, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                          const pnb_search_opts *opts, pnb_error *err)
{
    *scan = (pnb__scan){.measure = opts->measure, .opts = opts->measure_opts};
    scan->reverse = opts->reverse && !pnb_measure_is_symmetric(opts->measure);
    if (gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "the gallery is empty; it needs at least one embedding");
    /* Only what the gallery alone decides; the pair is checked with the queries. */
    pnb_status status = pnb__measure_check(opts->measure, gallery, NULL, &opts->measure_opts, err);
    if (status != PNB_OK)
        return status;
    return init_side(&scan->gallery, ctx, gallery, opts->measure, err);
}

void pnb__scan_reset(pnb__scan *scan)
{
    reset_side(&scan->gallery);
}

static bool any_below(const double *x, size_t n, double limit)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= limit))
            return true;
    return false;
}

pnb_status pnb__scan_run_init(pnb__scan_run *run, const pnb__scan *scan, const pnb_ctx *ctx,
                              const pnb_gaussians *queries, pnb_error *err)
{
    const pnb__scan_side *gallery = &scan->gallery;
    *run = (pnb__scan_run){.scan = scan};
    if (queries->n == 0)
        return pnb__fail(err, PNB_SHAPE, "there are no queries; at least one is needed");
    pnb_status status =
        pnb__measure_check(scan->measure, queries, &gallery->rows, &scan->opts, err);
    if (status != PNB_OK)
        return status;
    run->inner = ctx != NULL ? *ctx : (pnb_ctx){.isa = PNB_ISA_GENERIC};
    run->inner.n_threads = 1;
    status = init_side(&run->queries, ctx, queries, scan->measure, err);
    if (status != PNB_OK)
        return status;
    pnb__kernels_fill(&run->kernels, &run->inner, PNB__F32);
    run->by_product = has_product_form(scan->measure);
    if (scan->measure == PNB_MEASURE_W2 && (any_below(gallery->term, gallery->rows.n, -W2_LIMIT) ||
                                            any_below(run->queries.term, queries->n, -W2_LIMIT)))
        run->by_product = false;
    return PNB_OK;
}

void pnb__scan_run_reset(pnb__scan_run *run)
{
    reset_side(&run->queries);
}

/* ---- scratch ---- */

pnb_status pnb__scan_work_init(pnb__scan_work *work, const pnb__scan_run *run, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const pnb__scan *scan = run->scan;
    size_t dim = run->queries.rows.dim;
    *work = (pnb__scan_work){0};
    if (!run->by_product) {
        PNB_TRY(
            pnb__tile_alloc(&work->query, scan->measure, PNB__SCAN_QUERIES, dim, &scan->opts, err));
        PNB_TRY(pnb__tile_alloc(&work->item, scan->measure, ITEM_TILE, dim, &scan->opts, err));
        return PNB_OK;
    }
    size_t n_product = (size_t)PNB__SCAN_QUERIES * PNB__SCAN_ITEMS, n_rows = 0;
    if (scan->measure == PNB_MEASURE_W2)
        n_rows = PNB__SCAN_QUERIES + PNB__SCAN_ITEMS;
    work->product = pnb__alloc_aligned((n_product + n_rows * dim) * sizeof(float));
    if (work->product == NULL)
        PNB_TRY(pnb__fail_nomem(err, (n_product + n_rows * dim) * sizeof(float)));
    work->std_query = work->product + n_product;
    work->std_item = work->std_query + (n_rows > 0 ? PNB__SCAN_QUERIES * dim : 0);
    return PNB_OK;
done:
    pnb__scan_work_reset(work);
    return status;
}

void pnb__scan_work_reset(pnb__scan_work *work)
{
    pnb__free_aligned(work->product);
    pnb__tile_free(&work->query);
    pnb__tile_free(&work->item);
    *work = (pnb__scan_work){0};
}

/* ---- blocks ---- */

static void unpack_std(const pnb_gaussians *g, size_t begin, size_t n, float *out)
{
    const float *log_var = g->log_var == NULL ? NULL : g->log_var + begin * g->dim;
    for (size_t i = 0; i < n * g->dim; i++)
        out[i] = log_var == NULL ? 0.0f : expf(0.5f * log_var[i]);
}

static void score_by_product(const pnb__scan_run *run, pnb__scan_work *work,
                             const pnb__scan_block *b)
{
    const pnb__scan_side *q = &run->queries, *x = &run->scan->gallery;
    size_t dim = q->rows.dim;
    double factor = 1.0;
    gemm_block(run, q->rows.mean + b->query * dim, b->n_queries, x->rows.mean + b->item * dim,
               b->n_items, work->product, false);
    if (run->scan->measure == PNB_MEASURE_W2) {
        factor = 2.0;
        unpack_std(&q->rows, b->query, b->n_queries, work->std_query);
        unpack_std(&x->rows, b->item, b->n_items, work->std_item);
        gemm_block(run, work->std_query, b->n_queries, work->std_item, b->n_items, work->product,
                   true);
    }
    for (size_t i = 0; i < b->n_queries; i++) {
        const float *product = work->product + i * b->n_items;
        double *score = b->score + i * b->ld, term = q->term[b->query + i];
        if (x->scale != NULL) {
            for (size_t j = 0; j < b->n_items; j++)
                score[j] = (double)product[j] * q->scale[b->query + i] * x->scale[b->item + j];
            continue;
        }
        for (size_t j = 0; j < b->n_items; j++)
            score[j] = factor * (double)product[j] + (term + x->term[b->item + j]);
    }
}

static void score_fused(const pnb__scan_run *run, pnb__scan_work *work, const pnb__scan_block *b)
{
    const pnb__scan *scan = run->scan;
    pnb__tile_fill(&work->query, scan->measure, &run->queries.rows, b->query, b->n_queries, 0,
                   &scan->opts);
    for (size_t begin = 0; begin < b->n_items; begin += ITEM_TILE) {
        pnb__tile_fill(&work->item, scan->measure, &scan->gallery.rows, b->item + begin,
                       PNB_MIN(ITEM_TILE, b->n_items - begin), 1, &scan->opts);
        double *out = b->score + begin;
        if (scan->reverse)
            pnb__tile_measure(scan->measure, &work->item, &work->query, &scan->opts, out,
                              (const size_t[2]){1, b->ld});
        else
            pnb__tile_measure(scan->measure, &work->query, &work->item, &scan->opts, out,
                              (const size_t[2]){b->ld, 1});
    }
    for (size_t i = 0; i < b->n_queries; i++)
        for (size_t j = 0; j < b->n_items; j++)
            b->score[i * b->ld + j] = pnb_measure_score(scan->measure, b->score[i * b->ld + j]);
}

static pnb_status fail_at(const pnb__scan_run *run, const pnb__scan_block *b, size_t i, size_t j,
                          pnb_error *err)
{
    return pnb__fail(err, PNB_NUMERIC,
                     "query %zu and item %zu: score of measure %s is %g; one of the two embeddings "
                     "holds values that are not finite or log-variances beyond +-30",
                     b->query + i, b->item + j, pnb_measure_name(run->scan->measure),
                     b->score[i * b->ld + j]);
}

pnb_status pnb__scan_score(const pnb__scan_run *run, pnb__scan_work *work, const pnb__scan_block *b,
                           pnb_error *err)
{
    if (run->by_product)
        score_by_product(run, work, b);
    else
        score_fused(run, work, b);
    for (size_t i = 0; i < b->n_queries; i++) {
        /* 0*x is NaN for NaN and infinity: one pass without branches finds a bad row. */
        const double *score = b->score + i * b->ld;
        double check = 0.0;
#pragma omp simd reduction(+ : check)
        for (size_t j = 0; j < b->n_items; j++)
            check += 0.0 * score[j];
        for (size_t j = 0; check != 0.0 && j < b->n_items; j++)
            if (!isfinite(score[j]))
                return fail_at(run, b, i, j, err);
    }
    return PNB_OK;
}

double pnb__scan_exact(const pnb__scan_run *run, size_t query, size_t item)
{
    const pnb__scan *scan = run->scan;
    const pnb__scan_side *q = &run->queries, *x = &scan->gallery;
    if (scan->measure != PNB_MEASURE_MEAN && scan->measure != PNB_MEASURE_CSD) {
        double value =
            scan->reverse
                ? pnb_measure_pair(scan->measure, &x->rows, item, &q->rows, query, &scan->opts)
                : pnb_measure_pair(scan->measure, &q->rows, query, &x->rows, item, &scan->opts);
        return pnb_measure_score(scan->measure, value);
    }
    const float *a = q->rows.mean + query * q->rows.dim, *b = x->rows.mean + item * q->rows.dim;
    double dot = 0.0;
#pragma omp simd reduction(+ : dot)
    for (size_t d = 0; d < q->rows.dim; d++)
        dot += (double)a[d] * b[d];
    if (x->scale != NULL)
        return dot * q->scale[query] * x->scale[item];
    return dot + (q->term[query] + x->term[item]);
}
