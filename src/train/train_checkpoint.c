/* Checkpoints: what the objective saves, plus what training needs to go on.
 *
 * checkpoints/<name>/ holds the objective's files (of contrastive training a model directory that
 * other commands open), optimizer.safetensors, average.safetensors where weights are averaged, and
 * state.json. It is written under a temporary
 * name, synced, and renamed; then the link `latest` is replaced by a rename too, then `best`, the
 * checkpoint of the lowest validation loss, and only then what both leave behind is removed: moved
 * aside first, so that no half checkpoint bears a name. So at any moment, killed or out of space,
 * the newest complete checkpoint is the one that `latest` names. Which one is the best stands in
 * state.json too, so a link that a kill left behind is mended by the next checkpoint. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/json/json.h"
#include "train/trainer.h"

#define AVERAGE_FILE "average.safetensors"
#define STATE_FORMAT 1 /* another one means that older programs must not read it */
#define MARKS_FORM 1   /* of what marks are made: those of another form say nothing */

/* Removes a folder of plain files; what is not there is fine. */
static void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    rmdir(dir);
}

/* A rename is on the disk when its folder is. */
static pnb_status sync_dir(const char *dir, pnb_error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return pnb__fail_errno(err, "opening", dir);
    int failed = fsync(fd);
    close(fd);
    return failed == 0 ? PNB_OK : pnb__fail_errno(err, "syncing", dir);
}

enum { MARK_BYTES = 17 };

/* As text: a JSON number has no 64 bits without a sign. */
static void write_mark(char out[MARK_BYTES], const pnb__mark *mark)
{
    snprintf(out, MARK_BYTES, "%016llx", (unsigned long long)mark->value);
}

/* With the form, so that a later way of counting is not taken for other data. */
static json_t *marks_json(const pnb__trainer *t)
{
    const pnb__objective *o = &t->objective;
    json_t *data = json_pack("{s:i}", "form", MARKS_FORM);
    bool ok = data != NULL;
    for (size_t i = 0; ok && i < o->n_marks; i++) {
        char text[MARK_BYTES];
        write_mark(text, &o->marks[i]);
        ok = json_object_set_new(data, o->marks[i].name, json_string(text)) == 0;
    }
    if (ok)
        return data;
    json_decref(data);
    return NULL;
}

/* What going on needs beside weights and moments: where in the data, how far, which is the best,
 * and the fixed options, to be compared. Threads are kept for the warning alone. */
static json_t *state_json(const pnb__trainer *t)
{
    json_t *settings = pnb__settings_fixed(t->settings, PNB__N_SETTINGS);
    json_t *best = isnan(t->state.best_unc_r) ? json_null() : json_real(t->state.best_unc_r);
    json_t *value = isnan(t->state.best_value) ? json_null() : json_real(t->state.best_value);
    json_t *data = marks_json(t);
    if (settings == NULL || best == NULL || value == NULL || data == NULL) {
        json_decref(settings);
        json_decref(data);
        json_decref(best);
        json_decref(value);
        return NULL;
    }
    return json_pack("{s:i, s:i, s:I, s:I, s:I, s:{s:I, s:I}, s:I, s:o, s:s, s:o, s:o, s:s, s:o}",
                     "format", STATE_FORMAT, "threads", pnb_ctx_n_threads(t->ctx), "step",
                     (json_int_t)t->state.step, "n_steps", (json_int_t)t->n_steps, "epoch",
                     (json_int_t)(t->state.step / t->steps_per_epoch), "loader", "epoch",
                     (json_int_t)t->state.position.epoch, "batch",
                     (json_int_t)t->state.position.batch, "samples",
                     (json_int_t)t->objective.n_samples, "data", data, "lr_scheduler",
                     pnb_schedule_name(t->opts->lr_scheduler), "best_unc_r", best, "best_value",
                     value, "best", t->state.best_name, "settings", settings);
}

/* state.json, last of the three: a folder that has it has all. */
static pnb_status write_state(const pnb__trainer *t, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, "state.json");
    json_t *state = state_json(t);
    pnb_status status;
    if (path == NULL || state == NULL)
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing state.json");
    else
        status = pnb__json_save_file(state, path, err);
    json_decref(state);
    pnb__free(path);
    return status;
}

/* The mean so far, without which a resumed run would begin another. */
static pnb_status write_average(const pnb__trainer *t, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, AVERAGE_FILE);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    pnb_status status = pnb__weight_average_save(t->average, path, err);
    pnb__free(path);
    return status;
}

/* A checkpoint without one is of a run that averaged nothing, which its options have told before.
 */
static pnb_status read_average(const pnb__trainer *t, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, AVERAGE_FILE);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    pnb_status status = pnb__weight_average_load(t->average, path, err);
    pnb__free(path);
    return status;
}

