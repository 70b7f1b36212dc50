/* Which items match which query: a sparse many-to-many relation in compressed rows.
 *
 * Built from index pairs by a counting sort on the query; items of a query are then sorted and
 * duplicates collapsed (sets, as ECCV-Caption's R-Precision takes them). Files are read in
 * truth_file.c. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/truth.h"

static pnb_status alloc_truth(pnb_truth **out, size_t n_queries, size_t n_items, size_t n_pairs,
                              pnb_error *err)
{
    pnb_truth *t = pnb__alloc_zero(1, sizeof *t);
    *out = NULL;
    if (t == NULL)
        return pnb__fail_nomem(err, sizeof *t);
    t->n_queries = n_queries;
    t->n_items = n_items;
    t->n_pairs = n_pairs;
    t->offset = pnb__alloc_zero(n_queries + 1, sizeof(size_t));
    t->item = pnb__alloc_array(PNB_MAX(n_pairs, 1), sizeof(size_t));
    if (t->offset == NULL || t->item == NULL) {
        pnb_truth_free(t);
        return pnb__fail_nomem(err, (n_queries + n_pairs) * sizeof(size_t));
    }
    *out = t;
    return PNB_OK;
}

void pnb_truth_free(pnb_truth *truth)
{
    if (truth == NULL)
        return;
    pnb__free(truth->offset);
    pnb__free(truth->item);
    pnb__free(truth->n_outside);
    pnb__free(truth->n_outside_items);
    pnb__free(truth);
}

/* Sorts the items of each query and closes the gaps that duplicates leave. */
static void sort_and_collapse(pnb_truth *t)
{
    size_t written = 0;
    for (size_t q = 0; q < t->n_queries; q++) {
        size_t begin = t->offset[q], end = t->offset[q + 1], first = written;
        if (end - begin > 1)
            qsort(t->item + begin, end - begin, sizeof(size_t), pnb__compare_sizes);
        for (size_t i = begin; i < end; i++)
            if (written == first || t->item[written - 1] != t->item[i])
                t->item[written++] = t->item[i];
        t->offset[q] = first;
    }
    t->n_duplicates = t->n_pairs - written;
    t->n_pairs = written;
    t->offset[t->n_queries] = written;
}

static pnb_status check_pairs(size_t n_queries, size_t n_items, const int64_t *pairs,
                              size_t n_pairs, pnb_error *err)
{
    if (n_pairs == 0)
        return pnb__fail(err, PNB_ARG, "truth has no pairs; at least one match is needed");
    for (size_t i = 0; i < n_pairs; i++) {
        int64_t q = pairs[2 * i], x = pairs[2 * i + 1];
        if (q < 0 || x < 0 || (size_t)q >= n_queries || (size_t)x >= n_items)
            return pnb__fail(err, PNB_ARG,
                             "truth pair %zu is (%lld, %lld); there are %zu queries and %zu items, "
                             "counted from 0",
                             i, (long long)q, (long long)x, n_queries, n_items);
    }
    return PNB_OK;
}

pnb_status pnb_truth_create_pairs(pnb_truth **out, size_t n_queries, size_t n_items,
                                  const int64_t *pairs, size_t n_pairs, pnb_error *err)
{
    *out = NULL;
    pnb_status status = check_pairs(n_queries, n_items, pairs, n_pairs, err);
    if (status == PNB_OK)
        status = alloc_truth(out, n_queries, n_items, n_pairs, err);
    if (status != PNB_OK)
        return status;
    pnb_truth *t = *out;
    for (size_t i = 0; i < n_pairs; i++)
        t->offset[pairs[2 * i] + 1]++;
    for (size_t q = 0; q < n_queries; q++)
        t->offset[q + 1] += t->offset[q];
    /* Filling moves each start to its end, which is the next start: shift back afterwards. */
    for (size_t i = 0; i < n_pairs; i++)
        t->item[t->offset[pairs[2 * i]]++] = (size_t)pairs[2 * i + 1];
    for (size_t q = n_queries; q > 0; q--)
        t->offset[q] = t->offset[q - 1];
    t->offset[0] = 0;
    sort_and_collapse(t);
    return PNB_OK;
}

