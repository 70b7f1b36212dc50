/* R-AUROC: the AUROC of a picture's uncertainty for its nearest other picture being of another
 * class (Kirchhof et al. 2023, URL). AURC and the curve of accuracy over rejected pictures are of
 * the same answers, and the controls of known_controls.c are judged on them as well. */
#include "commands/eval/uncertainty/nearest.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/rows/row_clusters.h"
#include "penumbra/search.h"
#include "penumbra/selective.h"
#include "penumbra/view.h"
#include "sets/set_rows.h"

/* Pictures that have a class, in a set of their own. */
typedef struct class_rows {
    pnb_embeddings *set;
    size_t *row;    /* [n] of the side */
    int64_t *label; /* [n] */
    size_t *of_class;
    size_t n;
} class_rows;

static void class_rows_reset(class_rows *c)
{
    pnb_embeddings_free(c->set);
    pnb__free(c->row);
    pnb__free(c->label);
    pnb__free(c->of_class);
}

static pnb_status find_classes(const pnb__known_side *side, const char *path, const char *key,
                               class_rows *c, pnb_error *err)
{
    size_t n = side->set->n, n_labels = 0;
    char **names = NULL;
    int64_t *label = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(names, n, err));
    PNB_TRY(PNB_ALLOC(label, n, err));
    PNB_TRY(PNB_ALLOC(c->row, n, err));
    PNB_TRY(PNB_ALLOC(c->label, n, err));
    PNB_TRY(pnb__row_fields(side->set, path, key, names, err));
    PNB_TRY(pnb__label_names(names, n, label, &n_labels, err));
    PNB_TRY(PNB_ALLOC_ZERO(c->of_class, n_labels + 1, err));
    for (size_t i = 0; i < n; i++) {
        if (label[i] < 0)
            continue;
        c->row[c->n] = i;
        c->label[c->n++] = label[i];
        c->of_class[label[i]]++;
    }
    if (c->n == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "%s: no row has the field \"%s\" of --class-key",
                          path, key));
    status = pnb_embeddings_select(&c->set, side->set, c->row, c->n, err);
done:
    for (size_t i = 0; names != NULL && i < n; i++)
        pnb__free(names[i]);
    pnb__free(names);
    pnb__free(label);
    return status;
}

/* Answers of the pictures that have somebody to find. */
typedef struct answers {
    size_t *row;        /* [n] of the side */
    int64_t *best_rank; /* [n] 1 right, 2 wrong */
    double *correct, *score;
    int64_t *cluster;
    size_t n;
} answers;

static void answers_reset(answers *a)
{
    pnb__free(a->row);
    pnb__free(a->best_rank);
    pnb__free(a->correct);
    pnb__free(a->score);
    pnb__free(a->cluster);
}

static pnb_status answers_init(answers *a, size_t n, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(PNB_ALLOC(a->row, n, err));
    PNB_TRY(PNB_ALLOC(a->best_rank, n, err));
    PNB_TRY(PNB_ALLOC(a->correct, n, err));
    PNB_TRY(PNB_ALLOC(a->score, n, err));
    status = PNB_ALLOC(a->cluster, n, err);
done:
    return status;
}

/* The first of two hits that is not the picture itself. */
static size_t neighbour_of(const pnb_hits *hits, size_t i)
{
    const int64_t *hit = hits->index + i * hits->k;
    return (size_t)(hit[0] == (int64_t)i ? hit[1] : hit[0]);
}

static pnb_status answer(pnb__app *app, const pnb__known_side *side, const class_rows *c,
                         answers *a, pnb__nearest *out)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_view view = {0};
    pnb_hits hits = {0};
    pnb_status status;
    search.measure = PNB_MEASURE_MEAN;
    search.k = 2;
    PNB_TRY(answers_init(a, c->n, &app->err));
    PNB_TRY(pnb__set_view(&view, c->set, PNB_MEASURE_MEAN, &app->err));
    if (c->n >= 2)
        PNB_TRY(pnb_search(app->ctx, &view.rows, &view.rows, &search, &hits, &app->err));
    for (size_t i = 0; i < c->n; i++) {
        if (c->of_class[c->label[i]] < 2) {
            out->n_alone++;
            continue;
        }
        bool is_right = c->label[neighbour_of(&hits, i)] == c->label[i];
        a->row[a->n] = c->row[i];
        a->best_rank[a->n] = is_right ? 1 : 2;
        a->correct[a->n] = is_right;
        a->cluster[a->n++] = side->cluster[c->row[i]];
        out->right += is_right;
    }
    if (a->n == 0)
        PNB_TRY(pnb__fail(&app->err, PNB_ARG,
                          "no two pictures are of one class: nobody has a neighbour to find"));
    out->n = a->n;
    out->right /= (double)a->n;
done:
    pnb_hits_reset(&hits);
    pnb_view_reset(&view);
    return status;
}

