/* A model in every precision on the user's own inputs: figures beside floats, the time of each, and
 * whether the promise of the precision held. Only what the first way gave is kept, so that memory
 * holds two sets whatever the number of ways; they are meant to be hundreds of inputs. */
#include "commands/common/precision_ways.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "penumbra/prob.h"
#include "penumbra/search.h"
#include "penumbra/statistics.h"
#include "penumbra/view.h"
#include "sets/settle.h"

static const char *const kind_keys[PNB__N_WAY_KINDS] = {"images", "texts"};

const char *pnb__way_kind(int kind)
{
    return kind_keys[kind];
}

/* ---- figures ---- */

static pnb_status compare_cosines(const pnb_gaussians *a, const pnb_gaussians *b,
                                  pnb__way_figures *f, pnb_error *err)
{
    double *distance = pnb__alloc_array(a->n, sizeof *distance);
    if (distance == NULL)
        return pnb__fail_nomem(err, a->n * sizeof *distance);
    pnb_status status = pnb_uncertainty_cosine(a, b, distance, err);
    for (size_t i = 0; status == PNB_OK && i < a->n; i++) {
        f->cosine -= distance[i] / (double)a->n;
        f->least_cosine = fmin(f->least_cosine, 1 - distance[i]);
    }
    pnb__free(distance);
    return status;
}

/* Nothing changes of points. */
static pnb_status compare_uncertainties(const pnb_embeddings *a, const pnb_embeddings *b,
                                        pnb__way_figures *f, pnb_error *err)
{
    double *x = NULL, *y = NULL;
    if (a->family == PNB_POINT)
        return PNB_OK;
    pnb_status status = pnb__row_uncertainty(a, PNB__UNCERTAINTY_AUTO, &x, err);
    if (status == PNB_OK)
        status = pnb__row_uncertainty(b, PNB__UNCERTAINTY_AUTO, &y, err);
    for (size_t i = 0; status == PNB_OK && i < a->n; i++)
        f->variance = fmax(f->variance, fabs(y[i] / x[i] - 1));
    if (status == PNB_OK && a->n > 1 && memcmp(x, y, a->n * sizeof *x) != 0)
        status = pnb_spearman(x, y, a->n, &f->rank, err);
    pnb__free(x);
    pnb__free(y);
    return status;
}

/* The first hit that is not the query itself. */
static int64_t nearest(const pnb_hits *hits, size_t query, bool among_itself)
{
    const int64_t *row = hits->index + query * hits->k;
    return among_itself && row[0] == (int64_t)query && hits->k > 1 ? row[1] : row[0];
}

static pnb_status compare_nearest(const pnb_ctx *ctx, pnb_embeddings *const *before,
                                  pnb_embeddings *const *after, int kind, pnb__way_figures *f,
                                  pnb_error *err)
{
    int other = before[1 - kind] != NULL ? 1 - kind : kind;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_view query[2] = {0}, gallery[2] = {0};
    pnb_hits hits[2] = {{0}, {0}};
    pnb_status status = PNB_OK;
    opts.measure = PNB_MEASURE_MEAN;
    opts.k = 2;
    for (int i = 0; i < 2 && status == PNB_OK; i++) {
        pnb_embeddings *const *sets = i == 0 ? before : after;
        PNB_TRY(pnb_view_init(&query[i], sets[kind], err));
        PNB_TRY(pnb_view_init(&gallery[i], sets[other], err));
        PNB_TRY(pnb_search(ctx, &query[i].rows, &gallery[i].rows, &opts, &hits[i], err));
    }
    size_t n_same = 0;
    for (size_t i = 0; i < query[0].rows.n; i++)
        n_same += nearest(&hits[0], i, other == kind) == nearest(&hits[1], i, other == kind);
    f->top1 = (double)n_same / (double)query[0].rows.n;
done:
    for (int i = 0; i < 2; i++) {
        pnb_hits_reset(&hits[i]);
        pnb_view_reset(&query[i]);
        pnb_view_reset(&gallery[i]);
    }
    return status;
}

static pnb__way_figures itself(const pnb_embeddings *set)
{
    return (pnb__way_figures){set != NULL ? set->n : 0, 1, 1, 1, 0, 1};
}

static pnb_status compare(const pnb_ctx *ctx, pnb_embeddings *const *before,
                          pnb_embeddings *const *after, int kind, pnb__way_figures *f,
                          pnb_error *err)
{
    pnb_view a = {0}, b = {0};
    pnb_status status = PNB_OK;
    *f = itself(before[kind]);
    if (before[kind] == NULL || before[kind] == after[kind])
        return PNB_OK;
    PNB_TRY(pnb_view_init(&a, before[kind], err));
    PNB_TRY(pnb_view_init(&b, after[kind], err));
    PNB_TRY(compare_cosines(&a.rows, &b.rows, f, err));
    PNB_TRY(compare_uncertainties(before[kind], after[kind], f, err));
    status = compare_nearest(ctx, before, after, kind, f, err);
done:
    pnb_view_reset(&a);
    pnb_view_reset(&b);
    return status;
}

/* ---- ways ---- */

