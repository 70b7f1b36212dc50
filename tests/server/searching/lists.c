/* Two sets made ready for a measure: which one, and whether scores are worth a probability. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "server/searching/lists.h"

static pnb_embeddings *make(pnb_family family, const char *modality)
{
    pnb_embeddings *set = NULL;
    assert_int_equal(pnb_embeddings_create(&set, family, 1, 2, NULL), PNB_OK);
    set->mean[0] = 1;
    snprintf(set->info.modality, sizeof set->info.modality, "%s", modality);
    snprintf(set->info.weights_sha256, sizeof set->info.weights_sha256, "w");
    set->info.logit_scale = 7;
    set->info.logit_bias = -3;
    return set;
}

static void measures_and_odds(void **state)
{
    static const struct {
        pnb_family family;
        const char *kinds[2], *asked;
        pnb_measure measure;
        bool has_probability;
    } cases[] = {
        {PNB_GAUSSIAN_DIAG, {"text", "image"}, NULL, PNB_MEASURE_CSD, true},
        {PNB_GAUSSIAN_DIAG, {"text", "image"}, "mean", PNB_MEASURE_MEAN, true},
        {PNB_GAUSSIAN_DIAG, {"text", "image"}, "w2", PNB_MEASURE_W2, false},
        {PNB_GAUSSIAN_DIAG, {"text", "text"}, NULL, PNB_MEASURE_CSD, false},
        {PNB_POINT, {"text", "image"}, NULL, PNB_MEASURE_CSD, true},
        {PNB_VMF, {"text", "image"}, NULL, PNB_MEASURE_VMF, false},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__compared c;
        pnb_embeddings *a = make(cases[i].family, cases[i].kinds[0]);
        pnb_embeddings *b = make(cases[i].family, cases[i].kinds[1]);
        assert_int_equal(pnb__compared_init(&c, a, b, cases[i].asked, NULL), PNB_OK);
        assert_int_equal(c.measure, cases[i].measure);
        assert_int_equal(c.has_probability, cases[i].has_probability);
        assert_true(c.scale == 7 && c.bias == -3);
        pnb__compared_reset(&c);
        b->info.adapters.n = 1; /* what went through an adapter left the model's scores */
        assert_int_equal(pnb__compared_init(&c, a, b, cases[i].asked, NULL), PNB_OK);
        assert_false(c.has_probability);
        pnb__compared_reset(&c);
        b->info.adapters.n = 0;
        a->info.logit_scale = NAN;
        assert_int_equal(pnb__compared_init(&c, a, b, cases[i].asked, NULL), PNB_OK);
        assert_false(c.has_probability);
        pnb__compared_reset(&c);
        assert_int_equal(pnb__compared_init(&c, a, b, "nearness", NULL), PNB_ARG);
        pnb__compared_reset(&c);
        pnb_embeddings_free(a);
        pnb_embeddings_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(measures_and_odds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
