/* The table of an experiment: the paper's lines, ours under them as mean and standard deviation
 * over seeds, what the paper's claims come to, and all of it as files in the folder.
 *
 * Figures of the paper are printed with its digits and ours with the same. "figures" has every
 * number, one a line, with Student's 95% interval of the mean over seeds. A claim is a difference
 * of two rows with the same seed: its interval is that of the mean of these differences, so what
 * seeds share is not counted as noise. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/reproduce/reproduce.h"
#include "eval/resample/student.h"
#include "program/result_end.h"
#include "report/table_text.h"

#define HERE "here"
#define INTERVAL 0.95

/* ---- over seeds ---- */

typedef struct over_seeds {
    size_t n;
    double mean, std, low, high; /* NaN without a value; std and the interval with one alone */
} over_seeds;

static over_seeds summarise(const double *value, size_t n)
{
    over_seeds s = {0, 0.0, NAN, NAN, NAN};
    double squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(value[i]))
            continue;
        double before = s.mean;
        s.mean += (value[i] - before) / (double)++s.n; /* Welford */
        squares += (value[i] - before) * (value[i] - s.mean);
    }
    if (s.n == 0)
        s.mean = NAN;
    if (s.n < 2)
        return s;
    double df = (double)(s.n - 1);
    s.std = sqrt(squares / df);
    double half = pnb__student_quantile(0.5 + INTERVAL / 2, df) * s.std / sqrt((double)s.n);
    s.low = s.mean - half;
    s.high = s.mean + half;
    return s;
}

/* Of a row, or of its difference to another where `than` is one. */
static pnb_status over(const pnb__reproduction *run, const char *row, const char *than,
                       const char *figure, over_seeds *out)
{
    double *value = NULL;
    pnb_status status = PNB_ALLOC(value, run->opts->n_seeds, &run->app->err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < run->opts->n_seeds; i++) {
        value[i] = pnb__reproduce_value(run, i, row, figure);
        if (than != NULL)
            value[i] -= pnb__reproduce_value(run, i, than, figure);
    }
    *out = summarise(value, run->opts->n_seeds);
    pnb__free(value);
    return PNB_OK;
}

/* ---- the wide table ---- */

static void put_text(pnb__result *r, double value, double std, int digits)
{
    char text[64] = "";
    if (!isnan(value) && !isnan(std) && digits > 0)
        snprintf(text, sizeof text, "%.*f \xC2\xB1 %.*f", digits, value, digits, std);
    else if (!isnan(value))
        snprintf(text, sizeof text, "%.*f", digits, value);
    pnb__result_cell_text(r, text);
}

static void put_paper_line(const pnb__experiment *x, const pnb__repro_row *row,
                           const pnb__paper_line *line, pnb__result *r)
{
    pnb__result_row(r, "%s %s", row->label, line->where);
    for (size_t k = 0; k < x->n_figures; k++)
        put_text(r, line->value[k], line->has_std ? line->std[k] : (double)NAN,
                 x->figures[k].digits);
}

/* Of rows that were not measured on these data there is none. */
static bool is_measured(const pnb__reproduction *run, const pnb__repro_row *row)
{
    const pnb__experiment *x = run->about;
    for (size_t i = 0; i < run->opts->n_seeds; i++)
        for (size_t k = 0; k < x->n_figures; k++)
            if (!isnan(pnb__reproduce_value(run, i, row->key, x->figures[k].key)))
                return true;
    return false;
}

static pnb_status put_our_line(const pnb__reproduction *run, const pnb__repro_row *row,
                               pnb__result *r)
{
    const pnb__experiment *x = run->about;
    if (!is_measured(run, row))
        return PNB_OK;
    pnb__result_row(r, "%s %s", row->label, HERE);
    for (size_t k = 0; k < x->n_figures; k++) {
        over_seeds s;
        pnb_status status = over(run, row->key, NULL, x->figures[k].key, &s);
        if (status != PNB_OK)
            return status;
        put_text(r, s.mean, s.std, x->figures[k].digits);
    }
    return PNB_OK;
}

static pnb_status put_table(const pnb__reproduction *run, pnb__result *r)
{
    const pnb__experiment *x = run->about;
    pnb__column columns[PNB__MAX_FIGURES + 2] = {{"row", ""}, {"where", "from"}};
    pnb_status status = PNB_OK;
    for (size_t k = 0; k < x->n_figures; k++)
        columns[k + 2] = (pnb__column){x->figures[k].key, x->figures[k].heading};
    pnb__result_table(r, "table", x->paper, columns, x->n_figures + 2);
    for (size_t i = 0; i < x->n_rows && status == PNB_OK; i++) {
        for (size_t l = 0; l < x->n_lines; l++)
            if (strcmp(x->lines[l].row, x->rows[i].key) == 0)
                put_paper_line(x, &x->rows[i], &x->lines[l], r);
        status = put_our_line(run, &x->rows[i], r);
    }
    return status;
}

