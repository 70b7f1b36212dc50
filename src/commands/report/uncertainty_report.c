/* Measures the claims about learned uncertainty on embedding sets.
 *
 * Every figure is meant to stand beside its control, the same figure from a model whose
 * log-variance head was never trained: captions of different generality differ in more than what
 * the head learned. H is the exact inclusion of prob, summed over dimensions. */
#include "commands/report/uncertainty_report.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/set_use.h"
#include "penumbra/hierarchy.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

typedef struct inputs {
    pnb_embeddings *images, *texts, *masked_images, *masked_texts;
    pnb_truth *truth;
    double *image_u, *text_u;
    int *level;
} inputs;

static void inputs_reset(inputs *in)
{
    pnb_embeddings_free(in->images);
    pnb_embeddings_free(in->texts);
    pnb_embeddings_free(in->masked_images);
    pnb_embeddings_free(in->masked_texts);
    pnb_truth_free(in->truth);
    pnb__free(in->image_u);
    pnb__free(in->text_u);
    pnb__free(in->level);
}

/* `like` may be NULL: a set that others are compared with. */
static pnb_status load_optional(pnb__app *app, pnb_embeddings **out, const char *path,
                                const pnb_embeddings *like, const char *like_path)
{
    pnb_error *err = &app->err;
    if (path == NULL)
        return PNB_OK;
    pnb_status status = pnb__set_load(out, path, app);
    if (status != PNB_OK || like == NULL)
        return status;
    status = pnb_embeddings_check_mix(like, *out, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s and %s", like_path, path);
    return status;
}

static pnb_status load_inputs(pnb__app *app, const pnb__uncertainty_report_sets *sets, inputs *in)
{
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(load_optional(app, &in->texts, sets->texts, NULL, NULL));
    PNB_TRY(load_optional(app, &in->images, sets->images, in->texts, sets->texts));
    PNB_TRY(load_optional(app, &in->masked_images, sets->masked_images, in->texts, sets->texts));
    PNB_TRY(load_optional(app, &in->masked_texts, sets->masked_texts, in->texts, sets->texts));
    PNB_TRY(pnb__row_uncertainty(in->texts, PNB_UNCERTAINTY_TRACE, &in->text_u, err));
    if (in->images != NULL)
        PNB_TRY(pnb__row_uncertainty(in->images, PNB_UNCERTAINTY_TRACE, &in->image_u, err));
    if (in->images != NULL && sets->truth != NULL) {
        const pnb_truth_rows images = pnb_truth_rows_of(in->images);
        const pnb_truth_rows texts = pnb_truth_rows_of(in->texts);
        PNB_TRY(pnb_truth_read(&in->truth, sets->truth, &images, &texts, &sets->read, NULL, err));
    }
    in->level = pnb__alloc_array(in->texts->n, sizeof *in->level);
    if (in->level == NULL)
        return pnb__fail_nomem(err, in->texts->n * sizeof *in->level);
    for (size_t i = 0; i < in->texts->n; i++) {
        int level;
        PNB_TRY(pnb__row_level(&level, in->texts, i, err));
        in->level[i] = level < PNB__MAX_LEVELS ? level : -1;
    }
done:
    return status;
}

/* ---- levels ---- */

/* True captions of each picture as flat lists for pnb_level_order_compute. */
static pnb_status measure_order(const inputs *in, pnb__uncertainty_report *out, pnb_error *err)
{
    const pnb_truth *t = in->truth;
    double *u = pnb__alloc_array(t->n_pairs, sizeof *u);
    int *level = pnb__alloc_array(t->n_pairs, sizeof *level);
    int64_t *owner = pnb__alloc_array(t->n_pairs, sizeof *owner);
    pnb_level_order order = {0};
    size_t n = 0;
    pnb_status status = PNB_OK;
    if (u == NULL || level == NULL || owner == NULL)
        status = pnb__fail_nomem(err, t->n_pairs * sizeof *u);
    for (size_t q = 0; status == PNB_OK && q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++) {
            if (in->level[t->item[p]] < 0)
                continue;
            u[n] = in->text_u[t->item[p]];
            level[n] = in->level[t->item[p]];
            owner[n++] = (int64_t)q;
        }
    if (status == PNB_OK && n > 0)
        status = pnb_level_order_compute(u, level, owner, n, out->n_levels, &order, err);
    if (status == PNB_OK && n > 0) {
        out->image_above = order.share_first_above_last;
        out->image_in_order = order.n_complete > 0 ? order.share_in_order : NAN;
    }
    pnb__free(u);
    pnb__free(level);
    pnb__free(owner);
    return status;
}

static pnb_status measure_levels(const inputs *in, pnb__uncertainty_report *out, pnb_error *err)
{
    int last = -1;
    for (size_t i = 0; i < in->texts->n; i++)
        last = PNB_MAX(last, in->level[i]);
    out->n_levels = last + 1;
    if (last < 1)
        return PNB_OK;
    pnb_status status;
    PNB_TRY(pnb_mean_by_group(in->text_u, in->level, in->texts->n, (size_t)last + 1,
                              out->level_mean, out->level_n, err));
    if (out->level_n[0] > 0 && out->level_n[last] > 0)
        PNB_TRY(pnb_share_group_above(in->text_u, in->level, in->texts->n, 0, last,
                                      &out->first_above_last, err));
    if (in->truth != NULL)
        PNB_TRY(measure_order(in, out, err));
done:
    return status;
}

/* ---- masking and inclusion ---- */

static pnb_status same_rows(const pnb_embeddings *a, const pnb_embeddings *b, pnb_error *err)
{
    if (a->n != b->n)
        return pnb__fail(err, PNB_SHAPE, "the masked set has %zu rows, its original %zu", b->n,
                         a->n);
    for (size_t i = 0; a->ids != NULL && b->ids != NULL && i < a->n; i++)
        if (a->ids[i] != NULL && b->ids[i] != NULL && strcmp(a->ids[i], b->ids[i]) != 0)
            return pnb__fail(err, PNB_SHAPE,
                             "row %zu is '%s' in the masked set and '%s' in its "
                             "original",
                             i, b->ids[i], a->ids[i]);
    return PNB_OK;
}

static pnb_status measure_masked(const pnb_embeddings *original, const double *u,
                                 const pnb_embeddings *masked, double *above, double *included,
                                 pnb_error *err)
{
    pnb_view a = {0}, b = {0};
    double *masked_u = NULL;
    pnb_status status;
    PNB_TRY(same_rows(original, masked, err));
    PNB_TRY(pnb__row_uncertainty(masked, PNB_UNCERTAINTY_TRACE, &masked_u, err));
    PNB_TRY(pnb_share_above(masked_u, u, original->n, above, err));
    PNB_TRY(pnb_view_init(&a, original, err));
    PNB_TRY(pnb_view_init(&b, masked, err));
    if (a.rows.log_var != NULL && b.rows.log_var != NULL)
        PNB_TRY(pnb_share_included(&a.rows, &b.rows, false, NULL, included, err));
done:
    pnb_view_reset(&a);
    pnb_view_reset(&b);
    pnb__free(masked_u);
    return status;
}

/* Share of true pairs in which the caption includes the picture; unknown without variances. */
static pnb_status measure_image_in_text(const inputs *in, pnb__uncertainty_report *out,
                                        pnb_error *err)
{
    pnb_view images = {0}, texts = {0};
    size_t n_true = 0;
    pnb_status status;
    PNB_TRY(pnb_view_init(&images, in->images, err));
    PNB_TRY(pnb_view_init(&texts, in->texts, err));
    if (images.rows.log_var == NULL || texts.rows.log_var == NULL)
        goto done;
    for (size_t q = 0; q < in->truth->n_queries; q++)
        for (size_t p = in->truth->offset[q]; p < in->truth->offset[q + 1]; p++)
            n_true += pnb_measure_pair(PNB_MEASURE_INCLUSION, &images.rows, q, &texts.rows,
                                       in->truth->item[p], NULL) > 0;
    out->image_in_text = (double)n_true / (double)in->truth->n_pairs;
done:
    pnb_view_reset(&images);
    pnb_view_reset(&texts);
    return status;
}

pnb_status pnb__uncertainty_report_measure(pnb__app *app, const pnb__uncertainty_report_sets *sets,
                                           pnb__uncertainty_report *out)
{
    inputs in = {0};
    pnb_error *err = &app->err;
    pnb_status status;
    *out = (pnb__uncertainty_report){.image_mean = NAN,
                                     .first_above_last = NAN,
                                     .image_above = NAN,
                                     .image_in_order = NAN,
                                     .masked_image_above = NAN,
                                     .masked_text_above = NAN,
                                     .image_included = NAN,
                                     .text_included = NAN,
                                     .image_in_text = NAN};
    PNB_TRY(load_inputs(app, sets, &in));
    PNB_TRY(measure_levels(&in, out, err));
    if (in.images != NULL) {
        out->image_mean = 0;
        for (size_t i = 0; i < in.images->n; i++)
            out->image_mean += in.image_u[i] / (double)in.images->n;
    }
    if (in.masked_images != NULL && in.images != NULL)
        PNB_TRY(measure_masked(in.images, in.image_u, in.masked_images, &out->masked_image_above,
                               &out->image_included, err));
    if (in.masked_texts != NULL)
        PNB_TRY(measure_masked(in.texts, in.text_u, in.masked_texts, &out->masked_text_above,
                               &out->text_included, err));
    if (in.truth != NULL)
        PNB_TRY(measure_image_in_text(&in, out, err));
done:
    inputs_reset(&in);
    return status;
}

/* ---- the table ---- */

/* A row: figure, this model, control, meaning. */
typedef struct claim_line {
    const char *key, *label, *meaning;
    double value, control;
    int digits;
} claim_line;
enum { MAX_LINES = 24 };

static void add_line(claim_line *lines, size_t *n, claim_line line)
{
    if (!isnan(line.value) || !isnan(line.control))
        lines[(*n)++] = line;
}

static size_t lines_of(const pnb__uncertainty_report *c, const pnb__uncertainty_report *control,
                       claim_line lines[MAX_LINES], char labels[][48])
{
    size_t n = 0;
#define CONTROL(field) (control != NULL ? control->field : NAN)
    for (int level = 0; level < c->n_levels; level++) {
        snprintf(labels[level], 48, "captions of level %d", level);
        add_line(lines, &n,
                 (claim_line){NULL, labels[level],
                              level == 0 ? "mean uncertainty; level 0 is the most general "
                                           "and should be the most uncertain"
                                         : "mean uncertainty",
                              c->level_mean[level], CONTROL(level_mean[level]), 4});
    }
    add_line(lines, &n,
             (claim_line){"image_mean", "pictures", "mean uncertainty", c->image_mean,
                          CONTROL(image_mean), 4});
    add_line(lines, &n,
             (claim_line){"first_above_last", "level 0 above the last level",
                          "share of all caption pairs; 0.5 is chance", c->first_above_last,
                          CONTROL(first_above_last), 3});
    add_line(lines, &n,
             (claim_line){"image_above", "the same for one picture's captions",
                          "share of pictures; the published claim", c->image_above,
                          CONTROL(image_above), 3});
    add_line(lines, &n,
             (claim_line){"image_in_order", "all levels in order",
                          "share of pictures whose levels fall one by one", c->image_in_order,
                          CONTROL(image_in_order), 3});
    add_line(lines, &n,
             (claim_line){"masked_image_above", "masked picture more uncertain",
                          "share of pictures; taught by the inclusion loss", c->masked_image_above,
                          CONTROL(masked_image_above), 3});
    add_line(lines, &n,
             (claim_line){"image_included", "H(picture in masked) > 0",
                          "share; the whole lies inside what is left of it", c->image_included,
                          CONTROL(image_included), 3});
    add_line(lines, &n,
             (claim_line){"masked_text_above", "masked caption more uncertain",
                          "share of captions; taught by the inclusion loss", c->masked_text_above,
                          CONTROL(masked_text_above), 3});
    add_line(lines, &n,
             (claim_line){"text_included", "H(caption in masked) > 0",
                          "share; the whole lies inside what is left of it", c->text_included,
                          CONTROL(text_included), 3});
    add_line(lines, &n,
             (claim_line){"image_in_text", "H(picture in its caption) > 0",
                          "share of true pairs; a caption says less than its picture",
                          c->image_in_text, CONTROL(image_in_text), 3});
#undef CONTROL
    return n;
}

static void put_values(const pnb__uncertainty_report *c, const char *key, pnb__result *r)
{
    claim_line lines[MAX_LINES];
    char labels[PNB__MAX_LEVELS][48], level[24];
    size_t n = lines_of(c, NULL, lines, labels);
    pnb__result_begin(r, key, NULL);
    for (int k = 0; k < c->n_levels; k++) {
        snprintf(level, sizeof level, "level_%d_mean", k);
        pnb__result_real(r, level, NULL, c->level_mean[k], 6);
    }
    for (size_t i = 0; i < n; i++)
        if (lines[i].key != NULL)
            pnb__result_real(r, lines[i].key, NULL, lines[i].value, 6);
    pnb__result_end(r);
}

void pnb__uncertainty_report_show(const pnb__uncertainty_report *claims,
                                  const pnb__uncertainty_report *control, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"figure", "figure"}, {"value", "value"}, {"control", "control"}, {"meaning", "meaning"}};
    claim_line lines[MAX_LINES];
    char labels[PNB__MAX_LEVELS][48];
    size_t n = lines_of(claims, control, lines, labels);
    put_values(claims, "claims", r);
    if (control != NULL)
        put_values(control, "control", r);
    pnb__result_table(r, "table", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        pnb__result_row(r, "%s %.*f %.*f %s", lines[i].label, lines[i].digits, lines[i].value,
                        lines[i].digits, lines[i].control, lines[i].meaning);
    }
}
