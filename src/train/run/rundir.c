/* The directory of a run: its name, its lock, its logs, and how to find a checkpoint to resume.
 *
 * The lock is an advisory one on <run>/.lock, held while the process lives, so a killed run never
 * blocks its successor. results.jsonl is cut back to the step of the checkpoint when a run resumes:
 * the steps after it happen again. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/json/json.h"
#include "train/run/tfevents.h"
#include "train/trainer.h"

/* open_clip's form: date, model, rate, batch, workers. */
static char *default_name(const pnb__run_opts *o)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local) != NULL) /* without a clock the rest still names the run */
        strftime(date, sizeof date, "%Y_%m_%d-%H_%M_%S", &local);
    return pnb__format("%s-model_%s-lr_%g-b_%zu-j_%d", date, pnb__path_base(o->label), o->optim.lr,
                       o->batch_size, o->workers);
}

/* A run without a finished checkpoint has nothing to lose: it may be started again. */
static bool has_checkpoint(const pnb__rundir *r)
{
    return pnb__path_has_dir(r->checkpoints, "latest");
}

/* Writes params.txt of a new run; a resumed run keeps the first one. */
static pnb_status write_params(const pnb__rundir *r, const pnb__settings *settings, size_t n,
                               pnb_error *err)
{
    char *path = pnb__path_join(r->dir, "params.txt");
    pnb__buf text = {0};
    pnb__settings_text(settings, n, &text);
    pnb_status status;
    if (path == NULL || text.failed)
        status = pnb__fail(err, PNB_NOMEM, "out of memory writing params.txt");
    else
        status = pnb__write_file(path, text.data, text.size, err);
    pnb__buf_reset(&text);
    pnb__free(path);
    return status;
}

/* Two processes in one run would take turns in replacing each other's checkpoints. */
static pnb_status take_lock(pnb__rundir *r, pnb_error *err)
{
    char *path = pnb__path_join(r->dir, ".lock");
    if (path == NULL)
        return pnb__fail(err, PNB_NOMEM, "out of memory locking the run directory");
    pnb_error lock_error = PNB_ERROR_INIT;
    pnb_status status = pnb__lock_open(&r->lock, path, &lock_error);
    pnb__free(path);
    if (status == PNB_BUSY)
        return pnb__fail(err, PNB_BUSY,
                         "another process is training in %s: wait for it, stop it, or give this "
                         "run another --name",
                         r->dir);
    return status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s", lock_error.text);
}

/* A process that is killed while it writes one of these leaves the half of it beside the file,
 * under a name of its own (base/files/file.c): with the lock held nobody writes here any more. */
static void remove_halves(const pnb__rundir *r)
{
    static const char *const halves[] = {"params.txt.tmp-", "results.jsonl.tmp-"};
    DIR *d = opendir(r->dir);
    if (d == NULL)
        return;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        for (size_t i = 0; i < PNB_COUNT(halves); i++)
            if (strncmp(e->d_name, halves[i], strlen(halves[i])) == 0)
                unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

/* Paths only: nothing is made yet. */
static pnb_status set_paths(pnb__rundir *r, const pnb__run_opts *o, pnb_error *err)
{
    *r = (pnb__rundir){.lock = -1}; /* 0 is a descriptor too */
    char *name = o->name != NULL ? pnb__strdup(o->name) : default_name(o);
    if (name != NULL)
        r->dir = pnb__path_join(o->logs, name);
    if (r->dir != NULL)
        r->checkpoints = pnb__path_join(r->dir, "checkpoints");
    pnb__free(name);
    if (r->checkpoints != NULL)
        return PNB_OK;
    pnb__rundir_close(r);
    return pnb__fail(err, PNB_NOMEM, "out of memory opening the run directory");
}

/* Said before and after opening: between the two another process may have been quicker. */
static pnb_status fail_exists(const pnb__rundir *r, pnb_error *err)
{
    return pnb__fail(err, PNB_EXISTS,
                     "%s already holds a run: continue it with --resume latest, or give "
                     "another --name",
                     r->dir);
}

/* Asked before data and model are opened, which may take minutes. */
pnb_status pnb__rundir_check_new(const pnb__run_opts *o, pnb_error *err)
{
    pnb__rundir r;
    pnb_status status = set_paths(&r, o, err);
    if (status == PNB_OK && has_checkpoint(&r))
        status = fail_exists(&r, err);
    pnb__rundir_close(&r);
    return status;
}

/* "latest" names a run of its own folder, so that folder must be there; any other checkpoint starts
 * a new run beside it. */
pnb_status pnb__rundir_open(pnb__rundir *r, const pnb__run_opts *o, const pnb__settings *settings,
                            size_t n, pnb_error *err)
{
    pnb_status status = set_paths(r, o, err);
    if (status != PNB_OK)
        return status;
    if (o->resume != NULL && strcmp(o->resume, "latest") == 0 && !pnb__path_is_dir(r->dir)) {
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "there is no run %s to resume: check --logs and --name", r->dir);
        goto done;
    }
    PNB_TRY(pnb__make_dirs(r->dir, err));
    PNB_TRY(take_lock(r, err));
    remove_halves(r);
    bool exists = has_checkpoint(r); /* asked with the lock held: nobody makes one meanwhile */
    if (exists && o->resume == NULL) {
        status = fail_exists(r, err);
        goto done;
    }
    if (!exists) {
        PNB_TRY(write_params(r, settings, n, err));
        PNB_TRY(pnb__make_dirs(r->checkpoints, err));
    }
done:
    if (status != PNB_OK)
        pnb__rundir_close(r);
    return status;
}

