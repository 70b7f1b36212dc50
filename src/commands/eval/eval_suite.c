/* penumbra eval suite: the average of a suite of data sets, from results of single ones.
 *
 * A result is what `classify --output` and `eval retrieval --output` write, which is
 * CLIP_benchmark's form with additions, so its own files are read too. Each data set counts once,
 * by one figure; which one is DataComp's choice (Gadre et al. 2023, its task list): accuracy, but
 * mean recall of a class for the four sets that are known by it, macro F1 for iWildCam, the worst
 * group where there are groups, and the mean of both R@1 for retrieval. The columns are those of
 * ProLIP's Table 1. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "io/json/json.h"
#include "io/tables/csv.h"
#include "penumbra/class_scores.h"
#include "program/result_end.h"

/* ---- what is known of data sets ---- */

typedef enum suite_part { IMAGENET, SHIFTS, VTAB, RETRIEVAL, OTHERS, N_PARTS } suite_part;
static const char *const PARTS[N_PARTS] = {"imagenet", "imagenet_shifts", "vtab", "retrieval",
                                           "others"};

#define MEAN_RECALL "mean_per_class_recall"
#define MEAN_R1 "mean_recall@1"

/* Names without folder, case and signs; metric NULL: accuracy. */
static const struct {
    const char *name;
    suite_part part;
    const char *metric;
} KNOWN[] = {{"imagenet", IMAGENET, NULL},
             {"imagenet1k", IMAGENET, NULL},
             {"imagenetsketch", SHIFTS, NULL},
             {"imagenetv2", SHIFTS, NULL},
             {"imageneta", SHIFTS, NULL},
             {"imageneto", SHIFTS, NULL},
             {"imagenetr", SHIFTS, NULL},
             {"objectnet", SHIFTS, NULL},
             {"caltech101", VTAB, MEAN_RECALL},
             {"cifar100", VTAB, NULL},
             {"clevrcountall", VTAB, NULL},
             {"clevrclosestobjectdistance", VTAB, NULL},
             {"dtd", VTAB, NULL},
             {"eurosat", VTAB, NULL},
             {"kitticlosestvehicledistance", VTAB, NULL},
             {"flowers", VTAB, MEAN_RECALL},
             {"oxfordflowers102", VTAB, MEAN_RECALL},
             {"pets", VTAB, MEAN_RECALL},
             {"oxfordiiitpet", VTAB, MEAN_RECALL},
             {"pcam", VTAB, NULL},
             {"resisc45", VTAB, NULL},
             {"svhn", VTAB, NULL},
             {"sun397", VTAB, NULL},
             {"fgvcaircraft", OTHERS, MEAN_RECALL},
             {"iwildcam", OTHERS, "macro_f1"},
             {"wildsiwildcam", OTHERS, "macro_f1"},
             {"dollarstreet", OTHERS, "worst_group_acc5"}};

static void plain_name(const char *dataset, char out[64])
{
    const char *slash = strrchr(dataset, '/');
    size_t n = 0;
    for (const char *at = slash != NULL ? slash + 1 : dataset; *at != '\0' && n < 63; at++)
        if (isalnum((unsigned char)*at))
            out[n++] = (char)tolower((unsigned char)*at);
    out[n] = '\0';
}

/* ---- one result ---- */

typedef struct suite_args {
    pnb__text_list results, main; /* main: DATASET=KEY */
    const char *csv;
} suite_args;

typedef struct suite_row {
    const char *path;
    json_t *root; /* owns the texts */
    const char *dataset, *model, *metric;
    bool is_named; /* the metric, by --main: any number then */
    suite_part part;
    pnb_interval value;
} suite_row;

typedef struct suite {
    pnb__app *app;
    const suite_args *args;
    suite_row *row;
    size_t n;
    bool *is_used; /* [main] */
} suite;

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double with_end(const json_t *metrics, const char *key, const char *end)
{
    char name[128];
    snprintf(name, sizeof name, "%s_%s", key, end);
    return number_at(metrics, name);
}

/* Both directions' R@1 and their mean. The ends are the means of the ends: the directions share
 * their pairs, and an interval of numbers that move together is not narrower. */
static pnb_interval mean_r1(const suite_row *row, const json_t *metrics)
{
    const json_t *figures = json_object_get(row->root, "figures"), *figure;
    pnb_interval out = {(number_at(metrics, "image_retrieval_recall@1") +
                         number_at(metrics, "text_retrieval_recall@1")) /
                            2.0,
                        (double)NAN, (double)NAN};
    for (size_t i = 0; i < json_array_size(figures); i++) {
        figure = json_array_get(figures, i);
        const char *name = json_string_value(json_object_get(figure, "figure"));
        if (name == NULL || strcmp(name, "recall@1") != 0)
            continue;
        out.low = (number_at(figure, "i2t_low") + number_at(figure, "t2i_low")) / 2.0;
        out.high = (number_at(figure, "i2t_high") + number_at(figure, "t2i_high")) / 2.0;
    }
    return out;
}

