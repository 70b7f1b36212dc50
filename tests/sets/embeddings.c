/* Embedding sets: round trips of every family, names, mixing, parts, torn and hostile files. */
#include "tests/io/scratch.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "penumbra/npy.h"
#include "sets/embeddings.h"

static const char sha_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char sha_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/* A set whose values name their place: array * 1000 + start + index, all in range. */
static pnb_embeddings *make_set(pnb_family family, size_t n, size_t dim, float start)
{
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_create(&e, family, n, dim, &err), &err);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        for (size_t j = 0; pnb__embedding_has_array(e, i) && j < pnb__embedding_count(e, i); j++)
            (*pnb__embedding_field(e, i))[j] = (float)(i * 1000) + start + (float)j + 0.5f;
    }
    return e;
}

static void name_rows(pnb_embeddings *e, const char *prefix)
{
    pnb_error err = PNB_ERROR_INIT;
    char text[64];
    for (size_t i = 0; i < e->n; i++) {
        snprintf(text, sizeof(text), "%s-%zu", prefix, i);
        assert_ok(pnb_embeddings_set_id(e, i, text, &err), &err);
    }
}

static void set_info(pnb_embeddings *e, const char *sha)
{
    snprintf(e->info.modality, sizeof(e->info.modality), "image");
    snprintf(e->info.model, sizeof(e->info.model), "tiny \"quoted\"");
    snprintf(e->info.weights_sha256, sizeof(e->info.weights_sha256), "%s", sha);
    snprintf(e->info.preprocess, sizeof(e->info.preprocess), "bicubic 224");
    e->info.seed = UINT64_MAX;
    e->info.logit_scale = 14.285714285714286;
    e->info.logit_bias = -10.5;
}

static void assert_same_values(const pnb_embeddings *a, const pnb_embeddings *b)
{
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->dim, b->dim);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        const float *x = pnb__embedding_values(a, i), *y = pnb__embedding_values(b, i);
        assert_int_equal(x == NULL, y == NULL);
        if (x != NULL)
            assert_memory_equal(x, y, pnb__embedding_count(a, i) * sizeof(float));
    }
}

static void every_family_round_trips(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    for (int family = 0; family < PNB_N_FAMILIES; family++) {
        pnb_family named = PNB_POINT;
        pnb_embeddings *e = make_set((pnb_family)family, 5, 3, 0), *back = NULL;
        set_info(e, sha_a);
        name_rows(e, "row");
        assert_ok(pnb_embeddings_save(e, scratch_path(s, "x.safetensors"), &err), &err);
        assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
        assert_same_values(e, back);
        assert_memory_equal(e->info.modality, back->info.modality, 6);
        assert_string_equal(e->info.model, back->info.model);
        assert_string_equal(e->info.weights_sha256, back->info.weights_sha256);
        assert_string_equal(e->info.preprocess, back->info.preprocess);
        assert_true(back->info.seed == UINT64_MAX);
        assert_true(back->info.logit_scale == e->info.logit_scale);
        assert_true(back->info.logit_bias == -10.5);
        assert_string_equal(back->ids[4], "row-4");
        assert_true(pnb_family_from_name(&named, pnb_family_name((pnb_family)family)));
        assert_int_equal(named, family);
        pnb_embeddings_free(e);
        pnb_embeddings_free(back);
    }
    assert_string_equal(pnb_family_name(PNB_N_FAMILIES), "UNKNOWN");
    assert_int_equal(scratch_count(s), 2);
}

