/* What a scene leaves open, in bits: nothing when it is clear, known numbers where all of something
 * is hidden, and the same as from all candidate pictures themselves. */
#include "data/synth/shapes/shapes.h"

#include "tests/data/fixture.h"

#include <math.h>

/* A scene of the wanted kind with every degradation removed. */
static pnb__scene clear_scene(const pnb_shapes_opts *o, int n_shapes)
{
    pnb__scene scene;
    for (uint64_t i = 0;; i++) {
        pnb__scene_draw(&scene, o, i);
        if (scene.n_shapes == n_shapes)
            return scene;
    }
}

static void test_ambiguity(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__scene scene = clear_scene(&o, 2);
    (void)state;
    ASSERT_OK(pnb__scene_ambiguity(&scene, &o, &err));
    assert_true(scene.ambiguity.entropy_bits < 1e-6);
    assert_true(scene.ambiguity.n_consistent == 1.0);

    pnb__scene grey = scene; /* one grey shape leaves its seven colours open and nothing else */
    grey.shapes[1].is_grey = true;
    for (int c = 0; c < 3; c++)
        grey.shapes[1].rgb[c] = 0.55f;
    ASSERT_OK(pnb__scene_ambiguity(&grey, &o, &err));
    assert_true(fabs(grey.ambiguity.entropy_bits - log2(7.0)) < 1e-3);
    assert_true(fabs(grey.ambiguity.colour_bits - log2(7.0)) < 1e-3);
    assert_true(grey.ambiguity.n_consistent == 7.0);

    double previous = 0;
    for (double blur = 2; blur < 30; blur *= 2) {
        pnb__scene blurred = scene;
        blurred.ambiguity.blur = blur;
        ASSERT_OK(pnb__scene_ambiguity(&blurred, &o, &err));
        assert_true(blurred.ambiguity.entropy_bits >= previous - 1e-9);
        previous = blurred.ambiguity.entropy_bits;
    }
    print_message("heaviest blur: %.2f bits\n", previous);
    assert_true(previous > 0.3);

    pnb__scene covered = scene; /* everything hidden: all 84 candidates remain for each shape */
    covered.ambiguity.has_occluder = true;
    covered.ambiguity.box[2] = o.width;
    covered.ambiguity.box[3] = o.height;
    ASSERT_OK(pnb__scene_ambiguity(&covered, &o, &err));
    assert_true(fabs(covered.ambiguity.entropy_bits - 2 * log2(84.0)) < 1e-9);
    assert_true(covered.ambiguity.n_consistent == 84.0 * 84.0);
    assert_true(covered.ambiguity.occluded_share == 1.0);
}

/* Blurred picture of one shape of attributes (form, colour, size) in the place of `s`. */
static void draw_candidate(const pnb__scene *scene, int form, int colour, int size, float *planes)
{
    enum { N = 64 * 64 };
    float *fill = planes + 3 * N, *line = planes + 4 * N, rgb[3];
    pnb__shape s = scene->shapes[0];
    s.form = form;
    s.radius = pnb__size_radius(size, 64, 64);
    pnb__colour_rgb(colour, rgb);
    pnb__shape_coverage(&s, 64, 64, fill, line);
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < N; i++)
            planes[c * N + i] =
                (1 - fill[i] - line[i]) * scene->ground[c] + fill[i] * rgb[c] + line[i] * PNB__INK;
        pnb__blur_plane(planes + (size_t)c * N, 64, 64, scene->ambiguity.blur, planes + 5 * N);
    }
}

/* The entropy under blur, from all 84 pictures themselves. */
static void test_ambiguity_of_images(void **state)
{
    enum { N = 64 * 64 };
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__scene scene = clear_scene(&o, 1);
    pnb__shape *s = &scene.shapes[0];
    float *truth = calloc(2 * 6 * N, sizeof *truth), *other = truth + 6 * N;
    double p[PNB__N_COMBOS], total = 0, bits = 0;
    (void)state;
    s->x = s->y = 32;
    scene.ambiguity.blur = 40;
    draw_candidate(&scene, s->form, s->colour, s->size, truth);
    for (int k = 0; k < PNB__N_COMBOS; k++) {
        double distance2 = 0;
        draw_candidate(&scene, k % 6, k / 6 % 7, k / 42, other);
        for (int i = 0; i < 3 * N; i++)
            distance2 += pow((double)other[i] - (double)truth[i], 2);
        total += p[k] = exp(-distance2 / (2 * 0.25 * 0.25));
    }
    for (int k = 0; k < PNB__N_COMBOS; k++)
        bits -= p[k] > 0 ? p[k] / total * log2(p[k] / total) : 0;
    ASSERT_OK(pnb__scene_ambiguity(&scene, &o, &err));
    print_message("by pictures %.4f bits, by products %.4f\n", bits, scene.ambiguity.entropy_bits);
    assert_true(bits > 0.1 && fabs(bits - scene.ambiguity.entropy_bits) < 1e-3);
    free(truth);
}

/* Half of a picture covered: the share of the shape under it is told, of its own area. */
static void test_share(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    (void)state;
    pnb__scene scene = {.n_shapes = 1, .ground = {0.95f, 0.95f, 0.95f}};
    pnb__shape *s = &scene.shapes[0];
    *s = (pnb__shape){.form = PNB__CIRCLE, .colour = 0, .size = 1, .x = 32, .y = 32};
    s->radius = pnb__size_radius(1, 64, 64);
    pnb__colour_rgb(0, s->rgb);
    scene.ambiguity.has_occluder = true;
    scene.ambiguity.box[2] = 32;
    scene.ambiguity.box[3] = 64;
    ASSERT_OK(pnb__scene_ambiguity(&scene, &o, &err));
    assert_true(fabs(scene.ambiguity.occluded_share - 0.5) < 1e-6);
    scene.ambiguity.box[0] = scene.ambiguity.box[1] = 32; /* one quarter */
    scene.ambiguity.box[2] = scene.ambiguity.box[3] = 64;
    ASSERT_OK(pnb__scene_ambiguity(&scene, &o, &err));
    assert_true(fabs(scene.ambiguity.occluded_share - 0.25) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ambiguity),
                                       cmocka_unit_test(test_ambiguity_of_images),
                                       cmocka_unit_test(test_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
