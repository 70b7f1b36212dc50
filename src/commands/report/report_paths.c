/* The way from a picture to the root of all captions, for a few pictures: what the nearest caption
 * is at each step, from exact to general. The walk is pnb_traverse (hierarchy.h); the root needs
 * the embedding of the empty text. */
#include "commands/report/report_internal.h"
#include "encode/inputs/inputs.h"
#include "penumbra/traversal.h"
#include "report/html.h"
#include "report/svg.h"

enum { PATH_THUMBNAIL = 72 };

static void put_text(pnb__buf *out, const pnb__retrieval *all, size_t row)
{
    const char *text = all->texts->texts != NULL ? all->texts->texts[row] : NULL;
    pnb__html_escape(out, text != NULL ? text : "");
    pnb__buf_printf(out, " <span class=\"soft\">%.3g</span>", all->text_u[row]);
}

/* Every caption once, in the order in which the path meets it. */
static void put_path(pnb__buf *out, const pnb__retrieval *all, const int64_t *step, size_t n)
{
    int64_t last = -1;
    for (size_t i = 0; i < n; i++) {
        if (step[i] == last)
            continue;
        if (last >= 0)
            pnb__buf_puts(out, " \xE2\x86\x92 ");
        put_text(out, all, (size_t)step[i]);
        last = step[i];
    }
}

static pnb_status put_image(pnb__report *r, size_t row, pnb__row_source *source)
{
    pnb_image image = {0};
    pnb__buf *out = &r->page.out;
    const char *name = pnb__report_image_name(&r->all, row);
    pnb_status status = pnb__row_image(source, r->all.images, row, &image, &r->app->err);
    if (status != PNB_OK)
        return status;
    if (image.pixels != NULL) {
        status = pnb__html_thumbnail(out, &image, PATH_THUMBNAIL, name, &r->app->err);
    } else {
        pnb__html_escape(out, name);
        r->n_missing++;
    }
    pnb_image_free(&image);
    return status;
}

static pnb_status put_row(pnb__report *r, const pnb_traversal *t, size_t row,
                          pnb__row_source *source)
{
    pnb__buf_puts(&r->page.out, "<tr><td>");
    pnb_status status = put_image(r, row, source);
    pnb__buf_puts(&r->page.out, "</td><td>");
    put_path(&r->page.out, &r->all, t->step, t->n_steps);
    pnb__buf_puts(&r->page.out, "</td></tr>\n");
    return status;
}

pnb_status pnb__report_paths(pnb__report *r, const pnb_gaussians *null_text)
{
    const pnb_traverse_opts opts = pnb_traverse_opts_default();
    const pnb__retrieval *all = &r->all;
    size_t n = PNB_MIN(r->opts->n_examples, all->images->n), dim = all->image_rows.dim;
    pnb__row_source source = {0};
    pnb_status status = PNB_OK;
    if (null_text == NULL || all->image_rows.log_var == NULL || all->text_rows.log_var == NULL)
        return PNB_OK;
    pnb__page_section(&r->page, "From a picture to the root",
                      "Captions met on a straight way from the picture's nearest caption to the "
                      "root, the mean of the empty text and the caption that includes the picture "
                      "most. The number is the caption's uncertainty.");
    pnb__buf_puts(
        pnb__page_block(&r->page),
        "<div class=\"scroll\"><table><tr><th>picture</th><th>captions on the way</th></tr>\n");
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        size_t row = i * all->images->n / n;
        const pnb_gaussians one = {.n = 1,
                                   .dim = dim,
                                   .mean = all->image_rows.mean + row * dim,
                                   .log_var = all->image_rows.log_var + row * dim};
        pnb_traversal t = {0};
        status =
            pnb_traverse(r->app->ctx, &one, &all->text_rows, null_text, &opts, &t, &r->app->err);
        if (status == PNB_OK)
            status = put_row(r, &t, row, &source);
        pnb_traversal_reset(&t);
    }
    pnb__buf_puts(&r->page.out, "</table></div>\n");
    pnb__row_source_reset(&source);
    return status;
}
