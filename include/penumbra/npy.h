/* NumPy's .npy files: one array in C order, for other people's tools.
 *
 * Source  numpy/lib/format.py (NEP 1): 6 bytes of magic, the version, a header length, a Python
 * dict literal with `descr`, `fortran_order` and `shape`, then the bytes. Only that dict is read,
 * not Python in general. Layout of embedding sets in such files: embeddings.h. */
#ifndef PENUMBRA_NPY_H
#define PENUMBRA_NPY_H

#include <stddef.h>

#include "penumbra/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array read from a file; `view.data` is owned and aligned, `view.name` is "". */
typedef struct pnb_npy {
    pnb_array_view view; /* valid until pnb_npy_reset */
    void *data;          /* the same bytes; may be written */
} pnb_npy;

/* Reads header versions 1, 2 and 3, little-endian numbers (f2 f4 f8, i1 to i8, u1 to u8, bool) in C
 * order, the whole array into memory. On failure *out is empty. Release with pnb_npy_reset.
 * Errors  NOT_FOUND, IO, FORMAT, NOMEM, UNSUPPORTED (big-endian, Fortran order, structured or
 *         object types, more than PNB_MAX_DIMS dimensions) */
pnb_status pnb_npy_load(pnb_npy *out, const char *path, pnb_error *err);

/* The same on a file image in memory, as a request or an archive brought it; the bytes are copied,
 * the image may go at once.
 * Errors  as pnb_npy_load without NOT_FOUND and IO */
pnb_status pnb_npy_load_bytes(pnb_npy *out, const void *bytes, size_t n_bytes, pnb_error *err);
void pnb_npy_reset(pnb_npy *a); /* frees; NULL and an all-zero struct are fine */

/* Writes version 1.0 as NumPy does (header padded to 64 bytes). The file
 * appears whole or not at all.
 *   a  its name is not stored, its data need not be aligned
 * Errors  DTYPE (BF16, which NumPy does not know), SHAPE (an inconsistent view), ARG (NULL), LIMIT
 *         (more than PNB_MAX_DIMS dimensions), IO, NOT_FOUND (no such folder), NOMEM */
pnb_status pnb_npy_save(const char *path, const pnb_array_view *a, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
