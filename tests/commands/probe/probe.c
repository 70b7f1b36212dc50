/* A probe of a small model against pictures changed and encoded here. */
#include "commands/probe/probe.h"
#include "penumbra/image.h"
#include "penumbra/model.h"
#include "penumbra/tokenizer.h"
#include "tests/prob/support.h"
#include <unistd.h>

enum { SIDE = 64, N = 5, DIM = 16 };

static const char overrides[] =
    "{\"embed_dim\":16,\"vision_cfg\":{\"layers\":1,\"width\":32,\"head_width\":16,\"image_size\":"
    "64,\"patch_size\":16},\"text_cfg\":{\"layers\":1,\"width\":32,\"heads\":2,\"vocab_size\":40,"
    "\"context_length\":16}}";

typedef struct fixture {
    pnb__app app;
    char dir[64], model[128], texts[128];
    char image[N][128];
    unsigned char pixels[N][SIDE * SIDE * 3];
    pnb_preprocess pp;
} fixture;

static void write_images(fixture *f)
{
    pnb_image image = {0};
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 12);
    for (int i = 0; i < N; i++) {
        snprintf(f->image[i], sizeof f->image[i], "%s/%d.png", f->dir, i);
        assert_ok(pnb_image_create(&image, SIDE, SIDE, 3, err));
        for (int k = 0; k < SIDE * SIDE * 3; k++)
            image.pixels[k] = (unsigned char)pnb__rng_below(&rng, 256);
        memcpy(f->pixels[i], image.pixels, sizeof f->pixels[i]);
        assert_ok(pnb_image_save_png(&image, f->image[i], err));
        pnb_image_free(&image);
    }
}

static void write_model(fixture *f)
{
    static const char *const words[] = {"one two three four five", "six seven"};
    pnb_model *model = NULL;
    pnb_tokenizer *tokenizer = NULL;
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    char *json = NULL, path[192];
    assert_ok(pnb_model_config_merge("tiny", overrides, &json, err));
    assert_ok(pnb_model_init_json(&model, f->app.ctx, json, 5, err));
    pnb_text_free(json);
    assert_ok(pnb_model_save(model, f->model, err));
    pnb_model_free(model);
    opts.vocab_size = 40;
    assert_ok(pnb_tokenizer_train(&tokenizer, words, 2, &opts, err));
    assert_ok(pnb_tokenizer_save(tokenizer, f->model, err));
    pnb_tokenizer_free(tokenizer);
    f->pp = pnb_preprocess_default();
    f->pp.width = f->pp.height = SIDE;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", f->model);
    assert_ok(pnb_preprocess_save(&f->pp, path, err));
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    assert_non_null(f);
    strcpy(f->dir, "/tmp/pnb-probe-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->model, sizeof f->model, "%s/model", f->dir);
    snprintf(f->texts, sizeof f->texts, "%s/c.jsonl", f->dir);
    opts.n_threads = 1;
    f->app.log = stderr;
    f->app.common.quiet = true;
    assert_ok(pnb_ctx_create(&f->app.ctx, &opts, err));
    write_images(f);
    write_model(f);
    static const char lines[] = "{\"text\":\"one\",\"level\":0}\n"
                                "{\"text\":\"one two\",\"level\":1}\n"
                                "{\"text\":\"three four five\",\"level\":1}\n";
    assert_ok(pnb__write_file(f->texts, lines, sizeof lines - 1, err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    pnb_ctx_free(f->app.ctx);
    int failed = system(command);
    free(f);
    return failed;
}

typedef struct encoded {
    float mean[N * DIM], log_var[N * DIM];
    pnb_gaussians view;
} encoded;

static void encode(const fixture *f, unsigned char pixels[N][SIDE * SIDE * 3], encoded *out)
{
    pnb_model *model = NULL;
    size_t n_values = 3 * SIDE * SIDE;
    float *chw = malloc(N * n_values * sizeof *chw);
    const pnb_encode_out to = {.mean = out->mean, .log_var = out->log_var};
    assert_non_null(chw);
    for (int i = 0; i < N; i++) {
        const pnb_image image = {.width = SIDE, .height = SIDE, .channels = 3, .pixels = pixels[i]};
        assert_ok(pnb_image_to_chw(&image, f->pp.mean, f->pp.std, chw + (size_t)i * n_values, err));
    }
    assert_ok(pnb_model_load(&model, f->app.ctx, f->model, err));
    assert_ok(pnb_model_encode_image(model, chw, N, &to, err));
    pnb_model_free(model);
    free(chw);
    out->view = (pnb_gaussians){.n = N, .dim = DIM, .mean = out->mean, .log_var = out->log_var};
}

static double trace_of(const encoded *e)
{
    double sum = 0;
    for (int i = 0; i < N * DIM; i++)
        sum += exp((double)e->log_var[i]);
    return sum / N;
}

static double mean_h(pnb_measure measure, const encoded *a, const encoded *b)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += pnb_measure_pair(measure, &a->view, i, &b->view, i, NULL);
    return sum / N;
}

static double share_in(const encoded *a, const encoded *b, int shift)
{
    double n = 0;
    for (size_t i = 0; i < N; i++)
        n += pnb_measure_pair(PNB_MEASURE_INCLUSION, &a->view, i, &b->view, (i + (size_t)shift) % N,
                              NULL) > 0;
    return n / N;
}

static void run_probe(fixture *f, bool published, pnb__probe *out)
{
    const char *paths[N], *files[1] = {f->texts};
    for (int i = 0; i < N; i++)
        paths[i] = f->image[i];
    const pnb__text_list images = {paths, N}, texts = {files, 1};
    pnb__probe_cmd cmd = {.model = f->model,
                          .images = images,
                          .texts = texts,
                          .caption_key = "title",
                          .limit = 100,
                          .share = {0, 0.25, 1},
                          .n_shares = 3,
                          .erased = 0.25,
                          .n_bins = 3,
                          .published = published};
    if (pnb__probe_model(&f->app, &cmd, f->model, out) != PNB_OK)
        fail_msg("%s", f->app.err.text);
}

/* What a share of a quarter erases. */
static void erase_middle(const fixture *f, unsigned char changed[N][SIDE * SIDE * 3])
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SIDE * SIDE * 3; k++) {
            int x = k / 3 % SIDE, y = k / 3 / SIDE;
            bool inside = x >= 16 && x < 48 && y >= 16 && y < 48;
            changed[i][k] =
                inside ? (unsigned char)lround(255 * (double)f->pp.mean[k % 3]) : f->pixels[i][k];
        }
}

