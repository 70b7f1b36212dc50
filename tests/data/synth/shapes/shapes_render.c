/* Drawing scenes: areas and edges of the forms, outlines, blur, the occluder and the noise. */
#include "data/synth/shapes/shapes.h"

#include "tests/data/fixture.h"

#include <math.h>

/* Forms have the areas they should and lie inside their boxes. */
static void test_forms(void **state)
{
    double area[PNB__N_FORMS];
    (void)state;
    for (int f = 0; f < PNB__N_FORMS; f++) {
        pnb__shape s = {.form = f, .radius = 1.0};
        double half[2];
        int n = 0;
        pnb__shape_extent(&s, half);
        for (int i = -160; i <= 160; i++)
            for (int j = -160; j <= 160; j++) {
                bool is_in = pnb__shape_depth(f, i / 100.0, j / 100.0) > 0;
                assert_false(is_in && (abs(i) > 100 * half[0] + 1 || abs(j) > 100 * half[1] + 1));
                n += is_in;
            }
        area[f] = n / 10000.0;
        print_message("%s: area %.3f\n", pnb__form_name(f), area[f]);
    }
    assert_true(fabs(area[PNB__CIRCLE] - 3.14159 * 0.97 * 0.97) < 0.03);
    assert_true(fabs(area[PNB__SQUARE] - 4 * 0.66 * 0.66) < 0.05);
    /* ten triangles from the centre to a tip and a notch */
    assert_true(fabs(area[PNB__STAR] - 5 * 0.42 * 1.28 * 1.28 * sin(3.14159 / 5)) < 0.03);
    assert_true(fabs(area[PNB__RING] - 3.14159 * (1.0 - 0.53 * 0.53) * 1.04 * 1.04) < 0.03);
    assert_true(fabs(area[PNB__BAR] - 4 * 1.45 * 0.30) < 0.06);
    assert_true(fabs(area[PNB__POLE] - area[PNB__BAR]) < 0.01);
}

/* Depth is the distance to the edge: known at single points, and never changes faster than the
 * point moves. */
static void test_depth(void **state)
{
    (void)state;
    assert_true(fabs(pnb__shape_depth(PNB__CIRCLE, 0.3, 0.4) - (0.97 - 0.5)) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__SQUARE, -0.5, 0.1) - 0.16) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__RING, 0.0, 1.0) - 0.04) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__RING, 0.6, 0.0) - (0.6 - 0.53 * 1.04)) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__BAR, 1.0, 0.1) - 0.2) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__POLE, 0.1, 1.0) - 0.2) < 1e-9);
    assert_true(fabs(pnb__shape_depth(PNB__STAR, 0.0, 1.28)) < 1e-9); /* the upper tip */
    assert_true(pnb__shape_depth(PNB__STAR, 0.0, -1.0) < 0);          /* between two tips */
    for (int f = 0; f < PNB__N_FORMS; f++)
        for (int i = -80; i < 80; i++)
            for (int j = -80; j < 80; j++) {
                double here = pnb__shape_depth(f, i / 50.0, j / 50.0);
                double right = pnb__shape_depth(f, (i + 1) / 50.0, j / 50.0);
                double above = pnb__shape_depth(f, i / 50.0, (j + 1) / 50.0);
                assert_true(fabs(right - here) < 0.02 + 1e-9 && fabs(above - here) < 0.02 + 1e-9);
            }
}

/* Every colour has the same dark outline around its own fill, also a grey one; together they cover
 * what the form covers. */
static void test_outline(void **state)
{
    enum { N = 64 * 64 };
    pnb_shapes_opts o = pnb_shapes_opts_default();
    float *fill = calloc(2 * N, sizeof *fill), *line = fill + N;
    (void)state;
    for (int k = 0; k < PNB__N_FORMS * PNB__N_SIZES * (PNB__N_COLOURS + 1); k++) {
        int colour = k / (PNB__N_FORMS * PNB__N_SIZES);
        bool is_grey = colour == PNB__N_COLOURS;
        pnb__shape s = {.form = k % PNB__N_FORMS,
                        .size = k / PNB__N_FORMS % PNB__N_SIZES,
                        .x = 32,
                        .y = 32,
                        .angle = 0.05,
                        .is_grey = is_grey};
        s.radius = pnb__size_radius(s.size, 64, 64);
        for (int c = 0; c < 3; c++)
            s.rgb[c] = 0.55f;
        if (!is_grey)
            pnb__colour_rgb(colour, s.rgb);
        pnb__shape_coverage(&s, 64, 64, fill, line);
        pnb__scene scene = {.n_shapes = 1, .shapes = {s}, .ground = {0.95f, 0.95f, 0.95f}};
        pnb_image image;
        ASSERT_OK(pnb__scene_render(&scene, &o, 0, &image, &err));
        int n_fill = 0, n_line = 0;
        for (int i = 0; i < N; i++) {
            assert_true(fill[i] >= 0 && line[i] >= 0 && fill[i] + line[i] <= 1);
            n_fill += fill[i] >= 1;
            n_line += line[i] >= 1;
            for (int c = 0; c < 3 && fill[i] + line[i] >= 1; c++) {
                float want = fill[i] * s.rgb[c] + line[i] * PNB__INK;
                assert_true(fabsf((float)image.pixels[i * 3 + c] / 255 - want) < 0.05f);
            }
        }
        assert_true(n_fill > 10 && n_line > 10);
        pnb_image_free(&image);
    }
    free(fill);
}

