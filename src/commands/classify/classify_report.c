/* What was found, as CLIP_benchmark's JSON with additions, and as text for people.
 *
 * metrics holds acc1, acc5 and mean_per_class_recall under CLIP_benchmark's names (acc5 is null
 * with fewer than 5 classes); what it does not have follows in blocks of its own. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "commands/classify/classify.h"
#include "commands/common/set_use.h"
#include "io/byte_names.h"
#include "program/source_commit.h"

/* Classes shown in the text's table of the weakest ones. */
enum { N_WEAKEST = 10, N_SHOWN = 20 };

/* ---- predictions ---- the answer itself, where no labels ask how good it is */

static void list_predictions(const pnb__classify *run, pnb__result *r)
{
    const pnb__classified *c = &run->images;
    pnb__buf text = {0};
    json_t *all = json_array();
    for (size_t i = 0; all != NULL && i < c->p.n; i++) {
        text.size = 0;
        pnb__classify_prediction(run, c, i, &text);
        json_t *one = NULL;
        if (!text.failed)
            pnb__byte_names_hide(text.data, text.size); /* which printing shows again */
        if (text.failed ||
            pnb__json_load_bytes(&one, text.data, text.size, "prediction", NULL) != PNB_OK)
            one = NULL;
        if (json_array_append_new(all, one) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    pnb__buf_reset(&text);
    pnb__result_value(r, "predictions", all);
}

static void show_predictions(const pnb__classify *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"image", "picture"},         {"class", "class"},     {"p", "probability"},
        {"class_2", "then"},          {"p_2", "probability"}, {"uncertainty", "uncertainty"},
        {"none", "none of the above"}};
    const pnb__classified *c = &run->images;
    size_t n = PNB_MIN(c->p.n, (size_t)N_SHOWN), k = c->p.k;
    bool has_second = k > 1;
    pnb__column shown[PNB_COUNT(columns)];
    size_t n_columns = 0;
    for (size_t i = 0; i < PNB_COUNT(columns); i++)
        if ((has_second || (i != 3 && i != 4)) && (i != 6 || c->ood != NULL))
            shown[n_columns++] = columns[i];
    pnb__result_table(r, NULL, "no picture has a label: predictions only", shown, n_columns);
    for (size_t i = 0; i < n; i++) {
        pnb__result_cell_text(r, pnb__row_name(c->source.set, i));
        for (size_t j = 0; j < (has_second ? 2 : 1); j++) {
            pnb__result_row(r, "%s %.4f", run->classes.items[c->p.top[i * k + j]],
                            c->p.probability[i * k + j]);
        }
        pnb__result_cell_real(r, c->u[i], 5);
        if (c->ood != NULL)
            pnb__result_cell_text(r, c->ood[i] > run->none_threshold ? "yes" : "no");
    }
    if (n < c->p.n)
        pnb__result_note(r, "the first 20 are shown; --predictions writes all of them, --json "
                            "prints them");
}

static void put_predictions(const pnb__classify *run, pnb__result *r)
{
    if (run->has_figures)
        return;
    list_predictions(run, r);
    show_predictions(run, r);
}

/* The group that does worst, into the open object. */
static void put_worst(const pnb__image_groups *g, pnb__result *r)
{
    if (g->names.n == 0)
        return;
    pnb__result_real(r, "worst_group_acc1", "accuracy of the worst group", g->all.worst_mean.value,
                     4);
    pnb__result_real(r, "worst_group_acc1_low", "  95% from", g->all.worst_mean.low, 4);
    pnb__result_real(r, "worst_group_acc1_high", "  to", g->all.worst_mean.high, 4);
    pnb__result_text(r, "worst_group", "  which is", g->names.items[g->all.worst]);
    pnb__result_real(r, "mean_group_acc1", "mean accuracy of a group", g->all.average.value, 4);
    if (g->acc5 != NULL) {
        pnb__result_real(r, "worst_group_acc5", "top-5 accuracy of the worst group",
                         g->all5.worst_mean.value, 4);
        pnb__result_real(r, "worst_group_acc5_low", NULL, g->all5.worst_mean.low, 4);
        pnb__result_real(r, "worst_group_acc5_high", NULL, g->all5.worst_mean.high, 4);
    }
    pnb__result_int(r, "n_without_group", g->n_without > 0 ? "pictures without a group" : NULL,
                    (int64_t)g->n_without);
}

