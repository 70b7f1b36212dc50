/* Symmetric eigenvalue problem: Householder reflections to a tridiagonal T = Q^T A Q, then implicit
 * QR steps with Wilkinson's shift until T is diagonal (Golub and Van Loan, 8.3.1 and 8.3.5).
 *
 * Everything runs along rows. The reflectors stay in the rows of A that are done with; `vectors`
 * holds the transpose of what is usually accumulated, R = Z^T Q^T, so that a rotation of T turns
 * two rows of R and the rows end up as eigenvectors. */
#include "prob/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_STEPS_A_VALUE = 60 }; /* two or three are usual */

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Largest magnitude of an entry, which the matrix is divided by so that squares stay finite. */
static double scale_to_one(size_t n, double *a)
{
    double most = 0.0;
    for (size_t i = 0; i < n * n; i++)
        most = fmax(most, fabs(a[i]));
    for (size_t i = 0; i < n * n && most > 0.0; i++)
        a[i] /= most;
    return most;
}

/* ---- to tridiagonal form ---- */

/* The reflector H = I - beta v v^T with H x = (+-|x|, 0, ...): v replaces x (m numbers). Returns
 * beta, 0 where x has nothing behind its first number; *first becomes that of H x. */
static double make_reflector(double *x, size_t m, double *first)
{
    double rest = dot(x + 1, x + 1, m - 1), head = x[0];
    *first = head;
    if (rest == 0.0)
        return 0.0;
    double length = sqrt(head * head + rest);
    *first = head > 0.0 ? -length : length; /* of the other sign: no cancellation in v */
    x[0] = head - *first;
    return 2.0 / (x[0] * x[0] + rest);
}

/* B = H B H for the trailing block B (m,m), rows n apart:
 *   p = beta B v,  w = p - (beta/2)(p.v) v,  B -= v w^T + w v^T */
static void reflect_block(double *b, size_t m, size_t n, const double *v, double beta, double *w)
{
    for (size_t i = 0; i < m; i++)
        w[i] = beta * dot(b + i * n, v, m);
    double half = 0.5 * beta * dot(w, v, m);
    for (size_t i = 0; i < m; i++)
        w[i] -= half * v[i];
    for (size_t i = 0; i < m; i++) {
        double *row = b + i * n, vi = v[i], wi = w[i];
#pragma omp simd
        for (size_t j = 0; j < m; j++)
            row[j] -= vi * w[j] + wi * v[j];
    }
}

/* d and e receive diagonal and off-diagonal of T; beta[k] and row k of a, from column k + 1 on,
 * the reflector number k. `w` has n numbers. */
static void to_tridiagonal(size_t n, double *a, double *d, double *e, double *beta, double *w)
{
    for (size_t k = 0; k + 1 < n; k++) {
        double *v = a + k * n + k + 1;
        size_t m = n - 1 - k;
        d[k] = a[k * n + k];
        beta[k] = make_reflector(v, m, &e[k]);
        if (beta[k] != 0.0)
            reflect_block(a + (k + 1) * n + k + 1, m, n, v, beta[k], w);
    }
    d[n - 1] = a[n * n - 1];
}

/* r = Q^T = H_{n-2} ... H_0: every H_k from the right, the last first, when it meets a block of its
 * own size only. */
static void accumulate(size_t n, const double *a, const double *beta, double *r)
{
    memset(r, 0, n * n * sizeof *r);
    for (size_t i = 0; i < n; i++)
        r[i * n + i] = 1.0;
    for (size_t k = n - 1; k-- > 0;) {
        const double *v = a + k * n + k + 1;
        size_t m = n - 1 - k;
        for (size_t i = k + 1; i < n && beta[k] != 0.0; i++) {
            double *row = r + i * n + k + 1, c = beta[k] * dot(row, v, m);
#pragma omp simd
            for (size_t j = 0; j < m; j++)
                row[j] -= c * v[j];
        }
    }
}

/* ---- to diagonal form ---- */

static void rotate_rows(double *x, double *y, size_t n, double c, double s)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        double xi = x[i], yi = y[i];
        x[i] = c * xi + s * yi;
        y[i] = c * yi - s * xi;
    }
}

/* The eigenvalue of the block's last 2 x 2 corner that is nearer to its last number. */
static double wilkinson_shift(const double *d, const double *e, size_t last)
{
    double half = 0.5 * (d[last - 1] - d[last]), off = e[last - 1];
    if (half == 0.0)
        return d[last] - fabs(off);
    return d[last] - off * off / (half + copysign(hypot(half, off), half));
}

/* One QR step on rows first..last of T, whose off-diagonal has no zero there: a rotation brings in
 * the shift, the others chase the number that it leaves outside the band down and out. */
static void qr_step(double *d, double *e, size_t first, size_t last, double *r, size_t n)
{
    double x = d[first] - wilkinson_shift(d, e, last), z = e[first];
    for (size_t k = first; k < last; k++) {
        double length = hypot(x, z), c = length > 0.0 ? x / length : 1.0;
        double s = length > 0.0 ? z / length : 0.0;
        double dk = d[k], dn = d[k + 1], ek = e[k];
        if (k > first)
            e[k - 1] = length;
        d[k] = c * c * dk + 2.0 * c * s * ek + s * s * dn;
        d[k + 1] = s * s * dk - 2.0 * c * s * ek + c * c * dn;
        e[k] = c * s * (dn - dk) + (c * c - s * s) * ek;
        x = e[k];
        if (k + 1 < last) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        rotate_rows(r + k * n, r + (k + 1) * n, n, c, s);
    }
}

/* Sets off-diagonal numbers to 0 that no longer matter; entries of T are at most about n. */
static bool is_small(const double *d, const double *e, size_t k)
{
    return fabs(e[k]) <= DBL_EPSILON * (fabs(d[k]) + fabs(d[k + 1])) + DBL_EPSILON * DBL_EPSILON;
}

static bool to_diagonal(size_t n, double *d, double *e, double *r)
{
    size_t last = n - 1;
    for (size_t steps = 0; steps < MAX_STEPS_A_VALUE * n; steps++) {
        while (last > 0 && is_small(d, e, last - 1))
            last--;
        if (last == 0)
            return true;
        size_t first = last - 1;
        while (first > 0 && !is_small(d, e, first - 1))
            first--;
        qr_step(d, e, first, last, r, n);
    }
    return false;
}

/* Largest first, by selection: n rows change places at most. */
static void sort_values(size_t n, double *values, double *vectors)
{
    for (size_t i = 0; i + 1 < n; i++) {
        size_t most = i;
        for (size_t j = i + 1; j < n; j++)
            if (values[j] > values[most])
                most = j;
        double value = values[i];
        values[i] = values[most];
        values[most] = value;
        for (size_t d = 0; d < n && most != i; d++) {
            double x = vectors[i * n + d];
            vectors[i * n + d] = vectors[most * n + d];
            vectors[most * n + d] = x;
        }
    }
}

bool pnb__eigen_symmetric(size_t n, double *a, double *values, double *vectors, double *work)
{
    double *e = work, *beta = work + n;
    if (n == 0)
        return true;
    double scale = scale_to_one(n, a);
    /* the first row of vectors is room for w until it is filled */
    to_tridiagonal(n, a, values, e, beta, vectors);
    accumulate(n, a, beta, vectors);
    bool is_done = to_diagonal(n, values, e, vectors);
    for (size_t i = 0; i < n; i++)
        values[i] *= scale;
    sort_values(n, values, vectors);
    return is_done;
}
