/* Controls of known uncertainty: scores that are there without any model.
 *
 * A short caption of common words fits more pictures than a long one of rare words, and a blurred
 * picture makes a small file: whoever says that an uncertainty knows what is ambiguous has to be
 * better than these. Each has the sign by which it should rise with what is known. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "commands/common/rows/align.h"
#include "commands/eval/uncertainty/known_rows.h"
#include "encode/inputs/inputs.h"
#include "eval/curation/text_words.h"
#include "io/image/formats/codec.h"
#include "sets/set_rows.h"

enum { FIRST = 2, SECOND = 3, JPEG_QUALITY = 75 };

static pnb_status make_room(pnb__known_side *side, const char *first, const char *second,
                            pnb_error *err)
{
    pnb_status status;
    PNB_TRY(PNB_ALLOC(side->score[FIRST], side->set->n, err));
    PNB_TRY(PNB_ALLOC(side->score[SECOND], side->set->n, err));
    side->name[FIRST] = first;
    side->name[SECOND] = second;
done:
    return status;
}

static void leave_out(pnb__known_side *side)
{
    for (size_t s = FIRST; s <= SECOND; s++) {
        pnb__free(side->score[s]);
        side->score[s] = NULL;
    }
}

/* ---- captions ---- */

/* Words of all captions with the number of captions that hold each. */
typedef struct word_counts {
    char **word;
    size_t *n_texts, *last; /* captions with it; the one it was counted in last, + 1 */
    size_t n;
    pnb__key_map map;
} word_counts;

static void word_counts_reset(word_counts *c)
{
    for (size_t i = 0; i < c->n; i++)
        pnb__free(c->word[i]);
    pnb__free(c->word);
    pnb__free(c->n_texts);
    pnb__free(c->last);
    pnb__key_map_reset(&c->map);
}

/* Place of a word of n bytes; SIZE_MAX where it is not there. */
static size_t find_word(const word_counts *c, const char *word, size_t n, uint64_t hash)
{
    size_t place, step = 0;
    while ((place = pnb__key_map_next(&c->map, hash, &step)) != PNB__NO_KEY &&
           (strncmp(c->word[place], word, n) != 0 || c->word[place][n] != '\0')) {
    }
    return place;
}

static pnb_status count_word(word_counts *c, const char *word, size_t n, size_t text,
                             pnb_error *err)
{
    uint64_t hash = pnb__hash_bytes(word, n, 0);
    size_t place = find_word(c, word, n, hash);
    if (place == PNB__NO_KEY) {
        place = c->n;
        c->word[place] = pnb__strndup(word, n);
        if (c->word[place] == NULL)
            return pnb__fail_nomem(err, n);
        c->n++;
        pnb_status status = pnb__key_map_add(&c->map, hash, place, err);
        if (status != PNB_OK)
            return status;
    }
    if (c->last[place] != text + 1) {
        c->last[place] = text + 1;
        c->n_texts[place]++;
    }
    return PNB_OK;
}

static pnb_status count_words(word_counts *c, const pnb_embeddings *set, pnb__text_words *words,
                              pnb_error *err)
{
    size_t n = 0;
    pnb_status status = PNB_OK;
    for (size_t t = 0; t < set->n; t++) {
        PNB_TRY(pnb__text_words_read(words, set->texts[t], err));
        n += words->n_words;
    }
    PNB_TRY(PNB_ALLOC_ZERO(c->word, PNB_MAX(n, (size_t)1), err));
    PNB_TRY(PNB_ALLOC_ZERO(c->n_texts, PNB_MAX(n, (size_t)1), err));
    PNB_TRY(PNB_ALLOC_ZERO(c->last, PNB_MAX(n, (size_t)1), err));
    for (size_t t = 0; t < set->n; t++) {
        PNB_TRY(pnb__text_words_read(words, set->texts[t], err));
        for (size_t w = 0; w < words->n_words; w++)
            PNB_TRY(count_word(c, words->text.data + words->word[w].begin,
                               words->word[w].end - words->word[w].begin, t, err));
    }
done:
    return status;
}

