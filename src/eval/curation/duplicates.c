/* Near-duplicates: all pairs of rows whose score reaches a limit, and the groups they form.
 *
 * Rows that are the same bit for bit score the same, so one of each kind is searched and what is
 * found is said of all of them. Blocks of kinds are compared with all kinds behind them by
 * pnb_index_range. Where that makes more pairs than are allowed (thousands of copies of one
 * picture), kinds are searched for their 16 nearest rows instead, those whose last one still
 * reaches the limit for eight times as many, up to max_neighbours. Groups are connected components
 * (union-find with path halving): a chain may join rows that are not near each other. The row to
 * keep is the most certain one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "eval/curation/exact_duplicates.h"
#include "eval/curation/neighbours.h"
#include "penumbra/duplicates.h"
#include "prob/measure.h"

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
    const pnb_ctx *ctx;
    pnb_rows rows; /* all of them */
    pnb__exact_duplicates copies;
    pnb__neighbours near;
    size_t *row_of; /* rows of a search for the nearest: [near.rows.n] which row each of them is */
    size_t *at;     /* [kind] where its first row is among those */
    unsigned char
        *is_cut; /* [kind] its list may lack near rows: not searched to the end, or not yet */
    pnb_duplicates found;
} find_job;

static size_t count_of(const find_job *job, size_t kind)
{
    return job->copies.offset[kind + 1] - job->copies.offset[kind];
}

static const size_t *rows_of(const find_job *job, size_t kind)
{
    return job->copies.row + job->copies.offset[kind];
}

/* ---- pairs ---- */

static pnb_status add_pair(find_job *job, size_t a, size_t b, double score, pnb_error *err)
{
    pnb_duplicates *d = &job->found;
    pnb_duplicate pair = {PNB_MIN(a, b), PNB_MAX(a, b), score};
    return PNB_PUSH(d->pair, d->n_pairs, err, pair);
}

/* ---- the nearest rows of each ---- */

/* The near rows of one. A pair is taken from its lower row; from its upper one only where the lower
 * row's list is cut or still to come, for it may be missing there (what comes twice goes when pairs
 * are sorted). */
static pnb_status take_row(find_job *job, size_t row, const int64_t *index, const double *score,
                           size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t j = 0; status == PNB_OK && j < n; j++) {
        size_t other = index[j] < 0 ? row : job->row_of[index[j]];
        if (other == row || !(score[j] >= job->opts->min_score))
            continue;
        if (other > row || job->is_cut[job->copies.kind[other]])
            status = add_pair(job, row, other, score[j], err);
    }
    return status;
}

/* Entries of one list: a row itself and its neighbours; never 0, whatever the limit. */
static size_t most_in_list(const find_job *job)
{
    return 1 + PNB_MIN(job->rows.n - 1, job->opts->max_neighbours);
}

/* Takes the kinds whose list has come to its end; the others stay in `kind` for a longer search. */
static pnb_status take_hits(find_job *job, size_t *kind, size_t *n_kinds, const pnb_hits *hits,
                            pnb_error *err)
{
    size_t n = job->rows.n, n_left = 0;
    size_t most = most_in_list(job);
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < *n_kinds; i++) {
        const int64_t *index = hits->index + i * hits->k;
        const double *score = hits->score + i * hits->k;
        size_t count = count_of(job, kind[i]);
        bool goes_on = hits->k < n && score[hits->k - 1] >= job->opts->min_score;
        if (goes_on && hits->k < most) {
            kind[n_left++] = kind[i];
            continue;
        }
        job->is_cut[kind[i]] = goes_on;
        job->found.n_cut += goes_on ? count : 0;
        for (size_t r = 0; status == PNB_OK && r < count; r++)
            status = take_row(job, rows_of(job, kind[i])[r], index, score, hits->k, err);
    }
    *n_kinds = n_left;
    return status;
}

/* One search of kinds for their k nearest. */
static pnb_status search_kinds(find_job *job, size_t *kind, size_t *n_kinds, size_t k,
                               pnb_error *err)
{
    size_t row[PNB__NEIGHBOUR_BLOCK];
    pnb_hits hits = {0};
    for (size_t i = 0; i < *n_kinds; i++)
        row[i] = job->at[kind[i]];
    pnb_status status = pnb__neighbours_of_rows(&job->near, row, *n_kinds, k, &hits, err);
    if (status == PNB_OK)
        status = take_hits(job, kind, n_kinds, &hits, err);
    pnb_hits_reset(&hits);
    return status;
}

/* Kinds of one block, with growing lists for those that need them. Fewer are searched together the
 * longer their lists are, so that memory stays within a block of the first length. */
