/* Times products with a packed weight, for bench/products.py.
 *
 *   time_products THREADS SECONDS ROWSxDEPTHxCOLUMNS...
 *
 * act W^T + bias of random factors with the fastest kernels of this machine in f32, bf16 and int8:
 * what a layer of an encoder does, rounding the activations included where it does: in bf16 not
 * where they come in halves already, and go so. Prints the best seconds of one product of each kind
 * and shape as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/bf16.h"
#include "kernels/kernels.h"

enum { F32, BF16, INT8, N_KINDS };
static const char *const kinds[N_KINDS] = {"f32", "bf16", "int8"};

typedef struct product {
    const pnb_ctx *ctx;
    pnb__kernels k;
    size_t rows, depth, columns;
    void *a, *half_a, *w, *bias, *c, *work;
    pnb__packed packed;
    int kind;
} product;

static void *room(size_t bytes)
{
    void *p = pnb__alloc_aligned(PNB_MAX(bytes, (size_t)64));
    if (p == NULL) {
        fprintf(stderr, "time_products: no memory\n");
        exit(1);
    }
    return p;
}

static void fill(float *x, size_t n, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * pnb__rng_uniform(&rng) - 1);
}

static void prepare(product *p)
{
    const pnb__kernels *k = &p->k;
    size_t n = p->columns, d = p->depth;
    const pnb__gemm_args args = {
        .trans_b = true, .n = n, .k = d, .ldb = d, .n_batch = 1, .alpha = 1, .b = p->w};
    p->packed = (pnb__packed){.k = d, .n = n, .store = PNB__STORE_REAL};
    p->work = NULL;
    if (p->kind == INT8) {
        signed char *bytes = room(n * d);
        for (size_t i = 0; i < n * d; i++)
            bytes[i] = (signed char)(127 * ((float *)p->w)[i]);
        p->packed.store = PNB__STORE_I8;
        p->packed.levels = PNB__I8_LEVELS_8BIT;
        p->packed.data = room(p->packed.bytes = k->gemm_i8_pack_bytes(d, n));
        p->work = room(k->gemm_i8_work(p->rows, d));
        k->gemm_i8_pack(p->ctx, bytes, p->bias, &p->packed);
        pnb__free_aligned(bytes);
    } else if (p->kind == BF16) {
        p->packed.bf16_parts = 1;
        p->packed.data = room(p->packed.bytes = k->gemm_bf16_pack_bytes(d, n, 1));
        p->work = room(k->gemm_bf16_work(p->rows, d, 1));
        k->gemm_bf16_pack(p->ctx, &args, &p->packed);
    } else if (k->gemm_pack != NULL) {
        p->packed.data = room(p->packed.bytes = k->gemm_pack_bytes(d, n, PNB__STORE_REAL));
        k->gemm_pack(p->ctx, &args, &p->packed);
    }
}

static void multiply(const product *p)
{
    bool by_halves = p->kind == BF16 && p->k.halves_gain;
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = p->rows,
                                 .n = p->columns,
                                 .k = p->depth,
                                 .lda = p->depth,
                                 .ldb = p->depth,
                                 .ldc = p->columns,
                                 .n_batch = 1,
                                 .alpha = 1,
                                 .a = by_halves ? p->half_a : p->a,
                                 .b = p->packed.data == NULL ? p->w : NULL,
                                 .c = p->c,
                                 .bias = p->bias,
                                 .act = PNB__IDENTITY,
                                 .packed = p->packed.data == NULL ? NULL : &p->packed,
                                 .work = p->work,
                                 .a_halves = by_halves,
                                 .c_halves = by_halves};
    if (p->kind == INT8)
        p->k.gemm_i8(p->ctx, &args);
    else if (p->kind == BF16)
        p->k.gemm_bf16(p->ctx, &args);
    else
        p->k.gemm(p->ctx, &args);
}

static double time_one(product *p, double seconds)
{
    double best = INFINITY, begin = pnb__now_s();
    prepare(p);
    multiply(p);
    do {
        double start = pnb__now_s();
        multiply(p);
        best = fmin(best, pnb__now_s() - start);
    } while (pnb__now_s() - begin < seconds);
    pnb__free_aligned(p->packed.data);
    pnb__free_aligned(p->work);
    return best;
}

static void time_shape(product *p, double seconds, bool is_last)
{
    size_t n_a = p->rows * p->depth, n_w = p->columns * p->depth, n_c = p->rows * p->columns;
    p->a = room(n_a * sizeof(float)), p->w = room(n_w * sizeof(float));
    p->c = room(n_c * sizeof(float)), p->bias = room(p->columns * sizeof(float));
    p->half_a = room(n_a * sizeof(uint16_t));
    fill(p->a, n_a, 1);
    for (size_t i = 0; i < n_a; i++)
        ((uint16_t *)p->half_a)[i] = pnb__bf16_of(((float *)p->a)[i]);
    fill(p->w, n_w, 2);
    fill(p->bias, p->columns, 3);
    printf("{\"shape\": [%zu, %zu, %zu]", p->rows, p->depth, p->columns);
    for (p->kind = 0; p->kind < N_KINDS; p->kind++)
        printf(", \"%s\": %.6g", kinds[p->kind], time_one(p, seconds));
    printf("}%s", is_last ? "" : ", ");
    pnb__free_aligned(p->a);
    pnb__free_aligned(p->half_a);
    pnb__free_aligned(p->w);
    pnb__free_aligned(p->c);
    pnb__free_aligned(p->bias);
}

int main(int argc, char **argv)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (argc < 4) {
        fprintf(stderr, "usage: time_products THREADS SECONDS ROWSxDEPTHxCOLUMNS...\n");
        return 2;
    }
    opts.n_threads = atoi(argv[1]);
    if (pnb_ctx_create(&ctx, &opts, &err) != PNB_OK) {
        fprintf(stderr, "time_products: %s\n", err.text);
        return 1;
    }
    product p = {.ctx = ctx};
    pnb__kernels_fill(&p.k, ctx, PNB__F32);
    printf("{\"unit\": \"%s\", \"cases\": [", pnb_isa_name(ctx->isa));
    for (int i = 3; i < argc; i++) {
        if (sscanf(argv[i], "%zux%zux%zu", &p.rows, &p.depth, &p.columns) != 3) {
            fprintf(stderr, "time_products: %s is no ROWSxDEPTHxCOLUMNS\n", argv[i]);
            return 2;
        }
        time_shape(&p, atof(argv[2]), i + 1 == argc);
    }
    printf("]}\n");
    pnb_ctx_free(ctx);
    return 0;
}