static void put_groups(const pnb__classify *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"group", "group"},  {"n", "pictures"}, {"acc1", "top-1"},  {"acc1_low", "95% from"},
        {"acc1_high", "to"}, {"acc5", "top-5"}, {"acc5_low", NULL}, {"acc5_high", NULL}};
    const pnb__image_groups *g = &run->groups;
    bool has_five = g->acc5 != NULL;
    if (g->names.n == 0)
        return;
    pnb__result_table(r, "groups", "accuracy by group", columns,
                      has_five ? PNB_COUNT(columns) : PNB_COUNT(columns) - 3);
    for (size_t k = 0; k < g->names.n; k++) {
        const pnb_interval *acc[] = {&g->acc1[k].mean, has_five ? &g->acc5[k].mean : NULL};
        pnb__result_cell_text(r, g->names.items[k]);
        pnb__result_cell_int(r, (int64_t)g->acc1[k].n);
        for (size_t i = 0; i < (has_five ? 2 : 1); i++) {
            pnb__result_cell_real(r, acc[i]->value, 4);
            pnb__result_cell_real(r, acc[i]->low, 4);
            pnb__result_cell_real(r, acc[i]->high, 4);
        }
    }
}

static void put_metrics(const pnb__classify *run, pnb__result *r)
{
    const pnb_classification *f = &run->figures;
    if (!run->has_figures)
        return;
    pnb__result_begin(r, "metrics", "");
    pnb__result_real(r, "acc1", "top-1 accuracy", f->acc1, 4);
    pnb__result_real(r, "acc1_low", "  95% from", run->acc1.low, 4);
    pnb__result_real(r, "acc1_high", "  to", run->acc1.high, 4);
    pnb__image_clusters_put(&run->clusters, r);
    pnb__result_real(r, "acc5", "top-5 accuracy", f->acc5, 4);
    pnb__result_real(r, "mean_per_class_recall", "mean recall of a class", f->mean_per_class_recall,
                     4);
    pnb__result_real(r, "mean_per_class_recall_low", "  95% from", run->scores.balanced.low, 4);
    pnb__result_real(r, "mean_per_class_recall_high", "  to", run->scores.balanced.high, 4);
    pnb__result_real(r, "macro_f1", "mean F1 of a class", run->scores.macro_f1.value, 4);
    pnb__result_real(r, "macro_f1_low", "  95% from", run->scores.macro_f1.low, 4);
    pnb__result_real(r, "macro_f1_high", "  to", run->scores.macro_f1.high, 4);
    put_worst(&run->groups, r);
    pnb__result_real(r, "chance", "by chance", 1.0 / (double)f->n_classes, 4);
    pnb__result_real(r, "nll", "negative log-likelihood", f->nll, 4);
    pnb__result_real(r, "ece", "expected calibration error", f->ece, 4);
    pnb__result_int(r, "n", NULL, (int64_t)f->n);
    pnb__result_int(r, "n_without_label", NULL, (int64_t)f->n_unknown);
    pnb__result_int(r, "n_classes_without_images",
                    f->n_present < f->n_classes ? "classes without a picture" : NULL,
                    (int64_t)(f->n_classes - f->n_present));
    pnb__result_end(r);
}

/* By the pictures' own uncertainty, into the open object. */
static void put_own(const pnb__classify *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"bin", "bin"},
                                          {"n", "pictures"},
                                          {"u_mean", "mean uncertainty"},
                                          {"accuracy", "accuracy"}};
    const pnb_uncertainty_calibration *c = &run->bins;
    pnb__result_real(r, "spearman_s", "S (Spearman of bin and accuracy)", c->s, 3);
    pnb__result_real(r, "r2", "R\xC2\xB2 of the line", c->r2, 3);
    pnb__result_real(r, "minus_s_r2", "-S R\xC2\xB2", c->minus_s_r2, 3);
    pnb__result_real(r, "auroc_error", "AUROC for errors", run->by_uncertainty.auroc, 3);
    pnb__result_real(r, "aurc", "area under risk and coverage", run->by_uncertainty.aurc, 4);
    pnb__result_real(r, "augrc", NULL, run->by_uncertainty.augrc, 6);
    pnb__result_table(r, "bins", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < c->n_bins; i++) {
        pnb__result_row(r, "%zu %zu %.5f %.4f", c->bin[i].index, c->bin[i].n, c->bin[i].u_mean,
                        c->bin[i].accuracy);
    }
}

