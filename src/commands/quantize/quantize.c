/* Compares a model with its small copy on a calibration set, and writes the copy if they agree.
 *
 * Figures, each for pictures and for captions where both are given:
 *   cosine   mean and least cosine of the two means of an input
 *   rank     Spearman correlation of the two uncertainties (trace, or what the family has) of
 *            models that have one
 *   top1     share of inputs whose nearest item is the same: among the other kind (the caption of a
 *            picture) when both kinds are given, else among the other inputs of its own kind
 * The same figures are shown of `--precision bf16`, which needs no model of its own, and the
 * seconds of each. A set is embedded three times and held in memory, so it is meant to be hundreds
 * of inputs, not millions. */
#include "commands/quantize/quantize.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "encode/model_files.h"
#include "models/model.h"
#include "penumbra/prob.h"
#include "penumbra/search.h"
#include "penumbra/statistics.h"
#include "penumbra/view.h"
#include "sets/settle.h"

enum { IMAGES, TEXTS, N_KINDS };
static const char *const kind_keys[N_KINDS] = {"images", "texts"};

typedef struct figures {
    size_t n;
    double cosine, least_cosine, rank, top1;
} figures;

/* The calibration set embedded in one way. */
typedef struct pass {
    pnb_embeddings *sets[N_KINDS];
    double seconds[N_KINDS]; /* reading the inputs too */
} pass;

typedef struct comparison {
    const pass *before, *after;
    figures found[N_KINDS];
} comparison;

static pnb_status embed_both(pnb__app *app, pnb_encoder *e, const pnb__quantize_opts *o, pass *to)
{
    pnb_status status = PNB_OK;
    double start = pnb__now_s();
    if (o->images != NULL)
        status = pnb__embed_images(app, e, o->images, false, &to->sets[IMAGES]);
    double middle = pnb__now_s();
    if (status == PNB_OK && o->texts != NULL)
        status = pnb__embed_texts(app, e, o->texts, &to->sets[TEXTS]);
    to->seconds[IMAGES] = middle - start;
    to->seconds[TEXTS] = pnb__now_s() - middle;
    return status;
}

static void free_pass(pass *p)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        pnb_embeddings_free(p->sets[kind]);
}

/* ---- figures ---- */

static pnb_status compare_cosines(const pnb_gaussians *a, const pnb_gaussians *b, figures *f,
                                  pnb_error *err)
{
    double *distance = pnb__alloc_array(a->n, sizeof *distance);
    if (distance == NULL)
        return pnb__fail_nomem(err, a->n * sizeof *distance);
    pnb_status status = pnb_uncertainty_cosine(a, b, distance, err);
    f->cosine = 1;
    f->least_cosine = 1;
    for (size_t i = 0; status == PNB_OK && i < a->n; i++) {
        f->cosine -= distance[i] / (double)a->n;
        f->least_cosine = fmin(f->least_cosine, 1 - distance[i]);
    }
    pnb__free(distance);
    return status;
}

