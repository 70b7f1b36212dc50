/* A flat view of Gaussians: the two axes of largest spread of their mixture.
 *
 * Covariance of samples from all Gaussians = covariance of the means + diag(mean variance), so the
 * fit is the PCA of infinitely many samples without drawing one. The leading eigenvectors come from
 * subspace iteration on X^T(X V)/n + diag(s) V with N_TRIAL vectors: no D x D matrix. A projection
 * is linear, so N(mu, diag s) maps to N(A(mu - c), A diag(s) A^T). */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "penumbra/pca.h"

#define N_TRIAL 8
#define MAX_STEPS 500
#define TOLERANCE 1e-12

typedef struct fit {
    const pnb_gaussians *const *sets;
    size_t n_sets, dim, n_rows, n_trial;
    double *x;             /* [n_rows][dim] centred means */
    double *spread;        /* [dim] mean variance */
    double *v, *next, *xv; /* [n_trial][dim] twice, [n_rows][n_trial] */
    pnb_ctx ctx;
    pnb__kernels kernels;
} fit;

void pnb_pca_reset(pnb_pca *pca)
{
    if (pca == NULL)
        return;
    pnb__free(pca->centre);
    pnb__free(pca->axis);
    *pca = (pnb_pca){0};
}

static size_t rows_used(const pnb_gaussians *g)
{
    return PNB_MIN(g->n, (size_t)PNB_PCA_MAX_ROWS);
}

/* Copies the means of evenly spaced rows, adds up variances; the centre is subtracted later. */
static void gather(fit *f, double *centre)
{
    size_t row = 0, dim = f->dim;
    for (size_t s = 0; s < f->n_sets; s++) {
        const pnb_gaussians *g = f->sets[s];
        size_t used = rows_used(g);
        for (size_t i = 0; i < used; i++, row++) {
            size_t from = i * g->n / used * dim;
            for (size_t d = 0; d < dim; d++) {
                double m = g->mean[from + d];
                f->x[row * dim + d] = m;
                centre[d] += m / (double)f->n_rows;
                if (g->log_var != NULL)
                    f->spread[d] += exp((double)g->log_var[from + d]) / (double)f->n_rows;
            }
        }
    }
}

static double centre_rows(fit *f, const double *centre)
{
    double total = 0.0;
    for (size_t i = 0; i < f->n_rows; i++)
        for (size_t d = 0; d < f->dim; d++) {
            double *x = &f->x[i * f->dim + d];
            *x -= centre[d];
            total += *x * *x / (double)f->n_rows;
        }
    for (size_t d = 0; d < f->dim; d++)
        total += f->spread[d];
    return total;
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < n; d++)
        sum += x[d] * y[d];
    return sum;
}

/* Gram-Schmidt, twice for accuracy; a vector that vanishes becomes a fresh unit vector. */
static void orthonormalise(double *v, size_t n, size_t dim)
{
    for (size_t i = 0; i < n; i++) {
        double *vi = v + i * dim;
        for (size_t attempt = 0;; attempt++) {
            double before = sqrt(dot(vi, vi, dim));
            for (int pass = 0; pass < 2; pass++)
                for (size_t j = 0; j < i; j++) {
                    double c = dot(vi, v + j * dim, dim);
                    for (size_t d = 0; d < dim; d++)
                        vi[d] -= c * v[j * dim + d];
                }
            double norm = sqrt(dot(vi, vi, dim));
            if (norm > 1e-10 * before && norm > 0.0) {
                for (size_t d = 0; d < dim; d++)
                    vi[d] /= norm;
                break;
            }
            for (size_t d = 0; d < dim; d++)
                vi[d] = d == (i + attempt) % dim ? 1.0 : 0.0;
        }
    }
}

/* next = covariance * v, all trial vectors at once */
static void apply_covariance(fit *f)
{
    size_t dim = f->dim, k = f->n_trial;
    pnb__gemm_args xv = {.trans_b = true,
                         .m = f->n_rows,
                         .n = k,
                         .k = dim,
                         .lda = dim,
                         .ldb = dim,
                         .ldc = k,
                         .n_batch = 1,
                         .alpha = 1.0,
                         .a = f->x,
                         .b = f->v,
                         .c = f->xv,
                         .act = PNB__IDENTITY};
    f->kernels.gemm(&f->ctx, &xv);
    pnb__gemm_args back = {.trans_a = true,
                           .m = k,
                           .n = dim,
                           .k = f->n_rows,
                           .lda = k,
                           .ldb = dim,
                           .ldc = dim,
                           .n_batch = 1,
                           .alpha = 1.0 / (double)f->n_rows,
                           .a = f->xv,
                           .b = f->x,
                           .c = f->next,
                           .act = PNB__IDENTITY};
    f->kernels.gemm(&f->ctx, &back);
    for (size_t i = 0; i < k; i++)
        for (size_t d = 0; d < dim; d++)
            f->next[i * dim + d] += f->spread[d] * f->v[i * dim + d];
}

/* Subspace iteration. Gram-Schmidt in order keeps the leading vectors first: vector i converges to
 * eigenvector i. Stops when neither of the first two turns any more. */
