/* Weighted probabilities against what happened: log loss, Brier score, and ECE over bins of equal
 * mass.
 *
 * Bins of equal mass (Nguyen and O'Connor 2015) because forecasts of rare events crowd near 0,
 * where bins of equal width would be one bin. ece.c has the equal-width figures of the
 * field. */
#include <math.h>
#include <stdlib.h>

#include "eval/calibration/scored.h"
#include "penumbra/ece.h"
#include "penumbra/uncertainty_calibration.h"

#define CLIP 1e-12

typedef struct ece_case {
    double p, weight;
    int label;
} ece_case;

static int compare_cases(const void *a, const void *b)
{
    const ece_case *x = a, *y = b;
    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return x->label - y->label;
}

static pnb_status check(const pnb_scored *f, size_t n_bins, pnb_error *err)
{
    if (f->n == 0 || n_bins == 0 || n_bins > PNB_MAX_BINS)
        return pnb__fail(err, PNB_ARG,
                         "%zu forecasts in %zu bins; at least 1 and 1 to %d are needed", f->n,
                         n_bins, PNB_MAX_BINS);
    for (size_t i = 0; i < f->n; i++) {
        double w = pnb__scored_weight(f, i);
        if (!(f->score[i] >= 0.0 && f->score[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC, "forecast %zu is %g; it must lie in [0,1]", i,
                             f->score[i]);
        if (!(w > 0.0) || !isfinite(w))
            return pnb__fail(err, PNB_NUMERIC, "weight %zu is %g; weights are finite and above 0",
                             i, w);
        if (f->label[i] != 0 && f->label[i] != 1)
            return pnb__fail(err, PNB_ARG, "label %zu is %d; labels are 0 or 1", i, f->label[i]);
    }
    return PNB_OK;
}

/* `share` is the case's part of all weight. */
static void add(pnb_weighted_ece *r, pnb_ece_bin *bin, const ece_case *c, double share)
{
    double y = (double)c->label, p = fmin(fmax(c->p, CLIP), 1.0 - CLIP);
    bin->p_low = bin->weight == 0.0 ? c->p : bin->p_low;
    bin->p_high = c->p;
    bin->weight += share;
    bin->p_mean += share * c->p; /* sums until finish */
    bin->rate += share * y;
    r->base_rate += share * y;
    r->p_mean += share * c->p;
    r->nll -= share * (c->label == 1 ? log(p) : log1p(-p));
    r->brier += share * (c->p - y) * (c->p - y);
}

static void finish(pnb_weighted_ece *r)
{
    for (size_t b = 0; b < r->n_bins; b++) {
        pnb_ece_bin *bin = &r->bin[b];
        r->ece += fabs(bin->rate - bin->p_mean);
        bin->rate /= bin->weight;
        bin->p_mean /= bin->weight;
    }
}

/* A bin ends where the weight seen passes the next multiple of 1/n_bins, at the end of a run of
 * equal p. 1e-9 forgives the rounding of the sum; the last multiple is the end itself. */
static void fill(pnb_weighted_ece *r, const ece_case *cases, size_t n, size_t n_bins)
{
    double total = 0.0, seen = 0.0;
    size_t edge = 1;
    for (size_t i = 0; i < n; i++)
        total += cases[i].weight;
    for (size_t i = 0; i < n; i++) {
        double share = cases[i].weight / total;
        add(r, &r->bin[r->n_bins], &cases[i], share);
        seen += share;
        size_t n_passed = (size_t)(seen * (double)n_bins + 1e-9);
        bool is_run_end = i + 1 == n || cases[i + 1].p > cases[i].p;
        if (i + 1 < n && !(is_run_end && n_passed >= edge && edge < n_bins))
            continue;
        r->n_bins++;
        edge = PNB_MIN(n_passed + 1, n_bins);
    }
    finish(r);
}

pnb_status pnb_weighted_ece_compute(const pnb_scored *estimates, size_t n_bins,
                                    pnb_weighted_ece *out, pnb_error *err)
{
    pnb_status status = check(estimates, n_bins, err);
    if (status != PNB_OK)
        return status;
    ece_case *cases = pnb__alloc_array(estimates->n, sizeof *cases);
    if (cases == NULL)
        return pnb__fail_nomem(err, estimates->n * sizeof *cases);
    for (size_t i = 0; i < estimates->n; i++)
        cases[i] =
            (ece_case){estimates->score[i], pnb__scored_weight(estimates, i), estimates->label[i]};
    qsort(cases, estimates->n, sizeof *cases, compare_cases);
    *out = (pnb_weighted_ece){.n = estimates->n};
    fill(out, cases, estimates->n, n_bins);
    pnb__free(cases);
    return PNB_OK;
}
