/* Arrays by name in safetensors files: mapped for reading, whole-or-nothing when written.
 *
 * A file is a 64-bit little-endian header length, a JSON header naming dtype, shape and byte
 * range of every array, then the bytes. The reader trusts nothing; docs/formats.md has the rules.
 */
#ifndef PENUMBRA_SAFETENSORS_H
#define PENUMBRA_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/dtype.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One array, row-major, little-endian, described but not owned. A 0-dimensional array has one
 * element; an array with a 0 in its shape has n_bytes = 0 and may have data = NULL. */
typedef struct pnb_array_view {
    const char *name; /* UTF-8 */
    pnb_dtype dtype;
    int n_dims;                  /* 0 to PNB_MAX_DIMS */
    int64_t shape[PNB_MAX_DIMS]; /* n_dims sizes of 0 or more, slowest first */
    const void *data;            /* not always aligned: pnb_array_is_aligned */
    size_t n_bytes;              /* elements times pnb_dtype_size */
} pnb_array_view;

/* Number of elements: the product of the shape, 1 for 0 dimensions. For checked views only. */
size_t pnb_array_size(const pnb_array_view *a);

/* True when `data` may be read through a pointer to the element type. Files written by this library
 * always are; a foreign file may put an f16 array of odd length before an f32 one. The conversions
 * below accept both. */
bool pnb_array_is_aligned(const pnb_array_view *a);

/* Converts a whole array; `out` holds pnb_array_size(a) values. F16, BF16, F32 and F64 keep their
 * value as far as the target can (round to nearest even), integers likewise, BOOL becomes 0 or 1.
 * Errors  ARG (NULL), SHAPE (an inconsistent view); to_i64 also DTYPE (floating-point input) and
 *         NUMERIC (a U64 above INT64_MAX) */
pnb_status pnb_array_to_f32(const pnb_array_view *a, float *out, pnb_error *err);
pnb_status pnb_array_to_f64(const pnb_array_view *a, double *out, pnb_error *err);
pnb_status pnb_array_to_i64(const pnb_array_view *a, int64_t *out, pnb_error *err);

/* A reference-counted read-only map of one file or of all shards of an index. Reading from it is
 * thread-safe; retain and free may be called from any thread. */
typedef struct pnb_safetensors pnb_safetensors;

/* Opens `x.safetensors`, or `x.index.json` whose shards lie beside it (plain file names only). The
 * whole header is checked before anything is returned; array bytes are mapped, not read. NaN and
 * infinity in the data are legal here. Release with pnb_safetensors_free.
 * Errors  NOT_FOUND, IO, FORMAT (broken rule, named), LIMIT (header over 100 MB),
 *         UNSUPPORTED (dtype outside pnb_dtype, more than PNB_MAX_DIMS dimensions), NOMEM */
pnb_status pnb_safetensors_open(pnb_safetensors **out, const char *path, pnb_error *err);

/* The same on a file image in memory, which is borrowed until the last free. */
pnb_status pnb_safetensors_open_bytes(pnb_safetensors **out, const void *bytes, size_t n_bytes,
                                      pnb_error *err);

void pnb_safetensors_retain(pnb_safetensors *st); /* one more pnb_safetensors_free is due */
void pnb_safetensors_free(pnb_safetensors *st);   /* NULL is fine */

/* Arrays in the order of their bytes (shards by file name). Views live as long as the map. */
size_t pnb_safetensors_count(const pnb_safetensors *st);
const pnb_array_view *pnb_safetensors_at(const pnb_safetensors *st, size_t i); /* or NULL */
const pnb_array_view *pnb_safetensors_find(const pnb_safetensors *st,
                                           const char *name); /* or NULL */

/* Value of a `__metadata__` key, NULL if absent; of the first shard that has it. */
const char *pnb_safetensors_metadata(const pnb_safetensors *st, const char *key);

/* What was tolerated while opening (bytes after the last array, arrays no index names), as one
 * sentence for the user; NULL if nothing. */
const char *pnb_safetensors_warning(const pnb_safetensors *st);

/* SHA-256 of the file as 64 lower-case hex digits, equal to `sha256sum`; of shards, of their bytes
 * joined in the order of file names (`cat model-*.safetensors | sha256sum`). Reads every byte.
 * Errors  ARG */
pnb_status pnb_safetensors_sha256(const pnb_safetensors *st, char hex[65], pnb_error *err);

/* Writes arrays to a new file that replaces `path` only when all bytes are on disk. The layout does
 * not depend on the order given: widest dtype first, then by name, so every array is aligned.
 * `metadata` is key, value, key, value, NULL, or NULL.
 * Errors  ARG (name empty, repeated, not UTF-8 or `__metadata__`; metadata likewise; data NULL),
 *         SHAPE (shape and n_bytes disagree), LIMIT (header over 100 MB), IO, NOMEM */
pnb_status pnb_safetensors_write(const char *path, const pnb_array_view *arrays, size_t n,
                                 const char *const *metadata, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