/* ---- every number ---- */

static void put_number(pnb__result *r, const char *const words[4], const over_seeds *s)
{
    pnb__result_row(r, "%s %s %s %s %.6f %.6f %.6f %.6f %zu", words[0], words[1], words[2],
                    words[3], s->mean, s->std, s->low, s->high, s->n);
}

static void put_paper_numbers(const pnb__experiment *x, const pnb__repro_row *row, pnb__result *r)
{
    for (size_t l = 0; l < x->n_lines; l++)
        for (size_t k = 0; k < x->n_figures; k++) {
            const pnb__paper_line *line = &x->lines[l];
            if (strcmp(line->row, row->key) != 0 || isnan(line->value[k]))
                continue;
            put_number(r, (const char *const[4]){row->key, "paper", line->where, x->figures[k].key},
                       &(over_seeds){0, line->value[k], line->has_std ? line->std[k] : (double)NAN,
                                     NAN, NAN});
        }
}

/* In the JSON and figures.csv only: text has the table. */
static pnb_status put_figures(const pnb__reproduction *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"row", NULL},    {"source", NULL}, {"where", NULL},
                                          {"figure", NULL}, {"value", NULL},  {"std", NULL},
                                          {"low", NULL},    {"high", NULL},   {"n_seeds", NULL}};
    const pnb__experiment *x = run->about;
    pnb__result_table(r, "figures", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < x->n_rows; i++) {
        put_paper_numbers(x, &x->rows[i], r);
        for (size_t k = 0; k < x->n_figures; k++) {
            over_seeds s;
            pnb_status status = over(run, x->rows[i].key, NULL, x->figures[k].key, &s);
            if (status != PNB_OK)
                return status;
            if (s.n > 0)
                put_number(r,
                           (const char *const[4]){x->rows[i].key, HERE, run->data_words,
                                                  x->figures[k].key},
                           &s);
        }
    }
    return PNB_OK;
}

/* ---- claims ---- */

/* The mean over the places of the paper (data sets, say) that have both rows; NaN: it prints none.
 */
static double paper_difference(const pnb__experiment *x, const pnb__repro_claim *claim, size_t k)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t a = 0; a < x->n_lines; a++)
        for (size_t b = 0; b < x->n_lines && strcmp(x->lines[a].row, claim->row) == 0; b++) {
            double difference = x->lines[a].value[k] - x->lines[b].value[k];
            if (strcmp(x->lines[b].row, claim->than) == 0 &&
                strcmp(x->lines[a].where, x->lines[b].where) == 0 && !isnan(difference)) {
                sum += difference;
                n++;
            }
        }
    return n > 0 ? sum / (double)n : (double)NAN;
}

/* What our interval says of the paper's sign; where it prints no figure, its words say more. */
static const char *verdict(double paper, const over_seeds *s)
{
    if (isnan(s->low) || (s->low <= 0 && s->high >= 0))
        return "open: the interval holds 0";
    return !(paper < 0) == (s->mean > 0) ? "as in the paper" : "the other way round";
}

static const pnb__figure *find_figure(const pnb__experiment *x, const char *key, size_t *at)
{
    for (*at = 0; *at < x->n_figures; ++*at)
        if (strcmp(x->figures[*at].key, key) == 0)
            return &x->figures[*at];
    return NULL;
}

static pnb_status put_claim(const pnb__reproduction *run, const pnb__repro_claim *claim,
                            pnb__result *r)
{
    over_seeds s;
    size_t k;
    const pnb__figure *f = find_figure(run->about, claim->figure, &k);
    if (f == NULL)
        return PNB_OK;
    pnb_status status = over(run, claim->row, claim->than, claim->figure, &s);
    if (status != PNB_OK || s.n == 0)
        return status;
    double paper = paper_difference(run->about, claim, k);
    pnb__result_row(r, "%s %s", claim->says, f->heading);
    pnb__result_cell_real(r, paper, f->digits);
    pnb__result_cell_real(r, s.mean, f->digits);
    pnb__result_cell_real(r, s.low, f->digits);
    pnb__result_cell_real(r, s.high, f->digits);
    pnb__result_cell_text(r, s.n < 2 ? "open: one seed" : verdict(paper, &s));
    return PNB_OK;
}

static pnb_status put_claims(const pnb__reproduction *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"claim", "what the paper says"},
                                          {"figure", "figure"},
                                          {"paper", "paper"},
                                          {"difference", "here"},
                                          {"low", "from"},
                                          {"high", "to"},
                                          {"verdict", "so"}};
    pnb_status status = PNB_OK;
    pnb__result_table(r, "claims", "differences, seed by seed, with 95% intervals", columns,
                      PNB_COUNT(columns));
    for (size_t i = 0; i < run->about->n_claims && status == PNB_OK; i++)
        status = put_claim(run, &run->about->claims[i], r);
    return status;
}

