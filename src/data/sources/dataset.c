/* Opening a data set and reaching its samples: which reader a source needs, the growing list of
 * entries, and the picture of a sample. Captions are read by dataset_record.c, sources by
 * dataset_tar.c, dataset_table.c, dataset_dir.c, dataset_karpathy.c and dataset_binary.c, names of
 * classes by dataset_classes.c. After opening nothing here changes, so threads share a data set
 * without locks. */
#include "base/grow.h"
#include "data/sources/dataset_internal.h"

#include "data/sources/file_stamp.h"

#include <stdlib.h>
#include <string.h>

pnb_dataset_opts pnb_dataset_opts_default(void)
{
    return (pnb_dataset_opts){.kind = PNB_DATASET_AUTO};
}

/* ---- building ------------------------------------------------------------------------------ */

pnb__entry pnb__entry_empty(void)
{
    return (pnb__entry){.key = PNB__NO_TEXT,
                        .image_path = PNB__NO_TEXT,
                        .json_path = PNB__NO_TEXT,
                        .txt_path = PNB__NO_TEXT,
                        .text = PNB__NO_TEXT,
                        .negative = PNB__NO_TEXT,
                        .record = PNB__NO_TEXT,
                        .label = -1,
                        .class_name = PNB__NO_TEXT};
}

size_t pnb__dataset_add_text(pnb_dataset *ds, const char *text)
{
    size_t offset = ds->texts.size;
    pnb__buf_append(&ds->texts, text, strlen(text) + 1);
    return ds->texts.failed ? PNB__NO_TEXT : offset;
}

pnb_status pnb__dataset_add_source(pnb_dataset *ds, pnb_dataset_kind kind, const char *path,
                                   pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__source source = {.kind = kind,
                          .path = pnb__strdup(path),
                          .stamp = kind != PNB_DATASET_DIR ? pnb__file_stamp(path) : 0};
    if (!source.path)
        return pnb__fail_nomem(err, strlen(path));
    if (kind == PNB_DATASET_JSONL || kind == PNB_DATASET_BINARY || kind == PNB_DATASET_PARQUET)
        status = pnb__map_open(&source.map, path, err);
    if (status == PNB_OK)
        status = PNB_PUSH(ds->sources, ds->n_sources, err, source);
    if (status != PNB_OK) {
        pnb__map_close(&source.map);
        pnb__free(source.path);
    }
    return status;
}

pnb_status pnb__dataset_add_entry(pnb_dataset *ds, const pnb__entry *entry, pnb_error *err)
{
    pnb__entry added = *entry;
    added.source = (uint32_t)(ds->n_sources - 1);
    if (ds->texts.failed)
        return pnb__fail_nomem(err, ds->texts.size);
    return PNB_PUSH(ds->entries, ds->n_entries, err, added);
}

/* One sentence more of a list. */
static pnb_status add_sentence(char ***list, size_t *n, pnb_error *err, const char *fmt,
                               va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, fmt, args);
    char *copy = pnb__strdup(text);
    if (!copy)
        return pnb__fail_nomem(err, sizeof text);
    pnb_status status = PNB_PUSH(*list, *n, err, copy);
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

pnb_status pnb__dataset_warn(pnb_dataset *ds, pnb_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pnb_status status = add_sentence(&ds->warnings, &ds->n_warnings, err, fmt, args);
    va_end(args);
    return status;
}

pnb_status pnb__dataset_note(pnb_dataset *ds, pnb_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pnb_status status = add_sentence(&ds->notes, &ds->n_notes, err, fmt, args);
    va_end(args);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* What a set is made of, for messages. */
static const char *sample_word(const pnb_dataset *ds)
{
    return ds->opts.allow_no_caption ? "picture" : "sample";
}

static bool ends_with_any_case(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && !strcasecmp(path + n - m, ending);
}

bool pnb__is_table_name(const char *path)
{
    return ends_with_any_case(path, ".parquet");
}

static pnb_status kind_of(const char *path, pnb_dataset_kind *kind, pnb_error *err)
{
    if (pnb__path_is_dir(path))
        *kind = PNB_DATASET_DIR;
    else if (pnb__is_shard_name(path))
        *kind = PNB_DATASET_TAR;
    else if (ends_with_any_case(path, ".csv") || ends_with_any_case(path, ".tsv"))
        *kind = PNB_DATASET_CSV;
    else if (ends_with_any_case(path, ".jsonl"))
        *kind = PNB_DATASET_JSONL;
    else if (pnb__is_table_name(path))
        *kind = PNB_DATASET_PARQUET;
    else if (ends_with_any_case(path, ".json"))
        *kind = PNB_DATASET_KARPATHY;
    else if (pnb__is_binary(path))
        *kind = PNB_DATASET_BINARY;
    else if (!pnb__path_is_file(path))
        return pnb__fail(err, PNB_NOT_FOUND, "%s: no such file or folder", path);
    else
        return pnb__fail(
            err, PNB_ARG,
            "%s: cannot tell what this is; wanted *.tar, *.csv, *.tsv, *.jsonl, *.json, "
            "*.parquet, a binary of CIFAR, STL-10 or MNIST, or a folder",
            path);
    return PNB_OK;
}

/* x.tar, also packed: x.tar.gz, x.tgz, x.tar.zst, x.tzst. */
bool pnb__is_shard_name(const char *path)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"};
    for (size_t i = 0; i < PNB_COUNT(endings); i++)
        if (ends_with_any_case(path, endings[i]))
            return true;
    return false;
}

