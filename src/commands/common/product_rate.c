/* One loop that measures a product, whatever its factors are made of.
 *
 * The product is square and fits the caches well, so that the rate is the unit's and not that of
 * memory; what a whole model or a search reaches is told as a share of it. */
#include "commands/common/product_rate.h"

#include <math.h>

#include "kernels/kernels.h"

enum { SIDE = 1536, FIRST_ROWS = 12 };
#define LONG_ENOUGH_S 0.03
#define TOO_LONG_S 1.0

/* Every buffer of a product of SIDE: the factors, the packed one, the workspace, the result. */
typedef struct product {
    const pnb_ctx *ctx;
    pnb__product_kind kind;
    pnb__kernels k;
    void *a, *b, *c, *work;
    pnb__packed packed;
} product;

static void product_reset(product *p)
{
    void *const all[] = {p->a, p->b, p->c, p->work, p->packed.data};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        pnb__free_aligned(all[i]);
}

static pnb_status allocate(void **out, size_t bytes, pnb_error *err)
{
    *out = pnb__alloc_large(PNB_MAX(bytes, (size_t)1));
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, bytes);
}

/* A weight of bytes is read as it comes, any bytes are numbers, and any floats scales. */
static pnb_status pack(product *p, pnb_error *err)
{
    const pnb__kernels *k = &p->k;
    const size_t n = SIDE;
    bool is_i8 = p->kind == PNB__PRODUCT_I8;
    pnb_status status;
    p->packed = (pnb__packed){.k = n,
                              .n = n,
                              .store = is_i8 ? PNB__STORE_I8 : PNB__STORE_REAL,
                              .levels = PNB__I8_LEVELS_8BIT,
                              .bf16_parts = is_i8 ? 0 : 1};
    p->packed.bytes = is_i8 ? k->gemm_i8_pack_bytes(n, n) : k->gemm_bf16_pack_bytes(n, n, 1);
    PNB_TRY(allocate(&p->packed.data, p->packed.bytes, err));
    PNB_TRY(allocate(&p->work, is_i8 ? k->gemm_i8_work(n, n) : k->gemm_bf16_work(n, n, 1), err));
    const pnb__gemm_args args = {
        .trans_b = true, .n = n, .k = n, .ldb = n, .n_batch = 1, .alpha = 1, .b = p->b};
    if (is_i8)
        k->gemm_i8_pack(p->ctx, p->b, p->a, &p->packed);
    else
        k->gemm_bf16_pack(p->ctx, &args, &p->packed);
done:
    return status;
}

static pnb_status product_init(product *p, const pnb_ctx *ctx, pnb__product_kind kind,
                               pnb_error *err)
{
    const size_t n = SIDE, bytes = n * n * sizeof(float);
    pnb_status status;
    *p = (product){.ctx = ctx, .kind = kind};
    pnb__kernels_fill_host(&p->k, ctx, PNB__F32);
    PNB_TRY(allocate(&p->a, bytes, err));
    PNB_TRY(allocate(&p->b, bytes, err));
    PNB_TRY(allocate(&p->c, bytes, err));
    p->k.fill(ctx, n * n, 0.5, p->a);
    p->k.fill(ctx, n * n, 0.25, p->b);
    p->k.fill(ctx, n * n, 0, p->c);
    status = kind == PNB__PRODUCT_F32 ? PNB_OK : pack(p, err);
done:
    return status;
}

static void multiply(const product *p, const pnb__gemm_args *args)
{
    if (p->kind == PNB__PRODUCT_F32)
        p->k.gemm(p->ctx, args);
    else if (p->kind == PNB__PRODUCT_I8)
        p->k.gemm_i8(p->ctx, args);
    else
        p->k.gemm_bf16(p->ctx, args);
}

/* Of more rows until it lasts: a clock and a thread's start are not what is measured. */
static double measure(const product *p, int n_runs, pnb__gemm_args args)
{
    double best = 0;
    for (int run = 0; run < n_runs;) {
        double start = pnb__now_s();
        multiply(p, &args);
        double took = pnb__now_s() - start;
        best = fmax(best, 2e-9 * (double)args.m * SIDE * SIDE / took);
        if (took > TOO_LONG_S)
            break;
        if (took < LONG_ENOUGH_S && args.m < SIDE)
            args.m *= 2;
        else
            run++;
    }
    return best;
}

pnb_status pnb__product_rate(const pnb_ctx *ctx, pnb__product_kind kind, int n_runs, double *out,
                             pnb_error *err)
{
    product p;
    pnb_status status = product_init(&p, ctx, kind, err);
    const size_t n = SIDE;
    bool is_packed = kind != PNB__PRODUCT_F32;
    const pnb__gemm_args args = {.trans_b = is_packed,
                                 .m = FIRST_ROWS,
                                 .n = n,
                                 .k = n,
                                 .lda = n,
                                 .ldb = n,
                                 .ldc = n,
                                 .n_batch = 1,
                                 .alpha = 1,
                                 .a = p.a,
                                 .b = is_packed ? NULL : p.b,
                                 .c = p.c,
                                 .act = PNB__IDENTITY,
                                 .packed = is_packed ? &p.packed : NULL,
                                 .work = p.work};
    if (status == PNB_OK)
        *out = measure(&p, n_runs, args);
    product_reset(&p);
    return status;
}
