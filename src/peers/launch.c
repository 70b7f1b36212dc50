/* How this process was started, from the variables that launchers set (penumbra/peers.h names
 * them). Only what comes in pairs counts: a rank without a number of ranks is an error that says
 * what is missing, so that R processes never train R times the same. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "peers/wire.h"

static const char *find(const char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=')
            return environment[i] + n + 1;
    return NULL;
}

/* A whole number from 0 to `most`. */
static pnb_status read_number(const char *const *environment, const char *name, size_t most,
                              size_t *out, pnb_error *err)
{
    const char *text = find(environment, name);
    char *end = NULL;
    unsigned long long value =
        text != NULL && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || value > most)
        return pnb__fail(err, PNB_ARG, "%s is %s, a number from 0 to %zu is wanted", name,
                         text != NULL ? text : "not set", most);
    *out = (size_t)value;
    return PNB_OK;
}

/* Names of a launcher's variables. */
typedef struct names {
    const char *rank, *count, *local;
} names;

enum { MOST_RANKS = 65536 };

static pnb_status read_ranks(pnb_launch *l, const char *const *environment, const names *n,
                             pnb_error *err)
{
    pnb_status status = read_number(environment, n->count, MOST_RANKS, &l->n_ranks, err);
    if (status == PNB_OK && l->n_ranks == 0)
        status = pnb__fail(err, PNB_ARG, "%s is 0", n->count);
    if (status == PNB_OK)
        status = read_number(environment, n->rank, l->n_ranks - 1, &l->rank, err);
    if (status == PNB_OK && n->local != NULL && find(environment, n->local) != NULL)
        status = read_number(environment, n->local, MOST_RANKS, &l->n_local, err);
    l->n_local = PNB_MAX(l->n_local, (size_t)1);
    return status;
}

/* The first machine of "node[07-12,20],other3": "node07"; of "a,b": "a". */
static bool first_node(const char *list, char *out, size_t size)
{
    size_t n = strcspn(list, "[,");
    size_t digits = list[n] == '[' ? strcspn(list + n + 1, "-,]") : 0;
    if (n + digits == 0 || n + digits >= size)
        return false;
    memcpy(out, list, n);
    memcpy(out + n, list + n + 1, digits); /* n + 1 is past the bracket; of no digits nothing */
    out[n + digits] = '\0';
    return true;
}

/* MASTER_ADDR and MASTER_PORT, as torch reads them. */
static pnb_status read_master(pnb_launch *l, const char *const *environment, pnb_error *err)
{
    const char *address = find(environment, "MASTER_ADDR");
    const char *agent = find(environment, "TORCHELASTIC_USE_AGENT_STORE");
    size_t port = 0;
    pnb_status status = read_number(environment, "MASTER_PORT", 65535, &port, err);
    if (status != PNB_OK)
        return status;
    if (strlen(address) >= sizeof l->address || address[0] == '\0')
        return pnb__fail(err, PNB_ARG, "MASTER_ADDR is no name of a machine: %.300s", address);
    snprintf(l->address, sizeof l->address, "%s", address);
    l->port = (int)port + (agent != NULL && strcmp(agent, "True") == 0 ? 1 : 0);
    if (l->port < 1 || l->port > 65535)
        return pnb__fail(err, PNB_ARG, "MASTER_PORT %zu leaves no port for the exchange", port);
    l->how = PNB_LAUNCH_TCP;
    return PNB_OK;
}

/* srun tells no address: the step's first machine has rank 0, and jobs are told apart by number. */
static pnb_status read_slurm_master(pnb_launch *l, const char *const *environment, pnb_error *err)
{
    size_t job = 0;
    const char *nodes = find(environment, "SLURM_STEP_NODELIST");
    if (nodes == NULL)
        nodes = find(environment, "SLURM_JOB_NODELIST");
    if (nodes == NULL || !first_node(nodes, l->address, sizeof l->address))
        return pnb__fail(err, PNB_ARG, "SLURM_STEP_NODELIST is %s: set MASTER_ADDR and MASTER_PORT",
                         nodes != NULL ? nodes : "not set");
    pnb_status status = read_number(environment, "SLURM_JOB_ID", SIZE_MAX / 2, &job, err);
    l->port = 20000 + (int)(job % 20000);
    l->how = PNB_LAUNCH_TCP;
    return status;
}

/* An address of rank 0 decides for sockets; otherwise MPI, which is what the launcher is for. */
static pnb_status choose(pnb_launch *l, const char *const *environment, bool has_mpi,
                         pnb_error *err)
{
    if (l->n_ranks == 1)
        return PNB_OK; /* alone: mpirun -n 1 needs no library either */
    if (find(environment, "MASTER_ADDR") != NULL)
        return read_master(l, environment, err);
    if (has_mpi && pnb__mpi_is_built()) {
        l->how = PNB_LAUNCH_MPI;
        return PNB_OK;
    }
    if (find(environment, "SLURM_PROCID") != NULL)
        return read_slurm_master(l, environment, err);
    if (has_mpi)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "started by mpirun, and this build has no MPI: install libopenmpi-dev and "
                         "build again, or set MASTER_ADDR and MASTER_PORT (mpirun -x)");
    return pnb__fail(err, PNB_ARG, "RANK and WORLD_SIZE are set, MASTER_ADDR is not");
}

pnb_status pnb_launch_read(pnb_launch *out, const char *const *environment, pnb_error *err)
{
    static const names open_mpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_LOCAL_SIZE"};
    static const names slurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL};
    static const names torch = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
    pnb_launch l = {.how = PNB_LAUNCH_ALONE, .n_ranks = 1, .n_local = 1};
    pnb_status status = PNB_OK;
    const names *launcher = NULL;
    bool has_mpi = false;
    /* SLURM_STEP_NUM_TASKS is srun's alone: a batch script has SLURM_PROCID too and is one process.
     * RANK alone may be anybody's word, as may WORLD_SIZE. */
    if (find(environment, "OMPI_COMM_WORLD_RANK") != NULL) {
        launcher = &open_mpi;
        has_mpi = true;
    } else if (find(environment, "RANK") != NULL && find(environment, "WORLD_SIZE") != NULL) {
        launcher = &torch;
    } else if (find(environment, "SLURM_STEP_NUM_TASKS") != NULL) {
        launcher = &slurm;
        has_mpi = find(environment, "PMIX_RANK") != NULL;
    }
    if (launcher == NULL && find(environment, "MASTER_ADDR") != NULL &&
        (find(environment, "RANK") != NULL || find(environment, "WORLD_SIZE") != NULL))
        return pnb__fail(err, PNB_ARG, "MASTER_ADDR and %s are set, %s is not",
                         find(environment, "RANK") != NULL ? "RANK" : "WORLD_SIZE",
                         find(environment, "RANK") != NULL ? "WORLD_SIZE" : "RANK");
    if (launcher != NULL)
        status = read_ranks(&l, environment, launcher, err);
    if (launcher != NULL && status == PNB_OK)
        status = choose(&l, environment, has_mpi, err);
    if (status == PNB_OK)
        *out = l;
    return status;
}
