/* The loop over steps, and what happens between them, for whatever is trained (objective.h).
 *
 * A step's learning rate is set before its update, as open_clip does. Everything random is drawn
 * from (seed, step) or belongs to the position in the data, so the state of a run is parameters,
 * optimiser, step and position: what a checkpoint has. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "peers/peers.h"
#include "train/ranks/agree.h"
#include "train/trainer.h"

#define MOST_STEPS ((int64_t)1 << 62) /* sums of two such counts are no overflow */

/* Names are string constants: they outlive every line they are written into. */
void pnb__figures_add(pnb__figures *f, const char *name, const char *title, double value)
{
    assert(f->n < PNB__MAX_FIGURES);
    f->items[f->n++] = (pnb__figure){.name = name, .title = title, .value = value};
}

/* B A: all that the loss of one update saw, in all processes. */
double pnb__trainer_samples_per_step(const pnb__trainer *t)
{
    return (double)t->opts->batch_size * t->opts->accum_freq;
}

/* state.step counts updates done, so an epoch ends after its last one. */
static bool is_epoch_end(const pnb__trainer *t)
{
    return t->state.step % t->steps_per_epoch == 0;
}

/* Also for a run resumed after its end: it validates and saves nothing twice. */
static bool is_last(const pnb__trainer *t)
{
    const pnb__objective *o = &t->objective;
    return t->state.step >= t->n_steps || (o->calls->is_done != NULL && o->calls->is_done(o->self));
}

/* Set by a signal handler: looked at between steps, where a checkpoint is whole. Of several
 * processes one is enough, and all learn of it at the same step. */
static pnb_status ask_stopped(const pnb__trainer *t, bool *out, pnb_error *err)
{
    *out = t->opts->stop != NULL && *t->opts->stop != 0;
    return pnb__peers_any(t->exchange->ranks, out, err);
}

/* The rate is that of this process: a resumed run was not there for the steps before. */
static void report(const pnb__trainer *t, const char *phase, double loss, double lr)
{
    if (t->opts->progress == NULL || t->exchange->rank != 0)
        return;
    double elapsed = pnb__now_s() - t->started_s;
    double done = (double)(t->state.step - t->first_step);
    double step_s = done > 0 ? elapsed / done : 0; /* validations and saves are in it */
    pnb_train_progress p = {.step = t->state.step,
                            .n_steps = t->n_steps,
                            .epoch = t->state.step / t->steps_per_epoch,
                            .n_epochs = (t->n_steps + t->steps_per_epoch - 1) / t->steps_per_epoch,
                            .loss = loss,
                            .lr = lr,
                            .samples_per_s =
                                step_s > 0 ? pnb__trainer_samples_per_step(t) / step_s : 0,
                            .left_s = step_s * (double)(t->n_steps - t->state.step),
                            .phase = phase};
    t->opts->progress(t->opts->progress_user, &p);
}

/* ---- one step ---- */

/* For the message of a run that fails: what the user still has. */
static const char *what_is_kept(const pnb__trainer *t)
{
    return t->result->checkpoint_dir[0] != '\0' ? "the last checkpoint is kept"
                                                : "before a checkpoint was written";
}

/* All ranks find the same; who it comes from is named where that is known. */
static pnb_status blame(const pnb__trainer *t, const pnb__step_values *v, pnb_error *err)
{
    if (v->culprit < 0)
        return PNB_NUMERIC;
    return pnb__peers_blame(t->exchange->ranks, (size_t)v->culprit, PNB_NUMERIC, err);
}

