/* Concepts of known concentration: moments of samples against theory, geometry of the tree. */
#include "data/synth/ambiguous.h"

#include "penumbra/distributions.h"
#include "tests/prob/support.h"

static pnb_ambiguous_opts small(pnb_family family)
{
    pnb_ambiguous_opts o = pnb_ambiguous_opts_default();
    o.family = family;
    o.dim = 12;
    o.n_roots = 2;
    o.n_levels = 3;
    o.n_branches = 3;
    o.seed = 5;
    return o;
}

/* Mean of t = cos under exp(kappa t) (1-t^2)^((d-3)/2), or (1+t)^kappa, by quadrature. */
static double mean_cosine(bool is_power, size_t dim, double kappa)
{
    double sum = 0, weight = 0, top = is_power ? kappa * log(2.0) : kappa;
    for (int i = 0; i < 2000000; i++) {
        double t = -1.0 + (i + 0.5) * 1e-6;
        double f = (is_power ? kappa * log1p(t) : kappa * t) - top;
        double w = exp(f + 0.5 * ((double)dim - 3.0) * log1p(-t * t));
        sum += w * t;
        weight += w;
    }
    return sum / weight;
}

static void test_concentration(void **state)
{
    static const double wanted[] = {0.1, 0.5, 0.9, 0.97};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(wanted); i++) {
        double kappa = pnb__ambiguous_kappa(PNB_VMF, 7, wanted[i]);
        assert_near(mean_cosine(false, 7, kappa), wanted[i], 1e-7, 0);
        kappa = pnb__ambiguous_kappa(PNB_POWER_SPHERICAL, 7, wanted[i]);
        assert_near(mean_cosine(true, 7, kappa), wanted[i], 1e-7, 0);
        kappa = pnb__ambiguous_kappa(PNB_GAUSSIAN_DIAG, 7, wanted[i]);
        assert_near(7.0 / kappa, 1.0 / (wanted[i] * wanted[i]) - 1.0, 0, 1e-12);
    }
}

/* The number that belongs to concept c of the set: variance, or mean length of samples. */
static double width_of(const pnb__ambiguous_tree *t, size_t c)
{
    return t->set->kappa != NULL ? t->cosine[c] : 1.0 / (t->cosine[c] * t->cosine[c]) - 1.0;
}

/* Children around a parent: what their exact moments come to is the parent's. */
static void check_children(const pnb__ambiguous_tree *t, size_t parent)
{
    size_t dim = t->set->dim, first = t->child[parent], b = t->child[parent + 1] - first;
    double mean[12] = {0}, spread = 0;
    const float *m = t->set->mean + parent * dim;
    for (size_t c = first; c < first + b; c++) {
        const float *child = t->set->mean + c * dim;
        for (size_t d = 0; d < dim; d++) {
            mean[d] += (t->set->kappa != NULL ? t->cosine[c] : 1.0) * child[d] / (double)b;
            spread += ((double)child[d] - m[d]) * ((double)child[d] - m[d]) / (double)b;
        }
        spread += t->set->kappa != NULL ? 0.0 : width_of(t, c) / (double)b;
    }
    for (size_t d = 0; d < dim; d++)
        assert_near(mean[d], (t->set->kappa != NULL ? t->cosine[parent] : 1.0) * m[d], 3e-7, 0);
    if (t->set->kappa == NULL)
        assert_near(spread, width_of(t, parent), 1e-6, 0);
}

/* Children stand behind each other, siblings have as many, and what lies below adds up. */
static void check_numbers(const pnb__ambiguous_tree *t)
{
    size_t next = t->opts->n_roots, leaves = t->n - t->n_leaves, below_roots = 0, n_leaves;
    double roots = 0;
    for (size_t c = 0; c < leaves; c++) {
        double mass = 0;
        assert_int_equal(t->child[c], next);
        for (size_t k = t->child[c]; k < t->child[c + 1]; k++, next++) {
            mass += t->mass[k];
            assert_int_equal(t->parent[k], c);
            assert_true(t->mass[k] == t->mass[t->child[c]] && t->cosine[k] > t->cosine[c]);
            if (k < leaves)
                assert_int_equal(t->child[k + 1] - t->child[k],
                                 t->child[t->child[c] + 1] - t->child[t->child[c]]);
        }
        assert_near(mass, t->mass[c], 1e-15, 0);
    }
    assert_int_equal(next, t->n);
    for (size_t c = 0; c < t->opts->n_roots; c++) {
        assert_int_equal(t->parent[c], SIZE_MAX);
        assert_int_equal(pnb__ambiguous_leaves(t, c, &n_leaves), below_roots);
        below_roots += n_leaves;
        roots += t->mass[c];
    }
    assert_int_equal(below_roots, t->n_leaves);
    assert_near(roots, 1.0, 1e-15, 0);
    assert_int_equal(pnb__ambiguous_leaves(t, t->n - 1, &n_leaves), t->n_leaves - 1);
    assert_int_equal(n_leaves, 1);
}

/* A line in the log of the share, from 0.2 to 0.6. */
static void check_cosines(const pnb__ambiguous_tree *t)
{
    size_t widest = 0, narrowest = 0;
    for (size_t c = 1; c < t->n; c++) {
        widest = t->mass[c] > t->mass[widest] ? c : widest;
        narrowest = t->mass[c] < t->mass[narrowest] ? c : narrowest;
    }
    assert_near(t->cosine[widest], 0.2, 1e-12, 0);
    assert_near(t->cosine[narrowest], 0.6, 1e-12, 0);
    double all = log(t->mass[widest] / t->mass[narrowest]);
    for (size_t c = 0; c < t->n; c++)
        assert_near(t->cosine[c], 0.2 + 0.4 * log(t->mass[widest] / t->mass[c]) / all, 1e-12, 0);
}

