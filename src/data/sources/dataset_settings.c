/* What stands behind a source's "#": which split and classes of it are meant, and where the other
 * half of its pairs lies.
 *
 *     dataset_coco.json#split=val,images=coco
 *     CUB_200_2011/images#captions=text_c10,classes=trainvalclasses.txt,omit=seen_test_images.txt
 *
 * A path that is there as it is written has no settings, so that a "#" may stand in a name. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "data/sources/dataset_internal.h"

enum { MAX_LIST_BYTES = 64 << 20 };

static const char *const KEYS[] = {"split", "images", "captions", "classes", "omit"};

/* The "key=" that `text` begins with, -1 for none. */
static int key_at(const char *text)
{
    for (size_t k = 0; k < PNB_COUNT(KEYS); k++) {
        size_t n = strlen(KEYS[k]);
        if (strncmp(text, KEYS[k], n) == 0 && text[n] == '=')
            return (int)k;
    }
    return -1;
}

size_t pnb__spec_head(const char *source)
{
    for (const char *p = strchr(source, '#'); p != NULL; p = strchr(p + 1, '#'))
        if (key_at(p + 1) >= 0 && !pnb__path_is_file(source) && !pnb__path_is_dir(source))
            return (size_t)(p - source);
    return strlen(source);
}

bool pnb__is_spec(const char *source)
{
    return source[pnb__spec_head(source)] != '\0' || pnb__ends_with(source, ".json");
}

void pnb__spec_settings_free(pnb__spec_settings *s)
{
    pnb__free(s->path);
    *s = (pnb__spec_settings){0};
}

pnb_status pnb__spec_settings_read(pnb__spec_settings *out, const char *source, pnb_error *err)
{
    const char **values[] = {&out->split, &out->images, &out->texts, &out->classes, &out->omit};
    size_t head = pnb__spec_head(source);
    *out = (pnb__spec_settings){.path = pnb__strdup(source)};
    if (out->path == NULL)
        return pnb__fail_nomem(err, strlen(source));
    if (source[head] == 0)
        return PNB_OK;
    out->path[head] = 0;
    for (char *p = out->path + head + 1, *next; p != NULL; p = next) {
        next = strchr(p, ',');
        if (next != NULL)
            *next++ = 0;
        int key = key_at(p);
        const char *value = key >= 0 ? p + strlen(KEYS[key]) + 1 : "";
        if (value[0] == 0 || *values[key] != NULL)
            return pnb__fail(err, PNB_ARG,
                             "%s: \"%s\" behind the # is not understood: wanted split=, images=, "
                             "captions=, classes= or omit=, each once and with a value",
                             source, p);
        *values[key] = value;
    }
    return PNB_OK;
}

/* Settings that a source of this kind has no use for would be ignored: they are refused. */
pnb_status pnb__spec_settings_check(const pnb__spec_settings *s, pnb_dataset_kind kind,
                                    pnb_error *err)
{
    bool is_json = kind == PNB_DATASET_KARPATHY, is_dir = kind == PNB_DATASET_DIR;
    bool json_only = s->split != NULL || s->images != NULL;
    bool dir_only = s->texts != NULL || s->classes != NULL || s->omit != NULL;
    if ((!json_only || is_json) && (!dir_only || is_dir))
        return PNB_OK;
    return pnb__fail(
        err, PNB_ARG,
        "%s: split= and images= are for Karpathy's json files, captions=, classes= and "
        "omit= for folders of pictures",
        s->path);
}

/* ---- lists of names ---- */

void pnb__name_list_free(pnb__name_list *l)
{
    pnb__free(l->data);
    pnb__free(l->names);
    pnb__free(l->used);
    *l = (pnb__name_list){0};
}

pnb_status pnb__name_list_read(pnb__name_list *out, const char *path, pnb_error *err)
{
    size_t size = 0, n_lines = 1;
    char *line = NULL;
    pnb_status status;
    *out = (pnb__name_list){0};
    PNB_TRY(pnb__read_file(path, MAX_LIST_BYTES, &out->data, &size, err));
    for (size_t i = 0; i < size; i++)
        n_lines += out->data[i] == '\n' || out->data[i] == '\r';
    PNB_TRY(PNB_ALLOC(out->names, n_lines, err));
    PNB_TRY(PNB_ALLOC_ZERO(out->used, n_lines, err));
    pnb__line_reader lines = {.at = out->data, .end = out->data + size, .path = path};
    for (;;) {
        size_t n = 0;
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        char *name = (char *)(uintptr_t)pnb__trimmed(line, strlen(line), &n);
        name[n] = 0;
        if (n > 0) {
            out->names[out->n] = (pnb__named){name, out->n};
            out->n++;
        }
    }
    if (out->n == 0)
        status = pnb__fail(err, PNB_FORMAT, "%s: holds no name", path);
    qsort(out->names, out->n, sizeof *out->names, pnb__by_name);
done:
    if (status != PNB_OK)
        pnb__name_list_free(out);
    return status;
}

bool pnb__name_list_take(pnb__name_list *l, const char *name)
{
    size_t place = pnb__names_find(l->names, l->n, name);
    if (place != SIZE_MAX)
        l->used[place] = 1;
    return place != SIZE_MAX;
}

/* The number before the first full stop, or of the whole name; -1: there is none. */
static long class_number(const char *name)
{
    size_t n = strspn(name, "0123456789");
    return n > 0 && n < 9 && (name[n] == '.' || name[n] == 0) ? strtol(name, NULL, 10) : -1;
}

/* By the number as the reference does, so that "1.Name", "001.Name" and "1" are one class. */
bool pnb__class_list_take(pnb__name_list *l, const char *folder)
{
    long number = class_number(folder);
    bool found = pnb__name_list_take(l, folder);
    for (size_t i = 0; number >= 0 && i < l->n; i++) {
        if (class_number(l->names[i].name) != number)
            continue;
        l->used[l->names[i].place] = 1;
        found = true;
    }
    return found;
}

const char *pnb__name_list_unused(const pnb__name_list *l, size_t *n)
{
    const char *first = NULL;
    *n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (!l->used[l->names[i].place] && (*n)++ == 0)
            first = l->names[i].name;
    return first;
}
