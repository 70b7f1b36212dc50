/* Likelihood of an embedding under its side's Gaussian (Betser, Levi and Gilboa, ICML 2025).
 *
 *   S = (1/N) sum_i (x_i - m)(x_i - m)^T,   S' = (1 - r) S + r (tr S / D) I = V L V^T
 *   w = L^-1/2 V^T (x - m),   log p(x) = -(1/2)(D log 2 pi + |w|^2)
 *
 * p is the density of w under N(0, I), as the paper has it: the constant log det of the map is left
 * out. Uncertainty of a row: q = |w|^2 / D, 1 on average over the rows learned from when r = 0
 * ("rare"), or 1/q ("common"). The paper gives its matrix no shrinkage and takes 5,000 rows for 768
 * dimensions; here r is Ledoit and Wolf's (2004), which goes to 0 as N grows, and at least 1/N
 * where N <= D, so that fewer rows than dimensions give a covariance that can be inverted too. */
#include <math.h>
#include <string.h>

#include "adapt/adapter.h"
#include "kernels/kernels.h"
#include "prob/eigen.h"

enum { BLOCK = 1024 }; /* rows at a time */

typedef struct whitened {
    double *mean[PNB_N_ADAPTER_SIDES];     /* (D) m */
    double *basis[PNB_N_ADAPTER_SIDES];    /* (D,D) row i: eigenvector i, largest value first */
    double *variance[PNB_N_ADAPTER_SIDES]; /* (D) diagonal of L, all above 0 */
    double *whiten[PNB_N_ADAPTER_SIDES];   /* (D,D) L^-1/2 V^T */
} whitened;

static const char *const mean_names[] = {"image.mean", "text.mean"};
static const char *const basis_names[] = {"image.basis", "text.basis"};
static const char *const variance_names[] = {"image.variance", "text.variance"};

static pnb_status make_room(whitened *w, int side, size_t dim, pnb_error *err)
{
    size_t square = 0;
    if (pnb__mul_overflows(dim, dim, &square))
        return pnb__fail_nomem(err, SIZE_MAX);
    w->mean[side] = pnb__alloc_array(dim, sizeof(double));
    w->basis[side] = pnb__alloc_array(square, sizeof(double));
    w->variance[side] = pnb__alloc_array(dim, sizeof(double));
    w->whiten[side] = pnb__alloc_array(square, sizeof(double));
    bool has_room = w->mean[side] != NULL && w->basis[side] != NULL && w->variance[side] != NULL &&
                    w->whiten[side] != NULL;
    return has_room ? PNB_OK : pnb__fail_nomem(err, 2 * square * sizeof(double));
}

/* whiten = L^-1/2 V^T. NUMERIC where a variance is not above 0. */
static pnb_status make_map(whitened *w, int side, size_t dim, const char *where, pnb_error *err)
{
    for (size_t i = 0; i < dim; i++) {
        double variance = w->variance[side][i];
        if (!(variance > 0.0))
            return pnb__fail(err, PNB_NUMERIC,
                             "%s: variance %zu of the %s embeddings is %g, "
                             "wanted more than 0",
                             where, i, pnb__adapter_side_word((pnb_adapter_side)side), variance);
        double scale = 1.0 / sqrt(variance);
        for (size_t d = 0; d < dim; d++)
            w->whiten[side][i * dim + d] = scale * w->basis[side][i * dim + d];
    }
    return PNB_OK;
}

/* ---- learning ---- */

typedef struct moments {
    double *s;            /* (D,D) covariance */
    double *block;        /* (BLOCK,D) centred rows */
    double fourths;       /* sum_i |x_i - m|^4 */
    double trace, square; /* tr S, |S|_F^2 */
} moments;

static void add_block(moments *m, const pnb_ctx *ctx, const pnb__kernels *k, size_t n, size_t dim,
                      size_t n_all)
{
    const pnb__gemm_args product = {.trans_a = true,
                                    .m = dim,
                                    .n = dim,
                                    .k = n,
                                    .lda = dim,
                                    .ldb = dim,
                                    .ldc = dim,
                                    .n_batch = 1,
                                    .alpha = 1.0 / (double)n_all,
                                    .beta = 1,
                                    .a = m->block,
                                    .b = m->block,
                                    .c = m->s,
                                    .act = PNB__IDENTITY};
    k->gemm(ctx, &product);
    for (size_t i = 0; i < n; i++) {
        double square = 0.0;
        for (size_t d = 0; d < dim; d++)
            square += m->block[i * dim + d] * m->block[i * dim + d];
        m->fourths += square * square;
    }
}

