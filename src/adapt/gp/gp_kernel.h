/* Kernels of Gaussian processes over latent points, with all their derivatives. */
#ifndef PNB_ADAPT_GP_GP_KERNEL_H
#define PNB_ADAPT_GP_GP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* X(NAME, name, sentence), r = ||(x - x') / lengthscale||. GroVE's paper calls the normalised
 * scalar product "cosine" (Eq. 16); GPyTorch's CosineKernel is the other one. */
#define PNB__GP_KERNEL_LIST(X)                                                                     \
    X(RBF, "rbf", "exp(-r^2/2)")                                                                   \
    X(MATERN12, "matern12", "exp(-r)")                                                             \
    X(MATERN32, "matern32", "(1 + a) exp(-a), a = sqrt(3) r")                                      \
    X(MATERN52, "matern52", "(1 + a + a^2/3) exp(-a), a = sqrt(5) r")                              \
    X(COSINE, "cosine", "x.x' / (|x| |x'|): no lengthscale; K has rank Q, jitter does the rest")   \
    X(WAVE, "wave", "cos(pi r): a wave over the distance, half its period the lengthscale")

typedef enum pnb__gp_kind {
#define PNB__GP_KIND_ENUM(NAME, name, sentence) PNB__GP_##NAME,
    PNB__GP_KERNEL_LIST(PNB__GP_KIND_ENUM)
#undef PNB__GP_KIND_ENUM
        PNB__N_GP_KINDS
} pnb__gp_kind;

/* k(x, x') = scale * k_kind(r). k(x, x) = scale for every kind. */
typedef struct pnb__gp_kernel {
    pnb__gp_kind kind;
    size_t dim;                /* Q, of the points */
    size_t n_lengthscales;     /* 1: shared by all axes; Q: one for each */
    const double *lengthscale; /* > 0 */
    double scale;              /* > 0 */
} pnb__gp_kernel;

/* K[i][j] = k(x_i, z_j).  Shape  x (N,Q), z (M,Q) -> K (N,M) */
void pnb__gp_kernel_matrix(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                           size_t m, double *out);
/* k(x_i, x_j) for j <= i; what stands above the diagonal of out (N,N) is left alone or as good. */
void pnb__gp_kernel_lower(const pnb__gp_kernel *k, const double *x, size_t n, double *out);

/* Where the derivatives of a loss are added; NULL: not wanted. */
typedef struct pnb__gp_kernel_grad {
    double *dx;           /* (N,Q) */
    double *dz;           /* (M,Q); may be dx where z is x */
    double *dlengthscale; /* (n_lengthscales) */
    double *dscale;       /* () */
} pnb__gp_kernel_grad;

/* From dK (N,M). K is what pnb__gp_kernel_matrix made of the same points. At coincident points the
 * derivative by the distance is 0, as where the reference clamps it. */
void pnb__gp_kernel_backward(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                             size_t m, const double *dk, const pnb__gp_kernel_grad *out);
/* The same of pnb__gp_kernel_lower from a symmetric dK (N,N), of which the lower triangle is read;
 * out->dz is not. */
void pnb__gp_kernel_backward_lower(const pnb__gp_kernel *k, const double *x, size_t n,
                                   const double *dk, const pnb__gp_kernel_grad *out);

/* K and, of a kernel that is a function of the distance (all but PNB__GP_COSINE), H (N,M): with a
 * weight w[i][j] for each pair
 *   d/dx_iq sum_j w[i][j] K[i][j] = sum_j w[i][j] H[i][j] (x_iq - z_jq) / lengthscale_q^2 */
void pnb__gp_kernel_shapes(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                           size_t m, double *value, double *slope);

/* Derivatives of sum_j w[j] k(x, z_j) by x, for the second-order search of latents: gradient (Q)
 * and Hessian (Q,Q), both written.  Shape  x (Q), z (M,Q), w (M) */
void pnb__gp_kernel_curvature(const pnb__gp_kernel *k, const double *x, const double *z, size_t m,
                              const double *w, double *gradient, double *hessian);
/* J[j][q] = d k(x, z_j) / d x_q, (M,Q) */
void pnb__gp_kernel_slopes(const pnb__gp_kernel *k, const double *x, const double *z, size_t m,
                           double *jacobian);

#endif