static pnb_status embed(pnb__ways *w, pnb_embeddings **sets, double *seconds)
{
    pnb_status status = PNB_OK;
    double start = pnb__now_s();
    if (w->images != NULL)
        status = pnb__embed_images(w->app, w->encoder, w->images, false, &sets[PNB__WAY_IMAGES]);
    double middle = pnb__now_s();
    if (status == PNB_OK && w->texts != NULL)
        status = pnb__embed_texts(w->app, w->encoder, w->texts, &sets[PNB__WAY_TEXTS]);
    seconds[PNB__WAY_IMAGES] = middle - start;
    seconds[PNB__WAY_TEXTS] = pnb__now_s() - middle;
    return status;
}

static void free_sets(pnb_embeddings **sets)
{
    for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++) {
        pnb_embeddings_free(sets[kind]);
        sets[kind] = NULL;
    }
}

pnb_status pnb__ways_add(pnb__ways *w, const char *name, pnb_precision precision)
{
    pnb__way way = {.precision = precision};
    pnb_embeddings *own[PNB__N_WAY_KINDS] = {NULL, NULL};
    pnb_embeddings **sets = w->n == 0 ? w->first : own;
    pnb_status status;
    snprintf(way.name, sizeof way.name, "%s", name);
    pnb__say(w->app, "embedding the inputs: %s", name);
    status = embed(w, sets, way.seconds);
    w->app->has_mixed_precision = true;
    for (int kind = 0; kind < PNB__N_WAY_KINDS && status == PNB_OK; kind++)
        status = compare(w->app->ctx, w->first, sets, kind, &way.found[kind], &w->app->err);
    free_sets(own);
    if (status == PNB_OK)
        w->items[w->n++] = way;
    return status;
}

/* The first way again, by another name. */
static void add_floats(pnb__ways *w, const char *name, pnb_precision precision)
{
    pnb__way *way = &w->items[w->n++];
    *way = w->items[0];
    way->precision = precision;
    way->is_floats = true;
    snprintf(way->name, sizeof way->name, "%s", name);
}

pnb_status pnb__ways_add_precisions(pnb__ways *w)
{
    pnb_model *m = w->encoder->model;
    pnb_status status = pnb__ways_add(w, "precision fp32", PNB_PRECISION_FP32);
    for (int p = PNB_PRECISION_FP32 + 1; p < PNB_PRECISION_INT8 && status == PNB_OK; p++) {
        char name[64];
        snprintf(name, sizeof name, "precision %s", pnb_precision_name((pnb_precision)p));
        pnb_error why = PNB_ERROR_INIT;
        if (pnb_model_set_precision(m, (pnb_precision)p, &why) != PNB_OK)
            continue; /* a model without blocks, or stored in 8 bits */
        if (pnb_model_precision_is_floats(m, (pnb_precision)p))
            add_floats(w, name, (pnb_precision)p);
        else
            status = pnb__ways_add(w, name, (pnb_precision)p);
    }
    pnb_status back = pnb_model_set_precision(m, PNB_PRECISION_FP32, &w->app->err);
    return status != PNB_OK ? status : back;
}

void pnb__ways_reset(pnb__ways *w)
{
    free_sets(w->first);
    *w = (pnb__ways){0};
}

/* ---- what is told ---- */

bool pnb__way_holds(const pnb__way *way, int kind)
{
    const pnb__way_figures *f = &way->found[kind];
    pnb_precision_promise promise = pnb_precision_get_promise(way->precision);
    return f->least_cosine >= promise.least_cosine && f->variance <= promise.variance &&
           f->rank >= promise.rank;
}

static void put_way(pnb__result *r, int kind, const pnb__way *way)
{
    const pnb__way_figures *f = &way->found[kind];
    pnb__result_cell_text(r, kind_keys[kind]);
    pnb__result_cell_text(r, way->name);
    pnb__result_cell_real(r, f->cosine, 6);
    pnb__result_cell_real(r, f->least_cosine, 6);
    pnb__result_cell_real(r, f->variance, 6);
    pnb__result_cell_real(r, f->rank, 5);
    pnb__result_cell_real(r, f->top1, 4);
    pnb__result_cell_real(r, way->seconds[kind], 3);
    pnb__result_cell_text(r, way->is_floats                         ? "is fp32 here"
                             : way->precision == PNB_PRECISION_FP32 ? "-"
                             : pnb__way_holds(way, kind)            ? "held"
                                                                    : "NOT held");
}

void pnb__ways_report(const pnb__ways *w, pnb__result *r)
{
    static const pnb__column columns[] = {{"side", "side"},
                                          {"way", "way"},
                                          {"mean_cosine", "mean cosine"},
                                          {"least_cosine", "least"},
                                          {"variance_change", "variance"},
                                          {"uncertainty_rank_correlation", "rank of unc."},
                                          {"top1_agreement", "same nearest"},
                                          {"seconds", "seconds"},
                                          {"promise", "promise"}};
    pnb__result_table(r, "ways", "ways to embed the inputs, beside floats", columns,
                      PNB_COUNT(columns));
    for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++)
        for (size_t i = 0; i < w->n && w->first[kind] != NULL; i++)
            put_way(r, kind, &w->items[i]);
}
