/* Pages of results: sections that appear when something stands in them, tables with their
 * intervals.
 *
 * A table's columns are found by their keys: "r1" has its interval in "r1_low" and "r1_high", a
 * "meaning" is prose. What is a share and what a count the JSON type says. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "report/html.h"
#include "report/svg.h"

/* ---- sections ---- */

void pnb__page_begin(pnb__page *p, const pnb__result *shown, const char *title,
                     const char *subtitle)
{
    *p = (pnb__page){.shown = shown};
    pnb__html_begin(&p->out, title, subtitle);
}

static void end_row(pnb__page *p)
{
    if (p->in_row)
        pnb__buf_puts(&p->out, "</div>\n");
    p->in_row = false;
}

static void end_section(pnb__page *p)
{
    end_row(p);
    if (p->is_open)
        pnb__html_section_end(&p->out);
    p->is_open = false;
}

void pnb__page_section(pnb__page *p, const char *heading, const char *text)
{
    end_section(p);
    p->heading = heading;
    p->text = text;
}

static void open_section(pnb__page *p)
{
    if (p->heading == NULL)
        return;
    pnb__html_section(&p->out, p->heading, p->text);
    p->heading = NULL;
    p->is_open = true;
}

pnb__buf *pnb__page_block(pnb__page *p)
{
    open_section(p);
    end_row(p);
    return &p->out;
}

void pnb__page_plot(pnb__page *p, const pnb__plot *plot)
{
    pnb__buf drawn = {0};
    pnb__plot_draw(plot, p->shown, &drawn);
    if (drawn.size > 0) {
        open_section(p);
        pnb__buf_puts(&p->out, p->in_row ? "" : "<div class=\"row\">\n");
        p->in_row = true;
        pnb__buf_append(&p->out, drawn.data, drawn.size);
    }
    p->out.failed = p->out.failed || drawn.failed || !pnb__result_is_complete(p->shown);
    pnb__buf_reset(&drawn);
}

pnb_status pnb__page_write(pnb__page *p, const char *path, pnb_error *err)
{
    end_section(p);
    pnb__html_end(&p->out);
    p->n_bytes = p->out.size;
    return pnb__buf_write(&p->out, path, err);
}

void pnb__page_reset(pnb__page *p)
{
    pnb__buf_reset(&p->out);
}

/* ---- tables ---- */

/* A table that is being written. */
typedef struct shown_table {
    const pnb__grid *grid;
    size_t column[PNB__MAX_COLUMNS], low[PNB__MAX_COLUMNS], high[PNB__MAX_COLUMNS];
    size_t n;
    bool in_percent;
} shown_table;

static size_t find_column(const pnb__grid *g, const char *key, const char *suffix)
{
    size_t n = strlen(key);
    for (size_t c = 0; c < g->n_columns; c++)
        if (strncmp(g->keys[c], key, n) == 0 && strcmp(g->keys[c] + n, suffix) == 0)
            return c;
    return SIZE_MAX;
}

/* Whether it is an end of another column's interval. */
static bool is_end(const pnb__grid *g, size_t column)
{
    for (size_t c = 0; c < g->n_columns; c++)
        if (find_column(g, g->keys[c], "_low") == column ||
            find_column(g, g->keys[c], "_high") == column)
            return true;
    return false;
}

static bool has_value(const pnb__grid *g, size_t column)
{
    for (size_t i = column; i < g->n_cells; i += g->n_columns)
        if (strcmp(g->cells[i], "-") != 0)
            return true;
    return false;
}

static void choose(shown_table *t, const char *const *keys)
{
    const pnb__grid *g = t->grid;
    for (size_t i = 0; keys != NULL ? keys[i] != NULL : i < g->n_columns; i++) {
        size_t c = keys != NULL ? find_column(g, keys[i], "") : i;
        if (c == SIZE_MAX || !has_value(g, c) ||
            (keys == NULL && (g->is_hidden[c] || is_end(g, c))))
            continue;
        t->low[t->n] = find_column(g, g->keys[c], "_low");
        t->high[t->n] = find_column(g, g->keys[c], "_high");
        t->column[t->n++] = c;
    }
}

static bool is_meaning(const shown_table *t, size_t i)
{
    return strcmp(t->grid->keys[t->column[i]], "meaning") == 0;
}

