/* Pairs of a picture and a caption from two embedding sets, and the data set they came from. */
#ifndef PNB_COMMANDS_COMMON_ALIGN_H
#define PNB_COMMANDS_COMMON_ALIGN_H

#include "penumbra/dataset.h"
#include "penumbra/embeddings.h"
#include "program/app.h"

typedef struct pnb__aligned {
    size_t n;
    size_t *image, *text;         /* [n] rows */
    const char *by;               /* "file", "ids" or "rows" */
    size_t n_no_image, n_no_text; /* captions and pictures without a partner */
} pnb__aligned;

/* Who belongs to whom.
 *   file given     its lines: picture id, tab, caption id (as --truth of eval)
 *   by "ids"       a caption names its picture in its field "image", else before the last '#' of
 *                  its id, else it has the picture's id
 *   by "rows"      row i and row i
 *   by "auto"      ids when the first caption names a picture that way, else rows
 * Errors  SHAPE (rows, and the numbers differ), ARG (an id of pictures names two rows), NOT_FOUND
 *         (no pair at all), those of pnb_truth_read */
pnb_status pnb__align(pnb__aligned *out, const pnb_embeddings *images, const pnb_embeddings *texts,
                      const char *file, const char *by, pnb_error *err);
void pnb__aligned_reset(pnb__aligned *p);

/* The samples that picture rows were made from. */
typedef struct pnb__pair_data {
    pnb_dataset *set;
    size_t *sample;      /* [images] */
    size_t n_unembedded; /* samples that no row was made from */
    size_t n_unreadable; /* those of them whose record cannot be read */
} pnb__pair_data;

/* Opens a data set and finds the sample of every picture row: by id (pnb__sample_id), or row i is
 * sample i where the rows have no other id than their number.
 * Errors  NOT_FOUND (a row of no sample), ARG (an id names two samples), those of opening */
pnb_status pnb__pair_data_open(pnb__pair_data *out, const char *spec, const pnb_dataset_opts *opts,
                               const pnb_embeddings *images, pnb_error *err);
void pnb__pair_data_close(pnb__pair_data *d);

#endif
