/* The loader: the same batches for any number of workers, with and without cache, interrupted at
 * any batch, read by one process or dealt to several; orders and epochs; nothing readable; clean
 * stops; workers on processors of their own. */
#include "tests/data/loader/batches.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>

#include "base/threads/affinity.h"

/* Everything a consumer can see of a batch. */
static void hash_batch(pnb__sha256 *h, const pnb_batch *b)
{
    pnb__sha256_update(h, &b->epoch, sizeof b->epoch);
    pnb__sha256_update(h, &b->index, sizeof b->index);
    pnb__sha256_update(h, b->pixels, b->n * 3 * SIDE * SIDE * sizeof *b->pixels);
    pnb__sha256_update(h, b->tokens, b->n_texts * (size_t)b->context_length * sizeof *b->tokens);
    pnb__sha256_update(h, b->levels, b->n_texts * sizeof *b->levels);
    pnb__sha256_update(h, b->samples, b->n * sizeof *b->samples);
    for (size_t i = 0; i < b->n_texts; i++)
        pnb__sha256_update(h, b->texts[i], strlen(b->texts[i]) + 1);
}

static void hash_run(const pnb_dataset *data, const pnb_loader_opts *o, int n_batches, int stop_at,
                     char hex[65])
{
    pnb__sha256 h;
    pnb_loader *l = NULL;
    pnb__sha256_init(&h);
    ASSERT_OK(pnb_loader_create(&l, data, o, &err));
    for (int i = 0; i < n_batches; i++) {
        if (i == stop_at) { /* as a killed and resumed run */
            pnb_loader_position p = pnb_loader_get_position(l);
            pnb_loader_free(l);
            l = NULL;
            ASSERT_OK(pnb_loader_create(&l, data, o, &err));
            ASSERT_OK(pnb_loader_set_position(l, p, &err));
        }
        hash_batch(&h, next_of(l));
    }
    pnb_loader_free(l);
    pnb__sha256_hex(&h, hex);
}

static void test_same_batches(void **state)
{
    char wanted[65], got[65];
    pnb_loader_opts o = opts_of(0);
    (void)state;
    hash_run(ds, &o, 20, -1, wanted);
    for (int workers = 1; workers <= 4; workers++) {
        o = opts_of(workers);
        hash_run(ds, &o, 20, -1, got);
        assert_string_equal(got, wanted);
    }
    o = opts_of(2);
    o.cache_bytes = 0;
    hash_run(ds, &o, 20, -1, got);
    assert_string_equal(got, wanted);
    o.cache_bytes = 5000; /* only some pictures fit */
    hash_run(ds, &o, 20, -1, got);
    assert_string_equal(got, wanted);
    o.seed = 12;
    hash_run(ds, &o, 20, -1, got);
    assert_string_not_equal(got, wanted);
}

static void test_resume(void **state)
{
    char wanted[65], got[65];
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        pnb_loader_opts o = opts_of(0);
        hash_run(bad ? ds_bad : ds, &o, 17, -1, wanted);
        for (int stop = 0; stop < 17; stop += 3) {
            o = opts_of(stop % 3 + 1);
            hash_run(bad ? ds_bad : ds, &o, 17, stop, got);
            assert_string_equal(got, wanted);
        }
    }
}

/* ---- several ranks ---- */

enum { MOST_RANKS = 7, ROUNDS = 3 };

static void hash_one(const pnb_batch *b, char hex[65])
{
    pnb__sha256 h;
    pnb__sha256_init(&h);
    hash_batch(&h, b);
    pnb__sha256_hex(&h, hex);
}

/* What one process reads alone, from `at` on. */
static void read_alone(const pnb_dataset *data, pnb_loader_position at, size_t n, char (*hex)[65])
{
    const pnb_loader_opts o = opts_of(0);
    pnb_loader *l = NULL;
    ASSERT_OK(pnb_loader_create(&l, data, &o, &err));
    ASSERT_OK(pnb_loader_set_position(l, at, &err));
    for (size_t i = 0; i < n; i++)
        hash_one(next_of(l), hex[i]);
    pnb_loader_free(l);
}

