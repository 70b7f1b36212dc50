/* Sums over passes against the moments written out, and what goes from captions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "encode/job/embed_passes.h"

enum { N = 2, D = 3, PASSES = 4 };

static void moments_of_passes(void **state)
{
    (void)state;
    static const float x[PASSES][N * D] = {{1, 0, 0, 0.5F, 0.5F, 0},
                                           {0, 1, 0, 0.5F, 0.5F, 0},
                                           {0.5F, 0, 0.5F, 0.5F, 0.5F, 0},
                                           {0.25F, 0, 0.75F, 0.5F, 0.5F, 0}};
    double sums[2 * N * D] = {0};
    pnb_embeddings *set = NULL;
    assert_int_equal(pnb_embeddings_create(&set, PNB_GAUSSIAN_DIAG, N + 1, D, NULL), PNB_OK);
    for (size_t p = 0; p < PASSES; p++)
        pnb__passes_add(sums, x[p], N, D);
    assert_int_equal(pnb__passes_finish(sums, N, PASSES, set, 1, NULL), PNB_OK);
    for (size_t i = 0; i < N; i++) {
        double m[D] = {0}, length = 0;
        for (size_t d = 0; d < D; d++) {
            for (size_t p = 0; p < PASSES; p++)
                m[d] += (double)x[p][i * D + d] / PASSES;
            length += m[d] * m[d];
        }
        for (size_t d = 0; d < D; d++) {
            double wanted = 0, found = exp((double)set->log_var[(i + 1) * D + d]);
            for (size_t p = 0; p < PASSES; p++)
                wanted += pow((double)x[p][i * D + d] - m[d], 2) / (PASSES - 1) / length;
            assert_true(fabs(found - fmax(wanted, 1e-12)) < 1e-6 * fmax(wanted, 1e-12));
            assert_true(fabs((double)set->mean[(i + 1) * D + d] - m[d] / sqrt(length)) < 1e-6);
        }
    }
    memset(sums, 0, sizeof sums);
    assert_int_equal(pnb__passes_finish(sums, N, PASSES, set, 0, NULL), PNB_NUMERIC);
    pnb_embeddings_free(set);
}

static size_t count_words(const char *s)
{
    size_t n = *s != '\0';
    for (; *s != '\0'; s++)
        n += *s == ' ';
    return n;
}

/* Three words of ten go, one always stays, and the same go again. */
static void words_that_go(void **state)
{
    (void)state;
    size_t kept = 0;
    for (size_t input = 0; input < 400; input++)
        for (size_t pass = 0; pass < 5; pass++) {
            char *left =
                pnb__passes_text("a b c d e f g h i j k l m n o p q r s t", 7, input, pass);
            char *again =
                pnb__passes_text("a b c d e f g h i j k l m n o p q r s t", 7, input, pass);
            char *one = pnb__passes_text("word", 7, input, pass);
            assert_string_equal(left, again);
            assert_string_equal(one, "word");
            kept += count_words(left);
            pnb__free(left);
            pnb__free(again);
            pnb__free(one);
        }
    double share = (double)kept / (400 * 5 * 20), wanted = 0.7 + 0.3 / 20;
    assert_true(fabs(share - wanted) < 0.01); /* 40,000 draws: 0.0023 is one deviation */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moments_of_passes),
                                       cmocka_unit_test(words_that_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
