/* Where a search's probabilities come from: the file beside the set, another one, or the model; and
 * what happens when they do not belong together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commands/calibrate/calibrate.h"
#include "commands/common/match_probability_use.h"
#include "penumbra/prob.h"

enum { N = 40 };

static char dir[] = "/tmp/penumbra-odds-XXXXXX", set_path[256], fit_path[256], other_path[256];
static const pnb__list_limits no_limits = {.min_probability = NAN, .conformal_alpha = NAN};

typedef struct fixture {
    pnb__app app;
    char log[2000];
    pnb_embeddings *set, *queries;
    pnb_match_probability_fit fit;
    bool is_told; /* a and b of match_prob */
} fixture;

static pnb_embeddings *make_set(size_t n, const char *modality)
{
    pnb_embeddings *set = NULL;
    assert_int_equal(pnb_embeddings_create(&set, PNB_POINT, n, 2, NULL), PNB_OK);
    for (size_t i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%zu", i);
        set->mean[2 * i] = cosf((float)i);
        set->mean[2 * i + 1] = sinf((float)i);
        assert_int_equal(pnb_embeddings_set_id(set, i, id, NULL), PNB_OK);
    }
    set->info.logit_scale = 7;
    set->info.logit_bias = -3;
    snprintf(set->info.weights_sha256, sizeof set->info.weights_sha256, "w1");
    snprintf(set->info.modality, sizeof set->info.modality, "%s", modality);
    return set;
}

/* A fit to a set's own rows with noise: enough for all parts of a calibration. */
static pnb_match_probability_fit make_fit(const pnb_embeddings *set, const pnb_embeddings *asked)
{
    pnb_match_probability_fit fit;
    pnb_match_opts o = pnb_match_opts_default();
    float queries[2 * N];
    pnb_truth *truth = NULL;
    for (size_t i = 0; i < 2 * N; i++)
        queries[i] = set->mean[i ^ (i % 6 == 0)];
    pnb_gaussians q = {.n = N, .dim = 2, .mean = queries},
                  g = {.n = N, .dim = 2, .mean = set->mean};
    assert_int_equal(pnb_truth_create_aligned(&truth, N, NULL), PNB_OK);
    const pnb_match_job job = {&q, &g, truth, &o};
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, &err) != PNB_OK)
        fail_msg("%s", err.text);
    fit.origin.queries = pnb_fit_side_of(asked);
    fit.origin.gallery = pnb_fit_side_of(set);
    pnb_truth_free(truth);
    return fit;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL || mkdtemp(dir) == NULL)
        return -1;
    snprintf(set_path, sizeof set_path, "%s/x.safetensors", dir);
    snprintf(fit_path, sizeof fit_path, "%s/x.calibration.json", dir);
    snprintf(other_path, sizeof other_path, "%s/other.json", dir);
    f->set = make_set(N, "image");
    f->queries = make_set(1, "text");
    f->fit = make_fit(f->set, f->queries);
    *state = f;
    return pnb_match_probability_fit_save(&f->fit, other_path, NULL) == PNB_OK ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    pnb_embeddings_free(f->set);
    pnb_embeddings_free(f->queries);
    pnb_match_probability_fit_reset(&f->fit);
    free(f);
    unlink(fit_path);
    unlink(other_path);
    return rmdir(dir);
}

/* Loads, with what was said in f->log and the error in f->app.err. */
static pnb_status load(fixture *f, pnb_measure measure, const pnb__list_limits *limits,
                       pnb__match_probability *odds)
{
    memset(f->log, 0, sizeof f->log);
    f->app = (pnb__app){.log = fmemopen(f->log, sizeof f->log - 1, "w")};
    assert_non_null(f->app.log);
    const pnb_measure_opts constants = pnb_measure_opts_default();
    const pnb__match_probability_use use = {set_path, f->set,     f->queries,
                                            measure,  &constants, .match_is_told = f->is_told};
    pnb_status status = pnb__match_probability_load(&f->app, &use, limits, odds);
    fclose(f->app.log);
    return status;
}

static void model_without_file(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    pnb__list_limits limits = no_limits;
    unlink(fit_path);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_true(pnb__match_probability_of(&odds, 0.3) == pnb_match_probability(0.3, 7, -3));
    assert_true(isnan(pnb__match_probability_first(&odds, 0.3)));
    const double score[] = {0.9, 0.6, 0.4, 0.1};
    assert_int_equal(pnb__match_probability_list(&odds, score, 4), 4);
    pnb__match_probability_reset(&odds);
    limits.min_probability = pnb_match_probability(0.6, 7, -3);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_int_equal(pnb__match_probability_list(&odds, score, 4), 2); /* p = P stays */
    assert_int_equal(pnb__match_probability_list(&odds, score + 2, 2), 0);
    pnb__match_probability_reset(&odds);
    assert_int_equal(load(f, PNB_MEASURE_W2, &no_limits, &odds), PNB_OK);
    assert_true(isnan(pnb__match_probability_of(&odds, 0.3)));
    pnb__match_probability_reset(&odds);
    assert_int_equal(load(f, PNB_MEASURE_W2, &limits, &odds), PNB_NOT_FOUND);
    pnb__match_probability_reset(&odds);
    limits = (pnb__list_limits){.min_probability = NAN, .conformal_alpha = 0.1};
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_NOT_FOUND);
    assert_non_null(strstr(f->app.err.text, "penumbra calibrate"));
    pnb__match_probability_reset(&odds);
}

