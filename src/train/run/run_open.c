/* Opening a run: its folder, the checkpoint it goes on from, data and model, its logs. Processes
 * that train together open the same, and learn before the first step where one has another option,
 * other data or another model; rank 0 alone has the folder. */
#include <string.h>

#include "peers/peers.h"
#include "train/ranks/agree.h"
#include "train/trainer.h"

/* results.jsonl is cut back to the step resumed from: what comes after it happens again. */
static pnb_status start_logs(pnb__trainer *t, bool resumed, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    pnb_status status = pnb__is_writer(t)
                            ? pnb__rundir_open_logs(&t->run, resumed ? t->state.step : -1, err)
                            : PNB_OK;
    if (status != PNB_OK)
        return status;
    if (pnb__is_writer(t))
        snprintf(t->result->run_dir, sizeof t->result->run_dir, "%s", t->run.dir);
    if (pnb__is_writer(t) && t->opts->report_tensorboard)
        status = pnb__rundir_open_events(&t->run, t->state.step + 1, err);
    if (status != PNB_OK)
        return status;
    t->result->n_steps = t->n_steps;
    t->result->step = t->state.step;
    t->result->graph_bytes = o->graph_bytes;
    if (o->calls->announce != NULL)
        status = o->calls->announce(o->self, t, err);
    if (status != PNB_OK)
        return status;
    return pnb__record_info(t, err,
                            "%s at step %lld of %lld: %zu samples, %lld steps an epoch, %zu "
                            "parameters, %d threads",
                            resumed ? "Resuming" : "Starting", (long long)t->state.step,
                            (long long)t->n_steps, o->n_samples, (long long)t->steps_per_epoch,
                            o->n_weights, pnb_ctx_n_threads(t->ctx));
}

/* Both tables of options go into its params.txt. The lock is that of rank 0: a second training in
 * the same folder, of however many processes, is refused by it. */
static pnb_status open_rundir(pnb__trainer *t, pnb_error *err)
{
    if (!pnb__is_writer(t))
        return PNB_OK;
    return pnb__rundir_open(&t->run, t->opts, t->settings, PNB__N_SETTINGS, err);
}

/* Rank 0 looks, all open what it found: the folder is one that all can read. If each looked for
 * itself, one might see a link that another process moves just then. */
static pnb_status find_checkpoint(pnb__trainer *t, char **out, pnb_error *err)
{
    const char *resume = t->opts->resume;
    pnb__buf path = {0};
    pnb_status status = PNB_OK;
    if (pnb__is_writer(t)) {
        status = pnb__rundir_find_checkpoint(&t->run, resume, out, err);
        if (status == PNB_OK)
            pnb__buf_puts(&path, *out);
    }
    status = pnb_peers_agree(t->exchange->ranks, status, err);
    if (status == PNB_OK)
        status = pnb__peers_share(t->exchange->ranks, &path, err);
    if (status == PNB_OK && *out == NULL)
        status = pnb__copy_text(out, path.data, err);
    pnb__buf_reset(&path);
    return status;
}

/* The folder that a run goes on in, or whether a new one may be made: rank 0 looks for all, since
 * several that lock one folder would refuse each other. */
static pnb_status look_at_rundir(pnb__trainer *t, bool goes_on, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (goes_on)
        status = open_rundir(t, err);
    else if (t->opts->resume == NULL && pnb__is_writer(t))
        status = pnb__rundir_check_new(t->opts, err);
    return pnb_peers_agree(t->exchange->ranks, status, err);
}

/* Only a run that can start gets a folder: its own checkpoint is looked for in the folder that is
 * there, everything else is opened first. */
pnb_status pnb__trainer_open(pnb__trainer *t, pnb_error *err)
{
    pnb_peers *ranks = t->exchange->ranks;
    const char *resume = t->opts->resume;
    bool goes_on = resume != NULL && strcmp(resume, "latest") == 0;
    char *checkpoint = NULL;
    pnb_status status;
    PNB_TRY(pnb_peers_agree(ranks, pnb__run_check_opts(t->opts, err), err));
    PNB_TRY(pnb__agree_options(t, err));
    PNB_TRY(look_at_rundir(t, goes_on, err));
    if (resume != NULL)
        PNB_TRY(find_checkpoint(t, &checkpoint, err));
    PNB_TRY(pnb_peers_agree(ranks, pnb__trainer_setup(t, checkpoint, err), err));
    PNB_TRY(pnb__agree_start(t, err));
    if (!goes_on)
        PNB_TRY(open_rundir(t, err));
    if (checkpoint != NULL)
        snprintf(t->result->checkpoint_dir, sizeof t->result->checkpoint_dir, "%s", checkpoint);
    PNB_TRY(start_logs(t, checkpoint != NULL, err));
done:
    pnb__free(checkpoint);
    return pnb_peers_agree(ranks, status, err);
}
