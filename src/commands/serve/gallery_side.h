/* What galleries of all kinds settle when they are opened, and say of a row. */
#ifndef PNB_COMMANDS_SERVE_GALLERY_SIDE_H
#define PNB_COMMANDS_SERVE_GALLERY_SIDE_H

#include "commands/common/match_probability_use.h"
#include "encode/encoder.h"

/* What queries of one side are compared by, and what their scores are worth. */
typedef struct pnb__gallery_side {
    bool is_there;
    pnb__match_probability odds; /* released by pnb__match_probability_reset */
    pnb_measure measure;
    pnb_measure_opts opts;
} pnb__gallery_side;

/* Where a gallery comes from. */
typedef struct pnb__gallery_place {
    const char *name;        /* for messages */
    const char *set_path;    /* its calibration lies beside a set of this name */
    const char *calibration; /* a file in its place, "none", or NULL */
} pnb__gallery_place;

/* `rows`: of the gallery, as a set that tells family and origin; n is that of the gallery.
 * Errors  ARG (rows of other weights than the model's), and those of a calibration */
pnb_status pnb__gallery_side_settle(pnb__gallery_side *s, pnb__app *app, const pnb_encoder *e,
                                    pnb_encode_side which, const pnb_embeddings *rows,
                                    const pnb__gallery_place *place);

/* Appends fields of a row's record that mean something to others; where it lies on this machine
 * does not. */
void pnb__gallery_put_extra(const char *extra, bool has_caption, pnb__buf *b);

#endif
