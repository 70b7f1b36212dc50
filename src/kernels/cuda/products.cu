/* Products of matrices by cuBLASLt, which is opened at run time.
 *
 * cuBLASLt thinks in columns: a row-major C (m,n) is its C^T (n,m), so C^T = op(B)^T op(A)^T is
 * asked for, B first. Choosing a kernel takes longer than a small product, so a choice is kept for
 * the sizes, strides and alignments it was made for; the table of choices only grows, and is full
 * after 1024 of them, when each further product is chosen anew. What cuBLASLt has no kernel for
 * (odd strides of bytes) goes through a plain one. */
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/state.h"

#include <cstring>
#include <dlfcn.h>
#include <new>

namespace
{

enum { TILE = 16, FULL_ALIGNMENT = 256 };

template <class A> __device__ float value_of(const void *p, size_t at)
{
    return static_cast<const A *>(p)[at];
}
struct bf16 {
    unsigned short bits;
};
template <> __device__ float value_of<bf16>(const void *p, size_t at)
{
    return pnb__cuda_bf16_widen(static_cast<const bf16 *>(p)[at].bits);
}

__device__ void put(const pnb__cuda_product &p, size_t batch, size_t i, size_t j, float sum)
{
    size_t at = batch * p.batch_c + i * p.ldc + j;
    float v = p.alpha * sum;
    if (p.bias != NULL)
        v += p.type_c == PNB__CUDA_BF16 ? value_of<bf16>(p.bias, j) : value_of<float>(p.bias, j);
    if (p.beta != 0)
        v += p.beta * static_cast<const float *>(p.d)[batch * p.batch_c + i * p.ldd + j];
    if (p.type_c == PNB__CUDA_BF16)
        static_cast<unsigned short *>(p.c)[at] = pnb__cuda_bf16_of(v);
    else
        static_cast<float *>(p.c)[at] = v;
}

template <class S>
__device__ void put(const pnb__cuda_product &p, size_t b, size_t i, size_t j, int s)
{
    static_cast<int *>(p.c)[b * p.batch_c + i * p.ldc + j] = s;
}

/* One sum to a thread, tiles of 16 x 16. */
template <class A, class Sum> __global__ void plain(pnb__cuda_product p)
{
    size_t across = (p.n + TILE - 1) / TILE, down = (p.m + TILE - 1) / TILE, at = blockIdx.x;
    size_t j = at % across * TILE + threadIdx.x % TILE;
    size_t i = at / across % down * TILE + threadIdx.x / TILE, b = at / across / down;
    Sum sum = 0;
    if (i >= p.m || j >= p.n)
        return;
    for (size_t k = 0; k < p.k; k++) {
        size_t at_a = b * p.batch_a + (p.trans_a ? k * p.lda + i : i * p.lda + k);
        size_t at_b = b * p.batch_b + (p.trans_b ? j * p.ldb + k : k * p.ldb + j);
        sum += static_cast<Sum>(value_of<A>(p.a, at_a)) * static_cast<Sum>(value_of<A>(p.b, at_b));
    }
    put(p, b, i, j, sum);
}
template <> __global__ void plain<signed char, int>(pnb__cuda_product p)
{
    size_t across = (p.n + TILE - 1) / TILE, down = (p.m + TILE - 1) / TILE, at = blockIdx.x;
    size_t j = at % across * TILE + threadIdx.x % TILE;
    size_t i = at / across % down * TILE + threadIdx.x / TILE, b = at / across / down;
    const signed char *x = static_cast<const signed char *>(p.a) + b * p.batch_a;
    const signed char *y = static_cast<const signed char *>(p.b) + b * p.batch_b;
    int sum = 0;
    if (i >= p.m || j >= p.n)
        return;
    for (size_t k = 0; k < p.k; k++)
        sum += x[p.trans_a ? k * p.lda + i : i * p.lda + k] *
               y[p.trans_b ? j * p.ldb + k : k * p.ldb + j];
    put<int>(p, b, i, j, sum);
}

void multiply_plainly(const pnb_ctx *ctx, const pnb__cuda_product *p)
{
    dim3 blocks(
        static_cast<unsigned>((p->n + TILE - 1) / TILE * ((p->m + TILE - 1) / TILE) * p->n_batch));
    pnb__cuda_launch(ctx,
                     p->type == PNB__CUDA_F32    ? plain<float, float>
                     : p->type == PNB__CUDA_BF16 ? plain<bf16, float>
                                                 : plain<signed char, int>,
                     blocks, TILE * TILE, 0, *p);
}

/* ---- plans ---- */

const void *alignment_of(const void *p)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(p), full = FULL_ALIGNMENT;
    at = p == NULL ? 0 : at % full == 0 ? full : (at & -at) % full;
    return reinterpret_cast<const void *>(at);
}

