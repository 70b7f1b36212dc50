/* The `emoji` set: the Unicode list, the CLDR words and the pictures of the font. Internal. */
#ifndef PNB_DATA_SYNTH_EMOJI_H
#define PNB_DATA_SYNTH_EMOJI_H

#include "base/base.h"
#include "penumbra/image.h"
#include "penumbra/synth.h"

/* Where Debian installs what the set is made of. */
#define PNB__EMOJI_FONT "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
#define PNB__EMOJI_LIST "/usr/share/unicode/emoji/emoji-test.txt"
#define PNB__EMOJI_CLDR "/usr/share/unicode/cldr/common"

enum { PNB__EMOJI_MAX_POINTS = 16, PNB__EMOJI_MAX_WORDS = 48 };

/* One fully-qualified sequence. Texts live in the list's arena. */
typedef struct pnb__emoji {
    uint32_t points[PNB__EMOJI_MAX_POINTS];
    int n_points;
    const char *key; /* "1f468-200d-2695-fe0f" */
    const char *group, *subgroup, *name;
    const char *words[PNB__EMOJI_MAX_WORDS]; /* CLDR keywords but for the name; at least one */
    int n_words;
    bool has_skin_tone;
    pnb_image image;    /* as in the font, on white */
    size_t first_equal; /* index of the first emoji with the same picture; its own if none */
    int split;
} pnb__emoji;

typedef struct pnb__emoji_list {
    pnb__emoji *items;
    size_t n;
    size_t n_without_words; /* emoji that CLDR has no keywords for */
    bool sensitive;         /* keep what emoji_sensitive.c lists; set before reading */
    pnb__arena arena;
} pnb__emoji_list;

/* ---- emoji_list.c ---- */
/* Reads emoji-test.txt. Errors  NOT_FOUND, FORMAT, NOMEM */
pnb_status pnb__emoji_read(pnb__emoji_list *list, const char *path, bool skin_tones,
                           pnb_error *err);
/* Adds keywords from `common`/annotations/en.xml and annotationsDerived/en.xml. */
pnb_status pnb__emoji_add_words(pnb__emoji_list *list, const char *common, pnb_error *err);
void pnb__emoji_free(pnb__emoji_list *list);

/* ---- emoji_sensitive.c ---- */
bool pnb__emoji_is_sensitive(const pnb__emoji *e);
bool pnb__emoji_is_sensitive_word(const char *text, size_t n); /* a keyword of n bytes */

/* ---- emoji_glyph.c ---- */
/* Renders every picture and finds the equal ones. Errors  NOT_FOUND, FORMAT, UNSUPPORTED, NOMEM */
pnb_status pnb__emoji_render(pnb__emoji_list *list, const char *font, pnb_error *err);

#endif