static pnb_status find_block(find_job *job, size_t begin, size_t count, pnb_error *err)
{
    size_t kind[PNB__NEIGHBOUR_BLOCK], n_kinds = count;
    size_t most = most_in_list(job);
    size_t k = PNB_MIN((size_t)FIRST_NEIGHBOURS, most);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < count; i++)
        kind[i] = begin + i;
    while (status == PNB_OK && n_kinds > 0) {
        size_t step = PNB_MAX((size_t)PNB__NEIGHBOUR_BLOCK * 64 / k, (size_t)1), n_left = 0;
        step = PNB_MIN(step, (size_t)PNB__NEIGHBOUR_BLOCK);
        for (size_t at = 0; status == PNB_OK && at < n_kinds; at += step) {
            size_t n_part = PNB_MIN(step, n_kinds - at);
            status = search_kinds(job, kind + at, &n_part, k, err);
            memmove(kind + n_left, kind + at, n_part * sizeof *kind);
            n_left += n_part;
        }
        n_kinds = n_left;
        k = PNB_MIN(k * GROWTH, most);
    }
    return status;
}

/* The rows to be searched: of each kind as many as a list can hold. Those behind them never come
 * into one, since equal scores go by row. */
static pnb_status choose_gallery(find_job *job, pnb__gathered *gallery, pnb_error *err)
{
    size_t n = job->rows.n, n_kept = 0;
    size_t most = most_in_list(job);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++) {
        size_t kind = job->copies.kind[i];
        if (i == job->copies.first[kind])
            job->at[kind] = n_kept;
        if (count_of(job, kind) <= most || i <= rows_of(job, kind)[most - 1])
            job->row_of[n_kept++] = i;
    }
    if (n_kept == n)
        return PNB_OK;
    status = pnb__gathered_init(gallery, &job->rows, job->row_of, n_kept, err);
    pnb__neighbours_reset(&job->near);
    if (status == PNB_OK)
        status = pnb__neighbours_init(&job->near, job->ctx, &gallery->rows, job->opts->measure,
                                      &job->opts->measure_opts, err);
    return status;
}

static pnb_status watch_kinds(const find_job *job, size_t n_done, pnb_error *err)
{
    const pnb_watch *watch = &job->opts->watch;
    size_t total = job->rows.n;
    size_t done = n_done < job->copies.n_kinds ? job->copies.first[n_done] : total;
    if (watch->step != NULL && !watch->step(watch->user, done, total))
        return pnb__fail(err, PNB_INTERRUPTED, "stopped after %zu of %zu rows", done, total);
    return PNB_OK;
}

/* The nearest rows of each, as far as max_neighbours allows. */
static pnb_status list_all(find_job *job, pnb_error *err)
{
    size_t n = job->copies.n_kinds;
    pnb__gathered gallery = {0};
    pnb_status status = PNB_OK;
    job->found.n_pairs = 0;
    PNB_TRY(PNB_ALLOC(job->is_cut, n, err));
    PNB_TRY(PNB_ALLOC(job->at, n, err));
    PNB_TRY(PNB_ALLOC(job->row_of, job->rows.n, err));
    memset(job->is_cut, 1, n);
    PNB_TRY(choose_gallery(job, &gallery, err));
    for (size_t begin = 0; begin < n; begin += PNB__NEIGHBOUR_BLOCK) {
        size_t count = PNB_MIN((size_t)PNB__NEIGHBOUR_BLOCK, n - begin);
        PNB_TRY(find_block(job, begin, count, err));
        PNB_TRY(watch_kinds(job, begin + count, err));
    }
done:
    pnb__neighbours_reset(&job->near); /* it looks at the gallery */
    pnb__gathered_reset(&gallery);
    return status;
}

/* ---- all pairs ---- */

/* Kinds begin .. begin + rows.n. */
typedef struct kind_block {
    size_t begin;
    pnb__gathered of;
} kind_block;

static pnb_status gather_block(find_job *job, size_t begin, size_t count, kind_block *block,
                               pnb_error *err)
{
    block->begin = begin;
    return pnb__gathered_init(&block->of, &job->rows, job->copies.first + begin, count, err);
}

/* The pairs of rows that one pair of kinds stands for, n of them; none where the second comes
 * first, since those of a block with itself are found both ways. */
static size_t count_pairs(const find_job *job, size_t kind, size_t other)
{
    size_t n = count_of(job, kind);
    if (other < kind)
        return 0;
    return other == kind ? n * (n - 1) / 2 : n * count_of(job, other);
}

static pnb_status expand(find_job *job, size_t kind, size_t other, double score, pnb_error *err)
{
    const size_t *a = rows_of(job, kind), *b = rows_of(job, other);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < count_of(job, kind); i++)
        for (size_t j = kind == other ? i + 1 : 0; status == PNB_OK && j < count_of(job, other);
             j++)
            status = add_pair(job, a[i], b[j], score, err);
    return status;
}

/* Counts before anything is kept. *too_many tells that there are more than the limit leaves room
 * for. */
static pnb_status take_pairs(find_job *job, const pnb_pairs *pairs, const size_t begin[2],
                             bool *too_many, pnb_error *err)
{
    size_t room = job->opts->max_pairs - job->found.n_pairs;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < pairs->n && !*too_many; i++) {
        size_t n =
            count_pairs(job, begin[0] + (size_t)pairs->query[i], begin[1] + (size_t)pairs->item[i]);
        *too_many = n > room;
        room -= *too_many ? 0 : n;
    }
    for (size_t i = 0; status == PNB_OK && !*too_many && i < pairs->n; i++) {
        size_t kind = begin[0] + (size_t)pairs->query[i], other = begin[1] + (size_t)pairs->item[i];
        if (count_pairs(job, kind, other) > 0)
            status = expand(job, kind, other, pairs->score[i], err);
    }
    return status;
}

