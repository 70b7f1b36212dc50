/* Runs a traversal and prints the way of each picture: the captions in the order they are met, each
 * with its uncertainty and the number of points that found it.
 *
 * With HierarCaps data the pictures of the file are kept, and the figures stand beside 95%
 * bootstrap intervals over pictures. Without captions given, the file's own are encoded, each text
 * once per row as in the released evaluation. */
#include "commands/traverse/traverse.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/common/rows/row_clusters.h"
#include "commands/traverse/traverse_truth.h"
#include "penumbra/bootstrap.h"
#include "penumbra/truth.h"
#include "penumbra/view.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

typedef struct traverse_run {
    pnb_encoder encoder;
    pnb_hierarcaps *file;
    pnb_embeddings *images, *texts, *null_text;
    pnb_view image_rows, text_rows, null_row;
    pnb__hierarchy_truth truth;
    pnb_traverse_opts opts;
    pnb_traversal ways;
    double *u; /* of the captions */
} traverse_run;

static void reset_run(traverse_run *run)
{
    pnb_view_reset(&run->image_rows);
    pnb_view_reset(&run->text_rows);
    pnb_view_reset(&run->null_row);
    pnb__encoder_reset(&run->encoder);
    pnb_hierarcaps_free(run->file);
    pnb_embeddings_free(run->images);
    pnb_embeddings_free(run->texts);
    pnb_embeddings_free(run->null_text);
    pnb__hierarchy_truth_reset(&run->truth);
    pnb_traversal_reset(&run->ways);
    pnb__free(run->u);
}

/* ---- inputs ---- */

static pnb_status load_texts(pnb__app *app, const pnb__traverse_cmd *cmd, traverse_run *run)
{
    if (pnb__query_given(&cmd->texts))
        return pnb__query_embed(app, &run->encoder, &cmd->texts, &run->texts);
    const pnb__query words = {
        .texts = {(const char **)run->file->text, run->file->n * run->file->n_levels}};
    return pnb__query_embed(app, &run->encoder, &words, &run->texts);
}

static pnb_status load_inputs(pnb__app *app, const pnb__traverse_cmd *cmd, traverse_run *run)
{
    pnb_error *err = &app->err;
    pnb_encoder_opts parts = cmd->parts;
    pnb_status status;
    parts.sides = pnb__query_use(&cmd->images) | pnb__query_use(&cmd->texts);
    if (cmd->truth != NULL)
        PNB_TRY(pnb_hierarcaps_load(&run->file, cmd->truth, err));
    if (cmd->model != NULL) {
        parts.sides |= PNB_ENCODE_TEXTS; /* the null text, if nothing else */
        PNB_TRY(pnb__encoder_open_named(&run->encoder, app, cmd->model, &parts));
    }
    PNB_TRY(pnb__query_embed(app, &run->encoder, &cmd->images, &run->images));
    PNB_TRY(load_texts(app, cmd, run));
    PNB_TRY(pnb_embeddings_check_mix(run->images, run->texts, err));
    status = pnb__row_uncertainty(run->texts, PNB_UNCERTAINTY_TRACE, &run->u, err);
done:
    return status;
}

/* Without --root: the average where inclusion and a model are there, else what is possible. */
static pnb_status choose_root(pnb__app *app, const pnb__traverse_cmd *cmd, traverse_run *run)
{
    bool has_variance = run->image_rows.rows.log_var != NULL && run->text_rows.rows.log_var != NULL;
    pnb_status status = PNB_OK;
    if (run->opts.root == PNB_N_ROOTS) {
        run->opts.root = !has_variance        ? PNB_ROOT_NULL_TEXT
                         : cmd->model == NULL ? PNB_ROOT_INCLUDING
                                              : PNB_ROOT_AVERAGE;
        pnb__say(app, "root: %s", pnb_root_name(run->opts.root));
    }
    if (run->opts.root == PNB_ROOT_INCLUDING)
        return PNB_OK;
    if (cmd->model == NULL)
        return pnb__usage(app, "root '%s' needs --model: it encodes the empty text%s",
                          pnb_root_name(run->opts.root),
                          has_variance ? "; --root including does without" : "");
    PNB_TRY(pnb__embed_null_text(app, &run->encoder, &run->null_text));
    status = pnb_embeddings_check_mix(run->texts, run->null_text, &app->err);
done:
    return status;
}

