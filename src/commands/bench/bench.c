/* Repeats a piece of work until it was measured long enough, and reports its speed.
 *
 * The sgemm rate is measured before and after on one square product that fits the caches well; its
 * best is the machine's rate, so `share` says how much of the possible arithmetic was used. One
 * run of the work goes first and is not counted: it plans graphs and touches pages. */
#include "commands/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "commands/common/model_path.h"
#include "commands/common/product_rate.h"
#include "eval/sorted.h"
#include "models/model.h"

/* The first call plans, the second packs the weights it found used before. */
enum { MAX_REPEATS = 10000, N_WARM_UPS = 2 };

/* ---- times ---- */

pnb__bench_times pnb__bench_summarise(double *seconds, size_t n)
{
    qsort(seconds, n, sizeof *seconds, pnb__compare_doubles);
    double median = n % 2 == 1 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]);
    double p99 = seconds[PNB_MIN(n - 1, n * 99 / 100)];
    return (pnb__bench_times){median, p99, seconds[0], seconds[n - 1], n};
}

pnb_status pnb__bench_measure(pnb__app *app, const pnb__bench_opts *o, pnb__bench_fn work,
                              void *user, pnb__bench_times *out)
{
    double *seconds = pnb__alloc_array(MAX_REPEATS, sizeof *seconds);
    size_t n = 0;
    if (seconds == NULL)
        return pnb__fail_nomem(&app->err, MAX_REPEATS * sizeof *seconds);
    pnb_status status = PNB_OK;
    for (int i = 0; status == PNB_OK && i < N_WARM_UPS; i++)
        status = work(user, &app->err);
    double start = pnb__now_s();
    while (status == PNB_OK && n < MAX_REPEATS &&
           (n < o->min_repeats || pnb__now_s() - start < o->seconds)) {
        if (pnb__is_interrupted(app)) {
            status = pnb__fail(&app->err, PNB_INTERRUPTED, "after %zu repeats", n);
            break;
        }
        if (o->between != NULL)
            o->between(user);
        double before = pnb__now_s();
        status = work(user, &app->err);
        seconds[n++] = pnb__now_s() - before;
    }
    if (status == PNB_OK)
        *out = pnb__bench_summarise(seconds, n);
    pnb__free(seconds);
    return status;
}

double pnb__bench_sgemm(const pnb_ctx *ctx, pnb_isa isa, double seconds)
{
    double rate = NAN;
    pnb_ctx with = *ctx;
    with.isa = isa;
    pnb__product_rate(&with, PNB__PRODUCT_F32, seconds > 0 ? 5 : 1, &rate, NULL);
    return rate;
}

double pnb__bench_peak_bytes(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024.0;
}

static void report(const pnb__app *app, const pnb__bench_times *t, const pnb__bench_amount *each,
                   double sgemm, pnb__result *r)
{
    double gflops = each->flops / t->median_s * 1e-9;
    pnb__result_int(r, "threads", "threads", pnb_ctx_n_threads(app->ctx));
    pnb__result_int(r, "repeats", "repeats", (int64_t)t->n);
    pnb__result_real(r, "median_s", "median seconds", t->median_s, 5);
    pnb__result_real(r, "p99_s", "seconds of 99 in 100", t->p99_s, 5);
    pnb__result_real(r, "min_s", "least seconds", t->min_s, 5);
    pnb__result_real(r, "max_s", "most seconds", t->max_s, 5);
    pnb__result_real(r, "items_per_s", "items a second", (double)each->n_items / t->median_s, 2);
    pnb__result_real(r, "gflops", "GFLOP/s", each->flops > 0 ? gflops : NAN, 1);
    pnb__result_real(r, "sgemm_gflops", "GFLOP/s of sgemm", sgemm, 1);
    pnb__result_real(r, "share", "share of sgemm", each->flops > 0 ? gflops / sgemm : NAN, 3);
    pnb__result_real(r, "peak_rss_mb", "peak memory in MB", pnb__bench_peak_bytes() / 1e6, 1);
}

pnb_status pnb__bench_run(pnb__app *app, const pnb__bench_opts *o, pnb__bench_fn work, void *user,
                          const pnb__bench_amount *each, pnb__result *r)
{
    pnb__bench_times times = {0};
    double sgemm = pnb__bench_sgemm(app->ctx, app->ctx->isa, o->seconds);
    pnb_status status = pnb__bench_measure(app, o, work, user, &times);
    if (status != PNB_OK)
        return status;
    sgemm = fmax(sgemm, pnb__bench_sgemm(app->ctx, app->ctx->isa, o->seconds));
    report(app, &times, each, sgemm, r);
    return PNB_OK;
}

/* ---- encode ---- */

typedef struct encode_work {
    pnb_model *model;
    const pnb_model_info *info;
    bool is_text;
    size_t batch;
    float *pixels;
    int32_t *ids;
    pnb_embeddings *rows; /* what comes out */
} encode_work;

static pnb_status encode_once(void *user, pnb_error *err)
{
    const encode_work *w = user;
    const pnb_encode_out out = pnb__encode_rows(w->rows, 0);
    if (w->is_text)
        return pnb_model_encode_text(w->model, w->ids, w->batch, w->info->text.context_length, &out,
                                     err);
    return pnb_model_encode_image(w->model, w->pixels, w->batch, &out, err);
}

