/* Command-line words to the trainer's enums, and the key=value list of augmentations.
 *
 * open_clip's keys are scale, ratio, color_jitter, color_jitter_prob, gray_scale_prob, re_prob,
 * re_count and re_mode (timm's name), and interpolation is the argument beside them; the rest are
 * the small recipe's. Setting any value switches augmentation on. */
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
    bool is_filter =
        length == strlen("interpolation") && strncmp(word, "interpolation", length) == 0;
    bool is_mode = length == strlen("re_mode") && strncmp(word, "re_mode", length) == 0;
    if (is_filter || is_mode) {
        if (is_filter ? !read_filter(value, &a.interpolation)
                      : !read_erase_mode(value, &a.erase_const))
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
        *augment = a;
        return true;
    }
    return false;
}

const char *pnb__augment_keys(void)
{
    return "scale=LO,HI ratio=LO,HI zoom=LO,HI shift= rotate= flip= gain= color_jitter=B,C,S,H "
           "color_jitter_prob= gray_scale_prob= interpolation=bicubic|bilinear|... re_prob= "
           "re_count= re_mode=pixel|const";
}
