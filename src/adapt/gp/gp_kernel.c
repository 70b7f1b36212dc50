/* Kernels and their derivatives (Rasmussen and Williams 2006, section 4.2; GroVE's appendix prints
 * the RBF without the square of the distance: its code and this have it).
 *
 * Of the stationary ones, with s = r^2 = sum_q ((x_q - z_q) / l_q)^2 every derivative hangs on two
 * functions of s: h = k'(r) / r                 dk/dx_q = scale h (x_q - z_q) / l_q^2 e = h'(r) / r
 * d2k/dx_q dx_p = scale (h [q=p] / l_q^2 + e u_q u_p), u_q = (x_q - z_q) / l_q^2 dk/dl_q = -scale h
 * (x_q - z_q)^2 / l_q^3 The distance is kept above 1e-15, where h may be large but stands beside x
 * - z = 0: slopes at coincident points are 0, which for matern12 is a convention. The cosine c =
 * x.z / (|x| |z|) is not stationary: dc/dx = (zn - c xn) / |x|,   d2c/dx2 = (3 c xn xn^T - xn zn^T
 * - zn xn^T - c I) / |x|^2 with xn = x/|x|, zn = z/|z|; at 0 all of it is 0. */
#include "adapt/gp/gp_kernel.h"

#include <math.h>
#include <string.h>

/* of s = r^2: k, h and e as above, without scale */
typedef struct shape {
    double k, h, e;
} shape;

static shape shape_at(pnb__gp_kind kind, double s)
{
    const double pi = 3.14159265358979323846;
    double r = sqrt(s > 1e-30 ? s : 1e-30);
    switch (kind) {
    case PNB__GP_RBF: {
        double k = exp(-0.5 * s);
        return (shape){k, -k, k};
    }
    case PNB__GP_MATERN12: { /* a tip at r = 0 */
        if (s <= 1e-30)
            return (shape){1, 0, 0};
        double k = exp(-r);
        return (shape){k, -k / r, k * (1 + r) / (r * r * r)};
    }
    case PNB__GP_MATERN32: {
        double a = sqrt(3.0) * r, decay = exp(-a);
        return (shape){(1 + a) * decay, -3 * decay, 3 * sqrt(3.0) * decay / r};
    }
    case PNB__GP_MATERN52: {
        double a = sqrt(5.0) * r, decay = exp(-a);
        return (shape){(1 + a + a * a / 3) * decay, -5.0 / 3.0 * (1 + a) * decay,
                       25.0 / 3.0 * decay};
    }
    case PNB__GP_COSINE: /* no function of the distance */
    case PNB__GP_WAVE:
    case PNB__N_GP_KINDS:
        break;
    }
    double h = -pi * sin(pi * r) / r;
    return (shape){cos(pi * r), h, (-pi * pi * cos(pi * r) - h) / (r * r)};
}

static double lengthscale(const pnb__gp_kernel *k, size_t axis)
{
    return k->lengthscale[k->n_lengthscales == 1 ? 0 : axis];
}

static double squared_distance(const pnb__gp_kernel *k, const double *x, const double *z)
{
    double s = 0;
    for (size_t q = 0; q < k->dim; q++) {
        double u = (x[q] - z[q]) / lengthscale(k, q);
        s += u * u;
    }
    return s;
}

/* ---- the normalised scalar product ---- */
typedef struct angle {
    double c, inv_x, inv_z; /* cosine, 1/|x|, 1/|z|; 0 where a point is 0 */
} angle;

static angle angle_of(const double *x, const double *z, size_t dim)
{
    double xx = 0, zz = 0, xz = 0;
    for (size_t q = 0; q < dim; q++) {
        xx += x[q] * x[q];
        zz += z[q] * z[q];
        xz += x[q] * z[q];
    }
    if (xx <= 0 || zz <= 0)
        return (angle){0, 0, 0};
    double inv_x = 1 / sqrt(xx), inv_z = 1 / sqrt(zz);
    return (angle){xz * inv_x * inv_z, inv_x, inv_z};
}

/* d c / d x_q */
static double angle_slope(angle a, const double *x, const double *z, size_t q)
{
    return a.inv_x * (z[q] * a.inv_z - a.c * x[q] * a.inv_x);
}

/* ---- both ---- */
static double value(const pnb__gp_kernel *k, const double *x, const double *z)
{
    if (k->kind == PNB__GP_COSINE)
        return k->scale * angle_of(x, z, k->dim).c;
    return k->scale * shape_at(k->kind, squared_distance(k, x, z)).k;
}

void pnb__gp_kernel_matrix(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                           size_t m, double *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            out[i * m + j] = value(k, x + i * k->dim, z + j * k->dim);
}

