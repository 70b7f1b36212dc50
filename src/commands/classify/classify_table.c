/* The result of a classification as a line of csv, with the columns that CLIP_benchmark's `build`
 * makes of its results and some more, and as a line of a paper's table in Markdown. Files of
 * several runs can be joined: the header is the same for all. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/common/set_use.h"
#include "io/tables/csv.h"

/* ---- values ---- */

/* Figures in the order of their columns; NaN where there is none. */
static const struct {
    const char *name, *heading; /* heading NULL: csv only */
    double scale;               /* in Markdown */
    int digits;
} FIGURES[] = {{"acc1", "top-1", 1, 4},
               {"acc1_low", NULL, 0, 0},
               {"acc1_high", NULL, 0, 0},
               {"acc5", "top-5", 1, 4},
               {"mean_per_class_recall", "mean recall", 1, 4},
               {"macro_f1", "mean F1", 1, 4},
               {"worst_group_acc1", "worst group", 1, 4},
               {"ece", "ECE", 1, 3},
               {"nll", "NLL", 1, 3},
               {"minus_s_r2", "-S R\xC2\xB2", 1, 3},
               {"auroc_error", "AUROC of errors", 1, 3},
               {"positive_accuracy", "positive acc.", 1, 4},
               {"negative_accuracy", "negative acc.", 1, 4},
               {"auroc_nota", "AUROC none", 1, 3},
               {"fpr95", "FPR@95", 1, 4}};
enum { N_FIGURES = PNB_COUNT(FIGURES), ACC1 = 0, LOW = 1, HIGH = 2 };

static void fill(const pnb__classify *run, double value[N_FIGURES])
{
    const pnb_classification *f = &run->figures;
    const pnb_none_figures *n = &run->none;
    bool labels = run->has_figures, none = run->has_none_figures;
    bool groups = run->groups.names.n > 0;
    bool unsure = labels && run->images.source.set->family != PNB_POINT;
    const double found[N_FIGURES] = {labels ? f->acc1 : NAN,
                                     labels ? run->acc1.low : NAN,
                                     labels ? run->acc1.high : NAN,
                                     labels ? f->acc5 : NAN,
                                     labels ? f->mean_per_class_recall : NAN,
                                     labels ? run->scores.macro_f1.value : NAN,
                                     groups ? run->groups.all.worst_mean.value : NAN,
                                     labels ? f->ece : NAN,
                                     labels ? f->nll : NAN,
                                     unsure ? run->bins.minus_s_r2 : NAN,
                                     unsure ? run->by_uncertainty.auroc : NAN,
                                     none ? n->positive_accuracy : NAN,
                                     none ? n->negative_accuracy : NAN,
                                     none ? n->auroc : NAN,
                                     none ? n->fpr95 : NAN};
    memcpy(value, found, sizeof found);
}

/* ---- csv ---- */

/* Empty where there is none. */
static void put_number(pnb__buf *b, double x)
{
    if (isfinite(x))
        pnb__buf_printf(b, "%.9g", x);
    pnb__buf_putc(b, ',');
}

pnb_status pnb__classify_save_csv(const pnb__classify *run, const char *path, pnb_error *err)
{
    const pnb__classify_opts *o = run->opts;
    const pnb_embeddings_info *info = &run->images.source.set->info;
    pnb__buf b = {0}, full_name = {0};
    double value[N_FIGURES];
    char pretrained[PNB__PRETRAINED_BYTES];
    fill(run, value);
    pnb__set_pretrained(pnb__set_origin(run->images.source.set, run->clf), pretrained);
    pnb__buf_printf(&full_name, "%s %s", info->model, pretrained);
    const char *const words[][2] = {{"dataset", o->dataset != NULL ? o->dataset : o->images},
                                    {"model", info->model},
                                    {"pretrained", pretrained},
                                    {"model_fullname", full_name.failed ? "" : full_name.data},
                                    {"task", PNB__CLASSIFY_TASK},
                                    {"language", o->language},
                                    {"measure", pnb_measure_name(run->measure)},
                                    {"weights", run->method},
                                    {"none", o->has_none ? pnb_none_rule_name(o->none) : ""}};
    for (size_t i = 0; i < PNB_COUNT(words); i++)
        pnb__buf_printf(&b, "%s,", words[i][0]);
    for (size_t i = 0; i < N_FIGURES; i++)
        pnb__buf_printf(&b, "%s,", FIGURES[i].name);
    pnb__buf_puts(&b, "n,n_classes,clusters,unit\n");
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        pnb__csv_put_field(&b, words[i][1]);
        pnb__buf_putc(&b, ',');
    }
    for (size_t i = 0; i < N_FIGURES; i++)
        put_number(&b, value[i]);
    pnb__buf_printf(&b, "%zu,%zu,", run->images.p.n, run->clf->n);
    if (run->has_figures)
        pnb__buf_printf(&b, "%zu", run->clusters.n_clusters);
    pnb__buf_putc(&b, ',');
    pnb__csv_put_field(&b, run->clusters.unit);
    pnb__buf_putc(&b, '\n');
    b.failed = b.failed || full_name.failed;
    pnb__buf_reset(&full_name);
    return pnb__buf_write(&b, path, err);
}

/* ---- Markdown ---- */

static void put_name(pnb__buf *b, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '|')
            pnb__buf_putc(b, '\\');
        pnb__buf_putc(b, *name == '\n' ? ' ' : *name);
    }
}

static void put_cell(pnb__buf *b, const double *value, size_t i)
{
    double scale = FIGURES[i].scale;
    pnb__buf_printf(b, " %.*f", FIGURES[i].digits, scale * value[i]);
    if (i == ACC1 && isfinite(value[LOW]))
        pnb__buf_printf(b, " [%.4f, %.4f]", scale * value[LOW], scale * value[HIGH]);
    pnb__buf_puts(b, " |");
}

/* Columns without a value are left out. */
pnb_status pnb__classify_save_markdown(const pnb__classify *run, const char *path, pnb_error *err)
{
    const pnb__classify_opts *o = run->opts;
    pnb__buf b = {0};
    double value[N_FIGURES];
    fill(run, value);
    pnb__buf_puts(&b, "| dataset | model | weights |");
    for (size_t i = 0; i < N_FIGURES; i++)
        if (FIGURES[i].heading != NULL && isfinite(value[i]))
            pnb__buf_printf(&b, " %s |", FIGURES[i].heading);
    pnb__buf_puts(&b, "\n|---|---|---|");
    for (size_t i = 0; i < N_FIGURES; i++)
        if (FIGURES[i].heading != NULL && isfinite(value[i]))
            pnb__buf_puts(&b, "---:|");
    pnb__buf_puts(&b, "\n| ");
    put_name(&b, o->dataset != NULL ? o->dataset : o->images);
    pnb__buf_puts(&b, " | ");
    put_name(&b, run->images.source.set->info.model);
    pnb__buf_printf(&b, " | %s |", run->method[0] != '\0' ? run->method : "-");
    for (size_t i = 0; i < N_FIGURES; i++)
        if (FIGURES[i].heading != NULL && isfinite(value[i]))
            put_cell(&b, value, i);
    pnb__buf_puts(&b, "\n\nShares are fractions.");
    if (run->has_figures && isfinite(value[LOW]))
        pnb__buf_printf(&b, " Brackets: 95%% bootstrap interval over %zu clusters (unit: %s).",
                        run->clusters.n_clusters, run->clusters.unit);
    pnb__buf_putc(&b, '\n');
    return pnb__buf_write(&b, path, err);
}
