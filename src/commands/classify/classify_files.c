/* The files a classification leaves: predictions (JSON lines), confusion matrix and figures of the
 * classes (csv or JSON), classifier and prompts as embedding sets, and the fitted scaling; tables
 * of the result are classify_table.c's, weights class_weights.c's. Every file appears whole or not
 * at all. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "io/json/json.h"
#include "io/tables/csv.h"

/* ---- predictions ---- */

static void put_best(const pnb__classify *run, const pnb__classified *c, size_t i, pnb__buf *b)
{
    pnb__buf_puts(b, ",\"best\":[");
    for (size_t j = 0; j < c->p.k; j++) {
        size_t at = i * c->p.k + j;
        pnb__buf_puts(b, j > 0 ? "," : "");
        pnb__json_put(b, "{\"class\":%s,\"index\":%d,\"score\":%f,\"probability\":%f",
                      run->classes.items[c->p.top[at]], (int)c->p.top[at], c->p.score[at],
                      c->p.probability[at]);
        if (run->scaling.has_platt)
            pnb__json_put(b, ",\"p_class\":%f",
                          pnb_platt_apply(&run->scaling.platt, c->p.score[at]));
        pnb__buf_putc(b, '}');
    }
    pnb__buf_putc(b, ']');
}

void pnb__classify_prediction(const pnb__classify *run, const pnb__classified *c, size_t i,
                              pnb__buf *b)
{
    int32_t label = c->source.label != NULL ? c->source.label[i] : -1;
    const pnb_embeddings *set = c->source.set;
    bool is_negative = c == &run->negatives;
    pnb__json_put(b, "{\"id\":%s", pnb__row_name(set, i));
    if (set->paths != NULL && set->paths[i] != NULL)
        pnb__json_put(b, ",\"path\":%s", set->paths[i]);
    put_best(run, c, i, b);
    pnb__json_put(b, ",\"uncertainty\":%f", c->u[i]);
    if (c->ood != NULL)
        pnb__json_put(b, ",\"ood_score\":%f,\"none\":%i", c->ood[i],
                      c->ood[i] > run->none_threshold);
    if (is_negative)
        pnb__buf_puts(b, ",\"negative\":true");
    if (label >= 0)
        pnb__json_put(b, ",\"label\":%s,\"label_index\":%d,\"correct\":%i",
                      run->classes.items[label], (int)label, c->p.top[i * c->p.k] == label);
    pnb__buf_putc(b, '}');
}

static pnb_status write_predictions(const pnb__classify *run, const char *path, pnb_error *err)
{
    const pnb__classified *const both[] = {&run->images, &run->negatives};
    pnb__out_file out;
    pnb__buf line = {0};
    pnb_status status = pnb__out_open(&out, path, err);
    if (status != PNB_OK)
        return status;
    for (size_t s = 0; s < PNB_COUNT(both) && status == PNB_OK; s++)
        for (size_t i = 0; i < both[s]->p.n && status == PNB_OK; i++) {
            line.size = 0;
            pnb__classify_prediction(run, both[s], i, &line);
            pnb__buf_putc(&line, '\n');
            if (line.failed)
                status = pnb__fail_nomem(err, line.size);
            else
                fwrite(line.data, 1, line.size, out.file);
        }
    pnb__buf_reset(&line);
    if (status == PNB_OK)
        return pnb__out_commit(&out, err);
    pnb__out_abort(&out);
    return status;
}

/* ---- tables ---- */

static void put_names(const pnb__classify *run, pnb__buf *b)
{
    pnb__buf_putc(b, '[');
    for (size_t c = 0; c < run->classes.n; c++) {
        if (c > 0)
            pnb__buf_putc(b, ',');
        pnb__json_append_string(b, run->classes.items[c]);
    }
    pnb__buf_putc(b, ']');
}

static pnb_status write_confusion(const pnb__classify *run, const char *path, pnb_error *err)
{
    const pnb_classification *f = &run->figures;
    bool is_json = pnb__ends_with(path, ".json");
    pnb__buf b = {0};
    if (f->confusion == NULL)
        return pnb__fail(err, PNB_LIMIT,
                         "%s: the confusion matrix of %zu classes is not kept "
                         "(%d at most)",
                         path, f->n_classes, PNB_MAX_CONFUSION);
    if (is_json) {
        pnb__buf_puts(&b, "{\"classes\":");
        put_names(run, &b);
        pnb__buf_puts(&b, ",\n\"rows\":\"label\",\"columns\":\"prediction\",\n\"counts\":[\n");
    } else {
        pnb__buf_puts(&b, "label");
        for (size_t c = 0; c < f->n_classes; c++) {
            pnb__buf_putc(&b, ',');
            pnb__csv_put_field(&b, run->classes.items[c]);
        }
        pnb__buf_putc(&b, '\n');
    }
    for (size_t i = 0; i < f->n_classes; i++) {
        if (!is_json)
            pnb__csv_put_field(&b, run->classes.items[i]);
        for (size_t c = 0; c < f->n_classes; c++)
            pnb__buf_printf(&b, "%s%zu", !is_json || c > 0 ? "," : "[",
                            f->confusion[i * f->n_classes + c]);
        pnb__buf_puts(&b, !is_json ? "\n" : i + 1 < f->n_classes ? "],\n" : "]\n]}\n");
    }
    return pnb__buf_write(&b, path, err);
}

