/* Takes a caption apart: words in lower case, characters, letters by script.
 *
 * A word is a run of letters, marks and digits (\w of regular expressions without connectors); Han
 * and kana are written without spaces, so each of their letters is a word. Scripts go by Unicode
 * block, which is coarser than Unicode's Script property (a few signs shared by two scripts count
 * for the block they stand in) and enough to tell languages' alphabets apart. What is too short or
 * too foreign is decided in text_rules.c. */
#include "eval/curation/text_words.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/grow.h"
#include "base/names.h"
#include "tokenizer/text.h"

typedef struct block {
    uint32_t first, last;
    pnb_script script;
} block;

/* Ascending, so that a search may stop early. */
static const block blocks[] = {
    {0x0041, 0x024F, PNB_SCRIPT_LATIN},      {0x0250, 0x02AF, PNB_SCRIPT_LATIN},
    {0x0370, 0x03FF, PNB_SCRIPT_GREEK},      {0x0400, 0x052F, PNB_SCRIPT_CYRILLIC},
    {0x0530, 0x058F, PNB_SCRIPT_ARMENIAN},   {0x0590, 0x05FF, PNB_SCRIPT_HEBREW},
    {0x0600, 0x06FF, PNB_SCRIPT_ARABIC},     {0x0750, 0x077F, PNB_SCRIPT_ARABIC},
    {0x0870, 0x08FF, PNB_SCRIPT_ARABIC},     {0x0900, 0x097F, PNB_SCRIPT_DEVANAGARI},
    {0x0980, 0x09FF, PNB_SCRIPT_BENGALI},    {0x0B80, 0x0BFF, PNB_SCRIPT_TAMIL},
    {0x0E00, 0x0E7F, PNB_SCRIPT_THAI},       {0x10A0, 0x10FF, PNB_SCRIPT_GEORGIAN},
    {0x1100, 0x11FF, PNB_SCRIPT_HANGUL},     {0x1C80, 0x1C8F, PNB_SCRIPT_CYRILLIC},
    {0x1C90, 0x1CBF, PNB_SCRIPT_GEORGIAN},   {0x1E00, 0x1EFF, PNB_SCRIPT_LATIN},
    {0x1F00, 0x1FFF, PNB_SCRIPT_GREEK},      {0x2C60, 0x2C7F, PNB_SCRIPT_LATIN},
    {0x2D00, 0x2D2F, PNB_SCRIPT_GEORGIAN},   {0x2DE0, 0x2DFF, PNB_SCRIPT_CYRILLIC},
    {0x3005, 0x3007, PNB_SCRIPT_HAN},        {0x3040, 0x30FF, PNB_SCRIPT_KANA},
    {0x3130, 0x318F, PNB_SCRIPT_HANGUL},     {0x31F0, 0x31FF, PNB_SCRIPT_KANA},
    {0x3400, 0x4DBF, PNB_SCRIPT_HAN},        {0x4E00, 0x9FFF, PNB_SCRIPT_HAN},
    {0xA640, 0xA69F, PNB_SCRIPT_CYRILLIC},   {0xA720, 0xA7FF, PNB_SCRIPT_LATIN},
    {0xA8E0, 0xA8FF, PNB_SCRIPT_DEVANAGARI}, {0xA960, 0xA97F, PNB_SCRIPT_HANGUL},
    {0xAC00, 0xD7FF, PNB_SCRIPT_HANGUL},     {0xF900, 0xFAFF, PNB_SCRIPT_HAN},
    {0xFB00, 0xFB06, PNB_SCRIPT_LATIN},      {0xFB13, 0xFB17, PNB_SCRIPT_ARMENIAN},
    {0xFB1D, 0xFB4F, PNB_SCRIPT_HEBREW},     {0xFB50, 0xFDFF, PNB_SCRIPT_ARABIC},
    {0xFE70, 0xFEFF, PNB_SCRIPT_ARABIC},     {0xFF21, 0xFF5A, PNB_SCRIPT_LATIN},
    {0xFF66, 0xFF9F, PNB_SCRIPT_KANA},       {0xFFA0, 0xFFDC, PNB_SCRIPT_HANGUL},
    {0x20000, 0x323AF, PNB_SCRIPT_HAN},
};

