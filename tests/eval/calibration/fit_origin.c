/* Whether a fit speaks of what it is applied to: every field that differs, every one that is
 * unknown, and the constants that a measure reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/scaling.h"

static const pnb_fit_words words = {"queries", "gallery rows"};

static pnb_fit_side side(const char *modality)
{
    pnb_fit_side s = {.family = "gaussian_diag", .weights_sha256 = "w1", .preprocess = "as usual"};
    snprintf(s.modality, sizeof s.modality, "%s", modality);
    return s;
}

static pnb_fit_origin texts_to_images(void)
{
    return (pnb_fit_origin){.has_measure = true,
                            .measure = PNB_MEASURE_CSD,
                            .measure_opts = pnb_measure_opts_default(),
                            .queries = side("text"),
                            .gallery = side("image")};
}

static pnb_fit_agreement check(const pnb_fit_origin *made, const pnb_fit_origin *used,
                               char why[320])
{
    why[0] = '\0';
    return pnb_fit_origin_check(made, used, &words, why, 320);
}

static void what_differs(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        const char *other, *says[2]; /* as a property of the queries, of the gallery */
    } fields[] = {
        {offsetof(pnb_fit_side, modality),
         "sound",
         {"on text queries, these are sound", "on image gallery rows, these are sound"}},
        {offsetof(pnb_fit_side, family),
         "point",
         {"queries of the family gaussian_diag", "gallery rows of the family gaussian_diag"}},
        {offsetof(pnb_fit_side, weights_sha256),
         "w2",
         {"the queries come from w2", "the gallery rows come from w2"}},
        {offsetof(pnb_fit_side, preprocess),
         "masked",
         {"queries prepared as \"as usual\"", "these are \"masked\""}},
    };
    char why[320];
    pnb_fit_origin made = texts_to_images(), used = made;
    assert_int_equal(check(&made, &used, why), PNB_FIT_AGREES);
    for (size_t i = 0; i < PNB_COUNT(fields); i++)
        for (int gallery = 0; gallery < 2; gallery++) {
            used = made;
            char *field = (char *)(gallery ? &used.gallery : &used.queries) + fields[i].offset;
            strcpy(field, fields[i].other);
            assert_int_equal(check(&made, &used, why), PNB_FIT_DIFFERS);
            assert_non_null(strstr(why, fields[i].says[gallery]));
            /* what is unknown does not differ, whoever does not know */
            field[0] = '\0';
            bool may_lack = fields[i].offset == offsetof(pnb_fit_side, preprocess);
            assert_int_equal(check(&made, &used, why), may_lack ? PNB_FIT_AGREES : PNB_FIT_UNKNOWN);
            assert_int_equal(check(&used, &made, why), may_lack ? PNB_FIT_AGREES : PNB_FIT_UNKNOWN);
        }
    /* a known difference is told before something unknown */
    used = made;
    used.queries.weights_sha256[0] = '\0';
    strcpy(used.gallery.modality, "text");
    assert_int_equal(check(&made, &used, why), PNB_FIT_DIFFERS);
}

/* A fit on frozen rows does not speak of adapted ones, nor the other way round. */
static void adapters_differ(void **state)
{
    (void)state;
    const pnb_adapter_link link = {.name = "whitened", .sha256 = "0123456789abcdef"};
    char why[320];
    for (int gallery = 0; gallery < 2; gallery++) {
        pnb_fit_origin made = texts_to_images(), used = made;
        pnb_fit_side *side_made = gallery ? &made.gallery : &made.queries;
        pnb_fit_side *side_used = gallery ? &used.gallery : &used.queries;
        side_used->adapters = (pnb_adapter_links){.n = 1, .items = {link}};
        assert_int_equal(check(&made, &used, why), PNB_FIT_DIFFERS);
        assert_non_null(strstr(why, "was fitted for the weights w1, the "));
        assert_non_null(strstr(why, "come from w1 > whitened 0123456789ab"));
        assert_int_equal(check(&used, &made, why), PNB_FIT_DIFFERS);
        side_made->adapters = side_used->adapters;
        assert_int_equal(check(&made, &used, why), PNB_FIT_AGREES);
        side_used->adapters.items[0].sha256[0] = 'f';
        assert_int_equal(check(&made, &used, why), PNB_FIT_DIFFERS);
    }
}

static void measures_and_constants(void **state)
{
    (void)state;
    char why[320];
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        pnb_fit_origin made = texts_to_images(), used;
        made.measure = (pnb_measure)m;
        used = made;
        used.measure = (pnb_measure)((m + 1) % PNB_N_MEASURES);
        assert_int_equal(check(&made, &used, why), PNB_FIT_DIFFERS);
        assert_non_null(strstr(why, pnb_measure_name(made.measure)));
        made.has_measure = false;
        assert_int_equal(check(&made, &used, why), PNB_FIT_UNKNOWN);
        made.has_measure = true;
        bool has_a = m == PNB_MEASURE_MATCH_PROB, has_j = has_a || m == PNB_MEASURE_AVG_L2;
        used = made;
        used.measure_opts.seed = 99;
        assert_int_equal(check(&made, &used, why), PNB_FIT_AGREES);
        used.measure_opts.match_a = 4;
        assert_int_equal(check(&made, &used, why), has_a ? PNB_FIT_DIFFERS : PNB_FIT_AGREES);
        used = made;
        used.measure_opts.match_b = 4;
        assert_int_equal(check(&made, &used, why), has_a ? PNB_FIT_DIFFERS : PNB_FIT_AGREES);
        used = made;
        used.measure_opts.match_factor = 1;
        assert_int_equal(check(&made, &used, why), has_a ? PNB_FIT_DIFFERS : PNB_FIT_AGREES);
        used = made;
        used.measure_opts.n_samples = 9;
        assert_int_equal(check(&made, &used, why), has_j ? PNB_FIT_DIFFERS : PNB_FIT_AGREES);
        used = made;
        used.measure_opts.inclusion_eps = -100;
        assert_int_equal(check(&made, &used, why),
                         m == PNB_MEASURE_INCLUSION_PUBLISHED ? PNB_FIT_DIFFERS : PNB_FIT_AGREES);
    }
}

static void side_of_a_set(void **state)
{
    (void)state;
    pnb_embeddings *set = NULL;
    assert_int_equal(pnb_embeddings_create(&set, PNB_POWER_SPHERICAL, 1, 2, NULL), PNB_OK);
    strcpy(set->info.modality, "text");
    strcpy(set->info.weights_sha256, "abc");
    strcpy(set->info.preprocess, "context 9");
    set->info.adapters = (pnb_adapter_links){.n = 1, .items = {{"heads", "ab", true, false}}};
    pnb_fit_side s = pnb_fit_side_of(set);
    assert_string_equal(s.modality, "text");
    assert_string_equal(s.family, "power_spherical");
    assert_string_equal(s.weights_sha256, "abc");
    assert_string_equal(s.preprocess, "context 9");
    assert_true(s.adapters.n == 1 && s.adapters.items[0].leaves_images);
    pnb_embeddings_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs),
        cmocka_unit_test(adapters_differ),
        cmocka_unit_test(measures_and_constants),
        cmocka_unit_test(side_of_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
