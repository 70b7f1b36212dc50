/* What is assumed of a folder that does not say it, by family and layout; the cleaning that
 * configurations ask for in each of their forms; where a missing tokenizer is to be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "models/beside.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"

static pnb_ctx *ctx;
static char folder[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pnb-beside-XXXXXX");
    return mkdtemp(folder) != NULL && pnb_ctx_create(&ctx, NULL, NULL) == PNB_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return rmdir(folder);
}

static void preprocessing_is_assumed_by_family(void **state)
{
    (void)state;
    static const struct {
        const char *model, *want; /* the beginning of the description, and its mean */
        bool half;
    } cases[] = {
        {"base", "bicubic shortest floor resize_to=0 fill=0 order=rgb,resize", false},
        {"hf_first_eos", "bicubic shortest floor resize_to=0 fill=0 order=rgb,resize", false},
        {"open_clip_average", "bicubic shortest resize_to=0 fill=0 order=resize,rgb", false},
        {"openai_state_dict", "bicubic shortest resize_to=0 fill=0 order=resize,rgb", false},
        {"open_clip_siglip", "bicubic squash resize_to=0 fill=0 order=resize,rgb", true},
        {"siglip_tanh", "bicubic squash floor resize_to=0 fill=0 order=rgb,resize", true},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char dir[512], found[512], want[256];
        pnb_model *model = NULL;
        snprintf(dir, sizeof dir, CASES "%s", cases[i].model);
        assert_int_equal(pnb_model_load(&model, ctx, dir, NULL), PNB_OK);
        const pnb_tower_info *v = &pnb_model_get_info(model)->vision;
        pnb_preprocess pp = pnb__assumed_preprocess(model);
        pnb_preprocess_describe(&pp, found, sizeof found);
        snprintf(want, sizeof want, "%zux%zu %s mean=%s", v->image_width, v->image_height,
                 cases[i].want, cases[i].half ? "0.5,0.5,0.5 std=0.5" : "0.48145467,");
        if (strncmp(found, want, strlen(want)) != 0)
            fail_msg("%s: %s, want %s", cases[i].model, found, want);
        pnb_model_free(model);
    }
}

static pnb_tokenizer *tokenizer(void)
{
    static const char *const captions[] = {"a red star", "a blue ring"};
    pnb_tokenizer *t = NULL;
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    assert_int_equal(pnb_tokenizer_train(&t, captions, 2, &opts, NULL), PNB_OK);
    pnb_tokenizer_set_clean(t, PNB_CLEAN_LOWER);
    return t;
}

static pnb_status clean_of(const char *config, const char *dir, pnb_clean *clean, pnb_error *err)
{
    json_t *root = config != NULL ? json_loads(config, 0, NULL) : NULL;
    pnb_tokenizer *t = tokenizer();
    pnb_status status = pnb__apply_clean(t, root, dir, err);
    *clean = pnb_tokenizer_clean(t);
    pnb_tokenizer_free(t);
    json_decref(root);
    return status;
}

#define ASKS(name) "{\"text_cfg\":{\"tokenizer_kwargs\":{\"clean\":\"" name "\"}}}"

static void cleaning_is_read_in_every_form(void **state)
{
    (void)state;
    pnb_clean clean;
    pnb_error err = PNB_ERROR_INIT;
    char path[128];
    assert_int_equal(clean_of(ASKS("whitespace"), NULL, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_WHITESPACE);
    assert_int_equal(clean_of("{\"model_cfg\":" ASKS("canonicalize") "}", NULL, &clean, NULL),
                     PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(clean_of("{\"model_type\":\"siglip\"}", folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_LOWER); /* nobody asks: the tokenizer's own */
    assert_int_equal(clean_of(ASKS("spotless"), NULL, &clean, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "\"spotless\" is not one of none, lower"));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    static const char class[] = "{\"tokenizer_class\": \"SiglipTokenizer\"}";
    assert_int_equal(pnb__write_file(path, class, strlen(class), NULL), PNB_OK);
    assert_int_equal(clean_of(NULL, folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(clean_of(ASKS("none"), folder, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_NONE); /* the configuration has the last word */
    assert_int_equal(clean_of(NULL, NULL, &clean, NULL), PNB_OK);
    assert_int_equal(clean, PNB_CLEAN_LOWER);
    unlink(path);
}

static void a_missing_tokenizer_is_placed(void **state)
{
    (void)state;
    static const char *const want[][2] = {{"base", "timm/ViT-B-16-SigLIP"},
                                          {"hf_first_eos", "openai/clip-vit-base-patch32"},
                                          {"siglip_tanh", "spiece.model"}};
    for (size_t i = 0; i < PNB_COUNT(want); i++) {
        char dir[512], text[256];
        pnb_model *model = NULL;
        snprintf(dir, sizeof dir, CASES "%s", want[i][0]);
        assert_int_equal(pnb_model_load(&model, ctx, dir, NULL), PNB_OK);
        pnb__tokenizer_source(model, text, sizeof text);
        if (strstr(text, want[i][1]) == NULL)
            fail_msg("%s: %s, want %s", want[i][0], text, want[i][1]);
        pnb_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preprocessing_is_assumed_by_family),
        cmocka_unit_test(cleaning_is_read_in_every_form),
        cmocka_unit_test(a_missing_tokenizer_is_placed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
