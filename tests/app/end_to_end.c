/* Picture files and captions through the whole of `penumbra embed`, beside what a pipeline of
 * Pillow, sentencepiece and float64 PyTorch made of them (bench/end_to_end.py --freeze). The model
 * folder is as ProLIP's are released: preprocessing is assumed. Bounds: 1e-4 in cosine distance,
 * 1e-3 of every variance. */
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

#include "app/embed_job.h"
#include "penumbra/safetensors.h"

#define DATA PNB_SOURCE_DIR "/tests/app/data/end_to_end/"
#define MAX_COSINE_DISTANCE 1e-4
#define MAX_VARIANCE_ERROR 1e-3

enum { N_INPUTS = 6, WIDTH = 32 };

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

/* Embeds the pictures or the captions of the case into a file and reads that. */
static pnb_embeddings *embed(pnb__embedder *encoder, bool is_text)
{
    char out[96], ids[112];
    snprintf(out, sizeof out, "%s/out.safetensors", folder);
    snprintf(ids, sizeof ids, "%s/out.ids.jsonl", folder);
    static const char *const names = DATA "pictures/*";
    pnb__pictures *pictures = NULL;
    pnb__captions captions = {0};
    pnb__embed_result result = {0};
    pnb_embeddings *set = NULL;
    const pnb__embed_opts opts = {.out = out, .batch_size = 4, .save_every = 100};
    pnb_status status =
        is_text ? pnb__captions_add(&captions, DATA "captions.jsonl", "title", stdin, &app.err)
                : pnb__pictures_open(&pictures, &names, 1, stdin, &app.err);
    if (status == PNB_OK)
        status =
            pnb__embed_run(&app, encoder, pictures, is_text ? &captions : NULL, &opts, &result);
    if (status == PNB_OK)
        status = pnb_embeddings_load(&set, out, &app.err);
    if (status != PNB_OK)
        fail_msg("%s", app.err.text);
    assert_int_equal(set->n, N_INPUTS);
    assert_int_equal(set->dim, WIDTH);
    unlink(out);
    unlink(ids);
    pnb__captions_reset(&captions);
    pnb__pictures_free(pictures);
    return set;
}

static void read_expected(const char *path, double mean[N_INPUTS * WIDTH],
                          double log_var[N_INPUTS * WIDTH])
{
    pnb_safetensors *file = NULL;
    assert_int_equal(pnb_safetensors_open(&file, path, NULL), PNB_OK);
    const pnb_array_view *m = pnb_safetensors_find(file, "mean");
    const pnb_array_view *v = pnb_safetensors_find(file, "log_var");
    assert_int_equal(pnb_array_size(m), N_INPUTS * WIDTH);
    assert_int_equal(pnb_array_size(v), N_INPUTS * WIDTH);
    assert_int_equal(pnb_array_to_f64(m, mean, NULL), PNB_OK);
    assert_int_equal(pnb_array_to_f64(v, log_var, NULL), PNB_OK);
    pnb_safetensors_free(file);
}

typedef struct worst {
    double cosine_distance, variance_error;
} worst;

static worst compare(const pnb_embeddings *set, const char *path)
{
    double mean[N_INPUTS * WIDTH], log_var[N_INPUTS * WIDTH];
    worst w = {0, 0};
    read_expected(path, mean, log_var);
    for (size_t i = 0; i < N_INPUTS; i++) {
        double dot = 0, a2 = 0, b2 = 0;
        for (size_t d = 0; d < WIDTH; d++) {
            double a = (double)set->mean[i * WIDTH + d], b = mean[i * WIDTH + d];
            double error =
                fabs(expm1((double)set->log_var[i * WIDTH + d] - log_var[i * WIDTH + d]));
            dot += a * b;
            a2 += a * a;
            b2 += b * b;
            w.variance_error = fmax(w.variance_error, error);
        }
        w.cosine_distance = fmax(w.cosine_distance, 1 - dot / sqrt(a2 * b2));
    }
    return w;
}

static void open_parts(pnb__embedder *encoder, int use)
{
    const pnb__embedder_parts parts = {.use = use};
    if (pnb__embedder_open(encoder, app.ctx, DATA "model", &parts, &app.err) != PNB_OK)
        fail_msg("%s", app.err.text);
}

static void assert_within(worst w)
{
    if (!(w.cosine_distance <= MAX_COSINE_DISTANCE && w.variance_error <= MAX_VARIANCE_ERROR))
        fail_msg("cosine distance %g, variance off by %g", w.cosine_distance, w.variance_error);
}

static void pictures_agree(void **state)
{
    (void)state;
    pnb__embedder encoder;
    open_parts(&encoder, PNB__USE_PICTURES);
    assert_non_null(strstr(encoder.assumed, "does not say how pictures are prepared"));
    pnb_embeddings *set = embed(&encoder, false);
    assert_within(compare(set, DATA "pictures.safetensors"));
    pnb_embeddings_free(set);
    pnb__embedder_close(&encoder);
}

/* What people get wrong is not small: the bound finds it. */
static void wrong_preparation_is_far_off(void **state)
{
    (void)state;
    pnb__embedder encoder;
    open_parts(&encoder, PNB__USE_PICTURES);
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
    pnb__embedder_close(&encoder);
}

static void captions_agree(void **state)
{
    (void)state;
    pnb__embedder encoder;
    open_parts(&encoder, PNB__USE_TEXTS);
    pnb_embeddings *set = embed(&encoder, true);
    assert_within(compare(set, DATA "captions.safetensors"));
    pnb_embeddings_free(set);
    pnb_tokenizer_set_clean(encoder.tokenizer, PNB_CLEAN_NONE);
    set = embed(&encoder, true);
    worst w = compare(set, DATA "captions.safetensors");
    assert_true(w.cosine_distance > MAX_COSINE_DISTANCE);
    pnb_embeddings_free(set);
    pnb__embedder_close(&encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_agree),
        cmocka_unit_test(wrong_preparation_is_far_off),
        cmocka_unit_test(captions_agree),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
