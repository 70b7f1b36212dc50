/* PCME++ out of CLIP: means stay those of CLIP, the rest is fresh, what has no such towers is
 * refused.
 */
#include <math.h>

#include "penumbra/model.h"
#include "tests/models/scratch.h"

#define CASES PNB_SOURCE_DIR "/tests/golden/prolip_model/"

enum { BATCH = 2 };

static pnb_status convert(const char *from, const char *name, size_t n_unc, uint64_t seed,
                          pnb_model **out, pnb_error *err)
{
    char dir[128], notes[1024];
    const pnb_model_convert_opts opts = {
        .to = PNB_KEYS_PCMEPP, .seed = seed, .n_unc_layers = n_unc};
    snprintf(dir, sizeof dir, "%s/%s", temp_dir, name);
    *err = (pnb_error)PNB_ERROR_INIT;
    pnb_status status = pnb_model_convert(ctx, from, dir, &opts, notes, err);
    if (status == PNB_OK && out != NULL)
        status = pnb_model_load(out, ctx, dir, err);
    return status;
}

/* Both towers' means of noise and made-up ids that end where the tower reads; log_var may be NULL.
 */
static void encode(pnb_model *m, float *mean[2], float *log_var[2])
{
    const pnb_model_info *info = pnb_model_get_info(m);
    size_t n_pixels = BATCH * 3 * info->vision.image_width * info->vision.image_height;
    size_t length = info->text.context_length, dim = info->embed_dim;
    float *pixels = calloc(n_pixels, sizeof *pixels);
    int32_t *ids = calloc(BATCH * length, sizeof *ids);
    pnb_error err = PNB_ERROR_INIT;
    assert_true(pixels != NULL && ids != NULL);
    for (size_t i = 0; i < n_pixels; i++)
        pixels[i] = (float)sin(1.7 * (double)i);
    for (size_t i = 0; i < BATCH * length; i++)
        ids[i] = (int32_t)(i * 7 % info->text.vocab_size);
    for (size_t i = 0; i < BATCH; i++) { /* the end tokens of both cases */
        ids[i * length + length - 1] = (int32_t)info->text.vocab_size - 1;
        ids[i * length + length - 2] = 5;
    }
    for (int side = 0; side < 2; side++) {
        mean[side] = calloc(BATCH * dim, sizeof **mean);
        if (log_var != NULL)
            log_var[side] = calloc(BATCH * dim, sizeof **mean);
        const pnb_encode_out out = {.mean = mean[side],
                                    .log_var = log_var != NULL ? log_var[side] : NULL};
        pnb_status status = side == 0 ? pnb_model_encode_image(m, pixels, BATCH, &out, &err)
                                      : pnb_model_encode_text(m, ids, BATCH, length, &out, &err);
        if (status != PNB_OK)
            fail_msg("%s", err.text);
    }
    free(pixels);
    free(ids);
}

static void means_are_those_of_clip(void **state)
{
    (void)state;
    static const char *const cases[] = {CASES "hf_first_eos", CASES "openai_state_dict"};
    for (size_t c = 0; c < PNB_COUNT(cases); c++) {
        char name[32];
        pnb_model *clip = NULL, *made = NULL, *other = NULL;
        pnb_error err = PNB_ERROR_INIT;
        float *before[2], *after[2], *log_var[2], *mean2[2], *log_var2[2];
        if (pnb_model_load(&clip, ctx, cases[c], &err) != PNB_OK)
            fail_msg("%s", err.text);
        snprintf(name, sizeof name, "made%zu", c);
        if (convert(cases[c], name, 1, 5, &made, &err) != PNB_OK)
            fail_msg("%s", err.text);
        snprintf(name, sizeof name, "other%zu", c);
        assert_int_equal(convert(cases[c], name, 1, 6, &other, &err), PNB_OK);
        const pnb_model_info *info = pnb_model_get_info(made);
        assert_string_equal(info->family, "pcmepp");
        assert_true(info->is_probabilistic);
        assert_true(fabs(info->logit_scale - 10) < 1e-5 && fabs(info->logit_bias + 5) < 1e-5);
        encode(clip, before, NULL);
        encode(made, after, log_var);
        encode(other, mean2, log_var2);
        size_t n = BATCH * info->embed_dim;
        for (int side = 0; side < 2; side++) {
            double differs = 0;
            for (size_t i = 0; i < n; i++) {
                assert_true(fabs((double)before[side][i] - after[side][i]) < 1e-6);
                assert_true(after[side][i] == mean2[side][i]);
                assert_true(fabs((double)log_var[side][i] + 10) < 2);
                differs += fabs((double)log_var[side][i] - log_var2[side][i]);
            }
            assert_true(differs > 1e-3); /* of the other seed */
            free(before[side]);
            free(after[side]);
            free(log_var[side]);
            free(mean2[side]);
            free(log_var2[side]);
        }
        pnb_model_free(clip);
        pnb_model_free(made);
        pnb_model_free(other);
    }
}

static void others_are_refused(void **state)
{
    (void)state;
    pnb_error err;
    assert_int_equal(convert(CASES "siglip_tanh", "x", 1, 0, NULL, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "siglip"));
    assert_int_equal(convert(CASES "pcmepp_two_paths", "x", 1, 0, NULL, &err), PNB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "pcmepp"));
    assert_int_equal(convert(CASES "hf_first_eos", "x", 99, 0, NULL, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "99 blocks"));
    const pnb_model_convert_opts elsewhere = {.to = PNB_KEYS_PROLIP, .n_unc_layers = 1};
    char notes[1024];
    err = (pnb_error)PNB_ERROR_INIT;
    assert_int_equal(
        pnb_model_convert(ctx, CASES "hf_first_eos", temp_dir, &elsewhere, notes, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "only PCME++'s layout has them"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(means_are_those_of_clip),
                                       cmocka_unit_test(others_are_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
