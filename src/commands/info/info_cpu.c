/* `penumbra info --cpu`: what the processor has, what is used of it, and how fast each unit is.
 *
 * Rates are of one square product that fits the caches well, packed beforehand, and of reading
 * memory that fits none; the best of a few runs, on the threads of the context. They say what the
 * machine gives at the moment: a neighbour's work is in them. */
#include "commands/info/info.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/bench/bench.h"
#include "kernels/kernels.h"

enum { SIDE = 1536, FIRST_ROWS = 12, RUNS = 3, MEMORY_FLOATS = 48 << 20 };
#define LONG_ENOUGH_S 0.03
#define TOO_LONG_S 1.0

/* Every buffer of a product of SIDE: the factors, the packed one, the workspace, the result. */
typedef struct product {
    const pnb_ctx *ctx;
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

/* Factors in floats; a weight of bytes is read as it comes, any bytes are numbers. */
static pnb_status product_init(product *p, const pnb_ctx *ctx, bool is_i8, pnb_error *err)
{
    const size_t n = SIDE, bytes = n * n * sizeof(float);
    pnb_status status;
    *p = (product){.ctx = ctx};
    pnb__kernels_fill_host(&p->k, ctx, PNB__F32);
    const pnb__kernels *k = &p->k;
    p->packed = (pnb__packed){.k = n,
                              .n = n,
                              .store = is_i8 ? PNB__STORE_I8 : PNB__STORE_REAL,
                              .levels = PNB__I8_LEVELS_8BIT,
                              .bf16_parts = !is_i8};
    p->packed.bytes = is_i8 ? k->gemm_i8_pack_bytes(n, n) : k->gemm_bf16_pack_bytes(n, n, 1);
    PNB_TRY(allocate(&p->a, bytes, err));
    PNB_TRY(allocate(&p->b, bytes, err));
    PNB_TRY(allocate(&p->c, bytes, err));
    PNB_TRY(allocate(&p->packed.data, p->packed.bytes, err));
    PNB_TRY(allocate(&p->work, is_i8 ? k->gemm_i8_work(n, n) : k->gemm_bf16_work(n, n, 1), err));
    k->fill(ctx, n * n, 0.5, p->a);
    k->fill(ctx, n * n, 0.25, p->b);
    k->fill(ctx, n * n, 0, p->c);
    const pnb__gemm_args args = {
        .trans_b = true, .n = n, .k = n, .ldb = n, .n_batch = 1, .alpha = 1, .b = p->b};
    if (is_i8) /* the first numbers of a are scales as well as any */
        k->gemm_i8_pack(ctx, p->b, p->a, &p->packed);
    else
        k->gemm_bf16_pack(ctx, &args, &p->packed);
done:
    return status;
}

/* A product of more rows the quicker it is, so that a slow unit ends too. Multiplications and
 * additions in 1e9 a second, the best of a few. */
static double measure_rate(const product *p, bool is_i8, pnb__gemm_args args)
{
    double best = 0, took = 0;
    for (int run = 0; run < RUNS; run++) {
        if (run > 0 && took < LONG_ENOUGH_S && args.m < SIDE) {
            args.m *= 2;
            run = 0;
        }
        double start = pnb__now_s();
        (is_i8 ? p->k.gemm_i8 : p->k.gemm_bf16)(p->ctx, &args);
        took = pnb__now_s() - start;
        best = fmax(best, 2e-9 * (double)args.m * SIDE * SIDE / took);
        if (took > TOO_LONG_S)
            break;
    }
    return best;
}

static pnb_status product_rate(const pnb_ctx *ctx, bool is_i8, double *out, pnb_error *err)
{
    product p;
    pnb_status status = product_init(&p, ctx, is_i8, err);
    const size_t n = SIDE;
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = FIRST_ROWS,
                                 .n = n,
                                 .k = n,
                                 .lda = n,
                                 .ldb = n,
                                 .ldc = n,
                                 .n_batch = 1,
                                 .alpha = 1,
                                 .a = p.a,
                                 .c = p.c,
                                 .act = PNB__IDENTITY,
                                 .packed = &p.packed,
                                 .work = p.work};
    *out = status == PNB_OK ? measure_rate(&p, is_i8, args) : 0;
    product_reset(&p);
    return status;
}

