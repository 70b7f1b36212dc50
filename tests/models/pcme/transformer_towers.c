/* PCME's heads over transformers: against plain loops over the states that the transformer ends in,
 * gradients by differences of every array, texts and their padding, other sizes, what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/model.h"
#include "models/pcme/text_tower.h"
#include "models/transformer/transformer.h"

enum { B = 2, W = 8, D = 6, N = 6, T = 5 };

#define VIT                                                                                        \
    "\"vision_cfg\":{\"image_size\":[8,12],\"patch_size\":4,\"layers\":2,\"width\":8,"             \
    "\"head_width\":4"
#define WORDS                                                                                      \
    "\"text_cfg\":{\"layers\":2,\"width\":8,\"heads\":2,\"vocab_size\":20,\"context_length\":5"
#define PCME "{\"model_type\":\"pcme\",\"embed_dim\":6,"

static pnb_ctx *ctx;
static char dir[64] = "/tmp/pnb-pcme-vit-XXXXXX";
static const int32_t ids[B][T] = {{3, 4, 5, 0, 0}, {7, 19, 2, 9, 11}};

#define OK(call)                                                                                   \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        if ((call) != PNB_OK)                                                                      \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static int set_up(void **state)
{
    (void)state;
    const pnb_ctx_opts opts = {.n_threads = 2};
    return mkdtemp(dir) == NULL || pnb_ctx_create(&ctx, &opts, NULL) != PNB_OK ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return rmdir(dir);
}

/* The model of a configuration in doubles, out of the folder that it was saved to. */
static pnb_model *in_doubles(const char *config)
{
    pnb_model *drawn = NULL, *m = NULL;
    static const char *const files[] = {"config.json", "model.safetensors"};
    OK(pnb_model_init(&drawn, ctx, config, 5, &err));
    OK(pnb_model_save(drawn, dir, &err));
    OK(pnb__model_load_real(&m, ctx, dir, PNB__F64, &err));
    assert_string_equal(pnb_model_get_info(m)->family, "pcme");
    pnb_model_free(drawn);
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        char *path = pnb__path_join(dir, files[i]);
        unlink(path);
        pnb__free(path);
    }
    return m;
}

static pnb__tower_in inputs(pnb__graph *g)
{
    return (pnb__tower_in){.pixels = pnb__input(g, PNB__REAL, 4, (size_t[]){B, 3, 8, 12}),
                           .ids = pnb__input(g, PNB__INT32, 2, (size_t[]){B, T}),
                           .places = {pnb__input(g, PNB__INT32, 1, (size_t[]){B}),
                                      pnb__input(g, PNB__INT32, 1, (size_t[]){B})}};
}

static void fill(const pnb__tower_in *in)
{
    double pixels[B * 3 * 8 * 12];
    int32_t length[B], last[B];
    for (size_t i = 0; i < PNB_COUNT(pixels); i++)
        pixels[i] = sin((double)i * 0.37) + 0.2 * cos((double)i);
    for (size_t b = 0; b < B; b++) {
        int32_t at[PNB__MAX_PLACES];
        OK(pnb__pcme_find_places(NULL, ids[b], T, b, at, &err));
        length[b] = at[PNB__PCME_LENGTH];
        last[b] = at[PNB__PCME_LAST_ROW];
    }
    pnb__write_f64(in->pixels, pixels);
    pnb__write_i32(in->ids, &ids[0][0]);
    pnb__write_i32(in->places[PNB__PCME_LENGTH], length);
    pnb__write_i32(in->places[PNB__PCME_LAST_ROW], last);
}

/* ---- values ---- */

static const double *values_of(pnb_model *m, const char *side, const char *name)
{
    char *full = pnb__format("%s.%s", side, name);
    const pnb__param *p = pnb__model_find_param(m, full);
    if (p == NULL)
        fail_msg("there is no %s", full);
    pnb__free(full);
    return p->data;
}

/* y_d = W_d x + b_d */
static void linear(pnb_model *m, const char *side, const char *name, const double *x, double *y)
{
    char *weight = pnb__format("%s.weight", name), *bias = pnb__format("%s.bias", name);
    const double *w = values_of(m, side, weight), *b = values_of(m, side, bias);
    for (size_t d = 0; d < D; d++) {
        y[d] = b[d];
        for (size_t c = 0; c < W; c++)
            y[d] += w[d * W + c] * x[c];
    }
    pnb__free(weight);
    pnb__free(bias);
}