/* A blurred point is the product of two Gaussians of that width; a plane of one value stays. */
static void test_blur(void **state)
{
    enum { W = 41, H = 33, X = 20, Y = 16 };
    static float plane[W * H], scratch[W * H];
    const double std = 2.5;
    double total = 0, of_kernel = 0;
    (void)state;
    plane[Y * W + X] = 1;
    pnb__blur_plane(plane, W, H, std, scratch);
    for (int k = -8; k <= 8; k++) /* three standard deviations, rounded up */
        of_kernel += exp(-0.5 * k * k / (std * std));
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int dx = x - X, dy = y - Y;
            double want =
                abs(dx) > 8 || abs(dy) > 8
                    ? 0
                    : exp(-0.5 * (dx * dx + dy * dy) / (std * std)) / of_kernel / of_kernel;
            assert_true(fabs((double)plane[y * W + x] - want) < 1e-6);
            total += (double)plane[y * W + x];
        }
    assert_true(fabs(total - 1) < 1e-5);
    for (int i = 0; i < W * H; i++)
        plane[i] = 0.3f;
    pnb__blur_plane(plane, W, H, 40, scratch); /* wider than the plane: its border goes on */
    for (int i = 0; i < W * H; i++)
        assert_true(fabsf(plane[i] - 0.3f) < 1e-5f);
    for (int i = 0; i < W * H; i++)
        plane[i] = i % W < X ? 0.0f : 1.0f;
    pnb__blur_plane(plane, W, H, std, scratch);
    for (int i = 0; i < W * H; i++) { /* both borders are far from the edge: they go on, too */
        assert_true(i % W > X - 9 || plane[i] < 1e-6f);
        assert_true(i % W < X + 8 || plane[i] > 1 - 1e-5f);
    }
}

/* Noise belongs to the scene: the same for the same seed and index, of the width it should have. */
static void test_noise(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__scene empty = {.ground = {0.5f, 0.5f, 0.5f}};
    enum { N = 64 * 64 * 3 };
    pnb_image image[3];
    double sum = 0, squares = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        ASSERT_OK(pnb__scene_render(&empty, &o, i == 2 ? 8 : 7, &image[i], &err));
    assert_memory_equal(image[0].pixels, image[1].pixels, N);
    assert_memory_not_equal(image[0].pixels, image[2].pixels, N);
    for (int i = 0; i < N; i++) {
        double d = image[0].pixels[i] / 255.0 - 0.5;
        assert_true(fabs(d) < 0.04 + 0.003);
        sum += d;
        squares += d * d;
    }
    assert_true(fabs(sum / N) < 0.001);
    assert_true(fabs(sqrt(squares / N) - 0.04 / sqrt(6)) < 0.001); /* of two uniforms */
    for (int i = 0; i < 3; i++)
        pnb_image_free(&image[i]);
}

/* The occluder lies over everything in its box, cut to the picture, and nothing else changes. */
static void test_occluder(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__scene scene = {.ground = {0.2f, 0.5f, 0.9f}};
    pnb_image image;
    (void)state;
    scene.ambiguity.has_occluder = true;
    const double box[] = {-9, 10.4, 20.6, 99};
    memcpy(scene.ambiguity.box, box, sizeof box);
    ASSERT_OK(pnb__scene_render(&scene, &o, 0, &image, &err));
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++)
            for (int c = 0; c < 3; c++) {
                double want = x < 21 && y >= 10 ? 0.72 : (double)scene.ground[c];
                assert_true(fabs(image.pixels[3 * (y * 64 + x) + c] / 255.0 - want) < 0.045);
            }
    pnb_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_outline), cmocka_unit_test(test_blur),
        cmocka_unit_test(test_noise),   cmocka_unit_test(test_occluder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
