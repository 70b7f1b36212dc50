/* Runs one call of a kernel slot on the f64 reference and on every f32 table this machine has, with
 * one to three threads, and compares. Every array has guard zones; outputs that are not added to
 * start as NaN, so reading them shows. The results of the fast tables must be the same bits for
 * every number of threads, except where a fixture says otherwise. */
#ifndef PNB_TEST_KERNELS_HARNESS_H
#define PNB_TEST_KERNELS_HARNESS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"

#define GUARD 67
#define MAX_ARRAYS 16

typedef struct array {
    size_t n;
    bool is_output, adds;
    double *init;
    float *f, *first; /* first: what one thread gave */
    double *d;
    void *memory_f, *memory_d; /* f and d lie in them */
} array;

typedef struct fixture {
    array arrays[MAX_ARRAYS];
    int n_arrays;
    double abs_tol, rel_tol;
    bool threads_change_bits;
    uint64_t seed;
} fixture;

typedef struct run { /* what a test body gets: a table, and which copy of the arrays to use */
    pnb__kernels k;
    const pnb_ctx *ctx;
    bool is_double;
    void *user;
} run;

typedef void (*body_fn)(run *r, fixture *x);

static inline void fixture_init(fixture *x, uint64_t seed, double abs_tol, double rel_tol)
{
    memset(x, 0, sizeof *x);
    x->seed = seed;
    x->abs_tol = abs_tol;
    x->rel_tol = rel_tol;
}

static inline int add_array(fixture *x, size_t n, double low, double high)
{
    assert_true(x->n_arrays < MAX_ARRAYS);
    array *a = &x->arrays[x->n_arrays];
    pnb__rng rng;
    pnb__rng_init(&rng, x->seed, (uint64_t)x->n_arrays);
    a->n = n;
    a->init = malloc((n + 1) * sizeof(double));
    a->memory_f = malloc((n + 2 * GUARD + 1) * sizeof(float));
    a->memory_d = malloc((n + 2 * GUARD + 1) * sizeof(double));
    a->first = malloc((n + 1) * sizeof(float));
    assert_true(a->init && a->memory_f && a->memory_d && a->first);
    /* behind 67 numbers arrays lie at no vector's border, behind 68 at one of 16 bytes */
    a->f = (float *)a->memory_f + x->seed % 2;
    a->d = (double *)a->memory_d + x->seed % 2;
    for (size_t i = 0; i < n; i++) /* values a float holds exactly */
        a->init[i] = (double)(float)(low + (high - low) * pnb__rng_uniform(&rng));
    return x->n_arrays++;
}

static inline int input(fixture *x, size_t n, double low, double high)
{
    return add_array(x, n, low, high);
}

/* adds: the slot accumulates into it, or updates it in place. */
static inline int output(fixture *x, size_t n, bool adds)
{
    int i = add_array(x, n, -1, 1);
    x->arrays[i].is_output = true;
    x->arrays[i].adds = adds;
    return i;
}

static inline void fixture_free(fixture *x)
{
    for (int i = 0; i < x->n_arrays; i++) {
        free(x->arrays[i].init);
        free(x->arrays[i].memory_f);
        free(x->arrays[i].memory_d);
        free(x->arrays[i].first);
    }
}

/* The array as the table at hand wants it. */
static inline void *P(const run *r, fixture *x, int i)
{
    array *a = &x->arrays[i];
    return r->is_double ? (void *)(a->d + GUARD) : (void *)(a->f + GUARD);
}

static inline void arrays_reset(fixture *x)
{
    for (int i = 0; i < x->n_arrays; i++) {
        array *a = &x->arrays[i];
        for (size_t j = 0; j < a->n + 2 * GUARD; j++) {
            bool inside = j >= GUARD && j < a->n + GUARD;
            double v = !inside                    ? 12345.0 + (double)j
                       : a->is_output && !a->adds ? NAN
                                                  : a->init[j - GUARD];
            a->f[j] = (float)v;
            a->d[j] = v;
        }
    }
}

/* Whether a guard zone was written; says which array and where. */
static inline bool guard_broken(const fixture *x, int *which, long *at)
{
    for (int i = 0; i < x->n_arrays; i++) {
        const array *a = &x->arrays[i];
        for (size_t j = 0; j < a->n + 2 * GUARD; j++) {
            *which = i;
            *at = (long)j - GUARD;
            if (j >= GUARD && j < a->n + GUARD)
                continue;
            double v = 12345.0 + (double)j;
            if (a->f[j] != (float)v || a->d[j] != v)
                return true;
        }
    }
    return false;
}

