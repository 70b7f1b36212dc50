/* Near-duplicates: all pairs of rows whose score reaches a limit, and the groups they form.
 *
 * Blocks of rows are compared with all rows behind them by pnb_index_range. Where that finds more
 * pairs than are allowed (thousands of copies of one picture), the rows are searched for their 16
 * nearest instead, those whose last one still reaches the limit for eight times as many, up to
 * max_neighbours. Groups are connected components (union-find with path halving): a chain may join
 * rows that are not near each other. The row to keep is the most certain one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/neighbours.h"

enum { FIRST_NEIGHBOURS = 16, GROWTH = 8, RANGE_BLOCK = 8192 };

pnb_duplicates_opts pnb_duplicates_opts_default(void)
{
    return (pnb_duplicates_opts){.measure = PNB_MEASURE_MEAN,
                                 .measure_opts = pnb_measure_opts_default(),
                                 .min_score = 0.95,
                                 .max_pairs = 20000000,
                                 .max_neighbours = 100};
}

typedef struct find_job {
    const pnb_duplicates_opts *opts;
    pnb__neighbours near;
    unsigned char
        *is_cut; /* [n] its list may lack near rows: not searched to the end, or not yet */
    pnb_duplicates found;
    size_t capacity;
} find_job;

/* ---- pairs ---- */

static pnb_status add_pair(find_job *job, size_t a, size_t b, double score, pnb_error *err)
{
    pnb_duplicates *d = &job->found;
    if (d->n_pairs == job->capacity) {
        size_t capacity = job->capacity > 0 ? 2 * job->capacity : 256;
        pnb_duplicate *pair = pnb__realloc(d->pair, capacity * sizeof *pair);
        if (pair == NULL)
            return pnb__fail_nomem(err, capacity * sizeof *pair);
        d->pair = pair;
        job->capacity = capacity;
    }
    d->pair[d->n_pairs++] = (pnb_duplicate){PNB_MIN(a, b), PNB_MAX(a, b), score};
    return PNB_OK;
}

/* The near rows of one. A pair is taken from its lower row; from its upper one only where the lower
 * row's list is cut or still to come, for it may be missing there (what comes twice goes when pairs
 * are sorted). */
static pnb_status take_row(find_job *job, size_t row, const int64_t *index, const double *score,
                           size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t j = 0; status == PNB_OK && j < n; j++) {
        size_t other = index[j] < 0 ? row : (size_t)index[j];
        if (other == row || !(score[j] >= job->opts->min_score))
            continue;
        if (other > row || job->is_cut[other])
            status = add_pair(job, row, other, score[j], err);
    }
    return status;
}

/* Takes the rows whose list has come to its end; the others stay in `row` for a longer search. */
static pnb_status take_hits(find_job *job, size_t *row, size_t *n_rows, const pnb_hits *hits,
                            pnb_error *err)
{
    size_t n = job->near.rows.n, n_left = 0;
    size_t most = PNB_MIN(n, job->opts->max_neighbours + 1);
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < *n_rows; i++) {
        const int64_t *index = hits->index + i * hits->k;
        const double *score = hits->score + i * hits->k;
        bool goes_on = hits->k < n && score[hits->k - 1] >= job->opts->min_score;
        if (goes_on && hits->k < most) {
            row[n_left++] = row[i];
            continue;
        }
        job->is_cut[row[i]] = goes_on;
        job->found.n_cut += goes_on;
        status = take_row(job, row[i], index, score, hits->k, err);
    }
    *n_rows = n_left;
    return status;
}

/* Rows of one block, with growing lists for those that need them. Fewer rows are searched together
 * the longer their lists are, so that memory stays within a block of the first length. */