/* Before the update: a NaN that reached the weights would be in the next checkpoint too. */
static pnb_status find_bad_value(const pnb__trainer *t, const pnb__step_values *v, pnb_error *err)
{
    for (size_t i = 0; i < v->terms.n; i++)
        if (!isfinite(v->terms.items[i].value))
            return pnb__fail(err, PNB_NUMERIC,
                             "step %lld: loss %s is %g; training stopped, %s. Lower --lr, clip "
                             "gradients, or lower the term's weight",
                             (long long)t->state.step, v->terms.items[i].name,
                             v->terms.items[i].value, what_is_kept(t));
    if (!isfinite(v->grad_norm))
        return pnb__fail(
            err, PNB_NUMERIC,
            "step %lld: the gradient's norm is %g; training stopped, %s. Lower --lr or "
            "the terms' weights",
            (long long)t->state.step, v->grad_norm, what_is_kept(t));
    return PNB_OK;
}

static pnb_status check_values(const pnb__trainer *t, const pnb__step_values *v, pnb_error *err)
{
    pnb_status status = find_bad_value(t, v, err);
    return status == PNB_OK ? PNB_OK : blame(t, v, err);
}

/* Gradients of all processes before their norm, and the norm before the check: what is clipped is
 * the gradient of the whole batch. */
pnb_status pnb__trainer_step(pnb__trainer *t, pnb__step_values *out, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    int culprit = -1;
    *out = (pnb__step_values){.culprit = -1};
    double start = pnb__now_s();
    pnb_status status = o->calls->step(o->self, t->state.step, out, err);
    if (status == PNB_NUMERIC) /* the op is named already, the step is not */
        pnb__error_prefix(err, "step %lld", (long long)t->state.step);
    double summing_s = pnb__now_s();
    if (status == PNB_OK)
        status = pnb__optim_sum_grads(t->optim, t->exchange, &culprit, err);
    t->waited_s += pnb__now_s() - summing_s;
    if (status != PNB_OK)
        return status;
    if (out->culprit < 0)
        out->culprit = culprit;
    out->grad_norm = pnb__optim_grad_norm(t->optim);
    status = check_values(t, out, err);
    out->batch_s = pnb__now_s() - start;
    return status;
}

/* Step t (from 0) takes the rate of t, as open_clip's scheduler(step) before optimizer.step()
 * does. */
pnb_status pnb__trainer_update(pnb__trainer *t, pnb__step_values *v, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    pnb_status status = PNB_OK;
    v->lr = pnb_schedule_lr(&t->schedule, t->state.step);
    pnb__optim_step(t->optim, v->lr, pnb__optim_clip_factor(t->optim, v->grad_norm));
    status = pnb__optim_spread(t->optim, t->exchange->ranks, err);
    if (status == PNB_OK && o->calls->updated != NULL)
        status = o->calls->updated(o->self, v, err);
    /* together: a checkpoint written now goes on with the next step on the next sample */
    t->state.step++;
    if (t->average != NULL)
        pnb__weight_average_step(t->average, t->state.step);
    t->state.position = o->calls->position(o->self);
    return status;
}

/* batch_s has the update in it, data_s is a part of it. */
static pnb_status train_step(pnb__trainer *t, pnb__step_values *v, pnb_error *err)
{
    double start = pnb__now_s();
    pnb_status status = pnb__trainer_step(t, v, err);
    if (status != PNB_OK)
        return status;
    status = pnb__trainer_update(t, v, err);
    v->batch_s = pnb__now_s() - start;
    return status;
}

/* ---- between the steps ---- */

/* By steps where they were asked for, else by epochs, and always at the end: a run without a last
 * validation has no best checkpoint. */
static bool is_eval_due(const pnb__trainer *t)
{
    const pnb__run_opts *o = t->opts;
    if (!t->objective.validates || t->last_eval_step == t->state.step)
        return false;
    if (is_last(t))
        return true;
    if (o->val_every_n_steps > 0)
        return t->state.step % o->val_every_n_steps == 0;
    return o->val_frequency > 0 && is_epoch_end(t) &&
           t->state.step / t->steps_per_epoch % o->val_frequency == 0;
}

/* What rank 0 writes, all wait for: they would in the next step, and learn here how it went. The
 * weights must be the same everywhere, since one copy is what is kept. */
