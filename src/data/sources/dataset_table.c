/* Samples of tables. CSV / TSV as open_clip reads them: a column of picture paths ("filepath") and
 * one of captions ("title"), perhaps one of classes ("label"); every row is a sample. What its
 * columns "url", "uid" and "key" say is the row's record. JSON lines:
 * one object a line with the picture under "image", "filepath", "file_name" or "path" and the
 * fields of dataset_record.c. Relative paths start at the table's folder. Paths and captions of a
 * CSV are kept in memory; of JSON lines only the position of each line. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/json/json.h"
#include "io/tables/csv.h"

/* TAB if the first line has one, else a comma: open_clip's default is TAB, most files use commas.
 */
static pnb_status find_separator(const char *path, char *separator, pnb_error *err)
{
    pnb__map map = {0};
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    const unsigned char *end = map.size ? memchr(map.data, '\n', map.size) : NULL;
    size_t n = end ? (size_t)(end - map.data) : map.size;
    *separator = n && memchr(map.data, '\t', n) ? '\t' : ',';
    pnb__map_close(&map);
    return PNB_OK;
}

/* Adds dir/name, or name alone when it is absolute, or a URL, which is told where it is opened. */
static size_t add_path(pnb_dataset *ds, const char *dir, const char *name)
{
    bool is_url = strstr(name, "://") != NULL;
    char *path = is_url ? pnb__strdup(name) : pnb__path_join(dir, name);
    size_t text = path ? pnb__dataset_add_text(ds, path) : PNB__NO_TEXT;
    ds->texts.failed |= !path; /* adding the entry reports it */
    pnb__free(path);
    return text;
}

#define NO_COLUMN SIZE_MAX

/* The column asked for, else "label" or "class" where the table has one. */
static pnb_status find_label(const pnb_dataset *ds, const pnb__csv *csv, size_t *column,
                             pnb_error *err)
{
    *column = NO_COLUMN;
    if (ds->opts.csv_label_key)
        return pnb__csv_column(csv, ds->opts.csv_label_key, column, err);
    for (size_t i = 0; i < csv->n_columns && *column == NO_COLUMN; i++)
        if (!strcmp(csv->header[i], "label") || !strcmp(csv->header[i], "class"))
            *column = i;
    return PNB_OK;
}

/* Of hard negatives, where a column is asked for. */
static pnb_status find_negative(const pnb_dataset *ds, const pnb__csv *csv, size_t *column,
                                pnb_error *err)
{
    *column = NO_COLUMN;
    return ds->opts.negatives_key ? pnb__csv_column(csv, ds->opts.negatives_key, column, err)
                                  : PNB_OK;
}

/* A table of labels needs no captions where samples without one are kept. */
static pnb_status find_text(const pnb_dataset *ds, const pnb__csv *csv, size_t label,
                            size_t *column, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = pnb__csv_column(csv, ds->opts.csv_caption_key, column, &why);
    if (status == PNB_NOT_FOUND && label != NO_COLUMN && ds->opts.allow_no_caption) {
        *column = NO_COLUMN;
        return PNB_OK;
    }
    return status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s", why.text);
}

/* The record of a row: where its picture came from, as a JSON object. None where no column says. */
static pnb_status add_record(pnb_dataset *ds, const pnb__csv *csv, pnb__entry *entry,
                             pnb_error *err)
{
    static const char *const told[] = {"url", "uid", "key"};
    pnb__buf record = {0};
    for (size_t i = 0; i < csv->n_columns; i++)
        for (size_t k = 0; k < PNB_COUNT(told); k++) {
            const char *value = csv->fields[i];
            if (strcmp(csv->header[i], told[k]) != 0 || value[0] == '\0' ||
                !pnb__utf8_valid(value, strlen(value)))
                continue;
            pnb__buf_printf(&record, "%s\"%s\":", record.size > 0 ? "," : "{", told[k]);
            pnb__json_append_string(&record, value);
        }
    if (record.size > 0) {
        pnb__buf_putc(&record, '}');
        pnb__buf_append(&record, "", 1);
    }
    pnb_status status = pnb__buf_check(&record, err);
    if (status == PNB_OK && record.size > 0)
        entry->record = pnb__dataset_add_text(ds, record.data);
    pnb__buf_reset(&record);
    return status;
}

