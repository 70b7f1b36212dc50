/* What a gallery and its queries know about their rows, and scores of pairs in f64.
 *
 * Which terms a row has and how its measure is bounded is form.c's; here the rows are gone through
 * once, what is not finite is named, and the way is chosen: bounds in f32 (bound.c) where rows are
 * neither so long nor so uncertain that floats fail, otherwise the fused f64 loops of src/prob. The
 * scores that are reported are f64 on every way. */
#include "index/exact/exact.h"

#include <math.h>
#include <string.h>

#include "base/wide.h"

#define ITEM_TILE 32     /* items unpacked at once in f64 */
#define NORM_LEAST 1e-15 /* products of rows between these stay normal floats */
#define NORM_MOST 1e15
#define GAIN_MOST 1e3
#define KAPPA_MOST 1e15
#define SAMPLE_BYTES ((size_t)512 << 20) /* of a side's samples that are drawn once and kept */

/* ---- row terms ---- */

typedef struct side_job {
    pnb__exact_side *side;
    pnb_measure measure;
    const pnb__scan_form *form;
} side_job;

static void fill_side(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    side_job *job = user;
    for (size_t i = begin; i < end; i++)
        job->form->fill_row(job->side, job->measure, i);
}

static void reset_side(pnb__exact_side *side)
{
    pnb__free(side->term);
    pnb__free(side->norm);
    pnb__free_aligned(side->samples);
    pnb__free(side->outline);
    *side = (pnb__exact_side){0};
}

/* bad stays n for inclusion: its f64 loops find and name what is not finite. */
static void summarise_side(pnb__exact_side *side, bool is_inclusion)
{
    side->bad = side->rows.n;
    side->least_norm = (double)INFINITY;
    for (size_t i = 0; i < side->rows.n; i++) {
        double term = fabs(side->term[i]), norm = side->norm[i];
        if (side->bad == side->rows.n && !is_inclusion && (!isfinite(term) || !isfinite(norm)))
            side->bad = i;
        if (!(term <= side->most_term))
            side->most_term = term;
        if (!(norm <= side->most_norm))
            side->most_norm = norm;
        if (norm > 0.0)
            side->least_norm = fmin(side->least_norm, norm);
        if (side->rows.kappa != NULL)
            side->most_kappa = fmax(side->most_kappa, side->rows.kappa[i]);
    }
}

static pnb_status init_side(pnb__exact_side *side, const pnb_ctx *ctx, const pnb_gaussians *rows,
                            pnb_measure measure, pnb_error *err)
{
    *side = (pnb__exact_side){.rows = *rows, .bad = rows->n};
    const pnb__scan_form *form = pnb__scan_form_of(measure);
    if (form->fill_row == NULL)
        return PNB_OK;
    side->term = pnb__alloc_array(rows->n, sizeof(double));
    side->norm = pnb__alloc_array(rows->n, sizeof(double));
    if (side->term == NULL || side->norm == NULL) {
        reset_side(side);
        return pnb__fail_nomem(err, 2 * rows->n * sizeof(double));
    }
    side_job job = {side, measure, form};
    pnb__parallel_for(ctx, rows->n, 256, fill_side, &job);
    summarise_side(side, form->way == PNB__EXACT_INCLUSION);
    return PNB_OK;
}

pnb_status pnb__exact_check(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                            pnb_error *err)
{
    if (gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "the gallery is empty; it needs at least one embedding");
    /* Only what the gallery alone decides; the pair is checked with the queries. */
    return pnb__measure_check(opts->measure, gallery, NULL, &opts->measure_opts, err);
}

typedef struct draw_job {
    pnb__exact_side *side;
    size_t n_samples;
    unsigned which; /* of the two sides, whose streams never meet */
    uint64_t seed;
} draw_job;

/* Between two rows' outlines the squared distance is mean_ab |x_a - y_b|^2 but for what is the
 * query's own: mean_ab |x_a - y_b|^2 = |mean x - mean y|^2 + mean_a |x_a - mean x|^2 + that of y.
 * It chooses whom to look at first and bounds nothing, so floats do. */
