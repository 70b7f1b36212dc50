/* Calibration and scaling files: the same bits after writing and reading, and files that a stranger
 * wrote. */
#include <unistd.h>

#include "tests/eval/calibration/match_world.h"

#define HASH "abababababababababababababababababababababababababababababababab"

static char dir[] = "/tmp/penumbra-fit-XXXXXX", path[256];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/x.calibration.json", dir);
    return 0;
}

static int drop_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_text(const char *text)
{
    assert_ok(pnb__write_file(path, text, strlen(text), err));
}

static void same_values(const double *a, const double *b, size_t n)
{
    assert_memory_equal(a, b, n * sizeof *a);
}

static void same_side(const pnb_fit_side *a, const pnb_fit_side *b)
{
    assert_string_equal(a->modality, b->modality);
    assert_string_equal(a->family, b->family);
    assert_string_equal(a->weights_sha256, b->weights_sha256);
    assert_string_equal(a->preprocess, b->preprocess);
    assert_int_equal(a->adapters.n, b->adapters.n);
    for (size_t i = 0; i < a->adapters.n; i++) {
        assert_string_equal(a->adapters.items[i].name, b->adapters.items[i].name);
        assert_string_equal(a->adapters.items[i].sha256, b->adapters.items[i].sha256);
        assert_true(b->adapters.items[i].leaves_images);
    }
}

static void same_origin(const pnb_fit_origin *a, const pnb_fit_origin *b)
{
    const pnb_measure_opts *x = &a->measure_opts, *y = &b->measure_opts;
    assert_true(a->has_measure && b->has_measure && a->measure == b->measure);
    assert_true(x->match_a == y->match_a && x->match_b == y->match_b &&
                x->match_factor == y->match_factor && x->n_samples == y->n_samples &&
                x->inclusion_eps == y->inclusion_eps);
    same_side(&a->queries, &b->queries);
    same_side(&a->gallery, &b->gallery);
}

static void match_round_trip(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit, back;
    make_world(&w, 300, 60, 0.9, 1);
    w.opts.seed = 5;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, NULL, err));
    fit.origin.queries =
        (pnb_fit_side){.modality = "text",
                       .family = "vmf",
                       .weights_sha256 = "w1",
                       .adapters = {.n = 1, .items = {{"heads", HASH, true, false}}},
                       .preprocess = "context 9"};
    fit.origin.gallery =
        (pnb_fit_side){.modality = "image", .family = "point", .weights_sha256 = "w2"};
    fit.origin.measure_opts.match_a = 4.25;
    fit.origin.measure_opts.n_samples = 11;
    fit.has_level = true;
    fit.level = 2;
    memset(fit.gallery_ids_sha256, 'b', 64);
    snprintf(fit.gallery, sizeof fit.gallery, "images.safetensors");
    snprintf(fit.queries, sizeof fit.queries, "caf\xe9.safetensors"); /* no UTF-8: left out */
    snprintf(fit.truth, sizeof fit.truth, "val.pairs");
    assert_ok(pnb_match_probability_fit_save(&fit, path, err));
    assert_ok(pnb_match_probability_fit_load(&back, path, err));
    same_origin(&back.origin, &fit.origin);
    assert_true(back.has_level && back.level == 2);
    assert_string_equal(back.gallery_ids_sha256, fit.gallery_ids_sha256);
    assert_string_equal(back.gallery, "images.safetensors");
    assert_string_equal(back.queries, "");
    assert_string_equal(back.truth, "val.pairs");
    assert_true(back.n_gallery == 60 && back.n_queries == fit.n_queries &&
                back.n_matches == fit.n_matches && back.base_rate == fit.base_rate &&
                back.seed == 5 && back.method == fit.method && back.has_platt && back.has_isotonic);
    assert_true(back.platt.a == fit.platt.a && back.platt.b == fit.platt.b);
    assert_true(back.has_first == fit.has_first && back.first.a == fit.first.a);
    assert_int_equal(back.isotonic.n, fit.isotonic.n);
    same_values(back.isotonic.score, fit.isotonic.score, fit.isotonic.n);
    same_values(back.isotonic.p, fit.isotonic.p, fit.isotonic.n);
    assert_int_equal(back.conformal.n, fit.conformal.n);
    assert_int_equal(back.conformal.kind, fit.conformal.kind);
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        same_values(back.conformal.value[k], fit.conformal.value[k], fit.conformal.n);
    pnb_match_probability_fit_reset(&back);
    pnb_match_probability_fit_reset(&fit);
    assert_fails(pnb_match_probability_fit_save(&fit, path, err), PNB_ARG, "holds no fit");
    assert_ok(pnb_match_probability_fit_load(&back, path, err)); /* the old file is still there */
    pnb_match_probability_fit_reset(&back);
    free_world(&w);
}

