/* Tables of a result as text for other programs: csv under the keys of the columns, Markdown under
 * their headings.
 *
 * Cells are those that people read, with their digits; the JSON has the whole numbers. */
#include "report/table_text.h"

#include <string.h>

static void append_cell(const char *text, bool is_markdown, bool is_last, pnb__buf *out)
{
    bool is_quoted = !is_markdown && strpbrk(text, ",\"") != NULL;
    pnb__buf_puts(out, is_markdown ? "| " : "");
    pnb__buf_puts(out, is_quoted ? "\"" : "");
    for (; *text != '\0'; text++) {
        if (is_quoted && *text == '"')
            pnb__buf_putc(out, '"');
        pnb__buf_putc(out, is_markdown && *text == '|' ? '/' : *text);
    }
    pnb__buf_puts(out, is_quoted ? "\"" : "");
    pnb__buf_puts(out, is_markdown ? (is_last ? " |\n" : " ") : (is_last ? "\n" : ","));
}

void pnb__table_append(const pnb__result *r, const char *key, bool is_markdown, pnb__buf *out)
{
    const pnb__grid *grid = pnb__result_grid(r, key);
    if (grid == NULL || grid->n_cells == 0)
        return;
    size_t n = grid->n_columns;
    for (size_t k = 0; k < n; k++)
        append_cell(is_markdown ? grid->headings[k] : grid->keys[k], is_markdown, k + 1 == n, out);
    for (size_t k = 0; is_markdown && k < n; k++)
        pnb__buf_puts(out, k + 1 < n ? "|---" : "|---|\n");
    for (size_t i = 0; i < grid->n_cells; i++)
        append_cell(grid->cells[i], is_markdown, (i + 1) % n == 0, out);
    pnb__buf_puts(out, is_markdown ? "\n" : "");
}
