/* Sources with factors and hard negatives: shares of the draws, the same batches whoever reads
 * them, which texts are negatives, and samples without any. */
#include "tests/data/loader/batches.h"

#include <math.h>

/* Both sets as two sources: samples from N_SAMPLES on are the second's. */
static pnb_dataset *open_both(const char *negatives_key)
{
    pnb_dataset *both = NULL;
    pnb_dataset_opts o = pnb_dataset_opts_default();
    char *spec = pnb__format("%s/good.tar::%s/bad.tar", scratch, scratch);
    o.negatives_key = negatives_key;
    ASSERT_OK(pnb_dataset_open(&both, spec, &o, &err));
    pnb__free(spec);
    return both;
}

static void test_parts(void **state)
{
    (void)state;
    pnb_dataset *both = open_both(NULL);
    assert_int_equal(pnb_dataset_n_parts(both), 2);
    assert_int_equal(pnb_dataset_part_first(both, 0), 0);
    assert_int_equal(pnb_dataset_part_first(both, 1), N_SAMPLES);
    assert_int_equal(pnb_dataset_part_first(both, 2), 2 * N_SAMPLES);
    assert_int_equal(pnb_dataset_n_parts(ds), 1);
    pnb_dataset_free(both);
}

/* Share of the second source in n batches. */
static double share_of_second(const pnb_dataset *both, const pnb_loader_opts *o, int n)
{
    pnb_loader *l = NULL;
    double second = 0, all = 0;
    ASSERT_OK(pnb_loader_create(&l, both, o, &err));
    for (int b = 0; b < n; b++) {
        const pnb_batch *batch = next_of(l);
        for (size_t i = 0; i < batch->n; i++, all++)
            second += batch->samples[i] >= N_SAMPLES;
    }
    pnb_loader_free(l);
    return second / all;
}

static void test_shares(void **state)
{
    static const double factors[][2] = {{1, 1}, {1, 3}, {0, 2}, {5, 0}, {1e-3, 1e-3}};
    static const double wanted[] = {0.5, 0.75, 1, 0, 0.5};
    (void)state;
    pnb_dataset *both = open_both(NULL);
    pnb_loader_opts o = opts_of(0);
    o.resample = true;
    o.n_factors = 2;
    for (size_t i = 0; i < PNB_COUNT(factors); i++) {
        o.factors = factors[i];
        double share = share_of_second(both, &o, 250); /* 2,000 draws: 0.011 is a deviation */
        if (!(fabs(share - wanted[i]) < 0.04))
            fail_msg("factors %g and %g: share %g, wanted %g", factors[i][0], factors[i][1], share,
                     wanted[i]);
    }
    pnb_dataset_free(both);
}

/* Workers and ranks deal the same draws, and a position is enough to go on. */
static void test_same_draws(void **state)
{
    static const double factors[] = {1, 3};
    enum { N_BATCHES = 24 };
    int64_t alone[N_BATCHES * BATCH];
    (void)state;
    pnb_dataset *both = open_both(NULL);
    for (int workers = 0; workers < 3; workers++) {
        pnb_loader_opts o = opts_of(workers);
        pnb_loader *l = NULL;
        o.resample = true;
        o.n_factors = 2;
        o.factors = factors;
        ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
        if (workers == 2) /* as a resumed run */
            ASSERT_OK(pnb_loader_set_position(l, (pnb_loader_position){1, 3}, &err));
        for (int b = workers == 2 ? 16 : 0; b < N_BATCHES; b++) {
            const pnb_batch *batch = next_of(l);
            if (workers == 0)
                memcpy(alone + b * BATCH, batch->samples, sizeof(int64_t) * BATCH);
            else
                assert_memory_equal(alone + b * BATCH, batch->samples, sizeof(int64_t) * BATCH);
        }
        pnb_loader_free(l);
    }
    for (size_t rank = 0; rank < 2; rank++) {
        pnb_loader_opts o = opts_of(0);
        pnb_loader *l = NULL;
        o.resample = true;
        o.n_factors = 2;
        o.factors = factors;
        o.rank = rank;
        o.n_ranks = 2;
        ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
        for (size_t b = rank; b < N_BATCHES; b += 2)
            assert_memory_equal(alone + b * BATCH, next_of(l)->samples, sizeof(int64_t) * BATCH);
        pnb_loader_free(l);
    }
    pnb_dataset_free(both);
}

/* The captions themselves serve as negatives: each row is one of its sample's, and two are two. */
static void test_negatives(void **state)
{
    enum { CONTEXT = 8, EACH = 2 };
    (void)state;
    pnb_dataset *both = open_both("captions");
    pnb_loader_opts o = opts_of(1);
    pnb_loader *l = NULL;
    o.n_negatives = EACH;
    o.context_length = CONTEXT;
    o.template_share = 0;
    ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
    for (int b = 0; b < 6; b++) {
        const pnb_batch *batch = next_of(l);
        assert_non_null(batch->negatives);
        for (size_t i = 0; i < batch->n; i++) {
            pnb_sample s = {0};
            size_t found[EACH] = {9, 9};
            ASSERT_OK(pnb_dataset_get(both, (size_t)batch->samples[i], &s, &err));
            assert_int_equal(s.n_negatives, 4);
            assert_string_equal(batch->texts[i], s.texts[batch->picks[i]]);
            for (size_t k = 0; k < 4; k++) {
                int32_t ids[CONTEXT];
                pnb_token_count count;
                ASSERT_OK(pnb_tokenizer_encode(tokenizer, s.negatives[k], strlen(s.negatives[k]),
                                               CONTEXT, ids, &count, &err));
                for (size_t e = 0; e < EACH; e++)
                    if (memcmp(ids, batch->negatives + (i * EACH + e) * CONTEXT, sizeof ids) == 0)
                        found[e] = k;
            }
            assert_true(found[0] < 4 && found[1] == (found[0] + 1) % 4);
            pnb_sample_reset(&s);
        }
    }
    pnb_loader_free(l);
    pnb_dataset_free(both);
}