static pnb_status find_block(find_job *job, size_t begin, size_t count, pnb_error *err)
{
    size_t row[PNB__NEIGHBOUR_BLOCK], n_rows = count, n = job->near.rows.n;
    size_t most = PNB_MIN(n, job->opts->max_neighbours + 1);
    size_t k = PNB_MIN((size_t)FIRST_NEIGHBOURS, most);
    pnb_hits hits = {0};
    pnb_status status = pnb__neighbours_of_block(&job->near, begin, count, k, &hits, err);
    for (size_t i = 0; i < count; i++)
        row[i] = begin + i;
    memset(job->is_cut + begin, 1, count);
    if (status == PNB_OK)
        status = take_hits(job, row, &n_rows, &hits, err);
    pnb_hits_reset(&hits);
    while (status == PNB_OK && n_rows > 0) {
        size_t left[PNB__NEIGHBOUR_BLOCK], n_left = 0, step;
        k = PNB_MAX(PNB_MIN(k * GROWTH, most), (size_t)1);
        step = PNB_MAX((size_t)PNB__NEIGHBOUR_BLOCK * 64 / k, (size_t)1);
        step = PNB_MIN(step, (size_t)PNB__NEIGHBOUR_BLOCK);
        for (size_t at = 0; status == PNB_OK && at < n_rows; at += step) {
            size_t n_part = PNB_MIN(step, n_rows - at);
            status = pnb__neighbours_of_rows(&job->near, row + at, n_part, k, &hits, err);
            if (status == PNB_OK)
                status = take_hits(job, row + at, &n_part, &hits, err);
            pnb_hits_reset(&hits);
            memcpy(left + n_left, row + at, n_part * sizeof *left);
            n_left += n_part;
        }
        memcpy(row, left, n_left * sizeof *row);
        n_rows = n_left;
    }
    return status;
}

static int compare_pairs(const void *a, const void *b)
{
    const pnb_duplicate *x = a, *y = b;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static void sort_pairs(pnb_duplicates *d)
{
    size_t n = 0;
    if (d->n_pairs > 0)
        qsort(d->pair, d->n_pairs, sizeof *d->pair, compare_pairs);
    for (size_t i = 0; i < d->n_pairs; i++)
        if (n == 0 || compare_pairs(&d->pair[n - 1], &d->pair[i]) != 0)
            d->pair[n++] = d->pair[i];
    d->n_pairs = n;
}

/* ---- groups ---- */

static size_t find_root(size_t *parent, size_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* The lower root wins, so that the root of a group is its lowest row. */
static void join(size_t *parent, size_t a, size_t b)
{
    size_t x = find_root(parent, a), y = find_root(parent, b);
    parent[PNB_MAX(x, y)] = PNB_MIN(x, y);
}

typedef struct sized {
    size_t root, n;
} sized;

static int larger_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->root > y->root) - (x->root < y->root);
}

/* parent[i] becomes the root; size[root] the number of its rows. */
static size_t count_groups(size_t *parent, size_t *size, size_t n, size_t *n_rows)
{
    size_t n_groups = 0;
    *n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        parent[i] = find_root(parent, i);
        size[parent[i]]++;
    }
    for (size_t i = 0; i < n; i++) {
        n_groups += parent[i] == i && size[i] > 1;
        *n_rows += size[parent[i]] > 1;
    }
    return n_groups;
}

static void choose_rows(pnb_duplicates *d, const double *u)
{
    for (size_t g = 0; g < d->n_groups; g++) {
        d->keep[g] = d->row[d->offset[g]];
        for (size_t i = d->offset[g]; u != NULL && i < d->offset[g + 1]; i++)
            if (u[d->row[i]] < u[d->keep[g]])
                d->keep[g] = d->row[i];
    }
}

