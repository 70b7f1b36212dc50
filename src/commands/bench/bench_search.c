/* Synthetic sets, timed searches and evaluations, and the machine's limits measured beside them.
 *
 * A search of many queries is bound by the rate of a matrix product, one of few by the bandwidth
 * of memory. Both are measured in the same run: the product before and after, the best rate of our
 * kernels and OpenBLAS; bandwidth by reading the gallery's own means with the fastest plain loops
 * there are, before every repeat, since it changes within a run where others use the same memory.
 * Means that might fit a cache stay in it: then as much other memory is read, before and after. The
 * median of the reads stands beside the median time. Recall
 * is taken against all pairs scored in f64 by src/prob, another path than the search's. */
#include "commands/bench/bench_search.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "index/hits.h"
#include "kernels/kernels.h"
#include "penumbra/retrieval.h"
#include "penumbra/search.h"
#include "prob/measure.h"

enum {
    APPROXIMATE_QUERIES = 200,
    CHECKED_QUERIES = 4,
    CHECK_ROWS = 32,
    MAX_READS = 1000,
    READS = 5
};
#define READ_BYTES ((size_t)256 << 20) /* far more than a cache holds */
#define QUERY_SEED 0x51ed2701ULL       /* added to the seed for the second set */

/* ---- synthetic sets ---- */

/* Sums of four bytes are close to normal and the same on every machine. */
void pnb__bench_fill_row(uint64_t seed, uint64_t row, size_t dim, float *mean, float *log_var)
{
    uint32_t word[4];
    double norm = 0.0;
    for (size_t d = 0; d < dim; d++) {
        if (d % 4 == 0)
            pnb__rng_block(seed, row, d / 4, word);
        uint32_t w = word[d % 4];
        int sum = (int)((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24)) - 510;
        mean[d] = (float)sum;
        norm += (double)sum * sum;
    }
    double scale = norm > 0.0 ? 1.0 / sqrt(norm) : 0.0;
    for (size_t d = 0; d < dim; d++)
        mean[d] = (float)(mean[d] * scale);
    for (size_t d = 0; log_var != NULL && d < dim; d++) {
        if (d % 4 == 0)
            pnb__rng_block(seed, row, ((uint64_t)1 << 32) + d / 4, word);
        log_var[d] = (float)(-8.0 + 1.7 * ((double)word[d % 4] * 0x1p-32 - 0.5));
    }
}

typedef struct set {
    pnb_gaussians rows;
    float *mean, *log_var;
    size_t bytes; /* of each */
    uint64_t seed;
    size_t n_centres; /* 0: rows lie anywhere */
    size_t n_factors; /* likewise */
    float *centres;   /* [thread][D] */
    float *factors;   /* [n_factors][D] */
} set;

#define CENTRE_SEED 0x7a11ULL /* the same directions for rows and queries */
#define FACTOR_SEED 0xfac7ULL
#define AWAY 0.6f /* of a row from its centre, which has length 1 */
#define OWN 0.3f  /* of a row beside its factors, which have about length 1 together */

static void at_length_1(float *mean, size_t dim)
{
    double norm = 0;
    for (size_t d = 0; d < dim; d++)
        norm += (double)mean[d] * (double)mean[d];
    for (size_t d = 0; d < dim; d++)
        mean[d] = (float)((double)mean[d] / sqrt(norm));
}

/* Embeddings of a model lie in heaps, where cells find their way; directions that are anywhere have
 * no neighbours that are nearer than the rest. */
static void pull_row(const set *s, size_t i, float *centre)
{
    float *mean = s->mean + i * s->rows.dim;
    uint32_t word[4];
    pnb__rng_block(s->seed, i, (uint64_t)1 << 33, word);
    pnb__bench_fill_row(CENTRE_SEED, word[0] % s->n_centres, s->rows.dim, centre, NULL);
    for (size_t d = 0; d < s->rows.dim; d++)
        mean[d] = AWAY * mean[d] + centre[d];
    at_length_1(mean, s->rows.dim);
}

