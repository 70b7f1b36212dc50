/* The process's one pool of threads, below pnb__parallel_for. */
#ifndef PENUMBRA_BASE_POOL_H
#define PENUMBRA_BASE_POOL_H

#include <stdbool.h>

/* fn(user, part) once for every part 0 .. n_parts - 1, on the calling thread and on whichever of
 * the pool's threads come in time; returns when all have ended. The caller works as they do, so a
 * job ends even where no thread could be started. From inside a part all parts run one after
 * another. */
typedef void (*pnb__part_fn)(void *user, int part);
void pnb__pool_run(int n_parts, pnb__part_fn fn, void *user);

/* Whether the calling thread is inside a part. */
bool pnb__pool_is_inside(void);

#endif
