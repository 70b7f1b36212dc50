/* Forecasters of known calibration error, and how the debiased estimate does on them. */
#ifndef PNB_TESTS_EVAL_FORECASTER_H
#define PNB_TESTS_EVAL_FORECASTER_H

#include <math.h>

#include "base/base.h"
#include "penumbra/bootstrap.h"
#include "penumbra/ece.h"
#include "penumbra/figures.h"

typedef enum forecaster {
    PERFECT,
    TOO_SURE,     /* logits too large: too high above 1/2, too low below */
    TOO_HIGH,     /* everywhere, by 0.1 */
    A_LITTLE_OFF, /* by 0.03 */
    POWER,        /* p^1.5 happens */
    HIGH_END,     /* only above 0.8, by 0.15 */
    N_FORECASTERS
} forecaster;
static const char *const FORECASTER_NAMES[] = {"perfect",      "too_sure", "too_high",
                                               "a_little_off", "power",    "high_end"};

/* What happens where p is forecast. */
static inline double forecaster_rate(forecaster f, double p)
{
    switch (f) {
    case TOO_SURE:
        return 1.0 / (1.0 + exp(-0.6 * log(p / (1.0 - p))));
    case TOO_HIGH:
        return fmax(p - 0.1, 0.0);
    case A_LITTLE_OFF:
        return fmax(p - 0.03, 0.0);
    case POWER:
        return pow(p, 1.5);
    case HIGH_END:
        return p > 0.8 ? p - 0.15 : p;
    default:
        return p;
    }
}

static inline double forecaster_forecast(double z)
{
    return 1.0 / (1.0 + exp(-1.5 - 1.5 * z));
}

/* E|rate - p|, over the normal z that forecasts come from. */
static inline double forecaster_error(forecaster f)
{
    double sum = 0.0, total = 0.0;
    for (int i = -80000; i <= 80000; i++) {
        double z = i * 1e-4, weight = exp(-0.5 * z * z), p = forecaster_forecast(z);
        sum += weight * fabs(forecaster_rate(f, p) - p);
        total += weight;
    }
    return sum / total;
}

typedef struct forecaster_case {
    forecaster forecaster;
    size_t n, texts; /* queries; captions of one picture share half of what they are */
} forecaster_case;

typedef struct forecaster_counts {
    double n, covered, zero, contains, estimate, plug_in;
} forecaster_counts;

static inline pnb_status forecaster_try(const forecaster_case *c, uint64_t seed,
                                        const pnb_bootstrap_opts *boot, forecaster_counts *out,
                                        pnb_error *err)
{
    double *p = pnb__alloc_array(c->n, 2 * sizeof *p), *right = p + c->n, z = 0.0, e = 0.0;
    int64_t *cluster = pnb__alloc_array(c->n, sizeof *cluster), *rank;
    pnb_bootstrap_opts o = *boot;
    pnb_interval interval;
    pnb_figures figures;
    pnb_status status = PNB_OK;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 5);
    rank = pnb__alloc_array(c->n, sizeof *rank);
    if (p == NULL || cluster == NULL || rank == NULL)
        PNB_TRY(pnb__fail_nomem(err, c->n * 4 * sizeof *p));
    for (size_t i = 0; i < c->n; i++) {
        if (i % c->texts == 0) {
            z = pnb__rng_normal(&rng);
            e = pnb__rng_normal(&rng);
        }
        double own = c->texts == 1 ? z : sqrt(0.5) * (z + pnb__rng_normal(&rng));
        double luck = c->texts == 1 ? e : sqrt(0.5) * (e + pnb__rng_normal(&rng));
        p[i] = forecaster_forecast(own);
        right[i] = 0.5 * erfc(-luck / sqrt(2.0)) < forecaster_rate(c->forecaster, p[i]);
        rank[i] = right[i] > 0.5 ? 1 : 2;
        cluster[i] = (int64_t)(i / c->texts);
    }
    o.cluster = cluster;
    o.seed = seed;
    PNB_TRY(pnb_ece_debiased(p, right, c->n, &o, &interval, err));
    const pnb_query_values v = {.n = c->n, .best_rank = rank, .confidence = p, .cluster = cluster};
    PNB_TRY(pnb_figures_compute(&v, NULL, &figures, err));
    double truth = forecaster_error(c->forecaster);
    out->n += 1.0;
    out->covered += interval.low <= truth + 1e-12 && truth <= interval.high + 1e-12;
    out->contains += interval.low <= interval.value && interval.value <= interval.high;
    out->zero += interval.value == 0.0;
    out->estimate += interval.value;
    out->plug_in += figures.value[PNB_FIGURE_ECE];
done:
    pnb__free(p);
    pnb__free(cluster);
    pnb__free(rank);
    return status;
}

#endif