/* What the probabilities are worth, which points have too, and what the uncertainties are. */
static void put_uncertainty(const pnb__classify *run, pnb__result *r)
{
    bool own = run->has_figures && run->images.source.set->family != PNB_POINT;
    if (!run->has_figures && !run->has_none_figures)
        return;
    pnb__result_begin(r, "uncertainty", own ? "accuracy by the pictures' uncertainty" : NULL);
    if (run->has_figures) {
        pnb__result_real(r, "ece", NULL, run->figures.ece, 6);
        pnb__result_real(r, "mce", NULL, run->figures.mce, 6);
        pnb__result_real(r, "nlpd", NULL, run->figures.nll, 6);
    }
    if (run->has_none_figures)
        pnb__result_real(r, "auroc_nota", NULL, run->none.auroc, 6);
    if (own)
        put_own(run, r);
    pnb__result_end(r);
}

/* The same by the doubt of the prediction itself, which points have too. */
static void put_doubt(const pnb__classify *run, pnb__result *r)
{
    if (!run->has_figures)
        return;
    pnb__result_begin(r, "doubt", "by the probability of the first class instead");
    pnb__result_real(r, "auroc_error", "AUROC for errors", run->by_doubt.auroc, 3);
    pnb__result_real(r, "aurc", "area under risk and coverage", run->by_doubt.aurc, 4);
    pnb__result_real(r, "augrc", NULL, run->by_doubt.augrc, 6);
    pnb__result_end(r);
}

/* ---- none of the above ---- */

static void put_none(const pnb__classify *run, pnb__result *r)
{
    const pnb_none_figures *f = &run->none;
    size_t n_none = 0;
    if (!run->opts->has_none)
        return;
    for (size_t i = 0; i < run->images.p.n; i++)
        n_none += run->images.ood[i] > run->none_threshold;
    pnb__result_begin(r, "none_of_above", "none of the above");
    pnb__result_text(r, "rule", "rule", pnb_none_rule_name(run->opts->none));
    pnb__result_real(r, "threshold", "threshold", run->none_threshold, 5);
    pnb__result_text(r, "threshold_source", "where it comes from", run->none_source);
    pnb__result_int(r, "n_none", "pictures called none", (int64_t)n_none);
    if (run->has_none_figures) {
        pnb__result_int(r, "n_positive", NULL, (int64_t)f->n_positive);
        pnb__result_int(r, "n_negative", NULL, (int64_t)f->n_negative);
        pnb__result_real(r, "positive_accuracy", "positive accuracy", f->positive_accuracy, 4);
        pnb__result_real(r, "positive_rejected", "positives rejected", f->positive_rejected, 4);
        pnb__result_real(r, "negative_accuracy", "negative accuracy", f->negative_accuracy, 4);
        pnb__result_real(r, "auroc", "AUROC", f->auroc, 4);
        pnb__result_real(r, "fpr95", "FPR@95", f->fpr95, 4);
    }
    pnb__result_end(r);
}

/* ---- classes ---- */

