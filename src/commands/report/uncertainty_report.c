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

/* True pairs whose caption has a level, as flat lists for pnb_level_order_compute. */
typedef struct true_pairs {
    size_t n;
    double *u, *score; /* of the caption; of the pair */
    int *level;
    int64_t *owner;
} true_pairs;

static void pairs_reset(true_pairs *pairs)
{
    pnb__free(pairs->u);
    pnb__free(pairs->score);
    pnb__free(pairs->level);
    pnb__free(pairs->owner);
}

/* Scores by the measure that the two sets suit; on the sphere a picture's log-likelihood. */
static pnb_status list_pairs(const inputs *in, true_pairs *pairs, pnb_measure *measure,
                             pnb_error *err)
{
    const pnb_truth *t = in->truth;
    pnb_view images = {0}, texts = {0};
    pnb_status status;
    PNB_TRY(PNB_ALLOC(pairs->u, t->n_pairs, err));
    PNB_TRY(PNB_ALLOC(pairs->score, t->n_pairs, err));
    PNB_TRY(PNB_ALLOC(pairs->level, t->n_pairs, err));
    PNB_TRY(PNB_ALLOC(pairs->owner, t->n_pairs, err));
    PNB_TRY(pnb_view_init(&images, in->images, err));
    PNB_TRY(pnb_view_init(&texts, in->texts, err));
    *measure = PNB__MEASURE_AUTO;
    PNB_TRY(pnb__measure_of_sets(measure, in->images, in->texts, err));
    PNB_TRY(pnb__measure_settle(measure, *measure, &images.rows, &texts.rows, err));
    for (size_t q = 0; q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++) {
            size_t text = t->item[p];
            if (in->level[text] < 0)
                continue;
            double value = pnb_measure_pair(*measure, &images.rows, q, &texts.rows, text, NULL);
            pairs->u[pairs->n] = in->text_u[text];
            pairs->score[pairs->n] = pnb_measure_score(*measure, value);
            pairs->level[pairs->n] = in->level[text];
            pairs->owner[pairs->n++] = (int64_t)q;
        }
done:
    pnb_view_reset(&images);
    pnb_view_reset(&texts);
    return status;
}

/* Level 0 is the most uncertain of a picture's captions, and what likes the picture least. */
static pnb_status measure_order(const inputs *in, pnb__uncertainty_report *out, pnb_error *err)
{
    true_pairs pairs = {0};
    pnb_level_order order = {0};
    size_t counts[PNB__MAX_LEVELS];
    pnb_status status;
    PNB_TRY(list_pairs(in, &pairs, &out->measure, err));
    if (pairs.n == 0)
        goto done;
    PNB_TRY(pnb_level_order_compute(pairs.u, pairs.level, pairs.owner, pairs.n, out->n_levels,
                                    &order, err));
    out->image_above = order.share_first_above_last;
    out->image_in_order = order.n_complete > 0 ? order.share_in_order : NAN;
    PNB_TRY(pnb_mean_by_group(pairs.score, pairs.level, pairs.n, (size_t)out->n_levels,
                              out->level_score, counts, err));
    for (size_t i = 0; i < pairs.n; i++)
        pairs.score[i] = -pairs.score[i];
    PNB_TRY(pnb_level_order_compute(pairs.score, pairs.level, pairs.owner, pairs.n, out->n_levels,
                                    &order, err));
    out->score_rises = order.share_first_above_last;
done:
    pairs_reset(&pairs);
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
                                     .score_rises = NAN,
                                     .image_in_text = NAN};
    for (int k = 0; k < PNB__MAX_LEVELS; k++)
        out->level_score[k] = NAN;
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
enum { MAX_LINES = 32 };

/* What lines of a level are called. */
typedef struct line_texts {
    char levels[PNB__MAX_LEVELS][48], scores[PNB__MAX_LEVELS][48], by[64];
} line_texts;

static void add_line(claim_line *lines, size_t *n, claim_line line)
{
    if (!isnan(line.value) || !isnan(line.control))
        lines[(*n)++] = line;
}

static size_t lines_of(const pnb__uncertainty_report *c, const pnb__uncertainty_report *control,
                       claim_line lines[MAX_LINES], line_texts *texts)
{
    char(*labels)[48] = texts->levels, (*scores)[48] = texts->scores, *by = texts->by;
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
    for (int level = 0; level < c->n_levels; level++) {
        snprintf(scores[level], 48, "true pairs of level %d", level);
        snprintf(by, 64, "mean score by %s", pnb_measure_name(c->measure));
        add_line(lines, &n,
                 (claim_line){NULL, scores[level], by, c->level_score[level],
                              CONTROL(level_score[level]), 4});
    }
    add_line(lines, &n,
             (claim_line){"score_rises", "the last level scores above level 0",
                          "share of pictures; the more a caption says the likelier its picture",
                          c->score_rises, CONTROL(score_rises), 3});
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
    line_texts texts;
    char level[24];
    size_t n = lines_of(c, NULL, lines, &texts);
    pnb__result_begin(r, key, NULL);
    for (int k = 0; k < c->n_levels; k++) {
        snprintf(level, sizeof level, "level_%d_mean", k);
        pnb__result_real(r, level, NULL, c->level_mean[k], 6);
    }
    bool has_scores = isfinite(c->score_rises);
    for (int k = 0; has_scores && k < c->n_levels; k++) {
        snprintf(level, sizeof level, "level_%d_score", k);
        pnb__result_real(r, level, NULL, c->level_score[k], 6);
    }
    if (has_scores)
        pnb__result_text(r, "measure", NULL, pnb_measure_name(c->measure));
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
    line_texts texts;
    size_t n = lines_of(claims, control, lines, &texts);
    put_values(claims, "claims", r);
    if (control != NULL)
        put_values(control, "control", r);
    pnb__result_table(r, "table", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        pnb__result_row(r, "%s %.*f %.*f %s", lines[i].label, lines[i].digits, lines[i].value,
                        lines[i].digits, lines[i].control, lines[i].meaning);
    }
}