PNB__WIDE static void outline_row(const draw_job *job, size_t i)
{
    size_t dim = job->side->rows.dim, j = job->n_samples;
    const double *samples = job->side->samples + i * j * dim;
    float *mean = job->side->outline + i * (dim + 1);
    double squares = 0.0, square = 0.0;
    memset(mean, 0, dim * sizeof *mean);
    for (size_t k = 0; k < j; k++) {
        const double *x = samples + k * dim;
#pragma omp simd reduction(+ : squares)
        for (size_t d = 0; d < dim; d++) {
            mean[d] += (float)x[d];
            squares += x[d] * x[d];
        }
    }
#pragma omp simd reduction(+ : square)
    for (size_t d = 0; d < dim; d++) {
        mean[d] /= (float)j;
        square += (double)mean[d] * mean[d];
    }
    bool is_query = job->which == 0;
    mean[dim] = is_query ? 0.0f : (float)sqrt(fmax(squares / (double)j - square, 0.0));
}

static void draw_rows(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    const draw_job *job = user;
    const pnb_rows *rows = &job->side->rows;
    for (size_t i = begin; i < end; i++) {
        pnb__draw_fill_all(rows, i, job->n_samples, job->which, job->seed,
                           job->side->samples + i * job->n_samples * rows->dim);
        outline_row(job, i);
    }
}

/* A sample costs as much to draw as to compare with some others: they are kept if they may. */
static pnb_status keep_samples(pnb__exact_side *side, unsigned which, const pnb__exact *scan,
                               const pnb_ctx *ctx, pnb_error *err)
{
    const pnb_rows *rows = &side->rows;
    size_t n, each = rows->dim * scan->opts.n_samples;
    pnb_status status;
    if (scan->form->way != PNB__EXACT_SAMPLES || pnb__mul_overflows(rows->n, each, &n) ||
        n > SAMPLE_BYTES / sizeof(double))
        return PNB_OK;
    side->samples = pnb__alloc_large(n * sizeof *side->samples);
    if (side->samples == NULL)
        return pnb__fail_nomem(err, n * sizeof *side->samples);
    status = PNB_ALLOC_ROWS(side->outline, rows->n, rows->dim + 1, err);
    if (status != PNB_OK)
        return status;
    draw_job job = {side, scan->opts.n_samples, which, scan->opts.seed};
    pnb__parallel_for(ctx, rows->n, 1, draw_rows, &job);
    return PNB_OK;
}

pnb_status pnb__exact_init(pnb__exact *scan, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                           const pnb_search_opts *opts, pnb_error *err)
{
    *scan = (pnb__exact){.measure = opts->measure, .opts = opts->measure_opts};
    scan->form = pnb__scan_form_of(opts->measure);
    scan->reverse = opts->reverse && !pnb_measure_is_symmetric(opts->measure);
    pnb_status status = pnb__exact_check(gallery, opts, err);
    if (status == PNB_OK)
        status = init_side(&scan->gallery, ctx, gallery, opts->measure, err);
    if (status == PNB_OK)
        status = keep_samples(&scan->gallery, 1, scan, ctx, err);
    if (status != PNB_OK)
        pnb__exact_reset(scan);
    return status;
}

void pnb__exact_reset(pnb__exact *scan)
{
    reset_side(&scan->gallery);
}

/* ---- queries ---- */

static bool side_fits(const pnb__exact_side *side, const pnb__scan_form *form)
{
    return side->most_norm <= NORM_MOST && side->least_norm >= NORM_LEAST &&
           side->most_term <= form->most_term && side->most_kappa <= KAPPA_MOST;
}

