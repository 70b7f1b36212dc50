/* What an adapter is: all that files, commands and checks know of a method.
 *
 * A method owns a struct of its own, zeroed before `fit` or `open` fills it, and the calls of
 * pnb__adapter_calls. What every method needs is done around them, once: the checks of sets and
 * chains, the folder on disk, the loop over blocks of rows, the set that comes out. The shapes are
 * the widest that the methods of the literature ask for:
 *
 *   heads by side       `side` says which one the rows are of, and how wide it comes in and out
 *   training            fit makes a pnb__objective of its struct and hands it to pnb__trainer_run;
 *                       the options of a method are a table of pnb__field, as an objective's are
 *   posteriors, samples apply gets a block of rows with their numbers, so that what is drawn for a
 *                       row depends on the row and not on the block
 *   Hessians            arrays of any shape and type, by name; the rows that are read may be
 *                       activations of another width than the rows that come out */
#ifndef PNB_ADAPT_ADAPTER_H
#define PNB_ADAPT_ADAPTER_H

#include "adapt/adapters.def"
#include "io/json/value.h"
#include "penumbra/adapt.h"
#include "penumbra/safetensors.h"
#include "train/run/run_settings.h"

typedef struct pnb__adapter_calls pnb__adapter_calls;

enum { PNB__MAX_ADAPTER_FIGURES = 16 };

/* One side. fit finds it filled from the sets and may change what its comment allows. */
typedef struct pnb__adapter_part {
    bool is_adapted; /* fit may say false: rows of this side are left alone */
    size_t dim;      /* of the rows read; 0: no set of this side was there */
    size_t dim_out;  /* of the rows made; fit may change it */
    size_t n_rows;   /* learned from */
    pnb_embeddings_info origin;
} pnb__adapter_part;

struct pnb_adapter {
    const pnb_adapter_about *about;
    const pnb__adapter_calls *calls;
    void *self; /* the method's own struct */
    const pnb_ctx *ctx;
    pnb_adapter_opts opts;
    pnb_family family;   /* of the sets made; fit may change it */
    bool has_epistemic;  /* of the sets made; fit and open may set it, for a gen_gaussian */
    const char *measure; /* that sets are compared by; fit and open may change it */
    double scale;        /* of scores by `measure` in the softmax that was learned with, which sets
                          * then name in place of their model's; NaN: that is left as it is */
    double match_a,
        match_b; /* learned for match_prob, which sets then carry; a 0: there are none */
    pnb__adapter_part part[PNB_N_ADAPTER_SIDES];
    pnb_adapter_link link; /* what chains get */
    pnb_adapter_figure figures[PNB__MAX_ADAPTER_FIGURES];
    size_t n_figures;
};

/* Rows of one side that are learned from. */
typedef struct pnb__adapter_rows {
    const pnb_embeddings *set; /* NULL: this side is not there */
    const size_t *row;         /* [n] rows of the set, ascending; NULL: all of them */
    size_t n;
    const char *what; /* "image", "text": for messages */
} pnb__adapter_rows;

typedef struct pnb__adapter_job {
    pnb__adapter_rows side[PNB_N_ADAPTER_SIDES];
    const pnb_truth *truth;       /* over all rows of both sets; NULL: none */
    const pnb_adapter_data *data; /* all that the caller gave: held-out rows, checked like the
                                   * others, and the run */
} pnb__adapter_job;

/* Arrays on their way to a file; names and data are borrowed. */
typedef struct pnb__adapter_arrays {
    pnb_array_view *views;
    size_t n;
} pnb__adapter_arrays;

/* A block of rows on its way through. */
typedef struct pnb__adapter_block {
    pnb_adapter_side side;
    const char *what; /* "image", "text" */
    const float *x;   /* (n, dim) the rows as they are */
    size_t n, dim;
    size_t first;        /* number of row 0 in its set */
    pnb_embeddings *out; /* n rows of the adapter's family and the side's dim_out: to be filled */
} pnb__adapter_block;

