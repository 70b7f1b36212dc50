/* Faults of the disk, on purpose: in PNB_FAULTS builds any one step (creating a file, putting it on
 * the disk, renaming or removing it) can fail with a reason of choice or be the last thing the
 * process does, so that tests can stand between any two steps without a clock. */
#include "base/base.h"

#ifdef PNB_FAULTS
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_long n_steps;
static atomic_long fault_at = -1; /* -1: never */
static atomic_int fault_reason;

void pnb__disk_fault_at(long n, int reason)
{
    atomic_store(&n_steps, 0);
    atomic_store(&fault_reason, reason);
    atomic_store(&fault_at, n);
}

long pnb__disk_steps(void)
{
    return atomic_load(&n_steps);
}

bool pnb__disk_step_fails(void)
{
    if (atomic_fetch_add(&n_steps, 1) != atomic_load(&fault_at))
        return false;
    errno = atomic_load(&fault_reason);
    if (errno == 0)
        raise(SIGKILL);
    return true;
}
#endif
