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
#include <stdint.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"
#include "base/base.h"
#include "base/wide.h"

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

/* ---- stationary kernels, a row of columns at a time ---- */

enum { WIDE = 128, DEEP = 16 }; /* columns at a time, and of their axes */

/* Some axes of some points beside each other, over their lengthscales: u[q][j], and what is added
 * to their slopes. */
typedef struct columns {
    const pnb__gp_kernel *kernel;
    const double *z;
    size_t n, first, n_axes; /* points; axes that are loaded: none where n_axes is 0 */
    double *dz;              /* NULL: not wanted */
    double u[DEEP][WIDE], du[DEEP][WIDE];
} columns;

static void flush_columns(columns *c)
{
    size_t dim = c->kernel->dim;
    for (size_t q = 0; c->dz != NULL && q < c->n_axes; q++) {
        double inverse = 1 / lengthscale(c->kernel, c->first + q);
        for (size_t j = 0; j < c->n; j++)
            c->dz[j * dim + c->first + q] += c->du[q][j] * inverse;
    }
    c->n_axes = 0;
}

static void load_columns(columns *c, size_t first)
{
    size_t dim = c->kernel->dim;
    if (c->n_axes != 0 && c->first == first)
        return;
    flush_columns(c);
    c->first = first;
    c->n_axes = PNB_MIN((size_t)DEEP, dim - first);
    for (size_t q = 0; q < c->n_axes; q++) {
        double inverse = 1 / lengthscale(c->kernel, first + q);
        for (size_t j = 0; j < c->n; j++)
            c->u[q][j] = c->z[j * dim + first + q] * inverse;
        memset(c->du[q], 0, c->n * sizeof *c->du[q]);
    }
}

/* s[j] = r^2 of x and the first n columns */
PNB__WIDE static void row_distances(columns *c, const double *x, size_t n, double *s)
{
    size_t dim = c->kernel->dim;
    memset(s, 0, n * sizeof *s);
    for (size_t first = 0; first < dim; first += DEEP) {
        load_columns(c, first);
        for (size_t q = 0; q < c->n_axes; q++) {
            double at = x[first + q] / lengthscale(c->kernel, first + q);
            for (size_t j = 0; j < n; j++)
                s[j] += (at - c->u[q][j]) * (at - c->u[q][j]);
        }
    }
}

/* x[j] becomes e^x for x <= 0 within a unit of the last place or two, and 3e-308 below -708: 2^n
 * e^r with r within half of log 2. Both loops turn into vector instructions, which libm's exp does
 * not; in one loop the limit would be a branch. */
PNB__WIDE static void exp_row(double *restrict x, size_t n_all)
{
    const double to_integer = 0x1.8p52, ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    for (size_t j = 0; j < n_all; j++)
        x[j] = x[j] > -708 ? x[j] : -708;
    for (size_t j = 0; j < n_all; j++) {
        double n = x[j] * 1.4426950408889634074 + to_integer, scale, sum = 1.0 / 6227020800;
        int64_t bits;
        memcpy(&bits, &n, sizeof bits);
        n -= to_integer;
        double r = x[j] - n * ln2_high - n * ln2_low;
        sum = sum * r + 1.0 / 479001600;
        sum = sum * r + 1.0 / 39916800;
        sum = sum * r + 1.0 / 3628800;
        sum = sum * r + 1.0 / 362880;
        sum = sum * r + 1.0 / 40320;
        sum = sum * r + 1.0 / 5040;
        sum = sum * r + 1.0 / 720;
        sum = sum * r + 1.0 / 120;
        sum = sum * r + 1.0 / 24;
        sum = sum * r + 1.0 / 6;
        sum = sum * r + 0.5;
        sum = sum * r + 1;
        sum = sum * r + 1;
        bits = (int64_t)((uint64_t)(bits + 1023) << 52);
        memcpy(&scale, &bits, sizeof scale);
        x[j] = sum * scale;
    }
}

/* k[j] and h[j] at s[j], without scale. */
static void row_shape(pnb__gp_kind kind, const double *restrict s, size_t n, double *restrict k,
                      double *restrict h)
{
    bool is_rough = kind == PNB__GP_MATERN32, is_smooth = kind == PNB__GP_MATERN52;
    if (kind != PNB__GP_RBF && !is_rough && !is_smooth) {
        for (size_t j = 0; j < n; j++) {
            shape at = shape_at(kind, s[j]);
            k[j] = at.k;
            h[j] = at.h;
        }
        return;
    }
    for (size_t j = 0; j < n; j++)
        k[j] = kind == PNB__GP_RBF ? -0.5 * s[j] : -sqrt((is_rough ? 3 : 5) * s[j]);
    if (kind == PNB__GP_RBF) {
        exp_row(k, n);
        for (size_t j = 0; j < n; j++)
            h[j] = -k[j];
        return;
    }
    memcpy(h, k, n * sizeof *h); /* -a */
    exp_row(k, n);
    for (size_t j = 0; j < n; j++) {
        double a = -h[j], decay = k[j];
        k[j] = (is_rough ? 1 + a : 1 + a + a * a / 3) * decay;
        h[j] = is_rough ? -3 * decay : -5.0 / 3.0 * (1 + a) * decay;
    }
}

