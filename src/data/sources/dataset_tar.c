/* Samples of a webdataset shard: members whose names agree up to the first dot of the basename form
 * one sample; what follows the dot, lower-cased, is the suffix. A suffix that appears again starts
 * a new sample. Only positions are kept: pictures and records are read from the file map when asked
 * for. Samples without a picture, or without a text where one is wanted, are left out and counted.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/image/formats/codec.h"
#include "io/tables/tar.h"

static const char DEFAULT_TEXT_KEYS[] = "json;txt";

enum { MAX_SUFFIXES = 32 };

/* The sample being collected. */
typedef struct group {
    pnb__entry entry;
    char *key;
    size_t n_members, image_rank;
    uint64_t suffixes[MAX_SUFFIXES]; /* hashes of those seen */
    size_t n_no_image, n_no_text;    /* samples left out */
    size_t n_bad_class;
} group;

/* Position of `suffix` in the ';' list, SIZE_MAX when it is not there. */
static size_t key_rank(const char *keys, const char *suffix)
{
    size_t n = strlen(suffix), rank = 0;
    for (const char *p = keys; *p; rank++) {
        size_t length = strcspn(p, ";");
        if (length == n && !strncasecmp(p, suffix, n))
            return rank;
        p += length + (p[length] == ';');
    }
    return SIZE_MAX;
}

static pnb_status end_group(pnb_dataset *ds, group *g, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (g->key && g->n_members > 0) {
        bool has_text = g->entry.json.is_set || g->entry.txt.is_set || ds->opts.allow_no_caption;
        if (!g->entry.image.is_set) {
            g->n_no_image++;
        } else if (!has_text) {
            g->n_no_text++;
        } else {
            g->entry.key = pnb__dataset_add_text(ds, g->key);
            status = pnb__dataset_add_entry(ds, &g->entry, err);
        }
    }
    pnb__free(g->key);
    g->key = NULL;
    g->entry = pnb__entry_empty();
    g->n_members = 0;
    g->image_rank = SIZE_MAX;
    return status;
}

/* x.cls holds the number of the class as text (webdataset, CLIP_benchmark). */
static void read_class(group *g, const pnb__tar_member *m)
{
    char text[16] = "", *end = text;
    long value = -1;
    if (m->size > 0 && m->size < sizeof text) {
        memcpy(text, m->data, m->size);
        value = strtol(text, &end, 10);
        end += strspn(end, " \t\r\n");
    }
    if (end == text || *end != 0 || value < 0 || value > INT32_MAX)
        g->n_bad_class++;
    else
        g->entry.label = (int32_t)value;
}

static bool is_repeated(group *g, const char *suffix)
{
    uint64_t hash = pnb__hash_bytes(suffix, strlen(suffix), 0);
    for (size_t i = 0; i < g->n_members && i < MAX_SUFFIXES; i++)
        if (g->suffixes[i] == hash)
            return true;
    return false;
}

static pnb_status add_member(pnb_dataset *ds, group *g, const pnb__tar_member *m, pnb_error *err)
{
    const char *dot = strchr(pnb__path_base(m->name), '.');
    char suffix[32];
    if (!m->is_file || !dot || dot == pnb__path_base(m->name))
        return PNB_OK;
    size_t n_key = (size_t)(dot - m->name);
    size_t n_suffix = PNB_MIN(strlen(dot + 1), sizeof suffix - 1);
    for (size_t i = 0; i < n_suffix; i++)
        suffix[i] = (char)tolower((unsigned char)dot[1 + i]);
    suffix[n_suffix] = 0;
    bool same = g->key && strlen(g->key) == n_key && !memcmp(g->key, m->name, n_key);
    if (!same || is_repeated(g, suffix)) {
        pnb_status status = end_group(ds, g, err);
        if (status != PNB_OK)
            return status;
        g->key = pnb__strndup(m->name, n_key);
        if (!g->key)
            return pnb__fail_nomem(err, n_key);
    }
    if (g->n_members < MAX_SUFFIXES)
        g->suffixes[g->n_members] = pnb__hash_bytes(suffix, n_suffix, 0);
    g->n_members++;
    pnb__span span = {m->data_offset, m->size, true};
    const char *keys = ds->opts.image_key ? ds->opts.image_key : pnb__image_keys();
    size_t rank = key_rank(keys, suffix);
    if (rank < g->image_rank) {
        g->image_rank = rank;
        g->entry.image = span;
    } else if (strcmp(suffix, "cls") == 0) {
        read_class(g, m);
    } else if (key_rank(ds->opts.text_key ? ds->opts.text_key : DEFAULT_TEXT_KEYS, suffix) !=
               SIZE_MAX) {
        *(strcmp(suffix, "json") == 0 ? &g->entry.json : &g->entry.txt) = span;
    }
    return PNB_OK;
}