/* The cell as text prints it, or as per cent where it is a share. */
static void print_cell(const shown_table *t, size_t row, size_t column, bool is_end_of_share,
                       char *text, size_t size)
{
    const pnb__grid *g = t->grid;
    const json_t *value = json_object_get(json_array_get(g->rows, row), g->keys[column]);
    const char *cell = g->cells[row * g->n_columns + column];
    if (t->in_percent && json_is_real(value))
        snprintf(text, size, "%.1f%s", 100 * json_real_value(value), is_end_of_share ? "" : "%");
    else
        snprintf(text, size, "%s", strcmp(cell, "-") == 0 ? "\xE2\x80\x93" : cell);
}

static void put_cell(pnb__page *p, const shown_table *t, size_t row, size_t i)
{
    const pnb__grid *g = t->grid;
    bool has_interval = t->low[i] != SIZE_MAX && t->high[i] != SIZE_MAX &&
                        strcmp(g->cells[row * g->n_columns + t->low[i]], "-") != 0;
    char text[PNB__CELL_BYTES], high[PNB__CELL_BYTES];
    pnb__buf_printf(&p->out, "<td%s>",
                    is_meaning(t, i)                  ? " class=\"soft\""
                    : has_interval                    ? " class=\"n whole\""
                    : g->is_number[t->column[i]] != 0 ? " class=\"n\""
                                                      : "");
    print_cell(t, row, t->column[i], false, text, sizeof text);
    pnb__html_escape(&p->out, text);
    if (has_interval) {
        print_cell(t, row, t->low[i], true, text, sizeof text);
        print_cell(t, row, t->high[i], true, high, sizeof high);
        pnb__buf_printf(&p->out, " <span class=\"soft\">[%s, %s]</span>", text, high);
    }
    pnb__buf_puts(&p->out, "</td>");
}

static void put_table(pnb__page *p, const char *path, const char *const *columns, bool in_percent)
{
    shown_table t = {.grid = pnb__result_grid(p->shown, path), .in_percent = in_percent};
    p->out.failed = p->out.failed || !pnb__result_is_complete(p->shown);
    if (t.grid == NULL || t.grid->n_cells == 0)
        return;
    choose(&t, columns);
    bool is_wordy = false;
    for (size_t i = 0; i < t.n; i++)
        is_wordy = is_wordy || is_meaning(&t, i);
    pnb__buf_printf(pnb__page_block(p), "<div class=\"scroll\"><table%s><tr>",
                    is_wordy ? " class=\"wordy\"" : "");
    for (size_t i = 0; i < t.n; i++) {
        size_t c = t.column[i];
        pnb__buf_printf(&p->out, "<th%s>", t.grid->is_number[c] ? " class=\"n\"" : "");
        pnb__html_escape(&p->out, t.grid->is_hidden[c] ? t.grid->keys[c] : t.grid->headings[c]);
        pnb__buf_puts(&p->out, "</th>");
    }
    pnb__buf_puts(&p->out, "</tr>\n");
    for (size_t row = 0; row < t.grid->n_cells / t.grid->n_columns; row++) {
        pnb__buf_puts(&p->out, "<tr>");
        for (size_t i = 0; i < t.n; i++)
            put_cell(p, &t, row, i);
        pnb__buf_puts(&p->out, "</tr>\n");
    }
    pnb__buf_puts(&p->out, "</table></div>\n");
}

void pnb__page_table(pnb__page *p, const char *path, const char *const *columns)
{
    put_table(p, path, columns, false);
}

void pnb__page_percents(pnb__page *p, const char *path, const char *const *columns)
{
    put_table(p, path, columns, true);
}

/* ---- numbers ---- */

double pnb__page_number(const pnb__page *p, const char *path)
{
    const json_t *value = pnb__result_get(p->shown, path);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

double pnb__page_cell(const pnb__page *p, const char *table, const char *where, const char *is,
                      const char *key)
{
    const json_t *rows = pnb__result_get(p->shown, table);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *text = json_string_value(json_object_get(row, where));
        if (text != NULL && strcmp(text, is) == 0)
            return pnb__json_real_at(row, key);
    }
    return (double)NAN;
}
