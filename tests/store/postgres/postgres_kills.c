/* Writers to Postgres that are killed at random moments, and a server that goes down in the middle
 * of an addition: nothing that was confirmed is lost, nothing is there twice, and it goes on. */
#include "tests/store/postgres/server.h"

#include <signal.h>

enum { STEP = 3, BATCHES = 12, KILLS = 8, CRASHES = 2 };

static server pg;

/* A collection in a schema of its own. */
static const char *make(scratch *s, int number)
{
    static char path[512];
    char schema[32];
    pnb_error err = PNB_ERROR_INIT;
    snprintf(schema, sizeof schema, "killed%d", number);
    snprintf(path, sizeof path, "%s", scratch_path(s, schema));
    const pnb_store_place place = {.address = pg.address, .schema = schema};
    assert_ok(pnb_store_create_at(path, &place, NULL, &err), &err);
    return path;
}

/* Adds batches in a process of its own, each confirmed by a byte once it is there. */
static pid_t start_adding(const char *path, int confirm)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    pnb_store *store = NULL;
    pnb_error err = PNB_ERROR_INIT;
    bool ok = pnb_store_open(&store, path, &err) == PNB_OK;
    for (size_t at = 0; at < BATCHES * STEP && ok; at += STEP) {
        ok = try_add(store, at, STEP, NULL, &err) == PNB_OK;
        ok = ok && write(confirm, "+", 1) == 1;
    }
    pnb_store_close(store);
    _exit(ok ? 0 : 1);
}

/* How many rows are there: whole batches, each row once, in order. */
static size_t assert_whole(pnb_store *store)
{
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    char id[24];
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    size_t n = rows.n;
    assert_int_equal(n % STEP, 0);
    for (size_t i = 0; i < n; i++) {
        snprintf(id, sizeof id, "r%zu", i);
        assert_string_equal(rows.items[i].id, id);
    }
    pnb_store_rows_reset(&rows);
    return n;
}

static void assert_survived(const char *path, size_t n_confirmed)
{
    pnb_store_verified verified;
    pnb_error err = PNB_ERROR_INIT;
    pnb_store *store = opened(path);
    size_t n = assert_whole(store);
    assert_true(n >= STEP * n_confirmed);
    assert_ok(pnb_store_verify(path, NULL, &verified, &err), &err);
    assert_int_equal(verified.n_problems, 0);
    assert_int_equal(verified.n_rows, n);
    assert_ok(pnb_store_begin(store, 20, &err), &err); /* the lock of who is gone goes with it */
    for (size_t at = 0; at < BATCHES * STEP; at += STEP)
        assert_int_equal(add_rows(store, at, STEP).n_added, at < n ? 0 : STEP);
    assert_int_equal(assert_whole(store), BATCHES * STEP);
    pnb_store_close(store);
    assert_ok(pnb_store_verify(path, NULL, &verified, &err), &err);
    assert_int_equal(verified.n_problems + verified.n_leftovers, 0);
}

/* Lets a writer work for a while, disturbs it, and looks at what it left; whether it was done. */
static bool disturb(scratch *s, int number, useconds_t after, bool is_crash)
{
    int ends[2], status = 0;
    size_t n_confirmed = 0;
    char byte;
    const char *path = make(s, number);
    assert_int_equal(pipe(ends), 0);
    pid_t child = start_adding(path, ends[1]);
    close(ends[1]);
    usleep(after);
    if (is_crash)
        server_stop(&pg); /* at once, as if the machine went down */
    else
        kill(child, SIGKILL);
    waitpid(child, &status, 0);
    while (read(ends[0], &byte, 1) == 1)
        n_confirmed++;
    close(ends[0]);
    if (is_crash)
        server_again(&pg);
    assert_survived(path, n_confirmed);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void killed_at_random_moments(void **state)
{
    pnb__rng rng;
    int n_done = 0;
    pnb__rng_init(&rng, 5, 0);
    for (int i = 0; i < KILLS; i++)
        n_done += disturb(*state, i, (useconds_t)pnb__rng_below(&rng, 400000), false);
    assert_true(n_done < KILLS);
}

static void the_server_crashes(void **state)
{
    for (int i = 0; i < CRASHES; i++)
        disturb(*state, KILLS + i, (useconds_t)(60000 + 120000 * i), true);
}

static int teardown(void **state)
{
    scratch *s = *state;
    nftw(s->dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return 0;
}

int main(void)
{
    setenv("PNB_TEST_FSYNC", "on", 1); /* what a crash leaves is what was written */
    server_start(&pg);
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_random_moments),
                                       cmocka_unit_test(the_server_crashes)};
    int n_failed = cmocka_run_group_tests(tests, scratch_setup, teardown);
    server_end(&pg);
    return n_failed;
}