pnb_status pnb_truth_create_aligned(pnb_truth **out, size_t n, pnb_error *err)
{
    *out = NULL;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "truth of 0 rows; at least one match is needed");
    pnb_status status = alloc_truth(out, n, n, n, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        (*out)->item[i] = i;
        (*out)->offset[i + 1] = i + 1;
    }
    return status;
}

static pnb_status fill_from_labels(pnb_truth **out, const int64_t *query_label, size_t n_queries,
                                   const pnb__labelled *items, size_t n_items, pnb_error *err)
{
    size_t n_pairs = 0;
    for (size_t q = 0; q < n_queries; q++)
        for (size_t i = pnb__labels_find(items, n_items, query_label[q]);
             i < n_items && items[i].label == query_label[q]; i++)
            n_pairs++;
    if (n_pairs == 0)
        return pnb__fail(err, PNB_ARG, "no query shares its label with an item; nothing to rank");
    pnb_status status = alloc_truth(out, n_queries, n_items, n_pairs, err);
    if (status != PNB_OK)
        return status;
    pnb_truth *t = *out;
    size_t n = 0;
    for (size_t q = 0; q < n_queries; q++) {
        for (size_t i = pnb__labels_find(items, n_items, query_label[q]);
             i < n_items && items[i].label == query_label[q]; i++)
            t->item[n++] = items[i].place;
        t->offset[q + 1] = n;
    }
    return PNB_OK;
}

pnb_status pnb_truth_create_labels(pnb_truth **out, const int64_t *query_label, size_t n_queries,
                                   const int64_t *item_label, size_t n_items, pnb_error *err)
{
    *out = NULL;
    pnb__labelled *items = NULL;
    if (pnb__labels_sort(&items, item_label, n_items, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = fill_from_labels(out, query_label, n_queries, items, n_items, err);
    pnb__free(items);
    return status;
}

static pnb_status copy_counts(size_t **out, const size_t *counts, size_t n, pnb_error *err)
{
    if (counts == NULL)
        return PNB_OK;
    if (PNB_ALLOC(*out, PNB_MAX(n, 1), err) != PNB_OK)
        return PNB_NOMEM;
    memcpy(*out, counts, n * sizeof **out);
    return PNB_OK;
}

/* The sides change places. */
static pnb_status copy_outside(pnb_truth *out, const pnb_truth *truth, pnb_error *err)
{
    pnb_status status = copy_counts(&out->n_outside, truth->n_outside_items, truth->n_items, err);
    if (status == PNB_OK)
        status = copy_counts(&out->n_outside_items, truth->n_outside, truth->n_queries, err);
    return status;
}

pnb_status pnb_truth_transpose(pnb_truth **out, const pnb_truth *truth, pnb_error *err)
{
    *out = NULL;
    int64_t *pairs = pnb__alloc_array(PNB_MAX(truth->n_pairs, 1), 2 * sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, truth->n_pairs * 2 * sizeof *pairs);
    for (size_t q = 0; q < truth->n_queries; q++)
        for (size_t i = truth->offset[q]; i < truth->offset[q + 1]; i++) {
            pairs[2 * i] = (int64_t)truth->item[i];
            pairs[2 * i + 1] = (int64_t)q;
        }
    pnb_status status =
        pnb_truth_create_pairs(out, truth->n_items, truth->n_queries, pairs, truth->n_pairs, err);
    pnb__free(pairs);
    if (status == PNB_OK)
        status = copy_outside(*out, truth, err);
    if (status != PNB_OK) {
        pnb_truth_free(*out);
        *out = NULL;
    }
    return status;
}
