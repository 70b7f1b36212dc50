/* What an encoder is. A model has two of them, for pictures and for texts; a family of models says
 * what they are, in one pnb__family_calls. The rooms above ask here: what goes in, what
 * comes out and of which family of distributions, which parameters there are, how it is computed.
 *
 *     pixels (B,3,H,W)  --image tower-->  a distribution a picture   \
 *                                                                     one space of D dimensions
 *     ids (B,T)         --text tower--->  a distribution a text      /
 *
 * A new family is a folder beside prolip/ with its calls, and a row of model_families.def. */
#ifndef PNB_MODELS_TOWER_H
#define PNB_MODELS_TOWER_H

#include "models/weights/weight_types.h"
#include "penumbra/embeddings.h"

typedef enum pnb__side { PNB__IMAGE_SIDE, PNB__TEXT_SIDE, PNB__N_TOWERS } pnb__side;

/* What a tower ends in: B distributions of one family. What the family lacks is NULL. */
typedef struct pnb__dist {
    pnb__tensor *mean;             /* (B,D); on the sphere the direction; of a tower that gives K
                                    * embeddings they lie beside each other */
    size_t n_embeddings;           /* K; 0: one */
    pnb__tensor *residual;         /* (B,D): what local attention adds to the K embeddings, beside
                                    * each other; NULL: there is none */
    pnb__tensor *log_var;          /* (B,D) gaussian_diag */
    pnb__tensor *kappa;            /* (B) vmf, power_spherical */
    pnb__tensor *inv_alpha, *beta; /* (B,D) gen_gaussian */
    pnb__tensor *activations; /* (B,P) that a last projection makes the mean of, and behind them
                               * what is added to what it makes, if anything is; NULL: none does */
} pnb__dist;

/* Numbers that a text tower finds in the ids before it is run: where a text ends, how long it is.
 */
enum { PNB__MAX_PLACES = 2 };

/* What goes into a tower. */
typedef struct pnb__tower_in {
    pnb__tensor *pixels; /* image: (B,3,H,W) normalised */
    /* Masked pictures, for towers that see patches; NULL for all patches. */
    pnb__tensor *kept;                    /* (B,K) int32, flat row indices b*N + patch */
    pnb__tensor *kept_positions;          /* (K) int32, patch indices */
    pnb__tensor *ids;                     /* text: (B,T) int32, padded */
    pnb__tensor *places[PNB__MAX_PLACES]; /* (B) int32 each, filled by find_places; else NULL */
} pnb__tower_in;

/* One tower of a family. */
typedef struct pnb__tower_calls {
    /* Family of the distributions: a point, a Gaussian, ... It decides what `build` returns, which
     * arrays an embedding set of this tower has, and what such sets are compared by. */
    pnb_family (*family)(const pnb__config *c);

    /* Declares every parameter by pnb__declare, in the order that files, optimisers and checkpoints
     * have, and leaves a struct of its own in w->tower[side], from w->arena. Names begin with
     * "visual." in image towers and with "text." in text towers: that is how the rest tells them
     * apart. Called twice: while parameters are counted, declaring gives NULL. */
    void (*declare)(pnb__weights *w, const pnb__config *c);

    /* Adds the tower to a graph. `unit`: the mean with L2 norm 1, as the losses take it; else as it
     * is before. A building error is the graph's (NULL in, NULL out). */
    pnb__dist (*build)(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                       const pnb__tower_in *in, bool unit);

    /* What reports say about it; sizes of its inputs, family and names of keys are filled in
     * already. NULL: there is nothing to add. */
    void (*describe)(pnb_tower_info *out, const pnb__config *c);

    /* Text towers that must know where a text ends. n_places: of `in->places`, up to
     * PNB__MAX_PLACES; find_places: those of text `row` of a batch, from its n ids. Both NULL:
     * none. Errors  ARG (the ids hold no such place) */
    size_t (*n_places)(const pnb__config *c);
    pnb_status (*find_places)(const pnb__config *c, const int32_t *ids, size_t n, size_t row,
                              int32_t places[PNB__MAX_PLACES], pnb_error *err);
} pnb__tower_calls;

