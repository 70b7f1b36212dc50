/* penumbra reproduce: stages and seeds of an experiment, one after the other, each kept in the
 * folder.
 *
 *   OUT/experiment.json           which experiment, data and settings the folder belongs to
 *   OUT/data/                     the built-in set, or lists of the test pictures and captions
 *   OUT/runs/, OUT/sets/          models, adapters and embedding sets of each stage and seed
 *   OUT/results/STAGE-SEED.json   what was measured, with the program that did
 *
 * A stage whose result is there is passed over where the same program made it; a folder of another
 * experiment or of other settings is refused. The data of a stage are made again from its seed, so
 * an interrupted run goes on to the same figures. */
#include "commands/reproduce/reproduce.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "io/json/json.h"
#include "program/progress.h"
#include "program/source_commit.h"

/* ---- names ---- */

const char *pnb__reproduce_stage(const pnb__reproduction *run, size_t stage)
{
    return run->about->stages[stage];
}

static uint64_t seed_of(const pnb__reproduction *run, size_t i)
{
    return (uint64_t)run->app->common.seed + i;
}

static json_t **place(const pnb__reproduction *run, size_t stage, size_t i)
{
    return &run->found[stage * run->opts->n_seeds + i];
}

pnb_status pnb__reproduce_path(const pnb__reproduction *run, const char *folder, const char *stage,
                               uint64_t seed, const char *ending, char **out)
{
    pnb_error *err = &run->app->err;
    char *dir = pnb__path_join(run->opts->out, folder);
    *out = pnb__format("%s/%s/%s-%llu%s", run->opts->out, folder, stage, (unsigned long long)seed,
                       ending);
    pnb_status status =
        dir != NULL && *out != NULL ? pnb__make_dirs(dir, err) : pnb__fail_nomem(err, 256);
    pnb__free(dir);
    return status;
}

/* Results of the others that are there stand in the table, and none is made. */
static bool is_asked_for(const pnb__reproduction *run, size_t stage)
{
    const pnb__text_list *only = &run->opts->only;
    bool is_named = only->n == 0;
    for (size_t i = 0; i < only->n && !is_named; i++)
        is_named = strcmp(only->items[i], pnb__reproduce_stage(run, stage)) == 0;
    return is_named;
}

static pnb_status check_names(const pnb__reproduction *run)
{
    const pnb__text_list *only = &run->opts->only;
    pnb__buf all = {0};
    size_t k = 0;
    for (size_t i = 0; i < only->n && k < run->n_stages; i++)
        for (k = 0; k < run->n_stages; k++)
            if (strcmp(only->items[i], pnb__reproduce_stage(run, k)) == 0)
                break;
    if (only->n == 0 || k < run->n_stages)
        return PNB_OK;
    for (k = 0; k < run->n_stages; k++)
        pnb__buf_printf(&all, "%s%s", k > 0 ? ", " : "", pnb__reproduce_stage(run, k));
    (void)pnb__fail(&run->app->err, PNB_NOT_FOUND, "%s: --only names what is not among %.800s",
                    run->about->word, all.data != NULL ? all.data : "");
    pnb__buf_reset(&all);
    return PNB_NOT_FOUND;
}

/* ---- values ---- */

static const pnb__figure *figure_of(const pnb__experiment *about, const char *key)
{
    for (size_t i = 0; i < about->n_figures; i++)
        if (strcmp(about->figures[i].key, key) == 0)
            return &about->figures[i];
    return NULL;
}

void pnb__reproduce_put(const pnb__reproduction *run, json_t *found, const char *row,
                        const char *figure, double value)
{
    const pnb__figure *f = figure_of(run->about, figure);
    json_t *values = json_object_get(found, "values");
    json_t *of_row = json_object_get(values, row);
    if (of_row == NULL) {
        of_row = json_object();
        json_object_set_new(values, row, of_row);
    }
    json_object_set_new(of_row, figure, json_real(value * (f != NULL ? f->scale : 1.0)));
}

double pnb__reproduce_value(const pnb__reproduction *run, size_t seed, const char *row,
                            const char *figure)
{
    for (size_t k = 0; k < run->n_stages; k++) {
        const json_t *values = json_object_get(*place(run, k, seed), "values");
        const json_t *value = json_object_get(json_object_get(values, row), figure);
        if (json_is_number(value))
            return json_number_value(value);
    }
    return NAN;
}

/* ---- whose folder it is ---- */

/* Everything that a figure depends on but the seeds, whose number may grow: of times, threads and
 * device too. */
static json_t *settings_of(const pnb__reproduction *run)
{
    const pnb__reproduce_opts *o = run->opts;
    json_t *s = json_pack("{s:s, s:s?, s:I, s:I, s:I}", "experiment", run->about->word, "data",
                          o->data, "n", (json_int_t)(o->data == NULL ? o->n_items : 0), "max_steps",
                          (json_int_t)o->n_steps, "batch_size", (json_int_t)o->batch_size);
    if (run->about->is_timed) {
        json_object_set_new(s, "n_threads", json_integer(pnb_ctx_n_threads(run->app->ctx)));
        json_object_set_new(s, "device", json_string(run->app->common.device));
    }
    return s;
}