/* They vary in few ways beside: without that a graph does not find its way in a heap either. */
static void sum_factors(const set *s, size_t i)
{
    size_t dim = s->rows.dim;
    float *mean = s->mean + i * dim, scale = 1 / (148 * sqrtf((float)s->n_factors));
    for (size_t d = 0; d < dim; d++)
        mean[d] *= OWN;
    for (size_t f = 0; f < s->n_factors; f++) {
        uint32_t word[4];
        pnb__rng_block(s->seed, i, ((uint64_t)1 << 34) + f, word);
        int sum = (int)((word[0] & 255) + (word[0] >> 8 & 255) + (word[0] >> 16 & 255) +
                        (word[0] >> 24)) -
                  510; /* its spread is 148 */
        for (size_t d = 0; d < dim; d++)
            mean[d] += scale * (float)sum * s->factors[f * dim + d];
    }
    at_length_1(mean, dim);
}

static void fill_range(void *user, size_t begin, size_t end, int thread)
{
    const set *s = user;
    size_t dim = s->rows.dim;
    float *centre = s->centres + (size_t)thread * dim;
    for (size_t i = begin; i < end; i++) {
        pnb__bench_fill_row(s->seed, i, dim, s->mean + i * dim,
                            s->log_var != NULL ? s->log_var + i * dim : NULL);
        if (s->n_factors > 0)
            sum_factors(s, i);
        if (s->n_centres > 0)
            pull_row(s, i, centre);
    }
}

static pnb_status make_set(set *s, pnb__app *app, size_t n, size_t dim)
{
    size_t values;
    if (pnb__mul_overflows(n, dim, &values) || pnb__mul_overflows(values, sizeof(float), &s->bytes))
        return pnb__fail(&app->err, PNB_NOMEM, "%zu rows of width %zu are beyond memory", n, dim);
    s->mean = pnb__alloc_large(s->bytes);
    s->log_var = pnb__alloc_large(s->bytes);
    if (s->mean == NULL || s->log_var == NULL)
        return pnb__fail_nomem(&app->err, 2 * s->bytes);
    s->rows = (pnb_gaussians){.n = n, .dim = dim, .mean = s->mean, .log_var = s->log_var};
    pnb_status status =
        PNB_ALLOC_ROWS(s->centres, (size_t)pnb_ctx_n_threads(app->ctx), dim, &app->err);
    if (status == PNB_OK && s->n_factors > 0)
        status = PNB_ALLOC_ROWS(s->factors, s->n_factors, dim, &app->err);
    for (size_t f = 0; status == PNB_OK && f < s->n_factors; f++)
        pnb__bench_fill_row(FACTOR_SEED, f, dim, s->factors + f * dim, NULL);
    if (status == PNB_OK)
        pnb__parallel_for(app->ctx, n, 16, fill_range, s);
    return status;
}

/* For a likelihood on the sphere one side has concentrations from 100 to 1000, where its variances
 * lie, and the other is a set of points. */
static void choose_family(set *s, pnb_measure measure, bool has_kappa)
{
    if (!pnb__measure_is_spherical(measure))
        return;
    for (size_t i = 0; i < s->rows.n; i++) /* row i is read before its place is written */
        s->log_var[i] = 1000.0f * expf(1.35f * (s->log_var[i * s->rows.dim] + 7.15f));
    s->rows.log_var = NULL;
    s->rows.kappa = has_kappa ? s->log_var : NULL;
    s->rows.is_power = pnb__measure_traits_of(measure)->takes == PNB__TAKES_POWER;
}

static void free_set(set *s)
{
    pnb__free_aligned(s->mean);
    pnb__free_aligned(s->log_var);
    pnb__free(s->centres);
    pnb__free(s->factors);
}

/* ---- the machine's limits ---- */

typedef struct machine {
    const float *read; /* what is read for the bandwidth */
    float *own;        /* the same where it is not the gallery */
    size_t n_read;     /* values */
    double seconds;    /* of the repeats; 0: no time is to be spent on the limits either */
    size_t n_rates;
    double rate[MAX_READS]; /* GB/s */
    double sgemm;           /* GFLOP/s */
} machine;

static pnb_status init_machine(machine *m, const pnb_ctx *ctx, const pnb__kernels *k,
                               const set *gallery, pnb_error *err)
{
    m->read = gallery->mean;
    m->n_read = gallery->bytes / sizeof(float);
    if (gallery->bytes >= READ_BYTES)
        return PNB_OK;
    m->own = pnb__alloc_large(READ_BYTES);
    if (m->own == NULL)
        return pnb__fail_nomem(err, READ_BYTES);
    m->read = m->own;
    m->n_read = READ_BYTES / sizeof(float);
    k->fill(ctx, m->n_read, 1.0, m->own);
    return PNB_OK;
}

