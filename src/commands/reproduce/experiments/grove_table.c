/* GroVE's Table 1, and R@1 of its Table 7: what post-hoc methods know about their own retrieval.
 *
 * A query's uncertainty sorts it into one of ten bins; S and R^2 say how R@1 falls from bin to bin.
 * Sets of Gaussians are ranked by the 2-Wasserstein distance as in the paper, generalised ones by
 * their means, frozen rows by the cosine. Where it is known what captions stand for, the last
 * column says how well the uncertainty orders them: the paper has no such data. */
#include <math.h>

#include "base/base.h"
#include "commands/reproduce/adapters.h"

static const pnb__figure figures[] = {{"i2t_s", "i2t S", 1, 2},
                                      {"i2t_r2", "i2t R\xC2\xB2", 1, 2},
                                      {"i2t_minus_s_r2", "i2t -SR\xC2\xB2", 1, 2},
                                      {"i2t_r1", "i2t R@1", 1, 3},
                                      {"t2i_s", "t2i S", 1, 2},
                                      {"t2i_r2", "t2i R\xC2\xB2", 1, 2},
                                      {"t2i_minus_s_r2", "t2i -SR\xC2\xB2", 1, 2},
                                      {"t2i_r1", "t2i R@1", 1, 3},
                                      {"known_spearman", "known \xCF\x81", 1, 3}};

/* X(key, label) of the methods that are learned here, in the paper's order; the first is the frozen
 * rows, the last two are controls. */
#define METHODS(X)                                                                                 \
    X("frozen", "Deterministic")                                                                   \
    X("pfe", "PFE")                                                                                \
    X("pcme", "PCME")                                                                              \
    X("pcmepp", "PCME++")                                                                          \
    X("probvlm", "ProbVLM")                                                                        \
    X("grove", "GroVE")                                                                            \
    PNB__ADAPTED_CONTROLS(X)
#define ROW(key, label) {key, label},
static const pnb__repro_row rows[] = {METHODS(ROW){"ttda", "TTDA"}};
#define STAGE(key, label) key,
static const char *const stages[] = {METHODS(STAGE) NULL};

/* Of a direction: S, R^2 and -S R^2, each with its deviation, and R@1. */
#define LINE(row, data, s, s_, r2, r2_, m, m_, r1, t, t_, q2, q2_, n, n_, q1)                      \
    {                                                                                              \
        row, "Tables 1 and 7, CLIP, " data, {s, r2, m, r1, t, q2, n, q1, NAN}, true,               \
        {                                                                                          \
            s_, r2_, m_, NAN, t_, q2_, n_, NAN, NAN                                                \
        }                                                                                          \
    }