/* One pair's share; slope = dK[i][j]. */
static void angle_backward(const pnb__gp_kernel *k, const double *x, const double *z, double slope,
                           double *dx, double *dz, const pnb__gp_kernel_grad *out)
{
    angle at = angle_of(x, z, k->dim), back = {at.c, at.inv_z, at.inv_x};
    if (out->dscale != NULL)
        *out->dscale += slope * at.c;
    for (size_t q = 0; q < k->dim; q++) {
        if (dx != NULL)
            dx[q] += slope * k->scale * angle_slope(at, x, z, q);
        if (dz != NULL)
            dz[q] += slope * k->scale * angle_slope(back, z, x, q);
    }
}

static void pair_backward(const pnb__gp_kernel *k, const double *x, const double *z, double slope,
                          double *dx, double *dz, const pnb__gp_kernel_grad *out)
{
    if (k->kind == PNB__GP_COSINE) {
        angle_backward(k, x, z, slope, dx, dz, out);
        return;
    }
    shape at = shape_at(k->kind, squared_distance(k, x, z));
    double by_h = slope * k->scale * at.h;
    if (out->dscale != NULL)
        *out->dscale += slope * at.k;
    for (size_t q = 0; q < k->dim; q++) {
        double l = lengthscale(k, q), delta = x[q] - z[q], d = by_h * delta / (l * l);
        if (dx != NULL)
            dx[q] += d;
        if (dz != NULL)
            dz[q] -= d;
        if (out->dlengthscale != NULL)
            out->dlengthscale[k->n_lengthscales == 1 ? 0 : q] -= d * delta / l;
    }
}

void pnb__gp_kernel_backward(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                             size_t m, const double *dk, const pnb__gp_kernel_grad *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            pair_backward(k, x + i * k->dim, z + j * k->dim, dk[i * m + j],
                          out->dx != NULL ? out->dx + i * k->dim : NULL,
                          out->dz != NULL ? out->dz + j * k->dim : NULL, out);
}

static void add_angle_curvature(size_t dim, const double *x, const double *z, double weight,
                                double *gradient, double *hessian)
{
    angle at = angle_of(x, z, dim);
    double each = weight * at.inv_x * at.inv_x;
    for (size_t q = 0; q < dim; q++) {
        double xq = x[q] * at.inv_x, zq = z[q] * at.inv_z;
        gradient[q] += weight * angle_slope(at, x, z, q);
        hessian[q * dim + q] -= each * at.c;
        for (size_t p = 0; p < dim; p++) {
            double xp = x[p] * at.inv_x, zp = z[p] * at.inv_z;
            hessian[q * dim + p] += each * (3 * at.c * xq * xp - xq * zp - zq * xp);
        }
    }
}

static void add_curvature(const pnb__gp_kernel *k, const double *x, const double *z, double weight,
                          double *gradient, double *hessian)
{
    shape at = shape_at(k->kind, squared_distance(k, x, z));
    for (size_t q = 0; q < k->dim; q++) {
        double l = lengthscale(k, q), u = (x[q] - z[q]) / (l * l);
        gradient[q] += weight * at.h * u;
        hessian[q * k->dim + q] += weight * at.h / (l * l);
        for (size_t p = 0; p < k->dim; p++) {
            double lp = lengthscale(k, p);
            hessian[q * k->dim + p] += weight * at.e * u * (x[p] - z[p]) / (lp * lp);
        }
    }
}

void pnb__gp_kernel_curvature(const pnb__gp_kernel *k, const double *x, const double *z, size_t m,
                              const double *w, double *gradient, double *hessian)
{
    memset(gradient, 0, k->dim * sizeof *gradient);
    memset(hessian, 0, k->dim * k->dim * sizeof *hessian);
    for (size_t j = 0; j < m; j++) {
        if (k->kind == PNB__GP_COSINE)
            add_angle_curvature(k->dim, x, z + j * k->dim, w[j] * k->scale, gradient, hessian);
        else
            add_curvature(k, x, z + j * k->dim, w[j] * k->scale, gradient, hessian);
    }
}

void pnb__gp_kernel_slopes(const pnb__gp_kernel *k, const double *x, const double *z, size_t m,
                           double *jacobian)
{
    for (size_t j = 0; j < m; j++) {
        const double *from = z + j * k->dim;
        if (k->kind == PNB__GP_COSINE) {
            angle at = angle_of(x, from, k->dim);
            for (size_t q = 0; q < k->dim; q++)
                jacobian[j * k->dim + q] = k->scale * angle_slope(at, x, from, q);
            continue;
        }
        double h = k->scale * shape_at(k->kind, squared_distance(k, x, from)).h;
        for (size_t q = 0; q < k->dim; q++) {
            double l = lengthscale(k, q);
            jacobian[j * k->dim + q] = h * (x[q] - from[q]) / (l * l);
        }
    }
}
