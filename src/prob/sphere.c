/* Log-likelihoods of unit vectors under von Mises-Fisher and power spherical embeddings.
 *
 *   vmf, vmf_exact    kappa cos + F_d(kappa), kappa cos + log C_d(kappa)      AsymVLM section 4.2
 *   power_spherical   kappa log(1 + cos) + log C(d, kappa)
 *
 * cos is the cosine of the two means: rows stored in f32 have length 1 only to 1e-7, which kappa =
 * 1e6 would turn into an error of 0.1. One side is the embedding, the other the vector; where both
 * are embeddings the value is the mean of the two likelihoods, each of the other's mean (the
 * symmetrised kernel of SymVLM, an ablation in AsymVLM). Normalisers: vmf.c, power_spherical.c. */
#include <math.h>

#include "prob/measure.h"

/* A unit vector in f64 is no nearer to its antipode than this; keeps log(1 + cos) finite. */
#define LEAST_ONE_PLUS_COS 0x1p-53

pnb__sphere_row pnb__sphere_row_of(pnb_measure measure, const pnb_rows *rows, size_t row)
{
    const float *mean = rows->mean + row * rows->dim;
    double square = 0.0;
    for (size_t d = 0; d < rows->dim; d++)
        square += (double)mean[d] * mean[d];
    pnb__sphere_row r = {.scale = square == 0.0 ? 0.0 : 1.0 / sqrt(square)};
    if (rows->kappa == NULL)
        return r;
    r.kappa = rows->kappa[row];
    r.log_norm = pnb__measure_traits_of(measure)->log_norm(rows->dim, r.kappa);
    return r;
}

double pnb__sphere_value(bool is_power, double kappa, double log_norm, double cosine)
{
    if (!is_power)
        return kappa * cosine + log_norm;
    return kappa * log(cosine < LEAST_ONE_PLUS_COS ? LEAST_ONE_PLUS_COS : cosine) + log_norm;
}

/* u.v, or 1 + u.v */
static double cosine_of(const float *m1, double scale1, const float *m2, double scale2, size_t dim,
                        bool plus_one)
{
    double dot = 0.0, sum = 0.0;
    for (size_t d = 0; d < dim; d++)
        dot += m1[d] * scale1 * (m2[d] * scale2);
    if (!plus_one)
        return dot;
    if (dot >= PNB__SPHERE_OPPOSITE)
        return 1.0 + dot;
    for (size_t d = 0; d < dim; d++) {
        double x = m1[d] * scale1 + m2[d] * scale2;
        sum += x * x;
    }
    return 0.5 * sum;
}

double pnb__sphere_pair(pnb_measure measure, const pnb_rows *g1, size_t row1, const pnb_rows *g2,
                        size_t row2)
{
    size_t dim = g1->dim;
    pnb__sphere_row r1 = pnb__sphere_row_of(measure, g1, row1);
    pnb__sphere_row r2 = pnb__sphere_row_of(measure, g2, row2);
    double weight = g1->kappa != NULL && g2->kappa != NULL ? 0.5 : 1.0;
    bool is_power = pnb__measure_traits_of(measure)->takes == PNB__TAKES_POWER;
    double cosine =
        cosine_of(g1->mean + row1 * dim, r1.scale, g2->mean + row2 * dim, r2.scale, dim, is_power);
    return pnb__sphere_value(is_power, weight * (r1.kappa + r2.kappa),
                             weight * (r1.log_norm + r2.log_norm), cosine);
}
