/* Tables of text, RFC 4180: fields between separators, rows between line ends, quotes doubled
 * inside quotes.
 *
 * Where files in the wild leave the RFC this reads what Python's csv and pandas read: a quote
 * inside an unquoted field is an ordinary character, text after a closing quote is appended, a lone
 * CR ends a row, blank lines are skipped. A zero byte, an open quote at the end and a row with
 * another number of fields than the header are errors. */
#include "io/tables/csv.h"

#include <string.h>

#include "base/grow.h"
#include "io/foreign.h"

#define MAX_COLUMNS ((size_t)100000)

/* A field of the row being read ends at ends[i] in text; one zero byte lies between fields. */
typedef struct row_reader {
    pnb__csv *c;
    size_t at, line, n_fields, ends_capacity;
    pnb_error *err;
} row_reader;

static pnb_status bad_row(const pnb__csv *c, size_t line, const char *problem, pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT, "%s: line %zu: %s", c->where, line, problem);
}

static bool is_line_end(const pnb__csv *c, size_t at)
{
    return c->bytes[at] == '\n' || c->bytes[at] == '\r';
}

static size_t skip_line_end(const pnb__csv *c, size_t at)
{
    if (c->bytes[at] == '\r' && at + 1 < c->n_bytes && c->bytes[at + 1] == '\n')
        return at + 2;
    return at + 1;
}

/* The part between quotes, from the opening one to after the closing one. */
static pnb_status read_quoted(row_reader *r)
{
    pnb__csv *c = r->c;
    size_t opened = r->line, start = ++r->at;
    for (; r->at < c->n_bytes; r->at++) {
        char byte = c->bytes[r->at];
        if (byte == '\n')
            r->line++;
        if (byte == '\0')
            return bad_row(c, r->line, "zero byte in the text", r->err);
        if (byte != '"')
            continue;
        pnb__buf_append(&c->text, c->bytes + start, r->at - start);
        if (r->at + 1 >= c->n_bytes || c->bytes[r->at + 1] != '"') {
            r->at++;
            return PNB_OK;
        }
        start = ++r->at; /* the second of two quotes is text */
    }
    return bad_row(c, opened, "a quote is opened and never closed", r->err);
}

/* One field up to its separator, line end or the end of the file. */
static pnb_status read_field(row_reader *r)
{
    pnb__csv *c = r->c;
    if (r->at < c->n_bytes && c->bytes[r->at] == '"') {
        pnb_status status = read_quoted(r);
        if (status != PNB_OK)
            return status;
    }
    size_t start = r->at;
    while (r->at < c->n_bytes && c->bytes[r->at] != c->separator && !is_line_end(c, r->at)) {
        if (c->bytes[r->at] == '\0')
            return bad_row(c, r->line, "zero byte in the text", r->err);
        r->at++;
    }
    pnb__buf_append(&c->text, c->bytes + start, r->at - start);
    return PNB_OK;
}

