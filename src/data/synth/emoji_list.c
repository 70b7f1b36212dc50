/* Texts of the `emoji` set: sequences, groups, subgroups and names from Unicode's emoji-test.txt,
 * keywords from CLDR's annotation files. CLDR writes its sequences without U+FE0F and keeps most of
 * them in annotations/, those made from parts in annotationsDerived/. The XML is read line by line:
 * one <annotation cp="...">a | b | c</annotation> each, with the five standard entities.
 *
 * An emoji without keywords besides its own name (CLDR 41 lacks Unicode 15's) gets its name as the
 * keyword, so that every picture has all four levels. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "data/synth/emoji.h"

enum { MAX_FILE_BYTES = 64 << 20 };

void pnb__emoji_free(pnb__emoji_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        pnb_image_free(&list->items[i].image);
    pnb__free(list->items);
    pnb__arena_free(&list->arena);
    *list = (pnb__emoji_list){0};
}

/* Copies n bytes into the arena. */
static const char *keep(pnb__emoji_list *list, const char *text, size_t n)
{
    char *copy = pnb__arena_alloc(&list->arena, n + 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

static pnb_status read_package_file(const char *path, const char *package, char **text, size_t *n,
                                    pnb_error *err)
{
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status = pnb__read_file(path, MAX_FILE_BYTES, text, n, &inner);
    if (status == PNB_NOT_FOUND)
        return pnb__fail(err, status, "%s does not exist: apt-get install %s", path, package);
    return status == PNB_OK ? status : pnb__fail(err, status, "%s", inner.text);
}

/* ---- emoji-test.txt ------------------------------------------------------------------------ */

static const char *make_key(pnb__emoji_list *list, const pnb__emoji *e)
{
    char key[PNB__EMOJI_MAX_POINTS * 8];
    int n = 0;
    for (int i = 0; i < e->n_points; i++)
        n += snprintf(key + n, sizeof key - (size_t)n, "%s%04x", i ? "-" : "",
                      (unsigned)e->points[i]);
    return keep(list, key, (size_t)n);
}

/* "1F600 ; fully-qualified # (the emoji) E1.0 grinning face"; false for other lines. */
static bool parse_line(pnb__emoji_list *list, const char *line, pnb__emoji *e)
{
    char *end;
    const char *p = line, *semicolon = strchr(line, ';');
    const char *name = strstr(line, " E"); /* the version behind the emoji itself */
    if (!semicolon || !name || strncmp(semicolon + 1, " fully-qualified", 16) != 0)
        return false;
    while (p < semicolon && e->n_points < PNB__EMOJI_MAX_POINTS) {
        unsigned long point = strtoul(p, &end, 16);
        if (end == p || point > 0x10ffff)
            break;
        e->has_skin_tone |= point >= 0x1f3fb && point <= 0x1f3ff;
        e->points[e->n_points++] = (uint32_t)point;
        p = end + strspn(end, " ");
    }
    name = strchr(name + 1, ' ');
    if (p != semicolon || e->n_points == 0 || !name)
        return false;
    name++;
    e->name = keep(list, name, strcspn(name, "\r"));
    e->key = make_key(list, e);
    return true;
}

static pnb_status add_emoji(pnb__emoji_list *list, const pnb__emoji *e, pnb_error *err)
{
    if (!e->name || !e->key)
        return pnb__fail_nomem(err, 64);
    if (!e->group || !e->subgroup)
        return pnb__fail(err, PNB_FORMAT,
                         "emoji-test.txt: %s stands before the first group and subgroup", e->name);
    return PNB_PUSH(list->items, list->n, err, *e);
}

/* "face-smiling" reads "face smiling". */
static const char *keep_title(pnb__emoji_list *list, const char *text, bool hyphens)
{
    char *copy = pnb__arena_alloc(&list->arena, strlen(text) + 1);
    for (size_t i = 0; copy && text[i] && text[i] != '\r'; i++)
        copy[i] = text[i] == '-' && !hyphens ? ' ' : text[i];
    return copy;
}

/* The titles that the lines after them belong to. */
typedef struct titles {
    const char *group, *subgroup;
} titles;

static pnb_status read_line(pnb__emoji_list *list, const char *line, bool skin_tones, titles *t,
                            pnb_error *err)
{
    pnb__emoji e = {0};
    const char **title = pnb__starts_with(line, "# group: ")      ? &t->group
                         : pnb__starts_with(line, "# subgroup: ") ? &t->subgroup
                                                                  : NULL;
    if (title) {
        *title = keep_title(list, strchr(line, ':') + 2, title == &t->group);
        return *title ? PNB_OK : pnb__fail_nomem(err, strlen(line));
    }
    if (line[0] == '#' || !parse_line(list, line, &e) || (e.has_skin_tone && !skin_tones))
        return PNB_OK;
    e.group = t->group;
    e.subgroup = t->subgroup;
    if (!list->sensitive && pnb__emoji_is_sensitive(&e))
        return PNB_OK;
    return add_emoji(list, &e, err);
}

pnb_status pnb__emoji_read(pnb__emoji_list *list, const char *path, bool skin_tones, pnb_error *err)
{
    char *text = NULL, *rest = NULL;
    size_t n;
    titles t = {0};
    pnb_status status = read_package_file(path, "unicode-data", &text, &n, err);
    if (status != PNB_OK)
        return status;
    pnb__arena_init(&list->arena, 1 << 16);
    for (char *line = strtok_r(text, "\n", &rest); line && status == PNB_OK;
         line = strtok_r(NULL, "\n", &rest))
        status = read_line(list, line, skin_tones, &t, err);
    pnb__free(text);
    if (status == PNB_OK && list->n == 0)
        status = pnb__fail(err, PNB_FORMAT, "%s: no fully-qualified emoji; is this emoji-test.txt?",
                           path);
    return status;
}

/* ---- CLDR ----------------------------------------------------------------------------------- */

typedef struct annotation {
    const char *sequence, *words;
} annotation;

typedef struct annotations {
    annotation *items;
    size_t n;
} annotations;

static int compare_annotations(const void *a, const void *b)
{
    return strcmp(((const annotation *)a)->sequence, ((const annotation *)b)->sequence);
}

/* Undoes the entities of `text`[0..n) in place of a kept copy. */
static const char *keep_decoded(pnb__emoji_list *list, const char *text, size_t n)
{
    static const char *const ENTITIES[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    static const char CHARACTERS[] = "&<>\"'";
    char *copy = pnb__arena_alloc(&list->arena, n + 1);
    size_t out = 0;
    for (size_t i = 0; copy && i < n;) {
        size_t k = 0;
        while (k < PNB_COUNT(ENTITIES) &&
               strncmp(text + i, ENTITIES[k], PNB_MIN(strlen(ENTITIES[k]), n - i)) != 0)
            k++;
        bool is_entity = k < PNB_COUNT(ENTITIES) && strlen(ENTITIES[k]) <= n - i;
        copy[out++] = is_entity ? CHARACTERS[k] : text[i];
        i += is_entity ? strlen(ENTITIES[k]) : 1;
    }
    return copy;
}

static pnb_status add_annotation(annotations *a, const char *sequence, const char *words,
                                 pnb_error *err)
{
    if (!sequence || !words)
        return pnb__fail_nomem(err, 64);
    return PNB_PUSH(a->items, a->n, err, (annotation){sequence, words});
}

/* Not strstr: a checked one looks for the end of the whole file at every call. */
static const char *find(const char *at, const char *stop, const char *what)
{
    return memmem(at, (size_t)(stop - at), what, strlen(what));
}

/* Keywords only: lines with type="tts" hold the names. */
static pnb_status read_annotations(pnb__emoji_list *list, annotations *a, const char *common,
                                   const char *folder, pnb_error *err)
{
    static const char START[] = "<annotation cp=\"", MIDDLE[] = "\">", END[] = "</annotation>";
    char *path = pnb__format("%s/%s/en.xml", common, folder), *text = NULL;
    size_t n;
    if (!path)
        return pnb__fail_nomem(err, strlen(common));
    pnb_status status = read_package_file(path, "unicode-cldr-core", &text, &n, err);
    pnb__free(path);
    if (status != PNB_OK)
        return status;
    const char *stop = text + n;
    for (const char *p = find(text, stop, START); p && status == PNB_OK; p = find(p, stop, START)) {
        const char *sequence = p + sizeof START - 1;
        const char *quote = find(sequence, stop, "\""),
                   *end = quote ? find(quote, stop, END) : NULL;
        if (!end)
            break;
        p = end;
        if (memcmp(quote, MIDDLE, 2) != 0)
            continue;
        status = add_annotation(a, keep_decoded(list, sequence, (size_t)(quote - sequence)),
                                keep_decoded(list, quote + 2, (size_t)(end - quote - 2)), err);
    }
    pnb__free(text);
    return status;
}

/* The sequence as CLDR spells it: UTF-8 without U+FE0F. */
static void cldr_sequence(const pnb__emoji *e, char out[4 * PNB__EMOJI_MAX_POINTS + 1])
{
    size_t n = 0;
    for (int i = 0; i < e->n_points; i++)
        if (e->points[i] != 0xfe0f)
            n += pnb__utf8_encode(e->points[i], out + n);
    out[n] = 0;
}

static bool has_word(const pnb__emoji *e, const char *word, size_t n)
{
    for (int i = 0; i < e->n_words; i++)
        if (strlen(e->words[i]) == n && !memcmp(e->words[i], word, n))
            return true;
    return strlen(e->name) == n && !memcmp(e->name, word, n);
}

/* "a | b | c" without the name and without repeats. */
static pnb_status set_words(pnb__emoji_list *list, pnb__emoji *e, const char *words, pnb_error *err)
{
    for (const char *p = words; *p && e->n_words < PNB__EMOJI_MAX_WORDS;) {
        size_t length = strcspn(p, "|"), begin = strspn(p, " "), end = length;
        while (end > begin && p[end - 1] == ' ')
            end--;
        bool is_kept = list->sensitive ||
                       !pnb__emoji_is_sensitive_word(p + begin, end > begin ? end - begin : 0);
        if (end > begin && is_kept && !has_word(e, p + begin, end - begin)) {
            e->words[e->n_words] = keep(list, p + begin, end - begin);
            if (!e->words[e->n_words++])
                return pnb__fail_nomem(err, end);
        }
        p += length + (p[length] == '|');
    }
    return PNB_OK;
}

pnb_status pnb__emoji_add_words(pnb__emoji_list *list, const char *common, pnb_error *err)
{
    annotations a = {0};
    pnb_status status = PNB_OK;
    PNB_TRY(read_annotations(list, &a, common, "annotations", err));
    PNB_TRY(read_annotations(list, &a, common, "annotationsDerived", err));
    if (a.n == 0) {
        status = pnb__fail(err, PNB_FORMAT, "%s: the annotation files hold no annotation", common);
        goto done;
    }
    qsort(a.items, a.n, sizeof *a.items, compare_annotations);
    for (size_t i = 0; i < list->n; i++) {
        pnb__emoji *e = &list->items[i];
        char sequence[4 * PNB__EMOJI_MAX_POINTS + 1];
        cldr_sequence(e, sequence);
        annotation key = {sequence, NULL};
        const annotation *found = bsearch(&key, a.items, a.n, sizeof *a.items, compare_annotations);
        list->n_without_words += !found;
        if (found)
            PNB_TRY(set_words(list, e, found->words, err));
        if (e->n_words == 0)
            e->words[e->n_words++] = e->name;
    }
done:
    pnb__free(a.items);
    return status;
}
