/* Names of weights: Penumbra's own (open_clip's with the text tower under "text.") against those of
 * every layout that is read or written, as tables that work in both directions. */
#ifndef PNB_MODELS_KEYS_KEY_MAPPING_H
#define PNB_MODELS_KEYS_KEY_MAPPING_H

#include "models/config/config.h"
#include "models/weights/weight_file.h"
#include "tensor/graph.h"

/* One weight of Penumbra's and one array of a file. In both patterns '#' stands for one layer
 * number and a final '*' for the rest of the name. A rule without a name is of arrays that are
 * passed over, as the classifier behind a trunk is. A packed q,k,v projection that a file keeps
 * apart has a rule for each part: thirds [first_third, first_third + n_thirds) of its rows; 0 and 3
 * is the whole weight. */
typedef struct pnb__key_rule {
    const char *name, *key;
    unsigned char first_third, n_thirds;
    unsigned char n_lead; /* dimensions of size 1 in front of the file's shape */
    bool transpose;       /* the file has x P where Penumbra has x W^T */
} pnb__key_rule;
#define PNB__KEY_WHOLE 0, 3, 0, false

/* The names that one tower has in one layout of files. */
typedef struct pnb__key_mapping_table {
    const char *name; /* of the layout, for reports */
    const pnb__key_rule *rules;
    size_t n;
} pnb__key_mapping_table;

/* Which table names the arrays of each tower; NULL for a tower that is not there. */
typedef struct pnb__key_mapping {
    const pnb__key_mapping_table *vision, *text;
    const char *prefix;  /* in front of every key: "" or "module." */
    size_t n_scale_dims; /* logit_scale and logit_bias have shape [] or [1] */
    /* Names under which the file has a and b themselves; NULL: logit_scale and logit_bias as ours.
     * Once they were read and turned into ours (plain_taken), ours are written. */
    const char *plain_scale, *plain_bias;
    bool plain_taken;
} pnb__key_mapping;

/* One array of the file and the place of its rows in Penumbra's weight. */
typedef struct pnb__key_mapping_part {
    char key[192];
    size_t first_third, n_thirds; /* rows of a packed q,k,v; 0 and 3: the whole weight */
    int n_lead;                   /* dimensions of size 1 in front of the shape */
    bool transpose;
} pnb__key_mapping_part;

/* What a folder can be written as. */
typedef enum pnb__key_mapping_kind {
    PNB__KEY_MAPPING_PROLIP,    /* config.json of constructor arguments, text under "text." */
    PNB__KEY_MAPPING_OPEN_CLIP, /* open_clip_config.json; CLIP: text at the top; SigLIP: timm's
                                   names */
    PNB__KEY_MAPPING_HF         /* config.json with model_type */
} pnb__key_mapping_kind;

/* Finds the tables from the keys. Errors  UNSUPPORTED (ResNet image tower, Hugging Face text tower
 * inside open_clip, a file in which no tower is recognised; the text names a key) */
pnb_status pnb__key_mapping_detect(pnb__key_mapping *out, const pnb__weight_file *file,
                                   pnb_error *err);
/* The same for a family with tables of its own: a tower is there when the file has an array of it.
 * Errors  UNSUPPORTED (no tower) */
pnb_status pnb__key_mapping_choose(pnb__key_mapping *out, const pnb__weight_file *file,
                                   const pnb__key_mapping_table *vision,
                                   const pnb__key_mapping_table *text, pnb_error *err);
/* The tables for writing a model of this configuration. */
pnb__key_mapping pnb__key_mapping_of(pnb__key_mapping_kind kind, const pnb__config *config);
const char *pnb__key_mapping_name(const pnb__key_mapping_table *table);
bool pnb__key_mapping_is_hf(const pnb__key_mapping *l);
bool pnb__key_mapping_has_text_at_top(const pnb__key_mapping *l);

/* The arrays that make up one weight; 1 to 3, or 0 when the layout has no place for it. */
size_t pnb__key_mapping_parts(const pnb__key_mapping *l, const char *name,
                              pnb__key_mapping_part parts[3]);

/* Buffers that some checkpoints store and no computation reads. */
bool pnb__key_mapping_ignores(const pnb__key_mapping *l, const char *key);

/* A weight in Penumbra's order of elements and the file's dtype: a view into the map where the file
 * has it so, else `owned` (pnb__free). */
typedef struct pnb__gathered {
    pnb_array_view view;
    void *owned;
} pnb__gathered;

/* Shapes are checked against p; `any_rows` accepts another first dimension (positions to resize).
 * Errors  NOT_FOUND, SHAPE, DTYPE, NOMEM */
pnb_status pnb__key_mapping_gather(const pnb__key_mapping *l, const pnb__weight_file *file,
                                   const pnb__param *p, bool any_rows, pnb__gathered *out,
                                   pnb_error *err);

/* The opposite: appends the views that store weight `in` in layout l to views[*n] (room for 3).
 * Names and transposed copies come from `arena`. Errors  UNSUPPORTED (no place), NOMEM */
pnb_status pnb__key_mapping_scatter(const pnb__key_mapping *l, const pnb_array_view *in,
                                    pnb__arena *arena, pnb_array_view *views, size_t *n,
                                    pnb_error *err);

#endif