static pnb_status write_together(pnb__trainer *t,
                                 pnb_status (*write)(pnb__trainer *, const char *, pnb_error *),
                                 const char *name, pnb_error *err)
{
    pnb_status status = pnb__agree_weights(t, err);
    if (status == PNB_OK)
        status = pnb__optim_collect(t->optim, t->exchange->ranks, err);
    if (status == PNB_OK && pnb__is_writer(t))
        status = write(t, name, err);
    pnb__optim_drop(t->optim);
    return pnb_peers_agree(t->exchange->ranks, status, err);
}

static pnb_status write_best(pnb__trainer *t, const char *name, pnb_error *err)
{
    (void)name; /* it makes its own */
    return pnb__checkpoint_write_best(t, err);
}

/* ProLIP's --save-best-unc: the most negative correlation of uncertainty and success so far. */
static pnb_status save_if_best(pnb__trainer *t, pnb_error *err)
{
    double r = t->eval.unc_r;
    bool is_best = isnan(t->state.best_unc_r) || r < t->state.best_unc_r;
    if (!t->opts->save_best_unc || isnan(r) || !is_best || !pnb__is_kept(t))
        return PNB_OK;
    t->state.best_unc_r = r;
    pnb_status status = write_together(t, write_best, NULL, err);
    return status == PNB_OK
               ? pnb__record_info(t, err, "Saved epoch_best_unc: correlation %.4f at step %lld", r,
                                  (long long)t->state.step)
               : status;
}

static pnb_status evaluate_if_due(pnb__trainer *t, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    const bool has_losses = is_eval_due(t);
    const bool has_figures = o->calls->has_figures != NULL && t->last_eval_step != t->state.step &&
                             o->calls->has_figures(o->self, t->state.step, is_last(t));
    if (!has_losses && !has_figures)
        return PNB_OK;
    report(t, "validate", t->result->total, 0);
    t->eval = (pnb__eval_values){.has_losses = has_losses,
                                 .is_last = is_last(t),
                                 .total = has_losses ? 0 : NAN, /* objectives add to it */
                                 .best = NAN,
                                 .unc_r = NAN};
    pnb_status status = o->calls->validate(o->self, t->state.step, &t->eval, err);
    if (status != PNB_OK)
        return status;
    if (o->calls->has_figures == NULL)
        t->eval.best = t->eval.total;
    t->last_eval_step = t->state.step; /* of these weights there is nothing more to learn */
    status = pnb__record_eval(t, &t->eval, err);
    return status == PNB_OK ? save_if_best(t, err) : status;
}

/* Those that stay. */
static bool is_epoch_save_due(const pnb__trainer *t)
{
    const pnb__run_opts *o = t->opts;
    return o->save_frequency > 0 && is_epoch_end(t) &&
           t->state.step / t->steps_per_epoch % o->save_frequency == 0;
}

/* The checkpoint about to be written becomes the best one if its step was validated with the lowest
 * loss so far, or whatever the objective goes by. */
static void consider_best(pnb__trainer *t, const char *name)
{
    double value = t->eval.best;
    /* a loss of another step says nothing of these weights */
    bool is_measured = t->last_eval_step == t->state.step && isfinite(value);
    if (!is_measured || value >= t->state.best_value)
        return;
    t->state.best_value = value;
    snprintf(t->state.best_name, sizeof t->state.best_name, "%s", name);
}

/* Checkpoints that stay are named by their epoch, those that the next one replaces by their
 * step. */
