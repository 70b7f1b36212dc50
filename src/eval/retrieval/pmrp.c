/* PMRP: R-Precision when every item whose labels are nearly the query's is a match (PCME).
 *
 *   P_zeta(q) = { items x : Hamming(label q, label x) <= zeta },  R = |P_zeta(q)|
 *   PMRP = mean over zeta of mean over q of |P_zeta(q) and the first R| / R
 * and in folds (PCME's and PCME++'s figure on COCO 1K) the mean over the folds of that inside each.
 * Plausible matches are too many to list (COCO: millions), so they are found by comparing label
 * vectors as bits while a query's row of scores is at hand. The first R of a row are split off by
 * quickselect, nested from the largest R down; nothing is sorted. */
#include <math.h>
#include <string.h>

#include "eval/resample/means_bootstrap.h"
#include "eval/retrieval/scores.h"
#include "index/hits.h"

/* Label vectors as bits, `words` 64-bit words each. */
typedef struct bits {
    size_t words;
    uint64_t *query, *item;
} bits;

typedef struct pmrp_scratch {
    pnb__hit *hit;      /* [n_items] */
    uint16_t *distance; /* [n_items] */
} pmrp_scratch;

typedef struct pmrp_job {
    size_t n_items;
    const int32_t *query_fold, *item_fold; /* NULL: everything */
    int max_zeta;
    bits labels;
    pmrp_scratch *scratch;        /* [thread] */
    double *precision, *recall_1; /* [n_queries][max_zeta + 1], NaN: nothing is plausible */
} pmrp_job;