static void test_tree(void **state)
{
    static const pnb_family families[] = {PNB_VMF, PNB_POWER_SPHERICAL, PNB_GAUSSIAN_DIAG,
                                          PNB_GEN_GAUSSIAN};
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(families); f++) {
        pnb_ambiguous_opts o = small(families[f]);
        pnb__ambiguous_tree t;
        assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
        check_numbers(&t);
        check_cosines(&t);
        for (size_t c = 0; c < t.n - t.n_leaves; c++)
            check_children(&t, c);
        assert_true(t.cosine[0] != t.cosine[1]);
        pnb__ambiguous_tree_reset(&t);
    }
}

/* Without spread every concept of a level is like every other; with it numbers of children differ.
 */
static void test_spread(void **state)
{
    pnb_ambiguous_opts o = small(PNB_VMF);
    pnb__ambiguous_tree t;
    bool seen[6] = {false};
    (void)state;
    o.spread = 0.0;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    assert_int_equal(t.n, 2 + 6 + 18);
    assert_int_equal(t.n_leaves, 18);
    assert_int_equal(pnb__ambiguous_level(&t, 1), 0);
    assert_int_equal(pnb__ambiguous_level(&t, 2), 1);
    assert_int_equal(pnb__ambiguous_level(&t, 8), 2);
    check_numbers(&t);
    for (size_t c = 2; c < 8; c++)
        assert_near(t.cosine[c], 0.4, 1e-9, 0);
    pnb__ambiguous_tree_reset(&t);
    o.spread = 0.5; /* 3 children: 2 to 5 */
    o.n_roots = 60;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    for (size_t c = 0; c < 60; c++) {
        size_t n = t.child[c + 1] - t.child[c];
        assert_true(n >= 2 && n <= 5);
        seen[n] = true;
        assert_true(t.mass[c] / t.mass[0] < exp(1.0) && t.mass[c] / t.mass[0] > exp(-1.0));
    }
    assert_true(seen[2] && seen[3] && seen[4] && seen[5]);
    pnb__ambiguous_tree_reset(&t);
}

/* Mean of many pictures of all leaves below a root: length and direction as its concept says. */
static void test_images(void **state)
{
    pnb_ambiguous_opts o = small(PNB_VMF);
    pnb__ambiguous_tree t;
    enum { N = 4000 };
    double mean[12] = {0}, scratch[12], lengths = 0, length = 0;
    float x[12];
    (void)state;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    size_t n_leaves, first = t.n - t.n_leaves + pnb__ambiguous_leaves(&t, 0, &n_leaves);
    for (size_t leaf = first; leaf < first + n_leaves; leaf++)
        for (size_t j = 0; j < N; j++) {
            double share = t.mass[leaf] / t.mass[0];
            double square = 0;
            pnb__ambiguous_image_row(&t, leaf, j, scratch, x);
            for (size_t d = 0; d < 12; d++)
                square += (double)x[d] * x[d];
            lengths += log(square) / 2 / N * share;
            for (size_t d = 0; d < 12; d++)
                mean[d] += x[d] / sqrt(square) / N * share;
        }
    for (size_t d = 0; d < 12; d++)
        length += mean[d] * t.set->mean[d];
    assert_near(length, t.cosine[0], 0.005, 0);
    for (size_t d = 0; d < 12; d++)
        assert_near(mean[d], t.cosine[0] * t.set->mean[d], 0.01, 0);
    assert_near(lengths, 0.0, 0.003, 0);
    pnb__ambiguous_tree_reset(&t);
}

static void test_refused(void **state)
{
    pnb_ambiguous_opts o = small(PNB_VMF);
    (void)state;
    o.n_branches = 9;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG,
                 "9 children a concept, with this spread up to 14");
    o.spread = 0.2;
    assert_ok(pnb__ambiguous_check(&o, err));
    o.spread = 1.5;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "spread 1.5");
    o = small(PNB_POINT);
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "point has no concentration");
    o = small(PNB_VMF);
    o.cosine_specific = o.cosine_general;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "0 < general < specific < 1");
    o = small(PNB_VMF);
    o.n_roots = 6000000;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_LIMIT, "concepts");
    o.n_roots = 3000000; /* with two children each within the limit, with up to five not */
    o.n_levels = 2;
    pnb__ambiguous_tree t;
    assert_ok(pnb__ambiguous_check(&o, err));
    assert_fails(pnb__ambiguous_tree_make(&t, &o, err), PNB_LIMIT, "concepts");
    pnb__ambiguous_tree_reset(&t);
    o = small(PNB_VMF);
    o.n_texts = 100000000;
    assert_fails(pnb__ambiguous_tree_make(&t, &o, err), PNB_LIMIT, "100000000 captions a level");
    pnb__ambiguous_tree_reset(&t);
    o = small(PNB_VMF);
    o.wording = (double)NAN;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "wording");
    o = small(PNB_VMF);
    o.val_share = o.test_share = 0.5;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "nothing to train on");
    o = small(PNB_VMF);
    o.n_levels = 5;
    assert_fails(pnb__ambiguous_check(&o, err), PNB_ARG, "5 levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concentration), cmocka_unit_test(test_tree),
        cmocka_unit_test(test_spread),        cmocka_unit_test(test_images),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
