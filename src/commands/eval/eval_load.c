/* Two sets and the truth between them, as files hold them: what is loaded, checked and kept.
 *
 * Captions of one level, and with a split only the rows that the truth file names, are selected
 * before anything is ranked, so that the gallery is what the figures speak of. What was left out or
 * taken on trust (rows without names in the file's order, means that are not unit) is said. */
#include <math.h>
#include <string.h>

#include "commands/common/set_use.h"
#include "commands/eval/eval_retrieval.h"
#include "io/json/json.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

/* ---- selecting rows ---- */

/* Which rows of one side stay: row_of[i] is the new number, SIZE_MAX for a row left out. */
typedef struct choice {
    size_t *kept, *row_of;
    size_t n, n_kept;
} choice;

static pnb_status choice_init(choice *c, size_t n, pnb_error *err)
{
    *c = (choice){.n = n};
    if (PNB_ALLOC(c->kept, PNB_MAX(n, 1), err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_ALLOC(c->row_of, PNB_MAX(n, 1), err);
}

static void choice_reset(choice *c)
{
    pnb__free(c->kept);
    pnb__free(c->row_of);
}

static void choose(choice *c, size_t row, bool keep)
{
    c->row_of[row] = keep ? c->n_kept : SIZE_MAX;
    if (keep)
        c->kept[c->n_kept++] = row;
}

static pnb_status select_counts(size_t **out, const size_t *counts, const choice *c, pnb_error *err)
{
    if (counts == NULL)
        return PNB_OK;
    if (PNB_ALLOC(*out, c->n_kept, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < c->n_kept; i++)
        (*out)[i] = counts[c->kept[i]];
    return PNB_OK;
}

/* The pairs between kept rows, renumbered. */
static pnb_status select_truth(const pnb_truth *all, const choice *images, const choice *texts,
                               pnb_truth **out, pnb_error *err)
{
    int64_t *pairs = pnb__alloc_array(2 * all->n_pairs, sizeof *pairs);
    size_t n = 0;
    if (pairs == NULL)
        return pnb__fail_nomem(err, 2 * all->n_pairs * sizeof *pairs);
    for (size_t q = 0; q < all->n_queries; q++)
        for (size_t p = all->offset[q]; p < all->offset[q + 1]; p++)
            if (images->row_of[q] != SIZE_MAX && texts->row_of[all->item[p]] != SIZE_MAX) {
                pairs[2 * n] = (int64_t)images->row_of[q];
                pairs[2 * n++ + 1] = (int64_t)texts->row_of[all->item[p]];
            }
    pnb_status status = pnb_truth_create_pairs(out, images->n_kept, texts->n_kept, pairs, n, err);
    pnb__free(pairs);
    if (status == PNB_OK)
        status = select_counts(&(*out)->n_outside, all->n_outside, images, err);
    if (status == PNB_OK)
        status = select_counts(&(*out)->n_outside_items, all->n_outside_items, texts, err);
    return status;
}

static pnb_status replace_set(pnb_embeddings **set, const choice *c, pnb_error *err)
{
    pnb_embeddings *selected = NULL;
    if (c->n_kept == c->n)
        return PNB_OK;
    pnb_status status = pnb_embeddings_select(&selected, *set, c->kept, c->n_kept, err);
    if (status == PNB_OK) {
        pnb_embeddings_free(*set);
        *set = selected;
    }
    return status;
}

static pnb_status apply(pnb__retrieval *run, const choice *images, const choice *texts,
                        pnb_error *err)
{
    pnb_truth *truth = NULL;
    pnb_status status;
    PNB_TRY(select_truth(run->truth, images, texts, &truth, err));
    PNB_TRY(replace_set(&run->images, images, err));
    PNB_TRY(replace_set(&run->texts, texts, err));
    for (size_t i = 0; i < texts->n_kept; i++)
        run->text_level[i] = run->text_level[texts->kept[i]];
    for (size_t i = 0; run->classes.n > 0 && i < texts->n_kept; i++) /* all pictures stay */
        run->classes.text[i] = run->classes.text[texts->kept[i]];
    for (size_t i = 0; i < run->n_karpathy; i++) /* rows that the file names are kept */
        if (run->karpathy_row[i] >= 0)
            run->karpathy_row[i] = (int64_t)images->row_of[run->karpathy_row[i]];
    pnb_truth_free(run->truth);
    run->truth = truth;
    truth = NULL;
done:
    pnb_truth_free(truth);
    return status;
}

/* With a split, rows that the file does not name; with a level, captions of other levels. */
static pnb_status keep_rows(pnb__app *app, const pnb__retrieval_opts *opts,
                            const pnb_truth_report *report, pnb__retrieval *run)
{
    pnb_error *err = &app->err;
    bool by_split = opts->read.split != NULL && report->image_named != NULL;
    choice images = {0}, texts = {0};
    pnb_status status;
    if (!by_split && opts->level < 0)
        return PNB_OK;
    PNB_TRY(choice_init(&images, run->images->n, err));
    PNB_TRY(choice_init(&texts, run->texts->n, err));
    for (size_t i = 0; i < images.n; i++)
        choose(&images, i, !by_split || report->image_named[i]);
    for (size_t i = 0; i < texts.n; i++)
        choose(&texts, i,
               (!by_split || report->text_named[i]) &&
                   (opts->level < 0 || run->text_level[i] == opts->level));
    if (by_split)
        pnb__say(app, "split %s: %zu of %zu pictures and %zu of %zu captions", opts->read.split,
                 images.n_kept, images.n, texts.n_kept, texts.n);
    if (texts.n_kept == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "no caption of level %d among %zu", opts->level,
                          texts.n));
    status = apply(run, &images, &texts, err);
done:
    choice_reset(&images);
    choice_reset(&texts);
    return status;
}

/* ---- truth ---- */

static void say_report(pnb__app *app, const char *path, const pnb_truth_report *r)
{
    if (r->images_by_order)
        pnb__say(app, "%s: pictures have no names and are taken in the order of the file", path);
    if (r->texts_by_order)
        pnb__say(app, "%s: captions have no names and are taken in the order of the file", path);
    if (r->n_absent_images > 0 || r->n_absent_texts > 0)
        pnb__say(app,
                 "%s (%s): %zu of its %zu pictures and %zu of its %zu captions are in no row and "
                 "left out",
                 path, pnb_truth_format_name(r->format), r->n_absent_images, r->n_images,
                 r->n_absent_texts, r->n_texts);
}

/* Few rows of the sets that the file speaks of are those of another split as a rule. */
static void warn_of_few(pnb__app *app, const char *path, const pnb_truth_report *r,
                        const pnb_truth_rows *images, const pnb_truth_rows *texts)
{
    size_t n[2] = {0, 0}, stranger[2] = {0, 0};
    if (r->image_named == NULL || r->text_named == NULL || r->n_images + r->n_texts == 0)
        return;
    for (size_t i = images->n; i-- > 0; n[0] += r->image_named[i])
        stranger[0] = r->image_named[i] ? stranger[0] : i;
    for (size_t i = texts->n; i-- > 0; n[1] += r->text_named[i])
        stranger[1] = r->text_named[i] ? stranger[1] : i;
    for (size_t s = 0; s < 2; s++) {
        const pnb_truth_rows *rows = s == 0 ? images : texts;
        if (2 * n[s] >= rows->n)
            continue;
        const char *id = rows->ids != NULL ? rows->ids[stranger[s]] : NULL;
        pnb__warn(app,
                  "%s speaks of only %zu of the %zu rows of the %s (not of row %zu, '%.80s'): it "
                  "looks like the truth of another split",
                  path, n[s], rows->n, s == 0 ? "pictures" : "captions", stranger[s],
                  id != NULL ? id : "");
        return;
    }
}

static void say_duplicates(pnb__app *app, const char *path, const pnb_truth *truth)
{
    if (truth->n_duplicates > 0)
        pnb__say(app, "%s: %zu pairs stand there more than once and count once", path,
                 truth->n_duplicates);
}

/* Without a file: classes, ECCV's original pairs, or row i and row i. */
static pnb_status load_truth(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run,
                             pnb_truth_report *report)
{
    pnb_error *err = &app->err;
    const pnb_truth_rows images = pnb_truth_rows_of(run->images);
    const pnb_truth_rows texts = pnb_truth_rows_of(run->texts);
    char *original = NULL;
    const char *path = opts->truth;
    pnb_status status = PNB_OK;
    if (opts->class_key != NULL)
        return pnb__retrieval_class_truth(app, opts, run);
    if (path == NULL && opts->eccv != NULL) {
        path = original = pnb__path_join(opts->eccv, "original_image_to_caption.json");
        if (path == NULL)
            return pnb__fail_nomem(err, strlen(opts->eccv));
    }
    if (path != NULL) {
        status = pnb_truth_read(&run->truth, path, &images, &texts, &opts->read, report, err);
        if (status == PNB_OK)
            say_report(app, path, report);
        if (status == PNB_OK && opts->read.split == NULL)
            warn_of_few(app, path, report, &images, &texts);
        if (status == PNB_OK)
            say_duplicates(app, path, run->truth);
        pnb__free(original);
        return status;
    }
    if (images.n != texts.n)
        return pnb__fail(err, PNB_SHAPE,
                         "%zu images and %zu captions without --truth: row i belongs to row i only "
                         "when there are as many; give a pairs file",
                         images.n, texts.n);
    return pnb_truth_create_aligned(&run->truth, images.n, err);
}

static pnb_status load_levels(pnb__retrieval *run, const pnb_truth_report *report, pnb_error *err)
{
    if (PNB_ALLOC(run->text_level, run->texts->n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < run->texts->n; i++) {
        pnb_status status = pnb__row_level(&run->text_level[i], run->texts, i, err);
        if (status != PNB_OK)
            return status;
        if (run->text_level[i] < 0 && report->text_level != NULL)
            run->text_level[i] = report->text_level[i];
    }
    return PNB_OK;
}

/* ---- sets ---- */

pnb_status pnb__retrieval_load(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    pnb_error *err = &app->err;
    pnb_truth_report report = {0};
    pnb_status status;
    PNB_TRY(pnb__set_load(&run->images, opts->images, app));
    PNB_TRY(pnb__set_load(&run->texts, opts->texts, app));
    status = pnb_embeddings_check_mix(run->images, run->texts, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", opts->images, opts->texts);
        goto done;
    }
    PNB_TRY(load_truth(app, opts, run, &report));
    if (report.has_coco_ids) {
        run->karpathy_row = report.image_row;
        run->n_karpathy = report.n_images;
        report.image_row = NULL;
    }
    PNB_TRY(load_levels(run, &report, err));
    PNB_TRY(keep_rows(app, opts, &report, run));
    PNB_TRY(pnb_truth_transpose(&run->backward, run->truth, err));
    PNB_TRY(pnb_view_init(&run->image_view, run->images, err));
    PNB_TRY(pnb_view_init(&run->text_view, run->texts, err));
    run->image_rows = run->image_view.rows;
    run->text_rows = run->text_view.rows;
    run->measure = opts->measure;
    PNB_TRY(pnb__measure_of_sets(&run->measure, run->images, run->texts, err));
    PNB_TRY(
        pnb__measure_settle(&run->measure, run->measure, &run->image_rows, &run->text_rows, err));
    run->measure_opts = pnb_measure_opts_default();
    run->measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb__match_settle(app, &opts->match, run->measure, &run->images->info,
                              &run->texts->info, &run->measure_opts));
    pnb__check_means(app, run->measure, opts->images, &run->image_rows);
    pnb__check_means(app, run->measure, opts->texts, &run->text_rows);
    run->uncertainty = pnb__uncertainty_settle(opts->uncertainty, run->images, run->texts);
    pnb_uncertainty of_rows =
        run->uncertainty == PNB_UNCERTAINTY_COSINE ? PNB__UNCERTAINTY_AUTO : opts->uncertainty;
    PNB_TRY(pnb__row_uncertainty(run->images, of_rows, &run->image_u, err));
    status = pnb__row_uncertainty(run->texts, of_rows, &run->text_u, err);
done:
    pnb_truth_report_reset(&report);
    return status;
}
