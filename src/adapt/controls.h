/* Uncertainties that nobody learned, as sets like those of adapters: what a learned one has to
 * beat.
 */
#ifndef PNB_ADAPT_CONTROLS_H
#define PNB_ADAPT_CONTROLS_H

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"

/* X(name, sentence) in the order of tables. */
#define PNB__CONTROLS(X)                                                                           \
    X(untrained, "a head of AsymVLM's shape with its first weights: 1/kappa of it, frozen means")  \
    X(length, "captions with fewer words are the uncertain ones, frozen means")

/* A gaussian_diag of the rows and means of `set` whose trace is 1/|head(x)|, head being three
 * hidden layers of the width of AsymVLM's (1,024, at most 4 D), drawn from `seed` as torch's Linear
 * begins. Its link says that pictures are left alone.
 * Errors  NUMERIC (a row that is not finite), LIMIT, NOMEM */
pnb_status pnb__control_untrained(pnb_embeddings **out, const pnb_ctx *ctx,
                                  const pnb_embeddings *set, uint64_t seed, pnb_error *err);
/* The same with a trace of 1/(1 + words of the caption).
 * Errors  NOT_FOUND (a row without its text: the length of it is not known), LIMIT, NOMEM */
pnb_status pnb__control_length(pnb_embeddings **out, const pnb_embeddings *set, pnb_error *err);

#endif
