/* A collection is made whole or not at all, wherever the maker is killed or the disk is full. */
#include "tests/store/killed.h"

#include <errno.h>
#include <sys/stat.h>

static const pnb_embeddings_info info = {
    .model = "some", .weights_sha256 = "", .modality = "image"};
static const pnb_store_model model = {.dir = "models/some", .info = &info};

/* Whether one is there, and is the one that was made; one that is not is made now. */
static bool assert_made(const char *path, const pnb_store_place *place)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_store_about about;
    pnb_store *store = NULL;
    bool was_there = pnb_store_is_at(path);
    if (!was_there)
        assert_ok(pnb_store_create_at(path, place, &model, &err), &err);
    assert_ok(pnb_store_open(&store, path, &err), &err);
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_string_equal(about.model_dir, "models/some");
    assert_int_equal(about.n_rows, 0);
    pnb_store_close(store);
    assert_failed(pnb_store_create_at(path, place, &model, &err), &err, PNB_EXISTS, "already");
    return was_there;
}

static void killed_at_random_moments(void **state)
{
    scratch *s = *state;
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    size_t n_killed = 0, n_made = 0;
    for (int i = 0; i < 100; i++) {
        int status = 0;
        fresh(s);
        pid_t child = fork();
        if (child == 0)
            _exit(pnb_store_create(scratch_path(s, "c"), &model, NULL) != PNB_OK);
        usleep((useconds_t)pnb__rng_below(&rng, 20000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        n_killed += WIFSIGNALED(status);
        n_made += assert_made(scratch_path(s, "c"), NULL);
    }
    assert_true(n_killed > 5 && n_made < 100);
}

#ifdef PNB_FAULTS
/* Kills the maker before each of its steps on the disk in turn, or fills the disk there. */
static void stopped_at_every_step(scratch *s, const pnb_store_place *place, bool is_killed)
{
    for (long step = 0;; step++) {
        int status = 0;
        assert_true(step < 100);
        fresh(s);
        (void)unlink(scratch_path(s, "far.db"));
        pid_t child = fork();
        if (child == 0) {
            pnb__disk_fault_at(step, is_killed ? 0 : ENOSPC);
            _exit(pnb_store_create_at(scratch_path(s, "c"), place, &model, NULL) != PNB_OK);
        }
        waitpid(child, &status, 0);
        bool is_whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        struct stat about;
        if (!is_killed && !is_whole) /* what was made for nothing went again */
            assert_int_not_equal(lstat(scratch_path(s, "c"), &about), 0);
        assert_int_equal(assert_made(scratch_path(s, "c"), place), is_whole);
        if (is_whole) {
            assert_true(step >= 3);
            break;
        }
    }
}

static void stopped(void **state)
{
    scratch *s = *state;
    char address[300];
    snprintf(address, sizeof address, "sqlite:%s", scratch_path(s, "far.db"));
    const pnb_store_place far = {.address = address};
    stopped_at_every_step(s, NULL, true);
    stopped_at_every_step(s, NULL, false);
    stopped_at_every_step(s, &far, false);
}
#endif

/* What another program has put there stays. */
static void what_is_in_the_way(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__make_dirs(fresh(s), &err), &err);
    assert_ok(pnb__make_dirs(scratch_path(s, "c/shards"), &err), &err);
    scratch_file(s, "c/shards/1.safetensors", "rows", 4);
    assert_failed(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err, PNB_EXISTS, "a folder");
    pnb_error_reset(&err);
    assert_int_equal(unlink(scratch_path(s, "c/shards/1.safetensors")), 0);
    scratch_file(s, "c/collection.db.new", "half", 4);
    assert_ok(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err);
    pnb_store_close(opened(scratch_path(s, "c")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_random_moments),
        cmocka_unit_test(what_is_in_the_way),
#ifdef PNB_FAULTS
        cmocka_unit_test(stopped),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
