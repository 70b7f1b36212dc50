/* Preprocessing configurations in each form they come in: Hugging Face old and new, open_clip; what
 * absent keys mean; every field saved and read back. */
#include "tests/io/image/support.h"

static char folder[] = "/tmp/pnb_preprocess_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"preprocessor_config.json", "open_clip_config.json"};
    char path[256];
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static const char *put(const char *name, const char *text, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    assert_int_equal(pnb__write_file(path, text, strlen(text), NULL), PNB_OK);
    return path;
}

#define MEAN "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.25]"

static pnb_preprocess load_text(const char *name, const char *text)
{
    char path[256];
    pnb_preprocess pp;
    pnb_error err = PNB_ERROR_INIT;
    put(name, text, path);
    if (pnb_preprocess_load(&pp, path, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return pp;
}

static void hugging_face_forms_are_read(void **state)
{
    (void)state;
    const char *name = "preprocessor_config.json";
    pnb_preprocess pp = load_text(
        name,
        "{\"crop_size\":224,\"do_center_crop\":true,\"do_normalize\":true,\"do_resize\":true," MEAN
        ",\"resample\":3,\"size\":256}");
    assert_int_equal(pp.mode, PNB_FIT_SHORTEST);
    assert_int_equal(pp.width, 224);
    assert_int_equal(pp.resize_to, 256);
    assert_int_equal(pp.centre, PNB_CENTRE_FLOOR);
    assert_true(pp.std[2] == 0.25f);
    pp =
        load_text(name, "{\"size\":{\"shortest_edge\":224},\"crop_size\":{\"height\":224,\"width\":"
                        "224},\"do_center_crop\":true,\"resample\":2,\"do_rescale\":true,"
                        "\"rescale_factor\":0.00392156862745098}");
    assert_int_equal(pp.resize_to, 0);
    assert_int_equal(pp.filter, PNB_FILTER_BILINEAR);
    assert_true(pp.mean[0] == 0.48145466f);
    pp = load_text(name, "{\"size\":{\"height\":384,\"width\":256}," MEAN ",\"resample\":1,"
                         "\"image_processor_type\":\"SiglipImageProcessor\"}");
    assert_int_equal(pp.mode, PNB_FIT_SQUASH);
    assert_int_equal(pp.height, 384);
    assert_int_equal(pp.width, 256);
    assert_int_equal(pp.filter, PNB_FILTER_LANCZOS);
}

/* Keys that are left out mean what the named class takes for them; each is told. */
static void absent_keys_follow_the_class(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want, *assumed;
    } cases[] = {
        {"{\"feature_extractor_type\":\"CLIPFeatureExtractor\",\"size\":336,\"crop_size\":336," MEAN
         ",\"resample\":3}",
         "336x336 bicubic shortest floor", ""},
        {"{\"image_processor_type\":\"CLIPImageProcessor\"}", "224x224 bicubic shortest floor",
         "resample bicubic, image_mean OpenAI's, image_std OpenAI's, size 224, crop_size 224"},
        {"{\"image_processor_type\":\"CLIPImageProcessorFast\",\"size\":{\"shortest_edge\":256}"
         "," MEAN ",\"resample\":4,\"crop_size\":240}",
         "240x240 box shortest floor resize_to=256", ""},
        {"{\"image_processor_type\":\"CLIPImageProcessor\",\"size\":{\"shortest_edge\":336}," MEAN
         ",\"resample\":3}",
         "224x224 bicubic shortest floor resize_to=336", "crop_size 224"},
        {"{\"image_processor_type\":\"SiglipImageProcessor\",\"size\":256}",
         "256x256 bicubic squash floor resize_to=0 fill=0 order=rgb,resize mean=0.5,0.5,0.5 "
         "std=0.5,0.5,0.5",
         "resample bicubic, image_mean 0.5, image_std 0.5"},
        {"{\"image_processor_type\":\"SiglipImageProcessor\",\"size\":{\"height\":64,\"width\":96}"
         "," MEAN ",\"resample\":5,\"do_center_crop\":null,\"crop_size\":32}",
         "96x64 hamming squash", ""},
        {"{\"feature_extractor_type\":\"ViTFeatureExtractor\",\"size\":384}",
         "384x384 bilinear squash", "resample bilinear, image_mean 0.5, image_std 0.5"},
        {"{\"size\":224," MEAN ",\"resample\":3}", "224x224 bicubic shortest",
         "image_processor_type CLIPImageProcessor"},
        {"{\"size\":{\"height\":224,\"width\":224}," MEAN ",\"resample\":3,\"do_normalize\":false}",
         "224x224 bicubic squash floor resize_to=0 fill=0 order=rgb,resize mean=0,0,0 std=1,1,1",
         "image_processor_type CLIPImageProcessor"},
        {"{\"model_cfg\":{\"vision_cfg\":{\"image_size\":96}}}",
         "96x96 bicubic shortest resize_to=0 fill=0 order=resize,rgb",
         "interpolation bicubic, resize_mode shortest, mean OpenAI's, std OpenAI's"},
        {"{\"preprocess_cfg\":{},\"model_cfg\":{\"vision_cfg\":{\"image_size\":240}}}",
         "240x240 bicubic shortest resize_to=0 fill=0 order=resize,rgb",
         "interpolation bicubic, resize_mode shortest, mean OpenAI's, std OpenAI's"},
        {"{\"preprocess_cfg\":{\"size\":[64,96],\"mode\":\"RGB\",\"interpolation\":\"random\","
         "\"resize_mode\":\"squash\",\"mean\":[0.5,0.5,0.5],\"std\":[0.5,0.5,0.5],"
         "\"fill_color\":0}}",
         "96x64 bicubic squash", ""},
        {"{\"preprocess_cfg\":{\"size\":64,\"interpolation\":\"bilinear\",\"resize_mode\":"
         "\"shortest\",\"mean\":[0,0,0],\"std\":[1,1,1]},\"model_cfg\":{\"vision_cfg\":"
         "{\"image_size\":32}}}",
         "32x32 bilinear shortest", ""},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char path[256], assumed[256], found[512];
        pnb_preprocess pp;
        pnb_error err = PNB_ERROR_INIT;
        put("preprocessor_config.json", cases[i].text, path);
        if (pnb_preprocess_load_noted(&pp, path, assumed, sizeof assumed, &err) != PNB_OK)
            fail_msg("case %zu: %s", i, err.text);
        pnb_preprocess_describe(&pp, found, sizeof found);
        if (strncmp(found, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("case %zu: %s, want %s", i, found, cases[i].want);
        assert_string_equal(assumed, cases[i].assumed);
    }
}

static void open_clip_form_is_read(void **state)
{
    (void)state;
    char path[256];
    pnb_preprocess pp;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", folder);
    unlink(path);
    put("open_clip_config.json",
        "{\"model_cfg\":{\"vision_cfg\":{\"image_size\":[192,160]}},\"preprocess_cfg\":{\"mean\":"
        "[0,0,0],\"std\":[1,1,1],\"interpolation\":\"bilinear\",\"resize_mode\":\"longest\","
        "\"fill_color\":[7,7,7]}}",
        path);
    assert_int_equal(pnb_preprocess_load(&pp, folder, NULL), PNB_OK);
    assert_int_equal(pp.height, 192);
    assert_int_equal(pp.width, 160);
    assert_int_equal(pp.mode, PNB_FIT_LONGEST);
    assert_int_equal(pp.fill, 7);
    assert_true(pp.resize_first);
    unlink(path);
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_preprocess_load(&pp, folder, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "open_clip_config.json"));
}

static void every_field_survives_saving(void **state)
{
    (void)state;
    char path[256], a[512], b[512];
    snprintf(path, sizeof path, "%s/preprocessor_config.json", folder);
    for (int i = 0; i < 3 * 6 * 2; i++) {
        pnb_preprocess pp = pnb_preprocess_default(), back;
        pp.mode = (pnb_fit)(i % 3);
        pp.filter = (pnb_filter)(i / 3 % 6);
        pp.centre = (pnb_centre)(i / 18);
        pp.width = 64 + i;
        pp.height = i % 2 ? 64 : 64 + i;
        pp.resize_to = i % 5 == 0 ? 100 : 0;
        pp.fill = i;
        pp.resize_first = i % 4 == 1;
        pp.mean[1] = 0.1f * (float)i;
        assert_int_equal(pnb_preprocess_save(&pp, path, NULL), PNB_OK);
        assert_int_equal(pnb_preprocess_load(&back, path, NULL), PNB_OK);
        pnb_preprocess_describe(&pp, a, sizeof a);
        pnb_preprocess_describe(&back, b, sizeof b);
        assert_string_equal(a, b);
        assert_true(memcmp(pp.mean, back.mean, sizeof pp.mean) == 0);
    }
}

/* What could not be read again is not written. */
static void bad_fields_are_not_saved(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/bad.json", folder);
    pnb_preprocess cases[8];
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        cases[i] = pnb_preprocess_default();
    cases[0].mode = (pnb_fit)9;
    cases[1].filter = (pnb_filter)9;
    cases[2].width = 0;
    cases[3].height = 16385;
    cases[4].resize_to = -1;
    cases[5].fill = 256;
    cases[6].mean[1] = 0.0F / 0.0F;
    cases[7].std[2] = 0;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb_preprocess_save(&cases[i], path, &err), PNB_ARG);
        assert_non_null(strstr(err.text, "preprocess"));
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void bad_configurations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pnb_status want;
        const char *says;
    } cases[] = {
        {"", PNB_FORMAT, "line"},
        {"[1]", PNB_FORMAT, "object"},
        {"{\"size\":224,", PNB_FORMAT, "line"},
        {"{\"size\":-3}", PNB_FORMAT, "size"},
        {"{\"size\":1e9}", PNB_FORMAT, "size"},
        {"{\"size\":{\"shortest_edge\":224},\"do_center_crop\":false}", PNB_UNSUPPORTED, "size"},
        {"{\"resample\":7}", PNB_UNSUPPORTED, "resample"},
        {"{\"image_processor_type\":\"CLIPImageProcessor\",\"size\":224,\"do_center_crop\":"
         "false}",
         PNB_UNSUPPORTED, "size"},
        {"{\"image_processor_type\":\"Siglip2ImageProcessor\",\"max_num_patches\":256}",
         PNB_UNSUPPORTED, "max_num_patches"},
        {"{\"preprocess_cfg\":{\"mode\":\"L\"}}", PNB_UNSUPPORTED, "mode"},
        {"{\"image_processor_type\":3}", PNB_FORMAT, "image_processor_type"},
        {"{\"do_resize\":false}", PNB_UNSUPPORTED, "do_resize"},
        {"{\"rescale_factor\":1.0}", PNB_UNSUPPORTED, "rescale_factor"},
        {"{\"image_mean\":[1,2]}", PNB_FORMAT, "image_mean"},
        {"{\"image_std\":[0,1,1]}", PNB_FORMAT, "std"},
        {"{\"penumbra\":{\"mode\":\"other\"}}", PNB_UNSUPPORTED, "other"},
        {"{\"preprocess_cfg\":{\"resize_mode\":\"x\"}}", PNB_UNSUPPORTED, "resize_mode"},
        {"{\"preprocess_cfg\":{\"size\":[1]}}", PNB_FORMAT, "size"},
        {"{\"preprocess_cfg\":{\"fill_color\":[1,2,3]}}", PNB_UNSUPPORTED, "fill_color"},
        {"{\"preprocess_cfg\":{\"fill_color\":[1,2,1]}}", PNB_UNSUPPORTED, "not a grey"},
        {"{\"preprocess_cfg\":{\"fill_color\":[1,1,2]}}", PNB_UNSUPPORTED, "not a grey"},
        {"{\"preprocess_cfg\":{\"fill_color\":256}}", PNB_FORMAT, "want 0..255"},
        {"{\"preprocess_cfg\":3}", PNB_FORMAT, "object"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char path[256];
        pnb_preprocess pp;
        pnb_error err = PNB_ERROR_INIT;
        put("preprocessor_config.json", cases[i].text, path);
        pnb_status status = pnb_preprocess_load(&pp, path, &err);
        if (status != cases[i].want || strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: %s \"%s\"", cases[i].text, pnb_status_name(status), err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hugging_face_forms_are_read),
        cmocka_unit_test(absent_keys_follow_the_class),
        cmocka_unit_test(open_clip_form_is_read),
        cmocka_unit_test(every_field_survives_saving),
        cmocka_unit_test(bad_fields_are_not_saved),
        cmocka_unit_test(bad_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
