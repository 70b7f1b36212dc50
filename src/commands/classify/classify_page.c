/* The page of a classification.
 *
 * How good it is are the figures that the command prints, by their keys; what is made here are
 * every picture with its classes and their probabilities, opened by the surest picture and the
 * least sure one. */
#include <math.h>

#include "base/base.h"
#include "commands/classify/classify.h"
#include "commands/common/rows/row_display.h"
#include "report/html.h"
#include "report/page.h"

enum { MAX_SHOWN = 400, N_CLASSES = 3 };

typedef struct class_page {
    pnb__page figures; /* of the result, and all of the page */
    const pnb__classify *run;
    pnb__page_rows rows;
} class_page;

static double first_p(const class_page *p, size_t i)
{
    const pnb_predictions *made = &p->run->images.p;
    return made->probability[i * made->k];
}

static const char *class_of(const class_page *p, size_t i, size_t place)
{
    const pnb_predictions *made = &p->run->images.p;
    return p->run->classes.items[made->top[i * made->k + place]];
}

/* "cat 0.93, dog 0.05": the best classes of a picture. */
static pnb_status put_image(class_page *p, size_t i, const char *css, pnb_error *err)
{
    const pnb_predictions *made = &p->run->images.p;
    char note[300];
    int n = 0;
    for (size_t c = 0; c < PNB_MIN(made->k, (size_t)N_CLASSES); c++)
        n += snprintf(note + n, sizeof note - (size_t)n, "%s%.60s %.2f", c > 0 ? ", " : "",
                      class_of(p, i, c), made->probability[i * made->k + c]);
    return pnb__page_row(&p->figures.out, &p->rows, p->run->images.source.set, i, css, note, err);
}

static pnb_status put_cards(class_page *p, size_t surest, size_t least, pnb_error *err)
{
    pnb__buf *out = &p->figures.out;
    pnb_status status;
    pnb__html_cards_begin(out);
    pnb__html_card(out, "Surest");
    PNB_TRY(put_image(p, surest, "big", err));
    pnb__html_card(out, "Least sure");
    PNB_TRY(put_image(p, least, "big", err));
    pnb__html_cards_end(out);
done:
    return status;
}

static void put_headline(class_page *p, size_t surest, size_t least)
{
    const pnb__page *figures = &p->figures;
    double acc1 = pnb__page_number(figures, "metrics.acc1");
    double low = 100 * pnb__page_number(figures, "metrics.acc1_low"),
           high = 100 * pnb__page_number(figures, "metrics.acc1_high");
    char asked[200], answer[500], interval[64] = "";
    if (isfinite(low) && isfinite(high)) /* of a single picture there is none */
        snprintf(interval, sizeof interval, " [%.1f, %.1f]", low, high);
    snprintf(asked, sizeof asked, "Asked: which of %zu classes is on each of %zu pictures?",
             p->run->classes.n, p->run->images.p.n);
    if (!isnan(acc1))
        snprintf(
            answer, sizeof answer,
            "%.1f%%%s of the pictures with a label are put into its class first; by chance %.1f%% "
            "would.",
            100 * acc1, interval, 100 * pnb__page_number(figures, "metrics.chance"));
    else
        snprintf(answer, sizeof answer,
                 "Probabilities of the first class go from %.2f (%.120s) to %.2f (%.120s).",
                 first_p(p, least), class_of(p, least, 0), first_p(p, surest),
                 class_of(p, surest, 0));
    pnb__html_headline(&p->figures.out, asked, answer);
}

/* Nothing of pictures without labels. */
static void put_figures(pnb__page *page)
{
    static const char *const groups[] = {"group", "n", "acc1", "acc5", NULL};
    const pnb__plot bins = {.title = "Accuracy by the pictures' uncertainty",
                            .table = "uncertainty.bins",
                            .x = {.label = "mean uncertainty, parts of equal size"},
                            .y = {.high = 1, .label = "share put right"},
                            .series = {{.x = "u_mean", .y = "accuracy"}},
                            .n_series = 1};
    pnb__page_section(page, "Does it know?",
                      "Where uncertainty tells, the line falls: pictures that are less certain are "
                      "put right less often.");
    pnb__page_plot(page, &bins);
    pnb__page_section(page, "Groups", "Accuracy with its 95% interval.");
    pnb__page_percents(page, "groups", groups);
    pnb__page_section(page, "Weakest classes", NULL);
    pnb__page_table(page, "weakest_classes", NULL);
}

/* The pictures whose first class is c; an empty class has no section. */
static pnb_status put_class(class_page *p, size_t c, size_t *n_shown, pnb_error *err)
{
    const pnb_predictions *made = &p->run->images.p;
    pnb_status status = PNB_OK;
    bool is_open = false;
    pnb__page_section(&p->figures, p->run->classes.items[c], NULL);
    for (size_t i = 0; status == PNB_OK && i < made->n && *n_shown < MAX_SHOWN; i++) {
        if ((size_t)made->top[i * made->k] != c)
            continue;
        if (!is_open)
            pnb__buf_puts(pnb__page_block(&p->figures), "<div class=\"row\">\n");
        is_open = true;
        ++*n_shown;
        status = put_image(p, i, "", err);
    }
    pnb__buf_puts(&p->figures.out, is_open ? "</div>\n" : "");
    return status;
}

pnb_status pnb__classify_page(const pnb__classify *run, const pnb__result *r, const char *path,
                              pnb_error *err)
{
    class_page p = {.run = run};
    size_t surest = 0, least = 0, n_shown = 0, n = run->images.p.n;
    char subtitle[300];
    pnb_status status = PNB_OK;
    for (size_t i = 1; i < n; i++) {
        surest = first_p(&p, i) > first_p(&p, surest) ? i : surest;
        least = first_p(&p, i) < first_p(&p, least) ? i : least;
    }
    snprintf(subtitle, sizeof subtitle, "%zu pictures%s. Made by penumbra %s", n,
             n > MAX_SHOWN ? ", the first 400 by class are shown" : "", pnb_version());
    pnb__page_begin(&p.figures, r, "Classes", subtitle);
    put_headline(&p, surest, least);
    PNB_TRY(put_cards(&p, surest, least, err));
    pnb__html_contents(&p.figures.out);
    put_figures(&p.figures);
    for (size_t c = 0; status == PNB_OK && c < run->classes.n; c++)
        status = put_class(&p, c, &n_shown, err);
    if (status == PNB_OK)
        status = pnb__page_write(&p.figures, path, err);
done:
    pnb__page_rows_reset(&p.rows);
    pnb__page_reset(&p.figures);
    return status;
}
