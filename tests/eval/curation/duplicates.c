/* Near-duplicates against a plain search of all pairs: pairs, groups, the row to keep, long lists,
 * rows that repeat each other bit for bit, limits, and what is refused. */
#include "penumbra/duplicates.h"
#include "penumbra/search.h"
#include "tests/prob/support.h"

/* Rows of `n_centres` clusters: noise around each, sizes 1, 2, 3, ... */
static gaussians clusters(size_t n, size_t dim, size_t n_centres, double noise, uint64_t seed)
{
    gaussians g = random_gaussians(n, dim, -7, -5, seed),
              c = random_gaussians(n_centres, dim, 0, 0, 9);
    for (size_t i = 0; i < n; i++) {
        size_t centre = (i * i + 3 * i) % n_centres;
        double square = 0;
        for (size_t d = 0; d < dim; d++) {
            g.mean[i * dim + d] =
                (float)(c.mean[centre * dim + d] + noise * (double)g.mean[i * dim + d]);
            square += (double)g.mean[i * dim + d] * (double)g.mean[i * dim + d];
        }
        for (size_t d = 0; d < dim; d++)
            g.mean[i * dim + d] = (float)((double)g.mean[i * dim + d] / sqrt(square));
    }
    free_gaussians(&c);
    return g;
}

static double score_of(pnb_measure measure, const pnb_gaussians *g, size_t i, size_t j)
{
    return pnb_measure_score(measure, pnb_measure_pair(measure, g, i, g, j, NULL));
}

/* Every pair is there once, in order, with its score; groups are the components; keep is the most
 * certain. */
static void assert_right(const pnb_gaussians *g, const double *u, const pnb_duplicates_opts *o,
                         const pnb_duplicates *d)
{
    size_t at = 0, *label = malloc(g->n * sizeof *label), n_in_groups = 0;
    assert_non_null(label);
    for (size_t i = 0; i < g->n; i++)
        label[i] = i;
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = i + 1; j < g->n; j++) {
            double score = score_of(o->measure, g, i, j);
            if (score < o->min_score)
                continue;
            assert_true(at < d->n_pairs);
            assert_int_equal(d->pair[at].a, i);
            assert_int_equal(d->pair[at].b, j);
            assert_near(d->pair[at++].score, score, 1e-12, 0);
            size_t from = PNB_MAX(label[i], label[j]), to = PNB_MIN(label[i], label[j]);
            for (size_t k = 0; k < g->n; k++)
                if (label[k] == from)
                    label[k] = to;
        }
    assert_int_equal(at, d->n_pairs);
    for (size_t k = 0; k < d->n_groups; k++) {
        size_t first = d->row[d->offset[k]], best = first, n = d->offset[k + 1] - d->offset[k];
        assert_true(n >= 2);
        assert_true(k == 0 || n <= d->offset[k] - d->offset[k - 1]);
        for (size_t i = d->offset[k]; i < d->offset[k + 1]; i++) {
            assert_int_equal(label[d->row[i]], label[first]);
            assert_true(i == d->offset[k] || d->row[i] > d->row[i - 1]);
            if (u != NULL && u[d->row[i]] < u[best])
                best = d->row[i];
        }
        assert_int_equal(d->keep[k], best);
        n_in_groups += n;
    }
    for (size_t i = 0, alone = 0; i < g->n; i++) {
        size_t same = 0;
        for (size_t j = 0; j < g->n; j++)
            same += label[j] == label[i];
        alone += same == 1;
        if (i + 1 == g->n)
            assert_int_equal(alone + n_in_groups, g->n);
    }
    free(label);
}

static void finds_all_pairs(void **state)
{
    (void)state;
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts two = pnb_ctx_opts_default();
    two.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &two, err));
    const size_t sizes[] = {1, 2, 40, 700};
    const pnb_measure measures[] = {PNB_MEASURE_MEAN, PNB_MEASURE_CSD, PNB_MEASURE_W2};
    for (size_t s = 0; s < PNB_COUNT(sizes); s++)
        for (size_t m = 0; m < PNB_COUNT(measures); m++) {
            size_t n = sizes[s],
                   n_centres = n / 9 + 1; /* up to dozens in a group: lists must grow */
            gaussians g = clusters(n, 24, n_centres, 0.25, 3 + s);
            double *u = malloc(n * sizeof *u);
            assert_non_null(u);
            assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &g.view, u, err));
            pnb_duplicates_opts o = pnb_duplicates_opts_default();
            o.measure = measures[m];
            o.min_score = measures[m] == PNB_MEASURE_W2 ? -0.12 : 0.9;
            pnb_duplicates d;
            assert_ok(pnb_duplicates_find(ctx, &g.view, u, &o, &d, err));
            assert_int_equal(d.n_cut, 0);
            assert_true(n < 40 || d.n_groups > 1);
            assert_right(&g.view, u, &o, &d);
            pnb_duplicates_reset(&d);
            o.max_pairs = 1; /* the other way: lists of nearest rows */
            o.max_neighbours = n;
            assert_ok(pnb_duplicates_find(ctx, &g.view, u, &o, &d, err));
            assert_int_equal(d.n_cut, 0);
            assert_right(&g.view, u, &o, &d);
            pnb_duplicates_reset(&d);
            o.max_neighbours = SIZE_MAX;
            assert_ok(pnb_duplicates_find(ctx, &g.view, u, &o, &d, err));
            assert_right(&g.view, u, &o, &d);
            pnb_duplicates_reset(&d);
            o.max_pairs = 10000000;
            assert_ok(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err));
            assert_right(&g.view, NULL, &o, &d);
            pnb_duplicates_reset(&d);
            free(u);
            free_gaussians(&g);
        }
    pnb_ctx_free(ctx);
    pnb_duplicates_reset(NULL);
}

