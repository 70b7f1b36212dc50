/* What pairs of a truth connect: the connected components of queries and items.
 *
 * A disjoint-set forest with path halving; a component's root is its lowest node, queries before
 * items, so labels follow the order of the rows. */
#include "base/base.h"
#include "penumbra/truth.h"

static size_t root_of(size_t *parent, size_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join_pairs(const pnb_truth *t, size_t *parent)
{
    for (size_t q = 0; q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++) {
            size_t a = root_of(parent, q), b = root_of(parent, t->n_queries + t->item[p]);
            parent[PNB_MAX(a, b)] = PNB_MIN(a, b);
        }
}

pnb_status pnb_truth_clusters(const pnb_truth *truth, int64_t *query_cluster, int64_t *item_cluster,
                              size_t *n_clusters, pnb_error *err)
{
    size_t n = truth->n_queries + truth->n_items, n_labels = 0;
    size_t *parent = pnb__alloc_array(n, sizeof *parent);
    if (parent == NULL)
        return pnb__fail_nomem(err, n * sizeof *parent);
    for (size_t i = 0; i < n; i++)
        parent[i] = i;
    join_pairs(truth, parent);
    *n_clusters = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t *out =
            i < truth->n_queries ? &query_cluster[i] : &item_cluster[i - truth->n_queries];
        size_t root = root_of(parent, i);
        if (root == i) {
            *out = (int64_t)n_labels++;
            *n_clusters += i < truth->n_queries && truth->offset[i] < truth->offset[i + 1];
        } else {
            *out = root < truth->n_queries ? query_cluster[root]
                                           : item_cluster[root - truth->n_queries];
        }
    }
    pnb__free(parent);
    return PNB_OK;
}
