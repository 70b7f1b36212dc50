/* Pictures: decode, resize exactly as Pillow does, crop, normalise for an encoder, write PNG.
 *
 * Embeddings depend on the pixels to the last bit of the resampler, so every step here follows
 * Pillow and torchvision; what an encoder was trained with is told by a pnb_preprocess. Every
 * function may be called from several threads on pictures of their own; resizing gives the same
 * bytes whatever instructions the machine has.
 *
 *     pnb_image image;
 *     pnb_preprocess pp;
 *     pnb_preprocess_load(&pp, "model/", &err);
 *     pnb_image_load(&image, "cat.jpg", NULL, &err);
 *     pnb_preprocess_apply(&pp, &image, chw, &err);       chw: 3 * pp.height * pp.width floats
 *     pnb_image_free(&image); */
#ifndef PENUMBRA_IMAGE_H
#define PENUMBRA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the channels mean. PLAIN is told by their number: 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA.
 * The others appear only when a picture was decoded with `native`. */
typedef enum pnb_image_mode {
    PNB_IMAGE_PLAIN,
    PNB_IMAGE_PALETTE, /* 1 channel, indices into `palette` */
    PNB_IMAGE_BILEVEL, /* 1 channel, 0 or 255: Pillow's mode "1" */
    PNB_IMAGE_CMYK,    /* 4 channels, 255 = full ink */
    PNB_IMAGE_GREY16 /* grey of 16 bits in the machine's byte order, as 2 channels: Pillow's "I" */
} pnb_image_mode;

/* Memory that several threads decode in; see pnb_image_budget_create. */
typedef struct pnb_image_budget pnb_image_budget;

/* All zero is an empty picture. A record may be filled by hand around pixels of the caller's; such
 * a one is not given to pnb_image_free. */
typedef struct pnb_image {
    int width, height;        /* in pixels */
    int channels;             /* 3 after a plain decode; 1, 2 or 4 only when asked for */
    unsigned char *pixels;    /* height x width x channels, 8 bit, no row padding */
    pnb_image_mode mode;      /* what the channels mean */
    unsigned char *palette;   /* PALETTE only: 256 x 3, red, green, blue */
    pnb_image_budget *budget; /* what the pixels are counted in; NULL: nowhere */
    size_t held_bytes;        /* that pnb_image_free gives back to it */
    int orientation;          /* of EXIF, 1 to 8, where the options ask to be told; else 0 */
} pnb_image;

/* The most pixels that a file or the result of a resize may have, and what is allowed of a file
 * unless more is asked for: the number at which Pillow calls a picture a decompression bomb and
 * refuses it. */
#define PNB_IMAGE_MAX_PIXELS ((int64_t)1 << 28)
#define PNB_IMAGE_DEFAULT_PIXELS ((int64_t)178956970)

/* How a picture is decoded. */
typedef struct pnb_image_opts {
    int64_t max_pixels; /* 1 or more, above PNB_IMAGE_MAX_PIXELS means that; larger claims are
                         * refused before anything is allocated */
    bool keep_alpha;    /* an alpha channel of colours, and any transparency of a PNG, makes the
                         * picture RGBA, 4 channels; that of GIF and of grey TIFF goes all the same */
    bool native;        /* keep the file's own mode (grey, palette, CMYK, ...) as Pillow's open();
                         * keep_alpha is not looked at then */
    bool exif;          /* turn as the EXIF orientation of a JPEG, PNG or WebP says; CLIP pipelines
                         * do not */
    bool tell_exif;     /* without exif: the picture stays as it is, `orientation` says the turn */
    pnb_image_budget *budget; /* shared with other decodes; NULL: none */
    size_t *claimed_bytes;    /* inside of pnb_image_decode: what it took of the budget */
} pnb_image_opts;

/* max_pixels = PNB_IMAGE_DEFAULT_PIXELS, RGB, EXIF ignored, no budget. */
pnb_image_opts pnb_image_opts_default(void);

