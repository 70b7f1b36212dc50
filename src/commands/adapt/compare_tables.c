/* What a comparison of methods found: one line a method, the reasons of those without a line, the
 * scores against what is known, and the same as text, JSON, csv, Markdown and a page.
 *
 * Figures come from the result of eval compare by their keys, so that both say the same. R@1 is
 * tested against the frozen rows on the same resamples. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/adapt/compare.h"
#include "program/result_end.h"
#include "report/page.h"
#include "report/table_text.h"

static const char *const kind_words[] = {"frozen", "control", "method"};

/* ---- reading what was measured ---- */

static bool has_text(const json_t *row, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(row, key));
    return value != NULL && strcmp(value, text) == 0;
}

/* Row of a table for a model, a direction and, where it is not NULL, a figure (sorted by query). */
static const json_t *find(const pnb__result *of, const char *table, const char *model,
                          const char *direction, const char *figure)
{
    const json_t *rows = pnb__result_get(of, table);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *sorted = json_string_value(json_object_get(row, "sorted_by"));
        if (has_text(row, "model", model) && has_text(row, "direction", direction) &&
            (figure == NULL || has_text(row, "figure", figure)) &&
            (sorted == NULL || strcmp(sorted, "hit") != 0))
            return row;
    }
    return NULL;
}

static double number(const json_t *row, const char *key)
{
    return row == NULL ? (double)NAN : pnb__json_real_at(row, key);
}

/* Mean and standard deviation over the seeds of one name; NaN where none has it. */
typedef struct seeds {
    size_t n, n_failed;
    double mean, std;
} seeds;

typedef double (*entry_fn)(const pnb__compare_entry *e);

static seeds over_seeds(const pnb__adapt_comparison *c, const char *name, entry_fn value)
{
    seeds s = {0, 0, 0.0, 0.0};
    for (size_t i = 0; i < c->n; i++) {
        const pnb__compare_entry *e = &c->entry[i];
        if (strcmp(e->name, name) != 0)
            continue;
        if (e->failed != NULL) {
            s.n_failed++;
            continue;
        }
        double x = value(e), before = s.mean;
        s.mean += (x - before) / (double)++s.n; /* Welford */
        s.std += (x - before) * (x - s.mean);
    }
    s.std = s.n > 1 ? sqrt(s.std / (double)(s.n - 1)) : (double)NAN;
    s.mean = s.n > 0 ? s.mean : (double)NAN;
    return s;
}

static double learn_seconds(const pnb__compare_entry *e)
{
    return e->learn_s;
}
static double apply_seconds(const pnb__compare_entry *e)
{
    return e->apply_s;
}
static double known_or_none(const pnb__compare_entry *e, double x)
{
    return e->has_known ? x : (double)NAN;
}
static double spearman(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.spearman);
}
static double log_error(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.log_error);
}
static double slope(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.slope);
}
static double fitted(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.fitted_error);
}
static double direction(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.direction);
}
static double coverage_50(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.coverage[0]);
}
static double coverage_90(const pnb__compare_entry *e)
{
    return known_or_none(e, e->known.coverage[1]);
}

/* ---- tables ---- */

/* Whether entry i is the first of its name. */
static bool is_first(const pnb__adapt_comparison *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->entry[k].name, c->entry[i].name) == 0)
            return false;
    return true;
}

/* Differences are to the first entry that has figures: frozen rows of two widths have none. */
static bool has_frozen(const pnb__adapt_comparison *c)
{
    return c->n > 0 && c->entry[0].kind == PNB__ENTRY_FROZEN && c->entry[0].failed == NULL;
}

static void put_line(const pnb__adapt_comparison *c, const pnb__compare_entry *e, pnb__result *r)
{
    const json_t *i2t = find(c->figures, "comparison", e->name, "image_to_text", "recall@1");
    const json_t *t2i = find(c->figures, "comparison", e->name, "text_to_image", "recall@1");
    const json_t *frozen = has_frozen(c) ? t2i : NULL;
    const json_t *bins = find(c->figures, "uncertainty.orders", e->name, "text_to_image", NULL);
    const json_t *rows = find(c->figures, "uncertainty.orders", e->name, "image_to_text", NULL);
    pnb__result_row(r, "%s %s %s %zu", e->name, kind_words[e->kind], pnb_family_name(e->family),
                    over_seeds(c, e->name, learn_seconds).n);
    pnb__result_row(r, "%.4f %.4f %.4f %.4f %.4f %.4f %.4f", number(i2t, "value"),
                    number(t2i, "value"), number(t2i, "low"), number(t2i, "high"),
                    number(t2i, "std"), number(frozen, "difference"), number(frozen, "p"));
    pnb__result_row(r, "%.3f %.3f %.3f %.3f %.2f %.2f", number(bins, "spearman_s"),
                    number(bins, "r2"), number(bins, "minus_s_r2"), number(rows, "minus_s_r2"),
                    over_seeds(c, e->name, learn_seconds).mean,
                    over_seeds(c, e->name, apply_seconds).mean);
}

