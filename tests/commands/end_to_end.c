/* Picture files and captions through the whole of `penumbra embed`, beside what a pipeline of
 * Pillow, sentencepiece and float64 PyTorch made of them (bench/end_to_end.py --freeze and
 * bench/peers/padding_case.py). The model folders are as ProLIP's are released, preprocessing is
 * assumed; those of the padding case have tokenizer.json alone, whose padding is null, and captions
 * of 0 to 30 tokens for a context of 24. Bounds: 1e-4 in cosine distance, 1e-3 of every variance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "commands/common/encode_use.h"
#include "penumbra/safetensors.h"

#define DATA PNB_SOURCE_DIR "/tests/commands/data/end_to_end/"
#define PADDING PNB_SOURCE_DIR "/tests/commands/data/padding/"
#define MAX_COSINE_DISTANCE 1e-4
#define MAX_VARIANCE_ERROR 1e-3

enum { N_INPUTS = 6, N_PADDING = 38, MAX_INPUTS = 64, WIDTH = 32 };

static char folder[64];
static FILE *log_file;
static pnb__app app;

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pnb-end-to-end-XXXXXX");
    log_file = tmpfile();
    app = (pnb__app){.common = {.quiet = true}, .in = stdin, .out = log_file, .log = log_file};
    return mkdtemp(folder) == NULL || log_file == NULL ||
           pnb_ctx_create(&app.ctx, NULL, NULL) != PNB_OK;
}

static int teardown(void **state)
{
    (void)state;
    pnb_ctx_free(app.ctx);
    fclose(log_file);
    return rmdir(folder);
}

/* Embeds the case's pictures (`texts_file` NULL) or captions into a file and reads that. */
static pnb_embeddings *embed_file(pnb_encoder *encoder, const char *texts_file, size_t n)
{
    bool is_text = texts_file != NULL;
    char out[96], ids[112];
    snprintf(out, sizeof out, "%s/out.safetensors", folder);
    snprintf(ids, sizeof ids, "%s/out.ids.jsonl", folder);
    static const char *const names = DATA "pictures/*";
    pnb__image_inputs *images = NULL;
    pnb__text_inputs texts = {0};
    pnb_encode_result result = {0};
    pnb_embeddings *set = NULL;
    pnb_encode_opts opts = pnb_encode_opts_default();
    const pnb_encode_file to = {.out = out, .save_every = 100};
    opts.batch_size = 4;
    pnb_status status = is_text ? pnb__text_inputs_add(&texts, texts_file, "title", stdin, &app.err)
                                : pnb__image_inputs_open(&images, &names, 1, stdin, &app.err);
    if (status == PNB_OK) {
        const pnb__embed_source source =
            is_text ? pnb__text_inputs_source(&texts) : pnb__image_inputs_source(images);
        status = pnb__embed_file(encoder, &source, &opts, &to, &result, &app.err);
    }
    if (status == PNB_OK)
        status = pnb_embeddings_load(&set, out, &app.err);
    if (status != PNB_OK)
        fail_msg("%s", app.err.text);
    assert_int_equal(set->n, n);
    assert_int_equal(set->dim, WIDTH);
    unlink(out);
    unlink(ids);
    pnb__text_inputs_reset(&texts);
    pnb__image_inputs_free(images);
    return set;
}

static pnb_embeddings *embed(pnb_encoder *encoder, bool is_text)
{
    return embed_file(encoder, is_text ? DATA "captions.jsonl" : NULL, N_INPUTS);
}

static void read_expected(const char *path, size_t n, double *mean, double *log_var)
{
    pnb_safetensors *file = NULL;
    assert_int_equal(pnb_safetensors_open(&file, path, NULL), PNB_OK);
    const pnb_array_view *m = pnb_safetensors_find(file, "mean");
    const pnb_array_view *v = pnb_safetensors_find(file, "log_var");
    assert_int_equal(pnb_array_size(m), n * WIDTH);
    assert_int_equal(pnb_array_to_f64(m, mean, NULL), PNB_OK);
    assert_true((v != NULL) == (log_var != NULL));
    if (v != NULL) {
        assert_int_equal(pnb_array_size(v), n * WIDTH);
        assert_int_equal(pnb_array_to_f64(v, log_var, NULL), PNB_OK);
    }
    pnb_safetensors_free(file);
}

typedef struct worst {
    double cosine_distance, variance_error;
} worst;

static worst compare(const pnb_embeddings *set, const char *path)
{
    double mean[MAX_INPUTS * WIDTH], log_var[MAX_INPUTS * WIDTH];
    worst w = {0, 0};
    assert_true(set->n <= MAX_INPUTS);
    read_expected(path, set->n, mean, set->log_var != NULL ? log_var : NULL);
    for (size_t i = 0; i < set->n; i++) {
        double dot = 0, a2 = 0, b2 = 0;
        for (size_t d = 0; d < WIDTH; d++) {
            double a = (double)set->mean[i * WIDTH + d], b = mean[i * WIDTH + d];
            double error =
                set->log_var != NULL
                    ? fabs(expm1((double)set->log_var[i * WIDTH + d] - log_var[i * WIDTH + d]))
                    : 0;
            dot += a * b;
            a2 += a * a;
            b2 += b * b;
            w.variance_error = fmax(w.variance_error, error);
        }
        assert_true(isfinite(dot / sqrt(a2 * b2)));
        w.cosine_distance = fmax(w.cosine_distance, 1 - dot / sqrt(a2 * b2));
    }
    return w;
}

