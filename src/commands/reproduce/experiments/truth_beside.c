/* truth-table: each uncertainty beside the best of what needs no training, means over seeds.
 *
 * A stage keeps the figures of every score of its rows under "known"; from these come the lead
 * before the best control and its ends, and from the ends a word that says no more than they do. */
#include "commands/reproduce/experiments/truth_beside.h"

#include <math.h>
#include <string.h>

#include "commands/reproduce/adapters.h"

/* Mean over seeds of the k-th score's value, low end or high end. */
static double over_seeds(const pnb__reproduction *run, size_t stage, const char *side, size_t k,
                         const char *what, size_t end)
{
    double sum = 0.0;
    for (size_t i = 0; i < run->opts->n_seeds; i++) {
        const json_t *known = json_object_get(run->found[stage * run->opts->n_seeds + i], "known");
        const json_t *score = json_array_get(json_object_get(known, side), k);
        const json_t *value = json_array_get(json_object_get(score, what), end);
        sum += json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    return sum / (double)run->opts->n_seeds;
}

static const char *score_name(const pnb__reproduction *run, size_t stage, const char *side,
                              size_t k)
{
    const json_t *known = json_object_get(run->found[stage * run->opts->n_seeds], "known");
    const char *name =
        json_string_value(json_object_get(json_array_get(json_object_get(known, side), k), "name"));
    return name != NULL && strcmp(name, PNB__TRUTH_SHAPES_FIELD) == 0 ? "number of shapes" : name;
}

static void put_three(const pnb__reproduction *run, size_t stage, const char *side, size_t k,
                      const char *what, pnb__result *r)
{
    for (size_t end = 0; end < 3; end++)
        pnb__result_cell_real(r, over_seeds(run, stage, side, k, what, end), 3);
}

static void put_beside(const pnb__reproduction *run, size_t stage, const char *side, pnb__result *r)
{
    size_t best = 0;
    double most = -INFINITY;
    if (isnan(over_seeds(run, stage, side, 0, "rho", 0)))
        return;
    for (size_t k = 1; score_name(run, stage, side, k) != NULL; k++) {
        double rho = over_seeds(run, stage, side, k, "rho", 0);
        if (rho > most) {
            most = rho;
            best = k;
        }
    }
    double low = over_seeds(run, stage, side, best, "lead", 1);
    double high = over_seeds(run, stage, side, best, "lead", 2);
    pnb__result_cell_text(r, run->about->rows[stage].label);
    pnb__result_cell_text(r, side);
    put_three(run, stage, side, 0, "rho", r);
    pnb__result_cell_text(r, best > 0 ? score_name(run, stage, side, best) : "");
    pnb__result_cell_real(r, best > 0 ? most : (double)NAN, 3);
    put_three(run, stage, side, best, "lead", r);
    pnb__result_cell_text(r, low > 0 ? "ahead" : high < 0 ? "behind" : "not told apart");
}

void pnb__truth_beside_put(const pnb__reproduction *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"method", "method"},   {"side", "side"},        {"rho", "\xCF\x81"},
        {"rho_low", "from"},    {"rho_high", "to"},      {"control", "best control"},
        {"control_rho", "its"}, {"lead", "lead"},        {"lead_low", "from"},
        {"lead_high", "to"},    {"verdict", "it is ..."}};
    static const char *const sides[] = {"pictures", "captions"};
    pnb__result_table(r, "beside",
                      "each uncertainty beside the best control: 95% intervals over clusters of "
                      "pictures and captions, means over seeds",
                      columns, PNB_COUNT(columns));
    for (size_t s = 0; s < PNB_COUNT(sides); s++)
        for (size_t k = 0; k < run->n_stages; k++)
            put_beside(run, k, sides[s], r);
    pnb__adapted_put_failed(run, r);
}

void pnb__truth_beside_draw(const pnb__reproduction *run, pnb__page *page)
{
    (void)run;
    pnb__page_section(page, "Beside controls",
                      "Spearman of uncertainty and known entropy with 95% intervals over clusters, "
                      "and its lead before the best of what needs no training.");
    pnb__page_table(page, "beside", NULL);
}
