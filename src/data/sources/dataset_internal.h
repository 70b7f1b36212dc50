/* Inside of pnb_dataset: sources, and for each sample where its picture and its text lie. */
#ifndef PNB_DATA_SOURCES_DATASET_INTERNAL_H
#define PNB_DATA_SOURCES_DATASET_INTERNAL_H

#include "base/base.h"
#include "base/order.h"
#include "io/tables/parquet/parquet_rows.h"
#include "penumbra/dataset.h"

/* How the pixels of a binary source lie: one plane a channel, rows or columns one after another. */
typedef struct pnb__raw {
    int width, height, channels;
    bool by_columns;
} pnb__raw;

/* An open Parquet table, and where its pictures' pages lie. */
typedef struct pnb__table {
    pnb__parquet reader;
    bool has_image;
    pnb__parquet_rows image;
} pnb__table;

/* A file or folder samples come from. */
typedef struct pnb__source {
    pnb_dataset_kind kind;
    char *path;
    pnb__map map;       /* tar (taken from its reader), jsonl, binary and parquet */
    unsigned char *own; /* binary: the unpacked bytes of a gzip file, in place of the map */
    pnb__raw raw;       /* binary */
    pnb__table *table;  /* parquet */
    uint64_t stamp;     /* of the file when it was opened; 0 for folders, whose files have theirs */
} pnb__source;

/* Bytes inside the map of a source. */
typedef struct pnb__span {
    uint64_t offset, size;
    bool is_set;
} pnb__span;

#define PNB__NO_TEXT SIZE_MAX

/* Texts are offsets into pnb_dataset.texts, PNB__NO_TEXT when absent. */
typedef struct pnb__entry {
    uint32_t source;
    size_t key;
    pnb__span image, json, txt; /* tar; jsonl uses json for its line */
    size_t image_path;          /* folder, table */
    size_t json_path, txt_path; /* folder: files beside the picture */
    size_t text;                /* table, class folder */
    size_t record, row;         /* parquet: the row as JSON, and its number */
    int32_t label;              /* number of the class, -1 unknown */
    size_t negative;            /* table: a caption that does not fit */
    size_t class_name;          /* as the source names it; numbered when all are known */
} pnb__entry;

/* A folder of shards and what it says of their sizes; dataset_sizes.c. */
typedef struct pnb__shard_folder pnb__shard_folder;

struct pnb_dataset {
    pnb_dataset_opts opts; /* strings are owned copies */
    pnb__source *sources;
    size_t n_sources;
    pnb__entry *entries;
    size_t n_entries;
    pnb__buf texts;
    char **warnings, **notes;
    size_t n_warnings, n_notes;
    size_t
        n_shards_wanted; /* sources and shards of folders: one broken one of several is left out */
    size_t n_shards_broken;
    pnb__parquet_kept *kept; /* pages of tables' pictures; NULL without a table */
    size_t *part_end;        /* [n_parts] entries up to the end of each source between "::" */
    size_t n_parts;
    char **classes; /* names by number; NULL when there are none */
    size_t n_classes;
    pnb__shard_folder *folders; /* of shards, while the set is opened */
    size_t n_folders;
};

/* ---- dataset.c ---- */
bool pnb__is_shard_name(const char *path);
bool pnb__is_table_name(const char *path); /* a Parquet table's */
pnb_status pnb__dataset_add_source(pnb_dataset *ds, pnb_dataset_kind kind, const char *path,
                                   pnb_error *err);
/* The entry's `source` is set to the newest one. */
pnb_status pnb__dataset_add_entry(pnb_dataset *ds, const pnb__entry *entry, pnb_error *err);
pnb__entry pnb__entry_empty(void);
/* Copies a text; PNB__NO_TEXT and a sticky failure in ds->texts when out of memory. */
size_t pnb__dataset_add_text(pnb_dataset *ds, const char *text);
pnb_status pnb__dataset_warn(pnb_dataset *ds, pnb_error *err, const char *fmt, ...)
    PNB_PRINTF(3, 4);
/* What is passed over and no sample lacks. */
pnb_status pnb__dataset_note(pnb_dataset *ds, pnb_error *err, const char *fmt, ...)
    PNB_PRINTF(3, 4);

/* pnb_dataset_get without the bytes of a row's picture, which cost more than all else. */
pnb_status pnb__dataset_record(const pnb_dataset *ds, size_t i, pnb_sample *out, pnb_error *err);

/* ---- dataset_spec.c ---- A list of paths; all zero is empty. */
typedef struct pnb__paths {
    char **items;
    size_t n;
} pnb__paths;
void pnb__paths_free(pnb__paths *p);
pnb_status pnb__paths_add(pnb__paths *p, const char *path, size_t n, pnb_error *err);
void pnb__paths_sort(pnb__paths *p, size_t first);
/* Expands "::", braces and globs, in order. */
pnb_status pnb__spec_expand(pnb__paths *out, const char *spec, pnb_error *err);
/* Names in a folder, sorted by bytes; without "." and "..". */
pnb_status pnb__list_dir(pnb__paths *out, const char *dir, pnb_error *err);

/* ---- dataset_settings.c ---- What stands behind a source's "#", "key=value" with commas between;
 * the texts lie in `path`, which ends where they begin. NULL: not given. */