/* Lists the groups; `size` becomes the place where the next row of a root goes. */
static pnb_status list_groups(pnb_duplicates *d, const size_t *parent, size_t *size, size_t n,
                              size_t n_rows, pnb_error *err)
{
    size_t n_found = 0, at = 0;
    sized *group = pnb__alloc_array(PNB_MAX(d->n_groups, (size_t)1), sizeof *group);
    d->offset = pnb__alloc_array(d->n_groups + 1, sizeof *d->offset);
    d->row = pnb__alloc_array(PNB_MAX(n_rows, (size_t)1), sizeof *d->row);
    d->keep = pnb__alloc_array(PNB_MAX(d->n_groups, (size_t)1), sizeof *d->keep);
    if (group == NULL || d->offset == NULL || d->row == NULL || d->keep == NULL) {
        pnb__free(group);
        return pnb__fail_nomem(err, n_rows * sizeof *d->row);
    }
    for (size_t i = 0; i < n; i++)
        if (parent[i] == i && size[i] > 1)
            group[n_found++] = (sized){i, size[i]};
    qsort(group, n_found, sizeof *group, larger_first);
    for (size_t g = 0; g < n_found; g++) {
        d->offset[g] = at;
        at += group[g].n;
    }
    d->offset[n_found] = at;
    memset(size, 0xff, n * sizeof *size);
    for (size_t g = 0; g < n_found; g++)
        size[group[g].root] = d->offset[g];
    for (size_t i = 0; i < n; i++)
        if (size[parent[i]] != SIZE_MAX)
            d->row[size[parent[i]]++] = i;
    pnb__free(group);
    return PNB_OK;
}

static pnb_status make_groups(pnb_duplicates *d, size_t n, const double *u, pnb_error *err)
{
    size_t *parent = pnb__alloc_array(n, sizeof *parent), n_rows = 0;
    size_t *size = pnb__alloc_zero(n, sizeof *size);
    pnb_status status =
        parent == NULL || size == NULL ? pnb__fail_nomem(err, 2 * n * sizeof *size) : PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        parent[i] = i;
    for (size_t p = 0; status == PNB_OK && p < d->n_pairs; p++)
        join(parent, d->pair[p].a, d->pair[p].b);
    if (status == PNB_OK) {
        d->n_groups = count_groups(parent, size, n, &n_rows);
        status = list_groups(d, parent, size, n, n_rows, err);
    }
    if (status == PNB_OK)
        choose_rows(d, u);
    pnb__free(parent);
    pnb__free(size);
    return status;
}

/* ---- all ---- */

static pnb_status check(const pnb_gaussians *rows, const double *u, const pnb_duplicates_opts *o,
                        pnb_error *err)
{
    if (isnan(o->min_score) || o->max_neighbours == 0)
        return pnb__fail(err, PNB_ARG,
                         "a score of at least %g and %zu neighbours; a number and at least one are "
                         "wanted",
                         o->min_score, o->max_neighbours);
    for (size_t i = 0; u != NULL && i < rows->n; i++)
        if (isnan(u[i]))
            return pnb__fail(err, PNB_NUMERIC, "the uncertainty of row %zu is not a number", i);
    return PNB_OK;
}

static pnb_status watch_step(const pnb_watch *watch, size_t done, size_t total, pnb_error *err)
{
    if (watch->step != NULL && !watch->step(watch->user, done, total))
        return pnb__fail(err, PNB_INTERRUPTED, "stopped after %zu of %zu rows", done, total);
    return PNB_OK;
}

/* The pairs of a block of rows with themselves and with all behind them. *too_many tells that there
 * are more than the limit leaves room for; what was found before stays. */
