/* Curves of a training run from its results.jsonl (fields: docs/commands/train.md).
 *
 * A chart takes the fields it knows and leaves out those a run does not have, so runs with other
 * losses and runs without validation work alike. */
#include <math.h>
#include <string.h>

#include "commands/report/report_internal.h"
#include "io/json/json.h"
#include "penumbra/loss.h"
#include "report/chart.h"
#include "report/html.h"

/* One field of all records of a kind, by step; NaN where a record lacks it. */
typedef struct series {
    double *x, *y;
    size_t n;
} series;

static void series_free(series *s)
{
    pnb__free(s->x);
    pnb__free(s->y);
    *s = (series){0};
}

static pnb_status collect(const json_t *records, const char *kind, const char *key, series *s,
                          pnb_error *err)
{
    size_t n = json_array_size(records), i;
    const json_t *record;
    s->x = pnb__alloc_array(n + 1, sizeof *s->x);
    s->y = pnb__alloc_array(n + 1, sizeof *s->y);
    s->n = 0;
    if (s->x == NULL || s->y == NULL) {
        series_free(s);
        return pnb__fail_nomem(err, (n + 1) * sizeof *s->x);
    }
    json_array_foreach(records, i, record)
    {
        const char *its = json_string_value(json_object_get(record, "kind"));
        const json_t *value = json_object_get(record, key);
        if (its == NULL || strcmp(its, kind) != 0 || !json_is_number(value))
            continue;
        s->x[s->n] = json_number_value(json_object_get(record, "step"));
        s->y[s->n++] = json_number_value(value);
    }
    return PNB_OK;
}

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

/* A line of a chart: which field of which records. */
typedef struct line_spec {
    const char *kind, *key, *text;
} line_spec;

static pnb_status line_chart(pnb__buf *out, const json_t *records, pnb__chart chart,
                             const line_spec *specs, size_t n_specs, pnb_error *err)
{
    series s[PNB__MAX_LEGEND] = {{0}};
    size_t n_points = 0;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n_specs && i < PNB__MAX_LEGEND; i++) {
        PNB_TRY(collect(records, specs[i].kind, specs[i].key, &s[i], err));
        if (s[i].n == 0)
            continue;
        n_points += s[i].n;
        pnb__axis_cover(&chart.x, s[i].x, s[i].n);
        pnb__axis_cover(&chart.y, s[i].y, s[i].n);
        chart.legend[chart.n_legend++] =
            (pnb__legend_entry){specs[i].text, (int)(i % PNB__N_COLOURS), PNB__MARK_LINE};
    }
    if (n_points == 0)
        goto done;
    chart.x.label = "step";
    chart.x.exact = true;
    pnb__chart_begin(&chart, out);
    for (size_t i = 0; i < n_specs && i < PNB__MAX_LEGEND; i++) {
        const pnb__curve curve = {.colour = (int)(i % PNB__N_COLOURS),
                                  .x = s[i].x,
                                  .y = s[i].y,
                                  .n = s[i].n,
                                  .radius = s[i].n < 40 ? 2.0 : 0.0};
        pnb__chart_curve(&chart, &curve);
    }
    pnb__chart_end(&chart);
done:
    for (size_t i = 0; i < PNB__MAX_LEGEND; i++)
        series_free(&s[i]);
    return status;
}

/* The last value of a field, NaN where there is none. */
static pnb_status last_value(const json_t *records, const char *kind, const char *key, double *out,
                             pnb_error *err)
{
    series s = {0};
    pnb_status status = collect(records, kind, key, &s, err);
    *out = status == PNB_OK && s.n > 0 ? s.y[s.n - 1] : (double)NAN;
    series_free(&s);
    return status;
}

pnb_status pnb__report_training_headline(pnb__buf *out, const char *run_dir, pnb_error *err)
{
    json_t *records = NULL;
    double loss, val_loss, t2i;
    char answer[300];
    pnb_status status = read_results(run_dir, &records, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(last_value(records, "train", "loss", &loss, err));
    PNB_TRY(last_value(records, "eval", "val_loss", &val_loss, err));
    PNB_TRY(last_value(records, "eval", "t2i_r1", &t2i, err));
    int n = isnan(loss) ? snprintf(answer, sizeof answer, "No step was recorded.")
                        : snprintf(answer, sizeof answer, "The loss ended at %.4g", loss);
    if (!isnan(loss) && !isnan(val_loss) && n > 0)
        n += snprintf(answer + n, sizeof answer - (size_t)n, ", %.4g on the validation set",
                      val_loss);
    if (!isnan(loss) && !isnan(t2i) && n > 0)
        snprintf(answer + n, sizeof answer - (size_t)n,
                 ", where %.1f%% of the captions find their picture first", 100 * t2i);
    pnb__html_headline(out, "Asked: what did the training reach?", answer);
done:
    json_decref(records);
    return status;
}

pnb_status pnb__report_training(pnb__buf *out, const char *run_dir, pnb_error *err)
{
    static const line_spec total[] = {{"train", "loss", "training"},
                                      {"eval", "val_loss", "validation"}};
    static const line_spec recall[] = {{"eval", "i2t_r1", "image to text"},
                                       {"eval", "t2i_r1", "text to image"}};
    static const line_spec spread[] = {{"train", "image_uncertainty", "pictures"},
                                       {"train", "text_uncertainty", "captions"}};
    static const line_spec rate[] = {{"train", "lr", "learning rate"}};
    line_spec terms[PNB_N_LOSS_TERMS];
    json_t *records = NULL;
    pnb_status status = read_results(run_dir, &records, err);
    if (status != PNB_OK)
        return status;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        terms[i] =
            (line_spec){"train", pnb_loss_name((pnb_loss_term)i), pnb_loss_name((pnb_loss_term)i)};
    pnb__html_section(out, "Training",
                      "The total is the weighted sum of the terms beside it. Validation leaves the "
                      "masked terms out and uses whole pictures without augmentation.");
    pnb__buf_puts(out, "<div class=\"row\">\n");
    const pnb__chart base = {.width = PNB__CHART_WIDTH, .height = PNB__CHART_HEIGHT};
    pnb__chart chart = base;
    chart.title = "Total loss";
    chart.y.label = "loss (nats per pair)";
    PNB_TRY(line_chart(out, records, chart, total, PNB_COUNT(total), err));
    chart = base;
    chart.title = "Weighted terms of the loss";
    chart.y = (pnb__axis){.log = true, .label = "weighted loss (nats)"};
    PNB_TRY(line_chart(out, records, chart, terms, PNB_COUNT(terms), err));
    chart = base;
    chart.title = "Recall at 1 on the validation set";
    chart.y.label = "share of queries";
    PNB_TRY(line_chart(out, records, chart, recall, PNB_COUNT(recall), err));
    chart = base;
    chart.title = "Mean uncertainty";
    chart.y = (pnb__axis){.log = true, .label = "trace of the covariance"};
    PNB_TRY(line_chart(out, records, chart, spread, PNB_COUNT(spread), err));
    chart = base;
    chart.title = "Learning rate";
    chart.y.label = "rate";
    PNB_TRY(line_chart(out, records, chart, rate, PNB_COUNT(rate), err));
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
done:
    json_decref(records);
    return status;
}
