/* The page of a probe: its tables as plots, the control dashed beside the model, opened by the
 * inputs whose uncertainty rose most and least.
 *
 * A plot names a table of the result and its columns; nothing is computed here. */
#include <math.h>

#include "base/base.h"
#include "commands/probe/probe.h"
#include "report/html.h"
#include "report/page.h"
#include "report/svg.h"

/* ---- plots ---- */

/* What lies along x; x_to may be NULL. */
typedef struct place {
    const char *table, *x, *x_to, *label;
} place;

/* The model's column with its interval, and the control's. */
static void draw(pnb__page *page, const place *at, const char *title, const pnb__series *model,
                 const char *control, bool is_share)
{
    pnb__plot plot = {
        .title = title,
        .table = at->table,
        .x = {.label = at->label},
        .y = {.high = is_share, .label = is_share ? "share with H > 0" : "mean trace"},
        .is_change = !is_share,
        .series = {*model,
                   {.name = "control", .y = control, .shape = PNB__SHAPE_DASHES, .colour = 5}},
        .n_series = 2};
    for (size_t i = 0; i < plot.n_series; i++) {
        plot.series[i].x = at->x;
        plot.series[i].x_to = at->x_to;
    }
    pnb__page_plot(page, &plot);
}

static const pnb__series trace = {
    .name = "model", .y = "trace", .low = "trace_low", .high = "trace_high"};
static const pnb__series included = {
    .name = "model", .y = "included", .low = "included_low", .high = "included_high"};

static void draw_texts(pnb__page *page)
{
    const place levels = {"levels", "level", NULL, "level (0 most general)"};
    const place words = {"words", "from", "to", "words of the caption"};
    const place tokens = {"tokens", "from", "to", "tokens of the caption"};
    pnb__page_section(page, "Captions",
                      "General and short captions should be less certain. Thin lines are 95% "
                      "intervals of the means.");
    draw(page, &levels, "Uncertainty by caption level", &trace, "control", false);
    draw(page, &words, "Uncertainty by words", &trace, "control", false);
    draw(page, &tokens, "Uncertainty by tokens", &trace, "control", false);
}

static void draw_curve(pnb__page *page, const char *heading, const place *at, const char *n_inputs)
{
    char title[96];
    snprintf(title, sizeof title, "Original inside the changed copy (%.0f)",
             pnb__page_number(page, n_inputs));
    pnb__page_section(page, heading, "Thin lines are 95% intervals over the inputs.");
    draw(page, at, "Uncertainty", &trace, "control_trace", false);
    draw(page, at, title, &included, "control_included", true);
}

static void draw_chains(pnb__page *page)
{
    const place levels = {"chains", "level", NULL, "level (the last one is the picture)"};
    pnb__page_section(page, "Chains of pictures",
                      "Level 0 shows the largest segment alone, each level one more.");
    draw(page, &levels, "Uncertainty by level", &trace, "control_trace", false);
    draw(page, &levels, "Picture inside the level", &included, "control_included", true);
}

/* ---- words ---- */

static void put_inclusion(pnb__page *page)
{
    pnb__page_section(
        page, "What H > 0 means",
        "An embedding is a cloud of points, a Gaussian. H(a in b) compares how well b covers a "
        "with "
        "how well a covers b: above 0, a lies inside b, so b says less and allows more than a. A "
        "picture with a part erased, or a caption with words dropped, allows everything that the "
        "whole did: the whole should lie inside the changed copy, and H be above 0. Of two "
        "pictures that have nothing to do with each other half pass by chance, for H(a in b) is "
        "-H(b in a). A control whose uncertainty was not trained shows what comes from the "
        "means alone.");
    pnb__page_block(page);
}

/* A figure of the test that the headline tells. */
static double of_test(const pnb__page *page, bool of_images, const char *key)
{
    return pnb__page_cell(page, "inclusion_tests", "test", of_images ? "erased" : "half_text", key);
}

