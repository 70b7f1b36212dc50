/* The formats of pictures: told by content when a picture is decoded, by the ending of the name
 * when a folder or a shard is searched. Formats that stay unread (JPEG XL, PSD, raw photographs
 * ...) are known by name too: a folder that holds them has pictures, and each is then reported as
 * skipped instead of passed over. giflib, libtiff and libheif are optional; without one the format
 * is still recognised, and the message names the library. */
#include "io/image/formats/formats.h"

#include <string.h>
#include <strings.h>

#include "io/foreign.h"

/* Read by decoders, in the order in which a sample of a tar shard prefers them. */
#define READ_KEYS "jpg;png;jpeg;webp;0.jpg;gif;bmp;tif;tiff;avif;heic;heif;jpe;jfif;dib;hif"
/* Pictures without a decoder here. */
#define UNREAD_KEYS                                                                                \
    "jp2;j2k;jpx;jxl;jxr;psd;psb;tga;ppm;pgm;pbm;pnm;ico;cur;svg;svgz;eps;exr;hdr;pcx;xcf;qoi;"    \
    "dng;cr2;cr3;nef;arw;orf;rw2;raf;srw;pef"

bool pnb__image_is_key(const char *keys, const char *ending)
{
    size_t n = strlen(ending);
    for (const char *p = keys; *p != 0;) {
        size_t length = strcspn(p, ";");
        if (length == n && strncasecmp(p, ending, n) == 0)
            return true;
        p += length + (p[length] == ';');
    }
    return false;
}

const char *pnb__image_keys(void)
{
    return READ_KEYS ";" UNREAD_KEYS;
}

bool pnb__image_is_named(const char *name)
{
    const char *base = pnb__path_base(name), *dot = strrchr(base, '.');
    return dot != NULL && dot != base && base[0] != '.' &&
           pnb__image_is_key(READ_KEYS ";" UNREAD_KEYS, dot + 1);
}

/* Content at a place of the file. */
typedef struct mark {
    size_t at;
    const char *bytes;
    size_t n;
} mark;

#define MARK(at, text)                                                                             \
    {                                                                                              \
        at, text, sizeof(text) - 1                                                                 \
    }

static bool has_mark(const mark *m, const unsigned char *b, size_t n)
{
    return m->n == 0 || (n >= m->at + m->n && memcmp(b + m->at, m->bytes, m->n) == 0);
}

typedef struct format {
    mark marks[2]; /* both must be there; an empty one is */
    const char *name;
    pnb__decode_fn decode;
    const char
        *library; /* that is missing when there is no decoder; NULL: the format stays unread */
} format;

#ifdef PNB_HAVE_GIF
#define DECODE_GIF pnb__gif_decode
#else
#define DECODE_GIF NULL
#endif
#ifdef PNB_HAVE_TIFF
#define DECODE_TIFF pnb__tiff_decode
#else
#define DECODE_TIFF NULL
#endif
#ifdef PNB_HAVE_HEIF
#define DECODE_HEIF pnb__heif_decode
#else
#define DECODE_HEIF NULL
#endif

#define TIFF(text)                                                                                 \
    {                                                                                              \
        {MARK(0, text)}, "TIFF", DECODE_TIFF, "libtiff (libtiff-dev)"                              \
    }
#define HEIF(brand, name)                                                                          \
    {                                                                                              \
        {MARK(4, "ftyp"), MARK(8, brand)}, name, DECODE_HEIF, "libheif (libheif-dev)"              \
    }

