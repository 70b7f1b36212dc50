/* GroVE's Figure 4: which pictures to label next, by the uncertainty of methods learned elsewhere.
 *
 * The pool is the train sets. In each of five rounds an eighth of it is labelled (the paper: 500
 * of CUB), a head of the frozen rows is fine-tuned on all that is labelled, and R@1 of the test
 * sets is taken: adapt active's loop. Methods that choose were learned on other pictures, as the
 * paper's were on COCO; without such sets they are learned anew from what is labelled, behind a
 * first lot that is drawn. A stage is one way to choose. The paper prints curves and no figures. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/adapt/active.h"
#include "commands/common/set_use.h"
#include "commands/reproduce/reproduce.h"
#include "program/progress.h"
#include "report/html.h"

/* A head that is tuned longer on so few pairs forgets what the frozen rows know. */
enum { N_ROUNDS = 5, LOT = 8, SIDES = 2, TUNED_SHARE = 10 };
#define TUNED "deterministic"

static const pnb__figure figures[] = {{"i2t_r1", "mean i2t R@1", 100, 1},
                                      {"t2i_r1", "mean t2i R@1", 100, 1},
                                      {"i2t_last", "last i2t R@1", 100, 1},
                                      {"t2i_last", "last t2i R@1", 100, 1}};

/* X(key, label) of the ways to choose; the first is no method. */
#define WAYS(X)                                                                                    \
    X("random", "at random")                                                                       \
    X("pfe", "PFE")                                                                                \
    X("pcme", "PCME")                                                                              \
    X("pcmepp", "PCME++")                                                                          \
    X("probvlm", "ProbVLM")                                                                        \
    X("grove", "GroVE")
#define ROW(key, label) {key, label},
static const pnb__repro_row rows[] = {WAYS(ROW)};
#define STAGE(key, label) key,
static const char *const stages[] = {WAYS(STAGE) NULL};
static const pnb__paper_line lines[] = {
    {"grove", "Figure 4, CUB: drawn", {NAN, NAN, NAN, NAN}, false, {0}}};

static const pnb__repro_claim claims[] = {
    {"grove", "random", "i2t_r1", "what GroVE chooses is worth more than random pictures"},
    {"grove", "random", "t2i_r1", "what GroVE chooses is worth more than random pictures"},
    {"grove", "probvlm", "i2t_r1", "and more than what ProbVLM chooses"},
    {"grove", "probvlm", "t2i_r1", "and more than what ProbVLM chooses"},
    {"grove", "pcmepp", "i2t_r1", "and more than what PCME++ chooses"},
    {"grove", "pcmepp", "t2i_r1", "and more than what PCME++ chooses"},
};

static const char *const differs[] = {
    "The paper: CLIP fine-tuned on CUB, methods learned on COCO; it draws the curves and prints no "
    "figures. On the built-in sets methods are learned on other pictures and captions of the same "
    "concepts.",
    "Frozen rows are tuned by a head on the captions (`adapt train --method " TUNED
    "`) for a tenth of "
    "the steps that methods have, not by the weights of CLIP. Each lot is an eighth of the pool.",
    "Of your own sets elsewhere/ with truth/elsewhere.pairs is what methods are learned on; "
    "without "
    "it they are learned from what is labelled, behind a first lot at random.",
    "How uncertain a picture is: the mean of its own rank and the mean rank of its captions.",
    NULL};

/* ---- learning elsewhere ---- */

static pnb_status fit(pnb__reproduction *run, const pnb__pair_sets *from, const char *method,
                      uint64_t seed, pnb_adapter **out)
{
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    pnb__watching watching = {0};
    const pnb_adapter_data data = {.images = from->images,
                                   .texts = from->texts,
                                   .truth = from->truth,
                                   .watch = pnb__watch_begin(&watching, run->app, method, "steps")};
    opts.seed = seed;
    opts.steps = run->opts->n_steps;
    pnb_status status = pnb_adapter_fit(out, run->app->ctx, method, &data, &opts, &run->app->err);
    pnb__watch_end(&watching);
    return status;
}

/* Folder of an adapter learned elsewhere, to be freed. */
static pnb_status learn_elsewhere(pnb__reproduction *run, const char *method, uint64_t seed,
                                  char **dir)
{
    const pnb_truth_read_opts read = pnb_truth_read_opts_default();
    pnb__pair_sets from = {NULL, NULL, NULL};
    pnb_adapter *adapter = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_path(run, "adapters", method, seed, "", dir));
    PNB_TRY(pnb__pair_load(run->app, &run->elsewhere, &read, NULL, &from));
    PNB_TRY(fit(run, &from, method, seed, &adapter));
    status = pnb_adapter_save(adapter, *dir, &run->app->err);
done:
    pnb_adapter_free(adapter);
    pnb__pair_reset(&from);
    return status;
}

/* ---- a way to choose ---- */

/* Pictures of a round. */
static pnb_status lot_of(pnb__reproduction *run, size_t *count)
{
    pnb_embeddings *pool = NULL;
    pnb_status status = pnb__set_map(&pool, run->train.images, run->app);
    if (status == PNB_OK)
        *count = PNB_MAX(pool->n / LOT, (size_t)2);
    pnb_embeddings_free(pool);
    return status;
}

static int64_t tuning_steps(const pnb__reproduction *run)
{
    int64_t steps = run->opts->n_steps;
    return steps == 0 ? 0 : PNB_MAX(steps / TUNED_SHARE, (int64_t)1);
}

