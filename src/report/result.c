/* Collects what a command found and prints it once, for a person or for a program.
 *
 * The JSON tree and the lines of text grow together, so the two can not tell different
 * things. Text: `label  value` lines with labels padded to one column inside a section; tables with
 * numbers to the right and words to the left. */
#include "report/result.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "io/byte_names.h"

enum { MAX_DEPTH = 4 };

typedef enum line_kind { LINE_VALUE, LINE_HEADING, LINE_NOTE, LINE_TABLE } line_kind;

typedef struct line {
    line_kind kind;
    char *label, *value;
    pnb__grid *table;
} line;

struct pnb__result {
    json_t *root, *stack[MAX_DEPTH];
    size_t depth;
    line *lines;
    size_t n_lines;
    pnb__grid *open_table; /* the last one added */
    bool failed;
};

pnb__result *pnb__result_create(void)
{
    pnb__result *r = pnb__alloc_zero(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->root = r->stack[0] = json_object();
    r->failed = r->root == NULL;
    return r;
}

void pnb__result_free(pnb__result *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n_lines; i++) {
        pnb__free(r->lines[i].label);
        pnb__free(r->lines[i].value);
        if (r->lines[i].table != NULL)
            pnb__free(r->lines[i].table->cells);
        pnb__free(r->lines[i].table);
    }
    pnb__free(r->lines);
    json_decref(r->root);
    pnb__free(r);
}

static line *add_line(pnb__result *r, line_kind kind, const char *label, const char *value)
{
    line added = {kind, pnb__strdup(label), pnb__strdup(value), NULL};
    if (PNB_PUSH(r->lines, r->n_lines, NULL, added) != PNB_OK) {
        pnb__free(added.label);
        pnb__free(added.value);
        r->failed = true;
        return NULL;
    }
    line *l = &r->lines[r->n_lines - 1];
    if (l->label == NULL || l->value == NULL)
        r->failed = true;
    return l;
}

/* Takes ownership of `json`. */
static void add_value(pnb__result *r, const char *key, const char *label, json_t *json,
                      const char *text)
{
    if (r == NULL || r->failed) {
        json_decref(json);
        return;
    }
    if (json != NULL && key == NULL)
        json_decref(json);
    else if (json == NULL || json_object_set_new(r->stack[r->depth], key, json) != 0)
        r->failed = true;
    if (label != NULL)
        add_line(r, LINE_VALUE, label, text);
}

static void format_real(double value, int digits, char *text, size_t size)
{
    if (!isfinite(value))
        snprintf(text, size, "-");
    else if (value != 0.0 && fabs(value) < pow(10.0, -digits))
        snprintf(text, size, "%.3g", value);
    else
        snprintf(text, size, "%.*f", digits, value);
}

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A text that may be a file name of any bytes; printing shows them again. */
static json_t *text_value(const char *value)
{
    pnb__buf hidden = {0};
    if (value == NULL)
        return json_null();
    pnb__buf_append(&hidden, "", 0);
    pnb__byte_name_hidden(&hidden, value);
    json_t *text = hidden.failed ? NULL : json_string(hidden.data);
    pnb__buf_reset(&hidden);
    return text;
}

void pnb__result_text(pnb__result *r, const char *key, const char *label, const char *value)
{
    add_value(r, key, label, text_value(value), value != NULL ? value : "-");
}

void pnb__result_words(pnb__result *r, const char *key, char *const *words, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++)
        if (json_array_append_new(list, text_value(words[i])) != 0 && r != NULL)
            r->failed = true;
    add_value(r, key, NULL, list, NULL);
}

void pnb__result_int(pnb__result *r, const char *key, const char *label, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_value(r, key, label, json_integer(value), text);
}

void pnb__result_real(pnb__result *r, const char *key, const char *label, double value, int digits)
{
    char text[64];
    format_real(value, digits, text, sizeof text);
    add_value(r, key, label, json_number(value), text);
}

void pnb__result_flag(pnb__result *r, const char *key, const char *label, bool value)
{
    add_value(r, key, label, json_boolean(value), value ? "yes" : "no");
}

void pnb__result_note(pnb__result *r, const char *text)
{
    if (r != NULL && text == NULL)
        r->failed = true;
    if (r != NULL && !r->failed)
        add_line(r, LINE_NOTE, "", text);
}

void pnb__result_heading(pnb__result *r, const char *text)
{
    if (r != NULL && !r->failed)
        add_line(r, LINE_HEADING, "", text);
}

void pnb__result_begin(pnb__result *r, const char *key, const char *heading)
{
    if (r == NULL || r->failed)
        return;
    json_t *object = json_object();
    if (object == NULL || r->depth + 1 >= MAX_DEPTH ||
        json_object_set_new(r->stack[r->depth], key, object) != 0) {
        r->failed = true;
        return;
    }
    r->stack[++r->depth] = object;
    if (heading != NULL)
        pnb__result_heading(r, heading);
}

