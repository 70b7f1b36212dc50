/* The caption encoder: its weights by the names of the reference, what its output does and does not
 * depend on, the baselines, and where a caption ends. Values and gradients are a golden case. */
#include "tests/models/pcme/drawn.h"

enum { B = 3, T = 5, D = 8 };
static const int32_t ids[B * T] = {1, 4, 2, 0, 0, 1, 5, 9, 3, 2, 7, 0, 0, 0, 0};

/* mean and log_std (B,D) of captions padded to `n` ids; log_std may be NULL. */
static void run_tower(const pnb__weights *w, const int32_t *texts, size_t n, bool unit, float *mean,
                      float *log_var)
{
    pnb__graph *g = NULL;
    int32_t places[2][B];
    const size_t n_batch = B;
    for (size_t b = 0; b < B; b++) {
        int32_t found[PNB__MAX_PLACES];
        assert_int_equal(pnb__pcme_find_places(NULL, texts + b * n, n, b, found, NULL), PNB_OK);
        for (int i = 0; i < 2; i++)
            places[i][b] = found[i];
    }
    assert_int_equal(pnb__graph_create(&g, ctx, PNB__F32, false, NULL), PNB_OK);
    pnb__tower_in in = {.ids = pnb__input(g, PNB__INT32, 2, (size_t[]){B, n})};
    for (int i = 0; i < 2; i++)
        in.places[i] = pnb__input(g, PNB__INT32, 1, &n_batch);
    pnb__dist out = pnb__pcme_build_text(w, NULL, g, &in, unit);
    assert_int_equal(out.log_var != NULL, log_var != NULL);
    pnb__keep(out.mean);
    if (log_var != NULL)
        pnb__keep(out.log_var);
    assert_int_equal(pnb__graph_plan(g, NULL, NULL), PNB_OK);
    pnb__write_i32(in.ids, texts);
    for (int i = 0; i < 2; i++)
        pnb__write_i32(in.places[i], places[i]);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    pnb__read_f32(out.mean, mean);
    if (log_var != NULL)
        pnb__read_f32(out.log_var, log_var);
    pnb__graph_free(g);
}

static void test_names(void **state)
{
    static const struct {
        const char *name, *key;
        size_t rows, columns; /* 0: a vector */
        double value;         /* the bound it starts within */
    } want[] = {
        {"text.embed.weight", "txt_enc.embed.weight", 11, 6, 0.594089},
        {"text.rnn.weight_ih_l0", "txt_enc.rnn.weight_ih_l0", 12, 6, 0.5},
        {"text.rnn.weight_hh_l0_reverse", "txt_enc.rnn.weight_hh_l0_reverse", 12, 4, 0.5},
        {"text.rnn.bias_hh_l0_reverse", "txt_enc.rnn.bias_hh_l0_reverse", 12, 0, 0.5},
        {"text.pie_net.attention.w_1.weight", "txt_enc.pie_net.attention.w_1.weight", 3, 6,
         0.816497},
        {"text.pie_net.attention.w_2.weight", "txt_enc.pie_net.attention.w_2.weight", 1, 3,
         1.224745},
        {"text.pie_net.fc.weight", "txt_enc.pie_net.fc.weight", 8, 6, 0.654654},
        {"text.pie_net.fc.bias", "txt_enc.pie_net.fc.bias", 8, 0, 0},
        {"text.pie_net.layer_norm.weight", "txt_enc.pie_net.layer_norm.weight", 8, 0, 1},
        {"text.uncertain_net.fc.weight", "txt_enc.uncertain_net.fc.weight", 8, 6, 0.654654},
        {"text.uncertain_net.rnn.bias_ih_l0", "txt_enc.uncertain_net.rnn.bias_ih_l0", 12, 0, 0.5},
    };
    pnb__weights w;
    (void)state;
    drawn_weights(&w, &small, NULL);
    assert_int_equal(w.n, 1 + 8 + 6 + 4 + 8);
    const pnb__key_mapping keys = {.text = &pnb__pcme_text_keys, .prefix = ""};
    for (size_t i = 0; i < PNB_COUNT(want); i++) {
        const pnb__weight *item = weight_of(&w, want[i].name);
        pnb__key_mapping_part parts[3];
        assert_true(item->is_text && item->param.trainable);
        assert_int_equal(item->param.shape[0], want[i].rows);
        assert_int_equal(item->param.n_dims, want[i].columns == 0 ? 1 : 2);
        if (want[i].columns > 0)
            assert_int_equal(item->param.shape[1], want[i].columns);
        if (!(fabs(item->value - want[i].value) <= 1e-6))
            fail_msg("%s starts within %.7g", want[i].name, item->value);
        assert_int_equal(pnb__key_mapping_parts(&keys, want[i].name, parts), 1);
        assert_string_equal(parts[0].key, want[i].key);
    }
    pnb__weights_reset(&w);
}