/* All rows the same: lists grow up to the limit, and cut ones still hold together. */
static void groups_copies(void **state)
{
    (void)state;
    enum { COPIES = 1500, DIM = 8 };
    gaussians g = random_gaussians(COPIES + 1, DIM, -3, -3, 1);
    for (size_t i = 1; i < COPIES; i++)
        memcpy(g.mean + i * DIM, g.mean, DIM * sizeof(float));
    for (size_t d = 0; d < DIM; d++)
        g.mean[(size_t)COPIES * DIM + d] = -g.mean[d];
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    pnb_duplicates d;
    const size_t n_pairs = (size_t)COPIES * (COPIES - 1) / 2;
    o.max_pairs = n_pairs;
    assert_ok(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err));
    assert_int_equal(d.n_cut, 0);
    assert_int_equal(d.n_pairs, n_pairs);
    pnb_duplicates_reset(&d);
    o.max_pairs = n_pairs - 1; /* one too many: lists of 100 */
    assert_ok(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err));
    assert_int_equal(d.n_groups, 1);
    assert_int_equal(d.offset[1], COPIES);
    assert_int_equal(d.n_cut, COPIES);
    assert_int_equal(d.keep[0], 0);
    assert_true(d.n_pairs < (size_t)COPIES * 101);
    pnb_duplicates_reset(&d);
    o.max_neighbours = COPIES; /* lists as long as they need to be: all pairs again */
    assert_ok(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err));
    assert_int_equal(d.n_cut, 0);
    assert_int_equal(d.n_pairs, n_pairs);
    pnb_duplicates_reset(&d);
    free_gaussians(&g);
}

/* a near b, b near c, a not near c: one group. */
static void joins_chains(void **state)
{
    (void)state;
    float mean[4][2];
    const double angles[4] = {0, 0.2, 0.4, 2};
    for (size_t i = 0; i < 4; i++) {
        mean[i][0] = (float)cos(angles[i]);
        mean[i][1] = (float)sin(angles[i]);
    }
    const pnb_gaussians g = {.n = 4, .dim = 2, .mean = mean[0]};
    const double u[4] = {3, 2, 2, 1};
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    o.min_score = cos(0.3);
    pnb_duplicates d;
    assert_ok(pnb_duplicates_find(NULL, &g, u, &o, &d, err));
    assert_int_equal(d.n_pairs, 2);
    assert_int_equal(d.n_groups, 1);
    assert_int_equal(d.offset[1], 3);
    assert_int_equal(d.keep[0], 1);
    pnb_duplicates_reset(&d);
}

/* A pair that is missing from the lower row's list, which is full of nearer rows. */
static void finds_pairs_beyond_full_lists(void **state)
{
    (void)state;
    enum { NEAR = 40, ALL = NEAR + 2 };
    float mean[ALL][2];
    for (size_t i = 0; i < ALL; i++) {
        double angle = i <= NEAR ? -0.001 * (double)i : 0.3;
        mean[i][0] = (float)cos(angle);
        mean[i][1] = (float)sin(angle);
    }
    const pnb_gaussians g = {.n = ALL, .dim = 2, .mean = mean[0]};
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    pnb_duplicates d;
    o.min_score = cos(0.3005); /* the last row is near the first one only */
    o.max_pairs = 100;
    o.max_neighbours = 20;
    assert_ok(pnb_duplicates_find(NULL, &g, NULL, &o, &d, err));
    assert_int_equal(d.n_cut, NEAR + 1);
    assert_int_equal(d.n_groups, 1);
    assert_int_equal(d.offset[1], ALL);
    pnb_duplicates_reset(&d);
}

/* Rows of which many repeat each other bit for bit, some nearly, and some are zero or minus zero:
 * kinds of 1 to some hundred rows, interleaved. */