/* The same read by R ranks in rounds of so many batches. Returns where they stand, all at the same
 * place. */
static pnb_loader_position deal(const pnb_dataset *data, pnb_loader_position at, size_t n_ranks,
                                size_t batches, char (*wanted)[65])
{
    pnb_loader_position end = at;
    for (size_t r = 0; r < n_ranks; r++) {
        pnb_loader_opts o = opts_of((int)(r % 3));
        pnb_loader *l = NULL;
        o.rank = r;
        o.n_ranks = n_ranks;
        o.round = batches;
        ASSERT_OK(pnb_loader_create(&l, data, &o, &err));
        ASSERT_OK(pnb_loader_set_position(l, at, &err));
        for (size_t round = 0; round < ROUNDS; round++)
            for (size_t i = r * batches / n_ranks; i < (r + 1) * batches / n_ranks; i++) {
                char got[65];
                hash_one(next_of(l), got);
                assert_string_equal(got, wanted[round * batches + i]);
            }
        pnb_loader_position here = pnb_loader_get_position(l);
        if (r > 0)
            assert_memory_equal(&here, &end, sizeof here);
        end = here;
        pnb_loader_free(l);
    }
    return end;
}

/* The batches of all ranks, rank after rank in every round, are those of one process, to the bit
 * and over the ends of epochs; and where one number of ranks stopped another goes on. */
static void test_ranks_share_one_order(void **state)
{
    static const size_t ranks[] = {1, 2, 3, 4, MOST_RANKS};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(ranks); i++)
        for (size_t uneven = 0; uneven < 2; uneven++) {
            char wanted[ROUNDS * MOST_RANKS * 2][65];
            size_t next = ranks[(i + 1) % PNB_COUNT(ranks)];
            size_t batches = uneven > 0 ? 2 * ranks[i] - 1 : ranks[i];
            size_t n = ROUNDS * batches;
            const pnb_dataset *data = uneven > 0 ? ds_bad : ds;
            const pnb_loader_position start = {2, 5};
            read_alone(data, start, n, wanted);
            pnb_loader_position at = deal(data, start, ranks[i], batches, wanted);
            assert_int_equal(at.epoch * (N_SAMPLES / BATCH) + at.batch,
                             2 * (N_SAMPLES / BATCH) + 5 + n);
            read_alone(data, at, ROUNDS * next, wanted);
            deal(data, at, next, next, wanted);
        }
}

/* An epoch that ends in a short batch ends for every rank, and nothing of it is read twice or left
 * out. */
static void test_ranks_share_the_end(void **state)
{
    (void)state;
    for (size_t n_ranks = 1; n_ranks <= MOST_RANKS; n_ranks++) {
        int n_read[N_SAMPLES] = {0};
        for (size_t r = 0; r < n_ranks; r++) {
            pnb_loader_opts o = opts_of(1);
            pnb_loader *l = NULL;
            o.rank = r;
            o.n_ranks = n_ranks;
            o.drop_last = false;
            o.n_epochs = 1;
            ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
            for (const pnb_batch *b = next_of(l); b != NULL; b = next_of(l))
                for (size_t i = 0; i < b->n; i++)
                    n_read[b->samples[i]]++;
            pnb_loader_free(l);
        }
        for (int i = 0; i < N_SAMPLES; i++)
            assert_int_equal(n_read[i], 1);
    }
}

