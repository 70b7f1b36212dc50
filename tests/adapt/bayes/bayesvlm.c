/* The whole method against its formulas written out row by row and inverses by elimination, against
 * weights drawn from the whole precision, released files, and what it refuses. */
#include "tests/adapt/world.h"

#include "adapt/bayes/kronecker.h"
#include "penumbra/safetensors.h"

#define MODEL PNB_SOURCE_DIR "/tests/golden/prolip_model/clip_quickgelu"

enum { D = 5, N = 60, T = 90, C = 24 };

static void invert(double a[D][D], double out[D][D])
{
    memset(out, 0, sizeof(double[D][D]));
    for (size_t i = 0; i < D; i++)
        out[i][i] = 1;
    for (size_t k = 0; k < D; k++) {
        double pivot = a[k][k];
        for (size_t j = 0; j < D; j++) {
            a[k][j] /= pivot;
            out[k][j] /= pivot;
        }
        for (size_t i = 0; i < D; i++) {
            double f = i != k ? a[i][k] : 0;
            for (size_t j = 0; j < D && i != k; j++) {
                a[i][j] -= f * a[k][j];
                out[i][j] -= f * out[k][j];
            }
        }
    }
}

/* J^T Lambda J of one row against rows begin..end of the other side, InfoNCE. */
static void add_row(const float *x, const pnb_embeddings *other, size_t begin, size_t end,
                    double scale, double b[D][D])
{
    double w[T], sum = 0, length = 0, j[T][D], mean[D] = {0};
    for (size_t d = 0; d < D; d++)
        length += (double)x[d] * x[d];
    length = sqrt(length);
    for (size_t k = begin; k < end; k++) {
        const float *v = other->mean + k * D;
        double norm = 0, cosine = 0;
        for (size_t d = 0; d < D; d++) {
            norm += (double)v[d] * v[d];
            cosine += (double)v[d] * x[d];
        }
        cosine /= sqrt(norm) * length;
        sum += w[k] = exp(scale * cosine);
        for (size_t d = 0; d < D; d++)
            j[k][d] = scale / length * (v[d] / sqrt(norm) - cosine * x[d] / length);
    }
    for (size_t k = begin; k < end; k++)
        for (size_t d = 0; d < D; d++)
            mean[d] += w[k] / sum * j[k][d];
    for (size_t k = begin; k < end; k++)
        for (size_t d = 0; d < D; d++)
            for (size_t e = 0; e < D; e++)
                b[d][e] += w[k] / sum * (j[k][d] - mean[d]) * (j[k][e] - mean[e]);
}

/* A' and B' of the images in `parts` contrasts, inverted. */
static void naive(const pnb_embeddings *own, const pnb_embeddings *other, size_t parts, double n,
                  double lambda, double scale, double a_inv[D][D], double b_inv[D][D])
{
    double a[D][D] = {{0}}, b[D][D] = {{0}};
    for (size_t i = 0; i < own->n; i++) {
        size_t part = i * parts / own->n;
        add_row(own->mean + i * D, other, other->n * part / parts, other->n * (part + 1) / parts,
                scale, b);
        for (size_t d = 0; d < D; d++)
            for (size_t e = 0; e < D; e++)
                a[d][e] += (double)own->mean[i * D + d] * own->mean[i * D + e];
    }
    for (size_t d = 0; d < D; d++)
        for (size_t e = 0; e < D; e++) {
            a[d][e] = sqrt(n) * a[d][e] / (double)own->n + (d == e ? sqrt(lambda) : 0);
            b[d][e] = sqrt(n) * b[d][e] / (double)own->n + (d == e ? sqrt(lambda) : 0);
        }
    invert(a, a_inv);
    invert(b, b_inv);
}

static double form(double m[D][D], const float *x)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        for (size_t e = 0; e < D; e++)
            sum += m[d][e] * x[d] * x[e];
    return sum;
}

static pnb_adapter *learn(pnb_ctx *ctx, const pnb_adapter_data *data, const pnb_adapter_opts *opts)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, ctx, "bayesvlm", data, opts, &err), &err);
    return a;
}

/* Rows of other lengths than 1: they are scaled alike in mean and spread. */
static void stretch(pnb_embeddings *e)
{
    for (size_t i = 0; i < e->n * e->dim; i++)
        e->mean[i] *= 1.0f + 0.25f * (float)(i / e->dim % 3);
}

