/* Row 0: what every other room may use. One header for the small helpers; see the .c files for why.
 */
#ifndef PNB_BASE_BASE_H
#define PNB_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"

#define PNB_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PNB_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PNB_MAX(a, b) ((a) > (b) ? (a) : (b))

#if defined(__GNUC__)
#define PNB_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define PNB_PRINTF(f, a)
#endif

/* Runs a call that returns pnb_status; on failure stores it in `status` and goes to `done`. */
#define PNB_TRY(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != PNB_OK)                                                                      \
            goto done;                                                                             \
    } while (0)

/* ---- error.c ---- Fills `err` unless it already holds an error; returns `status` for `return`. */
pnb_status pnb__fail(pnb_error *err, pnb_status status, const char *fmt, ...) PNB_PRINTF(3, 4);
pnb_status pnb__fail_nomem(pnb_error *err, size_t bytes);
/* For a system call that failed: "<what> <path>: <strerror(errno)>", status IO or NOT_FOUND/EXISTS.
 */
pnb_status pnb__fail_errno(pnb_error *err, const char *what, const char *path);
#ifdef __clang_analyzer__ /* what it cannot see from a declaration: they never return PNB_OK */
#define pnb__fail(err, status, ...) ((void)pnb__fail(err, status, __VA_ARGS__), (status))
#define pnb__fail_nomem(err, bytes) ((void)pnb__fail_nomem(err, bytes), PNB_NOMEM)
#define pnb__fail_errno(err, what, path) ((void)pnb__fail_errno(err, what, path), PNB_IO)
#endif
/* Puts "<prefix>: " before the text an inner call left. */
void pnb__error_prefix(pnb_error *err, const char *fmt, ...) PNB_PRINTF(2, 3);

/* ---- alloc.c ---- The only calls of malloc in the library. Free with pnb__free.
 * In PNB_FAULTS builds the allocation numbered by pnb__alloc_fail_at fails (tests only). */
void *pnb__alloc(size_t bytes);                /* not zeroed; NULL when out of memory */
void *pnb__alloc_zero(size_t n, size_t size);  /* zeroed; NULL also when n*size overflows */
void *pnb__alloc_array(size_t n, size_t size); /* not zeroed; NULL also when n*size overflows */
void *pnb__realloc(void *p, size_t bytes);     /* p unchanged and valid when NULL comes back */
void pnb__free(void *p);
void *pnb__alloc_aligned(size_t bytes); /* 64-byte aligned; free with pnb__free_aligned */
void *pnb__alloc_large(size_t bytes);   /* the same, on huge pages where they help */
void pnb__free_aligned(void *p);
char *pnb__strdup(const char *s);
char *pnb__strndup(const char *s, size_t n);
char *pnb__format(const char *fmt, ...) PNB_PRINTF(1, 2); /* allocated, NULL when out of memory */
/* The same with a status, for PNB_TRY: NOMEM says how much was wanted and leaves NULL. Items of
 * what `array` points to, or rows of so many; as text. */
#define PNB_ALLOC(array, n, err) PNB_ALLOC_ROWS(array, n, 1, err)
#define PNB_ALLOC_ZERO(array, n, err) PNB_ALLOC_ZERO_ROWS(array, n, 1, err)
#ifndef __clang_analyzer__
#define PNB_ALLOC_ROWS(array, n, width, err)                                                       \
    pnb__alloc_to(&(array), (n), (width) * sizeof *(array), (err))
#define PNB_ALLOC_ZERO_ROWS(array, n, width, err)                                                  \
    pnb__alloc_zero_to(&(array), (n), (width) * sizeof *(array), (err))
#else /* it has to see that PNB_OK comes with memory */
#define PNB_ALLOC_ROWS(array, n, width, err)                                                       \
    (((array) = pnb__alloc_array((n), (width) * sizeof *(array))) != NULL                          \
         ? PNB_OK                                                                                  \
         : pnb__fail_nomem(err, 0))
#define PNB_ALLOC_ZERO_ROWS(array, n, width, err)                                                  \
    (((array) = pnb__alloc_zero((n), (width) * sizeof *(array))) != NULL                           \
         ? PNB_OK                                                                                  \
         : pnb__fail_nomem(err, 0))
