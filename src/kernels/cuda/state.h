/* What a context holds of its device, for device.cu and products.cu. */
#ifndef PNB_KERNELS_CUDA_STATE_H
#define PNB_KERNELS_CUDA_STATE_H

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

/* The functions of cuBLASLt that products call: X(name). */
#define PNB__CUBLAS_LIST(X)                                                                        \
    X(Create)                                                                                      \
    X(Destroy)                                                                                     \
    X(GetVersion)                                                                                  \
    X(Matmul)                                                                                      \
    X(MatmulDescCreate)                                                                            \
    X(MatmulDescDestroy)                                                                           \
    X(MatmulDescSetAttribute)                                                                      \
    X(MatrixLayoutCreate)                                                                          \
    X(MatrixLayoutDestroy)                                                                         \
    X(MatrixLayoutSetAttribute)                                                                    \
    X(MatmulPreferenceCreate)                                                                      \
    X(MatmulPreferenceDestroy)                                                                     \
    X(MatmulPreferenceSetAttribute)                                                                \
    X(MatmulAlgoGetHeuristic)

struct pnb__cublas {
    void *library;
    cublasLtHandle_t handle;
#define PNB__CUBLAS_FIELD(name) decltype(&cublasLt##name) name;
    PNB__CUBLAS_LIST(PNB__CUBLAS_FIELD)
#undef PNB__CUBLAS_FIELD
};

/* A product as cuBLASLt wants it, kept for the next one of its sizes. */
struct pnb__cuda_plan {
    bool is_used, is_plain; /* plain: cuBLASLt has no kernel for it */
    pnb__cuda_product key;  /* pointers as what their addresses are multiples of */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulAlgo_t algorithm;
};
enum { PNB__CUDA_PLANS = 1024 };

struct pnb__cuda {
    int index;
    cudaStream_t stream;
    std::vector<std::pair<std::thread::id, void *>> scratches; /* each thread has its own */
    void *record_scratch; /* of what is recorded, which runs as a whole */
    void *workspace;
    double *pinned; /* 8 of them */
    std::atomic<int> error;
    std::atomic<const char *> error_at;
    std::mutex lock; /* of plans, pinned and scratches */
    /* One thread at a time records, on a stream of its own. */
    std::mutex recording;
    cudaStream_t record_stream;
    std::atomic<std::thread::id> recorder;
    bool is_broken; /* what is recorded waited for the device */
    pnb__cublas cublas;
    pnb__cuda_plan *plans; /* a hash table that only grows */
    size_t n_plans;
};

/* Workspace of cuBLASLt, as NVIDIA advises for Hopper. */
#define PNB__CUDA_WORKSPACE ((size_t)64 << 20)

static inline pnb__cuda *pnb__cuda_of(const pnb_ctx *ctx)
{
    return static_cast<pnb__cuda *>(ctx->device_handle);
}

pnb_status pnb__cublas_open(pnb__cuda *c, pnb_error *err);
void pnb__cublas_close(pnb__cuda *c);

#endif
