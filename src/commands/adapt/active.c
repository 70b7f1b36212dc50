/* penumbra adapt active: the loop of GroVE's section 4.3 on frozen embeddings.
 *
 * A round labels the `count` most uncertain pictures that are left, a picture with all its
 * captions; then an adapter is fine-tuned contrastively on all that is labelled, from the start,
 * and R@1 of the test sets is taken. Pictures are chosen by adapters learned elsewhere, as in the
 * paper (on COCO, for CUB), by methods learned anew from what is labelled, or at random, which is
 * what all of them are compared with. Before the first round all strategies have the same pictures.
 *
 * How uncertain a picture is: the mean of its own rank and of the mean rank of its captions, of the
 * sides that the adapter gives an uncertainty to; ranks, because the units of two sides differ. */
#include "commands/adapt/active.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/adapt/fewer_pairs.h"
#include "commands/common/set_use.h"
#include "penumbra/retrieval.h"
#include "penumbra/selection.h"
#include "penumbra/statistics.h"
#include "penumbra/view.h"
#include "program/progress.h"
#include "sets/settle.h"

enum { STREAM_ROUND = 1000003 }; /* seeds of random choices lie so far apart */

typedef enum how { AT_RANDOM, BY_ADAPTER, BY_METHOD } how;

/* One round of one strategy with one seed. */
typedef struct point {
    const char *name;
    uint64_t seed;
    size_t round, n_labelled;
    double i2t, t2i;
} point;

typedef struct active_run {
    pnb__app *app;
    const pnb__adapt_active_opts *opts;
    pnb__pair_sets pool, test;
    size_t n_left; /* pictures of the pool that have a caption */
    point *points;
    size_t n;
} active_run;

/* ---- how uncertain the pictures of the pool are ---- */

/* rank (n), from 0 to 1, of the rows of a side; false in *has where it has no uncertainty. */
static pnb_status rank_side(const active_run *run, const pnb_adapter *a, pnb_adapter_side side,
                            double *rank, bool *has)
{
    const pnb_embeddings *set = side == PNB_ADAPTER_IMAGES ? run->pool.images : run->pool.texts;
    pnb_error *err = &run->app->err;
    pnb_embeddings *made = NULL;
    pnb_adapter_facts facts;
    double *u = NULL;
    pnb_status status = PNB_OK;
    pnb_adapter_describe(a, &facts);
    *has = facts.side[side].is_adapted && facts.family != PNB_POINT;
    if (!*has)
        return PNB_OK;
    PNB_TRY(pnb_adapter_apply(&made, a, side, set, err));
    PNB_TRY(pnb__row_uncertainty(made, PNB__UNCERTAINTY_AUTO, &u, err));
    PNB_TRY(pnb_average_ranks(u, made->n, rank, err));
    for (size_t i = 0; i < made->n; i++)
        rank[i] /= (double)made->n;
done:
    pnb_embeddings_free(made);
    pnb__free(u);
    return status;
}

static pnb_status fail_certain(pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "it gives no row an uncertainty, so that nothing can be chosen by it");
}

static pnb_status rank_images(const active_run *run, const pnb_adapter *a, double *u)
{
    const pnb_truth *t = run->pool.truth;
    double *of_texts = NULL;
    bool has_images = false, has_texts = false;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(of_texts, t->n_items, &run->app->err));
    PNB_TRY(rank_side(run, a, PNB_ADAPTER_IMAGES, u, &has_images));
    PNB_TRY(rank_side(run, a, PNB_ADAPTER_TEXTS, of_texts, &has_texts));
    if (!has_images && !has_texts)
        PNB_TRY(fail_certain(&run->app->err));
    for (size_t i = 0; i < t->n_queries; i++) {
        size_t n = t->offset[i + 1] - t->offset[i];
        double texts = 0.0;
        for (size_t p = t->offset[i]; p < t->offset[i + 1]; p++)
            texts += of_texts[t->item[p]] / (double)n;
        if (has_texts)
            u[i] = has_images ? 0.5 * (u[i] + texts) : texts;
    }
done:
    pnb__free(of_texts);
    return status;
}

/* ---- learning from what is labelled ---- */

