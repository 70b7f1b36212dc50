/* Matches a file of caption hierarchies with embedding sets, by text and by name.
 *
 * Captions are compared as they stand, white space at the ends aside, as the released evaluation
 * does. Both lookups are sorted lists with binary search. */
#include "commands/traverse/traverse_truth.h"

#include <stdlib.h>
#include <string.h>

#include "penumbra/truth.h"
#include "truth/id_resolver.h"

typedef struct named {
    char *name; /* allocated */
    size_t row;
} named;

typedef struct name_list {
    named *items;
    size_t n;
} name_list;

static void free_names(name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        pnb__free(list->items[i].name);
    pnb__free(list->items);
    *list = (name_list){0};
}

static int compare_named(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* Lowest row of that name, SIZE_MAX when there is none. */
static size_t find_name(const name_list *list, const char *name)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n && strcmp(list->items[low].name, name) == 0 ? list->items[low].row
                                                                     : SIZE_MAX;
}

static pnb_status add_name(name_list *list, char *name, size_t row, pnb_error *err)
{
    if (name == NULL)
        return pnb__fail_nomem(err, 64);
    list->items[list->n++] = (named){name, row};
    return PNB_OK;
}

/* File name without folders, query and ending: "http://x/val/000001.jpg?a" -> "000001". */
static char *stem(const char *path)
{
    size_t n = strcspn(path, "?#");
    const char *base = path;
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/')
            base = path + i + 1;
    size_t length = (size_t)(path + n - base);
    for (size_t i = length; i > 1; i--)
        if (base[i - 1] == '.') {
            length = i - 1;
            break;
        }
    return pnb__strndup(base, length);
}

static char *trimmed(const char *text)
{
    size_t n = 0;
    text = pnb__trimmed(text, strlen(text), &n);
    return pnb__strndup(text, n);
}

static pnb_status name_texts(name_list *list, const pnb_embeddings *texts, pnb_error *err)
{
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(list->items, texts->n, err));
    for (size_t i = 0; i < texts->n; i++) {
        const char *text = texts->texts != NULL ? texts->texts[i] : NULL;
        if (text == NULL)
            PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                              "caption row %zu has no text; embed the captions with this program",
                              i));
        PNB_TRY(add_name(list, trimmed(text), i, err));
    }
    qsort(list->items, list->n, sizeof *list->items, compare_named);
done:
    return status;
}

/* Each picture by its id, and by the stem of its path or id. */
static pnb_status name_images(name_list *ids, name_list *stems, const pnb_embeddings *images,
                              pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = images->n;
    PNB_TRY(PNB_ALLOC(ids->items, n, err));
    PNB_TRY(PNB_ALLOC(stems->items, n, err));
    for (size_t i = 0; i < n; i++) {
        const char *id = images->ids != NULL ? images->ids[i] : NULL;
        const char *path = images->paths != NULL ? images->paths[i] : NULL;
        if (id != NULL)
            PNB_TRY(add_name(ids, pnb__strdup(id), i, err));
        if (path != NULL || id != NULL)
            PNB_TRY(add_name(stems, stem(path != NULL ? path : id), i, err));
    }
    qsort(ids->items, ids->n, sizeof *ids->items, compare_named);
    qsort(stems->items, stems->n, sizeof *stems->items, compare_named);
done:
    return status;
}

static pnb_status find_image(const name_list *ids, const name_list *stems,
                             const pnb_hierarcaps *file, size_t i, size_t *row, pnb_error *err)
{
    *row = find_name(ids, file->id[i]);
    if (*row == SIZE_MAX && file->url[i][0] != '\0') {
        char *name = stem(file->url[i]);
        if (name == NULL)
            return pnb__fail_nomem(err, strlen(file->url[i]));
        *row = find_name(stems, name);
        pnb__free(name);
    }
    return PNB_OK;
}

static pnb_status match_images(pnb__hierarchy_truth *out, const pnb_hierarcaps *file,
                               const pnb_embeddings *images, const name_list *texts, pnb_error *err)
{
    name_list ids = {0}, stems = {0};
    pnb_status status;
    PNB_TRY(name_images(&ids, &stems, images, err));
    for (size_t i = 0; i < file->n; i++) {
        size_t row = SIZE_MAX;
        PNB_TRY(find_image(&ids, &stems, file, i, &row, err));
        if (row == SIZE_MAX)
            continue;
        for (size_t l = 0; l < file->n_levels; l++) {
            const char *text = file->text[i * file->n_levels + l];
            size_t found = find_name(texts, text);
            if (found == SIZE_MAX)
                PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                                  "the caption \"%.80s\" of picture '%s' is not in the caption "
                                  "set; embed the captions of the truth file",
                                  text, file->id[i]));
            out->truth[out->n_kept * file->n_levels + l] = (int64_t)found;
        }
        out->row[out->n_kept++] = row;
    }
    if (out->n_kept == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                          "none of the %zu pictures of the truth is in the picture set, neither by "
                          "id ('%s') nor by file name (\"%.80s\")",
                          file->n, file->id[0], file->url[0]));
done:
    free_names(&ids);
    free_names(&stems);
    return status;
}

pnb_status pnb__hierarchy_truth_match(pnb__hierarchy_truth *out, const pnb_hierarcaps *file,
                                      const pnb_embeddings *images, const pnb_embeddings *texts,
                                      pnb_error *err)
{
    name_list names = {0};
    pnb_status status = PNB_OK;
    *out = (pnb__hierarchy_truth){0};
    PNB_TRY(name_texts(&names, texts, err));
    PNB_TRY(PNB_ALLOC(out->label, texts->n, err));
    PNB_TRY(PNB_ALLOC(out->truth, file->n * file->n_levels, err));
    PNB_TRY(PNB_ALLOC(out->row, file->n, err));
    for (size_t i = 0; i < names.n; i++) /* the label of a text is its lowest row */
        out->label[names.items[i].row] =
            i > 0 && strcmp(names.items[i - 1].name, names.items[i].name) == 0
                ? out->label[names.items[i - 1].row]
                : (int64_t)names.items[i].row;
    status = match_images(out, file, images, &names, err);
done:
    free_names(&names);
    if (status != PNB_OK)
        pnb__hierarchy_truth_reset(out);
    return status;
}

void pnb__hierarchy_truth_reset(pnb__hierarchy_truth *t)
{
    pnb__free(t->label);
    pnb__free(t->truth);
    pnb__free(t->row);
    *t = (pnb__hierarchy_truth){0};
}
