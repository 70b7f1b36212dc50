/* eval uncertainty --entropy: does the uncertainty of a row follow what is known of it?
 *
 * Every figure stands beside the same figure of scores that need no training: the log-variances of
 * a head that was never trained, and what can be counted of the rows themselves. Levels are looked
 * at one by one, since a score that tells levels apart and nothing within them looks good over all.
 * Statistics and intervals are eval's (rank_agreement.h); sets, fields and words are here. */
#include "commands/eval/uncertainty/known_entropy.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/rows/row_clusters.h"
#include "commands/common/rows/truth_units.h"
#include "commands/common/set_use.h"
#include "commands/eval/uncertainty/known_rows.h"
#include "commands/eval/uncertainty/nearest.h"
#include "penumbra/rank_agreement.h"
#include "sets/settle.h"

enum { MAX_LEVELS = 8, N_GROUPS = MAX_LEVELS + 1 /* all, then by level */ };

/* What came out of one group of rows. */
typedef struct group_result {
    size_t n;
    pnb_known_split split;
    pnb_rank_agreement score[PNB__MAX_KNOWN_SCORES]; /* as the side's; those that are there */
} group_result;

typedef struct known_run {
    pnb_embeddings *set[2], *control[2]; /* pictures, captions */
    pnb_truth *truth, *backward;
    pnb__known_side side[2];
    bool is_measured[2];
    group_result group[2][N_GROUPS];
    pnb__nearest nearest; /* n 0: not asked for */
    char unit[96];
} known_run;

static const char *const side_words[2] = {"pictures", "captions"};

static void run_reset(known_run *run)
{
    for (int s = 0; s < 2; s++) {
        pnb__known_side_reset(&run->side[s]);
        pnb_embeddings_free(run->set[s]);
        pnb_embeddings_free(run->control[s]);
    }
    pnb_truth_free(run->truth);
    pnb_truth_free(run->backward);
}

/* ---- sets ---- */

static pnb_status load_sets(pnb__app *app, const pnb__known_opts *o, known_run *run)
{
    const char *const path[2] = {o->images, o->texts};
    const char *const control[2] = {o->control_images, o->control_texts};
    pnb_error *err = &app->err;
    pnb_status status = PNB_OK;
    for (int s = 0; s < 2; s++) {
        if (path[s] == NULL)
            continue;
        PNB_TRY(pnb__set_load(&run->set[s], path[s], app));
        if (control[s] != NULL)
            PNB_TRY(pnb__set_load(&run->control[s], control[s], app));
        PNB_TRY(pnb__known_side_init(&run->side[s], run->set[s], err));
    }
    if (o->truth != NULL && run->set[0] != NULL && run->set[1] != NULL) {
        const pnb_truth_rows images = pnb_truth_rows_of(run->set[0]);
        const pnb_truth_rows texts = pnb_truth_rows_of(run->set[1]);
        PNB_TRY(pnb_truth_read(&run->truth, o->truth, &images, &texts, &o->read, NULL, err));
        PNB_TRY(pnb_truth_transpose(&run->backward, run->truth, err));
    }
done:
    return status;
}

static pnb_status check_control(const pnb_embeddings *set, const pnb_embeddings *control,
                                const char *path, pnb_error *err)
{
    if (set->n != control->n)
        return pnb__fail(err, PNB_SHAPE, "%s has %zu rows, the set it controls %zu", path,
                         control->n, set->n);
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(pnb__set_id(set, i), pnb__set_id(control, i)) != 0)
            return pnb__fail(err, PNB_SHAPE, "row %zu of %s is '%.80s', of the set '%.80s'", i,
                             path, pnb__set_id(control, i), pnb__set_id(set, i));
    return PNB_OK;
}

/* Uncertainty of the model and of the untrained head, whatever their families. */
static pnb_status add_uncertainty(pnb__app *app, const pnb__known_opts *o, known_run *run, int s)
{
    pnb__known_side *side = &run->side[s];
    const pnb_embeddings *control = run->control[s];
    const char *path = s == 0 ? o->control_images : o->control_texts;
    pnb_error *err = &app->err;
    pnb_status status;
    side->name[0] = "uncertainty";
    side->name[1] = "untrained head";
    if (o->matches.is_asked)
        PNB_TRY(pnb__known_matches(app, &o->matches, side, run->set[1 - s]));
    else
        PNB_TRY(pnb__row_uncertainty(side->set, PNB_UNCERTAINTY_TRACE, &side->score[0], err));
    if (control != NULL) {
        PNB_TRY(check_control(side->set, control, path, err));
        PNB_TRY(pnb__row_uncertainty(control, PNB_UNCERTAINTY_TRACE, &side->score[1], err));
    }
done:
    return status;
}

