/* The similarities that PCME compares at test time, from this project's measures. What its code
 * means otherwise than its name is made here and is no measure: kl_dist has the sign of the
 * logarithms the other way round, js_dist is Jeffreys without its constants, min_dist and max_dist
 * are of single coordinates (docs/numerics.md#pcme). The sample forms are sums over given samples.
 */
#include "tests/golden/golden.h"

#include <math.h>

#include "index/hits.h"
#include "penumbra/prob.h"

typedef struct sets {
    golden_case *c;
    size_t n_queries, n_items, dim;
    float *mean[2], *log_var[2];
    pnb_rows rows[2];
    double *out; /* (Q,G), of the figure at hand */
} sets;

/* log sigma -> log-variance: a factor of 2 is exact in a float. */
static pnb_status load(sets *s, pnb_error *err)
{
    static const char *const means[] = {"mu1", "mu2"}, *const logs[] = {"logsigma1", "logsigma2"};
    for (int side = 0; side < 2; side++) {
        size_t n;
        s->mean[side] = golden_f32(s->c, means[side], NULL, err);
        s->log_var[side] = golden_f32(s->c, logs[side], &n, err);
        if (s->mean[side] == NULL || s->log_var[side] == NULL)
            return err->status;
        for (size_t i = 0; i < n; i++)
            s->log_var[side][i] *= 2;
        const pnb_array_view *view = golden_find(s->c, means[side]);
        s->dim = (size_t)view->shape[1];
        s->rows[side] = (pnb_rows){.n = (size_t)view->shape[0],
                                   .dim = s->dim,
                                   .mean = s->mean[side],
                                   .log_var = s->log_var[side]};
    }
    s->n_queries = s->rows[0].n;
    s->n_items = s->rows[1].n;
    s->out = pnb__alloc_array(s->n_queries * s->n_items, sizeof *s->out);
    return s->out == NULL ? pnb__fail_nomem(err, s->n_queries * s->n_items * sizeof *s->out)
                          : PNB_OK;
}

/* out = scale * (value + offset + logs * sum(log var1 - log var2)) of every pair */
typedef struct figure {
    const char *name;
    pnb_measure measure;
    double scale, per_dim, logs;
    bool is_reverse, of_points;
} figure;

static double log_difference(const sets *s, size_t i, size_t j)
{
    double sum = 0;
    for (size_t d = 0; d < s->dim; d++)
        sum += (double)s->log_var[0][i * s->dim + d] - (double)s->log_var[1][j * s->dim + d];
    return sum;
}

static const double half_log_2pi = 0.91893853320467274178;

static const figure figures[] = {
    {"elk_dist", PNB_MEASURE_ELK, 1, half_log_2pi, 0, false, false},
    {"wasserstein_dist", PNB_MEASURE_W2, -1, 0, 0, false, false},
    {"l2_dist", PNB_MEASURE_CSD, -1, 0, 0, false, true},
    {"bhattacharyya_dist", PNB_MEASURE_BHATTACHARYYA, -1, 0, 0, false, false},
    {"js_dist", PNB_MEASURE_JEFFREYS, -2, 1, 0, false, false},
    {"kl_dist", PNB_MEASURE_KL, -2, 0.5, 1, false, false},
    {"reverse_kl_dist", PNB_MEASURE_KL, -2, 0.5, -1, true, false},
    {"exact.kl_1_2", PNB_MEASURE_KL, 1, 0, 0, false, false},
    {"exact.w2_squared", PNB_MEASURE_W2, 1, 0, 0, false, false},
};

static pnb_status give_figure(sets *s, const figure *f, pnb_error *err)
{
    pnb_rows a = s->rows[0], b = s->rows[1];
    if (f->of_points)
        a.log_var = b.log_var = NULL;
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0; j < b.n; j++) {
            pnb_rows one = pnb_rows_slice(&a, i, 1), two = pnb_rows_slice(&b, j, 1);
            double value;
            pnb_status status = f->is_reverse
                                    ? pnb_measure_block(f->measure, &two, &one, NULL, &value, err)
                                    : pnb_measure_block(f->measure, &one, &two, NULL, &value, err);
            if (status != PNB_OK)
                return status;
            double offset = f->per_dim * (double)s->dim + f->logs * log_difference(s, i, j);
            s->out[i * b.n + j] = f->scale * (value + offset);
        }
    golden_give(s->c, f->name, s->out, a.n * b.n);
    return PNB_OK;
}

