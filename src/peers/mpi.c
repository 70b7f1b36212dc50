/* Trades over OpenMPI. Its headers are needed to build, its library is opened here, which only a
 * process under mpirun or srun does: alone nothing of it is even loaded.
 *
 * The library is opened for all to see (RTLD_GLOBAL), since its plugins ask the process for its
 * symbols. What mpi.h calls by address (MPI_COMM_WORLD, MPI_BYTE) is looked up by name. A header
 * travels with tag 1, what follows with tag 2 in pieces that an int can count. */
#define OMPI_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>
#include <time.h>

#include "base/library.h"
#include "peers/wire.h"

enum { TAG_HEADER = 1, TAG_DATA = 2, PIECE = 1 << 30 };

#define FUNCTIONS(X)                                                                               \
    X(MPI_Init_thread)                                                                             \
    X(MPI_Finalize)                                                                                \
    X(MPI_Comm_rank)                                                                               \
    X(MPI_Comm_size)                                                                               \
    X(MPI_Comm_set_errhandler)                                                                     \
    X(MPI_Isend)                                                                                   \
    X(MPI_Irecv)                                                                                   \
    X(MPI_Test)                                                                                    \
    X(MPI_Iprobe)

/* How far the header and the data of one rank are, in one direction. */
typedef struct lane {
    MPI_Request request;
    bool is_open;     /* a request is under way */
    size_t n_started; /* bytes of data that a request was made for */
    pnb__post_header came;
    pnb__notice notice;
} lane;

typedef struct mpi {
    void *handle;
    FUNCTIONS(PNB__LIBRARY_FIELD)
    MPI_Comm world;
    MPI_Datatype byte;
    size_t rank, n_ranks;
    lane *out, *in;
    pnb__notice last; /* what tell sends must stay until the end */
    pnb__post_header last_header;
} mpi;