static void against_the_formulas(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *images = unit_set("image", N, D, 1), *texts = unit_set("text", T, D, 2);
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    double a_inv[D][D], b_inv[D][D];
    stretch(images);
    stretch(texts);
    opts.prior_precision = 0.3;
    opts.logit_scale = 7;
    for (int64_t parts = 1; parts <= 3; parts += 2) {
        pnb_embeddings *out = NULL;
        opts.batch_size = T / parts;
        opts.pseudo_count = parts == 1 ? 0 : 10;
        pnb_adapter *a = learn(ctx, &(pnb_adapter_data){.images = images, .texts = texts}, &opts);
        for (int side = 0; side < 2; side++) {
            const pnb_embeddings *own = side == 0 ? images : texts;
            naive(own, side == 0 ? texts : images, (size_t)parts,
                  parts == 1 ? (double)own->n : 10.0, 0.3, 7, a_inv, b_inv);
            assert_int_equal(pnb_adapter_apply(&out, a, (pnb_adapter_side)side, own, NULL), PNB_OK);
            assert_memory_equal(out->mean, own->mean, own->n * D * sizeof(float));
            for (size_t i = 0; i < own->n; i++)
                for (size_t d = 0; d < D; d++)
                    require_near(exp((double)out->log_var[i * D + d]),
                                 form(a_inv, own->mean + i * D) * b_inv[d][d], 1e-5, "variance");
            pnb_embeddings_free(out);
        }
        pnb_adapter_free(a);
    }
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

/* Weights drawn row by row of the inverse root: the variance of W phi is the posterior's. */
static void against_drawn_weights(void **state)
{
    enum { P = 3, Q = 2, DRAWS = 200000 };
    const double a[P * P] = {2, 0.5, 0, 0.5, 1, -0.3, 0, -0.3, 0.7}, b[Q * Q] = {1, 0.4, 0.4, 3};
    const double phi[P] = {1, -2, 0.5};
    pnb__kronecker k;
    pnb__posterior post = {0};
    pnb__rng rng;
    double chol[2][P][P] = {{{0}}}, square[Q] = {0}, spread = 0;
    assert_int_equal(pnb__kronecker_init(&k, P, Q, NULL), PNB_OK);
    memcpy(k.a, a, sizeof a);
    memcpy(k.b, b, sizeof b);
    k.n = 4;
    k.lambda = 0.25;
    assert_int_equal(pnb__posterior_init(&post, *state, &k, "image", NULL), PNB_OK);
    for (int f = 0; f < 2; f++) /* precisions by Cholesky and Banachiewicz */
        for (size_t i = 0, n = f ? Q : P; i < n; i++)
            for (size_t j = 0; j <= i; j++) {
                double s = 2 * (f ? b : a)[i * n + j] + (i == j ? 0.5 : 0);
                for (size_t r = 0; r < j; r++)
                    s -= chol[f][i][r] * chol[f][j][r];
                chol[f][i][j] = i == j ? sqrt(s) : s / chol[f][j][j];
            }
    pnb__rng_init(&rng, 5, 0);
    for (size_t draw = 0; draw < DRAWS; draw++) {
        double w[Q][P], g[Q] = {0};
        for (size_t d = 0; d < Q; d++) /* rows: L_a^-T z */
            for (size_t i = P; i-- > 0;) {
                w[d][i] = pnb__rng_normal(&rng);
                for (size_t r = i + 1; r < P; r++)
                    w[d][i] -= chol[0][r][i] * w[d][r];
                w[d][i] /= chol[0][i][i];
            }
        for (size_t d = Q; d-- > 0;) { /* columns: L_b^-T */
            for (size_t i = 0; i < P; i++)
                g[d] += w[d][i] * phi[i];
            for (size_t r = d + 1; r < Q; r++)
                g[d] -= chol[1][r][d] * g[r];
            g[d] /= chol[1][d][d];
            square[d] += g[d] * g[d] / DRAWS;
        }
    }
    for (size_t r = 0; r < P; r++) {
        double x = 0;
        for (size_t i = 0; i < P; i++)
            x += post.root[r * P + i] * phi[i];
        spread += x * x;
    }
    for (size_t d = 0; d < Q; d++)
        require_near(square[d], spread * post.diagonal[d], 0.015, "variance of draws");
    pnb__posterior_reset(&post);
    pnb__kronecker_reset(&k);
}

static double figure(const pnb_adapter *a, const char *name)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(a, &facts);
    for (size_t i = 0; i < facts.n_figures; i++)
        if (strcmp(facts.figures[i].name, name) == 0)
            return facts.figures[i].value;
    fail_msg("no figure %s", name);
    return 0;
}

