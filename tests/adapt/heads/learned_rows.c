/* Pairs in their order: each once an epoch, another order every epoch, one caption a picture where
 * that is asked for; rows with unit length or as they are. */
#include "tests/adapt/heads/world.h"

#include "adapt/heads/learned.h"

static void every_pair_once(void **state)
{
    (void)state;
    heads_world w = make_heads_world(20, 1, 3);
    pnb__learned_pairs p;
    pnb_error err = PNB_ERROR_INIT;
    uint32_t first[40];
    assert_ok(pnb__learned_pairs_init(&p, w.images, w.texts, w.truth, PNB_ADAPT_TEXTS_ALL, &err),
              &err);
    assert_int_equal(p.n_order, 40);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        bool seen[40] = {false};
        pnb__learned_pairs_shuffle(&p, 5, epoch);
        for (size_t i = 0; i < 40; i++) {
            uint32_t pair = p.order[i];
            assert_false(seen[p.row[1][pair]]);
            seen[p.row[1][pair]] = true;
            assert_int_equal(p.row[0][pair], p.row[1][pair] % 20);
        }
        if (epoch > 0)
            assert_memory_not_equal(first, p.order, sizeof first);
        else
            memcpy(first, p.order, sizeof first);
    }
    pnb__learned_pairs_shuffle(&p, 5, 0);
    assert_memory_equal(first, p.order, sizeof first);
    pnb__learned_pairs_reset(&p);
    free_heads_world(&w);
}

static void one_text_a_image(void **state)
{
    (void)state;
    heads_world w = make_heads_world(20, 1, 3);
    pnb__learned_pairs p;
    pnb_error err = PNB_ERROR_INIT;
    size_t n_second = 0;
    assert_ok(pnb__learned_pairs_init(&p, w.images, w.texts, w.truth, PNB_ADAPT_TEXTS_ONE, &err),
              &err);
    assert_int_equal(p.n_order, 20);
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        bool seen[20] = {false};
        pnb__learned_pairs_shuffle(&p, 5, epoch);
        for (size_t i = 0; i < 20; i++) {
            uint32_t image = p.row[0][p.order[i]];
            assert_false(seen[image]);
            seen[image] = true;
            n_second += p.row[1][p.order[i]] >= 20;
        }
    }
    assert_true(n_second > 400 && n_second < 600); /* of 1000 */
    pnb__learned_pairs_reset(&p);
    free_heads_world(&w);
}

/* Where a caption fits several pictures it comes once an epoch, with another of them each time;
 * captions and pictures without a pair never come. */
static void one_image_a_text(void **state)
{
    (void)state;
    const int64_t pairs[] = {4, 0, 2, 0, 6, 0, 2, 3, 5, 2, 0, 0};
    heads_world w = make_heads_world(8, 1, 3);
    pnb__learned_pairs p;
    pnb_truth *truth = NULL;
    pnb_error err = PNB_ERROR_INIT;
    size_t n_of[8] = {0};
    assert_ok(pnb_truth_create_pairs(&truth, 8, 16, pairs, 6, &err), &err);
    assert_ok(pnb__learned_pairs_init(&p, w.images, w.texts, truth, PNB_ADAPT_TEXTS_EACH, &err),
              &err);
    assert_int_equal(p.n, 6);
    assert_int_equal(p.n_order, 3);
    for (uint64_t epoch = 0; epoch < 400; epoch++) {
        bool seen[16] = {false};
        pnb__learned_pairs_shuffle(&p, 5, epoch);
        for (size_t i = 0; i < 3; i++) {
            uint32_t text = p.row[1][p.order[i]], image = p.row[0][p.order[i]];
            assert_false(seen[text]);
            seen[text] = true;
            n_of[image] += text == 0;
            assert_true(text == 0 || (text == 3 && image == 2) || (text == 2 && image == 5));
        }
        assert_true(seen[0] && seen[2] && seen[3]);
    }
    for (size_t i = 0; i < 8; i++) /* a quarter each */
        assert_true(i % 2 == 1 ? n_of[i] == 0 : n_of[i] > 60 && n_of[i] < 140);
    pnb__learned_pairs_reset(&p);
    pnb_truth_free(truth);
    free_heads_world(&w);
}

/* Behind its end the order begins again. */
static void rows_of_a_batch(void **state)
{
    (void)state;
    heads_world w = make_heads_world(4, 1, 3);
    pnb__learned_pairs p;
    pnb__learned l = {.is_unit = {false, true}};
    pnb_error err = PNB_ERROR_INIT;
    float image[6 * HEADS_DIM], text[6 * HEADS_DIM];
    float *const x[] = {image, text};
    assert_ok(pnb__learned_pairs_init(&p, w.images, w.texts, w.truth, PNB_ADAPT_TEXTS_ALL, &err),
              &err);
    pnb__learned_pairs_shuffle(&p, 1, 0);
    pnb__learned_pairs_read(&p, &l, 5, 6, x);
    for (size_t i = 0; i < 6; i++) {
        uint32_t pair = p.order[(5 + i) % 8];
        const float *wanted = w.texts->mean + p.row[1][pair] * HEADS_DIM;
        assert_memory_equal(image + i * HEADS_DIM, w.images->mean + p.row[0][pair] * HEADS_DIM,
                            HEADS_DIM * sizeof *image);
        for (size_t d = 0; d < HEADS_DIM; d++)
            assert_true(fabs((double)text[i * HEADS_DIM + d] - (double)wanted[d] / 3) < 1e-6);
    }
    pnb__learned_pairs_reset(&p);
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_once),
        cmocka_unit_test(one_text_a_image),
        cmocka_unit_test(one_image_a_text),
        cmocka_unit_test(rows_of_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