/* ---- what it was made of ---- */

static void put_facts(const pnb__reproduction *run, pnb__result *r)
{
    const pnb__reproduce_opts *o = run->opts;
    pnb__result_text(r, "experiment", "experiment", run->about->word);
    pnb__result_text(r, "paper", "paper", run->about->paper);
    pnb__result_text(r, "data", "data", run->data_words);
    pnb__result_int(r, "n_seeds", "seeds", (int64_t)o->n_seeds);
    pnb__result_int(r, "first_seed", NULL, run->app->common.seed);
    pnb__result_int(r, "max_steps", o->n_steps > 0 ? "steps of a training" : NULL, o->n_steps);
    pnb__result_text(r, "program", NULL, run->program);
    pnb__result_text(r, "out", "written", o->out);
}

static void put_differs(const pnb__reproduction *run, pnb__result *r)
{
    const char *const *differs = run->about->differs;
    size_t n = 0;
    pnb__result_heading(r, "what may differ from the paper");
    for (; differs[n] != NULL; n++)
        pnb__result_note(r, differs[n]);
    pnb__result_words(r, "differs", (char *const *)(uintptr_t)differs, n);
}

/* ---- files ---- */

static pnb_status save_tables(const pnb__reproduction *run, const pnb__result *r, const char *name,
                              const char *const *keys)
{
    pnb__buf text = {0};
    char *path = pnb__path_join(run->opts->out, name);
    pnb_status status =
        path != NULL ? PNB_OK : pnb__fail_nomem(&run->app->err, strlen(run->opts->out));
    for (; *keys != NULL; keys++)
        pnb__table_append(r, *keys, pnb__ends_with(name, ".md"), &text);
    if (status == PNB_OK)
        status = pnb__buf_write(&text, path, &run->app->err);
    else
        pnb__buf_reset(&text);
    pnb__free(path);
    return status;
}

static pnb_status save_text(const pnb__reproduction *run, const pnb__result *r)
{
    pnb_error *err = &run->app->err;
    pnb__out_file file = {0};
    char *path = pnb__path_join(run->opts->out, "table.txt");
    pnb_status status = path != NULL ? pnb__out_open(&file, path, err)
                                     : pnb__fail_nomem(err, strlen(run->opts->out));
    if (status == PNB_OK)
        status = pnb__result_print(r, file.file, false, err);
    if (status == PNB_OK)
        status = pnb__out_commit(&file, err);
    pnb__out_abort(&file);
    pnb__free(path);
    return status;
}

static pnb_status save_page(const pnb__reproduction *run, const pnb__result *r)
{
    pnb__page page;
    pnb__buf differs = {0};
    char *path = pnb__path_join(run->opts->out, "index.html");
    if (path == NULL)
        return pnb__fail_nomem(&run->app->err, strlen(run->opts->out));
    for (const char *const *says = run->about->differs; *says != NULL; says++)
        pnb__buf_printf(&differs, "%s ", *says);
    pnb__page_begin(&page, r, run->about->paper, run->data_words);
    pnb__page_section(&page, "Table",
                      "The paper's figures, and under them ours as mean and standard deviation "
                      "over seeds.");
    pnb__page_table(&page, "table", NULL);
    pnb__page_section(&page, "Differences",
                      "Of two rows with the same seed; 95% intervals over seeds.");
    pnb__page_table(&page, "claims", NULL);
    if (run->about->draw != NULL)
        run->about->draw(run, &page);
    pnb__page_section(&page, "What may differ from the paper",
                      differs.failed ? NULL : differs.data);
    (void)pnb__page_block(&page);
    pnb_status status = pnb__page_write(&page, path, &run->app->err);
    pnb__page_reset(&page);
    pnb__buf_reset(&differs);
    pnb__free(path);
    return status;
}

pnb_status pnb__reproduce_show(pnb__reproduction *run, pnb__result *r)
{
    static const char *const figures[] = {"figures", NULL}, *const all[] = {"table", "claims",
                                                                            NULL};
    char *path = pnb__path_join(run->opts->out, "table.json");
    pnb_status status = PNB_OK;
    if (path == NULL)
        return pnb__fail_nomem(&run->app->err, strlen(run->opts->out));
    put_facts(run, r);
    PNB_TRY(put_table(run, r));
    PNB_TRY(put_claims(run, r));
    if (run->about->put != NULL)
        run->about->put(run, r);
    PNB_TRY(put_figures(run, r));
    put_differs(run, r);
    PNB_TRY(save_tables(run, r, "table.csv", figures));
    PNB_TRY(save_tables(run, r, "table.md", all));
    PNB_TRY(save_text(run, r));
    PNB_TRY(save_page(run, r));
    status = pnb__result_save(r, run->app, path);
done:
    pnb__free(path);
    return status;
}