static void put_number(pnb__buf *b, double x)
{
    pnb__buf_putc(b, ',');
    if (isfinite(x))
        pnb__json_append_double(b, x);
}

/* Trace of a class's Gaussian, 1/kappa on the sphere. */
static double class_trace(const pnb__classify *run, size_t c)
{
    double sum = 0.0;
    if (run->clf->kappa != NULL)
        return 1.0 / (double)run->clf->kappa[c];
    for (size_t d = 0; run->clf->log_var != NULL && d < run->clf->dim; d++)
        sum += exp((double)run->clf->log_var[c * run->clf->dim + d]);
    return sum;
}

static pnb_status write_classes(const pnb__classify *run, const char *path, pnb_error *err)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, "index,class,pictures,predicted,correct,recall,precision,p_label,"
                      "uncertainty,f1\n");
    for (size_t c = 0; c < run->figures.n_classes; c++) {
        const pnb_class_figures *f = &run->figures.classes[c];
        pnb__buf_printf(&b, "%zu,", c);
        pnb__csv_put_field(&b, run->classes.items[c]);
        pnb__buf_printf(&b, ",%zu,%zu,%zu", f->n, f->n_predicted, f->n_correct);
        put_number(&b, f->recall);
        put_number(&b, f->precision);
        put_number(&b, f->p_label);
        put_number(&b, class_trace(run, c));
        put_number(&b, run->f1[c]);
        pnb__buf_putc(&b, '\n');
    }
    return pnb__buf_write(&b, path, err);
}

/* ---- all of them ---- */

static pnb_status write_prompt_files(const pnb__classify *run, pnb_error *err)
{
    const pnb__classify_opts *o = run->opts;
    pnb_status status = PNB_OK;
    if (o->save_prompts == NULL && o->weights == NULL && o->weights_html == NULL)
        return PNB_OK;
    if (run->prompts == NULL)
        return pnb__fail(err, PNB_ARG, "a loaded classifier has no prompts to save or weigh");
    if (o->save_prompts != NULL)
        PNB_TRY(pnb_embeddings_save(run->prompts, o->save_prompts, err));
    if (o->weights != NULL)
        PNB_TRY(pnb__classify_save_weights(run, o->weights, err));
    if (o->weights_html != NULL)
        status = pnb__classify_draw(run, o->weights_html, err);
done:
    return status;
}

/* Without labels the other files are written all the same: embedding may have taken hours. */
static pnb_status write_counts(const pnb__classify *run, pnb_error *err)
{
    const pnb__classify_opts *o = run->opts;
    pnb_status status = PNB_OK;
    if (o->confusion == NULL && o->per_class == NULL)
        return PNB_OK;
    if (!run->has_figures)
        return pnb__fail(err, PNB_ARG,
                         "no picture has a label: there is nothing to count by class for %s; give "
                         "--labels",
                         o->confusion != NULL ? "--confusion" : "--per-class");
    if (o->confusion != NULL)
        PNB_TRY(write_confusion(run, o->confusion, err));
    if (o->per_class != NULL)
        status = write_classes(run, o->per_class, err);
done:
    return status;
}

pnb_status pnb__classify_write(pnb__app *app, const pnb__classify *run)
{
    const pnb__classify_opts *o = run->opts;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(write_prompt_files(run, err));
    if (o->save_clf != NULL)
        PNB_TRY(pnb_embeddings_save(run->clf, o->save_clf, err));
    if (o->predictions != NULL)
        PNB_TRY(write_predictions(run, o->predictions, err));
    if (o->save_scaling != NULL)
        PNB_TRY(pnb_scaling_save(&run->scaling, o->save_scaling, err));
    if (o->csv != NULL)
        PNB_TRY(pnb__classify_save_csv(run, o->csv, err));
    if (o->markdown != NULL)
        PNB_TRY(pnb__classify_save_markdown(run, o->markdown, err));
    status = write_counts(run, err);
done:
    return status;
}
