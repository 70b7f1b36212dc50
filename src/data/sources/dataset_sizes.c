/* sizes.json and __len__ beside shards, as open_clip's get_dataset_size reads them: an object of
 * shards' names and their numbers of samples, or one number for all.
 *
 * open_clip believes them, because it never looks into a shard before its turn. Here every shard is
 * scanned for positions when the set is opened, so the number of samples is known and no file can
 * make an epoch shorter; what a folder says is compared with what is in it. Another number means
 * that a shard was cut, exchanged or never came, which nothing else would show. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "data/sources/dataset_internal.h"
#include "io/json/json.h"

enum { NAME_BYTES = 128, MOST_LEN_BYTES = 64 };

struct pnb__shard_folder {
    char *dir;
    json_t *sizes;   /* NULL: no sizes.json */
    int64_t len;     /* of __len__; -1: none, or there is a sizes.json, which says more */
    size_t n_shards; /* that were read whole */
    size_t n_found, n_used;
    size_t n_other, n_unnamed; /* of another size than was said, not named */
    char first_other[NAME_BYTES + 64], first_unnamed[NAME_BYTES];
};

void pnb__sizes_free(pnb_dataset *ds)
{
    for (size_t i = 0; i < ds->n_folders; i++) {
        json_decref(ds->folders[i].sizes);
        pnb__free(ds->folders[i].dir);
    }
    pnb__free(ds->folders);
    ds->folders = NULL;
    ds->n_folders = 0;
}

/* ---- reading ---- */

/* Whether there is something to read. A pipe would be waited at for ever, and a folder or a device
 * has no number: what else stands there is a mistake that is told. */
static bool is_there(const char *path, pnb_status *status, pnb_error *why)
{
    const char *special = pnb__path_is_dir(path) ? "a folder" : pnb__path_special(path);
    if (special != NULL)
        *status = pnb__fail(why, PNB_FORMAT, "%s is %s, a file is wanted", path, special);
    return special == NULL && pnb__path_is_file(path);
}

/* What cannot be read says nothing: a warning, since the shards are what counts. */
static pnb_status read_sizes(pnb_dataset *ds, pnb__shard_folder *f, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    char *path = pnb__path_join(f->dir, "sizes.json");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(f->dir));
    pnb_status status = PNB_OK;
    if (is_there(path, &status, &why))
        status = pnb__json_load_file(&f->sizes, path, 0, &why);
    if (status == PNB_OK && f->sizes != NULL && !json_is_object(f->sizes)) {
        json_decref(f->sizes);
        f->sizes = NULL;
        status = pnb__fail(&why, PNB_FORMAT, "%s: an object of shards and numbers is wanted", path);
    }
    pnb__free(path);
    if (status == PNB_NOMEM)
        return pnb__fail_nomem(err, 0);
    return status == PNB_OK ? PNB_OK
                            : pnb__dataset_warn(ds, err, "%s; it is not compared", why.text);
}

static pnb_status read_len(pnb_dataset *ds, pnb__shard_folder *f, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    char *path = pnb__path_join(f->dir, "__len__"), *text = NULL, *end = NULL;
    size_t n = 0;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(f->dir));
    pnb_status status = PNB_OK;
    if (is_there(path, &status, &why))
        status = pnb__read_file(path, MOST_LEN_BYTES, &text, &n, &why);
    if (text != NULL) {
        f->len = strtoll(text, &end, 10);
        if (end == text || end[strspn(end, " \t\r\n")] != '\0' || f->len < 0) {
            f->len = -1;
            status = pnb__fail(&why, PNB_FORMAT, "%s: a number of samples is wanted", path);
        }
    }
    pnb__free(text);
    pnb__free(path);
    if (status == PNB_NOMEM)
        return pnb__fail_nomem(err, 0);
    return status == PNB_OK ? PNB_OK
                            : pnb__dataset_warn(ds, err, "%s; it is not compared", why.text);
}

/* The folder of a shard, most often the last one. */
static pnb_status find_folder(pnb_dataset *ds, const char *path, pnb__shard_folder **out,
                              pnb_error *err)
{
    char *dir = pnb__path_dir(path);
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(path));
    for (size_t i = ds->n_folders; i-- > 0;)
        if (strcmp(ds->folders[i].dir, dir) == 0) {
            pnb__free(dir);
            *out = &ds->folders[i];
            return PNB_OK;
        }
    pnb_status status =
        PNB_PUSH(ds->folders, ds->n_folders, err, (pnb__shard_folder){.dir = dir, .len = -1});
    if (status != PNB_OK) {
        pnb__free(dir);
        return status;
    }
    *out = &ds->folders[ds->n_folders - 1];
    status = read_sizes(ds, *out, err);
    return status == PNB_OK && (*out)->sizes == NULL ? read_len(ds, *out, err) : status;
}

