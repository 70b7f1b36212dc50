/* Masks of COCO's annotations. */
#ifndef PNB_DATA_SOURCES_COCO_COCO_MASK_H
#define PNB_DATA_SOURCES_COCO_COCO_MASK_H

#include "base/base.h"
#include "io/json/json.h"

/* Reads the "segmentation" of an annotation into mask [height][width], 0 or 1: a list of polygons,
 * or {"size": [h, w], "counts": list or text}.
 * Errors  FORMAT (neither; odd or too few coordinates; runs that do not fill the picture), SHAPE
 *         (size of another picture), LIMIT, NOMEM */
pnb_status pnb__coco_mask(const json_t *segmentation, int width, int height, unsigned char *mask,
                          pnb_error *err);

/* The runs of COCO's compressed text: how many, and the runs themselves when `runs` is not NULL.
 * Errors  FORMAT (a character outside the code, a number that does not end, a negative run) */
pnb_status pnb__coco_runs(const char *text, uint32_t *runs, size_t *n_runs, pnb_error *err);

#endif
