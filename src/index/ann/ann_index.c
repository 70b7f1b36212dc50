/* The calls of the approximate indexes (index/index_kind.h).
 *
 * A row is the vector of its inner product with its term behind it, a query has a 1 there
 * (product_form.h), so any inner-product index holds the order of csd. FAISS finds candidates,
 * rescore.h ranks them. Rows that may not be hits are left out inside FAISS's walk, which looks the
 * further the fewer are left; where few are, or it found less than there is, those are scored one
 * by one: k hits come where k exist. */
#include "index/ann/ann.h"

#include <math.h>
#include <string.h>

#include "index/product_form.h"
#include "index/rescore.h"
#include "kernels/kernels.h"

enum { N_LINKS = 32, BREADTH = 200, PASS_QUERIES = 64, FEW_ROWS = 2000 };
enum { LEAST_HELD = 256, MOST_HELD = 1024, HELD_PART = 16 };

pnb_status pnb__ann_fail(const char *doing, const pnb__faiss_error *why, pnb_error *err)
{
    if (why->is_stopped)
        return pnb__fail(err, PNB_INTERRUPTED, "stopped, %s", doing);
    return why->is_memory ? pnb__fail_nomem(err, 0)
                          : pnb__fail(err, PNB_IO, "FAISS, %s: %s", doing, why->text);
}

/* ---- making ---- */

static pnb_status check(const char *kind, const pnb_gaussians *gallery, const pnb_search_opts *opts,
                        pnb_error *err)
{
    if (pnb__faiss_version() == NULL)
        return pnb__fail(
            err, PNB_UNSUPPORTED,
            "an index of kind %s needs FAISS, and this program was built without it: "
            "run `tools/install-deps` (the package is libfaiss-dev) and build it again",
            kind);
    if (!(opts->recall > 0 && opts->recall <= 1))
        return pnb__fail(err, PNB_ARG, "a recall of %g; it is a share above 0, up to 1",
                         opts->recall);
    return pnb__linear_check(gallery, opts, kind, err);
}

typedef struct fill_job {
    const pnb__ann *ann;
    float *x;
    bool *bad; /* [thread] */
} fill_job;

static void fill_rows(void *user, size_t begin, size_t end, int thread)
{
    const fill_job *job = user;
    const pnb__ann *ann = job->ann;
    bool ok = true;
    for (size_t i = begin; i < end; i++) {
        float *row = job->x + i * ann->width;
        row[ann->width - 1] =
            (float)pnb__linear_item(&ann->gallery, ann->opts.measure, i, row, &ok);
    }
    job->bad[thread] = job->bad[thread] || !ok;
}

/* What all terms have in common changes no order, and would make all rows alike for a graph, which
 * is made of their products with each other. */
static void centre_terms(const pnb__ann *ann, float *x)
{
    double sum = 0;
    for (size_t i = 0; i < ann->gallery.n; i++)
        sum += (double)x[(i + 1) * ann->width - 1];
    for (size_t i = 0; i < ann->gallery.n; i++) {
        float *term = x + (i + 1) * ann->width - 1;
        *term = (float)((double)*term - sum / (double)ann->gallery.n);
    }
}

static pnb_status make_rows(const pnb__ann *ann, const pnb_ctx *ctx, float **out, pnb_error *err)
{
    size_t n_threads = ctx != NULL ? (size_t)ctx->n_threads : 1;
    fill_job job = {.ann = ann};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(job.bad, n_threads, err));
    PNB_TRY(PNB_ALLOC_ROWS(job.x, ann->gallery.n, ann->width, err));
    pnb__parallel_for(ctx, ann->gallery.n, 64, fill_rows, &job);
    for (size_t t = 0; t < n_threads; t++)
        if (job.bad[t])
            PNB_TRY(pnb__fail(err, PNB_NUMERIC,
                              "the rows hold values that are not finite, or "
                              "beyond single precision"));
    centre_terms(ann, job.x);
    *out = job.x;
    job.x = NULL;
done:
    pnb__free(job.bad);
    pnb__free(job.x);
    return status;
}

/* About four times the square root of the rows, 39 of them a cell at least. */
static size_t count_cells(size_t n)
{
    size_t wanted = (size_t)(4 * sqrt((double)n));
    return PNB_MAX(PNB_MIN(wanted, n / 39), (size_t)1);
}

