/* Crops, PNG round trips, and preprocessing configurations in each form they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/image.h"

static char folder[] = "/tmp/pnb_preprocess_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"preprocessor_config.json", "open_clip_config.json",
                                        "a.png"};
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

static void crop_pads_with_fill(void **state)
{
    (void)state;
    pnb_image in, out;
    assert_int_equal(pnb_image_create(&in, 3, 2, 1, NULL), PNB_OK);
    for (int i = 0; i < 6; i++)
        in.pixels[i] = (unsigned char)(i + 1);
    assert_int_equal(pnb_image_crop(&out, &in, -1, 1, 5, 2, 9, NULL), PNB_OK);
    static const unsigned char want[] = {9, 4, 5, 6, 9, 9, 9, 9, 9, 9};
    assert_memory_equal(out.pixels, want, sizeof want);
    pnb_image_free(&out);
    assert_int_equal(pnb_image_crop(&out, &in, INT32_MAX, INT32_MIN, 2, 1, 7, NULL), PNB_OK);
    assert_int_equal(out.pixels[0], 7);
    pnb_image_free(&out);
    pnb_image_free(&in);
}

/* The fill is the grey, not both of its bytes: at 16 bits 0x8080 would show as white. */
static void crop_pads_grey16_with_fill(void **state)
{
    (void)state;
    pnb_image in, out, rgb;
    assert_int_equal(pnb_image_create(&in, 1, 1, 2, NULL), PNB_OK);
    in.mode = PNB_IMAGE_GREY16;
    assert_int_equal(pnb_image_crop(&out, &in, 0, 0, 2, 1, 128, NULL), PNB_OK);
    assert_int_equal(pnb_image_to_rgb(&rgb, &out, NULL), PNB_OK);
    static const unsigned char want[] = {0, 0, 0, 128, 128, 128};
    assert_memory_equal(rgb.pixels, want, sizeof want);
    pnb_image_free(&rgb);
    pnb_image_free(&out);
    pnb_image_free(&in);
}

static void png_round_trip_is_exact(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        pnb_image in, out;
        unsigned char *bytes, *again;
        size_t n, n_again;
        pnb_image_opts opts = pnb_image_opts_default();
        opts.native = true;
        assert_int_equal(pnb_image_create(&in, 17, 11, channels, NULL), PNB_OK);
        size_t n_pixels = (size_t)(17 * 11 * channels);
        for (size_t i = 0; i < n_pixels; i++)
            in.pixels[i] = (unsigned char)(i * i * 31 + i);
        assert_int_equal(pnb_image_encode_png(&in, &bytes, &n, NULL), PNB_OK);
        assert_int_equal(pnb_image_encode_png(&in, &again, &n_again, NULL), PNB_OK);
        assert_int_equal(n, n_again);
        assert_memory_equal(bytes, again, n);
        assert_int_equal(pnb_image_decode(&out, bytes, n, &opts, NULL), PNB_OK);
        assert_int_equal(out.channels, channels);
        assert_memory_equal(in.pixels, out.pixels, n_pixels);
        pnb_image_bytes_free(bytes);
        pnb_image_bytes_free(again);
        pnb_image_free(&in);
        pnb_image_free(&out);
    }
}

static void png_file_appears_or_not(void **state)
{
    (void)state;
    char path[256];
    pnb_image in, out;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_image_create(&in, 2, 2, 3, NULL), PNB_OK);
    snprintf(path, sizeof path, "%s/a.png", folder);
    assert_int_equal(pnb_image_save_png(&in, path, &err), PNB_OK);
    assert_int_equal(pnb_image_load(&out, path, NULL, &err), PNB_OK);
    pnb_image_free(&out);
    assert_int_not_equal(pnb_image_save_png(&in, "/nonexistent/a.png", &err), PNB_OK);
    assert_non_null(strstr(err.text, "a.png"));
    in.mode = PNB_IMAGE_BILEVEL;
    assert_int_equal(pnb_image_save_png(&in, path, NULL), PNB_ARG);
    pnb_image_free(&in);
}