static gaussians repeating(size_t n, size_t dim, uint64_t seed)
{
    gaussians g = clusters(n, dim, n / 20 + 1, 0.2, seed);
    for (size_t i = 0; i < n; i++) {
        size_t from = i * i % 61, bytes = dim * sizeof(float);
        if (i % 3 == 0 || i % 7 == 1) { /* row 0 lies furthest apart from its last copies */
            from = i % 2 == 0 ? from % 5 : from;
            memcpy(g.mean + i * dim, g.mean + from * dim, bytes);
            memcpy(g.log_var + i * dim, g.log_var + from * dim, bytes);
        }
        if (i % 23 == 4)
            memset(g.mean + i * dim, 0, bytes);
        if (i % 23 == 5)
            for (size_t d = 0; d < dim; d++)
                g.mean[i * dim + d] = -0.0f;
    }
    return g;
}

static int by_rows(const void *a, const void *b)
{
    const pnb_duplicate *x = a, *y = b;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* The pairs in which either row is among the `most` nearest of the other, from a search of all rows
 * with all rows; *n_cut rows whose list is full. */
static pnb_duplicate *nearest_pairs(const pnb_gaussians *g, const pnb_duplicates_opts *o,
                                    size_t *n_pairs, size_t *n_cut)
{
    size_t most = PNB_MIN(g->n, o->max_neighbours + 1), n = 0;
    pnb_search_opts search = pnb_search_opts_default();
    pnb_hits hits;
    search.measure = o->measure;
    search.k = most;
    assert_ok(pnb_search(NULL, g, g, &search, &hits, err));
    pnb_duplicate *pair = malloc(g->n * most * sizeof *pair);
    assert_non_null(pair);
    *n_cut = 0;
    for (size_t i = 0; i < g->n; i++) {
        *n_cut += most < g->n && hits.score[i * most + most - 1] >= o->min_score;
        for (size_t j = i * most; j < (i + 1) * most; j++) {
            size_t other = (size_t)hits.index[j];
            if (other != i && hits.score[j] >= o->min_score)
                pair[n++] = (pnb_duplicate){PNB_MIN(i, other), PNB_MAX(i, other), hits.score[j]};
        }
    }
    qsort(pair, n, sizeof *pair, by_rows);
    *n_pairs = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_rows(&pair[i - 1], &pair[i]) != 0)
            pair[(*n_pairs)++] = pair[i];
    pnb_hits_reset(&hits);
    return pair;
}

/* All pairs from a join of all rows, in order. */
static pnb_duplicate *joined_pairs(const pnb_gaussians *g, const pnb_duplicates_opts *o,
                                   size_t *n_pairs)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_range_opts range = {.min_score = o->min_score, .max_pairs = 10000000};
    pnb_index *index = NULL;
    pnb_pairs found;
    search.measure = o->measure;
    assert_ok(pnb_index_create(&index, NULL, g, &search, err));
    assert_ok(pnb_index_self_join(index, NULL, &range, &found, err));
    pnb_duplicate *pair = malloc((found.n + 1) * sizeof *pair);
    assert_non_null(pair);
    for (size_t i = 0; i < found.n; i++)
        pair[i] = (pnb_duplicate){(size_t)found.query[i], (size_t)found.item[i], found.score[i]};
    qsort(pair, found.n, sizeof *pair, by_rows);
    *n_pairs = found.n;
    pnb_pairs_reset(&found);
    pnb_index_free(index);
    return pair;
}

/* The same rows and the same bits of every score. */
static void assert_pairs(const pnb_duplicates *d, const pnb_duplicate *pair, size_t n)
{
    assert_int_equal(d->n_pairs, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(d->pair[i].a, pair[i].a);
        assert_int_equal(d->pair[i].b, pair[i].b);
        assert_memory_equal(&d->pair[i].score, &pair[i].score, sizeof pair[i].score);
    }
}