/* ---- both ---- */

static void angle_matrix(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                         size_t m, double *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            out[i * m + j] = k->scale * angle_of(x + i * k->dim, z + j * k->dim, k->dim).c;
}

/* k of rows and columns, and h where `slope` is not NULL; where `lower` is set of columns up to the
 * row's number alone. */
static void matrix(const pnb__gp_kernel *k, const double *x, size_t n, const double *z, size_t m,
                   bool lower, double *out, double *slope)
{
    columns c = {.kernel = k};
    double s[WIDE], room[WIDE];
    for (size_t at = 0; at < m; at += WIDE) {
        c.z = z + at * k->dim;
        c.n = PNB_MIN((size_t)WIDE, m - at);
        c.n_axes = 0;
        for (size_t i = lower ? at : 0; i < n; i++) {
            size_t width = lower ? PNB_MIN(c.n, i + 1 - at) : c.n;
            double *row = out + i * m + at;
            row_distances(&c, x + i * k->dim, width, s);
            double *h = slope != NULL ? slope + i * m + at : room;
            row_shape(k->kind, s, width, row, h);
            for (size_t j = 0; j < width; j++)
                row[j] *= k->scale;
            for (size_t j = 0; slope != NULL && j < width; j++)
                h[j] *= k->scale;
        }
    }
}

void pnb__gp_kernel_matrix(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                           size_t m, double *out)
{
    if (k->kind == PNB__GP_COSINE)
        angle_matrix(k, x, n, z, m, out);
    else
        matrix(k, x, n, z, m, false, out, NULL);
}

void pnb__gp_kernel_lower(const pnb__gp_kernel *k, const double *x, size_t n, double *out)
{
    if (k->kind == PNB__GP_COSINE)
        angle_matrix(k, x, n, x, n, out);
    else
        matrix(k, x, n, x, n, true, out, NULL);
}

void pnb__gp_kernel_shapes(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                           size_t m, double *value, double *slope)
{
    matrix(k, x, n, z, m, false, value, slope);
}

/* One pair's share; slope = dK[i][j]. */
static void angle_backward(const pnb__gp_kernel *k, const double *x, const double *z, double slope,
                           double *dx, double *dz, double *dscale)
{
    angle at = angle_of(x, z, k->dim), back = {at.c, at.inv_z, at.inv_x};
    if (dscale != NULL)
        *dscale += slope * at.c;
    for (size_t q = 0; q < k->dim; q++) {
        if (dx != NULL)
            dx[q] += slope * k->scale * angle_slope(at, x, z, q);
        if (dz != NULL)
            dz[q] += slope * k->scale * angle_slope(back, z, x, q);
    }
}

/* What goes back through a block of slopes: those of rows and columns, or, `lower`, of a symmetric
 * one whose pairs below the diagonal stand for both. */
typedef struct way_back {
    const pnb__gp_kernel *kernel;
    const double *x, *z, *dk;
    size_t n, m;
    bool lower;
    double *dx, *dz, *dlengthscale, *dscale;
} way_back;

static void angles_backward(const way_back *b)
{
    size_t dim = b->kernel->dim;
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = 0; j < (b->lower ? i + 1 : b->m); j++)
            angle_backward(b->kernel, b->x + i * dim, b->z + j * dim,
                           b->dk[i * b->m + j] * (b->lower && j < i ? 2 : 1),
                           b->dx != NULL ? b->dx + i * dim : NULL,
                           b->dz != NULL ? b->dz + j * dim : NULL, b->dscale);
}

/* A long sum is eight beside each other. */
typedef double lanes __attribute__((vector_size(64)));
enum { LANES = 8 };

/* du_j -= w_j u_j, u_j = at - column_j, and the sums of w u and w u^2 over all n. */
PNB__WIDE static void axis_backward(const double *w, const double *column, double at, size_t n,
                                    double *du, double total[2])
{
    lanes sum = {0}, square = {0}, u, wu, left;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        memcpy(&u, column + j, sizeof u);
        memcpy(&wu, w + j, sizeof wu);
        memcpy(&left, du + j, sizeof left);
        u = at - u;
        wu *= u;
        left -= wu;
        sum += wu;
        square += wu * u;
        memcpy(du + j, &left, sizeof left);
    }
    total[0] = total[1] = 0;
    for (; j < n; j++) {
        double one = at - column[j], product = w[j] * one;
        du[j] -= product;
        total[0] += product;
        total[1] += product * one;
    }
    for (size_t i = 0; i < LANES; i++) {
        total[0] += sum[i];
        total[1] += square[i];
    }
}

