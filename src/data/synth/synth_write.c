/* Output side shared by the made data sets. Everything is written into DIR.partial under a lock;
 * one rename makes it appear as DIR, so a killed run leaves no half set, and the next run clears
 * what was left. stats.json holds the options: a folder whose options are the same is reused, any
 * other folder that is not empty is refused. */
#include "data/synth/synth_write.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "io/json/json.h"

/* ---- folders ------------------------------------------------------------------------------ */

/* Removes what lies in `dir`, but for the lock; these trees are three deep at most. */
static pnb_status clear_dir(const char *dir, const char *spare, int depth, pnb_error *err)
{
    pnb_status status = PNB_OK;
    DIR *d = opendir(dir);
    if (!d)
        return pnb__fail_errno(err, "cannot read", dir);
    for (struct dirent *e; status == PNB_OK && (e = readdir(d)) != NULL;) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            (spare && !strcmp(e->d_name, spare)))
            continue;
        char *path = pnb__path_join(dir, e->d_name);
        struct stat info;
        if (!path)
            status = pnb__fail_nomem(err, strlen(dir));
        else if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && depth > 0)
            status = clear_dir(path, NULL, depth - 1, err);
        if (status == PNB_OK && remove(path) != 0)
            status = pnb__fail_errno(err, "cannot remove", path);
        pnb__free(path);
    }
    closedir(d);
    return status;
}

static bool is_empty_dir(const char *dir)
{
    bool is_empty = true;
    DIR *d = opendir(dir);
    if (!d)
        return false;
    for (struct dirent *e; is_empty && (e = readdir(d)) != NULL;)
        is_empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    closedir(d);
    return is_empty;
}

/* ---- marker ------------------------------------------------------------------------------- */

static void append_level_sizes(pnb__buf *b, const char *key, const size_t *values)
{
    pnb__buf_printf(b, "  \"%s\": [", key);
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++)
        pnb__buf_printf(b, "%s%zu", l ? ", " : "", values[l]);
    pnb__buf_puts(b, "],\n");
}

static void append_level_means(pnb__buf *b, const char *key, const double *values)
{
    pnb__buf_printf(b, "  \"%s\": [", key);
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
        pnb__buf_puts(b, l ? ", " : "");
        pnb__json_append_double(b, values[l]);
    }
    pnb__buf_puts(b, "],\n");
}

static pnb_status write_stats(const pnb__synth_out *out, const pnb_synth_stats *stats,
                              pnb_error *err)
{
    pnb__buf b = {0};
    char *path = pnb__path_join(out->temp, "stats.json");
    pnb__buf_printf(&b, "{\n  \"options\": %s,\n", out->options);
    pnb__buf_printf(&b, "  \"n_train\": %zu,\n  \"n_val\": %zu,\n  \"n_test\": %zu,\n",
                    stats->n_train, stats->n_val, stats->n_test);
    append_level_sizes(&b, "n_texts", stats->n_texts);
    append_level_means(&b, "captions_per_image", stats->texts_per_image);
    append_level_means(&b, "images_per_caption", stats->images_per_text);
    pnb__buf_printf(&b, "  \"n_words\": %zu,\n  \"n_ambiguous\": %zu\n}\n", stats->n_words,
                    stats->n_ambiguous);
    pnb_status status = path && !b.failed ? pnb__write_file(path, b.data, b.size, err)
                                          : pnb__fail_nomem(err, b.size);
    pnb__buf_reset(&b);
    pnb__free(path);
    return status;
}

static size_t get_size(pnb__jobj *o, const char *key, pnb_error *err)
{
    return (size_t)pnb__json_get_int_in(o, key, 0, 0, INT64_MAX, err);
}

static void get_levels(pnb__jobj *o, const char *key, size_t *sizes, double *means)
{
    json_t *list = json_object_get(o->obj, key);
    for (size_t l = 0; l < PNB_SYNTH_N_LEVELS && json_is_array(list); l++) {
        double value = json_number_value(json_array_get(list, l));
        if (sizes)
            sizes[l] = (size_t)value;
        else
            means[l] = value;
    }
}

/* *same tells whether the folder holds a set of exactly these options. */
static pnb_status read_stats(const char *path, const char *options, pnb_synth_stats *stats,
                             bool *same, pnb_error *err)
{
    json_t *root = NULL, *wanted = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__json_load_file(&root, path, 0, err));
    PNB_TRY(pnb__json_load_bytes(&wanted, options, strlen(options), "options", err));
    *same = json_equal(json_object_get(root, "options"), wanted);
    if (*same) {
        pnb__jobj o = pnb__json_object(root, path, err);
        stats->n_train = get_size(&o, "n_train", err);
        stats->n_val = get_size(&o, "n_val", err);
        stats->n_test = get_size(&o, "n_test", err);
        stats->n_words = get_size(&o, "n_words", err);
        stats->n_ambiguous = get_size(&o, "n_ambiguous", err);
        get_levels(&o, "n_texts", stats->n_texts, NULL);
        get_levels(&o, "captions_per_image", NULL, stats->texts_per_image);
        get_levels(&o, "images_per_caption", NULL, stats->images_per_text);
        stats->reused = true;
        status = o.status;
    }
