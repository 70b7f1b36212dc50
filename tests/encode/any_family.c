/* An encoder may end in any family: the toy towers (a convolution, a GRU) end in points, Gaussians,
 * von Mises-Fisher, power spherical and generalised Gaussians; the embedder makes the sets that
 * belong to it, in memory and in files, and what they are compared by is settled by them, with the
 * scores of the definition. */
#include "penumbra/encode.h"

#include <unistd.h>

#include "penumbra/distributions.h"
#include "penumbra/search.h"
#include "penumbra/view.h"
#include "sets/settle.h"
#include "tests/models/toy_folder.h"

enum { N_TEXTS = PNB_COUNT(toy_texts), N_IMAGES = 3 };

typedef struct fixture {
    char dir[64];
    pnb_ctx *ctx;
    pnb_encoder *encoder;
    pnb_image images[N_IMAGES];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/pnb-family-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(pnb_ctx_create(&f->ctx, NULL, NULL), PNB_OK);
    for (size_t i = 0; i < N_IMAGES; i++)
        draw_toy_image(&f->images[i], i);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    for (size_t i = 0; i < N_IMAGES; i++)
        pnb_image_free(&f->images[i]);
    pnb_encoder_free(f->encoder);
    pnb_ctx_free(f->ctx);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void open_towers(fixture *f, pnb_family image, pnb_family text)
{
    pnb_encoder_free(f->encoder);
    f->encoder = NULL;
    make_toy_folder(f->ctx, f->dir, pnb_family_name(image), pnb_family_name(text));
    assert_ok(pnb_encoder_open(&f->encoder, f->ctx, f->dir, NULL, err));
}

static pnb_embeddings *encode_texts(const fixture *f)
{
    pnb_embeddings *set = NULL;
    assert_ok(pnb_encode_texts(f->encoder, toy_texts, N_TEXTS, NULL, &set, err));
    return set;
}

static pnb_embeddings *encode_images(const fixture *f)
{
    pnb_embeddings *set = NULL;
    assert_ok(pnb_encode_images(f->encoder, f->images, N_IMAGES, NULL, &set, err));
    return set;
}

static void same_rows(const float *a, const float *b, size_t n)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a != NULL)
        assert_memory_equal(a, b, n * sizeof *a);
}

static void check_set(const pnb_embeddings *set, pnb_family family, size_t n)
{
    assert_int_equal(set->family, family);
    assert_int_equal(set->n, n);
    assert_int_equal(set->dim, TOY_DIM);
    assert_ok(pnb_embeddings_check_values(set, err));
}

/* The rows of the model itself, one batch of all captions; they are checked in
 * tests/models/tower.c. */
static void check_texts(const fixture *f, const pnb_embeddings *set)
{
    pnb_model *model = NULL;
    pnb_tokenizer *tokenizer = NULL;
    pnb_embeddings *want = NULL;
    int32_t ids[N_TEXTS][TOY_CONTEXT];
    assert_ok(pnb_model_load(&model, f->ctx, f->dir, err));
    assert_ok(pnb_tokenizer_load(&tokenizer, f->dir, err));
    for (size_t i = 0; i < N_TEXTS; i++)
        assert_ok(pnb_tokenizer_encode(tokenizer, toy_texts[i], strlen(toy_texts[i]), TOY_CONTEXT,
                                       ids[i], NULL, err));
    assert_ok(pnb_embeddings_create(&want, set->family, N_TEXTS, TOY_DIM, err));
    const pnb_encode_out out = {.mean = want->mean,
                                .log_var = want->log_var,
                                .kappa = want->kappa,
                                .inv_alpha = want->inv_alpha,
                                .beta = want->beta};
    assert_ok(pnb_model_encode_text(model, ids[0], N_TEXTS, TOY_CONTEXT, &out, err));
    same_rows(set->mean, want->mean, N_TEXTS * TOY_DIM);
    same_rows(set->log_var, want->log_var, N_TEXTS * TOY_DIM);
    same_rows(set->kappa, want->kappa, N_TEXTS);
    same_rows(set->inv_alpha, want->inv_alpha, N_TEXTS * TOY_DIM);
    same_rows(set->beta, want->beta, N_TEXTS * TOY_DIM);
    pnb_embeddings_free(want);
    pnb_tokenizer_free(tokenizer);
    pnb_model_free(model);
}

/* A job with a journal, in batches of two, writes rows of the same family; what it reads back is
 * what a batch of two gives. */