/* Keeps the pictures that the truth knows. */
static pnb_status apply_truth(pnb__app *app, traverse_run *run)
{
    pnb_embeddings *kept = NULL;
    pnb_status status;
    if (run->file == NULL)
        return PNB_OK;
    PNB_TRY(pnb__hierarchy_truth_match(&run->truth, run->file, run->images, run->texts, &app->err));
    if (run->truth.n_kept < run->file->n)
        pnb__warn(app,
                  "%zu of %zu pictures of the truth are in the picture set; the figures are of "
                  "those",
                  run->truth.n_kept, run->file->n);
    PNB_TRY(
        pnb_embeddings_select(&kept, run->images, run->truth.row, run->truth.n_kept, &app->err));
    pnb_embeddings_free(run->images);
    run->images = kept;
done:
    return status;
}

static pnb_status walk(pnb__app *app, traverse_run *run)
{
    const pnb_rows *null_row = run->null_text != NULL ? &run->null_row.rows : NULL;
    pnb_status status = PNB_OK;
    if (null_row != NULL)
        status = pnb_view_init(&run->null_row, run->null_text, &app->err);
    if (status == PNB_OK)
        status = pnb_traverse(app->ctx, &run->image_rows.rows, &run->text_rows.rows, null_row,
                              &run->opts, &run->ways, &app->err);
    return status;
}

/* ---- result ---- */

/* The shares of one row as doubles, in the order of the table below. */
enum { N_FIGURES = 6 };
static void row_values(const pnb_traversal_row *row, double values[N_FIGURES])
{
    values[0] = row->precision;
    values[1] = row->recall;
    values[2] = row->any;
    values[3] = row->start_true;
    values[4] = row->root_true;
    values[5] = row->root_top;
}

static pnb_status put_intervals(pnb__app *app, const pnb_traversal_row *rows,
                                const pnb__image_clusters *clusters, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"figure", "figure"}, {"value", "value"}, {"low", "95% from"}, {"high", "to"}};
    static const char *const names[N_FIGURES] = {
        "precision", "recall", "any_recall", "recall_at_1", "root_recall_at_1", "root_is_level_0"};
    pnb_bootstrap_opts opts = pnb_bootstrap_opts_default();
    size_t n = clusters->n;
    double *values = NULL, of_row[N_FIGURES];
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(values, n, &app->err));
    opts.seed = (uint64_t)app->common.seed;
    opts.cluster = clusters->label;
    pnb__result_table(r, "figures", "against the true captions (shares of 1)", columns,
                      PNB_COUNT(columns));
    for (size_t f = 0; f < N_FIGURES; f++) {
        pnb_interval interval;
        for (size_t i = 0; i < n; i++) {
            row_values(&rows[i], of_row);
            values[i] = of_row[f];
        }
        PNB_TRY(pnb_bootstrap_mean(values, n, &opts, &interval, &app->err));
        pnb__result_row(r, "%s %.4f %.4f %.4f", names[f], interval.value, interval.low,
                        interval.high);
    }
done:
    pnb__free(values);
    return status;
}

/* Those that the truth names, which are all that is left of the set. */
static pnb_status cluster_images(pnb__app *app, const char *key, const traverse_run *run,
                                 pnb__image_clusters *out)
{
    size_t n = run->images->n;
    size_t *row = pnb__alloc_array(n, sizeof *row);
    if (row == NULL)
        return pnb__fail_nomem(&app->err, n * sizeof *row);
    for (size_t i = 0; i < n; i++)
        row[i] = i;
    pnb_status status =
        pnb__image_clusters_init(out, app, run->images, row, n, key, "picture with its captions");
    pnb__free(row);
    return status;
}