/* Going back and forth within one loader. */
static void test_set_position(void **state)
{
    char hex[2][65];
    pnb_loader_opts o = opts_of(3);
    pnb_loader *l = NULL;
    pnb_error error = PNB_ERROR_INIT;
    (void)state;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    assert_int_equal(pnb_loader_batches_per_epoch(l), N_SAMPLES / BATCH);
    for (int round = 0; round < 2; round++) {
        pnb__sha256 h;
        pnb__sha256_init(&h);
        ASSERT_OK(pnb_loader_set_position(l, (pnb_loader_position){3, 4}, &err));
        for (int i = 0; i < 4; i++) {
            const pnb_batch *b = next_of(l);
            assert_int_equal(b->epoch, i < 2 ? 3 : 4);
            assert_int_equal(b->index, (4 + i) % 6);
            hash_batch(&h, b);
        }
        pnb_loader_position p = pnb_loader_get_position(l);
        assert_int_equal(p.epoch, 4);
        assert_int_equal(p.batch, 2);
        pnb__sha256_hex(&h, hex[round]);
    }
    assert_string_equal(hex[0], hex[1]);
    assert_int_equal(pnb_loader_set_position(l, (pnb_loader_position){0, 6}, &error), PNB_ARG);
    pnb_loader_free(l);
}

/* An epoch holds every sample once; short last batch; end after n_epochs. */
static void test_epochs(void **state)
{
    pnb_loader_opts o = opts_of(2);
    pnb_loader *l = NULL;
    int seen[2][N_SAMPLES] = {{0}}, order_differs = 0;
    int64_t first[BATCH] = {0};
    (void)state;
    o.drop_last = false;
    o.n_epochs = 2;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 2 * 7; i++) {
        const pnb_batch *b = next_of(l);
        assert_non_null(b);
        assert_int_equal(b->n, i % 7 == 6 ? N_SAMPLES % BATCH : BATCH);
        for (size_t k = 0; k < b->n; k++)
            seen[b->epoch][b->samples[k]]++;
        for (size_t k = 0; k < BATCH && i % 7 == 0; k++) {
            order_differs += i == 7 && first[k] != b->samples[k];
            first[k] = b->samples[k];
        }
    }
    assert_null(next_of(l));
    assert_null(next_of(l));
    for (int i = 0; i < N_SAMPLES; i++)
        assert_true(seen[0][i] == 1 && seen[1][i] == 1);
    assert_true(order_differs > 3);
    pnb_loader_free(l);
    o.shuffle = false;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < 7; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++)
            assert_int_equal(b->samples[k], i * BATCH + (int)k);
    }
    pnb_loader_free(l);
}

/* Samples of the first batches and what was drawn as their captions, by sample. */
typedef struct draws {
    int64_t order[N_SAMPLES];
    char text[N_SAMPLES][64];
} draws;

static void read_epoch(const pnb_loader_opts *o, uint64_t epoch, draws *d)
{
    pnb_loader *l = NULL;
    size_t n = 0;
    ASSERT_OK(pnb_loader_create(&l, ds, o, &err));
    ASSERT_OK(pnb_loader_set_position(l, (pnb_loader_position){epoch, 0}, &err));
    while (n < N_SAMPLES) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++) {
            d->order[n++] = b->samples[k];
            snprintf(d->text[b->samples[k]], sizeof d->text[0], "%s", b->texts[k]);
        }
    }
    pnb_loader_free(l);
}

static int n_other_places(const draws *a, const draws *b)
{
    int n = 0;
    for (int i = 0; i < N_SAMPLES; i++)
        n += a->order[i] != b->order[i];
    return n;
}

static int n_other_texts(const draws *a, const draws *b)
{
    int n = 0;
    for (int i = 0; i < N_SAMPLES; i++)
        n += strcmp(a->text[i], b->text[i]) != 0;
    return n;
}

/* Order and captions each follow seed and epoch. A caption is one of four, level by level, so 53
 * independent draws differ in 38 places, standard deviation 3. */
