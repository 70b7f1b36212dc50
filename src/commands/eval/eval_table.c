/* Tables of retrieval results for other programs and for papers.
 *
 * csv is long: a line for each model, direction and figure, numbers with 9 digits, empty where a
 * figure is not defined. Markdown is wide: a line for each model and direction; the figures of COCO
 * have a table of their own. */
#include "commands/eval/eval_table.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "io/tables/csv.h"

static const char *const DIRECTIONS[] = {"image_to_text", "text_to_image"};

double pnb__table_value(const pnb_figures *f, size_t i)
{
    return i < PNB_MAX_RECALLS ? f->recall[i] : f->value[i - PNB_MAX_RECALLS];
}

void pnb__table_name(const pnb__table *t, size_t i, char name[32], bool *is_sorted)
{
    size_t f = i - PNB_MAX_RECALLS;
    *is_sorted = i >= PNB_MAX_RECALLS && pnb_figure_is_sorted((pnb_figure)f);
    if (i < PNB_MAX_RECALLS)
        snprintf(name, 32, "recall@%zu", i < t->n_k ? t->k[i] : 0);
    else
        snprintf(name, 32, "%s", pnb_figure_name((pnb_figure)f));
}

bool pnb__table_has(const pnb__table *t, size_t i)
{
    if (i < PNB_MAX_RECALLS)
        return i < t->n_k;
    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t d = 0; d < 2; d++)
            if (!isnan(pnb__table_value(&t->row[r].by_query[d].value, i)))
                return true;
    return false;
}

static pnb_figures no_figures(void)
{
    pnb_figures f;
    for (size_t i = 0; i < PNB_MAX_RECALLS; i++)
        f.recall[i] = (double)NAN;
    for (size_t i = 0; i < PNB_N_FIGURES; i++)
        f.value[i] = (double)NAN;
    return f;
}

pnb__table_row pnb__table_row_of(const pnb__retrieval *run, const char *name)
{
    const pnb__retrieval_side *const sides[] = {&run->i2t, &run->t2i};
    pnb__table_row row = {.name = name,
                          .n_seeds = 1,
                          .rsum = run->rsum,
                          .coco = run->coco,
                          .n_coco = run->n_coco,
                          .cluster_unit = run->cluster_unit};
    for (size_t d = 0; d < 2; d++) {
        row.n_queries[d] = sides[d]->values.query.n;
        row.by_query[d] = sides[d]->by_query;
        row.by_hit[d] = sides[d]->by_hit;
        row.std_query[d] = row.std_hit[d] = no_figures();
        row.n_clusters[d] = run->n_clusters[d];
    }
    return row;
}

/* ---- csv ---- */

static void put_number(pnb__buf *out, double value)
{
    pnb__buf_putc(out, ',');
    if (isfinite(value))
        pnb__buf_printf(out, "%.9g", value);
}

/* What was resampled ends a line. */
static void put_unit(pnb__buf *out, const pnb__table_row *row, size_t d)
{
    pnb__buf_printf(out, ",%zu,", row->n_clusters[d]);
    pnb__csv_put_field(out, row->cluster_unit);
    pnb__buf_putc(out, '\n');
}