static inline void check_guards(const fixture *x, const char *who)
{
    int which = 0;
    long at = 0;
    if (guard_broken(x, &which, &at))
        fail_msg("%s wrote outside array %d at %ld", who, which, at);
}

static inline bool is_close(double got, double want, double abs_tol, double rel_tol)
{
    return fabs(got - want) <= abs_tol + rel_tol * fabs(want);
}

/* First value of an array that is not what the f64 run gave, or -1. */
static inline long first_miss(const fixture *x, const array *a, const double *want)
{
    for (size_t j = 0; j < a->n && a->is_output; j++) {
        double got = (double)a->f[GUARD + j];
        if (isinf(want[j]) && got == want[j])
            continue;
        if (!is_close(got, want[j], x->abs_tol, x->rel_tol))
            return (long)j;
    }
    return -1;
}

/* want: the doubles of the f64 run, kept aside by the caller per array. */
static inline void check_values(const fixture *x, double *const want[], const char *who,
                                int n_threads)
{
    for (int i = 0; i < x->n_arrays; i++) {
        const array *a = &x->arrays[i];
        long miss = first_miss(x, a, want[i]);
        if (miss >= 0)
            fail_msg("%s, %d threads, array %d [%ld]: got %.9g, want %.9g", who, n_threads, i, miss,
                     (double)a->f[GUARD + miss], want[i][miss]);
    }
}

static inline void check_threads(const fixture *x, int n_threads, const char *who)
{
    for (int i = 0; i < x->n_arrays; i++) {
        const array *a = &x->arrays[i];
        if (!a->is_output || a->n == 0)
            continue;
        if (n_threads == 1)
            memcpy(a->first, a->f + GUARD, a->n * sizeof(float));
        else if (!x->threads_change_bits &&
                 memcmp(a->first, a->f + GUARD, a->n * sizeof(float)) != 0)
            fail_msg("%s: array %d depends on the number of threads (%d)", who, i, n_threads);
    }
}

/* A context of the best instruction set of this machine up to `isa`, or NULL if it has none. */
static inline pnb_ctx *test_ctx(pnb_isa isa, int n_threads)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = n_threads;
    opts.isa = isa;
    pnb_error err = PNB_ERROR_INIT;
    return pnb_ctx_create(&ctx, &opts, &err) == PNB_OK ? ctx : NULL;
}

/* The last table is the one of GPUs: its loops by threads of the host (emulate.h, where
 * PNB_TEST_CUDA is "emulated"), or a device (on_device.h); none where neither was built. */
#ifdef PNB_TEST_CUDA
extern void pnb__cuda_overwrite(pnb__kernels *k);
#endif
#ifdef PNB_TEST_ON_DEVICE
#define FIRST_TABLE CUDA_TABLE
#else
#define FIRST_TABLE 0
#endif

