/* Pictures: decode, resize exactly as Pillow does, crop, normalise for an encoder, write PNG.
 *
 * Embeddings depend on the pixels to the last bit of the resampler, so every step here follows
 * Pillow and torchvision; what an encoder was trained with is told by a pnb_preprocess. */
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

/* All zero is an empty picture. */
typedef struct pnb_image {
    int width, height;
    int channels;          /* 3 after a plain decode; 1, 2 or 4 only when asked for */
    unsigned char *pixels; /* height x width x channels, 8 bit, no row padding */
    pnb_image_mode mode;
    unsigned char *palette; /* PALETTE only: 256 x 3 */
    pnb_image_budget
        *budget;       /* what the pixels are counted in, NULL: nowhere; pnb_image_free gives */
    size_t held_bytes; /* these bytes back */
} pnb_image;

/* The most that any picture may have, and what is allowed unless more is asked for: the number at
 * which Pillow calls a picture a decompression bomb and refuses it. */
#define PNB_IMAGE_MAX_PIXELS ((int64_t)1 << 28)
#define PNB_IMAGE_DEFAULT_PIXELS ((int64_t)178956970)

typedef struct pnb_image_opts {
    int64_t max_pixels; /* larger claims are refused before anything is allocated */
    bool keep_alpha;    /* pictures with alpha come as 4 channels */
    bool native;        /* keep the file's own mode (grey, palette, CMYK, ...) as Pillow's open() */
    bool exif;          /* turn as the EXIF orientation says; CLIP pipelines do not */
    pnb_image_budget *budget; /* shared with other decodes; NULL: none */
    size_t *claimed_bytes;    /* inside of pnb_image_decode: what it took of the budget */
} pnb_image_opts;

/* max_pixels = PNB_IMAGE_DEFAULT_PIXELS, RGB, EXIF ignored, no budget. */
pnb_image_opts pnb_image_opts_default(void);

/* Decodes a picture, told by content: JPEG, PNG, WebP, BMP, and GIF, TIFF, AVIF, HEIC where the
 * build has their libraries; of several pictures in a file the first. RGB as Pillow's
 * convert("RGB"): alpha is dropped, not composited; 16-bit grey saturates at 255; 16-bit colour
 * keeps its high byte; CMYK by the naive formula. The orientation of a TIFF is always applied, as
 * by Pillow. `opts` may be NULL. On failure *out is empty.
 * Errors  FORMAT (unknown, damaged,
 * truncated), LIMIT (too many pixels), UNSUPPORTED, NOMEM */
pnb_status pnb_image_decode(pnb_image *out, const void *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, pnb_error *err);

/* What this build reads, and what it lacks with the library to install: "JPEG, PNG, WebP, BMP,
 * GIF". The second is empty when nothing is missing. */
const char *pnb_image_formats(void);
const char *pnb_image_formats_missing(void);

/* One budget for the decodes of several threads, so that large pictures wait for each other instead
 * of being in memory at once: pixels of max_pixels at 4 bytes. A decode takes what it will need at
 * most, told by the header, before it allocates; what the picture keeps is given back by
 * pnb_image_free. A picture within max_pixels that needs more than all of it is decoded alone. A
 * thread must not wait for one picture while it holds another of the same budget.
 * Errors  NOMEM */
pnb_status pnb_image_budget_create(pnb_image_budget **out, int64_t max_pixels, pnb_error *err);
void pnb_image_budget_free(
    pnb_image_budget *budget); /* no picture may be counted in it; NULL is fine */
/* The picture stays and is not counted any more. */
void pnb_image_release_budget(pnb_image *image);

/* pnb_image_decode on a file. Errors  also NOT_FOUND, IO */
pnb_status pnb_image_load(pnb_image *out, const char *path, const pnb_image_opts *opts,
                          pnb_error *err);

/* Allocates pixels, zeroed, mode PLAIN. Errors  ARG (sizes < 1, channels outside 1..4), NOMEM */
pnb_status pnb_image_create(pnb_image *out, int width, int height, int channels, pnb_error *err);

/* Frees the pixels and empties the record; NULL and an empty record are fine. */
void pnb_image_free(pnb_image *image);

/* As Pillow's convert("RGB") on any mode. Errors  ARG, NOMEM */
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
        PNB_N_FILTERS
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
 * bits at the end.
 * Errors  ARG (empty picture, sizes < 1, box
 * outside), LIMIT (more than 2^28 pixels), NOMEM */
