/* Data sets of real pictures that Debian packages bring: clip art, stamps, and both with emoji. The
 * packages are read where they are installed; nothing of them is part of Penumbra.
 *
 * Written is the layout of penumbra/synth.h, with a level from 0 (category) to 3 (title or
 * sentence) a caption, and in records beside what stands there style             "clipart",
 * "drawing", "photo" or "emoji" file              below the package's folder near_duplicates   key
 * of the first picture of its group clipart           raw_title, title_kind, title_from, author,
 * language, keywords stamps            sentence, language, translations (by language) mixed
 * concept, new_style, new_concept (nothing of it in train) Cards: docs/data.md. */
#ifndef PENUMBRA_COLLECTIONS_H
#define PENUMBRA_COLLECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/synth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which packages are read. */
typedef enum pnb_collection_kind {
    PNB_COLLECTION_CLIPART, /* openclipart-svg and openclipart-png, public domain */
    PNB_COLLECTION_STAMPS,  /* tuxpaint-stamps-default, GPL-2 */
    PNB_COLLECTION_MIXED    /* both and `emoji`, split by what they show */
} pnb_collection_kind;

/* How a collection is read, drawn and dealt; a field that a kind has no use for is not looked at.
 */
typedef struct pnb_collection_opts {
    /* what is written */
    uint64_t seed;                /* 0: splits and the order in shards */
    int size;                     /* 64: pixels a side, 16 to 512 */
    double val_share, test_share; /* 0.1, 0.15; together below 1 */
    size_t shard_size;            /* samples a shard, 1000 */
    double near; /* 0.97: pictures whose thumbnails correlate so much are near-duplicates */
    /* what of a package */
    bool icon_themes; /* clip art below folders *-theme, left out otherwise */
    bool stars;       /* clip art below shapes/stars, likewise */
    bool sensitive;   /* keep what is left out by default: docs/data.md#clipart */
    bool noisy;       /* clip art: titles and keywords as they came, marked where they are noise */
    const char *language; /* "en": of stamps' sentences, "de", "pt_BR" */
    const char *held_out; /* mixed, "photo": styles, by commas, only test has; NULL none */
    /* where packages are */
    const char *clipart;  /* NULL: /usr/share/openclipart, which holds svg and png */
    const char *stamps;   /* NULL: /usr/share/tuxpaint/stamps */
    pnb_emoji_opts emoji; /* mixed: font, emoji_test and cldr_common alone are used */
    /* Told of each file that cannot be read or drawn, once; may be NULL. */
    void (*skipped)(void *user, const char *file, const char *why);
    void *user; /* given to skipped as it is */
} pnb_collection_opts;

/* The values that stand beside the fields. */
pnb_collection_opts pnb_collection_opts_default(void);

/* What a title of clip art is; the first describes the picture. */
enum { PNB_COLLECTION_N_TITLE_KINDS = 6 };

/* What was found, and what came of it. Of a set that was there already only `set` is known. */
typedef struct pnb_collection_stats {
    pnb_synth_stats set;   /* as of every made set */
    size_t n_found;        /* pictures in the packages, without links */
    size_t n_links;        /* further names of pictures: one more category each */
    size_t n_broken_links; /* links that lead nowhere or out of the folder */
    size_t n_optional;     /* icon themes and stars that were not asked for */
    size_t n_sensitive;    /* left out by the list of words */
    size_t n_skipped;      /* cannot be read or drawn: told to `skipped` */
    size_t n_blank;        /* white all over, once put on white */
    size_t n_wordless;     /* without a caption in the language */
    size_t n_equal;        /* pictures that repeat an earlier one, pixel for pixel */
    size_t n_near;         /* pictures that are near an earlier one, those included */
    size_t n_near_pairs;   /* of two pictures that are near each other */
    size_t n_titles[PNB_COLLECTION_N_TITLE_KINDS]; /* describes, missing, names a collection, names
                                                    * the author, is a code, another language */
    size_t n_from_file; /* pictures whose title was taken from the name of the file */
} pnb_collection_stats;

/* Reads a collection and writes it as an image-caption set. The bytes depend on the options, the
 * packages and librsvg, not on the number of threads. A folder that already holds the set of the
 * same options is left alone (`set.reused`).
 * Errors  ARG, NOT_FOUND (a package is missing, or one of two: the text says what to install),
 *         UNSUPPORTED (no librsvg), EXISTS (the folder holds something else), FORMAT (no picture is
 *         left), LIMIT, IO, NOMEM */
pnb_status pnb_collection_build(const pnb_ctx *ctx, pnb_collection_kind kind,
                                const pnb_collection_opts *opts /* may be NULL */, const char *dir,
                                pnb_collection_stats *stats /* may be NULL */, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
