/* The page of a classification.
 *
 * Every picture with its classes and their probabilities, opened by the surest picture and the
 * least sure one. */
#include <stdlib.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/common/rows/row_display.h"
#include "report/html.h"

enum { MAX_SHOWN = 400, N_CLASSES = 3 };

typedef struct page {
    const pnb__classify *run;
    pnb__buf out;
    pnb__page_rows rows;
} page;

static double first_p(const page *p, size_t i)
{
    const pnb_predictions *made = &p->run->images.p;
    return made->probability[i * made->k];
}

static const char *class_of(const page *p, size_t i, size_t place)
{
    const pnb_predictions *made = &p->run->images.p;
    return p->run->classes.items[made->top[i * made->k + place]];
}

/* "cat 0.93, dog 0.05": the best classes of a picture. */
static pnb_status put_image(page *p, size_t i, const char *css, pnb_error *err)
{
    const pnb_predictions *made = &p->run->images.p;
    char note[300];
    int n = 0;
    for (size_t c = 0; c < PNB_MIN(made->k, (size_t)N_CLASSES); c++)
        n += snprintf(note + n, sizeof note - (size_t)n, "%s%.60s %.2f", c > 0 ? ", " : "",
                      class_of(p, i, c), made->probability[i * made->k + c]);
    return pnb__page_row(&p->out, &p->rows, p->run->images.source.set, i, css, note, err);
}

static pnb_status put_cards(page *p, size_t surest, size_t least, pnb_error *err)
{
    pnb_status status;
    pnb__html_cards_begin(&p->out);
    pnb__html_card(&p->out, "Surest");
    PNB_TRY(put_image(p, surest, "big", err));
    pnb__html_card(&p->out, "Least sure");
    PNB_TRY(put_image(p, least, "big", err));
    pnb__html_cards_end(&p->out);
done:
    return status;
}

static void put_headline(page *p, size_t surest, size_t least)
{
    const pnb__classify *run = p->run;
    char asked[200], answer[500];
    snprintf(asked, sizeof asked, "Asked: which of %zu classes is on each of %zu pictures?",
             run->classes.n, run->images.p.n);
    if (run->has_figures)
        snprintf(
            answer, sizeof answer,
            "%.1f%% [%.1f, %.1f] of the pictures with a label are put into its class first; by "
            "chance %.1f%% would.",
            100 * run->figures.acc1, 100 * run->acc1.low, 100 * run->acc1.high,
            100.0 / (double)run->classes.n);
    else
        snprintf(answer, sizeof answer,
                 "Probabilities of the first class go from %.2f (%.120s) to %.2f (%.120s).",
                 first_p(p, least), class_of(p, least, 0), first_p(p, surest),
                 class_of(p, surest, 0));
    pnb__html_headline(&p->out, asked, answer);
}

/* The pictures whose first class is c; an empty class has no section. */
static pnb_status put_class(page *p, size_t c, size_t *n_shown, pnb_error *err)
{
    const pnb_predictions *made = &p->run->images.p;
    pnb_status status = PNB_OK;
    bool is_open = false;
    for (size_t i = 0; status == PNB_OK && i < made->n && *n_shown < MAX_SHOWN; i++) {
        if ((size_t)made->top[i * made->k] != c)
            continue;
        if (!is_open) {
            pnb__html_section(&p->out, p->run->classes.items[c], NULL);
            pnb__buf_puts(&p->out, "<div class=\"row\">\n");
        }
        is_open = true;
        ++*n_shown;
        status = put_image(p, i, "", err);
    }
    if (is_open) {
        pnb__buf_puts(&p->out, "</div>\n");
        pnb__html_section_end(&p->out);
    }
    return status;
}

pnb_status pnb__classify_page(const pnb__classify *run, const char *path, pnb_error *err)
{
    page p = {.run = run};
    size_t surest = 0, least = 0, n_shown = 0, n = run->images.p.n;
    char subtitle[300];
    pnb_status status = PNB_OK;
    for (size_t i = 1; i < n; i++) {
        surest = first_p(&p, i) > first_p(&p, surest) ? i : surest;
        least = first_p(&p, i) < first_p(&p, least) ? i : least;
    }
    snprintf(subtitle, sizeof subtitle, "%zu pictures%s. Made by penumbra %s", n,
             n > MAX_SHOWN ? ", the first 400 by class are shown" : "", pnb_version());
    pnb__html_begin(&p.out, "Classes", subtitle);
    put_headline(&p, surest, least);
    PNB_TRY(put_cards(&p, surest, least, err));
    pnb__html_contents(&p.out);
    for (size_t c = 0; status == PNB_OK && c < run->classes.n; c++)
        status = put_class(&p, c, &n_shown, err);
    pnb__html_end(&p.out);
    if (status == PNB_OK)
        status = pnb__buf_write(&p.out, path, err);
done:
    pnb__page_rows_reset(&p.rows);
    pnb__buf_reset(&p.out);
    return status;
}