done:
    json_decref(root);
    json_decref(wanted);
    return status;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static pnb_status check_target(const char *dir, const char *options, pnb_synth_stats *stats,
                               pnb_error *err)
{
    struct stat info;
    if (lstat(dir, &info) != 0)
        return errno == ENOENT ? PNB_OK : pnb__fail_errno(err, "cannot look at", dir);
    if (pnb__path_is_dir(dir) && is_empty_dir(dir))
        return PNB_OK;
    char *path = pnb__path_join(dir, "stats.json");
    if (!path)
        return pnb__fail_nomem(err, strlen(dir));
    bool same = false;
    pnb_status status = PNB_OK;
    if (pnb__path_is_file(path))
        status = read_stats(path, options, stats, &same, err);
    pnb__free(path);
    if (status == PNB_OK && !same)
        status = pnb__fail(err, PNB_EXISTS,
                           "%s exists and does not hold this data set (other options or other "
                           "files): name another folder or remove it",
                           dir);
    return status;
}

static pnb_status open_temp(pnb__synth_out *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    int lock = -1;
    char *path = NULL;
    PNB_TRY(pnb__make_dirs(out->temp, err));
    path = pnb__path_join(out->temp, ".lock");
    if (!path) {
        status = pnb__fail_nomem(err, strlen(out->temp));
        goto done;
    }
    PNB_TRY(pnb__lock_open(&lock, path, err));
    out->lock = lock + 1;
    PNB_TRY(clear_dir(out->temp, ".lock", 2, err));
done:
    pnb__free(path);
    return status;
}

pnb_status pnb__synth_begin(pnb__synth_out *out, const char *dir, const char *options,
                            pnb_synth_stats *stats, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = strlen(dir);
    *out = (pnb__synth_out){0};
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "the output folder has an empty name");
    out->dir = pnb__strndup(dir, n);
    out->temp = out->dir ? pnb__format("%s.partial", out->dir) : NULL;
    out->options = pnb__strdup(options);
    if (!out->temp || !out->options) {
        status = pnb__fail_nomem(err, n);
        goto done;
    }
    PNB_TRY(check_target(out->dir, options, stats, err));
    if (!stats->reused)
        PNB_TRY(open_temp(out, err));
done:
    if (status != PNB_OK)
        pnb__synth_abort(out);
    return status;
}

static void release(pnb__synth_out *out)
{
    if (out->lock)
        pnb__lock_close(out->lock - 1);
    pnb__free(out->dir);
    pnb__free(out->temp);
    pnb__free(out->options);
    *out = (pnb__synth_out){0};
}

pnb_status pnb__synth_commit(pnb__synth_out *out, const pnb_synth_stats *stats, pnb_error *err)
{
    pnb_status status = PNB_OK;
    char *lock = pnb__path_join(out->temp, ".lock");
    if (!lock)
        return pnb__fail_nomem(err, strlen(out->temp));
    PNB_TRY(write_stats(out, stats, err));
    if (unlink(lock) != 0) {
        status = pnb__fail_errno(err, "cannot remove", lock);
        goto done;
    }
    if (rename(out->temp, out->dir) != 0) {
        status = pnb__fail_errno(err, "cannot move the finished set to", out->dir);
        goto done;
    }
    release(out);
done:
    pnb__free(lock);
    return status;
}

void pnb__synth_abort(pnb__synth_out *out)
{
    if (out->lock && out->temp && clear_dir(out->temp, NULL, 2, NULL) == PNB_OK)
        (void)rmdir(out->temp);
    release(out);
}

/* ---- shards -------------------------------------------------------------------------------- */

pnb_status pnb__split_open(pnb__synth_split *s, const pnb__synth_out *out, const char *name,
                           size_t shard_size, pnb_error *err)
{
    *s = (pnb__synth_split){.shard_size = shard_size};
    s->dir = pnb__path_join(out->temp, name);
    if (!s->dir)
        return pnb__fail_nomem(err, strlen(name));
    return pnb__make_dirs(s->dir, err);
}

static pnb_status end_shard(pnb__synth_split *s, pnb_error *err)
{
    if (s->n_in_shard == 0)
        return PNB_OK;
    pnb__buf_printf(&s->sizes, "%s\n  \"%05zu.tar\": %zu", s->n_shards ? "," : "", s->n_shards,
                    s->n_in_shard);
    s->n_shards++;
    s->n_in_shard = 0;
    return pnb__tar_writer_commit(&s->tar, err);
}

static pnb_status start_shard(pnb__synth_split *s, pnb_error *err)
{
    char *path = pnb__format("%s/%05zu.tar", s->dir, s->n_shards);
    if (!path)
        return pnb__fail_nomem(err, strlen(s->dir));
    pnb_status status = pnb__tar_writer_open(&s->tar, path, err);
    pnb__free(path);
    return status;
}

