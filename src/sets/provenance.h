/* Chains of weights and adapters: comparing them, and how links stand in files.
 *
 * In metadata of a set and in every JSON file that tells a chain the links behind the weights are
 * one array under the key "adapters", which a chain of weights alone does not have:
 *   [{"name": "whitened", "sha256": "<64 digits>", "leaves": ["image"]}, ...] */
#ifndef PNB_SETS_PROVENANCE_H
#define PNB_SETS_PROVENANCE_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/embeddings.h"

#define PNB__ADAPTERS_KEY "adapters"

/* A chain whose model has no name here: a set's, or that of one side of a fit. Borrowed. */
typedef struct pnb__chain {
    const char *weights_sha256; /* "" unknown */
    const pnb_adapter_links *adapters;
} pnb__chain;
pnb__chain pnb__chain_of(const pnb_embeddings_info *info);

/* The rule of pnb_embeddings_check_mix, whatever the width. ARG */
pnb_status pnb__provenance_check_mix(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                     pnb_error *err);
/* Whether the two are known to be different chains. One that is unknown altogether differs from
 * none; of two that went through adapters, the adapters must be the same. */
bool pnb__chains_differ(pnb__chain a, pnb__chain b);
/* As pnb_provenance_text, without a name in front: "69081b72e4cd > whitened 0a1b2c3d4e5f". */
void pnb__chain_text(pnb__chain chain, char *text, size_t size);

/* PNB_OK when rows of both may stand in one set: no exception for sides left alone. ARG */
pnb_status pnb__provenance_check_same(const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                                      pnb_error *err);

/* Appends the link of an adapter that rows went through. LIMIT above PNB_MAX_ADAPTERS */
pnb_status pnb__adapter_links_add(pnb_adapter_links *links, const pnb_adapter_link *link,
                                  pnb_error *err);
/* The array above; NULL when out of memory. */
json_t *pnb__adapter_links_json(const pnb_adapter_links *links);
/* The same in `o`, unless there are none: then nothing is set, as in files before adapters. */
void pnb__adapter_links_put(json_t *o, const pnb_adapter_links *links, bool *ok);
/* Reads the array, or none, that lies in `o` under the key; `out` untouched on failure. */
void pnb__adapter_links_get(pnb__jobj *o, pnb_adapter_links *out, pnb_error *err);
/* The same from the array's text, as metadata of safetensors have it. FORMAT, NOMEM */
pnb_status pnb__adapter_links_parse(pnb_adapter_links *out, const char *text, const char *where,
                                    pnb_error *err);

#endif