static void put_line(pnb__buf *out, const pnb__table *t, const pnb__table_row *row, size_t d,
                     size_t i, bool by_hit)
{
    const pnb_figure_intervals *v = by_hit ? &row->by_hit[d] : &row->by_query[d];
    const pnb_figure_test *test = by_hit ? &row->test_hit[d] : &row->test_query[d];
    char name[32];
    bool is_sorted;
    pnb__table_name(t, i, name, &is_sorted);
    pnb__csv_put_field(out, t->dataset);
    pnb__buf_putc(out, ',');
    pnb__csv_put_field(out, row->name);
    pnb__buf_printf(out, ",%s,%s,%s", DIRECTIONS[d], name,
                    !is_sorted ? ""
                    : by_hit   ? "hit"
                               : "query");
    put_number(out, pnb__table_value(&v->value, i));
    put_number(out, pnb__table_value(&v->low, i));
    put_number(out, pnb__table_value(&v->high, i));
    put_number(out, pnb__table_value(by_hit ? &row->std_hit[d] : &row->std_query[d], i));
    pnb__buf_printf(out, ",%zu,%zu", row->n_seeds, row->n_queries[d]);
    put_number(out, row->has_test ? pnb__table_value(&test->difference, i) : (double)NAN);
    put_number(out, row->has_test ? pnb__table_value(&test->low, i) : (double)NAN);
    put_number(out, row->has_test ? pnb__table_value(&test->high, i) : (double)NAN);
    put_number(out, row->has_test ? pnb__table_value(&test->p, i) : (double)NAN);
    put_unit(out, row, d);
}

static void put_rsum_line(pnb__buf *out, const pnb__table *t, const pnb__table_row *row)
{
    const pnb_rsum *v = &row->rsum, *test = &row->rsum_test;
    const double tested[] = {test->value, test->low, test->high, test->p};
    pnb__csv_put_field(out, t->dataset);
    pnb__buf_putc(out, ',');
    pnb__csv_put_field(out, row->name);
    pnb__buf_puts(out, ",both,rsum,");
    put_number(out, v->value);
    put_number(out, v->low);
    put_number(out, v->high);
    put_number(out, v->std);
    pnb__buf_printf(out, ",%zu,%zu", row->n_seeds, row->n_queries[0] + row->n_queries[1]);
    for (size_t i = 0; i < PNB_COUNT(tested); i++)
        put_number(out, row->has_test ? tested[i] : (double)NAN);
    put_unit(out, row, 0);
}

static void put_coco_line(pnb__buf *out, const pnb__table *t, const pnb__table_row *row, size_t d,
                          size_t i)
{
    const pnb__coco_row *figure = &row->coco[i];
    pnb__csv_put_field(out, t->dataset);
    pnb__buf_putc(out, ',');
    pnb__csv_put_field(out, row->name);
    pnb__buf_printf(out, ",%s,%s,", DIRECTIONS[d], figure->key);
    put_number(out, figure->side[d].value);
    put_number(out, figure->side[d].low);
    put_number(out, figure->side[d].high);
    put_number(out, row->coco_std != NULL ? row->coco_std[i][d] : (double)NAN);
    pnb__buf_printf(out, ",%zu,%zu", row->n_seeds, figure->n_queries[d]);
    const pnb__coco_test none = {{(double)NAN, (double)NAN, (double)NAN}, (double)NAN};
    const pnb__coco_test *test = row->has_test ? &row->coco_test[i][d] : &none;
    put_number(out, test->difference.value);
    put_number(out, test->difference.low);
    put_number(out, test->difference.high);
    put_number(out, test->p);
    put_unit(out, row, d);
}

pnb_status pnb__table_save_csv(const pnb__table *t, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb__buf_puts(
        &out,
        "dataset,model,direction,figure,sorted_by,value,low,high,std,seeds,queries,difference,"
        "difference_low,difference_high,p,clusters,unit\n");
    for (size_t r = 0; r < t->n_rows; r++) {
        put_rsum_line(&out, t, &t->row[r]);
        for (size_t d = 0; d < 2; d++)
            for (size_t i = 0; i < PNB__N_TABLE_FIGURES; i++) {
                char name[32];
                bool is_sorted;
                if (!pnb__table_has(t, i))
                    continue;
                pnb__table_name(t, i, name, &is_sorted);
                put_line(&out, t, &t->row[r], d, i, false);
                if (is_sorted)
                    put_line(&out, t, &t->row[r], d, i, true);
            }
        for (size_t d = 0; d < 2; d++)
            for (size_t i = 0; i < t->row[r].n_coco; i++)
                put_coco_line(&out, t, &t->row[r], d, i);
    }
    return pnb__buf_write(&out, path, err);
}

