/* Weights from any file a released model comes in, through one door.
 *
 *   x.safetensors                          as penumbra/safetensors.h
 *   x.bin, x.pt, x.pth                     torch.save: zip archives, and the layout before
 * torch 1.6 TorchScript archives                   parameters and buffers by their attribute paths
 *   x.safetensors.index.json, x.bin.index.json   shards beside their index
 *
 * Files are told by content, not by ending. A PyTorch file holds a pickle, a program; the reader
 * here can build dictionaries, lists, numbers, strings and tensors and refuses everything else by
 * name, so opening a file runs nothing. docs/formats.md has the rules. */
#ifndef PENUMBRA_CHECKPOINT_H
#define PENUMBRA_CHECKPOINT_H

#include <stddef.h>

#include "penumbra/error.h"
#include "penumbra/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A reference-counted, read-only set of named arrays. Reading is thread-safe; retain and free may
 * be called from any thread. */
typedef struct pnb_checkpoint pnb_checkpoint;

/* Opens a weights file or the index of its shards (plain file names beside it, all of one kind).
 * Of a PyTorch file the arrays are those of its state dict: the dict under "state_dict",
 * "model_state_dict" or "model" when there is one (and PCME's "criterion", which has a
 * negative_scale, beside "model" as "criterion.*"), otherwise the whole; nested dicts join their
 * keys with '.', and the prefix "module." is taken off when every name has it. Contiguous tensors
 * are mapped, not copied; others are made contiguous. Tensors that share a storage stay shared.
 * Checksums of the zip members that are used are verified, which reads them once.
 * Memory is bounded by a small multiple of the file's size. Release with pnb_checkpoint_free.
 * Errors  NOT_FOUND, IO, FORMAT (broken or lying file, duplicate name), UNSUPPORTED (the pickle
 *         names something outside the allowed set, which the text repeats; a dtype outside
 *         pnb_dtype; more than PNB_MAX_DIMS dimensions; encrypted or other zip features),
 *         LIMIT (a bomb: see docs/formats.md), NOMEM
 * Source  torch/serialization.py, torch/_utils.py; PKWARE APPNOTE 6.3; Python's pickletools */
pnb_status pnb_checkpoint_open(pnb_checkpoint **out, const char *path, pnb_error *err);

/* The same on one file image in memory, which is borrowed until the last free. */
pnb_status pnb_checkpoint_open_bytes(pnb_checkpoint **out, const void *bytes, size_t n_bytes,
                                     pnb_error *err);

void pnb_checkpoint_retain(pnb_checkpoint *c); /* one more pnb_checkpoint_free is due */
void pnb_checkpoint_free(pnb_checkpoint *c);   /* NULL is fine */

/* Arrays by position (safetensors: order of bytes; PyTorch: order of the dict; shards by file name)
 * and by name. Views live as long as the checkpoint. */
size_t pnb_checkpoint_count(const pnb_checkpoint *c);
const pnb_array_view *pnb_checkpoint_at(const pnb_checkpoint *c, size_t i);           /* or NULL */
const pnb_array_view *pnb_checkpoint_find(const pnb_checkpoint *c, const char *name); /* or NULL */

/* "safetensors", "pytorch", "pytorch (before 1.6)" or "torchscript". */
const char *pnb_checkpoint_format(const pnb_checkpoint *c);

/* Key of a PyTorch file under which the state dict was found; "" when the whole file is one. */
const char *pnb_checkpoint_root(const pnb_checkpoint *c);

/* Value of a safetensors `__metadata__` key; NULL if absent. Of a PyTorch file there is "word2idx",
 * the words that PCME's code saves beside a model: a line each, in the order of their ids. */
const char *pnb_checkpoint_metadata(const pnb_checkpoint *c, const char *key);

/* What was tolerated while opening, as one sentence for the user; NULL if nothing. */
const char *pnb_checkpoint_warning(const pnb_checkpoint *c);

/* SHA-256 of the file as 64 lower-case hex digits; of shards as pnb_safetensors_sha256.
 * Errors  ARG */
pnb_status pnb_checkpoint_sha256(const pnb_checkpoint *c, char hex[65], pnb_error *err);

/* Looks for a model folder's weights under the names that open_clip, Hugging Face and this library
 * write, safetensors before PyTorch, and writes the path (0-terminated) to `path`.
 * Errors  NOT_FOUND (the text lists the names), LIMIT (path does not fit) */
pnb_status pnb_checkpoint_locate(char *path, size_t size, const char *dir, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
