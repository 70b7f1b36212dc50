/* A build without the headers of OpenMPI: a job started by mpirun is refused with what is missing.
 * The sockets of our own (torchrun's variables) are there all the same, as they need no
 * library. */
#include "peers/wire.h"

bool pnb__mpi_is_built(void)
{
    return false;
}

const char *pnb__mpi_version(void)
{
    return NULL;
}

pnb_status pnb__mpi_open(pnb__wire *out, const pnb_launch *l, pnb_error *err)
{
    (void)out, (void)l;
    return pnb__fail(err, PNB_UNSUPPORTED, "this build has no MPI");
}
