/* Inclusion search against every pair measured one by one, its two directions and orders. */
#include "penumbra/inclusion_search.h"
#include "penumbra/ctx.h"
#include "tests/prob/support.h"

enum { DIM = 6, N_QUERIES = 9, N_ITEMS = 50 };

static void check_query(const gaussians *q, const gaussians *g, size_t i,
                        const pnb_inclusion_search_opts *o, const pnb_inclusion_hits *m)
{
    pnb_measure measure = o->published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    size_t n_all = 0, n_found = 0;
    bool found[N_ITEMS] = {false};
    double last = INFINITY;
    for (size_t j = 0; j < m->k && m->index[i * m->k + j] >= 0; j++, n_found++) {
        size_t at = i * m->k + j;
        double key = o->order == PNB_INCLUSION_BY_NEARNESS ? m->nearness[at] : m->h[at];
        assert_true(key <= last);
        last = key;
        found[m->index[at]] = true;
    }
    for (size_t j = 0; j < N_ITEMS; j++) {
        double h = o->inside ? pnb_measure_pair(measure, &g->view, j, &q->view, i, NULL)
                             : pnb_measure_pair(measure, &q->view, i, &g->view, j, NULL);
        double near = 1 - 0.5 * pnb_measure_pair(PNB_MEASURE_CSD, &q->view, i, &g->view, j, NULL);
        bool is_member = h > 0 && near >= o->min_nearness;
        n_all += is_member;
        double key = o->order == PNB_INCLUSION_BY_NEARNESS ? near : h;
        if (found[j])
            assert_true(is_member);
        else if (is_member) /* left out only where k others are better */
            assert_true(n_found == m->k && key <= last + 1e-12);
    }
    assert_int_equal(m->n_all[i], n_all);
    assert_int_equal(n_found, PNB_MIN(n_all, m->k));
    for (size_t j = n_found; j < m->k; j++)
        assert_true(isinf(m->h[i * m->k + j]) && isinf(m->nearness[i * m->k + j]));
}

static void every_form_against_pairs(void **state)
{
    (void)state;
    gaussians q = random_gaussians(N_QUERIES, DIM, -4, -2, 1);
    gaussians g = random_gaussians(N_ITEMS, DIM, -4, -2, 2);
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    ctx_opts.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
    for (int form = 0; form < 32; form++) {
        pnb_inclusion_search_opts o = pnb_inclusion_search_opts_default();
        pnb_inclusion_hits m;
        o.inside = form & 1;
        o.published = form & 2;
        o.order = form & 4 ? PNB_INCLUSION_BY_NEARNESS : PNB_INCLUSION_BY_INCLUSION;
        o.k = form & 8 ? 5 : 1000; /* more than there are: all */
        if (form & 16)
            o.min_nearness = 0;
        assert_ok(pnb_inclusion_search(form & 1 ? ctx : NULL, &q.view, &g.view, &o, &m, err));
        assert_int_equal(m.k, PNB_MIN(o.k, N_ITEMS));
        for (size_t i = 0; i < N_QUERIES; i++)
            check_query(&q, &g, i, &o, &m);
        pnb_inclusion_hits_reset(&m);
    }
    pnb_ctx_free(ctx);
    free_gaussians(&q);
    free_gaussians(&g);
}

/* Wider than everything: a member of none, and all are inside it. */
static void empty_and_full(void **state)
{
    (void)state;
    gaussians q = random_gaussians(1, DIM, 2, 2, 1), g = random_gaussians(N_ITEMS, DIM, -4, -2, 2);
    pnb_inclusion_search_opts o = pnb_inclusion_search_opts_default();
    pnb_inclusion_hits m;
    assert_ok(pnb_inclusion_search(NULL, &q.view, &g.view, &o, &m, err));
    assert_int_equal(m.n_all[0], 0);
    assert_int_equal(m.index[0], -1);
    pnb_inclusion_hits_reset(&m);
    o.inside = true;
    assert_ok(pnb_inclusion_search(NULL, &q.view, &g.view, &o, &m, err));
    assert_int_equal(m.n_all[0], N_ITEMS);
    pnb_inclusion_hits_reset(&m);
    assert_ok(pnb_inclusion_search(NULL, &q.view, &q.view, NULL, &m, err)); /* itself: H = 0 */
    assert_int_equal(m.n_all[0], 0);
    pnb_inclusion_hits_reset(&m);
    free_gaussians(&q);
    free_gaussians(&g);
}