static pnb_status add_rows(pnb_dataset *ds, pnb__csv *csv, const char *dir, const char *path,
                           pnb_error *err)
{
    size_t image, text, label, negative, n_left_out = 0;
    bool more = true;
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__csv_column(csv, ds->opts.csv_img_key, &image, err));
    PNB_TRY(find_label(ds, csv, &label, err));
    PNB_TRY(find_text(ds, csv, label, &text, err));
    PNB_TRY(find_negative(ds, csv, &negative, err));
    for (;;) {
        PNB_TRY(pnb__csv_next(csv, &more, err));
        if (!more)
            break;
        pnb__entry entry = pnb__entry_empty();
        const char *words = text != NO_COLUMN ? csv->fields[text] : "";
        if (!csv->fields[image][0] || (!words[0] && !ds->opts.allow_no_caption)) {
            n_left_out++;
            continue;
        }
        entry.key = pnb__dataset_add_text(ds, csv->fields[image]);
        entry.image_path = add_path(ds, dir, csv->fields[image]);
        if (words[0])
            entry.text = pnb__dataset_add_text(ds, words);
        if (negative != NO_COLUMN && csv->fields[negative][0])
            entry.negative = pnb__dataset_add_text(ds, csv->fields[negative]);
        if (label != NO_COLUMN && csv->fields[label][0])
            entry.class_name = pnb__dataset_add_text(ds, csv->fields[label]);
        PNB_TRY(add_record(ds, csv, &entry, err));
        PNB_TRY(pnb__dataset_add_entry(ds, &entry, err));
    }
    if (n_left_out > 0)
        status = pnb__dataset_warn(ds, err, "%s: %zu rows with an empty path or caption left out",
                                   path, n_left_out);
done:
    return status;
}

pnb_status pnb__scan_csv(pnb_dataset *ds, const char *path, pnb_error *err)
{
    pnb__csv csv = {0};
    char separator = ds->opts.csv_separator, *dir = pnb__path_dir(path);
    pnb_status status = PNB_OK;
    if (!dir)
        return pnb__fail_nomem(err, strlen(path));
    if (!separator)
        PNB_TRY(find_separator(path, &separator, err));
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_CSV, path, err));
    PNB_TRY(pnb__csv_open(&csv, path, separator, err));
    PNB_TRY(add_rows(ds, &csv, dir, path, err));
done:
    pnb__csv_close(&csv);
    pnb__free(dir);
    return status;
}

pnb_status pnb__scan_jsonl(pnb_dataset *ds, const char *path, pnb_error *err)
{
    pnb_status status = pnb__dataset_add_source(ds, PNB_DATASET_JSONL, path, err);
    if (status != PNB_OK)
        return status;
    const pnb__map map = ds->sources[ds->n_sources - 1].map;
    for (size_t begin = 0, line = 1; begin < map.size; line++) {
        const unsigned char *end = memchr(map.data + begin, '\n', map.size - begin);
        size_t n = end ? (size_t)(end - map.data) - begin : map.size - begin;
        bool is_blank = true;
        for (size_t i = 0; i < n && is_blank; i++)
            is_blank = strchr(" \t\r", map.data[begin + i]) != NULL;
        if (!is_blank) {
            pnb__entry entry = pnb__entry_empty();
            char key[32];
            snprintf(key, sizeof key, "line %zu", line);
            entry.key = pnb__dataset_add_text(ds, key);
            entry.json = (pnb__span){begin, n, true};
            status = pnb__dataset_add_entry(ds, &entry, err);
            if (status != PNB_OK)
                return status;
        }
        begin += n + 1;
    }
    return PNB_OK;
}
