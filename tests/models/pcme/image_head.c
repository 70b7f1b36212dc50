/* The heads over a feature map: names, and a map whose positions are alike, of which attention
 * takes nothing but the mean. Values and gradients are a golden case. */
#include "tests/models/pcme/drawn.h"

enum { B = 2, C = 10, H = 3, W = 2, D = 8 };

static void test_names(void **state)
{
    static const struct {
        const char *name, *key;
        size_t rows;
        double value;
    } want[] = {
        {"visual.fc.weight", "img_enc.fc.weight", 8, 0.316228},
        {"visual.fc.bias", "img_enc.fc.bias", 8, 0.316228},
        {"visual.pie_net.attention.w_1.weight", "img_enc.pie_net.attention.w_1.weight", 5,
         0.632456},
        {"visual.pie_net.layer_norm.bias", "img_enc.pie_net.layer_norm.bias", 8, 0},
        {"visual.uncertain_net.fc.weight", "img_enc.uncertain_net.fc.weight", 8, 0.577350},
        {"visual.uncertain_net.fc2.weight", "img_enc.uncertain_net.fc2.weight", 8, 0.316228},
        {"visual.uncertain_net.fc2.bias", "img_enc.uncertain_net.fc2.bias", 8, 0.316228},
    };
    pnb__pcme_image_head head = {.fc = {NULL}};
    pnb__weights w;
    (void)state;
    drawn_weights(&w, &small, &head);
    assert_int_equal(w.n, 2 + 6 + 4 + 2);
    const pnb__key_mapping keys = {.vision = &pnb__pcme_image_keys, .prefix = "module."};
    for (size_t i = 0; i < PNB_COUNT(want); i++) {
        const pnb__weight *item = weight_of(&w, want[i].name);
        pnb__key_mapping_part parts[3];
        char key[128];
        assert_false(item->is_text);
        assert_int_equal(item->param.shape[0], want[i].rows);
        if (!(fabs(item->value - want[i].value) <= 1e-6))
            fail_msg("%s starts within %.7g", want[i].name, item->value);
        assert_int_equal(pnb__key_mapping_parts(&keys, want[i].name, parts), 1);
        snprintf(key, sizeof key, "module.%s", want[i].key);
        assert_string_equal(parts[0].key, key);
    }
    pnb__weights_reset(&w);
}

/* mean and log_var (B,D) of features (B,C,H,W); `pooled` is given where it is not NULL. */
static void run_head(const pnb__pcme_image_head *head, const float *features, const float *pooled,
                     float *mean, float *log_var)
{
    pnb__graph *g = NULL;
    assert_int_equal(pnb__graph_create(&g, ctx, PNB__F32, false, NULL), PNB_OK);
    pnb__tensor *x = pnb__input(g, PNB__REAL, 4, (size_t[]){B, C, H, W});
    pnb__tensor *v = pooled != NULL ? pnb__input(g, PNB__REAL, 2, (size_t[]){B, C}) : NULL;
    pnb__pcme_embedding e = pnb__pcme_image_head_apply(g, head, pnb__pcme_positions_of(x), v, true);
    pnb__dist out = pnb__pcme_dist(&e);
    pnb__keep(out.mean);
    if (out.log_var != NULL)
        pnb__keep(out.log_var);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    pnb__write_f32(x, features);
    if (v != NULL)
        pnb__write_f32(v, pooled);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    pnb__read_f32(out.mean, mean);
    if (out.log_var != NULL)
        pnb__read_f32(out.log_var, log_var);
    pnb__graph_free(g);
}

/* Attention sees every position with its own weight, so where all are alike its result is that
 * position; turning the map round changes nothing, another map does. */
static void test_positions(void **state)
{
    float features[3][B * C * H * W], mean[3][B * D], log_var[3][B * D], pooled[B * C];
    pnb__pcme_image_head head = {.fc = {NULL}};
    pnb__weights w;
    (void)state;
    drawn_weights(&w, &small, &head);
    const size_t n = (size_t)H * W;
    for (size_t i = 0; i < B * C * n; i++) {
        features[0][i] = (float)sin((double)i * 0.7);
        features[1][i / n * n + n - 1 - i % n] = features[0][i];
        features[2][i] = features[0][i] + (i % n == 0 ? 0.5F : 0);
    }
    for (size_t i = 0; i < (size_t)B * C; i++) {
        double sum = 0;
        for (size_t p = 0; p < n; p++)
            sum += (double)features[0][i * n + p];
        pooled[i] = (float)(sum / (double)n);
    }
    for (int i = 0; i < 3; i++)
        run_head(&head, features[i], NULL, mean[i], log_var[i]);
    for (size_t i = 0; i < (size_t)B * D; i++) {
        assert_true(fabsf(mean[1][i] - mean[0][i]) < 1e-6F);
        assert_true(fabsf(log_var[1][i] - log_var[0][i]) < 1e-5F);
    }
    assert_memory_not_equal(mean[2], mean[0], sizeof mean[0]);
    run_head(&head, features[0], pooled, mean[1], log_var[1]);
    for (size_t i = 0; i < (size_t)B * D; i++) {
        assert_true(fabsf(mean[1][i] - mean[0][i]) < 1e-6F);
        assert_true(fabsf(log_var[1][i] - log_var[0][i]) < 1e-5F);
    }
    pnb__weights_reset(&w);
}

/* VSE: the projected mean of the map with norm 1, and nothing else declared. */
static void test_without_attention(void **state)
{
    pnb__pcme_config vse = small;
    pnb__pcme_image_head head = {.fc = {NULL}};
    float features[B * C * H * W], mean[B * D];
    pnb__weights w;
    (void)state;
    vse.with_attention = vse.with_uncertainty = false;
    drawn_weights(&w, &vse, &head);
    assert_int_equal(w.n, 2);
    for (size_t i = 0; i < PNB_COUNT(features); i++)
        features[i] = (float)(i / (H * W) % C) * 0.1F; /* channel c is c / 10 everywhere */
    run_head(&head, features, NULL, mean, NULL);
    const float *weight = head.fc[0]->data, *bias = head.fc[1]->data;
    double want[D], norm = 0;
    for (size_t d = 0; d < D; d++) {
        want[d] = (double)bias[d];
        for (size_t c = 0; c < C; c++)
            want[d] += (double)weight[d * C + c] * (double)((float)c * 0.1F);
        norm += want[d] * want[d];
    }
    for (size_t d = 0; d < D; d++)
        assert_true(fabs((double)mean[d] - want[d] / sqrt(norm)) < 1e-6);
    pnb__weights_reset(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_positions),
                                       cmocka_unit_test(test_without_attention)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