/* H of two equal rows is 0, which is no inclusion, whatever rounding a block of scores has. */
static void equal_rows(void **state)
{
    (void)state;
    enum { WIDE = 129 };
    gaussians g = random_gaussians(N_ITEMS, WIDE, -9, 1, 5);
    for (int form = 0; form < 4; form++) {
        pnb_inclusion_search_opts o = pnb_inclusion_search_opts_default();
        pnb_inclusion_hits m;
        o.k = N_ITEMS;
        o.inside = form & 1;
        o.published = form & 2;
        assert_ok(pnb_inclusion_search(NULL, &g.view, &g.view, &o, &m, err));
        for (size_t i = 0; i < N_ITEMS; i++)
            for (size_t j = 0; j < m.k; j++)
                assert_true(m.index[i * m.k + j] != (int64_t)i);
        pnb_inclusion_hits_reset(&m);
    }
    free_gaussians(&g);
}

static void refuses(void **state)
{
    (void)state;
    gaussians q = random_gaussians(3, DIM, -4, -2, 1), g = random_gaussians(5, DIM, -4, -2, 2);
    pnb_gaussians view = q.view;
    pnb_inclusion_search_opts o = pnb_inclusion_search_opts_default();
    pnb_inclusion_hits m;
    view.n = 0;
    assert_fails(pnb_inclusion_search(NULL, &view, &g.view, NULL, &m, err), PNB_SHAPE, "0 queries");
    assert_fails(pnb_inclusion_search(NULL, &g.view, &view, NULL, &m, err), PNB_SHAPE, "0 items");
    view = q.view;
    view.dim = 3;
    assert_fails(pnb_inclusion_search(NULL, &view, &g.view, NULL, &m, err), PNB_SHAPE, "width 3");
    view = q.view;
    view.log_var = NULL;
    assert_fails(pnb_inclusion_search(NULL, &view, &g.view, NULL, &m, err), PNB_ARG,
                 "queries are of family point");
    assert_fails(pnb_inclusion_search(NULL, &g.view, &view, NULL, &m, err), PNB_ARG,
                 "items are of family point");
    o.k = 0;
    assert_fails(pnb_inclusion_search(NULL, &q.view, &g.view, &o, &m, err), PNB_ARG, "k is 0");
    o.k = 1;
    o.min_nearness = (double)NAN; /* nothing would be a member, without a word */
    assert_fails(pnb_inclusion_search(NULL, &q.view, &g.view, &o, &m, err), PNB_ARG, "least nan");
    o = pnb_inclusion_search_opts_default();
    o.order = PNB_N_INCLUSION_ORDERS;
    assert_fails(pnb_inclusion_search(NULL, &q.view, &g.view, &o, &m, err), PNB_ARG, "number 2");
    q.mean[2 * DIM] = NAN;
    assert_fails(pnb_inclusion_search(NULL, &q.view, &g.view, NULL, &m, err), PNB_NUMERIC,
                 "query 2");
    assert_null(m.index);
    free_gaussians(&q);
    free_gaussians(&g);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(pnb_inclusion_order_name(PNB_INCLUSION_BY_NEARNESS), "nearness");
    assert_string_equal(pnb_inclusion_order_name(PNB_INCLUSION_BY_INCLUSION), "inclusion");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_against_pairs), cmocka_unit_test(empty_and_full),
        cmocka_unit_test(equal_rows), cmocka_unit_test(refuses), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
