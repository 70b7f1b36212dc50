/* pnb_train: the loop over steps, and what happens between them.
 *
 * A step's learning rate is set before its update, as open_clip does; after it the logit scale is
 * clamped to [0, ln 100]. Everything random is drawn from (seed, step) or belongs to the loader's
 * position, so the state of a run is weights, optimiser, step and position: what a checkpoint has.
 */
#include <math.h>
#include <string.h>

#include "train/run_options.h"
#include "train/trainer.h"

#define MAX_LOGIT_SCALE 4.605170185988092 /* ln 100 */

static bool is_epoch_end(const pnb__trainer *t)
{
    return t->state.step % t->steps_per_epoch == 0;
}

static bool is_last(const pnb__trainer *t)
{
    return t->state.step >= t->n_steps;
}

static bool is_stopped(const pnb__trainer *t)
{
    return t->opts->stop != NULL && *t->opts->stop != 0;
}

static void report(const pnb__trainer *t, const char *phase, double loss, double lr)
{
    if (t->opts->progress == NULL)
        return;
    double elapsed = pnb__now_s() - t->started_s;
    double done = (double)(t->state.step - t->first_step);
    double step_s = done > 0 ? elapsed / done : 0;
    double pairs = (double)t->opts->batch_size * t->opts->accum_freq;
    pnb_train_progress p = {.step = t->state.step,
                            .n_steps = t->n_steps,
                            .epoch = t->state.step / t->steps_per_epoch,
                            .n_epochs = (t->n_steps + t->steps_per_epoch - 1) / t->steps_per_epoch,
                            .loss = loss,
                            .lr = lr,
                            .samples_per_s = step_s > 0 ? pairs / step_s : 0,
                            .left_s = step_s * (double)(t->n_steps - t->state.step),
                            .phase = phase};
    t->opts->progress(t->opts->progress_user, &p);
}

static void clamp_scale(pnb__trainer *t)
{
    const pnb__kernels *k = &t->optim->kernels;
    pnb__param *p = t->logit_scale;
    if (p == NULL || !p->trainable)
        return;
    if (k->real == PNB__F32) {
        float v;
        k->mem_read(&v, p->data, sizeof v);
        v = PNB_MIN(PNB_MAX(v, 0.0f), (float)MAX_LOGIT_SCALE);
        k->mem_write(p->data, &v, sizeof v);
    } else {
        double v;
        k->mem_read(&v, p->data, sizeof v);
        v = PNB_MIN(PNB_MAX(v, 0.0), MAX_LOGIT_SCALE);
        k->mem_write(p->data, &v, sizeof v);
    }
}

static pnb_status train_step(pnb__trainer *t, pnb__step_values *v, pnb_error *err)
{
    double start = pnb__now_s();
    pnb_status status = pnb__step_run(t->step_graphs, t, v, err);
    if (status != PNB_OK)
        return status;
    v->lr = pnb_schedule_lr(&t->schedule, t->state.step);
    pnb__optim_step(t->optim, v->lr, pnb__optim_clip_factor(t->optim, v->grad_norm));
    clamp_scale(t);
    v->logit_scale = pnb__trainer_scale(t);
    v->logit_bias = pnb__trainer_bias(t);
    v->batch_s = pnb__now_s() - start;
    t->state.step++;
    t->state.position = pnb_loader_get_position(t->loader);
    return PNB_OK;
}

static bool is_eval_due(const pnb__trainer *t)
{
    const pnb_train_opts *o = t->opts;
    if (t->val == NULL || t->last_eval_step == t->state.step)
        return false;
    if (is_last(t))
        return true;
    if (o->val_every_n_steps > 0)
        return t->state.step % o->val_every_n_steps == 0;
    return o->val_frequency > 0 && is_epoch_end(t) &&
           t->state.step / t->steps_per_epoch % o->val_frequency == 0;
}

/* ProLIP's --save-best-unc: the most negative correlation of uncertainty and success so far. */
static pnb_status save_if_best(pnb__trainer *t, pnb_error *err)
{
    double r = t->result->eval.i2t_unc_r;
    bool is_best = isnan(t->state.best_unc_r) || r < t->state.best_unc_r;
    if (!t->opts->save_best_unc || isnan(r) || !is_best)
        return PNB_OK;
    t->state.best_unc_r = r;
    pnb__model_weights_changed(t->model);
    pnb_status status = pnb__checkpoint_write_best(t, err);
    return status == PNB_OK
               ? pnb__record_info(t, err, "Saved epoch_best_unc: correlation %.4f at step %lld", r,
                                  (long long)t->state.step)
               : status;
}

