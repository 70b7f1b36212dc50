/* Files that are mapped and cut short by somebody else: whoever reads there gets SIGBUS.
 *
 * Without more the process would be killed without a word. A command that has a use for it (serve,
 * which looks whether it happened before it believes an answer) reads zeros there and goes on; any
 * other one ends with a message that names the file. A handler may call little: /proc/self/maps,
 * which knows the name, is read by plain system calls. */
#include <fcntl.h>
#include <signal.h>
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

/* Lines of /proc/self/maps: "begin-end rights offset device inode   path". */
static void find_name(uintptr_t address, char *line, size_t size, const char **name)
{
    maps_reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    *name = "a file";
    while (r.fd >= 0 && next_line(&r, line, size)) {
        const char *p = line;
        uintptr_t begin = read_hex(&p);
        p += *p == '-';
        uintptr_t end = read_hex(&p);
        const char *path = strchr(line, '/');
        if (address >= begin && address < end && path != NULL) {
            *name = path;
            break;
        }
    }
    if (r.fd >= 0)
        close(r.fd);
}

/* ---- the signal ---- */

static void tell(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody listens */
}

static void tell_of(uintptr_t address)
{
    char line[1200];
    const char *name;
    find_name(address, line, sizeof line, &name);
    tell("penumbra: ");
    tell(name);
    tell(" was cut short while it was in use: it is read where it lies, and what is missing cannot "
         "be had; replace a file in use by renaming another one over it\n");
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr;
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* another mistake than this one: the end it always had */
        signal(number, SIG_DFL);
        return;
    }
    if (!lost.is_told)
        tell_of(at);
    lost.is_told = 1;
    if (!lost.is_expected)
        _exit(1);
    lost.n++;
    if (mmap((void *)(at / page * page), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        _exit(1);
}

pnb__lost_pages *pnb__watch_lost_pages(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    return &lost;
}
