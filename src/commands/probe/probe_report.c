/* Tables of a probe; its page is probe_page.c. Every figure has the control's beside it: what an
 * untrained log-variance head shows as well was not learned.
 *
 * A figure that was not measured is "-" in a table and null in JSON; a control that was not given
 * leaves its columns out altogether. */
#include <math.h>

#include "base/base.h"
#include "commands/probe/probe.h"

/* ---- tables ---- */

/* A figure, then the control's if there is one. */
static void cell_pair(pnb__result *r, double value, const double *control, int digits)
{
    pnb__result_cell_real(r, value, digits);
    if (control != NULL)
        pnb__result_cell_real(r, *control, digits);
}

static void put_curve(const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                      const pnb__probe_curve *control, const char *key, const char *heading,
                      pnb__result *r)
{
    static const pnb__column columns[] = {
        {"share", "share gone"},         {"trace", "uncertainty"},
        {"control_trace", "control"},    {"included", "original inside"},
        {"control_included", "control"}, {"h", "mean H"},
        {"control_h", "control"}};
    static const pnb__column alone[] = {{"share", "share gone"},
                                        {"trace", "uncertainty"},
                                        {"included", "original inside"},
                                        {"h", "mean H"}};
    if (c->n == 0)
        return;
    if (control != NULL)
        pnb__result_table(r, key, heading, columns, PNB_COUNT(columns));
    else
        pnb__result_table(r, key, heading, alone, PNB_COUNT(alone));
    for (size_t s = 0; s < cmd->n_shares; s++) {
        pnb__result_cell_real(r, cmd->share[s], 3);
        cell_pair(r, c->trace[s], control != NULL ? &control->trace[s] : NULL, 6);
        cell_pair(r, c->included[s], control != NULL ? &control->included[s] : NULL, 4);
        cell_pair(r, c->h[s], control != NULL ? &control->h[s] : NULL, 4);
    }
}

void pnb__probe_tests(const pnb__probe_rates *v, pnb__probe_test out[PNB__PROBE_TESTS])
{
    const pnb__probe_test all[PNB__PROBE_TESTS] = {
        {"erased", "picture in its erased copy", v->erased},
        {"half_caption", "caption in itself without half of its words", v->half},
        {"blend_in_both", "mean of two pictures in both", v->blend.in_both},
        {"blend_holds_both", "both pictures in their mean", v->blend.holds_both},
        {"halves_in_both", "half of two pictures in both", v->halves.in_both},
        {"halves_hold_both", "both pictures in their halves", v->halves.holds_both},
        {"other", "picture in another picture (chance)", v->other}};
    for (size_t i = 0; i < PNB__PROBE_TESTS; i++)
        out[i] = all[i];
}

static void put_rates(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"test", "test"}, {"meaning", "H > 0 for"}, {"share", "share"}, {"control", "control"}};
    pnb__probe_test own[PNB__PROBE_TESTS], other[PNB__PROBE_TESTS];
    pnb__probe_tests(&m->rates, own);
    if (c != NULL)
        pnb__probe_tests(&c->rates, other);
    pnb__result_table(r, "inclusion_tests", "inclusion tests (shares of 1)", columns,
                      c != NULL ? 4 : 3);
    for (size_t i = 0; i < PNB__PROBE_TESTS; i++) {
        if (isnan(own[i].share))
            continue;
        pnb__result_row(r, "%s %s", own[i].key, own[i].words);
        cell_pair(r, own[i].share, c != NULL ? &other[i].share : NULL, 4);
    }
}

static void put_traces(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"picture", "picture"}, {"trace", "uncertainty"}, {"control", "control"}};
    static const char *const names[] = {"original", "mean of two", "halves of two"};
    if (m->pictures.n == 0)
        return;
    const double values[] = {m->rates.trace, m->rates.blend_trace, m->rates.halves_trace};
    const double controls[] = {c != NULL ? c->rates.trace : NAN,
                               c != NULL ? c->rates.blend_trace : NAN,
                               c != NULL ? c->rates.halves_trace : NAN};
    pnb__result_table(r, "mixed", "mixed pictures", columns, c != NULL ? 3 : 2);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        pnb__result_cell_text(r, names[i]);
        cell_pair(r, values[i], c != NULL ? &controls[i] : NULL, 6);
    }
}

static void put_levels(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"level", "level"}, {"n", "captions"}, {"trace", "uncertainty"}, {"control", "control"}};
    if (m->n_levels == 0)
        return;
    pnb__result_table(r, "levels", "uncertainty by caption level (0 most general)", columns,
                      c != NULL ? 4 : 3);
    for (size_t l = 0; l < m->n_levels; l++) {
        pnb__result_row(r, "%zu %zu", l, m->level_n[l]);
        cell_pair(r, m->level_mean[l], c != NULL ? &c->level_mean[l] : NULL, 6);
    }
    pnb__result_real(r, "first_above_last", "pairs with level 0 above the last",
                     m->first_above_last, 4);
    if (c != NULL)
        pnb__result_real(r, "control_first_above_last", "the same in the control",
                         c->first_above_last, 4);
}

