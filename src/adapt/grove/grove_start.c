/* Where GroVE's training begins. The released code starts from random latents, inducing points and
 * q(v) at the prior, and lets Adam find all of it; here the latents are the first principal axes of
 * both sides together, inducing points are latents far apart (k-means++'s draw), and q(v) is the
 * optimum of the collapsed bound over a sample of the pairs, with a noise found by doing so twice.
 *
 * A sample of S of N pairs stands for all of them by a noise of s2 S/N. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"
#include "adapt/gp/gp_exact.h"
#include "adapt/grove/grove.h"
#include "adapt/heads/learned.h"
#include "prob/eigen.h"

enum { BLOCK = 1024, AXES_SAMPLE = 2048, BOUND_SAMPLE = 2048, POINT_SAMPLE = 8192, MORE_AXES = 8 };
enum { AXES_ROUNDS = 24, MOST_EXACT = 4096 };
enum { LET_GO_ABOVE = 1 << 28, LET_GO_EACH = 4096 }; /* bytes of a set, pairs */
/* streams of the seed */
enum { STREAM_AXES = 1, STREAM_SAMPLE, STREAM_POINTS };

/* ---- pairs ---- */

void pnb__grove_pairs_reset(pnb__grove_pairs *pairs)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__free(pairs->row[s]);
    pnb__free(pairs->x);
    pnb__free(pairs->z);
    *pairs = (pnb__grove_pairs){0};
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* In the order of the truth's list: what is drawn is which pairs, not where they stand. */
static pnb_status take_pairs(pnb__grove_pairs *p, pnb__learned_pairs *drawn, uint64_t seed,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__learned_pairs_shuffle(drawn, seed, 0);
    qsort(drawn->order, drawn->n_order, sizeof *drawn->order, by_number);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(PNB_ALLOC(p->row[s], drawn->n_order, err));
        for (size_t i = 0; i < drawn->n_order; i++)
            p->row[s][i] = drawn->row[s][drawn->order[i]];
    }
    p->n = drawn->n_order;
done:
    return status;
}

pnb_status pnb__grove_list(pnb__grove_pairs *p, const pnb__adapter_job *job, size_t q,
                           const pnb_adapter_opts *opts, pnb_error *err)
{
    const pnb_embeddings *images = job->side[PNB_ADAPTER_IMAGES].set;
    const pnb_embeddings *texts = job->side[PNB_ADAPTER_TEXTS].set;
    pnb__learned_pairs drawn = {0};
    pnb_status status;
    p->job = job;
    PNB_TRY(pnb__learned_pairs_init(&drawn, images, texts, job->truth, opts->texts, err));
    PNB_TRY(take_pairs(p, &drawn, opts->seed, err));
    PNB_TRY(PNB_ALLOC_ROWS(p->x, p->n, q, err));
done:
    pnb__learned_pairs_reset(&drawn);
    return status;
}

static const float *row_of(const pnb__grove_pairs *p, int side, size_t pair)
{
    const pnb_embeddings *set = p->job->side[side].set;
    return set->mean + p->row[side][pair] * set->dim;
}

/* Rows of a large map stay in the file: each one read brings pages of its neighbours with it. */
static void let_go(const pnb__grove_pairs *p, int side)
{
    const pnb_embeddings *set = p->job->side[side].set;
    const pnb__adapter_rows all = {.set = set, .n = set->n};
    if (set->n * set->dim > LET_GO_ABOVE / sizeof(float))
        pnb__adapter_rows_done(&all, 0, all.n);
}

void pnb__grove_rows(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                     const uint32_t *pair, size_t n, double *y)
{
    size_t d = g->part[side].d;
    for (size_t i = 0; i < n; i++) {
        const float *x = row_of(pairs, side, pair[i]);
        for (size_t k = 0; k < d; k++)
            y[i * d + k] = (double)x[k] / g->unit;
    }
    let_go(pairs, side);
}

void pnb__grove_columns(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                        const uint32_t *pair, size_t n, double *y)
{
    size_t d = g->part[side].d;
    for (size_t i = 0; i < n; i++) {
        const float *x = row_of(pairs, side, pair[i]);
        for (size_t k = 0; k < d; k++)
            y[k * n + i] = (double)x[k] / g->unit;
    }
    let_go(pairs, side);
}