static void images_as_by_hand(void **state)
{
    fixture *f = *state;
    static unsigned char changed[N][SIDE * SIDE * 3];
    encoded whole, erased, grey, mixed;
    pnb__probe p;
    run_probe(f, false, &p);
    encode(f, f->pixels, &whole);
    erase_middle(f, changed);
    encode(f, changed, &erased);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SIDE * SIDE * 3; k++)
            changed[i][k] = (unsigned char)lround(255 * (double)f->pp.mean[k % 3]);
    encode(f, changed, &grey);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SIDE * SIDE * 3; k++)
            changed[i][k] = (unsigned char)((f->pixels[i][k] + f->pixels[(i + 1) % N][k] + 1) / 2);
    encode(f, changed, &mixed);

    assert_int_equal(p.images.n, N);
    assert_near(p.rates.trace, trace_of(&whole), 0, 1e-6);
    assert_near(p.images.trace[0], trace_of(&whole), 0, 1e-6);
    assert_near(p.images.trace[1], trace_of(&erased), 0, 1e-6);
    assert_near(p.images.trace[2], trace_of(&grey), 0, 1e-6);
    assert_true(p.images.included[0] == 0 && p.images.h[0] == 0);
    assert_near(p.images.included[1], share_in(&whole, &erased, 0), 1e-12, 0);
    assert_near(p.images.included[2], share_in(&whole, &grey, 0), 1e-12, 0);
    assert_near(p.rates.erased, share_in(&whole, &erased, 0), 1e-12, 0);
    assert_near(p.rates.other, share_in(&whole, &whole, 1), 1e-12, 0);
    assert_near(p.rates.blend.in_first, share_in(&mixed, &whole, 0), 1e-12, 0);
    assert_near(p.rates.blend.in_second, share_in(&mixed, &whole, 1), 1e-12, 0);
    assert_near(p.rates.blend_trace, trace_of(&mixed), 0, 1e-6);
}

