/* Zero-shot classes of a set, and pictures that belong to none of them.
 *
 * A caption level is a set of classes when every picture has exactly one true caption of it (the
 * groups and subgroups of emoji). For "none of the above" every second class is taken away: its
 * pictures are then of none. Thresholds are fitted on every second picture and judged on the rest
 * (classify.h, docs/numerics.md#zero-shot). */
#include <math.h>
#include <string.h>

#include "commands/report/report_internal.h"
#include "penumbra/classify.h"
#include "prob/measure.h"

#define REJECTED 0.05 /* share of known pictures that a fitted threshold may turn away */
enum { MIN_IMAGES_A_CLASS = 2, TOP = 5 };

/* ---- classes of a level ---- */

typedef struct classes {
    pnb_rows rows; /* copies, [n] */
    float *mean, *log_var, *kappa;
    int32_t *label;    /* [n pictures] */
    size_t n, n_whole; /* n_whole: before some were taken away */
} classes;

static void classes_reset(classes *c)
{
    pnb__free(c->mean);
    pnb__free(c->log_var);
    pnb__free(c->kappa);
    pnb__free(c->label);
    *c = (classes){0};
}

static void copy_row(classes *c, const pnb_rows *from, size_t row)
{
    size_t dim = from->dim;
    memcpy(c->mean + c->n * dim, from->mean + row * dim, dim * sizeof(float));
    if (from->log_var != NULL)
        memcpy(c->log_var + c->n * dim, from->log_var + row * dim, dim * sizeof(float));
    if (from->kappa != NULL)
        c->kappa[c->n] = from->kappa[row];
    c->n++;
}

static pnb_status reserve(classes *c, size_t n, size_t dim, size_t n_images, pnb_error *err)
{
    c->mean = pnb__alloc_array(n, dim * sizeof *c->mean);
    c->log_var = pnb__alloc_array(n, dim * sizeof *c->log_var);
    c->kappa = pnb__alloc_array(n, sizeof *c->kappa);
    c->label = pnb__alloc_array(n_images, sizeof *c->label);
    return c->mean == NULL || c->log_var == NULL || c->kappa == NULL || c->label == NULL
               ? pnb__fail_nomem(err, 2 * n * dim * sizeof(float))
               : PNB_OK;
}

static void view(classes *c, const pnb_rows *like)
{
    c->rows = (pnb_rows){.n = c->n,
                         .dim = like->dim,
                         .mean = c->mean,
                         .log_var = like->log_var != NULL ? c->log_var : NULL,
                         .kappa = like->kappa != NULL ? c->kappa : NULL,
                         .is_power = like->is_power};
}

/* The one caption of `level` that is true of a picture: its class, or -1. */
static int32_t class_of(const pnb__retrieval *all, size_t image, const int32_t *class_of_text)
{
    int32_t found = -1;
    for (size_t p = all->truth->offset[image]; p < all->truth->offset[image + 1]; p++) {
        int32_t c = class_of_text[all->truth->item[p]];
        if (c >= 0 && found >= 0)
            return -1;
        found = c >= 0 ? c : found;
    }
    return found;
}

/* out->n is 0 where the level does not divide the pictures into classes. */
static pnb_status level_classes(const pnb__retrieval *all, int level, classes *out, pnb_error *err)
{
    size_t n_texts = all->texts->n, n_images = all->images->n, n = 0;
    int32_t *index = pnb__alloc_array(n_texts, sizeof *index);
    pnb_status status = PNB_OK;
    if (index == NULL)
        return pnb__fail_nomem(err, n_texts * sizeof *index);
    for (size_t i = 0; i < n_texts; i++)
        index[i] = all->text_level[i] == level ? (int32_t)n++ : -1;
    if (n < 2 || n * MIN_IMAGES_A_CLASS > n_images)
        goto done;
    PNB_TRY(reserve(out, n, all->text_rows.dim, n_images, err));
    for (size_t i = 0; i < n_texts; i++)
        if (index[i] >= 0)
            copy_row(out, &all->text_rows, i);
    for (size_t i = 0; i < n_images && out->n > 0; i++) {
        out->label[i] = class_of(all, i, index);
        if (out->label[i] < 0)
            out->n = 0;
    }
    view(out, &all->text_rows);
done:
    pnb__free(index);
    return status;
}

