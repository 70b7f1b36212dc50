/* Which rows to label next: the most uncertain, random ones, or a cover of all of them.
 *
 * Greedy k-centre (farthest first) keeps for every row the distance to the nearest row that is
 * labelled or chosen, and takes the row where it is largest: a cover at most twice as wide as the
 * best one (Gonzalez 1985; Sener and Savarese 2018 for active learning). Squared distances are
 * summed in f64 in an order of their own, whatever the number of threads. GroVE's rounds take the
 * most uncertain rows; what a round trains is not decided here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/selection.h"

static bool is_taken(const unsigned char *taken, size_t i)
{
    return taken != NULL && taken[i] != 0;
}

static pnb_status check_count(size_t n, const unsigned char *taken, size_t count, pnb_error *err)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += !is_taken(taken, i);
    if (count == 0 || count > n_left)
        return pnb__fail(err, PNB_ARG,
                         "%zu rows to choose, but %zu of %zu are not labelled yet; 1 to %zu are "
                         "possible",
                         count, n_left, n, n_left);
    return PNB_OK;
}

/* ---- most uncertain ---- */

pnb_status pnb_select_uncertain(const double *u, size_t n, const unsigned char *taken, size_t count,
                                size_t *row, pnb_error *err)
{
    size_t n_left = 0;
    pnb_status status = check_count(n, taken, count, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(u[i]))
            return pnb__fail(err, PNB_NUMERIC, "the uncertainty of row %zu is %g", i, u[i]);
    pnb__valued *left = pnb__alloc_array(n, sizeof *left);
    if (left == NULL)
        return pnb__fail_nomem(err, n * sizeof *left);
    for (size_t i = 0; i < n; i++)
        if (!is_taken(taken, i))
            left[n_left++] = (pnb__valued){u[i], i};
    qsort(left, n_left, sizeof *left, pnb__by_value_down);
    for (size_t i = 0; i < count; i++)
        row[i] = left[i].place;
    pnb__free(left);
    return PNB_OK;
}

/* ---- random ---- */

pnb_status pnb_select_random(size_t n, const unsigned char *taken, size_t count, uint64_t seed,
                             size_t *row, pnb_error *err)
{
    pnb__rng rng;
    size_t n_left = 0;
    pnb_status status = check_count(n, taken, count, err);
    if (status != PNB_OK)
        return status;
    size_t *left = pnb__alloc_array(n, sizeof *left);
    if (left == NULL)
        return pnb__fail_nomem(err, n * sizeof *left);
    for (size_t i = 0; i < n; i++)
        if (!is_taken(taken, i))
            left[n_left++] = i;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < count; i++) { /* the first `count` steps of a Fisher-Yates shuffle */
        size_t j = i + (size_t)pnb__rng_below(&rng, n_left - i), picked = left[j];
        left[j] = left[i];
        left[i] = picked;
        row[i] = picked;
    }
    pnb__free(left);
    return PNB_OK;
}

/* ---- k-centre ---- */

typedef struct centre_job {
    const pnb_gaussians *rows;
    const float *std; /* [n][dim] or NULL */
    size_t centre;
    double *square; /* [n] squared distance to the nearest centre; -1: a centre itself */
} centre_job;

static double squared_distance(const float *a, const float *b, size_t dim)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++) {
        double difference = (double)a[d] - (double)b[d];
        sum += difference * difference;
    }
    return sum;
}

static void cover_rows(void *user, size_t begin, size_t end, int thread)
{
    const centre_job *job = user;
    size_t dim = job->rows->dim;
    const float *centre = job->rows->mean + job->centre * dim;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        if (job->square[i] < 0)
            continue;
        double square = squared_distance(job->rows->mean + i * dim, centre, dim);
        if (job->std != NULL)
            square += squared_distance(job->std + i * dim, job->std + job->centre * dim, dim);
        job->square[i] = fmin(job->square[i], square);
    }
}

