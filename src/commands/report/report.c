/* Puts the report together from the sections whose inputs were given, and writes it whole.
 *
 * Everything is measured before the first word, for the page opens with the answer. Two passes over
 * the sets: all caption levels for the views, one level for the retrieval table when asked. The
 * headline is report_headline.c's, the sections are in report_training.c, report_sets.c,
 * report_trust.c, report_classes.c, report_paths.c and report_gallery.c. */
#include "commands/report/report.h"

#include <string.h>

#include "base/base.h"
#include "commands/common/set_use.h"
#include "commands/report/report_internal.h"
#include "report/html.h"

/* Texts that say nothing: the first row is the empty text, the root of all captions; the others are
 * dummy prompts for "none of the above". */
typedef struct null_texts {
    pnb_embeddings *set;
    pnb_view view;
    pnb_rows root, dummies;
} null_texts;

static pnb_status load_null_texts(pnb__app *app, const char *path, const pnb__retrieval *all,
                                  null_texts *out)
{
    pnb_error *err = &app->err;
    pnb_status status;
    *out = (null_texts){0};
    if (path == NULL)
        return PNB_OK;
    PNB_TRY(pnb__set_load(&out->set, path, app));
    status = pnb_embeddings_check_mix(all->texts, out->set, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", path);
        goto done;
    }
    PNB_TRY(pnb_view_init(&out->view, out->set, err));
    out->root = pnb_rows_slice(&out->view.rows, 0, 1);
    out->dummies = pnb_rows_slice(&out->view.rows, 1, out->set->n - 1);
done:
    return status;
}

/* What can be acted on: classes, rejection, probabilities, the way to the root. */
static pnb_status add_uses(pnb__report *r)
{
    null_texts nothing;
    pnb_status status;
    PNB_TRY(load_null_texts(r->app, r->opts->null_texts, &r->all, &nothing));
    pnb__report_selective(r);
    PNB_TRY(pnb__report_reliability(r));
    PNB_TRY(pnb__report_lengths(r));
    PNB_TRY(pnb__report_classes(r, nothing.set != NULL ? &nothing.dummies : NULL));
    PNB_TRY(pnb__report_paths(r, nothing.set != NULL ? &nothing.root : NULL));
done:
    pnb_view_reset(&nothing.view);
    pnb_embeddings_free(nothing.set);
    return status;
}

static void reset(pnb__report *r)
{
    pnb_hits_reset(&r->found.hits);
    pnb__retrieval_reset(&r->all);
    pnb__retrieval_reset(&r->level);
    if (r->every != r->figures)
        pnb__result_free(r->every);
    pnb__result_free(r->figures);
    pnb__result_free(r->more);
    pnb__page_reset(&r->page);
}

static pnb_status measure_claims(pnb__report *r)
{
    const pnb__report_opts *o = r->opts;
    pnb__uncertainty_report_sets control_sets = o->control;
    pnb__uncertainty_report control;
    bool has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? o->sets.truth : NULL;
    control_sets.read = o->sets.read;
    pnb_status status = pnb__uncertainty_report_measure(r->app, &o->sets, &r->claims);
    if (status == PNB_OK && has_control)
        status = pnb__uncertainty_report_measure(r->app, &control_sets, &control);
    if (status == PNB_OK)
        pnb__uncertainty_report_show(&r->claims, has_control ? &control : NULL, r->more);
    return status;
}

/* A retrieval at a level, and its figures as `eval retrieval` prints them. */
static pnb_status measure_level(pnb__report *r, int level, pnb__retrieval *run, pnb__result **out)
{
    const pnb__report_opts *o = r->opts;
    pnb__retrieval_opts opts = o->retrieval;
    opts.images = o->sets.images;
    opts.texts = o->sets.texts;
    opts.truth = o->sets.truth;
    opts.read = o->sets.read;
    opts.level = level;
    pnb_status status = pnb__retrieval_run(r->app, &opts, run);
    if (status != PNB_OK)
        return status;
    *out = pnb__result_create();
    pnb__retrieval_report(run, &opts, o->files.dataset != NULL ? o->files.dataset : opts.images,
                          *out);
    return PNB_OK;
}

/* Retrieval at one level beside a view of all levels; they are the same when no level is asked. */
static pnb_status measure_sets(pnb__report *r)
{
    int level = r->opts->retrieval.level;
    pnb_status status;
    PNB_TRY(measure_level(r, -1, &r->all, &r->every));
    r->figures = r->every;
    if (level >= 0)
        PNB_TRY(measure_level(r, level, &r->level, &r->figures));
    PNB_TRY(pnb__found_compute(r->app, level >= 0 ? &r->level : &r->all, &r->found));
    r->has_sets = true;
done:
    return status;
}