static pnb_status report_left_out(pnb_dataset *ds, const group *g, const char *path, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (g->n_no_image > 0)
        status = pnb__dataset_warn(ds, err, "%s: %zu samples without a picture left out", path,
                                   g->n_no_image);
    if (status == PNB_OK && g->n_no_text > 0)
        status = pnb__dataset_warn(ds, err, "%s: %zu samples without a caption left out", path,
                                   g->n_no_text);
    if (status == PNB_OK && g->n_bad_class > 0)
        status = pnb__dataset_warn(ds, err, "%s: %zu .cls members are not the number of a class",
                                   path, g->n_bad_class);
    return status;
}

/* CLIP_benchmark keeps classnames.txt above train/ and test/; beside the shards is as good. */
pnb_status pnb__tar_classes(pnb_dataset *ds, const char *path, pnb_error *err)
{
    char *dir = pnb__path_dir(path), *above = dir ? pnb__path_join(dir, "..") : NULL;
    bool found = false;
    pnb_status status = above ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    if (status == PNB_OK)
        status = pnb__classes_load(ds, dir, "classnames.txt", &found, err);
    if (status == PNB_OK && !found)
        status = pnb__classes_load(ds, above, "classnames.txt", &found, err);
    pnb__free(dir);
    pnb__free(above);
    return status;
}

pnb_status pnb__scan_tar(pnb_dataset *ds, const char *path, pnb_error *err)
{
    pnb__tar tar = {0};
    pnb__tar_member m;
    pnb_error damage = PNB_ERROR_INIT;
    group g = {.entry = pnb__entry_empty(), .image_rank = SIZE_MAX};
    bool more = true;
    size_t n_members = 0;
    pnb_status status = PNB_OK;
    size_t n_before = ds->n_entries;
    bool is_whole = true;
    PNB_TRY(pnb__tar_open(&tar, path, err));
    if (tar.map.size == 0) /* a download that never began: an archive has blocks at its end */
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: is empty, 0 bytes; a tar archive is wanted", path));
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_TAR, path, err));
    ds->sources[ds->n_sources - 1].map = tar.map; /* the positions are those of this very map */
    tar.map = (pnb__map){0};
    for (;; n_members++) {
        status = pnb__tar_next(&tar, &m, &more, &damage);
        if (status != PNB_OK || !more)
            break;
        PNB_TRY(add_member(ds, &g, &m, err));
    }
    if (status == PNB_FORMAT && n_members > 0) { /* keep what came before the damage */
        ds->n_shards_broken++;
        is_whole = false;
        status = pnb__dataset_warn(ds, err, "%s; the samples before it are used", damage.text);
    }
    if (status != PNB_OK) {
        status = pnb__fail(err, status, "%s", damage.text);
        goto done;
    }
    PNB_TRY(end_group(ds, &g, err));
    PNB_TRY(report_left_out(ds, &g, path, err));
    size_t n_used = ds->n_entries - n_before;
    if (is_whole)
        status = pnb__sizes_note(ds, path, n_used, n_used + g.n_no_image + g.n_no_text, err);
done:
    pnb__free(g.key);
    pnb__tar_close(&tar);
    return status;
}