/* Inclusion's rows have norm 0 where they fit, and no limit on their terms. */
static pnb__exact_way choose_way(const pnb__exact *scan, const pnb__exact_side *queries)
{
    const pnb__exact_side *gallery = &scan->gallery;
    const pnb__scan_form *form = scan->form;
    bool fits = false;
    if (form->way == PNB__EXACT_INCLUSION)
        fits = gallery->most_norm == 0.0 && queries->most_norm == 0.0 &&
               exp(scan->opts.inclusion_eps) <= GAIN_MOST;
    else if (form->way != PNB__EXACT_F64)
        fits = (form->fits == NULL || form->fits(&scan->opts)) && side_fits(gallery, form) &&
               side_fits(queries, form);
    return fits ? form->way : PNB__EXACT_F64;
}

static pnb_status check_finite(const pnb__exact *scan, const pnb__exact_side *queries,
                               pnb_error *err)
{
    const pnb__exact_side *gallery = &scan->gallery;
    bool bad_item = gallery->bad < gallery->rows.n;
    if (!bad_item && queries->bad == queries->rows.n)
        return PNB_OK;
    size_t query = bad_item ? 0 : queries->bad, item = query == queries->bad ? 0 : gallery->bad;
    return pnb__fail(err, PNB_NUMERIC,
                     "query %zu and item %zu: the score of measure %s is not a finite number; one "
                     "of the two embeddings holds values that are not finite, a kappa below 0 or "
                     "log-variances beyond +-30",
                     query, item, pnb_measure_name(scan->measure));
}

pnb_status pnb__exact_run_init(pnb__exact_run *run, const pnb__exact *scan, const pnb_ctx *ctx,
                               const pnb_gaussians *queries, pnb_error *err)
{
    *run = (pnb__exact_run){.scan = scan};
    if (queries->n == 0)
        return pnb__fail(err, PNB_SHAPE, "there are no queries; at least one is needed");
    pnb_status status =
        pnb__measure_check(scan->measure, queries, &scan->gallery.rows, &scan->opts, err);
    if (status != PNB_OK)
        return status;
    run->inner = ctx != NULL ? *ctx : (pnb_ctx){.isa = PNB_ISA_GENERIC};
    run->inner.n_threads = 1;
    PNB_TRY(init_side(&run->queries, ctx, queries, scan->measure, err));
    PNB_TRY(check_finite(scan, &run->queries, err));
    PNB_TRY(keep_samples(&run->queries, 0, scan, ctx, err));
    pnb__kernels_fill_host(&run->kernels, &run->inner, PNB__F32);
    run->way = choose_way(scan, &run->queries);
    run->weight = queries->kappa != NULL && scan->gallery.rows.kappa != NULL ? 0.5 : 1.0;
done:
    if (status != PNB_OK)
        pnb__exact_run_reset(run);
    return status;
}

void pnb__exact_run_reset(pnb__exact_run *run)
{
    reset_side(&run->queries);
}

double pnb__exact_scale(double norm)
{
    return norm == 0.0 ? 0.0 : 1.0 / norm;
}

/* ---- scores in f64 ---- */

/* Scores that are one inner product and need no unpacked rows. */
static bool is_dot(const pnb__exact_run *run)
{
    return run->way == PNB__EXACT_PRODUCT && !run->scan->form->has_std;
}

pnb_status pnb__exact_work_init(pnb__exact_work *work, const pnb__exact_run *run, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const pnb__exact *scan = run->scan;
    size_t dim = run->queries.rows.dim, n_queries = PNB__EXACT_QUERIES, n_items = ITEM_TILE;
    *work = (pnb__exact_work){.at_query = SIZE_MAX};
    if (is_dot(run))
        n_queries = n_items = 1;
    PNB_TRY(pnb__tile_alloc(&work->query, scan->measure, n_queries, dim, &scan->opts, err));
    PNB_TRY(pnb__tile_alloc(&work->item, scan->measure, n_items, dim, &scan->opts, err));
    return PNB_OK;
done:
    pnb__exact_work_reset(work);
    return status;
}

void pnb__exact_work_reset(pnb__exact_work *work)
{
    pnb__tile_free(&work->query);
    pnb__tile_free(&work->item);
}