#define GOOD                                                                                       \
    "{\"format\": \"penumbra-match-calibration\", \"version\": 1, \"measure\": \"csd\", "          \
    "\"n_gallery\": 9, \"n_queries\": 2, \"n_matches\": 2, \"base_rate\": 0.1, \"method\": "       \
    "\"isotonic\", \"platt\": {\"a\": 3.5, \"b\": -1}, \"isotonic\": {\"score\": [0, 0.5], "       \
    "\"p\": "                                                                                      \
    "[0.1, 0.9]}, \"conformal\": {\"kind\": \"rank\", \"score\": [0.1, 0.2], \"margin\": [0, 0], " \
    "\"rank\": [1, 3]}}"

/* GOOD with `from` replaced by `to`. */
static void write_changed(const char *from, const char *to)
{
    char text[1024];
    const char *at = strstr(GOOD, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - (const char *)GOOD), GOOD, to,
             at + strlen(from));
    write_text(text);
}

static void match_from_strangers(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } faults[] = {
        {"penumbra-match-calibration", "penumbra-scaling", "format is 'penumbra-scaling'"},
        {"\"version\": 1", "\"version\": 4", "version 4"},
        {"\"version\": 1", "\"version\": 3, \"query_origin\": {\"adapters\": [{}]}", "is called"},
        {"\"version\": 1", "\"version\": 0", "version 0"},
        {"\"n_gallery\": 9", "\"measure_options\": {\"n_samples\": 0}, \"n_gallery\": 9",
         "n_samples"},
        {"\"version\": 1", "\"version\": 2, \"query_origin\": {\"modality\": 1}", "modality"},
        {"\"version\": 1",
         "\"version\": 2, \"gallery_origin\": {\"modality\": "
         "\"a word of many letters\"}",
         "of 22 bytes, at most 15"},
        {"csd", "cosine-ish", "measure is unknown"},
        {"\"n_gallery\": 9", "\"n_gallery\": 0", "n_gallery is 0"},
        {"\"n_gallery\": 9", "\"n_gallery\": 9, \"level\": -1", "level is -1"},
        {"\"n_gallery\": 9", "\"n_gallery\": 9, \"level\": \"all\"", "level"},
        {"\"n_queries\": 2", "\"n\": 2", "is missing"},
        {"\"base_rate\": 0.1", "\"base_rate\": 1.5", "base_rate"},
        {"\"method\": \"isotonic\"", "\"method\": \"spline\"", "neither platt nor isotonic"},
        {"\"a\": 3.5", "\"a\": -3.5", "a above 0"},
        {"\"b\": -1", "\"b\": \"low\"", "wanted a number"},
        {"[0, 0.5]", "[0.5, 0.5]", "score[1]"},
        {"[0, 0.5]", "[0, 0.5, 0.6]", "differ in length"},
        {"[0.1, 0.9]", "[0.9, 0.1]", "p[1]"},
        {"[0.1, 0.9]", "[0.1, 1.9]", "p[1]"},
        {"\"isotonic\": {", "\"antitonic\": {", "fit that method names is missing"},
        {"\"kind\": \"rank\"", "\"kind\": \"luck\"", "score, margin, rank"},
        {"[0, 0]", "[-1, 0]", "margin[0]"},
        {"[1, 3]", "[1]", "differ in length"},
        {"[1, 3]", "[]", "rank is missing or empty"},
        {"\"conformal\": {", "\"conformity\": {", "conformal is missing"},
        {"0.1, 0.2", "0.1, null", "score[1]"},
    };
    pnb_match_probability_fit fit;
    write_text(GOOD);
    assert_ok(pnb_match_probability_fit_load(&fit, path, err));
    assert_true(fit.has_platt && !fit.has_first && fit.conformal.kind == PNB_CONFORMAL_RANK);
    assert_near(pnb_match_probability_fit_apply(&fit, 0.25, 0), 0.5, 1e-15, 0);
    pnb_match_probability_fit_reset(&fit);
    /* no level and null are of all captions; 0 is one */
    assert_false(fit.has_level);
    write_changed("\"n_gallery\": 9", "\"n_gallery\": 9, \"level\": null");
    assert_ok(pnb_match_probability_fit_load(&fit, path, err));
    assert_false(fit.has_level);
    pnb_match_probability_fit_reset(&fit);
    write_changed("\"n_gallery\": 9", "\"n_gallery\": 9, \"level\": 0");
    assert_ok(pnb_match_probability_fit_load(&fit, path, err));
    assert_true(fit.has_level && fit.level == 0);
    pnb_match_probability_fit_reset(&fit);
    /* version 1 told the weights of both sides, and no more */
    write_changed("\"n_gallery\": 9", "\"weights_sha256\": \"w1\", \"n_gallery\": 9");
    assert_ok(pnb_match_probability_fit_load(&fit, path, err));
    same_side(&fit.origin.queries, &(pnb_fit_side){.weights_sha256 = "w1"});
    same_side(&fit.origin.gallery, &fit.origin.queries);
    assert_int_equal(fit.origin.measure_opts.n_samples, pnb_measure_opts_default().n_samples);
    pnb_match_probability_fit_reset(&fit);
    for (size_t i = 0; i < PNB_COUNT(faults); i++) {
        write_changed(faults[i].from, faults[i].to);
        assert_fails(pnb_match_probability_fit_load(&fit, path, err), PNB_FORMAT, faults[i].says);
        assert_true(fit.conformal.value[0] == NULL && fit.isotonic.score == NULL);
    }
    write_text("[1, 2]");
    assert_fails(pnb_match_probability_fit_load(&fit, path, err), PNB_FORMAT, "wanted an object");
    write_text("{\"format\": ");
    assert_fails(pnb_match_probability_fit_load(&fit, path, err), PNB_FORMAT, "line 1");
    unlink(path);
    assert_fails(pnb_match_probability_fit_load(&fit, path, err), PNB_NOT_FOUND, path);
    write_text(GOOD); /* drop_dir removes it */
}

