/* Queries to embeddings, embeddings to hits, hits to lists and a table.
 *
 * What a score is worth, and so where a list ends, is match_probability_use.c's. */
#include "commands/search/search.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "commands/common/approx_use.h"
#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "commands/search/search_approx.h"
#include "commands/search/search_collection.h"
#include "commands/search/search_page.h"
#include "commands/search/search_predict.h"
#include "encode/inputs/inputs.h"
#include "io/json/json.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

pnb_status pnb__search_input_load(pnb__app *app, const pnb__search_input *in,
                                  pnb_embeddings **index, pnb_embeddings **queries)
{
    pnb_encoder_opts parts = in->parts;
    pnb_encoder encoder = {0};
    pnb_status status;
    parts.sides = pnb__query_use(&in->queries);
    if (index != NULL)
        PNB_TRY(pnb__set_load(index, in->index, app));
    if (parts.sides != 0)
        PNB_TRY(pnb__encoder_open_named(&encoder, app, in->model, &parts));
    status = pnb__query_embed(app, &encoder, &in->queries, queries);
done:
    pnb__encoder_reset(&encoder);
    return status;
}

/* ---- lists ---- */

typedef struct query_run {
    pnb__app *app;
    const pnb__search_opts *opts;
    const char *name;                  /* of what is searched */
    size_t n_rows;                     /* there */
    pnb__collection_search collection; /* then the index is a row of it, and later those found */
    pnb_embeddings *index, *queries;
    pnb_view index_view, query_view;
    pnb_search_opts search;
    pnb__match_probability odds;
    pnb_hits hits;
    size_t *n_listed; /* [query] leading hits that are shown */
    bool is_cut;      /* -k ended a conformal list */
    double *u;        /* [row of the index] */
    double *p;        /* [query][k] probabilities that are not the score's alone; else NULL */
} query_run;

/* How many hits of each query stay; true when one list may go on behind the last hit. */
static bool measure_lists(query_run *run)
{
    const pnb_hits *hits = &run->hits;
    bool may_go_on = false;
    for (size_t q = 0; q < hits->n_queries; q++) {
        size_t n = pnb__match_probability_list(&run->odds, hits->score + q * hits->k, hits->k);
        may_go_on = may_go_on || n == hits->k;
        while (n > 0 && hits->index[q * hits->k + n - 1] < 0)
            n--; /* fewer rows pass than were asked for */
        run->n_listed[q] = n;
    }
    return may_go_on;
}

/* What was found in a collection becomes the index. */
static pnb_status find_hits(query_run *run)
{
    pnb__app *app = run->app;
    pnb_embeddings *found = NULL;
    if (run->collection.store == NULL && run->opts->approx != NULL)
        return pnb__search_approx(app, run->name, &run->search, &run->query_view.rows,
                                  &run->index_view.rows, &run->hits);
    if (run->collection.store == NULL)
        return pnb_search(app->ctx, &run->query_view.rows, &run->index_view.rows, &run->search,
                          &run->hits, &app->err);
    pnb_status status = pnb__collection_search_nearest(&run->collection, app, run->queries,
                                                       &run->search, &run->hits, &found);
    if (status != PNB_OK || found == NULL)
        return status;
    pnb_view_reset(&run->index_view);
    pnb_embeddings_free(run->index);
    run->index = found;
    return pnb_view_init(&run->index_view, found, &app->err);
}

/* A conformal list without -k is as long as it must be: more hits are asked for until every list
 * ends. With -k one hit more is looked at, to know whether the list would have gone on. */
