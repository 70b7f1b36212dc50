/* Measurements beside validation (pnb_train_evaluator), and which figure the best checkpoint goes
 * by.
 * What is measured knows rooms that training does not: it is handed in. */
#include <math.h>
#include <string.h>

#include "train/contrastive/contrastive.h"

/* Figures of validation that a checkpoint may be the best by; the others are evaluators'. */
static const char *const of_validation[] = {"val_loss",     "i2t_r1",    "t2i_r1",   "batch_i2t_r1",
                                            "batch_t2i_r1", "i2t_unc_r", "t2i_unc_r"};

/* Names of results.jsonl. */
static bool is_of_validation(const char *name)
{
    for (size_t i = 0; i < PNB_COUNT(of_validation); i++)
        if (strcmp(name, of_validation[i]) == 0)
            return true;
    return false;
}

/* Whose figure it is; NULL: nobody's. */
static const pnb_train_evaluator *evaluator_of(const pnb_train_opts *o, const char *figure)
{
    for (size_t i = 0; i < o->n_evaluators; i++)
        if (pnb__starts_with(figure, o->evaluators[i].prefix))
            return &o->evaluators[i];
    return NULL;
}

/* Before hours of training: a figure that nobody measures would leave no best checkpoint. */
pnb_status pnb__evaluators_check(const pnb_train_opts *o, pnb_error *err)
{
    const char *best = o->best_by != NULL ? o->best_by : "val_loss";
    if (o->n_evaluators > PNB_TRAIN_MAX_EVALUATORS)
        return pnb__fail(err, PNB_ARG, "%zu evaluators, at most %d are possible", o->n_evaluators,
                         (int)PNB_TRAIN_MAX_EVALUATORS);
    for (size_t i = 0; i < o->n_evaluators; i++)
        if (o->evaluators[i].frequency < 0 || o->evaluators[i].run == NULL ||
            o->evaluators[i].prefix == NULL)
            return pnb__fail(err, PNB_ARG,
                             "evaluator %zu: a function, a prefix and a frequency of 0 or more are "
                             "wanted",
                             i);
    if (o->best_by == NULL)
        return PNB_OK;
    if (is_of_validation(best) && o->val_data == NULL)
        return pnb__fail(err, PNB_ARG, "--best-by %s is a figure of validation: give --val-data",
                         best);
    if (!is_of_validation(best) && evaluator_of(o, best) == NULL)
        return pnb__fail(err, PNB_ARG,
                         "--best-by %s: this run measures no such figure; without --val-data, "
                         "--retrieval-frequency and --imagenet-val there are none of validation, "
                         "retrieval and zero-shot classification",
                         best);
    return PNB_OK;
}

/* By epochs, and always at the end: the last weights are what is used. */
static bool is_due(const pnb__contrastive *c, size_t k, int64_t step, bool is_last)
{
    int64_t every = c->opts->evaluators[k].frequency * c->steps_per_epoch;
    return is_last || (every > 0 && step % every == 0);
}

/* One of them is enough for a line of results. */
bool pnb__evaluators_are_due(const void *self, int64_t step, bool is_last)
{
    const pnb__contrastive *c = self;
    for (size_t k = 0; k < c->opts->n_evaluators; k++)
        if (is_due(c, k, step, is_last))
            return true;
    return false;
}

/* The figures of evaluator k, which replace those of its last run in the result. */
static pnb_status run_one(pnb__contrastive *c, size_t k, int64_t step, pnb__eval_values *out,
                          pnb_error *err)
{
    const pnb_train_evaluator *e = &c->opts->evaluators[k];
    const pnb_train_snapshot now = {.model = c->model,
                                    .tokenizer = c->tokenizer,
                                    .preprocess = &c->preprocess,
                                    .step = step,
                                    .epoch = step / c->steps_per_epoch};
    pnb_train_result *r = c->result;
    pnb_train_figure figures[PNB_TRAIN_MAX_FIGURES];
    size_t n = 0;
    pnb_status status = e->run(e->user, &now, figures, &n, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < r->n_figures && strcmp(r->figures[at].name, figures[i].name) != 0)
            at++;
        r->figures[at] = figures[i];
        r->n_figures = PNB_MAX(r->n_figures, at + 1);
        pnb__figures_add(&out->figures, figures[i].name, figures[i].title, figures[i].value);
    }
    return PNB_OK;
}

/* What lowers: losses as they are, correlations too, shares of what was right turned round. */
static pnb_status find_best(const pnb__contrastive *c, pnb__eval_values *out, bool was_measured,
                            pnb_error *err)
{
    const char *name = c->opts->best_by;
    const pnb__figures *f = &out->figures;
    if (name == NULL || strcmp(name, "val_loss") == 0) {
        out->best = out->total;
        return PNB_OK;
    }
    for (size_t i = 0; i < f->n; i++) {
        double value = f->items[i].value;
        if (strcmp(f->items[i].name, name) == 0) {
            out->best = pnb__ends_with(name, "_unc_r") ? value : -value;
            return PNB_OK;
        }
    }
    return was_measured ? pnb__fail(err, PNB_ARG, "--best-by %s: no figure is called so", name)
                        : PNB_OK;
}

/* The towers are planned once and see the trained weights in place; only what was derived from the
 * old ones is dropped. */
/* In the order in which they were given, so that a line of results has them so. */
pnb_status pnb__evaluators_run(pnb__contrastive *c, int64_t step, pnb__eval_values *out,
                               pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    const pnb_train_evaluator *of_best = o->best_by != NULL ? evaluator_of(o, o->best_by) : NULL;
    bool was_measured = false;
    pnb_status status = PNB_OK;
    if (o->n_evaluators > 0)
        status = pnb__model_weights_changed(c->model, err);
    for (size_t k = 0; k < o->n_evaluators && status == PNB_OK; k++) {
        if (!is_due(c, k, step, out->is_last))
            continue;
        status = run_one(c, k, step, out, err);
        was_measured = was_measured || &o->evaluators[k] == of_best;
    }
    return status == PNB_OK ? find_best(c, out, was_measured, err) : status;
}