static pnb_status find_covariance(moments *m, const pnb_ctx *ctx, const pnb__adapter_rows *rows,
                                  const double *mean, pnb_error *err)
{
    size_t dim = rows->set->dim;
    pnb__kernels kernels;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    m->s = pnb__alloc_zero(dim * dim, sizeof(double));
    m->block = pnb__alloc_array(PNB_MIN(rows->n, (size_t)BLOCK), dim * sizeof(double));
    if (m->s == NULL || m->block == NULL)
        return pnb__fail_nomem(err, dim * dim * sizeof(double));
    for (size_t begin = 0; begin < rows->n; begin += BLOCK) {
        size_t n = PNB_MIN(rows->n - begin, (size_t)BLOCK);
        for (size_t i = 0; i < n; i++) {
            const float *x = pnb__adapter_row(rows, begin + i);
            for (size_t d = 0; d < dim; d++)
                m->block[i * dim + d] = (double)x[d] - mean[d];
        }
        add_block(m, ctx, &kernels, n, dim, rows->n);
        pnb__adapter_rows_done(rows, begin, begin + n);
    }
    for (size_t d = 0; d < dim; d++)
        m->trace += m->s[d * dim + d];
    for (size_t d = 0; d < dim * dim; d++)
        m->square += m->s[d] * m->s[d];
    return PNB_OK;
}

/* Ledoit and Wolf: r = min(b, d)/d of
 *   d = |S - (tr S/D) I|^2,   b = (1/N^2) sum_i |x_i x_i^T - S|^2, x centred. */
static double shrinkage_of(const moments *m, size_t n, size_t dim)
{
    double rows = (double)n, d = m->square - m->trace * m->trace / (double)dim;
    double b = (m->fourths / rows - m->square) / rows;
    double r = d > 0.0 ? fmin(fmax(b, 0.0), d) / d : 1.0;
    return n <= dim ? fmax(r, 1.0 / rows) : r;
}

/* Rows that are all the same have nothing to whiten; rounding leaves them about this much. */
static pnb_status check_spread(const moments *m, const pnb__adapter_rows *rows, const double *mean,
                               pnb_error *err)
{
    double square = 0.0;
    for (size_t d = 0; d < rows->set->dim; d++)
        square += mean[d] * mean[d];
    if (m->trace > 1e-14 * square && m->trace > 0.0 && isfinite(m->square))
        return PNB_OK;
    if (!isfinite(m->square))
        return pnb__fail(err, PNB_NUMERIC, "the covariance of the %s embeddings overflows",
                         rows->what);
    return pnb__fail(err, PNB_NUMERIC,
                     rows->n == 1
                         ? "%zu %s embedding has no covariance to whiten with"
                         : "all %zu %s embeddings are the same: they have no covariance to "
                           "whiten with",
                     rows->n, rows->what);
}

/* S' = V L V^T, in the method's arrays. */
static pnb_status decompose(whitened *w, int side, moments *m, const pnb__adapter_rows *rows,
                            double shrinkage, pnb_error *err)
{
    size_t dim = rows->set->dim;
    double *work = pnb__alloc_array(2 * dim, sizeof(double));
    if (work == NULL)
        return pnb__fail_nomem(err, 2 * dim * sizeof(double));
    bool is_done = pnb__eigen_symmetric(dim, m->s, w->variance[side], w->basis[side], work);
    pnb__free(work);
    if (!is_done)
        return pnb__fail(err, PNB_NUMERIC,
                         "the eigenvalues of the covariance of the %s embeddings were not found",
                         rows->what);
    double floor = 1e-13 * w->variance[side][0];
    size_t rank = 0;
    for (size_t i = 0; i < dim; i++) {
        double variance = fmax(w->variance[side][i], 0.0);
        rank += variance > floor;
        w->variance[side][i] = (1.0 - shrinkage) * variance + shrinkage * m->trace / (double)dim;
    }
    if (rank < dim && shrinkage * m->trace / (double)dim <= floor)
        return pnb__fail(err, PNB_NUMERIC,
                         "%zu %s embeddings spread along %zu of %zu dimensions: a covariance like "
                         "that needs a shrinkage above 0 to be inverted",
                         rows->n, rows->what, rank, dim);
    return PNB_OK;
}

static pnb_status fit_side(pnb_adapter *a, int side, const pnb__adapter_rows *rows, pnb_error *err)
{
    whitened *w = a->self;
    moments m = {0};
    pnb_status status;
    PNB_TRY(make_room(w, side, rows->set->dim, err));
    PNB_TRY(pnb__adapter_mean(rows, false, w->mean[side], err));
    PNB_TRY(find_covariance(&m, a->ctx, rows, w->mean[side], err));
    PNB_TRY(check_spread(&m, rows, w->mean[side], err));
    double shrinkage =
        isnan(a->opts.shrinkage) ? shrinkage_of(&m, rows->n, rows->set->dim) : a->opts.shrinkage;
    PNB_TRY(decompose(w, side, &m, rows, shrinkage, err));
    pnb__adapter_tell(a, (pnb_adapter_side)side, "shrinkage", shrinkage);
    status = make_map(w, side, rows->set->dim, "whitened", err);
done:
    pnb__free(m.s);
    pnb__free(m.block);
    return status;
}

static pnb_status fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (!isnan(a->opts.shrinkage) && !(a->opts.shrinkage >= 0.0 && a->opts.shrinkage <= 1.0))
        return pnb__fail(err, PNB_ARG, "shrinkage is %g, it must be from 0 to 1",
                         a->opts.shrinkage);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (a->part[s].is_adapted)
            status = fit_side(a, s, &job->side[s], err);
    return status;
}