static void check_file(const fixture *f, pnb_family family)
{
    char texts[96], out[96];
    pnb_embeddings *memory = NULL, *disk = NULL;
    pnb_encode_opts opts = pnb_encode_opts_default();
    const pnb_encode_file file = {.out = out, .save_every = 2};
    const char *const paths[] = {texts};
    snprintf(texts, sizeof texts, "%s/captions.txt", f->dir);
    snprintf(out, sizeof out, "%s/set.safetensors", f->dir);
    FILE *list = fopen(texts, "w");
    assert_non_null(list);
    for (size_t i = 0; i < N_TEXTS; i++)
        fprintf(list, "%s\n", toy_texts[i]);
    fclose(list);
    opts.batch_size = 2;
    assert_ok(pnb_encode_texts(f->encoder, toy_texts, N_TEXTS, &opts, &memory, err));
    assert_ok(pnb_encode_to_file(f->encoder, PNB_ENCODE_TEXTS, paths, 1, &opts, &file, NULL, err));
    assert_ok(pnb_embeddings_load(&disk, out, err));
    check_set(disk, family, N_TEXTS);
    same_rows(disk->mean, memory->mean, N_TEXTS * TOY_DIM);
    same_rows(disk->log_var, memory->log_var, N_TEXTS * TOY_DIM);
    same_rows(disk->kappa, memory->kappa, N_TEXTS);
    same_rows(disk->inv_alpha, memory->inv_alpha, N_TEXTS * TOY_DIM);
    same_rows(disk->beta, memory->beta, N_TEXTS * TOY_DIM);
    pnb_embeddings_free(memory);
    pnb_embeddings_free(disk);
}

static void sets_are_of_the_towers_family(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < PNB_N_FAMILIES; i++) {
        pnb_family text = (pnb_family)i, image = (pnb_family)((i + 1) % PNB_N_FAMILIES);
        open_towers(f, image, text);
        pnb_embeddings *texts = encode_texts(f), *images = encode_images(f);
        check_set(texts, text, N_TEXTS);
        check_set(images, image, N_IMAGES);
        check_texts(f, texts);
        check_file(f, text);
        pnb_embeddings_free(texts);
        pnb_embeddings_free(images);
    }
}

/* ---- what they are compared by ---- */

/* The definition, of row i of a set against the mean of a point. */
static double log_likelihood(const pnb_embeddings *set, size_t i, const float *x)
{
    double cosine = 0, kappa = (double)set->kappa[i];
    for (size_t d = 0; d < TOY_DIM; d++)
        cosine += (double)set->mean[i * TOY_DIM + d] * (double)x[d];
    return set->family == PNB_VMF
               ? kappa * cosine + pnb_vmf_log_norm_approx(TOY_DIM, kappa)
               : kappa * log1p(cosine) + pnb_power_spherical_log_norm(TOY_DIM, kappa);
}

/* Pictures are points, captions distributions on the sphere: each picture asks for its captions. */
static void search_by_likelihood(fixture *f, pnb_family family, pnb_measure want)
{
    open_towers(f, PNB_POINT, family);
    pnb_embeddings *texts = encode_texts(f), *images = encode_images(f);
    pnb_view gallery = {0}, queries = {0};
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_hits hits = {0};
    pnb_measure measure = PNB_MEASURE_MEAN;
    assert_ok(pnb_view_init(&gallery, texts, err));
    assert_ok(pnb_view_init(&queries, images, err));
    assert_ok(pnb__measure_settle(&measure, PNB__MEASURE_AUTO, &queries.rows, &gallery.rows, err));
    assert_int_equal(measure, want);
    assert_int_equal(pnb__own_uncertainty(texts), PNB_UNCERTAINTY_INV_KAPPA);
    opts.measure = measure;
    opts.k = N_TEXTS;
    assert_ok(pnb_search(f->ctx, &queries.rows, &gallery.rows, &opts, &hits, err));
    for (size_t q = 0; q < N_IMAGES; q++)
        for (size_t k = 0; k < N_TEXTS; k++) {
            size_t item = (size_t)hits.index[q * N_TEXTS + k];
            double score = hits.score[q * N_TEXTS + k];
            assert_near(score, log_likelihood(texts, item, images->mean + q * TOY_DIM), 1e-6, 1e-6);
            assert_true(k == 0 || score <= hits.score[q * N_TEXTS + k - 1]);
        }
    pnb_hits_reset(&hits);
    pnb_view_reset(&gallery);
    pnb_view_reset(&queries);
    pnb_embeddings_free(texts);
    pnb_embeddings_free(images);
}