/* ---- clusters ---- */

static bool is_looked_at(const pnb__known_opts *o, const known_run *run, int s)
{
    return run->is_measured[s] || (s == 0 && o->class_key != NULL);
}

static pnb_status clusters_by_field(const pnb__known_opts *o, known_run *run, pnb_error *err)
{
    const char *const path[2] = {o->images, o->texts};
    size_t n[2], n_labels;
    char **names = NULL;
    int64_t *label = NULL;
    pnb_status status;
    for (int s = 0; s < 2; s++)
        n[s] = run->set[s] != NULL ? run->set[s]->n : 0;
    PNB_TRY(PNB_ALLOC_ZERO(names, n[0] + n[1], err));
    PNB_TRY(PNB_ALLOC(label, n[0] + n[1], err));
    for (int s = 0; s < 2; s++)
        if (run->set[s] != NULL && is_looked_at(o, run, s))
            PNB_TRY(
                pnb__row_fields(run->set[s], path[s], o->cluster, names + (s > 0 ? n[0] : 0), err));
    PNB_TRY(pnb__label_names(names, n[0] + n[1], label, &n_labels, err));
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; is_looked_at(o, run, s) && i < n[s]; i++) {
            run->side[s].cluster[i] = label[(s > 0 ? n[0] : 0) + i];
            if (run->side[s].cluster[i] < 0)
                PNB_TRY(pnb__fail(err, PNB_NOT_FOUND,
                                  "--cluster %s: row %zu of %s has no such field in its ids file",
                                  o->cluster, i, path[s]));
        }
    snprintf(run->unit, sizeof run->unit, "rows of one \"%s\"", o->cluster);
done:
    for (size_t i = 0; names != NULL && i < n[0] + n[1]; i++)
        pnb__free(names[i]);
    pnb__free(names);
    pnb__free(label);
    return status;
}

static pnb_status find_clusters(const pnb__known_opts *o, known_run *run, pnb_error *err)
{
    if (o->cluster != NULL)
        return clusters_by_field(o, run, err);
    snprintf(run->unit, sizeof run->unit, "row by itself");
    if (run->truth == NULL)
        return PNB_OK;
    return pnb__truth_units(run->truth, run->backward, run->side[0].cluster, run->side[1].cluster,
                            run->unit, sizeof run->unit, err);
}

/* ---- figures ---- */

/* Rows of one group with their values, in arrays of their own. */
typedef struct group_rows {
    double *known, *score[PNB__MAX_KNOWN_SCORES];
    int64_t *cluster;
    size_t n;
} group_rows;

static pnb_status gather(const pnb__known_side *side, int level, group_rows *g, pnb_error *err)
{
    size_t n = side->set->n;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(g->known, n, err));
    PNB_TRY(PNB_ALLOC(g->cluster, n, err));
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->score[k] != NULL)
            PNB_TRY(PNB_ALLOC(g->score[k], n, err));
    for (size_t i = 0; i < n; i++) {
        if (isnan(side->known[i]) || (level >= 0 && side->level[i] != level))
            continue;
        g->known[g->n] = side->known[i];
        g->cluster[g->n] = side->cluster[i];
        for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
            if (side->score[k] != NULL)
                g->score[k][g->n] = side->score[k][i];
        g->n++;
    }
done:
    return status;
}

static void forget(group_result *g)
{
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        for (size_t a = 0; a < PNB_N_AGREEMENTS; a++)
            g->score[k].figure[a] = g->score[k].lead[a] = g->score[k].held =
                (pnb_interval){NAN, NAN, NAN};
}