pnb__faiss_dot_fn pnb__ann_dot(const pnb_ctx *ctx)
{
    pnb__kernels k;
    if (ctx != NULL)
        pnb__kernels_fill_host(&k, ctx, PNB__F32);
    else
        pnb__kernels_ref_f32(&k);
    return k.host.dot;
}

/* Of all rows but those that are held out. */
static pnb_status build(pnb__ann *ann, const pnb_ctx *ctx, const float *x, size_t n, pnb_error *err)
{
    pnb__faiss_error why;
    const pnb__faiss_rows rows = {.x = x,
                                  .n = n,
                                  .width = ann->width,
                                  .n_threads = ctx != NULL ? ctx->n_threads : 1,
                                  .dot = pnb__ann_dot(ctx),
                                  .step = ann->opts.watch.step,
                                  .user = ann->opts.watch.user};
    bool ok = strcmp(ann->kind, "hnsw") == 0
                  ? pnb__faiss_hnsw(&ann->faiss, &rows, N_LINKS, BREADTH, &why)
                  : pnb__faiss_ivf(&ann->faiss, &rows, count_cells(rows.n), &why);
    return ok ? PNB_OK : pnb__ann_fail("building an index", &why, err);
}

/* A recall of 0.99 is known to 0.002 from a thousand queries. */
static size_t n_held_of(size_t n)
{
    if (n <= FEW_ROWS)
        return 0;
    return PNB_MIN(PNB_MAX(n / HELD_PART, (size_t)LEAST_HELD), (size_t)MOST_HELD);
}

/* The last rows wait until it is known how far to look; of few rows each is looked at anyway. */
static pnb_status build_and_tune(pnb__ann *ann, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n_held = n_held_of(ann->gallery.n), n = ann->gallery.n - n_held;
    pnb__faiss_error why;
    float *x = NULL;
    pnb_status status;
    PNB_TRY(make_rows(ann, ctx, &x, err));
    PNB_TRY(build(ann, ctx, x, n, err));
    ann->recall = 1;
    ann->effort = 1;
    if (n_held == 0)
        goto done;
    PNB_TRY(pnb__ann_tune(ann, ctx, n_held, err));
    if (!pnb__faiss_add(ann->faiss, x + n * ann->width, n_held, &why))
        status = pnb__ann_fail("building an index", &why, err);
done:
    pnb__free(x);
    return status;
}

void pnb__ann_free(void *self)
{
    pnb__ann *ann = self;
    if (ann == NULL)
        return;
    pnb__faiss_free(ann->faiss);
    pnb__free(ann);
}

static pnb_status begin(pnb__ann **out, const char *kind, const pnb_gaussians *gallery,
                        const pnb_search_opts *opts, pnb_error *err)
{
    pnb_status status = PNB_ALLOC_ZERO(*out, 1, err);
    if (status == PNB_OK)
        **out =
            (pnb__ann){.kind = kind, .gallery = *gallery, .opts = *opts, .width = gallery->dim + 1};
    return status;
}

static pnb_status create(const char *kind, void **self, const pnb_ctx *ctx,
                         const pnb_gaussians *gallery, const pnb_search_opts *opts, pnb_error *err)
{
    pnb__ann *ann = NULL;
    pnb_status status;
    PNB_TRY(begin(&ann, kind, gallery, opts, err));
    PNB_TRY(build_and_tune(ann, ctx, err));
    ann->opts.watch = (pnb_watch){0};
    *self = ann;
    ann = NULL;
done:
    pnb__ann_free(ann);
    return status;
}

static pnb_status open_file(const char *kind, void **self, const pnb_ctx *ctx,
                            const pnb_gaussians *gallery, const pnb__index_file *file,
                            pnb_error *err)
{
    pnb__ann *ann = NULL;
    pnb_status status;
    PNB_TRY(begin(&ann, kind, gallery, file->opts, err));
    PNB_TRY(pnb__ann_load(ann, ctx, file->path, err));
    *self = ann;
    ann = NULL;
done:
    pnb__ann_free(ann);
    return status;
}

/* ---- searching ---- */

void pnb__ann_queries(const pnb__ann *ann, const pnb_gaussians *queries, float *out)
{
    for (size_t q = 0; q < queries->n; q++) {
        pnb__linear_query(queries, ann->opts.measure, q, out + q * ann->width);
        out[q * ann->width + ann->width - 1] = 1;
    }
}

