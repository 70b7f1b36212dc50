/* What galleries of all kinds settle when they are opened, and say of a row. */
#ifndef PNB_COMMANDS_SERVE_GALLERY_SIDE_H
#define PNB_COMMANDS_SERVE_GALLERY_SIDE_H

#include "commands/common/match_probability_use.h"
#include "encode/encoder.h"
#include "server/searching/gallery.h"

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
    bool is_sample;          /* of the rows that are given one is there */
} pnb__gallery_place;

/* One row as the model makes them on that side, but for its numbers.  Errors  NOMEM */
pnb_status pnb__gallery_probe(const pnb_encoder *e, pnb_encode_side which, pnb_embeddings **out,
                              pnb_error *err);
/* `rows`: of the gallery, as a set that tells family and origin; n is that of the gallery.
 * Errors  ARG (rows of other weights than the model's), and those of a calibration */
pnb_status pnb__gallery_side_settle(pnb__gallery_side *s, pnb__app *app, const pnb_encoder *e,
                                    pnb_encode_side which, const pnb_embeddings *rows,
                                    const pnb__gallery_place *place);

/* pnb__gallery_calls.conformal: of the calibration that this side has. */
pnb_status pnb__gallery_side_conformal(const pnb__gallery_side *s, double alpha,
                                       const pnb__found *found, size_t n, size_t *n_kept,
                                       const char **by, pnb_error *err);
/* The nearest of the rows that lie inside of the query, or that it lies in, into found[k] with
 * their places in `rows`; none where a side has no variances.  Errors  NOMEM */
pnb_status pnb__gallery_related(const pnb_ctx *ctx, const pnb_embeddings *query,
                                const pnb_embeddings *rows, bool inside, size_t k,
                                pnb__found *found, size_t *n, pnb_error *err);
/* What shares of n uncertainties stay below, which are sorted here; not known of none. */
pnb__spread pnb__gallery_spread(double *u, size_t n);

/* Appends fields of a row's record that mean something to others; where it lies on this machine
 * does not. */
void pnb__gallery_put_extra(const char *extra, bool has_text, pnb__buf *b);

#endif
