/* The jobs of `penumbra collection`. */
#ifndef PNB_COMMANDS_COLLECTION_COLLECTION_H
#define PNB_COMMANDS_COLLECTION_COLLECTION_H

#include "commands/common/rows/row_filter.h"
#include "penumbra/dataset.h"
#include "penumbra/encode.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__collection_create_opts {
    const char *path, *model;
    pnb_store_place place;
} pnb__collection_create_opts;

/* What is added, and how; watch adds so again and again. */
typedef struct pnb__collection_add_opts {
    const char *path, *model, *set;
    pnb__text_list images, texts, tags;
    pnb_dataset_opts dataset;
    pnb_encoder_opts parts;
    size_t batch_size, save_every;
    double wait_s;
    bool exif;
    double every_s;  /* watch: between two looks */
    size_t n_rounds; /* watch: 0: until it is interrupted */
    bool keep;       /* watch: rows whose file is gone */
} pnb__collection_add_opts;

typedef struct pnb__collection_rows_opts {
    pnb__text_list words; /* the collection, then ids */
    const char *path;
    pnb__row_filter filter;
    int64_t after;
    size_t limit;
    bool repair;
} pnb__collection_rows_opts;

typedef struct pnb__collection_build_opts {
    const char *path, *approx;
    pnb_measure measure; /* or PNB__MEASURE_AUTO */
    double recall;
} pnb__collection_build_opts;

typedef struct pnb__collection_export_opts {
    const char *path, *to, *out;
    pnb__row_filter filter;
} pnb__collection_export_opts;

pnb_status pnb__collection_create(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_add(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_watch(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_remove(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_list(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_info(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_verify(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_build(pnb__app *app, void *args, pnb__result *r);
pnb_status pnb__collection_export(pnb__app *app, void *args, pnb__result *r);

#endif
