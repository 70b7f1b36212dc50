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
static pnb_status add_uses(pnb__app *app, const pnb__report_opts *o, const pnb__retrieval *all,
                           pnb__buf *out, size_t *n_missing)
{
    null_texts nothing;
    pnb_status status;
    PNB_TRY(load_null_texts(app, o->null_texts, all, &nothing));
    PNB_TRY(pnb__report_selective(out, all, &app->err));
    PNB_TRY(pnb__report_reliability(app, out, all));
    PNB_TRY(pnb__report_lengths(out, all, &app->err));
    PNB_TRY(pnb__report_classes(app, out, all, nothing.set != NULL ? &nothing.dummies : NULL));
    PNB_TRY(pnb__report_paths(app, out, all, nothing.set != NULL ? &nothing.root : NULL,
                              o->n_examples, n_missing));
done:
    pnb_view_reset(&nothing.view);
    pnb_embeddings_free(nothing.set);
    return status;
}

/* Everything that was measured before the first word is written. */
typedef struct measured {
    pnb__uncertainty_report claims, control;
    bool has_claims, has_control;
    pnb__retrieval all, level; /* all caption levels, and the one that was asked for */
    pnb__found found;          /* of the level, or of all */
    bool has_sets;
} measured;

static void reset(measured *m)
{
    pnb_hits_reset(&m->found.hits);
    pnb__retrieval_reset(&m->all);
    pnb__retrieval_reset(&m->level);
}

static pnb_status measure_claims(pnb__app *app, const pnb__report_opts *o, measured *m)
{
    pnb__uncertainty_report_sets control_sets = o->control;
    m->has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? o->sets.truth : NULL;
    control_sets.read = o->sets.read;
    pnb_status status = pnb__uncertainty_report_measure(app, &o->sets, &m->claims);
    if (status == PNB_OK && m->has_control)
        status = pnb__uncertainty_report_measure(app, &control_sets, &m->control);
    m->has_claims = status == PNB_OK;
    return status;
}

static pnb__retrieval_opts retrieval_opts(const pnb__report_opts *o)
{
    pnb__retrieval_opts opts = o->retrieval;
    opts.images = o->sets.images;
    opts.texts = o->sets.texts;
    opts.truth = o->sets.truth;
    opts.read = o->sets.read;
    return opts;
}

/* Retrieval at one level beside a view of all levels; they are the same when no level is asked. */
static pnb_status measure_sets(pnb__app *app, const pnb__report_opts *o, measured *m)
{
    pnb__retrieval_opts opts = retrieval_opts(o);
    pnb_status status;
    opts.level = -1;
    PNB_TRY(pnb__retrieval_run(app, &opts, &m->all));
    opts.level = o->retrieval.level;
    if (opts.level >= 0)
        PNB_TRY(pnb__retrieval_run(app, &opts, &m->level));
    PNB_TRY(pnb__found_compute(app, opts.level >= 0 ? &m->level : &m->all, &m->found));
    m->has_sets = true;
done:
    return status;
}

/* The figures of the page as `eval retrieval` writes them. */
static pnb_status save_figures(pnb__app *app, const pnb__report_opts *o, const measured *m)
{
    const pnb__retrieval_opts opts = retrieval_opts(o);
    pnb__retrieval_files files = o->files;
    if (files.csv == NULL && files.markdown == NULL && files.output == NULL)
        return PNB_OK;
    if (!m->has_sets)
        return pnb__fail(&app->err, PNB_ARG,
                         "no figures to write: they are of --images and --texts");
    if (files.dataset == NULL)
        files.dataset = opts.images;
    pnb__result *r = pnb__result_create();
    pnb__retrieval_report(m->found.run, &opts, files.dataset, r);
    pnb_status status = pnb__retrieval_save(app, m->found.run, &opts, &files, r);
    pnb__result_free(r);
    return status;
}

/* From what it does to how it was judged. */
static pnb_status add_sets(pnb__app *app, const pnb__report_opts *o, const measured *m,
                           pnb__buf *out, size_t *n_missing)
{
    const pnb__retrieval *all = &m->all, *figures = m->found.run;
    pnb_status status;
    PNB_TRY(pnb__report_examples(out, &m->found, o->n_examples, n_missing, &app->err));
    PNB_TRY(pnb__report_retrieval(out, figures));
    pnb__report_claims(out, &m->claims, m->has_control ? &m->control : NULL);
    PNB_TRY(pnb__report_histograms(out, all, &app->err));
    PNB_TRY(pnb__report_certainty(out, all, o->n_examples, n_missing, &app->err));
    PNB_TRY(pnb__report_bins(out, all, &o->retrieval));
    PNB_TRY(add_uses(app, o, all, out, n_missing));
    PNB_TRY(pnb__report_pca(out, all, &app->err));
    pnb__report_figures(out, figures);
done:
    return status;
}

/* Headline, best and worst, and where the contents go. */
static pnb_status open_page(const pnb__report_opts *o, const measured *m, pnb__buf *out,
                            size_t *n_missing, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (m->has_sets) {
        pnb__report_headline(out, &m->found);
        status = pnb__report_best_and_worst(out, &m->found, n_missing, err);
    } else if (m->has_claims) {
        pnb__report_claims_headline(out, &m->claims);
    } else {
        status = pnb__report_training_headline(out, o->run, err);
    }
    pnb__html_contents(out);
    return status;
}

pnb_status pnb__report_write(pnb__app *app, const pnb__report_opts *o, pnb__result *r)
{
    pnb__buf out = {0};
    char subtitle[256];
    measured m = {0};
    size_t n_missing = 0;
    pnb_status status = PNB_OK;
    if (o->run == NULL && o->sets.texts == NULL)
        return pnb__fail(&app->err, PNB_ARG, "nothing to report: neither a run nor sets");
    snprintf(subtitle, sizeof subtitle, "Made by penumbra %s%s%s%s%s", pnb_version(),
             o->run != NULL ? " from the run " : "", o->run != NULL ? o->run : "",
             o->files.dataset != NULL ? " on " : "",
             o->files.dataset != NULL ? o->files.dataset : "");
    if (o->sets.texts != NULL)
        PNB_TRY(measure_claims(app, o, &m));
    if (o->sets.texts != NULL && o->sets.images != NULL)
        PNB_TRY(measure_sets(app, o, &m));
    PNB_TRY(save_figures(app, o, &m));
    pnb__html_begin(&out, o->title, subtitle);
    PNB_TRY(open_page(o, &m, &out, &n_missing, &app->err));
    if (m.has_sets)
        PNB_TRY(add_sets(app, o, &m, &out, &n_missing));
    else if (m.has_claims)
        pnb__report_claims(&out, &m.claims, m.has_control ? &m.control : NULL);
    if (o->run != NULL)
        PNB_TRY(pnb__report_training(&out, o->run, &app->err));
    pnb__html_end(&out);
    size_t n_bytes = out.size;
    PNB_TRY(pnb__buf_write(&out, o->out, &app->err));
    if (n_missing > 0)
        pnb__warn(app, "%zu pictures could not be found again and are shown by name", n_missing);
    pnb__result_text(r, "out", "written", o->out);
    pnb__result_int(r, "bytes", "bytes", (int64_t)n_bytes);
    pnb__result_int(r, "n_missing_pictures", NULL, (int64_t)n_missing);
done:
    pnb__buf_reset(&out);
    reset(&m);
    return status;
}