/* Mean and summed variance of a side's rows as they are, a pair at a time. */
static pnb_status find_moments(pnb__grove *g, const pnb__grove_pairs *p, int side, double *spread,
                               pnb_error *err)
{
    size_t d = g->part[side].d;
    double *mean = g->part[side].constant, square, squares = 0, of_mean = 0;
    const char *what = p->job->side[side].what;
    memset(mean, 0, d * sizeof *mean);
    for (size_t i = 0; i < p->n; i++) {
        const float *x = row_of(p, side, i);
        pnb_status status = pnb__adapter_square(x, d, p->row[side][i], what, &square, err);
        if (status != PNB_OK)
            return status;
        squares += square / (double)p->n;
        for (size_t k = 0; k < d; k++)
            mean[k] += (double)x[k] / (double)p->n;
        if (i % LET_GO_EACH == LET_GO_EACH - 1)
            let_go(p, side);
    }
    let_go(p, side);
    for (size_t k = 0; k < d; k++)
        of_mean += mean[k] * mean[k];
    *spread = squares - of_mean;
    if (*spread > 1e-12 * squares)
        return PNB_OK;
    return pnb__fail(err, PNB_NUMERIC,
                     "the %s embeddings of all %zu pairs are the same: there is nothing to learn",
                     what, p->n);
}

/* One unit is for both sides, and they are compared output by output. */
static void warn_of_lengths(const pnb_ctx *ctx, const double spread[PNB_N_ADAPTER_SIDES])
{
    const double most = 16; /* unit rows stay far below it, raw ones come to hundreds */
    double ratio = spread[0] > spread[1] ? spread[0] / spread[1] : spread[1] / spread[0];
    if (ratio > most)
        pnb__log(ctx, PNB_LOG_WARN,
                 "grove: rows of the two sides differ in length (variances %.3g and %.3g): it "
                 "compares them number by number and will retrieve badly; embed without --raw",
                 spread[0], spread[1]);
}

static pnb_status find_unit(pnb__grove *g, const pnb_ctx *ctx, const pnb__grove_pairs *p,
                            pnb_error *err)
{
    double sum = 0, width = 0, spread[PNB_N_ADAPTER_SIDES];
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb_status status = find_moments(g, p, s, &spread[s], err);
        if (status != PNB_OK)
            return status;
        sum += spread[s];
        width += (double)g->part[s].d;
    }
    warn_of_lengths(ctx, spread);
    g->unit = sqrt(sum / width);
    if (!isfinite(g->unit) || g->unit <= 0)
        return pnb__fail(err, PNB_NUMERIC, "the embeddings' standard deviation is %g", g->unit);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        g->part[s].number[0][PNB__GROVE_N_NUMBERS * pnb__grove_n_kernels(g, s)] = g->unit;
        for (size_t k = 0; k < g->part[s].d; k++)
            g->part[s].constant[k] /= g->unit;
    }
    return PNB_OK;
}

pnb_status pnb__grove_sample(uint32_t **out, size_t n_all, size_t n, uint64_t seed, pnb_error *err)
{
    pnb__rng rng;
    uint32_t *all = pnb__alloc_array(n_all, sizeof *all);
    if (all == NULL)
        return pnb__fail_nomem(err, n_all * sizeof *all);
    for (size_t i = 0; i < n_all; i++)
        all[i] = (uint32_t)i;
    pnb__rng_init(&rng, seed, STREAM_SAMPLE);
    for (size_t i = 0; n < n_all && i < n; i++) {
        size_t other = i + (size_t)pnb__rng_below(&rng, n_all - i);
        uint32_t kept = all[i];
        all[i] = all[other];
        all[other] = kept;
    }
    *out = all;
    return PNB_OK;
}

/* ---- latents ---- */

/* Centred rows of both sides beside each other: y (n, width); `room` (n, wider side). */
static void both_sides(const pnb__grove *g, const pnb__grove_pairs *p, const uint32_t *pair,
                       size_t n, double *room, double *y)
{
    size_t width = g->part[0].d + g->part[1].d, at = 0;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t d = g->part[s].d;
        pnb__grove_rows(g, p, s, pair, n, room);
        for (size_t i = 0; i < n * d; i++)
            y[i / d * width + at + i % d] = room[i] - g->part[s].constant[i % d];
        at += d;
    }
}

