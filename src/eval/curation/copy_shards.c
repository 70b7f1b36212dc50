/* Copies chosen samples of a data set into new webdataset shards.
 *
 * Samples of tar shards are copied as they lie: headers, extended headers, data and padding of
 * every member that belongs to the sample, in order. Which members those are is decided as in
 * data/dataset_tar.c: names that agree up to the first dot of the basename, a repeated suffix
 * begins a new sample. The picture's position tells which sample of the data set a group is.
 * Samples of folders and tables become members of a new archive: the picture's file, and its record
 * or captions. Everything is written into a folder beside the target, which is renamed at the end.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "data/sources/dataset_internal.h"
#include "io/tables/tar.h"
#include "penumbra/filter.h"

#define MAX_IMAGE_BYTES ((size_t)1 << 30)

enum { BLOCK = 512, MAX_SUFFIXES = 32 };

typedef struct copy_job {
    const pnb_dataset *ds;
    const unsigned char *keep;
    const pnb_copy_opts *opts;
    size_t n_wanted, n_seen; /* kept samples in all, and passed so far */
    char *dir, *temp_dir;
    pnb__tar_writer writer;
    bool is_open;
    size_t in_shard;
    pnb__buf sizes; /* sizes.json as it grows */
    pnb_copied done;
} copy_job;

pnb_copy_opts pnb_copy_opts_default(void)
{
    return (pnb_copy_opts){.shard_size = 10000};
}

/* ---- shards ---- */

static char *shard_path(const char *dir, size_t shard)
{
    return pnb__format("%s/%05zu.tar", dir, shard);
}

static pnb_status close_shard(copy_job *job, pnb_error *err)
{
    if (!job->is_open)
        return PNB_OK;
    job->is_open = false;
    pnb__buf_printf(&job->sizes, "%s\n  \"%05zu.tar\": %zu", job->done.n_shards > 0 ? "," : "",
                    job->done.n_shards, job->in_shard);
    job->done.n_shards++;
    job->in_shard = 0;
    return pnb__tar_writer_commit(&job->writer, err);
}

/* Makes room for one more sample. */
static pnb_status begin_sample(copy_job *job, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (job->is_open && job->in_shard == job->opts->shard_size)
        status = close_shard(job, err);
    if (status == PNB_OK && !job->is_open) {
        char *path = shard_path(job->temp_dir, job->done.n_shards);
        status = path != NULL ? pnb__tar_writer_open(&job->writer, path, err)
                              : pnb__fail_nomem(err, strlen(job->temp_dir));
        job->is_open = status == PNB_OK;
        pnb__free(path);
    }
    return status;
}

static pnb_status end_sample(copy_job *job, pnb_error *err)
{
    const pnb_watch *watch = &job->opts->watch;
    job->in_shard++;
    job->done.n_samples++;
    if (watch->step != NULL && !watch->step(watch->user, job->n_seen, job->n_wanted))
        return pnb__fail(err, PNB_INTERRUPTED, "stopped after %zu of %zu samples; nothing is kept",
                         job->n_seen, job->n_wanted);
    return PNB_OK;
}

/* ---- from tar shards ---- */

/* Bytes of one member, headers and padding included. */
typedef struct range {
    uint64_t begin, end;
} range;

/* The members of the sample being collected. */
typedef struct group {
    char *key;
    uint64_t suffixes[MAX_SUFFIXES];
    size_t n_members;
    range *members;
    size_t capacity;
    size_t entry; /* sample of the data set, SIZE_MAX: none */
} group;

static pnb_status put_range(copy_job *job, const pnb__map *map, range r, pnb_error *err)
{
    static const char zeros[BLOCK];
    size_t n = (size_t)(r.end - r.begin), n_padding = (BLOCK - n % BLOCK) % BLOCK;
    FILE *file = job->writer.out.file;
    if (fwrite(map->data + r.begin, 1, n, file) != n ||
        fwrite(zeros, 1, n_padding, file) != n_padding)
        return pnb__fail_errno(err, "cannot write", job->writer.out.path);
    job->writer.position += n + n_padding;
    return PNB_OK;
}

