/* The journal of an embedding job: finished parts on disk, so that a killed run continues. */
#ifndef PNB_APP_EMBED_JOURNAL_H
#define PNB_APP_EMBED_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "penumbra/embeddings.h"

typedef struct pnb__embed_skip {
    size_t input;
    char *why;
} pnb__embed_skip;

/* State of OUT.journal/. All zero is closed. */
typedef struct pnb__embed_journal {
    char *dir;
    int lock_fd;
    size_t n_done;      /* inputs behind us */
    size_t n_rows;      /* rows in the parts */
    size_t n_truncated; /* of the parts */
    char **parts;       /* paths */
    size_t n_parts;
    pnb__embed_skip *skips; /* since the last part, then those read back */
    size_t n_skips;
} pnb__embed_journal;

/* Opens or makes OUT.journal/. A journal of another job (other inputs, model or options, told by
 * `signature`) is emptied; `*continued` says whether this one was taken up.
 * Errors  BUSY (another process holds it), IO, NOMEM */
pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const char *signature, bool *continued, pnb_error *err);
/* Remembers an input left out; written with the next part. */
pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err);
/* Writes rows as a part that covers the inputs up to `end`. `set` NULL: no row, skips only. */
pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set, size_t end,
                                  size_t n_truncated, pnb_error *err);
/* Closes; removes the folder when `remove` or when it holds no part. */
void pnb__embed_journal_close(pnb__embed_journal *j, bool remove);

#endif