struct pnb__learned_calls;

struct pnb__adapter_calls {
    size_t self_bytes;
    const struct pnb__learned_calls *learned; /* heads/learned.h; NULL: no head is trained */
    const pnb__field *fields;                 /* the options it reads, in pnb_adapter_opts */
    size_t n_fields;
    /* Learns. Sets, chains, widths of the sides and the method's need of them are checked. */
    pnb_status (*fit)(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err);
    /* Reads what `arrays` named; a->opts, family and parts are filled as a stranger wrote them:
     * a family or a width that the method does not make must be refused. `where` starts messages.
     */
    pnb_status (*open)(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                       pnb_error *err);
    pnb_status (*arrays)(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err);
    /* Called from several threads for one adapter. */
    pnb_status (*apply)(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err);
    /* Whether with these options nothing of what the list's `meet` says is done, so that the sides
     * may have two widths; has_model: the rows are activations. NULL: it always is. */
    bool (*is_apart)(const pnb_adapter *a, bool has_model);
    bool draws;                /* what apply makes of a row depends on its number */
    void (*reset)(void *self); /* frees what self points to; after a failed fit or open too */
};

#define PNB__ADAPTER_DECLARE(name, ...) extern const pnb__adapter_calls pnb__adapter_##name;
PNB__ADAPTERS(PNB__ADAPTER_DECLARE)
#undef PNB__ADAPTER_DECLARE

/* ---- adapter.c ---- */

/* "image" or "text": the word of modalities. */
const char *pnb__adapter_side_word(pnb_adapter_side side);
/* An adapter without a struct's contents. Free with pnb_adapter_free. NOT_FOUND lists the names. */
pnb_status pnb__adapter_create(pnb_adapter **out, const pnb_ctx *ctx, const char *method,
                               pnb_error *err);

/* Sides of two widths are for methods in which they do not meet. SHAPE, with the reason. */
pnb_status pnb__adapter_check_widths(const pnb_adapter *a, const size_t dim[PNB_N_ADAPTER_SIDES],
                                     bool has_model, pnb_error *err);

/* The calls of a method of the list. */
const pnb__adapter_calls *pnb__adapter_calls_of(const pnb_adapter_about *about);

/* For fit: a number that people should know of what was learned ("image_shrinkage"), of a side or,
 * with PNB_N_ADAPTER_SIDES, of all ("loss"). It stands in config.json and is shown by train and
 * info. At most PNB__MAX_ADAPTER_FIGURES, finite: more is a method's mistake. */
void pnb__adapter_tell(pnb_adapter *a, pnb_adapter_side side, const char *name, double value);

/* ---- adapter_options.c ---- */

/* The words of the enums in pnb_adapter_opts, NULL outside: as a pnb__field wants them. */
const char *pnb__adapt_uncertain_word(int value);
const char *pnb__adapt_recipe_word(int value);
const char *pnb__adapt_texts_word(int value);
const char *pnb__adapt_start_word(int value);
const char *pnb__adapt_loss_word(int value);
const char *pnb__adapt_normaliser_word(int value);
const char *pnb__adapt_ablation_word(int value);
const char *pnb__adapt_likelihood_word(int value);
const char *pnb__adapt_marginal_word(int value);
/* Whether an option has its default's value. */
bool pnb__adapter_is_default(const pnb_adapter_opts *opts, const pnb__field *f);
/* ARG where an enum of the method's options is none of its words. */
pnb_status pnb__adapter_check_words(const pnb_adapter *a, pnb_error *err);
/* The options it was learned with, as config.json has them; null: chosen by the method. NULL when
 * out of memory. */
json_t *pnb__adapter_options(const pnb_adapter *a);
/* Reads them back; what is not there keeps its value. */
void pnb__adapter_read_options(pnb__jobj *root, pnb_adapter *a, pnb_error *err);

/* ---- adapter_apply.c ---- */

