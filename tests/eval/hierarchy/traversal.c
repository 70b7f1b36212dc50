/* Ways from pictures to the root: against a walk written out by hand, and what is refused. */
#include "penumbra/traversal.h"
#include "penumbra/ctx.h"
#include "penumbra/hierarchy.h"
#include "penumbra/inclusion_search.h"
#include "tests/prob/support.h"

enum { DIM = 9, N_IMAGES = 7, N_TEXTS = 300, N_STEPS = 12 };

static double dot(const gaussians *texts, size_t j, const double *point)
{
    double sum = 0;
    for (size_t d = 0; d < DIM; d++)
        sum += point[d] * (double)texts->mean[j * DIM + d];
    return sum;
}

/* Caption with the largest cosine to a point; captions have unit means. */
static size_t nearest(const gaussians *texts, const double *point)
{
    size_t best = 0;
    for (size_t j = 1; j < texts->view.n; j++)
        if (dot(texts, j, point) > dot(texts, best, point))
            best = j;
    return best;
}

/* Half way between two captions both are nearest: either will do. */
static void check_nearest(const gaussians *texts, const double *point, int64_t got)
{
    double best = dot(texts, nearest(texts, point), point);
    assert_true(got >= 0 && (size_t)got < texts->view.n);
    assert_near(dot(texts, (size_t)got, point), best, 1e-7, 0);
}

static double including_score(const gaussians *images, size_t i, const gaussians *texts, size_t j,
                              pnb_including by)
{
    double mean1[DIM], log1[DIM], mean2[DIM], log2_[DIM];
    if (by == PNB_INCLUDING_BY_H)
        return pnb_measure_pair(PNB_MEASURE_INCLUSION, &images->view, i, &texts->view, j, NULL);
    for (size_t d = 0; d < DIM; d++) {
        mean1[d] = (double)images->mean[i * DIM + d];
        log1[d] = (double)images->log_var[i * DIM + d];
        mean2[d] = (double)texts->mean[j * DIM + d];
        log2_[d] = (double)texts->log_var[j * DIM + d];
    }
    return by == PNB_INCLUDING_BY_INTEGRAL
               ? pnb_inclusion_exact(mean1, log1, mean2, log2_, DIM)
               : pnb_inclusion_published(mean1, log1, mean2, log2_, DIM, 0.0);
}

static size_t most_including(const gaussians *images, size_t i, const gaussians *texts,
                             pnb_including by)
{
    size_t best = 0;
    double best_score = -1e300;
    for (size_t j = 0; j < texts->view.n; j++) {
        double score = including_score(images, i, texts, j, by);
        if (score > best_score) {
            best_score = score;
            best = j;
        }
    }
    return best;
}

typedef struct world {
    gaussians images, texts, null_text;
} world;

static world make_world(void)
{
    return (world){random_gaussians(N_IMAGES, DIM, -6, -4, 1),
                   random_gaussians(N_TEXTS, DIM, -5, -1, 2), random_gaussians(1, DIM, -1, 0, 3)};
}

static void free_world(world *w)
{
    free_gaussians(&w->images);
    free_gaussians(&w->texts);
    free_gaussians(&w->null_text);
}

static void check_way(const world *w, size_t i, const pnb_traverse_opts *o, const pnb_traversal *t)
{
    double point[DIM], root[DIM], image[DIM];
    size_t including = most_including(&w->images, i, &w->texts, o->including);
    double wi = o->root == PNB_ROOT_NULL_TEXT ? 0 : o->including_weight;
    double wn = o->root == PNB_ROOT_INCLUDING ? 0 : 1;
    for (size_t d = 0; d < DIM; d++)
        image[d] = (double)w->images.mean[i * DIM + d];
    size_t start = nearest(&w->texts, image);
    assert_int_equal(t->start[i], (int64_t)start);
    if (o->root != PNB_ROOT_NULL_TEXT) {
        assert_int_equal(t->including[i], (int64_t)including);
        assert_near(t->score[i], including_score(&w->images, i, &w->texts, including, o->including),
                    1e-9, 1e-9);
    } else {
        assert_int_equal(t->including[i], -1);
        assert_true(isnan(t->score[i]));
    }
    for (size_t d = 0; d < DIM; d++)
        root[d] =
            (wi * (double)w->texts.mean[including * DIM + d] + wn * (double)w->null_text.mean[d]) /
            (wi + wn);
    for (size_t s = 0; s < o->n_steps; s++) {
        double f = (double)s / (double)(o->stop_before_root ? o->n_steps : o->n_steps - 1);
        for (size_t d = 0; d < DIM; d++) {
            double from = o->from_image ? image[d] : (double)w->texts.mean[start * DIM + d];
            point[d] = from + f * (root[d] - from); /* the cosine does not see its length */
        }
        check_nearest(&w->texts, point, t->step[i * o->n_steps + s]);
    }
    check_nearest(&w->texts, root, t->root[i]);
}

