/* eval shift: a calibration of one part of the data on the queries of another.
 *
 * Each query's hits are ranked once; lists by the cut-off that was brought along, by cut-offs of
 * few queries of here, and by cut-offs of half of them are then compared on the same rows. The last
 * is the control: it is what conformal prediction promises where nothing shifts. */
#include "commands/eval/uncertainty/shift_run.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/match_probability_use.h"
#include "penumbra/search.h"
#include "penumbra/shift.h"
#include "sets/set_rows.h"

/* Scores that are kept at once, and bins of the calibration error. */
enum { MAX_SCORES = 1 << 25, N_BINS = 15 };

typedef struct shift_run {
    pnb__retrieval sets;
    pnb_match_probability_fit fit;
    const pnb_embeddings *queries, *gallery;
    const pnb_rows *query_rows, *gallery_rows;
    const pnb_truth *truth; /* queries to rows of the gallery */
    const int64_t *unit;    /* of each query: resampled together */
    pnb_hits hits;          /* of the queries that are looked at */
    size_t *row, *first_match;
    int64_t *cluster;
    size_t n, n_all; /* looked at; with a match */
    pnb_shift_queries q;
} shift_run;

static void run_reset(shift_run *run)
{
    pnb__retrieval_reset(&run->sets);
    pnb_match_probability_fit_reset(&run->fit);
    pnb_hits_reset(&run->hits);
    pnb__free(run->row);
    pnb__free(run->first_match);
    pnb__free(run->cluster);
}

/* ---- the other part ---- */

static pnb_status load(pnb__app *app, const pnb__shift_opts *o, shift_run *run)
{
    pnb__retrieval_opts sets = o->sets;
    pnb__retrieval *s = &run->sets;
    bool texts = o->gallery_is_texts;
    pnb_status status;
    PNB_TRY(pnb_match_probability_fit_load(&run->fit, o->calibration, &app->err));
    sets.measure = run->fit.origin.measure;
    PNB_TRY(pnb__retrieval_load(app, &sets, s));
    run->gallery = texts ? s->texts : s->images;
    run->queries = texts ? s->images : s->texts;
    run->query_rows = texts ? &s->image_rows : &s->text_rows;
    run->gallery_rows = texts ? &s->text_rows : &s->image_rows;
    run->truth = texts ? s->truth : s->backward;
    const pnb__match_probability_use use = {NULL,       run->gallery,     run->queries,
                                            s->measure, &s->measure_opts, .match_is_told = false};
    PNB_TRY(pnb__match_probability_require(app, &use, &run->fit, o->calibration, o->trust));
    PNB_TRY(pnb__retrieval_clusters(app, &sets, s));
    run->unit = texts ? s->image_cluster : s->text_cluster;
done:
    return status;
}

/* Queries with a match, evenly thinned where their scores would not fit. */
static pnb_status choose_queries(shift_run *run, pnb_error *err)
{
    size_t most = PNB_MAX((size_t)MAX_SCORES / run->gallery->n, (size_t)2), n = 0;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(run->row, run->queries->n, err));
    for (size_t i = 0; i < run->queries->n; i++)
        if (run->truth->offset[i + 1] > run->truth->offset[i])
            run->row[run->n_all++] = i;
    n = PNB_MIN(run->n_all, most);
    for (size_t k = 0; k < n; k++)
        run->row[k] = run->row[(size_t)((double)k * (double)run->n_all / (double)n)];
    run->n = n;
    PNB_TRY(PNB_ALLOC(run->first_match, PNB_MAX(n, (size_t)1), err));
    status = PNB_ALLOC(run->cluster, PNB_MAX(n, (size_t)1), err);
done:
    return status;
}

static bool is_match(const pnb_truth *truth, size_t query, int64_t item)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++)
        if ((int64_t)truth->item[p] == item)
            return true;
    return false;
}