bool pnb__mpi_is_built(void)
{
    return true;
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *pnb__mpi_version(void)
{
    return VERSION_TEXT(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
}

static pnb_status load(mpi *lib, pnb_error *err)
{
    static const pnb__library openmpi = {"libmpi.so.40",
                                         "libopenmpi3, or set MASTER_ADDR and MASTER_PORT",
                                         "MPI is not spoken", true};
    pnb_status status = PNB__LIBRARY_OPEN(&lib->handle, &openmpi, FUNCTIONS, err);
    if (status != PNB_OK)
        return status;
    lib->world = dlsym(lib->handle, "ompi_mpi_comm_world");
    lib->byte = dlsym(lib->handle, "ompi_mpi_byte");
    return lib->world != NULL && lib->byte != NULL
               ? PNB_OK
               : pnb__fail(err, PNB_UNSUPPORTED, "MPI is not spoken: %s is not OpenMPI's",
                           openmpi.file);
}

/* ---- a trade ---- */

static void start_send(mpi *m, size_t p, const void *data, size_t n, int tag)
{
    m->MPI_Isend(data, (int)n, m->byte, (int)p, tag, m->world, &m->out[p].request);
    m->out[p].is_open = true;
}

static void start_take(mpi *m, size_t p, void *data, size_t n, int tag)
{
    m->MPI_Irecv(data, (int)n, m->byte, (int)p, tag, m->world, &m->in[p].request);
    m->in[p].is_open = true;
}

/* Whether the request of a lane is done; then the next may be made. */
static bool is_over(mpi *m, lane *l)
{
    int flag = 0;
    if (l->is_open && m->MPI_Test(&l->request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag)
        l->is_open = false;
    return !l->is_open;
}

/* The next piece of what is sent. True: something was begun or ended. */
static bool go_on_sending(mpi *m, size_t p, pnb__post *post)
{
    lane *l = &m->out[p];
    if (!post->is_used || post->done == 2 || !is_over(m, l))
        return false;
    if (l->n_started < post->header.n_bytes) {
        size_t n = PNB_MIN(post->header.n_bytes - l->n_started, (size_t)PIECE);
        start_send(m, p, (const char *)post->data + l->n_started, n, TAG_DATA);
        l->n_started += n;
    } else {
        post->done = 2;
    }
    return true;
}

/* The next piece of what comes: done is 0 before the header, 1 behind it, 2 at the end. */
static bool go_on_taking(mpi *m, size_t p, pnb__post *post, pnb__notice *notice, pnb_status *status,
                         pnb_error *err)
{
    lane *l = &m->in[p];
    if (!post->is_used || post->done == 2 || !is_over(m, l))
        return false;
    bool is_notice = l->came.kind == PNB__POST_NOTICE;
    if (post->done == 0 && !pnb__post_fits(post, &l->came)) {
        *status = pnb__fail(err, PNB_FORMAT,
                            "it is at trade %llu with %llu bytes, others are at %llu with %llu: "
                            "peers/ do not do the same",
                            (unsigned long long)l->came.number, (unsigned long long)l->came.n_bytes,
                            (unsigned long long)post->header.number,
                            (unsigned long long)post->header.n_bytes);
        return true;
    }
    post->done = 1;
    if (l->n_started < l->came.n_bytes) {
        size_t n = PNB_MIN(l->came.n_bytes - l->n_started, (size_t)PIECE);
        start_take(m, p, is_notice ? (char *)&l->notice : (char *)post->data + l->n_started, n,
                   TAG_DATA);
        l->n_started += n;
        return true;
    }
    post->done = 2;
    post->header = l->came;
    if (is_notice) {
        *notice = l->notice;
        *status = PNB_INTERRUPTED;
    }
    return true;
}

/* Busy for a moment, then in naps: other threads, and ranks on the same processor, have work. */
static void wait_a_little(int *n_idle)
{
    enum { SPINS = 200, NAP_NS = 50000 };
    const struct timespec nap = {.tv_nsec = NAP_NS};
    if (++*n_idle > SPINS)
        nanosleep(&nap, NULL);
}

static int find_open(const mpi *m, const pnb__post *out, const pnb__post *in)
{
    for (size_t p = 0; p < m->n_ranks; p++)
        if (in[p].is_used && in[p].done < 2)
            return (int)p;
    for (size_t p = 0; p < m->n_ranks; p++)
        if (out[p].is_used && out[p].done < 2)
            return (int)p;
    return -1;
}

static void start_all(mpi *m, pnb__post *out, pnb__post *in)
{
    for (size_t p = 0; p < m->n_ranks; p++) {
        m->in[p].n_started = m->out[p].n_started = 0;
        if (in[p].is_used)
            start_take(m, p, &m->in[p].came, sizeof m->in[p].came, TAG_HEADER);
        if (out[p].is_used)
            start_send(m, p, &out[p].header, sizeof out[p].header, TAG_HEADER);
    }
}

static pnb_status trade(void *self, pnb__post *out, pnb__post *in, double timeout_s,
                        pnb__notice *notice, int *silent, pnb_error *err)
{
    mpi *m = self;
    double moved_at = pnb__now_s();
    int n_idle = 0;
    start_all(m, out, in);
    while ((*silent = find_open(m, out, in)) >= 0) {
        bool moved = false;
        for (size_t p = 0; p < m->n_ranks; p++) {
            pnb_status status = PNB_OK;
            moved = go_on_sending(m, p, &out[p]) || moved;
            moved = go_on_taking(m, p, &in[p], notice, &status, err) || moved;
            if (status != PNB_OK) {
                *silent = (int)p;
                return status;
            }
        }
        if (moved) {
            n_idle = 0;
            moved_at = pnb__now_s();
        } else if (pnb__now_s() - moved_at > timeout_s) {
            return pnb__fail(err, PNB_IO, "nothing came from it for %.0f s", timeout_s);
        } else {
            wait_a_little(&n_idle);
        }
    }
    return PNB_OK;
}

/* ---- failing and closing ---- */

/* One of the lower ranks' posts that is there; data behind a header stay where they are. */
static void hear(mpi *m, size_t p, pnb__notice *theirs, bool *heard)
{
    MPI_Request request;
    pnb__post_header came;
    int flag = 0, done = 0;
    double end = pnb__now_s() + 1;
    if (m->MPI_Iprobe((int)p, TAG_HEADER, m->world, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        !flag)
        return;
    m->MPI_Irecv(&came, (int)sizeof came, m->byte, (int)p, TAG_HEADER, m->world, &request);
    while (!done && pnb__now_s() < end)
        m->MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done || came.kind != PNB__POST_NOTICE || came.n_bytes != sizeof *theirs)
        return;
    m->MPI_Irecv(theirs, (int)sizeof *theirs, m->byte, (int)p, TAG_DATA, m->world, &request);
    for (done = 0; !done && pnb__now_s() < end;)
        m->MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    *heard = done != 0;
}

static void tell(void *self, const pnb__notice *mine, double timeout_s, pnb__notice *theirs,
                 bool *heard)
{
    mpi *m = self;
    double end = pnb__now_s() + timeout_s;
    int n_idle = 0;
    m->last = *mine;
    m->last_header = (pnb__post_header){.kind = PNB__POST_NOTICE, .n_bytes = sizeof(pnb__notice)};
    for (size_t p = 0; p < m->n_ranks; p++) {
        MPI_Request request; /* never waited for: the process ends */
        if (p == m->rank)
            continue;
        m->MPI_Isend(&m->last_header, (int)sizeof m->last_header, m->byte, (int)p, TAG_HEADER,
                     m->world, &request);
        m->MPI_Isend(&m->last, (int)sizeof m->last, m->byte, (int)p, TAG_DATA, m->world, &request);
    }
    for (size_t p = 0; p < m->rank && theirs != NULL; p++)
        while (!heard[p] && pnb__now_s() < end) {
            hear(m, p, &theirs[p], &heard[p]);
            wait_a_little(&n_idle);
        }
}

/* After a failure MPI_Finalize would wait for ranks that are gone: the library is left as it is,
 * for a moment in which what was sent leaves, and mpirun ends the rest. */
static void close_mpi(void *self, bool is_sound)
{
    mpi *m = self;
    if (is_sound) {
        m->MPI_Finalize();
        pnb__free(m->out);
        pnb__free(m->in);
        pnb__free(m);
        return;
    }
    double end = pnb__now_s() + 1;
    int n_idle = 0, flag = 0;
    while (pnb__now_s() < end) {
        m->MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->world, &flag, MPI_STATUS_IGNORE);
        wait_a_little(&n_idle);
    }
    /* requests may still point into it: it goes with the process */
}

pnb_status pnb__mpi_open(pnb__wire *out, const pnb_launch *l, pnb_error *err)
{
    mpi *m = pnb__alloc_zero(1, sizeof *m);
    if (m == NULL)
        return pnb__fail_nomem(err, sizeof *m);
    int level = 0, rank = -1, count = -1;
    pnb_status status;
    PNB_TRY(load(m, err));
    m->rank = l->rank;
    m->n_ranks = l->n_ranks;
    PNB_TRY(PNB_ALLOC_ZERO(m->out, l->n_ranks, err));
    PNB_TRY(PNB_ALLOC_ZERO(m->in, l->n_ranks, err));
    if (m->MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        PNB_TRY(pnb__fail(err, PNB_IO, "MPI_Init failed"));
    m->MPI_Comm_rank(m->world, &rank);
    m->MPI_Comm_size(m->world, &count);
    if (rank != (int)l->rank || count != (int)l->n_ranks || level < MPI_THREAD_SERIALIZED)
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "MPI says rank %d of %d with threads %d, the launcher %zu of %zu: two "
                          "MPIs are mixed",
                          rank, count, level, l->rank, l->n_ranks));
    m->MPI_Comm_set_errhandler(m->world, dlsym(m->handle, "ompi_mpi_errors_return"));
    *out = (pnb__wire){.self = m, .trade = trade, .tell = tell, .close = close_mpi};
done:
    if (status != PNB_OK) {
        pnb__free(m->out);
        pnb__free(m->in);
        pnb__free(m);
    }
    return status;
}
