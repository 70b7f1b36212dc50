/* Faults of the disk: the chosen step fails once with the chosen reason, or ends the process;
 * without PNB_FAULTS no step fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static void no_step_fails_unasked(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_false(pnb__disk_step_fails());
}

#ifdef PNB_FAULTS
static void the_chosen_step_fails_once(void **state)
{
    (void)state;
    for (long chosen = 0; chosen < 4; chosen++) {
        pnb__disk_fault_at(chosen, ENOSPC);
        assert_int_equal(pnb__disk_steps(), 0); /* the count begins anew */
        for (long step = 0; step < 6; step++) {
            errno = 0;
            assert_int_equal(pnb__disk_step_fails(), step == chosen);
            assert_int_equal(errno, step == chosen ? ENOSPC : 0);
            assert_int_equal(pnb__disk_steps(), step + 1);
        }
    }
    pnb__disk_fault_at(-1, EIO);
    no_step_fails_unasked(NULL);
    pnb__disk_fault_at(-1, 0);
}

/* Reason 0: the process ends at the chosen step, not before it. */
static void the_process_ends_at_its_step(void **state)
{
    (void)state;
    for (long chosen = 0; chosen < 2; chosen++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            pnb__disk_fault_at(chosen, 0);
            if (pnb__disk_step_fails() || chosen == 0)
                _exit(1);
            pnb__disk_step_fails();
            _exit(2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_fails_unasked),
#ifdef PNB_FAULTS
        cmocka_unit_test(the_chosen_step_fails_once),
        cmocka_unit_test(the_process_ends_at_its_step),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
