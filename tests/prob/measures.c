/* What a row of measures.def says of a measure against what its functions do: symmetry, the
 * constants it reads, the families it takes, lengths; and the words of options made from the list.
 */
#include "tests/prob/support.h"

#include "prob/choices.h"
#include "prob/measure.h"

enum { D = 5 };

/* Two rows of a family that the measure takes; the first is never a point. */
typedef struct sides {
    gaussians a, b;
    float kappa[2];
    pnb_rows rows[2];
} sides;

static void make_sides(sides *s, pnb_measure measure, uint64_t seed)
{
    pnb__takes takes = pnb__measure_traits_of(measure)->takes;
    s->a = random_gaussians(1, D, -2, 0, seed);
    s->b = random_gaussians(1, D, -2, 0, seed + 1);
    s->kappa[0] = 3.0f;
    s->kappa[1] = 7.0f;
    s->rows[0] = s->a.view;
    s->rows[1] = s->b.view;
    for (int i = 0; i < 2 && (takes == PNB__TAKES_VMF || takes == PNB__TAKES_POWER); i++)
        s->rows[i] = (pnb_rows){.n = 1,
                                .dim = D,
                                .mean = s->rows[i].mean,
                                .kappa = &s->kappa[i],
                                .is_power = takes == PNB__TAKES_POWER};
}

static void free_sides(sides *s)
{
    free_gaussians(&s->a);
    free_gaussians(&s->b);
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-12 + 1e-12 * fabs(y);
}

/* Of samples that are drawn by side only the distribution is symmetric. */
static void symmetry(void **state)
{
    (void)state;
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_measure measure = (pnb_measure)m;
        sides s;
        if (pnb__measure_is_sampled(measure)) {
            assert_true(pnb_measure_is_symmetric(measure));
            continue;
        }
        make_sides(&s, measure, 11);
        double ab = pnb_measure_pair(measure, &s.rows[0], 0, &s.rows[1], 0, NULL);
        double ba = pnb_measure_pair(measure, &s.rows[1], 0, &s.rows[0], 0, NULL);
        assert_true(isfinite(ab) && isfinite(ba));
        if (near(ab, ba) != pnb_measure_is_symmetric(measure))
            fail_msg("%s: %g and %g", pnb_measure_name(measure), ab, ba);
        free_sides(&s);
    }
}

/* Whether one changed constant changes the value, in both forms. */
static bool is_read(const sides *s, pnb_measure measure, const pnb_measure_opts *changed)
{
    double pair[2], block[2];
    pnb_measure_opts opts = pnb_measure_opts_default();
    for (int i = 0; i < 2; i++) {
        const pnb_measure_opts *o = i == 0 ? &opts : changed;
        pair[i] = pnb_measure_pair(measure, &s->rows[0], 0, &s->rows[1], 0, o);
        assert_ok(pnb_measure_block(measure, &s->rows[0], &s->rows[1], o, &block[i], err));
    }
    assert_true((pair[0] != pair[1]) == (block[0] != block[1]));
    return pair[0] != pair[1];
}

static void constants(void **state)
{
    (void)state;
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_measure measure = (pnb_measure)m;
        pnb__reads reads = pnb__measure_traits_of(measure)->reads;
        bool is_match = reads == PNB__READS_MATCH, is_sampled = is_match;
        sides s;
        make_sides(&s, measure, 21);
        is_sampled = is_sampled || reads == PNB__READS_SAMPLES;
        pnb_measure_opts o = pnb_measure_opts_default();
        o.inclusion_eps = 0.5;
        assert_int_equal(is_read(&s, measure, &o), reads == PNB__READS_EPS);
        o = pnb_measure_opts_default();
        o.seed = 5;
        assert_int_equal(is_read(&s, measure, &o), is_sampled);
        o = pnb_measure_opts_default();
        o.n_samples = 4;
        assert_int_equal(is_read(&s, measure, &o), is_sampled);
        o = pnb_measure_opts_default();
        o.match_a = 3.0;
        assert_int_equal(is_read(&s, measure, &o), is_match);
        free_sides(&s);
    }
}

