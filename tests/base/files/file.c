/* Files: whole reads, maps, outputs that appear whole or not at all (full disk, file size limit,
 * missing directory), and locks between two processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

/* One scratch directory a test, removed with all it holds. */
static int enter_scratch(void **state)
{
    char *dir = strdup("/tmp/penumbra-file-XXXXXX");
    *state = dir;
    return dir == NULL || mkdtemp(dir) == NULL;
}

static void remove_tree(const char *path)
{
    DIR *entries = opendir(path);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e != NULL; e = readdir(entries)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *inner = pnb__path_join(path, e->d_name);
        struct stat info;
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            remove_tree(inner);
        else
            unlink(inner);
        pnb__free(inner);
    }
    if (entries != NULL)
        closedir(entries);
    rmdir(path);
}

static int leave_scratch(void **state)
{
    remove_tree(*state);
    free(*state);
    return 0;
}

static int count_entries(const char *dir)
{
    int n = 0;
    DIR *entries = opendir(dir);
    assert_non_null(entries);
    for (struct dirent *e = readdir(entries); e != NULL; e = readdir(entries))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(entries);
    return n;
}

static void assert_content(const char *path, const char *want)
{
    char *data = NULL;
    size_t size = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__read_file(path, 1 << 20, &data, &size, &err), PNB_OK);
    assert_int_equal(size, strlen(want));
    assert_string_equal(data, want); /* also: terminated */
    pnb__free(data);
}

