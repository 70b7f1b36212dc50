/* Puts the report together from the sections whose inputs were given, and writes it whole.
 *
 * Two passes over the sets: all caption levels for the views, one level for the retrieval table
 * when asked. The sections are in report_training.c, report_sets.c, report_trust.c,
 * report_classes.c, report_paths.c and report_gallery.c. */
#include "app/report.h"

#include <string.h>

#include "app/html.h"
#include "app/report_parts.h"
#include "app/sets.h"
#include "base/base.h"

enum { N_RESAMPLES = 1000 };

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

/* Retrieval at one level beside a view of all levels; they are the same when no level is asked. */
static pnb_status add_sets(pnb__app *app, const pnb__report_opts *o, pnb__buf *out,
                           size_t *n_missing)
{
    pnb__retrieval_opts opts = pnb__retrieval_opts_default();
    pnb__retrieval all = {0}, level = {0};
    const pnb__retrieval *figures = &all;
    pnb_status status;
    opts.images = o->sets.images;
    opts.texts = o->sets.texts;
    opts.truth = o->sets.truth;
    opts.n_bins = o->n_bins;
    opts.measure = o->measure;
    opts.n_resamples = N_RESAMPLES;
    PNB_TRY(pnb__retrieval_run(app, &opts, &all));
    if (o->level >= 0) {
        opts.level = o->level;
        PNB_TRY(pnb__retrieval_run(app, &opts, &level));
        figures = &level;
    }
    PNB_TRY(pnb__report_retrieval(out, figures));
    pnb__report_figures(out, figures);
    PNB_TRY(pnb__report_histograms(out, &all, &app->err));
    PNB_TRY(pnb__report_bins(out, &all));
    PNB_TRY(add_uses(app, o, &all, out, n_missing));
    PNB_TRY(pnb__report_pca(out, &all, &app->err));
    PNB_TRY(pnb__report_certainty(out, &all, o->n_examples, n_missing, &app->err));
    PNB_TRY(pnb__report_examples(app, out, &all, o->n_examples, n_missing));
done:
    pnb__retrieval_reset(&all);
    pnb__retrieval_reset(&level);
    return status;
}

static pnb_status add_claims(pnb__app *app, const pnb__report_opts *o, pnb__buf *out)
{
    pnb__claims_sets control_sets = o->control;
    pnb__claims claims, control;
    bool has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? o->sets.truth : NULL;
    pnb_status status = pnb__claims_measure(app, &o->sets, &claims);
    if (status == PNB_OK && has_control)
        status = pnb__claims_measure(app, &control_sets, &control);
    if (status == PNB_OK)
        pnb__report_claims(out, &claims, has_control ? &control : NULL);
    return status;
}

pnb_status pnb__report_write(pnb__app *app, const pnb__report_opts *o, pnb__result *r)
{
    pnb__buf out = {0};
    char subtitle[256];
    size_t n_missing = 0;
    pnb_status status = PNB_OK;
    if (o->run == NULL && o->sets.texts == NULL)
        return pnb__fail(&app->err, PNB_ARG, "nothing to report: neither a run nor sets");
    snprintf(subtitle, sizeof subtitle, "Made by penumbra %s%s%s", pnb_version(),
             o->run != NULL ? " from the run " : "", o->run != NULL ? o->run : "");
    pnb__html_begin(&out, o->title, subtitle);
    if (o->sets.texts != NULL)
        PNB_TRY(add_claims(app, o, &out));
    if (o->run != NULL)
        PNB_TRY(pnb__report_training(&out, o->run, &app->err));
    if (o->sets.texts != NULL && o->sets.images != NULL)
        PNB_TRY(add_sets(app, o, &out, &n_missing));
    pnb__html_end(&out);
    PNB_TRY(pnb__buf_write(&out, o->out, &app->err));
    if (n_missing > 0)
        pnb__warn(app, "%zu pictures could not be found again and are shown by name", n_missing);
    pnb__result_text(r, "out", "written", o->out);
    pnb__result_int(r, "bytes", "bytes", (int64_t)out.size);
    pnb__result_int(r, "n_missing_pictures", NULL, (int64_t)n_missing);
done:
    pnb__buf_reset(&out);
    return status;
}
