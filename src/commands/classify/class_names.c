/* Class names and templates from the three sources users have: text files, JSON, and words.
 *
 * Placeholders: "{}" as in CLIP, "{c}" as in open_clip, CLIP_benchmark and ProLIP, and the names
 * other tools give it. Class-specific prompts are a JSON object of lists, as CuPL publishes them,
 * by themselves or below the name of a data set, as CLIP_benchmark's custom files. A name's '_' is
 * a space in its prompts: folders and label files write "aquarium_fish" for what a caption calls an
 * aquarium fish. What a template lacks is an error here, not a prompt without a class. The built-in
 * templates are class_templates.c. */
#include "commands/classify/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/json/json.h"
#include "program/options.h"

enum { MAX_BYTES = 64 << 20, MAX_PROMPTS = 20 * 1000 * 1000 };

/* ---- lists ---- */

pnb_status pnb__texts_add(pnb__texts *w, const char *text, size_t n, pnb_error *err)
{
    char *copy = pnb__strndup(text, n);
    if (copy == NULL)
        return pnb__fail_nomem(err, n);
    pnb_status status = PNB_PUSH(w->items, w->n, err, copy);
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

void pnb__texts_reset(pnb__texts *w)
{
    for (size_t i = 0; i < w->n; i++)
        pnb__free(w->items[i]);
    pnb__free(w->items);
    *w = (pnb__texts){0};
}

/* ---- finding a name ---- */

static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        unsigned char x = (unsigned char)(*a == '_' ? ' ' : *a);
        unsigned char y = (unsigned char)(*b == '_' ? ' ' : *b);
        if (x != y || x == 0)
            return x < y ? -1 : x > y;
    }
}

