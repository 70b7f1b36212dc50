/* The context: threads, device and log hook of one user of the library. No other state exists.
 *
 * A context is read only once it is made: any number of threads may use one at the same time, and
 * any number of contexts may live beside each other. It must outlive what was opened with it. The
 * environment is not read: what OMP_NUM_THREADS and the like mean is the program's to say.
 *
 *     pnb_ctx_opts opts = pnb_ctx_opts_default();
 *     opts.n_threads = 4;
 *     if (pnb_ctx_create(&ctx, &opts, &err) == PNB_OK)
 *         ...
 *     pnb_ctx_free(ctx); */
#ifndef PENUMBRA_CTX_H
#define PENUMBRA_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DEBUG: for developers; INFO: what a long job does; WARN: something was tolerated or left out. */
typedef enum pnb_log_level { PNB_LOG_DEBUG, PNB_LOG_INFO, PNB_LOG_WARN } pnb_log_level;

/* Called from the thread that called the library, never from a worker. `text` has no newline and is
 * valid during the call only. The library itself never prints. */
typedef void (*pnb_log_fn)(void *user, pnb_log_level level, const char *text);

/* Which loops do the work; results of two agree to rounding, not to the bit. */
typedef enum pnb_device {
    PNB_DEVICE_CPU, /* BLAS and SIMD, the fastest code this machine runs */
    PNB_DEVICE_REF, /* plain C only: slow, the oracle of the tests */
    PNB_DEVICE_CUDA /* an NVIDIA GPU; what is computed in doubles, and what searches embedding sets,
                       stays with the processor */
} pnb_device;

/* The word of a kind of device, "cuda"; "unknown" for other numbers. */
const char *pnb_device_name(pnb_device device);
/* The device of a word, "cpu", "ref", "cuda" or "cuda:1", and its number, 0 where none is said;
 * both are untouched on failure.  Errors  NOT_FOUND (the text lists the words) */
pnb_status pnb_device_parse(pnb_device *out, int *index, const char *name, pnb_error *err);

/* Highest instruction set the cpu kernels may use; AUTO asks the machine. X(NAME, word):
 *   AUTO         the highest of those below that the machine has, EMULATED left out
 *   GENERIC      what every machine has; products by BLAS
 *   AVX2         with FMA and F16C
 *   AVX512       F, BW, VL, DQ
 *   AVX512_VNNI  and products of bytes
 *   AVX512_BF16  and products of bfloat16
 *   AMX          and tiles of both, where the system lets the process use them
 *   EMULATED     GENERIC with AMX's tile instructions in plain C, the same bits in their sums: for
 *                tests on machines without the unit, slow */
#define PNB_ISA_LIST(X)                                                                            \
    X(AUTO, auto)                                                                                  \
    X(GENERIC, generic)                                                                            \
    X(AVX2, avx2)                                                                                  \
    X(AVX512, avx512)                                                                              \
    X(AVX512_VNNI, avx512vnni)                                                                     \
    X(AVX512_BF16, avx512bf16)                                                                     \
    X(AMX, amx)                                                                                    \
    X(EMULATED, emulated)
typedef enum pnb_isa { /* in the order of the list */
#define PNB_ISA_ENUM(NAME, word) PNB_ISA_##NAME,
                       PNB_ISA_LIST(PNB_ISA_ENUM)
#undef PNB_ISA_ENUM /* the list stays, for names */
} pnb_isa;

/* The word of an instruction set, "avx512vnni"; "unknown" for other numbers. */
const char *pnb_isa_name(pnb_isa isa);
/* The set of a word; *out is untouched on failure.  Errors  NOT_FOUND (the text lists the words) */
pnb_status pnb_isa_parse(pnb_isa *out, const char *name, pnb_error *err);

/* What a user of the library chooses; all zero are the defaults. */
typedef struct pnb_ctx_opts {
    int n_threads;        /* 0: all cores this process may use */
    pnb_device device;    /* PNB_DEVICE_CPU */
    int device_index;     /* of CUDA: which of the machine's devices, as the driver numbers them */
    pnb_isa isa;          /* PNB_ISA_AUTO, the fastest; last bits may differ between two */
    bool batch_invariant; /* an input's embedding has the same bits in every batch; costs speed only
                             where products go through BLAS (machines without AVX2) */
    pnb_log_fn log;       /* may be NULL: silent */
    void *log_user;       /* given to log as it is */
} pnb_ctx_opts;

/* Its fields are the library's own. */
typedef struct pnb_ctx pnb_ctx;

/* All zero: every core, fastest device, silent. */
pnb_ctx_opts pnb_ctx_opts_default(void);

/* Creates a context. `opts` may be NULL for the defaults. Free with pnb_ctx_free. Threads start
 * with the first call that uses them, and end with the process.
 * Errors  ARG (a negative number of threads, a device or isa that does not exist), UNSUPPORTED
 *         (an isa that the machine lacks, CUDA where the library was built without it or the driver
 *         or cuBLASLt is missing: nothing slower is taken in its place), NOT_FOUND (no device of
 *         that number), NOMEM */
pnb_status pnb_ctx_create(pnb_ctx **out, const pnb_ctx_opts *opts, pnb_error *err);
void pnb_ctx_free(pnb_ctx *ctx); /* NULL is fine */

/* Threads that are really used: 1 or more, also where the options said 0. */
int pnb_ctx_n_threads(const pnb_ctx *ctx);

/* Library version, "MAJOR.MINOR.PATCH". */
const char *pnb_version(void);

#ifdef __cplusplus
}
#endif
#endif
