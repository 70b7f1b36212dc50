/* Truth of a set: the same matches as asking every caption about every scene, with any threads. */
#include "data/synth/shapes/shapes_set.h"

#include "tests/data/fixture.h"

enum { N_SCENES = 120 };

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Scenes and all their captions, each once. */
static pnb__shapes_set make_set(const pnb_shapes_opts *o, size_t n)
{
    pnb__shapes_set s = {.opts = o, .n = n};
    s.scenes = calloc(n + 1, sizeof *s.scenes);
    s.texts = calloc(n * PNB__MAX_SCENE_QUERIES + 1, sizeof *s.texts);
    assert_true(s.scenes != NULL && s.texts != NULL);
    size_t n_all = 0;
    for (size_t i = 0; i < n; i++) {
        pnb__shape_query queries[PNB__MAX_SCENE_QUERIES];
        pnb__scene_draw(&s.scenes[i], o, i);
        int n_queries = pnb__scene_queries(&s.scenes[i], o, i, queries);
        for (int k = 0; k < n_queries; k++)
            s.texts[n_all++] = pnb__query_pack(&queries[k]);
    }
    qsort(s.texts, n_all, sizeof *s.texts, compare);
    for (size_t i = 0; i < n_all; i++)
        if (i == 0 || s.texts[i] != s.texts[i - 1])
            s.texts[s.n_texts++] = s.texts[i];
    return s;
}

static void free_set(pnb__shapes_set *s)
{
    free(s->scenes);
    free(s->texts);
    pnb__free(s->match_start);
    pnb__free(s->matches);
}

static void test_all_pairs(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__shapes_set s = make_set(&o, N_SCENES);
    size_t n = 0, of_level[4] = {0};
    (void)state;
    for (int n_threads = 0; n_threads < 3; n_threads += 2) { /* without a context, and two */
        pnb_ctx *ctx = NULL;
        pnb_ctx_opts opts = pnb_ctx_opts_default();
        opts.n_threads = n_threads;
        if (n_threads > 0)
            ASSERT_OK(pnb_ctx_create(&ctx, &opts, &err));
        s.ctx = ctx;
        ASSERT_OK(pnb__shapes_find_truth(&s, &err));
        n = 0;
        for (size_t c = 0; c < s.n_texts; c++) {
            pnb__shape_query q;
            pnb__query_unpack(s.texts[c], &q);
            assert_int_equal(s.match_start[c], n);
            for (size_t i = 0; i < s.n; i++) {
                if (!pnb__query_matches(&q, &s.scenes[i], &o))
                    continue;
                assert_int_equal(s.matches[n], i); /* ascending */
                n++;
            }
            assert_true(s.match_start[c + 1] > s.match_start[c]); /* of the scene it is made for */
            of_level[q.level] += n_threads == 0;
        }
        assert_int_equal(s.match_start[s.n_texts], n);
        pnb__free(s.match_start);
        pnb__free(s.matches);
        s.match_start = NULL;
        s.matches = NULL;
        pnb_ctx_free(ctx);
    }
    assert_true(of_level[0] == 16 && of_level[1] > 30 && of_level[2] > 200 && of_level[3] > 300);
    free_set(&s);
}

/* A caption that is true of no scene has an empty list, and a set of nothing is fine. */
static void test_nothing(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__shapes_set s = make_set(&o, 1);
    (void)state;
    pnb__shape_query absent = {.level = 1, .n_objects = 1, .relation = PNB__ANY, .place = PNB__ANY};
    absent.objects[0] = (pnb__object){
        (unsigned char)((s.scenes[0].shapes[0].form + 1) % PNB__N_FORMS), 0, PNB__ANY};
    s.scenes[0].n_shapes = 1;
    s.texts[0] = pnb__query_pack(&absent);
    s.n_texts = 1;
    ASSERT_OK(pnb__shapes_find_truth(&s, &err));
    assert_true(s.match_start[0] == 0 && s.match_start[1] == 0);
    pnb__free(s.match_start);
    pnb__free(s.matches);
    s.match_start = NULL;
    s.matches = NULL;
    s.n_texts = s.n = 0;
    ASSERT_OK(pnb__shapes_find_truth(&s, &err));
    assert_int_equal(s.match_start[0], 0);
    free_set(&s);
}

#ifdef PNB_FAULTS
static void test_no_memory(void **state)
{
    pnb_shapes_opts o = pnb_shapes_opts_default();
    pnb__shapes_set s = make_set(&o, 3);
    (void)state;
    for (long n = 0;; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__shapes_find_truth(&s, &error);
        pnb__alloc_fail_after(-1);
        pnb__free(s.match_start);
        pnb__free(s.matches);
        s.match_start = NULL;
        s.matches = NULL;
        if (status == PNB_OK) {
            assert_int_equal(n, 3); /* the lists, where each caption starts, the matches */
            break;
        }
        assert_int_equal(status, PNB_NOMEM);
    }
    free_set(&s);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_nothing),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