static pnb_status end_group(copy_job *job, const pnb__map *map, group *g, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (g->entry != SIZE_MAX && job->keep[g->entry]) {
        job->n_seen++;
        PNB_TRY(begin_sample(job, err));
        for (size_t i = 0; i < g->n_members; i++)
            PNB_TRY(put_range(job, map, g->members[i], err));
        PNB_TRY(end_sample(job, err));
    }
done:
    pnb__free(g->key);
    g->key = NULL;
    g->n_members = 0;
    g->entry = SIZE_MAX;
    return status;
}

/* Hash of the suffix in lower case, as dataset_tar.c compares it. */
static uint64_t suffix_hash(const char *suffix)
{
    char lower[32];
    size_t n = PNB_MIN(strlen(suffix), sizeof lower - 1);
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)tolower((unsigned char)suffix[i]);
    return pnb__hash_bytes(lower, n, 0);
}

static bool belongs(const group *g, const char *name, size_t n_key, uint64_t suffix)
{
    if (g->key == NULL || strlen(g->key) != n_key || memcmp(g->key, name, n_key) != 0)
        return false;
    for (size_t i = 0; i < g->n_members && i < MAX_SUFFIXES; i++)
        if (g->suffixes[i] == suffix)
            return false;
    return true;
}

static pnb_status add_range(group *g, range r, pnb_error *err)
{
    pnb_status status = PNB_GROW(g->members, g->capacity, g->n_members + 1, err);
    if (status == PNB_OK)
        g->members[g->n_members++] = r;
    return status;
}

/* Adds a member, closing the group before it when it begins another; *entry is the next sample
 * whose picture has not come yet. */
static pnb_status add_member(copy_job *job, const pnb__map *map, group *g, const pnb__tar_member *m,
                             range bytes, size_t *entry, pnb_error *err)
{
    const char *base = pnb__path_base(m->name), *dot = strchr(base, '.');
    if (!m->is_file || dot == NULL || dot == base)
        return PNB_OK;
    size_t n_key = (size_t)(dot - m->name);
    uint64_t suffix = suffix_hash(dot + 1);
    pnb_status status = PNB_OK;
    if (!belongs(g, m->name, n_key, suffix)) {
        PNB_TRY(end_group(job, map, g, err));
        g->key = pnb__strndup(m->name, n_key);
        if (g->key == NULL)
            return pnb__fail_nomem(err, n_key);
    }
    if (g->n_members < MAX_SUFFIXES)
        g->suffixes[g->n_members] = suffix;
    PNB_TRY(add_range(g, bytes, err));
    const pnb_dataset *ds = job->ds;
    if (*entry < ds->n_entries && ds->entries[*entry].image.is_set &&
        ds->sources[ds->entries[*entry].source].map.data == map->data &&
        ds->entries[*entry].image.offset == m->data_offset)
        g->entry = (*entry)++;
done:
    return status;
}

/* All samples of one shard; *entry is the first of them and then the first behind them. */
static pnb_status copy_shard(copy_job *job, const pnb__source *source, size_t *entry,
                             pnb_error *err)
{
    pnb__tar tar = {0};
    pnb__tar_member m;
    group g = {.entry = SIZE_MAX};
    bool more = true;
    pnb_status status;
    PNB_TRY(pnb__tar_open_bytes(&tar, source->map.data, source->map.size, source->path, err));
    for (;;) {
        pnb_error damage = PNB_ERROR_INIT;
        status = pnb__tar_next(&tar, &m, &more, &damage);
        if (status == PNB_NOMEM) {
            pnb__fail(err, status, "%s", damage.text);
            goto done;
        }
        if (status != PNB_OK || !more)
            break; /* damage ends the shard, as it did when it was scanned */
        const range bytes = {m.header_offset, tar.position};
        PNB_TRY(add_member(job, &source->map, &g, &m, bytes, entry, err));
    }
    PNB_TRY(end_group(job, &source->map, &g, err));
done:
    pnb__free(g.key);
    pnb__free(g.members);
    pnb__tar_close(&tar);
    pnb__drop_pages(source->map.data, source->map.size);
    return status;
}

/* ---- from folders and tables ---- */