static pnb_status join_block(find_job *job, const pnb_ctx *ctx, size_t begin, size_t count,
                             bool *too_many, pnb_error *err)
{
    const pnb_rows *all = &job->near.rows;
    const pnb_rows queries = pnb_rows_slice(all, begin, count);
    const pnb_rows behind = pnb_rows_slice(all, begin, all->n - begin);
    pnb_search_opts search = pnb_search_opts_default();
    size_t room = job->opts->max_pairs - job->found.n_pairs;
    /* a block finds its own rows, and pairs within it twice */
    pnb_range_opts range = {.min_score = job->opts->min_score, .max_pairs = 2 * room + count};
    pnb_index *index = NULL;
    pnb_pairs pairs = {0};
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status;
    search.measure = job->opts->measure;
    search.measure_opts = job->opts->measure_opts;
    PNB_TRY(pnb_index_create(&index, ctx, &behind, &search, err));
    status = pnb_index_range(index, ctx, &queries, &range, &pairs, &why);
    *too_many = status == PNB_ARG; /* all else that is ARG was refused when the index was made */
    if (*too_many)
        status = PNB_OK;
    else if (status != PNB_OK)
        pnb__fail(err, status, "%s", why.text);
    for (size_t i = 0; status == PNB_OK && !*too_many && i < pairs.n; i++) {
        if (pairs.item[i] <= pairs.query[i])
            continue;
        *too_many = job->found.n_pairs == job->opts->max_pairs;
        if (!*too_many)
            status = add_pair(job, begin + (size_t)pairs.query[i], begin + (size_t)pairs.item[i],
                              pairs.score[i], err);
    }
done:
    pnb_pairs_reset(&pairs);
    pnb_index_free(index);
    return status;
}

/* All pairs; *too_many when there are more than are allowed. */
static pnb_status join_all(find_job *job, const pnb_ctx *ctx, bool *too_many, pnb_error *err)
{
    size_t n = job->near.rows.n;
    pnb_status status = PNB_OK;
    for (size_t begin = 0; status == PNB_OK && !*too_many && begin < n; begin += RANGE_BLOCK) {
        size_t count = PNB_MIN((size_t)RANGE_BLOCK, n - begin);
        status = join_block(job, ctx, begin, count, too_many, err);
        if (status == PNB_OK)
            status = watch_step(&job->opts->watch, begin + count, n, err);
    }
    return status;
}

/* The nearest rows of each, as far as max_neighbours allows. */
static pnb_status list_all(find_job *job, pnb_error *err)
{
    size_t n = job->near.rows.n;
    pnb_status status = PNB_OK;
    job->found.n_pairs = 0;
    job->is_cut = pnb__alloc_zero(n, 1);
    if (job->is_cut == NULL)
        return pnb__fail_nomem(err, n);
    for (size_t begin = 0; status == PNB_OK && begin < n; begin += PNB__NEIGHBOUR_BLOCK) {
        size_t count = PNB_MIN((size_t)PNB__NEIGHBOUR_BLOCK, n - begin);
        status = find_block(job, begin, count, err);
        if (status == PNB_OK)
            status = watch_step(&job->opts->watch, begin + count, n, err);
    }
    return status;
}

pnb_status pnb_duplicates_find(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                               const pnb_duplicates_opts *opts, pnb_duplicates *out, pnb_error *err)
{
    pnb_duplicates_opts o = opts != NULL ? *opts : pnb_duplicates_opts_default();
    find_job job = {.opts = &o};
    bool too_many = false;
    pnb_status status;
    *out = (pnb_duplicates){0};
    PNB_TRY(check(rows, u, &o, err));
    PNB_TRY(pnb__neighbours_init(&job.near, ctx, rows, o.measure, &o.measure_opts, err));
    PNB_TRY(join_all(&job, ctx, &too_many, err));
    if (too_many)
        PNB_TRY(list_all(&job, err));
    sort_pairs(&job.found);
    PNB_TRY(make_groups(&job.found, rows->n, u, err));
    *out = job.found;
    job.found = (pnb_duplicates){0};
done:
    pnb_duplicates_reset(&job.found);
    pnb__neighbours_reset(&job.near);
    pnb__free(job.is_cut);
    return status;
}

void pnb_duplicates_reset(pnb_duplicates *d)
{
    if (d == NULL)
        return;
    pnb__free(d->pair);
    pnb__free(d->offset);
    pnb__free(d->row);
    pnb__free(d->keep);
    *d = (pnb_duplicates){0};
}