static void alpha_is_kept_when_asked(void **state)
{
    (void)state;
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.keep_alpha = true;
    static const char *const with[] = {"rgba8.png", "la16.png", "pal4_i.png", "alpha.webp"};
    for (size_t i = 0; i < PNB_COUNT(with); i++) {
        char path[512];
        snprintf(path, sizeof path, PNB_SOURCE_DIR "/tests/io/data/image/%s", with[i]);
        assert_int_equal(pnb_image_load(&image, path, &opts, NULL), PNB_OK);
        assert_int_equal(image.channels, 4);
        bool has_partial = false;
        for (int k = 0; k < image.width * image.height; k++)
            has_partial |= image.pixels[4 * k + 3] != 255;
        assert_true(has_partial);
        pnb_image_free(&image);
    }
    assert_int_equal(
        pnb_image_load(&image, PNB_SOURCE_DIR "/tests/io/data/image/rgb8.png", &opts, NULL),
        PNB_OK);
    assert_int_equal(image.channels, 3);
    pnb_image_free(&image);
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

/* Pillow 9.4 opens 16-bit grey in mode "I" and clips to 8 bits only when it converts: what
 * Image.resize((20, 12), filter).convert("RGB") makes of data/image/grey16_edges.png. */
static void grey16_is_resized_before_it_saturates(void **state)
{
    (void)state;
    static const char *const names[] = {"bilinear", "bicubic", "lanczos", "box", "hamming"};
    static const pnb_filter filters[] = {PNB_FILTER_BILINEAR, PNB_FILTER_BICUBIC,
                                         PNB_FILTER_LANCZOS, PNB_FILTER_BOX, PNB_FILTER_HAMMING};
    pnb_image in, want, got;
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_preprocess pp = pnb_preprocess_default();
    opts.native = pp.resize_first = true;
    pp.mode = PNB_FIT_SQUASH;
    pp.width = 20;
    pp.height = 12;
#define IMAGES PNB_SOURCE_DIR "/tests/io/data/image/"
    assert_int_equal(pnb_image_load(&in, IMAGES "grey16_edges.png", &opts, NULL), PNB_OK);
    assert_int_equal(in.mode, PNB_IMAGE_GREY16);
    for (size_t i = 0; i < PNB_COUNT(filters); i++) {
        char path[512];
        snprintf(path, sizeof path, IMAGES "grey16_edges_%s.png", names[i]);
        assert_int_equal(pnb_image_load(&want, path, NULL, NULL), PNB_OK);
        pp.filter = filters[i];
        assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_OK);
        assert_memory_equal(got.pixels, want.pixels, 3 * 20 * 12);
        pnb_image_free(&got);
        pp.resize_first = false;
        assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_OK);
        assert_memory_not_equal(got.pixels, want.pixels, 3 * 20 * 12);
        pnb_image_free(&got);
        pp.resize_first = true;
        pnb_image_free(&want);
    }
    in.channels = 1;
    assert_int_equal(pnb_preprocess_pixels(&pp, &in, &got, NULL), PNB_ARG);
    pnb_image_free(&in);
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
        cmocka_unit_test(crop_pads_with_fill),
        cmocka_unit_test(crop_pads_grey16_with_fill),
        cmocka_unit_test(png_round_trip_is_exact),
        cmocka_unit_test(png_file_appears_or_not),
        cmocka_unit_test(alpha_is_kept_when_asked),
        cmocka_unit_test(hugging_face_forms_are_read),
        cmocka_unit_test(absent_keys_follow_the_class),
        cmocka_unit_test(grey16_is_resized_before_it_saturates),
        cmocka_unit_test(open_clip_form_is_read),
        cmocka_unit_test(every_field_survives_saving),
        cmocka_unit_test(bad_fields_are_not_saved),
        cmocka_unit_test(bad_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
