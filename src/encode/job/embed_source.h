/* What an embedding job is made of: a numbered list of pictures, texts or ready rows. */
#ifndef PNB_ENCODE_JOB_EMBED_SOURCE_H
#define PNB_ENCODE_JOB_EMBED_SOURCE_H

#include "base/base.h"
#include "penumbra/embeddings.h"
#include "penumbra/image.h"

/* An input of which nothing says when it was changed: any other number of seconds is a time, those
 * before 1970 too. */
#define PNB__NO_TIME INT64_MIN

/* Every function gets `user`; of the first three one is there, which several threads call at once.
 */
typedef struct pnb__embed_source {
    size_t n;
    bool is_text;
    const void *user;
    /* Reads a picture, which is then prepared; on threads of its own, ahead of the encoder. */
    pnb_status (*image)(const void *user, size_t i, const pnb_image_opts *opts, pnb_image *out,
                        pnb_error *err);
    /* A text to be tokenised, in UTF-8. */
    const char *(*text)(const void *user, size_t i);
    /* Fills a ready row: pixels (3,H,W) normalised, or n_tokens token ids. */
    pnb_status (*row)(const void *user, size_t i, void *row, pnb_error *err);
    size_t n_tokens; /* of ready texts */

    /* Names row `row` of a set after input i; NULL: rows have no names. */
    pnb_status (*label)(const void *user, size_t i, pnb_embeddings *set, size_t row,
                        pnb_error *err);
    /* What to call input i in a message; NULL: its number. */
    pnb_status (*name)(const void *user, size_t i, char *text, size_t size, pnb_error *err);
    /* SHA-256 of input i as it lies there (bytes of a picture's file, a caption), and the time in
     * Unix seconds at which it was last changed, or PNB__NO_TIME. NULL: inputs have no content. */
    pnb_status (*content)(const void *user, size_t i, char sha256[65], int64_t *time,
                          pnb_error *err);
    /* Of jobs with a journal: hashes what was named and how much it holds, so that a continued job
     * sees the same list; a number that changes when input i was replaced (NULL: the hash says
     * all).
     */
    void (*hash)(const void *user, pnb__sha256 *hash);
    uint64_t (*stamp)(const void *user, size_t i);
} pnb__embed_source;

#endif
