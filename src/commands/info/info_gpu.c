/* `penumbra info --gpu`: the device that --device cuda computes on, and how fast each of its units
 * is.
 *
 * Rates are of products in the kernels' own way, square and large, and of copying memory that fits
 * no cache; the best of a few runs, each waited for. */
#include "commands/info/info.h"

#include <math.h>

#include "base/base.h"
#include "kernels/cuda/device.h"

enum { RUNS = 5, SIDE_F32 = 4096, SIDE_BF16 = 8192, COPIED = 1 << 30, WAIT = 1 };

/* The arrays of a product: a, b and c, all (n,n), and what packing and rounding want. */
typedef struct arrays {
    void *part[5];
    size_t bytes[5];
} arrays;

static pnb_status take(const pnb__kernels *k, arrays *a, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(a->part); i++) {
        if (a->bytes[i] == 0)
            continue;
        pnb_status status = k->mem_alloc(k->ctx, &a->part[i], a->bytes[i], err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

static void give_back(const pnb__kernels *k, arrays *a)
{
    for (size_t i = 0; i < PNB_COUNT(a->part); i++)
        k->mem_free(k->ctx, a->part[i], a->bytes[i]);
}

/* Numbers whose bits are random: a device is faster on zeros. */
static pnb_status fill(const pnb__kernels *k, void *to, size_t n, pnb_error *err)
{
    enum { BLOCK = 1 << 16 };
    float *block = pnb__alloc_array(BLOCK, sizeof *block);
    pnb__rng rng;
    pnb_status status = block != NULL ? PNB_OK : pnb__fail_nomem(err, BLOCK * sizeof *block);
    pnb__rng_init(&rng, 1, 0);
    for (size_t i = 0; status == PNB_OK && i < BLOCK; i++)
        block[i] = (float)pnb__rng_normal(&rng);
    for (size_t at = 0; status == PNB_OK && at < n; at += BLOCK)
        status = k->mem_write(k->ctx, (float *)to + at, block,
                              PNB_MIN((size_t)BLOCK, n - at) * sizeof *block, err);
    pnb__free(block);
    return status;
}

static pnb_status wait(const pnb__kernels *k, const void *p, pnb_error *err)
{
    unsigned char byte;
    return k->mem_read(k->ctx, &byte, p, WAIT, err);
}

/* 1e12 multiplications and additions a second. */
static pnb_status product_rate(const pnb__kernels *k, bool is_bf16, double *out, pnb_error *err)
{
    const size_t n = is_bf16 ? SIDE_BF16 : SIDE_F32, square = n * n * sizeof(float);
    arrays a = {.bytes = {square, square, square}};
    pnb__packed packed = {.k = n, .n = n, .bf16_parts = 1};
    pnb__gemm_args g = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .n_batch = 1};
    pnb_status status;
    if (is_bf16) {
        a.bytes[3] = packed.bytes = k->gemm_bf16_pack_bytes(n, n, 1);
        a.bytes[4] = k->gemm_bf16_work(n, n, 1);
    }
    PNB_TRY(take(k, &a, err));
    PNB_TRY(fill(k, a.part[0], n * n, err));
    PNB_TRY(fill(k, a.part[1], n * n, err));
    g.alpha = 1;
    g.act = PNB__IDENTITY;
    g.a = a.part[0];
    g.b = a.part[1];
    g.c = a.part[2];
    g.work = a.part[4];
    packed.data = a.part[3];
    if (is_bf16)
        k->gemm_bf16_pack(k->ctx, &g, &packed);
    g.packed = is_bf16 ? &packed : NULL;
    *out = 0;
    for (int i = 0; i < RUNS; i++) {
        double start = pnb__now_s();
        (is_bf16 ? k->gemm_bf16 : k->gemm)(k->ctx, &g);
        PNB_TRY(wait(k, g.c, err));
        *out = fmax(*out, 2e-12 * (double)n * (double)n * (double)n / (pnb__now_s() - start));
    }
done:
    give_back(k, &a);
    return status;
}

/* 1e9 bytes a second, read and written. */
static pnb_status memory_rate(const pnb__kernels *k, double *out, pnb_error *err)
{
    arrays a = {.bytes = {COPIED, COPIED}};
    pnb_status status;
    PNB_TRY(take(k, &a, err));
    *out = 0;
    for (int i = 0; i < RUNS; i++) {
        PNB_TRY(wait(k, a.part[1], err));
        double start = pnb__now_s();
        PNB_TRY(k->mem_copy(k->ctx, a.part[1], a.part[0], COPIED, err));
        PNB_TRY(wait(k, a.part[1], err));
        *out = fmax(*out, 2e-9 * COPIED / (pnb__now_s() - start));
    }
done:
    give_back(k, &a);
    return status;
}

static void version_text(char text[16], int version)
{
    snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

pnb_status pnb__info_gpu(pnb__app *app, pnb__result *r)
{
    pnb__cuda_facts found;
    pnb__kernels k;
    double f32 = 0, bf16 = 0, memory = 0;
    char driver[16], runtime[16], capability[24], products[24];
    pnb_status status;
    if (app->ctx->device != PNB_DEVICE_CUDA)
        return pnb__usage(app, "--gpu tells of the device that is computed on: with --device cuda");
    PNB_TRY(pnb__cuda_look(app->ctx, &found, &app->err));
    pnb__kernels_fill(&k, app->ctx, PNB__F32);
    PNB_TRY(product_rate(&k, false, &f32, &app->err));
    PNB_TRY(product_rate(&k, true, &bf16, &app->err));
    PNB_TRY(memory_rate(&k, &memory, &app->err));
    version_text(driver, found.driver);
    version_text(runtime, found.runtime);
    snprintf(capability, sizeof capability, "%d.%d", found.capability[0], found.capability[1]);
    snprintf(products, sizeof products, "%zu", found.products);
    pnb__result_text(r, "kind", "kind", "gpu");
    pnb__result_text(r, "gpu", "gpu", found.name);
    pnb__result_text(r, "capability", "compute capability", capability);
    pnb__result_int(r, "n_processors", "multiprocessors", found.n_processors);
    pnb__result_real(r, "memory_gb", "GB of memory", 1e-9 * (double)found.bytes, 1);
    pnb__result_real(r, "free_gb", "GB free", 1e-9 * (double)found.free_bytes, 1);
    pnb__result_text(r, "driver", "driver for CUDA", driver);
    pnb__result_text(r, "runtime", "built for CUDA", runtime);
    pnb__result_text(r, "cublaslt", "cuBLASLt", products);
    pnb__result_text(r, "kernels", "table of kernels", k.name);
    pnb__result_real(r, "f32_tflops", "TFLOP/s in f32", f32, 1);
    pnb__result_real(r, "bf16_tflops", "TFLOP/s in bf16", bf16, 1);
    pnb__result_real(r, "memory_gb_s", "GB/s copied, read and written", memory, 0);
done:
    return status;
}