/* The key that --main says for the data set, or NULL. */
static const char *main_of(const suite *s, const char *dataset)
{
    size_t n = strlen(dataset);
    for (size_t i = 0; i < s->args->main.n; i++) {
        const char *word = s->args->main.items[i];
        if (strncmp(word, dataset, n) != 0 || word[n] != '=')
            continue;
        s->is_used[i] = true;
        return word + n + 1;
    }
    return NULL;
}

static void choose_metric(const suite *s, suite_row *row, const json_t *metrics)
{
    const char *task = json_string_value(json_object_get(row->root, "task"));
    const char *own = main_of(s, row->dataset);
    char name[64];
    bool is_retrieval = task != NULL && strstr(task, "retrieval") != NULL;
    bool has_groups = json_object_get(metrics, "worst_group_acc1") != NULL;
    plain_name(row->dataset, name);
    row->part = is_retrieval ? RETRIEVAL : OTHERS;
    row->metric = is_retrieval ? MEAN_R1 : has_groups ? "worst_group_acc1" : "acc1";
    for (size_t i = 0; !is_retrieval && i < PNB_COUNT(KNOWN); i++) {
        if (strcmp(KNOWN[i].name, name) != 0)
            continue;
        row->part = KNOWN[i].part;
        row->metric = KNOWN[i].metric != NULL ? KNOWN[i].metric : row->metric;
    }
    row->is_named = own != NULL;
    row->metric = row->is_named ? own : row->metric;
}

static pnb_status read_value(suite_row *row, const json_t *metrics, pnb_error *err)
{
    if (strcmp(row->metric, MEAN_R1) == 0)
        row->value = mean_r1(row, metrics);
    else
        row->value =
            (pnb_interval){number_at(metrics, row->metric), with_end(metrics, row->metric, "low"),
                           with_end(metrics, row->metric, "high")};
    if (!isfinite(row->value.value))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: its metrics have no %s, by which %s counts; --main %s=KEY takes "
                         "another figure",
                         row->path, row->metric, row->dataset, row->dataset);
    if (!row->is_named && (row->value.value < 0 || row->value.value > 1))
        return pnb__fail(err, PNB_FORMAT,
                         "%s: its %s is %g, and shares from 0 to 1 are averaged: divide percent by "
                         "100",
                         row->path, row->metric, row->value.value);
    return PNB_OK;
}

static pnb_status read_result(suite *s, const char *path)
{
    pnb_error *err = &s->app->err;
    suite_row row = {.path = path};
    pnb_status status = pnb__json_load_file(&row.root, path, 0, err);
    if (status != PNB_OK)
        return status;
    row.dataset = json_string_value(json_object_get(row.root, "dataset"));
    row.model = json_string_value(json_object_get(row.root, "model"));
    const json_t *metrics = json_object_get(row.root, "metrics");
    if (row.dataset == NULL || row.dataset[0] == '\0' || !json_is_object(metrics))
        PNB_TRY(
            pnb__fail(err, PNB_FORMAT,
                      "%s: no result of a data set with labels: \"dataset\" and \"metrics\" are "
                      "wanted, as `classify --output` and `eval retrieval --output` write them",
                      path));
    row.model = row.model != NULL ? row.model : "";
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->row[i].dataset, row.dataset) == 0 && strcmp(s->row[i].model, row.model) == 0)
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "%s and %s are both of %s by model \"%s\"; a data set counts once",
                              s->row[i].path, path, row.dataset, row.model));
    choose_metric(s, &row, metrics);
    PNB_TRY(read_value(&row, metrics, err));
    PNB_TRY(pnb__grow_one(&s->row, s->n, sizeof *s->row, err));
    s->row[s->n++] = row;
    return PNB_OK;
done:
    json_decref(row.root);
    return status;
}

/* ---- averages ---- */

static void put_rows(const suite *s, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"model", "model"}, {"dataset", "data set"}, {"part", "part"}, {"metric", "figure"},
        {"value", "value"}, {"low", "95% from"},     {"high", "to"}};
    pnb__result_table(r, "datasets", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < s->n; i++) {
        const suite_row *row = &s->row[i];
        pnb__result_row(r, "%s %s %s %s", row->model, row->dataset, PARTS[row->part], row->metric);
        pnb__result_cell_real(r, row->value.value, 4);
        pnb__result_cell_real(r, row->value.low, 4);
        pnb__result_cell_real(r, row->value.high, 4);
    }
}

/* The mean over a model's data sets of one part; N_PARTS: over all of them. */
static pnb_status put_mean(const suite *s, const char *model, suite_part part,
                           pnb_interval *scratch, pnb__result *r)
{
    pnb_interval mean;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->row[i].model, model) == 0 && (part == N_PARTS || s->row[i].part == part))
            scratch[n++] = s->row[i].value;
    if (n == 0)
        return PNB_OK;
    pnb_status status = pnb_suite_mean(scratch, n, &mean, &s->app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_row(r, "%s %s %zu", model, part == N_PARTS ? "average" : PARTS[part], n);
    pnb__result_cell_real(r, mean.value, 4);
    pnb__result_cell_real(r, mean.low, 4);
    pnb__result_cell_real(r, mean.high, 4);
    return PNB_OK;
}