static pnb_status learn(const active_run *run, const char *method, uint64_t seed,
                        const unsigned char *is_labelled, pnb_adapter **out)
{
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    pnb_truth *truth = NULL;
    pnb_status status;
    opts.seed = pnb_adapter_method_reads(method, "seed") ? seed : 0;
    opts.recipe =
        pnb_adapter_method_reads(method, "recipe") ? run->opts->recipe : PNB_ADAPT_RECIPE_AUTO;
    opts.steps = pnb_adapter_method_reads(method, "steps") ? run->opts->steps : 0;
    PNB_TRY(pnb__truth_of_drawn(&truth, run->pool.truth, is_labelled, &run->app->err));
    pnb__watching watching = {0};
    const pnb_adapter_data data = {.images = run->pool.images,
                                   .texts = run->pool.texts,
                                   .truth = truth,
                                   .watch = pnb__watch_begin(&watching, run->app, method, "steps")};
    status = pnb_adapter_fit(out, run->app->ctx, method, &data, &opts, &run->app->err);
    pnb__watch_end(&watching);
done:
    pnb_truth_free(truth);
    return status;
}

/* ---- R@1 ---- */

/* The side as the adapter makes it; as it is (NULL in *out) where it leaves it alone, or is NULL.
 */
static pnb_status adapted(const active_run *run, const pnb_adapter *a, pnb_adapter_side side,
                          pnb_embeddings **out)
{
    pnb_adapter_facts facts;
    if (a == NULL)
        return PNB_OK;
    pnb_adapter_describe(a, &facts);
    return facts.side[side].is_adapted
               ? pnb_adapter_apply(out, a, side,
                                   side == PNB_ADAPTER_IMAGES ? run->test.images : run->test.texts,
                                   &run->app->err)
               : PNB_OK;
}

static pnb_status measure(const active_run *run, const pnb_adapter *a, point *out)
{
    pnb_error *err = &run->app->err;
    pnb_embeddings *made[PNB_N_ADAPTER_SIDES] = {NULL, NULL};
    pnb_view images = {0}, texts = {0};
    pnb_search_opts search = pnb_search_opts_default();
    pnb_retrieval found;
    pnb_status status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(adapted(run, a, (pnb_adapter_side)s, &made[s]));
    const pnb_embeddings *i = made[0] != NULL ? made[0] : run->test.images;
    const pnb_embeddings *t = made[1] != NULL ? made[1] : run->test.texts;
    PNB_TRY(pnb_view_init(&images, i, err));
    PNB_TRY(pnb_view_init(&texts, t, err));
    search.measure = a == NULL ? PNB_MEASURE_MEAN : PNB__MEASURE_AUTO; /* of any length, frozen */
    PNB_TRY(pnb__measure_of_sets(&search.measure, i, t, err));
    PNB_TRY(pnb__measure_settle(&search.measure, search.measure, &images.rows, &texts.rows, err));
    const pnb_retrieval_job job = {.a = &images.rows,
                                   .b = &texts.rows,
                                   .truth = run->test.truth,
                                   .opts = &search,
                                   .k = (const size_t[]){1},
                                   .n_k = 1};
    PNB_TRY(pnb_retrieval_compute(run->app->ctx, &job, &found, NULL, NULL, err));
    out->i2t = found.forward.recall[0];
    out->t2i = found.backward.recall[0];
done:
    pnb_view_reset(&images);
    pnb_view_reset(&texts);
    pnb_embeddings_free(made[0]);
    pnb_embeddings_free(made[1]);
    return status;
}

/* ---- the loop ---- */

typedef struct strategy {
    how by;
    const char *name;
    pnb_adapter *adapter; /* BY_ADAPTER, loaded */
    double *u;            /* (pictures) room */
    unsigned char *taken; /* (pictures) labelled, or without a caption */
    unsigned char *is_labelled;
    size_t *row; /* room for the pictures of a round */
} strategy;

static pnb_status choose(const active_run *run, const strategy *s, uint64_t seed, size_t round,
                         size_t count)
{
    size_t n = run->pool.images->n;
    pnb_error *err = &run->app->err;
    pnb_adapter *learned = NULL;
    pnb_status status;
    if (s->by == AT_RANDOM || round == 0)
        return pnb_select_random(n, s->taken, count, seed + round * STREAM_ROUND, s->row, err);
    if (s->by == BY_METHOD) {
        PNB_TRY(learn(run, s->name, seed, s->is_labelled, &learned));
        PNB_TRY(rank_images(run, learned, s->u));
    }
    status = pnb_select_uncertain(s->u, n, s->taken, count, s->row, err);
done:
    pnb_adapter_free(learned);
    return status;
}

static pnb_status label(const active_run *run, strategy *s, uint64_t seed, size_t round,
                        size_t count)
{
    pnb_status status = count > 0 ? choose(run, s, seed, round, count) : PNB_OK;
    for (size_t k = 0; status == PNB_OK && k < count; k++)
        s->taken[s->row[k]] = s->is_labelled[s->row[k]] = 1;
    return status;
}