/* 1 for points, and where every input has the same uncertainty before and after. */
static pnb_status compare_ranks(const pnb_embeddings *a, const pnb_embeddings *b, figures *f,
                                pnb_error *err)
{
    double *x = NULL, *y = NULL;
    f->rank = 1;
    if (a->family == PNB_POINT || a->n < 2)
        return PNB_OK;
    pnb_status status = pnb__row_uncertainty(a, PNB__UNCERTAINTY_AUTO, &x, err);
    if (status == PNB_OK)
        status = pnb__row_uncertainty(b, PNB__UNCERTAINTY_AUTO, &y, err);
    if (status == PNB_OK && memcmp(x, y, a->n * sizeof *x) != 0)
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

static pnb_status compare_nearest(const pnb_ctx *ctx, const comparison *c, int kind, figures *f,
                                  pnb_error *err)
{
    int other = c->before->sets[1 - kind] != NULL ? 1 - kind : kind;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_view query[2] = {0}, gallery[2] = {0};
    pnb_hits hits[2] = {{0}, {0}};
    pnb_status status = PNB_OK;
    opts.measure = PNB_MEASURE_MEAN;
    opts.k = 2;
    for (int i = 0; i < 2 && status == PNB_OK; i++) {
        PNB_TRY(pnb_view_init(&query[i], i ? c->after->sets[kind] : c->before->sets[kind], err));
        PNB_TRY(
            pnb_view_init(&gallery[i], i ? c->after->sets[other] : c->before->sets[other], err));
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

static pnb_status compare_kind(const pnb_ctx *ctx, comparison *c, int kind, pnb_error *err)
{
    figures *f = &c->found[kind];
    pnb_view a = {0}, b = {0};
    pnb_status status = PNB_OK;
    const pnb_embeddings *before = c->before->sets[kind], *after = c->after->sets[kind];
    if (before == NULL)
        return PNB_OK;
    f->n = before->n;
    PNB_TRY(pnb_view_init(&a, before, err));
    PNB_TRY(pnb_view_init(&b, after, err));
    PNB_TRY(compare_cosines(&a.rows, &b.rows, f, err));
    PNB_TRY(compare_ranks(before, after, f, err));
    status = compare_nearest(ctx, c, kind, f, err);
done:
    pnb_view_reset(&a);
    pnb_view_reset(&b);
    return status;
}

static void report(const comparison *c, pnb__result *r)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        const figures *f = &c->found[kind];
        if (f->n == 0)
            continue;
        pnb__result_begin(r, kind_keys[kind], kind_keys[kind]);
        pnb__result_int(r, "n", "inputs", (int64_t)f->n);
        pnb__result_real(r, "mean_cosine", "mean cosine", f->cosine, 6);
        pnb__result_real(r, "least_cosine", "least cosine", f->least_cosine, 6);
        pnb__result_real(r, "uncertainty_rank_correlation", "rank correlation of uncertainties",
                         f->rank, 5);
        pnb__result_real(r, "top1_agreement", "same nearest item", f->top1, 4);
        pnb__result_end(r);
    }
}

/* How the set can be embedded, each beside floats. */
static void put_way(pnb__result *r, int kind, const char *way, const figures *f, double seconds)
{
    pnb__result_cell_text(r, kind_keys[kind]);
    pnb__result_cell_text(r, way);
    pnb__result_cell_real(r, f->cosine, 6);
    pnb__result_cell_real(r, f->least_cosine, 6);
    pnb__result_cell_real(r, f->rank, 5);
    pnb__result_cell_real(r, f->top1, 4);
    pnb__result_cell_real(r, seconds, 3);
}

static void report_ways(const comparison *halves, const comparison *small, const char *to,
                        pnb__result *r)
{
    static const pnb__column columns[] = {{"side", "side"},
                                          {"way", "way"},
                                          {"mean_cosine", "mean cosine"},
                                          {"least_cosine", "least"},
                                          {"uncertainty_rank_correlation", "rank of unc."},
                                          {"top1_agreement", "same nearest"},
                                          {"seconds", "seconds"}};
    const figures itself = {.cosine = 1, .least_cosine = 1, .rank = 1, .top1 = 1};
    pnb__result_table(r, "ways", "ways to embed the set, beside floats", columns,
                      PNB_COUNT(columns));
    for (int kind = 0; kind < N_KINDS; kind++) {
        if (small->found[kind].n == 0)
            continue;
        put_way(r, kind, "precision fp32", &itself, small->before->seconds[kind]);
        put_way(r, kind, "precision bf16", &halves->found[kind], halves->after->seconds[kind]);
        put_way(r, kind, to, &small->found[kind], small->after->seconds[kind]);
    }
}

/* ---- the guard ---- */

static pnb_status check_limits(const comparison *c, const pnb__quantize_opts *o, pnb_error *err)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        const figures *f = &c->found[kind];
        const struct {
            const char *what, *option;
            double value, limit;
        } checks[] = {
            {"mean cosine", "min-cosine", f->cosine, o->min_cosine},
            {"rank correlation of uncertainties", "min-rank", f->rank, o->min_rank},
            {"share of inputs with the same nearest item", "min-top1", f->top1, o->min_top1}};
        for (size_t i = 0; f->n > 0 && i < PNB_COUNT(checks); i++)
            if (!(checks[i].value >= checks[i].limit))
                return pnb__fail(
                    err, PNB_QUALITY,
                    "%s: the %s is %.6g, below the limit %g; nothing was written "
                    "(--%s sets the limit, --activation-bits 8 or --to bf16 keep more)",
                    kind_keys[kind], checks[i].what, checks[i].value, checks[i].limit,
                    checks[i].option);
    }
    return PNB_OK;
}

/* What is stored with the weights: the figures, and what they were measured on. */
static char *record(const comparison *c)
{
    pnb__buf b = {0};
    const char *separator = "{";
    for (int kind = 0; kind < N_KINDS; kind++) {
        const figures *f = &c->found[kind];
        if (f->n == 0)
            continue;
        pnb__buf_printf(&b,
                        "%s\"%s\": {\"n\": %zu, \"mean_cosine\": %.8g, \"least_cosine\": %.8g, "
                        "\"uncertainty_rank_correlation\": %.8g, \"top1_agreement\": %.8g}",
                        separator, kind_keys[kind], f->n, f->cosine, f->least_cosine, f->rank,
                        f->top1);
        separator = ", ";
    }
    pnb__buf_printf(&b, "}");
    if (b.failed)
        pnb__buf_reset(&b);
    return b.data; /* NULL when out of memory */
}

