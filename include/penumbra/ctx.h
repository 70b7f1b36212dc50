/* The context: threads, device and log hook of one user of the library. No other state exists. */
#ifndef PENUMBRA_CTX_H
#define PENUMBRA_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pnb_log_level { PNB_LOG_DEBUG, PNB_LOG_INFO, PNB_LOG_WARN } pnb_log_level;

/* Called from the thread that called the library, never from a worker. `text` has no newline. */
typedef void (*pnb_log_fn)(void *user, pnb_log_level level, const char *text);

typedef enum pnb_device {
    PNB_DEVICE_CPU, /* BLAS and SIMD, the fastest code this machine runs */
    PNB_DEVICE_REF  /* plain C only: slow, the oracle of the tests */
} pnb_device;

/* Highest instruction set the cpu kernels may use; AUTO asks the machine. */
typedef enum pnb_isa {
    PNB_ISA_AUTO,
    PNB_ISA_GENERIC,
    PNB_ISA_AVX2,       /* with FMA and F16C */
    PNB_ISA_AVX512,     /* F, BW, VL, DQ */
    PNB_ISA_AVX512_VNNI /* and products of bytes */
} pnb_isa;

typedef struct pnb_ctx_opts {
    int n_threads; /* 0: all cores this process may use */
    pnb_device device;
    pnb_isa isa;
    bool batch_invariant; /* an input's embedding has the same bits in every batch; costs speed only
                             where products go through BLAS (machines without AVX2) */
    pnb_log_fn log;       /* may be NULL: silent */
    void *log_user;
} pnb_ctx_opts;

typedef struct pnb_ctx pnb_ctx;

/* All zero: every core, fastest device, silent. */
pnb_ctx_opts pnb_ctx_opts_default(void);

/* Creates a context. `opts` may be NULL for the defaults. Free with pnb_ctx_free.
 * Errors  ARG (negative thread count), UNSUPPORTED (isa the machine lacks), NOMEM */
pnb_status pnb_ctx_create(pnb_ctx **out, const pnb_ctx_opts *opts, pnb_error *err);
void pnb_ctx_free(pnb_ctx *ctx); /* NULL is fine */

int pnb_ctx_n_threads(const pnb_ctx *ctx);

/* Library version, "MAJOR.MINOR.PATCH". */
const char *pnb_version(void);

#ifdef __cplusplus
}
#endif
#endif