/* A setting as people gave it: where nothing is learned, n is the pictures of a batch. */
static const char *setting_words(const pnb__reproduction *run, size_t i)
{
    static const char *const words[] = {"experiment",   "--data",    "--n",     "--max-steps",
                                        "--batch-size", "--threads", "--device"};
    return i == 2 && run->about->needs == PNB__REPRO_NOTHING ? words[4] : words[i];
}

/* The first setting that differs, by name. */
static pnb_status compare_settings(const pnb__reproduction *run, const json_t *there,
                                   const json_t *now)
{
    static const char *const keys[] = {"experiment", "data",      "n",     "max_steps",
                                       "batch_size", "n_threads", "device"};
    for (size_t i = 0; i < PNB_COUNT(keys); i++) {
        const json_t *a = json_object_get(there, keys[i]), *b = json_object_get(now, keys[i]);
        pnb__buf was = {0}, is = {0};
        if (a == b || (a != NULL && json_equal(a, b)))
            continue;
        if (a != NULL)
            pnb__json_append_value(&was, a);
        if (b != NULL)
            pnb__json_append_value(&is, b);
        (void)pnb__fail(&run->app->err, PNB_EXISTS,
                        "%s belongs to another experiment: its %s is %.200s, not %.200s; name "
                        "another --out, or give the same settings",
                        run->opts->out, setting_words(run, i),
                        was.data != NULL ? was.data : "not told",
                        is.data != NULL ? is.data : "not told");
        pnb__buf_reset(&was);
        pnb__buf_reset(&is);
        return PNB_EXISTS;
    }
    return PNB_OK;
}

/* A folder that is there must say that it is this experiment's. */
static pnb_status open_folder(const pnb__reproduction *run)
{
    pnb_error *err = &run->app->err;
    const char *out = run->opts->out;
    json_t *now = settings_of(run), *there = NULL;
    char *path = pnb__path_join(out, "experiment.json");
    pnb_status status = PNB_OK;
    if (path == NULL || !json_is_complete(now))
        PNB_TRY(pnb__fail_nomem(err, 256));
    if (pnb__path_is_file(path)) {
        PNB_TRY(pnb__json_load_file(&there, path, 0, err));
        status = compare_settings(run, there, now);
    } else if (pnb__path_is_dir(out)) {
        status = pnb__fail(err, PNB_EXISTS,
                           "%s is there and holds no experiment.json: name a new folder", out);
    } else {
        PNB_TRY(pnb__make_dirs(out, err));
        status = pnb__json_save_file(now, path, err);
    }
done:
    json_decref(now);
    json_decref(there);
    pnb__free(path);
    return status;
}

/* ---- results that are there ---- */

static pnb_status load_result(pnb__reproduction *run, size_t stage, size_t i, size_t *n_other)
{
    pnb_error *err = &run->app->err;
    char *path = NULL;
    json_t *there = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_path(run, "results", pnb__reproduce_stage(run, stage), seed_of(run, i),
                                ".json", &path));
    if (!pnb__path_is_file(path))
        goto done;
    PNB_TRY(pnb__json_load_file(&there, path, 0, err));
    const char *program = json_string_value(json_object_get(there, "program"));
    if (program != NULL && strcmp(program, run->program) == 0) {
        *place(run, stage, i) = there;
        there = NULL;
    } else {
        ++*n_other;
    }
done:
    json_decref(there);
    pnb__free(path);
    return status;
}

/* Of those that are asked for: all, or those that are there. */
static size_t count(const pnb__reproduction *run, bool is_there)
{
    size_t n = 0, n_seeds = run->opts->n_seeds;
    for (size_t k = 0; k < run->n_stages * n_seeds; k++)
        n += is_asked_for(run, k / n_seeds) && (!is_there || run->found[k] != NULL);
    return n;
}

static pnb_status load_results(pnb__reproduction *run)
{
    size_t n_other = 0;
    for (size_t i = 0; i < run->opts->n_seeds; i++)
        for (size_t k = 0; k < run->n_stages; k++) {
            pnb_status status = load_result(run, k, i, &n_other);
            if (status != PNB_OK)
                return status;
        }
    if (count(run, true) > 0)
        pnb__say(run->app, "%s: %zu of %zu results are there already and passed over",
                 run->opts->out, count(run, true), count(run, false));
    if (n_other > 0)
        pnb__say(run->app, "%zu results were made by another program and are made again", n_other);
    return PNB_OK;
}

/* ---- running ---- */

static void say_forecast(const pnb__reproduction *run)
{
    const pnb__experiment *x = run->about;
    size_t left = count(run, false) - count(run, true);
    double seconds = (double)left * (x->stage_s + x->step_s * (double)run->opts->n_steps);
    char text[16];
    pnb__format_duration(seconds, text);
    if (left == 0)
        return;
    if (run->opts->data == NULL)
        pnb__say(run->app, "%zu stages with their seeds to go: about %s on two cores", left, text);
    else
        pnb__say(run->app,
                 "%zu stages with their seeds to go; how long they take will be said behind the "
                 "first",
                 left);
}

