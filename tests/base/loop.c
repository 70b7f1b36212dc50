/* base/loop.h: a region is looked at as a whole, and what may not be touched in it is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"

/* Whether asking for the region ends the process, as the sanitizer's report does. */
static bool is_reported(const void *p, size_t n_bytes)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO); /* the report itself */
        PNB__CHECK_REGION(p, n_bytes);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void what_leaves_its_memory_is_reported(void **state)
{
    (void)state;
#ifdef PNB__HAS_ASAN
    const bool reports = true;
#else
    const bool reports = false;
#endif
    for (size_t n = 1; n < 200; n += 37) {
        char *p = malloc(n);
        assert_non_null(p);
        assert_false(is_reported(p, n));
        assert_false(is_reported(p + n, 0));
        assert_int_equal(is_reported(p, n + 1), reports);
        assert_int_equal(is_reported(p - 1, 1), reports);
        free(p);
    }
}

/* One byte of eight, or all of them, that may not be touched amid what may: found from every
 * beginning and end that has it, near and far, and from no other. */
static void what_lies_amid_is_reported(void **state)
{
    (void)state;
#ifdef PNB__HAS_ASAN
    enum { N = 320 };
    char *p = aligned_alloc(64, N);
    assert_non_null(p);
    for (size_t hole = 0; hole < N;
         hole += 104) { /* in the first word of eight, amid, in the last */
        ASAN_POISON_MEMORY_REGION(p + hole, 8);
        for (size_t first = 0; first < N; first += 71)
            for (size_t end = first + 1; end <= N; end += 61)
                assert_int_equal(is_reported(p + first, end - first),
                                 first < hole + 8 && end > hole);
        ASAN_UNPOISON_MEMORY_REGION(p + hole, 8);
    }
    ASAN_POISON_MEMORY_REGION(p + 61, 3); /* the end of a word: its first five may be touched */
    assert_false(is_reported(p + 40, 21));
    assert_true(is_reported(p + 40, 22));
    assert_true(is_reported(p + 61, 1));
    assert_false(is_reported(p + 64, 1));
    assert_true(is_reported(p, N));
    ASAN_UNPOISON_MEMORY_REGION(p, N);
    free(p);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_its_memory_is_reported),
        cmocka_unit_test(what_lies_amid_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