/* ---- zero-shot ---- */

/* Other scores than those the model's scale belongs to are in nats. */
static double scale_of(const pnb__retrieval *all)
{
    double a = all->images->info.logit_scale;
    if (!pnb__measure_has_logits(all->measure))
        return 1.0;
    return isfinite(a) && a > 0 ? a : 100.0; /* the scale of the released CLIP evaluation */
}

static pnb_classify_job job_of(const pnb__retrieval *all, const classes *c)
{
    return (pnb_classify_job){.images = &all->image_rows,
                              .classes = &c->rows,
                              .labels = c->label,
                              .measure = all->measure,
                              .opts = &all->measure_opts,
                              .scale = scale_of(all),
                              .k = PNB_MIN((size_t)TOP, c->n)};
}

static double share_of_largest(const pnb_classification *f)
{
    size_t most = 0;
    for (size_t c = 0; c < f->n_classes; c++)
        most = PNB_MAX(most, f->classes[c].n);
    return (double)most / (double)f->n;
}

static pnb_status zero_shot_row(pnb__report *r, const classes *c, int level)
{
    const pnb_classify_job job = job_of(&r->all, c);
    pnb_error *err = &r->app->err;
    pnb_predictions p = {0};
    pnb_classification f = {0};
    char name[40];
    pnb_status status;
    PNB_TRY(pnb_classify(r->app->ctx, &job, &p, err));
    PNB_TRY(pnb_classification_compute(&p, c->label, 15, &f, err));
    snprintf(name, sizeof name, "captions of level %d", level);
    const double shares[] = {share_of_largest(&f), f.acc1, f.acc5, f.mean_per_class_recall, f.ece};
    pnb__result_cell_text(r->more, name);
    pnb__result_cell_int(r->more, (int64_t)c->n);
    for (size_t i = 0; i < PNB_COUNT(shares); i++)
        pnb__result_cell_real(r->more, shares[i], 3);
done:
    pnb_predictions_reset(&p);
    pnb_classification_reset(&f);
    return status;
}

/* ---- none of the above ---- */

/* Every second class; label -1 for the pictures of the others. */
static pnb_status known_half(const pnb__retrieval *all, const classes *whole, classes *out,
                             pnb_error *err)
{
    size_t n_images = all->images->n;
    pnb_status status;
    PNB_TRY(reserve(out, whole->n, whole->rows.dim, n_images, err));
    for (size_t c = 0; c < whole->n; c += 2)
        copy_row(out, &whole->rows, c);
    for (size_t i = 0; i < n_images; i++)
        out->label[i] = whole->label[i] % 2 == 0 ? whole->label[i] / 2 : -1;
    out->n_whole = whole->n;
    view(out, &whole->rows);
done:
    return status;
}

/* Scores by one rule, of known pictures (fit and judged) and of unknown ones (judged). */
typedef struct ood_scores {
    double *all, *fit, *known, *unknown;
    bool *is_right;
    size_t n_fit, n_known, n_unknown;
} ood_scores;

static void ood_scores_reset(ood_scores *s)
{
    pnb__free(s->all);
    pnb__free(s->fit);
    pnb__free(s->known);
    pnb__free(s->unknown);
    pnb__free(s->is_right);
}

static pnb_status ood_scores_create(ood_scores *s, size_t n, pnb_error *err)
{
    s->all = pnb__alloc_array(n, sizeof *s->all);
    s->fit = pnb__alloc_array(n, sizeof *s->fit);
    s->known = pnb__alloc_array(n, sizeof *s->known);
    s->unknown = pnb__alloc_array(n, sizeof *s->unknown);
    s->is_right = pnb__alloc_array(n, sizeof *s->is_right);
    bool failed = s->all == NULL || s->fit == NULL || s->known == NULL || s->unknown == NULL ||
                  s->is_right == NULL;
    return failed ? pnb__fail_nomem(err, 4 * n * sizeof(double)) : PNB_OK;
}