static void put_methods(const pnb__adapt_comparison *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"method", "method"},
                                          {"kind", "kind"},
                                          {"family", "captions"},
                                          {"seeds", "seeds"},
                                          {"i2t_r1", "i2t R@1"},
                                          {"t2i_r1", "t2i R@1"},
                                          {"t2i_r1_low", "from"},
                                          {"t2i_r1_high", "to"},
                                          {"t2i_r1_std", "std"},
                                          {"t2i_difference", "to frozen"},
                                          {"p", "p"},
                                          {"spearman_s", "t2i S"},
                                          {"r2", "t2i R\xC2\xB2"},
                                          {"minus_s_r2", "t2i -S R\xC2\xB2"},
                                          {"i2t_minus_s_r2", "i2t -S R\xC2\xB2"},
                                          {"learn_s", "learned in s"},
                                          {"apply_s", "applied in s"}};
    pnb__result_table(r, "methods", "methods", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < c->n; i++)
        if (is_first(c, i) && over_seeds(c, c->entry[i].name, learn_seconds).n > 0)
            put_line(c, &c->entry[i], r);
}

static void put_known(const pnb__adapt_comparison *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"method", "method"},       {"kind", "kind"},
        {"seeds", "seeds"},         {"spearman", "Spearman"},
        {"spearman_std", "std"},    {"log_error", "log error"},
        {"slope", "slope"},         {"fitted_error", "fitted error"},
        {"direction", "direction"}, {"coverage_50", "in 50%"},
        {"coverage_90", "in 90%"}};
    if (c->known == NULL)
        return;
    pnb__result_table(r, "known", "concentration of captions against what is known", columns,
                      PNB_COUNT(columns));
    for (size_t i = 0; i < c->n; i++) {
        const pnb__compare_entry *e = &c->entry[i];
        seeds rank = over_seeds(c, e->name, spearman);
        if (!is_first(c, i) || rank.n == 0)
            continue;
        pnb__result_row(r, "%s %s %zu %.4f %.4f %.4f %.4f %.4f %.4f %.4f %.4f", e->name,
                        kind_words[e->kind], rank.n, rank.mean, rank.std,
                        over_seeds(c, e->name, log_error).mean, over_seeds(c, e->name, slope).mean,
                        over_seeds(c, e->name, fitted).mean, over_seeds(c, e->name, direction).mean,
                        over_seeds(c, e->name, coverage_50).mean,
                        over_seeds(c, e->name, coverage_90).mean);
    }
}

static void put_failures(const pnb__adapt_comparison *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"method", "method"}, {"kind", "kind"}, {"seed", "seed"}, {"reason", "reason"}};
    pnb__result_table(r, "absent", "without figures", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < c->n; i++) {
        const pnb__compare_entry *e = &c->entry[i];
        if (e->failed != NULL)
            pnb__result_row(r, "%s %s %zu %s", e->name, kind_words[e->kind], (size_t)e->seed,
                            e->failed);
    }
}

static void copy_key(const pnb__adapt_comparison *c, const char *key, pnb__result *r)
{
    const json_t *value = pnb__result_get(c->figures, key);
    if (value != NULL)
        pnb__result_value(r, key, json_deep_copy(value));
}

