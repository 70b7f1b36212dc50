/* Position embeddings of another size: for loading weights trained at another grid or context. */
#ifndef PNB_MODELS_POSITION_RESIZE_H
#define PNB_MODELS_POSITION_RESIZE_H

#include "base/base.h"

/* Rows (n_extra + old_h*old_w, width) -> (n_extra + new_h*new_w, width): bicubic with antialiasing
 * (a = -0.5, align_corners false). Extra rows (CLS, UNC) come from `extra`, n_extra*width values.
 * The reference takes them from the fresh model, so resizing loses trained CLS/UNC rows; pass the
 * old rows to keep them. Errors  NOMEM */
typedef struct pnb__grid_resize {
    size_t old_h, old_w, new_h, new_w, width;
} pnb__grid_resize;
pnb_status pnb__positions_resize_grid(const pnb__grid_resize *r, const double *old_patches,
                                      double *new_patches, pnb_error *err);

/* Text rows (n_old, width) -> (n_new, width), linear, align_corners false. As the reference: above
 * 127 new rows the first 20 and last 2 rows are kept and the middle stretched (LongProLIP);
 * otherwise all rows, the extra ones too, are stretched together. Errors  SHAPE (too few rows) */
pnb_status pnb__positions_resize_text(const double *old_rows, size_t n_old, size_t n_new,
                                      size_t width, double *new_rows, pnb_error *err);

#endif
