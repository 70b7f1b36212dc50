/* Log normaliser of the von Mises-Fisher density, exact and as AsymVLM approximates it.
 *
 *   log C_d(kappa) = nu log kappa - (d/2) log 2pi - log I_nu(kappa),   nu = d/2 - 1
 *
 * log I by Debye's expansion, uniform in kappa (DLMF 10.41.3), s = sqrt(m^2 + kappa^2), p = m/s:
 *
 *   I_m(kappa) ~ exp(s) (kappa/(m+s))^m / sqrt(2 pi s) * U,   U = sum_k u_k(p)/m^k
 *
 * The powers of kappa cancel against kappa^m, so that kappa = 0 needs no case of its own. Orders
 * below 32 start at m = nu + N and come down by the ratio rho_m = I_{m+1}/(kappa I_m):
 *
 *   rho_m = 1/(2(m+1) + kappa^2 rho_{m+1}), all terms positive: stable
 *   log I_nu - nu log kappa = log I_m - m log kappa - sum log rho
 *
 * rho at the top comes from I'/I = m/kappa + kappa rho and the same polynomials, arranged so that
 * nothing cancels: rho = 1/(m+s) - W/(s^2 U), W = sum_k (u_k/2 + p u_k')/m^k (DLMF 10.41.11). */
#include <math.h>

#include "penumbra/distributions.h"

#define LOG_2PI 1.8378770664093454836
#define DEBYE_FROM 32.0 /* eight terms of the expansion are exact to rounding from here on */
#define N_TERMS 9

/* u_k(p) = p^k sum_j DEBYE[k][j] p^(2j); the test makes them again from their recurrence. */
static const double DEBYE[N_TERMS][N_TERMS] = {
    {1},
    {0.125, -0.20833333333333334},
    {0.0703125, -0.40104166666666669, 0.3342013888888889},
    {0.0732421875, -0.89121093750000002, 1.8464626736111112, -1.0258125964506173},
    {0.112152099609375, -2.3640869140624998, 8.78912353515625, -11.207002616222994,
     4.6695844234262474},
    {0.22710800170898438, -7.3687943594796321, 42.534998745388457, -91.818241543240021,
     84.636217674600729, -28.212072558200244},
    {0.57250142097473145, -26.491430486951554, 218.19051174421159, -699.57962737613252,
     1059.9904525279999, -765.25246814118168, 212.57013003921713},
    {1.7277275025844574, -108.09091978839466, 1200.9029132163525, -5305.646978613403,
     11655.393336864534, -13586.550006434138, 8061.7221817373093, -1919.4576623184071},
    {6.074042001273483, -493.915304773088, 7109.5143024893641, -41192.65496889755,
     122200.46498301746, -203400.17728041555, 192547.00123253153, -96980.598388637518,
     20204.291330966149},
};

/* U and W at order m; u_k / m^k = s^-k times a polynomial in p^2. */
static void debye_sums(double m, double s, double *u_sum, double *w_sum)
{
    double p2 = (m / s) * (m / s), u_total = 0.0, w_total = 0.0;
    for (int k = N_TERMS - 1; k >= 0; k--) {
        double u = 0.0, w = 0.0;
        for (int j = k; j >= 0; j--) {
            u = u * p2 + DEBYE[k][j];
            w = w * p2 + (0.5 + k + 2 * j) * DEBYE[k][j];
        }
        u_total = u_total / s + u;
        w_total = w_total / s + w;
    }
    *u_sum = u_total;
    *w_sum = w_total;
}

/* Returns log(kappa^nu / I_nu(kappa)), sets rho = I_{nu+1} / (kappa I_nu). */
static double log_inverse_bessel(double nu, double kappa, double *rho)
{
    double n_down = nu < DEBYE_FROM ? ceil(DEBYE_FROM - nu) : 0.0;
    double m = nu + n_down, s = hypot(m, kappa), u, w, product = 1.0;
    debye_sums(m, s, &u, &w);
    double value = m * log(m + s) - s + 0.5 * (LOG_2PI + log(s)) - log(u);
    double r = 1.0 / (m + s) - w / (s * s * u);
    for (int k = 0; k < (int)n_down; k++) { /* from order m - 1 down to nu */
        r = 1.0 / (2.0 * (m - k) + kappa * kappa * r);
        product *= r;
        if (product < 1e-200) {
            value += log(product);
            product = 1.0;
        }
    }
    *rho = r;
    return value + log(product);
}

static bool is_fine(size_t dim, double kappa)
{
    return dim >= 2 && kappa >= 0.0 && isfinite(kappa);
}

double pnb_vmf_log_norm(size_t dim, double kappa)
{
    double rho;
    if (!is_fine(dim, kappa))
        return (double)NAN;
    return log_inverse_bessel(0.5 * (double)dim - 1.0, kappa, &rho) - 0.5 * (double)dim * LOG_2PI;
}

double pnb_vmf_log_norm_slope(size_t dim, double kappa)
{
    double rho;
    if (!is_fine(dim, kappa))
        return (double)NAN;
    log_inverse_bessel(0.5 * (double)dim - 1.0, kappa, &rho);
    return -kappa * rho;
}

/* F_d = a/2 [log(a+A) + log(a+B)] - (A+B)/2,  a = (d-1)/2, A = hypot(a, kappa), B = hypot(a+1,
 * kappa): the integral of minus the mean of two bounds of the Bessel ratio, kappa/(a+A) above and
 * kappa/(a+B) below. */
double pnb_vmf_log_norm_approx(size_t dim, double kappa)
{
    if (!is_fine(dim, kappa))
        return (double)NAN;
    double a = 0.5 * ((double)dim - 1.0);
    double root_a = hypot(a, kappa), root_b = hypot(a + 1.0, kappa);
    return 0.5 * a * (log(a + root_a) + log(a + root_b)) - 0.5 * (root_a + root_b);
}

double pnb_vmf_log_norm_approx_slope(size_t dim, double kappa)
{
    if (!is_fine(dim, kappa))
        return (double)NAN;
    double a = 0.5 * ((double)dim - 1.0);
    double root_a = hypot(a, kappa), root_b = hypot(a + 1.0, kappa);
    return -0.5 * kappa * (1.0 / (a + root_a) + 1.0 / (a + root_b));
}