#endif
pnb_status pnb__alloc_to(void *array, size_t n, size_t bytes, pnb_error *err);
pnb_status pnb__alloc_zero_to(void *array, size_t n, size_t bytes, pnb_error *err);
pnb_status pnb__copy_text(char **out, const char *text, pnb_error *err);
bool pnb__mul_overflows(size_t a, size_t b, size_t *out);
bool pnb__add_overflows(size_t a, size_t b, size_t *out);
#ifdef PNB_FAULTS
/* -1: never. n >= 0: the n-th allocation from now fails (counts down to 0, fails once). */
void pnb__alloc_fail_after(long n);
long pnb__alloc_count(void); /* allocations made so far by this process */
#endif

/* ---- fault.c ---- Called before every step that changes the disk. Always false, but in PNB_FAULTS
 * builds (tests) step n from pnb__disk_fault_at(n, reason) is told to fail: true, errno is
 * `reason`; with reason 0 the process is killed there. */
#ifdef PNB_FAULTS
void pnb__disk_fault_at(long n, int reason); /* n -1: never; starts the count anew */
long pnb__disk_steps(void);                  /* steps since then */
bool pnb__disk_step_fails(void);
#else
#define pnb__disk_step_fails() false
#endif

/* ---- arena.c ---- Bump allocator for things that die together; reset keeps the memory. */
typedef struct pnb__arena_block pnb__arena_block;
typedef struct pnb__arena {
    pnb__arena_block *first, *current;
    size_t block_bytes;
} pnb__arena;
void pnb__arena_init(pnb__arena *a, size_t block_bytes); /* allocates nothing yet */
void *pnb__arena_alloc(pnb__arena *a, size_t bytes);     /* 64-byte aligned, zeroed; NULL = NOMEM */
char *pnb__arena_strdup(pnb__arena *a, const char *s);
void pnb__arena_reset(pnb__arena *a); /* poisoned under ASan */
void pnb__arena_free(pnb__arena *a);  /* back to the state after init */

/* ---- str.c ---- Growing text/byte buffer. All zero is an empty buffer. Sticky: after an
 * allocation failure `failed` is set and further appends do nothing; check once at the end. */
typedef struct pnb__buf {
    char *data; /* terminated by one 0 byte outside size, when not NULL */
    size_t size, capacity;
    bool failed;
} pnb__buf;
void pnb__buf_append(pnb__buf *b, const void *bytes, size_t n);
void pnb__buf_puts(pnb__buf *b, const char *s);
void pnb__buf_putc(pnb__buf *b, char c);
void pnb__buf_printf(pnb__buf *b, const char *fmt, ...) PNB_PRINTF(2, 3);
/* RFC 4648 with padding, no line ends. */
void pnb__base64(pnb__buf *out, const void *bytes, size_t n);
/* Appends what such a text stands for; padding may be missing. False, with the place of the first
 * wrong byte in *bad: it is none. */
bool pnb__base64_decode(pnb__buf *out, const char *s, size_t n, size_t *bad);
pnb_status pnb__buf_check(const pnb__buf *b, pnb_error *err); /* NOMEM when it failed to grow */
void pnb__buf_reset(pnb__buf *b);                             /* frees; usable again */
bool pnb__starts_with(const char *s, const char *prefix);
bool pnb__ends_with(const char *s, const char *suffix);
/* The n bytes of a text without white space at their ends. */
const char *pnb__trimmed(const char *text, size_t n, size_t *n_out);
/* Length in bytes of the valid UTF-8 sequence at s (n bytes left), 0 if invalid; code point out. */
size_t pnb__utf8_decode(const char *s, size_t n, uint32_t *code_point);
size_t pnb__utf8_encode(uint32_t code_point, char out[4]); /* bytes written; U+FFFD for invalid */
bool pnb__utf8_valid(const char *s, size_t n);

/* ---- lines.c ---- Lines of a file in memory (pnb__read_file), terminated in place, '\r' and a
 * byte-order mark removed. Begin with .at and .end around the data and number 0. */
typedef struct pnb__line_reader {
    char *at, *end;
    size_t number; /* of the line handed out last, from 1 */
    const char *path;
} pnb__line_reader;
/* *line is NULL at the end.  Errors  FORMAT (a NUL byte) */
pnb_status pnb__line_next(pnb__line_reader *lines, char **line, pnb_error *err);

