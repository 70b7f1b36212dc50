/* Queries whose captions share a picture, with known truth: worlds to try intervals in.
 *
 * A picture has a difficulty e; its captions share it with weight rho. A query is right when its
 * own difficulty plus noise stays below a threshold, and its uncertainty is its difficulty plus
 * other noise. Two models see the same difficulties with noise of their own, so neither is better.
 */
#ifndef PNB_TESTS_EVAL_CLUSTERED_WORLD_H
#define PNB_TESTS_EVAL_CLUSTERED_WORLD_H

#include <math.h>

#include "base/base.h"
#include "penumbra/bootstrap.h"
#include "penumbra/figures.h"
#include "penumbra/rsum.h"

enum { WORLD_MODELS = 2, WORLD_MAX_TEXTS = 10 };

typedef struct world_side {
    size_t n;
    int64_t *cluster, *rank[WORLD_MODELS];
    double *u[WORLD_MODELS], *map[WORLD_MODELS], *confidence[WORLD_MODELS];
} world_side;

/* captions 0: 1 to 10 a picture, at random. */
typedef struct world_opts {
    size_t images, texts;
    double rho, threshold;
} world_opts;

/* side[0] pictures as queries, side[1] captions. */
typedef struct clustered_world {
    world_side side[2];
} clustered_world;

static inline bool world_side_init(world_side *s, size_t n)
{
    s->n = 0;
    s->cluster = pnb__alloc_array(n, sizeof *s->cluster);
    bool fine = s->cluster != NULL;
    for (size_t m = 0; m < WORLD_MODELS; m++) {
        s->rank[m] = pnb__alloc_array(n, sizeof *s->rank[m]);
        s->u[m] = pnb__alloc_array(n, 3 * sizeof *s->u[m]);
        s->map[m] = s->u[m] + n;
        s->confidence[m] = s->u[m] + 2 * n;
        fine = fine && s->rank[m] != NULL && s->u[m] != NULL;
    }
    return fine;
}

static inline void world_side_reset(world_side *s)
{
    pnb__free(s->cluster);
    for (size_t m = 0; m < WORLD_MODELS; m++) {
        pnb__free(s->rank[m]);
        pnb__free(s->u[m]);
    }
}

static inline void world_add(world_side *s, size_t cluster, double difficulty, double threshold,
                             pnb__rng *rng)
{
    size_t i = s->n++;
    s->cluster[i] = (int64_t)cluster * 7 - 3; /* any numbers will do */
    for (size_t m = 0; m < WORLD_MODELS; m++) {
        double q = difficulty + 0.7 * pnb__rng_normal(rng), miss = q - threshold;
        s->rank[m][i] = miss < 0.0 ? 1 : 2 + (int64_t)(12.0 * fmin(miss, 4.0));
        s->map[m][i] = miss < 0.0 ? 1.0 - 0.5 * fmax(pnb__rng_uniform(rng) - 0.5, 0.0)
                                  : 0.4 * pnb__rng_uniform(rng);
        s->u[m][i] = difficulty + 0.8 * pnb__rng_normal(rng);
        s->confidence[m][i] = 1.0 / (1.0 + exp(1.3 * (s->u[m][i] - threshold)));
    }
}

static inline bool clustered_world_init(clustered_world *w, const world_opts *o, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 77);
    bool fine = world_side_init(&w->side[0], o->images);
    fine = world_side_init(&w->side[1], o->images * WORLD_MAX_TEXTS) && fine;
    for (size_t p = 0; fine && p < o->images; p++) {
        double e = pnb__rng_normal(&rng);
        size_t n = o->texts > 0 ? o->texts : 1 + (size_t)pnb__rng_below(&rng, 10);
        world_add(&w->side[0], p, e, o->threshold, &rng);
        for (size_t i = 0; i < n; i++)
            world_add(&w->side[1], p, sqrt(o->rho) * e + sqrt(1.0 - o->rho) * pnb__rng_normal(&rng),
                      o->threshold, &rng);
    }
    return fine;
}

static inline void clustered_world_reset(clustered_world *w)
{
    world_side_reset(&w->side[0]);
    world_side_reset(&w->side[1]);
}

/* Without clusters every query counts as independent, as it was before. */
static inline pnb_query_values world_values(const clustered_world *w, size_t side, size_t model,
                                            bool with_clusters)
{
    const world_side *s = &w->side[side];
    return (pnb_query_values){.n = s->n,
                              .best_rank = s->rank[model],
                              .r_precision = s->map[model],
                              .map_at_r = s->map[model],
                              .uncertainty = s->u[model],
                              .confidence = s->confidence[model],
                              .cluster = with_clusters ? s->cluster : NULL};
}

