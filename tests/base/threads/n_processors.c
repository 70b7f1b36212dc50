/* Processors that a control group leaves a process, in both versions of the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int make_dir(void **state)
{
    char *dir = strdup("/tmp/penumbra-groups-XXXXXX");
    *state = dir;
    return dir == NULL || mkdtemp(dir) == NULL;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static int remove_dir(void **state)
{
    nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(pnb__make_dirs(path, NULL), PNB_OK);
    *slash = '/';
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int count(const char *dir)
{
    char groups[PATH_MAX];
    snprintf(groups, sizeof groups, "%s/groups", dir);
    return pnb__cgroup_processors(groups, dir);
}

static void version_2(void **state)
{
    static const struct {
        const char *line;
        int n;
    } cases[] = {{"50000 100000", 1},    {"100000 100000", 1},      {"100001 100000\n", 2},
                 {"250000 100000\n", 3}, {"max 100000\n", INT_MAX}, {"100000", INT_MAX},
                 {"", INT_MAX},          {"200000 0", INT_MAX},     {"x 100000", INT_MAX}};
    const char *dir = *state;
    write_file(dir, "groups", "0::/inner/most\n");
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        write_file(dir, "inner/most/cpu.max", cases[i].line);
        assert_int_equal(count(dir), cases[i].n);
    }
}

/* The least of the groups one lies in; the root's file is its own group inside a container. */
static void groups_lie_in_groups(void **state)
{
    const char *dir = *state;
    write_file(dir, "groups", "0::/inner/most\n");
    write_file(dir, "inner/most/cpu.max", "max 100000");
    write_file(dir, "inner/cpu.max", "300000 100000");
    assert_int_equal(count(dir), 3);
    write_file(dir, "cpu.max", "200000 100000");
    assert_int_equal(count(dir), 2);
    write_file(dir, "groups", "0::/\n");
    assert_int_equal(count(dir), 2);
    write_file(dir, "groups", "0::/gone\n");
    assert_int_equal(count(dir), 2);
}

static void version_1(void **state)
{
    const char *dir = *state;
    write_file(dir, "groups",
               "5:cpuset:/other\n4:cpuacct,cpu:/docker/x\n1:name=systemd:/\nrubbish\n");
    assert_int_equal(count(dir), INT_MAX);
    write_file(dir, "cpu/docker/x/cpu.cfs_quota_us", "150000\n");
    assert_int_equal(count(dir), INT_MAX);
    write_file(dir, "cpu/docker/x/cpu.cfs_period_us", "50000\n");
    assert_int_equal(count(dir), 3);
    write_file(dir, "cpu/docker/x/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(count(dir), INT_MAX);
    write_file(dir, "cpu/other/cpu.cfs_quota_us", "50000\n"); /* the group of another controller */
    write_file(dir, "cpu/other/cpu.cfs_period_us", "50000\n");
    assert_int_equal(count(dir), INT_MAX);
}

static void no_groups(void **state)
{
    assert_int_equal(count(*state), INT_MAX);
}

/* Affinity counts: bound to one processor, a process has one. */
static void affinity(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_in_range(pnb__n_processors(), 1, CPU_COUNT(&before));
    size_t first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int n = pnb__n_processors();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(groups_lie_in_groups, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(version_1, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(no_groups, make_dir, remove_dir),
        cmocka_unit_test(affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
