/* Which pictures are learned from where not all are: shots of a class, classes, shares, by seed. */
#include "commands/adapt/fewer_pairs.h"
#include "tests/prob/support.h"

enum { N_CLASSES = 5, N_EACH = 8, N = N_CLASSES * N_EACH, ALONE = N, N_IMAGES = N + 1 };

typedef struct world {
    pnb_embeddings *images;
    pnb_truth *truth;
} world;

/* Picture i is of class i mod 5 and has captions i and i + N; one more picture has none and no
 * class. */
static world make_world(void)
{
    world w;
    int64_t pairs[2 * N][2];
    char text[32];
    assert_ok(pnb_embeddings_create(&w.images, PNB_POINT, N_IMAGES, 2, err));
    for (int64_t i = 0; i < N; i++) {
        snprintf(text, sizeof text, "{\"class\":\"c%d\"}", (int)(i % N_CLASSES));
        assert_ok(pnb_embeddings_set_extra(w.images, (size_t)i, text, err));
        pairs[2 * i][0] = pairs[2 * i + 1][0] = pairs[2 * i][1] = i;
        pairs[2 * i + 1][1] = i + N;
    }
    assert_ok(pnb_truth_create_pairs(&w.truth, N_IMAGES, 2 * N, pairs[0], 2 * N, err));
    return w;
}

static void free_world(world *w)
{
    pnb_embeddings_free(w->images);
    pnb_truth_free(w->truth);
}

/* Pictures that were drawn; each with both of its captions. */
static size_t draw(const world *w, const pnb__fewer_pairs_opts *o, uint64_t seed,
                   bool is_drawn[N_IMAGES])
{
    pnb_truth *t = NULL;
    size_t n = 0;
    assert_ok(pnb__fewer_pairs(&t, w->truth, w->images, "i", o, seed, err));
    for (size_t i = 0; i < N_IMAGES; i++) {
        size_t texts = t->offset[i + 1] - t->offset[i];
        is_drawn[i] = texts > 0;
        n += is_drawn[i];
        if (!is_drawn[i])
            continue;
        assert_int_equal(texts, 2);
        assert_int_equal(t->item[t->offset[i]], i);
        assert_int_equal(t->item[t->offset[i] + 1], i + N);
    }
    assert_false(is_drawn[ALONE]);
    pnb_truth_free(t);
    return n;
}

static bool holds(const bool *larger, const bool *smaller)
{
    for (size_t i = 0; i < N_IMAGES; i++)
        if (smaller[i] && !larger[i])
            return false;
    return true;
}

static void shots_of_classes(void **state)
{
    (void)state;
    world w = make_world();
    bool three[N_IMAGES], four[N_IMAGES], all[N_IMAGES];
    pnb__fewer_pairs_opts o = {.shots = 3, .n_classes = 4, .class_key = "class"};
    assert_int_equal(draw(&w, &o, 1, three), 12);
    size_t of_class[N_CLASSES] = {0}, n_empty = 0;
    for (size_t i = 0; i < N; i++)
        of_class[i % N_CLASSES] += three[i];
    for (size_t k = 0; k < N_CLASSES; k++) {
        n_empty += of_class[k] == 0;
        assert_true(of_class[k] == 0 || of_class[k] == 3);
    }
    assert_int_equal(n_empty, 1);
    o.shots = 4;
    assert_int_equal(draw(&w, &o, 1, four), 16);
    assert_true(holds(four, three));
    o.n_classes = 0;
    o.shots = 100; /* more than there are */
    assert_int_equal(draw(&w, &o, 1, all), N);
    free_world(&w);
}

static void shares(void **state)
{
    (void)state;
    world w = make_world();
    bool few[N_IMAGES], many[N_IMAGES], again[N_IMAGES], other[N_IMAGES];
    pnb__fewer_pairs_opts o = {.share = 0.25};
    assert_int_equal(draw(&w, &o, 7, few), N / 4);
    assert_int_equal(draw(&w, &o, 7, again), N / 4);
    assert_int_equal(draw(&w, &o, 8, other), N / 4);
    assert_true(holds(few, again) && !holds(few, other));
    o.share = 0.6;
    assert_int_equal(draw(&w, &o, 7, many), N * 6 / 10);
    assert_true(holds(many, few));
    o.share = 1e-3; /* never none */
    assert_int_equal(draw(&w, &o, 7, few), 1);
    o = (pnb__fewer_pairs_opts){.share = 0.5, .shots = 2, .class_key = "class"}; /* of the shots */
    assert_int_equal(draw(&w, &o, 7, few), N_CLASSES);
    free_world(&w);
}

static void from_text(void **state)
{
    (void)state;
    pnb__fewer_pairs_opts o = {0};
    pnb_error err = PNB_ERROR_INIT;
    bool is_one = true;
    assert_int_equal(pnb__fewer_pairs_set(&o, "kernel", "rbf", &is_one, &err), PNB_OK);
    assert_false(is_one || pnb__fewer_pairs_draws(&o));
    assert_int_equal(pnb__fewer_pairs_set(&o, "shots", "3", &is_one, &err), PNB_OK);
    assert_true(is_one && o.shots == 3 && pnb__fewer_pairs_draws(&o));
    assert_int_equal(pnb__fewer_pairs_set(&o, "classes", "150", &is_one, &err), PNB_OK);
    assert_int_equal(o.n_classes, 150);
    assert_int_equal(pnb__fewer_pairs_set(&o, "share", "0.5", &is_one, &err), PNB_OK);
    assert_true(o.share == 0.5);
    static const char *const wrong[][2] = {{"share", "0"},     {"share", "1.5"},   {"share", "nan"},
                                           {"shots", "2.5"},   {"shots", "-1"},    {"shots", "x"},
                                           {"classes", "2e9"}, {"classes", "3 4"}, {"share", ""}};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        err = (pnb_error)PNB_ERROR_INIT;
        assert_int_equal(pnb__fewer_pairs_set(&o, wrong[i][0], wrong[i][1], &is_one, &err),
                         PNB_ARG);
        assert_non_null(strstr(err.text, wrong[i][0]));
    }
    o = (pnb__fewer_pairs_opts){.share = 1};
    assert_false(pnb__fewer_pairs_draws(&o));
}

static void refused(void **state)
{
    (void)state;
    world w = make_world();
    pnb_truth *t = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb__fewer_pairs_opts o = {.shots = 3};
    assert_int_equal(pnb__fewer_pairs(&t, w.truth, w.images, "i", &o, 0, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "--class-key"));
    o.class_key = "colour";
    err = (pnb_error)PNB_ERROR_INIT;
    assert_int_equal(pnb__fewer_pairs(&t, w.truth, w.images, "i", &o, 0, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "row 0 of i has captions and not this field"));
    o = (pnb__fewer_pairs_opts){.n_classes = N_CLASSES + 1, .class_key = "class"};
    err = (pnb_error)PNB_ERROR_INIT;
    assert_int_equal(pnb__fewer_pairs(&t, w.truth, w.images, "i", &o, 0, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "are of 5"));
    assert_null(t);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shots_of_classes), cmocka_unit_test(shares),
                                       cmocka_unit_test(from_text), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
