/* Files that tell something of the rows of a set: lines of id, tab, text. */
#ifndef PNB_COMMANDS_CLASSIFY_ID_FILE_H
#define PNB_COMMANDS_CLASSIFY_ID_FILE_H

#include "penumbra/embeddings.h"

/* What a row is called: its id, or "?". */
const char *pnb__row_name(const pnb_embeddings *set, size_t row);
/* value[i] is the text of row i, to be freed, or NULL without a line; value has set->n places.
 * Empty lines and those that begin with # tell nothing. `what` names the texts in messages.
 * Errors  FORMAT (a line without a tab or a text), NOT_FOUND (an id that no picture has), ARG (an
 *         id of several pictures, several lines of one), IO, LIMIT, NOMEM */
pnb_status pnb__id_file_read(const pnb_embeddings *set, const char *path, const char *what,
                             char **value, pnb_error *err);

#endif