static void test_draws_follow_seed_and_epoch(void **state)
{
    enum { FEWEST = 20 };
    pnb_loader_opts o = opts_of(1);
    draws first, again, epoch, seed;
    (void)state;
    o.drop_last = false;
    read_epoch(&o, 0, &first);
    read_epoch(&o, 0, &again);
    assert_int_equal(n_other_places(&first, &again) + n_other_texts(&first, &again), 0);
    read_epoch(&o, 1, &epoch);
    assert_true(n_other_places(&first, &epoch) > FEWEST);
    assert_true(n_other_texts(&first, &epoch) > FEWEST);
    o.seed++;
    read_epoch(&o, 0, &seed);
    assert_true(n_other_places(&first, &seed) > FEWEST);
    assert_true(n_other_texts(&first, &seed) > FEWEST);
}

/* Draws with replacement: independent of workers, continued at any batch, each sample as likely as
 * any other, epochs that differ; and a batch may be larger than the data set. */
static void test_resampled(void **state)
{
    enum { EPOCHS = 200, PER_EPOCH = N_SAMPLES / BATCH };
    pnb_loader_opts o = opts_of(2);
    pnb_loader *l = NULL;
    char one[65], two[65], plain[65];
    int seen[N_SAMPLES] = {0}, n_repeats = 0;
    (void)state;
    hash_run(ds, &o, 9, -1, plain);
    o.resample = true;
    hash_run(ds, &o, 9, -1, one);
    assert_string_not_equal(one, plain);
    o.n_workers = 0;
    for (int stop = 1; stop < 9; stop += 3) {
        hash_run(ds, &o, 9, stop, two);
        assert_string_equal(one, two);
    }
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    for (int i = 0; i < EPOCHS * PER_EPOCH; i++) {
        const pnb_batch *b = next_of(l);
        for (size_t k = 0; k < b->n; k++) {
            seen[b->samples[k]]++;
            n_repeats += k > 0 && b->samples[k] == b->samples[k - 1];
        }
    }
    pnb_loader_free(l);
    /* 9,600 draws of 53: 181 each, five standard deviations are 67; 8,400 neighbours, 158 alike */
    for (int i = 0; i < N_SAMPLES; i++)
        assert_in_range(seen[i], 181 - 67, 181 + 67);
    assert_in_range(n_repeats, 158 - 63, 158 + 63);
    o.batch_size = N_SAMPLES + 7;
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    assert_int_equal(next_of(l)->n, N_SAMPLES + 7);
    pnb_loader_free(l);
}

static void test_nothing_readable(void **state)
{
    pnb_loader_opts o = opts_of(1);
    pnb_loader *l = NULL;
    pnb_dataset *broken = NULL;
    const pnb_batch *b;
    pnb_error error = PNB_ERROR_INIT;
    char *dir = pnb__path_join(scratch, "broken");
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "broken/%d.png", i);
        put_text(scratch, name, "not a picture");
        snprintf(name, sizeof name, "broken/%d.txt", i);
        put_text(scratch, name, "caption");
    }
    ASSERT_OK(pnb_dataset_open(&broken, dir, NULL, &err));
    assert_int_equal(pnb_loader_create(&l, broken, &o, &error), PNB_SHAPE);
    assert_non_null(strstr(error.text, "batch"));
    pnb_error_reset(&error);
    o.batch_size = 2;
    ASSERT_OK(pnb_loader_create(&l, broken, &o, &err));
    assert_int_equal(pnb_loader_next(l, &b, &error), PNB_FORMAT);
    assert_null(b);
    pnb_loader_free(l);
    pnb_dataset_free(broken);
    pnb__free(dir);
}

