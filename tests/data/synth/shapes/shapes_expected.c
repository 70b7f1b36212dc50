/* The number of scenes that a caption is expected to fit, beside scenes whose colours are drawn
 * anew many times. */
#include <math.h>

#include "data/synth/shapes/shapes_set.h"

#include "tests/data/fixture.h"

enum { N_SCENES = 60, N_DRAWS = 4000, N_TEXTS = 8 };

static const pnb__object OPEN = {PNB__ANY, PNB__ANY, PNB__ANY};

static pnb__shape_query one(int form, int colour, int size)
{
    pnb__shape_query q = {.level = 2, .n_objects = 1, .relation = PNB__ANY, .place = PNB__ANY};
    q.objects[0] = (pnb__object){(unsigned char)form, (unsigned char)colour, (unsigned char)size};
    q.objects[1] = q.objects[2] = OPEN;
    return q;
}

static pnb__shape_query two(pnb__object a, pnb__object b, int relation)
{
    pnb__shape_query q = one(a.form, a.colour, a.size);
    q.n_objects = 2;
    q.relation = (unsigned char)relation;
    q.objects[1] = b;
    return q;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Scenes that q is true of, on average over colours drawn anew. */
static double drawn(const pnb__shapes_set *s, const pnb__shape_query *q)
{
    double n = 0;
    pnb__rng r;
    pnb__rng_init(&r, 5, 0);
    for (int draw = 0; draw < N_DRAWS; draw++)
        for (size_t i = 0; i < s->n; i++) {
            pnb__scene scene = s->scenes[i];
            for (int k = 0; k < scene.n_shapes; k++)
                scene.shapes[k].colour = (int)pnb__rng_below(&r, PNB__N_COLOURS);
            n += pnb__query_matches(q, &scene, s->opts);
        }
    return n / N_DRAWS;
}

static void test_beside_draws(void **state)
{
    const pnb_shapes_opts o = pnb_shapes_opts_default();
    const pnb__shape_query q[N_TEXTS] = {
        one(PNB__STAR, PNB__ANY, PNB__ANY),
        one(PNB__ANY, 2, PNB__ANY),
        one(PNB__BAR, 0, 1),
        two((pnb__object){PNB__ANY, 3, PNB__ANY}, OPEN, PNB__LEFT_OF),
        two((pnb__object){PNB__ANY, 1, PNB__ANY}, (pnb__object){PNB__ANY, 4, PNB__ANY}, PNB__ABOVE),
        two((pnb__object){PNB__RING, 1, PNB__ANY}, (pnb__object){PNB__ANY, 4, PNB__ANY}, PNB__ANY),
        {.count = 2, .relation = PNB__ANY, .place = PNB__ANY, .objects = {OPEN, OPEN, OPEN}},
        {.level = 3,
         .n_objects = 3,
         .relation = PNB__BELOW,
         .place = PNB__ANY,
         .objects = {{PNB__ANY, 1, PNB__ANY}, {PNB__ANY, 1, PNB__ANY}, {PNB__ANY, 2, PNB__ANY}}}};
    uint64_t texts[N_TEXTS];
    pnb__scene scenes[N_SCENES];
    pnb__shapes_set s = {
        .opts = &o, .n = N_SCENES, .scenes = scenes, .n_texts = N_TEXTS, .texts = texts};
    (void)state;
    for (size_t i = 0; i < N_SCENES; i++)
        pnb__scene_draw(&scenes[i], &o, i);
    for (int c = 0; c < N_TEXTS; c++)
        texts[c] = pnb__query_pack(&q[c]);
    qsort(texts, N_TEXTS, sizeof *texts, compare);
    ASSERT_OK(pnb__shapes_find_expected(&s, &err));
    for (int c = 0; c < N_TEXTS; c++) {
        pnb__shape_query back;
        pnb__query_unpack(texts[c], &back);
        double want = drawn(&s, &back), error = 4 * sqrt(want / N_DRAWS);
        bool is_coloured = false;
        for (int k = 0; k < back.n_objects; k++)
            is_coloured |= back.objects[k].colour != PNB__ANY;
        if (is_coloured)
            assert_true(fabs(s.expected[c] - want) < error);
        else /* no chance in it */
            assert_true(s.expected[c] == want);
        assert_true(want > 0);
    }
    pnb__free(s.expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