static pnb_status add_member(pnb__synth_split *s, const char *key, const char *suffix,
                             const void *data, size_t n, pnb_error *err)
{
    char *name = pnb__format("%s.%s", key, suffix);
    if (!name)
        return pnb__fail_nomem(err, strlen(key));
    pnb_status status = pnb__tar_writer_add(&s->tar, name, data, n, err);
    pnb__free(name);
    return status;
}

pnb_status pnb__split_add(pnb__synth_split *s, const pnb__synth_item *item, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (s->n_in_shard == 0)
        PNB_TRY(start_shard(s, err));
    PNB_TRY(add_member(s, item->key, "png", item->png, item->n_png, err));
    if (item->png2)
        PNB_TRY(add_member(s, item->key, item->png2_suffix, item->png2, item->n_png2, err));
    PNB_TRY(add_member(s, item->key, "json", item->json, strlen(item->json), err));
    pnb__json_put(&s->images, "{\"id\": %s", item->key);
    pnb__buf_printf(&s->images, ", \"shard\": \"%05zu.tar\"", s->n_shards);
    pnb__json_put(&s->images, ", \"name\": %s, \"group\": %s, \"subgroup\": %s", item->name,
                  item->group, item->subgroup);
    pnb__buf_printf(&s->images, "%s}\n", item->more != NULL ? item->more : "");
    s->n_items++;
    if (++s->n_in_shard == s->shard_size)
        PNB_TRY(end_shard(s, err));
done:
    return status;
}

static pnb_status write_into(const char *dir, const char *name, const pnb__buf *b, pnb_error *err)
{
    char *path = pnb__path_join(dir, name);
    if (!path || b->failed) {
        pnb__free(path);
        return pnb__fail_nomem(err, b->size);
    }
    pnb_status status = pnb__write_file(path, b->size ? b->data : "", b->size, err);
    pnb__free(path);
    return status;
}

pnb_status pnb__split_close(pnb__synth_split *s, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf sizes = {0};
    PNB_TRY(end_shard(s, err));
    sizes.failed = s->sizes.failed; /* no text of it is not the same as an empty one */
    pnb__buf_printf(&sizes, "{%s\n}\n", s->sizes.size ? s->sizes.data : "");
    PNB_TRY(write_into(s->dir, "sizes.json", &sizes, err));
    PNB_TRY(write_into(s->dir, "images.jsonl", &s->images, err));
done:
    pnb__buf_reset(&sizes);
    return status;
}

void pnb__split_abort(pnb__synth_split *s)
{
    pnb__tar_writer_abort(&s->tar);
    pnb__buf_reset(&s->sizes);
    pnb__buf_reset(&s->images);
    pnb__free(s->dir);
    *s = (pnb__synth_split){0};
}

pnb_status pnb__split_texts(const pnb__synth_split *s, const pnb__synth_text *texts, size_t n,
                            pnb_error *err)
{
    pnb__buf b = {0};
    for (size_t i = 0; i < n; i++) {
        pnb__json_put(&b, "{\"id\": %s, \"level\": %d, \"text\": %s", texts[i].id, texts[i].level,
                      texts[i].text);
        if (isfinite(texts[i].entropy_bits))
            pnb__buf_printf(&b, ", \"entropy_bits\": %.5f", texts[i].entropy_bits);
        if (isfinite(texts[i].expected_bits))
            pnb__buf_printf(&b, ", \"expected_bits\": %.5f", texts[i].expected_bits);
        pnb__buf_printf(&b, "%s}\n", texts[i].more != NULL ? texts[i].more : "");
    }
    pnb_status status = write_into(s->dir, "captions.jsonl", &b, err);
    pnb__buf_reset(&b);
    return status;
}

pnb_status pnb__truth_open(pnb__out_file *file, const pnb__synth_out *out, const char *split,
                           pnb_error *err)
{
    char *dir = pnb__path_join(out->temp, "truth");
    char *path = pnb__format("%s/truth/%s.pairs", out->temp, split);
    pnb_status status = dir && path ? pnb__make_dirs(dir, err) : pnb__fail_nomem(err, 64);
    if (status == PNB_OK)
        status = pnb__out_open(file, path, err);
    pnb__free(dir);
    pnb__free(path);
    return status;
}

/* ---- words --------------------------------------------------------------------------------- */

/* Calls for each word; hashes may be NULL to count only. */
static size_t hash_words(const char *const *texts, size_t n, uint64_t *hashes)
{
    size_t n_words = 0;
    for (size_t i = 0; i < n; i++)
        for (const char *p = texts[i] + strspn(texts[i], " "); *p;) {
            size_t length = strcspn(p, " ");
            if (hashes)
                hashes[n_words] = pnb__hash_bytes(p, length, 0);
            n_words++;
            p += length;
            p += strspn(p, " ");
        }
    return n_words;
}

size_t pnb__count_words(const char *const *texts, size_t n)
{
    size_t n_words = hash_words(texts, n, NULL);
    uint64_t *hashes = pnb__alloc_array(PNB_MAX(n_words, 1), sizeof *hashes);
    if (!hashes)
        return SIZE_MAX;
    hash_words(texts, n, hashes);
    size_t n_distinct = pnb__sort_distinct(hashes, n_words);
    pnb__free(hashes);
    return n_distinct;
}
