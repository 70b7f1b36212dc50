/* Mixed pictures: how many, of whom, by what share; boxes and weights; labels; that draws are a
 * function of seed and number, and shares those of a Beta distribution. */
#include "train/contrastive/mix.h"

#include <math.h>

#include "tests/train/fixture.h"

enum { B = 8, H = 5, W = 7, N = 3 * H * W };
static const size_t size[2] = {H, W};

static pnb__mixer mixer(double cutmix)
{
    return (pnb__mixer){.share = 0.4, .cutmix = cutmix, .alpha = 1, .seed = 11};
}

/* Picture b is b everywhere but for its place, which is told apart by thousandths. */
static void fill(float *pixels)
{
    for (int i = 0; i < B * N; i++)
        pixels[i] = (float)(i / N) + (float)(i % N) / 1000;
}

static void test_counts(void **state)
{
    (void)state;
    pnb__mixer m = mixer(0);
    assert_int_equal(pnb__mix_count(&m, B), 3); /* int(0.4 * 8) */
    assert_int_equal(pnb__mix_count(&m, 2), 1); /* one at least */
    assert_int_equal(pnb__mix_count(&m, 1), 0); /* with nobody to mix with */
    m.share = 1;
    assert_int_equal(pnb__mix_count(&m, B), B);
    m.share = 0;
    assert_int_equal(pnb__mix_count(&m, B), 0);
}

/* Each of the first n of a random order takes of the next; nobody of itself. */
static void check_order(const pnb__mix *mix)
{
    unsigned seen = 0;
    for (int i = 0; i < B; i++) {
        assert_true(mix->order[i] < B);
        seen |= 1U << mix->order[i];
    }
    assert_int_equal(seen, (1U << B) - 1);
}

/* What mixed picture p should hold at place k. */
static float expected(const pnb__mixed *p, const float *pixels, size_t k)
{
    size_t y = k / W % H, x = k % W;
    bool in_box = x >= p->left && x < p->left + p->width && y >= p->top && y < p->top + p->height;
    float a = pixels[p->own * N + k], b = pixels[p->other * N + k];
    if (p->is_cutmix)
        return in_box ? b : a;
    return (float)p->own_share * a + (float)(1 - p->own_share) * b;
}

static void test_images(void **state)
{
    (void)state;
    static float pixels[B * N], out[B * N], want[B * N];
    uint32_t order[B];
    pnb__mixed each[B];
    pnb__mix mix = {.order = order, .each = each};
    fill(pixels);
    for (uint64_t draw = 0; draw < 40; draw++) {
        pnb__mixer m = mixer(draw % 2 == 1);
        pnb__mix_draw(&m, draw, B, size, &mix);
        check_order(&mix);
        assert_int_equal(mix.n, 3);
        memcpy(want, pixels, sizeof want);
        for (size_t i = 0; i < mix.n; i++) {
            const pnb__mixed *p = &each[i];
            assert_true(p->own == order[i] && p->other == order[i + 1]);
            assert_int_equal(p->is_cutmix, draw % 2);
            for (size_t k = 0; k < N; k++)
                want[p->own * N + k] = expected(p, pixels, k);
            if (p->is_cutmix) /* the label is the share that is left, not the one drawn */
                assert_true(fabs(p->own_share - (1 - (double)(p->width * p->height) / (H * W))) <
                            1e-12);
        }
        pnb__mix_apply(&mix, pixels, B, size, out);
        for (size_t k = 0; k < (size_t)B * N; k++)
            if (!(fabsf(out[k] - want[k]) <= 1e-6F))
                fail_msg("draw %d: picture %zu holds %g, wanted %g", (int)draw, k / N,
                         (double)out[k], (double)want[k]);
    }
}

/* Two draws are alike when seed and number are; both kinds come as often as asked, and in one
 * batch. */
static void test_draws(void **state)
{
    (void)state;
    enum { DRAWS = 2000 };
    uint32_t order[B], other_order[B];
    pnb__mixed each[B], other_each[B];
    pnb__mix mix = {.order = order, .each = each};
    pnb__mix other = {.order = other_order, .each = other_each};
    pnb__mixer m = mixer(0.25);
    int n_cutmix = 0, n_same = 0, n_both = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        pnb__mix_draw(&m, draw, B, size, &mix);
        pnb__mix_draw(&m, draw, B, size, &other);
        for (size_t i = 0; i < mix.n; i++) {
            assert_true(each[i].own_share == other_each[i].own_share);
            assert_int_equal(each[i].is_cutmix, other_each[i].is_cutmix);
            n_cutmix += each[i].is_cutmix;
        }
        n_both += each[0].is_cutmix != each[1].is_cutmix;
        assert_true(each[0].own_share != each[1].own_share || each[0].is_cutmix);
        assert_memory_equal(order, other_order, sizeof order);
        pnb__mixer seeded = m;
        seeded.seed++;
        pnb__mix_draw(&seeded, draw, B, size, &other);
        n_same += memcmp(order, other_order, sizeof order) == 0;
    }
    assert_true(n_cutmix > 1400 && n_cutmix < 1600); /* 1500 expected, deviation 34 */
    assert_true(n_both > 650 && n_both < 850);       /* 750 expected, deviation 22 */
    assert_true(n_same < 5);
}