/* ---- files ---- */

static pnb_status open_file(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                            pnb_error *err)
{
    whitened *w = a->self;
    pnb_status status = pnb__adapter_check_kept(a, where, err);
    if (status != PNB_OK)
        return status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = a->part[s].dim;
        if (!a->part[s].is_adapted)
            continue;
        PNB_TRY(pnb__adapter_find(file, basis_names[s], dim, dim, where, err)); /* before memory */
        PNB_TRY(make_room(w, s, dim, err));
        PNB_TRY(pnb__adapter_get(file, mean_names[s], w->mean[s], dim, 0, where, err));
        PNB_TRY(pnb__adapter_get(file, basis_names[s], w->basis[s], dim, dim, where, err));
        PNB_TRY(pnb__adapter_get(file, variance_names[s], w->variance[s], dim, 0, where, err));
        PNB_TRY(make_map(w, s, dim, where, err));
    }
done:
    return status;
}

static pnb_status arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err)
{
    const whitened *w = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = a->part[s].dim;
        if (!a->part[s].is_adapted)
            continue;
        PNB_TRY(pnb__adapter_put(to, mean_names[s], w->mean[s], dim, 0, err));
        PNB_TRY(pnb__adapter_put(to, basis_names[s], w->basis[s], dim, dim, err));
        PNB_TRY(pnb__adapter_put(to, variance_names[s], w->variance[s], dim, 0, err));
    }
done:
    return status;
}

/* ---- applying ---- */

/* white (n,D) = centred (n,D) times whiten^T */
static void whiten_rows(const pnb_adapter *a, const double *whiten, const double *centred,
                        double *white, size_t n, size_t dim)
{
    pnb__kernels kernels;
    const pnb__gemm_args product = {.trans_b = true,
                                    .m = n,
                                    .n = dim,
                                    .k = dim,
                                    .lda = dim,
                                    .ldb = dim,
                                    .ldc = dim,
                                    .n_batch = 1,
                                    .alpha = 1.0,
                                    .a = centred,
                                    .b = whiten,
                                    .c = white,
                                    .act = PNB__IDENTITY};
    pnb__kernels_fill_host(&kernels, a->ctx, PNB__F64);
    kernels.gemm(a->ctx, &product);
}

static pnb_status spread_row(const pnb_adapter *a, const pnb__adapter_block *block, size_t i,
                             const double *white, pnb_error *err)
{
    double q = 0.0;
    for (size_t d = 0; d < block->dim; d++)
        q += white[d] * white[d];
    q /= (double)block->dim;
    if (!isfinite(q))
        return pnb__fail(err, PNB_NUMERIC,
                         "row %zu of the %s embeddings: its length in the whitened space overflows",
                         block->first + i, block->what);
    pnb__adapter_spread(
        block, i, a->opts.uncertain == PNB_ADAPT_COMMON ? 1.0 / fmax(q, PNB__ADAPTER_LEAST) : q);
    return PNB_OK;
}

static pnb_status apply(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err)
{
    const whitened *w = a->self;
    size_t n = block->n, dim = block->dim;
    double *centred = pnb__alloc_array(n, 2 * dim * sizeof(double)), *white;
    pnb_status status = PNB_OK;
    if (centred == NULL)
        return pnb__fail_nomem(err, n * 2 * dim * sizeof(double));
    white = centred + n * dim;
    for (size_t i = 0; i < n; i++) {
        const float *x = block->x + i * dim;
        double square = 0.0;
        PNB_TRY(pnb__adapter_square(x, dim, block->first + i, block->what, &square, err));
        for (size_t d = 0; d < dim; d++)
            centred[i * dim + d] = (double)x[d] - w->mean[block->side][d];
    }
    whiten_rows(a, w->whiten[block->side], centred, white, n, dim);
    for (size_t i = 0; i < n; i++)
        PNB_TRY(spread_row(a, block, i, white + i * dim, err));
done:
    pnb__free(centred);
    return status;
}

static void reset(void *self)
{
    whitened *w = self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__free(w->mean[s]);
        pnb__free(w->basis[s]);
        pnb__free(w->variance[s]);
        pnb__free(w->whiten[s]);
    }
}

static const pnb__field fields[] = {
    {"uncertain", offsetof(pnb_adapter_opts, uncertain), pnb__adapt_uncertain_word, PNB__FIELD_ENUM,
     true, PNB__ALSO_NONE},
    {"shrinkage", offsetof(pnb_adapter_opts, shrinkage), NULL, PNB__FIELD_DOUBLE, true,
     PNB__ALSO_NAN},
};

const pnb__adapter_calls pnb__adapter_whitened = {.self_bytes = sizeof(whitened),
                                                  .fields = fields,
                                                  .n_fields = PNB_COUNT(fields),
                                                  .fit = fit,
                                                  .open = open_file,
                                                  .arrays = arrays,
                                                  .apply = apply,
                                                  .reset = reset};
