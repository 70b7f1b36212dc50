/* Tables of a probe; its page is probe_page.c. Every figure has the control's beside it: what an
 * untrained log-variance head shows as well was not learned.
 *
 * A figure that was not measured is "-" in a table and null in JSON; a control that was not given
 * leaves its columns out altogether. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/probe/probe.h"
#include "report/figure_interval.h"

/* ---- tables ---- */

/* Opens a table; without a control its columns are left out. */
static void begin_table(pnb__result *r, const char *key, const char *heading,
                        const pnb__column *all, size_t n_all, bool has_control)
{
    pnb__column columns[PNB__MAX_COLUMNS];
    size_t n = 0;
    for (size_t c = 0; c < n_all; c++)
        if (has_control || strncmp(all[c].key, "control", 7) != 0)
            columns[n++] = all[c];
    pnb__result_table(r, key, heading, columns, n);
}

/* A figure, then the control's if there is one. */
static void cell_pair(pnb__result *r, double value, const double *control, int digits)
{
    pnb__result_cell_real(r, value, digits);
    if (control != NULL)
        pnb__result_cell_real(r, *control, digits);
}

/* The 95% interval of a mean. */
static void cells_around(pnb__result *r, double mean, double half)
{
    pnb__result_cell_real(r, mean - half, 6);
    pnb__result_cell_real(r, mean + half, 6);
}

/* The 95% interval of a share of n inputs. */
static void cells_of_share(pnb__result *r, double share, size_t n)
{
    double low = NAN, high = NAN;
    if (!isnan(share))
        pnb__share_interval(share, (double)n, &low, &high);
    pnb__result_cell_real(r, low, 4);
    pnb__result_cell_real(r, high, 4);
}

static void put_curve(const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                      const pnb__probe_curve *control, const char *key, const char *heading,
                      pnb__result *r)
{
    static const pnb__column columns[] = {{"share", "share gone"},
                                          {"trace", "uncertainty"},
                                          {"control_trace", "control"},
                                          {"included", "original inside"},
                                          {"control_included", "control"},
                                          {"h", "mean H"},
                                          {"control_h", "control"},
                                          {"trace_low", NULL},
                                          {"trace_high", NULL},
                                          {"included_low", NULL},
                                          {"included_high", NULL}};
    if (c->n == 0)
        return;
    begin_table(r, key, heading, columns, PNB_COUNT(columns), control != NULL);
    for (size_t s = 0; s < cmd->n_shares; s++) {
        pnb__result_cell_real(r, cmd->share[s], 3);
        cell_pair(r, c->trace[s], control != NULL ? &control->trace[s] : NULL, 6);
        cell_pair(r, c->included[s], control != NULL ? &control->included[s] : NULL, 4);
        cell_pair(r, c->h[s], control != NULL ? &control->h[s] : NULL, 4);
        cells_around(r, c->trace[s], c->trace_half[s]);
        cells_of_share(r, c->included[s], c->n);
    }
}

/* One of the inclusion tests. */
typedef struct test {
    const char *key, *words;
    double share; /* with H > 0; NaN: it was not made */
} test;
enum { N_TESTS = 7 };

static void tests_of(const pnb__probe_rates *v, test out[N_TESTS])
{
    const test all[N_TESTS] = {
        {"erased", "picture in its erased copy", v->erased},
        {"half_text", "caption in itself without half of its words", v->half},
        {"blend_in_both", "mean of two pictures in both", v->blend.in_both},
        {"blend_holds_both", "both pictures in their mean", v->blend.holds_both},
        {"halves_in_both", "half of two pictures in both", v->halves.in_both},
        {"halves_hold_both", "both pictures in their halves", v->halves.holds_both},
        {"other", "picture in another picture (chance)", v->other}};
    memcpy(out, all, sizeof all);
}

static size_t n_of_test(const pnb__probe *p, size_t i)
{
    return i == 1 ? p->texts.n : p->images.n; /* the second test is the one of captions */
}

static void put_rates(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"test", "test"},      {"meaning", "H > 0 for"},
                                          {"share", "share"},    {"control", "control"},
                                          {"share_low", NULL},   {"share_high", NULL},
                                          {"control_low", NULL}, {"control_high", NULL}};
    test own[N_TESTS], other[N_TESTS];
    tests_of(&m->rates, own);
    if (c != NULL)
        tests_of(&c->rates, other);
    begin_table(r, "inclusion_tests", "inclusion tests (shares of 1)", columns, PNB_COUNT(columns),
                c != NULL);
    for (size_t i = 0; i < N_TESTS; i++) {
        if (isnan(own[i].share))
            continue;
        pnb__result_row(r, "%s %s", own[i].key, own[i].words);
        cell_pair(r, own[i].share, c != NULL ? &other[i].share : NULL, 4);
        cells_of_share(r, own[i].share, n_of_test(m, i));
        if (c != NULL)
            cells_of_share(r, other[i].share, n_of_test(c, i));
    }
}

