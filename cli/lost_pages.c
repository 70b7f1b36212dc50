/* Files that are mapped and cut short by somebody else: whoever reads there gets SIGBUS.
 *
 * Without more the process would be killed without a word. A command that has a use for it (serve,
 * which looks whether it happened before it believes an answer) reads zeros there and goes on; any
 * other one ends with a message that names the file. A handler may call little: /proc/self/maps,
 * which knows the name, is read by plain system calls. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lost_pages.h"

static pnb__lost_pages lost;

/* ---- the name of what is mapped at an address ---- */

typedef struct maps_reader {
    int fd;
    char bytes[1024];
    ssize_t at, n;
} maps_reader;

static int next_byte(maps_reader *r)
{
    if (r->at == r->n) {
        r->n = read(r->fd, r->bytes, sizeof r->bytes);
        r->at = 0;
    }
    return r->n > 0 ? (unsigned char)r->bytes[r->at++] : -1;
}

/* The next line, cut to its room; false at the end. */
static int next_line(maps_reader *r, char *line, size_t size)
{
    size_t n = 0;
    int c;
    while ((c = next_byte(r)) >= 0 && c != '\n')
        if (n + 1 < size)
            line[n++] = (char)c;
    line[n] = '\0';
    return c >= 0;
}

static uintptr_t read_hex(const char **text)
{
    uintptr_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return value;
        value = value * 16 + (uintptr_t)digit;
    }
}

/* A map that is only read, of which a line of /proc/self/maps tells: "begin-end rights offset
 * device inode   path". Without a path: zeros that another thread has put there. */
typedef struct found_map {
    uintptr_t begin, end;
    const char *path;
    char line[1200];
} found_map;

/* False where the address is in none: what is written to, say, finds a disk full so. */
static int find_map(uintptr_t address, found_map *m)
{
    maps_reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    int is_found = 0;
    while (r.fd >= 0 && !is_found && next_line(&r, m->line, sizeof m->line)) {
        const char *p = m->line;
        m->begin = read_hex(&p);
        p += *p == '-';
        m->end = read_hex(&p);
        m->path = strchr(m->line, '/');
        is_found = address >= m->begin && address < m->end && strncmp(p, " r--p", 5) == 0;
    }
    if (r.fd >= 0)
        close(r.fd);
    return is_found;
}

/* ---- the signal ---- */

static void tell(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody listens */
}

/* One handler at a time looks and maps: threads that read one file lose its pages together. It
 * waits for no other lock and meets no lost page itself, so nobody waits for long. */
static atomic_flag is_handling = ATOMIC_FLAG_INIT;
/* Where the last lost page was; a file has many. Of who is handling. */
static uintptr_t lost_begin, lost_end;

/* Whether the page is, or was, one of a file that is read; tells of each file once. */
static int is_of_file(uintptr_t at)
{
    found_map m;
    if (atomic_load(&lost.is_told) && at >= lost_begin && at < lost_end)
        return 1;
    if (!find_map(at, &m))
        return 0;
    if (m.path == NULL)
        return atomic_load(&lost.is_expected); /* else none was ever replaced */
    lost_begin = m.begin;
    lost_end = m.end;
    atomic_store(&lost.is_told, 1);
    tell("penumbra: ");
    tell(m.path);
    tell(" was cut short while it was in use: it is read where it lies, and what is missing cannot "
         "be had; replace a file in use by renaming another one over it\n");
    return 1;
}

/* Zeros in place of the page, counted before anybody can read them; another thread may have put
 * them there already, which does no harm. */
static void replace_page(uintptr_t at)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!atomic_load(&lost.is_expected))
        _exit(1);
    atomic_fetch_add(&lost.n, 1);
    if (mmap((void *)(at / page * page), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        _exit(1);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int before = errno; /* of whoever was reading */
    (void)context;
    while (atomic_flag_test_and_set(&is_handling)) {
    }
    if (info->si_code == BUS_ADRERR && is_of_file(at))
        replace_page(at);
    else
        signal(number, SIG_DFL); /* another mistake than this one: the end it always had */
    atomic_flag_clear(&is_handling);
    errno = before;
}

pnb__lost_pages *pnb__watch_lost_pages(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    return &lost;
}
