/* Samples of a folder of pictures, searched below in name order. The caption comes from x.json or
 * x.txt beside x.png, or, with class_texts, from the name of the folder the picture lies in
 * ('_' and '-' read as spaces). The first folder below the root is its class. Settings behind the
 * source's "#" read CUB Captions: captions in a folder of their own, the classes of a split, and
 * pictures to leave out.
 *
 * Every file whose name says that it is a picture is a sample, also in a format that is not read
 * here: reading it then fails, and it is reported by name instead of passed over. A folder is read
 * once. A link to a folder below the root is not followed, because the folder comes by its own
 * name; a link that leads out of the root is, unless it comes to a folder that was read. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "data/sources/dataset_internal.h"
#include "io/image/formats/codec.h"

enum { MAX_DEPTH = 200 };

/* The text offset of stem + ending if such a file exists, in `dir` or where it is absolute. */
static size_t find_beside(pnb_dataset *ds, const char *dir, const char *path, const char *ending)
{
    size_t n_stem = (size_t)(strrchr(path, '.') - path);
    char *beside = dir != NULL ? pnb__format("%s/%.*s%s", dir, (int)n_stem, path, ending)
                               : pnb__format("%.*s%s", (int)n_stem, path, ending);
    size_t text = PNB__NO_TEXT;
    ds->texts.failed |= !beside; /* adding the entry reports it */
    if (beside && pnb__path_is_file(beside))
        text = pnb__dataset_add_text(ds, beside);
    pnb__free(beside);
    return text;
}

static size_t class_text(pnb_dataset *ds, const char *path)
{
    char *dir = pnb__path_dir(path);
    char *name = dir ? pnb__strdup(pnb__path_base(dir)) : NULL;
    size_t text = PNB__NO_TEXT;
    for (char *p = name; p && *p; p++)
        if (*p == '_' || *p == '-')
            *p = ' ';
    if (name)
        text = pnb__dataset_add_text(ds, name);
    ds->texts.failed |= !name;
    pnb__free(name);
    pnb__free(dir);
    return text;
}

/* The first folder below the root is the class; a picture in the root itself has none. */
static size_t class_folder(pnb_dataset *ds, const char *key)
{
    const char *slash = strchr(key, '/');
    char *name = slash ? pnb__strndup(key, (size_t)(slash - key)) : NULL;
    size_t text = name ? pnb__dataset_add_text(ds, name) : PNB__NO_TEXT;
    ds->texts.failed |= slash && !name;
    pnb__free(name);
    return text;
}

/* A folder, however it was reached. */
typedef struct place {
    dev_t device;
    ino_t number;
} place;

typedef struct walk {
    pnb_dataset *ds;
    size_t n_root, n_left_out;
    const char *texts; /* where x.txt and x.json lie, below the same folders; NULL: beside */
    pnb__name_list classes, omit; /* no names: all classes, no picture */
    char *real_root;              /* without links; NULL when it cannot be told */
    place *seen;
    size_t n_seen;
} walk;

/* Whether the folder is new; it is not any more then. */
static pnb_status see_folder(walk *w, const struct stat *info, bool *is_new, pnb_error *err)
{
    *is_new = false;
    for (size_t i = 0; i < w->n_seen; i++)
        if (w->seen[i].device == info->st_dev && w->seen[i].number == info->st_ino)
            return PNB_OK;
    *is_new = true;
    return PNB_PUSH(w->seen, w->n_seen, err, (place){info->st_dev, info->st_ino});
}

/* Whether `path` is a link to what the search finds by its own name. */
static bool is_link_inside(const walk *w, const char *path)
{
    struct stat info;
    if (!w->real_root || lstat(path, &info) != 0 || !S_ISLNK(info.st_mode))
        return false;
    char *real = realpath(path, NULL);
    size_t n = strlen(w->real_root);
    bool is_inside = real && !strncmp(real, w->real_root, n) &&
                     (real[n] == '/' || real[n] == 0 || (n == 1 && real[0] == '/'));
    free(real);
    return is_inside;
}

static pnb_status add_image(walk *w, const char *path, pnb_error *err)
{
    pnb__entry entry = pnb__entry_empty();
    const char *key = path + w->n_root;
    const char *stem = w->texts != NULL ? key : path;
    if (w->omit.n > 0 && pnb__name_list_take(&w->omit, key))
        return PNB_OK;
    entry.json_path = find_beside(w->ds, w->texts, stem, ".json");
    entry.txt_path = find_beside(w->ds, w->texts, stem, ".txt");
    if (entry.json_path == PNB__NO_TEXT && entry.txt_path == PNB__NO_TEXT) {
        if (w->ds->opts.class_texts)
            entry.text = class_text(w->ds, path);
        else if (!w->ds->opts.allow_no_caption) {
            w->n_left_out++;
            return w->ds->texts.failed ? pnb__fail_nomem(err, strlen(path)) : PNB_OK;
        }
    }
    entry.key = pnb__dataset_add_text(w->ds, key);
    entry.image_path = pnb__dataset_add_text(w->ds, path);
    entry.class_name = class_folder(w->ds, key);
    return pnb__dataset_add_entry(w->ds, &entry, err);
}