static void add_centre(const pnb_ctx *ctx, centre_job *job, size_t row)
{
    job->centre = row;
    job->square[row] = -1;
    pnb__parallel_for(ctx, job->rows->n, 1024, cover_rows, job);
}

/* The row furthest from all centres, ties to the lower one. */
static size_t furthest(const centre_job *job)
{
    size_t best = 0;
    for (size_t i = 1; i < job->rows->n; i++)
        if (job->square[i] > job->square[best])
            best = i;
    return best;
}

static pnb_status make_std(const pnb_gaussians *rows, float **out, pnb_error *err)
{
    size_t n = rows->n * rows->dim;
    float *std = pnb__alloc_array(n, sizeof *std);
    if (std == NULL)
        return pnb__fail_nomem(err, n * sizeof *std);
    for (size_t i = 0; i < n; i++) {
        std[i] = expf(0.5f * rows->log_var[i]);
        if (!isfinite(std[i])) {
            pnb__free(std);
            return pnb__fail(err, PNB_NUMERIC, "row %zu: a log-variance of %g is no spread",
                             i / rows->dim, (double)rows->log_var[i]);
        }
    }
    *out = std;
    return PNB_OK;
}

static pnb_status check_rows(const pnb_gaussians *rows, const pnb_k_centre_opts *o, pnb_error *err)
{
    if (rows->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "rows of width 0");
    if (o->with_spread && rows->log_var == NULL)
        return pnb__fail(err, PNB_ARG,
                         "distances of spreads are wanted, but the rows are points without any");
    for (size_t i = 0; i < rows->n * rows->dim; i++)
        if (!isfinite(rows->mean[i]) || (o->with_spread && !isfinite(rows->log_var[i])))
            return pnb__fail(err, PNB_NUMERIC, "row %zu is not finite", i / rows->dim);
    return PNB_OK;
}

/* Takes the labelled rows in; with none, draws the first centre into row[0]. */
static size_t begin_cover(const pnb_ctx *ctx, centre_job *job, const unsigned char *taken,
                          uint64_t seed, size_t *row, double *distance)
{
    size_t n = job->rows->n;
    bool has_taken = false;
    pnb__rng rng;
    for (size_t i = 0; i < n; i++)
        job->square[i] = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (is_taken(taken, i)) {
            add_centre(ctx, job, i);
            has_taken = true;
        }
    if (has_taken)
        return 0;
    pnb__rng_init(&rng, seed, 0);
    row[0] = (size_t)pnb__rng_below(&rng, n);
    if (distance != NULL)
        distance[0] = INFINITY;
    add_centre(ctx, job, row[0]);
    return 1;
}

pnb_status pnb_select_k_centre(const pnb_ctx *ctx, const pnb_gaussians *rows,
                               const unsigned char *taken, size_t count,
                               const pnb_k_centre_opts *opts, size_t *row, double *distance,
                               pnb_error *err)
{
    pnb_k_centre_opts o = opts != NULL ? *opts : (pnb_k_centre_opts){0};
    centre_job job = {.rows = rows};
    float *std = NULL;
    pnb_status status;
    PNB_TRY(check_count(rows->n, taken, count, err));
    PNB_TRY(check_rows(rows, &o, err));
    if (o.with_spread)
        PNB_TRY(make_std(rows, &std, err));
    job.std = std;
    PNB_TRY(PNB_ALLOC(job.square, rows->n, err));
    for (size_t i = begin_cover(ctx, &job, taken, o.seed, row, distance); i < count; i++) {
        row[i] = furthest(&job);
        if (distance != NULL)
            distance[i] = sqrt(job.square[row[i]]);
        add_centre(ctx, &job, row[i]);
        if (o.watch.step != NULL && !o.watch.step(o.watch.user, i + 1, count))
            PNB_TRY(pnb__fail(err, PNB_INTERRUPTED, "stopped after %zu of %zu rows", i + 1, count));
    }
done:
    pnb__free(std);
    pnb__free(job.square);
    return status;
}
