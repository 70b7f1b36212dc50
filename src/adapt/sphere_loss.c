/* Likelihoods on the sphere in a graph. The normalisers come from src/prob with their slopes, in
 * doubles: for power spherical densities of D = 512 and kappa over 10^4 the difference of two
 * log Gammas in floats is off by 0.1, which is the released code's error.
 *
 * F_D(kappa) drops the additive constant of the approximation (about -0.92 D), as the released code
 * does; it is one number for all texts and cancels in every softmax. In the sigmoid loss `centre`
 * and the bias are there for it. */
#include "adapt/sphere_loss.h"

#include "penumbra/distributions.h"

/* pnb__function has one parameter, a double: the width. */
#define NORM(name, value_fn, slope_fn)                                                             \
    static double name##_value(double dim, double kappa)                                           \
    {                                                                                              \
        return value_fn((size_t)dim, kappa);                                                       \
    }                                                                                              \
    static double name##_slope(double dim, double kappa)                                           \
    {                                                                                              \
        return slope_fn((size_t)dim, kappa);                                                       \
    }
NORM(vmf, pnb_vmf_log_norm_approx, pnb_vmf_log_norm_approx_slope)
NORM(vmf_exact, pnb_vmf_log_norm, pnb_vmf_log_norm_slope)
NORM(power, pnb_power_spherical_log_norm, pnb_power_spherical_log_norm_slope)
#undef NORM

static const pnb__function norms[PNB__N_SPHERE_DENSITIES] = {
    [PNB__SPHERE_VMF] = {vmf_value, vmf_slope, 0},
    [PNB__SPHERE_VMF_EXACT] = {vmf_exact_value, vmf_exact_slope, 0},
    [PNB__SPHERE_POWER_SPHERICAL] = {power_value, power_slope, 0},
};

pnb__directions pnb__directions_of(pnb__tensor *eta)
{
    pnb__tensor *square = pnb__sum(pnb__apply(PNB__SQUARE, eta), 1);
    return (pnb__directions){pnb__l2_normalize(eta, 1e-12), pnb__apply(PNB__SQRT, square)};
}

static pnb__tensor *times(pnb__tensor *x, pnb__tensor *scale)
{
    return scale == NULL ? x : pnb__mul(x, scale);
}

/* Factors of a text go into its row before the product, and its normaliser is the product's bias:
 * no pass over the matrix but the product. */
static pnb__tensor *vmf_log_lik(pnb__tensor *images, pnb__directions texts, pnb__tensor *norm,
                                pnb__tensor *scale)
{
    size_t n = pnb__dim(texts.mu, 0);
    pnb__tensor *kappa = pnb__reshape(times(texts.kappa, scale), 2, (size_t[]){n, 1});
    return pnb__linear(images, pnb__mul(texts.mu, kappa),
                       &(pnb__linear_opts){.bias = times(norm, scale), .act = PNB__IDENTITY});
}

pnb__tensor *pnb__sphere_log_lik(pnb__sphere_density density, pnb__tensor *images,
                                 pnb__directions texts, pnb__tensor *scale)
{
    pnb__function of_kappa = norms[density];
    of_kappa.parameter = (double)pnb__dim(images, 1);
    pnb__tensor *norm = pnb__apply_function(texts.kappa, &of_kappa);
    if (density != PNB__SPHERE_POWER_SPHERICAL)
        return vmf_log_lik(images, texts, norm, scale);
    pnb__tensor *cosine = pnb__matmul(images, false, texts.mu, true);
    pnb__tensor *log_cosine = pnb__apply(PNB__LOG, pnb__affine(cosine, 1, 1));
    return pnb__add(pnb__mul(log_cosine, times(texts.kappa, scale)), times(norm, scale));
}

pnb__tensor *pnb__symmetric_info_nce(pnb__tensor *log_lik, pnb__tensor *scale, pnb__tensor *matches)
{
    pnb__tensor *logits = times(log_lik, scale);
    pnb__tensor *back = pnb__permute(logits, (int[]){1, 0});
    pnb__tensor *by_image = pnb__mean(pnb__cross_entropy(logits, matches), 0);
    pnb__tensor *by_text = pnb__mean(pnb__cross_entropy(back, matches), 0);
    return pnb__affine(pnb__add(by_image, by_text), 0.5, 0);
}

pnb__tensor *pnb__pairwise_sigmoid(pnb__tensor *log_lik, pnb__tensor *scale, pnb__tensor *bias,
                                   pnb__tensor *centre, pnb__tensor *signs)
{
    pnb__tensor *logits = pnb__add(pnb__mul(pnb__sub(log_lik, centre), scale), bias);
    pnb__tensor *each = pnb__apply(PNB__LOG_SIGMOID, pnb__mul(logits, signs));
    double n_texts = (double)pnb__dim(log_lik, 1);
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), -1 / PNB_MAX(n_texts, 1.0), 0);
}