/* What a choice depends on. */
pnb__cuda_product key_of(const pnb__cuda_product *p)
{
    pnb__cuda_product key;
    std::memset(static_cast<void *>(&key), 0,
                sizeof key); /* padding too: keys are compared as bytes */
    key.trans_a = p->trans_a;
    key.trans_b = p->trans_b;
    key.m = p->m;
    key.n = p->n;
    key.k = p->k;
    key.lda = p->lda;
    key.ldb = p->ldb;
    key.ldc = p->ldc;
    key.ldd = p->beta != 0 ? p->ldd : p->ldc;
    key.n_batch = p->n_batch;
    key.batch_a = p->batch_a;
    key.batch_b = p->batch_b;
    key.batch_c = p->batch_c;
    key.beta = p->beta;
    key.type = p->type;
    key.type_c = p->type_c;
    key.a = alignment_of(p->a);
    key.b = alignment_of(p->b);
    key.c = const_cast<void *>(alignment_of(p->c));
    key.d = p->beta != 0 ? alignment_of(p->d) : key.c;
    key.bias = alignment_of(p->bias);
    return key;
}

cudaDataType data_type(pnb__cuda_type type)
{
    return type == PNB__CUDA_F32 ? CUDA_R_32F : type == PNB__CUDA_BF16 ? CUDA_R_16BF : CUDA_R_8I;
}

bool make_layout(const pnb__cublas *l, cublasLtMatrixLayout_t *out, cudaDataType type, size_t rows,
                 size_t cols, size_t ld, size_t n_batch, size_t step)
{
    int32_t count = static_cast<int32_t>(n_batch);
    int64_t stride = static_cast<int64_t>(step);
    return l->MatrixLayoutCreate(out, type, rows, cols, static_cast<int64_t>(ld)) ==
               CUBLAS_STATUS_SUCCESS &&
           l->MatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                       sizeof count) == CUBLAS_STATUS_SUCCESS &&
           l->MatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                       sizeof stride) == CUBLAS_STATUS_SUCCESS;
}

bool describe(const pnb__cublas *l, const pnb__cuda_product *p, pnb__cuda_plan *plan)
{
    bool is_i8 = p->type == PNB__CUDA_I8;
    cudaDataType in = data_type(p->type), out = is_i8 ? CUDA_R_32I : data_type(p->type_c);
    cublasOperation_t op_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue =
        p->bias != NULL ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    size_t nb = p->n_batch;
    return l->MatmulDescCreate(&plan->product, is_i8 ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                               is_i8 ? CUDA_R_32I : CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           l->MatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_b,
                                     sizeof op_b) == CUBLAS_STATUS_SUCCESS &&
           l->MatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_a,
                                     sizeof op_a) == CUBLAS_STATUS_SUCCESS &&
           l->MatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                     sizeof epilogue) == CUBLAS_STATUS_SUCCESS &&
           make_layout(l, &plan->b, in, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->ldb,
                       nb, p->batch_b) &&
           make_layout(l, &plan->a, in, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->lda,
                       nb, p->batch_a) &&
           make_layout(l, &plan->c, out, p->n, p->m, p->ldc, nb, p->batch_c) &&
           make_layout(l, &plan->d, out, p->n, p->m, p->beta != 0 ? p->ldd : p->ldc, nb,
                       p->batch_c);
}

bool choose(const pnb__cublas *l, pnb__cuda_plan *plan)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *pointer;
    } alignments[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, plan->key.b},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, plan->key.a},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, plan->key.d},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, plan->key.c}};
    size_t workspace = PNB__CUDA_WORKSPACE;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t found;
    int n_found = 0;
    if (l->MatmulPreferenceCreate(&wish) != CUBLAS_STATUS_SUCCESS)
        return false;
    bool ok =
        l->MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                        sizeof workspace) == CUBLAS_STATUS_SUCCESS;
    /* parts of a long sum are added in floats, not as the halves that the result is */
    uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (plan->key.type_c == PNB__CUDA_BF16)
        ok = ok && l->MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                   &sums, sizeof sums) == CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < PNB_COUNT(alignments); i++) {
        uint32_t bytes = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(alignments[i].pointer));
        ok = ok && l->MatmulPreferenceSetAttribute(wish, alignments[i].what, &bytes,
                                                   sizeof bytes) == CUBLAS_STATUS_SUCCESS;
    }
    ok = ok &&
         l->MatmulAlgoGetHeuristic(l->handle, plan->product, plan->b, plan->a, plan->d, plan->c,
                                   wish, 1, &found, &n_found) == CUBLAS_STATUS_SUCCESS &&
         n_found == 1;
    l->MatmulPreferenceDestroy(wish);
    if (ok)
        plan->algorithm = found.algo;
    return ok;
}

void drop(const pnb__cublas *l, pnb__cuda_plan *plan)
{
    if (plan->product != NULL)
        l->MatmulDescDestroy(plan->product);
    const cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->c, plan->d};
    for (cublasLtMatrixLayout_t layout : layouts)
        if (layout != NULL)
            l->MatrixLayoutDestroy(layout);
    plan->product = NULL;
    plan->a = plan->b = plan->c = plan->d = NULL;
}