static void divide(ood_scores *s, const pnb_predictions *p, const int32_t *label)
{
    for (size_t i = 0, turn = 0; i < p->n; i++) {
        if (label[i] < 0) {
            s->unknown[s->n_unknown++] = s->all[i];
        } else if (turn++ % 2 == 0) {
            s->fit[s->n_fit++] = s->all[i];
        } else {
            s->is_right[s->n_known] = p->top[i * p->k] == label[i];
            s->known[s->n_known++] = s->all[i];
        }
    }
}

static pnb_status none_row(pnb__report *r, pnb_none_rule rule, const pnb_predictions *p,
                           const classes *half)
{
    pnb_error *err = &r->app->err;
    ood_scores s = {0};
    pnb_none_figures f;
    double threshold = 0; /* of dummies: they are one more class */
    pnb_status status;
    PNB_TRY(ood_scores_create(&s, p->n, err));
    PNB_TRY(pnb_ood_score(rule, p, r->all.image_u, s.all, err));
    divide(&s, p, half->label);
    if (rule != PNB_NONE_DUMMY)
        PNB_TRY(pnb_none_fit_rejected(s.fit, s.n_fit, REJECTED, &threshold, err));
    PNB_TRY(pnb_none_compute(s.known, s.is_right, s.n_known, s.unknown, s.n_unknown, threshold, &f,
                             err));
    pnb__result_cell_text(r->more, pnb_none_rule_name(rule));
    pnb__result_cell_text(r->more,
                          rule == PNB_NONE_DUMMY ? "0" : "5% of known pictures turned away");
    pnb__result_cell_real(r->more, f.auroc, 3);
    pnb__result_cell_real(r->more, f.fpr95, 3);
    pnb__result_cell_real(r->more, f.positive_accuracy, 3);
    pnb__result_cell_real(r->more, f.negative_accuracy, 3);
done:
    ood_scores_reset(&s);
    return status;
}

static pnb_status none_table(pnb__report *r, const classes *half, const pnb_rows *dummies)
{
    static const pnb__column columns[] = {{"told_by", "told by"},
                                          {"threshold", "threshold"},
                                          {"auroc", "AUROC"},
                                          {"fpr95", "FPR@95"},
                                          {"positive_accuracy", "positive accuracy"},
                                          {"negative_accuracy", "negative accuracy"}};
    pnb_classify_job job = job_of(&r->all, half);
    pnb_predictions p = {0};
    pnb_status status;
    job.dummies = dummies != NULL && dummies->n > 0 ? dummies : NULL;
    PNB_TRY(pnb_classify(r->app->ctx, &job, &p, &r->app->err));
    pnb__result_table(r->more, "none_of_the_above", NULL, columns, PNB_COUNT(columns));
    for (int rule = 0; status == PNB_OK && rule < PNB_N_NONE_RULES; rule++) {
        bool is_known =
            (rule != PNB_NONE_DUMMY || job.dummies != NULL) &&
            (rule != PNB_NONE_UNCERTAINTY || pnb__report_is_uncertain(&r->all.image_rows));
        if (is_known)
            status = none_row(r, (pnb_none_rule)rule, &p, half);
    }
    pnb__buf_printf(pnb__page_block(&r->page),
                    "<h3>None of the above: %zu classes known, %zu taken away</h3>\n", half->n,
                    half->n_whole - half->n);
    pnb__page_table(&r->page, "none_of_the_above", NULL);
    pnb__buf_puts(&r->page.out,
                  "<p class=\"soft\">Positive accuracy: pictures of known classes "
                  "kept and named right. Negative accuracy: pictures of the classes taken "
                  "away that were turned away. FPR@95: share of those kept where 95% of the "
                  "known pictures are.</p>\n");
done:
    pnb_predictions_reset(&p);
    return status;
}

static pnb_status none_of_the_above(pnb__report *r, const classes *whole, const pnb_rows *dummies)
{
    classes half = {0};
    size_t n_known = 0, n_images = r->all.images->n;
    pnb_status status;
    PNB_TRY(known_half(&r->all, whole, &half, &r->app->err));
    for (size_t i = 0; i < n_images; i++)
        n_known += half.label[i] >= 0;
    if (half.n >= 2 && n_known >= 4 && n_known < n_images)
        PNB_TRY(none_table(r, &half, dummies));
done:
    classes_reset(&half);
    return status;
}

