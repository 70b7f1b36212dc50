/* Measures between two distributions: what measures.def says of each, what fits what, row against
 * row.
 *
 * Nothing here knows a measure by name: a property that code asks for is a column of the list. The
 * closed forms of one pair are in measure_pair.c, the fast ones for whole blocks in
 * measure_block.c, likelihoods on the sphere in sphere.c, samples in sample.c. */
#include "prob/measure.h"

#include <math.h>
#include <string.h>

#include "base/names.h"
#include "penumbra/distributions.h"

/* Words of the list's column `symmetry`. */
enum { SYMMETRIC = 1, DIRECTED = 0 };

static const pnb__measure_traits TRAITS[] = {
#define X(name, text, score, symmetry, takes, variances, reads, scalar, row, block, log_norm,      \
          bound, sentence)                                                                         \
    {text,                                                                                         \
     sentence,                                                                                     \
     PNB__SCORE_##score,                                                                           \
     symmetry,                                                                                     \
     PNB__TAKES_##takes,                                                                           \
     variances,                                                                                    \
     PNB__READS_##reads,                                                                           \
     log_norm},
    PNB__MEASURES(X)
#undef X
};

/* Names are asked for before numbers are checked: messages about a wrong number name it. */
static const pnb__measure_traits UNKNOWN = {
    .name = "unknown", .sentence = "unknown", .score = PNB__SCORE_DISTANCE, .is_symmetric = true};

/* The public enum has the list's order, or this does not compile. */
enum {
#define X(name, ...) ROW_##name,
    PNB__MEASURES(X)
#undef X
        N_ROWS
};
#define X(name, ...) _Static_assert((int)PNB_MEASURE_##name == (int)ROW_##name, #name);
PNB__MEASURES(X)
#undef X
_Static_assert((int)PNB_N_MEASURES == (int)N_ROWS, "pnb_measure and measures.def differ");

const pnb__measure_traits *pnb__measure_traits_of(pnb_measure measure)
{
    return (unsigned)measure < PNB_N_MEASURES ? &TRAITS[measure] : &UNKNOWN;
}

const char *pnb_measure_name(pnb_measure measure)
{
    return pnb__measure_traits_of(measure)->name;
}

const char *pnb_measure_sentence(pnb_measure measure)
{
    return pnb__measure_traits_of(measure)->sentence;
}

/* Only distances change their sign on the way to a score; csd does as 1 - csd/2. */
bool pnb_measure_is_similarity(pnb_measure measure)
{
    pnb__score_form score = pnb__measure_traits_of(measure)->score;
    return score == PNB__SCORE_COSINE || score == PNB__SCORE_SIMILARITY;
}

bool pnb_measure_is_symmetric(pnb_measure measure)
{
    return pnb__measure_traits_of(measure)->is_symmetric;
}

/* Such values are functions of the rows' numbers too, and cost J x J pairs of samples. */
bool pnb__measure_is_sampled(pnb_measure measure)
{
    pnb__reads reads = pnb__measure_traits_of(measure)->reads;
    return reads == PNB__READS_SAMPLES || reads == PNB__READS_MATCH;
}

/* A density on the sphere has a normaliser, and nothing else here has one. */
bool pnb__measure_is_spherical(pnb_measure measure)
{
    return pnb__measure_traits_of(measure)->log_norm != NULL;
}

/* Models are trained on s = mean1.mean2 - (tr1 + tr2)/2, of which mean is the case without spread.
 * a s + b of any other score is no logit: it is in nats, or an unbounded distance. */
bool pnb__measure_has_logits(pnb_measure measure)
{
    pnb__score_form score = pnb__measure_traits_of(measure)->score;
    return score == PNB__SCORE_COSINE || score == PNB__SCORE_HALF;
}

/* Cosines and likelihoods on the sphere make unit vectors of the means first; everything else takes
 * ||mean1 - mean2||^2, so that a set whose means are not of length 1 gives other values. */
bool pnb__measure_reads_lengths(pnb_measure measure)
{
    return pnb__measure_traits_of(measure)->score != PNB__SCORE_COSINE &&
           !pnb__measure_is_spherical(measure);
}

size_t pnb__measure_floats(pnb_measure measure, const pnb_rows *rows, const pnb_measure_opts *opts)
{
    const pnb__measure_traits *traits = pnb__measure_traits_of(measure);
    bool has_spread = rows->log_var != NULL || rows->kappa != NULL || rows->beta != NULL;
    if (traits->score == PNB__SCORE_COSINE || !has_spread)
        return rows->dim;
    if (pnb__measure_is_sampled(measure))
        return rows->dim * opts->n_samples;
    if (traits->score == PNB__SCORE_HALF || pnb__measure_is_spherical(measure))
        return rows->dim + 1;
    return 2 * rows->dim;
}

