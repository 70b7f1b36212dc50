/* Drawing scenes: what every one keeps to, that all of it is drawn, places and relations. */
#include "data/synth/shapes/shapes.h"

#include "tests/data/fixture.h"

#include <math.h>

/* Shapes lie inside the picture without touching, and any two can be told apart by a relation. */
static void test_layout(void **state)
{
    enum { W = 48, H = 64, N = W * H };
    static float fill[N], line[N];
    static unsigned char owner[N];
    pnb_shapes_opts o = pnb_shapes_opts_default();
    int n_of[PNB__MAX_SHAPES + 1] = {0};
    (void)state;
    o.width = W;
    o.height = H;
    for (uint64_t i = 0; i < 60; i++) {
        pnb__scene scene;
        pnb__scene_draw(&scene, &o, i);
        n_of[scene.n_shapes]++;
        memset(owner, 0, sizeof owner);
        for (int k = 0; k < scene.n_shapes; k++) {
            const pnb__shape *s = &scene.shapes[k];
            double half[2];
            pnb__shape_extent(s, half);
            assert_true(s->x - half[0] >= 0 && s->x + half[0] <= W);
            assert_true(s->y - half[1] >= 0 && s->y + half[1] <= H);
            pnb__shape_coverage(s, W, H, fill, line);
            for (int p = 0; p < N; p++)
                if (fill[p] + line[p] > 0.5f)
                    assert_int_equal(owner[p]++, 0);
            for (int j = 0; j < k; j++) {
                int n_relations = 0;
                for (int r = 0; r < PNB__N_RELATIONS; r++)
                    n_relations += pnb__shape_relation(s, &scene.shapes[j], (pnb__relation)r, W);
                assert_in_range(n_relations, 1, 2);
            }
        }
    }
    assert_true(n_of[1] > 5 && n_of[2] > 5 && n_of[3] > 5 && n_of[0] == 0);
}

/* Every attribute is drawn, colours stay near their palette, and a scene depends on seed and index
 * alone. */
static void test_draws(void **state)
{
    enum { N = 600 };
    pnb_shapes_opts o = pnb_shapes_opts_default();
    int form[PNB__N_FORMS] = {0}, colour[PNB__N_COLOURS] = {0}, size[PNB__N_SIZES] = {0}, n = 0;
    pnb__scene scene, again;
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        pnb__scene_draw(&scene, &o, i);
        for (int k = 0; k < scene.n_shapes; k++, n++) {
            const pnb__shape *s = &scene.shapes[k];
            float rgb[3];
            pnb__colour_rgb(s->colour, rgb);
            for (int c = 0; c < 3; c++)
                assert_true(fabsf(s->rgb[c] - rgb[c]) <= 0.0601f && s->rgb[c] >= 0);
            assert_true(fabs(s->angle) <= 0.06 && !s->is_grey);
            assert_true(s->radius == pnb__size_radius(s->size, 64, 64));
            form[s->form]++;
            colour[s->colour]++;
            size[s->size]++;
        }
        assert_true(scene.ambiguity.blur == 0 && !scene.ambiguity.has_occluder);
    }
    for (int f = 0; f < PNB__N_FORMS; f++) /* large ones fit less often beside others */
        assert_true(form[f] > n / 12 && form[f] < n / 3);
    for (int c = 0; c < PNB__N_COLOURS; c++)
        assert_true(colour[c] > n / 14 && colour[c] < n / 4);
    assert_true(size[0] > size[1] && size[1] > n / 4);
    pnb__scene_draw(&again, &o, N - 1);
    assert_memory_equal(&again, &scene, sizeof scene);
    o.seed = 1;
    pnb__scene_draw(&again, &o, N - 1);
    assert_memory_not_equal(again.shapes, scene.shapes, sizeof scene.shapes);
}