static void names_round_trip(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_POINT, 3, 2, 0), *back = NULL;
    char *text = NULL;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_set_path(e, 0, "a \"b\"\\c\n.png", &err), &err);
    assert_ok(pnb_embeddings_set_text(e, 1, "ein K\xc3\xa4tzchen", &err), &err);
    assert_ok(pnb_embeddings_set_id(e, 2, "third", &err), &err);
    assert_ok(pnb_embeddings_set_extra(e, 2, "{ \"label\": 7, \"tags\": [\"x\", null], \"w\": 0.1}",
                                       &err),
              &err);
    assert_ok(pnb_embeddings_save(e, scratch_path(s, "x.safetensors"), &err), &err);
    assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
    assert_true(isnan(back->info.logit_scale) && back->info.model[0] == '\0');
    assert_string_equal(back->ids[0], "0");
    assert_string_equal(back->ids[1], "1");
    assert_string_equal(back->ids[2], "third");
    assert_string_equal(back->paths[0], "a \"b\"\\c\n.png");
    assert_null(back->paths[1]);
    assert_string_equal(back->texts[1], "ein K\xc3\xa4tzchen");
    assert_null(back->extras[0]);
    assert_string_equal(back->extras[2], "{\"label\": 7, \"tags\": [\"x\", null], \"w\": 0.1}");
    assert_ok(pnb__read_file(scratch_path(s, "x.ids.jsonl"), 4096, &text, &n, &err), &err);
    assert_string_equal(text,
                        "{\"id\": \"0\", \"path\": \"a \\\"b\\\"\\\\c\\n.png\"}\n"
                        "{\"id\": \"1\", \"text\": \"ein K\xc3\xa4tzchen\"}\n"
                        "{\"id\": \"third\", \"label\": 7, \"tags\": [\"x\", null], \"w\": 0.1}\n");
    pnb__free(text);
    pnb_embeddings_free(e);
    pnb_embeddings_free(back);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    pnb_embeddings *e = make_set(PNB_POINT, 2, 1, 0);
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_embeddings_set_id(e, 2, "x", &err), &err, PNB_ARG, "row 2 of");
    assert_int_equal(pnb_embeddings_set_text(e, 0, "\xff.png", NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_set_extra(e, 0, "[1]", NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_set_extra(e, 0, "{\"id\": 1}", NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_set_extra(e, 0, "{", NULL), PNB_ARG);
    assert_null(e->ids);
    assert_null(e->extras);
    assert_int_equal(pnb_embeddings_set_id(e, 0, "x", NULL), PNB_OK);
    assert_int_equal(pnb_embeddings_set_id(e, 0, NULL, NULL), PNB_OK);
    assert_null(e->ids[0]);
    pnb_embeddings *none = NULL;
    assert_int_equal(pnb_embeddings_create(&none, PNB_POINT, 0, 3, NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_create(&none, PNB_POINT, 3, 0, NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_create(&none, PNB_N_FAMILIES, 3, 3, NULL), PNB_ARG);
    assert_int_equal(pnb_embeddings_create(&none, PNB_POINT, SIZE_MAX / 2, 3, NULL), PNB_NOMEM);
    assert_null(none);
    pnb_embeddings_free(e);
    pnb_embeddings_free(NULL);
}

static void bad_values_are_refused(void **state)
{
    scratch *s = *state;
    static const struct {
        pnb_family family;
        int array;
        float value;
        bool is_bad;
        const char *words;
    } cases[] = {
        {PNB_POINT, 0, NAN, true, "mean of row 1, column 2 is nan"},
        {PNB_POINT, 0, -INFINITY, true, "mean of row 1, column 2"},
        {PNB_POINT, 0, -3.0f, false, ""},
        {PNB_GAUSSIAN_DIAG, 1, NAN, true, "log_var of row 1, column 2"},
        {PNB_GAUSSIAN_DIAG, 1, -30.0f, false, ""},
        {PNB_VMF, 2, -1.0f, true, "kappa of row 5, column 0 is -1, wanted 0 or more"},
        {PNB_VMF, 2, 0.0f, false, ""},
        {PNB_POWER_SPHERICAL, 2, INFINITY, true, "kappa"},
        {PNB_GEN_GAUSSIAN, 3, 0.0f, true, "inv_alpha of row 1, column 2 is 0, wanted more than 0"},
        {PNB_GEN_GAUSSIAN, 4, -1.0f, true, "beta"},
    };
    scratch_clear(s);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_embeddings *e = make_set(cases[i].family, 6, 3, 0);
        pnb_error err = PNB_ERROR_INIT;
        (*pnb__embedding_field(e, cases[i].array))[5] = cases[i].value;
        pnb_status found = pnb_embeddings_save(e, scratch_path(s, "v.safetensors"), &err);
        if (cases[i].is_bad) {
            assert_failed(found, &err, PNB_NUMERIC, cases[i].words);
            assert_int_equal(scratch_count(s), 0);
        } else {
            assert_ok(found, &err);
            scratch_clear(s);
        }
        pnb_embeddings_free(e);
    }
}

/* NaN is legal in safetensors, and comes in only when asked for. */
static void loading_non_finite_values(void **state)
{
    scratch *s = *state;
    const float mean[4] = {1, 2, NAN, 4};
    pnb_array_view a = {"mean", PNB_F32, 2, {2, 2}, mean, sizeof(mean)};
    pnb_embeddings *e = NULL;
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_safetensors_write(scratch_path(s, "n.safetensors"), &a, 1, NULL, &err), &err);
    assert_failed(pnb_embeddings_load(&e, s->path, &err), &err, PNB_NOT_FOUND, "ids");
    opts.allow_missing_ids = true;
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_load_with(&e, s->path, &opts, &err), &err, PNB_NUMERIC,
                  "row 1, column 0 is nan");
    assert_null(e);
    opts.allow_non_finite = true;
    pnb_error_reset(&err);
    assert_ok(pnb_embeddings_load_with(&e, s->path, &opts, &err), &err);
    assert_true(isnan(e->mean[2]) && e->ids == NULL);
    pnb_embeddings_free(e);
}

typedef struct foreign {
    pnb_array_view arrays[3];
    size_t n;
    const char *metadata[5];
    pnb_status status;
    const char *words;
} foreign;

static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

#define MEAN                                                                                       \
    {                                                                                              \
        "mean", PNB_F32, 2, {2, 3}, ones, 24                                                       \
    }

static const foreign foreign_files[] = {
    {{MEAN}, 1, {NULL}, PNB_OK, "point"},
    {{MEAN, {"log_var", PNB_F32, 2, {2, 3}, ones, 24}}, 2, {NULL}, PNB_OK, "gaussian_diag"},
    {{MEAN, {"kappa", PNB_F32, 1, {2}, ones, 8}}, 2, {NULL}, PNB_OK, "vmf"},
    {{MEAN, {"kappa", PNB_F32, 1, {2}, ones, 8}},
     2,
     {"family", "power_spherical"},
     PNB_OK,
     "power_spherical"},
    {{MEAN, {"inv_alpha", PNB_F32, 2, {2, 3}, ones, 24}, {"beta", PNB_F32, 2, {2, 3}, ones, 24}},
     3,
     {NULL},
     PNB_OK,
     "gen_gaussian"},
    {{{"x", PNB_F32, 2, {2, 3}, ones, 24}}, 1, {NULL}, PNB_FORMAT, "no array \"mean\""},
    {{{"mean", PNB_F32, 1, {6}, ones, 24}}, 1, {NULL}, PNB_SHAPE, "rows and columns"},
    {{{"mean", PNB_F32, 2, {0, 3}, ones, 0}}, 1, {NULL}, PNB_SHAPE, "rows and columns"},
    {{{"mean", PNB_I32, 2, {2, 3}, ones, 24}}, 1, {NULL}, PNB_DTYPE, "I32"},
    {{MEAN, {"log_var", PNB_F32, 2, {3, 2}, ones, 24}}, 2, {NULL}, PNB_SHAPE, "log_var"},
    {{MEAN, {"kappa", PNB_F32, 2, {2, 1}, ones, 8}}, 2, {NULL}, PNB_SHAPE, "kappa"},
    {{MEAN, {"inv_alpha", PNB_F32, 2, {2, 3}, ones, 24}}, 2, {NULL}, PNB_FORMAT, "\"beta\""},
    {{MEAN}, 1, {"family", "gaussian_diag"}, PNB_FORMAT, "\"log_var\""},
    {{MEAN}, 1, {"family", "cauchy"}, PNB_UNSUPPORTED, "cauchy"},
    {{MEAN}, 1, {"format", "penumbra-embeddings", "version", "4"}, PNB_UNSUPPORTED, "version 4"},
    {{MEAN}, 1, {"adapters", "[{}]"}, PNB_FORMAT, "is called"},
    {{MEAN}, 1, {"format", "penumbra-embeddings"}, PNB_UNSUPPORTED, "(none)"},
    {{MEAN}, 1, {"modality", "a-very-long-modality"}, PNB_FORMAT, "modality of 20 bytes"},
    {{MEAN}, 1, {"seed", "-1"}, PNB_FORMAT, "seed"},
    {{MEAN}, 1, {"logit_scale", "1,2"}, PNB_FORMAT, "logit_scale"},
    {{MEAN}, 1, {"logit_bias", "x"}, PNB_FORMAT, "logit_bias"},
    {{MEAN}, 1, {"ids_sha256", "0"}, PNB_FORMAT, "not those"},
};

static void files_of_other_programs(void **state)
{
    scratch *s = *state;
    static const char ids[] = "{\"id\": \"a\"}\n{\"id\": 17}";
    scratch_file(s, "f.ids.jsonl", ids, strlen(ids));
    for (size_t i = 0; i < PNB_COUNT(foreign_files); i++) {
        const foreign *f = &foreign_files[i];
        pnb_embeddings *e = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(pnb_safetensors_write(scratch_path(s, "f.safetensors"), f->arrays, f->n,
                                        f->metadata, &err),
                  &err);
        pnb_status found = pnb_embeddings_load(&e, s->path, &err);
        if (f->status == PNB_OK) {
            assert_ok(found, &err);
            assert_string_equal(pnb_family_name(e->family), f->words);
            assert_string_equal(e->ids[1], "17");
        } else {
            assert_failed(found, &err, f->status, f->words);
            assert_null(e);
        }
        pnb_embeddings_free(e);
    }
}

static void half_precision_sets_load(void **state)
{
    scratch *s = *state;
    const uint16_t mean[2] = {0x3c00, 0xc000};
    pnb_array_view a = {"mean", PNB_F16, 2, {1, 2}, mean, 4};
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_file(s, "h.ids.jsonl", "{}\n", 3);
    assert_ok(pnb_safetensors_write(scratch_path(s, "h.safetensors"), &a, 1, NULL, &err), &err);
    assert_ok(pnb_embeddings_load(&e, s->path, &err), &err);
    assert_true(e->mean[0] == 1.0f && e->mean[1] == -2.0f && e->ids == NULL);
    pnb_embeddings_free(e);
}

/* Arrays of a mapped set lie in the file; what must be converted is a copy all the same. */
static void mapped_sets(void **state)
{
    scratch *s = *state;
    const uint16_t half[2] = {0x3c00, 0xc000};
    const pnb_array_view mixed[] = {{"mean", PNB_F16, 2, {1, 2}, half, 4},
                                    {"log_var", PNB_F32, 2, {1, 2}, (float[]){-3, -4}, 8}};
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.map = true;
    for (int family = 0; family < PNB_N_FAMILIES; family++) {
        pnb_embeddings *e = make_set((pnb_family)family, 4, 3, 0), *back = NULL, *some = NULL;
        name_rows(e, "row");
        assert_ok(pnb_embeddings_save(e, scratch_path(s, "m.safetensors"), &err), &err);
        assert_ok(pnb_embeddings_load_with(&back, s->path, &opts, &err), &err);
        assert_same_values(e, back);
        for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
            assert_int_equal(back->mapped_arrays >> i & 1u, pnb__embedding_has_array(e, i));
        assert_ok(pnb_embeddings_select(&some, back, (size_t[]){2}, 1, &err), &err);
        pnb_embeddings_free(back); /* what was selected is a copy */
        assert_true(some->mean[0] == e->mean[2 * 3] && some->mapped_arrays == 0);
        pnb_embeddings_free(some);
        pnb_embeddings_free(e);
    }
    pnb_embeddings *e = NULL;
    scratch_file(s, "h.ids.jsonl", "{}\n", 3);
    assert_ok(pnb_safetensors_write(scratch_path(s, "h.safetensors"), mixed, 2, NULL, &err), &err);
    assert_ok(pnb_embeddings_load_with(&e, s->path, &opts, &err), &err);
    assert_true(e->mapped_arrays == 2u && e->mean[1] == -2.0f && e->log_var[1] == -4.0f);
    pnb_embeddings_free(e);
}

static void ids_files_that_do_not_fit(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *ids;
        pnb_status status;
        const char *words;
    } cases[] = {
        {"", PNB_SHAPE, "0 lines for 2"},
        {"{\"id\": \"0\"}\n", PNB_SHAPE, "1 lines for 2"},
        {"{\"id\": \"0\"}\n{\"id\": \"1\"}\n\n", PNB_SHAPE, "3 lines for 2"},
        {"{\"id\": \"0\"}\n{\"id\": \"other\"}\n", PNB_FORMAT, "not those"},
        {"{\"id\": \"0\"}\n\n", PNB_FORMAT, "row 1: line 1"},
        {"{\"id\": \"0\"}\n[1]\n", PNB_FORMAT, "row 1: found an array"},
        {"{\"id\": \"0\"}\n{\"id\": 1.5}\n", PNB_FORMAT, "id is a fraction"},
        {"{\"id\": \"0\"}\n{\"id\": \"1\", \"path\": 7}\n", PNB_FORMAT, "path is an integer"},
        {"{\"id\": \"0\"}\n{\"id\": \"\xff\"}\n", PNB_FORMAT, "decode"},
    };
    pnb_embeddings *e = make_set(PNB_POINT, 2, 2, 0), *back = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char path[512];
    snprintf(path, sizeof(path), "%s", scratch_path(s, "t.safetensors"));
    assert_ok(pnb_embeddings_save(e, path, &err), &err);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error_reset(&err);
        scratch_file(s, "t.ids.jsonl", cases[i].ids, strlen(cases[i].ids));
        assert_failed(pnb_embeddings_load(&back, path, &err), &err, cases[i].status,
                      cases[i].words);
        assert_null(back);
    }
    const char changed[] = "{\"id\": \"0\", \"label\": 3}\n{\"text\": \"t\", \"id\": \"1\"}";
    scratch_file(s, "t.ids.jsonl", changed, strlen(changed)); /* further fields may change */
    pnb_error_reset(&err);
    assert_ok(pnb_embeddings_load(&back, path, &err), &err);
    assert_string_equal(back->extras[0], "{\"label\": 3}");
    pnb_embeddings_free(back);
    assert_failed(pnb_embeddings_save(e, scratch_path(s, "t.npz"), &err), &err, PNB_ARG,
                  ".safetensors");
    pnb_embeddings_free(e);
}