/* Some queries, and what is found for them. */
typedef struct ann_pass {
    const pnb__ann *ann;
    const pnb_ctx *ctx;
    const unsigned char *only; /* [row] or NULL */
    unsigned char *bits;       /* the same for FAISS */
    size_t n_pass;             /* rows that may be hits */
    size_t k;
    float *x, *product; /* [PASS_QUERIES][width], [PASS_QUERIES][candidates] */
} ann_pass;

static pnb_status count_rows(ann_pass *pass, pnb_error *err)
{
    size_t n = pass->ann->gallery.n;
    pass->n_pass = n;
    if (pass->only == NULL)
        return PNB_OK;
    pnb_status status = PNB_ALLOC_ZERO(pass->bits, (n + 7) / 8, err);
    pass->n_pass = 0;
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        if (pass->only[i] != 0) {
            pass->bits[i / 8] = (unsigned char)(pass->bits[i / 8] | 1U << i % 8);
            pass->n_pass++;
        }
    return status;
}

/* All rows that may be hits, of one query or more. */
static pnb_status take_all(const ann_pass *pass, const pnb_gaussians *queries, pnb_hits *out,
                           pnb_error *err)
{
    const pnb__rescoring again = {queries, &pass->ann->gallery, &pass->ann->opts, pass->k};
    pnb_hits near = {.n_queries = queries->n, .k = pass->n_pass};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(near.index, queries->n, near.k, err));
    for (size_t q = 0; q < queries->n; q++)
        for (size_t i = 0, n = 0; i < pass->ann->gallery.n; i++)
            if (pass->only == NULL || pass->only[i] != 0)
                near.index[q * near.k + n++] = (int64_t)i;
    status = pnb__rescore(pass->ctx, &again, &near, out, err);
done:
    pnb_hits_reset(&near);
    return status;
}

static pnb_status walk(const ann_pass *pass, const pnb_gaussians *queries, pnb_hits *near,
                       pnb_error *err)
{
    const pnb__ann *ann = pass->ann;
    double share = (double)pass->n_pass / (double)ann->gallery.n;
    pnb__faiss_error why;
    const pnb__faiss_query query = {
        .x = pass->x,
        .n = queries->n,
        .k = near->k,
        .effort = (size_t)fmin((double)ann->effort / share, (double)ann->gallery.n),
        .bits = pass->bits,
        .n_threads = pass->ctx != NULL ? pass->ctx->n_threads : 1};
    pnb__ann_queries(ann, queries, pass->x);
    return pnb__faiss_search(ann->faiss, &query, near->index, pass->product, &why)
               ? PNB_OK
               : pnb__ann_fail("searching", &why, err);
}

static void put_hits(pnb_hits *hits, size_t first, const pnb_hits *found)
{
    memcpy(hits->index + first * hits->k, found->index,
           found->n_queries * hits->k * sizeof *hits->index);
    memcpy(hits->score + first * hits->k, found->score,
           found->n_queries * hits->k * sizeof *hits->score);
}

/* Queries for which the walk found less than there is. */
static pnb_status complete(const ann_pass *pass, const pnb_gaussians *queries, pnb_hits *found,
                           pnb_error *err)
{
    size_t wanted = PNB_MIN(pass->k, pass->n_pass);
    pnb_status status = PNB_OK;
    for (size_t q = 0; q < found->n_queries && wanted > 0 && status == PNB_OK; q++) {
        pnb_hits all = {0};
        if (found->index[q * found->k + wanted - 1] >= 0)
            continue;
        const pnb_gaussians one = pnb_rows_slice(queries, q, 1);
        status = take_all(pass, &one, &all, err);
        if (status == PNB_OK)
            put_hits(found, q, &all);
        pnb_hits_reset(&all);
    }
    return status;
}