static void scaling_round_trip(void **state)
{
    (void)state;
    pnb_scaling s = {.has_temperature = true,
                     .has_platt = true,
                     .temperature = {.t = 0.1234567890123,
                                     .n = 50,
                                     .n_classes = 7,
                                     .nll_before = 2.5,
                                     .nll_after = 0.25},
                     .platt = {11.25, -9.5, true},
                     .origin = {.has_measure = true,
                                .measure = PNB_MEASURE_W2,
                                .measure_opts = pnb_measure_opts_default(),
                                .queries = {.modality = "image",
                                            .family = "point",
                                            .weights_sha256 = "abc",
                                            .preprocess = "224"},
                                .gallery = {.modality = "text",
                                            .family = "vmf",
                                            .weights_sha256 = "abc",
                                            .preprocess = "context 9"}}},
                back;
    assert_ok(pnb_scaling_save(&s, path, err));
    assert_ok(pnb_scaling_load(&back, path, err));
    assert_true(back.has_temperature && back.temperature.t == s.temperature.t &&
                back.temperature.n == 50 && back.temperature.n_classes == 7 &&
                back.temperature.nll_after == 0.25);
    assert_true(back.has_platt && back.platt.a == 11.25 && back.platt.b == -9.5 &&
                back.platt.is_smoothed);
    same_origin(&back.origin, &s.origin);
    s.has_temperature = false;
    assert_ok(pnb_scaling_save(&s, path, err));
    assert_ok(pnb_scaling_load(&back, path, err));
    assert_false(back.has_temperature);
    s.platt.a = 0;
    assert_fails(pnb_scaling_save(&s, path, err), PNB_ARG, "a above 0");
    s.has_platt = false;
    assert_fails(pnb_scaling_save(&s, path, err), PNB_ARG, "neither");
    write_text("{\"format\": \"penumbra-scaling\", \"version\": 1}");
    assert_fails(pnb_scaling_load(&back, path, err), PNB_FORMAT, "neither");
    write_text("{\"format\": \"penumbra-scaling\", \"version\": 1, \"temperature\": {\"t\": -1}}");
    assert_fails(pnb_scaling_load(&back, path, err), PNB_FORMAT, "t above 0");
    write_text("{\"format\": \"penumbra-scaling\", \"version\": 1, \"measure\": "
               "\"0123456789012345678901234567890123456789\", \"temperature\": {\"t\": 1}}");
    assert_fails(pnb_scaling_load(&back, path, err), PNB_FORMAT, "measure is unknown");
    write_text("{\"format\": \"penumbra-scaling\", \"version\": 1, \"measure\": \"csd\", "
               "\"weights_sha256\": \"w1\", \"temperature\": {\"t\": 1}}");
    assert_ok(pnb_scaling_load(&back, path, err));
    assert_true(back.origin.has_measure && back.origin.queries.modality[0] == '\0');
    assert_string_equal(back.origin.gallery.weights_sha256, "w1");
    write_text("{\"format\": \"penumbra-scaling\", \"version\": 1, \"temperature\": {\"t\": 1}}");
    assert_ok(pnb_scaling_load(&back, path, err));
    assert_false(back.origin.has_measure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_round_trip),
        cmocka_unit_test(match_from_strangers),
        cmocka_unit_test(scaling_round_trip),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