static bool is_first_of_model(const suite *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(s->row[k].model, s->row[i].model) == 0)
            return false;
    return true;
}

static pnb_status put_means(const suite *s, pnb__result *r)
{
    static const pnb__column columns[] = {{"model", "model"},  {"part", "average of"},
                                          {"n", "data sets"},  {"mean", "mean"},
                                          {"low", "95% from"}, {"high", "to"}};
    pnb_interval *scratch = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(scratch, s->n, &s->app->err));
    pnb__result_table(r, "averages", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < s->n; i++)
        for (int part = 0; is_first_of_model(s, i) && part <= N_PARTS; part++)
            PNB_TRY(put_mean(s, s->row[i].model, (suite_part)part, scratch, r));
done:
    pnb__free(scratch);
    return status;
}

static bool has_row(const suite *s, const char *model, const char *dataset)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->row[i].model, model) == 0 && strcmp(s->row[i].dataset, dataset) == 0)
            return true;
    return false;
}

/* Averages over different data sets say nothing about models. */
static void warn_of_gaps(const suite *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; is_first_of_model(s, i) && k < s->n; k++)
            if (!has_row(s, s->row[i].model, s->row[k].dataset)) {
                pnb__warn(s->app,
                          "model \"%s\" has no result of %s: its averages are of other data "
                          "sets than those of \"%s\"",
                          s->row[i].model, s->row[k].dataset, s->row[k].model);
                break;
            }
}

static pnb_status save_csv(const suite *s, const char *path)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, "model,dataset,part,figure,value,low,high\n");
    for (size_t i = 0; i < s->n; i++) {
        const suite_row *row = &s->row[i];
        const char *const words[] = {row->model, row->dataset, PARTS[row->part], row->metric};
        const double numbers[] = {row->value.value, row->value.low, row->value.high};
        for (size_t k = 0; k < PNB_COUNT(words); k++) {
            pnb__csv_put_field(&b, words[k]);
            pnb__buf_putc(&b, ',');
        }
        for (size_t k = 0; k < PNB_COUNT(numbers); k++) {
            if (isfinite(numbers[k]))
                pnb__buf_printf(&b, "%.9g", numbers[k]);
            pnb__buf_putc(&b, k + 1 < PNB_COUNT(numbers) ? ',' : '\n');
        }
    }
    pnb_status status = pnb__buf_write(&b, path, &s->app->err);
    pnb__buf_reset(&b);
    return status;
}

/* ---- the command ---- */

#define AT(field) PNB__FIELD(suite_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILES("results", AT(results), "FILE.json...",
                   "Results of single data sets, of one model or several", .required = true),
    PNB__ROW_LIST(
        "main", AT(main), "DATASET=KEY...",
        "The figure of its metrics by which a data set counts, in place of the usual one"),
    PNB__ROW_FILE("csv", AT(csv), "FILE", "Also write the figure of every data set, one a line",
                  .group = "Result", .writes = "*"),
};
#undef AT

static pnb_status check_main(const suite *s)
{
    for (size_t i = 0; i < s->args->main.n; i++)
        if (!s->is_used[i])
            return pnb__usage(s->app,
                              "--main %s: no result is of such a data set; DATASET=KEY is "
                              "wanted, as \"dataset\" of the result has it",
                              s->args->main.items[i]);
    return PNB_OK;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const suite_args *a = args;
    suite s = {.app = app, .args = a};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(s.is_used, PNB_MAX(a->main.n, (size_t)1), &app->err));
    for (size_t i = 0; i < a->results.n; i++)
        PNB_TRY(read_result(&s, a->results.items[i]));
    PNB_TRY(check_main(&s));
    warn_of_gaps(&s);
    put_rows(&s, r);
    PNB_TRY(put_means(&s, r));
    if (a->csv != NULL)
        status = save_csv(&s, a->csv);
done:
    for (size_t i = 0; i < s.n; i++)
        json_decref(s.row[i].root);
    pnb__free(s.row);
    pnb__free(s.is_used);
    return status;
}

const pnb__command pnb__cmd_eval_suite = {
    .name = "suite",
    .summary = "average the results of a suite of data sets",
    .about = "Every data set counts once, by accuracy; by mean recall of a class for Caltech-101, "
             "FGVC Aircraft, Flowers and Pets, by macro F1 for iWildCam, by the worst group where "
             "classify was given groups (among the first five for Dollar Street), by the mean of "
             "both R@1 for retrieval, as in DataComp's suite. Averages of ImageNet, its six "
             "shifts, VTAB, retrieval and all, as in ProLIP's Table 1, with the interval of "
             "independent data sets where every result has one. CLIP_benchmark's files are read "
             "too; they have no intervals.",
    .examples =
        "penumbra eval suite --results results/*.json\n"
        "penumbra eval suite --results a.json b.json --main wds/fmow=worst_group_acc1 --csv "
        "suite.csv",
    PNB__RUNS(options, suite_args, run)};