/* softmax over the first n rows of x of w2 tanh(w1 x), and their mean by it. */
static void attend(pnb_model *m, const char *side, const char *net, const double *x, size_t n,
                   double pooled[W])
{
    char *name_1 = pnb__format("%s.attention.w_1.weight", net);
    char *name_2 = pnb__format("%s.attention.w_2.weight", net);
    const double *w1 = values_of(m, side, name_1), *w2 = values_of(m, side, name_2);
    double share[16], sum = 0;
    for (size_t t = 0; t < n; t++) {
        double score = 0;
        for (size_t h = 0; h < W / 2; h++) {
            double z = 0;
            for (size_t c = 0; c < W; c++)
                z += w1[h * W + c] * x[t * W + c];
            score += w2[h] * tanh(z);
        }
        sum += share[t] = exp(score);
    }
    for (size_t c = 0; c < W; c++) {
        pooled[c] = 0;
        for (size_t t = 0; t < n; t++)
            pooled[c] += share[t] / sum * x[t * W + c];
    }
    pnb__free(name_1);
    pnb__free(name_2);
}

/* Both heads of one item from its n states and its own vector v. */
static void heads_of(pnb_model *m, const char *side, const double *x, size_t n, const double *v,
                     double mean[D], double log_var[D])
{
    double pooled[W], base[D], extra[D], average = 0, var = 0, square = 0;
    const double *gain = values_of(m, side, "pie_net.layer_norm.weight");
    const double *bias = values_of(m, side, "pie_net.layer_norm.bias");
    attend(m, side, "pie_net", x, n, pooled);
    linear(m, side, "fc", v, base);
    linear(m, side, "pie_net.fc", pooled, extra);
    for (size_t d = 0; d < D; d++)
        average += (base[d] += 1 / (1 + exp(-extra[d]))) / D;
    for (size_t d = 0; d < D; d++)
        var += (base[d] - average) * (base[d] - average) / D;
    for (size_t d = 0; d < D; d++) {
        mean[d] = (base[d] - average) / sqrt(var + 1e-5) * gain[d] + bias[d];
        square += mean[d] * mean[d];
    }
    for (size_t d = 0; d < D; d++)
        mean[d] /= sqrt(square);
    attend(m, side, "uncertain_net", x, n, pooled);
    linear(m, side, "uncertain_net.fc", pooled, log_var);
    linear(m, side, "uncertain_net.fc2", v, extra);
    for (size_t d = 0; d < D; d++)
        log_var[d] = 2 * (log_var[d] + extra[d]);
}

static void near(const char *what, const double *got, const double *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-11 * (1 + fabs(want[i]))))
            fail_msg("%s[%zu] is %.15g, wanted %.15g", what, i, got[i], want[i]);
}

/* The states behind the last block and its norm; trunk is the tower's first member. */
static pnb__tensor *states(const pnb_model *m, pnb__side side, pnb__graph *g,
                           const pnb__tower_in *in)
{
    const void *trunk = *(const void *const *)m->weights.tower[side];
    const pnb__config *c = &m->config;
    if (side == PNB__TEXT_SIDE) {
        const pnb__text_transformer *t = trunk;
        const pnb__block_opts opts = pnb__transformer_opts(&c->text, true);
        pnb__tensor *x = pnb__text_tokens(t, g, in->ids);
        return pnb__text_ln_final(t, c, g, pnb__transformer_run(g, t->blocks, 2, x, &opts));
    }
    const pnb__image_transformer *v = trunk;
    const pnb__block_opts opts = pnb__transformer_opts(&c->vision, false);
    pnb__tensor *x = pnb__image_tokens(v, c, g, in);
    return pnb__image_ln_post(v, c, g, pnb__transformer_run(g, v->blocks, 2, x, &opts));
}

