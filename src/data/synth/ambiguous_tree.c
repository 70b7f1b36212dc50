/* The tree of concepts: directions and concentrations such that each is exact.
 *
 * On the sphere E[x | concept c] = A(kappa_c) mu_c, A the mean length of the family. A child lies
 * at the cosine r = A_parent / A_child from its parent, and siblings stand on a regular simplex
 * around it and share A, so that the mean over the children's pictures is A_child r mu_parent =
 * A_parent mu_parent, for this finite tree and not only on average over trees: each concept's
 * concentration is that of the member of the family with the moments of its pictures, which is also
 * what maximum likelihood finds. Families with variances do the same with v_parent = v_child +
 * |offset|^2.
 *
 * Concepts of a level differ: A is uniform in a band around the level's, siblings alike. */
#include "data/synth/ambiguous.h"

#include <math.h>

#include "penumbra/distributions.h"

#define MAX_CONCEPTS ((size_t)10 * 1000 * 1000)
#define TREE_STREAM ((uint64_t)1 << 62) /* beyond the streams of samples, 2 row + side */

/* ---- options ---- */

pnb_ambiguous_opts pnb_ambiguous_opts_default(void)
{
    return (pnb_ambiguous_opts){.n_images = 5000,
                                .dim = 64,
                                .family = PNB_VMF,
                                .n_levels = 4,
                                .n_roots = 8,
                                .n_branches = 4,
                                .n_texts = 5,
                                .cosine_general = 0.3,
                                .cosine_specific = 0.9,
                                .spread = 0.8,
                                .wording = 0.98,
                                .hint = 0.5,
                                .length = 1.0,
                                .length_spread = 0.1,
                                .val_share = 0.1,
                                .test_share = 0.1};
}

static bool is_between(double x, double low, double high)
{
    return x >= low && x <= high;
}

static pnb_status check_shape(const pnb_ambiguous_opts *o, pnb_error *err)
{
    size_t n = o->n_roots;
    if (o->family <= PNB_POINT || o->family >= PNB_N_FAMILIES)
        return pnb__fail(err, PNB_ARG, "the family %s has no concentration",
                         pnb_family_name(o->family));
    if (o->n_levels < 1 || o->n_levels > PNB_SYNTH_N_LEVELS)
        return pnb__fail(err, PNB_ARG, "%zu levels; 1 to %d are possible", o->n_levels,
                         PNB_SYNTH_N_LEVELS);
    if (o->n_images == 0 || o->n_texts == 0 || o->n_roots == 0 || o->dim < 2 || o->text_dim == 1)
        return pnb__fail(err, PNB_ARG,
                         "pictures, captions of a concept and concepts must be at least 1, widths "
                         "at least 2");
    if (o->n_levels > 1 && (o->n_branches < 2 || o->n_branches >= o->dim))
        return pnb__fail(err, PNB_ARG,
                         "%zu children a concept; they stand around it in its %zu dimensions: 2 to "
                         "%zu",
                         o->n_branches, o->dim, o->dim - 1);
    for (size_t l = 1; l < o->n_levels; l++)
        if (pnb__mul_overflows(n, o->n_branches, &n) || n > MAX_CONCEPTS)
            break;
    return n <= MAX_CONCEPTS ? PNB_OK
                             : pnb__fail(err, PNB_LIMIT, "more than %zu concepts", MAX_CONCEPTS);
}

pnb_status pnb__ambiguous_check(const pnb_ambiguous_opts *o, pnb_error *err)
{
    pnb_status status = check_shape(o, err);
    if (status != PNB_OK)
        return status;
    if (!(o->cosine_general > 0.0 && o->cosine_general < o->cosine_specific &&
          o->cosine_specific < 1.0))
        return pnb__fail(err, PNB_ARG,
                         "general concepts at cosine %g and specific ones at %g; wanted is 0 < "
                         "general < specific < 1",
                         o->cosine_general, o->cosine_specific);
    if (!is_between(o->spread, 0, 1) || !(o->wording > 0.0 && o->wording < 1.0) ||
        !is_between(o->hint, 0, 1e3) || !is_between(o->length, 1e-6, 1e6) ||
        !is_between(o->length_spread, 0, 3))
        return pnb__fail(err, PNB_ARG,
                         "spread %g (0 to 1), wording %g (inside 0 and 1), hint %g (0 to 1000), "
                         "length %g (1e-6 to 1e6) or its spread %g (0 to 3) is out of range",
                         o->spread, o->wording, o->hint, o->length, o->length_spread);
    if (!is_between(o->val_share, 0, 1) || !is_between(o->test_share, 0, 1) ||
        !(o->val_share + o->test_share < 1.0))
        return pnb__fail(err, PNB_ARG, "shares %g and %g leave nothing to train on", o->val_share,
                         o->test_share);
    return PNB_OK;
}

