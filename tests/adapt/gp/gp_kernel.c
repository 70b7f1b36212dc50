/* Kernels of every kind: values against their formulas, every derivative against differences. */
#include "adapt/gp/gp_kernel.h"
#include "tests/adapt/gp/support.h"

enum { N = 4, M = 3, Q = 3 };

typedef struct setting {
    pnb__gp_kernel kernel;
    double x[N * Q], z[M * Q], lengthscale[Q], cotangent[N * M];
} setting;

static void set_up(setting *s, pnb__gp_kind kind, size_t n_lengthscales)
{
    fill_normal(s->x, N * Q, 1);
    fill_normal(s->z, M * Q, 2);
    fill_normal(s->cotangent, N * M, 3);
    for (size_t q = 0; q < Q; q++)
        s->lengthscale[q] = 0.8 + 0.3 * (double)q;
    s->kernel = (pnb__gp_kernel){kind, Q, n_lengthscales, s->lengthscale, 1.7};
}

static double weighted(void *user)
{
    setting *s = user;
    double k[N * M], sum = 0;
    pnb__gp_kernel_matrix(&s->kernel, s->x, N, s->z, M, k);
    for (size_t i = 0; i < N * M; i++)
        sum += s->cotangent[i] * k[i];
    return sum;
}

static void slopes_agree_with_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__N_GP_KINDS; kind++)
        for (size_t each = 0; each < 2; each++) {
            setting s;
            set_up(&s, (pnb__gp_kind)kind, each ? Q : 1);
            double dx[N * Q] = {0}, dz[M * Q] = {0}, dl[Q] = {0}, dscale = 0;
            pnb__gp_kernel_grad grad = {dx, dz, dl, &dscale};
            pnb__gp_kernel_backward(&s.kernel, s.x, N, s.z, M, s.cotangent, &grad);
            check_slopes("x", weighted, &s, s.x, N * Q, dx, 1e-7);
            check_slopes("z", weighted, &s, s.z, M * Q, dz, 1e-7);
            check_slopes("lengthscale", weighted, &s, s.lengthscale, s.kernel.n_lengthscales, dl,
                         1e-7);
            check_slopes("scale", weighted, &s, &s.kernel.scale, 1, &dscale, 1e-7);
        }
}

/* sum_j w_j k(x, z_j) and its gradient, for differences of both */
typedef struct curve {
    setting s;
    size_t axis;
} curve;

static double along(void *user)
{
    curve *c = user;
    double k[M], sum = 0;
    pnb__gp_kernel_matrix(&c->s.kernel, c->s.x, 1, c->s.z, M, k);
    for (size_t j = 0; j < M; j++)
        sum += c->s.cotangent[j] * k[j];
    return sum;
}

static double slope_along(void *user)
{
    curve *c = user;
    double gradient[Q], hessian[Q * Q];
    pnb__gp_kernel_curvature(&c->s.kernel, c->s.x, c->s.z, M, c->s.cotangent, gradient, hessian);
    return gradient[c->axis];
}

static void curvature_agrees_with_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__N_GP_KINDS; kind++) {
        curve c;
        double gradient[Q], hessian[Q * Q], jacobian[M * Q], sum[Q] = {0};
        set_up(&c.s, (pnb__gp_kind)kind, Q);
        pnb__gp_kernel_curvature(&c.s.kernel, c.s.x, c.s.z, M, c.s.cotangent, gradient, hessian);
        check_slopes("gradient", along, &c, c.s.x, Q, gradient, 1e-7);
        for (c.axis = 0; c.axis < Q; c.axis++)
            check_slopes("hessian", slope_along, &c, c.s.x, Q, hessian + c.axis * Q, 1e-6);
        pnb__gp_kernel_slopes(&c.s.kernel, c.s.x, c.s.z, M, jacobian);
        for (size_t j = 0; j < M; j++)
            for (size_t q = 0; q < Q; q++)
                sum[q] += c.s.cotangent[j] * jacobian[j * Q + q];
        for (size_t q = 0; q < Q; q++)
            near("jacobian", q, sum[q], gradient[q], 1e-12);
    }
}