/* How much there is, to tell what a source added. */
typedef struct tally {
    size_t n_entries, n_warnings, n_broken;
} tally;

static tally count_all(const pnb_dataset *ds)
{
    return (tally){ds->n_entries, ds->n_warnings, ds->n_shards_broken};
}

/* Of several files one that gives no sample is listed, unless what it lost is listed already. */
static pnb_status note_empty(pnb_dataset *ds, const char *path, const tally *before, pnb_error *err)
{
    if (ds->n_entries > before->n_entries || ds->n_warnings > before->n_warnings)
        return PNB_OK;
    return pnb__dataset_warn(ds, err, "%s: holds no %s", path, sample_word(ds));
}

/* One damaged shard or table of many is left out and named; where it is all there is, nothing is
 * left and opening fails with the same words. What was added of it before the damage was found
 * stays. */
static pnb_status scan_shard(pnb_dataset *ds, const char *path, bool is_table, pnb_error *err)
{
    pnb_error damage = PNB_ERROR_INIT;
    pnb_status status =
        is_table ? pnb__scan_parquet(ds, path, &damage) : pnb__scan_tar(ds, path, &damage);
    if (status == PNB_OK && is_table)
        return PNB_OK;
    if (status == PNB_OK)
        return pnb__tar_classes(ds, path, err); /* a broken file of names is no damage of a shard */
    if (status == PNB_FORMAT && ds->n_shards_wanted > 1) {
        ds->n_shards_broken++;
        return pnb__dataset_warn(ds, err, "%s; the shard is left out", damage.text);
    }
    return pnb__fail(err, status, "%s", damage.text);
}

static size_t count_names(const pnb__paths *names, bool (*is_one)(const char *path))
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++)
        n += is_one(names->items[i]);
    return n;
}

/* A folder that holds shards is those shards, one of tables those tables: img2dataset lays a table
 * of what it found beside each shard. Any other one is a folder of pictures. */
static pnb_status scan_folder(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err)
{
    const char *path = s->path;
    pnb__paths names = {0};
    size_t n_shards = 0, n_inside = 0;
    bool (*is_one)(const char *) = pnb__is_shard_name;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__list_dir(&names, path, err));
    n_inside = count_names(&names, is_one);
    if (n_inside == 0) {
        is_one = pnb__is_table_name;
        n_inside = count_names(&names, is_one);
    }
    if (n_inside > 0) /* in place of the folder, which was counted */
        ds->n_shards_wanted += n_inside - 1;
    for (size_t i = 0; i < names.n && ds->opts.kind != PNB_DATASET_DIR; i++) {
        if (!is_one(names.items[i]))
            continue;
        char *shard = pnb__path_join(path, names.items[i]);
        const tally before = count_all(ds);
        status = shard ? scan_shard(ds, shard, is_one == pnb__is_table_name, err)
                       : pnb__fail_nomem(err, strlen(path));
        if (status == PNB_OK && n_inside > 1)
            status = note_empty(ds, shard, &before, err);
        pnb__free(shard);
        if (status != PNB_OK)
            goto done;
        n_shards++;
    }
    if (n_shards > 0)
        status = pnb__spec_settings_check(s, PNB_DATASET_TAR, err);
    else
        status = pnb__scan_dir(ds, s, err);
done:
    pnb__paths_free(&names);
    return status;
}