/* The classes of smallest recall, for the text; JSON has them in files and in the matrix. */
static void put_weakest(const pnb__classify *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"class", "weakest classes"}, {"n", "pictures"}, {"recall", "recall"},
        {"precision", "precision"},   {"f1", "F1"},      {"p_label", "mean probability"}};
    size_t shown[N_WEAKEST], n = 0;
    const pnb_class_figures *f = run->figures.classes;
    if (!run->has_figures || run->figures.n_present < 2)
        return;
    for (size_t c = 0; c < run->figures.n_classes; c++) {
        if (f[c].n == 0)
            continue;
        size_t at = n;
        while (at > 0 && f[c].recall < f[shown[at - 1]].recall)
            at--;
        if (at == N_WEAKEST)
            continue;
        n = PNB_MIN(n + 1, (size_t)N_WEAKEST);
        for (size_t i = n - 1; i > at; i--)
            shown[i] = shown[i - 1];
        shown[at] = c;
    }
    pnb__result_table(r, "weakest_classes", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        pnb__result_row(r, "%s %zu %.3f %.3f %.3f %.3f", run->classes.items[shown[i]],
                        f[shown[i]].n, f[shown[i]].recall, f[shown[i]].precision, run->f1[shown[i]],
                        f[shown[i]].p_label);
    }
}

/* ---- prompts ---- */

static void put_prompt(const pnb__classify *run, size_t i, pnb__result *r)
{
    pnb__result_row(r, "%s %.5f %.4f", pnb__prompt_text(run, i), run->prompt_u[i], run->weight[i]);
}

/* Most or least certain prompts of all. */
static void put_extremes(const pnb__classify *run, bool certain, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"prompt", "prompt"}, {"uncertainty", "uncertainty"}, {"weight", "weight"}};
    size_t n = run->prompts->n, n_shown = PNB_MIN(run->opts->n_listed, n);
    pnb__result_table(r, certain ? "most_certain_prompts" : "least_certain_prompts",
                      certain ? "most certain prompts" : "least certain prompts", columns,
                      PNB_COUNT(columns));
    for (size_t i = 0; i < n_shown; i++)
        put_prompt(run, run->by_certainty[certain ? i : n - 1 - i].place, r);
}

/* Templates by their mean uncertainty over the classes, the most certain first. */
static void put_templates(const pnb__classify *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"template", "template"}, {"uncertainty", "mean uncertainty"}, {"weight", "mean weight"}};
    size_t n = run->texts.templates.n, n_classes = run->classes.n;
    double *u = pnb__alloc_zero(PNB_MAX(n, (size_t)1), sizeof *u);
    pnb__valued *order = NULL;
    for (size_t j = 0; u != NULL && j < n; j++)
        for (size_t c = 0; c < n_classes; c++)
            u[j] += run->prompt_u[run->offset[c] + j] / (double)n_classes;
    if (n > 0 && u != NULL && pnb__sorted(&order, u, n, "template", NULL) == PNB_OK)
        pnb__result_table(r, "templates_by_uncertainty", "templates, mean over the classes",
                          columns, PNB_COUNT(columns));
    for (size_t i = 0; order != NULL && i < n; i++) {
        double weight = 0.0;
        for (size_t c = 0; c < n_classes; c++)
            weight += run->weight[run->offset[c] + order[i].place] / (double)n_classes;
        pnb__result_row(r, "%s %.5f %.4f", run->texts.templates.items[order[i].place],
                        order[i].value, weight);
    }
    pnb__free(order);
    pnb__free(u);
}

static void put_weights(const pnb__classify *run, pnb__result *r)
{
    const pnb__classify_opts *o = run->opts;
    size_t n_kept = 0;
    if (run->prompts == NULL)
        return;
    for (size_t i = 0; i < run->prompts->n; i++)
        n_kept += run->weight[i] > 0.0;
    pnb__result_begin(r, "prompts", NULL);
    pnb__result_int(r, "n", "prompts", (int64_t)run->prompts->n);
    pnb__result_text(r, "weights", "their weights",
                     o->bprw_images != NULL ? "bprw, few-shot" : run->method);
    if (o->load_weights != NULL)
        pnb__result_text(r, "loaded_from", "read from", o->load_weights);
    pnb__result_int(r, "n_kept", n_kept < run->prompts->n ? "with a weight" : NULL,
                    (int64_t)n_kept);
    if (o->bprw) {
        pnb__result_int(r, "n_classes_without_images", NULL, (int64_t)run->bprw.n_without);
        pnb__result_int(r, "n_unconverged", NULL, (int64_t)run->bprw.n_unconverged);
    }
    if (run->by_certainty != NULL) {
        put_extremes(run, true, r);
        put_extremes(run, false, r);
        put_templates(run, r);
    }
    pnb__result_end(r);
}