/* The model first: it is the largest, and a full disk shows soonest there. */
static pnb_status write_parts(const pnb__trainer *t, const char *dir, pnb_error *err)
{
    char *optim = pnb__path_join(dir, "optimizer.safetensors");
    pnb_status status = PNB_OK;
    if (optim == NULL) {
        status = pnb__fail_nomem(err, strlen(dir));
        goto done;
    }
    PNB_TRY(pnb__make_dirs(dir, err));
    PNB_TRY(t->objective.calls->save(t->objective.self, dir, err));
    PNB_TRY(pnb__optim_save(t->optim, optim, err));
    if (t->average != NULL)
        PNB_TRY(write_average(t, dir, err));
    PNB_TRY(write_state(t, dir, err));
    PNB_TRY(sync_dir(dir, err));
done:
    pnb__free(optim);
    return status;
}

/* Puts the link `link_name` -> name in place by a rename. */
static pnb_status move_link(const pnb__trainer *t, const char *link_name, const char *name,
                            pnb_error *err)
{
    char *link = pnb__path_join(t->run.checkpoints, link_name);
    char *temp = pnb__format("%s/.%s.tmp", t->run.checkpoints, link_name);
    pnb_status status = PNB_OK;
    if (link == NULL || temp == NULL) {
        status = pnb__fail_nomem(err, strlen(t->run.checkpoints));
    } else {
        unlink(temp); /* of a killed process */
        if (symlink(name, temp) != 0 || rename(temp, link) != 0)
            status = pnb__fail_errno(err, "linking", link);
        else
            status = sync_dir(t->run.checkpoints, err);
    }
    pnb__free(link);
    pnb__free(temp);
    return status;
}

#define BEST_LINK "epoch_best_unc"
#define BEST_PREFIX "best_unc_step_"

/* Intermediate checkpoints that the new one replaces, and leftovers of a killed write. The best
 * ones are replaced by better ones only. */
static bool is_replaced(const pnb__trainer *t, const char *entry, const char *name)
{
    if (strcmp(entry, name) == 0 || strcmp(entry, BEST_LINK) == 0 ||
        strcmp(entry, t->state.best_name) == 0)
        return false;
    if (pnb__starts_with(name, BEST_PREFIX))
        return pnb__starts_with(entry, BEST_PREFIX);
    return pnb__starts_with(entry, ".tmp-") || pnb__starts_with(entry, "step_") ||
           (t->opts->delete_previous_checkpoint && pnb__starts_with(entry, "epoch_"));
}

/* Under another name first: a kill in the middle leaves nothing that looks like a checkpoint. */
static void remove_checkpoint(const pnb__trainer *t, const char *name)
{
    char *path = pnb__path_join(t->run.checkpoints, name);
    char *aside = pnb__format("%s/.tmp-removed", t->run.checkpoints);
    if (path != NULL && aside != NULL) {
        remove_dir(aside);
        if (rename(path, aside) == 0)
            remove_dir(aside);
    }
    pnb__free(path);
    pnb__free(aside);
}

/* After the link moved: until then the old one is the newest complete checkpoint. */
static void remove_replaced(const pnb__trainer *t, const char *name)
{
    DIR *d = opendir(t->run.checkpoints);
    if (d == NULL)
        return;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        /* what is removed while the folder is read may or may not be seen again: both are fine */
        if (is_replaced(t, e->d_name, name))
            remove_checkpoint(t, e->d_name);
    }
    closedir(d);
}

/* Gives `temp` the name `final`. The same step may be there already, written before and trained
 * again since, and `latest` may name it: the two change places in one stroke where the file system
 * can do that. */
static int put_in_place(const char *temp, const char *final)
{
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, final, RENAME_EXCHANGE) == 0) {
        remove_dir(temp);
        return 0;
    }
    if (errno != ENOENT) /* not "nothing to exchange with": the file system cannot exchange */
        remove_dir(final);
    return rename(temp, final);
}

/* The checkpoint is there already: a run that was resumed and stopped before its next step. */
static bool is_current(const pnb__trainer *t, const char *name, const char *final)
{
    char target[256];
    char *link = pnb__path_join(t->run.checkpoints, "latest");
    ssize_t n = link == NULL ? -1 : readlink(link, target, sizeof target - 1);
    pnb__free(link);
    if (n < 0)
        return false;
    target[n] = '\0';
    return strcmp(target, name) == 0 && pnb__path_is_dir(final);
}

/* What a folder of checkpoints is filled with. */
typedef pnb_status (*write_fn)(const pnb__trainer *t, const char *dir, pnb_error *err);

