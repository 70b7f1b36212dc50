/* Rows of one side of a comparison with known uncertainty: what is known of them, the uncertainty
 * that a model gave them, and the controls it has to be better than. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_ROWS_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_ROWS_H

#include "penumbra/embeddings.h"
#include "penumbra/truth.h"
#include "program/app.h"

/* The model's, the untrained head's, two of the rows alone, one of a field. */
enum { PNB__MAX_KNOWN_SCORES = 5 };

/* Scores that are not there are NULL; [0] is the model's uncertainty. */
typedef struct pnb__known_side {
    const pnb_embeddings *set; /* borrowed */
    double *known;             /* [n] NaN: this row has none */
    int *level;                /* [n] -1: it has none */
    int64_t *cluster;          /* [n] */
    size_t n_missing;          /* rows without what is known */
    char from[96];             /* the field, or "truth" */
    double *score[PNB__MAX_KNOWN_SCORES];
    const char *name[PNB__MAX_KNOWN_SCORES];
} pnb__known_side;

/* Room for the rows of a set, their levels, each its own cluster; free with pnb__known_side_reset,
 * after a failure too. Errors  FORMAT, NOMEM */
pnb_status pnb__known_side_init(pnb__known_side *side, const pnb_embeddings *set, pnb_error *err);
void pnb__known_side_reset(pnb__known_side *side);

/* known[] from the field of the rows' further fields, "a.b" for the field b of the object a; rows
 * without it are counted.
 * Errors  NOT_FOUND (no row has it: lists what the first has), FORMAT (not a number: names the row)
 */
pnb_status pnb__known_from_field(pnb__known_side *side, const char *path, const char *field,
                                 pnb_error *err);
/* score[4] from a field of the rows in the same way: what can be counted of them. A row without it
 * is an error, since scores are compared on the same rows.
 * Errors  NOT_FOUND, FORMAT (rows without it or with what is no number: names the row) */
pnb_status pnb__known_field_control(pnb__known_side *side, const char *path, const char *field,
                                    pnb_error *err);
/* known[] from a file of label counts (pnb_label_entropy_load); rows it does not name are counted.
 */
pnb_status pnb__known_from_labels(pnb__known_side *side, const char *path, pnb_error *err);
/* known[t] = log2 of the number of pictures that caption t fits, of `backward` (captions to
 * pictures); captions that fit none are counted as missing. */
void pnb__known_from_truth(pnb__known_side *side, const pnb_truth *backward);

/* ---- known_controls.c ---- Scores that nobody would call an uncertainty, each with the sign that
 * it should follow ambiguity by. Both fill score[2] and score[3].
 *
 * Captions: "fewer words", minus the number of words; "common words", the mean over its words of
 * the log of the share of captions that hold them. Left out where a row has no text. */
pnb_status pnb__known_text_controls(pnb__known_side *side, pnb_error *err);
/* Pictures, read again from where the rows say they came from, or from the data set `pictures`
 * where that is not NULL: "smaller file", minus the bytes as a JPEG of quality 75; "flatter
 * picture", minus the mean length of the gradient of its luma. Left out, with a warning, where one
 * cannot be read.
 * Errors  those of opening `pictures`, which are its user's; NOMEM */
pnb_status pnb__known_image_controls(pnb__app *app, pnb__known_side *side, const char *images);

/* Mean over pixels of the length of (dx, dy), forward differences of the luma in 0..255. 0 for a
 * picture of one row or column. */
struct pnb_image;
double pnb__mean_gradient(const struct pnb_image *image);

#endif
