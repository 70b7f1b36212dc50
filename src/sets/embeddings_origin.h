/* What stands beside the arrays of an .npy set: `x.json`, the provenance of `x.npy`. */
#ifndef PNB_SETS_EMBEDDINGS_ORIGIN_H
#define PNB_SETS_EMBEDDINGS_ORIGIN_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/embeddings.h"

typedef struct pnb__origin {
    bool is_known; /* false: no such file, or a file of something else; the rest is unset then */
    pnb_family family;
    size_t n, dim;
    char ids_sha256[65]; /* "" unknown */
    pnb_embeddings_info info;
} pnb__origin;

/* Opens `f` and writes the provenance of `e`, to stand beside `path`, which ends in ".npy"; it is
 * committed together with the set's other files.
 * Errors  EXISTS (a file of something else has that name), ARG, IO, NOMEM */
pnb_status pnb__origin_write(const pnb_embeddings *e, const char *path, pnb__out_file *f,
                             pnb_error *err);
/* PNB_EXISTS as above: asked before the arrays are written. */
pnb_status pnb__origin_check_free(const char *path, pnb_error *err);
/* Reads what stands beside `path`. Keys it does not know are left alone.
 * Errors  FORMAT (a value of the wrong kind), UNSUPPORTED (version, family), IO, NOMEM */
pnb_status pnb__origin_load(pnb__origin *out, const char *path, pnb_error *err);
/* The object itself, for whoever keeps it elsewhere; NULL when out of memory. An empty hash of ids
 * is left out. Reading it back: `where` starts error texts. Errors  as load */
json_t *pnb__origin_json(const pnb_embeddings *e, const char *ids_sha256);
pnb_status pnb__origin_read(pnb__origin *out, json_t *root, const char *where, pnb_error *err);

#endif