/* Copies are searched once and said of all: nothing differs from a search of every row. */
static void copies_change_nothing(void **state)
{
    (void)state;
    const struct {
        pnb_measure measure;
        double min_score;
    } cases[] = {{PNB_MEASURE_MEAN, 0.9},      {PNB_MEASURE_MEAN, -0.01}, {PNB_MEASURE_CSD, 0.95},
                 {PNB_MEASURE_CSD, 0.45},      {PNB_MEASURE_W2, -0.1},    {PNB_MEASURE_ELK, 20},
                 {PNB_MEASURE_JEFFREYS, -2.0}, {PNB_MEASURE_AVG_L2, -0.9}};
    gaussians g = repeating(300, 12, 4);
    double u[300];
    for (size_t i = 0; i < 300; i++)
        u[i] = (double)(i * 7 % 13);
    for (size_t c = 0; c < PNB_COUNT(cases); c++) {
        pnb_duplicates_opts o = pnb_duplicates_opts_default();
        pnb_duplicates d;
        size_t n_all, n_pairs, n_cut;
        bool draws = cases[c].measure == PNB_MEASURE_AVG_L2; /* by side: not the same both ways */
        o.measure = cases[c].measure;
        o.min_score = cases[c].min_score;
        pnb_duplicate *pair = joined_pairs(&g.view, &o, &n_all);
        assert_true(n_all > 300);
        o.max_pairs = draws ? 2 * n_all : n_all; /* none to spare */
        assert_ok(pnb_duplicates_find(NULL, &g.view, u, &o, &d, err));
        assert_int_equal(d.n_cut, 0);
        assert_pairs(&d, pair, n_all);
        if (!draws)
            assert_right(&g.view, u, &o, &d);
        pnb_duplicates_reset(&d);
        free(pair);
        const size_t lists[] = {1, 15, 16, 40, 126, 299, 400};
        for (size_t l = 0; !draws && l < PNB_COUNT(lists); l++) {
            o.max_pairs = l % 2 == 0 ? n_all - 1 : 0;
            o.max_neighbours = lists[l];
            pair = nearest_pairs(&g.view, &o, &n_pairs, &n_cut);
            assert_ok(pnb_duplicates_find(NULL, &g.view, u, &o, &d, err));
            assert_int_equal(d.n_cut, n_cut);
            assert_true(lists[l] > 16 || n_cut > 0);
            assert_pairs(&d, pair, n_pairs);
            pnb_duplicates_reset(&d);
            free(pair);
        }
    }
    free_gaussians(&g);
}

/* More kinds than are joined at once, with copies in other blocks than the first of them. */
static void joins_blocks_of_kinds(void **state)
{
    (void)state;
    enum { ROWS = 9500, DIM = 6 };
    gaussians g = random_gaussians(ROWS, DIM, -5, -5, 8);
    for (size_t i = 0; i < ROWS; i++)
        if (i % 16 == 5)
            memcpy(g.mean + i * DIM, g.mean + (i * 31 % 9400 + 40) * DIM, DIM * sizeof(float));
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    pnb_duplicates d;
    size_t n_pairs;
    o.min_score = 0.99;
    pnb_duplicate *pair = joined_pairs(&g.view, &o, &n_pairs);
    assert_true(n_pairs > 1000);
    assert_ok(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err));
    assert_pairs(&d, pair, n_pairs);
    pnb_duplicates_reset(&d);
    free(pair);
    free_gaussians(&g);
}

/* A row that cannot be scored is named by its own number, whatever repeats before it. */
static void names_bad_rows_among_copies(void **state)
{
    (void)state;
    gaussians g = repeating(90, 4, 4);
    pnb_duplicates d;
    g.mean[70 * 4 + 1] = NAN;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, NULL, &d, err), PNB_NUMERIC, "item 70");
    free_gaussians(&g);
}

static bool stop(void *user, size_t done, size_t total)
{
    (void)user;
    return done < total / 2;
}

static void refuses_bad_input(void **state)
{
    (void)state;
    gaussians g = random_gaussians(5, 4, -3, -3, 1);
    double u[5] = {1, 2, NAN, 4, 5};
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    pnb_duplicates d;
    assert_fails(pnb_duplicates_find(NULL, &g.view, u, &o, &d, err), PNB_NUMERIC, "row 2");
    o.min_score = NAN;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err), PNB_ARG, "nan");
    o = pnb_duplicates_opts_default();
    o.max_neighbours = 0;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err), PNB_ARG, "0 neighbours");
    o = pnb_duplicates_opts_default();
    o.measure = PNB_MEASURE_KL;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err), PNB_ARG, "not symmetric");
    o = pnb_duplicates_opts_default();
    o.watch.step = stop;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err), PNB_INTERRUPTED, "stopped");
    o = pnb_duplicates_opts_default();
    g.mean[6] = NAN;
    assert_fails(pnb_duplicates_find(NULL, &g.view, NULL, &o, &d, err), PNB_NUMERIC, "");
    const pnb_gaussians empty = {.n = 0, .dim = 4, .mean = g.mean};
    pnb_error why = PNB_ERROR_INIT;
    assert_int_not_equal(pnb_duplicates_find(NULL, &empty, NULL, &o, &d, &why), PNB_OK);
    free_gaussians(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_all_pairs),
        cmocka_unit_test(groups_copies),
        cmocka_unit_test(joins_chains),
        cmocka_unit_test(finds_pairs_beyond_full_lists),
        cmocka_unit_test(copies_change_nothing),
        cmocka_unit_test(joins_blocks_of_kinds),
        cmocka_unit_test(names_bad_rows_among_copies),
        cmocka_unit_test(refuses_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