/* level -1: all rows. A group of one row has no figures. */
static pnb_status measure_group(pnb__app *app, const pnb__known_opts *o,
                                const pnb__known_side *side, int level, group_result *out)
{
    group_rows g = {0};
    const double *scores[PNB__MAX_KNOWN_SCORES];
    pnb_rank_agreement found[PNB__MAX_KNOWN_SCORES];
    size_t n_scores = 0;
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_status status;
    forget(out);
    PNB_TRY(gather(side, level, &g, &app->err));
    out->n = g.n;
    if (g.n < 2)
        goto done;
    boot.n_resamples = o->n_resamples;
    boot.seed = (uint64_t)app->common.seed;
    boot.cluster = g.cluster;
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        if (g.score[k] != NULL)
            scores[n_scores++] = g.score[k];
    const pnb_known_rows rows = {.n = g.n, .known = g.known, .score = scores, .n_scores = n_scores};
    PNB_TRY(pnb_known_split_of(g.known, g.n, &out->split, &app->err));
    PNB_TRY(pnb_rank_agreement_compute(app->ctx, &rows, &boot, found, &app->err));
    for (size_t k = 0, at = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        if (g.score[k] != NULL)
            out->score[k] = found[at++];
done:
    pnb__free(g.known);
    pnb__free(g.cluster);
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        pnb__free(g.score[k]);
    return status;
}

static int n_levels_of(const pnb__known_side *side)
{
    int last = -1;
    for (size_t i = 0; i < side->set->n; i++)
        if (side->level[i] < MAX_LEVELS)
            last = PNB_MAX(last, side->level[i]);
    return last + 1;
}

static pnb_status measure_side(pnb__app *app, const pnb__known_opts *o, known_run *run, int s)
{
    pnb_status status = measure_group(app, o, &run->side[s], -1, &run->group[s][0]);
    int n_levels = n_levels_of(&run->side[s]);
    for (int l = 0; l < n_levels && status == PNB_OK; l++)
        status = measure_group(app, o, &run->side[s], l, &run->group[s][1 + l]);
    return status;
}

/* Fills known[]; the file of labels speaks of pictures alone. */
static pnb_status find_known(pnb__app *app, const pnb__known_opts *o, known_run *run, int s)
{
    pnb__known_side *side = &run->side[s];
    const char *field = s == 0 ? o->image_field : o->text_field;
    pnb_status status = PNB_OK;
    if (s == 0 && o->label_counts != NULL)
        status = pnb__known_from_labels(side, o->label_counts, &app->err);
    else if (field != NULL)
        status = pnb__known_from_field(side, s == 0 ? o->images : o->texts, field, &app->err);
    else
        pnb__known_from_truth(side, run->backward);
    if (status == PNB_OK && side->n_missing > 0)
        pnb__warn(app, "%zu of %zu %s have no \"%s\" and are left out", side->n_missing,
                  side->set->n, side_words[s], side->from);
    return status;
}

static pnb_status find_scores(pnb__app *app, const pnb__known_opts *o, known_run *run, int s)
{
    pnb__known_side *side = &run->side[s];
    pnb_status status = add_uncertainty(app, o, run, s);
    if (status != PNB_OK)
        return status;
    status = s == 0 ? pnb__known_image_controls(app, side, o->image_data)
                    : pnb__known_text_controls(side, &app->err);
    const char *field = s == 0 ? o->control_field : o->text_control_field;
    if (status == PNB_OK && field != NULL)
        status = pnb__known_field_control(side, s == 0 ? o->images : o->texts, field, &app->err);
    return status;
}

static pnb_status measure_all(pnb__app *app, const pnb__known_opts *o, known_run *run)
{
    pnb_status status = PNB_OK;
    for (int s = 0; s < 2; s++) {
        if (run->is_measured[s])
            PNB_TRY(find_known(app, o, run, s));
        if (is_looked_at(o, run, s))
            PNB_TRY(find_scores(app, o, run, s));
        if (run->is_measured[s])
            PNB_TRY(measure_side(app, o, run, s));
    }
    if (o->class_key != NULL)
        status = pnb__nearest_measure(app, &run->side[0], o->images, o->class_key, o->n_resamples,
                                      &run->nearest);
done:
    return status;
}

/* ---- the result ---- */

/* The control with the highest Spearman of all rows; 0: there is none with one. */
static size_t best_control(const pnb__known_side *side, const group_result *g)
{
    size_t best = 0;
    double most = -INFINITY;
    for (size_t k = 1; k < PNB__MAX_KNOWN_SCORES; k++) {
        double value = g->score[k].figure[PNB_AGREEMENT_SPEARMAN].value;
        if (side->score[k] != NULL && value > most) {
            most = value;
            best = k;
        }
    }
    return best;
}

/* "Of 400 pictures the uncertainty follows ... with Spearman 0.46 (0.38 to 0.53), ahead of the best
 * control, smaller file, with 0.12. " */
static void put_side_words(const known_run *run, int s, pnb__buf *text)
{
    const pnb__known_side *side = &run->side[s];
    const group_result *g = &run->group[s][0];
    const pnb_interval *own = &g->score[0].figure[PNB_AGREEMENT_SPEARMAN];
    if (!isfinite(own->value)) {
        pnb__buf_printf(text, "%sOf %zu %s nothing can be said: %s.", text->size > 0 ? " " : "",
                        g->n, side_words[s],
                        g->n < 2
                            ? "two are needed of which something is known"
                            : "their uncertainty or what is known of them is the same for all");
        return;
    }
    pnb__buf_printf(text, "%sOf %zu %s the %s follows what is known with Spearman %.2f",
                    text->size > 0 ? " " : "", g->n, side_words[s], side->name[0], own->value);
    if (isfinite(own->low))
        pnb__buf_printf(text, " (%.2f to %.2f)", own->low, own->high);
    size_t best = best_control(side, g);
    if (best > 0) {
        const pnb_interval *lead = &g->score[best].lead[PNB_AGREEMENT_SPEARMAN];
        const char *how = isnan(lead->low) ? "beside" /* without an interval nothing is claimed */
                          : lead->low > 0  ? "ahead of"
                          : lead->high < 0 ? "behind"
                                           : "not told apart from";
        pnb__buf_printf(text, ", %s the best control, \"%s\", with %.2f", how, side->name[best],
                        g->score[best].figure[PNB_AGREEMENT_SPEARMAN].value);
    }
    if (g->split.most_spearman < 0.995)
        pnb__buf_printf(text, "; %.2f is the most where so many are known to be equal",
                        g->split.most_spearman);
    pnb__buf_puts(text, ".");
}

static void put_headline(const known_run *run, pnb__result *r)
{
    pnb__buf text = {0};
    for (int s = 0; s < 2; s++)
        if (run->is_measured[s])
            put_side_words(run, s, &text);
    if (run->nearest.n > 0)
        pnb__nearest_words(&run->side[0], &run->nearest, &text);
    pnb__result_text(r, "headline", NULL, text.failed ? NULL : text.data);
    pnb__result_note(r, text.failed ? NULL : text.data);
    pnb__buf_reset(&text);
}

static void put_side(const known_run *run, int s, pnb__result *r)
{
    const pnb__known_side *side = &run->side[s];
    const pnb_known_split *split = &run->group[s][0].split;
    pnb__result_begin(r, s == 0 ? "images" : "texts", NULL);
    pnb__result_text(r, "from", NULL, side->from);
    pnb__result_int(r, "n", NULL, (int64_t)run->group[s][0].n);
    pnb__result_int(r, "n_missing", NULL, (int64_t)side->n_missing);
    pnb__result_real(r, "median", NULL, split->median, 6);
    pnb__result_int(r, "n_high", NULL, (int64_t)split->n_high);
    pnb__result_real(r, "most_spearman", NULL, split->most_spearman, 3);
    pnb__result_text(r, "high_is", NULL,
                     split->includes_median ? "at least the median" : "above the median");
    pnb__result_end(r);
}

static void put_rows(const pnb__known_side *side, const group_result *g, const char *word,
                     int level, pnb__result *r)
{
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES && g->n >= 2; k++) {
        const pnb_interval *f = g->score[k].figure, *lead = g->score[k].lead;
        if (side->score[k] == NULL)
            continue;
        pnb__result_cell_text(r, word);
        if (level < 0)
            pnb__result_cell_text(r, "all");
        else
            pnb__result_cell_int(r, level);
        pnb__result_cell_text(r, side->name[k]);
        pnb__result_cell_int(r, (int64_t)g->n);
        for (size_t a = 0; a < PNB_N_AGREEMENTS; a++) {
            pnb__result_cell_real(r, f[a].value, 3);
            pnb__result_cell_real(r, f[a].low, 3);
            pnb__result_cell_real(r, f[a].high, 3);
        }
        pnb__result_cell_real(r, k == 0 ? (double)NAN : lead[PNB_AGREEMENT_SPEARMAN].value, 3);
        pnb__result_cell_real(r, lead[PNB_AGREEMENT_SPEARMAN].low, 3);
        pnb__result_cell_real(r, lead[PNB_AGREEMENT_SPEARMAN].high, 3);
        pnb__result_cell_real(r, g->score[k].held.value, 3);
        pnb__result_cell_real(r, g->score[k].held.low, 3);
        pnb__result_cell_real(r, g->score[k].held.high, 3);
    }
}

