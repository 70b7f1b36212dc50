/* Runs pnb_train for a person: progress line, interrupt flag, result.
 *
 * After Ctrl-C the result is printed too, since the checkpoint it names is there. */
#include "commands/train/train_run.h"

#include <math.h>
#include <string.h>

#include "program/progress.h"
#include "program/result_end.h"

typedef struct watch {
    pnb__app *app;
    pnb__progress progress;
    bool started;
    int64_t step;
} watch;

static void on_progress(void *user, const pnb_train_progress *p)
{
    watch *w = user;
    char note[96];
    if (!w->started) {
        size_t first = p->step > 0 ? (size_t)p->step - 1 : 0;
        pnb__progress_start(&w->progress, w->app, "training", "steps", first, (size_t)p->n_steps);
        w->started = true;
    }
    w->step = p->step;
    snprintf(note, sizeof note, "%s  loss %.4f  lr %.2g  %.0f pairs/s", p->phase, p->loss, p->lr,
             p->samples_per_s);
    pnb__progress_update(&w->progress, (size_t)p->step, note);
}

static void put_result(const pnb_train_result *t, pnb__result *r)
{
    pnb__result_text(r, "run_dir", "run", t->run_dir);
    pnb__result_text(r, "checkpoint_dir", "checkpoint",
                     t->checkpoint_dir[0] != '\0' ? t->checkpoint_dir : NULL);
    pnb__result_text(r, "best_checkpoint_dir", "best checkpoint",
                     t->best_dir[0] != '\0' ? t->best_dir : NULL);
    pnb__result_int(r, "step", "steps done", t->step);
    pnb__result_int(r, "n_steps", "steps planned", t->n_steps);
    pnb__result_int(r, "epoch", "epoch", t->epoch);
    pnb__result_real(r, "loss", "loss", t->total, 5);
    pnb__result_begin(r, "losses", NULL);
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        pnb__result_real(r, pnb_loss_name((pnb_loss_term)i), NULL, t->loss[i], 6);
    pnb__result_end(r);
    pnb__result_real(r, "seconds", "seconds", t->seconds, 1);
    pnb__result_real(r, "data_s", "of these waiting for data", t->data_s, 1);
    pnb__result_real(r, "samples_per_s", "pairs a second", t->samples_per_s, 1);
    pnb__result_int(r, "graph_bytes", "memory of a step in bytes", (int64_t)t->graph_bytes);
    if (t->estimated_bytes > 0) {
        pnb__result_int(r, "estimated_bytes", "memory foreseen in bytes",
                        (int64_t)t->estimated_bytes);
        pnb__result_int(r, "peak_bytes", "memory taken in bytes", (int64_t)t->peak_bytes);
    }
    pnb__result_int(r, "n_skipped", "unreadable samples", (int64_t)t->n_skipped);
    pnb__result_int(r, "n_damaged", "damaged shards", (int64_t)t->n_damaged);
    if (t->n_figures > 0) {
        pnb__result_begin(r, "figures", "measured");
        for (size_t i = 0; i < t->n_figures; i++)
            pnb__result_real(r, t->figures[i].name, t->figures[i].name, t->figures[i].value, 4);
        pnb__result_end(r);
    }
    if (!t->eval.done)
        return;
    pnb__result_begin(r, "eval", "validation");
    pnb__result_int(r, "n", "pairs", (int64_t)t->eval.n);
    pnb__result_real(r, "loss", "loss", t->eval.total, 5);
    pnb__result_real(r, "i2t_r1", "image to text R@1", t->eval.i2t_r1, 4);
    pnb__result_real(r, "t2i_r1", "text to image R@1", t->eval.t2i_r1, 4);
    pnb__result_real(r, "batch_i2t_r1", NULL, t->eval.batch_i2t_r1, 4);
    pnb__result_real(r, "batch_t2i_r1", NULL, t->eval.batch_t2i_r1, 4);
    pnb__result_real(r, "i2t_unc_r", NULL, t->eval.i2t_unc_r, 4);
    pnb__result_real(r, "t2i_unc_r", NULL, t->eval.t2i_unc_r, 4);
    pnb__result_real(r, "image_uncertainty", "mean uncertainty of pictures", t->eval.image_unc, 5);
    pnb__result_real(r, "text_uncertainty", "mean uncertainty of captions", t->eval.text_unc, 5);
    pnb__result_end(r);
}

pnb_status pnb__train_watched(pnb__app *app, pnb_train_opts *opts, pnb_train_result *out)
{
    watch w = {.app = app};
    opts->stop = app->interrupted;
    opts->progress = on_progress;
    opts->progress_user = &w;
    pnb_status status = pnb_train(app->ctx, opts, out, &app->err);
    opts->progress_user = NULL;
    app->is_agreed = status == PNB_INTERRUPTED; /* after the checkpoint of a step that all know */
    if (w.started)
        pnb__progress_finish(&w.progress, (size_t)w.step);
    if (status == PNB_OK || status == PNB_INTERRUPTED)
        app->n_skipped += out->n_skipped + out->n_damaged;
    return status;
}

pnb_status pnb__train_run(pnb__app *app, pnb_train_opts *opts, pnb__result *r)
{
    pnb_train_result outcome = {0};
    pnb_status status = pnb__train_watched(app, opts, &outcome);
    if (status != PNB_OK && status != PNB_INTERRUPTED)
        return status;
    put_result(&outcome, r);
    if (status == PNB_INTERRUPTED) /* the frame prints what went well only */
        (void)pnb__result_print(r, app->out, app->common.json, &app->err);
    return status;
}
