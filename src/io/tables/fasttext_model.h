/* fastText's own models (.bin): the vectors of their words. */
#ifndef PNB_IO_TABLES_FASTTEXT_MODEL_H
#define PNB_IO_TABLES_FASTTEXT_MODEL_H

#include "io/tables/wanted_words.h"

/* By its first four bytes. */
bool pnb__is_fasttext_model(const void *bytes, size_t n);

/* The wanted words that the model's dictionary has, as its .vec has them. The file is mapped: of
 * its matrix only rows of these words are read. Errors  those of a map; FORMAT (another width, the
 * end too soon, a vector that is not finite), UNSUPPORTED (another version; compressed: what to use
 * in its place), NOMEM */
pnb_status pnb__fasttext_model_read(const char *path, const pnb__spellings *s,
                                    pnb__wanted_words *wanted, pnb_error *err);

#endif
