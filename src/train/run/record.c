/* What a run writes down: out.log in open_clip's words, results.jsonl for machines.
 *
 * The "Train Epoch" and "Eval Epoch" lines keep open_clip's format because people grep them. A line
 * of results.jsonl is one object with "kind" train or eval; loss terms are weighted, uncertainties
 * are mean traces, steps count from 1. Every line is flushed, so a killed run loses none. With
 * --report-to tensorboard the same numbers go to an event file (tfevents.c). */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "io/json/json.h"
#include "train/run/tfevents.h"
#include "train/trainer.h"

/* Ends a line; a full disk shows here. A run that is not kept has no file. */
static pnb_status end_line(FILE *file, pnb__buf *line, const char *what, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf_putc(line, '\n');
    if (file == NULL) {
        pnb__buf_reset(line);
        return PNB_OK;
    }
    if (line->failed)
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing %s", what);
    else if (fwrite(line->data, 1, line->size, file) != line->size || fflush(file) != 0)
        status = pnb__fail_errno(err, "writing", what);
    pnb__buf_reset(line);
    return status;
}

/* open_clip's logger: "%(asctime)s | %(levelname)s | %(message)s". */
static void put_time(pnb__buf *line)
{
    char text[40] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d,%H:%M:%S", &local);
    pnb__buf_printf(line, "%s | INFO | ", text);
}

/* For people: on the log too, with the words that are in the file. */
pnb_status pnb__record_info(pnb__trainer *t, pnb_error *err, const char *fmt, ...)
{
    char text[1024]; /* longer ones are cut: a line of a log */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pnb__log(t->ctx, PNB_LOG_INFO, "%s", text);
    pnb__buf line = {0};
    put_time(&line);
    pnb__buf_puts(&line, text);
    return end_line(t->run.log, &line, "out.log", err);
}

/* "Ppcl: 1.2345 (1.3456)": last value and mean of the epoch. */
static void put_term(pnb__buf *line, const char *name, double value, double sum, int64_t n)
{
    pnb__buf_printf(line, " %c%s: %#.5g (%#.5g)", toupper((unsigned char)name[0]), name + 1, value,
                    sum / (double)n);
}

/* Over the steps since the last line, those of all processes together. */
static double samples_per_s(const pnb__trainer *t)
{
    return t->sum_batch_s > 0
               ? pnb__trainer_samples_per_step(t) * (double)t->n_sums / t->sum_batch_s
               : 0;
}

/* "Train Epoch: 0 [1024/9600 (11%)] Data (t): ..." as open_clip's train_one_epoch writes it; "(t)"
 * are means since the last line, a term's brackets the mean of the epoch. */
static pnb_status write_train_log(pnb__trainer *t, const pnb__step_values *v, pnb_error *err)
{
    /* the step is counted already: the last one of an epoch is steps_per_epoch, not 0 */
    int64_t in_epoch = (t->state.step - 1) % t->steps_per_epoch + 1;
    double all = pnb__trainer_samples_per_step(t) * (double)t->steps_per_epoch;
    double done = pnb__trainer_samples_per_step(t) * (double)in_epoch, rate = samples_per_s(t);
    char total[32];
    int digits = snprintf(total, sizeof total, "%.0f", all);
    pnb__buf line = {0};
    put_time(&line);
    pnb__buf_printf(&line, "Train Epoch: %lld [%*.0f/%s (%.0f%%)] ",
                    (long long)((t->state.step - 1) / t->steps_per_epoch), digits, done, total,
                    100 * done / all);
    pnb__buf_printf(&line, "Data (t): %.3f Batch (t): %.3f, %#g/s, %#g/s/gpu LR: %5f",
                    t->sum_data_s / (double)t->n_sums, t->sum_batch_s / (double)t->n_sums, rate,
                    rate, v->lr);
    for (size_t i = 0; i < v->state.n; i++)
        if (v->state.items[i].title != NULL)
            pnb__buf_printf(&line, " %s: %.3f", v->state.items[i].title, v->state.items[i].value);
    for (size_t i = 0; i < v->terms.n; i++)
        put_term(&line, v->terms.items[i].name, v->terms.items[i].value, t->epoch_sum[i],
                 t->n_epoch_sum);
    put_term(&line, "loss", v->total, t->epoch_total, t->n_epoch_sum);
    return end_line(t->run.log, &line, "out.log", err);
}

/* Named numbers of one line of results.jsonl and of one event. */
enum { MAX_VALUES = 3 * PNB__MAX_FIGURES + 8, TAG_BYTES = 64 };
typedef struct values {
    pnb__scalar items[MAX_VALUES];
    size_t n;
} values;

/* The lists of an objective are bounded (PNB__MAX_FIGURES), so a line is. */
static void put(values *v, const char *key, double value)
{
    assert(v->n < MAX_VALUES);
    v->items[v->n++] = (pnb__scalar){key, value};
}

/* In the objective's order and under its names. */
static void put_figures(values *v, const pnb__figures *f)
{
    for (size_t i = 0; i < f->n; i++)
        put(v, f->items[i].name, f->items[i].value);
}

/* The same values under open_clip's tags, "train/loss" or "val/loss". What is not a number, such as
 * a correlation that does not exist, has no point in a curve. */
