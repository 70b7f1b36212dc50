/* A limit of the address space (`ulimit -v`) too small for OpenBLAS, told before OpenBLAS starts.
 *
 * OpenBLAS maps a buffer for every thread in a constructor, and where a map fails it tries again
 * for ever, without a word and before main. What stands in .preinit_array runs before the
 * constructors of all libraries: there the same room is asked for and given back. Nothing is asked
 * without a limit, and no more than plain system calls is used, because the C library is only half
 * awake. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* BUFFER_SIZE of OpenBLAS 0.3 is 32 << 22 bytes on x86-64 and no larger elsewhere; the rest is for
 * the alignment of a buffer and what other libraries take before main. */
static const size_t buffer_bytes = (size_t)32 << 22;
static const size_t other_bytes = (size_t)16 << 20;

/* Threads that OpenBLAS will have: the processors, or the first number of OMP_NUM_THREADS if that
 * is fewer. */
static size_t threads_of(char **environment)
{
    static const char name[] = "OMP_NUM_THREADS=";
    long n_processors = sysconf(_SC_NPROCESSORS_CONF);
    size_t n = n_processors > 0 ? (size_t)n_processors : 1, asked = 0;
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, sizeof name - 1) == 0)
            for (const char *p = *environment + sizeof name - 1; *p >= '0' && *p <= '9'; p++)
                asked = asked < 10000 ? 10 * asked + (size_t)(*p - '0') : asked;
    return asked > 0 && asked < n ? asked : n;
}

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void check(int argc, char **argv, char **environment)
{
    struct rlimit limit;
    (void)argc;
    (void)argv;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    size_t bytes = threads_of(environment) * buffer_bytes + other_bytes;
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room != MAP_FAILED) {
        munmap(room, bytes);
        return;
    }
    say("penumbra: out of memory before the start: OpenBLAS needs 128 MiB of address space for "
        "each "
        "thread, and the limit set here (ulimit -v) leaves less. Raise the limit, or use fewer "
        "threads: OMP_NUM_THREADS=1\n");
    _exit(1);
}

typedef void (*entry_fn)(int, char **, char **);
__attribute__((section(".preinit_array"), used)) static entry_fn const entry = check;