/* Least and largest squared difference of a coordinate, with its sign changed. */
static void give_coordinates(sets *s, const char *name, bool is_max)
{
    for (size_t i = 0; i < s->n_queries; i++)
        for (size_t j = 0; j < s->n_items; j++) {
            double best = is_max ? 0 : INFINITY;
            for (size_t d = 0; d < s->dim; d++) {
                double x = (double)s->mean[0][i * s->dim + d] - (double)s->mean[1][j * s->dim + d];
                best = is_max ? fmax(best, x * x) : fmin(best, x * x);
            }
            s->out[i * s->n_items + j] = -best;
        }
    golden_give(s->c, name, s->out, s->n_queries * s->n_items);
}

/* ---- samples ---- */

typedef enum fold { SUM_OF_PRODUCTS, LARGEST_PRODUCT, MEAN_LENGTH } fold;

static double fold_pair(const double *x, const double *y, size_t n, size_t dim, fold how)
{
    double all = how == LARGEST_PRODUCT ? -INFINITY : 0;
    for (size_t k = 0; k < n * n; k++) {
        double product = 0, square = 1e-6;
        for (size_t d = 0; d < dim; d++) {
            double a = x[k / n * dim + d], b = y[k % n * dim + d];
            product += a * b;
            square += (a - b) * (a - b);
        }
        all = how == LARGEST_PRODUCT ? fmax(all, product)
                                     : all + (how == MEAN_LENGTH ? sqrt(square) : product);
    }
    return how == MEAN_LENGTH ? all / (double)(n * n) : all;
}

static pnb_status give_ranks(sets *s, const char *name, pnb_error *err)
{
    size_t n = s->n_items;
    pnb__hit *hit = pnb__alloc_array(n, sizeof *hit);
    double *rank = pnb__alloc_array(s->n_queries * n, sizeof *rank);
    if (hit == NULL || rank == NULL) {
        pnb__free(hit);
        pnb__free(rank);
        return pnb__fail_nomem(err, s->n_queries * n * sizeof *rank);
    }
    for (size_t i = 0; i < s->n_queries; i++) {
        for (size_t j = 0; j < n; j++)
            hit[j] = (pnb__hit){s->out[i * n + j], (int64_t)j};
        pnb__hits_sort(hit, n);
        for (size_t j = 0; j < n; j++)
            rank[i * n + j] = (double)hit[j].index;
    }
    golden_give(s->c, name, rank, s->n_queries * n);
    pnb__free(hit);
    pnb__free(rank);
    return PNB_OK;
}

static pnb_status give_samples(sets *s, pnb_error *err)
{
    static const char *const names[] = {"matmul_sum", "matmul_max", "mean_l2"};
    static const char *const ranks[] = {"matmul_sum.rank", "matmul_max.rank", NULL};
    double *x = golden_f64(s->c, "samples1", NULL, err);
    double *y = golden_f64(s->c, "samples2", NULL, err);
    pnb_status status = x != NULL && y != NULL ? PNB_OK : err->status;
    size_t k = status != PNB_OK ? 0 : (size_t)golden_find(s->c, "samples1")->shape[1];
    for (int how = 0; how < 3 && status == PNB_OK; how++) {
        for (size_t i = 0; i < s->n_queries * s->n_items; i++)
            s->out[i] = fold_pair(x + i / s->n_items * k * s->dim, y + i % s->n_items * k * s->dim,
                                  k, s->dim, (fold)how);
        golden_give(s->c, names[how], s->out, s->n_queries * s->n_items);
        if (ranks[how] != NULL)
            status = give_ranks(s, ranks[how], err);
    }
    pnb__free(x);
    pnb__free(y);
    return status;
}

pnb_status golden_case_pcme_distances(golden_case *c, pnb_error *err)
{
    sets s = {.c = c};
    pnb_status status = load(&s, err);
    for (size_t i = 0; i < PNB_COUNT(figures) && status == PNB_OK; i++)
        status = give_figure(&s, &figures[i], err);
    if (status == PNB_OK) {
        give_coordinates(&s, "min_dist", false);
        give_coordinates(&s, "max_dist", true);
        status = give_samples(&s, err);
    }
    for (int side = 0; side < 2; side++) {
        pnb__free(s.mean[side]);
        pnb__free(s.log_var[side]);
    }
    pnb__free(s.out);
    return status;
}