static const pnb__paper_line lines[] = {
    LINE("frozen", "Flickr30k", -0.80, 0.00, 0.66, 0.00, 0.52, 0.00, 0.801, -0.90, 0.00, 0.80, 0.00,
         0.73, 0.00, 0.543),
    LINE("frozen", "MS-COCO", -0.80, 0.00, 0.64, 0.00, 0.51, 0.00, 0.715, -0.80, 0.00, 0.76, 0.00,
         0.61, 0.00, 0.515),
    LINE("frozen", "CUB", -0.10, 0.00, 0.05, 0.00, 0.00, 0.00, 0.532, 0.60, 0.00, 0.12, 0.00, -0.06,
         0.00, 0.141),
    LINE("frozen", "Flowers", -0.10, 0.00, 0.00, 0.00, 0.00, 0.00, 0.357, -0.30, 0.00, 0.17, 0.00,
         0.05, 0.00, 0.109),
    LINE("ttda", "Flickr30k", 0.12, 0.03, 0.32, 0.07, -0.03, 0.01, 0.423, 0.08, 0.06, 0.02, 0.06,
         0.01, 0.01, 0.202),
    LINE("ttda", "MS-COCO", -0.36, 0.05, 0.38, 0.08, 0.17, 0.05, 0.326, -0.61, 0.06, 0.20, 0.05,
         0.12, 0.04, 0.139),
    LINE("ttda", "CUB", -0.60, 0.00, 0.36, 0.07, 0.21, 0.04, 0.133, -0.53, 0.05, 0.64, 0.03, 0.32,
         0.02, 0.046),
    LINE("ttda", "Flowers", -0.78, 0.04, 0.37, 0.07, 0.28, 0.06, 0.289, 0.04, 0.01, 0.04, 0.00,
         0.00, 0.02, 0.057),
    LINE("pfe", "Flickr30k", -0.34, 0.06, 0.45, 0.04, 0.13, 0.03, 0.238, -0.68, 0.07, 0.56, 0.05,
         0.38, 0.06, 0.298),
    LINE("pfe", "MS-COCO", 0.63, 0.05, 0.72, 0.07, -0.46, 0.05, 0.213, 0.33, 0.04, 0.52, 0.02,
         -0.16, 0.02, 0.219),
    LINE("pfe", "CUB", -0.13, 0.04, 0.28, 0.03, 0.02, 0.01, 0.101, -0.32, 0.07, 0.34, 0.02, 0.09,
         0.02, 0.023),
    LINE("pfe", "Flowers", -0.11, 0.05, 0.29, 0.04, 0.04, 0.01, 0.102, 0.21, 0.04, 0.43, 0.02,
         -0.10, 0.02, 0.024),
    LINE("pcme", "Flickr30k", 0.61, 0.06, 0.18, 0.02, -0.11, 0.02, 0.392, 0.18, 0.08, 0.42, 0.02,
         -0.07, 0.04, 0.092),
    LINE("pcme", "MS-COCO", -0.63, 0.00, 0.50, 0.03, 0.31, 0.02, 0.246, 0.86, 0.04, 0.84, 0.03,
         -0.74, 0.05, 0.102),
    LINE("pcme", "CUB", -0.19, 0.05, 0.13, 0.03, 0.03, 0.01, 0.129, 0.57, 0.04, 0.05, 0.00, -0.03,
         0.00, 0.099),
    LINE("pcme", "Flowers", 0.12, 0.07, 0.04, 0.03, 0.00, 0.01, 0.134, 0.72, 0.05, 0.45, 0.03,
         -0.29, 0.03, 0.029),
    LINE("pcmepp", "Flickr30k", -0.08, 0.04, 0.33, 0.04, 0.04, 0.02, 0.423, -0.13, 0.04, 0.06, 0.03,
         0.01, 0.00, 0.133),
    LINE("pcmepp", "MS-COCO", -0.30, 0.07, 0.37, 0.04, 0.10, 0.03, 0.397, 0.02, 0.07, 0.38, 0.02,
         0.01, 0.03, 0.125),
    LINE("pcmepp", "CUB", -0.62, 0.05, 0.67, 0.05, 0.38, 0.05, 0.124, -0.28, 0.05, 0.02, 0.01, 0.01,
         0.00, 0.087),
    LINE("pcmepp", "Flowers", -0.61, 0.11, 0.55, 0.04, 0.32, 0.08, 0.111, 0.12, 0.07, 0.47, 0.02,
         -0.06, 0.04, 0.058),
    LINE("probvlm", "Flickr30k", -0.79, 0.05, 0.52, 0.04, 0.38, 0.04, 0.491, -0.54, 0.03, 0.68,
         0.07, 0.34, 0.03, 0.104),
    LINE("probvlm", "MS-COCO", -0.72, 0.04, 0.21, 0.02, 0.14, 0.02, 0.303, 0.09, 0.02, 0.11, 0.04,
         -0.01, 0.00, 0.156),
    LINE("probvlm", "CUB", -0.33, 0.05, 0.46, 0.04, 0.15, 0.02, 0.136, -0.92, 0.03, 0.52, 0.05,
         0.48, 0.04, 0.005),
    LINE("probvlm", "Flowers", -0.78, 0.03, 0.47, 0.03, 0.36, 0.03, 0.245, -0.60, 0.03, 0.16, 0.06,
         0.10, 0.03, 0.102),
    LINE("grove", "Flickr30k", -0.87, 0.06, 0.85, 0.04, 0.77, 0.05, 0.569, -0.92, 0.04, 0.74, 0.04,
         0.66, 0.04, 0.241),
    LINE("grove", "MS-COCO", -0.90, 0.03, 0.88, 0.04, 0.79, 0.02, 0.512, -0.81, 0.02, 0.81, 0.01,
         0.65, 0.02, 0.288),
    LINE("grove", "CUB", -0.61, 0.07, 0.75, 0.04, 0.46, 0.06, 0.307, -0.78, 0.07, 0.60, 0.02, 0.49,
         0.05, 0.343),
    LINE("grove", "Flowers", -0.88, 0.04, 0.81, 0.01, 0.70, 0.03, 0.402, -0.62, 0.08, 0.66, 0.04,
         0.43, 0.06, 0.379),
};

static const pnb__repro_claim claims[] = {
    {"grove", "frozen", "i2t_minus_s_r2", "GroVE knows its errors better than cosines do"},
    {"grove", "frozen", "t2i_minus_s_r2", "GroVE knows its errors better than cosines do"},
    {"grove", "probvlm", "i2t_minus_s_r2", "GroVE knows its errors better than ProbVLM"},
    {"grove", "probvlm", "t2i_minus_s_r2", "GroVE knows its errors better than ProbVLM"},
    {"grove", "pcmepp", "i2t_minus_s_r2", "GroVE knows its errors better than PCME++"},
    {"grove", "pcmepp", "t2i_minus_s_r2", "GroVE knows its errors better than PCME++"},
    {"frozen", "grove", "i2t_r1", "GroVE retrieves worse than the frozen rows"},
};

static const char *const differs[] = {
    "The paper: CLIP ViT-B/32 on pictures and captions. The built-in sets are drawn: a tree of "
    "concepts on the sphere, pictures below its leaves, captions that name a concept.",
    "Methods are learned by this program's recipe for the number of pairs (`adapt methods`), which "
    "is the papers' from 100,000 pairs on; the paper chose rates of its own for all of them.",
    "Ten bins of equal count; the paper does not say how many it has. Both directions are sorted "
    "by "
    "the query's own uncertainty.",
    "ProbVLM's generalised Gaussians are ranked by their means: of them no Wasserstein distance is "
    "in closed form.",
    "TTDA augments pictures and captions, which sets do not have: `embed --ttda` makes its sets.",
    PNB__ADAPTED_CONTROLS_DIFFER,
    "The last column is not in the paper: Spearman's correlation of the captions' concentration "
    "with "
    "the known one.",
    NULL};

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    const pnb__adapted_opts opts = {
        .method = stages[stage], .seed = seed, .measure = PNB_MEASURE_W2, .by_texts = false};
    return pnb__adapted_measure(run, &opts, found);
}

const pnb__experiment pnb__experiment_grove_table = {
    .word = "grove-table",
    .paper = "GroVE (Venkataramanan et al. 2025), Tables 1 and 7",
    .needs = PNB__REPRO_SETS,
    PNB__EXPERIMENT_TABLES,
    .step_s = 0,
    .stage_s = 20,
    .measure = measure,
    .put = pnb__adapted_put_failed};