/* match_prob is a probability where its constants are the model's or told, and of such rows. */
static void measure_itself(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    pnb__list_limits limits = no_limits;
    const double score[] = {0.9, 0.6, 0.4, 0.1};
    unlink(fit_path);
    limits.min_probability = 0.5;
    assert_int_equal(load(f, PNB_MEASURE_MATCH_PROB, &no_limits, &odds), PNB_OK);
    assert_true(isnan(pnb__match_probability_of(&odds, 0.3)));
    assert_null(pnb__match_probability_source(&odds));
    assert_non_null(strstr(f->log, "no set carries a and b of match_prob"));
    pnb__match_probability_reset(&odds);
    assert_int_equal(load(f, PNB_MEASURE_MATCH_PROB, &limits, &odds), PNB_NOT_FOUND);
    pnb__match_probability_reset(&odds);
    for (int carried = 0; carried < 2; carried++) {
        f->is_told = !carried;
        f->set->info.match_a = carried ? 4.0 : (double)NAN;
        f->set->info.match_b = carried ? 3.0 : (double)NAN;
        assert_int_equal(load(f, PNB_MEASURE_MATCH_PROB, &limits, &odds), PNB_OK);
        assert_string_equal(f->log, "");
        assert_true(pnb__match_probability_of(&odds, 0.3) == 0.3);
        assert_true(isnan(pnb__match_probability_first(&odds, 0.3)));
        assert_string_equal(pnb__match_probability_source(&odds), "measure");
        assert_int_equal(pnb__match_probability_list(&odds, score, 4), 2);
        pnb__match_probability_reset(&odds);
    }
    /* a model's constants speak of pictures and captions */
    snprintf(f->queries->info.modality, sizeof f->queries->info.modality, "image");
    assert_int_equal(load(f, PNB_MEASURE_MATCH_PROB, &no_limits, &odds), PNB_OK);
    assert_true(isnan(pnb__match_probability_of(&odds, 0.3)));
    assert_non_null(strstr(f->log, "here both are image"));
    pnb__match_probability_reset(&odds);
    snprintf(f->queries->info.modality, sizeof f->queries->info.modality, "text");
    f->set->info.match_a = f->set->info.match_b = (double)NAN;
}

static void file_beside_the_set(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    pnb__list_limits limits = no_limits;
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_string_equal(odds.path, fit_path);
    for (double s = -1; s <= 1; s += 0.125)
        assert_true(pnb__match_probability_of(&odds, s) ==
                    pnb_match_probability_fit_apply(&f->fit, s, 0));
    pnb__match_probability_reset(&odds);
    limits.calibration = "none";
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_true(pnb__match_probability_of(&odds, 0.3) == pnb_match_probability(0.3, 7, -3));
    pnb__match_probability_reset(&odds);
    /* lists by the cut-off of the file */
    const double score[] = {0.99, 0.98, 0.5, 0.1};
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        double cutoff;
        limits = (pnb__list_limits){.min_probability = NAN,
                                    .conformal_alpha = 0.2,
                                    .conformal_by = pnb_conformal_name((pnb_conformal_kind)k)};
        assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
        assert_int_equal(
            pnb_conformal_cutoff(&f->fit.conformal, (pnb_conformal_kind)k, 0.2, &cutoff, NULL),
            PNB_OK);
        assert_int_equal(pnb__match_probability_list(&odds, score, 4),
                         pnb_conformal_list((pnb_conformal_kind)k, cutoff, score, 4));
        pnb__match_probability_reset(&odds);
    }
}

static void set_weights(fixture *f, const char *weights)
{
    snprintf(f->set->info.weights_sha256, sizeof f->set->info.weights_sha256, "%s", weights);
    snprintf(f->queries->info.weights_sha256, sizeof f->queries->info.weights_sha256, "%s",
             weights);
}

static void set_modality(pnb_embeddings *set, const char *modality)
{
    snprintf(set->info.modality, sizeof set->info.modality, "%s", modality);
}

/* A picture is no caption: neither the calibration nor the model's a and b speak of it. */
static void queries_of_another_modality(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    pnb__list_limits limits = no_limits;
    set_modality(f->queries, "image");
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "on text queries, these are image"));
    assert_true(isnan(pnb__match_probability_of(&odds, 0.9)) &&
                isnan(pnb__match_probability_first(&odds, 0.9)));
    pnb__match_probability_reset(&odds);
    limits.trust = true; /* trust is about what is unknown */
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_true(isnan(pnb__match_probability_of(&odds, 0.9)));
    pnb__match_probability_reset(&odds);
    limits.conformal_alpha = 0.2;
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_ARG);
    assert_non_null(strstr(f->app.err.text, "these are image"));
    pnb__match_probability_reset(&odds);
    limits = no_limits;
    limits.calibration = "none";
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "a picture and a caption"));
    assert_true(isnan(pnb__match_probability_of(&odds, 0.9)));
    pnb__match_probability_reset(&odds);
    limits.min_probability = 0.5;
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_NOT_FOUND);
    pnb__match_probability_reset(&odds);
    set_modality(f->queries, "text");
}