static void measure_read(machine *m, const pnb_ctx *ctx, const pnb__kernels *k)
{
    if (m->n_rates == MAX_READS)
        return;
    double start = pnb__now_s();
    bool finite = k->all_finite(ctx, m->n_read, m->read);
    double middle = pnb__now_s();
    double sum = k->sum_squares(ctx, &(pnb__flat){(void *)(uintptr_t)m->read, m->n_read}, 1);
    double end = pnb__now_s(), gb = 1e-9 * (double)(m->n_read * sizeof(float));
    if (finite && sum >= 0.0)
        m->rate[m->n_rates++] = gb / fmin(middle - start, end - middle);
}

/* Before and after all repeats. */
static void measure_limits(machine *m, const pnb_ctx *ctx, const pnb__kernels *k)
{
    for (int i = 0; i < (m->seconds > 0 ? READS : 1) && m->own != NULL; i++)
        measure_read(m, ctx, k);
    m->sgemm = fmax(m->sgemm, pnb__bench_sgemm(ctx, ctx->isa, m->seconds));
    m->sgemm = fmax(m->sgemm, pnb__bench_sgemm(ctx, PNB_ISA_GENERIC, m->seconds));
}

/* ---- search ---- */

typedef struct search_work {
    pnb__app *app;
    set gallery, queries;
    pnb_index *index;
    size_t k;
    const pnb__kernels *kernels;
    machine limits;
} search_work;

static pnb_status search_once(void *user, pnb_error *err)
{
    const search_work *w = user;
    pnb_hits hits = {0};
    pnb_status status = pnb_index_search(w->index, w->app->ctx, &w->queries.rows, w->k, &hits, err);
    pnb_hits_reset(&hits);
    return status;
}

static void read_between(void *user)
{
    search_work *w = user;
    measure_read(&w->limits, w->app->ctx, w->kernels);
}

/* Scores of one query with every item, by the fused f64 loops. Rows keep their numbers, which
 * samples are a function of. */
static pnb_status score_all(const search_work *w, const pnb_search_opts *opts, size_t query,
                            double *score, pnb_error *err)
{
    const pnb_gaussians *g = &w->gallery.rows, *q = &w->queries.rows;
    const pnb_measure_opts *o = &opts->measure_opts;
    pnb__tile one = {0}, part = {0};
    pnb_status status;
    PNB_TRY(pnb__tile_alloc(&one, opts->measure, 1, q->dim, o, err));
    PNB_TRY(pnb__tile_alloc(&part, opts->measure, CHECK_ROWS, g->dim, o, err));
    pnb__tile_fill(&one, opts->measure, q, query, 1, 0, o);
    for (size_t begin = 0; begin < g->n; begin += CHECK_ROWS) {
        size_t n = PNB_MIN((size_t)CHECK_ROWS, g->n - begin);
        pnb__tile_fill(&part, opts->measure, g, begin, n, 1, o);
        pnb__tile_measure(opts->measure, &one, &part, o, score + begin, (const size_t[2]){n, 1});
    }
    for (size_t i = 0; i < g->n; i++)
        score[i] = pnb_measure_score(opts->measure, score[i]);
done:
    pnb__tile_free(&one);
    pnb__tile_free(&part);
    return status;
}

/* Share of the hits of the first queries that are among the k best of all pairs. */
static pnb_status check_recall(const search_work *w, const pnb_search_opts *opts, double *recall,
                               pnb_error *err)
{
    size_t n = w->gallery.rows.n, n_queries = PNB_MIN((size_t)CHECKED_QUERIES, w->queries.rows.n);
    size_t n_right = 0;
    pnb_hits hits = {0};
    pnb_status status = PNB_OK;
    double *score = NULL;
    PNB_TRY(PNB_ALLOC_ROWS(score, n, 2, err));
    double *sorted = score + n;
    PNB_TRY(pnb_index_search(w->index, w->app->ctx, &w->queries.rows, w->k, &hits, err));
    for (size_t q = 0; q < n_queries; q++) {
        PNB_TRY(score_all(w, opts, q, score, err));
        memcpy(sorted, score, n * sizeof *score);
        double worst = pnb__kth_largest(sorted, n, w->k);
        for (size_t i = 0; i < w->k; i++)
            n_right += score[hits.index[q * w->k + i]] >= worst - 1e-10 * (1.0 + fabs(worst));
    }
    *recall = (double)n_right / (double)(n_queries * w->k);
done:
    pnb_hits_reset(&hits);
    pnb__free(score);
    return status;
}

