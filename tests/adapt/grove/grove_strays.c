/* What counterparts add to a row's variances, against the definition: of the 32 pairs whose rows
 * are placed nearest, the mean square of what the row's process says of them at the latent of the
 * other row less at that of this one. Every pair is in the sample here, so that the latents of the
 * rows are those that are kept. */
#include "tests/adapt/grove/grove_world.h"

enum { NEAR = 32 };

static pnb_adapter *learn_with(const world *w, int form, pnb_grove_latent how)
{
    pnb_adapter_opts o = small_opts();
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    o.epochs = 3;
    o.shared_covariance = form == 1;
    o.per_output = form == 2;
    o.inducing = form == 2 ? 10 : 24;
    o.latent_uncertainty = how;
    assert_ok(learn(&a, w, &o, &err), &err);
    return a;
}

static double apart(const pnb__grove *g, const double *found, size_t i, size_t j)
{
    double sum = 0;
    for (size_t a = 0; a < g->q; a++)
        sum += pow(found[i * g->q + a] - found[j * g->q + a], 2);
    return sum;
}

/* What is added to output k of row i, in the units of the rows. */
static double wanted(const pnb__grove *g, int side, const double *squares, size_t i, size_t k)
{
    const pnb__grove_part *part = &g->part[side];
    double sum = 0;
    size_t n = 0;
    for (size_t j = 0; j < part->n_missed; j++) {
        size_t nearer = 0;
        for (size_t s = 0; s < part->n_missed; s++)
            nearer += apart(g, part->found, i, s) < apart(g, part->found, i, j);
        if (nearer >= NEAR)
            continue;
        sum += squares[j * D + k];
        n++;
    }
    assert_int_equal(n, PNB_MIN((size_t)NEAR, part->n_missed));
    return g->unit * g->unit * sum / (double)n;
}

/* (mean(x') - mean(x))^2 of every pair, x of the side's row and x' of the other's. */
static void find_squares(const pnb__grove *g, int side, double *squares)
{
    pnb_error err = PNB_ERROR_INIT;
    double here[D], there[D], unread[D];
    pnb__grove_reading *w = NULL;
    assert_ok(pnb__grove_reading_open(&w, g, side, &err), &err);
    for (size_t i = 0; i < g->part[side].n_missed; i++) {
        assert_ok(pnb__grove_say(w, g->part[side].found + i * g->q, 1, here, unread, &err), &err);
        assert_ok(pnb__grove_say(w, g->part[!side].found + i * g->q, 1, there, unread, &err), &err);
        for (size_t k = 0; k < D; k++)
            squares[i * D + k] = pow(there[k] - here[k], 2);
    }
    pnb__grove_reading_free(w);
}

static void counterparts_add_what_they_strayed(void **state)
{
    enum { ROWS = 60, LOOKED_AT = 12 };
    (void)state;
    world w;
    make_world(&w, ROWS);
    for (int form = 0; form < 3; form++) {
        pnb_adapter *with = learn_with(&w, form, PNB_GROVE_LATENT_COUNTERPARTS);
        pnb_adapter *without = learn_with(&w, form, PNB_GROVE_LATENT_NONE);
        for (int side = 0; side < PNB_N_ADAPTER_SIDES; side++) {
            static double squares[ROWS * D];
            pnb_embeddings *more = apply_to(with, &w, (pnb_adapter_side)side);
            pnb_embeddings *less = apply_to(without, &w, (pnb_adapter_side)side);
            double largest = 0;
            assert_int_equal(((pnb__grove *)with->self)->part[side].n_missed, ROWS);
            find_squares(with->self, side, squares);
            for (size_t i = 0; i < LOOKED_AT * D; i++) {
                double right = wanted(with->self, side, squares, i / D, i % D);
                double got = exp((double)more->log_var[i]) - exp((double)less->log_var[i]);
                assert_true(fabs(got - right) <
                            1e-3 * right + 2e-6 * exp((double)more->log_var[i]));
                largest = fmax(largest, right / exp((double)less->log_var[i]));
            }
            assert_true(largest > 0.01);
            assert_memory_equal(more->mean, less->mean, ROWS * D * sizeof *more->mean);
            pnb_embeddings_free(more);
            pnb_embeddings_free(less);
        }
        pnb_adapter_free(with);
        pnb_adapter_free(without);
    }
    free_world(&w);
}

/* A side that has fewer pairs knows no counterparts of the other's. */
static void sides_of_two_samples_are_refused(void **state)
{
    world w;
    pnb_adapter *other = NULL;
    pnb_error err = PNB_ERROR_INIT;
    make_world(&w, 60);
    pnb_adapter *a = learn_with(&w, 1, PNB_GROVE_LATENT_COUNTERPARTS);
    const char *dir = scratch_path(*state, "samples");
    ((pnb__grove *)a->self)->part[PNB_ADAPTER_IMAGES].n_missed -= 7;
    assert_ok(pnb_adapter_save(a, dir, &err), &err);
    assert_int_equal(pnb_adapter_load(&other, w.ctx, dir, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "sample of pairs"));
    pnb_adapter_free(a);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counterparts_add_what_they_strayed),
        cmocka_unit_test_setup_teardown(sides_of_two_samples_are_refused, scratch_setup,
                                        scratch_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
