/* Samples of Karpathy's json files of COCO, Flickr30k and Flickr8k:
 *
 *   {"images": [{"filename", "filepath"?, "split", "sentences": [{"raw"}, ...]}, ...]}
 *
 * of one or more splits, train and restval unless others are named, as all that train on COCO do.
 * Pictures lie in the folder of the file or in the one that is named, below "filepath" (val2014)
 * where they are there. What truth of an evaluation is read from these files: src/truth. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/json/json.h"

static const size_t MAX_FILE_BYTES = (size_t)1 << 30;

/* "train+restval" holds "train"; "all" holds everything. */
static bool split_holds(const char *wanted, const char *split)
{
    size_t n = strlen(split);
    if (strcmp(wanted, "all") == 0)
        return true;
    for (const char *at = wanted; at != NULL; at = strchr(at, '+')) {
        at += *at == '+';
        if (n > 0 && strncmp(at, split, n) == 0 && (at[n] == 0 || at[n] == '+'))
            return true;
    }
    return false;
}

static pnb_status malformed(const char *path, size_t i, const char *wanted, pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT, "%s: images[%zu] has no %s", path, i, wanted);
}

/* Captions one a line, as a sample's text is kept; a line break within one is a blank. False where
 * that is no list of them. */
static bool add_texts(pnb_dataset *ds, const json_t *sentences, size_t *text)
{
    size_t offset = ds->texts.size;
    bool is_good = json_is_array(sentences);
    for (size_t k = 0; is_good && k < json_array_size(sentences); k++) {
        const char *raw = json_string_value(json_object_get(json_array_get(sentences, k), "raw"));
        is_good = raw != NULL;
        for (const char *p = raw; is_good && *p != 0; p++)
            pnb__buf_putc(&ds->texts, *p == '\n' || *p == '\r' ? ' ' : *p);
        pnb__buf_putc(&ds->texts, '\n');
    }
    bool is_empty = ds->texts.size == offset;
    pnb__buf_putc(&ds->texts, 0);
    *text = is_empty ? PNB__NO_TEXT : offset;
    return is_good;
}

/* dir/filepath/filename, or dir/filename where only that is there. */
static size_t add_path(pnb_dataset *ds, const char *dir, const json_t *image, const char *name)
{
    const char *below = json_string_value(json_object_get(image, "filepath"));
    char *path = below != NULL ? pnb__format("%s/%s/%s", dir, below, name) : NULL;
    if (path == NULL || !pnb__path_is_file(path)) {
        pnb__free(path);
        path = pnb__path_join(dir, name);
    }
    size_t text = path != NULL ? pnb__dataset_add_text(ds, path) : PNB__NO_TEXT;
    ds->texts.failed |= path == NULL; /* adding the entry reports it */
    pnb__free(path);
    return text;
}

static pnb_status add_image(pnb_dataset *ds, const char *path, const char *dir, size_t i,
                            const json_t *image, size_t *n_left_out, pnb_error *err)
{
    const char *name = json_string_value(json_object_get(image, "filename"));
    pnb__entry entry = pnb__entry_empty();
    if (name == NULL || name[0] == 0)
        return malformed(path, i, "\"filename\"", err);
    if (!add_texts(ds, json_object_get(image, "sentences"), &entry.text))
        return malformed(path, i, "\"sentences\" with a \"raw\" each", err);
    if (entry.text == PNB__NO_TEXT && !ds->opts.allow_no_caption) {
        ++*n_left_out;
        return PNB_OK;
    }
    entry.key = pnb__dataset_add_text(ds, name);
    entry.image_path = add_path(ds, dir, image, name);
    return pnb__dataset_add_entry(ds, &entry, err);
}

static pnb_status add_split(pnb_dataset *ds, const pnb__spec_settings *s, const char *dir,
                            const json_t *images, pnb_error *err)
{
    const char *wanted = s->split != NULL ? s->split : "train+restval";
    size_t n_before = ds->n_entries, n_left_out = 0;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *image = json_array_get(images, i);
        const char *split = json_string_value(json_object_get(image, "split"));
        if (split_holds(wanted, split != NULL ? split : ""))
            PNB_TRY(add_image(ds, s->path, dir, i, image, &n_left_out, err));
    }
    if (n_left_out > 0)
        PNB_TRY(pnb__dataset_warn(ds, err, "%s: %zu pictures without a caption left out", s->path,
                                  n_left_out));
    if (ds->n_entries == n_before)
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "%s: none of its %zu pictures is in the split '%s'; splits are named as "
                           "in the file (train, restval, val, test), joined with +, or all",
                           s->path, json_array_size(images), wanted);
done:
    return status;
}

/* The json is freed when the samples are made of it: it takes several times the memory. */
pnb_status pnb__scan_karpathy(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err)
{
    json_t *root = NULL;
    char *beside = pnb__path_dir(s->path);
    pnb_status status;
    if (beside == NULL)
        return pnb__fail_nomem(err, strlen(s->path));
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_KARPATHY, s->path, err));
    PNB_TRY(pnb__json_load_file(&root, s->path, MAX_FILE_BYTES, err));
    const json_t *images = json_object_get(root, "images");
    if (s->images != NULL && !pnb__path_is_dir(s->images))
        status = pnb__fail(err, PNB_NOT_FOUND, "images=%s: no such folder", s->images);
    else if (!json_is_array(images))
        status = pnb__fail(
            err, PNB_FORMAT,
            "%s: has no list \"images\": wanted is Karpathy's form (dataset_coco.json)", s->path);
    else
        status = add_split(ds, s, s->images != NULL ? s->images : beside, images, err);
done:
    json_decref(root);
    pnb__free(beside);
    return status;
}