static void mixing_is_refused(void **state)
{
    (void)state;
    pnb_embeddings *a = make_set(PNB_GAUSSIAN_DIAG, 2, 3, 0), *b = make_set(PNB_POINT, 4, 3, 0);
    pnb_embeddings *wide = make_set(PNB_POINT, 2, 4, 0);
    pnb_error err = PNB_ERROR_INIT;
    set_info(a, sha_a);
    assert_ok(pnb_embeddings_check_mix(a, b, &err), &err); /* b's weights are unknown */
    set_info(b, sha_b);
    assert_failed(pnb_embeddings_check_mix(a, b, &err), &err, PNB_ARG, "different weights");
    set_info(b, sha_a);
    assert_int_equal(pnb_embeddings_check_mix(a, b, NULL), PNB_OK);
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_check_mix(a, wide, &err), &err, PNB_SHAPE, "width 3 and 4");
    pnb_embeddings_free(a);
    pnb_embeddings_free(b);
    pnb_embeddings_free(wide);
}

static void rows_are_selected(void **state)
{
    (void)state;
    static const size_t rows[] = {4, 0, 4};
    pnb_embeddings *e = make_set(PNB_VMF, 5, 2, 0), *found = NULL;
    pnb_error err = PNB_ERROR_INIT;
    set_info(e, sha_a);
    name_rows(e, "r");
    assert_ok(pnb_embeddings_set_text(e, 0, "first", &err), &err);
    assert_ok(pnb_embeddings_select(&found, e, rows, 3, &err), &err);
    assert_int_equal(found->n, 3);
    assert_true(found->mean[0] == 8.5f && found->mean[3] == 1.5f && found->mean[5] == 9.5f);
    assert_true(found->kappa[0] == 2004.5f && found->kappa[1] == 2000.5f);
    assert_string_equal(found->ids[0], "r-4");
    assert_string_equal(found->ids[2], "r-4");
    assert_string_equal(found->texts[1], "first");
    assert_null(found->texts[0]);
    assert_string_equal(found->info.weights_sha256, sha_a);
    pnb_embeddings_free(found);
    found = NULL;
    assert_failed(pnb_embeddings_select(&found, e, &(size_t){5}, 1, &err), &err, PNB_ARG, "row 5");
    assert_int_equal(pnb_embeddings_select(&found, e, rows, 0, NULL), PNB_ARG);
    assert_null(found);
    pnb_embeddings_free(e);
}