static void test_refused(void **state)
{
    static const char *const NO_HOLE[] = {"a picture"};
    pnb_loader *l = NULL;
    pnb_error error = PNB_ERROR_INIT;
    (void)state;
    pnb_loader_opts o = opts_of(-1);
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_null(l);
    o = opts_of(1);
    o.templates = NO_HOLE;
    o.n_templates = 1;
    pnb_error_reset(&error);
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "a picture"));
    o.templates = NULL;
    assert_int_equal(pnb_loader_create(&l, ds, &o, NULL), PNB_ARG);
    o = opts_of(1);
    o.rank = o.n_ranks = 3;
    pnb_error_reset(&error);
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "rank 3 of 3"));
    o = opts_of(1);
    o.batch_size = 0;
    assert_int_equal(pnb_loader_create(&l, ds, &o, NULL), PNB_ARG);
    assert_int_equal(pnb_loader_create(&l, NULL, &o, NULL), PNB_NOT_FOUND);
}

/* Threads of this process that may run on just these processors. */
static int n_threads_on(const cpu_set_t *set)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        cpu_set_t its;
        if (task->d_name[0] != '.' &&
            sched_getaffinity((pid_t)atoi(task->d_name), sizeof its, &its) == 0)
            n += CPU_EQUAL(&its, set) != 0;
    }
    closedir(tasks);
    return n;
}

/* Workers on processors of their own, everything else off them, and back at the end. */
static void test_pinned(void **state)
{
    (void)state;
    cpu_set_t before, now;
    char pinned[65], free_to_run[65];
    pnb_error error = PNB_ERROR_INIT;
    pnb_loader *l = NULL;
    assert_true(pnb__affinity_get(&before));
    pnb_loader_opts o = opts_of(CPU_COUNT(&before)); /* none would be left */
    o.pin_workers = true;
    assert_int_equal(pnb_loader_create(&l, ds, &o, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "cannot have processors of their own"));
    o.n_workers = 0; /* nobody to keep apart */
    assert_int_equal(pnb_loader_create(&l, ds, &o, NULL), PNB_ARG);
    assert_true(pnb__affinity_get(&now));
    assert_true(CPU_EQUAL(&now, &before));
    if (CPU_COUNT(&before) < 2)
        return; /* one processor: refused is all there is */
    o.n_workers = 1;
    cpu_set_t others = before, last = pnb__affinity_take_last(&others, 1);
    int n_threads = n_threads_on(&before);
    ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
    assert_int_equal(n_threads_on(&last), 1); /* before the worker has done anything */
    assert_int_equal(n_threads_on(&before), 0);
    assert_true(n_threads_on(&others) >= n_threads);
    pnb_loader *second = NULL;
    pnb_error_reset(&error);
    assert_int_equal(pnb_loader_create(&second, ds, &o, &error), PNB_ARG);
    assert_non_null(strstr(error.text, "another loader's workers"));
    assert_int_equal(n_threads_on(&last), 1); /* the first still has what it had */
    assert_int_equal(n_threads_on(&before), 0);
    pnb_loader_free(l);
    assert_true(pnb__affinity_get(&now));
    assert_true(CPU_EQUAL(&now, &before));
    assert_int_equal(n_threads_on(&before), n_threads);
    hash_run(ds, &o, 6, -1, pinned);
    o.pin_workers = false;
    hash_run(ds, &o, 6, -1, free_to_run);
    assert_string_equal(pinned, free_to_run);
}

/* Freed while the workers are busy, right after creation, and with batches waiting. */
static void test_shutdown(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        pnb_loader_opts o = opts_of(1 + i % 4);
        pnb_loader *l = NULL;
        ASSERT_OK(pnb_loader_create(&l, ds, &o, &err));
        for (int k = 0; k < i % 3; k++)
            assert_non_null(next_of(l));
        pnb_loader_free(l);
    }
    pnb_loader_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_batches),
                                       cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_ranks_share_one_order),
                                       cmocka_unit_test(test_ranks_share_the_end),
                                       cmocka_unit_test(test_set_position),
                                       cmocka_unit_test(test_draws_follow_seed_and_epoch),
                                       cmocka_unit_test(test_epochs),
                                       cmocka_unit_test(test_resampled),
                                       cmocka_unit_test(test_nothing_readable),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_pinned),
                                       cmocka_unit_test(test_shutdown)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
