/* Which processors threads keep to (sched_setaffinity(2)).
 *
 * Threads start with the set of the one that started them. A set holds 1024 processors: of a larger
 * machine nothing is known, and every function says so by false. */
#ifndef PNB_BASE_AFFINITY_H
#define PNB_BASE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>

/* The processors that the calling thread may use. */
bool pnb__affinity_get(cpu_set_t *out);

/* Takes the n of the highest numbers out of *set and returns them; of fewer than n, all. */
cpu_set_t pnb__affinity_take_last(cpu_set_t *set, int n);

/* Whether every thread that this process has may use just these. */
bool pnb__affinity_is_shared(const cpu_set_t *set);

/* Every thread that this process has, so whatever these start. */
bool pnb__affinity_keep_process(const cpu_set_t *set);

/* Moves the calling thread off the processors of *taken, to one that it may use anyway, and leaves
 * its set as it was (what somebody else makes of it in that moment is lost). False, and nothing
 * happens, where it may use no other. */
bool pnb__affinity_leave(const cpu_set_t *taken);

#endif