static void sets_are_joined(void **state)
{
    (void)state;
    pnb_embeddings *a = make_set(PNB_GAUSSIAN_DIAG, 2, 3, 0),
                   *b = make_set(PNB_GAUSSIAN_DIAG, 1, 3, 100);
    const pnb_embeddings *both[2] = {a, b};
    pnb_embeddings *found = NULL;
    pnb_error err = PNB_ERROR_INIT;
    set_info(a, sha_a);
    set_info(b, sha_a);
    name_rows(b, "b");
    assert_ok(pnb_embeddings_concat(&found, both, 2, &err), &err);
    assert_int_equal(found->n, 3);
    assert_memory_equal(found->mean, a->mean, 6 * sizeof(float));
    assert_memory_equal(found->log_var + 6, b->log_var, 3 * sizeof(float));
    assert_null(found->ids[0]);
    assert_string_equal(found->ids[2], "b-0");
    pnb_embeddings_free(found);
    found = NULL;
    set_info(b, sha_b);
    assert_failed(pnb_embeddings_concat(&found, both, 2, &err), &err, PNB_ARG, "different weights");
    set_info(b, sha_a);
    snprintf(b->info.modality, sizeof(b->info.modality), "text");
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_concat(&found, both, 2, &err), &err, PNB_ARG, "image and text");
    set_info(b, sha_a);
    snprintf(b->info.preprocess, sizeof(b->info.preprocess), "squash");
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_concat(&found, both, 2, &err), &err, PNB_ARG, "preprocessed");
    pnb_embeddings_free(b);
    both[1] = b = make_set(PNB_POINT, 1, 3, 0);
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_concat(&found, both, 2, &err), &err, PNB_SHAPE, "families");
    assert_int_equal(pnb_embeddings_concat(&found, both, 0, NULL), PNB_ARG);
    assert_null(found);
    pnb_embeddings_free(a);
    pnb_embeddings_free(b);
}