static void put_table(const known_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"side", "side"},        {"level", "level"},       {"score", "score"},
        {"n", "rows"},           {"spearman", "Spearman"}, {"spearman_low", "from"},
        {"spearman_high", "to"}, {"kendall", "Kendall"},   {"kendall_low", NULL},
        {"kendall_high", NULL},  {"auroc", "AUROC"},       {"auroc_low", NULL},
        {"auroc_high", NULL},    {"lead", "lead"},         {"lead_low", "from"},
        {"lead_high", "to"},     {"held", "held"},         {"held_low", NULL},
        {"held_high", NULL}};
    pnb__result_table(
        r, "agreement",
        "what is known against scores; lead: Spearman of the uncertainty less that of "
        "a control; held: of the uncertainty where the control is held fixed",
        columns, PNB_COUNT(columns));
    for (int s = 0; s < 2; s++) {
        int n_levels = run->is_measured[s] ? n_levels_of(&run->side[s]) : -1;
        for (int l = -1; l < n_levels; l++)
            put_rows(&run->side[s], &run->group[s][1 + l], side_words[s], l, r);
    }
}

static void put_result(const pnb__known_opts *o, const known_run *run, pnb__result *r)
{
    pnb__result_begin(r, "known_entropy", NULL);
    put_headline(run, r);
    for (int s = 0; s < 2; s++)
        if (run->is_measured[s])
            put_side(run, s, r);
    pnb__result_begin(r, "resampling", NULL);
    pnb__result_int(r, "n_resamples", NULL, (int64_t)o->n_resamples);
    pnb__result_text(r, "unit", NULL, run->unit);
    pnb__result_end(r);
    if (run->is_measured[0] || run->is_measured[1])
        put_table(run, r);
    if (run->nearest.n > 0)
        pnb__nearest_put(&run->side[0], &run->nearest, o->class_key, r);
    pnb__result_note(r, "");
    pnb__result_end(r);
}

