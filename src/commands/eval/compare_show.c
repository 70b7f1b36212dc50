/* A comparison of models as tables of the result: every figure of every model with its spread over
 * seeds, its interval and the test against the first model; then how well the bins of uncertainty
 * order R@1. One row is one figure of one model, so that a reader filters instead of parsing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands/eval/eval_compare_internal.h"

static void put_row(const pnb__table *t, const pnb__table_row *row, size_t d, size_t i, bool by_hit,
                    pnb__result *r)
{
    const pnb_figure_intervals *v = by_hit ? &row->by_hit[d] : &row->by_query[d];
    const pnb_figure_test *test = by_hit ? &row->test_hit[d] : &row->test_query[d];
    char name[32];
    bool is_sorted;
    pnb__table_name(t, i, name, &is_sorted);
    pnb__result_row(r, "%s %s %s %s %zu %.4f %.4f %.4f %.4f %.4f %.4f",
                    d == 0 ? "image_to_text" : "text_to_image", name,
                    !is_sorted ? ""
                    : by_hit   ? "hit"
                               : "query",
                    row->name, row->n_seeds, pnb__table_value(&v->value, i),
                    pnb__table_value(by_hit ? &row->std_hit[d] : &row->std_query[d], i),
                    pnb__table_value(&v->low, i), pnb__table_value(&v->high, i),
                    row->has_test ? pnb__table_value(&test->difference, i) : NAN,
                    row->has_test ? pnb__table_value(&test->p, i) : NAN);
}

static void put_rsum(const pnb__table_row *row, pnb__result *r)
{
    pnb__result_row(r, "%s %s %s %s %zu %.4f %.4f %.4f %.4f %.4f %.4f", "both", "rsum", "",
                    row->name, row->n_seeds, row->rsum.value, row->rsum.std, row->rsum.low,
                    row->rsum.high, row->has_test ? row->rsum_test.value : NAN,
                    row->has_test ? row->rsum_test.p : NAN);
}

static void put_coco(const pnb__comparison *c, size_t i, size_t d, pnb__result *r)
{
    for (size_t g = 0; g < c->n_groups && i < c->group[0].n_coco; g++) {
        const pnb__compare_group *own = &c->group[g];
        const pnb_interval *value = &own->coco[i].side[d];
        const pnb__coco_test *test = &own->coco_test[i][d];
        pnb__result_row(r, "%s %s %s %s %zu %.4f %.4f %.4f %.4f %.4f %.4f",
                        d == 0 ? "image_to_text" : "text_to_image", own->coco[i].key, "", own->name,
                        own->n, value->value, own->coco_std[i][d], value->low, value->high,
                        g > 0 ? test->difference.value : (double)NAN,
                        g > 0 ? test->p : (double)NAN);
    }
}

static void put_table(const pnb__comparison *c, const pnb__table *t, pnb__result *r)
{
    static const pnb__column columns[] = {{"direction", "direction"},
                                          {"figure", "figure"},
                                          {"sorted_by", "sorted by"},
                                          {"model", "model"},
                                          {"seeds", "seeds"},
                                          {"value", "value"},
                                          {"std", "std"},
                                          {"low", "from"},
                                          {"high", "to"},
                                          {"difference", "difference"},
                                          {"p", "p"}};
    pnb__result_table(r, "comparison", NULL, columns, PNB_COUNT(columns));
    for (size_t g = 0; g < t->n_rows; g++)
        put_rsum(&t->row[g], r);
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < PNB__N_TABLE_FIGURES; i++) {
            char name[32];
            bool is_sorted;
            if (!pnb__table_has(t, i))
                continue;
            pnb__table_name(t, i, name, &is_sorted);
            for (int by_hit = 0; by_hit < 1 + is_sorted; by_hit++)
                for (size_t g = 0; g < t->n_rows; g++)
                    put_row(t, &t->row[g], d, i, by_hit == 1, r);
        }
    for (size_t i = 0; i < 2 * c->group[0].n_coco; i++)
        put_coco(c, i / 2, i % 2, r);
}

/* ---- bins ---- */

