/* The journal of an embedding job: finished parts on disk, so that a killed run continues, and what
 * several processes made of one list comes together. */
#ifndef PNB_ENCODE_JOB_EMBED_JOURNAL_H
#define PNB_ENCODE_JOB_EMBED_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "penumbra/embeddings.h"
#include "penumbra/encode.h"

typedef struct pnb__embed_skip {
    size_t input;
    char *why;
} pnb__embed_skip;

/* Inputs begin .. end - 1: the file with their rows, and what was left out of them. */
typedef struct pnb__embed_part {
    size_t begin, end, n_rows, n_truncated, n_unknown;
    uint64_t stamp; /* of the inputs as they were when they were read */
    char *path;     /* NULL: no row */
    pnb__embed_skip *skips;
    size_t n_skips;
} pnb__embed_part;

/* State of OUT.journal/. All zero is closed. */
typedef struct pnb__embed_journal {
    char *dir;
    int lock_fd;            /* of writer 0; -1 of the others */
    size_t writer;          /* number of this process: whose list of parts it appends to */
    pnb__embed_part *parts; /* by `begin` */
    size_t n_parts;
    pnb__embed_skip *skips; /* since the last part */
    size_t n_skips;
} pnb__embed_journal;

/* What ties a journal to a job. */
typedef struct pnb__embed_job_key {
    const char *signature; /* of model, options and the list of inputs */
    size_t n_inputs;
    size_t batch;  /* parts begin at its multiples, and end there or with the inputs */
    bool in_order; /* a row depends on how many stand before it: what follows a gap is made again */
    /* One number for inputs begin .. end - 1 as they are now: a part whose number has changed is
     * made again. NULL: the signature says all. */
    uint64_t (*stamp)(void *user, size_t begin, size_t end);
    void *user;
} pnb__embed_job_key;

/* Opens or makes OUT.journal/ as writer 0. A journal of another job is emptied; of this job's, the
 * parts are taken up that are whole and whose inputs are still the same, whoever wrote them, and
 * stand in one list afterwards.
 * Errors  BUSY (another process holds it), IO, NOMEM */
pnb_status pnb__embed_journal_open(pnb__embed_journal *j, const char *out_path,
                                   const pnb__embed_job_key *key, pnb_error *err);
/* The same journal as another writer, from 1 on: of a folder that writer 0 has opened.
 * Errors  NOT_FOUND (this process does not see it), NOMEM */
pnb_status pnb__embed_journal_join(pnb__embed_journal *j, const char *out_path, size_t writer,
                                   pnb_error *err);
/* Takes up what the other writers, up to n_writers, have finished since; for writer 0. */
pnb_status pnb__embed_journal_collect(pnb__embed_journal *j, const pnb__embed_job_key *key,
                                      size_t n_writers, pnb_error *err);
/* Remembers an input left out; written with the next part. */
pnb_status pnb__embed_journal_skip(pnb__embed_journal *j, size_t input, const char *why,
                                   pnb_error *err);
/* Writes rows as the part that `what` describes (inputs, counts, stamp; its other fields are not
 * read), with what was skipped since the last one. `set` NULL: no row, skips only. */
pnb_status pnb__embed_journal_add(pnb__embed_journal *j, const pnb_embeddings *set,
                                  const pnb__embed_part *what, pnb_error *err);
/* Its parts as the one set that is asked for, in the order of inputs (embed_join.c).
 * Errors  IO, NOMEM, those of loading the parts */
pnb_status pnb__embed_join(const pnb__embed_journal *j, const pnb_encode_file *file,
                           pnb_error *err);
/* Closes; writer 0 removes the folder when `remove` or when it holds no part. Lists of parts go
 * first: a process killed while it removes leaves a folder without parts, never a list of missing
 * ones. */
void pnb__embed_journal_close(pnb__embed_journal *j, bool remove);

#endif