static const format formats[] = {
    {{MARK(0, "\xFF\xD8\xFF")}, "JPEG", pnb__jpeg_decode, NULL},
    {{MARK(0, "\x89PNG\r\n\x1a\n")}, "PNG", pnb__png_decode, NULL},
    {{MARK(0, "RIFF"), MARK(8, "WEBP")}, "WebP", pnb__webp_decode, NULL},
    {{MARK(0, "GIF8")}, "GIF", DECODE_GIF, "giflib (libgif-dev)"},
    {{MARK(0, "BM")}, "BMP", pnb__bmp_decode, NULL},
    TIFF("II*\0"),
    TIFF("MM\0*"),
    TIFF("II+\0"),
    TIFF("MM\0+"),
    HEIF("avif", "AVIF"),
    HEIF("avis", "AVIF"),
    HEIF("heic", "HEIC"),
    HEIF("heix", "HEIC"),
    HEIF("heim", "HEIC"),
    HEIF("heis", "HEIC"),
    HEIF("hevc", "HEIC"),
    HEIF("hevx", "HEIC"),
    HEIF("mif1", "HEIF"),
    HEIF("msf1", "HEIF"),
    {{MARK(0, "\0\0\0\x0CjP  ")}, "JPEG 2000", NULL, NULL},
    {{MARK(0, "\xFF\x4F\xFF\x51")}, "JPEG 2000", NULL, NULL},
    {{MARK(0, "\0\0\0\x0CJXL ")}, "JPEG XL", NULL, NULL},
    {{MARK(0, "\xFF\x0A")}, "JPEG XL", NULL, NULL},
    {{MARK(0, "8BPS")}, "Photoshop", NULL, NULL},
    {{MARK(0, "\0\0\1\0")}, "Windows icon", NULL, NULL},
    {{MARK(0, "<svg")}, "SVG", NULL, NULL},
    {{MARK(0, "qoif")}, "QOI", NULL, NULL},
};

static const format *find_format(const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < PNB_COUNT(formats); i++)
        if (has_mark(&formats[i].marks[0], b, n) && has_mark(&formats[i].marks[1], b, n))
            return &formats[i];
    return NULL;
}

const char *pnb_image_formats(void)
{
    return "JPEG, PNG, WebP, BMP"
#ifdef PNB_HAVE_GIF
           ", GIF"
#endif
#ifdef PNB_HAVE_TIFF
           ", TIFF"
#endif
#ifdef PNB_HAVE_HEIF
           ", AVIF, HEIC"
#endif
        ;
}

const char *pnb_image_formats_missing(void)
{
    return ""
#ifndef PNB_HAVE_GIF
           "GIF (built without giflib: libgif-dev) "
#endif
#ifndef PNB_HAVE_TIFF
           "TIFF (built without libtiff 4.5: libtiff-dev) "
#endif
#ifndef PNB_HAVE_HEIF
           "AVIF, HEIC (built without libheif: libheif-dev) "
#endif
#ifndef PNB_HAVE_RSVG
           "SVG of `data clipart` (built without librsvg: librsvg2-dev libxml2-dev) "
#endif
        ;
}

static bool is_text(const void *bytes, size_t n)
{
    return memchr(bytes, 0, n) == NULL && pnb__utf8_valid(bytes, n);
}

pnb_status pnb__image_decoder(pnb__decode_fn *out, const unsigned char *bytes, size_t n_bytes,
                              pnb_error *err)
{
    const format *f = n_bytes > 0 ? find_format(bytes, n_bytes) : NULL;
    if (n_bytes == 0)
        return pnb__fail(err, PNB_FORMAT, "empty file: want %s", pnb_image_formats());
    const char *what = f == NULL ? pnb__foreign(bytes, n_bytes) : NULL;
    if (what != NULL)
        return pnb__fail(err, PNB_FORMAT, "this is %s", what);
    if (f == NULL && is_text(bytes, n_bytes))
        return pnb__fail(err, PNB_FORMAT,
                         "this is text, not a picture this build reads (%zu bytes): want %s; "
                         "captions go to the option for texts, a list of paths to standard input "
                         "(-)",
                         n_bytes, pnb_image_formats());
    if (f == NULL)
        return pnb__fail(err, PNB_FORMAT, "not a picture this build reads (%zu bytes): want %s",
                         n_bytes, pnb_image_formats());
    *out = f->decode;
    if (f->decode != NULL)
        return PNB_OK;
    if (f->library != NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: this build has no %s; install it and build again, or convert the "
                         "picture to PNG",
                         f->name, f->library);
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s is not read: convert the picture to PNG (read are %s)", f->name,
                     pnb_image_formats());
}