static void every_root_as_by_hand(void **state)
{
    (void)state;
    world w = make_world();
    for (int root = 0; root < PNB_N_ROOTS; root++)
        for (int variant = 0; variant < 6; variant++) {
            pnb_traverse_opts o = pnb_traverse_opts_default();
            pnb_traversal t;
            o.root = (pnb_root)root;
            o.n_steps = N_STEPS;
            o.stop_before_root = variant & 1;
            o.from_image = variant & 2;
            o.including_weight = 1 + variant;
            o.including = (pnb_including)(variant % PNB_N_INCLUDINGS);
            assert_ok(
                pnb_traverse(NULL, &w.images.view, &w.texts.view, &w.null_text.view, &o, &t, err));
            assert_int_equal(t.n, N_IMAGES);
            for (size_t i = 0; i < N_IMAGES; i++)
                check_way(&w, i, &o, &t);
            pnb_traversal_reset(&t);
        }
    free_world(&w);
}

/* More points than one block holds, and any number of threads: the same captions. */
static void long_ways_and_threads(void **state)
{
    (void)state;
    world w = make_world();
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal one, two;
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    ctx_opts.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
    o.n_steps = 1500; /* two pictures a block */
    assert_ok(pnb_traverse(NULL, &w.images.view, &w.texts.view, &w.null_text.view, &o, &one, err));
    assert_ok(pnb_traverse(ctx, &w.images.view, &w.texts.view, &w.null_text.view, &o, &two, err));
    assert_memory_equal(one.step, two.step, N_IMAGES * o.n_steps * sizeof *one.step);
    for (size_t i = 0; i < N_IMAGES; i++) { /* ends: nearest caption itself, and the root's */
        assert_int_equal(one.step[i * o.n_steps], one.start[i]);
        assert_int_equal(one.step[(i + 1) * o.n_steps - 1], one.root[i]);
    }
    pnb_traversal_reset(&one);
    pnb_traversal_reset(&two);
    pnb_ctx_free(ctx);
    free_world(&w);
}

static void variance_counts_with_csd(void **state)
{
    (void)state;
    /* two captions at the same angle from the picture, the first much wider */
    const float image[] = {1, 0, 0}, text[] = {0.8F, 0.6F, 0, 0.8F, -0.6F, 0};
    const float wide[] = {1, 1, 1, -9, -9, -9}, narrow[] = {-9, -9, -9};
    const pnb_gaussians p = {.n = 1, .dim = 3, .mean = image, .log_var = narrow},
                        c = {.n = 2, .dim = 3, .mean = text, .log_var = wide};
    const pnb_gaussians null_text = {.n = 1, .dim = 3, .mean = image, .log_var = narrow};
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal t;
    o.root = PNB_ROOT_NULL_TEXT;
    assert_ok(pnb_traverse(NULL, &p, &c, &null_text, &o, &t, err));
    assert_int_equal(t.start[0], 0); /* a tie goes to the lower row */
    pnb_traversal_reset(&t);
    o.measure = PNB_MEASURE_CSD;
    assert_ok(pnb_traverse(NULL, &p, &c, &null_text, &o, &t, err));
    assert_int_equal(t.start[0], 1);
    pnb_traversal_reset(&t);
}