/* ---- parts ---- */

static void save_part(scratch *s, const char *name, pnb_family family, size_t n, float start,
                      const char *sha)
{
    pnb_embeddings *e = make_set(family, n, 3, start);
    pnb_error err = PNB_ERROR_INIT;
    set_info(e, sha);
    name_rows(e, name);
    assert_ok(pnb_embeddings_save(e, scratch_path(s, name), &err), &err);
    pnb_embeddings_free(e);
}

static void part_paths(scratch *s, char paths[3][128])
{
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], sizeof(paths[i]), "%s/p%d.safetensors", s->dir, i);
}

/* Merging the files gives byte for byte what saving the joined set gives. */
static void parts_are_merged(void **state)
{
    scratch *s = *state;
    char paths[3][128], *merged[2] = {NULL, NULL}, *joined[2] = {NULL, NULL};
    const char *list[3] = {paths[0], paths[1], paths[2]};
    static const char *const endings[] = {"safetensors", "ids.jsonl"};
    pnb_embeddings *parts[3] = {NULL, NULL, NULL}, *all = NULL;
    pnb_error err = PNB_ERROR_INIT;
    part_paths(s, paths);
    save_part(s, "p0.safetensors", PNB_GEN_GAUSSIAN, 2, 0, sha_a);
    save_part(s, "p1.safetensors", PNB_GEN_GAUSSIAN, 5, 100, sha_a);
    save_part(s, "p2.safetensors", PNB_GEN_GAUSSIAN, 1, 200, sha_a);
    assert_ok(pnb_embeddings_merge(scratch_path(s, "m.safetensors"), list, 3, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_ok(pnb_embeddings_load(&parts[i], paths[i], &err), &err);
    assert_ok(pnb_embeddings_concat(&all, (const pnb_embeddings *const *)parts, 3, &err), &err);
    assert_ok(pnb_embeddings_save(all, scratch_path(s, "j.safetensors"), &err), &err);
    for (int i = 0; i < 2; i++) {
        size_t n_merged = 0, n_joined = 0;
        char name[32];
        snprintf(name, sizeof(name), "m.%s", endings[i]);
        assert_ok(pnb__read_file(scratch_path(s, name), 1 << 20, &merged[i], &n_merged, &err),
                  &err);
        name[0] = 'j';
        assert_ok(pnb__read_file(scratch_path(s, name), 1 << 20, &joined[i], &n_joined, &err),
                  &err);
        assert_int_equal(n_merged, n_joined);
        assert_memory_equal(merged[i], joined[i], n_merged);
        pnb__free(merged[i]);
        pnb__free(joined[i]);
    }
    pnb_embeddings_free(all);
    for (int i = 0; i < 3; i++)
        pnb_embeddings_free(parts[i]);
    list[0] = s->path; /* a set may grow by merging it with a part into itself */
    assert_ok(pnb_embeddings_merge(scratch_path(s, "m.safetensors"), list, 2, &err), &err);
    assert_ok(pnb_embeddings_load(&all, s->path, &err), &err);
    assert_int_equal(all->n, 13);
    pnb_embeddings_free(all);
}

static void parts_that_do_not_fit(void **state)
{
    scratch *s = *state;
    char paths[3][128];
    const char *list[3] = {paths[0], paths[1], paths[2]};
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    part_paths(s, paths);
    save_part(s, "p0.safetensors", PNB_POINT, 2, 0, sha_a);
    save_part(s, "p1.safetensors", PNB_POINT, 2, 0, sha_b);
    save_part(s, "p2.safetensors", PNB_VMF, 2, 0, sha_a);
    assert_failed(pnb_embeddings_merge(scratch_path(s, "m.safetensors"), list, 2, &err), &err,
                  PNB_ARG, "p1.safetensors: embeddings of different weights");
    list[1] = paths[2];
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_merge(s->path, list, 2, &err), &err, PNB_SHAPE, "families");
    list[1] = "/nonexistent/p.safetensors";
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_merge(s->path, list, 2, &err), &err, PNB_NOT_FOUND, "nonexistent");
    assert_int_equal(pnb_embeddings_merge(s->path, list, 0, NULL), PNB_ARG);
    assert_int_equal(scratch_count(s), 6);
}