/* The same of an index that may miss some, of more queries, by an exact search. */
static pnb_status check_approximate(const search_work *w, const pnb_search_opts *opts,
                                    double *recall, size_t *n_unsure, pnb_error *err)
{
    const pnb_gaussians some = pnb_rows_slice(
        &w->queries.rows, 0, PNB_MIN((size_t)APPROXIMATE_QUERIES, w->queries.rows.n));
    pnb_search_opts exact = *opts;
    pnb_hits truth = {0}, hits = {0};
    size_t n_right = 0;
    pnb_status status;
    exact.kind = PNB_INDEX_EXACT;
    exact.k = w->k;
    PNB_TRY(pnb_search(w->app->ctx, &some, &w->gallery.rows, &exact, &truth, err));
    PNB_TRY(pnb_index_search(w->index, w->app->ctx, &some, w->k, &hits, err));
    for (size_t q = 0; q < some.n; q++)
        for (size_t i = 0; i < w->k; i++)
            n_right += hits.score[q * w->k + i] >= truth.score[(q + 1) * w->k - 1] - 1e-10;
    *recall = (double)n_right / (double)(some.n * w->k);
    *n_unsure = hits.n_unsure;
done:
    pnb_hits_reset(&truth);
    pnb_hits_reset(&hits);
    return status;
}

static pnb_status report_recall(const search_work *w, const pnb_search_opts *opts, pnb__result *r)
{
    pnb_index_about about;
    double recall = 0.0;
    size_t n_unsure = 0;
    pnb_error *err = &w->app->err;
    pnb_status status = opts->kind == PNB_INDEX_EXACT
                            ? check_recall(w, opts, &recall, err)
                            : check_approximate(w, opts, &recall, &n_unsure, err);
    if (status != PNB_OK)
        return status;
    pnb_index_describe(w->index, &about);
    if (opts->kind != PNB_INDEX_EXACT) {
        pnb__result_real(r, "bytes_a_row", "bytes a vector beside the rows",
                         about.bytes / (double)w->gallery.rows.n, 1);
        pnb__result_int(r, "n_unsure", "queries that an exact search may answer otherwise",
                        (int64_t)n_unsure);
    }
    if (about.n_sample > 0) {
        pnb__result_int(r, "effort", "rows kept by a walk, or cells", (int64_t)about.effort);
        pnb__result_real(r, "recall_of_rows", "recall at 10 of rows held out, at building",
                         about.recall, 4);
    }
    pnb__result_real(r, "recall",
                     opts->kind == PNB_INDEX_EXACT ? "recall against all pairs in f64"
                                                   : "recall against an exact search",
                     recall, 6);
    return PNB_OK;
}

static void report_times(const pnb__app *app, const pnb__bench_times *t, pnb__result *r)
{
    pnb__result_int(r, "threads", "threads", pnb_ctx_n_threads(app->ctx));
    pnb__result_int(r, "repeats", "repeats", (int64_t)t->n);
    pnb__result_real(r, "median_s", "median seconds a call", t->median_s, 6);
    pnb__result_real(r, "min_s", "least seconds", t->min_s, 6);
    pnb__result_real(r, "max_s", "most seconds", t->max_s, 6);
}

/* read: bytes of means that one call reads at least. */
static void report_rates(double flops, double read, double seconds, machine *limits, pnb__result *r)
{
    double gflops = 1e-9 * flops / seconds, gb = 1e-9 * read / seconds;
    double bandwidth = pnb__bench_summarise(limits->rate, limits->n_rates).median_s;
    pnb__result_real(r, "gflops", "GFLOP/s of inner products", gflops, 1);
    pnb__result_real(r, "sgemm_gflops", "GFLOP/s of sgemm", limits->sgemm, 1);
    pnb__result_real(r, "share", "share of sgemm", gflops / limits->sgemm, 3);
    pnb__result_real(r, "read_gb_s", "GB/s of means", gb, 2);
    pnb__result_real(r, "bandwidth_gb_s", "GB/s of memory", bandwidth, 2);
    pnb__result_real(r, "bandwidth_share", "share of bandwidth", gb / bandwidth, 3);
    pnb__result_real(r, "peak_rss_mb", "peak memory in MB", pnb__bench_peak_bytes() / 1e6, 1);
}