/* Bins of the two models differ where they cut captions into other tokens: matched by place. */
static void put_lengths(const pnb_length_bin *bins, size_t n, const pnb_length_bin *control,
                        size_t n_control, const char *key, const char *heading, pnb__result *r)
{
    static const pnb__column columns[] = {{"from", "from"},
                                          {"to", "to"},
                                          {"n", "captions"},
                                          {"trace", "uncertainty"},
                                          {"control", "control"}};
    if (n == 0)
        return;
    pnb__result_table(r, key, heading, columns, control != NULL ? 5 : 4);
    for (size_t b = 0; b < n; b++) {
        bool same = control != NULL && b < n_control && control[b].low == bins[b].low &&
                    control[b].high == bins[b].high;
        double other = same ? control[b].mean : (double)NAN;
        pnb__result_row(r, "%zu %zu %zu", bins[b].low, bins[b].high, bins[b].n);
        cell_pair(r, bins[b].mean, control != NULL ? &other : NULL, 6);
    }
}

static void put_correlations(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    if (m->n_words == 0)
        return;
    pnb__result_real(r, "words_spearman", "Spearman, words and uncertainty", m->words_rho, 4);
    pnb__result_real(r, "tokens_spearman", "Spearman, tokens and uncertainty", m->tokens_rho, 4);
    if (c == NULL)
        return;
    pnb__result_real(r, "control_words_spearman", "the same in the control, words", c->words_rho,
                     4);
    pnb__result_real(r, "control_tokens_spearman", "the same in the control, tokens", c->tokens_rho,
                     4);
}

static void put_chains(const pnb__hierarchy_figures *f, const pnb__hierarchy_figures *c,
                       pnb__result *r)
{
    static const pnb__column columns[] = {{"level", "level"},
                                          {"trace", "uncertainty"},
                                          {"control_trace", "control"},
                                          {"uncertain", "above the picture"},
                                          {"control_uncertain", "control"},
                                          {"included", "picture inside"},
                                          {"control_included", "control"}};
    static const pnb__column alone[] = {{"level", "level"},
                                        {"trace", "uncertainty"},
                                        {"uncertain", "above the picture"},
                                        {"included", "picture inside"}};
    if (f->n == 0)
        return;
    pnb__result_table(r, "chains", "chains of pictures (the last level is the picture)",
                      c != NULL ? columns : alone, c != NULL ? 7 : 4);
    for (size_t l = 0; l < f->n_levels; l++) {
        pnb__result_cell_int(r, (int64_t)l);
        cell_pair(r, f->trace[l], c != NULL ? &c->trace[l] : NULL, 6);
        cell_pair(r, f->uncertain[l], c != NULL ? &c->uncertain[l] : NULL, 4);
        cell_pair(r, f->included[l], c != NULL ? &c->included[l] : NULL, 4);
    }
    pnb__result_int(r, "n_chains", "chains", (int64_t)f->n);
}

static void put_probe(const pnb__probe_cmd *cmd, const pnb__probe *m, const pnb__probe *c,
                      pnb__result *r)
{
    pnb__result_text(r, "model", "model", m->name);
    pnb__result_text(r, "control", c != NULL ? "control" : NULL, c != NULL ? c->name : NULL);
    pnb__result_int(r, "n_pictures", m->pictures.n > 0 ? "pictures" : NULL, (int64_t)m->pictures.n);
    pnb__result_int(r, "n_captions", m->captions.n > 0 ? "captions of the curve" : NULL,
                    (int64_t)m->captions.n);
    pnb__result_text(r, "inclusion", NULL, cmd->published ? "published" : "exact");
    put_levels(m, c, r);
    put_lengths(m->words, m->n_words, c != NULL ? c->words : NULL, c != NULL ? c->n_words : 0,
                "words", "uncertainty by number of words", r);
    put_lengths(m->tokens, m->n_tokens, c != NULL ? c->tokens : NULL, c != NULL ? c->n_tokens : 0,
                "tokens", "uncertainty by number of tokens", r);
    put_correlations(m, c, r);
    put_curve(cmd, &m->pictures, c != NULL ? &c->pictures : NULL, "occlusion", "erased pixels", r);
    put_curve(cmd, &m->captions, c != NULL ? &c->captions : NULL, "word_dropping", "dropped words",
              r);
    put_chains(&m->chains, c != NULL ? &c->chains : NULL, r);
    if (m->pictures.n == 0 && m->captions.n == 0)
        return;
    put_traces(m, c, r);
    put_rates(m, c, r);
}

pnb_status pnb__probe_run(pnb__app *app, const pnb__probe_cmd *cmd, pnb__result *r)
{
    pnb__probe model = {0}, control = {0};
    const pnb__probe *beside = cmd->control != NULL ? &control : NULL;
    pnb_status status;
    PNB_TRY(pnb__probe_model(app, cmd, cmd->model, &model));
    if (beside != NULL)
        PNB_TRY(pnb__probe_model(app, cmd, cmd->control, &control));
    put_probe(cmd, &model, beside, r);
    if (cmd->html != NULL) {
        PNB_TRY(pnb__probe_page(cmd, &model, beside, cmd->html, &app->err));
        pnb__say(app, "wrote %s", cmd->html);
    }
done:
    pnb__probe_reset(&model);
    pnb__probe_reset(&control);
    return status;
}
