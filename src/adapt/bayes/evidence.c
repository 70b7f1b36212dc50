/* Prior precision by the marginal likelihood of the Laplace approximation.
 *
 *   log Z(lambda) = -lambda |W|^2 / 2 + p q log(lambda) / 2
 *                   - (q log det A' + p log det B') / 2 + what does not depend on lambda
 *
 * with A' = sqrt(n) A + sqrt(lambda) I of width p and B' of width q: log det (A' x B') has the
 * width of the other factor before each. BayesVLM's first code had p and q the other way round and
 * no 1/2 (its issue 2, corrected in September 2025); that form is kept by the name "released". Both
 * are functions of one number and of eigenvalues that are found once, so that the maximum is found
 * by looking everywhere, where the code takes 1,000 steps of Adam. */
#include <math.h>

#include "adapt/bayes/kronecker.h"
#include "prob/eigen.h"

static const double log_least = -20.7232658369464; /* log 1e-9 */
static const double log_most = 34.5387763949107;   /* log 1e15 */
enum { N_GRID = 241, N_GOLDEN = 80 };

static pnb_status find_values(double *values, const double *factor, size_t d, pnb_error *err)
{
    double *room = pnb__alloc_array(d, (2 * d + 2) * sizeof *room);
    if (room == NULL)
        return pnb__fail_nomem(err, (2 * d + 2) * d * sizeof *room);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            room[i * d + j] = 0.5 * (factor[i * d + j] + factor[j * d + i]);
    bool is_found = pnb__eigen_symmetric(d, room, values, room + d * d, room + 2 * d * d);
    for (size_t i = 0; i < d; i++)
        values[i] = fmax(values[i], 0.0); /* rounding: both factors are sums of squares */
    pnb__free(room);
    return is_found ? PNB_OK
                    : pnb__fail(err, PNB_NUMERIC,
                                "the eigenvalues of a Kronecker factor were not "
                                "found");
}

pnb_status pnb__evidence_init(pnb__evidence *e, const pnb__kronecker *k, double weight_square,
                              pnb_adapt_marginal kind, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *e = (pnb__evidence){
        .p = k->p, .q = k->q, .n = k->n, .weight_square = weight_square, .kind = kind};
    e->a = pnb__alloc_array(k->p, sizeof *e->a);
    e->b = pnb__alloc_array(k->q, sizeof *e->b);
    if (e->a == NULL || e->b == NULL)
        return pnb__fail_nomem(err, (k->p + k->q) * sizeof(double));
    PNB_TRY(find_values(e->a, k->a, k->p, err));
    status = find_values(e->b, k->b, k->q, err);
done:
    return status;
}

void pnb__evidence_reset(pnb__evidence *e)
{
    pnb__free(e->a);
    pnb__free(e->b);
    *e = (pnb__evidence){0};
}

static double log_det(const double *values, size_t d, double n, double lambda)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; i++)
        sum += log(sqrt(n) * values[i] + sqrt(lambda));
    return sum;
}

double pnb__evidence_at(const pnb__evidence *e, double lambda)
{
    double p = (double)e->p, q = (double)e->q;
    double det_a = log_det(e->a, e->p, e->n, lambda), det_b = log_det(e->b, e->q, e->n, lambda);
    double prior = 0.5 * (p * q * log(lambda) - lambda * e->weight_square);
    return e->kind == PNB_ADAPT_MARGINAL_RELEASED ? prior - (p * det_a + q * det_b)
                                                  : prior - 0.5 * (q * det_a + p * det_b);
}

/* The maximum of what has one between low and high, by golden section. */
static double golden_section(const pnb__evidence *e, double low, double high)
{
    const double share = 0.6180339887498949;
    for (int i = 0; i < N_GOLDEN; i++) {
        double left = high - share * (high - low), right = low + share * (high - low);
        if (pnb__evidence_at(e, exp(left)) >= pnb__evidence_at(e, exp(right)))
            high = right;
        else
            low = left;
    }
    return exp(0.5 * (low + high));
}

pnb_status pnb__evidence_best(const pnb__evidence *e, const char *what, double *lambda,
                              pnb_error *err)
{
    double step = (log_most - log_least) / (N_GRID - 1), most = -INFINITY;
    int best = 0;
    for (int i = 0; i < N_GRID; i++) {
        double value = pnb__evidence_at(e, exp(log_least + i * step));
        if (value > most) {
            most = value;
            best = i;
        }
    }
    if (best == 0 || best == N_GRID - 1)
        return pnb__fail(err, PNB_NUMERIC,
                         "%s: the marginal likelihood grows to the end of the range, a prior "
                         "precision of %g: give one with prior_precision",
                         what, exp(best == 0 ? log_least : log_most));
    *lambda = golden_section(e, log_least + (best - 1) * step, log_least + (best + 1) * step);
    return PNB_OK;
}