/* Files of version 1, sets without provenance: on the user's word or not at all. */
static void unknown_origin(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    for (int of_set = 0; of_set < 2; of_set++) {
        pnb__list_limits limits = no_limits;
        pnb_match_probability_fit old = f->fit;
        if (of_set)
            set_modality(f->queries, "");
        else
            old.origin.queries.modality[0] = '\0';
        assert_int_equal(pnb_match_probability_fit_save(&old, fit_path, NULL), PNB_OK);
        assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
        assert_non_null(strstr(f->log, "--trust-calibration"));
        assert_true(isnan(pnb__match_probability_of(&odds, 0.9)));
        pnb__match_probability_reset(&odds);
        limits.conformal_alpha = 0.2;
        assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_ARG);
        assert_non_null(strstr(f->app.err.text, "--trust-calibration"));
        pnb__match_probability_reset(&odds);
        limits.trust = true;
        assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
        assert_non_null(strstr(f->log, "on your word"));
        assert_true(pnb__match_probability_of(&odds, 0.9) ==
                    pnb_match_probability_fit_apply(&f->fit, 0.9, 0));
        assert_string_equal(pnb__match_probability_source(&odds), "calibration");
        pnb__match_probability_reset(&odds);
        set_modality(f->queries, "text");
    }
}

/* Left aside with a warning unless it was asked for. */
static void file_of_something_else(void **state)
{
    fixture *f = *state;
    pnb__match_probability odds;
    pnb__list_limits limits = no_limits;
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    assert_int_equal(load(f, PNB_MEASURE_W2, &no_limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "it is not used"));
    assert_true(isnan(pnb__match_probability_of(&odds, 0.3)));
    pnb__match_probability_reset(&odds);
    set_weights(f, "w2");
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "weights w1"));
    assert_non_null(strstr(f->log, "no probability is given"));
    assert_true(isnan(pnb__match_probability_of(&odds, 0.3)) &&
                pnb__match_probability_source(&odds) == NULL);
    pnb__match_probability_reset(&odds);
    limits.for_figures = true; /* an evaluation has the model's a and b beside it */
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "weights w1"));
    assert_null(strstr(f->log, "--"));
    assert_true(pnb__match_probability_of(&odds, 0.3) == pnb_match_probability(0.3, 7, -3));
    pnb__match_probability_reset(&odds);
    limits.for_figures = false;
    limits.calibration = other_path;
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_ARG);
    pnb__match_probability_reset(&odds);
    limits = (pnb__list_limits){.min_probability = 0.5, .conformal_alpha = NAN};
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_ARG);
    pnb__match_probability_reset(&odds);
    set_weights(f, "w1");
    memset(f->fit.gallery_ids_sha256, 'e', 64);
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "other rows"));
    assert_true(odds.has_fit);
    pnb__match_probability_reset(&odds);
    f->fit.gallery_ids_sha256[0] = '\0';
}

static void gallery_of_another_size(void **state)
{
    fixture *f = *state;
    pnb_embeddings *whole = f->set;
    pnb__match_probability odds;
    pnb__list_limits limits = {.min_probability = NAN, .conformal_alpha = 0.2};
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    f->set = make_set(2 * N, "image");
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "scaled"));
    assert_int_equal(odds.kind, PNB_CONFORMAL_SCORE);
    double p = pnb_match_probability_fit_apply(&f->fit, 0.9, 0),
           half = pnb__match_probability_of(&odds, 0.9);
    assert_true(fabs(half / (1 - half) - 0.5 * p / (1 - p)) < 1e-12);
    assert_true(isnan(pnb__match_probability_first(&odds, 0.9)));
    pnb__match_probability_reset(&odds);
    limits.conformal_by = "rank";
    assert_int_equal(load(f, PNB_MEASURE_CSD, &limits, &odds), PNB_ARG);
    pnb__match_probability_reset(&odds);
    f->fit.depth = 3;
    assert_int_equal(pnb_match_probability_fit_save(&f->fit, fit_path, NULL), PNB_OK);
    assert_int_equal(load(f, PNB_MEASURE_CSD, &no_limits, &odds), PNB_OK);
    assert_non_null(strstr(f->log, "first hits among 40 rows"));
    assert_false(odds.has_fit);
    pnb__match_probability_reset(&odds);
    f->fit.depth = 0;
    pnb_embeddings_free(f->set);
    f->set = whole;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_without_file),          cmocka_unit_test(measure_itself),
        cmocka_unit_test(file_beside_the_set),         cmocka_unit_test(file_of_something_else),
        cmocka_unit_test(queries_of_another_modality), cmocka_unit_test(unknown_origin),
        cmocka_unit_test(gallery_of_another_size),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