/* ---- Markdown ---- */

/* Columns behind the recalls. */
static const struct {
    pnb_figure figure;
    int digits;
    double scale;
    const char *heading;
} WIDE[] = {{PNB_FIGURE_MEDIAN_RANK, 0, 1, "median rank"},
            {PNB_FIGURE_R_PRECISION, 4, 1, "R-Prec"},
            {PNB_FIGURE_MAP_AT_R, 4, 1, "mAP@R"},
            {PNB_FIGURE_MINUS_S_R2, 3, 1, "-S R\xC2\xB2"},
            {PNB_FIGURE_QUERY_SPEARMAN, 3, 1, "Spearman"},
            {PNB_FIGURE_AUROC, 3, 1, "AUROC"},
            {PNB_FIGURE_AURC, 3, 1, "AURC"},
            {PNB_FIGURE_AUGRC, 3, 1, "AUGRC"},
            {PNB_FIGURE_ECE, 3, 1, "ECE (plug-in)"},
            {PNB_FIGURE_ECE_DEBIASED, 3, 1, "ECE"}};

/* x to so many digits, without a sign before zeros. */
static double rounded(double x, int digits)
{
    double unit = pow(10.0, digits), whole = round(x * unit);
    return whole == 0.0 ? 0.0 : whole / unit;
}

/* A figure with its interval or its spread over seeds. */
typedef struct cell {
    double value, low, high, std, p;
    double scale;
    int digits;
} cell;

/* 0.5430 [0.5210, 0.5600], or 0.5430 +- 0.0040 over seeds. */
static void put_cell(pnb__buf *out, const pnb__table_row *row, const cell *c)
{
    int digits = c->digits;
    if (isnan(c->value)) {
        pnb__buf_puts(out, " - |");
        return;
    }
    pnb__buf_printf(out, " %.*f", digits, rounded(c->scale * c->value, digits));
    if (row->n_seeds > 1)
        pnb__buf_printf(out, " \xC2\xB1 %.*f", digits, c->scale * c->std);
    else if (!isnan(c->low))
        pnb__buf_printf(out, " [%.*f, %.*f]", digits, rounded(c->scale * c->low, digits), digits,
                        rounded(c->scale * c->high, digits));
    pnb__buf_puts(out, row->has_test && c->p < 0.05 ? "* |" : " |");
}

static void put_figure(pnb__buf *out, const pnb__table_row *row, size_t d, size_t i, double scale,
                       int digits)
{
    const cell c = {.value = pnb__table_value(&row->by_query[d].value, i),
                    .low = pnb__table_value(&row->by_query[d].low, i),
                    .high = pnb__table_value(&row->by_query[d].high, i),
                    .std = pnb__table_value(&row->std_query[d], i),
                    .p = row->has_test ? pnb__table_value(&row->test_query[d].p, i) : (double)NAN,
                    .scale = scale,
                    .digits = digits};
    put_cell(out, row, &c);
}

/* Of both directions: it stands in the second row of a model. */
static void put_rsum(pnb__buf *out, const pnb__table_row *row, size_t d)
{
    const pnb_rsum *v = &row->rsum;
    const cell c = {v->value, v->low, v->high, v->std, row->rsum_test.p, 1, 4};
    if (d == 0)
        pnb__buf_puts(out, " |");
    else
        put_cell(out, row, &c);
}

static void put_name(pnb__buf *out, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '|')
            pnb__buf_putc(out, '\\');
        pnb__buf_putc(out, *name == '\n' ? ' ' : *name);
    }
}

