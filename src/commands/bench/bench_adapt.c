/* Steps of an adapter's own training, told apart by its watch.
 *
 * pnb_adapter_fit learns as `adapt train` does (objective, optimiser, sampling of pairs), and its
 * watch is asked between two steps: what lies between two questions is a step. The watch says stop
 * when enough was measured, which leaves no adapter: a second, short fit makes the one that is
 * applied. A method whose watch is never asked has no steps, and its whole fit is timed.
 *
 * Pairs are made: captions around their picture, pictures around one of a few concepts, so that
 * what iterates until it has converged has something to find. Captions have lengths of their own.
 */
#include "commands/bench/bench_adapt.h"

#include <string.h>

#include "base/base.h"
#include "commands/adapt/adapt.h"
#include "commands/bench/bench_search.h"

enum { MOST_STEPS = 10000, LAST_STEPS = 2, N_CONCEPTS = 64, N_STREAMS = 3 };
enum { INDUCING = 250, LATENT_DIM = 5 }; /* grove's own, for the result to name */
#define CONCEPT_SEED 0x3d4c9b11ULL       /* added to the seed: directions of the concepts */

typedef struct adapt_bench {
    pnb__app *app;
    const pnb__bench_adapt_opts *o;
    size_t n_pairs;
    pnb_embeddings *images, *texts, *others; /* others: a batch of captions not learned from */
    pnb_truth *truth;
    pnb_adapter *adapter;
    double *seconds; /* [MOST_STEPS] of the steps, without the first */
    size_t n_calls, n_steps;
    double last_s, first_s; /* when the watch was asked last, and when steps began to count */
    double fit_s;           /* of the first fit, whole or not */
} adapt_bench;

/* ---- made pairs ---- */

static void add_scaled(float *to, const float *x, size_t dim, float scale)
{
    for (size_t d = 0; d < dim; d++)
        to[d] += scale * x[d];
}

/* Row i of a stream: 0 has pictures, any other one a caption of each. */
static void fill_row(const adapt_bench *b, uint64_t stream, size_t i, float *room, float *out)
{
    uint64_t seed = (uint64_t)b->app->common.seed;
    size_t dim = b->o->dim;
    pnb__bench_fill_row(seed + CONCEPT_SEED, i % N_CONCEPTS, dim, out, NULL);
    pnb__bench_fill_row(seed + N_STREAMS, i, dim, room, NULL);
    add_scaled(out, room, dim, 0.7f);
    if (stream == 0)
        return;
    pnb__bench_fill_row(seed + stream, i, dim, room, NULL);
    add_scaled(out, room, dim, 0.5f);
}

static pnb_status make_set(adapt_bench *b, pnb_embeddings **out, uint64_t stream, size_t first,
                           size_t n)
{
    float *room = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(room, b->o->dim, &b->app->err));
    PNB_TRY(pnb_embeddings_create(out, PNB_POINT, n, b->o->dim, &b->app->err));
    snprintf((*out)->info.modality, sizeof(*out)->info.modality, "%s",
             stream == 0 ? "image" : "text");
    for (size_t i = 0; i < n; i++)
        fill_row(b, stream, first + i, room, (*out)->mean + i * b->o->dim);
done:
    pnb__free(room);
    return status;
}

static pnb_status make_pairs(adapt_bench *b)
{
    size_t batch = b->o->times.batch_size;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(b->seconds, MOST_STEPS, &b->app->err));
    PNB_TRY(make_set(b, &b->images, 0, 0, b->n_pairs));
    PNB_TRY(make_set(b, &b->texts, 1, 0, b->n_pairs));
    PNB_TRY(make_set(b, &b->others, 2, b->n_pairs, batch));
    status = pnb_truth_create_aligned(&b->truth, b->n_pairs, &b->app->err);
done:
    return status;
}

/* ---- learning ---- */

static bool count_step(void *user, size_t done, size_t total)
{
    adapt_bench *b = user;
    double now = pnb__now_s();
    (void)done, (void)total;
    if (b->n_calls == 1)
        b->first_s = now;
    if (b->n_calls > 1 && b->n_steps < MOST_STEPS)
        b->seconds[b->n_steps++] = now - b->last_s;
    b->n_calls++;
    b->last_s = now;
    bool is_enough =
        b->n_steps >= b->o->times.min_repeats && now - b->first_s >= b->o->times.seconds;
    return !pnb__is_interrupted(b->app) && !is_enough && b->n_steps < MOST_STEPS;
}

static pnb_adapter_opts options_of(const adapt_bench *b, int64_t steps)
{
    pnb_adapter_opts o = b->o->options;
    const char *method = b->o->method;
    int64_t batch = (int64_t)b->o->times.batch_size;
    if (pnb_adapter_method_reads(method, "batch_size"))
        o.batch_size = batch;
    if (pnb_adapter_method_reads(method, "seed"))
        o.seed = (uint64_t)b->app->common.seed;
    if (pnb_adapter_method_reads(method, "steps"))
        o.steps = steps;
    else if (pnb_adapter_method_reads(method, "epochs"))
        o.epochs = 1 + steps * batch / (int64_t)b->n_pairs;
    if (!pnb_adapter_method_reads(method,
                                  "recipe")) /* the only fallback that is no method's default */
        o.recipe = PNB_ADAPT_RECIPE_AUTO;
    if (pnb_adapter_method_reads(method, "inducing") && o.inducing == 0)
        o.inducing = PNB_MIN((int64_t)INDUCING, (int64_t)b->n_pairs);
    if (pnb_adapter_method_reads(method, "latent_dim") && o.latent_dim == 0)
        o.latent_dim = LATENT_DIM;
    return o;
}

