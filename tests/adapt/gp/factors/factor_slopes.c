/* The way back through a factor by L^-1 and panels against two solves in doubles, over several
 * panels and with a last one that is narrow; in floats as close as those are. */
#include "adapt/gp/factors/factor_slopes.h"
#include "tests/adapt/gp/support.h"

enum { M = 150, N = 7 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__kernels k;
    double chol[M * M], b[M * N], db[M * N], q[M * M], kbar[M * M], want[M * M], want_db[M * N];
} setting;

static void transpose(double *a)
{
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < i; j++) {
            double kept = a[i * M + j];
            a[i * M + j] = a[j * M + i];
            a[j * M + i] = kept;
        }
}

static void set_up(setting *s, bool has_q)
{
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, NULL), PNB_OK);
    pnb__kernels_fill_host(&s->k, s->ctx, PNB__F64);
    fill_normal(s->b, M * N, 1);
    fill_normal(s->db, M * N, 2);
    fill_normal(s->q, M * M, 3);
    fill_normal(s->chol, M * M, 4);
    for (size_t i = 0; i < M * M; i++)
        s->chol[i] = i % M > i / M ? 0 : i % M == i / M ? 2 + fabs(s->chol[i]) : 0.1 * s->chol[i];
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j <= i; j++) {
            double p = has_q ? s->q[i * M + j] : 0;
            for (size_t n = 0; n < N; n++)
                p -= s->db[i * N + n] * s->b[j * N + n];
            s->want[i * M + j] = s->want[j * M + i] = 0.5 * p;
        }
    for (int twice = 0; twice < 2; twice++) {
        s->k.tri_solve(s->ctx, M, M, true, s->chol, s->want, s->want);
        transpose(s->want);
    }
    s->k.tri_solve(s->ctx, M, N, true, s->chol, s->db, s->want_db);
}

static void against_two_solves(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        setting *s = calloc(1, sizeof *s);
        pnb__factor_slopes f;
        bool has_q = i % 2, is_narrow = i / 2, is_kept = has_q;
        double kept[M * (M + 1) / 2], tolerance = is_narrow ? 2e-5 : 1e-12;
        assert_non_null(s);
        set_up(s, has_q);
        assert_int_equal(
            pnb__factor_slopes_init(&f, s->ctx, is_narrow ? PNB__F32 : PNB__F64, M, N, NULL),
            PNB_OK);
        assert_int_equal(pnb__factor_slopes_kept(M), PNB_COUNT(kept));
        pnb__factor_slopes_invert(&f, s->chol);
        if (is_kept) {
            pnb__factor_slopes_keep(&f, kept);
            pnb__factor_slopes_find(&f, s->b, s->want_db, 1, NULL, s->kbar); /* another's slopes */
            s->k.tri_solve(s->ctx, M, N, true, s->chol, s->db, s->want_db);
            pnb__factor_slopes_put_back(&f, kept);
        }
        pnb__factor_slopes_find(&f, s->b, s->db, N, has_q ? s->q : NULL, s->kbar);
        for (size_t r = 0; r < M; r++)
            for (size_t c = 0; c <= r; c++)
                near("kbar", r * M + c, s->kbar[r * M + c], s->want[r * M + c], tolerance);
        for (size_t n = 0; n < M * N; n++)
            near("db", n, s->db[n], s->want_db[n], tolerance);
        pnb__factor_slopes_reset(&f);
        pnb_ctx_free(s->ctx);
        free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_two_solves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