/* All hits of the chosen queries. */
static pnb_status rank(pnb__app *app, shift_run *run)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_embeddings *chosen = NULL;
    pnb_view view = {0};
    pnb_status status;
    search.measure = run->sets.measure;
    search.measure_opts = run->sets.measure_opts;
    search.k = run->gallery->n;
    PNB_TRY(pnb_embeddings_select(&chosen, run->queries, run->row, run->n, &app->err));
    PNB_TRY(pnb__set_view(&view, chosen, search.measure, &app->err));
    PNB_TRY(pnb_search(app->ctx, &view.rows, run->gallery_rows, &search, &run->hits, &app->err));
    for (size_t k = 0; k < run->n; k++) {
        const int64_t *hit = run->hits.index + k * run->hits.k;
        size_t place = 0;
        while (place + 1 < run->hits.k && !is_match(run->truth, run->row[k], hit[place]))
            place++;
        run->first_match[k] = place;
        run->cluster[k] = run->unit[run->row[k]];
    }
    run->q =
        (pnb_shift_queries){run->n, run->hits.k, run->hits.score, run->first_match, run->cluster};
done:
    pnb_view_reset(&view);
    pnb_embeddings_free(chosen);
    return status;
}

/* ---- the result ---- */

/* How lists are cut. */
enum { BROUGHT, FEW, HALF, N_WAYS };
static const char *const way_words[N_WAYS] = {"there", "few of here", "half of here"};

typedef struct shift_found {
    pnb_shift_lists lists[PNB_MAX_ALPHAS][N_WAYS];
    pnb_shift_ece first[N_WAYS];
    bool has_first;
} shift_found;

static pnb_status measure(pnb__app *app, const pnb__shift_opts *o, const shift_run *run,
                          shift_found *f)
{
    pnb_conformal_kind kind = run->fit.conformal.kind;
    const size_t m[N_WAYS] = {0, o->n_refit, run->n / 2};
    uint64_t seed = (uint64_t)app->common.seed;
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_error *err = &app->err;
    pnb_status status = PNB_OK;
    boot.n_resamples = o->sets.n_resamples;
    boot.seed = seed;
    for (size_t a = 0; a < o->n_alphas; a++) {
        double cutoff;
        PNB_TRY(pnb_conformal_cutoff(&run->fit.conformal, kind, o->alpha[a], &cutoff, err));
        PNB_TRY(pnb_shift_brought(&run->q, kind, cutoff, &boot, &f->lists[a][BROUGHT], err));
        for (int w = FEW; w < N_WAYS; w++)
            PNB_TRY(pnb_shift_refitted(&run->q, kind, o->alpha[a], m[w], o->n_splits, seed,
                                       &f->lists[a][w], err));
    }
    f->has_first = run->fit.has_first;
    if (f->has_first)
        PNB_TRY(pnb_shift_first_brought(&run->q, &run->fit.first, N_BINS, &f->first[BROUGHT], err));
    for (int w = FEW; w < N_WAYS; w++)
        PNB_TRY(
            pnb_shift_first_refitted(&run->q, m[w], o->n_splits, seed, N_BINS, &f->first[w], err));
done:
    return status;
}

/* The error rate nearest to 0.1. */
static size_t told_alpha(const pnb__shift_opts *o)
{
    size_t best = 0;
    for (size_t a = 1; a < o->n_alphas; a++)
        if (fabs(o->alpha[a] - 0.1) < fabs(o->alpha[best] - 0.1))
            best = a;
    return best;
}

static void put_headline(const pnb__shift_opts *o, const shift_run *run, const shift_found *f,
                         pnb__result *r)
{
    size_t a = told_alpha(o);
    const pnb_shift_lists *l = f->lists[a];
    char text[500];
    int n = snprintf(text, sizeof text,
                     "Lists cut as fitted there, to hold a match for %.0f%%, hold one for %.1f%%",
                     100 * (1 - o->alpha[a]), 100 * l[BROUGHT].coverage.value);
    if (isfinite(l[BROUGHT].coverage.low))
        n += snprintf(text + n, sizeof text - (size_t)n, " (%.1f to %.1f)",
                      100 * l[BROUGHT].coverage.low, 100 * l[BROUGHT].coverage.high);
    snprintf(text + n, sizeof text - (size_t)n,
             " of %zu queries here, with %.1f rows; %zu queries of here give back %.1f%% with %.1f "
             "rows, half of them %.1f%% with %.1f.",
             run->n, l[BROUGHT].mean_size, o->n_refit, 100 * l[FEW].coverage.value,
             l[FEW].mean_size, 100 * l[HALF].coverage.value, l[HALF].mean_size);
    pnb__result_text(r, "headline", NULL, text);
    pnb__result_note(r, text);
}