static pnb_status scan_source(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err)
{
    const char *path = s->path;
    pnb_dataset_kind kind = ds->opts.kind;
    if (kind == PNB_DATASET_AUTO || pnb__path_is_dir(path)) {
        pnb_status status = kind_of(path, &kind, err);
        if (status != PNB_OK)
            return status;
    }
    pnb_status status = pnb__spec_settings_check(s, kind, err);
    if (status != PNB_OK)
        return status;
    switch (kind) {
    case PNB_DATASET_TAR:
    case PNB_DATASET_PARQUET:
        return scan_shard(ds, path, kind == PNB_DATASET_PARQUET, err);
    case PNB_DATASET_CSV:
        return pnb__scan_csv(ds, path, err);
    case PNB_DATASET_JSONL:
        return pnb__scan_jsonl(ds, path, err);
    case PNB_DATASET_BINARY:
        return pnb__scan_binary(ds, path, err);
    case PNB_DATASET_KARPATHY:
        return pnb__scan_karpathy(ds, s, err);
    default:
        return scan_folder(ds, s, err);
    }
}

/* A path with or without settings. */
static pnb_status scan_path(pnb_dataset *ds, const char *path, pnb_error *err)
{
    pnb__spec_settings settings;
    pnb_status status = pnb__spec_settings_read(&settings, path, err);
    if (status == PNB_OK)
        status = scan_source(ds, &settings, err);
    pnb__spec_settings_free(&settings);
    return status;
}

/* Owned copy of `text`, or of `fallback`; NULL stays NULL. */
static pnb_status copy_option(const char **option, const char *fallback, pnb_error *err)
{
    const char *text = *option ? *option : fallback;
    *option = text ? pnb__strdup(text) : NULL;
    return text && !*option ? pnb__fail_nomem(err, strlen(text)) : PNB_OK;
}

static pnb_status copy_options(pnb_dataset *ds, const pnb_dataset_opts *opts, pnb_error *err)
{
    pnb_dataset_opts given = opts ? *opts : pnb_dataset_opts_default();
    pnb_status status = PNB_OK;
    ds->opts = given;
    ds->opts.csv_img_key = ds->opts.csv_caption_key = ds->opts.csv_label_key = NULL;
    ds->opts.image_key = ds->opts.text_key = ds->opts.negatives_key = NULL;
    PNB_TRY(copy_option(&given.csv_img_key, "filepath", err));
    ds->opts.csv_img_key = given.csv_img_key;
    PNB_TRY(copy_option(&given.csv_caption_key, "title", err));
    ds->opts.csv_caption_key = given.csv_caption_key;
    PNB_TRY(copy_option(&given.csv_label_key, NULL, err));
    ds->opts.csv_label_key = given.csv_label_key;
    PNB_TRY(copy_option(&given.image_key, NULL, err));
    ds->opts.image_key = given.image_key;
    PNB_TRY(copy_option(&given.text_key, NULL, err));
    ds->opts.text_key = given.text_key;
    PNB_TRY(copy_option(&given.negatives_key, NULL, err));
    ds->opts.negatives_key = given.negatives_key;
done:
    return status;
}

/* A source that was typed between others and gives nothing is a mistake, and the factors of the
 * others would be of the wrong ones by what people mean. Where it is damage, that is listed and
 * training goes on with the rest, as with a shard of many. */
static pnb_status refuse_empty_part(const pnb_dataset *ds, const char *spec, const tally *before,
                                    pnb_error *err)
{
    if (ds->n_entries > before->n_entries || ds->n_shards_broken > before->n_broken)
        return PNB_OK;
    const char *why = ds->n_warnings > before->n_warnings ? ds->warnings[before->n_warnings] : "";
    return pnb__fail(
        err, PNB_NOT_FOUND,
        "%s: holds no %s, beside other sources%s%s; leave it out, or name one that does", spec,
        sample_word(ds), why[0] != '\0' ? ": " : "", why);
}

/* All that one source between "::" names, whose end is noted. */
static pnb_status scan_part(pnb_dataset *ds, const char *part, size_t n, bool is_alone,
                            pnb_error *err)
{
    const tally before = count_all(ds);
    pnb__paths paths = {0};
    char *spec = pnb__strndup(part, n);
    pnb_status status = spec != NULL ? PNB_OK : pnb__fail_nomem(err, n);
    if (status == PNB_OK)
        status = pnb__spec_expand(&paths, spec, err);
    for (size_t i = 0; i < paths.n && status == PNB_OK; i++) {
        const tally one = count_all(ds);
        status = scan_path(ds, paths.items[i], err);
        if (status == PNB_OK && paths.n > 1)
            status = note_empty(ds, paths.items[i], &one, err);
    }
    if (status == PNB_OK && !is_alone)
        status = refuse_empty_part(ds, spec, &before, err);
    if (status == PNB_OK)
        status = PNB_PUSH(ds->part_end, ds->n_parts, err, ds->n_entries);
    pnb__paths_free(&paths);
    pnb__free(spec);
    return status;
}