static pnb_status evaluate_if_due(pnb__trainer *t, pnb_error *err)
{
    if (!is_eval_due(t))
        return PNB_OK;
    report(t, "validate", t->result->total, 0);
    pnb_status status = pnb__evaluate(t, &t->result->eval, err);
    if (status != PNB_OK)
        return status;
    t->last_eval_step = t->state.step;
    status = pnb__record_eval(t, &t->result->eval, err);
    return status == PNB_OK ? save_if_best(t, err) : status;
}

static bool is_epoch_save_due(const pnb__trainer *t)
{
    const pnb_train_opts *o = t->opts;
    return o->save_frequency > 0 && is_epoch_end(t) &&
           t->state.step / t->steps_per_epoch % o->save_frequency == 0;
}

/* The checkpoint about to be written becomes the best one if its step was validated with the lowest
 * loss so far. */
static void consider_best(pnb__trainer *t, const char *name)
{
    double loss = t->result->eval.total;
    bool is_measured = t->last_eval_step == t->state.step && t->result->eval.done && isfinite(loss);
    if (!is_measured || loss >= t->state.best_loss)
        return;
    t->state.best_loss = loss;
    snprintf(t->state.best_name, sizeof t->state.best_name, "%s", name);
}

/* Checkpoints that stay are named by their epoch, those that the next one replaces by their step.
 */
static pnb_status save(pnb__trainer *t, pnb_error *err)
{
    char name[64];
    bool stays = is_epoch_save_due(t) || is_last(t);
    if (is_epoch_end(t) && t->state.step > 0 && stays)
        snprintf(name, sizeof name, "epoch_%lld", (long long)(t->state.step / t->steps_per_epoch));
    else
        snprintf(name, sizeof name, "step_%lld", (long long)t->state.step);
    report(t, "save", t->result->total, 0);
    pnb__model_weights_changed(t->model);
    consider_best(t, name);
    pnb_status status = pnb__checkpoint_write(t, name, err);
    return status == PNB_OK ? pnb__record_info(t, err, "Saved checkpoint %s", name) : status;
}

static bool is_save_due(const pnb__trainer *t)
{
    const pnb_train_opts *o = t->opts;
    if (is_last(t))
        return true;
    if (o->save_every_n_steps > 0 && t->state.step % o->save_every_n_steps == 0)
        return true;
    return is_epoch_save_due(t) || (o->save_most_recent && is_epoch_end(t));
}

static void fill_result(const pnb__trainer *t, const pnb__step_values *v)
{
    pnb_train_result *r = t->result;
    double seconds = pnb__now_s() - t->started_s;
    double pairs = (double)t->opts->batch_size * t->opts->accum_freq;
    r->step = t->state.step;
    r->epoch = t->state.step / t->steps_per_epoch;
    memcpy(r->loss, v->term, sizeof r->loss);
    r->total = v->total;
    r->seconds = seconds;
    r->samples_per_s = pairs * (double)(t->state.step - t->first_step) / PNB_MAX(seconds, 1e-9);
    r->n_skipped = pnb_loader_n_skipped(t->loader);
}

/* Says what the data did not give, once, at the end. */
static pnb_status record_losses_of_data(pnb__trainer *t, pnb_error *err)
{
    enum { MAX_NAMED = 20 };
    size_t n = pnb_loader_n_skipped(t->loader);
    pnb_status status = PNB_OK;
    if (t->result->n_truncated > 0)
        status = pnb__record_info(t, err, "%zu captions were cut to %zu tokens",
                                  t->result->n_truncated, t->info->text.context_length);
    if (n > 0 && status == PNB_OK)
        status = pnb__record_info(t, err, "%zu samples could not be read and were replaced:", n);
    for (size_t i = 0; i < n && i < MAX_NAMED && status == PNB_OK; i++) {
        const char *why = "";
        int64_t sample = pnb_loader_skipped(t->loader, i, &why);
        status = pnb__record_info(t, err, "  sample %lld: %s", (long long)sample, why);
    }
    return status;
}

