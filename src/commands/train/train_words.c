/* Command-line words to the trainer's enums, and the key=value list of augmentations.
 *
 * open_clip's keys are scale, ratio, color_jitter, color_jitter_prob, gray_scale_prob, re_prob,
 * re_count and re_mode (timm's name), and interpolation is the argument beside them; crop_scales
 * are TSN's, and the rest the small recipe's. Setting any value switches augmentation on; of scale
 * or ratio and crop_scales, which are two kinds of crops, the last one counts. */
#include "commands/train/train_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "program/options.h"

pnb_augment pnb__augment_recipe(const char *word)
{
    if (strcmp(word, "none") == 0)
        return pnb_augment_none();
    return strcmp(word, "published") == 0 ? pnb_augment_published() : pnb_augment_small();
}

bool pnb__separator(const char *word, char *out)
{
    if (strcmp(word, "tab") == 0 || strcmp(word, "\\t") == 0)
        word = "\t";
    *out = word[0];
    return strlen(word) == 1;
}

/* Exactly n numbers separated by commas, perhaps in parentheses. */
static bool read_numbers(const char *text, double *out, size_t n)
{
    text += strspn(text, " ([");
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        out[i] = strtod(text, &end);
        if (end == text)
            return false;
        text = end + strspn(end, " ");
        if (i + 1 < n && *text++ != ',')
            return false;
    }
    return text[strspn(text, " )]")] == '\0';
}

/* One to PNB_MAX_CROP_SCALES numbers with commas between. */
static bool read_scales(const char *text, pnb_augment *a)
{
    double scales[PNB_MAX_CROP_SCALES];
    for (size_t n = 1; n <= PNB_MAX_CROP_SCALES; n++)
        if (read_numbers(text, scales, n)) {
            memset(a->crop_scales, 0, sizeof a->crop_scales);
            memcpy(a->crop_scales, scales, n * sizeof *scales);
            a->n_crop_scales = n;
            a->crop = true;
            return true;
        }
    return false;
}

/* How timm calls what erased boxes are filled with. */
static bool read_erase_mode(const char *value, bool *is_const)
{
    *is_const = strcmp(value, "const") == 0;
    return *is_const || strcmp(value, "pixel") == 0;
}

/* A filter of Pillow by its name. */
static bool read_filter(const char *value, int *interpolation)
{
    for (int f = 0; pnb_filter_name((pnb_filter)f) != NULL; f++)
        if (strcmp(value, pnb_filter_name((pnb_filter)f)) == 0) {
            *interpolation = f + 1;
            return true;
        }
    return false;
}

/* Keys whose values are no fixed count of numbers. */
enum { NUMBERS, FILTER, ERASE_MODE, CROP_SCALES };

static int word_key(const char *word, size_t length)
{
    static const char *const names[] = {
        [FILTER] = "interpolation", [ERASE_MODE] = "re_mode", [CROP_SCALES] = "crop_scales"};
    for (int k = FILTER; k <= CROP_SCALES; k++)
        if (length == strlen(names[k]) && strncmp(word, names[k], length) == 0)
            return k;
    return NUMBERS;
}

static bool read_word(int key, const char *value, pnb_augment *a)
{
    if (key == FILTER)
        return read_filter(value, &a->interpolation);
    return key == ERASE_MODE ? read_erase_mode(value, &a->erase_const) : read_scales(value, a);
}

bool pnb__augment_set(pnb_augment *augment, const char *word)
{
    pnb_augment a = *augment;
    double re_count = a.erase_count;
    const struct {
        const char *key;
        double *to;
        size_t n;
    } keys[] = {{"scale", a.crop_scale, 2},
                {"ratio", a.crop_ratio, 2},
                {"zoom", a.zoom, 2},
                {"shift", &a.shift, 1},
                {"rotate", &a.rotate, 1},
                {"flip", &a.flip, 1},
                {"gain", &a.gain, 1},
                {"color_jitter", a.jitter, 4},
                {"color_jitter_prob", &a.jitter_p, 1},
                {"gray_scale_prob", &a.grey_p, 1},
                {"re_prob", &a.erase_p, 1},
                {"re_count", &re_count, 1}};
    size_t length = 0;
    const char *value = NULL;
    if (!pnb__key_value(word, &length, &value))
        return false;
    int word_kind = word_key(word, length);
    if (word_kind != NUMBERS) {
        if (!read_word(word_kind, value, &a))
            return false;
        a.enabled = true;
        *augment = a;
        return true;
    }
    for (size_t i = 0; i < PNB_COUNT(keys); i++) {
        if (strlen(keys[i].key) != length || strncmp(word, keys[i].key, length) != 0)
            continue;
        if (!read_numbers(value, keys[i].to, keys[i].n))
            return false;
        if (!(re_count >= 1 && re_count <= 1000) || re_count != floor(re_count))
            return false;
        a.erase_count = (int)re_count;
        a.enabled = true;
        a.crop = a.crop || i < 2;
        a.n_crop_scales = i < 2 ? 0 : a.n_crop_scales;
        *augment = a;
        return true;
    }
    return false;
}

const char *pnb__augment_keys(void)
{
    return "scale=LO,HI ratio=LO,HI crop_scales=S,... zoom=LO,HI shift= rotate= flip= gain= "
           "color_jitter=B,C,S,H "
           "color_jitter_prob= gray_scale_prob= interpolation=bicubic|bilinear|... re_prob= "
           "re_count= re_mode=pixel|const";
}