/* A family of models. What is NULL is as for any model, as said with it. */
typedef struct pnb__family_calls {
    const char *name; /* "prolip": in reports, and the family of pnb_model_info */
    const pnb__tower_calls *image, *text;

    /* Does this configuration file describe such a model, and its reader (config/config.h says what
     * it fills; own settings go through pnb__config_set_own). NULL: the dialects of config/ do.
     * Errors  those of pnb__config_read */
    bool (*claims)(const json_t *root);
    pnb_status (*read_config)(pnb__config *out, json_t *root, const char *where, pnb_error *err);

    /* The configuration that follows from the arrays of a file that came without one, for
     * read_config; NULL where the file is not of this family, or memory ran out. NULL: none does.
     */
    json_t *(*config_of)(const pnb__weight_file *file);

    /* Names of the arrays in weight files. NULL: the known layouts, told by the keys. */
    const pnb__key_mapping_table *image_keys, *text_keys;

    /* Names of a text tower of points, where its files have arrays that only a Gaussian one reads.
     * NULL: as text_keys */
    const pnb__key_mapping_table *point_text_keys;

    /* Arrays of a released file that hold a and b of the logits themselves, where ours are
     * "logit_scale", the logarithm of a, and "logit_bias". NULL: no file has them otherwise. */
    const char *plain_scale_key, *plain_bias_key;
    /* What its Gaussians are compared by, and whether a and b are those of match_prob, or of the
     * logit -a csd + b, rather than of a logit a cos + b. NULL: csd, as Gaussians are */
    const char *measure;
    bool scale_is_match, scale_is_distance;

    /* Another size than the configuration's: changes c, and tells in `resize` what the file still
     * has. NULL: such models are opened at their own size. Errors  ARG */
    pnb_status (*set_sizes)(pnb__config *c, const pnb_model_load_opts *o, pnb__resize *resize,
                            pnb_error *err);

    /* Pixels of a folder that does not say how they are prepared: changes what differs from
     * pnb_preprocess_default. `config` is its JSON. */
    void (*assume_pixels)(pnb_preprocess *pp, const json_t *config);
    /* How captions were cleaned for its released models; none: as they come, or not always. */
    pnb_clean trained_clean;
    /* Where its tokenizer is to be had, in words. NULL: "the model's repository". */
    const char *(*tokenizer_source)(const pnb__config *c);

    /* Rows of the text tower's table are the words of one vocabulary, none to spare. False:
     * released tables are padded to round numbers */
    bool rows_are_words;
    bool trains; /* contrastive training has what it needs: log-variances or points */
    /* Which weights are the pretrained parts that a first phase of training leaves alone, by their
     * name. NULL: such models have none */
    bool (*is_trunk)(const char *name);
    /* Which weights of the towers are not pretrained but stand behind what is, and take the whole
     * rate where the towers take a share of it. NULL: none */
    bool (*is_head)(const char *name);
    /* Whether training normalises by the moments of the batch that one graph sees, so that a step
     * must be one graph. NULL: never */
    bool (*needs_whole_batch)(const pnb__config *c);
} pnb__family_calls;

/* The list, made of model_families.def in family_table.c, which holds nothing else: a test program
 * may bring a table of its own, with a row more. */
extern const pnb__family_calls *const pnb__model_families[];
extern const size_t pnb__n_model_families;

const pnb__family_calls *pnb__family_of(const pnb__config *c);
const pnb__tower_calls *pnb__tower_of(const pnb__config *c, pnb__side side);
bool pnb__has_tower(const pnb__config *c, pnb__side side);

/* Reads a configuration by the family that claims it, else by the dialects of config/. */
pnb_status pnb__family_read_config(pnb__config *out, json_t *root, const char *where,
                                   pnb_error *err);
/* The configuration of a file alone, by the family that knows its arrays; *out NULL: none does.
 * Errors  FORMAT, ARG, those of read_config */
pnb_status pnb__family_config_of(pnb__config *out, json_t **root, const pnb__weight_file *file,
                                 pnb_error *err);
/* Names of the arrays in a file of such a model. Errors  UNSUPPORTED (no tower is recognised) */
pnb_status pnb__family_detect_keys(pnb__key_mapping *out, const pnb__config *c,
                                   const pnb__weight_file *file, pnb_error *err);
/* Names that a new model of this family is saved under. */
pnb__key_mapping pnb__family_own_keys(const pnb__config *c);

/* Everything about both towers but what the weights alone know. */
void pnb__describe_towers(pnb_model_info *info, const pnb__config *c, const pnb__key_mapping *keys);

/* ---- for families ---- */

/* A parameter to declare: name, shape, how it starts. */
typedef struct pnb__declared {
    const char *name;
    int n_dims;
    size_t shape[PNB__DIMS];
    pnb__init_kind init;
    double value; /* of init: a std, a bound or a constant */
    pnb__resize_rows_fn resize_rows;
    bool is_buffer; /* state that training moves, but not by gradients: kept, saved, not trained */
} pnb__declared;

/* The parameter, NULL while they are counted or when memory ran out (w->failed). */
pnb__param *pnb__declare(pnb__weights *w, pnb__side side, const pnb__declared *what);
pnb__param *pnb__declare_vector(pnb__weights *w, pnb__side side, const char *name, size_t n,
                                pnb__init_kind init, double value);
/* `shape` is (rows, columns). */
pnb__param *pnb__declare_matrix(pnb__weights *w, pnb__side side, const char *name,
                                const size_t shape[2], pnb__init_kind init, double value);
/* What is drawn for a parameter that was declared just now lies around `centre`, not 0. */
void pnb__declare_around(pnb__weights *w, const pnb__param *p, double centre);
/* A tower's own struct, all zero, in the arena; kept in w->tower[side]. NULL out of memory. */
void *pnb__declare_tower(pnb__weights *w, pnb__side side, size_t n_bytes);

/* x / max(|x|, 1e-12) of each row, as F.normalize; x itself unless `unit`. */
pnb__tensor *pnb__unit_rows(pnb__tensor *x, bool unit);

#endif