PNB_DEFINE_PARSE(pnb_measure_parse, pnb_measure, "measure", PNB_NAMES(PNB__MEASURES))

/* 1 - csd/2 = mean1.mean2 - (tr1 + tr2)/2 for unit means, ProLIP's similarity. */
double pnb_measure_score(pnb_measure measure, double value)
{
    if (pnb__measure_traits_of(measure)->score == PNB__SCORE_HALF)
        return 1.0 - 0.5 * value;
    return pnb_measure_is_similarity(measure) ? value : -value;
}

pnb_measure_opts pnb_measure_opts_default(void)
{
    /* eps is 0 in ProLIP's evaluation; it is only trained with another */
    return (pnb_measure_opts){.inclusion_eps = 0.0,
                              .match_a = 5.0,
                              .match_b = 5.0,
                              .match_factor = PNB_MATCH_FACTOR,
                              .n_samples = 7,
                              .seed = 0};
}

pnb_measure_opts pnb__measure_opts_or_default(const pnb_measure_opts *opts)
{
    return opts == NULL ? pnb_measure_opts_default() : *opts;
}

/* ---- what fits what ----
 * A measure is refused where its value would be infinite, or a number that means nothing: variances
 * of points, densities on the sphere of rows that do not lie there. The text says what would do. */

/* The parameters decide: kappa (N) is on the sphere, beta (N,D) a generalised Gaussian, log_var
 * (N,D) alone a Gaussian, none of them a point. */
const char *pnb_rows_family(const pnb_rows *rows)
{
    if (rows->kappa != NULL)
        return rows->is_power ? "power_spherical" : "vmf";
    if (rows->beta != NULL)
        return "gen_gaussian";
    return rows->log_var != NULL ? "gaussian_diag" : "point";
}

/* All parameters have a row per row: (n,D), kappa (n). */
pnb_rows pnb_rows_slice(const pnb_rows *rows, size_t begin, size_t n)
{
    pnb_rows s = *rows;
    size_t skip = begin * rows->dim;
    s.n = n;
    s.mean += skip;
    s.log_var = s.log_var == NULL ? NULL : s.log_var + skip;
    s.inv_alpha = s.inv_alpha == NULL ? NULL : s.inv_alpha + skip;
    s.beta = s.beta == NULL ? NULL : s.beta + skip;
    s.epistemic = s.epistemic == NULL ? NULL : s.epistemic + skip;
    s.kappa = s.kappa == NULL ? NULL : s.kappa + begin;
    return s;
}

/* Measures that the family has beside those that take every family. */
static const char *suited(const pnb_rows *rows)
{
    if (rows->kappa == NULL)
        return "csd or w2";
    return rows->is_power ? "power_spherical" : "vmf or vmf_exact";
}

/* Closed forms between two different families do not exist; samples do between all. */
static pnb_status fail_family(pnb_measure measure, const char *takes, const pnb_rows *rows,
                              pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "measure %s takes %s, and one set is of family %s; use mean, avg_l2, "
                     "match_prob, or %s",
                     pnb_measure_name(measure), takes, pnb_rows_family(rows), suited(rows));
}

/* One side of a likelihood on the sphere: its family, or rows that give their directions alone. A
 * Gaussian may: the likelihood is of a vector, and reads no variance of the side that it is of. */
static pnb_status check_spherical(pnb_measure measure, const pnb_rows *rows, pnb_error *err)
{
    if (rows->dim < 2)
        return pnb__fail(err, PNB_SHAPE, "measure %s on embeddings of width %zu; a sphere needs 2",
                         pnb_measure_name(measure), rows->dim);
    bool wants_power = pnb__measure_traits_of(measure)->takes == PNB__TAKES_POWER;
    if (rows->kappa == NULL || rows->is_power == wants_power)
        return PNB_OK;
    return fail_family(measure,
                       wants_power ? "power_spherical sets beside points or Gaussians"
                                   : "vmf sets beside points or Gaussians",
                       rows, err);
}

/* A generalised Gaussian enters by its first two moments, which csd of its samples converges to. */
static pnb_status check_gaussian(pnb_measure measure, const pnb_rows *rows, pnb_error *err)
{
    if (rows->kappa != NULL)
        return fail_family(measure, "Gaussians, generalised Gaussians and points", rows, err);
    if (rows->beta != NULL && rows->log_var == NULL)
        return pnb__fail(err, PNB_ARG,
                         "measure %s takes a generalised Gaussian by its variances, and these rows "
                         "have no log_var; pnb_view_init makes it",
                         pnb_measure_name(measure));
    return PNB_OK;
}

