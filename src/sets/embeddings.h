/* Inside of embedding sets: the table of arrays and the ids file. */
#ifndef PNB_SETS_EMBEDDINGS_H
#define PNB_SETS_EMBEDDINGS_H

#include "base/base.h"
#include "io/weights/safetensors.h"
#include "penumbra/embeddings.h"

enum {
    PNB__N_EMBEDDING_ARRAYS = 6,
    PNB__EPISTEMIC = 5,         /* which of them */
    PNB__EMBEDDINGS_VERSION = 3 /* of files: 1 is a set that went through no adapter, 2 one that
                                 * did, 3 has several embeddings a row */
};
/* The version a set is written as: the lowest that says all of it, so that programs that know no
 * adapters go on reading sets without one and refuse the others. */
int pnb__embeddings_version(const pnb_embeddings_info *info);

typedef struct pnb__embedding_array {
    const char *name;                  /* in safetensors and jsonl */
    const char *sidecar;               /* what npy file names get before ".npy" */
    unsigned families;                 /* bit per pnb_family */
    bool is_per_row;                   /* shape (N) instead of (N,D) */
    bool has_minimum, is_zero_allowed; /* range: any, >= 0, or > 0 */
    bool is_optional;                  /* there where the set says so: has_epistemic */
} pnb__embedding_array;

const pnb__embedding_array *pnb__embedding_array_at(int which);
/* By family and has_epistemic; the pointers are not looked at. */
bool pnb__embedding_has_array(const pnb_embeddings *e, int which);
/* The struct member of that array, and its number of values. */
float **pnb__embedding_field(pnb_embeddings *e, int which);
const float *pnb__embedding_values(const pnb_embeddings *e, int which);
size_t pnb__embedding_count(const pnb_embeddings *e, int which);

/* A set whose arrays are NULL yet, and one of its arrays, zeroed.
 * Errors  as pnb_embeddings_create */
pnb_status pnb__embeddings_create_bare(pnb_embeddings **out, pnb_family family, size_t n,
                                       size_t dim, pnb_error *err);
pnb_status pnb__embedding_alloc(pnb_embeddings *e, int which, pnb_error *err);

/* A view of an array of `n` rows (data of e, which may have other rows; it may be ignored). */
pnb_array_view pnb__embedding_view(const pnb_embeddings *e, int which, size_t n);

/* Whether rows of both may lie in one set. Errors  SHAPE (family, width), ARG (origin) */
pnb_status pnb__embeddings_check_same(const pnb_embeddings *a, const pnb_embeddings *b,
                                      pnb_error *err);

/* `path` without `suffix`, with `ending` behind; allocated. ARG when it does not end in suffix. */
pnb_status pnb__swap_suffix(char **out, const char *path, const char *suffix, const char *ending,
                            pnb_error *err);

/* Appends `{"id": ..., "path": ..., "text": ..., further fields` without the closing brace. A row
 * without id is called `number`. ARG when a text is not UTF-8 or extras not a JSON object. */
pnb_status pnb__embeddings_append_names(pnb__buf *b, const pnb_embeddings *e, size_t row,
                                        size_t number, pnb_error *err);

/* Writer of an ids file, and the hash of the ids that ties it to its arrays. */
typedef struct pnb__ids_writer {
    pnb__out_file out;
    pnb__sha256 hash;
    size_t n;
} pnb__ids_writer;
pnb_status pnb__ids_writer_open(pnb__ids_writer *w, const char *path, pnb_error *err);
pnb_status pnb__ids_writer_append(pnb__ids_writer *w, const pnb_embeddings *e, pnb_error *err);
void pnb__ids_writer_abort(pnb__ids_writer *w); /* fine after the file was committed */

/* Where arrays go: a file by its name, or one that is open. */
typedef struct pnb__array_target {
    const char *path;
    pnb__out_file *file;
} pnb__array_target;

/* Opens the array file for `n` rows of the kind `e` has, whose arrays are not looked at. `which[i]`
 * is the array of view i. An empty `ids_hash`: the set has no ids file. */
pnb_status pnb__embeddings_open_arrays(pnb__st_writer *w, const pnb__array_target *to,
                                       const pnb_embeddings *e, size_t n, const char *ids_hash,
                                       int which[PNB__N_EMBEDDING_ARRAYS], pnb_error *err);
/* Both files of a set at once, arrays last. */
pnb_status pnb__embeddings_commit(pnb__ids_writer *ids, pnb__st_writer *arrays, pnb_error *err);

/* To an open output, which is closed in every case: no ids file beside, no names but in JSON lines.
 * pnb__embeddings_stream: as safetensors, its metadata says "ids": "none". .npy: the means, then
 * the family's further arrays, one .npy behind the other. */
pnb_status pnb__embeddings_stream(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err);
pnb_status pnb__embeddings_stream_npy(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err);
pnb_status pnb__embeddings_stream_jsonl(const pnb_embeddings *e, pnb__out_file *f, pnb_error *err);

/* Reads the names of all rows of e; SHAPE when the number of lines differs from e->n. */
pnb_status pnb__ids_load(pnb_embeddings *e, const char *path, pnb_error *err);
/* Hash of the ids of e as pnb__ids_writer makes it. */
void pnb__ids_hash(const pnb_embeddings *e, char hex[65]);

#endif