/* The columns of v (width, k) become orthonormal, in their order. */
static void orthonormalise(double *v, size_t width, size_t k)
{
    for (size_t a = 0; a < k; a++)
        for (int twice = 0; twice < 2; twice++) {
            for (size_t b = 0; b < a; b++) {
                double dot = 0;
                for (size_t i = 0; i < width; i++)
                    dot += v[i * k + a] * v[i * k + b];
                for (size_t i = 0; i < width; i++)
                    v[i * k + a] -= dot * v[i * k + b];
            }
            double square = 0;
            for (size_t i = 0; i < width; i++)
                square += v[i * k + a] * v[i * k + a];
            double by = square > 0 ? 1 / sqrt(square) : 0;
            for (size_t i = 0; i < width; i++)
                v[i * k + a] *= by;
        }
}

/* First axes of rows y (n, width) by subspace iteration: axes (width, Q), each divided by the
 * standard deviation along it, so that latents have variance 1. */
typedef struct axes {
    size_t n, width, k, q;
    double *y, *v, *w;             /* (n,width), (width,k), (n,k) */
    double *small, *values, *turn; /* (k,k), (k), (k,k) */
    double *axes;
} axes;

static void iterate(const axes *a, const pnb_ctx *ctx, const pnb__kernels *kernels)
{
    pnb__dense_product down = {
        .m = a->n, .n = a->k, .k = a->width, .a = a->y, .b = a->v, .alpha = 1};
    pnb__dense_product up = {
        .m = a->width, .n = a->k, .k = a->n, .a = a->y, .trans_a = true, .b = a->w, .alpha = 1};
    for (int round = 0; round < AXES_ROUNDS; round++) {
        orthonormalise(a->v, a->width, a->k);
        pnb__dense_multiply(kernels, ctx, &down, a->w);
        pnb__dense_multiply(kernels, ctx, &up, a->v);
    }
    orthonormalise(a->v, a->width, a->k);
    pnb__dense_multiply(kernels, ctx, &down, a->w);
}

static pnb_status turn_axes(const axes *a, const pnb_ctx *ctx, const pnb__kernels *kernels,
                            pnb_error *err)
{
    double *work = a->w; /* not wanted behind the product */
    pnb__dense_multiply(kernels, ctx,
                        &(pnb__dense_product){.m = a->k,
                                              .n = a->k,
                                              .k = a->n,
                                              .a = a->w,
                                              .trans_a = true,
                                              .b = a->w,
                                              .alpha = 1 / (double)a->n},
                        a->small);
    if (!pnb__eigen_symmetric(a->k, a->small, a->values, a->turn, work))
        return pnb__fail(err, PNB_NUMERIC, "the principal axes of the pairs were not found");
    for (size_t q = 0; q < a->q; q++) {
        if (!(a->values[q] > 1e-9 * a->values[0]))
            return pnb__fail(err, PNB_NUMERIC,
                             "the pairs spread along %zu axes: a latent space of %zu needs more", q,
                             a->q);
        for (size_t i = 0; i < a->width; i++) {
            double sum = 0;
            for (size_t k = 0; k < a->k; k++)
                sum += a->v[i * a->k + k] * a->turn[q * a->k + k];
            a->axes[i * a->q + q] = sum / sqrt(a->values[q]);
        }
    }
    return PNB_OK;
}

static pnb_status find_axes(axes *a, const pnb__grove *g, const pnb_ctx *ctx,
                            const pnb__grove_pairs *p, const uint32_t *sample, uint64_t seed,
                            pnb_error *err)
{
    pnb__kernels kernels;
    pnb__rng rng;
    size_t k = a->k, most = PNB_MAX(a->n * k, 2 * k);
    double *room =
        pnb__alloc_array(a->n * (2 * a->width) + a->width * k + most + 2 * k * k + k, sizeof *room);
    if (room == NULL)
        return pnb__fail_nomem(err, 2 * a->n * a->width * sizeof *room);
    a->y = room + a->n * a->width;
    a->v = a->y + a->n * a->width;
    a->w = a->v + a->width * k;
    a->small = a->w + most;
    a->turn = a->small + k * k;
    a->values = a->turn + k * k;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    both_sides(g, p, sample, a->n, room, a->y);
    pnb__rng_init(&rng, seed, STREAM_AXES);
    for (size_t i = 0; i < a->width * k; i++)
        a->v[i] = pnb__rng_normal(&rng);
    iterate(a, ctx, &kernels);
    pnb_status status = turn_axes(a, ctx, &kernels, err);
    pnb__free(room);
    return status;
}