/* The families first, then that a likelihood has a density on one side at least, then variances:
 * the first that fails is what the caller can do most about. */
static size_t several(const pnb_rows *rows)
{
    return rows == NULL || rows->n_embeddings == 0 ? 1 : rows->n_embeddings;
}

/* Rows of several embeddings have one measure; taken as one long row they would mean nothing. */
static pnb_status check_several(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                                pnb_error *err)
{
    size_t k = several(a);
    if (b != NULL && several(b) != k)
        return pnb__fail(err, PNB_SHAPE,
                         "rows of one set hold %zu embeddings, of the other %zu: both must come "
                         "from the same model",
                         k, several(b));
    if (k > 1 && (measure != PNB_MEASURE_MAX_COSINE || a->dim % k != 0))
        return pnb__fail(err, PNB_ARG,
                         "rows of %zu hold %zu embeddings each: measure max_cosine compares them, "
                         "%s does not",
                         a->dim, k, pnb_measure_name(measure));
    return PNB_OK;
}

pnb_status pnb_measure_check_fit(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                                 pnb_error *err)
{
    if ((unsigned)measure >= PNB_N_MEASURES)
        return pnb__fail(err, PNB_ARG, "measure number %d does not exist", (int)measure);
    const pnb__measure_traits *traits = pnb__measure_traits_of(measure);
    pnb_status of_several = check_several(measure, a, b, err);
    if (of_several != PNB_OK || traits->takes == PNB__TAKES_ALL)
        return of_several;
    bool spherical = pnb__measure_is_spherical(measure);
    for (int side = 0; side < (b == NULL ? 1 : 2); side++) {
        pnb_status status = spherical ? check_spherical(measure, side == 0 ? a : b, err)
                                      : check_gaussian(measure, side == 0 ? a : b, err);
        if (status != PNB_OK)
            return status;
    }
    if (spherical && b != NULL && a->kappa == NULL && b->kappa == NULL)
        return pnb__fail(err, PNB_ARG,
                         "measure %s is the likelihood of points under embeddings with a "
                         "concentration, and neither set has one; use mean or csd",
                         pnb_measure_name(measure));
    /* With v = 0 on one side kl and its kin are infinite; elk only needs v1 + v2 > 0. */
    int n_sides = (a->log_var != NULL) + (b == NULL || b->log_var != NULL);
    if (n_sides < traits->n_variances)
        return pnb__fail(err, PNB_ARG,
                         "measure %s needs variances on %s and %s is a set of points; use mean, "
                         "csd or w2",
                         pnb_measure_name(measure),
                         traits->n_variances == 2 ? "both sides" : "one side",
                         n_sides == 0 ? "each" : "one");
    return PNB_OK;
}

/* Widths first: everything else about the pair would mislead where they differ. */
pnb_status pnb__measure_check(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                              const pnb_measure_opts *opts, pnb_error *err)
{
    if (a->dim == 0 || (b != NULL && a->dim != b->dim))
        return pnb__fail(err, PNB_SHAPE,
                         "one set has width %zu, the other %zu; both must come from the same model",
                         a->dim, b == NULL ? a->dim : b->dim);
    pnb_status status = pnb_measure_check_fit(measure, a, b, err);
    if (status == PNB_OK && pnb__measure_is_sampled(measure) &&
        (opts->n_samples == 0 || opts->n_samples > 10000))
        return pnb__fail(err, PNB_ARG, "measure %s with %zu samples; 1 to 10000 are possible",
                         pnb_measure_name(measure), opts->n_samples);
    return status;
}

/* ---- row against row ---- */

pnb_status pnb_measure_rows(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                            const pnb_measure_opts *opts, double *out, pnb_error *err)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    pnb_status status = pnb__measure_check(measure, a, b, &o, err);
    if (status != PNB_OK)
        return status;
    if (a->n != b->n)
        return pnb__fail(err, PNB_SHAPE,
                         "one set has %zu rows, the other %zu; row i goes with row i", a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        out[i] = pnb_measure_pair(measure, a, i, b, i, &o);
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: measure %s is %g; the embeddings hold values that are not "
                             "finite, a kappa below 0 or log-variances beyond +-300",
                             i, pnb_measure_name(measure), out[i]);
    }
    return PNB_OK;
}
