/* The models of PCME's experiments: towers, objectives and scenes, trained and embedded. */
#ifndef PNB_COMMANDS_REPRODUCE_PCME_MODELS_H
#define PNB_COMMANDS_REPRODUCE_PCME_MODELS_H

#include "commands/eval/eval_retrieval.h"
#include "commands/reproduce/reproduce.h"

/* X(NAME, objective, overrides of its tiny configuration, samples or 0: its own, whether the
 * divergence counts) */
#define PNB__PCME_MODELS(X)                                                                        \
    X(WHOLE, PCME, NULL, 0, true)                                                                  \
    X(MU_ONLY, PCME, "{\"init_log_std\": -20}", 1, false)                                          \
    X(TOY, PCME, "{\"embed_dim\": 2, \"attention\": false}", 0, true)                              \
    X(VSE0, VSE, NULL, 0, true)                                                                    \
    X(VSEPP, VSEPP, NULL, 0, true)                                                                 \
    X(PVSE1, PVSE, "{\"n_embeddings\": 1}", 0, true)                                               \
    X(PVSE2, PVSE, NULL, 0, true)

typedef enum pnb__pcme_model_kind {
#define PNB__PCME_MODEL_ENUM(name, ...) PNB__PCME_##name,
    PNB__PCME_MODELS(PNB__PCME_MODEL_ENUM)
#undef PNB__PCME_MODEL_ENUM
} pnb__pcme_model_kind;

/* Trains or goes on with a model, embeds the test and loads the two sets with their truth, to be
 * reset by pnb__retrieval_reset in any case. */
pnb_status pnb__pcme_model(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                           uint64_t seed, pnb__retrieval *sets);

/* Blurred, covered and grey scenes among the others: what a picture leaves open differs. */
void pnb__pcme_scenes(pnb_shapes_opts *opts);

#endif