static void lower_suffix(const char *path, char out[16])
{
    const char *dot = strrchr(pnb__path_base(path), '.');
    size_t n = dot != NULL ? strlen(dot + 1) : 0;
    snprintf(out, 16, "%s", n > 0 && n < 16 ? dot + 1 : "jpg");
    for (char *p = out; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
}

/* Of a row of a table, which has no name of a file. */
static void suffix_of_bytes(const unsigned char *bytes, size_t n, char out[16])
{
    bool is_png = n > 0 && bytes[0] == 0x89, is_webp = n > 3 && memcmp(bytes, "RIFF", 4) == 0;
    snprintf(out, 16, "%s", is_png ? "png" : is_webp ? "webp" : "jpg");
}

static pnb_status put_texts(copy_job *job, const pnb_sample *s, const char *stem, pnb_error *err)
{
    char name[48];
    pnb__buf lines = {0};
    pnb_status status = PNB_OK;
    if (s->json != NULL) {
        snprintf(name, sizeof name, "%s.json", stem);
        return pnb__tar_writer_add(&job->writer, name, s->json, strlen(s->json), err);
    }
    for (size_t i = 0; i < s->n_texts; i++)
        pnb__buf_printf(&lines, "%s%s", i > 0 ? "\n" : "", s->texts[i]);
    snprintf(name, sizeof name, "%s.txt", stem);
    if (lines.failed)
        status = pnb__fail_nomem(err, lines.size);
    else if (lines.size > 0)
        status = pnb__tar_writer_add(&job->writer, name, lines.data, lines.size, err);
    pnb__buf_reset(&lines);
    return status;
}

static pnb_status copy_files(copy_job *job, size_t i, pnb_error *err)
{
    pnb_sample s = {0};
    pnb_error why = PNB_ERROR_INIT;
    char *image = NULL, stem[24], name[48], suffix[16];
    size_t n = 0;
    pnb_status status = pnb_dataset_get(job->ds, i, &s, &why);
    job->n_seen++;
    if (status == PNB_OK && s.image_path != NULL)
        status = pnb__read_file(s.image_path, MAX_IMAGE_BYTES, &image, &n, &why);
    else if (status == PNB_OK && s.image_bytes == NULL)
        status = pnb__fail(&why, PNB_NOT_FOUND, "%s has no picture to copy", s.key);
    if (status == PNB_NOMEM) {
        status = pnb__fail_nomem(err, n);
        goto done;
    }
    if (status != PNB_OK) {
        job->done.n_skipped++;
        if (job->opts->skipped != NULL)
            job->opts->skipped(job->opts->skipped_user, "sample", why.text);
        status = PNB_OK;
        goto done;
    }
    PNB_TRY(begin_sample(job, err));
    snprintf(stem, sizeof stem, "%09zu", job->done.n_samples);
    if (image != NULL)
        lower_suffix(s.image_path, suffix);
    else
        suffix_of_bytes(s.image_bytes, s.n_image_bytes, suffix);
    snprintf(name, sizeof name, "%s.%s", stem, suffix);
    PNB_TRY(pnb__tar_writer_add(&job->writer, name,
                                image != NULL ? (const void *)image : s.image_bytes,
                                image != NULL ? n : s.n_image_bytes, err));
    PNB_TRY(put_texts(job, &s, stem, err));
    PNB_TRY(end_sample(job, err));
done:
    pnb__free(image);
    pnb_sample_reset(&s);
    return status;
}

/* ---- the whole ---- */

static pnb_status copy_all(copy_job *job, pnb_error *err)
{
    const pnb_dataset *ds = job->ds;
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < ds->n_entries;) {
        const pnb__source *source = &ds->sources[ds->entries[i].source];
        size_t first = i, end = i;
        while (end < ds->n_entries && ds->entries[end].source == ds->entries[first].source)
            end++;
        if (source->kind == PNB_DATASET_TAR)
            status = copy_shard(job, source, &i, err);
        for (; source->kind != PNB_DATASET_TAR && status == PNB_OK && i < end; i++)
            if (job->keep[i])
                status = copy_files(job, i, err);
        if (status == PNB_OK && i != end)
            status = pnb__fail(err, PNB_IO, "%s has changed since it was opened", source->path);
    }
    return status;
}

static pnb_status count_wanted(copy_job *job, pnb_error *err)
{
    if (job->opts->shard_size == 0)
        return pnb__fail(err, PNB_ARG, "shards of 0 samples; at least 1 is wanted");
    if (job->ds->opts.kind == PNB_DATASET_SYNTHETIC)
        return pnb__fail(err, PNB_ARG, "synthetic samples have no bytes to copy");
    for (size_t i = 0; i < job->ds->n_entries; i++)
        job->n_wanted += job->keep[i] != 0;
    if (job->n_wanted == 0)
        return pnb__fail(err, PNB_ARG, "none of %zu samples is to be kept", job->ds->n_entries);
    return PNB_OK;
}