static pnb_status scan_parts(pnb_dataset *ds, const char *spec, pnb_error *err)
{
    bool is_alone = strstr(spec, "::") == NULL;
    pnb_status status = PNB_OK;
    for (const char *p = spec; p != NULL && status == PNB_OK;) {
        const char *next = strstr(p, "::");
        status = scan_part(ds, p, next != NULL ? (size_t)(next - p) : strlen(p), is_alone, err);
        p = next != NULL ? next + 2 : NULL;
    }
    return status;
}

pnb_status pnb_dataset_open(pnb_dataset **out, const char *spec, const pnb_dataset_opts *opts,
                            pnb_error *err)
{
    pnb__paths paths = {0};
    pnb_status status = PNB_OK;
    *out = NULL;
    pnb_dataset *ds = pnb__alloc_zero(1, sizeof *ds);
    if (!ds)
        return pnb__fail_nomem(err, sizeof *ds);
    PNB_TRY(copy_options(ds, opts, err));
    if (ds->opts.kind == PNB_DATASET_SYNTHETIC) {
        status = pnb__synthetic_open(ds, err);
        goto done;
    }
    PNB_TRY(pnb__spec_expand(&paths, spec, err));
    ds->n_shards_wanted = paths.n;
    PNB_TRY(scan_parts(ds, spec, err)); /* expanded above for the count, which all parts share */
    PNB_TRY(pnb__sizes_finish(ds, err));
    PNB_TRY(pnb__classes_finish(ds, err));
    if (ds->texts.failed) {
        status = pnb__fail_nomem(err, ds->texts.size);
    } else if (ds->n_entries == 0) {
        const char *wanted =
            ds->opts.allow_no_caption ? "" : " (pictures with captions are wanted)";
        status = pnb__fail(err, PNB_NOT_FOUND, "%s: holds no %s%s%s", spec, sample_word(ds),
                           ds->n_warnings ? ": " : wanted, ds->n_warnings ? ds->warnings[0] : "");
    }
done:
    pnb__paths_free(&paths);
    if (status == PNB_OK)
        *out = ds;
    else
        pnb_dataset_free(ds);
    return status;
}

void pnb_dataset_free(pnb_dataset *ds)
{
    if (!ds)
        return;
    pnb__parquet_kept_free(ds->kept);
    for (size_t i = 0; i < ds->n_sources; i++) {
        pnb__table_free(ds->sources[i].table);
        if (ds->sources[i].own == NULL)
            pnb__map_close(&ds->sources[i].map);
        pnb__free(ds->sources[i].own);
        pnb__free(ds->sources[i].path);
    }
    pnb__classes_free(ds);
    pnb__sizes_free(ds);
    for (size_t i = 0; i < ds->n_warnings; i++)
        pnb__free(ds->warnings[i]);
    for (size_t i = 0; i < ds->n_notes; i++)
        pnb__free(ds->notes[i]);
    pnb__free((void *)ds->opts.csv_img_key);
    pnb__free((void *)ds->opts.csv_caption_key);
    pnb__free((void *)ds->opts.csv_label_key);
    pnb__free((void *)ds->opts.image_key);
    pnb__free((void *)ds->opts.text_key);
    pnb__free((void *)ds->opts.negatives_key);
    pnb__free(ds->part_end);
    pnb__free(ds->warnings);
    pnb__free(ds->notes);
    pnb__free(ds->sources);
    pnb__free(ds->entries);
    pnb__buf_reset(&ds->texts);
    pnb__free(ds);
}

/* ---- reading ------------------------------------------------------------------------------- */

size_t pnb_dataset_size(const pnb_dataset *ds)
{
    return ds->n_entries;
}

size_t pnb_dataset_n_parts(const pnb_dataset *ds)
{
    return PNB_MAX(ds->n_parts, (size_t)1); /* a synthetic one has no sources */
}

size_t pnb_dataset_part_first(const pnb_dataset *ds, size_t i)
{
    return i == 0 ? 0 : i <= ds->n_parts ? ds->part_end[i - 1] : ds->n_entries;
}

pnb_dataset_kind pnb_dataset_get_kind(const pnb_dataset *ds)
{
    return ds->sources[0].kind;
}

size_t pnb_dataset_n_warnings(const pnb_dataset *ds)
{
    return ds->n_warnings;
}

size_t pnb_dataset_n_damaged(const pnb_dataset *ds)
{
    return ds->n_shards_broken;
}

const char *pnb_dataset_warning(const pnb_dataset *ds, size_t i)
{
    return i < ds->n_warnings ? ds->warnings[i] : "";
}

size_t pnb_dataset_n_notes(const pnb_dataset *ds)
{
    return ds->n_notes;
}

