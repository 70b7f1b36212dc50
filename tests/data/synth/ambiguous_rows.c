/* Frozen rows: a caption is its concept's direction, its hint and a length that tells nothing. */
#include "data/synth/ambiguous.h"

#include "tests/prob/support.h"

enum { DIM = 16, WIDE = 40, N = 3000 };

static double length_of(const float *x, size_t dim)
{
    double square = 0;
    for (size_t d = 0; d < dim; d++)
        square += (double)x[d] * x[d];
    return sqrt(square);
}

static pnb_ambiguous_opts small(void)
{
    pnb_ambiguous_opts o = pnb_ambiguous_opts_default();
    o.dim = DIM;
    o.n_roots = 2;
    o.n_levels = 2;
    o.spread = 0.0;
    o.length = 3.0;
    return o;
}

/* Without a hint: mean cosine to the concept is `wording`, log lengths are normal and the same for
 * every concept. */
static void test_text(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb__ambiguous_tree t;
    pnb__ambiguous_voice v;
    double scratch[2 * DIM];
    float x[DIM];
    (void)state;
    o.hint = 0.0;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    assert_ok(pnb__ambiguous_voice_make(&v, &t, err));
    for (size_t c = 0; c < 4; c += 3) {
        double towards = 0, mean = 0, square = 0;
        for (size_t j = 0; j < N; j++) {
            pnb__ambiguous_text_row(&v, c, j, scratch, x);
            double length = length_of(x, DIM), dot = 0;
            for (size_t d = 0; d < DIM; d++)
                dot += (double)x[d] * t.set->mean[c * DIM + d];
            towards += dot / length / length_of(t.set->mean + c * DIM, DIM) / N;
            mean += log(length) / N;
            square += log(length) * log(length) / N;
        }
        assert_near(towards, 0.98, 5e-4, 0);
        assert_near(mean, log(3.0), 0.008, 0);
        assert_near(sqrt(square - mean * mean), 0.1, 0.005, 0);
    }
    pnb__ambiguous_voice_reset(&v);
    pnb__ambiguous_tree_reset(&t);
}

/* The hint moves captions of one concept all alike and makes none longer; of another width the
 * cosines of concepts are kept on average by the map. */
static void test_hint_and_width(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb__ambiguous_tree t;
    pnb__ambiguous_voice v;
    double scratch[DIM + WIDE], lengths = 0;
    float x[WIDE];
    (void)state;
    o.text_dim = WIDE;
    o.hint = 100.0; /* drowns all else: what is left is the code of the place */
    o.length_spread = 0.0;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    assert_ok(pnb__ambiguous_voice_make(&v, &t, err));
    assert_int_equal(v.dim, WIDE);
    for (size_t c = 0; c < t.n; c++) {
        float y[WIDE];
        double alike = 0;
        pnb__ambiguous_text_row(&v, c, 0, scratch, x);
        pnb__ambiguous_text_row(&v, c, 1, scratch, y);
        for (size_t d = 0; d < WIDE; d++)
            alike += (double)x[d] * y[d] / 9.0;
        assert_true(alike > 0.99 && memcmp(x, y, sizeof x) != 0);
        lengths += length_of(x, WIDE) / (double)t.n;
        assert_near(length_of(x, WIDE), 3.0, 1e-5, 0);
    }
    assert_near(lengths, 3.0, 1e-5, 0);
    pnb__ambiguous_voice_reset(&v);
    pnb__ambiguous_tree_reset(&t);
}

static void test_names(void **state)
{
    pnb_ambiguous_opts o = small();
    pnb__ambiguous_tree t;
    char name[PNB__AMBIGUOUS_NAME], text[PNB__AMBIGUOUS_TEXT];
    size_t n_words[5] = {0};
    (void)state;
    o.n_levels = 3;
    assert_ok(pnb__ambiguous_tree_make(&t, &o, err));
    pnb__ambiguous_name(&t, 1, name);
    assert_string_equal(name, "1");
    pnb__ambiguous_name(&t, 2 + 8 + 16 + 7, name);
    assert_string_equal(name, "1.1.3");
    for (size_t j = 0; j < 400; j++) {
        pnb__ambiguous_text(&t, 2 + 5, j, text);
        assert_int_equal(strncmp(text, "c1 c1.1", 7), 0);
        assert_true((strlen(text) - 7) % 3 == 0 && strlen(text) <= 19);
        n_words[(strlen(text) - 7) / 3]++;
    }
    for (int i = 0; i < 5; i++)
        assert_true(n_words[i] > 40);
    pnb__ambiguous_tree_reset(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_hint_and_width),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
