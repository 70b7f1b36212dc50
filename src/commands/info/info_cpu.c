/* `penumbra info --cpu`: what the processor has, what is used of it, and how fast each unit is.
 *
 * Rates are those of product_rate.h and of reading memory that fits no cache; the best of a few
 * runs, on the threads of the context. */
#include "commands/info/info.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/product_rate.h"
#include "kernels/kernels.h"

enum { RUNS = 3, MEMORY_FLOATS = 48 << 20 };

/* 1e9 bytes a second that are read, once. */
static pnb_status memory_rate(const pnb_ctx *ctx, double *out, pnb_error *err)
{
    void *values = NULL;
    pnb__kernels k;
    values = pnb__alloc_large(MEMORY_FLOATS * sizeof(float));
    pnb_status status =
        values != NULL ? PNB_OK : pnb__fail_nomem(err, MEMORY_FLOATS * sizeof(float));
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
    PNB_TRY(pnb__product_rate(ctx, PNB__PRODUCT_F32, RUNS, &f32, &app->err));
    PNB_TRY(pnb__product_rate(ctx, PNB__PRODUCT_BF16, RUNS, &bf16, &app->err));
    PNB_TRY(pnb__product_rate(ctx, PNB__PRODUCT_I8, RUNS, &i8, &app->err));
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