static pnb_status add_point(active_run *run, const strategy *s, uint64_t seed, size_t round)
{
    point *p = &run->points[run->n];
    pnb_adapter *tuned = NULL;
    pnb_status status = PNB_OK;
    *p = (point){.name = s->name, .seed = seed, .round = round};
    for (size_t i = 0; i < run->pool.images->n; i++)
        p->n_labelled += s->is_labelled[i];
    if (p->n_labelled > 0)
        PNB_TRY(learn(run, run->opts->tune, seed, s->is_labelled, &tuned));
    PNB_TRY(measure(run, tuned, p));
    run->n++;
    pnb__say(run->app, "%s, seed %llu: %zu labelled, R@1 %.4f and %.4f", s->name,
             (unsigned long long)seed, p->n_labelled, p->i2t, p->t2i);
done:
    pnb_adapter_free(tuned);
    return status;
}

static pnb_status run_seed(active_run *run, strategy *s, uint64_t seed)
{
    const pnb_truth *t = run->pool.truth;
    pnb_status status;
    for (size_t i = 0; i < t->n_queries; i++) {
        s->taken[i] = t->offset[i] == t->offset[i + 1];
        s->is_labelled[i] = 0;
    }
    PNB_TRY(label(run, s, seed, 0, run->opts->start));
    PNB_TRY(add_point(run, s, seed, 0));
    for (size_t round = 1; round <= run->opts->n_rounds; round++) {
        PNB_TRY(label(run, s, seed, round, run->opts->count));
        PNB_TRY(add_point(run, s, seed, round));
    }
done:
    return status;
}

/* What chooses is read, and asked for an uncertainty, before anything is learned. */
static pnb_status open_strategy(const active_run *run, strategy *s)
{
    const pnb__adapt_active_opts *o = run->opts;
    pnb_error *err = &run->app->err;
    size_t n = run->pool.images->n;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(s->u, n, err));
    PNB_TRY(PNB_ALLOC(s->taken, n, err));
    PNB_TRY(PNB_ALLOC(s->is_labelled, n, err));
    PNB_TRY(PNB_ALLOC(s->row, PNB_MAX(o->count, o->start), err));
    if (s->by == BY_METHOD) {
        const pnb_adapter_about *about = pnb_adapter_method_find(s->name);
        if (about == NULL)
            return pnb__fail(err, PNB_NOT_FOUND,
                             "no such method: `penumbra adapt methods` lists them");
        if (about->family == PNB_POINT)
            return fail_certain(err);
    }
    if (s->by == BY_ADAPTER) {
        PNB_TRY(pnb_adapter_load(&s->adapter, run->app->ctx, s->name, err));
        PNB_TRY(rank_images(run, s->adapter, s->u));
    }
done:
    return status;
}

static void strategy_reset(strategy *s)
{
    pnb_adapter_free(s->adapter);
    pnb__free(s->u);
    pnb__free(s->taken);
    pnb__free(s->is_labelled);
    pnb__free(s->row);
}

static pnb_status name_strategy(const active_run *run, const strategy *s, pnb_status status)
{
    if (status != PNB_OK && status != PNB_INTERRUPTED)
        pnb__error_prefix(&run->app->err, "%s", s->name);
    return status;
}

static pnb_status run_strategy(active_run *run, strategy *s)
{
    pnb_status status = PNB_OK;
    for (size_t k = 0; k < run->opts->n_seeds && status == PNB_OK; k++)
        status = run_seed(run, s, run->opts->seed + k);
    return name_strategy(run, s, status);
}

/* ---- showing ---- */

/* Means over seeds and all rounds behind the first point: the height of the curve. */
static void put_summary(const active_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"chosen_by", "chosen by"},
                                          {"i2t_r1", "i2t R@1"},
                                          {"t2i_r1", "t2i R@1"},
                                          {"i2t_to_random", "to random"},
                                          {"t2i_to_random", "to random"}};
    double base[2] = {0, 0};
    size_t per = run->opts->n_seeds * (run->opts->n_rounds + 1);
    pnb__result_table(r, "curves", "means over rounds and seeds", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < run->n; i += per) {
        double mean[2] = {0, 0}, n = (double)(run->opts->n_seeds * run->opts->n_rounds);
        for (size_t k = i; k < i + per; k++) {
            mean[0] += run->points[k].round > 0 ? run->points[k].i2t / n : 0.0;
            mean[1] += run->points[k].round > 0 ? run->points[k].t2i / n : 0.0;
        }
        for (int d = 0; d < 2 && i == 0; d++)
            base[d] = mean[d];
        pnb__result_row(r, "%s %.4f %.4f %.4f %.4f", run->points[i].name, mean[0], mean[1],
                        mean[0] - base[0], mean[1] - base[1]);
    }
}