static pnb_status run_all(pnb__app *app, const pnb__known_opts *opts, known_run *run)
{
    pnb_status status;
    PNB_TRY(load_sets(app, opts, run));
    run->is_measured[0] = opts->image_field != NULL || opts->label_counts != NULL;
    run->is_measured[1] = run->set[1] != NULL &&
                          (opts->text_field != NULL || (run->truth != NULL && run->is_measured[0]));
    PNB_TRY(find_clusters(opts, run, &app->err));
    status = measure_all(app, opts, run);
done:
    return status;
}

pnb_status pnb__known_measure(pnb__app *app, const pnb__known_opts *opts, pnb__known_found out[2])
{
    known_run *run = pnb__alloc_zero(1, sizeof *run);
    if (run == NULL)
        return pnb__fail_nomem(&app->err, sizeof *run);
    pnb_status status = run_all(app, opts, run);
    for (int s = 0; s < 2 && status == PNB_OK; s++) {
        out[s] = (pnb__known_found){.n = run->is_measured[s] ? run->group[s][0].n : 0};
        memcpy(out[s].score, run->group[s][0].score, sizeof out[s].score);
        for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
            out[s].name[k] = run->side[s].score[k] != NULL ? run->side[s].name[k] : NULL;
    }
    run_reset(run);
    pnb__free(run);
    return status;
}

pnb_status pnb__known_entropy_run(pnb__app *app, const pnb__known_opts *opts, pnb__result *r)
{
    known_run *run = pnb__alloc_zero(1, sizeof *run);
    if (run == NULL)
        return pnb__fail_nomem(&app->err, sizeof *run);
    pnb_status status = run_all(app, opts, run);
    if (status == PNB_OK)
        put_result(opts, run, r);
    run_reset(run);
    pnb__free(run);
    return status;
}