typedef struct placed {
    const char *name;
    size_t place;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int order = compare_names(x->name, y->name);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

pnb_status pnb__name_index_make(pnb__name_index *out, const pnb__texts *words, pnb_error *err)
{
    size_t n = words->n;
    placed *all = pnb__alloc_array(n, sizeof *all);
    *out = (pnb__name_index){pnb__alloc_array(n, sizeof *out->names),
                             pnb__alloc_array(n, sizeof *out->place), n};
    if (all == NULL || out->names == NULL || out->place == NULL) {
        pnb__free(all);
        pnb__name_index_reset(out);
        return pnb__fail_nomem(err, n * sizeof *all);
    }
    for (size_t i = 0; i < n; i++)
        all[i] = (placed){words->items[i], i};
    qsort(all, n, sizeof *all, compare_placed);
    for (size_t i = 0; i < n; i++) {
        out->names[i] = all[i].name;
        out->place[i] = all[i].place;
    }
    pnb__free(all);
    return PNB_OK;
}

void pnb__name_index_reset(pnb__name_index *index)
{
    pnb__free(index->names);
    pnb__free(index->place);
    *index = (pnb__name_index){0};
}

size_t pnb__name_find(const pnb__name_index *index, const char *name, bool *is_shared)
{
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_names(index->names[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < index->n && compare_names(index->names[low], name) == 0;
    *is_shared = found && low + 1 < index->n && compare_names(index->names[low + 1], name) == 0;
    return found ? index->place[low] : SIZE_MAX;
}

/* ---- files ---- */

/* Adds `n` bytes without the blanks around them. */
static pnb_status add_trimmed(pnb__texts *out, const char *text, size_t n, pnb_error *err)
{
    while (n > 0 && strchr(" \t\r", text[0]) != NULL) {
        text++;
        n--;
    }
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL)
        n--;
    return pnb__texts_add(out, text, n, err);
}

/* Lines of a text file; empty ones stay, so that line numbers are kept, but not those at the end.
 */
static pnb_status read_lines(pnb__texts *out, const char *path, pnb_error *err)
{
    char *text = NULL;
    size_t n = 0;
    pnb_status status;
    PNB_TRY(pnb__read_file(path, MAX_BYTES, &text, &n, err));
    if (!pnb__utf8_valid(text, n))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: not valid UTF-8 text", path));
    pnb__line_reader lines = {.at = text, .end = text + n, .path = path};
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        PNB_TRY(add_trimmed(out, line, strlen(line), err));
    }
    while (out->n > 0 && out->items[out->n - 1][0] == '\0')
        pnb__free(out->items[--out->n]);
done:
    pnb__free(text);
    return status;
}

static pnb_status read_list(pnb__texts *out, const json_t *list, const char *where, pnb_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text == NULL)
            return pnb__fail(err, PNB_FORMAT, "%s: entry %zu is not a text", where, i);
        pnb_status status = pnb__texts_add(out, text, strlen(text), err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* ---- names ---- */

/* A mistyped file must not become a class of that name. */
static pnb_status check_name(const char *name, pnb_error *err)
{
    const char *blank = strrchr(name, ' '); /* "my classes.txt" is a file too */
    if (!pnb__looks_like_file(blank != NULL ? blank + 1 : name) && strchr(name, '/') == NULL)
        return PNB_OK;
    return pnb__fail(
        err, PNB_NOT_FOUND,
        "%s: no such file of class names; a class that is really called so goes into a "
        "file, one name a line",
        name);
}

static pnb_status split_commas(pnb__texts *out, const char *spec, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (const char *p = spec; status == PNB_OK;) {
        size_t n = strcspn(p, ",");
        status = add_trimmed(out, p, n, err);
        if (status == PNB_OK)
            status = check_name(out->items[out->n - 1], err);
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return status;
}

/* The value of the data set in an object by data sets; of "wds/vtab/x" also that of "x". */
static json_t *of_dataset(const json_t *root, const char *dataset)
{
    if (dataset == NULL)
        return NULL;
    json_t *value = json_object_get(root, dataset);
    return value != NULL ? value : json_object_get(root, pnb__path_base(dataset));
}

/* A list of names, or an object of lists by data sets. */
static pnb_status read_json_names(pnb__texts *out, const char *path, const char *dataset,
                                  pnb_error *err)
{
    json_t *root = NULL;
    const json_t *list;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, 0, err));
    list = json_is_object(root) ? of_dataset(root, dataset) : root;
    if (list == NULL)
        PNB_TRY(pnb__fail(err, dataset != NULL ? PNB_NOT_FOUND : PNB_FORMAT,
                          dataset != NULL ? "%s: has no class names of data set \"%s\""
                                          : "%s: a list of class names is wanted; of an object of "
                                            "lists by data sets --dataset NAME says which%s",
                          path, dataset != NULL ? dataset : ""));
    if (!json_is_array(list))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: a list of class names is wanted", path));
    status = read_list(out, list, path, err);
done:
    json_decref(root);
    return status;
}

pnb_status pnb__classnames_read(pnb__texts *out, const char *spec, const char *dataset,
                                pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (pnb__path_is_dir(spec))
        return pnb__fail(err, PNB_ARG,
                         "%s: is a folder; a file of class names is wanted, or the names "
                         "themselves",
                         spec);
    if (!pnb__path_is_file(spec)) {
        PNB_TRY(split_commas(out, spec, err));
    } else if (pnb__ends_with(spec, ".json")) {
        PNB_TRY(read_json_names(out, spec, dataset, err));
    } else {
        PNB_TRY(read_lines(out, spec, err));
    }
    if (out->n == 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: holds no class name", spec));
    for (size_t i = 0; i < out->n; i++)
        if (out->items[i][0] == '\0')
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: class name %zu is empty", spec, i + 1));
done:
    return status;
}

bool pnb__classnames_repeated(const pnb__name_index *names, size_t *first, size_t *second)
{
    for (size_t i = 0; i + 1 < names->n; i++)
        if (compare_names(names->names[i], names->names[i + 1]) == 0) {
            *first = names->place[i];
            *second = names->place[i + 1];
            return true;
        }
    return false;
}

/* ---- prompts ---- */

/* Bytes of the placeholder that `text` starts with, 0 for none. */
static size_t placeholder(const char *text)
{
    static const char *const known[] = {"{}", "{c}", "{0}", "{class}", "{classname}", "{label}"};
    for (size_t i = 0; i < PNB_COUNT(known); i++)
        if (strncmp(text, known[i], strlen(known[i])) == 0)
            return strlen(known[i]);
    return 0;
}

bool pnb__fill_template(pnb__buf *out, const char *text, const char *name)
{
    bool filled = false;
    while (*text != '\0') {
        size_t n = placeholder(text);
        if (n == 0) {
            pnb__buf_putc(out, *text++);
            continue;
        }
        for (const char *c = name; *c != '\0'; c++)
            pnb__buf_putc(out, *c == '_' ? ' ' : *c);
        text += n;
        filled = true;
    }
    return filled;
}

/* The first "{word}" that is none of the placeholders; NULL when there is none. */
static const char *unknown_placeholder(const char *text, bool *has_known)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    *has_known = false;
    for (; (text = strchr(text, '{')) != NULL; text++) {
        if (placeholder(text) > 0)
            *has_known = true;
        else if (text[1 + strspn(text + 1, word)] == '}')
            return text;
    }
    return NULL;
}

static pnb_status check_templates(const pnb__texts *templates, const char *spec, pnb_error *err)
{
    bool has_known;
    if (templates->n == 0)
        return pnb__fail(err, PNB_FORMAT, "%s: holds no template", spec);
    for (size_t i = 0; i < templates->n; i++) {
        const char *unknown = unknown_placeholder(templates->items[i], &has_known);
        if (unknown != NULL)
            return pnb__fail(err, PNB_FORMAT,
                             "%s: template %zu is \"%.80s\"; {} or {c} stands for the class's "
                             "name, %.*s for nothing",
                             spec, i + 1, templates->items[i], (int)strcspn(unknown, "}") + 1,
                             unknown);
        if (!has_known)
            return pnb__fail(err, PNB_FORMAT,
                             "%s: template %zu is \"%.80s\"; it must say with {} or {c} where the "
                             "class's name goes",
                             spec, i + 1, templates->items[i]);
    }
    return PNB_OK;
}

static pnb_status add_prompt(pnb__class_prompts *p, const char *text, const char *name,
                             pnb_error *err)
{
    pnb__buf filled = {0};
    if (p->prompts.n >= MAX_PROMPTS)
        return pnb__fail(err, PNB_LIMIT, "more than %d prompts", (int)MAX_PROMPTS);
    pnb__fill_template(&filled, text, name);
    pnb_status status =
        filled.failed
            ? pnb__fail_nomem(err, filled.size)
            : pnb__texts_add(&p->prompts, filled.data != NULL ? filled.data : "", filled.size, err);
    pnb__buf_reset(&filled);
    return status;
}

static pnb_status fill_all(pnb__class_prompts *p, const pnb__texts *names, pnb_error *err)
{
    for (size_t c = 0; c < names->n; c++) {
        for (size_t j = 0; j < p->templates.n; j++) {
            pnb_status status = add_prompt(p, p->templates.items[j], names->items[c], err);
            if (status != PNB_OK)
                return status;
        }
        p->offset[c + 1] = p->prompts.n;
    }
    return PNB_OK;
}

/* The value of a class; as in an index of names, '_' and ' ' are the same. */
static const json_t *of_class(const json_t *root, const char *name)
{
    json_t *value = json_object_get(root, name), *candidate;
    const char *key;
    if (value != NULL || strpbrk(name, "_ ") == NULL)
        return value;
    json_object_foreach((json_t *)(uintptr_t)root, key, candidate)
    {
        if (compare_names(key, name) == 0)
            return candidate;
    }
    return NULL;
}

/* Lists of prompts by class name. */
static pnb_status take_own(pnb__class_prompts *p, const pnb__texts *names, const json_t *root,
                           const char *spec, pnb_error *err)
{
    for (size_t c = 0; c < names->n; c++) {
        const json_t *list = of_class(root, names->items[c]);
        if (list == NULL)
            return pnb__fail(err, PNB_NOT_FOUND, "%s: has no prompts for class \"%s\"", spec,
                             names->items[c]);
        if (json_array_size(list) == 0)
            return pnb__fail(err, PNB_FORMAT, "%s: class \"%s\" has no list of prompts", spec,
                             names->items[c]);
        for (size_t j = 0; j < json_array_size(list); j++) {
            const char *text = json_string_value(json_array_get(list, j));
            pnb_status status =
                text != NULL && text[0] != '\0'
                    ? add_prompt(p, text, names->items[c], err)
                    : pnb__fail(err, PNB_FORMAT, "%s: prompt %zu of class \"%s\" is no text", spec,
                                j + 1, names->items[c]);
            if (status != PNB_OK)
                return status;
        }
        p->offset[c + 1] = p->prompts.n;
    }
    return PNB_OK;
}

/* A list of templates, or an object: prompts by class, or either of them by data set. */
static pnb_status read_json(pnb__class_prompts *p, const pnb__texts *names, const char *spec,
                            const char *dataset, pnb_error *err)
{
    json_t *root = NULL;
    const json_t *found = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, spec, 0, err));
    found = root;
    if (json_is_object(root) && of_class(root, names->items[0]) == NULL)
        found = of_dataset(root, dataset);
    if (found == NULL)
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "%s: has no prompts for class \"%s\", and none for data set \"%s\" "
                           "(--dataset)",
                           spec, names->items[0], dataset != NULL ? dataset : "");
    else if (json_is_array(found))
        status = read_list(&p->templates, found, spec, err);
    else if (json_is_object(found))
        status = take_own(p, names, found, spec, err);
    else
        status = pnb__fail(err, PNB_FORMAT, "%s: a list of templates or an object is wanted", spec);
