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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_its_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
