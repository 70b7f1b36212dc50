/* What the tables of every experiment have to be, and the paper's figures by name. */
#ifndef TESTS_COMMANDS_REPRODUCE_EXPERIMENT_H
#define TESTS_COMMANDS_REPRODUCE_EXPERIMENT_H

#include "commands/reproduce/reproduce.h"
#include "tests/prob/support.h"
#include <string.h>

static inline size_t figure_place(const pnb__experiment *x, const char *key)
{
    size_t k = 0;
    while (k < x->n_figures && strcmp(x->figures[k].key, key) != 0)
        k++;
    return k;
}

static inline bool has_row(const pnb__experiment *x, const char *key)
{
    for (size_t i = 0; i < x->n_rows; i++)
        if (strcmp(x->rows[i].key, key) == 0)
            return true;
    return false;
}

/* What the paper prints in a row, of the data named in `where`. */
static inline double paper(const pnb__experiment *x, const char *row, const char *where,
                           const char *figure)
{
    for (size_t l = 0; l < x->n_lines; l++)
        if (strcmp(x->lines[l].row, row) == 0 && strstr(x->lines[l].where, where) != NULL)
            return x->lines[l].value[figure_place(x, figure)];
    fail_msg("%s: no line of %s in %s", x->word, row, where);
    return NAN;
}

/* Rows, lines and claims name each other, values are shares in the paper's unit, and no line of the
 * paper stands there twice. */
static inline void check_tables(const pnb__experiment *x)
{
    assert_in_range(x->n_figures, 1, PNB__MAX_FIGURES);
    for (size_t k = 0; k < x->n_figures; k++)
        assert_int_equal(figure_place(x, x->figures[k].key), k);
    for (size_t l = 0; l < x->n_lines; l++) {
        const pnb__paper_line *line = &x->lines[l];
        assert_true(has_row(x, line->row));
        for (size_t k = 0; k < l; k++)
            assert_false(strcmp(line->row, x->lines[k].row) == 0 &&
                         strcmp(line->where, x->lines[k].where) == 0);
        for (size_t k = 0; k < PNB__MAX_FIGURES; k++) {
            if (k >= x->n_figures && line->value[k] != 0)
                fail_msg("%s %s: more values than figures", x->word, line->row);
            if (line->has_std && line->std[k] < 0)
                fail_msg("%s %s: a negative deviation", x->word, line->row);
        }
    }
    for (size_t i = 0; i < x->n_claims; i++) {
        const pnb__repro_claim *c = &x->claims[i];
        if (!has_row(x, c->row) || !has_row(x, c->than) ||
            figure_place(x, c->figure) == x->n_figures)
            fail_msg("%s: the claim '%s' names what is not there", x->word, c->says);
    }
    assert_non_null(x->stages[0]);
    assert_non_null(x->differs[0]);
    assert_non_null(x->measure);
}

/* The paper says that the first differs from the second by this much. */
static inline void says(const pnb__experiment *x, const char *row, const char *than,
                        const char *where, const char *figure, double difference)
{
    double d = paper(x, row, where, figure) - paper(x, than, where, figure);
    if (!(fabs(d - difference) < 1e-9))
        fail_msg("%s: %s to %s, %s: %g, not %g", x->word, row, than, figure, d, difference);
}

#endif