static pnb_status save(pnb__trainer *t, pnb_error *err)
{
    char name[64];
    if (!pnb__is_kept(t))
        return PNB_OK;
    bool stays = is_epoch_save_due(t) || is_last(t); /* the run's end is always kept */
    if (is_epoch_end(t) && t->state.step > 0 && stays)
        snprintf(name, sizeof name, "epoch_%lld", (long long)(t->state.step / t->steps_per_epoch));
    else
        snprintf(name, sizeof name, "step_%lld", (long long)t->state.step);
    report(t, "save", t->result->total, 0);
    consider_best(t, name);
    pnb_status status = write_together(t, pnb__checkpoint_write, name, err);
    return status == PNB_OK ? pnb__record_info(t, err, "Saved checkpoint %s", name) : status;
}

/* The last one always; save_most_recent's are replaced by the next. */
static bool is_save_due(const pnb__trainer *t)
{
    const pnb__run_opts *o = t->opts;
    if (is_last(t))
        return true;
    if (o->save_every_n_steps > 0 && t->state.step % o->save_every_n_steps == 0)
        return true;
    return is_epoch_save_due(t) || (o->save_most_recent && is_epoch_end(t));
}

static void fill_result(const pnb__trainer *t, const pnb__step_values *v)
{
    pnb__run_result *r = t->result;
    double seconds = pnb__now_s() - t->started_s;
    double samples = pnb__trainer_samples_per_step(t);
    r->step = t->state.step;
    r->epoch = t->state.step / t->steps_per_epoch;
    r->total = v->total;
    r->seconds = seconds;
    r->data_s += v->data_s;
    r->samples_per_s = samples * (double)(t->state.step - t->first_step) / PNB_MAX(seconds, 1e-9);
}

/* Behind the last checkpoint, whose weights it replaces in memory. An objective that is done before
 * the first epoch of the mean has none. */
static pnb_status save_mean(pnb__trainer *t, pnb_error *err)
{
    if (t->average == NULL || t->average->n_models == 0 || !pnb__is_kept(t))
        return PNB_OK;
    pnb_status status = pnb__checkpoint_write_mean(t, pnb__is_writer(t), err);
    status = pnb_peers_agree(t->exchange->ranks, status, err);
    return status == PNB_OK
               ? pnb__record_info(
                     t, err, "Saved checkpoint %s: the %smean of the weights after %lld %s",
                     pnb__checkpoint_mean_name(t), t->opts->ema_decay > 0 ? "moving " : "",
                     (long long)t->average->n_models, t->opts->ema_decay > 0 ? "steps" : "epochs")
               : status;
}

/* What the exchange cost rank 0: the others wait as long, or for each other. */
static pnb_status record_exchange(pnb__trainer *t, pnb_error *err)
{
    const pnb__peers_cost cost = pnb__peers_get_cost(t->exchange->ranks);
    double n = (double)(t->state.step - t->first_step);
    if (t->exchange->ranks == NULL || n == 0)
        return PNB_OK;
    return pnb__record_info(t, err,
                            "Exchange of %zu ranks, a step: %.3f MB sent in %.1f trades that took "
                            "%.6f s; %.6f s waited for gradients, of %.6f s",
                            t->exchange->n_ranks, (double)cost.n_bytes / n / 1e6,
                            (double)cost.n_trades / n, cost.seconds / n, t->waited_s / n,
                            t->result->seconds / n);
}

/* Update, record, validate, save, in that order: a checkpoint holds the validation of its own step.
 * A stop between two steps saves too, so that nothing of a stopped run is lost. */
