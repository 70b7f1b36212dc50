/* The parts of reading tokenizer.json that call each other across files. */
#ifndef PNB_IO_TEXT_TOKENIZER_JSON_H
#define PNB_IO_TEXT_TOKENIZER_JSON_H

#include "io/json.h"
#include "io/text/text.h"

/* Fills an all-zero tokenizer; what it has allocated is released with it, also after an error.
 * declared_pad: the id in the "padding" section, or -1. */
pnb_status pnb__tok_read(pnb_tokenizer *tok, const json_t *root, int *declared_pad, pnb_error *err);
/* tokenizer_steps.c */
pnb_status pnb__tok_read_normalizer(pnb_tokenizer *tok, const json_t *section, pnb_error *err);
pnb_status pnb__tok_read_splits(pnb_tokenizer *tok, const json_t *section, pnb_error *err);
/* special.c: fills pad_id ... mask_id and clears is_special of the unknown token. `dir` may be
 * NULL. */
pnb_status pnb__tok_find_special(pnb_tokenizer *tok, const char *dir, int declared_pad,
                                 pnb_error *err);

#endif
