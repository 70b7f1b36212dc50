/* penumbra adapt compare: every method with every seed on the same sets, measured alike.
 *
 * Sets of each entry lie in the folder; from there they are ranked, resampled and binned as eval
 * compare does it, against the frozen rows. compare_entries.c makes the sets, compare_tables.c the
 * tables and files. */
#include "commands/adapt/compare.h"

#include <string.h>

#include "base/base.h"
#include "commands/common/set_use.h"
#include "commands/eval/eval_compare.h"

/* ---- sets ---- */

pnb_status pnb__pair_load(pnb__app *app, const pnb__pair_paths *paths,
                          const pnb_truth_read_opts *opts, const char *split, pnb__pair_sets *out)
{
    pnb_truth_read_opts read = *opts;
    pnb_status status;
    if (paths->images == NULL)
        return PNB_OK;
    read.split = split;
    PNB_TRY(pnb__set_map(&out->images, paths->images, app));
    PNB_TRY(pnb__set_map(&out->texts, paths->texts, app));
    const pnb_truth_rows images = pnb_truth_rows_of(out->images);
    const pnb_truth_rows texts = pnb_truth_rows_of(out->texts);
    if (paths->truth != NULL)
        status = pnb_truth_read(&out->truth, paths->truth, &images, &texts, &read, NULL, &app->err);
done:
    return status;
}

pnb_status pnb__pair_align(pnb__pair_sets *p, const char *option, pnb_error *err)
{
    if (p->truth != NULL)
        return PNB_OK;
    if (p->images->n == p->texts->n)
        return pnb_truth_create_aligned(&p->truth, p->images->n, err);
    return pnb__fail(err, PNB_ARG,
                     "%zu images and %zu captions without %s: row i belongs to row i only where "
                     "there are as many",
                     p->images->n, p->texts->n, option);
}

void pnb__pair_reset(pnb__pair_sets *p)
{
    pnb_embeddings_free(p->images);
    pnb_embeddings_free(p->texts);
    pnb_truth_free(p->truth);
}

/* ---- measuring ---- */

/* Of the entries that have sets: paths and names as eval compare takes them. */
typedef struct lists {
    const char **images, **texts, **names;
    pnb_measure *measures;
    char **failed;
    size_t *entry, n;
} lists;

static pnb_status make_lists(const pnb__adapt_comparison *c, lists *l, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(PNB_ALLOC(l->images, c->n, err));
    PNB_TRY(PNB_ALLOC(l->texts, c->n, err));
    PNB_TRY(PNB_ALLOC(l->names, c->n, err));
    PNB_TRY(PNB_ALLOC(l->measures, c->n, err));
    PNB_TRY(PNB_ALLOC(l->entry, c->n, err));
    PNB_TRY(PNB_ALLOC_ZERO(l->failed, c->n, err));
    for (size_t i = 0; i < c->n; i++) {
        const pnb__compare_entry *e = &c->entry[i];
        if (e->failed != NULL)
            continue;
        l->images[l->n] = e->images;
        l->texts[l->n] = e->texts;
        l->names[l->n] = e->name;
        l->measures[l->n] = /* frozen rows may be of any length */
            e->kind == PNB__ENTRY_FROZEN ? PNB_MEASURE_MEAN : PNB__MEASURE_AUTO;
        l->entry[l->n++] = i;
    }
done:
    return status;
}

static void lists_reset(lists *l)
{
    pnb__free(l->images);
    pnb__free(l->texts);
    pnb__free(l->names);
    pnb__free(l->measures);
    pnb__free(l->entry);
    pnb__free(l->failed);
}

static pnb_status measure(pnb__app *app, pnb__adapt_comparison *c)
{
    const pnb__adapt_compare_opts *o = c->opts;
    pnb__compare_opts job = {.run = pnb__retrieval_opts_default(), .files = {.dataset = ""}};
    lists l = {0};
    char *csv = pnb__path_join(o->out, "figures.csv");
    pnb_status status = csv != NULL ? PNB_OK : pnb__fail_nomem(&app->err, strlen(o->out));
    if (status == PNB_OK)
        status = make_lists(c, &l, &app->err);
    if (status == PNB_OK && l.n > 0) {
        job.run.truth = o->test.truth;
        job.run.read = o->read;
        job.run.read.split = o->test_split;
        job.run.label_vectors = o->label_vectors;
        job.run.n_bins = o->n_bins;
        job.run.n_resamples = o->n_resamples;
        job.images = l.images;
        job.texts = l.texts;
        job.names = l.names;
        job.measures = l.measures;
        job.n = l.n;
        job.failed = l.failed;
        job.files.csv = csv;
        status = pnb__retrieval_compare(app, &job, c->figures);
    }
    for (size_t i = 0; i < l.n; i++)
        c->entry[l.entry[i]].failed = l.failed[i];
    lists_reset(&l);
    pnb__free(csv);
    return status;
}