static void open_model(pnb_encoder *encoder, const char *dir, int use)
{
    const pnb_encoder_opts parts = {.sides = use};
    if (pnb__encoder_init(encoder, app.ctx, dir, &parts, &app.err) != PNB_OK)
        fail_msg("%s", app.err.text);
}

static void open_parts(pnb_encoder *encoder, int use)
{
    open_model(encoder, DATA "model", use);
}

static void assert_within(worst w)
{
    if (!(w.cosine_distance <= MAX_COSINE_DISTANCE && w.variance_error <= MAX_VARIANCE_ERROR))
        fail_msg("cosine distance %g, variance off by %g", w.cosine_distance, w.variance_error);
}

static void images_agree(void **state)
{
    (void)state;
    pnb_encoder encoder;
    open_parts(&encoder, PNB_ENCODE_IMAGES);
    assert_non_null(strstr(encoder.assumed, "does not say how pictures are prepared"));
    pnb_embeddings *set = embed(&encoder, false);
    assert_within(compare(set, DATA "pictures.safetensors"));
    pnb_embeddings_free(set);
    pnb__encoder_reset(&encoder);
}

/* What people get wrong is not small: the bound finds it. */
static void wrong_preparation_is_far_off(void **state)
{
    (void)state;
    pnb_encoder encoder;
    open_parts(&encoder, PNB_ENCODE_IMAGES);
    const pnb_preprocess right = encoder.preprocess;
    for (int fault = 0; fault < 4; fault++) {
        encoder.preprocess = right;
        if (fault == 0)
            encoder.preprocess.filter = PNB_FILTER_BILINEAR;
        else if (fault == 1)
            encoder.preprocess.mode = PNB_FIT_SQUASH;
        else if (fault == 2)
            encoder.preprocess.resize_first = true;
        else
            encoder.preprocess.mean[0] += 0.01F;
        pnb_embeddings *set = embed(&encoder, false);
        worst w = compare(set, DATA "pictures.safetensors");
        if (w.cosine_distance <= MAX_COSINE_DISTANCE && w.variance_error <= MAX_VARIANCE_ERROR)
            fail_msg("fault %d goes unnoticed", fault);
        pnb_embeddings_free(set);
    }
    pnb__encoder_reset(&encoder);
}

static void texts_agree(void **state)
{
    (void)state;
    pnb_encoder encoder;
    open_parts(&encoder, PNB_ENCODE_TEXTS);
    pnb_embeddings *set = embed(&encoder, true);
    assert_within(compare(set, DATA "captions.safetensors"));
    pnb_embeddings_free(set);
    pnb_tokenizer_set_clean(encoder.tokenizer, PNB_CLEAN_NONE);
    set = embed(&encoder, true);
    worst w = compare(set, DATA "captions.safetensors");
    assert_true(w.cosine_distance > MAX_COSINE_DISTANCE);
    pnb_embeddings_free(set);
    pnb__encoder_reset(&encoder);
}

/* Padding is attended to, and the file does not say what pads: the released models' end token. */
static void unsaid_padding_is_the_end_token(void **state)
{
    (void)state;
    static const char *const dirs[] = {PADDING "prolip", PADDING "siglip"};
    for (size_t i = 0; i < 2; i++) {
        char texts[512], expected[512];
        pnb_encoder encoder;
        snprintf(texts, sizeof texts, "%s/captions.jsonl", dirs[i]);
        snprintf(expected, sizeof expected, "%s/expected.safetensors", dirs[i]);
        open_model(&encoder, dirs[i], PNB_ENCODE_TEXTS);
        pnb_padding pad = pnb_tokenizer_padding(encoder.tokenizer);
        assert_int_equal(pad.id, 1);
        assert_true(pad.assumed);
        assert_non_null(strstr(encoder.assumed_texts, "no file says what pads captions"));
        pnb_embeddings *set = embed_file(&encoder, texts, N_PADDING);
        assert_non_null(strstr(set->info.preprocess, "pad 1"));
        assert_within(compare(set, expected));
        pnb_embeddings_free(set);
        assert_int_equal(pnb_tokenizer_set_pad_id(encoder.tokenizer, 0, NULL), PNB_OK);
        set = embed_file(&encoder, texts, N_PADDING);
        assert_true(compare(set, expected).cosine_distance > 0.1);
        pnb_embeddings_free(set);
        pnb__encoder_reset(&encoder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_agree),
        cmocka_unit_test(wrong_preparation_is_far_off),
        cmocka_unit_test(texts_agree),
        cmocka_unit_test(unsaid_padding_is_the_end_token),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