/* Keeps the lines whose "step" is at most `step`. Damaged lines go. */
static pnb_status keep_lines(const char *text, size_t size, int64_t step, pnb__buf *out,
                             pnb_error *err)
{
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end == NULL ? size - at : (size_t)(end - (text + at));
        json_t *line = NULL;
        /* a line without its end was cut off by a kill */
        if (end != NULL && pnb__json_try_bytes(&line, text + at, n, err) != PNB_OK)
            return PNB_NOMEM;
        const json_t *number = json_object_get(line, "step");
        if (json_is_integer(number) && json_integer_value(number) <= step)
            pnb__buf_append(out, text + at, n + 1);
        json_decref(line);
        at += n + 1;
    }
    return out->failed ? pnb__fail_nomem(err, size) : PNB_OK;
}

/* Written anew and renamed: a crash here leaves the old file. Where nothing is cut off, which is
 * how most runs resume, there is nothing to write. */
static pnb_status cut_results(const char *path, int64_t step, pnb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!pnb__path_is_file(path))
        return PNB_OK;
    pnb_status status = pnb__read_file(path, (size_t)1 << 32, &text, &size, err);
    if (status != PNB_OK)
        return status;
    pnb__buf kept = {0};
    status = keep_lines(text, size, step, &kept, err);
    pnb__free(text);
    if (status == PNB_OK && kept.size < size)
        status = pnb__write_file(path, kept.data != NULL ? kept.data : "", kept.size, err);
    pnb__buf_reset(&kept);
    return status;
}

/* A resumed run goes on in the files that are there. */
static pnb_status open_append(FILE **file, const char *path, pnb_error *err)
{
    *file = fopen(path, "a");
    return *file != NULL ? PNB_OK : pnb__fail_errno(err, "opening", path);
}

/* out.log is for people and keeps what happened twice; results.jsonl is for machines and is cut. */
pnb_status pnb__rundir_open_logs(pnb__rundir *r, int64_t step, pnb_error *err)
{
    char *log = pnb__path_join(r->dir, "out.log");
    char *results = pnb__path_join(r->dir, "results.jsonl");
    pnb_status status = PNB_OK;
    if (log == NULL || results == NULL)
        status = pnb__fail_nomem(err, strlen(r->dir));
    if (status == PNB_OK)
        status = cut_results(results, step, err);
    if (status == PNB_OK)
        status = open_append(&r->log, log, err);
    if (status == PNB_OK)
        status = open_append(&r->results, results, err);
    pnb__free(log);
    pnb__free(results);
    return status;
}

/* A new event file each time: their readers follow SessionLog.START, not the file (tfevents.c). */
pnb_status pnb__rundir_open_events(pnb__rundir *r, int64_t step, pnb_error *err)
{
    char *dir = pnb__path_join(r->dir, "tensorboard");
    pnb_status status = dir != NULL ? pnb__tfevents_open(&r->events, dir, step, err)
                                    : pnb__fail_nomem(err, strlen(r->dir));
    pnb__free(dir);
    return status;
}

/* Also for a directory that was opened in part. */
void pnb__rundir_close(pnb__rundir *r)
{
    if (r->events != NULL)
        fclose(r->events);
    if (r->log != NULL)
        fclose(r->log);
    if (r->results != NULL)
        fclose(r->results);
    pnb__lock_close(r->lock); /* last: until here the files are this process's alone */
    pnb__free(r->dir);
    pnb__free(r->checkpoints);
    *r = (pnb__rundir){.lock = -1};
}

/* A path as it is given, or what the link `latest` of this run names. */
pnb_status pnb__rundir_find_checkpoint(const pnb__rundir *r, const char *resume, char **out,
                                       pnb_error *err)
{
    bool latest = strcmp(resume, "latest") == 0;
    *out = latest ? pnb__path_join(r->checkpoints, "latest") : pnb__strdup(resume);
    if (*out == NULL)
        return pnb__fail_nomem(err, strlen(resume));
    if (pnb__path_is_dir(*out))
        return PNB_OK;
    pnb__free(*out);
    *out = NULL;
    if (latest)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s holds no finished checkpoint to resume from: train it first, or check "
                         "--logs and --name",
                         r->checkpoints);
    return pnb__fail(err, PNB_NOT_FOUND, "--resume %s: there is no such checkpoint directory",
                     resume);
}
