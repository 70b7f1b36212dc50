/* Deals pictures to train, val and test by groups that must not be torn: near-duplicates, and in a
 * mixed set all pictures of one concept, whatever their style.
 *
 * Groups come in an order drawn with the seed; each goes to test while that has room for all of it,
 * else to val, else to train. So a group larger than its room is in train, and shares are met to
 * within the size of the last group. Of a mixed set the styles that are held out (is_new_style) are
 * in test alone: with concepts that train has in other styles, and with those it has not. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "data/collections/collection.h"

enum { WORD = 64, LARGE_GROUPS = 8 };

/* ---- concepts ---- */

static bool is_article(const char *word, size_t n)
{
    static const char *const articles[] = {"a", "an", "the", "some", "my", "two", "three", "very"};
    for (size_t i = 0; i < PNB_COUNT(articles); i++)
        if (strlen(articles[i]) == n && !memcmp(articles[i], word, n))
            return true;
    return false;
}

/* Words behind which no head of a phrase comes. */
static bool ends_phrase(const char *word, size_t n)
{
    static const char *const words[] = {
        "of",   "with",  "in", "on",      "for", "from", "at",    "and", "is", "are",   "to",
        "that", "which", "by", "without", "or",  "used", "under", "has", "as", "called"};
    for (size_t i = 0; i < PNB_COUNT(words); i++)
        if (strlen(words[i]) == n && !memcmp(words[i], word, n))
            return true;
    return false;
}

/* "berries" -> "berry", "cats" -> "cat"; "glass", "cactus" and "iris" stay. */
static size_t singular(char *word, size_t n)
{
    if (n > 4 && !memcmp(word + n - 3, "ies", 3)) {
        word[n - 3] = 'y';
        return n - 2;
    }
    if (n > 3 && word[n - 1] == 's' && strchr("sui", word[n - 2]) == NULL)
        return n - 1;
    return n;
}

const char *pnb__concept_of(pnb__collection *c, const char *text)
{
    char word[WORD] = "";
    size_t n_word = 0;
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (isalpha((unsigned char)p[n]) || (unsigned char)p[n] >= 128)
            n++;
        char small[WORD] = "";
        for (size_t i = 0; i < n && n < WORD; i++)
            small[i] = (char)tolower((unsigned char)p[i]);
        if (n > 0 && n_word > 0 && ends_phrase(small, strlen(small)))
            break;
        if (n > 1 && n < WORD && !is_article(small, n)) {
            memcpy(word, small, n);
            n_word = n;
        }
        p += n;
        if (n_word > 0 && strchr(",.:;!?(", *p) != NULL)
            break; /* the end of the text too */
        p += *p != '\0';
    }
    n_word = singular(word, n_word);
    return pnb__keep_text(c, word, n_word);
}

/* ---- groups ---- */

typedef struct split_job {
    pnb__collection *c;
    size_t *group; /* [n] smallest item it is with */
    size_t *size;  /* [n] of the group whose smallest item this is */
} split_job;

static size_t root_of(split_job *j, size_t i)
{
    while (j->group[i] != i) {
        j->group[i] = j->group[j->group[i]];
        i = j->group[i];
    }
    return i;
}

static void join(split_job *j, size_t a, size_t b)
{
    a = root_of(j, a);
    b = root_of(j, b);
    j->group[PNB_MAX(a, b)] = PNB_MIN(a, b);
}

/* Pictures of one concept; those of a style held out go to test by themselves. */
static pnb_status join_concepts(split_job *j, pnb_error *err)
{
    pnb__named *names = NULL;
    size_t n = 0;
    pnb_status status = PNB_ALLOC(names, j->c->n + 1, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < j->c->n; i++)
        if (!j->c->items[i].is_new_style && j->c->items[i].concept[0])
            names[n++] = (pnb__named){j->c->items[i].concept, i};
    qsort(names, n, sizeof *names, pnb__by_name);
    for (size_t k = 1; k < n; k++)
        if (!strcmp(names[k].name, names[k - 1].name))
            join(j, names[k - 1].place, names[k].place);
    pnb__free(names);
    return PNB_OK;
}

/* Pictures that are held out take room here too, before they go to test: val and test then have
 * less of the others than their shares (docs/data.md#mixed). */
static void deal(split_job *j, uint32_t *order)
{
    pnb__collection *c = j->c;
    size_t n_free = 0, n_groups = 0, room[PNB__N_SPLITS] = {0};
    pnb__rng rng;
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].split = PNB__TRAIN;
        j->size[root_of(j, i)]++;
        if (root_of(j, i) == i)
            order[n_groups++] = (uint32_t)i;
        n_free += !c->items[i].is_new_style;
    }
    room[PNB__TEST] = (size_t)llround((double)n_free * c->opts->test_share);
    room[PNB__VAL] = (size_t)llround((double)n_free * c->opts->val_share);
    size_t largest = PNB_MAX(room[PNB__TEST] / LARGE_GROUPS, 1);
    pnb__rng_init(&rng, c->opts->seed, 9ULL << 56);
    pnb__rng_shuffle(&rng, order, n_groups);
    for (size_t k = 0; k < n_groups; k++) {
        size_t size = j->size[order[k]];
        int split = size > largest            ? PNB__TRAIN
                    : size <= room[PNB__TEST] ? PNB__TEST
                    : size <= room[PNB__VAL]  ? PNB__VAL
                                              : PNB__TRAIN;
        c->items[order[k]].split = split;
        room[split] -= split != PNB__TRAIN ? size : 0;
    }
    for (size_t i = 0; i < c->n; i++)
        c->items[i].split = c->items[root_of(j, i)].split;
}

/* The styles that are held out, and their near-duplicates in other styles. */
static void hold_out(pnb__collection *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].is_new_style)
            for (size_t k = 0; k < c->n; k++)
                if (c->items[k].twins == c->items[i].twins)
                    c->items[k].split = PNB__TEST;
}

/* Whose concept train has not. */
static pnb_status mark_new(pnb__collection *c, pnb_error *err)
{
    pnb__named *names = NULL;
    size_t n = 0;
    pnb_status status = PNB_ALLOC(names, 2 * c->n + 1, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].split == PNB__TRAIN)
            names[n++] = (pnb__named){c->items[i].concept, i};
    qsort(names, n, sizeof *names, pnb__by_name);
    for (size_t i = 0; i < c->n; i++) {
        pnb__collected *item = &c->items[i];
        item->is_new_concept = pnb__names_find(names, n, item->concept) == SIZE_MAX;
    }
    pnb__free(names);
    return PNB_OK;
}

pnb_status pnb__collection_split(pnb__collection *c, bool by_concept, pnb_error *err)
{
    split_job j = {.c = c};
    uint32_t *order = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(j.group, c->n, err));
    PNB_TRY(PNB_ALLOC_ZERO(j.size, c->n, err));
    PNB_TRY(PNB_ALLOC(order, c->n, err));
    for (size_t i = 0; i < c->n; i++)
        j.group[i] = i;
    for (size_t i = 0; i < c->n; i++)
        join(&j, i, c->items[i].twins);
    if (by_concept)
        PNB_TRY(join_concepts(&j, err));
    deal(&j, order);
    if (by_concept) {
        hold_out(c);
        status = mark_new(c, err);
    }
done:
    pnb__free(j.group);
    pnb__free(j.size);
    pnb__free(order);
    return status;
}
