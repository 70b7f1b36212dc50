/* Queries to embeddings, embeddings to hits, hits to a table.
 *
 * The match probability s(a*score + b) is given for csd and mean, whose scores are the similarity
 * the model was trained on; other measures have no calibrated probability. */
#include "app/query.h"

#include <math.h>
#include <string.h>

#include "app/embed_job.h"
#include "app/retrieval.h"
#include "base/base.h"
#include "penumbra/search.h"

static pnb_status encode_queries(pnb__app *app, const pnb__query_opts *o, pnb_embeddings **out)
{
    bool is_text = o->texts->n > 0;
    const pnb__embedder_parts parts = {is_text ? PNB__USE_TEXTS : PNB__USE_PICTURES, o->tokenizer,
                                       o->preprocess};
    pnb__embedder encoder = {0};
    pnb__pictures *pictures = NULL;
    pnb__captions captions = {0};
    pnb_status status;
    if (o->queries != NULL)
        return pnb_embeddings_load(out, o->queries, &app->err);
    PNB_TRY(pnb__embedder_open_named(&encoder, app, o->model, &parts));
    for (size_t i = 0; i < o->texts->n; i++)
        PNB_TRY(pnb__captions_add_text(&captions, o->texts->items[i], &app->err));
    if (captions.n_bad > 0) {
        status = pnb__fail(&app->err, PNB_FORMAT, "%s", captions.bad[0]);
        goto done;
    }
    if (!is_text)
        PNB_TRY(pnb__pictures_open(&pictures, o->images->items, o->images->n, app->in, &app->err));
    status = is_text ? pnb__embed_captions(app, &encoder, &captions, out)
                     : pnb__embed_pictures(app, &encoder, pictures, o->exif, out);
done:
    pnb__pictures_free(pictures);
    pnb__captions_reset(&captions);
    pnb__embedder_close(&encoder);
    return status;
}

/* What to show of a row: its caption, else its path, else its id. */
static const char *row_label(const pnb_embeddings *set, size_t row)
{
    if (set->texts != NULL && set->texts[row] != NULL)
        return set->texts[row];
    if (set->paths != NULL && set->paths[row] != NULL)
        return set->paths[row];
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
}

static void put_hits(const pnb_embeddings *queries, const pnb_embeddings *index,
                     const pnb_hits *hits, const double *u, pnb_measure measure, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"query", "query"}, {"rank", "rank"},        {"row", "row"},
        {"score", "score"}, {"p_match", "p(match)"}, {"uncertainty", "uncertainty"},
        {"id", "id"},       {"item", "item"}};
    bool has_p = measure == PNB_MEASURE_CSD || measure == PNB_MEASURE_MEAN;
    pnb__result_table(r, "hits", NULL, columns, PNB_COUNT(columns));
    for (size_t q = 0; q < hits->n_queries; q++)
        for (size_t j = 0; j < hits->k && hits->index[q * hits->k + j] >= 0; j++) {
            size_t row = (size_t)hits->index[q * hits->k + j];
            double score = hits->score[q * hits->k + j];
            pnb__result_cell_text(r, row_label(queries, q));
            pnb__result_cell_int(r, (int64_t)j + 1);
            pnb__result_cell_int(r, (int64_t)row);
            pnb__result_cell_real(r, score, 4);
            pnb__result_cell_real(r,
                                  has_p ? pnb_match_probability(score, index->info.logit_scale,
                                                                index->info.logit_bias)
                                        : NAN,
                                  4);
            pnb__result_cell_real(r, u[row], 5);
            pnb__result_cell_text(r, index->ids != NULL ? index->ids[row] : NULL);
            pnb__result_cell_text(r, row_label(index, row));
        }
}

pnb_status pnb__query_run(pnb__app *app, const pnb__query_opts *opts, pnb__result *r)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_embeddings *index = NULL, *queries = NULL;
    pnb_gaussians index_rows, query_rows;
    pnb_hits hits = {0};
    double *u = NULL;
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb_measure_parse(&search.measure, opts->measure, err));
    PNB_TRY(pnb_embeddings_load(&index, opts->index, err));
    PNB_TRY(encode_queries(app, opts, &queries));
    PNB_TRY(pnb_embeddings_check_mix(index, queries, err));
    PNB_TRY(pnb_gaussians_view(&index_rows, index, err));
    PNB_TRY(pnb_gaussians_view(&query_rows, queries, err));
    PNB_TRY(pnb__row_uncertainty(index, PNB_UNCERTAINTY_TRACE, &u, err));
    search.k = PNB_MIN(opts->k, index->n);
    search.measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb_search(app->ctx, &query_rows, &index_rows, &search, &hits, err));
    pnb__result_text(r, "index", NULL, opts->index);
    pnb__result_text(r, "measure", NULL, pnb_measure_name(search.measure));
    put_hits(queries, index, &hits, u, search.measure, r);
done:
    pnb_hits_reset(&hits);
    pnb__free(u);
    pnb_embeddings_free(queries);
    pnb_embeddings_free(index);
    return status;
}
