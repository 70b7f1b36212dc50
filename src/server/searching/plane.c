/* The flat view of a search: pca.h over the query and its hits.
 *
 * A query in words and pictures lie in different parts of the space, so the first axis often shows
 * that gap; widths of ellipses are comparable all the same. */
#include "server/searching/plane.h"

#include "io/json/json.h"
#include "penumbra/pca.h"
#include "penumbra/view.h"

static void put_place(const double *xy, const double *cov, pnb__buf *b)
{
    pnb__json_put(b, "[%f,%f,%f,%f,%f]", xy[0], xy[1], cov[0], cov[1], cov[2]);
}

static void put_plane(const pnb_pca *pca, const double *xy, const double *cov, size_t n,
                      pnb__buf *b)
{
    double whole = pca->total_variance > 0 ? pca->total_variance : 1;
    pnb__json_put(b, ",\"plane\":{\"share\":[%f,%f],\"query\":", pca->variance[0] / whole,
                  pca->variance[1] / whole);
    put_place(xy, cov, b);
    pnb__buf_puts(b, ",\"hits\":[");
    for (size_t i = 1; i <= n; i++) {
        pnb__buf_puts(b, i > 1 ? "," : "");
        put_place(xy + 2 * i, cov + 3 * i, b);
    }
    pnb__buf_puts(b, "]}");
}

pnb_status pnb__plane_put(const pnb_embeddings *query, const pnb_embeddings *hits, pnb__buf *b,
                          pnb_error *err)
{
    pnb_view asking = {0}, found = {0};
    pnb_pca pca = {0};
    double *xy = NULL, *cov = NULL;
    pnb_status status;
    if (hits->n < 2)
        return PNB_OK;
    PNB_TRY(pnb_view_init(&asking, query, err));
    PNB_TRY(pnb_view_init(&found, hits, err));
    PNB_TRY(PNB_ALLOC_ROWS(xy, hits->n + 1, 2, err));
    PNB_TRY(PNB_ALLOC_ROWS(cov, hits->n + 1, 3, err));
    const pnb_gaussians *const sets[] = {&found.rows, &asking.rows};
    PNB_TRY(pnb_pca_fit(&pca, sets, PNB_COUNT(sets), err));
    PNB_TRY(pnb_pca_project(&pca, &asking.rows, xy, cov, err));
    PNB_TRY(pnb_pca_project(&pca, &found.rows, xy + 2, cov + 3, err));
    put_plane(&pca, xy, cov, hits->n, b);
done:
    pnb__free(xy);
    pnb__free(cov);
    pnb_pca_reset(&pca);
    pnb_view_reset(&found);
    pnb_view_reset(&asking);
    return status;
}