/* Neither file changes when the disk fills up. */
static void full_disk_leaves_the_old_set(void **state)
{
    scratch *s = *state;
    struct rlimit old, tiny;
    pnb_error err = PNB_ERROR_INIT;
    pnb_embeddings *small = make_set(PNB_POINT, 2, 3, 7), *large = make_set(PNB_POINT, 400, 300, 0);
    pnb_embeddings *back = NULL;
    scratch_clear(s);
    name_rows(small, "old");
    assert_ok(pnb_embeddings_save(small, scratch_path(s, "d.safetensors"), &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    tiny = (struct rlimit){100000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    pnb_status found = pnb_embeddings_save(large, s->path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_failed(found, &err, PNB_IO, "cannot write");
    assert_int_equal(scratch_count(s), 2);
    pnb_error_reset(&err);
    assert_ok(pnb_embeddings_load(&back, s->path, &err), &err);
    assert_same_values(small, back);
    assert_string_equal(back->ids[1], "old-1");
    pnb_embeddings_free(small);
    pnb_embeddings_free(large);
    pnb_embeddings_free(back);
}

/* ---- other tools ---- */

static void npy_round_trip(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_GAUSSIAN_DIAG, 3, 2, 0), *back = NULL;
    pnb_embeddings *vmf = make_set(PNB_VMF, 3, 2, 0);
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    name_rows(e, "n");
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err);
    assert_int_equal(scratch_count(s), 4);
    assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
    assert_same_values(e, back);
    assert_string_equal(back->ids[2], "n-2");
    pnb_embeddings_free(back);
    assert_failed(pnb_embeddings_save_npy(vmf, s->path, &err), &err, PNB_EXISTS, "x_logvar.npy");
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_save_npy(vmf, scratch_path(s, "x.bin"), &err), &err, PNB_ARG,
                  ".npy");
    pnb_error_reset(&err);
    assert_ok(pnb_embeddings_save_npy(vmf, scratch_path(s, "v.npy"), &err), &err);
    assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
    assert_same_values(vmf, back);
    pnb_embeddings_free(back);
    pnb_embeddings_free(e);
    pnb_embeddings_free(vmf);
}

static void npy_of_generalised_gaussians(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_GEN_GAUSSIAN, 3, 2, 0), *back = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "g.npy"), &err), &err);
    assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
    assert_int_equal(back->family, PNB_GEN_GAUSSIAN);
    assert_same_values(e, back);
    pnb_embeddings_free(back);
    assert_int_equal(remove(scratch_path(s, "g_beta.npy")), 0);
    assert_failed(pnb_embeddings_load_npy(&back, scratch_path(s, "g.npy"), &err), &err,
                  PNB_NOT_FOUND, "no _beta.npy");
    pnb_error_reset(&err);
    pnb_embeddings_free(e);
}

static void fill_info(pnb_embeddings *e)
{
    snprintf(e->info.modality, sizeof e->info.modality, "text");
    snprintf(e->info.model, sizeof e->info.model, "small");
    snprintf(e->info.weights_sha256, sizeof e->info.weights_sha256, "%064d", 7);
    snprintf(e->info.preprocess, sizeof e->info.preprocess, "context 77, clean none");
    e->info.seed = 9;
    e->info.logit_scale = 14.285714285714286;
    e->info.logit_bias = -0.1;
}

/* Writes x.npy with its info, loads it again and compares all of it. */
static void npy_keeps_its_origin(void **state)
{
    static const pnb_family families[] = {PNB_POINT, PNB_GAUSSIAN_DIAG, PNB_VMF,
                                          PNB_POWER_SPHERICAL, PNB_GEN_GAUSSIAN};
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < PNB_COUNT(families); i++) {
        pnb_embeddings *e = make_set(families[i], 3, 2, 0), *back = NULL;
        scratch_clear(s);
        fill_info(e);
        assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err);
        assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
        assert_int_equal(back->family, families[i]);
        assert_same_values(e, back);
        assert_string_equal(back->info.modality, "text");
        assert_string_equal(back->info.model, "small");
        assert_string_equal(back->info.weights_sha256, e->info.weights_sha256);
        assert_string_equal(back->info.preprocess, e->info.preprocess);
        assert_true(back->info.seed == 9 && back->info.logit_scale == e->info.logit_scale &&
                    back->info.logit_bias == e->info.logit_bias);
        pnb_embeddings_free(back);
        assert_int_equal(remove(scratch_path(s, "x.json")), 0);
        assert_ok(pnb_embeddings_load_npy(&back, scratch_path(s, "x.npy"), &err), &err);
        assert_true(back->info.weights_sha256[0] == '\0' && isnan(back->info.logit_scale));
        pnb_embeddings_free(back);
        pnb_embeddings_free(e);
    }
}

static void write_origin(scratch *s, const char *text)
{
    assert_ok(pnb__write_file(scratch_path(s, "x.json"), text, strlen(text), NULL), NULL);
}