static void put_scaling(const pnb__classify *run, pnb__result *r)
{
    const pnb_scaling *s = &run->scaling;
    if (!s->has_temperature && !s->has_platt)
        return;
    pnb__result_begin(r, "scaling", run->is_scaling_fitted ? "fitted scaling" : "loaded scaling");
    if (s->has_temperature) {
        pnb__result_real(r, "temperature", "temperature", s->temperature.t, 6);
        pnb__result_real(r, "nll_before", NULL, s->temperature.nll_before, 4);
        pnb__result_real(r, "nll_after", "negative log-likelihood on the validation pictures",
                         s->temperature.nll_after, 4);
    }
    if (s->has_platt) {
        pnb__result_real(r, "platt_a", "Platt a", s->platt.a, 4);
        pnb__result_real(r, "platt_b", "Platt b", s->platt.b, 4);
        if (run->has_figures)
            pnb__result_real(r, "platt_ece",
                             "calibration error of the first class's s(a score + b)",
                             run->platt_ece, 4);
    }
    pnb__result_end(r);
}

/* ---- all of it ---- */

static void put_provenance(const pnb__classify *run, pnb__result *r)
{
    const pnb_embeddings_info *images = &run->images.source.set->info;
    pnb__result_begin(r, "provenance", NULL);
    pnb__result_text(r, "version", NULL, pnb_version());
    pnb__result_text(r, "git", NULL, pnb__source_commit());
    pnb__result_text(r, "weights_sha256", NULL, images->weights_sha256);
    pnb__put_adapters(&pnb__set_origin(run->images.source.set, run->clf)->adapters, r);
    pnb__result_int(r, "seed", NULL, (int64_t)images->seed);
    pnb__result_text(r, "preprocess", NULL, images->preprocess);
    pnb__result_text(r, "text_preprocess", NULL, run->clf->info.preprocess);
    pnb__result_text(r, "images", NULL, run->opts->images);
    pnb__result_end(r);
}

void pnb__classify_report(const pnb__classify *run, pnb__result *r)
{
    const pnb__classify_opts *o = run->opts;
    const pnb_embeddings_info *info = &run->images.source.set->info;
    char pretrained[PNB__PRETRAINED_BYTES];
    pnb__set_pretrained(pnb__set_origin(run->images.source.set, run->clf), pretrained);
    pnb__result_text(r, "dataset", NULL, o->dataset != NULL ? o->dataset : o->images);
    pnb__result_text(r, "model", NULL, info->model);
    pnb__result_text(r, "pretrained", NULL, pretrained);
    pnb__result_text(r, "task", NULL, PNB__CLASSIFY_TASK);
    pnb__result_text(r, "language", NULL, o->language);
    pnb__result_int(r, "n_images", "pictures", (int64_t)run->images.source.set->n);
    pnb__result_int(r, "n_classes", "classes", (int64_t)run->clf->n);
    pnb__put_measure(r, "measure", run->measure,
                     (const pnb_embeddings *[]){run->images.source.set, run->clf},
                     (const char *[]){"images", "classes"});
    pnb__put_match(r, run->measure, &run->measure_opts, true);
    if (o->prediction != PNB_PREDICTION_PLAIN)
        pnb__result_text(r, "prediction", "predictions",
                         pnb__name_at(PNB_NAMES(PNB_PREDICTION_LIST), o->prediction, ""));
    pnb__result_real(r, "scale", "scale of the scores", run->scale, 2);
    put_weights(run, r);
    put_scaling(run, r);
    put_metrics(run, r);
    put_predictions(run, r);
    put_groups(run, r);
    put_weakest(run, r);
    pnb__changed_put(&run->changed, &o->changed, r);
    put_uncertainty(run, r);
    put_doubt(run, r);
    put_none(run, r);
    put_provenance(run, r);
    if (o->dump_classnames)
        pnb__result_words(r, "classnames", run->classes.items, run->classes.n);
    if (o->dump_templates && run->texts.templates.n > 0)
        pnb__result_words(r, "templates", run->texts.templates.items, run->texts.templates.n);
}
