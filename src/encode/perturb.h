/* Changed copies of pictures and captions, and their embeddings: what probing and attribution are
 * made of. Everything is a function of (seed, number of the input), never of the batch. */
#ifndef PNB_ENCODE_PERTURB_H
#define PNB_ENCODE_PERTURB_H

#include "encode/encoder.h"
#include "encode/inputs/inputs.h"
#include "encode/word_list.h"
#include "penumbra/image.h"
#include "penumbra/prob.h"

/* ---- pictures ---- 8-bit RGB at the encoder's size, so that a share is a share of what it sees */
typedef struct pnb__pixel_set {
    pnb_image *items;
    char **names;
    size_t *input; /* [n] its number in the source */
    size_t n;
} pnb__pixel_set;

/* Up to `limit` pictures of a source, evenly spaced; those that cannot be read are skipped by name.
 * Of `opts` exif and skipped count. Errors  NOT_FOUND (none could be read), NOMEM */
pnb_status pnb__pixels_load(const pnb_encoder *encoder, const pnb__image_inputs *images,
                            size_t limit, const pnb_encode_opts *opts, pnb__pixel_set *out,
                            pnb_error *err);
/* The inputs of these numbers instead. */
pnb_status pnb__pixels_load_these(const pnb_encoder *encoder, const pnb__image_inputs *images,
                                  const size_t *input, size_t n, const pnb_encode_opts *opts,
                                  pnb__pixel_set *out, pnb_error *err);
void pnb__pixels_reset(pnb__pixel_set *set);

/* 255 * mean of the preprocessing: what the encoder sees as zero. */
void pnb__fill_colour(const pnb_preprocess *pp, unsigned char rgb[3]);
/* Rectangle with the picture's proportions that covers `share` of it; `at` places its centre, as
 * shares of the room it has: (0.5, 0.5) is the middle. Share 1 is everything. */
void pnb__erase_share(pnb_image *image, double share, const double at[2],
                      const unsigned char rgb[3]);
void pnb__erase_rect(pnb_image *image, const int box[4] /* x0 y0 x1 y1 */,
                     const unsigned char rgb[3]);
/* Pixel by pixel the mean of two pictures of one size, rounded up; or the left half of a beside the
 * right half of b. */
void pnb__mix_blend(const pnb_image *a, const pnb_image *b, pnb_image *out);
void pnb__mix_halves(const pnb_image *a, const pnb_image *b, pnb_image *out);
pnb_status pnb__copy_pixels(const pnb_image *from, pnb_image *to, pnb_error *err);

/* Makes the picture of one row: `out` is of the encoder's size and may hold anything. Several
 * threads call it at once. */
typedef void (*pnb__make_fn)(const void *user, size_t row, pnb_image *out);

/* Encodes n_rows made pictures, n_rows > 0, to a new set without names.
 * Errors  INTERRUPTED, and those of the encoder */
pnb_status pnb__encode_made(pnb_encoder *encoder, size_t n_rows, pnb__make_fn make,
                            const void *user, const pnb_encode_opts *opts, pnb_embeddings **out,
                            pnb_error *err);

#endif