const char *pnb_dataset_note(const pnb_dataset *ds, size_t i)
{
    return i < ds->n_notes ? ds->notes[i] : "";
}

pnb_status pnb__dataset_record(const pnb_dataset *ds, size_t i, pnb_sample *out, pnb_error *err)
{
    *out = (pnb_sample){.label = -1};
    if (i >= ds->n_entries)
        return pnb__fail(err, PNB_ARG, "sample %zu of a data set of %zu", i, ds->n_entries);
    if (ds->opts.kind == PNB_DATASET_SYNTHETIC) {
        pnb__synthetic_get(out);
        return PNB_OK;
    }
    const pnb__entry *e = &ds->entries[i];
    const pnb__source *source = &ds->sources[e->source];
    pnb_status status = pnb__record_read(ds, e, out, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s: sample %s", source->path, ds->texts.data + e->key);
        return status;
    }
    if (e->image.is_set && source->kind != PNB_DATASET_BINARY) {
        out->image_bytes = source->map.data + e->image.offset;
        out->n_image_bytes = e->image.size;
    }
    return PNB_OK;
}

/* A row's picture lies in a page of many, which is kept for the next. */
pnb_status pnb_dataset_get(const pnb_dataset *ds, size_t i, pnb_sample *out, pnb_error *err)
{
    pnb_status status = pnb__dataset_record(ds, i, out, err);
    if (status != PNB_OK || ds->entries == NULL || out->image_path != NULL)
        return status;
    const pnb__entry *e = &ds->entries[i];
    const pnb__source *source = &ds->sources[e->source];
    if (source->table != NULL)
        status = pnb__record_image(source, e, out, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s: sample %s", source->path, ds->texts.data + e->key);
        pnb_sample_reset(out);
    }
    return status;
}

/* Bytes of a page, which are the caller's copy. */
static pnb_status image_of_row(const pnb_dataset *ds, const pnb__entry *e,
                               const pnb_image_opts *opts, pnb_image *out, pnb_error *err)
{
    const pnb__source *source = &ds->sources[e->source];
    pnb__buf bytes = {0};
    bool found = false;
    pnb_status status = pnb__table_image(source->table, e->row, &bytes, &found, err);
    if (status == PNB_OK && !found)
        status = pnb__fail(err, PNB_FORMAT,
                           "no picture in this row: wanted bytes in a column \"jpg\" or "
                           "\"image.bytes\", or a path; what urls name is fetched by img2dataset");
    if (status == PNB_OK)
        status = pnb_image_decode(out, (const unsigned char *)bytes.data, bytes.size, opts, err);
    pnb__buf_reset(&bytes);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s: sample %s", source->path, ds->texts.data + e->key);
    return status;
}

/* JSON lines name the picture inside the record, so it has to be read first. */
static pnb_status image_of_record(const pnb_dataset *ds, size_t i, const pnb_image_opts *opts,
                                  pnb_image *out, pnb_error *err)
{
    pnb_sample sample = {0};
    pnb_status status = pnb_dataset_get(ds, i, &sample, err);
    if (status == PNB_OK)
        status = pnb_image_load(out, sample.image_path, opts, err);
    pnb_sample_reset(&sample);
    return status;
}

pnb_status pnb_dataset_image_as(const pnb_dataset *ds, size_t i, const pnb_image_opts *opts,
                                pnb_image *out, pnb_error *err)
{
    *out = (pnb_image){0};
    if (i >= ds->n_entries)
        return pnb__fail(err, PNB_ARG, "picture %zu of a data set of %zu", i, ds->n_entries);
    if (ds->opts.kind == PNB_DATASET_SYNTHETIC)
        return pnb__synthetic_image(i, out, err);
    const pnb__entry *e = &ds->entries[i];
    const pnb__source *source = &ds->sources[e->source];
    pnb_status status;
    if (e->image_path != PNB__NO_TEXT)
        return pnb_image_load(out, ds->texts.data + e->image_path, opts, err);
    if (source->kind == PNB_DATASET_BINARY)
        return pnb__binary_image(ds, e, opts, out, err);
    if (source->table != NULL)
        return image_of_row(ds, e, opts, out, err);
    if (!e->image.is_set)
        return image_of_record(ds, i, opts, out, err);
    status = pnb_image_decode(out, source->map.data + e->image.offset, e->image.size, opts, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s: sample %s", source->path, ds->texts.data + e->key);
    return status;
}

pnb_status pnb_dataset_image(const pnb_dataset *ds, size_t i, pnb_image *out, pnb_error *err)
{
    return pnb_dataset_image_as(ds, i, NULL, out, err);
}