/* What is looked at: three recalls, then figures of PNB_FIGURE_LIST, RSUM last. */
enum { WORLD_RECALLS = 3, WORLD_RSUM = WORLD_RECALLS + PNB_N_FIGURES, WORLD_N };

static inline double world_pick(const pnb_figures *f, size_t i)
{
    return i < WORLD_RECALLS ? f->recall[i] : f->value[i - WORLD_RECALLS];
}

static inline pnb_status world_rsum(const clustered_world *w, bool compare, bool with_clusters,
                                    const pnb_bootstrap_opts *boot, pnb_rsum *out, pnb_error *err)
{
    static const size_t k[] = {1, 5, 10};
    const pnb_query_values a[2] = {world_values(w, 0, 0, with_clusters),
                                   world_values(w, 1, 0, with_clusters)};
    const pnb_query_values b[2] = {world_values(w, 0, 1, with_clusters),
                                   world_values(w, 1, 1, with_clusters)};
    const pnb_rsum_job job = {.a = {&a[0], &a[1]},
                              .b = {&b[0], &b[1]},
                              .n_a = 1,
                              .n_b = compare ? 1 : 0,
                              .k = k,
                              .n_k = 3};
    return pnb_rsum_bootstrap(&job, boot, out, err);
}

/* The figures of infinitely many captions, from n_worlds large ones. */
static inline pnb_status world_truth(const world_opts *o, size_t n_worlds, double truth[WORLD_N],
                                     pnb_error *err)
{
    world_opts large = *o;
    const pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.95};
    pnb_status status = PNB_OK;
    large.images = 2000;
    for (size_t i = 0; i < WORLD_N; i++)
        truth[i] = 0.0;
    for (size_t r = 0; r < n_worlds && status == PNB_OK; r++) {
        clustered_world w;
        pnb_figure_intervals f;
        pnb_rsum rsum;
        if (!clustered_world_init(&w, &large, 1000000 + r))
            return pnb__fail_nomem(err, large.images * 100);
        const pnb_query_values v = world_values(&w, 1, 0, true);
        status = pnb_figures_bootstrap(NULL, &v, 1, NULL, &none, &f, err);
        if (status == PNB_OK)
            status = world_rsum(&w, false, true, &none, &rsum, err);
        for (size_t i = 0; status == PNB_OK && i < WORLD_RSUM; i++)
            truth[i] += world_pick(&f.value, i) / (double)n_worlds;
        if (status == PNB_OK)
            truth[WORLD_RSUM] += rsum.value / (double)n_worlds;
        clustered_world_reset(&w);
    }
    return status;
}

/* Adds 1 to covered[i] where the interval of figure i holds the truth, to rejected[i] where p of
 * the comparison of two equal models is below 0.05; to known[i] where there is an interval at all.
 */
typedef struct world_counts {
    double known[WORLD_N], covered[WORLD_N], rejected[WORLD_N];
    size_t n;
} world_counts;

static inline void world_count(world_counts *c, size_t i, double truth, double low, double high,
                               double p)
{
    c->known[i] += !isnan(low);
    c->covered[i] += low <= truth && truth <= high;
    c->rejected[i] += p < 0.05;
}

static inline pnb_status world_try(const world_opts *o, uint64_t seed, bool with_clusters,
                                   const pnb_bootstrap_opts *boot, const double truth[WORLD_N],
                                   world_counts *c, pnb_error *err)
{
    clustered_world w;
    pnb_figure_intervals f;
    pnb_figure_test t;
    pnb_rsum rsum, rsum_test;
    pnb_status status = PNB_OK;
    if (!clustered_world_init(&w, o, seed))
        return pnb__fail_nomem(err, o->images * 100);
    const pnb_query_values a = world_values(&w, 1, 0, with_clusters);
    const pnb_query_values b = world_values(&w, 1, 1, with_clusters);
    const pnb_figure_pair pair = {&a, &b, 1, 1};
    PNB_TRY(pnb_figures_bootstrap(NULL, &a, 1, NULL, boot, &f, err));
    PNB_TRY(pnb_figures_compare(NULL, &pair, NULL, boot, &t, err));
    PNB_TRY(world_rsum(&w, false, with_clusters, boot, &rsum, err));
    PNB_TRY(world_rsum(&w, true, with_clusters, boot, &rsum_test, err));
    for (size_t i = 0; i < WORLD_RSUM; i++)
        world_count(c, i, truth[i], world_pick(&f.low, i), world_pick(&f.high, i),
                    world_pick(&t.p, i));
    world_count(c, WORLD_RSUM, truth[WORLD_RSUM], rsum.low, rsum.high, rsum_test.p);
    c->n++;
done:
    clustered_world_reset(&w);
    return status;
}

#endif