static pnb_status search_pass(const ann_pass *pass, const pnb_gaussians *queries, pnb_hits *found,
                              pnb_error *err)
{
    const pnb__ann *ann = pass->ann;
    const pnb__rescoring again = {queries, &ann->gallery, &ann->opts, pass->k};
    pnb_hits near = {.n_queries = queries->n};
    pnb_status status;
    if (pass->n_pass <= FEW_ROWS || pass->n_pass < ann->gallery.n / 50)
        return take_all(pass, queries, found, err);
    near.k = PNB_MIN(pnb__ann_candidates(pass->k), pass->n_pass);
    PNB_TRY(PNB_ALLOC_ROWS(near.index, near.n_queries, near.k, err));
    PNB_TRY(walk(pass, queries, &near, err));
    PNB_TRY(pnb__rescore(pass->ctx, &again, &near, found, err));
    found->n_unsure = queries->n;
    status = complete(pass, queries, found, err);
done:
    pnb_hits_reset(&near);
    return status;
}

static pnb_status nearest(const void *self, const pnb_ctx *ctx, const pnb__among *among,
                          pnb_hits *hits, pnb_error *err)
{
    const pnb__ann *ann = self;
    size_t n = among->queries->n, most = PNB_MIN(n, (size_t)PASS_QUERIES);
    ann_pass pass = {.ann = ann, .ctx = ctx, .only = among->only, .k = among->k};
    pnb_status status;
    PNB_TRY(pnb__linear_check_queries(&ann->gallery, among->queries, &ann->opts, err));
    PNB_TRY(count_rows(&pass, err));
    *hits = (pnb_hits){.n_queries = n, .k = among->k};
    PNB_TRY(PNB_ALLOC_ROWS(hits->index, n, among->k, err));
    PNB_TRY(PNB_ALLOC_ROWS(hits->score, n, among->k, err));
    PNB_TRY(PNB_ALLOC_ROWS(pass.x, most, ann->width, err));
    PNB_TRY(PNB_ALLOC_ROWS(pass.product, most,
                           PNB_MIN(pnb__ann_candidates(among->k), ann->gallery.n), err));
    for (size_t first = 0; first < n; first += PASS_QUERIES) {
        const pnb_gaussians some =
            pnb_rows_slice(among->queries, first, PNB_MIN((size_t)PASS_QUERIES, n - first));
        pnb_hits found = {0};
        PNB_TRY(search_pass(&pass, &some, &found, err));
        put_hits(hits, first, &found);
        hits->n_unsure += found.n_unsure;
        pnb_hits_reset(&found);
    }
done:
    pnb__free(pass.bits);
    pnb__free(pass.x);
    pnb__free(pass.product);
    return status;
}

/* ---- what it is ---- */

static bool count_bytes(void *user, const void *bytes, size_t n)
{
    double *sum = user;
    (void)bytes;
    *sum += (double)n;
    return true;
}

static void describe(const void *self, pnb_index_about *out)
{
    const pnb__ann *ann = self;
    pnb__faiss_error why;
    (void)pnb__faiss_write(ann->faiss, count_bytes, &out->bytes, &why);
    out->recall = ann->recall;
    out->effort = ann->effort;
    out->n_sample = ann->n_sample;
}

/* ---- the two kinds ---- */

static pnb_status check_hnsw(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                             pnb_error *err)
{
    return check("hnsw", gallery, opts, err);
}

static pnb_status create_hnsw(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                              const pnb_search_opts *opts, pnb_error *err)
{
    return create("hnsw", self, ctx, gallery, opts, err);
}

static pnb_status open_hnsw(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                            const pnb__index_file *file, pnb_error *err)
{
    return open_file("hnsw", self, ctx, gallery, file, err);
}

static pnb_status check_ivf(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                            pnb_error *err)
{
    return check("ivf", gallery, opts, err);
}

static pnb_status create_ivf(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                             const pnb_search_opts *opts, pnb_error *err)
{
    return create("ivf", self, ctx, gallery, opts, err);
}

static pnb_status open_ivf(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                           const pnb__index_file *file, pnb_error *err)
{
    return open_file("ivf", self, ctx, gallery, file, err);
}

const pnb__index_calls pnb__index_hnsw = {.name = "hnsw",
                                          .check = check_hnsw,
                                          .create = create_hnsw,
                                          .free = pnb__ann_free,
                                          .nearest = nearest,
                                          .describe = describe,
                                          .save = pnb__ann_save,
                                          .open = open_hnsw};
const pnb__index_calls pnb__index_ivf = {.name = "ivf",
                                         .check = check_ivf,
                                         .create = create_ivf,
                                         .free = pnb__ann_free,
                                         .nearest = nearest,
                                         .describe = describe,
                                         .save = pnb__ann_save,
                                         .open = open_ivf};
