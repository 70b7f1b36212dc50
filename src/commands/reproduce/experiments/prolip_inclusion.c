/* ProLIP's Figure 3 on learned distributions: what tells that one lies in another, the inclusion
 * test H or the difference of the two Kullback-Leibler divergences.
 *
 * The paper draws three pairs of Gaussians in one dimension and prints no figures. Here a pair is
 * an exact caption and a general one that are true of one picture, and a picture and its general
 * caption; both tests are asked whether the first lies in the second, and whether they tell such
 * pairs from those with a general caption that is not true of the picture. Twice: of a model that
 * was trained with the inclusion terms, and of one without. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/reproduce/prolip_models.h"
#include "penumbra/hierarchy.h"

static const pnb__figure figures[] = {{"share", "says so, %", 100, 1},
                                      {"auroc", "AUROC to strangers", 1, 3},
                                      {"alone", "says so alone, %", 100, 1}};

/* X(key of the pairs, stage, label of the pairs) */
#define PAIRS(X)                                                                                   \
    X("texts", "inclusion", "exact captions in general ones")                                      \
    X("images", "inclusion", "pictures in general captions")                                       \
    X("texts", "plain", "the same captions without inclusion terms")                               \
    X("images", "plain", "the same pictures without inclusion terms")
#define ROW(pairs, stage, label)                                                                   \
    {pairs "_h_" stage, label ", by H"}, {pairs "_kl_" stage, label ", by KL"},
static const pnb__repro_row rows[] = {PAIRS(ROW)};
static const char *const stages[] = {"inclusion", "plain", NULL};

static const pnb__paper_line lines[] = {
    {"texts_h_inclusion", "Figure 3, one dimension: drawn", {NAN, NAN, NAN}, false, {0}}};

static const pnb__repro_claim claims[] = {
    {"texts_h_inclusion", "texts_kl_inclusion", "auroc",
     "H tells included captions better than KL"},
    {"images_h_inclusion", "images_kl_inclusion", "auroc",
     "H tells included pictures better than KL"},
    {"texts_h_inclusion", "texts_h_plain", "share", "the inclusion terms put captions in order"},
    {"images_h_inclusion", "images_h_plain", "share",
     "the inclusion terms put pictures in captions"},
};

static const char *const differs[] = {
    "The paper: three pairs of Gaussians in one dimension, drawn. Here the distributions that a "
    "model learned.",
    "KL says that a lies in b where KL(a|b) < KL(b|a), which appendix A.6 calls DKL. In one "
    "dimension "
    "both tests say the same: which is narrower.",
    "Strangers are general captions that are not true of the picture. Both tests are of the exact "
    "form of H.",
    "Captions need levels, as those of `data shapes` and HierarCaps have; without them the rows of "
    "captions are empty, and pictures are asked of their first caption.",
    NULL};

/* ---- pairs ---- */

/* Rows of three sets of as many: which lies, in which, and a stranger. */
typedef struct triples {
    size_t *inner, *outer, *stranger, n;
} triples;

static void triples_reset(triples *t)
{
    pnb__free(t->inner);
    pnb__free(t->outer);
    pnb__free(t->stranger);
}

static bool is_true_of(const pnb_truth *t, size_t image, size_t text)
{
    for (size_t p = t->offset[image]; p < t->offset[image + 1]; p++)
        if ((size_t)t->item[p] == text)
            return true;
    return false;
}

/* The first true caption of the lowest or of the highest level of a picture; -1 has no level and is
 * the lowest. SIZE_MAX: it has no caption. */
static size_t text_of(const pnb__retrieval *sets, size_t image, bool lowest)
{
    const pnb_truth *t = sets->truth;
    size_t found = SIZE_MAX;
    for (size_t p = t->offset[image]; p < t->offset[image + 1]; p++) {
        size_t text = (size_t)t->item[p];
        int level = sets->text_level[text], best = found != SIZE_MAX ? sets->text_level[found] : 0;
        if (found == SIZE_MAX || (lowest ? level < best : level > best))
            found = text;
    }
    return found;
}

/* A general caption of another picture that is not true of this one; SIZE_MAX: all are. */
static size_t stranger_of(const pnb__retrieval *sets, size_t image)
{
    size_t n = sets->images->n;
    for (size_t k = 0; k < n; k++) {
        size_t text = text_of(sets, (image + n / 2 + k) % n, true);
        if (text != SIZE_MAX && !is_true_of(sets->truth, image, text))
            return text;
    }
    return SIZE_MAX;
}

