/* Names of classes and the numbers of samples. A source either gives numbers (x.cls, binaries) and
 * perhaps a file of names, or names (class folders, a label column), which are numbered here: by
 * the names of the set when it has them, else by their sorted order, as torchvision's ImageFolder
 * does. A label column that holds whole numbers only gives numbers. */
#include <stdlib.h>
#include <string.h>

#include "data/sources/dataset_internal.h"

enum { MAX_CLASS_BYTES = 64 << 20, MAX_CLASSES = 1 << 24 };

void pnb__classes_free(pnb_dataset *ds)
{
    for (size_t i = 0; i < ds->n_classes; i++)
        pnb__free(ds->classes[i]);
    pnb__free(ds->classes);
    ds->classes = NULL;
    ds->n_classes = 0;
}

size_t pnb_dataset_n_classes(const pnb_dataset *ds)
{
    return ds->n_classes;
}

const char *pnb_dataset_class_name(const pnb_dataset *ds, size_t i)
{
    return i < ds->n_classes ? ds->classes[i] : "";
}

/* ---- a file of names ---- */

static pnb_status split_lines(pnb_dataset *ds, const char *text, const char *path, pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = PNB_OK;
    size_t number = 0, n_blank = 0; /* blank lines since the last name */
    if (pnb__starts_with(text, "\xEF\xBB\xBF"))
        text += 3;
    for (const char *p = text; *p != 0 && status == PNB_OK; number++) {
        size_t n = strcspn(p, "\n"), used = n + (p[n] == '\n');
        n -= n > 0 && p[n - 1] == '\r';
        if (n > 0 && n_blank > 0) /* labels count lines, so that a gap would move them */
            status = pnb__fail(err, PNB_FORMAT, "%s line %zu: empty, but a line is a class's name",
                               path, number);
        else if (n > 0)
            status = pnb__paths_add(&names, p, n, err);
        n_blank += n == 0;
        p += used;
    }
    if (status == PNB_OK && names.n == 0)
        status = pnb__fail(err, PNB_FORMAT, "%s: holds no class name", path);
    if (status != PNB_OK) {
        pnb__paths_free(&names);
        return status;
    }
    ds->classes = names.items;
    ds->n_classes = names.n;
    return PNB_OK;
}

pnb_status pnb__classes_load(pnb_dataset *ds, const char *dir, const char *name, bool *found,
                             pnb_error *err)
{
    char *path = pnb__path_join(dir, name), *text = NULL;
    size_t n = 0;
    pnb_status status = PNB_OK;
    if (!path)
        return pnb__fail_nomem(err, strlen(dir));
    *found = pnb__path_is_file(path);
    if (*found && ds->n_classes == 0) {
        PNB_TRY(pnb__read_file(path, MAX_CLASS_BYTES, &text, &n, err));
        if (!pnb__utf8_valid(text, n) || (n && memchr(text, 0, n)))
            PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: not valid UTF-8 text", path));
        status = split_lines(ds, text, path, err);
    }
done:
    pnb__free(text);
    pnb__free(path);
    return status;
}

/* ---- numbering ---- */

/* An entry with its name, for sorting. */
typedef struct named {
    const char *name;
    size_t entry;
} named;

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static bool is_number(const char *name)
{
    size_t n = strspn(name, "0123456789");
    return n > 0 && n < 9 && name[n] == 0;
}

static void number_by_value(pnb_dataset *ds, const named *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pnb__entry *e = &ds->entries[items[i].entry];
        e->label = (int32_t)strtol(items[i].name, NULL, 10);
        e->class_name = PNB__NO_TEXT; /* a number is no name */
    }
}

/* Names of the set that the user's files gave; an unknown name keeps label -1. */
static void number_by_names(pnb_dataset *ds, const named *items, size_t n)
{
    int32_t label = -1;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(items[i].name, items[i - 1].name) != 0) {
            label = -1;
            for (size_t c = 0; c < ds->n_classes && label < 0; c++)
                if (strcmp(ds->classes[c], items[i].name) == 0)
                    label = (int32_t)c;
        }
        ds->entries[items[i].entry].label = label;
    }
}

static pnb_status number_by_order(pnb_dataset *ds, const named *items, size_t n, pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        if (i == 0 || strcmp(items[i].name, items[i - 1].name) != 0)
            status = names.n < MAX_CLASSES
                         ? pnb__paths_add(&names, items[i].name, strlen(items[i].name), err)
                         : pnb__fail(err, PNB_LIMIT, "more than %d classes", (int)MAX_CLASSES);
        ds->entries[items[i].entry].label = (int32_t)names.n - 1;
    }
    if (status != PNB_OK) {
        pnb__paths_free(&names);
        return status;
    }
    ds->classes = names.items;
    ds->n_classes = names.n;
    return PNB_OK;
}

pnb_status pnb__classes_finish(pnb_dataset *ds, pnb_error *err)
{
    size_t n = 0, n_numbers = 0;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < ds->n_entries && !ds->texts.failed; i++)
        n += ds->entries[i].class_name != PNB__NO_TEXT;
    if (n == 0)
        return PNB_OK;
    named *items = pnb__alloc_array(n, sizeof *items);
    if (!items)
        return pnb__fail_nomem(err, n * sizeof *items);
    n = 0;
    for (size_t i = 0; i < ds->n_entries; i++) {
        if (ds->entries[i].class_name == PNB__NO_TEXT)
            continue;
        items[n] = (named){ds->texts.data + ds->entries[i].class_name, i};
        n_numbers += is_number(items[n++].name);
    }
    bool is_table = ds->sources[ds->entries[items[0].entry].source].kind == PNB_DATASET_CSV;
    qsort(items, n, sizeof *items, compare_named);
    if (is_table && n_numbers == n)
        number_by_value(ds, items, n);
    else if (ds->n_classes > 0)
        number_by_names(ds, items, n);
    else
        status = number_by_order(ds, items, n, err);
    pnb__free(items);
    return status;
}
