/* PCME's Table 1: one model, and every way to compare its distributions at test time.
 *
 * Two models a seed: PCME, and "mu only", the same towers under the same loss with deviations held
 * at e^-20, one sample and no divergence, so that the loss is that of the distance of means. Space
 * is the numbers that a gallery holds for a row: the paper counts J^2 for sampled measures, and J
 * samples of a row are what is stored. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/eval/eval_retrieval.h"
#include "commands/reproduce/pcme_models.h"
#include "prob/measure.h"

static const pnb__figure figures[] = {{"i2t_r_precision", "i2t R-P", 100, 2},
                                      {"t2i_r_precision", "t2i R-P", 100, 2},
                                      {"i2t_r1", "i2t R@1", 100, 2},
                                      {"t2i_r1", "t2i R@1", 100, 2},
                                      {"widths", "space in widths", 1, 0}};

/* X(MEASURE, row, label) of PCME's rows, in the paper's order, then those it does not have. */
#define MEASURES(X)                                                                                \
    X(MEAN, "mean", "PCME, mean only")                                                             \
    X(ELK, "elk", "PCME, ELK")                                                                     \
    X(JS, "js", "PCME, JS-divergence")                                                             \
    X(W2, "w2", "PCME, 2-Wasserstein")                                                             \
    X(AVG_L2, "avg_l2", "PCME, average L2")                                                        \
    X(MATCH_PROB, "match_prob", "PCME, match prob")                                                \
    X(CSD, "csd", "PCME, csd (PCME++)")                                                            \
    X(JEFFREYS, "jeffreys", "PCME, Jeffreys (JS of its code)")                                     \
    X(KL, "kl", "PCME, KL(picture || caption)")                                                    \
    X(BHATTACHARYYA, "bhattacharyya", "PCME, Bhattacharyya")

#define ROW(measure, key, label) {key, label},
static const pnb__repro_row rows[] = {{"mu_only", "\xCE\xBC only, mean only"}, MEASURES(ROW)};
#define MEASURE(measure, key, label) PNB_MEASURE_##measure,
static const pnb_measure measures[] = {MEASURES(MEASURE)};

#define CUB "Table 1, CUB Captions"
static const pnb__paper_line lines[] = {
    {"mu_only", CUB, {24.70, 25.64, NAN, NAN, 1}, false, {0}},
    {"mean", CUB, {26.14, 26.67, NAN, NAN, 1}, false, {0}},
    {"elk", CUB, {25.33, 25.87, NAN, NAN, 2}, false, {0}},
    {"js", CUB, {25.06, 25.55, NAN, NAN, 2}, false, {0}},
    {"w2", CUB, {26.16, 26.69, NAN, NAN, 2}, false, {0}},
    {"avg_l2", CUB, {26.11, 26.64, NAN, NAN, NAN}, false, {0}},
    {"match_prob", CUB, {26.28, 26.77, NAN, NAN, NAN}, false, {0}},
};

static const pnb__repro_claim claims[] = {
    {"mean", "mu_only", "i2t_r_precision", "training PCME makes the means alone better"},
    {"mean", "mu_only", "t2i_r_precision", "training PCME makes the means alone better"},
    {"match_prob", "mean", "i2t_r_precision", "match probability ranks better than means"},
    {"match_prob", "mean", "t2i_r_precision", "match probability ranks better than means"},
    {"w2", "elk", "i2t_r_precision", "2-Wasserstein ranks better than ELK"},
    {"w2", "elk", "t2i_r_precision", "2-Wasserstein ranks better than ELK"},
};

static const char *const stages[] = {"mu_only", "pcme", NULL};
static const char *const differs[] = {
    "The paper: CUB Captions, ResNet-50 from ImageNet, GloVe, D 512. On the built-in shapes: a "
    "narrow ResNet and words from random weights, D 128.",
    "\xCE\xBC only is the same loss with deviations held at e^-20 and one sample; the paper does "
    "not say how its own is trained.",
    "R@1, csd, Jeffreys, KL and Bhattacharyya are not in the paper's table.",
    "Space of sampled measures: the paper has O(J\xC2\xB2 N); here a row holds its J = 7 samples.",
    NULL};

/* ---- measuring ---- */

static void put_measure(const pnb__reproduction *run, json_t *found, const char *row,
                        const pnb__retrieval *sets, const pnb_search_opts *search,
                        const pnb_retrieval *f)
{
    size_t floats =
        PNB_MAX(pnb__measure_floats(search->measure, &sets->image_rows, &search->measure_opts),
                pnb__measure_floats(search->measure, &sets->text_rows, &search->measure_opts));
    pnb__reproduce_put(run, found, row, "i2t_r_precision", f->forward.r_precision);
    pnb__reproduce_put(run, found, row, "t2i_r_precision", f->backward.r_precision);
    pnb__reproduce_put(run, found, row, "i2t_r1", f->forward.recall[0]);
    pnb__reproduce_put(run, found, row, "t2i_r1", f->backward.recall[0]);
    pnb__reproduce_put(run, found, row, "widths", (double)floats / (double)sets->images->dim);
}

static pnb_status rank(pnb__reproduction *run, const pnb__retrieval *sets, pnb_measure measure,
                       uint64_t seed, const char *row, json_t *found)
{
    pnb_search_opts search;
    pnb_retrieval of;
    pnb_status status = pnb__pcme_rank(run, sets, measure, seed, &search, &of);
    if (status == PNB_OK)
        put_measure(run, found, row, sets, &search, &of);
    return status;
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const bool is_pcme = strcmp(stages[stage], "pcme") == 0;
    pnb__retrieval sets = {0};
    pnb_status status;
    PNB_TRY(pnb__pcme_model(run, stages[stage], is_pcme ? PNB__PCME_WHOLE : PNB__PCME_MU_ONLY, seed,
                            &sets, NULL));
    if (!is_pcme)
        PNB_TRY(rank(run, &sets, PNB_MEASURE_MEAN, seed, "mu_only", found));
    for (size_t i = 0; i < PNB_COUNT(measures) && is_pcme; i++)
        PNB_TRY(rank(run, &sets, measures[i], seed, rows[i + 1].key, found));
done:
    pnb__retrieval_reset(&sets);
    return status;
}

const pnb__experiment pnb__experiment_pcme_table1 = {.word = "pcme-table1",
                                                     .paper = "PCME (Chun et al. 2021), Table 1",
                                                     .needs = PNB__REPRO_IMAGES,
                                                     PNB__EXPERIMENT_TABLES,
                                                     .step_s = 0.2,
                                                     .stage_s = 20,
                                                     .shapes = pnb__pcme_scenes,
                                                     .measure = measure};
