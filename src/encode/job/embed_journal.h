/* The journal of an embedding job: finished parts on disk, so that a killed run continues. */
#ifndef PNB_ENCODE_JOB_EMBED_JOURNAL_H
#define PNB_ENCODE_JOB_EMBED_JOURNAL_H

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
    size_t n_done;                 /* inputs behind us */
    size_t n_rows;                 /* rows in the parts */
    size_t n_truncated, n_unknown; /* of the parts */
    char **parts;                  /* paths */
    size_t n_parts;
    pnb__embed_skip *skips; /* since the last part, then those read back */
    size_t n_skips;
} pnb__embed_journal;

/* What ties a journal to a job. */
typedef struct pnb__embed_job_key {
    const char *signature; /* of model, options and the list of inputs */
    size_t n_inputs;
    /* One number for inputs begin .. end - 1 as they are now: a part whose number has changed, and
     * what follows it, is made again. NULL: the signature says all. */
    uint64_t (*stamp)(void *user, size_t begin, size_t end);
    void *user;
} pnb__embed_job_key;

/* Opens or makes OUT.journal/. A journal of another job is emptied; of this job's, the parts are
 * taken up that are whole and whose inputs are still the same. `*continued` says whether any was.
 * Errors  BUSY (another process holds it), IO, NOMEM */
pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const pnb__embed_job_key *key, bool *continued, pnb_error *err);
/* Remembers an input left out; written with the next part. */
pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err);
/* What a part covers: the inputs up to `end`, and their stamp as they were when they were read. */
typedef struct pnb__embed_span {
    size_t end, n_truncated, n_unknown;
    uint64_t stamp;
} pnb__embed_span;
/* Writes rows as a part. `set` NULL: no row, skips only. */
pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set,
                                  const pnb__embed_span *span, pnb_error *err);
/* Closes; removes the folder when `remove` or when it holds no part. parts.jsonl goes first: a
 * process killed while it removes leaves a folder without parts, never a list of missing ones. */
void pnb__embed_journal_close(pnb__embed_journal *j, bool remove);

#endif
