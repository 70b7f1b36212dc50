/* Controls of known uncertainty: words and their frequencies of three captions by hand, gradients
 * of pictures that are known, and files that are smaller the less is in a picture. */
#include "commands/eval/uncertainty/known_rows.h"
#include "io/image/formats/codec.h"
#include "tests/prob/support.h"

static void words_of_texts(void **state)
{
    (void)state;
    const char *texts[] = {"A red star", "a red, RED ring!", "stars", ""};
    pnb_embeddings *set = NULL;
    pnb__known_side side = {0};
    assert_ok(pnb_embeddings_create(&set, PNB_POINT, 4, 2, err));
    for (size_t i = 0; i < 4; i++)
        assert_ok(pnb_embeddings_set_text(set, i, texts[i], err));
    assert_ok(pnb__known_side_init(&side, set, err));
    assert_ok(pnb__known_text_controls(&side, err));
    /* of 4 captions 2 hold "a" and "red", 1 each of the others */
    const double half = log(0.5), rare = log(0.25);
    const double length[] = {-3, -4, -1, 0};
    const double common[] = {(2 * half + rare) / 3, (3 * half + rare) / 4, rare, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_near(side.score[2][i], length[i], 0, 0);
        assert_near(side.score[3][i], common[i], 1e-15, 0);
    }
    pnb__known_side_reset(&side);
    /* a row without a text: no controls, and no failure */
    assert_ok(pnb_embeddings_set_text(set, 2, NULL, err));
    assert_ok(pnb__known_side_init(&side, set, err));
    assert_ok(pnb__known_text_controls(&side, err));
    assert_true(side.score[2] == NULL && side.score[3] == NULL);
    pnb__known_side_reset(&side);
    pnb_embeddings_free(set);
}

enum { SIDE = 16 };

/* value = ax x + ay y in all channels */
static void ramp(unsigned char *pixels, int ax, int ay)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            memset(pixels + 3 * (y * SIDE + x), ax * x + ay * y, 3);
}

static void gradients(void **state)
{
    (void)state;
    unsigned char pixels[SIDE * SIDE * 3];
    pnb_image image = {SIDE, SIDE, 3, pixels, .mode = PNB_IMAGE_PLAIN};
    ramp(pixels, 3, 4);
    assert_near(pnb__mean_gradient(&image), 5, 1e-12, 0);
    ramp(pixels, 0, 0);
    assert_near(pnb__mean_gradient(&image), 0, 0, 0);
    for (int i = 0; i < SIDE * SIDE; i++) /* green weighs 0.587 */
        pixels[3 * i + 1] = (unsigned char)(10 * (i % SIDE));
    assert_near(pnb__mean_gradient(&image), 5.87, 1e-12, 0);
    image.height = 1;
    assert_near(pnb__mean_gradient(&image), 0, 0, 0);
}

static size_t size_of(pnb_image *image, int quality)
{
    size_t n = 0;
    assert_ok(pnb__jpeg_size(image, quality, &n, err));
    return n;
}

static void sizes_of_files(void **state)
{
    (void)state;
    unsigned char pixels[SIDE * SIDE * 3];
    pnb_image image = {SIDE, SIDE, 3, pixels, .mode = PNB_IMAGE_PLAIN};
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    ramp(pixels, 0, 0);
    size_t flat = size_of(&image, 75);
    ramp(pixels, 3, 4);
    size_t smooth = size_of(&image, 75);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)pnb__rng_below(&rng, 256);
    size_t noise = size_of(&image, 75);
    assert_true(flat < smooth && smooth < noise && noise < size_of(&image, 95));
    assert_int_equal(noise, size_of(&image, 75));
    size_t n = 0;
    image.channels = 1;
    assert_fails(pnb__jpeg_size(&image, 75, &n, err), PNB_ARG, "not RGB");
    image.channels = 3;
    image.width = 70000;
    assert_fails(pnb__jpeg_size(&image, 75, &n, err), PNB_ARG, "wider");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_texts),
        cmocka_unit_test(gradients),
        cmocka_unit_test(sizes_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
