/* Adding and removing, undisturbed and disturbed: killed at every step and at 50 random moments, a
 * full disk, two writers, a reader beside a writer, clocks that jump. */
#include "tests/store/killed.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

/* The library's clock in this program: libc's unless a test sets it. */
static time_t pretended_time;
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time_t seconds = pretended_time != 0 ? pretended_time : now.tv_sec;
    if (out != NULL)
        *out = seconds;
    return seconds;
}

/* ---- undisturbed ---- */

static void what_is_there_is_left_out(void **state)
{
    pnb_store *store = filled(*state, 10, 10);
    pnb_store_added added = add_rows(store, 5, 10);
    assert_int_equal(added.n_added, 5);
    assert_int_equal(added.n_known, 5);
    added = add_rows(store, 0, 15);
    assert_int_equal(added.n_added, 0);
    assert_int_equal(added.n_known, 15);
    assert_int_equal(count_rows(store), 15);
    pnb_store_close(store);
}

/* The same input twice in a batch, and another input under an id that is there. */
static void hashes_and_ids(void **state)
{
    pnb_store *store = filled(*state, 0, 1);
    pnb_embeddings *e = rows_from(0, 3);
    char hash[3][65];
    pnb_store_added added;
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    const char *id = "r0";
    for (size_t i = 0; i < 3; i++)
        snprintf(hash[i], sizeof hash[i], "%064d", i == 2 ? 0 : (int)i);
    const pnb_store_batch batch = {.set = e, .sha256 = (const char(*)[65])hash};
    assert_ok(pnb_store_add(store, &batch, &added, &err), &err);
    assert_int_equal(added.n_added, 2);
    assert_int_equal(added.n_known, 1);
    snprintf(hash[0], sizeof hash[0], "%064d", 7); /* r0 was drawn anew */
    assert_ok(pnb_store_add(store, &batch, &added, &err), &err);
    assert_int_equal(added.n_replaced, 1);
    assert_int_equal(added.n_added, 1); /* r2's input was there when the batch came: r0 had it */
    assert_ok(pnb_store_add(store, &batch, &added, &err), &err);
    assert_int_equal(added.n_added, 1); /* and is not any more */
    assert_ok(pnb_store_get_ids(store, &id, 1, &rows, &err), &err);
    assert_string_equal(rows.items[0].sha256, hash[0]);
    pnb_store_rows_reset(&rows);
    assert_int_equal(count_rows(store), 3);
    hash[1][3] = 'G';
    assert_failed(pnb_store_add(store, &batch, NULL, &err), &err, PNB_ARG, "is no SHA-256");
    pnb_embeddings_free(e);
    pnb_store_close(store);
}

static void clocks_jump(void **state)
{
    static const time_t times[] = {2000000000, 1000, 1700000000};
    pnb_store *store = filled(*state, 0, 1);
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < 3; i++) {
        pretended_time = times[i];
        add_rows(store, 2 * i, 2);
    }
    pretended_time = 0;
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    assert_int_equal(rows.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(rows.items[i].added, times[i / 2]);
        assert_int_equal(rows.items[i].time, times[i / 2]);
        assert_true(i == 0 || rows.items[i].number > rows.items[i - 1].number);
    }
    pnb_store_rows_reset(&rows);
    pnb_store_close(store);
}

/* ---- two at once ---- */

static void two_writers(void **state)
{
    scratch *s = *state;
    pnb_store *one = filled(s, 2, 2), *two = opened(scratch_path(s, "c"));
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_begin(one, 0, &err), &err);
    assert_failed(try_add(two, 2, 1, NULL, &err), &err, PNB_BUSY, "another program is writing");
    pnb_error_reset(&err);
    double start = pnb__now_s();
    assert_failed(pnb_store_begin(two, 0.2, &err), &err, PNB_BUSY, "another program is writing");
    assert_true(pnb__now_s() - start >= 0.2);
    assert_int_equal(add_rows(one, 2, 1).n_added, 1);
    assert_int_equal(count_rows(two), 3); /* it may read all the while */
    pnb_store_end(one);
    assert_int_equal(add_rows(two, 3, 1).n_added, 1);
    assert_int_equal(count_rows(one), 4);
    pnb_store_close(two);
    pnb_store_close(one);
}