static pnb_status save_figures(pnb__report *r)
{
    pnb__retrieval_files files = r->opts->files;
    if (files.csv == NULL && files.markdown == NULL && files.output == NULL)
        return PNB_OK;
    if (!r->has_sets)
        return pnb__fail(&r->app->err, PNB_ARG,
                         "no figures to write: they are of --images and --texts");
    if (files.dataset == NULL)
        files.dataset = r->opts->sets.images;
    return pnb__retrieval_save(r->app, r->found.run, &r->opts->retrieval, &files, r->figures);
}

static void add_claims(pnb__report *r)
{
    static const char *const columns[] = {"figure", "value", "control", "meaning", NULL};
    r->page.shown = r->more;
    pnb__page_section(&r->page, "What the uncertainty shows",
                      "That masked inputs and general captions are more uncertain is mostly taught "
                      "by the inclusion loss, not found by the contrastive one. The control is the "
                      "same model family with a log-variance head that was never trained.");
    pnb__page_table(&r->page, "table", columns);
}

/* From what it does to how it was judged. */
static pnb_status add_sets(pnb__report *r)
{
    pnb_status status;
    PNB_TRY(pnb__report_examples(r));
    pnb__report_retrieval(r);
    add_claims(r);
    pnb__report_histograms(r);
    PNB_TRY(pnb__report_certainty(r));
    pnb__report_bins(r);
    PNB_TRY(add_uses(r));
    PNB_TRY(pnb__report_pca(r));
    pnb__report_figures(r);
done:
    return status;
}

static pnb_status measure(pnb__report *r)
{
    const pnb__report_opts *o = r->opts;
    pnb_status status = PNB_OK;
    r->more = pnb__result_create();
    if (o->sets.texts != NULL)
        PNB_TRY(measure_claims(r));
    if (o->sets.texts != NULL && o->sets.images != NULL)
        PNB_TRY(measure_sets(r));
    PNB_TRY(save_figures(r));
    if (o->run != NULL)
        PNB_TRY(pnb__report_read_training(r));
done:
    return status;
}

/* The headline of retrieval is a section where one answer opens the page. */
static pnb_status open_page(pnb__report *r, pnb__result *result)
{
    bool is_written = false;
    pnb_status status;
    PNB_TRY(pnb__report_opening(r, result, &is_written));
    if (!is_written) {
        pnb__report_headline(r);
        PNB_TRY(pnb__report_best_and_worst(r));
    }
    pnb__html_contents(&r->page.out);
    PNB_TRY(pnb__report_methods(r));
    if (is_written) {
        pnb__report_answers_table(r);
        pnb__page_section(&r->page, "Do captions find their pictures?", NULL);
        pnb__page_block(&r->page);
        pnb__report_headline(r);
        PNB_TRY(pnb__report_best_and_worst(r));
    }
done:
    return status;
}

static pnb_status write_page(pnb__report *r, pnb__result *result)
{
    const pnb__report_opts *o = r->opts;
    char subtitle[256];
    pnb_status status = PNB_OK;
    snprintf(subtitle, sizeof subtitle, "Made by penumbra %s%s%s%s%s", pnb_version(),
             o->run != NULL ? " from the run " : "", o->run != NULL ? o->run : "",
             o->files.dataset != NULL ? " on " : "",
             o->files.dataset != NULL ? o->files.dataset : "");
    pnb__page_begin(&r->page, r->more, o->title, subtitle);
    if (r->has_sets) {
        PNB_TRY(open_page(r, result));
    } else {
        if (o->sets.texts != NULL)
            pnb__report_claims_headline(r);
        else
            pnb__report_training_headline(r);
        pnb__html_contents(&r->page.out);
    }
    if (r->has_sets)
        PNB_TRY(add_sets(r));
    else if (o->sets.texts != NULL)
        add_claims(r);
    if (o->run != NULL)
        pnb__report_training(r);
    status = pnb__page_write(&r->page, o->out, &r->app->err);
done:
    return status;
}

pnb_status pnb__report_write(pnb__app *app, const pnb__report_opts *o, pnb__result *result)
{
    pnb__report r = {.app = app, .opts = o};
    pnb_status status;
    if (o->run == NULL && o->sets.texts == NULL)
        return pnb__fail(&app->err, PNB_ARG, "nothing to report: neither a run nor sets");
    PNB_TRY(pnb__report_check_methods(app, o));
    PNB_TRY(measure(&r));
    PNB_TRY(write_page(&r, result));
    if (r.n_missing > 0)
        pnb__warn(app, "%zu pictures could not be found again and are shown by name", r.n_missing);
    pnb__result_text(result, "out", "written", o->out);
    pnb__result_int(result, "bytes", "bytes", (int64_t)r.page.n_bytes);
    pnb__result_int(result, "n_missing_images", NULL, (int64_t)r.n_missing);
done:
    reset(&r);
    return status;
}