/* ---- concentrations ---- */

double pnb__ambiguous_kappa(pnb_family family, size_t dim, double cosine)
{
    if (family == PNB_VMF)
        return pnb_vmf_kappa_at(dim, cosine);
    if (family == PNB_POWER_SPHERICAL)
        return pnb_power_spherical_kappa_at(dim, cosine);
    return (double)dim / (1.0 / (cosine * cosine) - 1.0);
}

/* The band of a level: half of the way to the next one at spread 1, and never past the ends. */
static double draw_cosine(const pnb_ambiguous_opts *o, size_t level, uint64_t key)
{
    double low = o->cosine_general, high = o->cosine_specific;
    if (o->n_levels == 1)
        return low;
    double step = (high - low) / (double)(o->n_levels - 1), half = 0.5 * o->spread * step;
    double middle = low + step * (double)level;
    double from = PNB_MAX(low, middle - half), to = PNB_MIN(high, middle + half);
    pnb__rng rng;
    pnb__rng_init(&rng, o->seed, TREE_STREAM + 2 * key);
    return from + (to - from) * pnb__rng_uniform(&rng);
}

static void set_cosine(pnb__ambiguous_tree *tree, size_t c, double cosine)
{
    pnb_embeddings *set = tree->set;
    double kappa = pnb__ambiguous_kappa(set->family, set->dim, cosine);
    tree->cosine[c] = cosine;
    if (set->kappa != NULL)
        set->kappa[c] = (float)kappa;
    for (size_t d = 0; set->kappa == NULL && d < set->dim; d++)
        if (set->log_var != NULL) {
            set->log_var[c * set->dim + d] = (float)-log(kappa);
        } else { /* Laplace: a variance of 2 alpha^2 */
            set->beta[c * set->dim + d] = 1.0f;
            set->inv_alpha[c * set->dim + d] = (float)sqrt(2.0 * kappa);
        }
}

/* ---- directions ---- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t d = 0; d < n; d++)
        sum += a[d] * b[d];
    return sum;
}

/* Scales to length 1; what is nothing but rounding becomes a unit axis that nobody asked for: with
 * normals in fewer than dim directions it does not occur. */
static void unit(double *v, size_t dim)
{
    double length = sqrt(dot(v, v, dim));
    for (size_t d = 0; d < dim; d++)
        v[d] = length > 0.0 ? v[d] / length : d == 0;
}

/* b corners of a regular simplex around 0, at right angles to the unit vector `from`: an
 * orthonormal frame less its mean. */
static void draw_simplex(pnb__rng *rng, const double *from, size_t b, size_t dim, double *out)
{
    for (size_t i = 0; i < b; i++) {
        double *v = out + i * dim;
        for (size_t d = 0; d < dim; d++)
            v[d] = pnb__rng_normal(rng);
        for (int pass = 0; pass < 2; pass++)
            for (size_t k = 0; k <= i; k++) {
                const double *w = k < i ? out + k * dim : from;
                double along = dot(v, w, dim);
                for (size_t d = 0; d < dim; d++)
                    v[d] -= along * w[d];
            }
        unit(v, dim);
    }
    for (size_t d = 0; d < dim; d++) {
        double mean = 0.0;
        for (size_t i = 0; i < b; i++)
            mean += out[i * dim + d] / (double)b;
        for (size_t i = 0; i < b; i++)
            out[i * dim + d] -= mean;
    }
    for (size_t i = 0; i < b; i++)
        unit(out + i * dim, dim);
}