void pnb__compare_put(const pnb__adapt_comparison *c, pnb__result *r)
{
    pnb__result_text(r, "out", "written", c->opts->out);
    pnb__result_int(r, "n_images", "pictures", (int64_t)c->test.images->n);
    pnb__result_int(r, "n_texts", "captions", (int64_t)c->test.texts->n);
    pnb__result_int(r, "n_bins", "bins of uncertainty", (int64_t)c->opts->n_bins);
    pnb__result_int(r, "n_resamples", "resamples", (int64_t)c->opts->n_resamples);
    put_methods(c, r);
    pnb__compare_put_words(r);
    put_known(c, r);
    put_failures(c, r);
    copy_key(c, "baseline", r);
    copy_key(c, "cluster_unit", r);
    copy_key(c, "n_clusters", r);
    copy_key(c, "comparison", r);
    copy_key(c, "uncertainty", r);
}

/* ---- files ---- */

/* Tables of the result up to a NULL into one file; none where all are empty. */
static pnb_status save_tables(const pnb__adapt_comparison *c, const pnb__result *r,
                              const char *name, const char *const *keys, pnb_error *err)
{
    pnb__buf text = {0};
    char *path = pnb__path_join(c->opts->out, name);
    pnb_status status = path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(c->opts->out));
    for (; *keys != NULL; keys++)
        pnb__table_append(r, *keys, pnb__ends_with(name, ".md"), &text);
    if (status == PNB_OK && (text.size > 0 || text.failed))
        status = pnb__buf_write(&text, path, err);
    else
        pnb__buf_reset(&text);
    pnb__free(path);
    return status;
}

static pnb_status save_text(const pnb__adapt_comparison *c, const pnb__result *r, pnb_error *err)
{
    pnb__out_file file = {0};
    char *path = pnb__path_join(c->opts->out, "table.txt");
    pnb_status status =
        path != NULL ? pnb__out_open(&file, path, err) : pnb__fail_nomem(err, strlen(c->opts->out));
    if (status == PNB_OK)
        status = pnb__result_print(r, file.file, false, err);
    if (status == PNB_OK)
        status = pnb__out_commit(&file, err);
    pnb__out_abort(&file);
    pnb__free(path);
    return status;
}

static pnb_status save_page(const pnb__adapt_comparison *c, const pnb__result *r, pnb_error *err)
{
    static const char *const methods[] = {
        "method",         "kind",    "seeds",      "i2t_r1", "t2i_r1",
        "t2i_difference", "p",       "spearman_s", "r2",     "minus_s_r2",
        "i2t_minus_s_r2", "learn_s", NULL};
    pnb__page page;
    char *path = pnb__path_join(c->opts->out, "index.html");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(c->opts->out));
    pnb__page_begin(&page, r, "Methods on frozen embeddings", c->opts->test.texts);
    pnb__page_section(&page, "Methods",
                      "Retrieval by the likelihood or the measure of each method, with 95% "
                      "intervals over resampled pictures with their captions; S and R\xC2\xB2 say "
                      "whether R@1 falls as uncertainty rises. Frozen rows and controls, which "
                      "learned nothing, stand beside them.");
    pnb__page_table(&page, "methods", methods);
    pnb__page_table(&page, "words", NULL);
    pnb__page_section(&page, "Against what is known",
                      "Concentration of each caption against the true one: rank, error of its "
                      "logarithm before and after a line was fitted, and the share of the pictures "
                      "it fits that lie inside its regions.");
    pnb__page_table(&page, "known", NULL);
    pnb__page_section(&page, "Without figures", "What could not be learned or measured, and why.");
    pnb__page_table(&page, "absent", NULL);
    pnb_status status = pnb__page_write(&page, path, err);
    pnb__page_reset(&page);
    pnb__free(path);
    return status;
}

pnb_status pnb__compare_save(pnb__app *app, const pnb__adapt_comparison *c, pnb__result *r)
{
    static const char *const all[] = {"methods", "words", "known", "absent", NULL};
    static const char *const methods[] = {"methods", NULL}, *const known[] = {"known", NULL};
    char *path = pnb__path_join(c->opts->out, "table.json");
    pnb_status status = PNB_OK;
    if (path == NULL)
        return pnb__fail_nomem(&app->err, strlen(c->opts->out));
    PNB_TRY(save_tables(c, r, "table.csv", methods, &app->err));
    PNB_TRY(save_tables(c, r, "known.csv", known, &app->err));
    PNB_TRY(save_tables(c, r, "table.md", all, &app->err));
    PNB_TRY(save_text(c, r, &app->err));
    PNB_TRY(save_page(c, r, &app->err));
    status = pnb__result_save(r, app, path);
done:
    pnb__free(path);
    return status;
}