/* What was left out for want of a caption or a picture is told already, and may count or not. */
static bool is_right(double said, size_t n_used, size_t n_found)
{
    return said >= (double)n_used && said <= (double)n_found;
}

pnb_status pnb__sizes_note(pnb_dataset *ds, const char *path, size_t n_used, size_t n_found,
                           pnb_error *err)
{
    pnb__shard_folder *f = NULL;
    const char *name = pnb__path_base(path);
    pnb_status status = find_folder(ds, path, &f, err);
    if (status != PNB_OK)
        return status;
    f->n_shards++;
    f->n_used += n_used;
    f->n_found += n_found;
    const json_t *said = json_object_get(f->sizes, name);
    if (f->sizes != NULL && !json_is_number(said)) {
        if (f->n_unnamed++ == 0)
            snprintf(f->first_unnamed, sizeof f->first_unnamed, "%s", name);
    } else if (f->sizes != NULL && !is_right(json_number_value(said), n_used, n_found)) {
        if (f->n_other++ == 0)
            snprintf(f->first_other, sizeof f->first_other, "%.*s: %.0f, and it has %zu",
                     NAME_BYTES, name, json_number_value(said), n_found);
    }
    return PNB_OK;
}

/* ---- comparing ---- */

/* Shards that lie in the folder; whoever names some of them does not want the others. */
static pnb_status count_shards(const pnb__shard_folder *f, size_t *n, pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = pnb__list_dir(&names, f->dir, err);
    *n = 0;
    for (size_t i = 0; i < names.n; i++)
        *n += pnb__is_shard_name(names.items[i]);
    pnb__paths_free(&names);
    return status;
}

static pnb_status warn_of_missing(pnb_dataset *ds, const pnb__shard_folder *f, pnb_error *err)
{
    const char *name = NULL, *first = NULL;
    size_t n = 0;
    json_t *value;
    json_object_foreach(f->sizes, name, value)
    {
        char *path = pnb__path_join(f->dir, name);
        if (path == NULL)
            return pnb__fail_nomem(err, strlen(name));
        if (!pnb__path_is_file(path))
            first = n++ == 0 ? name : first;
        pnb__free(path);
    }
    if (n == 0)
        return PNB_OK;
    return pnb__dataset_warn(ds, err,
                             "%s/sizes.json names %zu shards that are not there (%s): their "
                             "samples are missing",
                             f->dir, n, first);
}

static pnb_status warn_of_sizes(pnb_dataset *ds, const pnb__shard_folder *f, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (f->n_other > 0)
        status = pnb__dataset_warn(ds, err,
                                   "%s/sizes.json says another number of samples of %zu of %zu "
                                   "shards (%s); what is in them is used",
                                   f->dir, f->n_other, f->n_shards, f->first_other);
    if (status == PNB_OK && f->n_unnamed > 0)
        status = pnb__dataset_warn(ds, err,
                                   "%s/sizes.json says no number of samples of %zu of %zu shards "
                                   "(%s); what is in them is used",
                                   f->dir, f->n_unnamed, f->n_shards, f->first_unnamed);
    return status;
}

static pnb_status finish_folder(pnb_dataset *ds, const pnb__shard_folder *f, pnb_error *err)
{
    size_t n_there = 0;
    if (f->sizes == NULL && f->len < 0)
        return PNB_OK;
    pnb_status status = count_shards(f, &n_there, err);
    if (status == PNB_OK)
        status = warn_of_sizes(ds, f, err);
    if (status != PNB_OK || f->n_shards != n_there) /* a part of them, or damage that is told */
        return status;
    if (f->sizes != NULL)
        return warn_of_missing(ds, f, err);
    if (is_right((double)f->len, f->n_used, f->n_found))
        return PNB_OK;
    return pnb__dataset_warn(ds, err,
                             "%s/__len__ says %lld samples, and the %zu shards beside it have %zu; "
                             "what is in them is used",
                             f->dir, (long long)f->len, f->n_shards, f->n_found);
}

pnb_status pnb__sizes_finish(pnb_dataset *ds, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < ds->n_folders && status == PNB_OK; i++)
        status = finish_folder(ds, &ds->folders[i], err);
    pnb__sizes_free(ds);
    return status;
}
