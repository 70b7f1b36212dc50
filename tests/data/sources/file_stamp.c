/* Stamps of files: the same while nothing was written, another after writing, replacing, removing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/sources/file_stamp.h"

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void sees_what_changed(void **state)
{
    (void)state;
    char dir[] = "/tmp/pnb-stamp-XXXXXX", path[64], other[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a", dir);
    snprintf(other, sizeof other, "%s/b", dir);
    uint64_t gone = pnb__file_stamp(path);
    put(path, "one");
    uint64_t first = pnb__file_stamp(path);
    assert_true(first != gone);
    assert_true(pnb__file_stamp(path) == first);

    put(path, "longer");
    uint64_t longer = pnb__file_stamp(path);
    assert_true(longer != first);

    /* another file of the same size and time of writing in its place: the inode tells */
    struct stat info;
    put(other, "LONGER");
    assert_int_equal(stat(path, &info), 0);
    struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
    assert_int_equal(rename(other, path), 0);
    assert_true(pnb__file_stamp(path) != longer);

    assert_int_equal(unlink(path), 0);
    assert_true(pnb__file_stamp(path) == gone); /* the name alone */
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sees_what_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
