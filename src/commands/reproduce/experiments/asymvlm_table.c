/* AsymVLM's Table 1: post-hoc uncertainty of captions, and retrieval with it.
 *
 * Pictures are points in AsymVLM, so both directions are sorted by a caption's uncertainty: that of
 * the query, or of the caption that a picture found. The paper's Table 1 has the headings of its
 * two directions exchanged, as its Table A.2, which has the deviations, and the frozen model's own
 * R@1 show; the lines here have A.2's order. */
#include <math.h>

#include "base/base.h"
#include "commands/reproduce/adapters.h"

static const pnb__figure figures[] = {{"i2t_r1", "i2t R@1", 1, 3},
                                      {"i2t_r2", "i2t R\xC2\xB2", 1, 3},
                                      {"i2t_s", "i2t S", 1, 3},
                                      {"t2i_r1", "t2i R@1", 1, 3},
                                      {"t2i_r2", "t2i R\xC2\xB2", 1, 3},
                                      {"t2i_s", "t2i S", 1, 3},
                                      {"known_spearman", "known \xCF\x81", 1, 3}};

/* X(key, label) in the paper's order, behind them controls. */
#define METHODS(X)                                                                                 \
    X("pfe", "PFE*")                                                                               \
    X("pcmepp", "PCME++*")                                                                         \
    X("bayesvlm", "BayesVLM")                                                                      \
    X("probvlm", "ProbVLM")                                                                        \
    X("prolip", "ProLIP")                                                                          \
    X("asymvlm-vmf", "AsymVLM vMF")                                                                \
    X("asymvlm-ps", "AsymVLM PS")                                                                  \
    PNB__ADAPTED_CONTROLS(X)
#define ROW(key, label) {key, label},
static const pnb__repro_row rows[] = {METHODS(ROW)};
#define STAGE(key, label) key,
static const char *const stages[] = {METHODS(STAGE) NULL};

/* Of a direction: R@1, R^2 and S, each with its deviation over five runs. */
#define LINE(row, data, r1, r1_, r2, r2_, s, s_, q1, q1_, q2, q2_, t, t_)                          \
    {                                                                                              \
        row, "Tables 1 and A.2, CLIP, " data, {r1, r2, s, q1, q2, t, NAN}, true,                   \
        {                                                                                          \
            r1_, r2_, s_, q1_, q2_, t_, NAN                                                        \
        }                                                                                          \
    }
static const pnb__paper_line lines[] = {
    LINE("pfe", "MS-COCO", 0.500, 0.000, 0.558, 0.253, -0.722, 0.193, 0.304, 0.000, 0.946, 0.021,
         -0.988, 0.008),
    LINE("pfe", "Flickr30k", 0.680, 0.000, 0.675, 0.186, -0.832, 0.094, 0.451, 0.000, 0.955, 0.002,
         -0.998, 0.005),
    LINE("pfe", "CC-200k", 0.352, 0.000, 0.857, 0.075, -0.521, 0.757, 0.336, 0.000, 0.988, 0.008,
         -0.595, 0.798),
    LINE("pcmepp", "MS-COCO", 0.500, 0.000, 0.931, 0.006, -0.996, 0.004, 0.304, 0.000, 0.948, 0.010,
         -0.990, 0.004),
    LINE("pcmepp", "Flickr30k", 0.679, 0.001, 0.455, 0.386, -0.178, 0.650, 0.451, 0.000, 0.900,
         0.063, -0.918, 0.067),
    LINE("pcmepp", "CC-200k", 0.352, 0.000, 0.198, 0.375, -0.148, 0.430, 0.336, 0.000, 0.779, 0.105,
         -0.887, 0.060),
    LINE("bayesvlm", "MS-COCO", 0.506, 0.007, 0.884, 0.020, -0.976, 0.011, 0.323, 0.006, 0.932,
         0.023, -0.985, 0.014),
    LINE("bayesvlm", "Flickr30k", 0.637, 0.012, 0.916, 0.035, -0.976, 0.013, 0.425, 0.010, 0.934,
         0.011, -0.973, 0.019),
    LINE("bayesvlm", "CC-200k", 0.347, 0.010, 0.905, 0.025, -0.968, 0.016, 0.304, 0.008, 0.874,
         0.026, -0.937, 0.022),
    LINE("probvlm", "MS-COCO", 0.480, 0.004, 0.951, 0.011, -0.981, 0.006, 0.293, 0.001, 0.979,
         0.002, -1.000, 0.000),
    LINE("probvlm", "Flickr30k", 0.646, 0.006, 0.826, 0.062, -0.914, 0.029, 0.422, 0.002, 0.964,
         0.016, -0.985, 0.012),
    LINE("probvlm", "CC-200k", 0.316, 0.001, 0.772, 0.102, -0.837, 0.066, 0.302, 0.001, 0.775,
         0.029, -0.965, 0.021),
    LINE("prolip", "MS-COCO", 0.500, 0.000, 0.808, 0.025, -0.908, 0.031, 0.304, 0.000, 0.876, 0.007,
         -0.985, 0.012),
    LINE("prolip", "Flickr30k", 0.678, 0.000, 0.829, 0.032, -0.954, 0.041, 0.450, 0.000, 0.928,
         0.010, -0.978, 0.005),
    LINE("prolip", "CC-200k", 0.351, 0.000, 0.968, 0.007, -0.990, 0.009, 0.335, 0.000, 0.992, 0.002,
         -1.000, 0.000),
    LINE("asymvlm-vmf", "MS-COCO", 0.561, 0.002, 0.948, 0.016, -0.988, 0.013, 0.392, 0.001, 0.984,
         0.004, -1.000, 0.000),
    LINE("asymvlm-vmf", "Flickr30k", 0.688, 0.005, 0.860, 0.029, -0.976, 0.010, 0.504, 0.001, 0.960,
         0.006, -0.995, 0.006),
    LINE("asymvlm-vmf", "CC-200k", 0.395, 0.002, 0.990, 0.003, -1.000, 0.000, 0.383, 0.003, 0.991,
         0.002, -0.998, 0.005),
    LINE("asymvlm-ps", "MS-COCO", 0.558, 0.004, 0.937, 0.013, -0.984, 0.012, 0.390, 0.002, 0.989,
         0.001, -1.000, 0.000),
    LINE("asymvlm-ps", "Flickr30k", 0.688, 0.005, 0.854, 0.021, -0.947, 0.032, 0.498, 0.002, 0.946,
         0.021, -0.993, 0.006),
    LINE("asymvlm-ps", "CC-200k", 0.393, 0.001, 0.992, 0.004, -1.000, 0.000, 0.380, 0.002, 0.993,
         0.001, -1.000, 0.000),
};

