/* The libraries that a build may lack, for --version --verbose.
 *
 * Those of pictures are not among them: io/image/formats/formats.c names them by what they read. */
#include <string.h>

#include "commands/commands.h"
#include "penumbra/peers.h"
#include "penumbra/search.h"
#include "penumbra/store.h"
#include "server/sockets/listen.h"

static const char *sqlite_version(void)
{
    return strstr(pnb_store_kinds(), "SQLite") != NULL ? "" : NULL;
}

static const char *postgres_version(void)
{
    return strstr(pnb_store_kinds(), "Postgres") != NULL ? "" : NULL;
}

const pnb__part pnb__parts[] = {
    {"SQLite", sqlite_version, "collections, `penumbra collection`", "libsqlite3-dev"},
    {"libpq", postgres_version, "collections in Postgres", "libpq-dev"},
    {"FAISS", pnb_index_faiss_version, "approximate search, `search --approx hnsw`",
     "libfaiss-dev"},
    {"libmicrohttpd", pnb__listen_version, "HTTP, `penumbra serve`", "libmicrohttpd-dev"},
    {"OpenMPI", pnb_peers_mpi_version, "training over MPI (sockets without it)", "libopenmpi-dev"},
    {0},
};