/* ---- path.c ---- */
char *pnb__path_join(const char *dir, const char *name); /* allocated */
const char *pnb__path_base(const char *path);            /* pointer into path */
char *pnb__path_dir(const char *path);                   /* allocated, "." if none */
bool pnb__path_is_dir(const char *path);
bool pnb__path_is_file(const char *path);
/* The same of DIR/NAME, without an allocation: want of memory must not look like absence. */
bool pnb__path_has_dir(const char *dir, const char *name);
bool pnb__path_has_file(const char *dir, const char *name);
/* "a pipe", "a socket" or "a device": what opening could wait for ever for. NULL: none of these. */
const char *pnb__path_special(const char *path);
pnb_status pnb__make_dirs(const char *path, pnb_error *err); /* mkdir -p */

/* ---- file.c ---- Whole file into memory, 0-terminated one past size. Free with pnb__free. LIMIT
 * above max_bytes. */
pnb_status pnb__read_file(const char *path, size_t max_bytes, char **data, size_t *size,
                          pnb_error *err);

/* Outputs that appear whole or not at all: a temporary file beside the target, fsync, rename. A
 * target that exists and is no regular file (/dev/stdout, a pipe) is written directly. */
typedef struct pnb__out_file {
    FILE *file; /* write here; errors are caught at commit too */
    char *path, *temp_path;
} pnb__out_file;
pnb_status pnb__out_open(pnb__out_file *f, const char *path, pnb_error *err);
pnb_status pnb__out_commit(pnb__out_file *f, pnb_error *err); /* closes in every case */
/* Commits files that only make sense together; NULL entries are passed over. All are on the disk
 * before the first changes its name. The last one stands for all: it is taken away first and
 * appears last, so that a crash never leaves it beside files of another writing. When a rename
 * fails, what was there before is put back. Closes all in every case. */
enum { PNB__MAX_COMMIT = 16 };
pnb_status pnb__out_commit_all(pnb__out_file *const *files, size_t n, pnb_error *err);
void pnb__out_abort(pnb__out_file *f); /* removes; fine after commit */
pnb_status pnb__write_file(const char *path, const void *data, size_t size, pnb_error *err);
/* A buffer's bytes; it is freed in any case. */
pnb_status pnb__buf_write(pnb__buf *b, const char *path, pnb_error *err);

/* Read-only map of a whole file. An empty file maps to data = NULL, size = 0. */
typedef struct pnb__map {
    const unsigned char *data;
    size_t size;
    uint64_t device, file; /* which it is, and when it was last written: for pnb__map_check */
    int64_t written_s, written_ns;
} pnb__map;
pnb_status pnb__map_open(pnb__map *m, const char *path, pnb_error *err);
/* IO where the file at the path is the one that was mapped and was written to since: a map shows
 * what lies there now. Another file of that name, or none, leaves the mapped one as it was. */
pnb_status pnb__map_check(const pnb__map *m, const char *path, pnb_error *err);
void pnb__map_close(pnb__map *m);
/* Lets go of the whole pages within bytes of a map: not resident any more, read again when used.
 * Only for maps: other memory would be lost. */
void pnb__drop_pages(const void *mapped, size_t bytes);

/* Advisory lock on a path (created if missing); BUSY when another process holds it. */
pnb_status pnb__lock_open(int *fd, const char *path, pnb_error *err);
void pnb__lock_close(int fd); /* -1 is fine */

/* ---- rng.c ---- Counter-based (Philox 4x32-10): value = f(seed, stream, counter), so any thread
 * or a resumed run draws the same numbers without shared state. */
void pnb__rng_block(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);
typedef struct pnb__rng {
    uint64_t seed, stream, counter; /* the whole state: to resume, init and then set counter */
    uint32_t block[4];
    unsigned n_left;
} pnb__rng;
void pnb__rng_init(pnb__rng *r, uint64_t seed, uint64_t stream);
uint32_t pnb__rng_u32(pnb__rng *r);
uint64_t pnb__rng_u64(pnb__rng *r);
uint64_t pnb__rng_below(pnb__rng *r, uint64_t n); /* unbiased in [0, n); n >= 1 */
double pnb__rng_uniform(pnb__rng *r);             /* [0, 1), 53 bits */
double pnb__rng_normal(pnb__rng *r);              /* N(0, 1) */
/* The next n normals, the bits of n calls of pnb__rng_normal in four tenths of the time
 * (bench/normals.c). r->counter is a multiple of 4, as it is where nothing but normals and pairs of
 * uniforms was drawn. */