void make(const pnb__cublas *l, const pnb__cuda_product *p, const pnb__cuda_product &key,
          pnb__cuda_plan *plan)
{
    *plan = pnb__cuda_plan();
    plan->is_used = true;
    plan->key = key;
    plan->is_plain = !describe(l, p, plan) || !choose(l, plan);
}

/* The plan of a product, made where there is none; `spare` where the table is full. */
pnb__cuda_plan *plan_of(pnb__cuda *c, const pnb__cuda_product *p, pnb__cuda_plan *spare)
{
    pnb__cuda_product key = key_of(p);
    size_t at = static_cast<size_t>(pnb__hash_bytes(&key, sizeof key, 0)) % PNB__CUDA_PLANS;
    for (size_t tries = 0; tries < PNB__CUDA_PLANS; tries++, at = (at + 1) % PNB__CUDA_PLANS) {
        pnb__cuda_plan *plan = &c->plans[at];
        if (plan->is_used && std::memcmp(&plan->key, &key, sizeof key) == 0)
            return plan;
        if (plan->is_used)
            continue;
        if (c->n_plans >= PNB__CUDA_PLANS * 3 / 4)
            break;
        c->n_plans++;
        make(&c->cublas, p, key, plan);
        return plan;
    }
    make(&c->cublas, p, key, spare);
    return spare;
}

/* The bias is part of a description, so it is written there before each product. */
cublasStatus_t run(const pnb__cuda *c, cudaStream_t stream, const pnb__cuda_plan *plan,
                   const pnb__cuda_product *p)
{
    const int one = 1, zero = 0;
    bool is_i8 = p->type == PNB__CUDA_I8;
    const void *alpha = is_i8 ? static_cast<const void *>(&one) : &p->alpha;
    const void *beta = is_i8 ? static_cast<const void *>(&zero) : &p->beta;
    if (p->bias != NULL) {
        cublasStatus_t status = c->cublas.MatmulDescSetAttribute(
            plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
    }
    return c->cublas.Matmul(c->cublas.handle, plan->product, alpha, p->b, plan->b, p->a, plan->a,
                            beta, p->beta != 0 ? p->d : p->c, plan->d, p->c, plan->c,
                            &plan->algorithm, c->workspace, PNB__CUDA_WORKSPACE, stream);
}

} // namespace

/* k of 0 leaves nothing to cuBLASLt: the plain kernel sums nothing. */
void pnb__cuda_multiply(const pnb_ctx *ctx, const pnb__cuda_product *p)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    pnb__cuda_plan spare = pnb__cuda_plan();
    if (p->m == 0 || p->n == 0 || p->n_batch == 0)
        return;
    cudaStream_t stream = pnb__cuda_stream(ctx);
    bool is_done = false;
    if (p->k > 0) {
        std::lock_guard<std::mutex> held(c->lock);
        const pnb__cuda_plan *plan = plan_of(c, p, &spare);
        is_done = !plan->is_plain && run(c, stream, plan, p) == CUBLAS_STATUS_SUCCESS;
        drop(&c->cublas, &spare);
    }
    if (!is_done)
        multiply_plainly(ctx, p);
}

/* ---- the library ---- */

pnb_status pnb__cublas_open(pnb__cuda *c, pnb_error *err)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "libcublasLt.so.11", "libcublasLt.so"};
    pnb__cublas *l = &c->cublas;
    for (size_t i = 0; i < PNB_COUNT(names) && l->library == NULL; i++)
        l->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (l->library == NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "cuda:%d: cuBLASLt (libcublasLt.so.13, 12 or 11) is not where libraries "
                         "are looked for; install it or name its folder in LD_LIBRARY_PATH",
                         c->index);
#define FIND(name)                                                                                 \
    l->name = reinterpret_cast<decltype(l->name)>(dlsym(l->library, "cublasLt" #name));            \
    if (l->name == NULL)                                                                           \
        return pnb__fail(err, PNB_UNSUPPORTED, "cuda:%d: cuBLASLt has no cublasLt" #name, c->index);
    PNB__CUBLAS_LIST(FIND)
#undef FIND
    if (l->Create(&l->handle) != CUBLAS_STATUS_SUCCESS)
        return pnb__fail(err, PNB_UNSUPPORTED, "cuda:%d: cuBLASLt does not start", c->index);
    c->plans = new (std::nothrow) pnb__cuda_plan[PNB__CUDA_PLANS]();
    return c->plans != NULL ? PNB_OK
                            : pnb__fail_nomem(err, PNB__CUDA_PLANS * sizeof(pnb__cuda_plan));
}

/* The library stays open: its own threads and handles may outlive this. */
void pnb__cublas_close(pnb__cuda *c)
{
    for (size_t i = 0; i < PNB__CUDA_PLANS && c->plans != NULL; i++)
        if (c->plans[i].is_used)
            drop(&c->cublas, &c->plans[i]);
    delete[] c->plans;
    if (c->cublas.handle != NULL)
        c->cublas.Destroy(c->cublas.handle);
}