static void check_values(bool is_average)
{
    pnb_model *m = in_doubles(is_average ? PCME VIT ",\"pool_type\":\"avg\"}," WORDS "}}"
                                         : PCME VIT "}," WORDS "}}");
    double image_x[B][1 + N][W], text_x[B][T][W], got[4][B][D], mean[D], log_var[D];
    pnb__graph *g = NULL;
    OK(pnb__graph_create(&g, ctx, PNB__F64, false, &err));
    const pnb__tower_in in = inputs(g);
    pnb__dist image = pnb__model_build(m, PNB__IMAGE_SIDE, g, &in, true);
    pnb__dist text = pnb__model_build(m, PNB__TEXT_SIDE, g, &in, true);
    pnb__tensor *kept[] = {image.mean,
                           image.log_var,
                           text.mean,
                           text.log_var,
                           states(m, PNB__IMAGE_SIDE, g, &in),
                           states(m, PNB__TEXT_SIDE, g, &in)};
    for (size_t i = 0; i < PNB_COUNT(kept); i++)
        pnb__keep(kept[i]);
    OK(pnb__graph_plan(g, NULL, &err));
    fill(&in);
    OK(pnb__graph_run(g, &err));
    for (size_t i = 0; i < 4; i++)
        pnb__read_f64(kept[i], &got[i][0][0]);
    pnb__read_f64(kept[4], &image_x[0][0][0]);
    pnb__read_f64(kept[5], &text_x[0][0][0]);
    for (size_t b = 0; b < B; b++) {
        double own[W] = {0};
        size_t length = b == 0 ? 3 : 5;
        for (size_t c = 0; c < W; c++)
            for (size_t t = 0; t < N; t++)
                own[c] += image_x[b][1 + t][c] / N;
        heads_of(m, "visual", image_x[b][1], N, is_average ? own : image_x[b][0], mean, log_var);
        near("image mean", got[0][b], mean, D);
        near("image log-variance", got[1][b], log_var, D);
        heads_of(m, "text", text_x[b][0], length, text_x[b][length - 1], mean, log_var);
        near("text mean", got[2][b], mean, D);
        near("text log-variance", got[3][b], log_var, D);
    }
    pnb__graph_free(g);
    pnb_model_free(m);
}

static void test_values(void **state)
{
    (void)state;
    check_values(false);
    check_values(true);
}

/* ---- gradients ---- */

static pnb__tensor *half_square(pnb__tensor *x)
{
    return pnb__affine(pnb__sum(pnb__apply(PNB__SQUARE, x), PNB__ALL_AXES), 0.5, 0);
}

static double loss_now(pnb__graph *g, const pnb__tensor *loss)
{
    double value = 0;
    OK(pnb__graph_run(g, &err));
    pnb__read_f64(loss, &value);
    return value;
}

/* Of 1/2 |mean|^2 + 1/2 |log_var|^2 of both towers, along one direction of each array. The last
 * norm's gain and all that is constant on the sphere of the mean are seen through the variance. */
static void test_gradients(void **state)
{
    (void)state;
    pnb_model *m = in_doubles(PCME VIT "}," WORDS "}}");
    pnb__graph *g = NULL;
    size_t n_moving = 0;
    OK(pnb__model_make_trainable(m, &err));
    OK(pnb__graph_create(&g, ctx, PNB__F64, true, &err));
    const pnb__tower_in in = inputs(g);
    pnb__dist image = pnb__model_build(m, PNB__IMAGE_SIDE, g, &in, false);
    pnb__dist text = pnb__model_build(m, PNB__TEXT_SIDE, g, &in, false);
    pnb__tensor *loss = pnb__add(pnb__add(half_square(image.mean), half_square(image.log_var)),
                                 pnb__add(half_square(text.mean), half_square(text.log_var)));
    OK(pnb__graph_plan(g, loss, &err));
    fill(&in);
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        pnb__param *p = pnb__model_param(m, i);
        double *values = p->data, *grad = calloc(p->n, sizeof *grad), along = 0, side[2];
        if (pnb__starts_with(p->name, "logit_")) {
            free(grad);
            continue;
        }
        (void)loss_now(g, loss);
        assert_true(pnb__read_grad_f64(pnb__param_tensor(g, p), grad));
        for (size_t k = 0; k < p->n; k++)
            along += grad[k] * cos((double)k);
        for (int way = 0; way < 2; way++) {
            const double h = way == 0 ? 1e-6 : -1e-6;
            for (size_t k = 0; k < p->n; k++)
                values[k] += h * cos((double)k);
            side[way] = loss_now(g, loss);
            for (size_t k = 0; k < p->n; k++)
                values[k] -= h * cos((double)k);
        }
        double want =
            (side[0] - side[1]) / 2e-6; /* states of 0.01 behind a norm bend on that scale */
        if (!(fabs(along - want) <= 1e-7 + 1e-6 * fabs(want)))
            fail_msg("%s: %.12g, by differences %.12g", p->name, along, want);
        n_moving += fabs(want) > 1e-6;
        free(grad);
    }
    assert_true(n_moving >= pnb__model_n_params(m) - 12);
    pnb__graph_free(g);
    pnb_model_free(m);
}

/* ---- as a model ---- */