/* Decodes a picture, told by content: JPEG, PNG, WebP, BMP, and GIF, TIFF, AVIF, HEIC where the
 * build has their libraries; of several pictures in a file the first, of an animated WebP none. RGB
 * as Pillow's convert("RGB"): alpha is dropped, not composited; 16-bit grey saturates at 255;
 * 16-bit colour keeps its high byte; CMYK by the naive formula. The orientation of a TIFF is always
 * applied, as by Pillow, and that of AVIF and HEIC, by libheif. `opts` may be NULL. On failure *out
 * is empty. Free with pnb_image_free.
 * Errors  FORMAT (unknown, damaged, truncated; a claim that so few bytes cannot keep), LIMIT (more
 *         pixels than max_pixels), UNSUPPORTED (a format or feature that is not read: says what to
 *         do), ARG (max_pixels < 1), NOMEM */
pnb_status pnb_image_decode(pnb_image *out, const void *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, pnb_error *err);

/* What this build reads, and what it lacks with the library to install: "JPEG, PNG, WebP, BMP,
 * GIF". The second is empty when nothing is missing. */
const char *pnb_image_formats(void);
const char *pnb_image_formats_missing(void);

/* One budget for the decodes of several threads, so that large pictures wait for each other instead
 * of being in memory at once: pixels of max_pixels, at most 2^28, at 4 bytes. A decode takes what
 * it will need at most, told by the header, before it allocates; what the picture keeps is given
 * back by pnb_image_free. Who comes first is served first; a picture within max_pixels that needs
 * more than all of it is decoded alone. A thread must not wait for one picture while it holds
 * another of the same budget. Free with pnb_image_budget_free; on failure *out is NULL.
 * Errors  ARG (max_pixels < 1), NOMEM */
pnb_status pnb_image_budget_create(pnb_image_budget **out, int64_t max_pixels, pnb_error *err);
/* No picture may be counted in it any more; NULL is fine. */
void pnb_image_budget_free(pnb_image_budget *budget);
/* The picture stays and is not counted any more; one without a budget is fine. */
void pnb_image_release_budget(pnb_image *image);

/* pnb_image_decode on a file of at most 1 GiB; on failure *out is empty.
 * Errors  also NOT_FOUND (no such file, a URL), FORMAT (a pipe or a device), LIMIT (a larger file),
 *         IO */
pnb_status pnb_image_load(pnb_image *out, const char *path, const pnb_image_opts *opts,
                          pnb_error *err);

/* Allocates pixels, zeroed, mode PLAIN. On failure *out is empty, here and below.
 * Errors  ARG (sizes < 1, channels outside 1..4), LIMIT (no size_t holds the bytes), NOMEM */
pnb_status pnb_image_create(pnb_image *out, int width, int height, int channels, pnb_error *err);

/* Frees the pixels and empties the record; NULL and an empty record are fine. */
void pnb_image_free(pnb_image *image);

/* A copy in RGB, as Pillow's convert("RGB") on any mode: see pnb_image_decode.
 * Errors  ARG (empty, or channels that do not fit the mode), NOMEM */
pnb_status pnb_image_to_rgb(pnb_image *out, const pnb_image *in, pnb_error *err);

/* X(name, text): the one list behind the enum and the names in preprocessing files. Each is
 * Pillow's filter of that name with the same support and formula; all but NEAREST are widened by
 * the factor of a reduction, so that small pictures of large ones do not alias. */
#define PNB_FILTER_LIST(X)                                                                         \
    X(NEAREST, "nearest")   /* the pixel under the centre */                                       \
    X(BILINEAR, "bilinear") /* a triangle */                                                       \
    X(BICUBIC, "bicubic")   /* a = -0.5 */                                                         \
    X(LANCZOS, "lanczos")   /* 3 lobes */                                                          \
    X(BOX, "box")           /* the mean of what is covered */                                      \
    X(HAMMING, "hamming")   /* a windowed sinc of 1 lobe */

typedef enum pnb_filter {
#define PNB_FILTER_ENUM(name, text) PNB_FILTER_##name,
    PNB_FILTER_LIST(PNB_FILTER_ENUM)
#undef PNB_FILTER_ENUM
        PNB_N_FILTERS /* how many there are */
} pnb_filter;