typedef struct pnb__spec_settings {
    char *path;
    const char *split, *images;         /* of Karpathy's json */
    const char *texts, *classes, *omit; /* of a folder of pictures */
} pnb__spec_settings;
/* Length of the source without its settings. */
size_t pnb__spec_head(const char *source);
/* Is it read as a data set for what stands behind its "#", or as Karpathy's json by its name? */
bool pnb__is_spec(const char *source);
pnb_status pnb__spec_settings_read(pnb__spec_settings *out, const char *source, pnb_error *err);
void pnb__spec_settings_free(pnb__spec_settings *s);
/* Errors  ARG (settings of another kind) */
pnb_status pnb__spec_settings_check(const pnb__spec_settings *s, pnb_dataset_kind kind,
                                    pnb_error *err);

/* Names of a text file, one a line, and which of them were met. */
typedef struct pnb__name_list {
    char *data;
    pnb__named *names; /* sorted */
    unsigned char *used;
    size_t n;
} pnb__name_list;
/* Errors  FORMAT (no name), those of reading */
pnb_status pnb__name_list_read(pnb__name_list *out, const char *path, pnb_error *err);
void pnb__name_list_free(pnb__name_list *l); /* an all-zero one is fine */
/* Whether it holds the name, which counts as met then. */
bool pnb__name_list_take(pnb__name_list *l, const char *name);
/* The same of a folder of a class: by its name, or by the number before the full stop. */
bool pnb__class_list_take(pnb__name_list *l, const char *folder);
/* How many were not met, and the first of them. */
const char *pnb__name_list_unused(const pnb__name_list *l, size_t *n);

/* ---- dataset_tar.c, dataset_table.c, dataset_dir.c, dataset_karpathy.c ---- Each adds the samples
 * of one source. */
pnb_status pnb__scan_tar(pnb_dataset *ds, const char *path, pnb_error *err);
/* The names of classes that lie beside a shard, or in the folder above. */
pnb_status pnb__tar_classes(pnb_dataset *ds, const char *path, pnb_error *err);
pnb_status pnb__scan_csv(pnb_dataset *ds, const char *path, pnb_error *err);
pnb_status pnb__scan_jsonl(pnb_dataset *ds, const char *path, pnb_error *err);
pnb_status pnb__scan_dir(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err);
pnb_status pnb__scan_karpathy(pnb_dataset *ds, const pnb__spec_settings *s, pnb_error *err);

/* ---- dataset_sizes.c ---- What sizes.json and __len__ beside shards say. */
/* A whole shard that was read: of the samples in it so many are used. */
pnb_status pnb__sizes_note(pnb_dataset *ds, const char *path, size_t n_used, size_t n_found,
                           pnb_error *err);
/* Behind the last shard: one warning for what a folder says otherwise. */
pnb_status pnb__sizes_finish(pnb_dataset *ds, pnb_error *err);
void pnb__sizes_free(pnb_dataset *ds);

/* ---- dataset_parquet.c ---- */
pnb_status pnb__scan_parquet(pnb_dataset *ds, const char *path, pnb_error *err);
void pnb__table_free(pnb__table *t); /* NULL is fine */
/* The bytes of a row's picture; *found is false where it has none. */
pnb_status pnb__table_image(const pnb__table *t, size_t row, pnb__buf *out, bool *found,
                            pnb_error *err);

/* ---- dataset_binary.c ---- CIFAR-10/100, STL-10 and MNIST's idx files. */
bool pnb__is_binary(const char *path); /* by its name */
pnb_status pnb__scan_binary(pnb_dataset *ds, const char *path, pnb_error *err);
pnb_status pnb__binary_image(const pnb_dataset *ds, const pnb__entry *e, const pnb_image_opts *opts,
                             pnb_image *out, pnb_error *err);

/* ---- dataset_classes.c ---- Names of classes and numbers of samples. */
/* Takes the names of a text file, one a line, if the set has none yet; *found tells whether there
 * is such a file. `name` lies in `dir`.  Errors  FORMAT (not UTF-8), LIMIT, IO, NOMEM */
pnb_status pnb__classes_load(pnb_dataset *ds, const char *dir, const char *name, bool *found,
                             pnb_error *err);
/* Numbers the entries that carry a name: by the names there are, else by the sorted ones. */
pnb_status pnb__classes_finish(pnb_dataset *ds, pnb_error *err);
void pnb__classes_free(pnb_dataset *ds);

/* ---- dataset_synthetic.c ---- Samples without a file; no entries. */
pnb_status pnb__synthetic_open(pnb_dataset *ds, pnb_error *err);
void pnb__synthetic_get(pnb_sample *out);
pnb_status pnb__synthetic_image(size_t i, pnb_image *out, pnb_error *err);

/* ---- dataset_record.c ---- Text side of a sample. */
/* Owner of what a pnb_sample points to. */
typedef struct pnb__sample_memory pnb__sample_memory;
/* The bytes of a row's picture, where it has any, as the sample's. */
pnb_status pnb__record_image(const pnb__source *source, const pnb__entry *e, pnb_sample *out,
                             pnb_error *err);
/* Fills everything of `out` but the picture. */
pnb_status pnb__record_read(const pnb_dataset *ds, const pnb__entry *e, pnb_sample *out,
                            pnb_error *err);

#endif
