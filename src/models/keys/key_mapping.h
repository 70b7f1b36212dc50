/* Names of weights: Penumbra's own (open_clip's with the text tower under "text.") against those of
 * every layout that is read or written, as tables that work in both directions. */
#ifndef PNB_MODELS_KEYS_KEY_MAPPING_H
#define PNB_MODELS_KEYS_KEY_MAPPING_H

#include "models/config/config.h"
#include "models/weight_file.h"
#include "tensor/graph.h"

typedef struct pnb__layout_table pnb__layout_table;

/* Which table names the arrays of each tower; NULL for a tower that is not there. */
typedef struct pnb__layout {
    const pnb__layout_table *vision, *text;
    const char *prefix;  /* in front of every key: "" or "module." */
    size_t n_scale_dims; /* logit_scale and logit_bias have shape [] or [1] */
} pnb__layout;

/* One array of the file and the place of its rows in Penumbra's weight. */
typedef struct pnb__layout_part {
    char key[192];
    size_t first_third, n_thirds; /* rows of a packed q,k,v; 0 and 3: the whole weight */
    int n_lead;                   /* dimensions of size 1 in front of the shape */
    bool transpose;
} pnb__layout_part;

/* What a folder can be written as. */
typedef enum pnb__layout_kind {
    PNB__LAYOUT_PROLIP,    /* config.json of constructor arguments, text under "text." */
    PNB__LAYOUT_OPEN_CLIP, /* open_clip_config.json; CLIP: text at the top; SigLIP: timm's names */
    PNB__LAYOUT_HF         /* config.json with model_type */
} pnb__layout_kind;

/* Finds the tables from the keys. Errors  UNSUPPORTED (ResNet image tower, Hugging Face text tower
 * inside open_clip, a file in which no tower is recognised; the text names a key) */
pnb_status pnb__layout_detect(pnb__layout *out, const pnb__weight_file *file, pnb_error *err);
/* The tables for writing a model of this configuration. */
pnb__layout pnb__layout_of(pnb__layout_kind kind, const pnb__config *config);
const char *pnb__layout_name(const pnb__layout_table *table);
bool pnb__layout_is_hf(const pnb__layout *l);
bool pnb__layout_has_text_at_top(const pnb__layout *l);

/* The arrays that make up one weight; 1 to 3, or 0 when the layout has no place for it. */
size_t pnb__layout_parts(const pnb__layout *l, const char *name, pnb__layout_part parts[3]);

/* Buffers that some checkpoints store and no computation reads. */
bool pnb__layout_ignores(const pnb__layout *l, const char *key);

/* A weight in Penumbra's order of elements and the file's dtype: a view into the map where the file
 * has it so, else `owned` (pnb__free). */
typedef struct pnb__gathered {
    pnb_array_view view;
    void *owned;
} pnb__gathered;

/* Shapes are checked against p; `any_rows` accepts another first dimension (positions to resize).
 * Errors  NOT_FOUND, SHAPE, DTYPE, NOMEM */
pnb_status pnb__layout_gather(const pnb__layout *l, const pnb__weight_file *file,
                              const pnb__param *p, bool any_rows, pnb__gathered *out,
                              pnb_error *err);

/* The opposite: appends the views that store weight `in` in layout l to views[*n] (room for 3).
 * Names and transposed copies come from `arena`. Errors  UNSUPPORTED (no place), NOMEM */
pnb_status pnb__layout_scatter(const pnb__layout *l, const pnb_array_view *in, pnb__arena *arena,
                               pnb_array_view *views, size_t *n, pnb_error *err);

#endif