/* ---- the whole ---- */

/* Rows of another split are no method's failure. */
static pnb_status load_known(pnb__app *app, pnb__adapt_comparison *c)
{
    pnb_known_scores unused;
    pnb_status status = pnb__set_load(&c->known, c->opts->known, app);
    if (status != PNB_OK)
        return status;
    status = pnb_known_scores_compute(c->test.texts, c->known, NULL, NULL, &unused, &app->err);
    if (status != PNB_OK)
        pnb__error_prefix(&app->err, "%s beside %s", c->opts->known, c->opts->test.texts);
    return status;
}

/* A file that cannot be read ends the job before anything is learned. */
static pnb_status check_labels(pnb__app *app, const pnb__adapt_comparison *c)
{
    const pnb_truth_rows rows = pnb_truth_rows_of(c->test.images);
    pnb_label_matrix labels = {0};
    pnb_status status = pnb_label_matrix_load(&labels, c->opts->label_vectors, &rows, &app->err);
    pnb_label_matrix_reset(&labels);
    return status;
}

/* The draw of the first seed, so that a class key that is wrong is told before anything is learned.
 */
static pnb_status check_fewer(pnb__app *app, const pnb__adapt_comparison *c)
{
    const pnb__adapt_compare_opts *o = c->opts;
    pnb_truth *drawn = NULL;
    pnb_status status = PNB_OK;
    if (c->train.truth != NULL && pnb__fewer_pairs_draws(&o->fewer))
        status = pnb__fewer_pairs(&drawn, c->train.truth, c->train.images, o->train.images,
                                  &o->fewer, (uint64_t)app->common.seed, &app->err);
    pnb_truth_free(drawn);
    return status;
}

static pnb_status load_all(pnb__app *app, pnb__adapt_comparison *c)
{
    const pnb__adapt_compare_opts *o = c->opts;
    pnb_status status;
    PNB_TRY(pnb__pair_load(app, &o->train, &o->read, o->split, &c->train));
    PNB_TRY(pnb__pair_load(app, &o->val, &o->read, o->val_split, &c->val));
    PNB_TRY(pnb__pair_load(app, &o->test, &o->read, o->test_split, &c->test));
    PNB_TRY(pnb__pair_align(&c->test, "--test-truth", &app->err));
    PNB_TRY(check_fewer(app, c));
    if (o->known != NULL)
        PNB_TRY(load_known(app, c));
    if (o->label_vectors != NULL)
        status = check_labels(app, c);
done:
    return status;
}

pnb_status pnb__adapt_compare(pnb__app *app, const pnb__adapt_compare_opts *opts, pnb__result *r)
{
    pnb__adapt_comparison c = {.opts = opts, .figures = pnb__result_create()};
    pnb_status status;
    PNB_TRY(load_all(app, &c));
    PNB_TRY(pnb__compare_plan(app, &c));
    PNB_TRY(pnb__make_dirs(opts->out, &app->err));
    for (size_t i = 0; i < c.n; i++) {
        PNB_TRY(pnb__compare_make(app, &c, &c.entry[i]));
        pnb__say(app, "%s %llu: %s", c.entry[i].name, (unsigned long long)c.entry[i].seed,
                 c.entry[i].failed != NULL ? c.entry[i].failed : "ready");
    }
    PNB_TRY(measure(app, &c));
    pnb__compare_put(&c, r);
    status = pnb__compare_save(app, &c, r);
done:
    pnb__result_free(c.figures);
    pnb__compare_entries_reset(&c);
    pnb__pair_reset(&c.train);
    pnb__pair_reset(&c.val);
    pnb__pair_reset(&c.test);
    pnb_embeddings_free(c.known);
    return status;
}