/* What stands behind the last word changes no bit; a word more does. */
static void test_padding(void **state)
{
    (void)state;
    pnb_model *m = NULL;
    float row[3][2 * D];
    const int32_t longer[T] = {3, 4, 5, 6, 0};
    OK(pnb_model_init(&m, ctx, PCME VIT "}," WORDS "}}", 5, &err));
    for (size_t i = 0; i < 3; i++) {
        const pnb_encode_out out = {.mean = row[i], .log_var = row[i] + D};
        OK(pnb_model_encode_text(m, i == 2 ? longer : ids[0], 1, i == 1 ? 3 : T, &out, &err));
    }
    for (size_t k = 0; k < 2 * (size_t)D; k++)
        assert_true(fabsf(row[0][k] - row[1][k]) <= 1e-6F * (1 + fabsf(row[1][k])));
    assert_memory_not_equal(row[0], row[2], sizeof row[0]);
    const pnb_model_info *info = pnb_model_get_info(m);
    assert_string_equal(info->measure, "match_prob");
    assert_int_equal(info->vision.n_patches, N);
    assert_string_equal(info->vision.architecture,
                        "heads of PCME over its patches; local attention");
    assert_string_equal(info->text.pooling, "last word");
    assert_false(pnb__family_of(&m->config)->needs_whole_batch(&m->config));
    pnb_model_free(m);
}

/* One transformer beside a ResNet or GRUs, each with weights of its own alone. */
static void test_mixed(void **state)
{
    (void)state;
    static const char resnet[] = "\"vision_cfg\":{\"layers\":[1,1,1,1],\"base\":2,\"bottleneck\":"
                                 "false,\"image_size\":64},";
    static const char grus[] = "\"text_cfg\":{\"vocab_size\":20,\"word_dim\":6}}";
    char *config[2] = {pnb__format("%s%s%s}}", PCME, resnet, WORDS),
                       pnb__format("%s%s},%s", PCME, VIT, grus)};
    for (size_t i = 0; i < 2; i++) {
        pnb_model *m = NULL;
        OK(pnb_model_init(&m, ctx, config[i], 5, &err));
        assert_int_equal(pnb__model_find_param(m, "visual.cnn.conv1.weight") != NULL, i == 0);
        assert_int_equal(pnb__model_find_param(m, "visual.conv1.weight") != NULL, i == 1);
        assert_int_equal(pnb__model_find_param(m, "text.rnn.weight_ih_l0") != NULL, i == 1);
        assert_int_equal(pnb__model_find_param(m, "text.ln_final.weight") != NULL, i == 0);
        assert_null(pnb__model_find_param(m, "visual.proj"));
        assert_null(pnb__model_find_param(m, "text.text_projection"));
        assert_int_equal(pnb_model_get_info(m)->embed_dim, D);
        pnb_model_free(m);
        pnb__free(config[i]);
    }
}

/* Positions follow another size; a trunk is all but the heads. */
static void test_sizes_and_parts(void **state)
{
    (void)state;
    pnb_model *m = in_doubles(PCME VIT "}," WORDS "}}");
    const pnb__family_calls *family = pnb__family_of(&m->config);
    const pnb_model_load_opts wanted = {.image_height = 16, .image_width = 12, .context_length = 9};
    pnb__config c = m->config;
    pnb__resize resize = {0};
    OK(family->set_sizes(&c, &wanted, &resize, &err));
    assert_true(c.image_height == 16 && c.context_length == 9 && resize.text);
    assert_true(resize.old_height == 2 && resize.old_width == 3);
    assert_true(family->is_trunk("visual.transformer.resblocks.0.ln_1.weight"));
    assert_true(family->is_trunk("text.token_embedding.weight"));
    assert_false(family->is_trunk("visual.fc.weight"));
    assert_false(family->is_trunk("text.uncertain_net.fc2.bias"));
    assert_false(family->is_trunk("logit_scale"));
    pnb_model_free(m);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *words;
    } cases[] = {
        {PCME VIT ",\"embed_unc\":true}," WORDS "}}", "vision_cfg: embed_unc says how"},
        {PCME VIT ",\"trunk\":\"resnet50\"}," WORDS "}}", "trunk"},
        {PCME VIT "}," WORDS ",\"pool_type\":\"last\"}}", "text_cfg: pool_type says how"},
        {PCME VIT "}," WORDS ",\"no_causal_mask\":true}}", "no_causal_mask"},
        {PCME VIT "}," WORDS ",\"word_dim\":300}}", "word_dim"},
        {PCME VIT ",\"pool_type\":\"map\"}," WORDS "}}", "pool_type"},
        {PCME VIT "}}", "vision_cfg and text_cfg are both wanted"},
        {PCME "\"n_embeddings\":2," VIT "}," WORDS "}}", "have no uncertainty"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_model *m = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_not_equal(pnb_model_init(&m, ctx, cases[i].config, 0, &err), PNB_OK);
        if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_padding),         cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_sizes_and_parts), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