done:
    json_decref(root);
    return status;
}

static pnb_status take_table(pnb__texts *out, const char *const *templates, size_t n,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        status = pnb__texts_add(out, templates[i], strlen(templates[i]), err);
    return status;
}

static pnb_status read_templates(pnb__class_prompts *p, const pnb__texts *names, const char *spec,
                                 const char *dataset, pnb_error *err)
{
    static const char *const name_alone[] = {"{}"};
    if (strcmp(spec, "openai") == 0)
        return take_table(&p->templates, pnb__openai_templates, PNB__N_OPENAI_TEMPLATES, err);
    if (strcmp(spec, "simple") == 0)
        return take_table(&p->templates, pnb__simple_templates, PNB__N_SIMPLE_TEMPLATES, err);
    if (strcmp(spec, "none") == 0)
        return take_table(&p->templates, name_alone, 1, err);
    if (!pnb__path_is_file(spec))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s: no such file of templates; openai, simple and none are built in",
                         spec);
    if (pnb__ends_with(spec, ".json"))
        return read_json(p, names, spec, dataset, err);
    return read_lines(&p->templates, spec, err);
}

pnb_status pnb__class_prompts_make(pnb__class_prompts *out, const pnb__texts *names,
                                   const char *spec, const char *dataset, pnb_error *err)
{
    pnb__class_prompts p = {.n_classes = names->n};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(p.offset, names->n + 1, err));
    PNB_TRY(read_templates(&p, names, spec, dataset, err));
    if (p.prompts.n == 0) {
        PNB_TRY(check_templates(&p.templates, spec, err));
        PNB_TRY(fill_all(&p, names, err));
    }
done:
    if (status == PNB_OK)
        *out = p;
    else
        pnb__class_prompts_reset(&p);
    return status;
}

void pnb__class_prompts_reset(pnb__class_prompts *p)
{
    pnb__texts_reset(&p->templates);
    pnb__texts_reset(&p->prompts);
    pnb__free(p->offset);
    *p = (pnb__class_prompts){0};
}