static pnb_status find_lists(query_run *run)
{
    pnb_error *err = &run->app->err;
    bool is_conformal = !isnan(run->opts->limits.conformal_alpha);
    bool is_open = is_conformal && run->opts->k == 0;
    size_t wanted = run->opts->k > 0 ? run->opts->k : 10, n_rows = run->n_rows;
    if (PNB_ALLOC_ZERO(run->n_listed, run->query_view.rows.n, err) != PNB_OK)
        return PNB_NOMEM;
    run->search.k = PNB_MIN(n_rows, is_open ? 64 : is_conformal ? wanted + 1 : wanted);
    if (run->opts->shortlist > 0)
        run->search.shortlist = PNB_MAX(run->opts->shortlist, run->search.k);
    for (;;) {
        pnb_status status = find_hits(run);
        if (status != PNB_OK)
            return status;
        if (!measure_lists(run) || !is_open || run->search.k == n_rows)
            break;
        pnb_hits_reset(&run->hits);
        run->search.k = PNB_MIN(n_rows, 4 * run->search.k);
    }
    for (size_t q = 0; !is_open && q < run->hits.n_queries; q++) {
        run->is_cut = run->is_cut || run->n_listed[q] > wanted;
        run->n_listed[q] = PNB_MIN(run->n_listed[q], wanted);
    }
    return PNB_OK;
}

/* ---- printing ---- */

static void put_conformal(const query_run *run, pnb__result *r)
{
    const pnb__match_probability *odds = &run->odds;
    double alpha = odds->limits.conformal_alpha;
    pnb__result_real(r, "conformal_alpha", "error rate", alpha, 4);
    pnb__result_text(r, "conformal_by", "lists end by", pnb_conformal_name(odds->kind));
    pnb__result_real(r, "conformal_cutoff", "cut-off", odds->cutoff, 4);
    pnb__result_flag(r, "is_cut", NULL, run->is_cut);
    if (!isfinite(odds->cutoff))
        pnb__warn(
            run->app,
            "%zu calibration queries are too few for an error rate of %g: lists hold every row",
            odds->fit.conformal.n, alpha);
    if (run->is_cut)
        pnb__warn(run->app, "-k %zu ends a list early: its error rate is above %g", run->opts->k,
                  alpha);
}

/* False when no list has a hit. */
static bool put_lists(const query_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"query", "query"},
                                          {"n_hits", "hits"},
                                          {"best_score", "best score"},
                                          {"best_p_match", "best p(match)"},
                                          {"p_first", "p(first hit matches)"}};
    size_t n_shown = 0;
    if (!isnan(run->opts->limits.min_probability))
        pnb__result_real(r, "min_probability", "least p(match)", run->opts->limits.min_probability,
                         4);
    if (!isnan(run->opts->limits.conformal_alpha))
        put_conformal(run, r);
    pnb__result_table(r, "lists", "", columns, PNB_COUNT(columns));
    for (size_t q = 0; q < run->hits.n_queries; q++) {
        double best = run->hits.score[q * run->hits.k];
        n_shown += run->n_listed[q];
        pnb__result_row(r, "%s %zu %.4f %.4f %.4f", pnb__set_label(run->queries, q),
                        run->n_listed[q], best, pnb__match_probability_of(&run->odds, best),
                        pnb__match_probability_first(&run->odds, best));
    }
    pnb__result_flag(r, "no_good_result", NULL, n_shown == 0);
    pnb__result_note(r, "");
    return n_shown > 0;
}

/* What a row carries along of img2dataset's record: in JSON only, null where it has none. */
static void put_carried(const pnb_embeddings *index, size_t row, pnb__result *r)
{
    pnb_error why = PNB_ERROR_INIT;
    json_t *root = NULL;
    const char *extra = index->extras != NULL ? index->extras[row] : NULL;
    if (extra != NULL)
        (void)pnb__json_load_bytes(&root, extra, strlen(extra), "row", &why);
    for (size_t i = 0; i < PNB__N_CARRIED; i++) {
        const json_t *value = json_object_get(root, pnb__carried_fields[i]);
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        pnb__result_cell_text(r, json_is_integer(value) ? number : json_string_value(value));
    }
    json_decref(root);
}

/* Whether any row of the index carries such a field: then every hit has all of them. */
static bool has_carried(const pnb_embeddings *index)
{
    for (size_t i = 0; index->extras != NULL && i < index->n; i++)
        for (size_t k = 0; k < PNB__N_CARRIED && index->extras[i] != NULL; k++) {
            char key[16];
            snprintf(key, sizeof key, "\"%s\":", pnb__carried_fields[k]);
            if (strstr(index->extras[i], key) != NULL)
                return true;
        }
    return false;
}

