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
 * How wide a concept is goes with how many pictures it holds: A is linear in the log of their
 * share, from the largest concept of the tree to its smallest leaf. So it is among real concepts,
 * and only so can pairs tell: what a contrastive loss finds is log p(x | c)/p(x), whose height is
 * one over that share and whose fall around c is the concentration. Concepts of a level differ
 * because roots and numbers of children do; siblings are alike. */
#include "data/synth/ambiguous.h"

#include <math.h>

#include "base/grow.h"
#include "penumbra/distributions.h"

#define MAX_CONCEPTS ((size_t)10 * 1000 * 1000)
#define MAX_PAIRS ((size_t)200 * 1000 * 1000)
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
                                .n_texts = 1280,
                                .cosine_general = 0.2,
                                .cosine_specific = 0.6,
                                .spread = 0.5,
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

static size_t fewest_children(const pnb_ambiguous_opts *o)
{
    size_t n = (size_t)((double)o->n_branches * (1.0 - o->spread) + 0.5);
    return PNB_MAX(n, (size_t)2);
}

static size_t most_children(const pnb_ambiguous_opts *o)
{
    size_t n = (size_t)((double)o->n_branches * (1.0 + o->spread) + 0.5);
    return PNB_MAX(n, (size_t)2);
}

static pnb_status fail_many(pnb_error *err)
{
    return pnb__fail(err, PNB_LIMIT, "more than %zu concepts", MAX_CONCEPTS);
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
                         "pictures, captions of a level and concepts must be at least 1, widths "
                         "at least 2");
    if (o->n_levels > 1 && (o->n_branches < 2 || most_children(o) >= o->dim))
        return pnb__fail(err, PNB_ARG,
                         "%zu children a concept, with this spread up to %zu; they stand around it "
                         "in its %zu dimensions: 2 to %zu",
                         o->n_branches, most_children(o), o->dim, o->dim - 1);
    for (size_t l = 1; l < o->n_levels; l++)
        if (pnb__mul_overflows(n, fewest_children(o), &n) || n > MAX_CONCEPTS)
            break;
    return n <= MAX_CONCEPTS ? PNB_OK : fail_many(err);
}

pnb_status pnb__ambiguous_check(const pnb_ambiguous_opts *o, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (!is_between(o->spread, 0, 1))
        return pnb__fail(err, PNB_ARG, "spread %g, it must be from 0 to 1", o->spread);
    status = check_shape(o, err);
    if (status != PNB_OK)
        return status;
    if (!(o->cosine_general > 0.0 && o->cosine_general < o->cosine_specific &&
          o->cosine_specific < 1.0))
        return pnb__fail(err, PNB_ARG,
                         "general concepts at cosine %g and specific ones at %g; wanted is 0 < "
                         "general < specific < 1",
                         o->cosine_general, o->cosine_specific);
    if (!(o->wording > 0.0 && o->wording < 1.0) || !is_between(o->hint, 0, 1e3) ||
        !is_between(o->length, 1e-6, 1e6) || !is_between(o->length_spread, 0, 3))
        return pnb__fail(err, PNB_ARG,
                         "wording %g (inside 0 and 1), hint %g (0 to 1000), length %g (1e-6 to "
                         "1e6) or its spread %g (0 to 3) is out of range",
                         o->wording, o->hint, o->length, o->length_spread);
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

static void add_children(pnb__ambiguous_tree *tree, size_t parent, double *scratch)
{
    const pnb_ambiguous_opts *o = tree->opts;
    size_t dim = o->dim, first = tree->child[parent], n = tree->child[parent + 1] - first;
    double *from = scratch, *mean = scratch + dim, *corner = mean + dim, share[2];
    pnb__rng rng;
    for (size_t d = 0; d < dim; d++)
        mean[d] = from[d] = tree->set->mean[parent * dim + d];
    unit(from, dim);
    pnb__rng_init(&rng, o->seed, TREE_STREAM + 2 * (parent + 1) + 1);
    draw_simplex(&rng, from, n, dim, corner);
    mix(o->family, tree->cosine[parent], tree->cosine[first], share);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dim; d++)
            tree->set->mean[(first + i) * dim + d] =
                (float)(share[0] * mean[d] + share[1] * corner[i * dim + d]);
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
    }
}

/* ---- who is whose child ---- */

/* A number in [0,1) that belongs to the children of `parent`, SIZE_MAX: to root `c`. */
static double draw_of_family(const pnb__ambiguous_tree *tree, size_t parent, size_t c)
{
    pnb__rng rng;
    uint64_t key = parent == SIZE_MAX ? ((uint64_t)1 << 40) + c : parent + 1;
    pnb__rng_init(&rng, tree->opts->seed, TREE_STREAM + 2 * key);
    return pnb__rng_uniform(&rng);
}

/* Siblings have the same number, so that they hold as many pictures each. */
static size_t n_children(const pnb__ambiguous_tree *tree, size_t c)
{
    size_t low = fewest_children(tree->opts), high = most_children(tree->opts);
    double x = draw_of_family(tree, tree->parent[c], c);
    return low + (size_t)(x * (double)(high - low + 1));
}