static void reading_keeps_its_limits(void **state)
{
    char *path = pnb__path_join(*state, "f");
    char *data = NULL;
    size_t size = 99;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__write_file(path, "12345", 5, &err), PNB_OK);
    assert_int_equal(pnb__read_file(path, 4, &data, &size, &err), PNB_LIMIT);
    assert_null(data);
    assert_int_equal(size, 99);
    assert_non_null(strstr(err.text, "5 bytes"));
    assert_int_equal(pnb__read_file(path, 5, &data, &size, NULL), PNB_OK);
    assert_int_equal(size, 5);
    pnb__free(data);
    data = NULL;
    assert_int_equal(pnb__read_file("/dev/zero", 100000, &data, &size, NULL), PNB_LIMIT);
    assert_int_equal(pnb__read_file(*state, 100, &data, &size, NULL), PNB_IO);
    assert_null(data);
    pnb_error_reset(&err);
    assert_int_equal(pnb__read_file("/nowhere/at/all", 100, &data, &size, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    pnb__free(path);
}

static void reading_without_a_known_size(void **state)
{
    (void)state;
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(pnb__read_file("/proc/self/status", 1 << 20, &data, &size, NULL), PNB_OK);
    assert_true(size > 10 && strlen(data) == size);
    pnb__free(data);
}

static void large_files_survive(void **state)
{
    char *path = pnb__path_join(*state, "large");
    size_t n = 3000000, size = 0;
    unsigned char *bytes = pnb__alloc(n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    char *data = NULL;
    pnb__map map;
    assert_int_equal(pnb__write_file(path, bytes, n, NULL), PNB_OK);
    assert_int_equal(pnb__read_file(path, n, &data, &size, NULL), PNB_OK);
    assert_int_equal(size, n);
    assert_memory_equal(data, bytes, n);
    assert_int_equal(pnb__map_open(&map, path, NULL), PNB_OK);
    assert_int_equal(map.size, n);
    assert_memory_equal(map.data, bytes, n);
    pnb__map_close(&map);
    assert_null(map.data);
    pnb__map_close(&map);
    pnb__free(data);
    pnb__free(bytes);
    pnb__free(path);
}

/* What is written into a mapped file is told; another file of its name is none of its business. */
static void maps_of_files_that_change(void **state)
{
    char *path = pnb__path_join(*state, "changing");
    pnb_error err = PNB_ERROR_INIT;
    pnb__map map, cut;
    assert_int_equal(pnb__write_file(path, "bytes", 5, NULL), PNB_OK);
    assert_int_equal(pnb__map_open(&map, path, NULL), PNB_OK);
    assert_int_equal(pnb__map_check(&map, path, NULL), PNB_OK);
    assert_int_equal(pnb__write_file(path, "other", 5, NULL), PNB_OK); /* renamed over it */
    assert_int_equal(pnb__map_check(&map, path, NULL), PNB_OK);
    assert_int_equal(pnb__map_open(&cut, path, NULL), PNB_OK);
    assert_int_equal(truncate(path, 2), 0);
    assert_int_equal(pnb__map_check(&cut, path, &err), PNB_IO);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "5 bytes then, 2 now"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pnb__map_check(&cut, path, NULL), PNB_OK);
    pnb__map_close(&cut);
    assert_int_equal(pnb__map_check(&cut, path, NULL), PNB_OK);
    pnb__map_close(&map);
    pnb__free(path);
}

static void maps_of_odd_files(void **state)
{
    char *empty = pnb__path_join(*state, "empty");
    pnb__map map = {.data = (const unsigned char *)"x", .size = 1};
    assert_int_equal(pnb__write_file(empty, NULL, 0, NULL), PNB_OK);
    assert_int_equal(pnb__map_open(&map, empty, NULL), PNB_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    pnb__map_close(&map);
    assert_content(empty, "");
    assert_int_equal(pnb__map_open(&map, "/nowhere", NULL), PNB_NOT_FOUND);
    assert_int_equal(pnb__map_open(&map, *state, NULL), PNB_IO);
    assert_int_equal(pnb__map_open(&map, "/dev/zero", NULL), PNB_IO);
    assert_null(map.data);
    pnb__free(empty);
}

static void output_appears_at_commit(void **state)
{
    char *path = pnb__path_join(*state, "out");
    pnb__out_file f;
    assert_int_equal(pnb__out_open(&f, path, NULL), PNB_OK);
    fputs("new", f.file);
    assert_false(pnb__path_is_file(path));
    assert_int_equal(pnb__out_commit(&f, NULL), PNB_OK);
    assert_content(path, "new");
    pnb__out_abort(&f); /* fine after commit */
    assert_content(path, "new");
    assert_int_equal(count_entries(*state), 1);

    assert_int_equal(pnb__out_open(&f, path, NULL), PNB_OK);
    fputs("newer", f.file);
    pnb__out_abort(&f);
    assert_content(path, "new");
    assert_int_equal(count_entries(*state), 1);
    pnb__free(path);
}

static void output_has_ordinary_permissions(void **state)
{
    char *path = pnb__path_join(*state, "out");
    mode_t old_mask = umask(027);
    assert_int_equal(pnb__write_file(path, "x", 1, NULL), PNB_OK);
    umask(old_mask);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    pnb__free(path);
}

/* Two outputs to one target at once: both temporary names exist, the later commit wins. */
static void two_writers_do_not_mix(void **state)
{
    char *path = pnb__path_join(*state, "out");
    pnb__out_file a, b;
    assert_int_equal(pnb__out_open(&a, path, NULL), PNB_OK);
    assert_int_equal(pnb__out_open(&b, path, NULL), PNB_OK);
    fputs("from a", a.file);
    fputs("from b", b.file);
    assert_int_equal(pnb__out_commit(&b, NULL), PNB_OK);
    assert_content(path, "from b");
    assert_int_equal(pnb__out_commit(&a, NULL), PNB_OK);
    assert_content(path, "from a");
    assert_int_equal(count_entries(*state), 1);
    pnb__free(path);
}

static void links_are_followed(void **state)
{
    char *path = pnb__path_join(*state, "target");
    char *link = pnb__path_join(*state, "link");
    struct stat info;
    assert_int_equal(pnb__write_file(path, "old", 3, NULL), PNB_OK);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(pnb__write_file(link, "new", 3, NULL), PNB_OK);
    assert_content(path, "new");
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    pnb__free(path);
    pnb__free(link);
}

static void output_to_a_full_device(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    char bytes[100] = {0};
    assert_int_equal(pnb__write_file("/dev/full", bytes, sizeof bytes, &err), PNB_IO);
    assert_non_null(strstr(err.text, "No space left"));
    char *large = pnb__alloc_zero(1, 1 << 20);
    assert_int_equal(pnb__write_file("/dev/full", large, 1 << 20, NULL), PNB_IO);
    pnb__free(large);
    assert_int_equal(pnb__write_file("/dev/null", bytes, sizeof bytes, NULL), PNB_OK);
    assert_false(pnb__path_is_file("/dev/null"));
}

static void output_to_impossible_places(void **state)
{
    char *file = pnb__path_join(*state, "f");
    char *below_file = pnb__path_join(*state, "f/g");
    char *missing = pnb__path_join(*state, "missing/g");
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__write_file(file, "x", 1, NULL), PNB_OK);
    assert_int_equal(pnb__write_file(below_file, "x", 1, &err), PNB_IO);
    assert_non_null(strstr(err.text, below_file));
    assert_int_equal(pnb__write_file(missing, "x", 1, NULL), PNB_NOT_FOUND);
    assert_int_equal(pnb__write_file(*state, "x", 1, NULL), PNB_IO);
    assert_int_equal(count_entries(*state), 1);
    pnb__free(file);
    pnb__free(below_file);
    pnb__free(missing);
}

/* A file size limit acts as a disk that is full after 4096 bytes; the limit is the child's. */
static void old_file_survives_a_full_disk(void **state)
{
    char *path = pnb__path_join(*state, "out");
    assert_int_equal(pnb__write_file(path, "old", 3, NULL), PNB_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(9);
        pnb_error err = PNB_ERROR_INIT;
        char bytes[20000] = {0};
        pnb_status status = pnb__write_file(path, bytes, sizeof bytes, &err);
        _exit(status == PNB_IO && err.status == PNB_IO ? 0 : 1);
    }
    int child_status = 0;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_content(path, "old");
    assert_int_equal(count_entries(*state), 1);
    pnb__free(path);
}

/* What a child under a file size limit says about `n` bytes written one after another, none of the
 * calls looked at: the reason must not be lost. */
static void reasons_survive_unchecked_writes(void **state)
{
    char *path = pnb__path_join(*state, "out");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {4096, 4096};
        pnb_error err = PNB_ERROR_INIT;
        pnb__out_file f;
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || pnb__out_open(&f, path, &err) != PNB_OK)
            _exit(9);
        for (int i = 0; i < 20000; i++)
            (void)fputc('x', f.file);
        pnb_status status = pnb__out_commit(&f, &err);
        _exit(status == PNB_IO && strstr(err.text, "File too large") != NULL ? 0 : 1);
    }
    int child_status = 0;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_int_equal(count_entries(*state), 0);
    pnb__free(path);
}