static pnb_status run_search(const pnb__bench_search_opts *o, const pnb_search_opts *opts,
                             search_work *w, pnb__result *r)
{
    pnb__app *app = w->app;
    pnb__bench_opts repeat = o->times;
    pnb__bench_times times;
    double start = pnb__now_s();
    pnb_status status;
    PNB_TRY(pnb_index_create(&w->index, app->ctx, &w->gallery.rows, opts, &app->err));
    double prepare_s = pnb__now_s() - start;
    PNB_TRY(init_machine(&w->limits, app->ctx, w->kernels, &w->gallery, &app->err));
    w->limits.seconds = o->times.seconds;
    repeat.between = w->limits.own == NULL ? read_between : NULL;
    measure_limits(&w->limits, app->ctx, w->kernels);
    PNB_TRY(pnb__bench_measure(app, &repeat, search_once, w, &times));
    measure_limits(&w->limits, app->ctx, w->kernels);
    report_times(app, &times, r);
    double n = (double)o->n, dim = (double)o->dim, queries = (double)o->n_queries;
    pnb__result_real(r, "queries_per_s", "queries a second", queries / times.median_s, 2);
    pnb__result_real(r, "prepare_s", "seconds to prepare the index", prepare_s, 4);
    report_rates(2.0 * queries * n * dim, n * dim * sizeof(float), times.median_s, &w->limits, r);
    status = report_recall(w, opts, r);
done:
    pnb__free_aligned(w->limits.own);
    pnb_index_free(w->index);
    return status;
}