static double p_of_hit(const query_run *run, size_t q, size_t j)
{
    size_t at = q * run->hits.k + j;
    return run->p != NULL ? run->p[at] : pnb__match_probability_of(&run->odds, run->hits.score[at]);
}

static void put_hits(const query_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"query", "query"}, {"rank", "rank"},        {"row", "row"},
        {"score", "score"}, {"p_match", "p(match)"}, {"uncertainty", "uncertainty"},
        {"id", "id"},       {"item", "item"},        {"url", NULL},
        {"caption", NULL},  {"uid", NULL},           {"key", NULL}};
    const pnb_hits *hits = &run->hits;
    const pnb_embeddings *index = run->index;
    bool carries = has_carried(index);
    pnb__result_table(r, "hits", NULL, columns,
                      PNB_COUNT(columns) - (carries ? 0 : PNB__N_CARRIED));
    for (size_t q = 0; q < hits->n_queries; q++)
        for (size_t j = 0; j < run->n_listed[q]; j++) {
            size_t row = (size_t)hits->index[q * hits->k + j];
            double score = hits->score[q * hits->k + j];
            size_t number =
                run->collection.number != NULL ? (size_t)run->collection.number[row] : row;
            pnb__result_row(r, "%s %zu %zu %.4f %.4f %.5f %s %s", pnb__set_label(run->queries, q),
                            j + 1, number, score, p_of_hit(run, q, j), run->u[row],
                            index->ids != NULL ? index->ids[row] : NULL,
                            pnb__set_label(index, row));
            if (carries)
                put_carried(index, row, r);
        }
}

static void report(const query_run *run, pnb__result *r)
{
    const pnb__match_probability *odds = &run->odds;
    pnb__result_text(r, run->collection.store != NULL ? "collection" : "index", NULL, run->name);
    pnb__put_measure(r, NULL, run->search.measure,
                     (const pnb_embeddings *[]){run->index, run->queries},
                     (const char *[]){"index", "queries"});
    pnb__put_match(r, run->search.measure, &run->search.measure_opts, false);
    pnb__put_approx(&run->search, &run->hits, r);
    if (run->search.shortlist > 0) {
        size_t n = PNB_MIN(run->search.shortlist, run->index->n);
        pnb__result_int(r, "shortlist", NULL, (int64_t)n);
        if (n < run->index->n)
            pnb__result_note(r, "of the index only a shortlist of each query was scored, the rows "
                                "with the nearest means: others may be nearer");
    }
    pnb__result_text(r, "calibration", NULL, odds->has_fit ? odds->path : NULL);
    pnb__result_text(r, "p_match_by", NULL, pnb__match_probability_source(odds));
    if (run->p != NULL)
        pnb__result_text(r, "prediction", NULL,
                         pnb__name_at(PNB_NAMES(PNB_PREDICTION_LIST), run->opts->prediction, ""));
    bool has_hits = pnb__has_limits(&odds->limits) ? put_lists(run, r) : true;
    put_hits(run, r);
    if (!has_hits)
        pnb__result_note(r, "no good result");
}

static pnb_status write_page(const query_run *run, pnb__result *r)
{
    const pnb__query_page page = {.index_name = run->name,
                                  .n_rows = run->n_rows,
                                  .index = run->index,
                                  .queries = run->queries,
                                  .hits = &run->hits,
                                  .n_listed = run->n_listed,
                                  .odds = &run->odds,
                                  .u = run->u,
                                  .p = run->p,
                                  .measure = run->search.measure};
    size_t n_missing = 0;
    pnb_status status = pnb__query_page_write(&page, run->opts->html, &n_missing, &run->app->err);
    if (n_missing > 0)
        pnb__warn(run->app, "%zu pictures could not be found again and are shown by name",
                  n_missing);
    pnb__result_text(r, "html", NULL, run->opts->html);
    return status;
}

