/* Attribution against embeddings of the parts made one by one, and the changed copies themselves.
 */
#include "commands/explain/explain.h"
#include "commands/common/encode_use.h"
#include "penumbra/model.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "tests/prob/support.h"
#include <unistd.h>

typedef struct fixture {
    pnb__app app;
    pnb_encoder encoder;
} fixture;

static const char overrides[] =
    "{\"embed_dim\":16,\"vision_cfg\":{\"layers\":1,\"width\":32,\"head_width\":16,\"image_size\":"
    "64,\"patch_size\":16},\"text_cfg\":{\"layers\":1,\"width\":32,\"heads\":2,\"vocab_size\":40,"
    "\"context_length\":16}}";

static int set_up(void **state)
{
    static const char *const texts[] = {"a red star above a blue ring", "two green bars"};
    fixture *f = calloc(1, sizeof *f);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_tokenizer_opts words = pnb_tokenizer_opts_default();
    char *json = NULL;
    assert_non_null(f);
    opts.n_threads = 1;
    f->app.log = stderr;
    f->app.common.quiet = true;
    assert_ok(pnb_ctx_create(&f->app.ctx, &opts, err));
    assert_ok(pnb_model_config_merge("tiny", overrides, &json, err));
    assert_ok(pnb_model_init_json(&f->encoder.model, f->app.ctx, json, 5, err));
    pnb_text_free(json);
    words.vocab_size = 40;
    assert_ok(pnb_tokenizer_train(&f->encoder.tokenizer, texts, 2, &words, err));
    f->encoder.info = pnb_model_get_info(f->encoder.model);
    f->encoder.preprocess = pnb_preprocess_default();
    f->encoder.preprocess.width = f->encoder.preprocess.height = 64;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    pnb__encoder_reset(&f->encoder);
    pnb_ctx_free(f->app.ctx);
    free(f);
    return 0;
}

static double trace_of(fixture *f, const char *sentence)
{
    pnb__text_inputs one = {0};
    pnb_embeddings *set = NULL;
    pnb_view view;
    double trace = 0;
    assert_ok(pnb__text_inputs_add_text(&one, sentence, err));
    assert_int_equal(pnb__embed_texts(&f->app, &f->encoder, &one, &set), PNB_OK);
    assert_ok(pnb_view_init(&view, set, err));
    assert_ok(pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &view.rows, &trace, err));
    pnb_view_reset(&view);
    pnb_embeddings_free(set);
    pnb__text_inputs_reset(&one);
    return trace;
}

/* KL(whole||left) - KL(left||whole) of two sentences, and H by the way. */
static double kl_of(fixture *f, const char *whole, const char *left, double *h)
{
    pnb__text_inputs both = {0};
    pnb_embeddings *set = NULL;
    pnb_view view;
    assert_ok(pnb__text_inputs_add_text(&both, whole, err));
    assert_ok(pnb__text_inputs_add_text(&both, left, err));
    assert_int_equal(pnb__embed_texts(&f->app, &f->encoder, &both, &set), PNB_OK);
    assert_ok(pnb_view_init(&view, set, err));
    const pnb_rows *r = &view.rows;
    *h = pnb_measure_pair(PNB_MEASURE_INCLUSION, r, 0, r, 1, NULL);
    double kl = pnb_measure_pair(PNB_MEASURE_KL, r, 0, r, 1, NULL) -
                pnb_measure_pair(PNB_MEASURE_KL, r, 1, r, 0, NULL);
    pnb_view_reset(&view);
    pnb_embeddings_free(set);
    pnb__text_inputs_reset(&both);
    return kl;
}

static void words_left_out(void **state)
{
    fixture *f = *state;
    static const char *const left[] = {"red star above ring", "a star above ring",
                                       "a red above ring", "a red star ring", "a red star above"};
    pnb__explained e;
    assert_int_equal(pnb__explain_text(&f->app, &f->encoder, "  a red\tstar above  ring ", &e),
                     PNB_OK);
    assert_int_equal(e.n, 5);
    assert_string_equal(e.word[2], "star");
    assert_near(e.trace, trace_of(f, "a red star above ring"), 0, 1e-5);
    for (size_t i = 0; i < e.n; i++) {
        assert_near(e.without[i], trace_of(f, left[i]), 0, 1e-5);
        assert_near(e.removed[i], e.without[i] - e.trace, 1e-15, 0);
        double h, kl = kl_of(f, "a red star above ring", left[i], &h);
        assert_near(e.h[i], h, 1e-5, 1e-3);
        assert_near(e.kl[i], kl, 1e-5, 1e-3);
    }
    pnb__explained_reset(&e);
    assert_int_equal(pnb__explain_text(&f->app, &f->encoder, " \t", &e), PNB_FORMAT);
    assert_non_null(strstr(f->app.err.text, "has no words"));
    pnb_error_reset(&f->app.err);
    pnb__explained_reset(&e);
}

static pnb_image random_image(int side)
{
    pnb_image image = {0};
    pnb__rng rng;
    assert_ok(pnb_image_create(&image, side, side, 3, err));
    pnb__rng_init(&rng, 3, 4);
    for (int i = 0; i < 3 * side * side; i++)
        image.pixels[i] = (unsigned char)pnb__rng_below(&rng, 256);
    return image;
}