static const pnb__repro_claim claims[] = {
    {"asymvlm-vmf", "pfe", "i2t_r1", "AsymVLM retrieves better than PFE*"},
    {"asymvlm-vmf", "pfe", "t2i_r1", "AsymVLM retrieves better than PFE*"},
    {"asymvlm-vmf", "bayesvlm", "i2t_r1", "AsymVLM retrieves better than BayesVLM"},
    {"asymvlm-vmf", "bayesvlm", "t2i_r1", "AsymVLM retrieves better than BayesVLM"},
    {"asymvlm-vmf", "prolip", "i2t_s",
     "R@1 falls more evenly with AsymVLM's uncertainty than ProLIP's"},
    {"asymvlm-vmf", "prolip", "t2i_s",
     "R@1 falls more evenly with AsymVLM's uncertainty than ProLIP's"},
    {"asymvlm-vmf", "asymvlm-ps", "i2t_r1", "the von Mises-Fisher density is a little better"},
    {"asymvlm-vmf", "asymvlm-ps", "t2i_r1", "the von Mises-Fisher density is a little better"},
};

static const char *const differs[] = {
    "The paper: CLIP ViT-B/32 on pictures and captions, five seeds. The built-in sets are drawn: a "
    "tree of concepts on the sphere, pictures below its leaves, captions that name a concept.",
    "The paper's Table 1 has the headings of its two directions exchanged; its Table A.2 and the "
    "frozen model's own R@1 have them as here.",
    "Methods are learned by this program's recipe for the number of pairs (`adapt methods`), which "
    "is the papers' from 100,000 pairs on.",
    "Ten bins of equal count; the paper does not say how many it has. Pictures are sorted by the "
    "uncertainty of the caption that they find.",
    PNB__ADAPTED_CONTROLS_DIFFER,
    "The last column is not in the paper: Spearman's correlation of the captions' concentration "
    "with "
    "the known one.",
    NULL};

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const pnb__adapted_opts opts = {
        .method = stages[stage], .seed = seed, .measure = PNB__MEASURE_AUTO, .by_texts = true};
    return pnb__adapted_measure(run, &opts, found);
}

const pnb__experiment pnb__experiment_asymvlm_table = {.word = "asymvlm-table",
                                                       .paper = "AsymVLM (Ju et al. 2025), Table 1",
                                                       .needs = PNB__REPRO_SETS,
                                                       PNB__EXPERIMENT_TABLES,
                                                       .step_s = 0,
                                                       .stage_s = 20,
                                                       .measure = measure,
                                                       .put = pnb__adapted_put_failed};