static pnb_status write_model(const pnb_encoder *e, const comparison *c,
                              const pnb__quantize_opts *o, pnb_error *err)
{
    size_t n_files = 0;
    pnb_preprocess pp;
    char *figures_text = record(c);
    if (figures_text == NULL)
        return pnb__fail_nomem(err, 256);
    pnb_status status = pnb_model_set_calibration(e->model, figures_text, err);
    if (status == PNB_OK)
        status = pnb_model_save(e->model, o->out, err);
    if (status == PNB_OK)
        status = pnb__model_files_copy(e->dir, o->out, o->parts.preprocess == NULL, &n_files, err);
    const char *said = o->parts.preprocess != NULL ? o->parts.preprocess : e->dir;
    pnb_status known = status == PNB_OK ? pnb_preprocess_load(&pp, said, NULL) : PNB_NOT_FOUND;
    if (known == PNB_OK)
        status = pnb__model_files_add_preprocess(o->out, &pp, err);
    else if (known == PNB_NOMEM)
        status = pnb__fail_nomem(err, strlen(said));
    pnb__free(figures_text);
    return status;
}

static pnb_status compare(const pnb_ctx *ctx, const pass *before, const pass *after,
                          comparison *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *out = (comparison){.before = before, .after = after};
    for (int kind = 0; kind < N_KINDS && status == PNB_OK; kind++)
        status = compare_kind(ctx, out, kind, err);
    return status;
}

/* The set with the model as it is, in bf16, and with the small weights, which the model then has.
 */
static pnb_status embed_in_every_way(pnb__app *app, pnb_encoder *e, const pnb__quantize_opts *o,
                                     pass *floats, pass *halves, pass *small)
{
    pnb_error *err = &app->err;
    pnb_status status;
    pnb__say(app, "embedding the calibration set with the model as it is");
    PNB_TRY(embed_both(app, e, o, floats));
    app->has_mixed_precision = true; /* that two meet is the point: nothing to note */
    PNB_TRY(pnb_model_set_precision(e->model, PNB_PRECISION_BF16, err));
    pnb__say(app, "embedding it in bf16");
    PNB_TRY(embed_both(app, e, o, halves));
    PNB_TRY(pnb_model_set_precision(e->model, PNB_PRECISION_FP32, err));
    PNB_TRY(pnb_model_quantize(e->model, o->to, o->activation_bits, err));
    pnb__say(app, "embedding it with the small weights");
    status = embed_both(app, e, o, small);
done:
    return status;
}

pnb_status pnb__quantize_run(pnb__app *app, const pnb__quantize_opts *o, pnb__result *r)
{
    pnb_encoder e = {0};
    pass floats = {{0}, {0}}, halves = {{0}, {0}}, small = {{0}, {0}};
    comparison in_bf16, c;
    pnb_encoder_opts parts = o->parts;
    pnb_error *err = &app->err;
    pnb_status status = PNB_OK;
    parts.sides =
        (o->images != NULL ? PNB_ENCODE_IMAGES : 0) | (o->texts != NULL ? PNB_ENCODE_TEXTS : 0);
    if (pnb_model_is_dir(o->out))
        return pnb__fail(err, PNB_EXISTS, "%s holds a model already; give another --out", o->out);
    PNB_TRY(pnb__encoder_open_named(&e, app, o->model, &parts));
    PNB_TRY(pnb__encoder_need_plain(&e, "quantize", err));
    PNB_TRY(pnb__model_can_quantize(e.model, o->to, o->activation_bits, err));
    size_t bytes_before = e.info->weight_bytes;
    PNB_TRY(embed_in_every_way(app, &e, o, &floats, &halves, &small));
    PNB_TRY(compare(app->ctx, &floats, &halves, &in_bf16, err));
    PNB_TRY(compare(app->ctx, &floats, &small, &c, err));
    PNB_TRY(check_limits(&c, o, err));
    PNB_TRY(write_model(&e, &c, o, err));
    pnb__result_text(r, "out", "written", o->out);
    pnb__result_text(r, "weights", "weights", e.info->weights_stored);
    pnb__result_int(r, "bytes_before", "bytes before", (int64_t)bytes_before);
    pnb__result_int(r, "bytes", "bytes of weights", (int64_t)e.info->weight_bytes);
    report(&c, r);
    report_ways(&in_bf16, &c, e.info->weights_stored, r);
done:
    free_pass(&floats);
    free_pass(&halves);
    free_pass(&small);
    pnb__encoder_reset(&e);
    return status;
}