/* Writes checkpoints/<name> under a temporary name and renames it. */
static pnb_status write_dir(const pnb__trainer *t, const char *name, write_fn write, pnb_error *err)
{
    char *temp = pnb__format("%s/.tmp-%s", t->run.checkpoints, name);
    char *final = pnb__path_join(t->run.checkpoints, name);
    pnb_status status;
    if (temp == NULL || final == NULL) {
        status = pnb__fail_nomem(err, strlen(t->run.checkpoints));
        goto done;
    }
    remove_dir(temp);
    status = write(t, temp, err);
    if (status != PNB_OK) {
        remove_dir(temp);
        goto done;
    }
    if (put_in_place(temp, final) != 0)
        status = pnb__fail_errno(err, "renaming", temp);
    else
        status = sync_dir(t->run.checkpoints, err);
done:
    pnb__free(temp);
    pnb__free(final);
    return status;
}

/* Folder, link, best, removal: each step leaves a state that can be resumed from. */
static pnb_status write_linked(pnb__trainer *t, const char *name, const char *link, pnb_error *err)
{
    pnb_status status = write_dir(t, name, write_parts, err);
    if (status == PNB_OK)
        status = move_link(t, link, name, err);
    if (status == PNB_OK && t->state.best_name[0] != '\0')
        status = move_link(t, "best", t->state.best_name, err);
    if (status == PNB_OK)
        remove_replaced(t, name);
    else
        pnb__error_prefix(err, "checkpoint %s", name);
    return status;
}

/* A run that was resumed and stopped at once has written this one before. */
pnb_status pnb__checkpoint_write(pnb__trainer *t, const char *name, pnb_error *err)
{
    char *final = pnb__path_join(t->run.checkpoints, name);
    if (final == NULL)
        return pnb__fail_nomem(err, strlen(t->run.checkpoints));
    pnb_status status = is_current(t, name, final) ? PNB_OK : write_linked(t, name, "latest", err);
    if (status == PNB_OK) {
        snprintf(t->result->checkpoint_dir, sizeof t->result->checkpoint_dir, "%s", final);
        if (t->state.best_name[0] != '\0')
            snprintf(t->result->best_dir, sizeof t->result->best_dir, "%s/%s", t->run.checkpoints,
                     t->state.best_name);
    }
    pnb__free(final);
    return status;
}

/* Under a name of its own, as ProLIP's --save-best-unc keeps it: the other links do not move. */
pnb_status pnb__checkpoint_write_best(pnb__trainer *t, pnb_error *err)
{
    char name[64];
    snprintf(name, sizeof name, BEST_PREFIX "%lld", (long long)t->state.step);
    return write_linked(t, name, BEST_LINK, err);
}

/* A model alone: nothing goes on from it. */
static pnb_status write_mean(const pnb__trainer *t, const char *dir, pnb_error *err)
{
    pnb_status status = pnb__make_dirs(dir, err);
    if (status == PNB_OK)
        status = t->objective.calls->save(t->objective.self, dir, err);
    return status == PNB_OK ? sync_dir(dir, err) : status;
}

const char *pnb__checkpoint_mean_name(const pnb__trainer *t)
{
    return t->opts->ema_decay > 0 ? "ema" : "swa";
}

/* What a kill before the last rename left is written again by a run that is resumed at its end. */
pnb_status pnb__checkpoint_write_mean(pnb__trainer *t, bool writes, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    pnb_status status = pnb__weight_average_apply(t->average, o->calls->refresh, o->self, err);
    if (status == PNB_OK && writes)
        status = write_dir(t, pnb__checkpoint_mean_name(t), write_mean, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "checkpoint %s", pnb__checkpoint_mean_name(t));
    return status;
}

