/* Inside of pnb_loader: what makes one batch (loader_batch.c) apart from the threads (loader.c). */
#ifndef PNB_DATA_LOADER_LOADER_INTERNAL_H
#define PNB_DATA_LOADER_LOADER_INTERNAL_H

#include <pthread.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/dataset.h"

typedef struct pnb__skip {
    int64_t sample;
    char *why;
} pnb__skip;

typedef struct pnb__skips {
    pnb__skip *items;
    size_t n;
} pnb__skips;

/* Decoded pictures that fit the limit. An entry never changes once it is there. */
typedef struct pnb__image_cache {
    pthread_mutex_t lock;
    pnb_image *images; /* one a sample, empty until decoded */
    size_t used_bytes, limit_bytes;
    pnb_image_budget *budget; /* of the decodes of all workers */
} pnb__image_cache;

/* The caption chosen for a text row. */
typedef struct pnb__text_row {
    size_t offset, n_bytes; /* in pnb__batch_room.texts */
} pnb__text_row;

/* Memory of one batch, reused for the whole run. */
typedef struct pnb__batch_room {
    pnb_batch batch;
    float *pixels;
    int32_t *tokens, *levels, *picks; /* tokens and rows of negatives lie behind all others' */
    int64_t *samples;
    const char **text_pointers;
    pnb__text_row *rows;
    pnb__buf texts;
    pnb__skips skips;
    pnb_status status;
    pnb_error error;
} pnb__batch_room;

/* Samples by class; loader_classes.c. All zero: there are none. */
typedef struct pnb__class_lists {
    pnb__labelled *sorted; /* [n] by class */
    size_t *first;         /* [n_classes + 1] where each begins there */
    size_t n_classes;      /* that have a sample */
    uint32_t *class_of;    /* [n] 0 .. n_classes - 1 */
    uint32_t *pool, *turn; /* of the epoch being ordered: samples by class, classes of a batch */
    size_t *at;
} pnb__class_lists;
/* Errors  ARG (a sample without a class), those of pnb_dataset_get, NOMEM */
pnb_status pnb__class_lists_create(pnb__class_lists *c, const pnb_dataset *ds, pnb_error *err);
void pnb__class_lists_free(pnb__class_lists *c);
/* order[n_batches][batch_size]: samples of as many classes in each batch. */
void pnb__class_order(pnb__class_lists *c, pnb__rng *rng, size_t batch_size, size_t n_batches,
                      uint32_t *order);
/* Any sample of the same class. */
uint32_t pnb__class_other(const pnb__class_lists *c, uint32_t sample, pnb__rng *rng);

/* What is to be prepared. */
typedef struct pnb__batch_job {
    uint64_t epoch, batch;
    const uint32_t *samples;
    size_t n;
    const pnb__class_lists *classes; /* a replacement is of the same class; NULL: any sample */
} pnb__batch_job;

/* Fills the room; an error stays in room->status and room->error. */
void pnb__batch_prepare(const pnb_dataset *ds, const pnb_loader_opts *opts, pnb__image_cache *cache,
                        const pnb__batch_job *job, pnb__batch_room *room);
pnb_status pnb__batch_room_create(pnb__batch_room *room, const pnb_loader_opts *opts,
                                  pnb_error *err);
void pnb__batch_room_free(pnb__batch_room *room);

/* Appends the template with the caption in place of its first "{c}" or, without one, "{}". */
void pnb__template_fill(pnb__buf *b, const char *form, const char *text);
/* Row of a batch's first negative, behind the texts of a whole batch. */
size_t pnb__first_negative(const pnb_loader_opts *opts);
size_t pnb__texts_per_image(const pnb_loader_opts *opts);
/* Takes the text over; a sample that is already listed is not listed again. */
pnb_status pnb__skips_add(pnb__skips *skips, int64_t sample, char *why_take, pnb_error *err);
void pnb__skips_free(pnb__skips *skips);

#endif