/* "nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"; NULL outside the list. */
const char *pnb_filter_name(pnb_filter filter);

/* Part of a picture in its own pixel coordinates, left/top inclusive, right/bottom exclusive. */
typedef struct pnb_box {
    double left, top, right, bottom;
} pnb_box;

/* Resamples `box` of `in` (NULL: all of it) to width x height, bit for bit as Pillow's
 * Image.resize: filters widened when shrinking, horizontal pass first, 22-bit fixed-point
 * weights, rounding to 8 bits after each pass. As in Pillow PALETTE and BILEVEL always use NEAREST,
 * and pictures with alpha are premultiplied meanwhile; GREY16 is resampled in doubles and cut to 16
 * bits at the end. The same size and the whole box give a copy.
 *   out[i] = clip8((2^21 + sum_j in[first_i + j] round(w_ij 2^22)) >> 22)     one pass
 *   w_ij   = f((first_i + j + 1/2 - centre_i) / max(scale, 1)) / sum_j
 *   centre_i = left + (i + 1/2) scale,   scale = box width / width
 * Errors  ARG (empty picture, sizes < 1, a box that is empty or reaches outside, no such filter),
 *         LIMIT (more than 2^28 pixels, or a side whose filter takes more than 2^26 weights), NOMEM
 * Source  Pillow 9.4, Resample.c and Geometry.c */
pnb_status pnb_image_resize(pnb_image *out, const pnb_image *in, int width, int height,
                            pnb_filter filter, const pnb_box *box, pnb_error *err);

/* Copies a rectangle; what lies outside `in` is filled with `fill` (0..255, every channel; of
 * GREY16 the grey, of PALETTE the index).
 * Errors  ARG (empty picture, sizes < 1, fill outside), NOMEM */
pnb_status pnb_image_crop(pnb_image *out, const pnb_image *in, int left, int top, int width,
                          int height, int fill, pnb_error *err);

/* Writes an 8-bit PNG of 1, 2, 3 or 4 channels, without metadata; same pixels, same bytes. Free
 * *bytes with pnb_image_bytes_free; on failure it is NULL.
 * Errors  ARG (empty picture, mode not PLAIN), IO (libspng refuses), NOMEM */
pnb_status pnb_image_encode_png(const pnb_image *image, unsigned char **bytes, size_t *n_bytes,
                                pnb_error *err);
void pnb_image_bytes_free(unsigned char *bytes); /* NULL is fine */

/* The same into a file, which appears whole or not at all. */
pnb_status pnb_image_save_png(const pnb_image *image, const char *path, pnb_error *err);

/* (x/255 - mean[c]) / std[c], computed in f32 in this order as torchvision does.
 * Shape   image RGB (H,W,3) -> chw (3,H,W)
 * Errors  ARG (no plain RGB picture, std not above 0) */
pnb_status pnb_image_to_chw(const pnb_image *image, const float mean[3], const float std[3],
                            float *chw, pnb_error *err);

/* ---- from any picture to the input of an image tower ---- */

/* X(name, text): the one list behind the enum and open_clip's "resize_mode". */
#define PNB_FIT_LIST(X)                                                                            \
    X(SHORTEST, "shortest") /* shorter side to the target, centre crop: CLIP, ProLIP */            \
    X(LONGEST, "longest")   /* longer side to the target, centred on the fill */                   \
    X(SQUASH, "squash")     /* both sides to the target, ratio ignored: SigLIP */

typedef enum pnb_fit {
#define PNB_FIT_ENUM(name, text) PNB_FIT_##name,
    PNB_FIT_LIST(PNB_FIT_ENUM)
#undef PNB_FIT_ENUM
        PNB_N_FITS /* how many there are */
} pnb_fit;

/* Offset of a centre crop that leaves d pixels over: they differ by one when d mod 4 == 3. */
typedef enum pnb_centre {
    PNB_CENTRE_ROUND, /* int(round(d / 2)), half to even: torchvision, open_clip */
    PNB_CENTRE_FLOOR  /* d // 2: Hugging Face image processors */
} pnb_centre;