/* One negative of four a sample: another epoch draws another one, another seed too, and the last of
 * a batch is read like the first. */
static void test_drawn_negatives(void **state)
{
    enum { CONTEXT = 8, EPOCHS = 2, PER_EPOCH = 2 * N_SAMPLES / BATCH };
    static int32_t drawn[2][EPOCHS][2 * N_SAMPLES][CONTEXT];
    size_t n_other[2] = {0};
    (void)state;
    pnb_dataset *both = open_both("captions");
    for (uint64_t seed = 0; seed < 2; seed++) {
        pnb_loader_opts o = opts_of(1);
        pnb_loader *l = NULL;
        o.n_negatives = 1;
        o.context_length = CONTEXT;
        o.seed += seed;
        ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
        for (size_t b = 0; b < EPOCHS * PER_EPOCH; b++) {
            const pnb_batch *batch = next_of(l);
            for (size_t i = 0; i < batch->n; i++)
                memcpy(drawn[seed][b / PER_EPOCH][batch->samples[i]],
                       batch->negatives + i * CONTEXT, sizeof drawn[0][0][0]);
        }
        pnb_loader_free(l);
    }
    for (size_t i = 0; i < 2 * N_SAMPLES; i++) {
        bool seen = drawn[0][0][i][0] != 0 && drawn[0][1][i][0] != 0 && drawn[1][0][i][0] != 0;
        n_other[0] += seen && memcmp(drawn[0][0][i], drawn[0][1][i], sizeof drawn[0][0][0]) != 0;
        n_other[1] += seen && memcmp(drawn[0][0][i], drawn[1][0][i], sizeof drawn[0][0][0]) != 0;
    }
    assert_true(n_other[0] > N_SAMPLES && n_other[1] > N_SAMPLES); /* 3 of 4 are expected */
    pnb_dataset_free(both);
}

/* All of a source come, its last ones too; not all of the second one can be read. */
static void test_all_drawn(void **state)
{
    static const double factors[] = {1, 3};
    bool seen[2 * N_SAMPLES] = {false};
    size_t n = 0;
    pnb_loader *l = NULL;
    (void)state;
    pnb_dataset *both = open_both(NULL);
    pnb_loader_opts o = opts_of(0);
    o.resample = true;
    o.n_factors = 2;
    o.factors = factors;
    ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
    for (int b = 0; b < 250; b++) { /* 500 draws of 53 are of the first */
        const pnb_batch *batch = next_of(l);
        for (size_t i = 0; i < batch->n; i++)
            seen[batch->samples[i]] = true;
    }
    for (size_t i = 0; i < N_SAMPLES; i++)
        n += seen[i];
    assert_int_equal(n, N_SAMPLES);
    pnb_loader_free(l);
    pnb_dataset_free(both);
}

/* A sample without any is one that cannot be read; where none has, there is nothing to train on. */
static void test_without_negatives(void **state)
{
    pnb_error why = PNB_ERROR_INIT;
    (void)state;
    pnb_dataset *both = open_both("nothing");
    pnb_loader_opts o = opts_of(0);
    pnb_loader *l = NULL;
    const pnb_batch *batch = NULL;
    o.n_negatives = 1;
    ASSERT_OK(pnb_loader_create(&l, both, &o, &err));
    assert_int_equal(pnb_loader_next(l, &batch, &why), PNB_FORMAT);
    assert_non_null(strstr(why.text, "no hard negative"));
    pnb_loader_free(l);
    pnb_dataset_free(both);
}

static void test_refused(void **state)
{
    static const double one[] = {1}, none[] = {0, 0}, bad[] = {1, -1};
    pnb_error why = PNB_ERROR_INIT;
    (void)state;
    pnb_dataset *both = open_both(NULL);
    pnb_loader *l = NULL;
    pnb_loader_opts o = opts_of(0);
    o.factors = one;
    o.n_factors = 1;
    assert_int_equal(pnb_loader_create(&l, both, &o, &why), PNB_ARG); /* not resampled */
    o.resample = true;
    assert_int_equal(pnb_loader_create(&l, both, &o, NULL), PNB_ARG);
    o.n_factors = 2;
    o.factors = none;
    assert_int_equal(pnb_loader_create(&l, both, &o, NULL), PNB_ARG);
    o.factors = bad;
    assert_int_equal(pnb_loader_create(&l, both, &o, NULL), PNB_ARG);
    o.n_factors = 0;
    o.n_negatives = 65;
    assert_int_equal(pnb_loader_create(&l, both, &o, NULL), PNB_ARG);
    pnb_dataset_free(both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_same_draws),
        cmocka_unit_test(test_negatives),
        cmocka_unit_test(test_drawn_negatives),
        cmocka_unit_test(test_all_drawn),
        cmocka_unit_test(test_without_negatives),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
