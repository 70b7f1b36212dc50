/* Compares a model with its small copy on a calibration set, and writes the copy if they agree.
 *
 * The figures, for pictures and for captions where both are given, are those of precision_ways.h:
 * cosines, rank of uncertainties, same nearest item. Beside those of the small weights, which
 * decide, stand those of each precision that needs no model of its own, with the seconds of each.
 */
#include "commands/quantize/quantize.h"

#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/common/precision_ways.h"
#include "encode/model_files.h"
#include "models/model.h"

static void report(const pnb__way *way, pnb__result *r)
{
    for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++) {
        const pnb__way_figures *f = &way->found[kind];
        if (f->n == 0)
            continue;
        pnb__result_begin(r, pnb__way_kind(kind), pnb__way_kind(kind));
        pnb__result_int(r, "n", "inputs", (int64_t)f->n);
        pnb__result_real(r, "mean_cosine", "mean cosine", f->cosine, 6);
        pnb__result_real(r, "least_cosine", "least cosine", f->least_cosine, 6);
        pnb__result_real(r, "uncertainty_rank_correlation", "rank correlation of uncertainties",
                         f->rank, 5);
        pnb__result_real(r, "top1_agreement", "same nearest item", f->top1, 4);
        pnb__result_end(r);
    }
}

/* ---- the guard ---- */

/* Not what was asked for already. */
static const char *what_keeps_more(const pnb__quantize_opts *o)
{
    if (o->to != PNB_WEIGHTS_INT8)
        return "";
    return o->activation_bits < 8 ? ", --activation-bits 8 or --to bf16 keep more"
                                  : ", --to bf16 keeps more";
}

static pnb_status check_limits(const pnb__way *way, const pnb__quantize_opts *o, pnb_error *err)
{
    for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++) {
        const pnb__way_figures *f = &way->found[kind];
        const struct {
            const char *what, *option;
            double value, limit;
        } checks[] = {
            {"mean cosine", "min-cosine", f->cosine, o->min_cosine},
            {"rank correlation of uncertainties", "min-rank", f->rank, o->min_rank},
            {"share of inputs with the same nearest item", "min-top1", f->top1, o->min_top1}};
        for (size_t i = 0; f->n > 0 && i < PNB_COUNT(checks); i++)
            if (!(checks[i].value >= checks[i].limit))
                return pnb__fail(err, PNB_QUALITY,
                                 "%s: the %s is %.6g, below the limit %g; nothing was written "
                                 "(--%s sets the limit%s)",
                                 pnb__way_kind(kind), checks[i].what, checks[i].value,
                                 checks[i].limit, checks[i].option, what_keeps_more(o));
    }
    return PNB_OK;
}

/* What is stored with the weights: the figures, and what they were measured on. */
static char *record(const pnb__way *way)
{
    pnb__buf b = {0};
    const char *separator = "{";
    for (int kind = 0; kind < PNB__N_WAY_KINDS; kind++) {
        const pnb__way_figures *f = &way->found[kind];
        if (f->n == 0)
            continue;
        pnb__buf_printf(&b,
                        "%s\"%s\": {\"n\": %zu, \"mean_cosine\": %.8g, \"least_cosine\": %.8g, "
                        "\"uncertainty_rank_correlation\": %.8g, \"top1_agreement\": %.8g}",
                        separator, pnb__way_kind(kind), f->n, f->cosine, f->least_cosine, f->rank,
                        f->top1);
        separator = ", ";
    }
    pnb__buf_printf(&b, "}");
    if (b.failed)
        pnb__buf_reset(&b);
    return b.data; /* NULL when out of memory */
}

static pnb_status write_model(const pnb_encoder *e, const pnb__way *way,
                              const pnb__quantize_opts *o, pnb_error *err)
{
    size_t n_files = 0;
    pnb_preprocess pp;
    char *figures_text = record(way);
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

/* The set with the model as it is, in every precision, and with the small weights, which the model
 * then has: the last way. */
static pnb_status embed_in_every_way(pnb__ways *w, const pnb__quantize_opts *o)
{
    pnb_status status = pnb__ways_add_precisions(w);
    if (status == PNB_OK)
        status = pnb_model_quantize(w->encoder->model, o->to, o->activation_bits, &w->app->err);
    if (status == PNB_OK)
        status = pnb__ways_add(w, w->encoder->info->weights_stored,
                               o->to == PNB_WEIGHTS_INT8 ? PNB_PRECISION_INT8 : PNB_PRECISION_FP32);
    return status;
}

pnb_status pnb__quantize_run(pnb__app *app, const pnb__quantize_opts *o, pnb__result *r)
{
    pnb_encoder e = {0};
    pnb__ways ways = {.app = app, .encoder = &e, .images = o->images, .texts = o->texts};
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
    PNB_TRY(embed_in_every_way(&ways, o));
    const pnb__way *small = &ways.items[ways.n - 1];
    PNB_TRY(check_limits(small, o, err));
    PNB_TRY(write_model(&e, small, o, err));
    pnb__result_text(r, "out", "written", o->out);
    pnb__result_text(r, "weights", "weights", e.info->weights_stored);
    pnb__result_int(r, "bytes_before", "bytes before", (int64_t)bytes_before);
    pnb__result_int(r, "bytes", "bytes of weights", (int64_t)e.info->weight_bytes);
    report(small, r);
    pnb__ways_report(&ways, r);
done:
    pnb__ways_reset(&ways);
    pnb__encoder_reset(&e);
    return status;
}