pnb_status pnb_image_resize(pnb_image *out, const pnb_image *in, int width, int height,
                            pnb_filter filter, const pnb_box *box, pnb_error *err);

/* Copies a rectangle; what lies outside `in` is filled with `fill` (0..255, every channel).
 * Errors  ARG, NOMEM */
pnb_status pnb_image_crop(pnb_image *out, const pnb_image *in, int left, int top, int width,
                          int height, int fill, pnb_error *err);

/* Writes an 8-bit PNG of 1, 2, 3 or 4 channels; same pixels, same bytes. Free *bytes with
 * pnb_image_bytes_free.
 * Errors  ARG (mode not PLAIN), NOMEM, IO */
pnb_status pnb_image_encode_png(const pnb_image *image, unsigned char **bytes, size_t *n_bytes,
                                pnb_error *err);
void pnb_image_bytes_free(unsigned char *bytes);

/* The file appears whole or not at all. */
pnb_status pnb_image_save_png(const pnb_image *image, const char *path, pnb_error *err);

/* (x/255 - mean[c]) / std[c], computed in f32 in this order as torchvision does.
 * Shape   image RGB (H,W,3) -> chw (3,H,W)      Errors  ARG (not 3 channels, std == 0) */
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
        PNB_N_FITS
} pnb_fit;

/* Offset of a centre crop that leaves d pixels over: they differ by one when d mod 4 == 3. */
typedef enum pnb_centre {
    PNB_CENTRE_ROUND, /* int(round(d / 2)), half to even: torchvision, open_clip */
    PNB_CENTRE_FLOOR  /* d // 2: Hugging Face image processors */
} pnb_centre;

typedef struct pnb_preprocess {
    int width, height; /* of the result */
    int resize_to;     /* side before the crop; 0: the result's own size */
    pnb_fit mode;
    pnb_filter filter;
    pnb_centre centre;
    bool resize_first; /* resize in the file's own mode, then convert to RGB (OpenAI, open_clip).
                        * false: RGB first (Hugging Face). Matters for palette, bilevel, alpha and
                        * CMYK pictures, and only when they were decoded with `native`. */
    int fill;          /* 0..255, LONGEST only */
    float mean[3], std[3];
} pnb_preprocess;

/* 224 x 224, bicubic, shortest, ROUND, RGB first, OpenAI's mean and std. */
pnb_preprocess pnb_preprocess_default(void);

/* Reads preprocessor_config.json (old form: numbers; new form: {"shortest_edge"} ...), or the
 * "preprocess_cfg" of open_clip_config.json, from a file or from a model's directory.
 * Errors  NOT_FOUND (directory has neither), FORMAT, UNSUPPORTED (an unknown resample or mode) */
pnb_status pnb_preprocess_load(pnb_preprocess *out, const char *path, pnb_error *err);

/* The same, and writes to `assumed` what the file does not say and was therefore taken as the
 * class it names does (Hugging Face) or as open_clip does: "resample bicubic, image_std OpenAI's".
 * Empty when all is said; cut to `size`. */
pnb_status pnb_preprocess_load_noted(pnb_preprocess *out, const char *path, char *assumed,
                                     size_t size, pnb_error *err);

/* Writes the new form of preprocessor_config.json that pnb_preprocess_load and Hugging Face read;
 * what that form cannot say stands under the key "penumbra". */
pnb_status pnb_preprocess_save(const pnb_preprocess *pp, const char *path, pnb_error *err);

/* One line that names every field, for the record of an embedding set. Returns the length that
 * was needed, like snprintf. */
size_t pnb_preprocess_describe(const pnb_preprocess *pp, char *text, size_t capacity);

/* Resize, crop or pad, convert: 8-bit RGB of pp->width x pp->height. Errors  ARG, LIMIT, NOMEM */
pnb_status pnb_preprocess_pixels(const pnb_preprocess *pp, const pnb_image *image, pnb_image *out,
                                 pnb_error *err);

/* pnb_preprocess_pixels, then pnb_image_to_chw.
 * Shape   chw (3, pp->height, pp->width) */
pnb_status pnb_preprocess_apply(const pnb_preprocess *pp, const pnb_image *image, float *chw,
                                pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