static void npy_origin_from_strangers(void **state)
{
    static const struct {
        const char *text;
        pnb_status status;
        const char *says;
    } faults[] = {
#define OURS "{\"format\": \"penumbra-embeddings\", \"version\": "
        {OURS "4, \"family\": \"point\"}", PNB_UNSUPPORTED, "version 4"},
        {OURS "2, \"family\": \"point\", \"adapters\": [{}]}", PNB_FORMAT, "is called"},
        {OURS "1, \"family\": \"round\"}", PNB_UNSUPPORTED, "\"round\" is not known"},
        {OURS "1, \"family\": \"gaussian_diag\"}", PNB_FORMAT, "says gaussian_diag"},
        {OURS "1, \"family\": \"point\", \"n\": 4}", PNB_SHAPE, "of 4 of width"},
        {OURS "1, \"family\": \"point\", \"dim\": 3}", PNB_SHAPE, "of width 3"},
        {OURS "1, \"family\": \"point\", \"seed\": -1}", PNB_FORMAT, "seed"},
        {OURS "1, \"family\": \"point\", \"modality\": 3}", PNB_FORMAT, "modality"},
        {OURS "1, \"family\": \"point\", \"modality\": \"much too long a word\"}", PNB_FORMAT,
         "at most 15"},
        {OURS "1, \"family\": \"point\", \"ids_sha256\": \"00\"}", PNB_FORMAT, "ids are not those"},
    };
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_POINT, 3, 2, 0), *back = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err);
    for (size_t i = 0; i < PNB_COUNT(faults); i++) {
        write_origin(s, faults[i].text);
        assert_failed(pnb_embeddings_load_npy(&back, scratch_path(s, "x.npy"), &err), &err,
                      faults[i].status, faults[i].says);
        assert_null(back);
        pnb_error_reset(&err);
    }
    /* room for later keys, and files of other people */
    write_origin(s, OURS "1, \"family\": \"point\", \"model\": \"m\", \"later\": [1]}");
    assert_ok(pnb_embeddings_load_npy(&back, scratch_path(s, "x.npy"), &err), &err);
    assert_string_equal(back->info.model, "m");
    pnb_embeddings_free(back);
    write_origin(s, "{\"model\": \"m\", \"format\": 3}");
    assert_ok(pnb_embeddings_load_npy(&back, scratch_path(s, "x.npy"), &err), &err);
    assert_string_equal(back->info.model, "");
    pnb_embeddings_free(back);
    assert_failed(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err, PNB_EXISTS,
                  "x.json is needed");
    pnb_error_reset(&err);
    write_origin(s, OURS "1, \"family\": \"vmf\"}"); /* an older set of the same name */
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "x.npy"), &err), &err);
    assert_int_equal(remove(scratch_path(s, "x.ids.jsonl")), 0);
    assert_ok(pnb_embeddings_load_npy(&back, scratch_path(s, "x.npy"), &err), &err);
    assert_null(back->ids);
    pnb_embeddings_free(back);
    pnb_embeddings_free(e);
}

static void npy_of_other_tools(void **state)
{
    scratch *s = *state;
    const float values[6] = {1, 2, 3, 4, 5, 6}, zero[6] = {1, 1, 0, 1, 1, 1};
    pnb_array_view mean = {"", PNB_F32, 2, {2, 3}, values, 24}, var = mean, flat = mean;
    pnb_embeddings *e = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb_npy_save(scratch_path(s, "x_var.npy"), &var, &err), &err);
    assert_ok(pnb_npy_save(scratch_path(s, "x.npy"), &mean, &err), &err);
    assert_ok(pnb_embeddings_load_npy(&e, s->path, &err), &err);
    assert_int_equal(e->family, PNB_GAUSSIAN_DIAG);
    assert_true(e->log_var[3] == logf(4));
    pnb_embeddings_free(e);
    e = NULL;
    var.data = zero; /* log 0 is not finite */
    assert_ok(pnb_npy_save(scratch_path(s, "x_var.npy"), &var, &err), &err);
    assert_failed(pnb_embeddings_load_npy(&e, scratch_path(s, "x.npy"), &err), &err, PNB_NUMERIC,
                  "log_var of row 0, column 2");
    var.shape[0] = 3, var.shape[1] = 2;
    pnb_error_reset(&err);
    assert_ok(pnb_npy_save(scratch_path(s, "x_var.npy"), &var, &err), &err);
    assert_failed(pnb_embeddings_load_npy(&e, scratch_path(s, "x.npy"), &err), &err, PNB_SHAPE,
                  "log_var");
    flat.n_dims = 1, flat.shape[0] = 6;
    pnb_error_reset(&err);
    assert_ok(pnb_npy_save(scratch_path(s, "x.npy"), &flat, &err), &err);
    assert_failed(pnb_embeddings_load_npy(&e, s->path, &err), &err, PNB_SHAPE, "rows and columns");
    assert_null(e);
}

static void jsonl_has_all_values(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_VMF, 2, 2, 0);
    char *text = NULL;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    e->mean[0] = 0.1f;
    assert_ok(pnb_embeddings_set_extra(e, 1, "{\"label\": 3}", &err), &err);
    assert_ok(pnb_embeddings_save_jsonl(e, scratch_path(s, "x.jsonl"), &err), &err);
    assert_ok(pnb__read_file(s->path, 4096, &text, &n, &err), &err);
    assert_string_equal(
        text,
        "{\"id\": \"0\", \"family\": \"vmf\", \"mean\": [0.100000001,1.5], \"kappa\": 2000.5}\n"
        "{\"id\": \"1\", \"label\": 3, \"family\": \"vmf\", \"mean\": [2.5,3.5], \"kappa\": "
        "2001.5}\n");
    pnb__free(text);
    pnb_embeddings_free(e);
}

/* ---- out of memory ---- */

#ifdef PNB_FAULTS
static pnb_status use_everything(scratch *s, pnb_error *err)
{
    static const size_t rows[2] = {1, 0};
    pnb_embeddings *e = NULL, *back = NULL, *part = NULL;
    const char *paths[2] = {s->path, s->path};
    pnb_status status;
    PNB_TRY(pnb_embeddings_create(&e, PNB_VMF, 2, 2, err));
    PNB_TRY(pnb_embeddings_set_id(e, 0, "x", err));
    PNB_TRY(pnb_embeddings_set_text(e, 1, "t", err));
    PNB_TRY(pnb_embeddings_set_extra(e, 1, "{\"a\": 1}", err));
    e->info.logit_scale = 10;
    PNB_TRY(pnb_embeddings_save(e, scratch_path(s, "o.safetensors"), err));
    PNB_TRY(pnb_embeddings_load(&back, s->path, err));
    PNB_TRY(pnb_embeddings_select(&part, back, rows, 2, err));
    PNB_TRY(pnb_embeddings_merge(s->path, paths, 2, err));
    pnb_embeddings_free(back);
    back = NULL;
    PNB_TRY(pnb_embeddings_save_npy(part, scratch_path(s, "o.npy"), err));
    PNB_TRY(pnb_embeddings_load_npy(&back, s->path, err));
    status = pnb_embeddings_save_jsonl(e, scratch_path(s, "o.jsonl"), err);
done:
    pnb_embeddings_free(e);
    pnb_embeddings_free(back);
    pnb_embeddings_free(part);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    scratch *s = *state;
    scratch_clear(s);
    fail_every_allocation(use_everything, s);
}
#endif

