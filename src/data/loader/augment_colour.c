/* Changes of colour on 8-bit RGB, as torchvision.transforms makes them of Pillow's pictures:
 *
 *   brightness, contrast, saturation   blend(d, x, f) = d + f * (x - d) in floats, cut to 8 bits;
 *     d: black, the mean of the grey picture rounded, the grey of the pixel       (ImageEnhance)
 *   grey   (19595 r + 38470 g + 7471 b + 2^15) >> 16                              (ITU-R 601)
 *   hue    Pillow's HSV of 8 bits; hue + (int)(255 turn) modulo 256; back to RGB
 *
 * Two of them are one table for all pixels. */
#include <math.h>
#include <string.h>

#include "data/loader/augment_internal.h"

static size_t n_pixels(const pnb_image *image)
{
    return (size_t)image->width * (size_t)image->height;
}

static unsigned grey_of(const unsigned char *p)
{
    return (p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16;
}

/* Pillow's ImagingBlend: between the two it only truncates, beyond them it also cuts. */
static unsigned char blend(unsigned low, unsigned value, float factor)
{
    int from = (int)low, step = (int)value - from;
    float mixed = (float)from + factor * (float)step;
    if (factor >= 0.0f && factor <= 1.0f)
        return (unsigned char)mixed;
    return (unsigned char)(mixed <= 0.0f ? 0.0f : mixed >= 255.0f ? 255.0f : mixed);
}

static void look_up(pnb_image *image, const unsigned char table[256])
{
    unsigned char *p = image->pixels;
    for (size_t i = 0, n = 3 * n_pixels(image); i < n; i++)
        p[i] = table[p[i]];
}

static void blend_all(pnb_image *image, unsigned with, float factor)
{
    unsigned char table[256];
    for (unsigned v = 0; v < 256; v++)
        table[v] = blend(with, v, factor);
    look_up(image, table);
}

void pnb__colour_brightness(pnb_image *image, float factor)
{
    blend_all(image, 0, factor);
}

void pnb__colour_contrast(pnb_image *image, float factor)
{
    const unsigned char *p = image->pixels;
    uint64_t sum = 0;
    size_t n = n_pixels(image);
    for (size_t i = 0; i < n; i++)
        sum += grey_of(p + 3 * i);
    blend_all(image, (unsigned)((double)sum / (double)n + 0.5), factor);
}

void pnb__colour_saturation(pnb_image *image, float factor)
{
    unsigned char *p = image->pixels;
    if (factor == 1.0f)
        return;
    for (size_t i = 0, n = n_pixels(image); i < n; i++, p += 3) {
        unsigned grey = grey_of(p);
        for (int c = 0; c < 3; c++)
            p[c] = blend(grey, p[c], factor);
    }
}

void pnb__colour_grey(pnb_image *image)
{
    unsigned char *p = image->pixels;
    for (size_t i = 0, n = n_pixels(image); i < n; i++, p += 3)
        memset(p, (int)grey_of(p), 3);
}

void pnb__colour_gain(pnb_image *image, const double gain[3])
{
    unsigned char table[3][256], *p = image->pixels;
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            table[c][v] = (unsigned char)PNB_MIN(v * gain[c] + 0.5, 255.0);
    for (size_t i = 0, n = n_pixels(image); i < n; i++, p += 3)
        for (int c = 0; c < 3; c++)
            p[c] = table[c][p[c]];
}

/* ---- hue ---- */

/* The sector of a hue byte and the place in it, as Pillow's hsv2rgb computes them. */
typedef struct sector {
    int number;
    float place;
} sector;

static void fill_sectors(sector sectors[256], int turn)
{
    for (int h = 0; h < 256; h++) {
        float turned = (float)(unsigned char)(h + turn);
        sectors[h].number = (int)floor((double)turned * 6.0 / 255.0);
        sectors[h].place = (float)((double)turned * 6.0 / 255.0 - (double)(float)sectors[h].number);
        sectors[h].number %= 6;
    }
}

static unsigned char cut8(int v)
{
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Hue and saturation of a pixel that is not grey, in bytes. */
static void hue_of(const unsigned char *p, unsigned high, unsigned low, int *hue, int *saturation)
{
    float chroma = (float)(high - low);
    float rc = (float)(high - p[0]) / chroma, gc = (float)(high - p[1]) / chroma;
    float bc = (float)(high - p[2]) / chroma, h;
    if (p[0] == high)
        h = bc - gc;
    else if (p[1] == high)
        h = (float)(2.0 + (double)rc - (double)bc);
    else
        h = (float)(4.0 + (double)gc - (double)rc);
    double circle = (double)h / 6.0 + 1.0; /* 5/6 .. 2: what is left of 1 is the cut */
    h = (float)(circle - (double)(int)circle);
    *hue = cut8((int)((double)h * 255.0));
    *saturation = cut8((int)((double)(chroma / (float)high) * 255.0));
}

/* Halves away from zero; the values are not negative. */
static unsigned char round8(double v)
{
    return cut8((int)(v + 0.5));
}

static void put_hsv(unsigned char *p, sector s, int saturation, unsigned value)
{
    static const signed char order[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3},
                                            {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    double fs = (double)(float)((float)saturation / 255.0), v = (double)(float)value;
    double f = (double)s.place;
    const unsigned char parts[4] = {(unsigned char)value, round8(v * (1.0 - fs)),
                                    round8(v * (1.0 - fs * f)), round8(v * (1.0 - fs * (1.0 - f)))};
    for (int c = 0; c < 3; c++)
        p[c] = parts[order[s.number][c]];
}

void pnb__colour_hue(pnb_image *image, double turn)
{
    sector sectors[256];
    unsigned char *p = image->pixels;
    fill_sectors(sectors, (int)(turn * 255.0));
    for (size_t i = 0, n = n_pixels(image); i < n; i++, p += 3) {
        unsigned high = PNB_MAX(p[0], PNB_MAX(p[1], p[2]));
        unsigned low = PNB_MIN(p[0], PNB_MIN(p[1], p[2]));
        int hue, saturation;
        if (high == low)
            continue;
        hue_of(p, high, low, &hue, &saturation);
        if (saturation == 0)
            memset(p, (int)high, 3);
        else
            put_hsv(p, sectors[hue], saturation, high);
    }
}