static void the_sphere_is_searched_by_its_likelihood(void **state)
{
    fixture *f = *state;
    search_by_likelihood(f, PNB_VMF, PNB_MEASURE_VMF);
    search_by_likelihood(f, PNB_POWER_SPHERICAL, PNB_MEASURE_POWER_SPHERICAL);
}

/* csd = E|z1 - z2|^2 = |m1 - m2|^2 + sum of the variances: of generalised Gaussians by their own,
 * with means that have lengths. */
static void generalised_gaussians_are_compared_by_moments(void **state)
{
    fixture *f = *state;
    open_towers(f, PNB_POINT, PNB_GEN_GAUSSIAN);
    pnb_embeddings *texts = encode_texts(f), *images = encode_images(f);
    pnb_view a = {0}, b = {0};
    pnb_measure measure = PNB_MEASURE_MEAN;
    assert_ok(pnb_view_init(&a, texts, err));
    assert_ok(pnb_view_init(&b, images, err));
    assert_ok(pnb__measure_settle(&measure, PNB__MEASURE_AUTO, &b.rows, &a.rows, err));
    assert_int_equal(measure, PNB_MEASURE_CSD);
    assert_int_equal(pnb__own_uncertainty(texts), PNB_UNCERTAINTY_GG_VAR);
    for (size_t i = 0; i < N_TEXTS; i++)
        for (size_t k = 0; k < N_IMAGES; k++) {
            double want = 0;
            for (size_t d = 0; d < TOY_DIM; d++) {
                size_t at = i * TOY_DIM + d;
                double delta = (double)texts->mean[at] - (double)images->mean[k * TOY_DIM + d];
                want += delta * delta + exp(pnb_gen_gaussian_log_var((double)texts->inv_alpha[at],
                                                                     (double)texts->beta[at]));
            }
            assert_near(pnb_measure_pair(measure, &a.rows, i, &b.rows, k, NULL), want, 1e-6, 1e-6);
        }
    pnb_view_reset(&a);
    pnb_view_reset(&b);
    pnb_embeddings_free(texts);
    pnb_embeddings_free(images);
}

/* ---- what such towers lack ---- */

static void a_convolution_has_no_patches_to_mask(void **state)
{
    fixture *f = *state;
    pnb_embeddings *set = NULL;
    pnb_encode_opts opts = pnb_encode_opts_default();
    open_towers(f, PNB_GAUSSIAN_DIAG, PNB_GAUSSIAN_DIAG);
    opts.masked = true;
    assert_fails(pnb_encode_images(f->encoder, f->images, N_IMAGES, &opts, &set, err),
                 PNB_UNSUPPORTED, "no patches");
    assert_ok(pnb_encode_texts(f->encoder, toy_texts, N_TEXTS, &opts, &set, err));
    pnb_embeddings_free(set);
}

/* The folder has no preprocessing: a family that assumes nothing gets the library's default, at the
 * size of its tower. */
static void pixels_are_assumed_at_the_towers_size(void **state)
{
    fixture *f = *state;
    char path[96];
    open_towers(f, PNB_POINT, PNB_POINT);
    snprintf(path, sizeof path, "%s/preprocessor_config.json", f->dir);
    assert_int_equal(unlink(path), 0);
    pnb_encoder_free(f->encoder);
    assert_ok(pnb_encoder_open(&f->encoder, f->ctx, f->dir, NULL, err));
    assert_non_null(strstr(pnb_encoder_assumed(f->encoder, PNB_ENCODE_IMAGES), "family toy"));
    pnb_embeddings *set = encode_images(f);
    check_set(set, PNB_POINT, N_IMAGES);
    pnb_embeddings_free(set);
    pnb_encoder_free(f->encoder);
    f->encoder = NULL;
    snprintf(path, sizeof path, "%s/tokenizer.json", f->dir);
    assert_int_equal(unlink(path), 0);
    assert_fails(pnb_encoder_open(&f->encoder, f->ctx, f->dir, NULL, err), PNB_NOT_FOUND,
                 "copy it from the model's repository");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_are_of_the_towers_family, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_sphere_is_searched_by_its_likelihood, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(generalised_gaussians_are_compared_by_moments, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_convolution_has_no_patches_to_mask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pixels_are_assumed_at_the_towers_size, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
