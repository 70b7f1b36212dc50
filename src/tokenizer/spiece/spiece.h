/* A spiece.model taken apart: pieces and options, pointing into the file's bytes. */
#ifndef PNB_TOKENIZER_SPIECE_SPIECE_H
#define PNB_TOKENIZER_SPIECE_SPIECE_H

#include "tokenizer/text.h"

typedef struct pnb__spiece {
    const char *text;
    size_t n;
    float score;
    pnb__piece_type type;
} pnb__spiece;

typedef enum pnb__spiece_model { PNB__SPIECE_UNIGRAM = 1, PNB__SPIECE_BPE = 2 } pnb__spiece_model;

typedef struct pnb__spiece_file {
    pnb__spiece *pieces;
    int n;
    pnb__spiece_model model;
    bool byte_fallback, whitespace_is_suffix;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    const char *charsmap;
    size_t n_charsmap;
    int unk_id, bos_id, eos_id, pad_id; /* -1: none */
} pnb__spiece_file;

/* Reads and checks: at least one piece, exactly one unknown piece, UTF-8, finite scores, a model
 * type known here. Errors  FORMAT, UNSUPPORTED, LIMIT, NOMEM */
pnb_status pnb__spiece_read(pnb__spiece_file *f, const char *bytes, size_t n, pnb_error *err);
void pnb__spiece_reset(pnb__spiece_file *f);

#endif
