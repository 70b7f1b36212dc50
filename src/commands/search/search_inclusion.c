/* Queries to members, members to a table.
 *
 * The first table has the number of members of each query, because an empty answer is an answer
 * here and a long one is cut at k; the second has the members themselves. */
#include "commands/search/search_inclusion.h"

#include "base/base.h"
#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "penumbra/view.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

typedef struct inclusion_run {
    pnb_embeddings *index, *queries;
    pnb_inclusion_hits found;
    double *u; /* of the index */
} inclusion_run;

static pnb_status load_sides(pnb__app *app, const pnb__search_inclusion_opts *cmd,
                             inclusion_run *run)
{
    pnb_status status;
    PNB_TRY(pnb__search_input_load(app, &cmd->in, &run->index, &run->queries));
    PNB_TRY(pnb_embeddings_check_mix(run->index, run->queries, &app->err));
    status = pnb__row_uncertainty(run->index, PNB_UNCERTAINTY_TRACE, &run->u, &app->err);
done:
    return status;
}

static void put_counts(const inclusion_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {{"query", "query"}, {"n_members", "members"}};
    pnb__result_table(r, "queries", NULL, columns, PNB_COUNT(columns));
    for (size_t q = 0; q < run->found.n_queries; q++) {
        pnb__result_row(r, "%s %zu", pnb__set_label(run->queries, q), run->found.n_all[q]);
    }
}

static void put_members(const inclusion_run *run, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"query", "query"}, {"rank", "rank"},         {"row", "row"},
        {"h", "H"},         {"nearness", "nearness"}, {"uncertainty", "uncertainty"},
        {"id", "id"},       {"item", "item"}};
    const pnb_inclusion_hits *found = &run->found;
    pnb__result_note(r, "");
    pnb__result_table(r, "members", NULL, columns, PNB_COUNT(columns));
    for (size_t q = 0; q < found->n_queries; q++)
        for (size_t j = 0; j < found->k && found->index[q * found->k + j] >= 0; j++) {
            size_t at = q * found->k + j, row = (size_t)found->index[at];
            pnb__result_row(r, "%s %zu %zu %.3f %.4f %.5f %s %s", pnb__set_label(run->queries, q),
                            j + 1, row, found->h[at], found->nearness[at], run->u[row],
                            run->index->ids != NULL ? run->index->ids[row] : NULL,
                            pnb__set_label(run->index, row));
        }
}

pnb_status pnb__search_inclusion_run(pnb__app *app, const pnb__search_inclusion_opts *cmd,
                                     pnb__result *r)
{
    inclusion_run run = {0};
    pnb_view index_rows = {0}, query_rows = {0};
    pnb_status status;
    PNB_TRY(load_sides(app, cmd, &run));
    PNB_TRY(pnb_view_init(&index_rows, run.index, &app->err));
    PNB_TRY(pnb_view_init(&query_rows, run.queries, &app->err));
    PNB_TRY(pnb_inclusion_search(app->ctx, &query_rows.rows, &index_rows.rows, &cmd->opts,
                                 &run.found, &app->err));
    pnb__result_text(r, "index", NULL, cmd->in.index);
    pnb__result_text(r, "direction", NULL, cmd->opts.inside ? "inside" : "containing");
    pnb__result_text(r, "measure", NULL, cmd->opts.published ? "inclusion_published" : "inclusion");
    pnb__result_text(r, "order", NULL, pnb_inclusion_order_name(cmd->opts.order));
    put_counts(&run, r);
    put_members(&run, r);
done:
    pnb_view_reset(&index_rows);
    pnb_view_reset(&query_rows);
    pnb_inclusion_hits_reset(&run.found);
    pnb__free(run.u);
    pnb_embeddings_free(run.queries);
    pnb_embeddings_free(run.index);
    return status;
}