void pnb__result_end(pnb__result *r)
{
    if (r != NULL && r->depth > 0)
        r->depth--;
}

void pnb__result_numbers(pnb__result *r, const char *key, const double *values, size_t n)
{
    if (r == NULL || r->failed)
        return;
    json_t *list = json_array();
    bool failed = list == NULL;
    for (size_t i = 0; i < n && !failed; i++)
        failed = json_array_append_new(list, json_number(values[i])) != 0;
    if (failed || json_object_set(r->stack[r->depth], key, list) != 0)
        r->failed = true;
    json_decref(list);
}

void pnb__result_value(pnb__result *r, const char *key, json_t *value)
{
    add_value(r, key, NULL, value, NULL);
}

void pnb__result_repeat(pnb__result *r, const char *inner, const char *key)
{
    if (r == NULL || r->failed)
        return;
    json_t *object = r->stack[r->depth];
    json_t *copy = json_deep_copy(json_object_get(json_object_get(object, inner), key));
    if (copy == NULL || json_object_set_new(object, key, copy) != 0)
        r->failed = true;
}

void pnb__result_table(pnb__result *r, const char *key, const char *heading,
                       const pnb__column *columns, size_t n_columns)
{
    if (r == NULL || r->failed)
        return;
    pnb__grid *t = pnb__alloc_zero(1, sizeof *t);
    bool fits = t != NULL && n_columns <= PNB__MAX_COLUMNS;
    json_t *rows = fits && key != NULL ? json_array() : NULL;
    if (!fits || (key != NULL && json_object_set_new(r->stack[r->depth], key, rows) != 0)) {
        pnb__free(t);
        r->failed = true;
        return;
    }
    t->rows = rows;
    t->n_columns = n_columns;
    for (size_t c = 0; c < n_columns; c++) {
        snprintf(t->keys[c], sizeof t->keys[c], "%s", columns[c].key);
        t->is_hidden[c] = columns[c].heading == NULL;
        snprintf(t->headings[c], sizeof t->headings[c], "%s",
                 t->is_hidden[c] ? "" : columns[c].heading);
    }
    if (heading != NULL)
        pnb__result_heading(r, heading);
    line *l = add_line(r, LINE_TABLE, "", "");
    if (l == NULL) {
        pnb__free(t);
        return;
    }
    l->table = r->open_table = t;
}

/* Takes ownership of `json`. */
static void add_cell(pnb__result *r, json_t *json, const char *text, bool is_number)
{
    if (r == NULL || r->failed || r->open_table == NULL || json == NULL) {
        json_decref(json);
        if (r != NULL)
            r->failed = true;
        return;
    }
    pnb__grid *t = r->open_table;
    size_t column = t->n_cells % t->n_columns;
    if (pnb__grow_one(&t->cells, t->n_cells, PNB__CELL_BYTES, NULL) != PNB_OK) {
        json_decref(json);
        r->failed = true;
        return;
    }
    snprintf(t->cells[t->n_cells++], PNB__CELL_BYTES, "%s", text);
    t->is_number[column] = t->is_number[column] || is_number;
    if (t->rows == NULL) {
        json_decref(json);
        return;
    }
    if (column == 0 && json_array_append_new(t->rows, json_object()) != 0)
        r->failed = true;
    json_t *row = json_array_get(t->rows, json_array_size(t->rows) - 1);
    if (json_object_set_new(row, t->keys[column], json) != 0)
        r->failed = true;
}

void pnb__result_cell_text(pnb__result *r, const char *value)
{
    add_cell(r, text_value(value), value != NULL ? value : "-", false);
}

void pnb__result_cell_value(pnb__result *r, json_t *value, const char *text)
{
    add_cell(r, value, text, false);
}

void pnb__result_cell_int(pnb__result *r, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_cell(r, json_integer(value), text, true);
}

void pnb__result_cell_real(pnb__result *r, double value, int digits)
{
    char text[64];
    format_real(value, digits, text, sizeof text);
    add_cell(r, json_number(value), text, true);
}

/* ---- reading ---- */

bool pnb__result_is_empty(const pnb__result *r)
{
    return r != NULL && !r->failed && r->n_lines == 0 && json_object_size(r->root) == 0;
}

bool pnb__result_is_complete(const pnb__result *r)
{
    return r != NULL && !r->failed;
}

const json_t *pnb__result_get(const pnb__result *r, const char *path)
{
    const json_t *at = r != NULL ? r->root : NULL;
    while (at != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        at = json_object_getn(at, path, n);
        path += n + (path[n] == '.');
    }
    return at;
}