/* x of all pairs, a block at a time. */
static pnb_status place_latents(const axes *a, const pnb__grove *g, const pnb_ctx *ctx,
                                pnb__grove_pairs *p, pnb_error *err)
{
    pnb__kernels kernels;
    size_t most = PNB_MIN(p->n, (size_t)BLOCK);
    uint32_t pair[BLOCK];
    double *room = pnb__alloc_array(2 * most, a->width * sizeof *room);
    if (room == NULL)
        return pnb__fail_nomem(err, 2 * most * a->width * sizeof *room);
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    for (size_t begin = 0; begin < p->n; begin += BLOCK) {
        size_t n = PNB_MIN(p->n - begin, (size_t)BLOCK);
        double *y = room + most * a->width;
        for (size_t i = 0; i < n; i++)
            pair[i] = (uint32_t)(begin + i);
        both_sides(g, p, pair, n, room, y);
        pnb__dense_multiply(&kernels, ctx,
                            &(pnb__dense_product){
                                .m = n, .n = a->q, .k = a->width, .a = y, .b = a->axes, .alpha = 1},
                            p->x + begin * a->q);
    }
    pnb__free(room);
    return PNB_OK;
}

static pnb_status find_latents(const pnb__grove *g, const pnb_ctx *ctx, pnb__grove_pairs *p,
                               uint64_t seed, pnb_error *err)
{
    size_t width = g->part[0].d + g->part[1].d;
    axes a = {.n = PNB_MIN(p->n, (size_t)AXES_SAMPLE), .width = width, .q = g->q};
    uint32_t *sample = NULL;
    pnb_status status;
    a.k = PNB_MIN(g->q + MORE_AXES, width);
    a.axes = pnb__alloc_array(width, g->q * sizeof *a.axes);
    if (a.axes == NULL)
        PNB_TRY(pnb__fail_nomem(err, width * g->q * sizeof *a.axes));
    PNB_TRY(pnb__grove_sample(&sample, p->n, a.n, seed, err));
    PNB_TRY(find_axes(&a, g, ctx, p, sample, seed, err));
    status = place_latents(&a, g, ctx, p, err);
done:
    pnb__free(sample);
    pnb__free(a.axes);
    return status;
}

/* ---- inducing points ---- */

