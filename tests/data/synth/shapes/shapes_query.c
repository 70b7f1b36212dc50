/* Captions as queries: their words, what they are true of, and that packing loses nothing. */
#include "data/synth/shapes/shapes.h"

#include "tests/data/fixture.h"

static void test_pack(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        pnb__scene scene;
        pnb__shape_query queries[PNB__MAX_SCENE_QUERIES], back;
        pnb__scene_draw(&scene, &o, i);
        int n = pnb__scene_queries(&scene, &o, i, queries);
        assert_in_range(n, 4, PNB__MAX_SCENE_QUERIES);
        for (int k = 0; k < n; k++) {
            pnb__query_unpack(pnb__query_pack(&queries[k]), &back);
            assert_memory_equal(&back, &queries[k], sizeof back);
            assert_true(pnb__query_matches(&queries[k], &scene, &o));
        }
    }
}

static pnb__shape_query query(int level, int n_objects)
{
    pnb__object open = {PNB__ANY, PNB__ANY, PNB__ANY};
    return (pnb__shape_query){.level = (unsigned char)level,
                              .n_objects = (unsigned char)n_objects,
                              .relation = PNB__ANY,
                              .place = PNB__ANY,
                              .objects = {open, open, open}};
}

static const pnb__object red_star = {PNB__STAR, 0, PNB__ANY};
static const pnb__object small_blue_ring = {PNB__RING, 4, 0};
static const pnb__object a_shape = {PNB__ANY, PNB__ANY, PNB__ANY};

/* Frames: as often as asked for, the same for a caption each time, another seed others. */
static void test_frames(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default(), other = o;
    size_t n = 0, n_framed = 0, n_other = 0, longest = 0;
    (void)state;
    o.wordy = other.wordy = 0.5;
    other.seed = 1;
    for (int form = 0; form < PNB__N_FORMS; form++)
        for (int colour = 0; colour < PNB__N_COLOURS; colour++)
            for (int size = 0; size < PNB__N_SIZES; size++) {
                char text[PNB__QUERY_TEXT], again[PNB__QUERY_TEXT], bare[PNB__QUERY_TEXT];
                pnb__shape_query q = query(3, 1);
                q.objects[0] =
                    (pnb__object){(unsigned char)form, (unsigned char)colour, (unsigned char)size};
                pnb__query_text(&q, bare);
                pnb__query_say(&q, &o, text);
                pnb__query_say(&q, &o, again);
                assert_string_equal(text, again);
                assert_non_null(strstr(text, bare));
                n_framed += strcmp(text, bare) != 0;
                longest = PNB_MAX(longest, strlen(text) - strlen(bare));
                pnb__query_say(&q, &other, again);
                n_other += strcmp(text, again) != 0;
                o.wordy = 0;
                pnb__query_say(&q, &o, again);
                assert_string_equal(again, bare);
                o.wordy = 0.5;
                n++;
            }
    assert_true(n_framed > n / 3 && n_framed < 2 * n / 3 && n_other > n / 3);
    assert_int_equal(longest, strlen("as far as one can tell there may be "));
}

static void test_texts(void **state)
{
    char text[PNB__QUERY_TEXT];
    (void)state;
    pnb__shape_query q = query(0, 0);
    q.count = 3;
    pnb__query_text(&q, text);
    assert_string_equal(text, "three shapes");
    q = query(0, 1);
    pnb__query_text(&q, text);
    assert_string_equal(text, "a shape");
    q.objects[0] = small_blue_ring;
    q.place = 2;
    pnb__query_text(&q, text);
    assert_string_equal(text, "a small blue ring at the bottom left");
    q = query(3, 3);
    q.objects[0] = red_star;
    q.objects[1] = small_blue_ring;
    q.relation = PNB__ABOVE;
    pnb__query_text(&q, text);
    assert_string_equal(text, "a red star above a small blue ring and a shape");
}

/* Two red stars left of a small blue ring. */
static const pnb__scene scene = {
    .n_shapes = 3,
    .shapes = {{.form = PNB__STAR, .colour = 0, .size = 0, .x = 10, .y = 10},
               {.form = PNB__STAR, .colour = 0, .size = 1, .x = 12, .y = 50},
               {.form = PNB__RING, .colour = 4, .size = 0, .x = 50, .y = 32}}};

static bool is_true(const pnb__shape_query *q)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    return pnb__query_matches(q, &scene, &o);
}

/* The objects of a statement are different shapes, and any binding that works will do. */
static void test_meaning(void **state)
{
    (void)state;
    pnb__shape_query q = query(0, 0);
    for (unsigned char n = 1; n <= 3; n++) {
        q.count = n;
        assert_int_equal(is_true(&q), n == 3);
    }
    q = query(2, 2);
    q.objects[0] = q.objects[1] = red_star; /* there are two of them */
    q.relation = PNB__ABOVE;
    assert_true(is_true(&q));
    q.relation = PNB__LEFT_OF; /* 2 pixels apart are no relation */
    assert_false(is_true(&q));
    q.objects[0] = q.objects[1] = small_blue_ring; /* there is one */
    q.relation = PNB__ANY;
    assert_false(is_true(&q));
    q.objects[1] = a_shape;
    q.relation = PNB__RIGHT_OF;
    assert_true(is_true(&q));
    q = query(3, 1);
    q.objects[0] = red_star;
    q.place = 2; /* the second star, not the first */
    assert_true(is_true(&q));
    q.objects[0].size = 0;
    assert_false(is_true(&q));
    q = query(3, 3);
    q.objects[0] = q.objects[1] = red_star;
    q.objects[2] = small_blue_ring;
    q.relation = PNB__BELOW;
    assert_true(is_true(&q));
    q.objects[2] = red_star; /* a third one */
    assert_false(is_true(&q));
}

/* Ids name the level and are as many as captions; packed, captions are sorted by level first. */
static void test_ids(void **state)
{
    char id[PNB__QUERY_ID], other[PNB__QUERY_ID];
    (void)state;
    pnb__shape_query low = query(1, 3), high = query(2, 0);
    assert_true(pnb__query_pack(&low) < pnb__query_pack(&high));
    pnb__query_id(pnb__query_pack(&low), id);
    assert_true(pnb__starts_with(id, "s1-") && strlen(id) == 13);
    low.objects[2].size = 0;
    pnb__query_id(pnb__query_pack(&low), other);
    assert_string_not_equal(id, other);
    pnb__query_id(pnb__query_pack(&high), other);
    assert_true(pnb__starts_with(other, "s2-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pack), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_frames),
                                       cmocka_unit_test(test_meaning), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