/* The tower alone: inputs lie where it reads them, results stay. */
static pnb_status run_again(void *user, pnb_error *err)
{
    const encode_work *w = user;
    return pnb__model_run_again(w->model, w->is_text, err);
}

/* ---- where a run spends its time ---- */

enum { MOST_KINDS = 128, STEP_RUNS = 3 };

typedef struct step_kind {
    char what[192];
    size_t n;
    double seconds;
} step_kind;

typedef struct step_times {
    step_kind kinds[MOST_KINDS];
    size_t n;
    double seconds;
} step_times;

/* Steps of one shape are one row; more shapes than there is room for end in the last. */
static void add_step(void *user, const char *what, double seconds)
{
    step_times *t = user;
    size_t i = 0;
    while (i < t->n && strcmp(t->kinds[i].what, what) != 0)
        i++;
    if (i == t->n && t->n < MOST_KINDS) {
        snprintf(t->kinds[i].what, sizeof t->kinds[i].what, "%s", what);
        t->n++;
    }
    i = PNB_MIN(i, (size_t)MOST_KINDS - 1);
    t->kinds[i].n++;
    t->kinds[i].seconds += seconds;
    t->seconds += seconds;
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const step_kind *)a)->seconds, y = ((const step_kind *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static pnb_status show_steps(const encode_work *w, pnb__result *r, pnb_error *err)
{
    static const pnb__column columns[] = {
        {"step", "step"}, {"n", "times"}, {"ms", "ms"}, {"share", "share"}};
    step_times *t = pnb__alloc_zero(1, sizeof *t);
    pnb_status status = t != NULL ? PNB_OK : pnb__fail_nomem(err, sizeof *t);
    for (int i = 0; i < STEP_RUNS && status == PNB_OK; i++)
        status = pnb__model_time_steps(w->model, w->is_text, add_step, t, err);
    if (status == PNB_OK) {
        qsort(t->kinds, t->n, sizeof t->kinds[0], slowest_first);
        pnb__result_table(r, "steps", "steps of one run, each waited for", columns,
                          PNB_COUNT(columns));
    }
    for (size_t i = 0; status == PNB_OK && i < t->n; i++)
        pnb__result_row(r, "%s %zu %.4f %.3f", t->kinds[i].what, t->kinds[i].n / STEP_RUNS,
                        1e3 * t->kinds[i].seconds / STEP_RUNS, t->kinds[i].seconds / t->seconds);
    pnb__free(t);
    return status;
}

/* Noise of the scale real inputs have. */
static pnb_status make_inputs(encode_work *w, uint64_t seed, pnb_error *err)
{
    const pnb_tower_info *v = &w->info->vision;
    size_t n_pixels = w->is_text ? 0 : w->batch * 3 * v->image_width * v->image_height;
    size_t n_ids = w->is_text ? w->batch * w->info->text.context_length : 0;
    pnb_family family = w->is_text ? w->info->text.family : v->family;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    if (PNB_ALLOC(w->pixels, n_pixels + 1, err) != PNB_OK ||
        PNB_ALLOC(w->ids, n_ids + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n_pixels; i++)
        w->pixels[i] = (float)pnb__rng_normal(&rng);
    for (size_t i = 0; i < n_ids; i++)
        w->ids[i] = (int32_t)pnb__rng_below(&rng, w->info->text.vocab_size);
    return pnb_embeddings_create(&w->rows, family, w->batch, w->info->embed_dim, err);
}

static pnb_status open_model(pnb__app *app, const char *name, pnb_model **out)
{
    char *path = NULL;
    pnb_status status = pnb__model_path(app, name, &path, &app->err);
    if (status == PNB_OK && pnb__path_is_dir(path))
        status = pnb_model_load(out, app->ctx, path, &app->err);
    else if (status == PNB_OK)
        status = pnb_model_init(out, app->ctx, path, (uint64_t)app->common.seed, &app->err);
    pnb__free(path);
    return status;
}

pnb_status pnb__bench_encode(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__bench_opts *o = args;
    encode_work w = {.is_text = o->is_text, .batch = o->batch_size};
    pnb_status status;
    PNB_TRY(open_model(app, o->model, &w.model));
    PNB_TRY(pnb_model_set_precision(w.model, o->precision, &app->err));
    w.info = pnb_model_get_info(w.model);
    PNB_TRY(make_inputs(&w, (uint64_t)app->common.seed, &app->err));
    pnb__result_text(r, "what", "what", o->is_text ? "encode text" : "encode image");
    pnb__result_text(r, "model", "model", o->model);
    pnb__result_int(r, "batch", "batch", (int64_t)o->batch_size);
    pnb__result_text(r, "precision", "precision", pnb_precision_name(o->precision));
    pnb__bench_amount each = {o->batch_size, pnb_model_flops(w.model, o->is_text, o->batch_size)};
    for (int i = 0; i < 3 && o->resident; i++) /* packed and, by a device, noted by then */
        PNB_TRY(encode_once(&w, &app->err));
    pnb__result_flag(r, "resident", "inputs and results stay", o->resident);
    PNB_TRY(pnb__bench_run(app, o, o->resident ? run_again : encode_once, &w, &each, r));
    if (o->steps)
        status = show_steps(&w, r, &app->err);
done:
    pnb__free(w.pixels);
    pnb__free(w.ids);
    pnb_embeddings_free(w.rows);
    pnb_model_free(w.model);
    return status;
}