static void iterate(fit *f)
{
    pnb__rng rng;
    size_t dim = f->dim, n = f->n_trial * dim;
    pnb__rng_init(&rng, 0, 0);
    for (size_t i = 0; i < n; i++)
        f->v[i] = pnb__rng_normal(&rng);
    orthonormalise(f->v, f->n_trial, dim);
    for (int step = 0; step < MAX_STEPS; step++) {
        apply_covariance(f);
        orthonormalise(f->next, f->n_trial, dim);
        double turn = 0.0;
        for (size_t i = 0; i < 2; i++)
            turn = fmax(turn, 1.0 - fabs(dot(f->v + i * dim, f->next + i * dim, dim)));
        memcpy(f->v, f->next, n * sizeof *f->v);
        if (turn < TOLERANCE)
            return;
    }
}

static void store_axes(fit *f, pnb_pca *pca)
{
    size_t dim = f->dim;
    apply_covariance(f);
    for (size_t i = 0; i < 2; i++) {
        const double *v = f->v + i * dim;
        size_t largest = 0;
        for (size_t d = 1; d < dim; d++)
            if (fabs(v[d]) > fabs(v[largest]))
                largest = d;
        double sign = v[largest] < 0.0 ? -1.0 : 1.0;
        for (size_t d = 0; d < dim; d++)
            pca->axis[i * dim + d] = sign * v[d];
        pca->variance[i] = dot(v, f->next + i * dim, dim);
    }
}

static pnb_status check_sets(fit *f, pnb_error *err)
{
    f->dim = f->n_sets > 0 ? f->sets[0]->dim : 0;
    for (size_t s = 0; s < f->n_sets; s++) {
        if (f->sets[s]->dim != f->dim)
            return pnb__fail(err, PNB_SHAPE, "set 0 has width %zu, set %zu has %zu", f->dim, s,
                             f->sets[s]->dim);
        f->n_rows += rows_used(f->sets[s]);
    }
    if (f->n_rows < 2 || f->dim < 2)
        return pnb__fail(err, PNB_SHAPE,
                         "%zu rows of width %zu; a plane needs at least 2 rows and width 2",
                         f->n_rows, f->dim);
    f->n_trial = PNB_MIN(f->dim, N_TRIAL);
    return PNB_OK;
}

static pnb_status alloc_fit(fit *f, pnb_pca *out, pnb_error *err)
{
    if (PNB_ALLOC_ROWS(f->x, f->n_rows, f->dim, err) != PNB_OK ||
        PNB_ALLOC_ZERO(f->spread, f->dim, err) != PNB_OK ||
        PNB_ALLOC_ROWS(f->v, f->n_trial, f->dim, err) != PNB_OK ||
        PNB_ALLOC_ROWS(f->next, f->n_trial, f->dim, err) != PNB_OK ||
        PNB_ALLOC_ROWS(f->xv, f->n_rows, f->n_trial, err) != PNB_OK ||
        PNB_ALLOC_ZERO(out->centre, f->dim, err) != PNB_OK ||
        PNB_ALLOC(out->axis, 2 * f->dim, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

pnb_status pnb_pca_fit(pnb_pca *out, const pnb_gaussians *const *sets, size_t n_sets,
                       pnb_error *err)
{
    pnb_status status = PNB_OK;
    /* One thread: the picture must not change with the machine's number of cores. */
    fit f = {.sets = sets, .n_sets = n_sets, .ctx = {.n_threads = 1, .isa = PNB_ISA_GENERIC}};
    *out = (pnb_pca){0};
    PNB_TRY(check_sets(&f, err));
    PNB_TRY(alloc_fit(&f, out, err));
    out->dim = f.dim;
    pnb__kernels_fill_host(&f.kernels, &f.ctx, PNB__F64);
    gather(&f, out->centre);
    out->total_variance = centre_rows(&f, out->centre);
    if (!isfinite(out->total_variance))
        PNB_TRY(pnb__fail(err, PNB_NUMERIC, "the embeddings hold values that are not finite"));
    iterate(&f);
    store_axes(&f, out);
done:
    pnb__free(f.x);
    pnb__free(f.spread);
    pnb__free(f.v);
    pnb__free(f.next);
    pnb__free(f.xv);
    if (status != PNB_OK)
        pnb_pca_reset(out);
    return status;
}

pnb_status pnb_pca_project(const pnb_pca *pca, const pnb_gaussians *x, double *xy, double *cov,
                           pnb_error *err)
{
    const double *a = pca->axis, *b = pca->axis + pca->dim;
    if (x->dim != pca->dim)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width %zu, the axes have %zu", x->dim,
                         pca->dim);
    for (size_t i = 0; i < x->n; i++) {
        double px = 0.0, py = 0.0, c[3] = {0.0, 0.0, 0.0};
        for (size_t d = 0; d < x->dim; d++) {
            double m = (double)x->mean[i * x->dim + d] - pca->centre[d];
            double v = x->log_var == NULL ? 0.0 : exp((double)x->log_var[i * x->dim + d]);
            px += a[d] * m;
            py += b[d] * m;
            c[0] += v * a[d] * a[d];
            c[1] += v * a[d] * b[d];
            c[2] += v * b[d] * b[d];
        }
        xy[2 * i] = px;
        xy[2 * i + 1] = py;
        if (cov != NULL)
            memcpy(cov + 3 * i, c, sizeof c);
    }
    return PNB_OK;
}