/* One line of the comparison; `c` NULL without a control. A figure of pairs that were not made, in
 * the control alone, is none. */
static void put_contest(const char *key, const char *words, const pnb_inclusion_contest *m,
                        const pnb_inclusion_contest *c, pnb__result *r)
{
    const double none = (double)NAN;
    bool has = c != NULL && c->n > 0;
    if (m->n == 0)
        return;
    pnb__result_row(r, "%s %s %zu", key, words, m->n);
    cell_pair(r, m->by_h, c != NULL ? (has ? &c->by_h : &none) : NULL, 4);
    cell_pair(r, m->by_kl, c != NULL ? (has ? &c->by_kl : &none) : NULL, 4);
    pnb__result_row(r, "%.4f %.4f %.3g", m->only_h, m->only_kl, m->p);
    cell_pair(r, m->h_auroc, c != NULL ? (has ? &c->h_auroc : &none) : NULL, 4);
    cell_pair(r, m->kl_auroc, c != NULL ? (has ? &c->kl_auroc : &none) : NULL, 4);
    pnb__result_row(r, "%.4f %.4f", m->h_mean, m->kl_mean);
}

/* Does H tell what lies in what better than KL(1||2) - KL(2||1) does? */
static void put_contests(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"test", "test"},
                                          {"meaning", "1 in 2"},
                                          {"n", "pairs"},
                                          {"by_h", "H > 0"},
                                          {"control_by_h", "control"},
                                          {"by_kl", "KL diff. < 0"},
                                          {"control_by_kl", "control"},
                                          {"only_h", "H alone"},
                                          {"only_kl", "KL alone"},
                                          {"p", "p"},
                                          {"h_auroc", "AUROC of H"},
                                          {"control_h_auroc", "control"},
                                          {"kl_auroc", "of KL diff."},
                                          {"control_kl_auroc", "control"},
                                          {"h_mean", NULL},
                                          {"kl_mean", NULL}};
    const pnb__probe_rates *a = &m->rates, *b = c != NULL ? &c->rates : NULL;
    bool has_chains = m->chains.n > 0 && m->chains.contest[0].n > 0;
    if (a->by_erased.n == 0 && a->by_half.n == 0 && !has_chains)
        return;
    begin_table(r, "inclusion_against_kl", "inclusion against KL(1||2) - KL(2||1)", columns,
                PNB_COUNT(columns), c != NULL);
    put_contest("erased", "picture in its erased copy", &a->by_erased,
                b != NULL ? &b->by_erased : NULL, r);
    put_contest("half_text", "caption in itself without half of its words", &a->by_half,
                b != NULL ? &b->by_half : NULL, r);
    for (size_t l = 0; has_chains && l + 1 < m->chains.n_levels; l++) {
        char key[24], words[48];
        snprintf(key, sizeof key, "chain_%zu", l);
        snprintf(words, sizeof words, "picture in level %zu of its chain", l);
        put_contest(key, words, &m->chains.contest[l], c != NULL ? &c->chains.contest[l] : NULL, r);
    }
}

static void put_traces(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"image", "picture"}, {"trace", "uncertainty"}, {"control", "control"}};
    static const char *const names[] = {"original", "mean of two", "halves of two"};
    if (m->images.n == 0)
        return;
    const double values[] = {m->rates.trace, m->rates.blend_trace, m->rates.halves_trace};
    const double controls[] = {c != NULL ? c->rates.trace : NAN,
                               c != NULL ? c->rates.blend_trace : NAN,
                               c != NULL ? c->rates.halves_trace : NAN};
    begin_table(r, "mixed", "mixed pictures", columns, PNB_COUNT(columns), c != NULL);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        pnb__result_cell_text(r, names[i]);
        cell_pair(r, values[i], c != NULL ? &controls[i] : NULL, 6);
    }
}

static void put_levels(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"level", "level"},       {"n", "captions"},
                                          {"trace", "uncertainty"}, {"control", "control"},
                                          {"trace_low", NULL},      {"trace_high", NULL}};
    if (m->n_levels == 0)
        return;
    begin_table(r, "levels", "uncertainty by caption level (0 most general)", columns,
                PNB_COUNT(columns), c != NULL);
    for (size_t l = 0; l < m->n_levels; l++) {
        pnb__result_row(r, "%zu %zu", l, m->level_n[l]);
        cell_pair(r, m->level_mean[l], c != NULL ? &c->level_mean[l] : NULL, 6);
        cells_around(r, m->level_mean[l], m->level_half[l]);
    }
    pnb__result_real(r, "first_above_last", "pairs with level 0 above the last",
                     m->first_above_last, 4);
    if (c != NULL)
        pnb__result_real(r, "control_first_above_last", "the same in the control",
                         c->first_above_last, 4);
}