/* How much of the parent's mean and of the simplex a child's mean is made of. */
static void mix(pnb_family family, double parent, double child, double share[2])
{
    bool is_sphere = family == PNB_VMF || family == PNB_POWER_SPHERICAL;
    double r = parent / child;
    share[0] = is_sphere ? r : 1.0;
    share[1] =
        is_sphere ? sqrt(1.0 - r * r) : sqrt(1.0 / (parent * parent) - 1.0 / (child * child));
}

static void add_children(pnb__ambiguous_tree *tree, size_t parent, size_t first, double *scratch)
{
    const pnb_ambiguous_opts *o = tree->opts;
    size_t dim = o->dim;
    double *from = scratch, *corner = scratch + dim, *mean = corner + o->n_branches * dim, share[2];
    double cosine = draw_cosine(o, (size_t)pnb__ambiguous_level(tree, first), parent + 1);
    pnb__rng rng;
    for (size_t d = 0; d < dim; d++)
        mean[d] = from[d] = tree->set->mean[parent * dim + d];
    unit(from, dim);
    pnb__rng_init(&rng, o->seed, TREE_STREAM + 2 * (parent + 1) + 1);
    draw_simplex(&rng, from, o->n_branches, dim, corner);
    mix(o->family, tree->cosine[parent], cosine, share);
    for (size_t i = 0; i < o->n_branches; i++) {
        for (size_t d = 0; d < dim; d++)
            tree->set->mean[(first + i) * dim + d] =
                (float)(share[0] * mean[d] + share[1] * corner[i * dim + d]);
        set_cosine(tree, first + i, cosine);
    }
}

static void add_roots(pnb__ambiguous_tree *tree, double *scratch)
{
    const pnb_ambiguous_opts *o = tree->opts;
    pnb__rng rng;
    pnb__rng_init(&rng, o->seed, TREE_STREAM + 1);
    for (size_t c = 0; c < o->n_roots; c++) {
        for (size_t d = 0; d < o->dim; d++)
            scratch[d] = pnb__rng_normal(&rng);
        unit(scratch, o->dim);
        for (size_t d = 0; d < o->dim; d++)
            tree->set->mean[c * o->dim + d] = (float)scratch[d];
        set_cosine(tree, c, draw_cosine(o, 0, ((uint64_t)1 << 40) + c));
    }
}

/* ---- the tree ---- */

static void number_concepts(pnb__ambiguous_tree *tree)
{
    tree->n_leaves = tree->opts->n_roots;
    for (size_t l = 0; l < tree->opts->n_levels; l++) {
        tree->n_leaves *= l > 0 ? tree->opts->n_branches : 1;
        tree->start[l + 1] = tree->start[l] + tree->n_leaves;
    }
    tree->n = tree->start[tree->opts->n_levels];
}

pnb_status pnb__ambiguous_tree_make(pnb__ambiguous_tree *tree, const pnb_ambiguous_opts *opts,
                                    pnb_error *err)
{
    pnb_status status = PNB_OK;
    double *scratch = NULL;
    *tree = (pnb__ambiguous_tree){.opts = opts};
    number_concepts(tree);
    PNB_TRY(PNB_ALLOC(tree->cosine, tree->n, err));
    PNB_TRY(pnb_embeddings_create(&tree->set, opts->family, tree->n, opts->dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(scratch, opts->n_branches + 2, opts->dim, err));
    add_roots(tree, scratch);
    for (size_t c = 0; c < tree->n - tree->n_leaves; c++)
        add_children(tree, c, opts->n_roots + c * opts->n_branches, scratch);
done:
    pnb__free(scratch);
    return status;
}

void pnb__ambiguous_tree_reset(pnb__ambiguous_tree *tree)
{
    pnb__free(tree->cosine);
    pnb_embeddings_free(tree->set);
    *tree = (pnb__ambiguous_tree){0};
}

int pnb__ambiguous_level(const pnb__ambiguous_tree *tree, size_t concept)
{
    int level = 0;
    while (concept >= tree->start[level + 1])
        level++;
    return level;
}

size_t pnb__ambiguous_leaves(const pnb__ambiguous_tree *tree, size_t concept, size_t *n)
{
    size_t level = (size_t)pnb__ambiguous_level(tree, concept);
    *n = 1;
    for (size_t l = level + 1; l < tree->opts->n_levels; l++)
        *n *= tree->opts->n_branches;
    return (concept - tree->start[level]) * *n;
}