static pnb_status run_steps(pnb__trainer *t, pnb_error *err)
{
    pnb__step_values v = {0};
    bool is_stopped = false;
    for (;;) {
        pnb_status status = is_last(t) ? PNB_OK : ask_stopped(t, &is_stopped, err);
        if (status == PNB_OK && (is_last(t) || is_stopped))
            break;
        if (status == PNB_OK)
            status = train_step(t, &v, err);
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
    const pnb__objective *o = &t->objective;
    /* Threads that read ahead are the user's to choose, and rates alone do not tell that they lack:
     * a trainer that waits computes as fast as ever in between. A tenth is where another thread
     * would show. */
    if (t->state.step > t->first_step) {
        const pnb__run_result *r = t->result;
        pnb_status told = pnb__record_info(
            t, err, "Waited %.1f of %.1f seconds for data (%.1f%%)%s", r->data_s, r->seconds,
            100 * r->data_s / PNB_MAX(r->seconds, 1e-9),
            r->data_s > 0.1 * r->seconds ? "; --workers sets how many threads read ahead" : "");
        if (told != PNB_OK)
            return told;
    }
    pnb_status status = record_exchange(t, err);
    if (status == PNB_OK && o->calls->conclude != NULL)
        status = o->calls->conclude(o->self, t, err);
    if (is_last(t) && status == PNB_OK)
        return save_mean(t, err);
    if (status == PNB_OK)
        status = save(t, err);
    if (status != PNB_OK)
        return status;
    return pnb__fail(err, PNB_INTERRUPTED, "stopped after step %lld of %lld; %s",
                     (long long)t->state.step, (long long)t->n_steps,
                     pnb__is_kept(t) ? "continue with --resume latest"
                                     : "without --logs nothing of it was kept");
}

/* ---- a whole run ---- */

/* Nothing can fail here, so that reset is right whatever comes after. */
void pnb__trainer_init(pnb__trainer *t, const pnb_ctx *ctx, const pnb__run_opts *opts,
                       const pnb__objective *objective, pnb__run_result *result)
{
    *result = (pnb__run_result){0};
    *t = (pnb__trainer){.ctx = ctx,
                        .opts = opts,
                        .objective = *objective,
                        .exchange = objective->exchange,
                        .settings = {objective->settings, pnb__run_settings(opts)},
                        .last_eval_step = -1,
                        .result = result};
    if (t->exchange == NULL)
        t->exchange = t->objective.exchange = &pnb__exchange_alone;
    t->run.lock = -1; /* 0 would be standard input's */
    t->state.best_unc_r = t->state.best_value = NAN;
}

/* Epochs to steps. One that would lie beyond the most steps of a run lies at its end: the product
 * must not overflow. */
static void place_milestones(pnb__trainer *t)
{
    for (size_t i = 0; i < PNB_MAX_MILESTONES; i++)
        t->schedule.milestones[i] =
            PNB_MIN(t->opts->lr_milestones[i], MOST_STEPS / t->steps_per_epoch) *
            t->steps_per_epoch;
}

/* The schedule is as long as the run: max_steps, where given, is the length of both. */
static pnb_status plan_steps(pnb__trainer *t, pnb_error *err)
{
    const pnb__run_opts *o = t->opts;
    t->steps_per_epoch = t->objective.steps_per_epoch;
    int64_t epochs = o->max_steps > 0 ? 0 : o->epochs;
    epochs = PNB_MAX(epochs, o->swa_start);
    if (PNB_MAX(PNB_MAX(epochs, o->epochs_cooldown), o->head_epochs) >
        MOST_STEPS / t->steps_per_epoch)
        return pnb__fail(err, PNB_LIMIT, "%lld epochs, %lld of cooling down, of %lld steps each",
                         (long long)o->epochs, (long long)o->epochs_cooldown,
                         (long long)t->steps_per_epoch);
    t->n_steps = o->max_steps > 0 ? o->max_steps : o->epochs * t->steps_per_epoch;
    t->schedule = (pnb_schedule){.kind = o->lr_scheduler,
                                 .base = o->optim.lr,
                                 .warmup = o->warmup,
                                 .total = t->n_steps,
                                 .min_ratio = o->lr_min_ratio,
                                 .cooldown = o->epochs_cooldown * t->steps_per_epoch,
                                 .cooldown_power = o->lr_cooldown_power,
                                 .cooldown_end = o->lr_cooldown_end,
                                 .restart = o->head_epochs * t->steps_per_epoch,
                                 .gamma = o->lr_gamma};
    place_milestones(t);
    if (o->swa_start > t->n_steps / t->steps_per_epoch)
        return pnb__fail(err, PNB_ARG,
                         "--swa-start %lld: the run ends before that epoch does, after %lld steps "
                         "of %lld an epoch",
                         (long long)o->swa_start, (long long)t->n_steps,
                         (long long)t->steps_per_epoch);
    if (o->head_epochs > 0 && t->schedule.restart >= t->n_steps)
        return pnb__fail(err, PNB_ARG,
                         "a first phase of %lld epochs (%lld steps) leaves none of the %lld steps "
                         "to the second",
                         (long long)o->head_epochs, (long long)t->schedule.restart,
                         (long long)t->n_steps);
    return PNB_OK;
}

/* Before the optimiser's state is read: phases are no part of it. */
static pnb_status set_groups(pnb__trainer *t, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    for (size_t i = 0; o->calls->group != NULL && i < o->n_params; i++) {
        if (!o->params[i]->trainable)
            continue;
        const pnb__optim_group group = o->calls->group(o->self, o->params[i]);
        pnb_status status = pnb__optim_set_group(t->optim, o->params[i], &group, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* One model an epoch, as PCME++ takes them, the first after epoch swa_start, or a moving mean of
 * all steps. Behind the optimiser and before a checkpoint is read: that one holds the mean so far,
 * of the same parameters. */
static pnb_status create_average(pnb__trainer *t, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    pnb__weight_average_opts opts = {t->opts->swa_start * t->steps_per_epoch, t->steps_per_epoch,
                                     t->opts->ema_decay};
    if (t->opts->swa_start == 0 && t->opts->ema_decay == 0)
        return PNB_OK;
    if (t->opts->ema_decay > 0)
        opts.every = 1;
    return pnb__weight_average_create(&t->average, t->ctx, o->real, o->params, o->n_params, &opts,
                                      err);
}

/* Parameters, then the optimiser that names them, then its state, then the data at the position of
 * the checkpoint. */
pnb_status pnb__trainer_setup(pnb__trainer *t, const char *checkpoint, pnb_error *err)
{
    pnb__objective *o = &t->objective;
    pnb_status status;
    PNB_TRY(o->calls->open(o->self, checkpoint, o, err));
    PNB_TRY(plan_steps(t, err));
    const bool shares = t->opts->shard_optimizer && t->exchange->ranks != NULL;
    const pnb__optim_share share = {shares ? t->exchange->rank : 0,
                                    shares ? t->exchange->n_ranks : 1};
    PNB_TRY(pnb__optim_create_share(&t->optim, t->ctx, o->real, o->params, o->n_params,
                                    &t->opts->optim, &share, err));
    PNB_TRY(set_groups(t, err));
    PNB_TRY(create_average(t, err));
    if (checkpoint != NULL)
        PNB_TRY(pnb__checkpoint_read(t, checkpoint, err));
    PNB_TRY(o->calls->start(o->self, t->state.position, o, err));
done:
    return status;
}

void pnb__trainer_reset(pnb__trainer *t)
{
    pnb__weight_average_free(t->average);
    pnb__optim_free(t->optim);
    t->objective.calls->close(t->objective.self); /* its parameters are what the optimiser names */
    pnb__rundir_close(&t->run);
}

/* The clock starts behind opening: rates are those of training. */
pnb_status pnb__trainer_run(const pnb_ctx *ctx, const pnb__run_opts *opts,
                            const pnb__objective *objective, pnb__run_result *out, pnb_error *err)
{
    pnb__trainer t;
    pnb__trainer_init(&t, ctx, opts, objective, out);
    pnb_status status = pnb__trainer_open(&t, err);
    if (status == PNB_OK) {
        t.started_s = pnb__now_s();
        t.first_step = t.state.step;
        status = run_steps(&t, err);
    }
    pnb__trainer_reset(&t);
    return status;
}
