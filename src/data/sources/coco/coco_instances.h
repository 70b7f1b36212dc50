/* COCO's instances_*.json as lists: pictures by id, each with its annotations. */
#ifndef PNB_DATA_SOURCES_COCO_COCO_INSTANCES_H
#define PNB_DATA_SOURCES_COCO_COCO_INSTANCES_H

#include "base/base.h"
#include "io/json/json.h"

typedef struct pnb__coco_annotation {
    int64_t id, image_id;
    bool is_crowd;
    const char *category;       /* name; borrowed */
    const json_t *segmentation; /* borrowed */
} pnb__coco_annotation;

typedef struct pnb__coco_image {
    int64_t id;
    int width, height;
    const char *file_name; /* borrowed */
    const char *text;      /* first of the captions file, NULL when there is none; borrowed */
    size_t first, n;       /* annotations */
} pnb__coco_image;

typedef struct pnb__coco_instances {
    json_t *root, *texts;
    pnb__coco_image *image; /* ascending by id */
    size_t n_images;
    pnb__coco_annotation *annotation; /* ascending by picture, then id */
    size_t n_annotations;
} pnb__coco_instances;

/* `captions` may be NULL. Free with pnb__coco_instances_free, after a failure too.
 * Errors  NOT_FOUND, FORMAT (names the entry), LIMIT, NOMEM */
pnb_status pnb__coco_instances_load(pnb__coco_instances *c, const char *path, const char *texts,
                                    pnb_error *err);
void pnb__coco_instances_free(pnb__coco_instances *c);

#endif
