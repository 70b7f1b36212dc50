/* A pickle as a tree of plain values: the restricted unpickler behind PyTorch checkpoints. */
#ifndef PNB_IO_WEIGHTS_PICKLE_H
#define PNB_IO_WEIGHTS_PICKLE_H

#include "base/base.h"
#include "penumbra/dtype.h"

typedef enum pnb__pk_kind {
    PNB__PK_NONE,
    PNB__PK_BOOL,
    PNB__PK_INT,
    PNB__PK_BIG, /* an int beyond 64 bits: its little-endian bytes, or its line, in text */
    PNB__PK_FLOAT,
    PNB__PK_STR,
    PNB__PK_BYTES,
    PNB__PK_TUPLE,
    PNB__PK_LIST, /* sets too */
    PNB__PK_DICT, /* items are key, value, key, value */
    PNB__PK_GLOBAL,
    PNB__PK_OBJECT, /* something known by name only; state in items[0] or none */
    PNB__PK_STORAGE,
    PNB__PK_TENSOR
} pnb__pk_kind;

typedef struct pnb__pk_value pnb__pk_value;

/* A tensor as the file describes it; nothing is checked against the storage yet. */
typedef struct pnb__pk_tensor {
    const pnb__pk_value *storage;
    pnb_dtype dtype;
    int n_dims;
    int64_t offset; /* elements */
    int64_t shape[PNB_MAX_DIMS], stride[PNB_MAX_DIMS];
} pnb__pk_tensor;

struct pnb__pk_value {
    unsigned char kind;   /* pnb__pk_kind */
    unsigned char detail; /* GLOBAL: row of the table of allowed names; OBJECT: is TorchScript;
                           * STORAGE: pnb_dtype, PNB_N_DTYPES when untyped */
    union {
        bool truth;
        int64_t integer;
        double real;
        const pnb__pk_tensor *tensor;
        struct {
            const char *data; /* not terminated */
            size_t n;
        } text;
        struct {
            pnb__pk_value **items;
            uint32_t n, capacity;
        } list; /* TUPLE, LIST, DICT, OBJECT */
        struct {
            const char *key; /* not terminated */
            uint32_t n_key;
            int64_t n_elements;
        } storage;
    } u;
};

/* What one call may take from the arena, and what it took so far. */
typedef struct pnb__pk_budget {
    size_t used, most;
} pnb__pk_budget;

/* A budget that a pickle of that size cannot need. */
pnb__pk_budget pnb__pk_budget_for(size_t n_bytes);

typedef struct pnb__pk_source {
    const unsigned char *bytes;
    size_t n_bytes;
    const char *where;
    pnb__arena *arena;
    pnb__pk_budget *budget;
    /* A class, of whatever module, whose instances may stand in the pickle: they become OBJECTs
     * with their state, no code of theirs is run. NULL: what weights are made of alone. */
    const char *class_name;
} pnb__pk_source;

typedef struct pnb__pk_result {
    const pnb__pk_value *root;
    const pnb__pk_value *storages; /* a LIST of every storage made, NULL when there is none */
    const pnb__pk_value *module;   /* STR: where the pickle says class_name is from, or NULL */
    size_t used;                   /* bytes of the pickle */
} pnb__pk_result;

/* Reads one pickle (protocols 0 to 5) at the start of `bytes`. Values lie in the arena, strings in
 * the arena or the bytes. `where` starts error texts. The value may be cyclic and may repeat parts:
 * walk it with a limit. Errors  FORMAT, UNSUPPORTED (a name that is not allowed), LIMIT, NOMEM */
pnb_status pnb__pickle_load(const pnb__pk_source *source, pnb__pk_result *out, pnb_error *err);

/* Value of a string key, NULL when absent or when `dict` is no dict. */
const pnb__pk_value *pnb__pk_get(const pnb__pk_value *dict, const char *key);
bool pnb__pk_is_text(const pnb__pk_value *v, const char *text);

#endif
