/* Captions of CUB-200 and Oxford Flowers as Reed et al. (2016) gave them out: a folder for each
 * class, in it a text file for each picture, ten captions a file, one a line.
 *
 *   text_c10/001.Black_footed_Albatross/Black_Footed_Albatross_0001_796111.txt
 * testclasses.txt and its like name the classes of a split, one a line. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "truth/ground_truth.h"
#include "truth/id_resolver.h"

typedef struct classes {
    char *data;
    pnb__paths names; /* of the split; n = 0 with data NULL: all */
} classes;

static bool in_split(const classes *split, const char *name)
{
    for (size_t i = 0; split->data != NULL && i < split->names.n; i++)
        if (strcmp(split->names.items[i], name) == 0)
            return true;
    return split->data == NULL;
}

/* "test" is testclasses.txt in the folder or the one above; anything else is a file. */
static pnb_status find_split(const char *root, const char *split, char **path, pnb_error *err)
{
    char *above = pnb__path_dir(root);
    *path = pnb__strdup(split);
    for (int i = 0; i < 2 && *path != NULL && !pnb__path_is_file(*path); i++) {
        pnb__free(*path);
        *path = pnb__format("%s/%sclasses.txt", i == 0 ? root : above, split);
    }
    pnb__free(above);
    if (*path == NULL)
        return pnb__fail_nomem(err, strlen(split));
    if (pnb__path_is_file(*path))
        return PNB_OK;
    pnb__free(*path);
    *path = NULL;
    return pnb__fail(err, PNB_ARG,
                     "split '%s': there is no such file, and no %sclasses.txt in %s or above it",
                     split, split, root);
}

static pnb_status load_split(classes *split, const char *path, pnb_error *err)
{
    size_t size = 0;
    pnb_status status = pnb__read_file(path, PNB__MAX_TRUTH_BYTES, &split->data, &size, err);
    if (status != PNB_OK)
        return status;
    pnb__line_reader lines = {.at = split->data, .end = split->data + size, .path = path};
    for (char *line;;) {
        size_t n = 0;
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        const char *name = pnb__trimmed(line, strlen(line), &n);
        if (n > 0)
            PNB_TRY(pnb__paths_add(&split->names, name, n, err));
    }
done:
    return status;
}

/* One file: the captions of one picture. */
static pnb_status read_texts(pnb__ground_truth *c, const char *path, pnb_error *err)
{
    char *data = NULL;
    size_t size = 0, place = 0;
    pnb_status status = pnb__read_file(path, PNB__MAX_TRUTH_BYTES, &data, &size, err);
    if (status != PNB_OK)
        return status;
    pnb__line_reader lines = {.at = data, .end = data + size, .path = path};
    for (char *line;;) {
        size_t n = 0;
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        const char *text = pnb__trimmed(line, strlen(line), &n);
        if (n == 0)
            continue;
        pnb__text_ref ref = {c->n_images - 1, place++, 0, pnb__ground_truth_intern(c, text, n), -1};
        PNB_TRY(pnb__ground_truth_text(c, ref, err));
    }
done:
    pnb__free(data);
    return status;
}

static pnb_status read_class(pnb__ground_truth *c, const char *dir, const char *class_name,
                             int64_t group, pnb_error *err)
{
    pnb__paths files = {0};
    pnb_status status = pnb__list_dir(&files, dir, err);
    for (size_t i = 0; status == PNB_OK && i < files.n; i++) {
        const char *name = files.items[i];
        size_t n = strlen(name);
        if (name[0] == '.' || n <= 4 || !pnb__ends_with(name, ".txt"))
            continue;
        char *path = pnb__path_join(dir, name);
        char *full = pnb__format("%s/%.*s", class_name, (int)(n - 4), name);
        if (path == NULL || full == NULL)
            status = pnb__fail_nomem(err, n);
        if (status == PNB_OK) {
            pnb__image p = {{pnb__ground_truth_intern(c, full, strlen(full)),
                             pnb__ground_truth_intern(c, name, n - 4), 0},
                            group};
            status = pnb__ground_truth_image(c, p, err);
        }
        if (status == PNB_OK)
            status = read_texts(c, path, err);
        pnb__free(path);
        pnb__free(full);
    }
    pnb__paths_free(&files);
    return status;
}

static pnb_status read_classes(pnb__ground_truth *c, const char *root, const classes *split,
                               pnb_error *err)
{
    pnb__paths dirs = {0};
    pnb_status status = pnb__list_dir(&dirs, root, err);
    for (size_t i = 0; status == PNB_OK && i < dirs.n; i++) {
        char *dir = pnb__path_join(root, dirs.items[i]);
        if (dir == NULL)
            status = pnb__fail_nomem(err, strlen(root));
        else if (dirs.items[i][0] != '.' && pnb__path_is_dir(dir) && in_split(split, dirs.items[i]))
            status = read_class(c, dir, dirs.items[i], (int64_t)i, err);
        pnb__free(dir);
    }
    pnb__paths_free(&dirs);
    return status;
}

pnb_status pnb__read_truth_folders(pnb__ground_truth *c, const pnb__truth_source *s, pnb_error *err)
{
    pnb_status status = PNB_OK;
    classes split = {0};
    char *split_path = NULL, *root = pnb__path_join(s->path, "text_c10");
    if (root != NULL && !pnb__path_is_dir(root)) {
        pnb__free(root);
        root = pnb__strdup(s->path);
    }
    if (root == NULL)
        return pnb__fail_nomem(err, strlen(s->path));
    if (s->opts->split != NULL) {
        PNB_TRY(find_split(root, s->opts->split, &split_path, err));
        PNB_TRY(load_split(&split, split_path, err));
    }
    PNB_TRY(read_classes(c, root, &split, err));
    if (c->n_texts == 0)
        status = pnb__fail(err, PNB_ARG,
                           "%s: no captions; folders of classes with a text file for each picture "
                           "are wanted%s",
                           root, split.data != NULL ? ", named as in the file of the split" : "");
done:
    pnb__free(root);
    pnb__free(split_path);
    pnb__free(split.data);
    pnb__paths_free(&split.names);
    return status;
}