/* A whole number from 0. */
static bool read_whole(const json_t *object, const char *key, json_int_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

/* The best checkpoint so far, if it is still there: a run that starts from another run's
 * checkpoint, or whose best was deleted, has none yet. */
static void read_best(pnb__trainer *t, const json_t *root)
{
    const json_t *value = json_object_get(root, "best_value");
    const char *name = json_string_value(json_object_get(root, "best"));
    char path[2048];
    t->state.best_value = NAN;
    t->state.best_name[0] = '\0';
    if (value == NULL) /* as it was called before other figures could be gone by */
        value = json_object_get(root, "best_val_loss");
    if (!json_is_number(value) || name == NULL || name[0] == '\0' || strchr(name, '/') != NULL ||
        t->run.checkpoints == NULL || strlen(name) >= sizeof t->state.best_name)
        return;
    int used = snprintf(path, sizeof path, "%s/%s", t->run.checkpoints, name);
    if (used < 0 || (size_t)used >= sizeof path || !pnb__path_is_dir(path))
        return;
    t->state.best_value = json_number_value(value);
    snprintf(t->state.best_name, sizeof t->state.best_name, "%s", name);
}

/* Checkpoints of before there were marks, and marks of one side alone, are passed over: a teacher
 * that came or went is an option's affair. All that differ are named, since which they are tells
 * whether a caption was mended or another set was given. */
static pnb_status compare_marks(const pnb__trainer *t, const json_t *root, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    const json_t *saved = json_object_get(root, "data");
    pnb__buf other = {0};
    pnb_status status = PNB_OK;
    if (json_integer_value(json_object_get(saved, "form")) != MARKS_FORM)
        return PNB_OK;
    for (size_t i = 0; i < o->n_marks; i++) {
        const char *was = json_string_value(json_object_get(saved, o->marks[i].name));
        char now[MARK_BYTES];
        write_mark(now, &o->marks[i]);
        if (was != NULL && strcmp(was, now) != 0)
            pnb__buf_printf(&other, "%s%s", other.size > 0 ? ", " : "", o->marks[i].name);
    }
    if (other.size > 0)
        status = pnb__fail(err, PNB_ARG,
                           "the checkpoint was trained on other data of the same number of "
                           "samples; these differ: %s. Resume with the same data, or start a new "
                           "run from it with --model",
                           other.data);
    pnb__buf_reset(&other);
    return status;
}

/* Data of the same size and marks, and options of the same values, or the run would not end in the
 * bits of an uninterrupted one. Another number of threads only changes the order of sums: a
 * warning. */
static pnb_status read_state(pnb__trainer *t, const json_t *root, const char *path, pnb_error *err)
{
    const json_t *settings = json_object_get(root, "settings");
    const json_t *loader = json_object_get(root, "loader");
    json_int_t format = 0, step = 0, epoch = 0, batch = 0, samples = 0;
    if (!read_whole(root, "format", &format) || !read_whole(root, "step", &step) ||
        !read_whole(loader, "epoch", &epoch) || !read_whole(loader, "batch", &batch) ||
        !read_whole(root, "samples", &samples) || settings == NULL || format != STATE_FORMAT)
        return pnb__fail(err, PNB_FORMAT, "%s is damaged, or of another version", path);
    if ((size_t)samples != t->objective.n_samples)
        return pnb__fail(err, PNB_ARG,
                         "the checkpoint was trained on %lld samples, the data now has %zu: "
                         "resume with the same data",
                         (long long)samples, t->objective.n_samples);
    pnb_status status = compare_marks(t, root, err);
    if (status != PNB_OK)
        return status;
    const json_t *best = json_object_get(root, "best_unc_r"); /* null: none was measured yet */
    json_int_t threads = json_integer_value(json_object_get(root, "threads"));
    if (threads != pnb_ctx_n_threads(t->ctx))
        pnb__log(t->ctx, PNB_LOG_WARN,
                 "the checkpoint was trained with %lld threads, this run has %d: the weights will "
                 "differ in their last bits from an uninterrupted run",
                 (long long)threads, pnb_ctx_n_threads(t->ctx));
    /* first what is cheap to say, then every option that shapes the weights */
    json_t *now = pnb__settings_fixed(t->settings, PNB__N_SETTINGS);
    if (now == NULL)
        return pnb__fail(err, PNB_NOMEM, "out of memory comparing options");
    status = pnb__settings_compare(settings, now, err);
    json_decref(now);
    if (status != PNB_OK)
        return status;
    t->state =
        (pnb__train_state){.step = step,
                           .position = {(uint64_t)epoch, (uint64_t)batch},
                           .best_unc_r = json_is_number(best) ? json_number_value(best) : NAN};
    read_best(t, root);
    return PNB_OK;
}

/* Options before moments: what is refused is refused before the optimiser changed. */
pnb_status pnb__checkpoint_read(pnb__trainer *t, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, "state.json");
    char *optim = pnb__path_join(dir, "optimizer.safetensors");
    json_t *root = NULL;
    pnb_status status;
    if (path == NULL || optim == NULL) {
        status = pnb__fail_nomem(err, strlen(dir));
        goto done;
    }
    PNB_TRY(pnb__json_load_file(&root, path, 0, err));
    PNB_TRY(read_state(t, root, path, err));
    PNB_TRY(pnb__optim_load(t->optim, optim, err));
    if (t->average != NULL)
        PNB_TRY(read_average(t, dir, err));
    /* files of two checkpoints, put together by hand */
    if (t->optim->step != t->state.step)
        status = pnb__fail(err, PNB_FORMAT, "%s: optimiser at step %lld, state at step %lld", dir,
                           (long long)t->optim->step, (long long)t->state.step);
done:
    json_decref(root);
    pnb__free(path);
    pnb__free(optim);
    return status;
}
