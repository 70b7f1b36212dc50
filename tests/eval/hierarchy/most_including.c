/* The caption that includes a picture most: every way to rank, at every width, by the scalar forms
 * of the inclusion; ties, numbers that are none, and threads. */
#include "eval/hierarchy/most_including.h"

#include "penumbra/ctx.h"
#include "tests/prob/support.h"

static double including_score(const gaussians *images, size_t i, const gaussians *texts, size_t j,
                              pnb_including by, size_t dim)
{
    double mean1[512], log1[512], mean2[512], log2_[512];
    if (by == PNB_INCLUDING_BY_H)
        return pnb_measure_pair(PNB_MEASURE_INCLUSION, &images->view, i, &texts->view, j, NULL);
    for (size_t d = 0; d < dim; d++) {
        mean1[d] = (double)images->mean[i * dim + d];
        log1[d] = (double)images->log_var[i * dim + d];
        mean2[d] = (double)texts->mean[j * dim + d];
        log2_[d] = (double)texts->log_var[j * dim + d];
    }
    return by == PNB_INCLUDING_BY_INTEGRAL
               ? pnb_inclusion_exact(mean1, log1, mean2, log2_, dim)
               : pnb_inclusion_published(mean1, log1, mean2, log2_, dim, 0.0);
}

/* The sums over blocks of dimensions against one dimension after the other. */
static void including_at_every_width(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 31, 32, 33, 64, 70, 512};
    static const double spreads[] = {2, 30, 169};
    double mean1[512], log1[512], mean2[512], log2_[512];
    for (size_t k = 0; k < PNB_COUNT(widths) * PNB_COUNT(spreads); k++) {
        size_t dim = widths[k / PNB_COUNT(spreads)], best = SIZE_MAX;
        double spread = spreads[k % PNB_COUNT(spreads)], most = 0;
        gaussians p = random_gaussians(1, dim, -spread, spread, 50 + k);
        gaussians c = random_gaussians(5, dim, -spread, spread, 90 + k);
        pnb_traverse_opts o = {PNB_ROOT_INCLUDING, 2, PNB_MEASURE_MEAN, 1, 0, false, false};
        pnb_traversal t;
        for (size_t j = 0; j < c.view.n; j++) {
            for (size_t d = 0; d < dim; d++) {
                mean1[d] = (double)p.mean[d];
                log1[d] = (double)p.log_var[d];
                mean2[d] = (double)c.mean[j * dim + d];
                log2_[d] = (double)c.log_var[j * dim + d];
            }
            double value = pnb_inclusion_exact(mean1, log1, mean2, log2_, dim);
            if (best == SIZE_MAX || value > most) {
                best = j;
                most = value;
            }
        }
        assert_ok(pnb_traverse(NULL, &p.view, &c.view, NULL, &o, &t, err));
        assert_int_equal(t.including[0], best);
        assert_near(t.score[0], most, 1e-9, 1e-11);
        pnb_traversal_reset(&t);
        c.log_var[4 * dim] = 171;
        assert_fails(pnb_traverse(NULL, &p.view, &c.view, NULL, &o, &t, err), PNB_NUMERIC,
                     "in caption 4");
        c.log_var[4 * dim] = 0;
        p.log_var[dim - 1] = -171;
        assert_fails(pnb_traverse(NULL, &p.view, &c.view, NULL, &o, &t, err), PNB_NUMERIC,
                     "picture 0");
        free_gaussians(&p);
        free_gaussians(&c);
    }
}

/* More captions than a tile, and every way; results do not depend on threads. */
static void every_way(void **state)
{
    (void)state;
    enum { N = 5, TEXTS = 300, DIM = 9 };
    gaussians p = random_gaussians(N, DIM, -6, -4, 1), c = random_gaussians(TEXTS, DIM, -5, -1, 2);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    for (int by = 0; by < PNB_N_INCLUDINGS; by++) {
        int64_t index[2][N];
        double value[2][N];
        for (int threads = 0; threads < 2; threads++)
            assert_ok(pnb__most_including(threads ? ctx : NULL, &p.view, &c.view, (pnb_including)by,
                                          index[threads], value[threads], err));
        assert_memory_equal(index[0], index[1], sizeof index[0]);
        assert_memory_equal(value[0], value[1], sizeof value[0]);
        for (size_t i = 0; i < N; i++) {
            size_t best = 0;
            for (size_t j = 1; j < TEXTS; j++)
                if (including_score(&p, i, &c, j, (pnb_including)by, DIM) >
                    including_score(&p, i, &c, best, (pnb_including)by, DIM))
                    best = j;
            assert_int_equal(index[0][i], best);
            assert_near(value[0][i], including_score(&p, i, &c, best, (pnb_including)by, DIM), 1e-9,
                        1e-9);
        }
    }
    pnb_ctx_free(ctx);
    free_gaussians(&p);
    free_gaussians(&c);
}

/* Of equal captions the first one, also across tiles. */
static void ties(void **state)
{
    (void)state;
    enum { TEXTS = 260, DIM = 4 };
    gaussians p = random_gaussians(1, DIM, -6, -4, 1), c = random_gaussians(TEXTS, DIM, -5, -1, 2);
    for (size_t j = 1; j < TEXTS; j++) {
        memcpy(c.mean + j * DIM, c.mean, DIM * sizeof(float));
        memcpy(c.log_var + j * DIM, c.log_var, DIM * sizeof(float));
    }
    for (int by = 0; by < PNB_N_INCLUDINGS; by++) {
        int64_t index = -1;
        double value;
        assert_ok(
            pnb__most_including(NULL, &p.view, &c.view, (pnb_including)by, &index, &value, err));
        assert_int_equal(index, 0);
    }
    free_gaussians(&p);
    free_gaussians(&c);
}

static void including_names(void **state)
{
    (void)state;
    assert_string_equal(pnb_including_name(PNB_INCLUDING_BY_H), "h");
    assert_string_equal(pnb_including_name(PNB_INCLUDING_BY_PUBLISHED), "published");
    assert_string_equal(pnb_including_name(PNB_N_INCLUDINGS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way),
        cmocka_unit_test(ties),
        cmocka_unit_test(including_at_every_width),
        cmocka_unit_test(including_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