/* What is far from the calibration rows is uncertain; the prior is chosen and told; the file gives
 * the same rows back. */
static void chosen_prior_and_files(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *images = unit_set("image", N, D, 1), *texts = unit_set("text", T, D, 2);
    pnb_embeddings *here = NULL, *there = NULL;
    const pnb_adapter_data data = {.images = images, .texts = texts};
    pnb_adapter *a = learn(ctx, &data, NULL), *back = NULL, *released;
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    char dir[] = "bayesvlm-XXXXXX", path[64];
    assert_true(figure(a, "image_lambda") > 0 && figure(a, "text_projection") == 0);
    require_near(figure(a, "image_count"), N, 0, "count");
    opts.marginal = PNB_ADAPT_MARGINAL_RELEASED;
    released = learn(ctx, &data, &opts);
    assert_true(figure(a, "image_lambda") != figure(released, "image_lambda"));
    assert_non_null(mkdtemp(dir));
    assert_int_equal(pnb_adapter_save(a, dir, NULL), PNB_OK);
    assert_int_equal(pnb_adapter_load(&back, ctx, dir, NULL), PNB_OK);
    assert_int_equal(pnb_adapter_apply(&here, a, PNB_ADAPTER_TEXTS, texts, NULL), PNB_OK);
    assert_int_equal(pnb_adapter_apply(&there, back, PNB_ADAPTER_TEXTS, texts, NULL), PNB_OK);
    assert_memory_equal(here->log_var, there->log_var, T * D * sizeof(float));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, i ? "config.json" : "model.safetensors");
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(remove(dir), 0);
    pnb_embeddings_free(here);
    pnb_embeddings_free(there);
    pnb_adapter_free(a);
    pnb_adapter_free(back);
    pnb_adapter_free(released);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

/* One array of the model's file, (24,24). */
static void read_array(const char *name, float *out)
{
    pnb_safetensors *file = NULL;
    assert_int_equal(pnb_safetensors_open(&file, MODEL "/model.safetensors", NULL), PNB_OK);
    assert_int_equal(pnb_array_to_f32(pnb_safetensors_find(file, name), out, NULL), PNB_OK);
    pnb_safetensors_free(file);
}

/* Activations become embeddings by the model's matrices, and the spread is a factor of the row and
 * one of the dimension. */
static void check_projected(const pnb_embeddings *in, const pnb_embeddings *out, const float *p)
{
    double first = (double)out->log_var[1] - (double)out->log_var[0];
    for (size_t i = 0; i < out->n; i++) {
        double g[C] = {0}, square = 0;
        for (size_t d = 0; d < C; d++) {
            for (size_t c = 0; c < C; c++)
                g[d] += (double)in->mean[i * C + c] * (double)p[c * C + d];
            square += g[d] * g[d];
        }
        for (size_t d = 0; d < C; d++)
            assert_true(fabs(g[d] / sqrt(square) - (double)out->mean[i * C + d]) < 1e-6);
        double gap = (double)out->log_var[i * C + 1] - (double)out->log_var[i * C];
        assert_true(fabs(gap - first) < 1e-5);
    }
}

static void activations_of_a_model(void **state)
{
    static const char *const names[] = {"visual.proj", "text_projection"};
    static float p[C * C];
    pnb_embeddings *sets[] = {unit_set("image", 9, C, 1), unit_set("text", 12, C, 2)};
    pnb_adapter_data data = {.images = sets[0], .texts = sets[1], .model = MODEL};
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm", &data, NULL, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "activations are of 111111111111"));
    sets[0]->info.weights_sha256[0] = sets[1]->info.weights_sha256[0] = '\0';
    a = learn(*state, &data, NULL);
    assert_true(figure(a, "image_projection") == 1);
    for (int s = 0; s < 2; s++) {
        pnb_embeddings *out = NULL;
        read_array(names[s], p);
        assert_int_equal(pnb_adapter_apply(&out, a, (pnb_adapter_side)s, sets[s], NULL), PNB_OK);
        check_projected(sets[s], out, p);
        pnb_embeddings_free(out);
    }
    pnb_adapter_free(a);
    pnb_embeddings_free(sets[0]);
    pnb_embeddings_free(sets[1]);
}

