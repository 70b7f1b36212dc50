/* Several processes that work on one job: how they were started, and the tie between them.
 *
 * A launcher (mpirun, srun, torchrun) starts R processes with one command line and tells each its
 * number, its rank, by variables of the environment. pnb_launch_read understands them;
 * pnb_peers_open ties the processes together, by MPI under mpirun and by sockets of our own where
 * MASTER_ADDR and MASTER_PORT say where rank 0 listens. A call that takes a pnb_peers is made by
 * all ranks, in the same order. NULL stands for one process alone everywhere.
 *
 * What fails on one rank ends the call on all of them: the error names the rank, and
 * pnb_peers_is_speaker says which one process prints it. A rank that says nothing for `timeout_s`
 * is named too. After a failure nothing but pnb_peers_close may be called. */
#ifndef PENUMBRA_PEERS_H
#define PENUMBRA_PEERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pnb_launcher {
    PNB_LAUNCH_ALONE, /* no launcher: one process, nothing is opened */
    PNB_LAUNCH_MPI,
    PNB_LAUNCH_TCP
} pnb_launcher;

typedef struct pnb_launch {
    pnb_launcher how;
    size_t rank, n_ranks; /* 0 and 1 alone */
    size_t n_local;       /* ranks on this machine, which share its processors; 1 if unknown */
    char address[256];    /* of rank 0, for TCP */
    int port;
} pnb_launch;

/* Reads what launchers set: OMPI_COMM_WORLD_RANK, _SIZE and _LOCAL_SIZE (mpirun); PMIX_RANK and
 * SLURM_PROCID with SLURM_STEP_NUM_TASKS (srun); RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR
 * and MASTER_PORT (torchrun). MASTER_ADDR means TCP whoever launched. srun without PMIx and without
 * MASTER_ADDR is TCP to the first machine of SLURM_STEP_NODELIST, at a port made of the job's
 * number. torchrun keeps MASTER_PORT for itself (TORCHELASTIC_USE_AGENT_STORE): the next one is
 * taken then.
 * environment  "NAME=value", ends with NULL; NULL: none
 * Errors  ARG (a variable that is missing beside others, or is no such number; all are named),
 *         UNSUPPORTED (started by mpirun, and this build has no MPI) */
pnb_status pnb_launch_read(pnb_launch *out, const char *const *environment, pnb_error *err);

typedef struct pnb_peers pnb_peers;

/* Ties the ranks together; alone *out is NULL. Waits at most `timeout_s` for the others, and no
 * longer than until *stop is set, as by a signal handler; `stop` may be NULL. MPI waits as it does
 * by itself. Free with pnb_peers_close.
 * Errors  IO (a rank did not come, or hung up: named), NOT_FOUND (rank 0 cannot be reached),
 *         INTERRUPTED (*stop), UNSUPPORTED (libmpi cannot be opened, or is another version's), ARG
 *         (another number of ranks), NOMEM */
pnb_status pnb_peers_open(pnb_peers **out, const pnb_launch *launch, double timeout_s,
                          const volatile sig_atomic_t *stop, pnb_error *err);
/* After so long without a word a rank is given up; the time of opening until then. */
void pnb_peers_set_timeout(pnb_peers *ranks, double timeout_s);
/* NULL is fine. After a failure the others learn of it here at the latest. */
void pnb_peers_close(pnb_peers *ranks);

size_t pnb_peers_rank(const pnb_peers *ranks);  /* 0 of NULL */
size_t pnb_peers_count(const pnb_peers *ranks); /* 1 of NULL */

/* Every rank says how it fared; all get the first failure in the order of ranks, with its text in
 * `err` behind "rank N: ". Settled once, it stays.
 * Errors  those of the ranks; IO (a rank is gone, or silent for too long: named) */
pnb_status pnb_peers_agree(pnb_peers *ranks, pnb_status status, pnb_error *err);
/* Tells the others that this rank cannot go on, and learns whether a lower one said so first.
 * `err` then has what is to be printed. Nothing happens where a failure is settled already. */
void pnb_peers_fail(pnb_peers *ranks, pnb_status status, pnb_error *err);
/* Of the OpenMPI that this library was built for; NULL: sockets alone. */
const char *pnb_peers_mpi_version(void);
/* Whether this process is the one that prints a result or the error that ended all. */
bool pnb_peers_is_speaker(const pnb_peers *ranks);

#ifdef __cplusplus
}
#endif
#endif