/* 1e9 bytes a second that are read, once. */
static pnb_status memory_rate(const pnb_ctx *ctx, double *out, pnb_error *err)
{
    void *values = NULL;
    pnb__kernels k;
    pnb_status status = allocate(&values, MEMORY_FLOATS * sizeof(float), err);
    pnb__kernels_fill_host(&k, ctx, PNB__F32);
    if (status == PNB_OK)
        k.fill(ctx, MEMORY_FLOATS, 1, values);
    *out = 0;
    for (int i = 0; i < RUNS && status == PNB_OK; i++) {
        double start = pnb__now_s();
        if (!k.all_finite(ctx, MEMORY_FLOATS, values))
            break;
        *out = fmax(*out, 1e-9 * MEMORY_FLOATS * sizeof(float) / (pnb__now_s() - start));
    }
    pnb__free_aligned(values);
    return status;
}

static void describe_found(const pnb__cpu *cpu, pnb__result *r)
{
    const struct {
        bool has;
        const char *name;
    } sets[] = {{cpu->avx2, "avx2"},         {cpu->avx512, "avx512"},
                {cpu->vnni, "avx512vnni"},   {cpu->bf16, "avx512bf16"},
                {cpu->amx_tile, "amx-tile"}, {cpu->amx_int8, "amx-int8"},
                {cpu->amx_bf16, "amx-bf16"}};
    char found[128] = "";
    size_t n = 0;
    for (size_t i = 0; i < PNB_COUNT(sets); i++)
        if (sets[i].has)
            n += (size_t)snprintf(found + n, sizeof found - n, "%s%s", n > 0 ? " " : "",
                                  sets[i].name);
    pnb__result_text(r, "processor", "processor", cpu->name[0] != '\0' ? cpu->name : "unknown");
    pnb__result_text(r, "found", "found", n > 0 ? found : "generic");
    if (cpu->amx_tile)
        pnb__result_flag(r, "tiles_allowed", "system allows tiles", cpu->amx_allowed);
}

/* What a product of that type runs on, by the set in use. */
static const char *unit_of(const pnb_ctx *ctx, bool is_i8)
{
    if (ctx->device == PNB_DEVICE_REF)
        return "plain C";
    if (ctx->emulates_tiles)
        return "emulated tiles";
    if (ctx->isa == PNB_ISA_AMX)
        return is_i8 ? "amx-int8" : "amx-bf16";
    if (is_i8)
        return ctx->isa >= PNB_ISA_AVX512_VNNI ? "avx512vnni"
                                               : pnb_isa_name(PNB_MIN(ctx->isa, PNB_ISA_AVX2));
    return ctx->isa >= PNB_ISA_AVX512_BF16 ? "avx512bf16" : "floats";
}

pnb_status pnb__info_cpu(pnb__app *app, pnb__result *r)
{
    const pnb_ctx *ctx = app->ctx;
    pnb__cpu cpu = pnb__cpu_look();
    pnb__kernels k;
    double f32 = 0, bf16 = 0, i8 = 0, memory = 0;
    pnb_status status;
    pnb__kernels_fill_host(&k, ctx, PNB__F32);
    f32 = pnb__bench_sgemm(ctx, ctx->isa, 1);
    PNB_TRY(product_rate(ctx, false, &bf16, &app->err));
    PNB_TRY(product_rate(ctx, true, &i8, &app->err));
    PNB_TRY(memory_rate(ctx, &memory, &app->err));
    pnb__result_text(r, "kind", "kind", "processor");
    describe_found(&cpu, r);
    pnb__result_text(r, "used", "used",
                     ctx->emulates_tiles ? pnb_isa_name(PNB_ISA_EMULATED) : pnb_isa_name(ctx->isa));
    pnb__result_text(r, "kernels", "table of kernels", k.name);
    pnb__result_int(r, "threads", "threads", pnb_ctx_n_threads(ctx));
    pnb__result_real(r, "f32_gflops", "GFLOP/s in f32", f32, 1);
    pnb__result_text(r, "bf16_unit", "bf16 on", unit_of(ctx, false));
    pnb__result_real(r, "bf16_gflops", "GFLOP/s in bf16", bf16, 1);
    pnb__result_text(r, "fp32_tiles_unit", "fp32-tiles on",
                     k.parts_gain ? unit_of(ctx, false) : "floats");
    pnb__result_text(r, "int8_unit", "int8 on", unit_of(ctx, true));
    pnb__result_real(r, "int8_gops", "GOP/s in int8", i8, 1);
    pnb__result_real(r, "memory_gb_s", "GB/s read from memory", memory, 1);
done:
    return status;
}