/* Folders in the root are classes; a list of these leaves the others out. */
static bool is_wanted(walk *w, const char *name, int depth)
{
    return depth > 0 || w->classes.n == 0 || pnb__class_list_take(&w->classes, name);
}

static pnb_status walk_dir(walk *w, const char *dir, int depth, pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = PNB_OK;
    char *path = NULL;
    struct stat info;
    bool is_new = false;
    if (depth > MAX_DEPTH)
        return pnb__fail(err, PNB_LIMIT, "%s: folders are nested more than %d deep", dir,
                         (int)MAX_DEPTH);
    if (stat(dir, &info) != 0)
        return pnb__fail_errno(err, "cannot read the folder", dir);
    PNB_TRY(see_folder(w, &info, &is_new, err));
    if (!is_new)
        goto done;
    PNB_TRY(pnb__list_dir(&names, dir, err));
    for (size_t i = 0; i < names.n; i++) {
        path = pnb__path_join(dir, names.items[i]);
        if (!path) {
            status = pnb__fail_nomem(err, strlen(dir));
            goto done;
        }
        if (pnb__path_is_dir(path)) {
            if (!is_link_inside(w, path) && is_wanted(w, names.items[i], depth))
                PNB_TRY(walk_dir(w, path, depth + 1, err));
        } else if (pnb__image_is_named(names.items[i]) && (depth > 0 || w->classes.n == 0)) {
            PNB_TRY(add_image(w, path, err));
        }
        pnb__free(path);
        path = NULL;
    }
done:
    pnb__free(path);
    pnb__paths_free(&names);
    return status;
}

static pnb_status read_lists(walk *w, const pnb__spec_settings *s, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (s->texts != NULL && !pnb__path_is_dir(s->texts))
        return pnb__fail(err, PNB_NOT_FOUND, "captions=%s: no such folder", s->texts);
    w->texts = s->texts;
    if (s->classes != NULL)
        status = pnb__name_list_read(&w->classes, s->classes, err);
    if (status == PNB_OK && s->omit != NULL)
        status = pnb__name_list_read(&w->omit, s->omit, err);
    return status;
}

/* Lists of another data set, or names spelled otherwise, would go unseen. */
static pnb_status warn_of_lists(const walk *w, const pnb__spec_settings *s, pnb_error *err)
{
    size_t n = 0;
    const char *first = pnb__name_list_unused(&w->classes, &n);
    pnb_status status = PNB_OK;
    if (n > 0)
        status = pnb__dataset_warn(w->ds, err, "%s: %zu of %zu classes have no folder in %s (%s)",
                                   s->classes, n, w->classes.n, s->path, first);
    first = pnb__name_list_unused(&w->omit, &n);
    if (status == PNB_OK && n > 0 && n == w->omit.n)
        status = pnb__dataset_warn(
            w->ds, err,
            "%s: none of its pictures is in the classes of %s (%s): names are wanted as "
            "CLASS/PICTURE.jpg",
            s->omit, s->path, first);
    return status;
}

pnb_status pnb__scan_dir(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err)
{
    const char *path = s->path;
    walk w = {.ds = ds, .n_root = strlen(path)};
    pnb_status status = PNB_OK;
    while (w.n_root > 1 && path[w.n_root - 1] == '/')
        w.n_root--;
    char *root = pnb__strndup(path, w.n_root);
    if (!root)
        return pnb__fail_nomem(err, w.n_root);
    w.n_root++; /* keys start behind the slash */
    w.real_root = realpath(root, NULL);
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_DIR, root, err));
    PNB_TRY(read_lists(&w, s, err));
    PNB_TRY(walk_dir(&w, root, 0, err));
    PNB_TRY(warn_of_lists(&w, s, err));
    if (w.n_left_out > 0)
        status = pnb__dataset_warn(
            ds, err, "%s: %zu pictures without a .txt or .json %s%s left out", root, w.n_left_out,
            s->texts != NULL ? "in " : "beside them", s->texts != NULL ? s->texts : "");
done:
    free(w.real_root);
    pnb__name_list_free(&w.classes);
    pnb__name_list_free(&w.omit);
    pnb__free(w.seen);
    pnb__free(root);
    return status;
}