/* Opening a pipe without a writer would wait for ever, so that this test would not end. */
static void pipes_are_not_opened(void **state)
{
    char *path = pnb__path_join(*state, "pipe");
    pnb__map map;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pnb__map_open(&map, path, &err), PNB_IO);
    assert_non_null(strstr(err.text, "is a pipe"));
    pnb__free(path);
}

enum { N_FILES = 3 };

/* Files 0, 1 (NULL when there is no old one), 2 of a set, opened and written with `text`. */
static void open_set(pnb__out_file files[N_FILES], char *const paths[N_FILES], const char *text)
{
    for (int i = 0; i < N_FILES; i++) {
        assert_int_equal(pnb__out_open(&files[i], paths[i], NULL), PNB_OK);
        fputs(text, files[i].file);
    }
}

static void files_are_committed_together(void **state)
{
    pnb__out_file files[N_FILES];
    pnb__out_file *const all[] = {&files[0], &files[1], NULL, &files[2]};
    char *paths[N_FILES];
    for (int i = 0; i < N_FILES; i++)
        assert_non_null(paths[i] = pnb__format("%s/%d", (char *)*state, i));
    open_set(files, paths, "old");
    assert_int_equal(pnb__out_commit_all(all, 4, NULL), PNB_OK);
    open_set(files, paths, "new");
    assert_int_equal(pnb__out_commit_all(all, 4, NULL), PNB_OK);
    for (int i = 0; i < N_FILES; i++)
        assert_content(paths[i], "new");
    assert_int_equal(count_entries(*state), N_FILES);
#ifdef PNB_FAULTS
    unlink(paths[1]);
    for (long step = 0, failed = 1; failed; step++) { /* every one of its steps fails once */
        pnb_error err = PNB_ERROR_INIT;
        open_set(files, paths, "last");
        pnb__disk_fault_at(step, ENOSPC);
        failed = pnb__out_commit_all(all, 4, &err) != PNB_OK;
        pnb__disk_fault_at(-1, 0);
        if (failed) {
            assert_non_null(strstr(err.text, "No space left"));
            assert_content(paths[0], "new");
            assert_false(pnb__path_is_file(paths[1]));
            assert_content(paths[2], "new");
            assert_int_equal(count_entries(*state), N_FILES - 1);
        }
        assert_true(step < 50);
    }
    for (int i = 0; i < N_FILES; i++)
        assert_content(paths[i], "last");
#endif
    for (int i = 0; i < N_FILES; i++)
        pnb__free(paths[i]);
}