static pnb_status add_level(pnb__ambiguous_tree *tree, size_t level, size_t *n_child,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n = tree->n;
    for (size_t c = tree->start[level - 1]; c < tree->start[level]; c++) {
        PNB_TRY(PNB_PUSH(tree->child, *n_child, err, tree->n));
        for (size_t k = n_children(tree, c); k > 0; k--)
            PNB_TRY(PNB_PUSH(tree->parent, tree->n, err, c));
        if (tree->n > MAX_CONCEPTS)
            return fail_many(err);
    }
    tree->n_leaves = tree->n - n;
    tree->start[level + 1] = tree->n;
done:
    return status;
}

static pnb_status number_concepts(pnb__ambiguous_tree *tree, pnb_error *err)
{
    const pnb_ambiguous_opts *o = tree->opts;
    size_t n_child = 0;
    pnb_status status = PNB_OK;
    while (tree->n < o->n_roots)
        PNB_TRY(PNB_PUSH(tree->parent, tree->n, err, SIZE_MAX));
    tree->start[1] = tree->n_leaves = tree->n;
    for (size_t l = 1; l < o->n_levels; l++)
        PNB_TRY(add_level(tree, l, &n_child, err));
    status = PNB_PUSH(tree->child, n_child, err, tree->n);
done:
    return status;
}

/* ---- how many pictures, and how wide ---- */

static void share_images(pnb__ambiguous_tree *tree)
{
    const pnb_ambiguous_opts *o = tree->opts;
    double sum = 0;
    for (size_t c = 0; c < tree->n; c++) {
        size_t p = tree->parent[c];
        double x = p == SIZE_MAX ? 2 * draw_of_family(tree, SIZE_MAX, o->n_roots + c) - 1 : 0;
        tree->mass[c] = p == SIZE_MAX
                            ? exp(o->spread * x)
                            : tree->mass[p] / (double)(tree->child[p + 1] - tree->child[p]);
        sum += p == SIZE_MAX ? tree->mass[c] : 0;
    }
    for (size_t c = 0; c < tree->n; c++)
        tree->mass[c] /= sum;
}

static void set_cosines(pnb__ambiguous_tree *tree)
{
    const pnb_ambiguous_opts *o = tree->opts;
    double most = 0, least = 1;
    for (size_t c = 0; c < tree->n; c++) {
        most = PNB_MAX(most, tree->mass[c]);
        least = PNB_MIN(least, tree->mass[c]);
    }
    for (size_t c = 0; c < tree->n; c++) {
        double place = most > least ? log(most / tree->mass[c]) / log(most / least) : 0;
        set_cosine(tree, c, o->cosine_general + place * (o->cosine_specific - o->cosine_general));
    }
}

/* ---- the tree ---- */

/* Captions are shared evenly by the concepts of a level and fit their shares of the pictures, which
 * add up to one: a level has about n_images * captions / concepts pairs. Lists of more than this
 * are gigabytes of text. */
static pnb_status check_pairs(const pnb__ambiguous_tree *tree, pnb_error *err)
{
    const pnb_ambiguous_opts *o = tree->opts;
    double n = 0;
    for (size_t l = 0; l < o->n_levels; l++) {
        size_t n_concepts = PNB_MIN(tree->start[l + 1] - tree->start[l], o->n_images);
        double n_texts = (double)PNB_MAX(o->n_texts, n_concepts);
        n += PNB_MAX(n_texts * (double)o->n_images / (double)n_concepts, n_texts);
    }
    return n <= (double)MAX_PAIRS
               ? PNB_OK
               : pnb__fail(err, PNB_LIMIT,
                           "%zu pictures and %zu captions a level would be some %.2g captions and "
                           "pairs, and %.2g is the most",
                           o->n_images, o->n_texts, n, (double)MAX_PAIRS);
}

pnb_status pnb__ambiguous_tree_make(pnb__ambiguous_tree *tree, const pnb_ambiguous_opts *opts,
                                    pnb_error *err)
{
    pnb_status status = PNB_OK;
    double *scratch = NULL;
    *tree = (pnb__ambiguous_tree){.opts = opts};
    PNB_TRY(number_concepts(tree, err));
    PNB_TRY(check_pairs(tree, err));
    PNB_TRY(PNB_ALLOC(tree->mass, tree->n, err));
    PNB_TRY(PNB_ALLOC(tree->cosine, tree->n, err));
    PNB_TRY(pnb_embeddings_create(&tree->set, opts->family, tree->n, opts->dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(scratch, most_children(opts) + 2, opts->dim, err));
    share_images(tree);
    set_cosines(tree);
    add_roots(tree, scratch);
    for (size_t c = 0; c < tree->n - tree->n_leaves; c++)
        add_children(tree, c, scratch);
done:
    pnb__free(scratch);
    return status;
}

void pnb__ambiguous_tree_reset(pnb__ambiguous_tree *tree)
{
    pnb__free(tree->parent);
    pnb__free(tree->child);
    pnb__free(tree->mass);
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
    size_t first = concept, end = concept + 1, leaves = tree->n - tree->n_leaves;
    while (first < leaves) {
        first = tree->child[first];
        end = tree->child[end];
    }
    *n = end - first;
    return first - leaves;
}