/* The same bits with the two rows exchanged. */
static double exact_by_dot(const pnb__exact_run *run, size_t query, size_t item)
{
    const pnb__exact_side *q = &run->queries, *x = &run->scan->gallery;
    const float *a = q->rows.mean + query * q->rows.dim, *b = x->rows.mean + item * q->rows.dim;
    double dot = 0.0;
#pragma omp simd reduction(+ : dot)
    for (size_t d = 0; d < q->rows.dim; d++)
        dot += (double)a[d] * b[d];
    if (run->scan->form->is_unit)
        return dot * (pnb__exact_scale(q->norm[query]) * pnb__exact_scale(x->norm[item]));
    return dot + (q->term[query] + x->term[item]);
}

/* Rows begin .. begin + n of a side unpacked; samples that are kept are read where they lie. */
static void fill_tile(const pnb__exact *scan, const pnb__exact_side *side, unsigned which,
                      pnb__tile *tile, size_t begin, size_t n)
{
    if (side->samples == NULL) {
        pnb__tile_fill(tile, scan->measure, &side->rows, begin, n, which, &scan->opts);
        return;
    }
    tile->n = n;
    tile->aux = side->samples + begin * tile->dim * scan->opts.n_samples;
}

static void score_tile(const pnb__exact *scan, const pnb__exact_work *work, double *out, size_t ld)
{
    if (scan->reverse)
        pnb__tile_measure(scan->measure, &work->item, &work->query, &scan->opts, out,
                          (const size_t[2]){1, ld});
    else
        pnb__tile_measure(scan->measure, &work->query, &work->item, &scan->opts, out,
                          (const size_t[2]){ld, 1});
    for (size_t i = 0; i < work->query.n; i++)
        for (size_t j = 0; j < work->item.n; j++)
            out[i * ld + j] = pnb_measure_score(scan->measure, out[i * ld + j]);
}

static pnb_status fail_at(const pnb__exact_run *run, const pnb__exact_block *b, size_t i, size_t j,
                          pnb_error *err)
{
    return pnb__fail(err, PNB_NUMERIC,
                     "query %zu and item %zu: score of measure %s is %g; one of the two embeddings "
                     "holds values that are not finite, a kappa below 0 or log-variances beyond "
                     "+-30",
                     b->query + i, b->item + j, pnb_measure_name(run->scan->measure),
                     b->score[i * b->ld + j]);
}

static pnb_status check_block(const pnb__exact_run *run, const pnb__exact_block *b, pnb_error *err)
{
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

pnb_status pnb__exact_score(const pnb__exact_run *run, pnb__exact_work *work,
                            const pnb__exact_block *b, pnb_error *err)
{
    const pnb__exact *scan = run->scan;
    if (is_dot(run)) {
        for (size_t i = 0; i < b->n_queries; i++)
            for (size_t j = 0; j < b->n_items; j++)
                b->score[i * b->ld + j] = exact_by_dot(run, b->query + i, b->item + j);
        return check_block(run, b, err);
    }
    work->at_query = SIZE_MAX;
    fill_tile(scan, &run->queries, 0, &work->query, b->query, b->n_queries);
    for (size_t begin = 0; begin < b->n_items; begin += ITEM_TILE) {
        fill_tile(scan, &scan->gallery, 1, &work->item, b->item + begin,
                  PNB_MIN(ITEM_TILE, b->n_items - begin));
        score_tile(scan, work, b->score + begin, b->ld);
    }
    return check_block(run, b, err);
}

/* By tiles of one row, the loop that scores whole blocks: the same bits. */
static double exact_by_tile(const pnb__exact_run *run, pnb__exact_work *work, size_t query,
                            size_t item)
{
    const pnb__exact *scan = run->scan;
    double score;
    if (work->at_query != query)
        fill_tile(scan, &run->queries, 0, &work->query, query, 1);
    work->at_query = query;
    fill_tile(scan, &scan->gallery, 1, &work->item, item, 1);
    score_tile(scan, work, &score, 1);
    return score;
}

double pnb__exact_pair(const pnb__exact_run *run, pnb__exact_work *work, size_t query, size_t item)
{
    return is_dot(run) ? exact_by_dot(run, query, item) : exact_by_tile(run, work, query, item);
}