const pnb__grid *pnb__result_grid(const pnb__result *r, const char *path)
{
    const json_t *rows = pnb__result_get(r, path);
    for (size_t i = 0; rows != NULL && i < r->n_lines; i++)
        if (r->lines[i].table != NULL && r->lines[i].table->rows == rows)
            return r->lines[i].table;
    return NULL;
}

void pnb__result_row(pnb__result *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (const char *p = format; (p = strchr(p, '%')) != NULL; p++) {
        if (p[1] == 's') {
            pnb__result_cell_text(r, va_arg(args, const char *));
        } else if (p[1] == 'd') {
            pnb__result_cell_int(r, va_arg(args, int));
        } else if (p[1] == 'z') {
            pnb__result_cell_int(r, (int64_t)va_arg(args, size_t));
        } else { /* %.4f, %.*f */
            int digits = p[2] == '*' ? va_arg(args, int) : p[2] - '0';
            pnb__result_cell_real(r, va_arg(args, double), digits);
        }
    }
    va_end(args);
}

/* ---- printing ---- */

/* Characters, not bytes: continuation bytes of UTF-8 take no column. */
static size_t display_width(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void print_padded(FILE *out, const char *text, size_t width, bool right)
{
    size_t n = display_width(text);
    size_t pad = n < width ? width - n : 0;
    if (right)
        fprintf(out, "%*s%s", (int)pad, "", text);
    else
        fprintf(out, "%s%*s", text, (int)pad, "");
}

static void print_table(const pnb__grid *t, FILE *out)
{
    size_t width[PNB__MAX_COLUMNS];
    if (t->n_cells == 0)
        return;
    size_t last_shown = 0;
    bool has_headings = false;
    for (size_t c = 0; c < t->n_columns; c++) {
        width[c] = display_width(t->headings[c]);
        has_headings = has_headings || width[c] > 0;
        last_shown = t->is_hidden[c] ? last_shown : c;
    }
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t c = i % t->n_columns;
        width[c] = PNB_MAX(width[c], display_width(t->cells[i]));
    }
    for (size_t i = has_headings ? 0 : t->n_columns; i < t->n_columns + t->n_cells; i++) {
        size_t c = i % t->n_columns;
        bool last = c == last_shown;
        if (t->is_hidden[c])
            continue;
        const char *text = i < t->n_columns ? t->headings[i] : t->cells[i - t->n_columns];
        print_padded(out, text, last && !t->is_number[c] ? 0 : width[c], t->is_number[c]);
        fputs(last ? "\n" : "  ", out);
    }
}

/* Widest label of the run of value lines that starts at `first`. */
static size_t label_width(const pnb__result *r, size_t first)
{
    size_t width = 0;
    for (size_t i = first; i < r->n_lines && r->lines[i].kind == LINE_VALUE; i++)
        width = PNB_MAX(width, display_width(r->lines[i].label));
    return width;
}

/* A heading with nothing below but a table without rows. */
static bool is_of_nothing(const pnb__result *r, size_t heading)
{
    const line *next = heading + 1 < r->n_lines ? &r->lines[heading + 1] : NULL;
    return next != NULL && next->kind == LINE_TABLE && next->table->n_cells == 0;
}

static void print_text(const pnb__result *r, FILE *out)
{
    size_t width = 0;
    for (size_t i = 0; i < r->n_lines; i++) {
        const line *l = &r->lines[i];
        bool run_starts = i == 0 || r->lines[i - 1].kind != LINE_VALUE;
        switch (l->kind) {
        case LINE_VALUE:
            width = run_starts ? label_width(r, i) : width;
            print_padded(out, l->label, width + 2, false);
            fprintf(out, "%s\n", l->value);
            break;
        case LINE_HEADING:
            if (is_of_nothing(r, i))
                break;
            fprintf(out, "%s%s%s", i > 0 ? "\n" : "", l->value, l->value[0] != '\0' ? "\n" : "");
            break;
        case LINE_NOTE:
            fprintf(out, "%s\n", l->value);
            break;
        case LINE_TABLE:
            print_table(l->table, out);
            break;
        }
    }
}

pnb_status pnb__result_print(const pnb__result *r, FILE *out, bool json, pnb_error *err)
{
    if (!pnb__result_is_complete(r))
        return pnb__fail(err, PNB_NOMEM, "out of memory while collecting the result");
    if (!json) {
        print_text(r, out);
        return PNB_OK;
    }
    char *text = json_dumps(r->root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (text == NULL)
        return pnb__fail(err, PNB_NOMEM, "out of memory while writing the result");
    pnb__byte_names_show(text, strlen(text));
    bool failed = fputs(text, out) < 0 || fputc('\n', out) < 0;
    pnb__free(text);
    return failed ? pnb__fail_errno(err, "cannot write", "the JSON result") : PNB_OK;
}