static pnb_status pack(const uint8_t *labels, size_t n, size_t n_labels, size_t words,
                       uint64_t **out, pnb_error *err)
{
    if (PNB_ALLOC_ZERO_ROWS(*out, n, words, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < n_labels; l++) {
            uint8_t value = labels[i * n_labels + l];
            if (value > 1)
                return pnb__fail(err, PNB_ARG, "label %zu of row %zu is %u; labels are 0 or 1", l,
                                 i, (unsigned)value);
            (*out)[i * words + l / 64] |= (uint64_t)value << (l % 64);
        }
    return PNB_OK;
}

static unsigned hamming(const uint64_t *a, const uint64_t *b, size_t words)
{
    unsigned n = 0;
    for (size_t w = 0; w < words; w++)
        for (uint64_t x = a[w] ^ b[w]; x != 0; x &= x - 1)
            n++;
    return n;
}

static void swap_hits(pnb__hit *a, pnb__hit *b)
{
    pnb__hit t = *a;
    *a = *b;
    *b = t;
}

/* Moves the best r of n hits to the front. The order is total, so the set of the first r is one.
 * Pivots are medians of three places: rows of scores have no order that would make them bad. */
static void select_best(pnb__hit *hit, size_t n, size_t r)
{
    size_t low = 0, high = n; /* the border r lies in [low, high] */
    while (high - low > 1 && r > low && r < high) {
        pnb__hit *a = &hit[low], *b = &hit[low + (high - low) / 2], *c = &hit[high - 1];
        if (pnb__hit_before(*b, *a))
            swap_hits(a, b);
        if (pnb__hit_before(*c, *a))
            swap_hits(a, c);
        if (pnb__hit_before(*c, *b))
            swap_hits(b, c);
        pnb__hit pivot = *b;
        size_t i = low, j = high - 1;
        for (;;) {
            while (pnb__hit_before(hit[i], pivot))
                i++;
            while (pnb__hit_before(pivot, hit[j]))
                j--;
            if (i >= j)
                break;
            swap_hits(&hit[i++], &hit[j--]);
        }
        /* [low, i) are not behind the pivot, [i, high) not before it */
        if (r <= i && i < high)
            high = i;
        else
            low = PNB_MAX(i, low + 1);
    }
}

static bool is_seen(const pmrp_job *job, size_t query, size_t item)
{
    return job->query_fold == NULL ||
           (job->query_fold[query] >= 0 && job->query_fold[query] == job->item_fold[item]);
}

static void judge_query(void *user, int thread, size_t q, const double *score)
{
    const pmrp_job *job = user;
    const pmrp_scratch *s = &job->scratch[thread];
    size_t n_zeta = (size_t)job->max_zeta + 1, r[PNB_MAX_ZETA + 1] = {0}, left = 0;
    const uint64_t *own = job->labels.query + q * job->labels.words;
    size_t best = job->n_items;
    for (size_t j = 0; j < job->n_items; j++) {
        if (!is_seen(job, q, j))
            continue;
        unsigned d = hamming(own, job->labels.item + j * job->labels.words, job->labels.words);
        s->distance[j] = (uint16_t)PNB_MIN(d, (unsigned)UINT16_MAX);
        s->hit[left++] = (pnb__hit){score[j], (int64_t)j};
        best = best == job->n_items || score[j] > score[best] ? j : best;
        for (size_t z = d; z < n_zeta; z++)
            r[z]++;
    }
    for (size_t z = n_zeta; z-- > 0;) { /* r falls with zeta: select inside the last selection */
        double *precision = &job->precision[q * n_zeta + z], *top = &job->recall_1[q * n_zeta + z];
        size_t n_plausible = 0;
        *precision = *top = (double)NAN;
        if (r[z] == 0)
            continue;
        select_best(s->hit, left, r[z]);
        left = r[z];
        for (size_t i = 0; i < r[z]; i++)
            n_plausible += s->distance[s->hit[i].index] <= z;
        *precision = (double)n_plausible / (double)r[z];
        *top = s->distance[best] <= z ? 1.0 : 0.0;
    }
}

/* Mean over the folds of the mean inside each; NaN and 0 of *n without any value. */
static double fold_mean(const pmrp_job *job, const double *value, size_t zeta, size_t n_queries,
                        size_t *n)
{
    double sum[PNB_COCO_FOLDS] = {0}, count[PNB_COCO_FOLDS] = {0}, mean = 0, n_folds = 0;
    *n = 0;
    for (size_t q = 0; q < n_queries; q++) {
        double v = value[q * ((size_t)job->max_zeta + 1) + zeta];
        size_t fold = job->query_fold == NULL || isnan(v) ? 0 : (size_t)job->query_fold[q];
        if (isnan(v))
            continue;
        sum[fold] += v;
        count[fold] += 1.0;
        ++*n;
    }
    for (size_t f = 0; f < PNB_COCO_FOLDS; f++)
        if (count[f] > 0.0) {
            mean += sum[f] / count[f];
            n_folds += 1.0;
        }
    return mean / n_folds;
}

static pnb_status average(const pmrp_job *job, size_t n_queries, pnb_pmrp *out, pnb_error *err)
{
    size_t n_zeta = (size_t)job->max_zeta + 1;
    pnb_pmrp p = {.max_zeta = job->max_zeta};
    for (size_t z = 0; z < n_zeta; z++) {
        p.r_precision[z] = fold_mean(job, job->precision, z, n_queries, &p.n_queries[z]);
        p.recall_1[z] = fold_mean(job, job->recall_1, z, n_queries, &p.n_queries[z]);
        if (p.n_queries[z] == 0)
            return pnb__fail(err, PNB_ARG,
                             "no query has an item whose labels differ in at most %zu places", z);
        p.pmrp += p.r_precision[z] / (double)n_zeta;
        p.pm_r1 += p.recall_1[z] / (double)n_zeta;
    }
    *out = p;
    return PNB_OK;
}

static pnb_status prepare(pmrp_job *job, const pnb_label_vectors *labels, size_t n_threads,
                          pnb_error *err)
{
    size_t n_zeta = (size_t)job->max_zeta + 1;
    pnb_status status = PNB_OK;
    job->labels.words = (labels->n_labels + 63) / 64;
    PNB_TRY(pack(labels->query, labels->n_queries, labels->n_labels, job->labels.words,
                 &job->labels.query, err));
    PNB_TRY(pack(labels->item, labels->n_items, labels->n_labels, job->labels.words,
                 &job->labels.item, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->precision, labels->n_queries, n_zeta, err));
    PNB_TRY(PNB_ALLOC_ROWS(job->recall_1, labels->n_queries, n_zeta, err));
    PNB_TRY(PNB_ALLOC_ZERO(job->scratch, n_threads, err));
    for (size_t i = 0; i < n_threads; i++) {
        PNB_TRY(PNB_ALLOC(job->scratch[i].hit, labels->n_items, err));
        PNB_TRY(PNB_ALLOC(job->scratch[i].distance, labels->n_items, err));
    }
done:
    return status;
}

static void reset(pmrp_job *job, size_t n_threads)
{
    for (size_t i = 0; job->scratch != NULL && i < n_threads; i++) {
        pnb__free(job->scratch[i].hit);
        pnb__free(job->scratch[i].distance);
    }
    pnb__free(job->scratch);
    pnb__free(job->labels.query);
    pnb__free(job->labels.item);
    pnb__free(job->precision);
    pnb__free(job->recall_1);
}

static pnb_status check(const pnb_label_vectors *labels, int max_zeta, pnb_error *err)
{
    if (max_zeta < 0 || max_zeta > PNB_MAX_ZETA)
        return pnb__fail(err, PNB_ARG, "zeta up to %d; 0 to %d are possible", max_zeta,
                         PNB_MAX_ZETA);
    if (labels->n_queries == 0 || labels->n_items == 0 || labels->n_labels == 0)
        return pnb__fail(err, PNB_ARG,
                         "labels of %zu queries and %zu items with %zu places; none may be 0",
                         labels->n_queries, labels->n_items, labels->n_labels);
    if ((labels->query_fold == NULL) != (labels->item_fold == NULL))
        return pnb__fail(err, PNB_ARG, "labels have folds for one side only");
    for (size_t q = 0; labels->query_fold != NULL && q < labels->n_queries; q++)
        if (labels->query_fold[q] >= PNB_COCO_FOLDS)
            return pnb__fail(err, PNB_ARG, "query %zu is in fold %d; folds are 0 to %d", q,
                             (int)labels->query_fold[q], PNB_COCO_FOLDS - 1);
    return PNB_OK;
}

static pnb_status compute(const pnb_ctx *ctx, const pnb__scores *scores,
                          const pnb_label_vectors *labels, int max_zeta, pnb_pmrp *out,
                          double *per_query, pnb_error *err)
{
    size_t n_threads = pnb__scores_threads(ctx);
    pmrp_job job = {.n_items = labels->n_items,
                    .query_fold = labels->query_fold,
                    .item_fold = labels->item_fold,
                    .max_zeta = max_zeta};
    pnb_status status = check(labels, max_zeta, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(prepare(&job, labels, n_threads, err));
    PNB_TRY(pnb__scores_visit(ctx, scores, judge_query, &job, err));
    PNB_TRY(average(&job, labels->n_queries, out, err));
    if (per_query != NULL)
        memcpy(per_query, job.precision,
               labels->n_queries * ((size_t)max_zeta + 1) * sizeof *per_query);
done:
    reset(&job, n_threads);
    return status;
}

pnb_status pnb_pmrp_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                              const pnb_label_vectors *labels, int max_zeta, pnb_pmrp *out,
                              double *per_query, pnb_error *err)
{
    pnb__scores scores = pnb__scores_rows(fn, user, labels->n_queries, labels->n_items);
    return compute(ctx, &scores, labels, max_zeta, out, per_query, err);
}

pnb_status pnb_pmrp_compute(const pnb_ctx *ctx, const pnb_pmrp_job *job, pnb_pmrp *out,
                            double *per_query, pnb_error *err)
{
    const pnb_label_vectors *labels = job->labels;
    if (job->queries->n != labels->n_queries || job->gallery->n != labels->n_items)
        return pnb__fail(err, PNB_SHAPE,
                         "the sets have %zu and %zu rows, the labels are of %zu queries and %zu "
                         "items",
                         job->queries->n, job->gallery->n, labels->n_queries, labels->n_items);
    pnb__scores scores = pnb__scores_sets(job->queries, job->gallery, job->opts);
    return compute(ctx, &scores, labels, job->max_zeta, out, per_query, err);
}

pnb_status pnb__pmrp_means(const pnb_pmrp_values *values, pnb__means *out, pnb_error *err)
{
    size_t n_zeta = (size_t)values->max_zeta + 1;
    bool in_folds = values->fold != NULL;
    pnb_status status =
        pnb__means_init(out, values->n_queries, n_zeta, in_folds ? PNB_COCO_FOLDS : 1, err);
    if (status != PNB_OK)
        return status;
    out->n = 0;
    for (size_t q = 0; q < values->n_queries; q++) {
        const double *row = values->per_query + q * n_zeta;
        if (isnan(row[n_zeta - 1])) /* what is plausible stays so for a larger zeta */
            continue;
        memcpy(out->value + out->n * n_zeta, row, n_zeta * sizeof *row);
        out->stratum[out->n] = in_folds ? values->fold[q] : 0;
        out->cluster[out->n] = values->cluster == NULL ? (int64_t)q : values->cluster[q];
        out->n++;
    }
    return PNB_OK;
}

pnb_status pnb_pmrp_bootstrap(const pnb_ctx *ctx, const pnb_pmrp_values *values,
                              const pnb_bootstrap_opts *opts, pnb_pmrp_intervals *out,
                              pnb_error *err)
{
    pnb_interval interval[PNB_MAX_ZETA + 2];
    pnb__means means = {0};
    pnb_status status;
    if (values->max_zeta < 0 || values->max_zeta > PNB_MAX_ZETA)
        return pnb__fail(err, PNB_ARG, "zeta up to %d; 0 to %d are possible", values->max_zeta,
                         PNB_MAX_ZETA);
    PNB_TRY(pnb__pmrp_means(values, &means, err));
    PNB_TRY(pnb__means_bootstrap(ctx, &means, opts, interval, NULL, err));
    memcpy(out->r_precision, interval, means.n_columns * sizeof *interval);
    out->pmrp = interval[means.n_columns];
done:
    pnb__means_reset(&means);
    return status;
}