static pnb_status put_figures(pnb__app *app, const pnb__traverse_cmd *cmd, const traverse_run *run,
                              pnb__result *r)
{
    pnb__image_clusters clusters = {0};
    pnb_traversal_figures figures;
    pnb_traversal_row *rows = NULL;
    pnb_status status = PNB_OK;
    if (run->file == NULL)
        return PNB_OK;
    const pnb_traversal_truth truth = {run->texts->n, run->truth.n_kept, run->file->n_levels,
                                       run->truth.label, run->truth.truth};
    PNB_TRY(PNB_ALLOC(rows, run->truth.n_kept, &app->err));
    PNB_TRY(pnb_traversal_score(&run->ways, &truth, rows, &figures, &app->err));
    pnb__result_int(r, "n_levels", "levels", (int64_t)run->file->n_levels);
    pnb__result_real(r, "texts_per_way", "different captions on a way", figures.n_distinct, 1);
    PNB_TRY(cluster_images(app, cmd->cluster, run, &clusters));
    pnb__image_clusters_put(&clusters, r);
    status = put_intervals(app, rows, &clusters, r);
done:
    pnb__image_clusters_reset(&clusters);
    pnb__free(rows);
    return status;
}

static void put_way(const traverse_run *run, size_t i, pnb__result *r)
{
    const int64_t *step = run->ways.step + i * run->ways.n_steps;
    int place = 0;
    for (size_t s = 0; s < run->ways.n_steps;) {
        size_t n = 1, row = (size_t)step[s];
        while (s + n < run->ways.n_steps && step[s + n] == step[s])
            n++;
        pnb__result_row(r, "%s %d %zu %.5f %zu %s", pnb__set_label(run->images, i), ++place, n,
                        run->u[row], row, pnb__set_label(run->texts, row));
        s += n;
    }
}

static void put_roots(const traverse_run *run, size_t n, pnb__result *r)
{
    static const pnb__column columns[] = {{"image", "picture"},
                                          {"score", "score"},
                                          {"including", "caption that includes it most"},
                                          {"root_nearest", "nearest to the root"}};
    pnb__result_table(r, "roots", "roots", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        int64_t including = run->ways.including[i];
        pnb__result_row(r, "%s %.3f", pnb__set_label(run->images, i), run->ways.score[i]);
        pnb__result_cell_text(r, including >= 0 ? pnb__set_label(run->texts, (size_t)including)
                                                : NULL);
        pnb__result_cell_text(r, pnb__set_label(run->texts, (size_t)run->ways.root[i]));
    }
}

static pnb_status put_result(pnb__app *app, const pnb__traverse_cmd *cmd, const traverse_run *run,
                             pnb__result *r)
{
    static const pnb__column columns[] = {{"image", "picture"}, {"place", "place"},
                                          {"points", "points"}, {"uncertainty", "uncertainty"},
                                          {"row", "row"},       {"text", "caption"}};
    size_t n = PNB_MIN(cmd->n_shown, run->ways.n);
    pnb__result_int(r, "n_images", "pictures", (int64_t)run->images->n);
    pnb__result_int(r, "n_texts", "captions", (int64_t)run->texts->n);
    pnb__result_text(r, "root", "root", pnb_root_name(run->opts.root));
    pnb__result_int(r, "n_steps", "points of a way", (int64_t)run->opts.n_steps);
    pnb__result_text(r, "measure", "nearest by", pnb_measure_name(run->opts.measure));
    pnb__result_text(r, "including", NULL, pnb_including_name(run->opts.including));
    pnb__result_flag(r, "stops_before_root", NULL, run->opts.stop_before_root);
    pnb_status status = put_figures(app, cmd, run, r);
    if (n == 0)
        return status;
    pnb__result_table(r, "ways", "from the picture to the root", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++)
        put_way(run, i, r);
    put_roots(run, n, r);
    return status;
}

pnb_status pnb__traverse_run(pnb__app *app, const pnb__traverse_cmd *cmd, pnb__result *r)
{
    traverse_run run = {.opts = cmd->opts};
    pnb_status status;
    PNB_TRY(load_inputs(app, cmd, &run));
    PNB_TRY(apply_truth(app, &run));
    PNB_TRY(pnb_view_init(&run.image_rows, run.images, &app->err));
    PNB_TRY(pnb_view_init(&run.text_rows, run.texts, &app->err));
    PNB_TRY(choose_root(app, cmd, &run));
    PNB_TRY(walk(app, &run));
    status = put_result(app, cmd, &run, r);
done:
    reset_run(&run);
    return status;
}