/* Tells through its exit code whether another process gets the lock. */
static pnb_status try_lock_elsewhere(const char *path)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb__lock_open(&fd, path, &err);
        _exit(status == PNB_OK || strstr(err.text, "another process") != NULL ? (int)status : 99);
    }
    int child_status = 0;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_true(WIFEXITED(child_status));
    return (pnb_status)WEXITSTATUS(child_status);
}

static void a_lock_excludes_other_processes(void **state)
{
    char *path = pnb__path_join(*state, "lock");
    char *impossible = pnb__path_join(*state, "missing/lock");
    int fd = -7;
    assert_int_equal(pnb__lock_open(&fd, path, NULL), PNB_OK);
    assert_true(fd >= 0);
    assert_int_equal(try_lock_elsewhere(path), PNB_BUSY);
    pnb__lock_close(fd);
    assert_int_equal(try_lock_elsewhere(path), PNB_OK);
    assert_int_equal(pnb__lock_open(&fd, impossible, NULL), PNB_NOT_FOUND);
    assert_int_equal(fd, -1);
    pnb__lock_close(fd);
    pnb__free(path);
    pnb__free(impossible);
}

#ifdef PNB_FAULTS
/* Every allocation of a write and a read fails in turn: NOMEM, old file whole, nothing left over.
 */
static void out_of_memory_changes_nothing(void **state)
{
    char *path = pnb__path_join(*state, "f");
    assert_int_equal(pnb__write_file(path, "old", 3, NULL), PNB_OK);
    bool is_done = false;
    for (long n = 0; !is_done; n++) {
        assert_true(n < 50);
        char *data = NULL;
        size_t size = 0;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__write_file(path, "new", 3, NULL);
        if (status == PNB_OK)
            status = pnb__read_file(path, 100, &data, &size, NULL);
        pnb__alloc_fail_after(-1);
        is_done = status == PNB_OK && data != NULL && n > 5;
        assert_true(status == PNB_OK || status == PNB_NOMEM);
        pnb__free(data);
        assert_int_equal(count_entries(*state), 1);
    }
    assert_content(path, "new");
    pnb__free(path);
}
#endif

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(reading_keeps_its_limits),
        cmocka_unit_test(reading_without_a_known_size),
        IN_SCRATCH(large_files_survive),
        IN_SCRATCH(maps_of_odd_files),
        IN_SCRATCH(maps_of_files_that_change),
        IN_SCRATCH(output_appears_at_commit),
        IN_SCRATCH(output_has_ordinary_permissions),
        IN_SCRATCH(two_writers_do_not_mix),
        IN_SCRATCH(links_are_followed),
        IN_SCRATCH(output_to_a_full_device),
        IN_SCRATCH(output_to_impossible_places),
        IN_SCRATCH(old_file_survives_a_full_disk),
        IN_SCRATCH(reasons_survive_unchecked_writes),
        IN_SCRATCH(pipes_are_not_opened),
        IN_SCRATCH(files_are_committed_together),
        IN_SCRATCH(a_lock_excludes_other_processes),
#ifdef PNB_FAULTS
        IN_SCRATCH(out_of_memory_changes_nothing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