static pnb_status fit(adapt_bench *b, int64_t steps, const pnb_watch *watch)
{
    const pnb_adapter_opts options = options_of(b, steps);
    pnb_adapter_data data = {.images = b->images, .texts = b->texts, .truth = b->truth};
    if (watch != NULL)
        data.watch = *watch;
    return pnb_adapter_fit(&b->adapter, b->app->ctx, b->o->method, &data, &options, &b->app->err);
}

static pnb_status learn(adapt_bench *b)
{
    const pnb_watch watch = {.step = count_step, .user = b};
    double start = pnb__now_s();
    pnb_status status = fit(b, MOST_STEPS + 2, &watch);
    b->fit_s = pnb__now_s() - start;
    if (status != PNB_INTERRUPTED || pnb__is_interrupted(b->app))
        return status;
    b->app->err = (pnb_error){0};
    return fit(b, LAST_STEPS, NULL);
}

static pnb_status apply_once(void *user, pnb_error *err)
{
    const adapt_bench *b = user;
    pnb_embeddings *made = NULL;
    pnb_status status = pnb_adapter_apply(&made, b->adapter, PNB_ADAPTER_TEXTS, b->others, err);
    pnb_embeddings_free(made);
    return status;
}

/* ---- the result ---- */

static void put_what(const adapt_bench *b, pnb__result *r)
{
    const pnb__bench_adapt_opts *o = b->o;
    pnb_adapter_facts facts;
    pnb_adapter_describe(b->adapter, &facts);
    pnb__result_text(r, "what", "what", b->n_steps > 0 ? "adapter, a training step" : "adapter");
    pnb__result_text(r, "method", "method", o->method);
    pnb__result_int(r, "batch", "batch",
                    b->n_steps > 0 ? facts.opts->batch_size : (int64_t)o->times.batch_size);
    pnb__result_int(r, "dim", "width", (int64_t)o->dim);
    pnb__result_int(r, "pairs", "pairs", (int64_t)b->n_pairs);
    if (pnb_adapter_method_reads(o->method, "hidden"))
        pnb__result_int(r, "hidden", "width of hidden layers", facts.opts->hidden);
    if (pnb_adapter_method_reads(o->method, "inducing"))
        pnb__result_int(r, "inducing", "inducing points", facts.opts->inducing);
    if (pnb_adapter_method_reads(o->method, "latent_dim"))
        pnb__result_int(r, "latent", "axes of the latents", facts.opts->latent_dim);
    pnb__result_int(r, "threads", "threads", pnb_ctx_n_threads(b->app->ctx));
}

static void put_times(adapt_bench *b, const pnb__bench_times *applied, pnb__result *r)
{
    if (b->n_steps > 0) {
        const pnb__bench_times t = pnb__bench_summarise(b->seconds, b->n_steps);
        pnb__result_int(r, "repeats", "steps timed", (int64_t)t.n);
        pnb__result_real(r, "median_s", "median seconds a step", t.median_s, 6);
        pnb__result_real(r, "min_s", "least seconds", t.min_s, 6);
        pnb__result_real(r, "max_s", "most seconds", t.max_s, 6);
        pnb__result_real(r, "items_per_s", "pairs a second",
                         (double)b->o->times.batch_size / t.median_s, 1);
    } else {
        pnb__result_real(r, "fit_s", "seconds to learn from all pairs", b->fit_s, 6);
    }
    pnb__result_int(r, "infer_repeats", "times applied", (int64_t)applied->n);
    pnb__result_real(r, "infer_s", "median seconds to apply it to a batch", applied->median_s, 6);
    pnb__result_real(r, "peak_rss_mb", "peak memory in MB", pnb__bench_peak_bytes() / 1e6, 1);
}

static pnb_status check_size(pnb__app *app, const pnb__bench_adapt_opts *o, size_t n_pairs)
{
    return o->times.batch_size <= n_pairs ? PNB_OK
                                          : pnb__usage(app, "--batch %zu is more than --pairs %zu",
                                                       o->times.batch_size, n_pairs);
}

pnb_status pnb__bench_adapt(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__bench_adapt_opts *o = args;
    adapt_bench b = {.app = app, .o = o, .n_pairs = o->n_pairs};
    pnb__bench_times applied = {0};
    pnb_status status;
    if (b.n_pairs == 0)
        b.n_pairs = PNB_MAX(4 * o->times.batch_size, (size_t)PNB__BENCH_ADAPT_PAIRS);
    status = check_size(app, o, b.n_pairs);
    if (status != PNB_OK)
        return status;
    PNB_TRY(make_pairs(&b));
    PNB_TRY(learn(&b));
    PNB_TRY(pnb__bench_measure(app, &o->times, apply_once, &b, &applied));
    put_what(&b, r);
    put_times(&b, &applied, r);
done:
    pnb_adapter_free(b.adapter);
    pnb_truth_free(b.truth);
    pnb_embeddings_free(b.images);
    pnb_embeddings_free(b.texts);
    pnb_embeddings_free(b.others);
    pnb__free(b.seconds);
    return status;
}