/* Of captions: those with two levels; of pictures: those with a caption. */
static pnb_status find_pairs(const pnb__retrieval *sets, bool of_texts, triples *t, pnb_error *err)
{
    size_t n = sets->images->n;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(t->inner, n, err));
    PNB_TRY(PNB_ALLOC(t->outer, n, err));
    PNB_TRY(PNB_ALLOC(t->stranger, n, err));
    for (size_t i = 0; i < n; i++) {
        size_t general = text_of(sets, i, true), exact = text_of(sets, i, false);
        size_t stranger = stranger_of(sets, i);
        if (general == SIZE_MAX || stranger == SIZE_MAX)
            continue;
        if (of_texts && sets->text_level[exact] == sets->text_level[general])
            continue;
        t->inner[t->n] = of_texts ? exact : i;
        t->outer[t->n] = general;
        t->stranger[t->n++] = stranger;
    }
done:
    return status;
}

/* ---- the contest ---- */

static pnb_status select_view(pnb_embeddings **rows_of, pnb_view *view, const pnb_embeddings *set,
                              const size_t *row, size_t n, pnb_error *err)
{
    pnb_status status = pnb_embeddings_select(rows_of, set, row, n, err);
    return status == PNB_OK ? pnb_view_init(view, *rows_of, err) : status;
}

static pnb_status contest(const pnb__retrieval *sets, bool of_texts, const triples *t,
                          pnb_inclusion_contest *out, pnb_error *err)
{
    const pnb_embeddings *from = of_texts ? sets->texts : sets->images;
    pnb_embeddings *made[3] = {NULL, NULL, NULL};
    pnb_view view[3];
    pnb_status status;
    memset(view, 0, sizeof view);
    PNB_TRY(select_view(&made[0], &view[0], from, t->inner, t->n, err));
    PNB_TRY(select_view(&made[1], &view[1], sets->texts, t->outer, t->n, err));
    PNB_TRY(select_view(&made[2], &view[2], sets->texts, t->stranger, t->n, err));
    status = pnb_inclusion_against_kl(&view[0].rows, &view[1].rows, &view[2].rows, false, NULL,
                                      NULL, out, err);
done:
    for (size_t k = 0; k < 3; k++) {
        pnb_view_reset(&view[k]);
        pnb_embeddings_free(made[k]);
    }
    return status;
}

static void put_test(const pnb__reproduction *run, json_t *found, const char *const names[3],
                     const double values[3])
{
    static const char *const keys[] = {"share", "auroc", "alone"};
    char row[64];
    snprintf(row, sizeof row, "%s_%s_%s", names[0], names[1], names[2]);
    for (size_t k = 0; k < PNB_COUNT(keys); k++)
        pnb__reproduce_put(run, found, row, keys[k], values[k]);
}

static pnb_status put_pairs(pnb__reproduction *run, const char *stage, const pnb__retrieval *sets,
                            bool of_texts, json_t *found)
{
    const char *pairs = of_texts ? "texts" : "images";
    pnb_inclusion_contest c;
    triples t = {.n = 0};
    pnb_status status = find_pairs(sets, of_texts, &t, &run->app->err);
    if (status == PNB_OK && t.n > 0) {
        status = contest(sets, of_texts, &t, &c, &run->app->err);
        if (status == PNB_OK) {
            put_test(run, found, (const char *const[3]){pairs, "h", stage},
                     (const double[3]){c.by_h, c.h_auroc, c.only_h});
            put_test(run, found, (const char *const[3]){pairs, "kl", stage},
                     (const double[3]){c.by_kl, c.kl_auroc, c.only_kl});
        }
    }
    triples_reset(&t);
    return status;
}

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const bool has_terms = stage == 0;
    pnb_train_opts opts = pnb_train_opts_of(PNB_OBJECTIVE_PROLIP, false);
    pnb__retrieval sets = {0};
    char *dir = NULL;
    pnb_status status;
    pnb__prolip_terms(&opts, has_terms, has_terms);
    PNB_TRY(pnb__prolip_model(run, stages[stage], seed, &opts, PNB__MEASURE_AUTO, &sets, &dir));
    PNB_TRY(put_pairs(run, stages[stage], &sets, true, found));
    status = put_pairs(run, stages[stage], &sets, false, found);
done:
    pnb__retrieval_reset(&sets);
    pnb__free(dir);
    return status;
}

const pnb__experiment pnb__experiment_prolip_inclusion = {.word = "prolip-inclusion",
                                                          .paper =
                                                              "ProLIP (Chun et al. 2025), Figure 3",
                                                          .needs = PNB__REPRO_IMAGES,
                                                          PNB__EXPERIMENT_TABLES,
                                                          .step_s = 0.2,
                                                          .stage_s = 10,
                                                          .measure = measure};