static void put_lists(const pnb__shift_opts *o, const shift_run *run, const shift_found *f,
                      pnb__result *r)
{
    static const pnb__column columns[] = {{"alpha", "error rate"},   {"cut_by", "cut by"},
                                          {"n_fit", "queries"},      {"coverage", "with a match"},
                                          {"coverage_low", "from"},  {"coverage_high", "to"},
                                          {"mean_size", "mean list"}};
    const size_t m[N_WAYS] = {run->fit.conformal.n, o->n_refit, run->n / 2};
    pnb__result_table(r, "lists", "lists with a match; of here the spread over splits", columns,
                      PNB_COUNT(columns));
    for (size_t a = 0; a < o->n_alphas; a++)
        for (int w = 0; w < N_WAYS; w++) {
            const pnb_shift_lists *l = &f->lists[a][w];
            pnb__result_row(r, "%.3f %s %zu %.4f %.4f %.4f %.1f", o->alpha[a], way_words[w], m[w],
                            l->coverage.value, l->coverage.low, l->coverage.high, l->mean_size);
        }
}

static void put_forecasts(const shift_found *f, pnb__result *r)
{
    static const pnb__column columns[] = {{"fitted", "fitted"}, {"ece", "ECE"},
                                          {"brier", "Brier"},   {"p_mean", "mean p"},
                                          {"rate", "right"},    {"n_splits", "splits"}};
    pnb__result_table(r, "first_hits", "p(match) of first hits", columns, PNB_COUNT(columns));
    for (int w = f->has_first ? BROUGHT : FEW; w < N_WAYS; w++) {
        const pnb_shift_ece *c = &f->first[w];
        pnb__result_row(r, "%s %.4f %.4f %.4f %.4f %zu", way_words[w], c->ece, c->brier, c->p_mean,
                        c->rate, c->n_splits);
    }
}

static void put_result(const pnb__shift_opts *o, const shift_run *run, const shift_found *f,
                       pnb__result *r)
{
    pnb__result_begin(r, "shift", NULL);
    put_headline(o, run, f, r);
    pnb__result_text(r, "measure", NULL, pnb_measure_name(run->sets.measure));
    pnb__result_text(r, "kind", NULL, pnb_conformal_name(run->fit.conformal.kind));
    pnb__result_int(r, "n_queries", NULL, (int64_t)run->n);
    pnb__result_int(r, "n_with_match", NULL, (int64_t)run->n_all);
    pnb__result_int(r, "n_gallery", NULL, (int64_t)run->gallery->n);
    pnb__result_int(r, "n_splits", NULL, (int64_t)o->n_splits);
    pnb__result_text(r, "unit", NULL, run->sets.cluster_unit);
    put_lists(o, run, f, r);
    put_forecasts(f, r);
    pnb__result_end(r);
}

pnb_status pnb__shift_run(pnb__app *app, const pnb__shift_opts *opts, pnb__result *r)
{
    shift_run run = {0};
    shift_found *found = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(found, 1, &app->err));
    PNB_TRY(load(app, opts, &run));
    PNB_TRY(choose_queries(&run, &app->err));
    if (run.n < 4 || opts->n_refit >= run.n)
        PNB_TRY(pnb__fail(&app->err, PNB_ARG,
                          "%zu queries with a match, %zu to fit on: more are needed to judge by; "
                          "--refit takes fewer",
                          run.n, opts->n_refit));
    if (run.n < run.n_all)
        pnb__warn(app, "%zu of %zu queries are looked at, evenly chosen", run.n, run.n_all);
    PNB_TRY(rank(app, &run));
    PNB_TRY(measure(app, opts, &run, found));
    put_result(opts, &run, found, r);
done:
    run_reset(&run);
    pnb__free(found);
    return status;
}