/* Mean 1/2 and variance 1 / (4 (2 alpha + 1)) of Beta(alpha, alpha). */
static void test_shares(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    static const double alphas[] = {0.2, 1, 2, 8};
    uint32_t order[B];
    pnb__mixed each[B];
    pnb__mix mix = {.order = order, .each = each};
    for (size_t a = 0; a < PNB_COUNT(alphas); a++) {
        pnb__mixer m = mixer(0);
        double sum = 0, squares = 0, want = 1 / (4 * (2 * alphas[a] + 1));
        m.alpha = alphas[a];
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            pnb__mix_draw(&m, draw, B, size, &mix);
            double own = each[draw % mix.n].own_share;
            assert_true(own >= 0 && own <= 1);
            sum += own / DRAWS;
            squares += (own - 0.5) * (own - 0.5) / DRAWS;
        }
        if (!(fabs(sum - 0.5) < 0.015) || !(fabs(squares - want) < 0.06 * want))
            fail_msg("alpha %g: mean %g, variance %g of %g", alphas[a], sum, squares, want);
    }
}

/* Label of row r for column c: what its marks have there. */
static float label_at(const pnb__mix_marks *m, int way, size_t r, size_t c)
{
    float label = 0;
    for (size_t k = 0; k < PNB__MIX_N_MARKS; k++)
        if (m->columns[way][r * PNB__MIX_N_MARKS + k] == (int32_t)c)
            label += m->weights[way][r * PNB__MIX_N_MARKS + k];
    return label;
}

/* Rows of pictures; pairs may stand elsewhere in a step of several micro-batches. Rows of texts
 * have the same labels. Of all pictures mixed too, where each text is another one's. */
static void test_labels(void **state)
{
    (void)state;
    enum { ALL = 2 * B };
    uint32_t order[B];
    pnb__mixed each[B];
    size_t row_of[ALL];
    int32_t columns[2][ALL * PNB__MIX_N_MARKS];
    float weights[2][ALL * PNB__MIX_N_MARKS];
    pnb__mix_marks marks = {{columns[0], columns[1]}, {weights[0], weights[1]}};
    pnb__mix mix = {.order = order, .each = each};
    for (size_t p = 0; p < ALL; p++)
        row_of[p] = ALL - 1 - p;
    for (int v = 0; v < 4; v++) {
        bool moved = v % 2 == 1;
        pnb__mixer m = mixer(0);
        m.share = v < 2 ? m.share : 1;
        pnb__mix_draw(&m, 3, B, size, &mix);
        pnb__mix_label_own(ALL, &marks);
        pnb__mix_label(&mix, B, moved ? row_of : NULL, &marks);
        for (size_t r = 0; r < ALL; r++)
            for (size_t c = 0; c < ALL; c++) {
                size_t pair = moved ? ALL - 1 - r : r, text = moved ? ALL - 1 - c : c;
                float want = r == c;
                for (size_t i = 0; i < mix.n; i++)
                    if (pair == B + order[i])
                        want = r == c                           ? (float)each[i].own_share
                               : text == B + order[(i + 1) % B] ? (float)(1 - each[i].own_share)
                                                                : 0;
                assert_true(fabsf(label_at(&marks, 0, r, c) - want) < 1e-6F);
                assert_true(fabsf(label_at(&marks, 1, c, r) - want) < 1e-6F);
            }
    }
}

/* 0.1 is the label of all, which marks exceed. */
static void test_smoothing(void **state)
{
    (void)state;
    int32_t columns[4] = {0, 0, 1, 0};
    float weights[2][4] = {{1, 0, 0.5F, 0.25F}, {1, 0, 0.5F, 0.25F}};
    pnb__mix_marks marks = {{columns, columns}, {weights[0], weights[1]}};
    const float want[4] = {0.9F, 0.1F, 0.5F, 0.3F};
    pnb__mix_smooth(0, 2, &marks);
    assert_true(weights[0][0] == 1 && weights[1][1] == 0);
    pnb__mix_smooth(0.1, 2, &marks);
    for (int i = 0; i < 4; i++)
        for (int way = 0; way < 2; way++)
            assert_true(fabsf(weights[way][i] + 0.1F - want[i]) < 1e-7F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_images),
        cmocka_unit_test(test_draws),  cmocka_unit_test(test_shares),
        cmocka_unit_test(test_labels), cmocka_unit_test(test_smoothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