/* How well the bins as asked for order R@1: of each model the mean over its seeds. */
static void put_orders(const pnb__comparison *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"direction", "direction"}, {"model", "model"},  {"seeds", "seeds"},
        {"spearman_s", "S"},        {"r2", "R\xC2\xB2"}, {"minus_s_r2", "-S R\xC2\xB2"}};
    const pnb__retrieval_opts *o = &c->opts->run;
    char heading[96];
    snprintf(heading, sizeof heading, "bins of uncertainty: %s, by the %s",
             pnb_binning_name(o->binning), o->bin_by_hit ? "hit" : "query");
    pnb__result_table(r, "orders", heading, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < 2 * c->n_groups; i++) {
        const pnb__compare_group *g = &c->group[i / 2];
        double s = 0, r2 = 0, minus_s_r2 = 0, n = (double)g->n;
        for (size_t k = 0; k < c->n; k++) {
            const pnb_uncertainty_calibration *bins = &c->member[k].bins[i % 2];
            if (strcmp(c->member[k].name, g->name) != 0)
                continue;
            s += bins->s / n;
            r2 += bins->r2 / n;
            minus_s_r2 += bins->minus_s_r2 / n;
        }
        pnb__result_row(r, "%s %s %zu %.3f %.3f %.3f",
                        i % 2 == 0 ? "image_to_text" : "text_to_image", g->name, g->n, s, r2,
                        minus_s_r2);
    }
}

/* Every model and seed both ways: JSON only, as there are too many rows for a screen. */
static void put_bins(const pnb__comparison *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"direction", NULL}, {"model", NULL},   {"seed", NULL},
                                          {"kind", NULL},      {"bin", NULL},     {"n", NULL},
                                          {"u_mean", NULL},    {"accuracy", NULL}};
    pnb__result_table(r, "bins", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < 2 * c->n; i++) {
        const pnb__compare_member *m = &c->member[i / 2];
        size_t seed = 0;
        for (size_t k = 0; k < i / 2; k++)
            seed += strcmp(c->member[k].name, m->name) == 0;
        for (size_t b = 0; b < m->bins[i % 2].n_bins; b++) {
            const pnb_bin *bin = &m->bins[i % 2].bin[b];
            pnb__result_row(r, "%s %s %zu %s %zu %zu %.5f %.4f",
                            i % 2 == 0 ? "image_to_text" : "text_to_image", m->name, seed,
                            pnb_uncertainty_name(m->uncertainty), bin->index, bin->n, bin->u_mean,
                            bin->accuracy);
        }
    }
}

static void put_uncertainty(const pnb__comparison *c, pnb__result *r)
{
    const pnb__retrieval_opts *o = &c->opts->run;
    pnb__result_begin(r, "uncertainty", NULL);
    pnb__result_text(r, "binning", NULL, pnb_binning_name(o->binning));
    pnb__result_text(r, "bin_by", NULL, o->bin_by_hit ? "hit" : "query");
    put_orders(c, r);
    put_bins(c, r);
    pnb__result_end(r);
}

/* Of all members, or that each has its own. */
static const char *measure_name(const pnb__comparison *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (c->member[i].measure != c->member[0].measure)
            return "of each family";
    return pnb_measure_name(c->member[0].measure);
}

/* What the result calls all models together: "base+ours". */
static char *joined_names(const pnb__comparison *c)
{
    pnb__buf text = {0};
    for (size_t g = 0; g < c->n_groups; g++) {
        pnb__buf_puts(&text, g > 0 ? "+" : "");
        pnb__buf_puts(&text, c->group[g].name);
    }
    char *out = text.failed ? NULL : pnb__strdup(text.data);
    pnb__buf_reset(&text);
    return out;
}

pnb_status pnb__comparison_show(pnb__app *app, const pnb__comparison *c, pnb__result *r)
{
    const pnb__compare_opts *o = c->opts;
    const char *dataset = o->files.dataset;
    const pnb__table t = {dataset, o->run.k,    o->run.n_k,
                          c->row,  c->n_groups, o->run.n_resamples > 0};
    char *names = joined_names(c);
    if (names == NULL)
        return pnb__fail_nomem(&app->err, c->n_groups);
    pnb__result_text(r, "dataset", NULL, dataset[0] != '\0' ? dataset : NULL);
    pnb__result_text(r, "task", NULL, PNB__RETRIEVAL_TASK);
    pnb__result_text(r, "measure", "measure", measure_name(c));
    pnb__result_text(r, "baseline", "compared with", c->row[0].name);
    pnb__result_int(r, "n_resamples", "resamples", (int64_t)o->run.n_resamples);
    pnb__result_text(r, "cluster_unit", "resampled unit", c->member[0].cluster_unit);
    pnb__result_int(r, "n_clusters", "clusters", (int64_t)c->member[0].n_clusters[0]);
    put_table(c, &t, r);
    put_uncertainty(c, r);
    pnb_status status =
        pnb__retrieval_save_table(app, &t, &o->files, names, c->member[0].pretrained, r);
    pnb__free(names);
    return status;
}
