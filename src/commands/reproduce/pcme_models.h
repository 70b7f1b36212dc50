/* The models of PCME's experiments: towers, objectives and scenes, trained and embedded. */
#ifndef PNB_COMMANDS_REPRODUCE_PCME_MODELS_H
#define PNB_COMMANDS_REPRODUCE_PCME_MODELS_H

#include "commands/eval/eval_retrieval.h"
#include "commands/reproduce/reproduce.h"

/* X(NAME, objective, overrides of its tiny configuration, samples or 0: its own, whether the
 * divergence counts, whether a batch has one picture of each class) */
#define PNB__PCME_MODELS(X)                                                                        \
    X(WHOLE, PCME, NULL, 0, true, false)                                                           \
    X(MU_ONLY, PCME, "{\"init_log_std\": -20}", 1, false, false)                                   \
    X(TOY, PCME,                                                                                   \
      "{\"embed_dim\": 2, \"attention\": false, \"init_logit_scale\": 0.7, \"init_logit_bias\": "  \
      "1, "                                                                                        \
      "\"init_log_std\": -2}",                                                                     \
      0, true, true)                                                                               \
    X(VSE0, VSE, NULL, 0, true, false)                                                             \
    X(VSEPP, VSEPP, NULL, 0, true, false)                                                          \
    X(PVSE1, PVSE, "{\"n_embeddings\": 1}", 0, true, false)                                        \
    X(PVSE2, PVSE, NULL, 0, true, false)

typedef enum pnb__pcme_model_kind {
#define PNB__PCME_MODEL_ENUM(name, ...) PNB__PCME_##name,
    PNB__PCME_MODELS(PNB__PCME_MODEL_ENUM)
#undef PNB__PCME_MODEL_ENUM
} pnb__pcme_model_kind;

/* Trains or goes on with a model and embeds the test: *paths, freed with pnb__pair_paths_reset.
 * *dir, where it is wanted, is the model's folder, to be freed. */
pnb_status pnb__pcme_sets(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                          uint64_t seed, pnb__pair_paths *paths, char **dir);
/* The same, and the two sets with their truth as they are loaded, to be reset by
 * pnb__retrieval_reset in any case. */
pnb_status pnb__pcme_model(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                           uint64_t seed, pnb__retrieval *sets, char **dir);
/* Ranks both ways by a measure with the model's own a and b and 7 samples. */
pnb_status pnb__pcme_rank(pnb__reproduction *run, const pnb__retrieval *sets, pnb_measure measure,
                          uint64_t seed, pnb_search_opts *search, pnb_retrieval *out);

/* Blurred, covered and grey scenes among the others: what a picture leaves open differs. */
void pnb__pcme_scenes(pnb_shapes_opts *opts);

#endif