/* Of a caption without a word both are what is most general: 0 words, all of them common. */
static pnb_status score_texts(pnb__known_side *side, const word_counts *c, pnb__text_words *words,
                              pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t t = 0; t < side->set->n; t++) {
        double sum = 0.0;
        PNB_TRY(pnb__text_words_read(words, side->set->texts[t], err));
        for (size_t w = 0; w < words->n_words; w++) {
            const char *word = words->text.data + words->word[w].begin;
            size_t n = words->word[w].end - words->word[w].begin;
            size_t place = find_word(c, word, n, pnb__hash_bytes(word, n, 0));
            sum += log((double)c->n_texts[place] / (double)side->set->n);
        }
        side->score[FIRST][t] = -(double)words->n_words;
        side->score[SECOND][t] = words->n_words > 0 ? sum / (double)words->n_words : 0.0;
    }
done:
    return status;
}

pnb_status pnb__known_text_controls(pnb__known_side *side, pnb_error *err)
{
    word_counts counts = {0};
    pnb__text_words words = {0};
    pnb_status status = PNB_OK;
    for (size_t t = 0; t < side->set->n; t++)
        if (side->set->texts == NULL || side->set->texts[t] == NULL)
            return PNB_OK;
    PNB_TRY(make_room(side, "fewer words", "common words", err));
    PNB_TRY(count_words(&counts, side->set, &words, err));
    status = score_texts(side, &counts, &words, err);
done:
    word_counts_reset(&counts);
    pnb__text_words_reset(&words);
    return status;
}

/* ---- pictures ---- */

/* ITU-R BT.601, as JPEG has it. */
static double luma(const unsigned char *rgb)
{
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

double pnb__mean_gradient(const pnb_image *image)
{
    size_t width = (size_t)image->width, height = (size_t)image->height;
    double sum = 0.0;
    if (width < 2 || height < 2)
        return 0.0;
    for (size_t y = 0; y + 1 < height; y++)
        for (size_t x = 0; x + 1 < width; x++) {
            const unsigned char *at = image->pixels + 3 * (y * width + x);
            double here = luma(at), dx = luma(at + 3) - here, dy = luma(at + 3 * width) - here;
            sum += sqrt(dx * dx + dy * dy);
        }
    return sum / (double)((width - 1) * (height - 1));
}

/* Where pictures are read from: a data set that was named, or what the rows say. */
typedef struct image_reader {
    pnb__pair_data named;
    pnb__row_source source;
    const pnb_embeddings *set;
} image_reader;

/* An empty picture: it cannot be had. */
static pnb_status read_image(image_reader *r, size_t row, pnb_image *out, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    *out = (pnb_image){0};
    if (r->named.set == NULL)
        return pnb__row_image(&r->source, r->set, row, out, err);
    pnb_status status = pnb_dataset_image(r->named.set, r->named.sample[row], out, &why);
    return status == PNB_NOMEM ? pnb__fail(err, status, "%s", why.text) : PNB_OK;
}

static pnb_status score_images(pnb__app *app, pnb__known_side *side, image_reader *r)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < side->set->n && status == PNB_OK; i++) {
        pnb_image image = {0};
        size_t n_bytes = 0;
        status = read_image(r, i, &image, &app->err);
        if (status == PNB_OK && image.pixels == NULL) {
            pnb__warn(app,
                      "picture %zu ('%.200s') cannot be read again, so the controls of file size "
                      "and gradient are left out; --pictures names where the pictures are",
                      i, pnb__set_label(side->set, i));
            leave_out(side);
            return PNB_OK;
        }
        if (status == PNB_OK)
            status = pnb__jpeg_size(&image, JPEG_QUALITY, &n_bytes, &app->err);
        if (status == PNB_OK) {
            side->score[FIRST][i] = -(double)n_bytes;
            side->score[SECOND][i] = -pnb__mean_gradient(&image);
        }
        pnb_image_free(&image);
    }
    return status;
}

pnb_status pnb__known_image_controls(pnb__app *app, pnb__known_side *side, const char *images)
{
    image_reader reader = {.set = side->set};
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_status status;
    opts.allow_no_caption = true;
    PNB_TRY(make_room(side, "smaller file", "flatter picture", &app->err));
    if (images != NULL)
        PNB_TRY(pnb__pair_data_open(&reader.named, images, &opts, side->set, &app->err));
    status = score_images(app, side, &reader);
done:
    pnb__pair_data_close(&reader.named);
    pnb__row_source_reset(&reader.source);
    return status;
}