static double share_at(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

/* Means over the rounds behind the first point, and the last. */
static void put_rounds(const pnb__reproduction *run, const char *row, const json_t *rounds,
                       json_t *found)
{
    static const char *const keys[SIDES][3] = {{"i2t_r1", "i2t_r1", "i2t_last"},
                                               {"t2i_r1", "t2i_r1", "t2i_last"}};
    for (size_t d = 0; d < SIDES; d++) {
        double mean = 0.0, last = NAN;
        for (size_t i = 1; i < json_array_size(rounds); i++) {
            last = share_at(json_array_get(rounds, i), keys[d][0]);
            mean += last / (double)(json_array_size(rounds) - 1);
        }
        pnb__reproduce_put(run, found, row, keys[d][1], mean);
        pnb__reproduce_put(run, found, row, keys[d][2], last);
    }
    json_object_set_new(found, "rounds", json_deep_copy(rounds));
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const char *way = stages[stage], *chooser = way;
    const bool is_random = stage == 0, has_elsewhere = run->elsewhere.images != NULL;
    pnb__adapt_active_opts opts = {.pool = run->train,
                                   .test = run->test,
                                   .read = pnb_truth_read_opts_default(),
                                   .tune = TUNED,
                                   .n_rounds = N_ROUNDS,
                                   .n_seeds = 1,
                                   .seed = seed,
                                   .leaves_random_out = !is_random,
                                   .recipe = PNB_ADAPT_RECIPE_AUTO,
                                   .steps = tuning_steps(run)};
    pnb__result *r = pnb__result_create();
    char *dir = NULL;
    pnb_status status;
    PNB_TRY(lot_of(run, &opts.count));
    if (!is_random && has_elsewhere) {
        PNB_TRY(learn_elsewhere(run, way, seed, &dir));
        chooser = dir;
        opts.adapters = (pnb__text_list){.items = &chooser, .n = 1};
    } else if (!is_random) {
        opts.methods = (pnb__text_list){.items = &chooser, .n = 1};
    }
    opts.start = has_elsewhere ? 0 : opts.count;
    PNB_TRY(pnb__adapt_active(run->app, &opts, r));
    put_rounds(run, way, pnb__result_get(r, "rounds"), found);
done:
    pnb__result_free(r);
    pnb__free(dir);
    return status;
}

/* ---- curves ---- */

/* Mean over seeds of a way's point; NaN: there is none. */
static double point(const pnb__reproduction *run, size_t stage, size_t round, const char *key)
{
    double sum = 0.0;
    for (size_t i = 0; i < run->opts->n_seeds; i++) {
        const json_t *rounds =
            json_object_get(run->found[stage * run->opts->n_seeds + i], "rounds");
        const json_t *value = json_object_get(json_array_get(rounds, round), key);
        sum += json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    return sum / (double)run->opts->n_seeds;
}

static void put(const pnb__reproduction *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"chosen_by", "chosen by"},
                                          {"n_labelled", "labelled"},
                                          {"i2t_r1", "i2t R@1"},
                                          {"t2i_r1", "t2i R@1"}};
    pnb__result_table(r, "curves", "means over seeds", columns, PNB_COUNT(columns));
    for (size_t k = 0; k < run->n_stages; k++)
        for (size_t i = 0; i <= N_ROUNDS; i++)
            pnb__result_row(r, "%s %zu %.4f %.4f", rows[k].label,
                            (size_t)point(run, k, i, "n_labelled"), point(run, k, i, "i2t_r1"),
                            point(run, k, i, "t2i_r1"));
}

static void draw_side(const pnb__reproduction *run, const char *key, const char *title,
                      pnb__buf *out)
{
    double x[PNB_COUNT(rows)][N_ROUNDS + 1], y[PNB_COUNT(rows)][N_ROUNDS + 1];
    pnb__chart chart = {.title = title,
                        .width = PNB__CHART_WIDTH,
                        .height = PNB__CHART_HEIGHT,
                        .x = {.label = "pictures labelled"},
                        .y = {.label = "R@1"}};
    for (size_t k = 0; k < PNB_COUNT(rows); k++) {
        for (size_t i = 0; i <= N_ROUNDS; i++) {
            x[k][i] = point(run, k, i, "n_labelled");
            y[k][i] = point(run, k, i, key);
        }
        pnb__axis_cover(&chart.x, x[k], N_ROUNDS + 1);
        pnb__axis_cover(&chart.y, y[k], N_ROUNDS + 1);
        chart.legend[chart.n_legend++] = (pnb__legend_entry){rows[k].label, (int)k, PNB__MARK_LINE};
    }
    pnb__chart_begin(&chart, out);
    for (size_t k = 0; k < PNB_COUNT(rows); k++)
        pnb__chart_line(&chart, (int)k, x[k], y[k], N_ROUNDS + 1);
    pnb__chart_end(&chart);
}

static void draw(const pnb__reproduction *run, pnb__page *page)
{
    pnb__page_section(page, "Rounds",
                      "R@1 of the test sets by how much of the pool is labelled, "
                      "means over seeds.");
    pnb__buf *out = pnb__page_block(page);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    draw_side(run, "i2t_r1", "Captions found by pictures", out);
    draw_side(run, "t2i_r1", "Pictures found by captions", out);
    pnb__buf_puts(out, "</div>\n");
}

const pnb__experiment pnb__experiment_grove_active = {
    .word = "grove-active",
    .paper = "GroVE (Venkataramanan et al. 2025), Figure 4",
    .needs = PNB__REPRO_SETS,
    PNB__EXPERIMENT_TABLES,
    .step_s = 0.2,
    .stage_s = 5,
    .prepare = pnb__reproduce_elsewhere,
    .measure = measure,
    .put = put,
    .draw = draw};
