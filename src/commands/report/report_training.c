/* Curves of a training run from its results.jsonl (fields: docs/commands/train.md).
 *
 * A plot takes the fields it knows and leaves out those a run does not have, so runs with other
 * losses and runs without validation work alike. */
#include <math.h>
#include <string.h>

#include "commands/report/report_internal.h"
#include "penumbra/loss.h"
#include "report/html.h"

/* Lines of a run's file; a last line that was cut short is left out. */
static pnb_status read_results(const char *run_dir, json_t **out, pnb_error *err)
{
    char *path = pnb__path_join(run_dir, "results.jsonl"), *text = NULL;
    size_t size = 0;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(run_dir));
    pnb_status status = pnb__read_file(path, (size_t)1 << 30, &text, &size, err);
    json_t *records = json_array();
    for (size_t at = 0; status == PNB_OK && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end != NULL ? (size_t)(end - text) - at : size - at;
        json_t *record = NULL;
        status = pnb__json_try_bytes(&record, text + at, n, err);
        if (record != NULL)
            json_array_append_new(records, record);
        at += n + 1;
    }
    if (status == PNB_OK && !json_is_complete(records))
        status = pnb__fail_nomem(err, size);
    if (status == PNB_OK && json_array_size(records) == 0)
        status = pnb__fail(err, PNB_FORMAT, "%s: no record of a step in it", path);
    if (status == PNB_OK)
        *out = records;
    else
        json_decref(records);
    pnb__free(text);
    pnb__free(path);
    return status;
}

pnb_status pnb__report_read_training(pnb__report *r)
{
    json_t *records = NULL;
    pnb_status status = read_results(r->opts->run, &records, &r->app->err);
    if (status == PNB_OK)
        pnb__result_value(r->more, "records", records);
    return status;
}

/* The last value of a field, NaN where there is none. */
static double last_value(const pnb__report *r, const char *kind, const char *key)
{
    const json_t *records = pnb__result_get(r->more, "records");
    double last = NAN;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *its = json_string_value(json_object_get(record, "kind"));
        double value = pnb__json_real_at(record, key);
        if (its != NULL && strcmp(its, kind) == 0 && !isnan(value))
            last = value;
    }
    return last;
}

void pnb__report_training_headline(pnb__report *r)
{
    double loss = last_value(r, "train", "loss"), val_loss = last_value(r, "eval", "val_loss");
    double t2i = last_value(r, "eval", "t2i_r1");
    char answer[300];
    int n = isnan(loss) ? snprintf(answer, sizeof answer, "No step was recorded.")
                        : snprintf(answer, sizeof answer, "The loss ended at %.4g", loss);
    if (!isnan(loss) && !isnan(val_loss) && n > 0)
        n += snprintf(answer + n, sizeof answer - (size_t)n, ", %.4g on the validation set",
                      val_loss);
    if (!isnan(loss) && !isnan(t2i) && n > 0)
        snprintf(answer + n, sizeof answer - (size_t)n,
                 ", where %.1f%% of the captions find their picture first", 100 * t2i);
    pnb__html_headline(&r->page.out, "Asked: what did the training reach?", answer);
}

/* A field of the records of a kind, by step. */
static void add_field(pnb__plot *plot, const char *kind, const char *field, const char *name)
{
    plot->series[plot->n_series] = (pnb__series){.name = name,
                                                 .table = "records",
                                                 .x = "step",
                                                 .y = field,
                                                 .where = "kind",
                                                 .is = kind,
                                                 .colour = (int)plot->n_series % PNB__N_COLOURS};
    plot->n_series++;
}

_Static_assert((int)PNB_N_LOSS_TERMS <= (int)PNB__MAX_SERIES, "every term has a line");

void pnb__report_training(pnb__report *r)
{
    const pnb__axis step = {.exact = true, .label = "step"};
    pnb__plot total = {.title = "Total loss", .x = step, .y = {.label = "loss (nats per pair)"}};
    pnb__plot terms = {.title = "Weighted terms of the loss",
                       .x = step,
                       .y = {.log = true, .label = "weighted loss (nats)"}};
    pnb__plot recall = {.title = "Recall at 1 on the validation set",
                        .x = step,
                        .y = {.label = "share of queries"}};
    pnb__plot spread = {.title = "Mean uncertainty",
                        .x = step,
                        .y = {.log = true, .label = "trace of the covariance"}};
    pnb__plot rate = {.title = "Learning rate", .x = step, .y = {.label = "rate"}};
    const pnb__plot *const plots[] = {&total, &terms, &recall, &spread, &rate};
    add_field(&total, "train", "loss", "training");
    add_field(&total, "eval", "val_loss", "validation");
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        add_field(&terms, "train", pnb_loss_name((pnb_loss_term)i),
                  pnb_loss_name((pnb_loss_term)i));
    add_field(&recall, "eval", "i2t_r1", "image to text");
    add_field(&recall, "eval", "t2i_r1", "text to image");
    add_field(&recall, "eval", "retrieval_i2t_r1", "image to text, all captions");
    add_field(&recall, "eval", "retrieval_t2i_r1", "text to image, all captions");
    add_field(&recall, "eval", "zeroshot_top1", "zero-shot classification");
    add_field(&spread, "train", "image_uncertainty", "pictures");
    add_field(&spread, "train", "text_uncertainty", "captions");
    add_field(&rate, "train", "lr", "learning rate");
    r->page.shown = r->more;
    pnb__page_section(&r->page, "Training",
                      "The total is the weighted sum of the terms beside it. Validation leaves the "
                      "masked terms out and uses whole pictures without augmentation.");
    for (size_t i = 0; i < PNB_COUNT(plots); i++)
        pnb__page_plot(&r->page, plots[i]);
}