/* KL(1||2) - KL(2||1) of row i and of the row `shift` after it */
static double kl_difference(const encoded *a, const encoded *b, size_t i, size_t shift)
{
    size_t j = (i + shift) % N;
    return pnb_measure_pair(PNB_MEASURE_KL, &a->view, i, &b->view, j, NULL) -
           pnb_measure_pair(PNB_MEASURE_KL, &b->view, j, &a->view, i, NULL);
}

/* Strangers are the next picture's erased copy. */
static void inclusion_against_kl(void **state)
{
    fixture *f = *state;
    static unsigned char changed[N][SIDE * SIDE * 3];
    encoded whole, erased;
    pnb__probe p;
    double n_kl = 0, area_h = 0, area_kl = 0;
    run_probe(f, false, &p);
    encode(f, f->pixels, &whole);
    erase_middle(f, changed);
    encode(f, changed, &erased);
    for (size_t i = 0; i < N; i++) {
        double d = kl_difference(&whole, &erased, i, 0);
        double h = pnb_measure_pair(PNB_MEASURE_INCLUSION, &whole.view, i, &erased.view, i, NULL);
        n_kl += d < 0;
        for (size_t j = 0; j < N; j++) {
            area_h += h > pnb_measure_pair(PNB_MEASURE_INCLUSION, &whole.view, j, &erased.view,
                                           (j + 1) % N, NULL);
            area_kl += d < kl_difference(&whole, &erased, j, 1);
        }
    }
    const pnb_inclusion_contest *c = &p.rates.by_erased;
    assert_int_equal(c->n, N);
    assert_near(c->by_h, share_in(&whole, &erased, 0), 1e-12, 0);
    assert_near(c->by_kl, n_kl / N, 1e-12, 0);
    assert_near(c->h_auroc, area_h / (N * N), 1e-12, 0);
    assert_near(c->kl_auroc, area_kl / (N * N), 1e-12, 0);
    assert_near(c->h_mean, mean_h(PNB_MEASURE_INCLUSION, &whole, &erased), 0, 1e-5);
    assert_int_equal(p.rates.by_half.n, 3);
}

static void inclusion_exact_or_published(void **state)
{
    fixture *f = *state;
    static unsigned char changed[N][SIDE * SIDE * 3];
    encoded whole, erased;
    pnb__probe exact, published;
    run_probe(f, false, &exact);
    run_probe(f, true, &published);
    encode(f, f->pixels, &whole);
    erase_middle(f, changed);
    encode(f, changed, &erased);
    double one = mean_h(PNB_MEASURE_INCLUSION, &whole, &erased);
    double other = mean_h(PNB_MEASURE_INCLUSION_PUBLISHED, &whole, &erased);
    assert_near(exact.images.h[1], one, 0, 1e-5);
    assert_near(published.images.h[1], other, 0, 1e-5);
    assert_true(fabs(one - other) > 1e-3 * fabs(one));
}

static void texts_by_level_and_length(void **state)
{
    fixture *f = *state;
    pnb__probe p;
    run_probe(f, false, &p);
    assert_int_equal(p.n_levels, 2);
    assert_true(p.level_n[0] == 1 && p.level_n[1] == 2);
    assert_int_equal(p.n_words, 3);
    assert_true(p.words[0].low == 1 && p.words[2].high == 3 && p.words[2].n == 1);
    assert_near(p.words[0].mean, p.level_mean[0], 1e-12, 0); /* the one word is all of level 0 */
    assert_near(p.words[1].mean + p.words[2].mean, 2 * p.level_mean[1], 1e-12, 0);
    assert_int_equal(p.texts.n, 3);
    assert_true(p.texts.included[0] == 0 && p.texts.h[0] == 0);
    assert_true(isfinite(p.texts.trace[2]) && isfinite(p.words_rho));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_as_by_hand),
                                       cmocka_unit_test(inclusion_against_kl),
                                       cmocka_unit_test(inclusion_exact_or_published),
                                       cmocka_unit_test(texts_by_level_and_length)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