/* A further array of generalised Gaussians: files of every kind, maps, choices and joins keep it.
 */
static void epistemic_is_kept(void **state)
{
    scratch *s = *state;
    pnb_embeddings *e = make_set(PNB_GEN_GAUSSIAN, 4, 3, 0), *back = NULL;
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    const size_t last = 3;
    char *text = NULL, *x = NULL, *y = NULL;
    size_t n = 0;
    scratch_clear(s);
    assert_ok(pnb_embeddings_add_epistemic(e, &err), &err);
    for (size_t i = 0; i < 12; i++)
        e->epistemic[i] = (float)i;
    name_rows(e, "row");
    x = strdup(scratch_path(s, "x.safetensors"));
    y = strdup(scratch_path(s, "y.safetensors"));
    assert_ok(pnb_embeddings_save(e, x, &err), &err);
    for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
        opts.map = is_mapped == 1;
        assert_ok(pnb_embeddings_load_with(&back, x, &opts, &err), &err);
        assert_true(back->has_epistemic);
        assert_same_values(e, back);
        pnb_embeddings_free(back);
    }
    assert_ok(pnb_embeddings_select(&back, e, &last, 1, &err), &err);
    assert_true(back->has_epistemic && back->epistemic[2] == 11.0f);
    pnb_embeddings_free(back);
    assert_ok(pnb_embeddings_concat(&back, (const pnb_embeddings *[]){e, e}, 2, &err), &err);
    assert_memory_equal(back->epistemic + 12, e->epistemic, 12 * sizeof(float));
    pnb_embeddings_free(back);
    assert_ok(pnb_embeddings_merge(y, (const char *[]){x, x}, 2, &err), &err);
    assert_ok(pnb_embeddings_load(&back, y, &err), &err);
    assert_memory_equal(back->epistemic + 12, e->epistemic, 12 * sizeof(float));
    pnb_embeddings_free(back);
    assert_ok(pnb_embeddings_save_npy(e, scratch_path(s, "n.npy"), &err), &err);
    assert_ok(pnb_embeddings_load_npy(&back, s->path, &err), &err);
    assert_same_values(e, back);
    pnb_embeddings_free(back);
    assert_ok(pnb_embeddings_save_jsonl(e, scratch_path(s, "j.jsonl"), &err), &err);
    assert_ok(pnb__read_file(s->path, 4096, &text, &n, &err), &err);
    assert_non_null(strstr(text, "\"epistemic\": [9,10,11]"));
    pnb__free(text);
    free(x);
    free(y);
    pnb_embeddings_free(e);
}

static void epistemic_that_does_not_fit(void **state)
{
    scratch *s = *state;
    pnb_embeddings *with = make_set(PNB_GEN_GAUSSIAN, 2, 3, 0), *none = NULL;
    pnb_embeddings *without = make_set(PNB_GEN_GAUSSIAN, 2, 3, 0);
    pnb_embeddings *points = make_set(PNB_POINT, 2, 3, 0);
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_add_epistemic(with, &err), &err);
    assert_failed(pnb_embeddings_concat(&none, (const pnb_embeddings *[]){with, without}, 2, &err),
                  &err, PNB_SHAPE, "one without");
    assert_int_equal(pnb_embeddings_add_epistemic(with, NULL), PNB_ARG);
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_add_epistemic(points, &err), &err, PNB_ARG, "a point set");
    with->epistemic[4] = -1.0f;
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_save(with, scratch_path(s, "v.safetensors"), &err), &err,
                  PNB_NUMERIC, "epistemic of row 1, column 1 is -1, wanted 0 or more");
    /* what another set left beside the means would be taken for theirs */
    scratch_clear(s);
    scratch_file(s, "q_epistemic.npy", "x", 1);
    pnb_error_reset(&err);
    assert_failed(pnb_embeddings_save_npy(without, scratch_path(s, "q.npy"), &err), &err,
                  PNB_EXISTS, "q_epistemic.npy");
    pnb_embeddings_free(with);
    pnb_embeddings_free(without);
    pnb_embeddings_free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_round_trips),
        cmocka_unit_test(epistemic_is_kept),
        cmocka_unit_test(epistemic_that_does_not_fit),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(loading_non_finite_values),
        cmocka_unit_test(files_of_other_programs),
        cmocka_unit_test(half_precision_sets_load),
        cmocka_unit_test(mapped_sets),
        cmocka_unit_test(ids_files_that_do_not_fit),
        cmocka_unit_test(mixing_is_refused),
        cmocka_unit_test(rows_are_selected),
        cmocka_unit_test(sets_are_joined),
        cmocka_unit_test(parts_are_merged),
        cmocka_unit_test(parts_that_do_not_fit),
        cmocka_unit_test(full_disk_leaves_the_old_set),
        cmocka_unit_test(npy_round_trip),
        cmocka_unit_test(npy_of_generalised_gaussians),
        cmocka_unit_test(npy_keeps_its_origin),
        cmocka_unit_test(npy_origin_from_strangers),
        cmocka_unit_test(npy_of_other_tools),
        cmocka_unit_test(jsonl_has_all_values),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
