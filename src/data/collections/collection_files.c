/* Finds the files of a collection. Packages put one picture into several folders by links, which is
 * how it comes to several categories: a link names its target, so that it is drawn once.
 *
 * Links to folders are not followed, so that circles of them end nothing. */
#include "data/collections/collection_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "data/sources/dataset_internal.h"

enum { MAX_DEPTH = 16, MAX_FILES = 100000, MAX_FILE_BYTES = 64 << 20 };

void pnb__collection_files_free(pnb__collection_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        pnb__free(files->items[i].name);
    pnb__free(files->items);
    pnb__free(files->root);
    *files = (pnb__collection_files){0};
}

pnb_status pnb__collection_read_file(const char *path, char **data, size_t *n, pnb_error *err)
{
    const char *special = pnb__path_special(path);
    if (special != NULL)
        return pnb__fail(err, PNB_FORMAT, "%s is %s", path, special);
    return pnb__read_file(path, MAX_FILE_BYTES, data, n, err);
}

static pnb_status add_file(pnb__collection_files *f, const char *name, pnb_error *err)
{
    if (f->n >= MAX_FILES)
        return pnb__fail(err, PNB_LIMIT, "%s: more than %d files", f->root, (int)MAX_FILES);
    char *copy = pnb__strdup(name);
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(name));
    pnb_status status = PNB_PUSH(f->items, f->n, err, (pnb__collection_file){copy, f->n});
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

static pnb_status walk(pnb__collection_files *f, const char *below, int depth, pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = PNB_OK;
    char *dir = pnb__path_join(f->root, below), *name = NULL, *path = NULL;
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(below));
    if (depth > MAX_DEPTH)
        PNB_TRY(pnb__fail(err, PNB_LIMIT, "%s: folders are nested more than %d deep", dir,
                          (int)MAX_DEPTH));
    PNB_TRY(pnb__list_dir(&names, dir, err));
    for (size_t i = 0; i < names.n; i++) {
        struct stat info;
        name = below[0] ? pnb__format("%s/%s", below, names.items[i]) : pnb__strdup(names.items[i]);
        path = name != NULL ? pnb__path_join(f->root, name) : NULL;
        if (path == NULL)
            PNB_TRY(pnb__fail_nomem(err, strlen(dir)));
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            PNB_TRY(walk(f, name, depth + 1, err));
        else if (pnb__utf8_valid(name, strlen(name)))
            PNB_TRY(add_file(f, name, err));
        pnb__free(name);
        pnb__free(path);
        name = path = NULL;
    }
done:
    pnb__free(name);
    pnb__free(path);
    pnb__free(dir);
    pnb__paths_free(&names);
    return status;
}

static int by_file_name(const void *a, const void *b)
{
    const pnb__collection_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

size_t pnb__collection_files_place(const pnb__collection_files *files, const char *name)
{
    size_t low = 0, high = files->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(files->items[middle].name, name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

/* SIZE_MAX for a link that leads out or nowhere. */
static size_t target_of(const pnb__collection_files *f, size_t place, const char *path)
{
    struct stat info;
    size_t n_root = strlen(f->root), target = place;
    if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode))
        return place;
    char *real = realpath(path, NULL);
    bool is_inside = real != NULL && !strncmp(real, f->root, n_root) && real[n_root] == '/';
    target = is_inside ? pnb__collection_files_place(f, real + n_root + 1) : SIZE_MAX;
    free(real);
    return target;
}

static pnb_status follow_links(pnb__collection_files *f, size_t *n_broken, pnb_error *err)
{
    for (size_t i = 0; i < f->n; i++) {
        char *path = pnb__path_join(f->root, f->items[i].name);
        if (path == NULL)
            return pnb__fail_nomem(err, strlen(f->root));
        f->items[i].target = target_of(f, i, path);
        *n_broken += f->items[i].target == SIZE_MAX;
        pnb__free(path);
    }
    return PNB_OK;
}

pnb_status pnb__collection_files_find(pnb__collection_files *files, const char *root,
                                      size_t *n_broken, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *files = (pnb__collection_files){0};
    char *real = realpath(root, NULL);
    if (real == NULL)
        return pnb__fail_errno(err, "cannot read the folder", root);
    files->root = pnb__strdup(real);
    free(real);
    if (files->root == NULL)
        return pnb__fail_nomem(err, strlen(root));
    PNB_TRY(walk(files, "", 0, err));
    if (files->n > 1)
        qsort(files->items, files->n, sizeof *files->items, by_file_name);
    status = follow_links(files, n_broken, err);
done:
    if (status != PNB_OK)
        pnb__collection_files_free(files);
    return status;
}