static void refuses(void **state)
{
    (void)state;
    world w = make_world();
    pnb_gaussians p = w.images.view, c = w.texts.view, z = w.null_text.view;
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal t;
    o.n_steps = 1;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, &o, &t, err), PNB_ARG, "1 steps");
    o = pnb_traverse_opts_default();
    o.measure = PNB_MEASURE_KL;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, &o, &t, err), PNB_ARG, "measure kl");
    o = pnb_traverse_opts_default();
    o.including_weight = 0;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, &o, &t, err), PNB_ARG, "including_weight");
    assert_fails(pnb_traverse(NULL, &p, &c, NULL, NULL, &t, err), PNB_ARG, "empty text");
    z.n = 2;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_SHAPE, "2 rows");
    z = w.null_text.view;
    p.n = 0;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_SHAPE, "0 pictures");
    p = w.images.view;
    p.dim = 8;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_SHAPE, "width 8");
    p = w.images.view;
    p.log_var = NULL;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_ARG,
                 "pictures are of family point");
    p = w.images.view;
    w.texts.log_var[200 * DIM] = NAN;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_NUMERIC,
                 "picture 0 in caption 200");
    w.texts.log_var[200 * DIM] = -2;
    w.images.mean[DIM] = NAN;
    assert_fails(pnb_traverse(NULL, &p, &c, &z, NULL, &t, err), PNB_NUMERIC, "query 1");
    assert_null(t.step);
    free_world(&w);
}

static void opposite_ends(void **state)
{
    (void)state;
    const float image[] = {1, 0}, text[] = {1, 0}, opposite[] = {-1, 0};
    const pnb_gaussians p = {.n = 1, .dim = 2, .mean = image}, c = {.n = 1, .dim = 2, .mean = text};
    const pnb_gaussians z = {.n = 1, .dim = 2, .mean = opposite};
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal t;
    o.root = PNB_ROOT_NULL_TEXT;
    o.n_steps = 3; /* the middle point is the origin */
    assert_fails(pnb_traverse(NULL, &p, &c, &z, &o, &t, err), PNB_NUMERIC, "point 1");
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(pnb_root_name(PNB_ROOT_INCLUDING), "including");
    assert_string_equal(pnb_root_name(PNB_ROOT_NULL_TEXT), "null");
    assert_string_equal(pnb_root_name(PNB_N_ROOTS), "unknown");
}

#ifdef PNB_FAULTS
/* Each allocation of the three searches fails in turn: NOMEM, nothing leaks, nothing is left set.
 */
static pnb_status use_all(const world *w, pnb_error *err)
{
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal t = {0};
    pnb_inclusion_hits m = {0};
    pnb_length_bin bins[4];
    const size_t length[3] = {1, 2, 3};
    const double value[3] = {3, 1, 2};
    size_t n = 0;
    double rho = 0;
    pnb_mixed_share share;
    pnb_status status;
    o.n_steps = 3;
    PNB_TRY(pnb_traverse(NULL, &w->images.view, &w->texts.view, &w->null_text.view, &o, &t, err));
    PNB_TRY(pnb_inclusion_search(NULL, &w->images.view, &w->texts.view, NULL, &m, err));
    PNB_TRY(pnb_length_bins(value, length, 3, bins, 4, &n, &rho, err));
    status =
        pnb_mixed_included(&w->images.view, &w->images.view, &w->images.view, false, &share, err);
done:
    pnb_traversal_reset(&t);
    pnb_inclusion_hits_reset(&m);
    return status;
}

static void out_of_memory(void **state)
{
    (void)state;
    world w = make_world();
    long n = 0;
    for (;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = use_all(&w, &error);
        pnb__alloc_fail_after(-1);
        if (status == PNB_OK)
            break;
        assert_int_equal(status, PNB_NOMEM);
        assert_int_equal(error.status, PNB_NOMEM);
        assert_true(n < 1000);
    }
    assert_true(n > 15);
    free_world(&w);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_root_as_by_hand),
        cmocka_unit_test(long_ways_and_threads),
        cmocka_unit_test(variance_counts_with_csd),
        cmocka_unit_test(refuses),
        cmocka_unit_test(opposite_ends),
        cmocka_unit_test(names),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