/* With w[j] = dK scale h of row i: its share of dx, dz and dlengthscale, by axes
 *   dx += sum_j w u / l,   dz_j -= w u / l,   dl -= sum_j w u^2 / l,   u = (x - z) / l */
static void row_backward(const way_back *b, columns *c, size_t i, const double *w, size_t n)
{
    const pnb__gp_kernel *k = b->kernel;
    for (size_t first = 0; first < k->dim; first += DEEP) {
        load_columns(c, first);
        for (size_t q = 0; q < c->n_axes; q++) {
            double l = lengthscale(k, first + q), total[2];
            axis_backward(w, c->u[q], b->x[i * k->dim + first + q] / l, n, c->du[q], total);
            if (b->dx != NULL)
                b->dx[i * k->dim + first + q] += total[0] / l;
            if (b->dlengthscale != NULL)
                b->dlengthscale[k->n_lengthscales == 1 ? 0 : first + q] -= total[1] / l;
        }
    }
}

static void backward(const way_back *b)
{
    const pnb__gp_kernel *k = b->kernel;
    columns c = {.kernel = k};
    double s[WIDE], value[WIDE], w[WIDE];
    for (size_t at = 0; at < b->m; at += WIDE) {
        c.z = b->z + at * k->dim;
        c.dz = b->dz != NULL ? b->dz + at * k->dim : NULL;
        c.n = PNB_MIN((size_t)WIDE, b->m - at);
        for (size_t i = b->lower ? at : 0; i < b->n; i++) {
            size_t width = b->lower ? PNB_MIN(c.n, i + 1 - at) : c.n;
            double slope[WIDE];
            for (size_t j = 0; j < width; j++)
                slope[j] = b->dk[i * b->m + at + j] * (b->lower ? 2 : 1);
            if (b->lower && i - at < width) /* the diagonal stands for itself */
                slope[i - at] = b->dk[i * b->m + i];
            row_distances(&c, b->x + i * k->dim, width, s);
            row_shape(k->kind, s, width, value, w);
            if (b->dscale != NULL)
                *b->dscale += pnb__dense_dot(slope, value, width);
            for (size_t j = 0; j < width; j++)
                w[j] *= k->scale * slope[j];
            row_backward(b, &c, i, w, width);
        }
        flush_columns(&c);
    }
}

void pnb__gp_kernel_backward(const pnb__gp_kernel *k, const double *x, size_t n, const double *z,
                             size_t m, const double *dk, const pnb__gp_kernel_grad *out)
{
    const way_back b = {k, x, z, dk, n, m, false, out->dx, out->dz, out->dlengthscale, out->dscale};
    k->kind == PNB__GP_COSINE ? angles_backward(&b) : backward(&b);
}

void pnb__gp_kernel_backward_lower(const pnb__gp_kernel *k, const double *x, size_t n,
                                   const double *dk, const pnb__gp_kernel_grad *out)
{
    const way_back b = {k, x, x, dk, n, n, true, out->dx, out->dx, out->dlengthscale, out->dscale};
    k->kind == PNB__GP_COSINE ? angles_backward(&b) : backward(&b);
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

/* The Hessian on and below the diagonal. */
static void add_curvature(const pnb__gp_kernel *k, const double *x, const double *z, double weight,
                          double *gradient, double *hessian)
{
    shape at = shape_at(k->kind, squared_distance(k, x, z));
    bool is_one = k->n_lengthscales == 1;
    double inverse = 1 / (k->lengthscale[0] * k->lengthscale[0]), h = weight * at.h;
    for (size_t q = 0; q < k->dim; q++) {
        double by = is_one ? inverse : 1 / (lengthscale(k, q) * lengthscale(k, q));
        double u = (x[q] - z[q]) * by, e = weight * at.e * u * inverse;
        gradient[q] += h * u;
        hessian[q * k->dim + q] += h * by;
        for (size_t p = 0; is_one && p <= q; p++)
            hessian[q * k->dim + p] += e * (x[p] - z[p]);
        for (size_t p = 0; !is_one && p <= q; p++)
            hessian[q * k->dim + p] +=
                weight * at.e * u * (x[p] - z[p]) / (lengthscale(k, p) * lengthscale(k, p));
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
    for (size_t q = 0; q < k->dim && k->kind != PNB__GP_COSINE; q++)
        for (size_t p = q + 1; p < k->dim; p++)
            hessian[q * k->dim + p] = hessian[p * k->dim + q];
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