/* What scores of rows that an adapter made are, in their info: the measure, and the scale of its
 * own softmax where it learned one. */
void pnb__adapter_describe_scores(const pnb_adapter *a, pnb_embeddings_info *info);
/* Room for what a side is made: n rows of zeros, without names and info. NOMEM */
pnb_status pnb__adapter_make_set(pnb_embeddings **out, const pnb_adapter *a, pnb_adapter_side side,
                                 size_t n, pnb_error *err);
/* n rows x (n, dim) of a side that is adapted into rows first.. of a set of the adapter's family
 * and the side's dim_out. `number` is that of the first in its set: what is drawn for a row depends
 * on it. Widths are the caller's to check.   Errors  those of the method */
pnb_status pnb__adapter_apply_rows(const pnb_adapter *a, pnb_adapter_side side, const float *x,
                                   size_t n, size_t number, pnb_embeddings *out, size_t first,
                                   pnb_error *err);

/* Whether what it makes of a row depends on the row's number in its set. */
bool pnb__adapter_draws(const pnb_adapter *a);

/* ---- adapter_file.c ---- */

/* Fills a->link from what the adapter is: its name, the hash, which sides it leaves alone. */
pnb_status pnb__adapter_identify(pnb_adapter *a, pnb_error *err);
/* arrays_sha256 of config.json: of each array in the order of their names the name, a 0, the type,
 * a 0, the sizes in decimal each with a comma behind, a 0, and the bytes. NOMEM */
pnb_status pnb__adapter_hash(const pnb_safetensors *file, char hex[65], pnb_error *err);
/* Reads an adapter from its two files in memory and opened. */
pnb_status pnb__adapter_read(pnb_adapter **out, const pnb_ctx *ctx, const char *config, size_t size,
                             const pnb_safetensors *file, const char *where, pnb_error *err);
/* For `arrays` and `open`: an F64 array (n), or (n,m) where m > 0. On reading all numbers must be
 * finite; `out` has room for n * max(m, 1). */
pnb_status pnb__adapter_put(pnb__adapter_arrays *to, const char *name, const double *data, size_t n,
                            size_t m, pnb_error *err);
pnb_status pnb__adapter_get(const pnb_safetensors *file, const char *name, double *out, size_t n,
                            size_t m, const char *where, pnb_error *err);
/* Whether such an array is there, before memory is taken for it. FORMAT, SHAPE, DTYPE */
pnb_status pnb__adapter_find(const pnb_safetensors *file, const char *name, size_t n, size_t m,
                             const char *where, pnb_error *err);

/* ---- moments.c: what methods compute of rows ---- */

/* Row i of those that are learned from. */
const float *pnb__adapter_row(const pnb__adapter_rows *rows, size_t i);
/* Squared length of a row. NUMERIC where a number of it is not finite, naming row and side. */
pnb_status pnb__adapter_square(const float *x, size_t dim, size_t row, const char *what,
                               double *out, pnb_error *err);
/* mean[d] = (1/n) sum_i x_id, of the rows as they are or of rows of unit length (NUMERIC where one
 * has length 0). f64, in the order of the rows. */
pnb_status pnb__adapter_mean(const pnb__adapter_rows *rows, bool is_unit, double *mean,
                             pnb_error *err);
/* For `open` of a method that keeps the means: FORMAT unless it makes Gaussians as wide as the rows
 * that it reads. */
pnb_status pnb__adapter_check_kept(const pnb_adapter *a, const char *where, pnb_error *err);
/* Lets go of the pages of rows that were read, where the set is a map. */
void pnb__adapter_rows_done(const pnb__adapter_rows *rows, size_t begin, size_t end);
/* Writes a block's rows as they are with the variance u / D in every dimension, so that their trace
 * is u; u is at least PNB__ADAPTER_LEAST. */
#define PNB__ADAPTER_LEAST 1e-6
void pnb__adapter_spread(const pnb__adapter_block *block, size_t i, double u);

#endif