static pnb_status judge(pnb__app *app, const double *score, answers *a, size_t n_resamples,
                        pnb_figure_intervals *figures, double accuracy[PNB__N_REJECTED])
{
    const pnb_query_values values = {
        .n = a->n, .best_rank = a->best_rank, .uncertainty = a->score, .cluster = a->cluster};
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    double coverage[PNB__N_REJECTED], risk[PNB__N_REJECTED];
    pnb_status status;
    boot.n_resamples = n_resamples;
    boot.seed = (uint64_t)app->common.seed;
    for (size_t i = 0; i < a->n; i++)
        a->score[i] = score[a->row[i]];
    PNB_TRY(pnb_figures_bootstrap(app->ctx, &values, 1, NULL, &boot, figures, &app->err));
    PNB_TRY(
        pnb_risk_coverage(a->score, a->correct, a->n, PNB__N_REJECTED, coverage, risk, &app->err));
    for (size_t p = 0; p < PNB__N_REJECTED; p++) /* from nothing rejected on */
        accuracy[p] = 1.0 - risk[PNB__N_REJECTED - 1 - p];
done:
    return status;
}

pnb_status pnb__nearest_measure(pnb__app *app, const pnb__known_side *side, const char *path,
                                const char *key, size_t n_resamples, pnb__nearest *out)
{
    class_rows c = {0};
    answers a = {0};
    pnb_status status;
    *out = (pnb__nearest){0};
    PNB_TRY(find_classes(side, path, key, &c, &app->err));
    out->n_classless = side->set->n - c.n;
    PNB_TRY(answer(app, side, &c, &a, out));
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->score[k] != NULL)
            PNB_TRY(
                judge(app, side->score[k], &a, n_resamples, &out->figures[k], out->accuracy[k]));
done:
    class_rows_reset(&c);
    answers_reset(&a);
    return status;
}

/* ---- the result ---- */

static double auroc_of(const pnb__nearest *n, size_t k)
{
    return n->figures[k].value.value[PNB_FIGURE_AUROC];
}

void pnb__nearest_words(const pnb__known_side *side, const pnb__nearest *n, pnb__buf *text)
{
    size_t best = 0;
    pnb__buf_printf(text,
                    "%sThe nearest other picture is of the same class for %.1f%% of %zu "
                    "pictures",
                    text->size > 0 ? " " : "", 100.0 * n->right, n->n);
    if (!isfinite(auroc_of(n, 0))) {
        pnb__buf_puts(text, "; nothing foretells that.");
        return;
    }
    pnb__buf_printf(text, "; the uncertainty foretells the others with R-AUROC %.3f",
                    auroc_of(n, 0));
    if (isfinite(n->figures[0].low.value[PNB_FIGURE_AUROC]))
        pnb__buf_printf(text, " (%.3f to %.3f)", n->figures[0].low.value[PNB_FIGURE_AUROC],
                        n->figures[0].high.value[PNB_FIGURE_AUROC]);
    for (size_t k = 1; k < PNB__MAX_KNOWN_SCORES; k++)
        if (side->score[k] != NULL && (best == 0 || auroc_of(n, k) > auroc_of(n, best)))
            best = k;
    if (best > 0)
        pnb__buf_printf(text, ", the best control, \"%s\", with %.3f", side->name[best],
                        auroc_of(n, best));
    pnb__buf_puts(text, ".");
}

static void put_scores(const pnb__known_side *side, const pnb__nearest *n, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"score", "score"}, {"r_auroc", "R-AUROC"}, {"r_auroc_low", "from"}, {"r_auroc_high", "to"},
        {"aurc", "AURC"},   {"aurc_low", "from"},   {"aurc_high", "to"},     {"augrc", "AUGRC"}};
    pnb__result_table(r, "scores", "nearest other pictures of another class", columns,
                      PNB_COUNT(columns));
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++) {
        const pnb_figure_intervals *f = &n->figures[k];
        if (side->score[k] != NULL)
            pnb__result_row(r, "%s %.3f %.3f %.3f %.3f %.3f %.3f %.3f", side->name[k],
                            auroc_of(n, k), f->low.value[PNB_FIGURE_AUROC],
                            f->high.value[PNB_FIGURE_AUROC], f->value.value[PNB_FIGURE_AURC],
                            f->low.value[PNB_FIGURE_AURC], f->high.value[PNB_FIGURE_AURC],
                            f->value.value[PNB_FIGURE_AUGRC]);
    }
}

static void put_curves(const pnb__known_side *side, const pnb__nearest *n, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"score", "score"}, {"rejected", "rejected"}, {"accuracy", "of the others right"}};
    pnb__result_table(r, "accuracy_rejection", "accuracy as the highest scores are not answered",
                      columns, PNB_COUNT(columns));
    for (size_t k = 0; k < PNB__MAX_KNOWN_SCORES; k++)
        for (size_t p = 0; side->score[k] != NULL && p < PNB__N_REJECTED; p++)
            pnb__result_row(r, "%s %.2f %.4f", side->name[k], (double)p / PNB__N_REJECTED,
                            n->accuracy[k][p]);
}

void pnb__nearest_put(const pnb__known_side *side, const pnb__nearest *n, const char *key,
                      pnb__result *r)
{
    pnb__result_begin(r, "nearest", NULL);
    pnb__result_text(r, "class_key", NULL, key);
    pnb__result_int(r, "n", NULL, (int64_t)n->n);
    pnb__result_int(r, "n_classless", NULL, (int64_t)n->n_classless);
    pnb__result_int(r, "n_alone", NULL, (int64_t)n->n_alone);
    pnb__result_real(r, "r_at_1", NULL, n->right, 6);
    put_scores(side, n, r);
    put_curves(side, n, r);
    pnb__result_end(r);
}