/* Bins of the two models differ where they cut captions into other tokens: matched by place. `half`
 * of the means' intervals. */
static void put_lengths(const pnb_length_bin *bins, const double *half, size_t n,
                        const pnb_length_bin *control, size_t n_control, const char *key,
                        const char *heading, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"from", "from"},       {"to", "to"},        {"n", "captions"},   {"trace", "uncertainty"},
        {"control", "control"}, {"trace_low", NULL}, {"trace_high", NULL}};
    if (n == 0)
        return;
    begin_table(r, key, heading, columns, PNB_COUNT(columns), control != NULL);
    for (size_t b = 0; b < n; b++) {
        bool same = control != NULL && b < n_control && control[b].low == bins[b].low &&
                    control[b].high == bins[b].high;
        double other = same ? control[b].mean : (double)NAN;
        pnb__result_row(r, "%zu %zu %zu", bins[b].low, bins[b].high, bins[b].n);
        cell_pair(r, bins[b].mean, control != NULL ? &other : NULL, 6);
        cells_around(r, bins[b].mean, half[b]);
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
                                          {"control_included", "control"},
                                          {"included_low", NULL},
                                          {"included_high", NULL}};
    if (f->n == 0)
        return;
    begin_table(r, "chains", "chains of pictures (the last level is the picture)", columns,
                PNB_COUNT(columns), c != NULL);
    for (size_t l = 0; l < f->n_levels; l++) {
        bool is_whole = l + 1 == f->n_levels; /* which is not inside itself */
        double included = is_whole ? (double)NAN : f->included[l];
        double other = is_whole || c == NULL ? (double)NAN : c->included[l];
        pnb__result_cell_int(r, (int64_t)l);
        cell_pair(r, f->trace[l], c != NULL ? &c->trace[l] : NULL, 6);
        cell_pair(r, f->uncertain[l], c != NULL ? &c->uncertain[l] : NULL, 4);
        cell_pair(r, included, c != NULL ? &other : NULL, 4);
        cells_of_share(r, included, f->n);
    }
    pnb__result_int(r, "n_chains", "chains", (int64_t)f->n);
}

static void put_probe(const pnb__probe_cmd *cmd, const pnb__probe *m, const pnb__probe *c,
                      pnb__result *r)
{
    pnb__result_text(r, "model", "model", m->name);
    pnb__result_text(r, "control", c != NULL ? "control" : NULL, c != NULL ? c->name : NULL);
    pnb__result_int(r, "n_images", m->images.n > 0 ? "pictures" : NULL, (int64_t)m->images.n);
    pnb__result_int(r, "n_texts", m->texts.n > 0 ? "captions of the curve" : NULL,
                    (int64_t)m->texts.n);
    pnb__result_text(r, "inclusion", NULL, cmd->published ? "published" : "exact");
    if (m->texts.n > 0)
        pnb__result_text(r, "words_leave", "a dropped word leaves",
                         m->erasure == PNB__WORDS_UNK ? "the unknown word" : "nothing");
    put_levels(m, c, r);
    put_lengths(m->words, m->words_half, m->n_words, c != NULL ? c->words : NULL,
                c != NULL ? c->n_words : 0, "words", "uncertainty by number of words", r);
    put_lengths(m->tokens, m->tokens_half, m->n_tokens, c != NULL ? c->tokens : NULL,
                c != NULL ? c->n_tokens : 0, "tokens", "uncertainty by number of tokens", r);
    put_correlations(m, c, r);
    put_curve(cmd, &m->images, c != NULL ? &c->images : NULL, "occlusion", "erased pixels", r);
    put_curve(cmd, &m->texts, c != NULL ? &c->texts : NULL, "word_dropping", "dropped words", r);
    put_chains(&m->chains, c != NULL ? &c->chains : NULL, r);
    if (m->images.n > 0 || m->texts.n > 0) {
        put_traces(m, c, r);
        put_rates(m, c, r);
    }
    put_contests(m, c, r);
}

pnb_status pnb__probe_run(pnb__app *app, const pnb__probe_cmd *cmd, pnb__result *r)
{
    pnb__probe model = {0}, control = {0};
    pnb__probe_cmd of_control = *cmd;
    const pnb__probe *beside = cmd->control != NULL ? &control : NULL;
    pnb_status status;
    PNB_TRY(pnb__probe_model(app, cmd, cmd->model, &model));
    if (cmd->texts.n > 0)
        of_control.words = model.erasure;
    if (beside != NULL)
        PNB_TRY(pnb__probe_model(app, &of_control, cmd->control, &control));
    put_probe(cmd, &model, beside, r);
    if (cmd->html != NULL) {
        PNB_TRY(pnb__probe_page(cmd, &model, r, &app->err));
        pnb__say(app, "wrote %s", cmd->html);
    }
done:
    pnb__probe_reset(&model);
    pnb__probe_reset(&control);
    return status;
}
