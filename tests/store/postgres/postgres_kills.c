/* Writers to Postgres that are killed at random moments, and a server that goes down in the middle
 * of an addition: nothing that was confirmed is lost, nothing is there twice, and it goes on. */
#include "tests/store/killed.h"
#include "tests/store/postgres/server.h"

enum { BATCHES = 12, KILLS = 8, CRASHES = 2 };

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

/* Lets a writer work for a while, disturbs it, and looks at what it left; whether it was done. */
static bool disturb(scratch *s, int number, useconds_t after, bool is_crash)
{
    int ends[2], status = 0;
    size_t n_confirmed = 0;
    char byte;
    const char *path = make(s, number);
    assert_int_equal(pipe(ends), 0);
    pid_t child = start_adding(path, BATCHES * STEP, ends[1]);
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
    assert_survived(path, n_confirmed, BATCHES * STEP);
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
