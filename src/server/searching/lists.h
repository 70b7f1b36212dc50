/* Several lists of inputs of one request, as sets that are compared. */
#ifndef PNB_SERVER_SEARCHING_LISTS_H
#define PNB_SERVER_SEARCHING_LISTS_H

#include "penumbra/view.h"
#include "server/batching/encoding.h"

/* Encodes all lists together, in common batches; sets[i] is a new set of list i, whose inputs are
 * all captions or all pictures. On failure all are NULL.
 * Errors  ARG (captions and pictures in one list), and those of pnb__server_encode */
pnb_status pnb__server_encode_lists(pnb__served *s, const pnb__http_request *q,
                                    const pnb__inputs *lists, size_t n_lists, pnb_embeddings **sets,
                                    pnb_error *err);

/* Two sets of the model that is served, made ready for a measure. */
typedef struct pnb__compared {
    pnb_view a, b;
    pnb_measure measure;
    pnb_measure_opts opts;
    bool has_probability; /* s(scale * score + bias) is that of a match */
    double scale, bias;
} pnb__compared;

/* `measure`: a name, NULL for what the families suit. Release with pnb__compared_reset, after a
 * failure too.  Errors  NOT_FOUND (no such measure), ARG (not between these families), NOMEM */
pnb_status pnb__compared_init(pnb__compared *c, const pnb_embeddings *a, const pnb_embeddings *b,
                              const char *measure, pnb_error *err);
void pnb__compared_reset(pnb__compared *c);

#endif
