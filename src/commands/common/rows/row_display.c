/* Shows a row of a set by what it was made from.
 *
 * A row with a text is a caption and stands as one. Else it is a picture: found again by its path
 * or its data set, called by a caption that travels with it (img2dataset's caption) or
 * stands in that data set, and only then by its file. */
#include "commands/common/rows/row_display.h"

#include <string.h>

#include "io/json/json.h"
#include "report/html.h"
#include "report/svg.h"
#include "sets/set_rows.h"

void pnb__page_rows_reset(pnb__page_rows *rows)
{
    pnb__row_source_reset(&rows->source);
    *rows = (pnb__page_rows){0};
}

static bool take_text(const pnb_embeddings *set, size_t row, char text[256])
{
    static const char *const keys[] = {"caption", "text", "title"};
    json_t *extra = NULL;
    const char *found = NULL;
    if (pnb__set_extra(&extra, set, row, NULL) != PNB_OK)
        return false; /* a page does without this name */
    for (size_t i = 0; found == NULL && i < PNB_COUNT(keys); i++)
        found = json_string_value(json_object_get(extra, keys[i]));
    snprintf(text, 256, "%s", found != NULL ? found : "");
    json_decref(extra); /* and `found` with it */
    return text[0] != '\0';
}

const char *pnb__page_row_name(pnb__page_rows *rows, const pnb_embeddings *set, size_t row,
                               char text[256])
{
    if (set->texts != NULL && set->texts[row] != NULL)
        return set->texts[row];
    if (take_text(set, row, text) || pnb__row_title(&rows->source, set, row, text, 256))
        return text;
    if (set->paths != NULL && set->paths[row] != NULL)
        return pnb__path_base(set->paths[row]);
    if (set->ids != NULL && set->ids[row] != NULL)
        return set->ids[row];
    snprintf(text, 256, "row %zu", row);
    return text;
}

static void put_text(pnb__buf *out, const char *text, const char *css, const char *note)
{
    pnb__buf_printf(out, "<div class=\"query %s\"><q>", css);
    pnb__html_escape(out, text);
    pnb__buf_puts(out, "</q> <span class=\"soft\">");
    pnb__html_escape(out, note);
    pnb__buf_puts(out, "</span></div>\n");
}

pnb_status pnb__page_row(pnb__buf *out, pnb__page_rows *rows, const pnb_embeddings *set, size_t row,
                         const char *css, const char *note, pnb_error *err)
{
    pnb_image image = {0};
    char text[256];
    const char *name = pnb__page_row_name(rows, set, row, text);
    if (set->texts != NULL && set->texts[row] != NULL) {
        put_text(out, name, css, note);
        return PNB_OK;
    }
    pnb_status status = pnb__row_image(&rows->source, set, row, &image, err);
    bool is_found = image.pixels != NULL;
    rows->n_missing += !is_found;
    if (status == PNB_OK)
        status = pnb__html_shot(out, is_found ? &image : NULL, css, name, note, err);
    pnb_image_free(&image);
    return status;
}