/* "flat" is the field's word for all rows as they are. */
static pnb_index_kind kind_of(const char *name)
{
#define KIND_NAMED(NAME, word)                                                                     \
    if (strcmp(name, #word) == 0)                                                                  \
        return PNB_INDEX_##NAME;
    PNB_INDEX_LIST(KIND_NAMED)
#undef KIND_NAMED
    return PNB_INDEX_EXACT;
}

pnb_status pnb__bench_search(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__bench_search_opts *o = args;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb__kernels k;
    search_work w = {.app = app, .k = PNB_MIN(o->k, o->n), .kernels = &k};
    pnb_status status;
    pnb__kernels_fill_host(&k, app->ctx, PNB__F32);
    w.gallery.seed = (uint64_t)app->common.seed;
    w.queries.seed = w.gallery.seed + QUERY_SEED;
    opts.measure_opts.seed = w.gallery.seed;
    opts.measure = o->measure;
    opts.kind = kind_of(o->index);
    opts.recall = o->recall;
    w.gallery.n_centres = w.queries.n_centres = o->n_centres;
    w.gallery.n_factors = w.queries.n_factors = o->n_factors;
    if (o->n_samples > 0)
        opts.measure_opts.n_samples = (size_t)o->n_samples;
    PNB_TRY(make_set(&w.gallery, app, o->n, o->dim));
    PNB_TRY(make_set(&w.queries, app, o->n_queries, o->dim));
    choose_family(&w.gallery, opts.measure, true);
    choose_family(&w.queries, opts.measure, false);
    pnb__result_text(r, "what", "what",
                     opts.kind == PNB_INDEX_EXACT ? "exact search" : "search of candidates");
    pnb__result_text(r, "index", "index", o->index);
    pnb__result_text(r, "measure", "measure", pnb_measure_name(opts.measure));
    if (pnb__measure_is_sampled(opts.measure))
        pnb__result_int(r, "samples", "samples of a row", (int64_t)opts.measure_opts.n_samples);
    pnb__result_int(r, "n", "rows of the index", (int64_t)o->n);
    pnb__result_int(r, "dim", "width", (int64_t)o->dim);
    pnb__result_int(r, "queries", "queries of a call", (int64_t)o->n_queries);
    pnb__result_int(r, "k", "hits of a query", (int64_t)w.k);
    status = run_search(o, &opts, &w, r);
done:
    free_set(&w.gallery);
    free_set(&w.queries);
    return status;
}

/* ---- evaluation ---- */

typedef struct eval_work {
    pnb__app *app;
    set images, texts;
    pnb_truth *truth;
    pnb_search_opts opts;
    pnb_retrieval found;
} eval_work;

static pnb_status eval_once(void *user, pnb_error *err)
{
    eval_work *w = user;
    const pnb_retrieval_job job = {
        .a = &w->images.rows, .b = &w->texts.rows, .truth = w->truth, .opts = &w->opts};
    return pnb_retrieval_compute(w->app->ctx, &job, &w->found, NULL, NULL, err);
}

/* Captions lie around their picture, so that ranks are those of a model that has learned. */
static void pull_texts(const set *images, const set *texts)
{
    size_t dim = images->rows.dim, each = texts->rows.n / images->rows.n;
    for (size_t i = 0; i < texts->rows.n; i++) {
        const float *image = images->mean + PNB_MIN(i / each, images->rows.n - 1) * dim;
        float *text = texts->mean + i * dim;
        double norm = 0.0;
        for (size_t d = 0; d < dim; d++) {
            text[d] += 0.2f * image[d];
            norm += (double)text[d] * text[d];
        }
        for (size_t d = 0; d < dim; d++)
            text[d] /= (float)sqrt(norm);
    }
}

static pnb_status make_truth(eval_work *w, pnb_error *err)
{
    size_t n = w->texts.rows.n, n_images = w->images.rows.n, each = n / n_images;
    int64_t *pairs = pnb__alloc_array(n, 2 * sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, 2 * n * sizeof *pairs);
    for (size_t i = 0; i < n; i++) {
        pairs[2 * i] = (int64_t)PNB_MIN(i / each, n_images - 1);
        pairs[2 * i + 1] = (int64_t)i;
    }
    pnb_status status = pnb_truth_create_pairs(&w->truth, n_images, n, pairs, n, err);
    pnb__free(pairs);
    return status;
}

pnb_status pnb__bench_eval(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__bench_search_opts *o = args;
    eval_work w = {.app = app, .opts = pnb_search_opts_default()};
    pnb__bench_times times;
    pnb_status status;
    w.images.seed = (uint64_t)app->common.seed;
    w.texts.seed = w.images.seed + QUERY_SEED;
    if (o->n < o->n_queries)
        return pnb__usage(app, "%zu captions for %zu pictures; each picture needs at least one",
                          o->n, o->n_queries);
    w.opts.measure = o->measure;
    PNB_TRY(make_set(&w.images, app, o->n_queries, o->dim));
    PNB_TRY(make_set(&w.texts, app, o->n, o->dim));
    pull_texts(&w.images, &w.texts);
    choose_family(&w.images, w.opts.measure, false);
    choose_family(&w.texts, w.opts.measure, true);
    PNB_TRY(make_truth(&w, &app->err));
    PNB_TRY(pnb__bench_measure(app, &o->times, eval_once, &w, &times));
    pnb__result_text(r, "what", "what", "evaluation of retrieval both ways");
    pnb__result_text(r, "measure", "measure", pnb_measure_name(w.opts.measure));
    pnb__result_int(r, "images", "pictures", (int64_t)o->n_queries);
    pnb__result_int(r, "texts", "captions", (int64_t)o->n);
    pnb__result_int(r, "dim", "width", (int64_t)o->dim);
    report_times(app, &times, r);
    pnb__result_real(r, "recall_at_1_i2t", "R@1 picture to caption", w.found.forward.recall[0], 6);
    pnb__result_real(r, "recall_at_1_t2i", "R@1 caption to picture", w.found.backward.recall[0], 6);
    pnb__result_real(r, "mean_rank_i2t", NULL, w.found.forward.mean_rank, 4);
    pnb__result_real(r, "mean_rank_t2i", NULL, w.found.backward.mean_rank, 4);
    pnb__result_real(r, "peak_rss_mb", "peak memory in MB", pnb__bench_peak_bytes() / 1e6, 1);
done:
    pnb_truth_free(w.truth);
    free_set(&w.images);
    free_set(&w.texts);
    return status;
}