/* The pairs of a block with another, or with itself and what follows it. */
static pnb_status join_blocks(find_job *job, const kind_block *block, const kind_block *behind,
                              bool *too_many, pnb_error *err)
{
    pnb_search_opts search = pnb_search_opts_default();
    size_t room = PNB_MIN(job->opts->max_pairs - job->found.n_pairs, SIZE_MAX / 4);
    /* a block finds its own kinds, and pairs within it twice */
    pnb_range_opts range = {.min_score = job->opts->min_score,
                            .max_pairs = 2 * room + block->of.rows.n};
    const size_t begin[2] = {block->begin, behind->begin};
    pnb_index *index = NULL;
    pnb_pairs pairs = {0};
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status;
    search.measure = job->opts->measure;
    search.measure_opts = job->opts->measure_opts;
    PNB_TRY(pnb_index_create(&index, job->ctx, &behind->of.rows, &search, err));
    status = pnb_index_range(index, job->ctx, &block->of.rows, &range, &pairs, &why);
    *too_many = status == PNB_ARG; /* all else that is ARG was refused when the index was made */
    if (*too_many)
        status = PNB_OK;
    else if (status != PNB_OK)
        pnb__fail(err, status, "%s", why.text);
    else
        status = take_pairs(job, &pairs, begin, too_many, err);
done:
    pnb_pairs_reset(&pairs);
    pnb_index_free(index);
    return status;
}

/* The pairs of a block with itself and with all behind it. Without copies that is one search on the
 * rows where they lie; with them blocks are gathered one by one, so that memory stays small. */
static pnb_status join_behind(find_job *job, size_t begin, size_t count, bool *too_many,
                              pnb_error *err)
{
    size_t n = job->copies.n_kinds, step = n == job->rows.n ? n : (size_t)RANGE_BLOCK;
    kind_block block = {0}, behind = {0};
    pnb_status status = gather_block(job, begin, count, &block, err);
    for (size_t at = begin; status == PNB_OK && !*too_many && at < n;) {
        size_t n_part = PNB_MIN(step, n - at);
        status = gather_block(job, at, n_part, &behind, err);
        if (status == PNB_OK)
            status = join_blocks(job, &block, &behind, too_many, err);
        pnb__gathered_reset(&behind.of);
        at += n_part;
    }
    pnb__gathered_reset(&block.of);
    return status;
}

/* All pairs; *too_many when there are more than are allowed. */
static pnb_status join_all(find_job *job, bool *too_many, pnb_error *err)
{
    size_t n = job->copies.n_kinds;
    pnb_status status = PNB_OK;
    for (size_t begin = 0; status == PNB_OK && !*too_many && begin < n; begin += RANGE_BLOCK) {
        size_t count = PNB_MIN((size_t)RANGE_BLOCK, n - begin);
        status = join_behind(job, begin, count, too_many, err);
        if (status == PNB_OK)
            status = watch_kinds(job, begin + count, err);
    }
    return status;
}

/* ---- order ---- */

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

/* Monte-Carlo measures draw by row, so that copies differ; rows that will be refused keep the
 * numbers by which the text names them. */
static bool keeps_copies_apart(const pnb_rows *rows, pnb_measure measure)
{
    if (pnb__measure_is_sampled(measure))
        return true;
    for (size_t i = 0; i < rows->n * rows->dim; i++)
        if (!isfinite(rows->mean[i]) ||
            (rows->log_var != NULL && !(fabsf(rows->log_var[i]) <= 30.0f)))
            return true;
    return false;
}

pnb_status pnb_duplicates_find(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                               const pnb_duplicates_opts *opts, pnb_duplicates *out, pnb_error *err)
{
    pnb_duplicates_opts o = opts != NULL ? *opts : pnb_duplicates_opts_default();
    find_job job = {.opts = &o, .ctx = ctx};
    bool too_many = false;
    pnb_status status;
    *out = (pnb_duplicates){0};
    PNB_TRY(check(rows, u, &o, err));
    PNB_TRY(pnb__neighbours_init(&job.near, ctx, rows, o.measure, &o.measure_opts, err));
    job.rows = job.near.rows;
    PNB_TRY(pnb__exact_duplicates_find(&job.copies, &job.rows,
                                       keeps_copies_apart(&job.rows, o.measure), err));
    PNB_TRY(join_all(&job, &too_many, err));
    if (too_many)
        PNB_TRY(list_all(&job, err));
    sort_pairs(&job.found);
    PNB_TRY(make_groups(&job.found, rows->n, u, err));
    *out = job.found;
    job.found = (pnb_duplicates){0};
done:
    pnb_duplicates_reset(&job.found);
    pnb__neighbours_reset(&job.near);
    pnb__exact_duplicates_reset(&job.copies);
    pnb__free(job.is_cut);
    pnb__free(job.row_of);
    pnb__free(job.at);
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