/* ---- for the opening ---- */

void pnb__kinds_reset(pnb__kinds *k)
{
    pnb__free(k->label);
    pnb__free(k->text);
    pnb__free(k->logits);
    *k = (pnb__kinds){0};
}

/* Labels, captions and logits of the classes of a level. */
static pnb_status take_kinds(pnb__report *r, const classes *c, int level, pnb__kinds *out)
{
    const pnb__retrieval *all = &r->all;
    pnb_error *err = &r->app->err;
    pnb_classify_job job = job_of(all, c);
    pnb_predictions p = {0};
    size_t n_images = all->images->n, at = 0;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(out->label, n_images, err));
    PNB_TRY(PNB_ALLOC(out->text, c->n, err));
    PNB_TRY(PNB_ALLOC(out->logits, n_images * c->n, err));
    for (size_t t = 0; t < all->texts->n; t++)
        if (all->text_level[t] == level)
            out->text[at++] = t;
    memcpy(out->label, c->label, n_images * sizeof *out->label);
    job.k = 1;
    job.all_scores = out->logits;
    PNB_TRY(pnb_classify(r->app->ctx, &job, &p, err));
    for (size_t i = 0; i < n_images * c->n; i++)
        out->logits[i] *= job.scale;
    out->n = n_images;
    out->n_kinds = c->n;
done:
    pnb_predictions_reset(&p);
    return status;
}

pnb_status pnb__report_kinds(pnb__report *r, pnb__kinds *out)
{
    pnb_status status = PNB_OK;
    *out = (pnb__kinds){0};
    for (int level = 0; status == PNB_OK && out->n == 0 && level < PNB__MAX_LEVELS; level++) {
        classes c = {0};
        status = level_classes(&r->all, level, &c, &r->app->err);
        if (status == PNB_OK && c.n > 0)
            status = take_kinds(r, &c, level, out);
        classes_reset(&c);
    }
    if (status != PNB_OK)
        pnb__kinds_reset(out);
    return status;
}

/* ---- the section ---- */

static pnb_status add_section(pnb__report *r, const classes levels[PNB__MAX_LEVELS], int first,
                              const pnb_rows *dummies)
{
    static const pnb__column columns[] = {{"classes", "classes"},
                                          {"n", "number"},
                                          {"largest", "largest class"},
                                          {"acc1", "top 1"},
                                          {"acc5", "top 5"},
                                          {"mean_per_class_recall", "mean recall of a class"},
                                          {"ece", "ECE"}};
    pnb_status status = PNB_OK;
    pnb__result_table(r->more, "zero_shot", NULL, columns, PNB_COUNT(columns));
    for (int level = first; status == PNB_OK && level < PNB__MAX_LEVELS; level++)
        if (levels[level].n > 0)
            status = zero_shot_row(r, &levels[level], level);
    r->page.shown = r->more;
    pnb__page_section(&r->page, "Zero-shot classes",
                      "Each caption of a level is a class and nothing was trained for them. "
                      "Largest class is what always naming it would reach.");
    pnb__page_percents(&r->page, "zero_shot", NULL);
    return status == PNB_OK ? none_of_the_above(r, &levels[first], dummies) : status;
}

pnb_status pnb__report_classes(pnb__report *r, const pnb_rows *dummies)
{
    classes levels[PNB__MAX_LEVELS];
    pnb_status status = PNB_OK;
    int first = -1;
    memset(levels, 0, sizeof levels);
    for (int level = 0; status == PNB_OK && level < PNB__MAX_LEVELS; level++) {
        status = level_classes(&r->all, level, &levels[level], &r->app->err);
        first = first < 0 && levels[level].n > 0 ? level : first;
    }
    if (status == PNB_OK && first >= 0)
        status = add_section(r, levels, first, dummies);
    for (int level = 0; level < PNB__MAX_LEVELS; level++)
        classes_reset(&levels[level]);
    return status;
}