/* Remembers where the field ended; fields past the header's are counted only. */
static pnb_status end_field(row_reader *r)
{
    pnb__csv *c = r->c;
    bool is_header = c->n_columns == 0;
    if (is_header && r->n_fields == MAX_COLUMNS)
        return pnb__fail(r->err, PNB_LIMIT, "%s: more than %zu columns", c->where, MAX_COLUMNS);
    pnb_status status =
        is_header ? PNB_GROW(c->ends, r->ends_capacity, r->n_fields + 1, r->err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    if (r->n_fields < r->ends_capacity)
        c->ends[r->n_fields] = c->text.size;
    r->n_fields++;
    pnb__buf_putc(&c->text, '\0');
    return PNB_OK;
}

/* Reads the row at c->position into text and ends; *n_fields is 0 at the end of the file. */
static pnb_status read_row(pnb__csv *c, size_t *n_fields, pnb_error *err)
{
    row_reader r = {c, c->position, c->line, 0, c->n_columns, err};
    c->text.size = 0;
    for (; r.at < c->n_bytes && is_line_end(c, r.at); r.line++) /* blank lines */
        r.at = skip_line_end(c, r.at);
    size_t row_offset = r.at;
    bool more = r.at < c->n_bytes;
    while (more) {
        pnb_status status = read_field(&r);
        if (status == PNB_OK)
            status = end_field(&r);
        if (status != PNB_OK)
            return status;
        more = r.at < c->n_bytes && c->bytes[r.at] == c->separator;
        r.at += more;
    }
    if (c->text.failed) {
        pnb__buf_reset(&c->text);
        return pnb__fail_nomem(err, r.at - row_offset);
    }
    if (r.at < c->n_bytes) {
        r.at = skip_line_end(c, r.at);
        r.line++;
    }
    *n_fields = r.n_fields;
    c->row_offset = row_offset;
    c->position = r.at;
    c->line = r.line;
    return PNB_OK;
}

/* Points `fields` into the text, which no longer moves. */
static void place_fields(const pnb__csv *c, char **fields)
{
    size_t start = 0;
    for (size_t i = 0; i < c->n_columns; i++) {
        fields[i] = c->text.data + start;
        start = c->ends[i] + 1;
    }
}

static pnb_status read_header(pnb__csv *c, pnb_error *err)
{
    size_t n = 0;
    pnb_status status = read_row(c, &n, err);
    if (status != PNB_OK)
        return status;
    if (n == 0)
        return pnb__fail(err, PNB_FORMAT, "%s: empty, wanted a header row", c->where);
    if (PNB_ALLOC_ZERO(c->header, n, err) != PNB_OK || PNB_ALLOC_ZERO(c->fields, n, err) != PNB_OK)
        return PNB_NOMEM;
    c->n_columns = n;
    place_fields(c, c->fields);
    for (size_t i = 0; i < n; i++) {
        if (pnb__copy_text(&c->header[i], c->fields[i], err) != PNB_OK)
            return PNB_NOMEM;
    }
    return PNB_OK;
}

pnb_status pnb__csv_open_bytes(pnb__csv *c, const void *bytes, size_t n, char separator,
                               const char *where, pnb_error *err)
{
    *c = (pnb__csv){.bytes = bytes, .n_bytes = n, .separator = separator, .line = 1};
    if (separator == '"' || separator == '\n' || separator == '\r' || separator == '\0')
        return pnb__fail(err, PNB_ARG, "%s: separator byte 0x%02x cannot separate fields", where,
                         (unsigned char)separator);
    if (n > 0 && bytes == NULL)
        return pnb__fail(err, PNB_ARG, "%s: no bytes", where);
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        c->position = 3; /* byte order mark of some spreadsheets */
    c->where = pnb__strdup(where);
    pnb_status status =
        c->where != NULL ? read_header(c, err) : pnb__fail_nomem(err, strlen(where) + 1);
    if (status != PNB_OK)
        pnb__csv_close(c);
    return status;
}

pnb_status pnb__csv_open(pnb__csv *c, const char *path, char separator, pnb_error *err)
{
    pnb__map map;
    *c = (pnb__csv){0};
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    const char *what = map.size > 0 ? pnb__foreign(map.data, map.size) : NULL;
    bool is_text = map.size == 0 || memchr(map.data, 0, PNB_MIN(map.size, (size_t)4096)) == NULL;
    if (what != NULL && (!is_text || pnb__stand_in(map.data, map.size) != NULL))
        status = pnb__fail(err, PNB_FORMAT, "%s: this is %s", path, what);
    else
        status = pnb__csv_open_bytes(c, map.data, map.size, separator, path, err);
    if (status == PNB_OK)
        c->map = map;
    else
        pnb__map_close(&map);
    return status;
}

void pnb__csv_close(pnb__csv *c)
{
    for (size_t i = 0; i < c->n_columns && c->header != NULL; i++)
        pnb__free(c->header[i]);
    pnb__free(c->header);
    pnb__free(c->fields);
    pnb__free(c->ends);
    pnb__free(c->where);
    pnb__buf_reset(&c->text);
    pnb__map_close(&c->map);
    *c = (pnb__csv){0};
}

pnb_status pnb__csv_column(const pnb__csv *c, const char *name, size_t *column, pnb_error *err)
{
    char names[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < c->n_columns; i++) {
        if (strcmp(c->header[i], name) == 0) {
            *column = i;
            return PNB_OK;
        }
        int n = snprintf(names + used, sizeof(names) - used, "%s\"%.40s\"", i > 0 ? ", " : "",
                         c->header[i]);
        used = PNB_MIN(used + (size_t)PNB_MAX(n, 0), sizeof(names) - 1);
    }
    return pnb__fail(err, PNB_NOT_FOUND,
                     "%s: no column \"%s\"; it has %s (is the separator right?)", c->where, name,
                     names);
}

pnb_status pnb__csv_next(pnb__csv *c, bool *more, pnb_error *err)
{
    size_t n = 0, line = c->line;
    pnb_status status = read_row(c, &n, err);
    if (status != PNB_OK)
        return status;
    *more = n > 0;
    if (n == 0)
        return PNB_OK;
    if (n != c->n_columns)
        return pnb__fail(err, PNB_SHAPE, "%s: near line %zu: %zu fields, the header has %zu",
                         c->where, line, n, c->n_columns);
    place_fields(c, c->fields);
    return PNB_OK;
}

void pnb__csv_seek(pnb__csv *c, size_t row_offset)
{
    c->position = PNB_MIN(row_offset, c->n_bytes);
    c->line = 1;
}

void pnb__csv_put_field(pnb__buf *b, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        pnb__buf_puts(b, text);
        return;
    }
    pnb__buf_putc(b, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            pnb__buf_putc(b, '"');
        pnb__buf_putc(b, *text);
    }
    pnb__buf_putc(b, '"');
}