/* Means twice as long. */
static void lengths(void **state)
{
    (void)state;
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_measure measure = (pnb_measure)m;
        sides s;
        make_sides(&s, measure, 31);
        double one = pnb_measure_pair(measure, &s.rows[0], 0, &s.rows[1], 0, NULL);
        for (int d = 0; d < D; d++)
            s.a.mean[d] *= 2.0f;
        double two = pnb_measure_pair(measure, &s.rows[0], 0, &s.rows[1], 0, NULL);
        if (near(one, two) == pnb__measure_reads_lengths(measure))
            fail_msg("%s: %g, means twice as long %g", pnb_measure_name(measure), one, two);
        free_sides(&s);
    }
}

/* Unit means without spread: scores where logits belong are cosines there, others need not be. */
static void scale_of_cosines(void **state)
{
    (void)state;
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_measure measure = (pnb_measure)m;
        sides s;
        double cosine = 0.0;
        make_sides(&s, measure, 41);
        for (int d = 0; d < D; d++)
            cosine += (double)s.a.mean[d] * s.b.mean[d];
        s.rows[0].log_var = s.rows[1].log_var = NULL;
        double value = pnb_measure_pair(measure, &s.rows[0], 0, &s.rows[1], 0, NULL);
        if (pnb__measure_has_logits(measure))
            assert_near(pnb_measure_score(measure, value), cosine, 1e-6, 0);
        else
            assert_false(fabs(pnb_measure_score(measure, value) - cosine) < 1e-6);
        free_sides(&s);
    }
}

/* Every word of `choices` is a measure, in order, and none that `fits` is left out. */
static void assert_measures(const char *choices, bool (*fits)(pnb_measure))
{
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        const char *name = pnb_measure_name((pnb_measure)m);
        size_t n = strlen(name);
        if (!fits((pnb_measure)m))
            continue;
        if (strncmp(choices, name, n) != 0 || (choices[n] != '|' && choices[n] != '\0'))
            fail_msg("'%s' does not begin with %s", choices, name);
        choices += n + (choices[n] == '|');
    }
    assert_string_equal(choices, "");
}

static bool any(pnb_measure measure)
{
    (void)measure;
    return true;
}

static bool symmetric_gaussian(pnb_measure measure)
{
    return pnb_measure_is_symmetric(measure) &&
           pnb__measure_traits_of(measure)->takes == PNB__TAKES_GAUSSIAN;
}

static void words_of_options(void **state)
{
    (void)state;
    assert_measures(PNB__CHOICES(PNB__MEASURE_CHOICES), any);
    assert_measures(PNB__CHOICES(PNB__SYMMETRIC_MEASURE_CHOICES), symmetric_gaussian);
    assert_string_equal("auto" PNB__UNCERTAINTY_CHOICES,
                        "auto|trace|mean_var|geo_std|inv_kappa|gg_var|aleatoric|epistemic|cosine");
    assert_string_equal(PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES), "trace|mean_var|geo_std");
    assert_string_equal(PNB__CHOICES(PNB__ROW_UNCERTAINTY_CHOICES),
                        "trace|mean_var|geo_std|aleatoric|epistemic");
}

static void outside_the_list(void **state)
{
    (void)state;
    pnb_measure none = PNB_N_MEASURES;
    pnb_rows rows = {.n = 1, .dim = 1, .mean = &(float){1.0f}};
    assert_string_equal(pnb_measure_name(none), "unknown");
    assert_true(isnan(pnb_measure_pair(none, &rows, 0, &rows, 0, NULL)));
    assert_fails(pnb_measure_rows(none, &rows, &rows, NULL, &(double){0}, err), PNB_ARG, "number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetry),         cmocka_unit_test(constants),
        cmocka_unit_test(lengths),          cmocka_unit_test(scale_of_cosines),
        cmocka_unit_test(words_of_options), cmocka_unit_test(outside_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