static pnb_status predict(query_run *run)
{
    const pnb__search_prediction job = {.prediction = run->opts->prediction,
                                        .n_draws = run->opts->n_draws,
                                        .seed = (uint64_t)run->app->common.seed,
                                        .queries = &run->query_view.rows,
                                        .index = &run->index_view.rows,
                                        .hits = &run->hits,
                                        .odds = &run->odds,
                                        .measure = run->search.measure};
    return pnb__search_predict(&job, &run->p, &run->app->err);
}

static pnb_status load_inputs(query_run *run)
{
    const pnb__search_input *in = &run->opts->in;
    pnb_status status;
    run->name = in->collection != NULL ? in->collection : in->index;
    if (in->collection != NULL)
        PNB_TRY(pnb__collection_search_open(&run->collection, run->app, in->collection,
                                            &run->opts->filter, &run->index));
    PNB_TRY(pnb__search_input_load(run->app, in, in->collection != NULL ? NULL : &run->index,
                                   &run->queries));
    run->n_rows = in->collection != NULL ? run->collection.n_rows : run->index->n;
done:
    return status;
}

pnb_status pnb__search_run(pnb__app *app, const pnb__search_opts *opts, pnb__result *r)
{
    query_run run = {.app = app, .opts = opts, .search = pnb_search_opts_default()};
    const char *queries = opts->in.queries.set;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(load_inputs(&run));
    const char *index = run.name;
    status = pnb_embeddings_check_mix(run.index, run.queries, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", index, queries != NULL ? queries : "the query");
        goto done;
    }
    PNB_TRY(pnb_view_init(&run.index_view, run.index, err));
    PNB_TRY(pnb_view_init(&run.query_view, run.queries, err));
    run.search.measure = opts->measure;
    if (opts->prediction != PNB_PREDICTION_PLAIN && opts->measure == PNB__MEASURE_AUTO)
        run.search.measure = PNB_MEASURE_MEAN; /* what has a variance there is the cosine */
    PNB_TRY(pnb__measure_of_sets(&run.search.measure, run.queries, run.index, err));
    PNB_TRY(pnb__measure_settle(&run.search.measure, run.search.measure, &run.query_view.rows,
                                &run.index_view.rows, err));
    pnb__check_means(app, run.search.measure, index, &run.index_view.rows);
    if (queries != NULL)
        pnb__check_means(app, run.search.measure, queries, &run.query_view.rows);
    run.search.kind = pnb__search_kind(opts->approx);
    run.search.recall = opts->recall;
    run.search.measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb__match_settle(app, &opts->match, run.search.measure, &run.queries->info,
                              &run.index->info, &run.search.measure_opts));
    pnb_embeddings gallery = *run.index; /* its rows are not looked at */
    gallery.n = run.n_rows;
    const pnb__match_probability_use use = {
        run.collection.store != NULL ? run.collection.set_path : index,
        &gallery,
        run.queries,
        run.search.measure,
        &run.search.measure_opts,
        .match_is_told = !isnan(opts->match.a) && !isnan(opts->match.b),
        .gallery_is_sample = run.collection.store != NULL};
    PNB_TRY(pnb__match_probability_load(app, &use, &opts->limits, &run.odds));
    PNB_TRY(find_lists(&run));
    PNB_TRY(pnb__row_uncertainty(run.index, opts->uncertainty, &run.u, err));
    PNB_TRY(predict(&run));
    if (opts->html != NULL)
        PNB_TRY(write_page(&run, r));
    report(&run, r);
done:
    pnb_hits_reset(&run.hits);
    pnb__match_probability_reset(&run.odds);
    pnb__free(run.n_listed);
    pnb__free(run.u);
    pnb__free(run.p);
    pnb_view_reset(&run.query_view);
    pnb_view_reset(&run.index_view);
    pnb_embeddings_free(run.queries);
    pnb_embeddings_free(run.index);
    pnb__collection_search_reset(&run.collection);
    return status;
}