/* A caption's embedding is its own: neither the others, nor their order, nor the room behind it
 * change a bit. */
static void test_texts_are_alone(void **state)
{
    static const int order[B] = {2, 0, 1};
    int32_t turned[B * T], wide[B * (T + 3)] = {0};
    float mean[3][B * D], log_var[3][B * D];
    pnb__weights w;
    (void)state;
    drawn_weights(&w, &small, NULL);
    for (size_t b = 0; b < B; b++) {
        memcpy(turned + b * T, ids + (size_t)order[b] * T, T * sizeof *ids);
        memcpy(wide + b * (T + 3), ids + b * T, T * sizeof *ids);
    }
    run_tower(&w, ids, T, true, mean[0], log_var[0]);
    run_tower(&w, turned, T, true, mean[1], log_var[1]);
    run_tower(&w, wide, T + 3, true, mean[2], log_var[2]);
    for (size_t b = 0; b < B; b++) {
        size_t from = (size_t)order[b] * D;
        assert_memory_equal(mean[1] + b * D, mean[0] + from, D * sizeof(float));
        assert_memory_equal(log_var[1] + b * D, log_var[0] + from, D * sizeof(float));
    }
    assert_memory_equal(mean[2], mean[0], sizeof mean[0]);
    assert_memory_equal(log_var[2], log_var[0], sizeof log_var[0]);
    pnb__weights_reset(&w);
}

/* The order of words matters, and the mean has norm 1 where that is asked. */
static void test_words_have_an_order(void **state)
{
    int32_t turned[B * T];
    float mean[2][B * D], log_var[B * D];
    pnb__weights w;
    (void)state;
    drawn_weights(&w, &small, NULL);
    memcpy(turned, ids, sizeof turned);
    turned[T + 1] = ids[T + 2], turned[T + 2] = ids[T + 1];
    run_tower(&w, ids, T, true, mean[0], log_var);
    run_tower(&w, turned, T, true, mean[1], log_var);
    double change = 0, norm = 0;
    for (size_t d = 0; d < D; d++) {
        change += fabs((double)mean[1][D + d] - (double)mean[0][D + d]);
        norm += (double)mean[0][D + d] * (double)mean[0][D + d];
    }
    assert_true(change > 1e-4);
    assert_true(fabs(norm - 1) < 1e-6);
    assert_memory_equal(mean[1], mean[0], D * sizeof(float)); /* the caption before it */
    pnb__weights_reset(&w);
}

/* K embeddings are (B,K,D); without attention the mean is the GRU's state alone. */
static void test_baselines(void **state)
{
    pnb__pcme_config pvse = small, vse = small;
    float mean[3 * B * D], plain[B * D];
    pnb__weights w;
    (void)state;
    pvse.n_embeddings = 3, pvse.with_uncertainty = false;
    vse.with_attention = vse.with_uncertainty = false;
    drawn_weights(&w, &pvse, NULL);
    assert_int_equal(w.n, 1 + 8 + 6);
    run_tower(&w, ids, T, true, mean, NULL);
    for (size_t i = 0; i < (size_t)3 * B; i++) {
        double norm = 0;
        for (size_t d = 0; d < D; d++)
            norm += (double)mean[i * D + d] * (double)mean[i * D + d];
        assert_true(fabs(norm - 1) < 1e-5);
    }
    assert_memory_not_equal(mean, mean + D, D * sizeof(float));
    pnb__weights_reset(&w);
    drawn_weights(&w, &vse, NULL);
    assert_int_equal(w.n, 1 + 8);
    run_tower(&w, ids, T, false, plain, NULL);
    for (size_t i = 0; i < (size_t)B * D; i++)
        assert_true(fabsf(plain[i]) < 1); /* a state of a GRU */
    pnb__weights_reset(&w);
}

static void test_places(void **state)
{
    int32_t places[PNB__MAX_PLACES];
    pnb_error err = PNB_ERROR_INIT;
    const int32_t inside[T] = {1, 0, 4, 0, 0}, none[T] = {0};
    (void)state;
    assert_int_equal(pnb__pcme_n_places(NULL), 2);
    assert_int_equal(pnb__pcme_find_places(NULL, ids + T, T, 1, places, NULL), PNB_OK);
    assert_int_equal(places[PNB__PCME_LENGTH], 5);
    assert_int_equal(places[PNB__PCME_LAST_ROW], 9);
    assert_int_equal(pnb__pcme_find_places(NULL, inside, T, 4, places, NULL), PNB_OK);
    assert_int_equal(places[PNB__PCME_LENGTH], 3);
    assert_int_equal(places[PNB__PCME_LAST_ROW], 22);
    assert_int_equal(pnb__pcme_find_places(NULL, none, T, 7, places, &err), PNB_ARG);
    assert_string_equal(err.text, "caption 7 has no words: all of its ids are 0, the padding's");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_texts_are_alone),
        cmocka_unit_test(test_baselines), cmocka_unit_test(test_words_have_an_order),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