static pnb_status run_steps(pnb__trainer *t, pnb_error *err)
{
    pnb__step_values v = {0};
    while (!is_last(t) && !is_stopped(t)) {
        pnb_status status = train_step(t, &v, err);
        if (status != PNB_OK)
            return status;
        fill_result(t, &v);
        status = pnb__record_step(t, &v, err);
        if (status == PNB_OK)
            report(t, "train", v.total, v.lr);
        if (status == PNB_OK)
            status = evaluate_if_due(t, err);
        if (status == PNB_OK && is_save_due(t))
            status = save(t, err);
        if (status != PNB_OK)
            return status;
    }
    pnb_status status = record_losses_of_data(t, err);
    if (is_last(t) || status != PNB_OK)
        return status;
    status = save(t, err);
    if (status != PNB_OK)
        return status;
    return pnb__fail(err, PNB_INTERRUPTED,
                     "stopped after step %lld of %lld; continue with --resume latest",
                     (long long)t->state.step, (long long)t->n_steps);
}

static pnb_status start_logs(pnb__trainer *t, bool resumed, pnb_error *err)
{
    pnb_status status = pnb__rundir_open_logs(&t->run, resumed ? t->state.step : -1, err);
    if (status != PNB_OK)
        return status;
    snprintf(t->result->run_dir, sizeof t->result->run_dir, "%s", t->run.dir);
    if (t->opts->report_tensorboard)
        status = pnb__rundir_open_events(&t->run, t->state.step + 1, err);
    if (status != PNB_OK)
        return status;
    t->result->n_steps = t->n_steps;
    t->result->step = t->state.step;
    t->result->graph_bytes = pnb__step_bytes(t->step_graphs);
    if (t->info->is_probabilistic)
        status = pnb__record_info(t, err, "Log-variance of captions from: %s",
                                  pnb_text_unc_source_name(t->info->text_unc_source));
    if (status == PNB_OK && t->context.n_captions > 0)
        status = pnb__record_info(
            t, err,
            "Context: %d tokens, which %.2f%% of the training captions fit into as they are drawn "
            "(the longest has %d); --force-context-length sets another",
            t->context.length, 100 * t->context.share_within, t->context.longest);
    if (status != PNB_OK)
        return status;
    return pnb__record_info(t, err,
                            "%s at step %lld of %lld: %zu samples, %lld steps an epoch, %zu "
                            "parameters, %d threads",
                            resumed ? "Resuming" : "Starting", (long long)t->state.step,
                            (long long)t->n_steps, pnb_dataset_size(t->train),
                            (long long)t->steps_per_epoch, t->info->n_params,
                            pnb_ctx_n_threads(t->ctx));
}

pnb_status pnb_train(const pnb_ctx *ctx, const pnb_train_opts *opts, pnb_train_result *out,
                     pnb_error *err)
{
    pnb__trainer t = {.ctx = ctx, .opts = opts, .result = out, .last_eval_step = -1};
    char *checkpoint = NULL;
    *out = (pnb_train_result){0};
    t.run.lock = -1;
    t.state.best_unc_r = t.state.best_loss = NAN;
    pnb_status status;
    PNB_TRY(pnb__train_check_opts(opts, err));
    /* Only a run that can start gets a folder: its own checkpoint is looked for in the folder that
     * is there, everything else is opened first. */
    bool goes_on = opts->resume != NULL && strcmp(opts->resume, "latest") == 0;
    if (goes_on)
        PNB_TRY(pnb__rundir_open(&t.run, opts, err));
    else if (opts->resume == NULL)
        PNB_TRY(pnb__rundir_check_new(opts, err));
    if (opts->resume != NULL)
        PNB_TRY(pnb__rundir_find_checkpoint(&t.run, opts->resume, &checkpoint, err));
    PNB_TRY(pnb__trainer_setup(&t, checkpoint, err));
    if (!goes_on)
        PNB_TRY(pnb__rundir_open(&t.run, opts, err));
    if (checkpoint != NULL)
        snprintf(out->checkpoint_dir, sizeof out->checkpoint_dir, "%s", checkpoint);
    PNB_TRY(start_logs(&t, checkpoint != NULL, err));
    t.started_s = pnb__now_s();
    t.first_step = t.state.step;
    status = run_steps(&t, err);
done:
    pnb__trainer_reset(&t);
    pnb__free(checkpoint);
    return status;
}