/* Ambiguity is drawn apart from the shapes: a foggy scene is the clear one, spoiled. */
static void test_spoiled(void **state)
{
    enum { N = 300 };
    pnb_shapes_opts o = pnb_shapes_opts_default(), foggy = o;
    int n_blur = 0, n_covered = 0, n_grey = 0;
    (void)state;
    foggy.blur_p = 0.3;
    foggy.occlude_p = 0.5;
    foggy.grey_p = 0.7;
    for (uint64_t i = 0; i < N; i++) {
        pnb__scene clear, scene;
        pnb__scene_draw(&clear, &o, i);
        pnb__scene_draw(&scene, &foggy, i);
        const pnb__ambiguity *a = &scene.ambiguity;
        int grey = 0;
        assert_int_equal(scene.n_shapes, clear.n_shapes);
        for (int k = 0; k < scene.n_shapes; k++) {
            assert_true(scene.shapes[k].x == clear.shapes[k].x);
            assert_int_equal(scene.shapes[k].colour, clear.shapes[k].colour);
            grey += scene.shapes[k].is_grey && scene.shapes[k].rgb[1] == 0.55f;
        }
        assert_int_equal(a->n_grey, grey);
        assert_true(a->blur == 0 || (a->blur >= 0.03 * 64 && a->blur <= 0.12 * 64));
        n_blur += a->blur > 0;
        n_covered += a->has_occluder;
        n_grey += grey > 0;
        if (a->has_occluder) { /* over a side of its shape */
            const pnb__shape *s = &scene.shapes[a->occluded];
            assert_true(a->box[0] < a->box[2] && a->box[1] < a->box[3]);
            assert_true(a->box[0] < s->x + s->radius && a->box[2] > s->x - s->radius);
        }
    }
    assert_in_range(n_blur, 90 - 40, 90 + 40); /* five standard deviations */
    assert_in_range(n_covered, 150 - 44, 150 + 44);
    assert_in_range(n_grey, 210 - 40, 210 + 40);
}

static void test_places(void **state)
{
    static const struct {
        double x, y;
        int place;
    } cases[] = {{10, 10, 0}, {90, 10, 1}, {10, 90, 2},   {90, 90, 3}, {50, 50, 4},
                 {40, 60, 4}, {33, 50, 2}, {33, 49.9, 0}, {50, 17, 1}, {49.9, 83, 2}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__shape s = {.x = cases[i].x, .y = cases[i].y};
        assert_int_equal(pnb__shape_place(&s, 100, 100), cases[i].place);
    }
    pnb__shape a = {.x = 10, .y = 10}, b = {.x = 32, .y = 33}; /* 22 of 100 is no relation */
    assert_false(pnb__shape_relation(&a, &b, PNB__LEFT_OF, 100));
    assert_true(pnb__shape_relation(&a, &b, PNB__ABOVE, 100));
    assert_true(pnb__shape_relation(&b, &a, PNB__BELOW, 100));
    assert_false(pnb__shape_relation(&b, &a, PNB__ABOVE, 100));
    b.x = 33;
    assert_true(pnb__shape_relation(&a, &b, PNB__LEFT_OF, 100));
    assert_true(pnb__shape_relation(&b, &a, PNB__RIGHT_OF, 100));
    assert_false(pnb__shape_relation(&a, &b, PNB__RIGHT_OF, 100));
    b.y = 32;
    assert_false(pnb__shape_relation(&a, &b, PNB__ABOVE, 100));
    assert_false(pnb__shape_relation(&b, &a, PNB__BELOW, 100));
    b.x = 32;
    assert_false(pnb__shape_relation(&b, &a, PNB__RIGHT_OF, 100));
    assert_string_equal(pnb__form_name(PNB__POLE), "pole");
    assert_string_equal(pnb__colour_name(0), "red");
    assert_string_equal(pnb__size_name(1), "large");
    assert_true(fabs(pnb__size_radius(1, 200, 100) - 22.5) < 1e-12); /* of the shorter side */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout), cmocka_unit_test(test_draws),
                                       cmocka_unit_test(test_spoiled),
                                       cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