/* Twice the activations are twice the embedding: mean and spread of unit length do not change. */
static void the_spread_follows_the_length(void **state)
{
    pnb_embeddings *images = unit_set("image", 9, C, 1), *texts = unit_set("text", 12, C, 2);
    pnb_embeddings *once = NULL, *twice = NULL;
    const pnb_adapter_data data = {.images = images, .texts = texts, .model = MODEL};
    images->info.weights_sha256[0] = texts->info.weights_sha256[0] = '\0';
    pnb_adapter *a = learn(*state, &data, NULL);
    assert_int_equal(pnb_adapter_apply(&once, a, PNB_ADAPTER_IMAGES, images, NULL), PNB_OK);
    for (size_t i = 0; i < 9 * C; i++)
        images->mean[i] *= 2;
    assert_int_equal(pnb_adapter_apply(&twice, a, PNB_ADAPTER_IMAGES, images, NULL), PNB_OK);
    for (size_t i = 0; i < 9 * C; i++) {
        assert_true(fabsf(once->mean[i] - twice->mean[i]) < 1e-6f);
        assert_true(fabsf(once->log_var[i] - twice->log_var[i]) < 1e-5f);
    }
    pnb_embeddings_free(once);
    pnb_embeddings_free(twice);
    pnb_adapter_free(a);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

static void refused(void **state)
{
    pnb_embeddings *images = unit_set("image", 4, D, 1), *texts = unit_set("text", 4, D, 2);
    pnb_embeddings *one = unit_set("text", 1, D, 3);
    static const struct {
        size_t offset;
        double value;
        const char *says;
    } cases[] = {
        {offsetof(pnb_adapter_opts, prior_precision), 0, "prior_precision is 0"},
        {offsetof(pnb_adapter_opts, logit_scale), -1, "logit_scale -1"},
        {offsetof(pnb_adapter_opts, logit_bias), INFINITY, "both are finite"},
    };
    pnb_adapter *a = NULL;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_adapter_opts opts = pnb_adapter_opts_default();
        pnb_error err = PNB_ERROR_INIT;
        opts.loss = PNB_ADAPT_LOSS_SIGLIP;
        opts.logit_scale = opts.logit_bias = 1;
        memcpy((char *)&opts + cases[i].offset, &cases[i].value, sizeof(double));
        assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm",
                                         &(pnb_adapter_data){.images = images, .texts = texts},
                                         &opts, &err),
                         PNB_ARG);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    const pnb_adapter_data both = {.images = images, .texts = texts};
    opts.batch_size = 5;
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm", &both, &opts, NULL), PNB_ARG);
    opts.batch_size = 0;
    opts.loss = PNB_ADAPT_LOSS_SIGLIP; /* the sets know no bias */
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm", &both, &opts, NULL), PNB_ARG);
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm",
                                     &(pnb_adapter_data){.images = images, .texts = one}, NULL,
                                     NULL),
                     PNB_ARG);
    images->mean[D] = NAN;
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm", &both, NULL, NULL), PNB_NUMERIC);
    memset(images->mean, 0, D * sizeof(float));
    images->mean[D] = 1;
    assert_int_equal(pnb_adapter_fit(&a, *state, "bayesvlm", &both, NULL, NULL), PNB_NUMERIC);
    assert_int_equal(pnb_adapter_fit(&a, *state, "whitened",
                                     &(pnb_adapter_data){.images = texts, .hessians = "x"}, NULL,
                                     NULL),
                     PNB_ARG);
    pnb_embeddings_free(one);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

static int set_up(void **state)
{
    *state = make_ctx();
    return 0;
}

static int tear_down(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_formulas),          cmocka_unit_test(against_drawn_weights),
        cmocka_unit_test(chosen_prior_and_files),        cmocka_unit_test(activations_of_a_model),
        cmocka_unit_test(the_spread_follows_the_length), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