static double square_apart(const double *a, const double *b, size_t q)
{
    double sum = 0;
    for (size_t i = 0; i < q; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* M of the sample's latents into z (M,Q), each drawn by its squared distance to those before. */
static pnb_status spread_points(const pnb__grove *g, const pnb__grove_pairs *p,
                                const uint32_t *sample, size_t n, uint64_t seed, double *z,
                                pnb_error *err)
{
    pnb__rng rng;
    double *apart = pnb__alloc_array(n, sizeof *apart);
    size_t chosen = 0;
    if (apart == NULL)
        return pnb__fail_nomem(err, n * sizeof *apart);
    pnb__rng_init(&rng, seed, STREAM_POINTS);
    for (size_t i = 0; i < n; i++)
        apart[i] = INFINITY;
    for (size_t m = 0; m < g->m; m++) {
        double sum = 0, at;
        memcpy(z + m * g->q, p->x + sample[chosen] * g->q, g->q * sizeof *z);
        for (size_t i = 0; i < n; i++) {
            apart[i] = fmin(apart[i], square_apart(p->x + sample[i] * g->q, z + m * g->q, g->q));
            sum += apart[i];
        }
        if (m + 1 < g->m && !(sum > 1e-18)) {
            pnb__free(apart);
            return pnb__fail(err, PNB_NUMERIC,
                             "%zu inducing points wanted, but the pairs have only %zu different "
                             "latents",
                             g->m, m + 1);
        }
        at = pnb__rng_uniform(&rng) * sum;
        for (chosen = 0; chosen + 1 < n && (at >= apart[chosen] || apart[chosen] <= 0); chosen++)
            at -= apart[chosen];
    }
    pnb__free(apart);
    return PNB_OK;
}

static pnb_status find_points(pnb__grove *g, pnb__grove_pairs *p, bool is_exact, uint64_t seed,
                              pnb_error *err)
{
    size_t n = PNB_MIN(p->n, PNB_MAX((size_t)POINT_SAMPLE, 4 * g->m));
    uint32_t *sample = NULL;
    pnb_status status = PNB_OK;
    p->z = pnb__alloc_array(g->m, g->q * sizeof *p->z);
    if (p->z == NULL)
        return pnb__fail_nomem(err, g->m * g->q * sizeof *p->z);
    if (is_exact) {
        memcpy(p->z, p->x, g->m * g->q * sizeof *p->z);
    } else {
        PNB_TRY(pnb__grove_sample(&sample, p->n, n, seed, err));
        PNB_TRY(spread_points(g, p, sample, n, seed, p->z, err));
    }
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        memcpy(g->part[s].z, p->z, g->m * g->q * sizeof *p->z);
done:
    pnb__free(sample);
    return status;
}

/* ---- q(v) ---- */

typedef struct bound {
    pnb__inducing inducing;
    pnb__inducing_set set;
    pnb__factors factors;
    size_t n;
    double *x, *y, *mean, *q_chol, *chol, *b;
} bound;

/* mean over sample and outputs of (y - mean)^2 + var, where the bound has its best noise. */
static double best_noise(const bound *w, const pnb__grove_part *part, size_t m)
{
    double apart = 0, known = 0, n = (double)w->n, d = (double)part->d;
    pnb__dense_multiply(&w->inducing.kernels, w->inducing.ctx,
                        &(pnb__dense_product){.m = w->n,
                                              .n = part->d,
                                              .k = m,
                                              .a = w->b,
                                              .trans_a = true,
                                              .b = part->q_mean,
                                              .trans_b = true,
                                              .alpha = 1},
                        w->mean);
    for (size_t i = 0; i < w->n * part->d; i++) {
        double r = w->y[i] - part->constant[i % part->d] - w->mean[i];
        apart += r * r;
    }
    known = pnb__dense_dot(w->b, w->b, w->n * m);
    return fmax(apart / (n * d) + fmax(part->number[PNB__GROVE_SCALE][0] - known / n, 0), 1e-4);
}

/* Room, sample and B of a side. */
static pnb_status open_bound(bound *w, const pnb__grove *g, int side, const pnb_ctx *ctx,
                             const pnb__grove_pairs *p, const uint32_t *sample, pnb_error *err)
{
    const pnb__grove_part *part = &g->part[side];
    size_t n = w->n, m = g->m;
    pnb_status status;
    PNB_TRY(pnb__inducing_init(&w->inducing, ctx, m, n, pnb__grove_jitter(g), err));
    PNB_TRY(pnb__factors_init(&w->factors, ctx, g->is_shared ? PNB__F64 : PNB__F32, m,
                              pnb__grove_n_factors(g, side), 1, err));
    w->x = pnb__alloc_array(n * (g->q + 2 * part->d + m) + 2 * m * m, sizeof(double));
    if (w->x == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * (g->q + part->d + m) * sizeof(double)));
    w->y = w->x + n * g->q;
    w->mean = w->y + n * part->d;
    w->b = w->mean + n * part->d;
    w->chol = w->b + n * m;
    w->q_chol = w->chol + m * m;
    for (size_t i = 0; i < n; i++)
        memcpy(w->x + i * g->q, p->x + sample[i] * g->q, g->q * sizeof *w->x);
    pnb__grove_rows(g, p, side, sample, n, w->y);
    w->set = (pnb__inducing_set){
        .kernel = pnb__grove_process(g, side).kernel, .z = part->z, .chol = w->chol, .b = w->b};
    status = pnb__inducing_factorise(&w->inducing, &w->set, err);
done:
    return status;
}

static pnb_status start_side(pnb__grove *g, int side, const pnb_ctx *ctx, const pnb__grove_pairs *p,
                             const uint32_t *sample, pnb_error *err)
{
    pnb__grove_part *part = &g->part[side];
    bound w = {.n = PNB_MIN(p->n, PNB_MAX((size_t)BOUND_SAMPLE, 2 * g->m))};
    pnb_status status;
    PNB_TRY(open_bound(&w, g, side, ctx, p, sample, err));
    for (int round = 0; round < 2; round++) {
        pnb__gp_data data = {.n = w.n,
                             .n_outputs = part->d,
                             .x = w.x,
                             .y = w.y,
                             .constant = part->constant,
                             .noise =
                                 part->number[PNB__GROVE_NOISE][0] * (double)w.n / (double)p->n};
        pnb__gp_collapsed_out out = {.q_mean = part->q_mean, .q_chol = w.q_chol};
        PNB_TRY(pnb__gp_collapsed(&w.inducing, &w.set, &data, &out, err));
        if (round == 0)
            part->number[PNB__GROVE_NOISE][0] = best_noise(&w, part, g->m);
    }
    pnb__factors_fill(&w.factors, w.q_chol, part->factors);
done:
    pnb__inducing_reset(&w.inducing);
    pnb__factors_reset(&w.factors);
    pnb__free(w.x);
    return status;
}

/* Every process begins as the one that all share, and every output as its process: the loss of the
 * first step is that of the shared form. */
static void spread_processes(pnb__grove *g, int side)
{
    pnb__grove_part *part = &g->part[side];
    size_t d = part->d, points = g->m * g->q, bytes = pnb__grove_factor_bytes(g, side) / d;
    for (size_t i = 1; i < d; i++) {
        memcpy(part->z + i * points, part->z, points * sizeof *part->z);
        memcpy((char *)part->factors + i * bytes, part->factors, bytes);
        for (int k = 0; k < PNB__GROVE_N_NUMBERS; k++)
            part->number[k][i] = part->number[k][0];
    }
    memset(part->mixing, 0, d * d * sizeof *part->mixing);
    for (size_t i = 0; i < d; i++)
        part->mixing[i * d + i] = 1;
}

/* ---- all of it ---- */

static pnb_status check_sizes(pnb__grove *g, const pnb__grove_pairs *p,
                              const pnb_adapter_opts *opts, pnb_error *err)
{
    size_t least = PNB_MIN(g->part[0].d, g->part[1].d);
    size_t inducing = (size_t)opts->inducing;
    if (opts->grove_fit == PNB_GROVE_EXACT && p->n > MOST_EXACT)
        return pnb__fail(err, PNB_LIMIT,
                         "exact regression of %zu pairs: at most %d (a step takes N^3); use "
                         "inducing points",
                         p->n, (int)MOST_EXACT);
    if (g->q >= least)
        return pnb__fail(err, PNB_ARG,
                         "a latent space of %zu axes for embeddings of width %zu: latent-dim must "
                         "be below it",
                         g->q, least);
    if (inducing > p->n)
        return pnb__fail(err, PNB_ARG, "%zu inducing points for %zu pairs: at most one a pair",
                         inducing, p->n);
    if (opts->grove_fit == PNB_GROVE_STEPS && opts->batch_size > (int64_t)p->n)
        return pnb__fail(err, PNB_ARG, "grove: batches of %lld, but an epoch has %zu pairs",
                         (long long)opts->batch_size, p->n);
    if (opts->grove_fit == PNB_GROVE_EXACT && inducing != 0 && inducing != p->n)
        return pnb__fail(err, PNB_ARG,
                         "%zu inducing points: exact regression has one at each of the %zu pairs",
                         inducing, p->n);
    return PNB_OK;
}

pnb_status pnb__grove_start(pnb__grove *g, const pnb_ctx *ctx, const pnb__adapter_job *job,
                            const pnb_adapter_opts *opts, pnb__grove_pairs *out, pnb_error *err)
{
    bool is_exact = opts->grove_fit == PNB_GROVE_EXACT;
    uint32_t *sample = NULL;
    pnb_status status;
    PNB_TRY(pnb__grove_list(out, job, g->q, opts, err));
    PNB_TRY(check_sizes(g, out, opts, err));
    g->m = is_exact ? out->n : opts->inducing != 0 ? (size_t)opts->inducing : PNB_MIN(g->m, out->n);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        g->part[s].n_missed =
            PNB_MIN(out->n, (size_t)(g->is_mixed ? PNB__GROVE_LMC_SAMPLE : PNB__GROVE_SAMPLE));
        PNB_TRY(pnb__grove_alloc(g, s, err));
        g->part[s].number[PNB__GROVE_LENGTHSCALE][0] = sqrt((double)g->q);
        g->part[s].number[PNB__GROVE_SCALE][0] = 1;
        g->part[s].number[PNB__GROVE_NOISE][0] = 0.5;
    }
    PNB_TRY(find_unit(g, ctx, out, err));
    PNB_TRY(find_latents(g, ctx, out, opts->seed, err));
    PNB_TRY(find_points(g, out, is_exact, opts->seed, err));
    PNB_TRY(pnb__grove_sample(&sample, out->n,
                              PNB_MIN(out->n, PNB_MAX((size_t)BOUND_SAMPLE, 2 * g->m)), opts->seed,
                              err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(start_side(g, s, ctx, out, sample, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && g->is_mixed; s++)
        spread_processes(g, s);
done:
    pnb__free(sample);
    return status;
}
