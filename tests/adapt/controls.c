/* Controls: the head in f64 by hand, words of captions, and what they say in the chain. */
#include "adapt/controls.h"

#include "sets/provenance.h"
#include "tests/prob/support.h"

enum { N = 700, D = 6 };

static pnb_embeddings *frozen(void)
{
    pnb_embeddings *set;
    pnb__rng rng;
    pnb__rng_init(&rng, 8, 0);
    assert_ok(pnb_embeddings_create(&set, PNB_POINT, N, D, err));
    for (size_t i = 0; i < N * D; i++)
        set->mean[i] = (float)pnb__rng_normal(&rng);
    snprintf(set->info.modality, sizeof set->info.modality, "text");
    snprintf(set->info.weights_sha256, sizeof set->info.weights_sha256, "%064d", 7);
    assert_ok(pnb_embeddings_set_id(set, 1, "one", err));
    return set;
}

static double trace_of(const pnb_embeddings *set, size_t row)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += exp(set->log_var[row * D + d]);
    return sum;
}

/* |head(x)| with weights and then biases of each layer from stream i of the seed. */
static double length_of_head(const float *row, uint64_t seed)
{
    double x[4 * D], y[4 * D], square = 0;
    for (size_t d = 0; d < D; d++)
        x[d] = row[d];
    for (size_t i = 0; i < 4; i++) {
        size_t in = i == 0 ? D : 4 * D, n = i == 3 ? D : 4 * D;
        double reach = 1.0 / sqrt((double)in);
        float w[4 * D * 4 * D];
        pnb__rng rng;
        pnb__rng_init(&rng, seed, i);
        for (size_t k = 0; k < n * in; k++)
            w[k] = (float)(reach * (2.0 * pnb__rng_uniform(&rng) - 1.0));
        for (size_t j = 0; j < n; j++) {
            y[j] = (float)(reach * (2.0 * pnb__rng_uniform(&rng) - 1.0));
            for (size_t k = 0; k < in; k++)
                y[j] += w[j * in + k] * x[k];
            y[j] = i < 3 ? fmax(y[j], 0.0) : y[j];
        }
        memcpy(x, y, n * sizeof *x);
    }
    for (size_t d = 0; d < D; d++)
        square += x[d] * x[d];
    return sqrt(square);
}

static void test_untrained(void **state)
{
    pnb_embeddings *set = frozen(), *made, *again, *other;
    pnb_ctx *ctx;
    (void)state;
    assert_ok(pnb_ctx_create(&ctx, NULL, err));
    assert_ok(pnb__control_untrained(&made, ctx, set, 4, err));
    assert_ok(pnb__control_untrained(&again, ctx, set, 4, err));
    assert_ok(pnb__control_untrained(&other, ctx, set, 5, err));
    assert_int_equal(made->family, PNB_GAUSSIAN_DIAG);
    assert_memory_equal(made->mean, set->mean, N * D * sizeof(float));
    assert_memory_equal(made->log_var, again->log_var, N * D * sizeof(float));
    assert_true(memcmp(made->log_var, other->log_var, N * D * sizeof(float)) != 0);
    for (size_t i = 0; i < N; i += 99) /* behind the first block too */
        assert_near(trace_of(made, i), 1.0 / length_of_head(set->mean + i * D, 4), 0, 2e-5);
    assert_string_equal(made->ids[1], "one");
    assert_string_equal(made->info.measure, "mean");
    assert_string_equal(made->info.adapters.items[0].name, "untrained");
    assert_true(made->info.adapters.items[0].leaves_images);
    assert_string_not_equal(made->info.adapters.items[0].sha256,
                            other->info.adapters.items[0].sha256);
    pnb_embeddings_free(set);
    pnb_embeddings_free(made);
    pnb_embeddings_free(again);
    pnb_embeddings_free(other);
    pnb_ctx_free(ctx);
}

static void test_length(void **state)
{
    static const char *const texts[] = {"a star", "", "  one\ttwo  three\n", "word"};
    static const double n_words[] = {2, 0, 3, 1};
    pnb_embeddings *set = frozen(), *made = NULL;
    (void)state;
    for (size_t i = 0; i < N - 1; i++)
        assert_ok(pnb_embeddings_set_text(set, i, texts[i % 4], err));
    assert_fails(pnb__control_length(&made, set, err), PNB_NOT_FOUND, "row 699 has no text");
    assert_null(made);
    assert_ok(pnb_embeddings_set_text(set, N - 1, "x", err));
    assert_ok(pnb__control_length(&made, set, err));
    for (size_t i = 0; i < 4; i++)
        assert_near(trace_of(made, i), 1.0 / (1.0 + n_words[i]), 0, 1e-6);
    pnb_embeddings_free(set);
    pnb_embeddings_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untrained),
        cmocka_unit_test(test_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