static pnb_status save_result(const pnb__reproduction *run, size_t stage, uint64_t seed,
                              const json_t *found)
{
    char *path = NULL;
    pnb_status status =
        pnb__reproduce_path(run, "results", pnb__reproduce_stage(run, stage), seed, ".json", &path);
    if (status == PNB_OK)
        status = pnb__json_save_file(found, path, &run->app->err);
    pnb__free(path);
    return status;
}

static pnb_status run_stage(pnb__reproduction *run, size_t stage, size_t i)
{
    double begun = pnb__now_s();
    uint64_t seed = seed_of(run, i);
    json_t *found = json_pack("{s:s, s:s, s:I, s:o}", "program", run->program, "stage",
                              pnb__reproduce_stage(run, stage), "seed", (json_int_t)seed, "values",
                              json_object());
    pnb_status status = json_is_complete(found) ? PNB_OK : pnb__fail_nomem(&run->app->err, 64);
    if (status == PNB_OK)
        status = run->about->measure(run, stage, seed, found);
    if (status == PNB_OK) {
        json_object_set_new(found, "seconds", json_real(pnb__now_s() - begun));
        status = save_result(run, stage, seed, found);
    }
    if (status == PNB_OK)
        *place(run, stage, i) = found;
    else
        json_decref(found);
    if (status != PNB_OK && status != PNB_INTERRUPTED && status != PNB_NOMEM)
        pnb__error_prefix(&run->app->err, "%s, seed %llu", pnb__reproduce_stage(run, stage),
                          (unsigned long long)seed);
    return status;
}

/* Seed by seed, so that whole tables are there early. */
static pnb_status run_stages(pnb__reproduction *run)
{
    size_t n = count(run, false), before = count(run, true);
    double begun = pnb__now_s();
    for (size_t i = 0; i < run->opts->n_seeds; i++)
        for (size_t k = 0; k < run->n_stages; k++) {
            if (*place(run, k, i) != NULL || !is_asked_for(run, k))
                continue;
            if (pnb__is_interrupted(run->app))
                return pnb__fail(&run->app->err, PNB_INTERRUPTED,
                                 "interrupted; the same command goes on from here");
            pnb_status status = run_stage(run, k, i);
            if (status != PNB_OK)
                return status;
            size_t done = count(run, true);
            char left[16];
            pnb__format_duration(
                (pnb__now_s() - begun) / (double)(done - before) * (double)(n - done), left);
            pnb__say(run->app, "%s, seed %llu: measured; %zu of %zu, %s left",
                     pnb__reproduce_stage(run, k), (unsigned long long)seed_of(run, i), done, n,
                     left);
        }
    return PNB_OK;
}

/* ---- the whole ---- */

static pnb_status init(pnb__reproduction *run)
{
    const char *commit = pnb__source_commit();
    size_t most = run->opts->n_stages > 0 ? run->opts->n_stages : SIZE_MAX;
    while (run->n_stages < most && run->about->stages[run->n_stages] != NULL)
        run->n_stages++;
    run->program = pnb__format("penumbra %s %s", pnb_version(), commit != NULL ? commit : "");
    if (run->program == NULL)
        return pnb__fail_nomem(&run->app->err, 64);
    return PNB_ALLOC_ZERO(run->found, run->n_stages * run->opts->n_seeds, &run->app->err);
}

static void reset(pnb__reproduction *run)
{
    for (size_t k = 0; run->found != NULL && k < run->n_stages * run->opts->n_seeds; k++)
        json_decref(run->found[k]);
    pnb__free(run->found);
    pnb__free(run->program);
    pnb__reproduce_data_reset(run);
}

pnb_status pnb__reproduce(pnb__app *app, const pnb__experiment *about,
                          const pnb__reproduce_opts *opts, pnb__result *r)
{
    pnb__reproduction run = {.app = app, .about = about, .opts = opts};
    char *lock_path = NULL;
    int lock = -1;
    pnb_status status;
    PNB_TRY(init(&run));
    PNB_TRY(check_names(&run));
    PNB_TRY(pnb__reproduce_find_data(&run));
    PNB_TRY(open_folder(&run));
    lock_path = pnb__path_join(opts->out, ".lock");
    if (lock_path == NULL)
        PNB_TRY(pnb__fail_nomem(&app->err, strlen(opts->out)));
    PNB_TRY(pnb__lock_open(&lock, lock_path, &app->err));
    PNB_TRY(load_results(&run));
    say_forecast(&run);
    PNB_TRY(pnb__reproduce_data(&run));
    PNB_TRY(run_stages(&run));
    status = pnb__reproduce_show(&run, r);
done:
    pnb__lock_close(lock);
    pnb__free(lock_path);
    reset(&run);
    return status;
}