/* Everything that decides which pixels an image tower sees. */
typedef struct pnb_preprocess {
    int width, height; /* of the result, 1 or more, product at most 2^28; a file: 1 to 16,384 */
    int resize_to;     /* side before the crop; 0: the result's own size */
    pnb_fit mode;      /* how the picture comes to that size */
    pnb_filter filter; /* of the resize */
    pnb_centre centre; /* which pixel a crop starts at when its margin is odd */
    bool resize_first; /* resize in the file's own mode, then convert to RGB (OpenAI, open_clip).
                        * false: RGB first (Hugging Face). Matters for palette, bilevel, alpha and
                        * CMYK pictures, and only when they were decoded with `native`. */
    int fill;          /* 0..255, where the picture is smaller than the result: LONGEST, or a
                        * resize_to below the size */
    float mean[3], std[3]; /* of red, green, blue in units of 0..1; std above 0 */
} pnb_preprocess;

/* 224 x 224, bicubic, shortest, ROUND, RGB first, OpenAI's mean and std. */
pnb_preprocess pnb_preprocess_default(void);

/* Reads preprocessor_config.json (old form: numbers; new form: {"shortest_edge"} ...), or the
 * "preprocess_cfg" of open_clip_config.json, from a file or from a model's directory, where the
 * former comes first. On failure *out stays as it was.
 * Errors  NOT_FOUND (no such file, a directory with neither), FORMAT (no JSON, a value of the wrong
 *         kind or out of range), UNSUPPORTED (an unknown resample or mode, no resizing or not by
 *         1/255, pictures of varying size: what cannot be followed exactly), LIMIT (more than 16
 *         MiB), IO, NOMEM */
pnb_status pnb_preprocess_load(pnb_preprocess *out, const char *path, pnb_error *err);

/* The same, and writes to `assumed` what the file does not say and was therefore taken as the
 * class it names does (Hugging Face) or as open_clip does: "resample bicubic, image_std OpenAI's".
 * Empty when all is said; cut to `size` bytes. NULL is fine. */
pnb_status pnb_preprocess_load_noted(pnb_preprocess *out, const char *path, char *assumed,
                                     size_t size, pnb_error *err);

/* Writes the new form of preprocessor_config.json that pnb_preprocess_load and Hugging Face read;
 * what that form cannot say stands under the key "penumbra". What is read back is what was written,
 * to the last bit of mean and std. The file appears whole or not at all.
 * Errors  ARG (a field that pnb_preprocess_load would refuse), IO, NOMEM */
pnb_status pnb_preprocess_save(const pnb_preprocess *pp, const char *path, pnb_error *err);

/* One line that names every field, for the record of an embedding set; cut to `capacity` bytes.
 * Returns the length that was needed, like snprintf. */
size_t pnb_preprocess_describe(const pnb_preprocess *pp, char *text, size_t capacity);

/* Resize, crop or pad, convert: 8-bit RGB of pp->width x pp->height. Of a resized picture only the
 * part that stays is computed. Free with pnb_image_free; on failure *out is empty.
 *   SHORTEST  short side = n, long side = int(n long / short); other than square: as LONGEST with
 *             the smaller ratio
 *   LONGEST   both sides / max(w / width, h / height), rounded half to even
 *   SQUASH    straight to width x height
 * Errors  ARG (an empty picture, a field out of range), LIMIT (a picture too long for its size),
 *         NOMEM
 * Source  torchvision.transforms.Resize and CenterCrop, open_clip's ResizeKeepRatio and
 *         CenterCropOrPad, Hugging Face's CLIPImageProcessor */
pnb_status pnb_preprocess_pixels(const pnb_preprocess *pp, const pnb_image *image, pnb_image *out,
                                 pnb_error *err);

/* pnb_preprocess_pixels, then pnb_image_to_chw: what a tower is given.
 * Shape   chw (3, pp->height, pp->width) */
pnb_status pnb_preprocess_apply(const pnb_preprocess *pp, const pnb_image *image, float *chw,
                                pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