/* Besides the golden cases: values by hand, a point with itself, a point at the origin. */
static void values_are_the_formulas(void **state)
{
    (void)state;
    const double x[2] = {0, 0}, z[2] = {3, 4}, l = 2, r = 2.5;
    const double want[PNB__N_GP_KINDS] = {
        [PNB__GP_RBF] = exp(-r * r / 2),
        [PNB__GP_MATERN12] = exp(-r),
        [PNB__GP_MATERN32] = (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
        [PNB__GP_MATERN52] = (1 + sqrt(5) * r + 5 * r * r / 3) * exp(-sqrt(5) * r),
        [PNB__GP_COSINE] = 0,
        [PNB__GP_WAVE] = cos(3.14159265358979323846 * r),
    };
    for (int kind = 0; kind < PNB__N_GP_KINDS; kind++) {
        pnb__gp_kernel k = {(pnb__gp_kind)kind, 2, 1, &l, 3};
        double value = 0, self = 0, dx[2] = {0}, one = 1;
        pnb__gp_kernel_grad grad = {.dx = dx};
        pnb__gp_kernel_matrix(&k, x, 1, z, 1, &value);
        near("value", (size_t)kind, value, 3 * want[kind], 1e-14);
        pnb__gp_kernel_matrix(&k, z, 1, z, 1, &self);
        near("itself", (size_t)kind, self, 3, 1e-14);
        pnb__gp_kernel_backward(&k, z, 1, z, 1, &one, &grad);
        near("slope at itself", (size_t)kind, dx[0], 0, 1e-12);
    }
}

/* More columns and axes than are gone through at a time: values by the formulas, and the slopes of
 * a symmetric matrix by its lower triangle are those of the whole one. */
static void wide_and_deep(void **state)
{
    enum { P = 150, A = 18 };
    static double x[P * A], k[P * P], lower[P * P], slope[P * P];
    double l[A];
    (void)state;
    fill_normal(x, P * A, 1);
    fill_normal(slope, P * P, 2);
    for (size_t i = 0; i < P; i++)
        for (size_t j = 0; j < i; j++)
            slope[j * P + i] = slope[i * P + j];
    for (size_t q = 0; q < A; q++)
        l[q] = 2 + 0.1 * (double)q;
    for (int kind = 0; kind < PNB__N_GP_KINDS; kind++) {
        const pnb__gp_kernel kernel = {(pnb__gp_kind)kind, A, A, l, 1.3};
        double dx[2][P * A] = {{0}}, dl[2][A] = {{0}}, dscale[2] = {0};
        pnb__gp_kernel_matrix(&kernel, x, P, x, P, k);
        pnb__gp_kernel_lower(&kernel, x, P, lower);
        for (size_t i = 0; i < P; i++)
            for (size_t j = 0; j <= i; j++) {
                double s = 0, r;
                for (size_t q = 0; q < A; q++)
                    s += pow((x[i * A + q] - x[j * A + q]) / l[q], 2);
                r = sqrt(s);
                near("lower", i * P + j, lower[i * P + j], k[i * P + j], 0);
                if (kind == PNB__GP_RBF)
                    near("rbf", i * P + j, k[i * P + j], 1.3 * exp(-0.5 * s), 1e-15);
                if (kind == PNB__GP_MATERN32)
                    near("matern32", i * P + j, k[i * P + j],
                         1.3 * (1 + sqrt(3) * r) * exp(-sqrt(3) * r), 1e-15);
            }
        pnb__gp_kernel_grad whole = {dx[0], dx[0], dl[0], &dscale[0]};
        pnb__gp_kernel_grad half = {dx[1], NULL, dl[1], &dscale[1]};
        pnb__gp_kernel_backward(&kernel, x, P, x, P, slope, &whole);
        pnb__gp_kernel_backward_lower(&kernel, x, P, slope, &half);
        for (size_t i = 0; i < P * A; i++)
            near("x", i, dx[1][i], dx[0][i], 1e-11);
        for (size_t q = 0; q < A; q++)
            near("lengthscale", q, dl[1][q], dl[0][q], 1e-11);
        near("scale", 0, dscale[1], dscale[0], 1e-11);
    }
}

/* Far points: the value is 0 as far as it counts, never less and never no number. */
static void far_points(void **state)
{
    (void)state;
    const double l = 1e-3, x[2] = {0, 0}, z[4] = {0.03, 0, 50, 1e3};
    for (int kind = 0; kind < PNB__GP_COSINE; kind++) {
        const pnb__gp_kernel kernel = {(pnb__gp_kind)kind, 2, 1, &l, 1};
        double k[2];
        pnb__gp_kernel_matrix(&kernel, x, 1, z, 2, k);
        if (kind == PNB__GP_RBF)
            near("e^-450", 0, k[0] / exp(-450), 1, 1e-13);
        assert_true(k[1] >= 0 && k[1] < 1e-290);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_agree_with_differences),
        cmocka_unit_test(wide_and_deep),
        cmocka_unit_test(far_points),
        cmocka_unit_test(curvature_agrees_with_differences),
        cmocka_unit_test(values_are_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