pnb_status pnb_dataset_copy_check(const char *dir, pnb_error *err)
{
    struct stat info;
    pnb__paths names = {0};
    if (stat(dir, &info) != 0)
        return PNB_OK;
    if (!S_ISDIR(info.st_mode))
        return pnb__fail(err, PNB_EXISTS, "%s exists and is no folder", dir);
    pnb_status status = pnb__list_dir(&names, dir, err);
    if (status == PNB_OK && names.n > 0)
        status = pnb__fail(err, PNB_EXISTS, "%s is not empty; shards are written into a new folder",
                           dir);
    pnb__paths_free(&names);
    return status;
}

/* Beside the target, which must not be there or be empty: renaming replaces an empty one. */
static pnb_status make_temp_dir(copy_job *job, const char *dir, pnb_error *err)
{
    char *parent = NULL;
    size_t n = strlen(dir);
    pnb_status status;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    job->dir = pnb__strndup(dir, n);
    job->temp_dir = job->dir != NULL ? pnb__format("%s.tmp-%ld", job->dir, (long)getpid()) : NULL;
    parent = job->dir != NULL ? pnb__path_dir(job->dir) : NULL;
    if (job->temp_dir == NULL || parent == NULL)
        status = pnb__fail_nomem(err, n);
    else
        status = pnb_dataset_copy_check(job->dir, err);
    if (status == PNB_OK)
        status = pnb__make_dirs(parent, err);
    pnb__free(parent);
    if (status == PNB_OK && mkdir(job->temp_dir, 0777) != 0) {
        status = pnb__fail_errno(err, "cannot make the folder", job->temp_dir);
        pnb__free(job->temp_dir);
        job->temp_dir = NULL;
    }
    return status;
}

static pnb_status write_sizes(copy_job *job, pnb_error *err)
{
    char *path = pnb__path_join(job->temp_dir, "sizes.json");
    pnb__buf_puts(&job->sizes, "\n}\n");
    pnb_status status = path == NULL || job->sizes.failed
                            ? pnb__fail_nomem(err, job->sizes.size)
                            : pnb__write_file(path, job->sizes.data, job->sizes.size, err);
    pnb__free(path);
    return status;
}

static void remove_temp_dir(const copy_job *job)
{
    for (size_t i = 0; i <= job->done.n_shards; i++) {
        char *path = shard_path(job->temp_dir, i);
        if (path != NULL)
            unlink(path);
        pnb__free(path);
    }
    char *sizes = pnb__path_join(job->temp_dir, "sizes.json");
    if (sizes != NULL)
        unlink(sizes);
    pnb__free(sizes);
    rmdir(job->temp_dir);
}

pnb_status pnb_dataset_copy(const pnb_dataset *ds, const unsigned char *keep, const char *dir,
                            const pnb_copy_opts *opts, pnb_copied *out, pnb_error *err)
{
    pnb_copy_opts o = opts != NULL ? *opts : pnb_copy_opts_default();
    copy_job job = {.ds = ds, .keep = keep, .opts = &o};
    pnb_status status;
    bool is_made = false;
    *out = (pnb_copied){0};
    PNB_TRY(count_wanted(&job, err));
    status = make_temp_dir(&job, dir, err);
    is_made = status == PNB_OK;
    if (status != PNB_OK)
        goto done;
    pnb__buf_puts(&job.sizes, "{");
    PNB_TRY(copy_all(&job, err));
    PNB_TRY(close_shard(&job, err));
    if (job.done.n_samples == 0)
        PNB_TRY(
            pnb__fail(err, PNB_IO, "none of the %zu samples to keep could be read", job.n_wanted));
    PNB_TRY(write_sizes(&job, err));
    if (rename(job.temp_dir, job.dir) != 0)
        PNB_TRY(pnb__fail_errno(err, "cannot rename into place", job.dir));
    is_made = false;
    *out = job.done;
done:
    if (job.is_open)
        pnb__tar_writer_abort(&job.writer);
    if (is_made)
        remove_temp_dir(&job);
    pnb__buf_reset(&job.sizes);
    pnb__free(job.dir);
    pnb__free(job.temp_dir);
    return status;
}