static void a_reader_beside_a_writer(void **state)
{
    scratch *s = *state;
    pnb_embeddings *query = rows_from(3, 1);
    pnb_error err = PNB_ERROR_INIT;
    size_t before = 0, n = 0;
    int status, null = open("/dev/null", O_WRONLY);
    pnb_store *reader = filled(s, 3, STEP);
    pid_t writer = start_adding(scratch_path(s, "c"), 120, null);
    while (waitpid(writer, &status, WNOHANG) == 0 || n < 120) {
        pnb_store_hits hits = {0};
        assert_ok(pnb_store_search(reader, NULL, query, NULL, &hits, &err), &err);
        pnb_store_hits_reset(&hits);
        n = count_rows(reader);
        assert_true(n >= before && n % STEP == 0);
        before = n;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(assert_whole(reader), 120);
    close(null);
    pnb_embeddings_free(query);
    pnb_store_close(reader);
}

/* ---- killed ---- */

static void killed_at_random_moments(void **state)
{
    scratch *s = *state;
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    size_t n_killed = 0;
    for (int i = 0; i < 50; i++) {
        pnb_error err = PNB_ERROR_INIT;
        int ends[2], status = 0;
        size_t n_confirmed = 0;
        char byte;
        assert_ok(pnb_store_create(fresh(s), NULL, &err), &err);
        assert_int_equal(pipe(ends), 0);
        pid_t child = start_adding(scratch_path(s, "c"), 10 * STEP, ends[1]);
        close(ends[1]);
        usleep((useconds_t)pnb__rng_below(&rng, 30000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        while (read(ends[0], &byte, 1) == 1)
            n_confirmed++;
        close(ends[0]);
        n_killed += WIFSIGNALED(status);
        assert_survived(scratch_path(s, "c"), n_confirmed, 10 * STEP);
    }
    assert_true(n_killed > 5);
}

#ifdef PNB_FAULTS
/* Kills the writer before each of its steps on the disk in turn. */
static void killed_at_every_step(void **state)
{
    scratch *s = *state;
    for (long step = 0;; step++) {
        pnb_error err = PNB_ERROR_INIT;
        int status = 0;
        assert_true(step < 200);
        assert_ok(pnb_store_create(fresh(s), NULL, &err), &err);
        pid_t child = fork();
        if (child == 0) {
            pnb__disk_fault_at(step, 0);
            pnb_store *store = NULL;
            bool ok = pnb_store_open(&store, scratch_path(s, "c"), &err) == PNB_OK;
            for (size_t at = 0; at < 4 * STEP && ok; at += STEP)
                ok = try_add(store, at, STEP, NULL, &err) == PNB_OK;
            _exit(ok ? 0 : 1);
        }
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        assert_survived(scratch_path(s, "c"), 0, 4 * STEP);
        if (!WIFSIGNALED(status)) {
            assert_true(step > 15);
            break;
        }
    }
}

/* The disk is full at each step in turn: the batch is there or it is not, and the next one comes.
 */
static void a_full_disk(void **state)
{
    scratch *s = *state;
    long n_failed = 0;
    for (long step = 0;; step++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_store *store = filled(s, STEP, STEP);
        pnb__disk_fault_at(step, ENOSPC);
        pnb_status status = try_add(store, STEP, STEP, NULL, &err);
        bool is_over = pnb__disk_steps() <= step;
        pnb__disk_fault_at(-1, 0);
        if (status != PNB_OK)
            assert_failed(status, &err, PNB_IO, "No space left on device");
        n_failed += status != PNB_OK;
        assert_int_equal(assert_whole(store), status == PNB_OK ? 2 * STEP : STEP);
        pnb_store_close(store);
        assert_survived(scratch_path(s, "c"), 1, 4 * STEP);
        if (is_over)
            break;
    }
    assert_true(n_failed >= 4);
}

static pnb_status add_and_remove(scratch *s, pnb_error *err)
{
    static const char *const ids[] = {"x"}, *const tags[] = {"a", "b"};
    pnb_store *store = NULL;
    float mean[2 * WIDTH] = {1}, log_var[2 * WIDTH] = {0};
    char *names[] = {"x", "y"};
    const pnb_embeddings set = {.family = PNB_GAUSSIAN_DIAG,
                                .n = 2,
                                .dim = WIDTH,
                                .mean = mean,
                                .log_var = log_var,
                                .ids = names};
    const pnb_store_batch batch = {.set = &set, .tags = tags, .n_tags = 2};
    pnb_status status;
    mean[WIDTH + 1] = 1;
    PNB_TRY(pnb_store_open(&store, scratch_path(s, "c"), err));
    PNB_TRY(pnb_store_add(store, &batch, NULL, err));
    status = pnb_store_remove(store, ids, 1, NULL, err);
done:
    pnb_store_close(store);
    return status;
}

static void out_of_memory(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_create(fresh(*state), NULL, &err), &err);
    fail_every_allocation(add_and_remove, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_left_out),
        cmocka_unit_test(hashes_and_ids),
        cmocka_unit_test(clocks_jump),
        cmocka_unit_test(two_writers),
        cmocka_unit_test(a_reader_beside_a_writer),
        cmocka_unit_test(killed_at_random_moments),
#ifdef PNB_FAULTS
        cmocka_unit_test(killed_at_every_step),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