/* The trace of a picture whose patches outside [x0,x1) x [y0,y1) cells are kept. */
static double trace_without(fixture *f, const pnb_image *image, int cell, int column, int row)
{
    const pnb_preprocess *pp = &f->encoder.preprocess;
    float *chw = malloc(3 * 64 * 64 * sizeof *chw), mean[16], log_var[16];
    int32_t kept[16];
    size_t n = 0;
    double trace = 0;
    const pnb_encode_out out = {.mean = mean, .log_var = log_var};
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            if (x < column * cell || x >= (column + 1) * cell || y < row * cell ||
                y >= (row + 1) * cell)
                kept[n++] = y * 4 + x;
    assert_ok(pnb_image_to_chw(image, pp->mean, pp->std, chw, err));
    assert_ok(pnb_model_encode_image_kept(f->encoder.model, chw, 1, kept, n, &out, err));
    for (int d = 0; d < 16; d++)
        trace += exp((double)log_var[d]);
    free(chw);
    return trace;
}

static void patches_left_out(void **state)
{
    fixture *f = *state;
    pnb_image image = random_image(64);
    for (int cell = 1; cell <= 3; cell++) {
        pnb__explain_cmd cmd = {.cell = cell};
        pnb__explained e;
        int side = (4 + cell - 1) / cell;
        assert_int_equal(pnb__explain_image(&f->app, &f->encoder, &image, &cmd, &e), PNB_OK);
        assert_true(e.columns == side && e.rows == side && e.n == (size_t)(side * side));
        for (int i = 0; i < side * side; i++)
            assert_near(e.without[i], trace_without(f, &image, cell, i % side, i / side), 0, 1e-5);
        pnb__explained_reset(&e);
    }
    pnb__explain_cmd all = {.cell = 4};
    pnb__explained e;
    assert_int_equal(pnb__explain_image(&f->app, &f->encoder, &image, &all, &e), PNB_ARG);
    pnb_error_reset(&f->app.err);
    pnb__explained_reset(&e);
    pnb_image_free(&image);
}

/* Filling a cell that has the filling's colour already changes nothing; another one does. */
static void patches_filled(void **state)
{
    fixture *f = *state;
    pnb_image image = random_image(64);
    pnb__explain_cmd cmd = {.cell = 2, .removal = PNB__PATCH_GREY};
    unsigned char rgb[3];
    const int box[4] = {32, 0, 64, 32};
    pnb__explained e;
    pnb__fill_colour(&f->encoder.preprocess, rgb);
    pnb__erase_rect(&image, box, rgb);
    assert_int_equal(pnb__explain_image(&f->app, &f->encoder, &image, &cmd, &e), PNB_OK);
    assert_int_equal(e.n, 4);
    assert_near(e.removed[1], 0, 1e-6 * e.trace, 0);
    assert_true(fabs(e.removed[0]) > 1e-6 * e.trace && fabs(e.removed[3]) > 1e-6 * e.trace);
    pnb__explained_reset(&e);
    pnb_image_free(&image);
}

/* ---- changed copies ---- */

static size_t n_of(const pnb_image *image, const unsigned char rgb[3])
{
    size_t n = 0;
    for (int i = 0; i < image->width * image->height; i++)
        n += memcmp(image->pixels + 3 * i, rgb, 3) == 0;
    return n;
}

static void erased_share(void **state)
{
    (void)state;
    static const unsigned char rgb[3] = {1, 2, 3};
    static const double middle[2] = {0.5, 0.5}, corner[2] = {1, 1};
    pnb_image image = {0};
    for (int percent = 0; percent <= 100; percent += 25) {
        assert_ok(pnb_image_create(&image, 64, 32, 3, err));
        pnb__erase_share(&image, percent / 100.0, middle, rgb);
        assert_near((double)n_of(&image, rgb), 64 * 32 * percent / 100.0, 64, 0);
        pnb_image_free(&image);
    }
    assert_ok(pnb_image_create(&image, 64, 32, 3, err));
    pnb__erase_share(&image, 0.25, corner, rgb);
    assert_int_equal(n_of(&image, rgb), 32 * 16);
    assert_memory_equal(image.pixels + 3 * (64 * 32 - 1), rgb, 3); /* the last pixel is in it */
    pnb_image_free(&image);
}

static void mixed_copies(void **state)
{
    (void)state;
    pnb_image a = {0}, b = {0}, out = {0};
    assert_ok(pnb_image_create(&a, 5, 2, 3, err));
    assert_ok(pnb_image_create(&b, 5, 2, 3, err));
    assert_ok(pnb_image_create(&out, 5, 2, 3, err));
    memset(a.pixels, 10, 30);
    memset(b.pixels, 255, 30);
    pnb__mix_blend(&a, &b, &out);
    assert_int_equal(out.pixels[0], 133);
    pnb__mix_halves(&a, &b, &out);
    assert_true(out.pixels[5] == 10 && out.pixels[6] == 255 && out.pixels[15] == 10 &&
                out.pixels[29] == 255);
    pnb_image_free(&a);
    pnb_image_free(&b);
    pnb_image_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_left_out), cmocka_unit_test(patches_left_out),
        cmocka_unit_test(patches_filled), cmocka_unit_test(erased_share),
        cmocka_unit_test(mixed_copies)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
