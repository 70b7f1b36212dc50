/* What adapters and their methods are, as text and as JSON.
 *
 * The sentences are those of src/adapt/adapters.def: a method that joins the list is shown without
 * a change here. info shows an adapter's folder by the same calls. */
#include "adapt/adapter.h"
#include "commands/adapt/adapt.h"
#include "sets/provenance.h"

/* ---- the list of methods ---- */

static json_t *method_json(const pnb_adapter_about *about)
{
    json_t *options = json_array();
    for (size_t i = 0; pnb_adapter_option_at(about, i) != NULL; i++)
        json_array_append_new(options, json_string(pnb_adapter_option_at(about, i)));
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s?,s:b,s:b,s:b,s:o}", "name", about->name,
                     "learns", about->learns, "paper", about->paper, "cost", about->cost, "family",
                     pnb_family_name(about->family), "measure", about->measure, "rows_meet",
                     about->rows_meet, "needs_both_sides", (int)about->needs_both_sides,
                     "needs_pairs", (int)about->needs_pairs, "trains", (int)about->trains,
                     "options", options);
}

static void put_method(const pnb_adapter_about *about, pnb__result *r)
{
    pnb__buf options = {0};
    for (size_t i = 0; pnb_adapter_option_at(about, i) != NULL; i++) {
        pnb__buf_puts(&options, i > 0 ? " --" : "--");
        for (const char *c = pnb_adapter_option_at(about, i); *c != '\0'; c++)
            pnb__buf_putc(&options, *c == '_' ? '-' : *c);
    }
    pnb__result_text(r, NULL, "method", about->name);
    pnb__result_text(r, NULL, "  learns", about->learns);
    pnb__result_text(r, NULL, "  paper", about->paper);
    pnb__result_text(r, NULL, "  needs",
                     about->needs_pairs        ? "images, texts, and which belong together"
                     : about->needs_both_sides ? "images and texts"
                                               : "images, texts or both");
    pnb__result_text(r, NULL, "  two widths", about->rows_meet != NULL ? about->rows_meet : "fit");
    pnb__result_text(r, NULL, "  makes", pnb_family_name(about->family));
    pnb__result_text(r, NULL, "  compared by", about->measure);
    pnb__result_text(r, NULL, "  options", options.size > 0 ? options.data : "none");
    pnb__result_text(r, NULL, "  cost", about->cost);
    pnb__buf_reset(&options);
}

void pnb__adapt_put_methods(pnb__result *r)
{
    json_t *methods = json_array();
    for (size_t i = 0; pnb_adapter_method_at(i) != NULL; i++) {
        json_array_append_new(methods, method_json(pnb_adapter_method_at(i)));
        put_method(pnb_adapter_method_at(i), r);
    }
    pnb__result_value(r, "methods", methods);
    pnb__result_text(r, "ttda", "\nttda", "test-time augmentation learns nothing: embed --ttda N");
}

/* ---- one adapter ---- */

static void put_side(const pnb_adapter_facts *facts, pnb_adapter_side side, pnb__result *r)
{
    bool is_image = side == PNB_ADAPTER_IMAGES;
    char chain[PNB_PROVENANCE_BYTES];
    pnb__result_begin(r, is_image ? "images" : "texts", NULL);
    pnb__result_flag(r, "adapted", NULL, facts->side[side].is_adapted);
    pnb__result_int(r, "n_rows", NULL, (int64_t)facts->side[side].n_rows);
    pnb__result_int(r, "dim", NULL, (int64_t)facts->side[side].dim);
    if (facts->side[side].dim > 0) {
        pnb_provenance_text(facts->side[side].origin, chain, sizeof chain);
        pnb__result_text(r, "provenance", NULL, chain);
    }
    pnb__result_end(r);
    if (!facts->side[side].is_adapted) {
        pnb__result_text(r, NULL, is_image ? "images" : "texts", "left alone");
        return;
    }
    char text[PNB_PROVENANCE_BYTES + 80];
    snprintf(text, sizeof text, "learned from %zu rows of width %zu, of %s",
             facts->side[side].n_rows, facts->side[side].dim, chain);
    pnb__result_text(r, NULL, is_image ? "images" : "texts", text);
}

/* In text "uncertain rare, shrinkage chosen". */
static void put_options(const pnb_adapter *adapter, pnb__result *r)
{
    json_t *options = pnb__adapter_options(adapter), *value;
    pnb__buf text = {0};
    const char *name;
    json_object_foreach(options, name, value)
    {
        pnb__buf_printf(&text, "%s%s ", text.size > 0 ? ", " : "", name);
        if (json_is_null(value))
            pnb__buf_puts(&text, "chosen");
        else if (json_is_string(value))
            pnb__buf_puts(&text, json_string_value(value));
        else
            pnb__json_append_value(&text, value);
    }
    pnb__result_value(r, "options", options);
    pnb__result_text(r, NULL, "options", text.size > 0 && !text.failed ? text.data : "none");
    pnb__buf_reset(&text);
}

void pnb__adapt_put(const pnb_adapter *adapter, pnb__result *r)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(adapter, &facts);
    pnb__result_text(r, "method", "method", facts.about->name);
    pnb__result_text(r, "sha256", "SHA-256", facts.link->sha256);
    pnb__result_text(r, "family", "makes sets of", pnb_family_name(facts.family));
    pnb__result_text(r, "measure", "compared by", facts.measure);
    put_side(&facts, PNB_ADAPTER_IMAGES, r);
    put_side(&facts, PNB_ADAPTER_TEXTS, r);
    put_options(adapter, r);
    pnb__result_begin(r, "figures", NULL);
    for (size_t i = 0; i < facts.n_figures; i++)
        pnb__result_real(r, facts.figures[i].name, NULL, facts.figures[i].value, 6);
    pnb__result_end(r);
    for (size_t i = 0; i < facts.n_figures; i++)
        pnb__result_real(r, NULL, facts.figures[i].name, facts.figures[i].value, 6);
}