static pnb_status write_event(pnb__trainer *t, const char *prefix, const values *v, pnb_error *err)
{
    char tags[MAX_VALUES][TAG_BYTES];
    pnb__scalar scalars[MAX_VALUES];
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (!isfinite(v->items[i].value))
            continue;
        snprintf(tags[n], TAG_BYTES, "%s/%s", prefix, v->items[i].tag);
        scalars[n] = (pnb__scalar){tags[n], v->items[i].value};
        n++;
    }
    return pnb__tfevents_scalars(t->run.events, t->state.step, scalars, n, err);
}

/* Every line can be read alone: kind, step, epoch and samples stand in each. */
static pnb_status write_values(pnb__trainer *t, const char *kind, int64_t epoch, const values *v,
                               pnb_error *err)
{
    pnb__buf line = {0};
    pnb__buf_printf(&line, "{\"kind\": \"%s\", \"step\": %lld, \"epoch\": %lld, \"samples\": %.0f",
                    kind, (long long)t->state.step, (long long)epoch,
                    pnb__trainer_samples_per_step(t) * (double)t->state.step);
    for (size_t i = 0; i < v->n; i++) {
        pnb__buf_printf(&line, ", \"%s\": ", v->items[i].tag);
        pnb__json_append_double(&line, v->items[i].value);
    }
    pnb__buf_putc(&line, '}');
    pnb_status status = end_line(t->run.results, &line, "results.jsonl", err);
    /* open_clip's TensorBoard tags say "val" where its log says "Eval" */
    if (status == PNB_OK && t->run.events != NULL)
        status = write_event(t, strcmp(kind, "eval") == 0 ? "val" : kind, v, err);
    return status;
}

/* In the order in which a reader asks: loss, its terms, rate, parameters, speed, batch. */
static pnb_status write_train_result(pnb__trainer *t, const pnb__step_values *s, pnb_error *err)
{
    values v = {.n = 0};
    put(&v, "loss", s->total);
    put_figures(&v, &s->terms);
    put(&v, "lr", s->lr);
    put_figures(&v, &s->state);
    put(&v, "grad_norm", s->grad_norm);
    put(&v, "data_s", t->sum_data_s / (double)t->n_sums);
    put(&v, "batch_s", t->sum_batch_s / (double)t->n_sums);
    put(&v, "samples_per_s", samples_per_s(t));
    put_figures(&v, &s->batch);
    return write_values(t, "train", (t->state.step - 1) / t->steps_per_epoch, &v, err);
}

/* Means of the epoch begin anew with its first step, those of a line with the line before. */
static void add_step(pnb__trainer *t, const pnb__step_values *v)
{
    if ((t->state.step - 1) % t->steps_per_epoch == 0) {
        memset(t->epoch_sum, 0, sizeof t->epoch_sum);
        t->epoch_total = 0;
        t->n_epoch_sum = 0;
    }
    for (size_t i = 0; i < v->terms.n; i++)
        t->epoch_sum[i] += v->terms.items[i].value;
    t->epoch_total += v->total;
    t->n_epoch_sum++;
    t->sum_data_s += v->data_s;
    t->sum_batch_s += v->batch_s;
    t->n_sums++;
}

/* The first and the last step have a line whatever the interval: where it began, where it ended. */
pnb_status pnb__record_step(pnb__trainer *t, const pnb__step_values *v, pnb_error *err)
{
    int64_t every = PNB_MAX(t->opts->log_every_n_steps, (int64_t)1);
    add_step(t, v);
    if (t->state.step % every != 0 && t->state.step != t->n_steps && t->state.step != 1)
        return PNB_OK;
    pnb_status status = write_train_log(t, v, err);
    if (status == PNB_OK)
        status = write_train_result(t, v, err);
    t->sum_data_s = t->sum_batch_s = 0;
    t->n_sums = 0;
    return status;
}

/* Epochs finished: a validation within epoch 3 (from 0) says 3. */
static int64_t epoch_of(const pnb__trainer *t)
{
    return t->state.step / t->steps_per_epoch;
}

/* open_clip's evaluate(): names and four digits, with tabs between. */
static pnb_status write_eval_log(pnb__trainer *t, const pnb__eval_values *e, pnb_error *err)
{
    pnb__buf line = {0};
    long long epoch = (long long)epoch_of(t);
    put_time(&line);
    pnb__buf_printf(&line, "Eval Epoch: %lld ", epoch);
    for (size_t i = 0; i < e->figures.n; i++)
        if (e->figures.items[i].title != NULL)
            pnb__buf_printf(&line, "%s: %.4f\t", e->figures.items[i].title,
                            e->figures.items[i].value);
    if (e->has_losses)
        pnb__buf_printf(&line, "val_loss: %.4f\t", e->total);
    pnb__buf_printf(&line, "epoch: %lld.0000", epoch);
    if (e->has_losses)
        pnb__buf_printf(&line, "\tnum_samples: %zu.0000", e->n);
    return end_line(t->run.log, &line, "out.log", err);
}

/* Under the step of the weights that were validated. */
pnb_status pnb__record_eval(pnb__trainer *t, const pnb__eval_values *e, pnb_error *err)
{
    pnb_status status = write_eval_log(t, e, err);
    if (status != PNB_OK)
        return status;
    values v = {.n = 0};
    if (e->has_losses) {
        put(&v, "val_samples", (double)e->n);
        put(&v, "val_loss", e->total);
    }
    put_figures(&v, &e->terms);
    put_figures(&v, &e->figures);
    return write_values(t, "eval", epoch_of(t), &v, err);
}