static void put_points(const active_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"chosen_by", "chosen by"}, {"seed", "seed"},
                                          {"round", "round"},         {"n_labelled", "labelled"},
                                          {"i2t_r1", "i2t R@1"},      {"t2i_r1", "t2i R@1"}};
    pnb__result_table(r, "rounds", "rounds", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < run->n; i++) {
        const point *p = &run->points[i];
        pnb__result_row(r, "%s %zu %zu %zu %.4f %.4f", p->name, (size_t)p->seed, p->round,
                        p->n_labelled, p->i2t, p->t2i);
    }
}

static pnb_status save_csv(const active_run *run, const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    pnb__buf_puts(&text, "chosen_by,seed,round,n_labelled,i2t_r1,t2i_r1\n");
    for (size_t i = 0; i < run->n; i++) {
        const point *p = &run->points[i];
        pnb__buf_printf(&text, "%s,%llu,%zu,%zu,%.6f,%.6f\n", p->name, (unsigned long long)p->seed,
                        p->round, p->n_labelled, p->i2t, p->t2i);
    }
    return pnb__buf_write(&text, path, err);
}

/* ---- the whole ---- */

static pnb_status check_pool(active_run *run)
{
    const pnb__adapt_active_opts *o = run->opts;
    const pnb_truth *t = run->pool.truth;
    size_t wanted = o->start + o->count * o->n_rounds;
    for (size_t i = 0; i < t->n_queries; i++)
        run->n_left += t->offset[i + 1] > t->offset[i];
    if (wanted > run->n_left)
        return pnb__fail(&run->app->err, PNB_ARG,
                         "%zu pictures are wanted over %zu rounds, and %zu of the pool have a "
                         "caption",
                         wanted, o->n_rounds, run->n_left);
    return PNB_OK;
}

static size_t count_strategies(const pnb__adapt_active_opts *o)
{
    return (o->leaves_random_out ? 0 : 1) + o->adapters.n + o->methods.n;
}

/* The i-th: random choice first, adapters, methods. */
static strategy strategy_at(const pnb__adapt_active_opts *o, size_t i)
{
    i += o->leaves_random_out ? 1 : 0;
    if (i == 0)
        return (strategy){.by = AT_RANDOM, .name = "random"};
    if (i <= o->adapters.n)
        return (strategy){.by = BY_ADAPTER, .name = o->adapters.items[i - 1]};
    return (strategy){.by = BY_METHOD, .name = o->methods.items[i - 1 - o->adapters.n]};
}

static pnb_status run_all(active_run *run)
{
    size_t n = count_strategies(run->opts);
    strategy *all = NULL;
    pnb_status status = PNB_ALLOC_ZERO(all, n, &run->app->err);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        all[i] = strategy_at(run->opts, i);
        status = name_strategy(run, &all[i], open_strategy(run, &all[i]));
    }
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        status = run_strategy(run, &all[i]);
    for (size_t i = 0; all != NULL && i < n; i++)
        strategy_reset(&all[i]);
    pnb__free(all);
    return status;
}

pnb_status pnb__adapt_active(pnb__app *app, const pnb__adapt_active_opts *o, pnb__result *r)
{
    active_run run = {.app = app, .opts = o};
    size_t n = count_strategies(o) * o->n_seeds * (o->n_rounds + 1);
    pnb_status status;
    PNB_TRY(pnb__pair_load(app, &o->pool, &o->read, o->split, &run.pool));
    PNB_TRY(pnb__pair_load(app, &o->test, &o->read, o->test_split, &run.test));
    PNB_TRY(pnb__pair_align(&run.pool, "--truth", &app->err));
    PNB_TRY(pnb__pair_align(&run.test, "--test-truth", &app->err));
    PNB_TRY(check_pool(&run));
    PNB_TRY(PNB_ALLOC(run.points, n, &app->err));
    PNB_TRY(run_all(&run));
    pnb__result_int(r, "n_pool", "pictures of the pool", (int64_t)run.n_left);
    pnb__result_text(r, "tuned", "fine-tuned", o->tune);
    put_summary(&run, r);
    put_points(&run, r);
    if (o->csv != NULL)
        status = save_csv(&run, o->csv, &app->err);
done:
    pnb__free(run.points);
    pnb__pair_reset(&run.pool);
    pnb__pair_reset(&run.test);
    return status;
}