void pnb__rng_normals(pnb__rng *r, size_t n, double *out);
void pnb__rng_shuffle(pnb__rng *r, uint32_t *items, size_t n);
uint64_t pnb__hash_bytes(const void *data, size_t n, uint64_t seed); /* not cryptographic */

/* ---- parallel.c ---- Loops over the process's one thread pool. Chunks: same split each time.
 * `thread` numbers the chunk, from 0 to below n_threads: no two calls that run at once share it. */
typedef void (*pnb__range_fn)(void *user, size_t begin, size_t end, int thread);
void pnb__parallel_for(const pnb_ctx *ctx, size_t n, size_t min_chunk, pnb__range_fn fn,
                       void *user);
/* n pieces, each for whichever thread comes first; results must not depend on that. `thread` is as
 * above; where one thread does it all it is called once, for all pieces. */
void pnb__parallel_pieces(const pnb_ctx *ctx, size_t n, pnb__range_fn fn, void *user);

/* ---- n_processors.c ---- */
/* Processors this process may use: its affinity, and what a control group (a container) lets it
 * have of them, rounded up. At least 1. */
int pnb__n_processors(void);
/* The group's part alone: `groups` is /proc/self/cgroup or a file like it, the hierarchy is mounted
 * under `root`. INT_MAX: no limit. */
int pnb__cgroup_processors(const char *groups, const char *root);

/* ---- processor.c -- What this processor and its system offer, asked anew by every call. */
typedef struct pnb__cpu {
    char name[64]; /* as the processor calls itself, or "" */
    bool avx2;     /* with FMA and F16C */
    bool avx512;   /* F, BW, VL, DQ */
    bool vnni, bf16;
    bool bf16_gains; /* its instruction outruns floats: AMD's; Intel's takes twice their time */
    bool amx_tile, amx_int8, amx_bf16; /* the processor has them */
    bool amx_allowed;                  /* and the system lets this process use tiles */
} pnb__cpu;
pnb__cpu pnb__cpu_look(void);
/* The last set that it has, and the one that is fastest; never AUTO, never EMULATED. */
pnb_isa pnb__cpu_best(const pnb__cpu *cpu);
pnb_isa pnb__cpu_fastest(const pnb__cpu *cpu);

/* ---- ctx.c ---- */
struct pnb__kernels;
struct pnb_ctx {
    int n_threads;
    pnb_device device;
    bool batch_invariant;
    pnb_isa isa;         /* resolved: never AUTO nor EMULATED */
    bool emulates_tiles; /* EMULATED was asked for: isa is GENERIC, with that column on top */
    pnb_log_fn log;
    void *log_user;
    /* A device's column of kernels, which overwrites slots after the CPU's; NULL: none */
    void (*column)(struct pnb__kernels *k);
    void *device_handle; /* of that column alone: its device, stream, library handles */
    void (*close_device)(struct pnb_ctx *ctx); /* gives the handle back; NULL: none */
    /* A kind of index in place of the one that is asked for (index/index_kind.h); NULL: none */
    const struct pnb__index_calls *index;
};
/* pnb_ctx_create but for devices with memory of their own, which kernels/open_context.c opens. */
pnb_status pnb__ctx_create(pnb_ctx **out, const pnb_ctx_opts *opts, pnb_error *err);
void pnb__log(const pnb_ctx *ctx, pnb_log_level level, const char *fmt, ...) PNB_PRINTF(3, 4);
double pnb__now_s(void); /* monotonic seconds */

/* ---- sha256.c ---- */
typedef struct pnb__sha256 {
    uint32_t h[8];
    uint64_t n_bytes;
    unsigned char tail[64];
    bool plain; /* no instructions for it; set after init by tests, which cover C on any machine */
} pnb__sha256;
void pnb__sha256_init(pnb__sha256 *s);
void pnb__sha256_update(pnb__sha256 *s, const void *data, size_t n);
void pnb__sha256_hex(pnb__sha256 *s, char hex[65]); /* ends the hash */

#endif
