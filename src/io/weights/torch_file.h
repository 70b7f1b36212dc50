/* One file of torch.save as named arrays. */
#ifndef PNB_IO_WEIGHTS_TORCH_FILE_H
#define PNB_IO_WEIGHTS_TORCH_FILE_H

#include "io/weights/pickle.h"
#include "penumbra/safetensors.h"

typedef struct pnb__torch_file {
    pnb_array_view *views; /* in the order of the dict; data in the bytes or in `owned` */
    size_t n, capacity;
    void **owned; /* unpacked members and tensors made contiguous */
    size_t n_owned;
    const char *root;   /* key of the state dict, "" for the whole file */
    const char *format; /* as pnb_checkpoint_format */
    const char *words;  /* of "word2idx" beside "model", a line each; in the arena, or NULL */
    size_t n_trailing;  /* bytes after the last storage of the layout before 1.6 */
    size_t n_unnamed;   /* tensors inside lists of the state dict, which have no name */
} pnb__torch_file;

/* Does it begin like a zip archive or a pickle? */
bool pnb__torch_sniff(const unsigned char *bytes, size_t n_bytes);

/* Names and views lie in the arena. Errors  as pnb_checkpoint_open */
pnb_status pnb__torch_open(pnb__torch_file *out, const unsigned char *bytes, size_t n_bytes,
                           const char *where, pnb__arena *arena, pnb_error *err);
void pnb__torch_close(pnb__torch_file *file); /* fine on all zero */

/* ---- between torch_file.c and torch_tensors.c ---- */

/* The bytes of one storage. Members are read when first asked for. */
typedef struct pnb__torch_storage {
    const char *key; /* not terminated */
    size_t n_key;
    const unsigned char *data;
    size_t n_bytes;
    const struct pnb__zip_member *member; /* of a zip that was not read yet, else NULL */
} pnb__torch_storage;

typedef struct pnb__torch_job {
    pnb__torch_file *file;
    const char *where;
    pnb__arena *arena;
    const struct pnb__zip *zip;   /* NULL before 1.6 */
    pnb__torch_storage *storages; /* sorted by key */
    size_t n_storages;
    size_t copy_left; /* bytes that tensors made contiguous may still take */
    pnb_error *err;
} pnb__torch_job;

pnb_status pnb__torch_views(pnb__torch_job *job, const pnb__pk_value *root);
int pnb__torch_compare_keys(const char *a, size_t n_a, const char *b, size_t n_b);
pnb_status pnb__torch_own(pnb__torch_file *file, void *block,
                          pnb_error *err); /* frees on failure */

#endif