static void put_wide_row(pnb__buf *out, const pnb__table *t, const pnb__table_row *row, size_t d)
{
    pnb__buf_puts(out, "| ");
    put_name(out, row->name);
    pnb__buf_printf(out, " | %s |", d == 0 ? "image to text" : "text to image");
    for (size_t i = 0; i < t->n_k; i++)
        put_figure(out, row, d, i, 1, 4);
    put_rsum(out, row, d);
    for (size_t w = 0; w < PNB_COUNT(WIDE); w++)
        if (pnb__table_has(t, PNB_MAX_RECALLS + WIDE[w].figure))
            put_figure(out, row, d, PNB_MAX_RECALLS + WIDE[w].figure, WIDE[w].scale,
                       WIDE[w].digits);
    pnb__buf_putc(out, '\n');
}

static void put_head(pnb__buf *out, const pnb__table *t)
{
    size_t n_columns = 3 + t->n_k;
    pnb__buf_puts(out, "| model | direction |");
    for (size_t i = 0; i < t->n_k; i++)
        pnb__buf_printf(out, " R@%zu |", t->k[i]);
    pnb__buf_puts(out, " RSUM |");
    for (size_t w = 0; w < PNB_COUNT(WIDE); w++)
        if (pnb__table_has(t, PNB_MAX_RECALLS + WIDE[w].figure)) {
            pnb__buf_printf(out, " %s |", WIDE[w].heading);
            n_columns++;
        }
    pnb__buf_puts(out, "\n|");
    for (size_t c = 0; c < n_columns; c++)
        pnb__buf_puts(out, c < 2 ? "---|" : "---:|");
    pnb__buf_putc(out, '\n');
}

/* The figures of COCO, a line each, below the others. */
static void put_coco(pnb__buf *out, const pnb__table_row *row)
{
    if (row->n_coco == 0)
        return;
    pnb__buf_puts(out, "\n| model | COCO | image to text | text to image |\n|---|---|---:|---:|\n");
    for (size_t i = 0; i < row->n_coco; i++) {
        pnb__buf_puts(out, "| ");
        put_name(out, row->name);
        pnb__buf_printf(out, " | %s |", row->coco[i].label);
        for (size_t d = 0; d < 2; d++) {
            const pnb_interval *v = &row->coco[i].side[d];
            double std = row->coco_std != NULL ? row->coco_std[i][d] : (double)NAN;
            double p = row->has_test ? row->coco_test[i][d].p : (double)NAN;
            const cell c = {v->value, v->low, v->high, std, p, 1, 4};
            put_cell(out, row, &c);
        }
        pnb__buf_putc(out, '\n');
    }
}

static void put_text(pnb__buf *out, const pnb__table *t)
{
    bool has_test = false, has_seeds = false, has_one = false, has_intervals = false;
    for (size_t r = 0; r < t->n_rows; r++) {
        has_test = has_test || (t->row[r].has_test && t->has_intervals);
        has_intervals = t->has_intervals;
        has_seeds = has_seeds || t->row[r].n_seeds > 1;
        has_one = has_one || t->row[r].n_seeds == 1;
    }
    pnb__buf_puts(out, "\nShares are fractions.");
    if (has_one && has_intervals)
        pnb__buf_printf(out,
                        " Brackets: 95%% bootstrap intervals over %zu clusters; a cluster is a %s.",
                        t->row[0].n_clusters[0], t->row[0].cluster_unit);
    if (has_seeds)
        pnb__buf_puts(out, " \xC2\xB1: standard deviation over seeds.");
    if (has_test) {
        pnb__buf_puts(out, " *: differs from ");
        put_name(out, t->row[0].name);
        pnb__buf_puts(out, " with p < 0.05, paired bootstrap of the clusters.");
    }
    pnb__buf_putc(out, '\n');
}

pnb_status pnb__table_save_markdown(const pnb__table *t, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    put_head(&out, t);
    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t d = 0; d < 2; d++)
            put_wide_row(&out, t, &t->row[r], d);
    for (size_t r = 0; r < t->n_rows; r++)
        put_coco(&out, &t->row[r]);
    put_text(&out, t);
    return pnb__buf_write(&out, path, err);
}