static inline bool cuda_table(pnb__kernels *k, int n_threads, pnb_ctx **ctx)
{
    *ctx = NULL;
#if defined(PNB_TEST_ON_DEVICE)
    pnb_ctx_opts opts = {.n_threads = n_threads, .device = PNB_DEVICE_CUDA};
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_ctx_create(ctx, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb__kernels_fill(k, *ctx, PNB__F32);
#elif defined(PNB_TEST_CUDA)
    *ctx = test_ctx(PNB_ISA_GENERIC, n_threads);
    pnb__kernels_ref_f32(k);
    pnb__cuda_overwrite(k);
#else
    (void)k, (void)n_threads;
#endif
    return *ctx != NULL;
}

/* What was asked of a table is done: of a device only then. */
static inline void wait_for(const pnb__kernels *k, const pnb_ctx *ctx)
{
    pnb_error err = PNB_ERROR_INIT;
    unsigned char nothing = 0;
    if (!k->host_memory && k->mem_read(ctx, &nothing, &nothing, 0, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

/* Table number i of those under test: 0 is the f32 reference; false when the machine lacks it. */
#define N_TABLES 9
#define CUDA_TABLE (N_TABLES - 1)
static inline bool table_at(int i, pnb__kernels *k, int n_threads, pnb_ctx **ctx)
{
    static const pnb_isa isas[CUDA_TABLE] = {
        PNB_ISA_GENERIC,     PNB_ISA_GENERIC,     PNB_ISA_AVX2, PNB_ISA_AVX512,
        PNB_ISA_AVX512_VNNI, PNB_ISA_AVX512_BF16, PNB_ISA_AMX,  PNB_ISA_EMULATED};
    if (i == CUDA_TABLE)
        return cuda_table(k, n_threads, ctx);
    if (i < FIRST_TABLE || i > CUDA_TABLE)
        return false;
    *ctx = test_ctx(isas[i], n_threads);
    if (!*ctx)
        return false;
    pnb__kernels_ref_f32(k);
    if (i > 0)
        pnb__kernels_cpu_f32(k, (*ctx)->isa, false);
    if ((*ctx)->emulates_tiles)
        pnb__kernels_emulate_tiles(k);
    return true;
}

static inline void compare_tables(fixture *x, body_fn body, void *user, double *const want[])
{
    for (int t = 0; t < N_TABLES; t++) {
        int most = t == CUDA_TABLE ? 2 : 3; /* emulated threads take turns in two orders */
        for (int n_threads = 1; n_threads <= most; n_threads++) {
            run r = {.user = user};
            pnb_ctx *ctx;
            if (!table_at(t, &r.k, n_threads, &ctx))
                continue;
            r.ctx = ctx;
            arrays_reset(x);
            body(&r, x);
            wait_for(&r.k, ctx);
            check_guards(x, r.k.name);
            check_values(x, want, r.k.name, n_threads);
            check_threads(x, n_threads, r.k.name);
            pnb_ctx_free(ctx);
        }
    }
}

/* Runs body on the f64 reference, then on every f32 table; ends the fixture. */
static inline void compare_all(fixture *x, body_fn body, void *user)
{
    double *want[MAX_ARRAYS] = {NULL};
    run r = {.user = user, .is_double = true};
    pnb_ctx *ctx = test_ctx(PNB_ISA_GENERIC, 1);
    r.ctx = ctx;
    pnb__kernels_ref_f64(&r.k);
    arrays_reset(x);
    body(&r, x);
    pnb_ctx_free(ctx);
    check_guards(x, "f64");
    for (int i = 0; i < x->n_arrays; i++) {
        want[i] = malloc((x->arrays[i].n + 1) * sizeof(double));
        assert_non_null(want[i]);
        memcpy(want[i], x->arrays[i].d + GUARD, x->arrays[i].n * sizeof(double));
    }
    compare_tables(x, body, user, want);
    for (int i = 0; i < x->n_arrays; i++)
        free(want[i]);
    fixture_free(x);
}

/* Workspace that must be neither overrun nor read before written. */
static inline void *work_alloc(size_t bytes)
{
    void *p = pnb__alloc_aligned(bytes + 64);
    assert_non_null(p);
    memset(p, 0xFF, bytes + 64); /* NaN as float and as double */
    return p;
}

static inline void work_free(void *p, size_t bytes)
{
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(((unsigned char *)p)[bytes + i], 0xFF);
    pnb__free_aligned(p);
}

/* ---- derivatives of the f64 reference by central differences ---- */

static inline double *random_values(size_t n, uint64_t seed, double low, double high)
{
    double *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 77);
    for (size_t i = 0; i < n; i++)
        x[i] = low + (high - low) * pnb__rng_uniform(&rng);
    return x;
}

typedef double (*scalar_fn)(void *user); /* the loss, from the arrays inside user */

/* grad must equal d loss / d x at every element of x. */
static inline void check_gradient(scalar_fn loss, void *user, double *x, const double *grad,
                                  size_t n, double tol)
{
    for (size_t i = 0; i < n; i++) {
        double old = x[i], h = 1e-5;
        x[i] = old + h;
        double up = loss(user);
        x[i] = old - h;
        double down = loss(user);
        x[i] = old;
        double want = (up - down) / (2 * h);
        if (!(fabs(grad[i] - want) <= tol * (1 + fabs(want))))
            fail_msg("gradient [%zu]: got %.9g, differences give %.9g", i, grad[i], want);
    }
}

static inline double dot_values(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

#endif
