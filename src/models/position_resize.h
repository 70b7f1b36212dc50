/* Position embeddings of another size: for weights trained at another grid or context.
 *
 * Two sources say how, and differ; each rule stands under its source's name. */
#ifndef PNB_MODELS_POSITION_RESIZE_H
#define PNB_MODELS_POSITION_RESIZE_H

#include "base/base.h"

/* PROLIP: prolip/model.py, when a checkpoint is opened at another size. Texts of more than 127 rows
 *   keep the first 20 and the last 2 and stretch those between; else all rows are stretched
 *   together, the extra ones too.
 * LONGPROLIP: LongProLIP's fine-tuning from 64 to 256 tokens, with open_clip's grids, when training
 *   starts from a model of another size. Texts keep the extra rows always and the first 20 where
 *   both contexts are longer than that. Numbers are rounded to f32 between the two axes of a grid,
 *   as torch's interpolate of f32 rows does.
 * Where both keep 20 and 2 rows they agree. */
typedef enum pnb__position_rule {
    PNB__POSITIONS_PROLIP,
    PNB__POSITIONS_LONGPROLIP
} pnb__position_rule;

/* Rows (old_h*old_w, width) -> (new_h*new_w, width): bicubic with antialiasing (a = -0.5,
 * align_corners false). Extra rows (CLS, UNC) are the caller's: the reference takes them from the
 * fresh model, so resizing loses trained ones; whoever keeps the old rows keeps them. Errors  NOMEM
 */
typedef struct pnb__grid_resize {
    size_t old_h, old_w, new_h, new_w, width;
    pnb__position_rule rule;
} pnb__grid_resize;
pnb_status pnb__positions_resize_grid(const pnb__grid_resize *r, const double *old_patches,
                                      double *new_patches, pnb_error *err);

/* Text rows (n_old, width) -> (n_new, width), linear, align_corners false; the last n_extra rows of
 * both are the extra ones. Errors  SHAPE (too few rows) */
typedef struct pnb__text_resize {
    size_t n_old, n_new, n_extra, width;
    pnb__position_rule rule;
} pnb__text_resize;
pnb_status pnb__positions_resize_text(const pnb__text_resize *r, const double *old_rows,
                                      double *new_rows, pnb_error *err);

#endif
