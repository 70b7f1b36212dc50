/* The context: what one user of the library chose, resolved against this machine once.
 *
 * Nothing reads the environment: OMP_NUM_THREADS and the like are the program's to interpret. The
 * default thread count is the number of cores this process may use. The instruction set is a
 * ceiling for src/kernels/cpu; asking for one the machine lacks is an error, not a silent fallback,
 * because tests ask for it to cover that code. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/names.h"

#ifndef PNB_VERSION
#error "PNB_VERSION comes from the project() line of CMakeLists.txt"
#endif

const char *pnb_version(void)
{
    return PNB_VERSION;
}

pnb_ctx_opts pnb_ctx_opts_default(void)
{
    return (pnb_ctx_opts){.n_threads = 0};
}

/* "cuda:1": digits alone behind the colon, and few of them. */
static bool parse_index(const char *text, int *out)
{
    size_t n = strspn(text, "0123456789");
    *out = n > 0 && n < 5 && text[n] == '\0' ? atoi(text) : -1;
    return *out >= 0;
}

static const char *const device_words[] = {"cpu", "ref", "cuda"}; /* in the order of the enum */

const char *pnb_device_name(pnb_device device)
{
    return (unsigned)device < PNB_COUNT(device_words) ? device_words[device] : "unknown";
}

pnb_status pnb_device_parse(pnb_device *out, int *index, const char *name, pnb_error *err)
{
    int number = 0;
    for (size_t i = 0; i < PNB_COUNT(device_words); i++) {
        const char *word = device_words[i];
        size_t n = strlen(word);
        bool is_numbered = i == PNB_DEVICE_CUDA && strncmp(name, word, n) == 0 && name[n] == ':' &&
                           parse_index(name + n + 1, &number);
        if (!is_numbered && strcmp(name, word) != 0)
            continue;
        *out = (pnb_device)i;
        *index = number;
        return PNB_OK;
    }
    return pnb__fail(err, PNB_NOT_FOUND, "device %s is not known; there are cpu, ref, cuda, cuda:1",
                     name);
}

PNB_DEFINE_NAME(pnb_isa_name, pnb_isa, PNB_NAMES_OF_IDENTS(PNB_ISA_LIST), "unknown")
PNB_DEFINE_PARSE(pnb_isa_parse, pnb_isa, "instruction set", PNB_NAMES_OF_IDENTS(PNB_ISA_LIST))

/* Sets are in the order of the enum; what is emulated runs anywhere. */
static pnb_status resolve_isa(pnb_isa wanted, pnb_isa *out, pnb_error *err)
{
    if ((unsigned)wanted > PNB_ISA_EMULATED)
        return pnb__fail(err, PNB_ARG, "instruction set %d is not one of pnb_isa", (int)wanted);
    if (wanted == PNB_ISA_EMULATED) {
        *out = PNB_ISA_GENERIC;
        return PNB_OK;
    }
    pnb__cpu cpu = pnb__cpu_look();
    pnb_isa best = pnb__cpu_best(&cpu);
    if (wanted > best)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "instruction set %s wanted, this machine has %s; ask for auto",
                         pnb_isa_name(wanted), pnb_isa_name(best));
    *out = wanted == PNB_ISA_AUTO ? pnb__cpu_fastest(&cpu) : wanted;
    return PNB_OK;
}

pnb_status pnb__ctx_create(pnb_ctx **out, const pnb_ctx_opts *opts, pnb_error *err)
{
    pnb_ctx_opts chosen = opts == NULL ? pnb_ctx_opts_default() : *opts;
    if (chosen.n_threads < 0)
        return pnb__fail(err, PNB_ARG, "%d threads wanted; 1 or more, or 0 for every core",
                         chosen.n_threads);
    if ((unsigned)chosen.device > PNB_DEVICE_CUDA)
        return pnb__fail(err, PNB_ARG, "device %d is not one of pnb_device", (int)chosen.device);
    pnb_isa isa = PNB_ISA_GENERIC;
    pnb_status status = resolve_isa(chosen.isa, &isa, err);
    if (status != PNB_OK)
        return status;
    pnb_ctx *ctx = pnb__alloc_zero(1, sizeof *ctx);
    if (ctx == NULL)
        return pnb__fail_nomem(err, sizeof *ctx);
    ctx->n_threads = chosen.n_threads > 0 ? chosen.n_threads : pnb__n_processors();
    ctx->device = chosen.device;
    ctx->batch_invariant = chosen.batch_invariant;
    ctx->isa = isa;
    ctx->emulates_tiles = chosen.isa == PNB_ISA_EMULATED;
    ctx->log = chosen.log;
    ctx->log_user = chosen.log_user;
    *out = ctx;
    return PNB_OK;
}

void pnb_ctx_free(pnb_ctx *ctx)
{
    if (ctx != NULL && ctx->close_device != NULL)
        ctx->close_device(ctx);
    pnb__free(ctx);
}

int pnb_ctx_n_threads(const pnb_ctx *ctx)
{
    return ctx->n_threads;
}

void pnb__log(const pnb_ctx *ctx, pnb_log_level level, const char *fmt, ...)
{
    if (ctx == NULL || ctx->log == NULL)
        return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctx->log(ctx->log_user, level, text);
}

double pnb__now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