static void headline(pnb__page *page, const pnb__probe_cmd *cmd)
{
    bool of_images = pnb__page_number(page, "n_images") > 0;
    double share = of_test(page, of_images, "share"), low, high, control;
    char answer[400];
    int n;
    low = 100 * of_test(page, of_images, "share_low");
    high = 100 * of_test(page, of_images, "share_high");
    control = 100 * of_test(page, of_images, "control");
    if (isnan(share))
        n = snprintf(answer, sizeof answer, "%.0f chains of pictures were measured.",
                     pnb__page_number(page, "n_chains"));
    else
        n = snprintf(answer, sizeof answer,
                     "%.0f%% [%.0f, %.0f] of %.0f %s lie inside their copies with %.0f%% of %s "
                     "gone%s",
                     100 * share, low, high,
                     pnb__page_number(page, of_images ? "n_images" : "n_texts"),
                     of_images ? "pictures" : "captions", of_images ? 100 * cmd->erased : 50.0,
                     of_images ? "the pixels" : "the words", isnan(control) ? "." : "");
    if (!isnan(control) && n > 0)
        snprintf(answer + n, sizeof answer - (size_t)n, "; in the control %.0f%%.", control);
    pnb__html_headline(&page->out,
                       "Asked: does the model grow less certain when something is taken away?",
                       answer);
}

static pnb_status put_example(pnb__buf *out, const pnb__probe_example *e, const char *heading,
                              pnb_error *err)
{
    char before[48], after[48];
    pnb_status status = PNB_OK;
    snprintf(before, sizeof before, "uncertainty %.4g", e->before);
    snprintf(after, sizeof after, "%.4g (%+.1f%%)", e->after, 100 * (e->after / e->before - 1));
    pnb__html_card(out, heading);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    if (e->text != NULL) {
        pnb__buf_puts(out, "<p><q>");
        pnb__html_escape(out, e->text);
        pnb__buf_printf(out, "</q> <span class=\"soft\">%s</span><br><q>", before);
        pnb__html_escape(out, e->changed_text);
        pnb__buf_printf(out, "</q> <span class=\"soft\">%s</span></p>\n", after);
    } else {
        PNB_TRY(pnb__html_shot(out, &e->image, "big", "whole", before, err));
        PNB_TRY(pnb__html_shot(out, &e->changed_image, "big", "changed", after, err));
    }
    pnb__buf_puts(out, "</div>\n");
done:
    return status;
}

static pnb_status put_examples(pnb__buf *out, const pnb__probe *m, pnb_error *err)
{
    pnb_status status;
    if (!m->has_examples)
        return PNB_OK;
    pnb__html_cards_begin(out);
    PNB_TRY(put_example(out, &m->most, "Answers best: the largest rise", err));
    PNB_TRY(put_example(out, &m->least, "Answers worst: the smallest rise", err));
    pnb__html_cards_end(out);
done:
    return status;
}

pnb_status pnb__probe_page(const pnb__probe_cmd *cmd, const pnb__probe *model, const pnb__result *r,
                           pnb_error *err)
{
    static const char *const tests[] = {"meaning", "share", "control", NULL};
    static const char *const contest[] = {
        "meaning",          "n", "by_h",    "control_by_h",    "by_kl",
        "control_by_kl",    "p", "h_auroc", "control_h_auroc", "kl_auroc",
        "control_kl_auroc", NULL};
    pnb__page page;
    pnb_status status;
    pnb__page_begin(&page, r, "Uncertainty of changed inputs", model->name);
    headline(&page, cmd);
    PNB_TRY(put_examples(&page.out, model, err));
    pnb__html_contents(&page.out);
    put_inclusion(&page);
    draw_texts(&page);
    draw_curve(&page, "Erased pixels",
               &(place){"occlusion", "share", NULL, "share of the picture that is erased"},
               "n_images");
    draw_curve(&page, "Dropped words",
               &(place){"word_dropping", "share", NULL, "share of the words that are dropped"},
               "n_texts");
    draw_chains(&page);
    pnb__page_section(&page, "Inclusion tests", "Share with H > 0, with its 95% interval.");
    pnb__page_percents(&page, "inclusion_tests", tests);
    pnb__page_section(&page, "Inclusion against KL",
                      "Which of two says more often what lies in what: H > 0, or KL(1||2) smaller "
                      "than KL(2||1). Both change their sign with the direction, so that of pairs "
                      "with nothing in common half pass. The AUROC tells how well the size parts "
                      "pairs that belong together from others that were changed alike; 0.5 is "
                      "chance. p is of the exact sign test of the pairs that one of the two alone "
                      "judges right.");
    pnb__page_table(&page, "inclusion_against_kl", contest);
    status = pnb__page_write(&page, cmd->html, err);
done:
    pnb__page_reset(&page);
    return status;
}