/* PNB_N_SCRIPTS: none of the list. */
static pnb_script script_of(uint32_t c)
{
    for (size_t i = 0; i < PNB_COUNT(blocks) && c >= blocks[i].first; i++)
        if (c <= blocks[i].last)
            return blocks[i].script;
    return PNB_N_SCRIPTS;
}

static void begin_word(pnb__text_words *w)
{
    if (PNB_GROW(w->word, w->capacity, w->n_words + 1, NULL) != PNB_OK) {
        w->text.failed = true;
        return;
    }
    if (w->n_words > 0)
        pnb__buf_putc(&w->text, ' ');
    w->word[w->n_words++] = (pnb__word){w->text.size, w->text.size};
}

static void add_to_word(pnb__text_words *w, uint32_t c)
{
    pnb__put_char(&w->text, c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c)
                                     : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
    if (!w->text.failed)
        w->word[w->n_words - 1].end = w->text.size;
}

/* Where a character stands to the one before it. */
typedef enum place { PLACE_OUTSIDE, PLACE_IN_WORD } place;

static place add_char(pnb__text_words *w, uint32_t c, place before)
{
    pnb_script script = script_of(c);
    bool is_letter = pnb__is_letter(c);
    w->n_visible++;
    w->n_ascii += c < 0x80;
    w->n_letters += is_letter;
    if (is_letter && script < PNB_N_SCRIPTS)
        w->of_script[script]++;
    if (!pnb__is_word(c) || c == '_')
        return PLACE_OUTSIDE;
    bool stands_alone = is_letter && (script == PNB_SCRIPT_HAN || script == PNB_SCRIPT_KANA);
    if (before == PLACE_OUTSIDE || stands_alone)
        begin_word(w);
    if (!w->text.failed)
        add_to_word(w, c);
    return stands_alone ? PLACE_OUTSIDE : PLACE_IN_WORD;
}

pnb_status pnb__text_words_read(pnb__text_words *w, const char *text, pnb_error *err)
{
    size_t n = strlen(text), n_seen = 0;
    place at = PLACE_OUTSIDE;
    pnb__text_words kept = {.text = w->text, .word = w->word, .capacity = w->capacity};
    *w = kept;
    w->text.size = 0;
    if (!pnb__utf8_valid(text, n))
        return pnb__fail(err, PNB_FORMAT, "the caption is not valid UTF-8");
    for (size_t i = 0; i < n && !w->text.failed;) {
        uint32_t c;
        i += pnb__next_char(text + i, n - i, &c);
        bool is_space = pnb__is_space(c);
        n_seen += !is_space || w->n_visible > 0;
        at = is_space ? PLACE_OUTSIDE : add_char(w, c, at);
        if (!is_space)
            w->n_chars = n_seen;
    }
    if (w->text.failed) {
        pnb__text_words_reset(w);
        return pnb__fail_nomem(err, n);
    }
    return PNB_OK;
}

/* What a word reads, for sorting without a context. */
typedef struct spelled {
    const char *text;
    size_t n;
} spelled;

static int compare_spelled(const void *a, const void *b)
{
    const spelled *x = a, *y = b;
    int order = memcmp(x->text, y->text, PNB_MIN(x->n, y->n));
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

size_t pnb__text_words_distinct(pnb__text_words *w)
{
    size_t n_distinct = 0;
    spelled *words = pnb__alloc_array(PNB_MAX(w->n_words, (size_t)1), sizeof *words);
    if (words == NULL) {
        w->text.failed = true;
        return w->n_words;
    }
    for (size_t i = 0; i < w->n_words; i++)
        words[i] = (spelled){w->text.data + w->word[i].begin, w->word[i].end - w->word[i].begin};
    qsort(words, w->n_words, sizeof *words, compare_spelled);
    for (size_t i = 0; i < w->n_words; i++)
        n_distinct += i == 0 || compare_spelled(&words[i - 1], &words[i]) != 0;
    pnb__free(words);
    return n_distinct;
}

void pnb__text_words_reset(pnb__text_words *w)
{
    pnb__buf_reset(&w->text);
    pnb__free(w->word);
    *w = (pnb__text_words){0};
}
