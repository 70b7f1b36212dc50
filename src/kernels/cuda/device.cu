/* The device of a context: its stream, its memory, and the first error that its kernels met.
 *
 * Everything of a context runs on one stream in the order in which it was asked for, so buffers may
 * be given back while kernels still use them, and one workspace serves all.
 * The driver is found at run time by the CUDA runtime, which is linked statically: a program built
 * with CUDA starts, and computes on the processor, where there is none. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/state.h"

#include <cstdio>
#include <cstring>
#include <new>

extern "C" void pnb__cuda_overwrite(pnb__kernels *k);

/* A thread begins on device 0, whichever its context has. */
static void use(const pnb__cuda *c)
{
    (void)cudaSetDevice(c->index);
}

static bool is_recording(const pnb__cuda *c)
{
    return c->recorder.load() == std::this_thread::get_id();
}

cudaStream_t pnb__cuda_stream(const pnb_ctx *ctx)
{
    const pnb__cuda *c = pnb__cuda_of(ctx);
    use(c);
    return is_recording(c) ? c->record_stream : c->stream;
}

/* Between host and device nothing can be recorded. */
static bool breaks_recording(pnb__cuda *c)
{
    if (!is_recording(c))
        return false; /* other threads leave its mark alone */
    c->is_broken = true;
    return true;
}

/* Launches of two threads interleave on the stream: what one kernel leaves for the next must not be
 * in the other thread's way. */
void *pnb__cuda_scratch(const pnb_ctx *ctx)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    void *fresh = NULL;
    if (is_recording(c))
        return c->record_scratch;
    std::lock_guard<std::mutex> held(c->lock);
    for (const std::pair<std::thread::id, void *> &s : c->scratches)
        if (s.first == std::this_thread::get_id())
            return s.second;
    use(c);
    pnb__cuda_note(ctx, cudaMalloc(&fresh, PNB__CUDA_SCRATCH), "scratch memory");
    c->scratches.push_back({std::this_thread::get_id(), fresh});
    return fresh;
}

void pnb__cuda_note(const pnb_ctx *ctx, cudaError_t error, const char *what)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    int none = cudaSuccess;
    if (error == cudaSuccess)
        return;
    if (c->error.compare_exchange_strong(none, static_cast<int>(error)))
        c->error_at = what;
}

/* An error stays: after a fault in a kernel nothing of the device can be trusted. */
static pnb_status check(pnb__cuda *c, cudaError_t error, const char *what, pnb_error *err)
{
    int first = c->error.load();
    if (first == cudaSuccess && error == cudaSuccess)
        return PNB_OK;
    const char *at = first != cudaSuccess ? c->error_at.load() : what;
    cudaError_t code = first != cudaSuccess ? static_cast<cudaError_t>(first) : error;
    (void)cudaGetLastError();
    return pnb__fail(err, PNB_IO, "cuda:%d: %s: %s", c->index, at != NULL ? at : what,
                     cudaGetErrorString(code));
}

static pnb_status fail_memory(const pnb__cuda *c, size_t bytes, pnb_error *err)
{
    size_t free_bytes = 0, all = 0;
    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&free_bytes, &all);
    const double mb = 1e6;
    return pnb__fail(err, PNB_NOMEM,
                     "cuda:%d: %.1f MB of memory wanted, %.1f of %.1f MB are free; a smaller batch "
                     "or --memory needs less",
                     c->index, static_cast<double>(bytes) / mb,
                     static_cast<double>(free_bytes) / mb, static_cast<double>(all) / mb);
}

static pnb_status mem_alloc(const pnb_ctx *ctx, void **out, size_t bytes, pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    void *p = NULL;
    use(c);
    cudaError_t error = cudaMallocAsync(&p, PNB_MAX(bytes, static_cast<size_t>(1)), c->stream);
    if (error == cudaErrorMemoryAllocation)
        return fail_memory(c, bytes, err);
    if (check(c, error, "memory", err) != PNB_OK)
        return PNB_IO;
    *out = p;
    return PNB_OK;
}

static void mem_free(const pnb_ctx *ctx, void *p, size_t bytes)
{
    (void)bytes;
    use(pnb__cuda_of(ctx));
    if (p != NULL)
        pnb__cuda_note(ctx, cudaFreeAsync(p, pnb__cuda_stream(ctx)), "giving memory back");
}

void *pnb__cuda_borrow(const pnb_ctx *ctx, size_t bytes)
{
    void *p = NULL;
    use(pnb__cuda_of(ctx));
    pnb__cuda_note(ctx, cudaMallocAsync(&p, bytes, pnb__cuda_stream(ctx)), "memory of a kernel");
    return p;
}

void pnb__cuda_return(const pnb_ctx *ctx, void *p)
{
    mem_free(ctx, p, 0);
}

/* The host's memory may change as soon as this returns: pageable memory is staged by then. */
static pnb_status mem_write(const pnb_ctx *ctx, void *device, const void *host, size_t bytes,
                            pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaError_t error = cudaSuccess;
    use(c);
    if (breaks_recording(c))
        return PNB_OK;
    if (bytes > 0)
        error = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, c->stream);
    return check(c, error, "writing", err);
}

static pnb_status mem_read(const pnb_ctx *ctx, void *host, const void *device, size_t bytes,
                           pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaError_t error = cudaSuccess;
    use(c);
    if (breaks_recording(c)) {
        std::memset(host, 0, bytes);
        return PNB_OK;
    }
    if (bytes > 0)
        error = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, c->stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(c->stream);
    return check(c, error, "what was asked before a read", err);
}

static pnb_status mem_copy(const pnb_ctx *ctx, void *to, const void *from, size_t bytes,
                           pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaError_t error = cudaSuccess;
    cudaStream_t stream = pnb__cuda_stream(ctx);
    if (bytes > 0)
        error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return check(c, error, "copying", err);
}

static pnb_status mem_zero(const pnb_ctx *ctx, void *device, size_t bytes, pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaStream_t stream = pnb__cuda_stream(ctx);
    return check(c, bytes > 0 ? cudaMemsetAsync(device, 0, bytes, stream) : cudaSuccess, "zeroing",
                 err);
}

void pnb__cuda_read_back(const pnb_ctx *ctx, size_t n, double *out)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    const void *scratch = pnb__cuda_scratch(ctx);
    std::lock_guard<std::mutex> held(c->lock);
    use(c);
    if (breaks_recording(c)) {
        std::memset(out, 0, n * sizeof *out);
        return;
    }
    cudaError_t error =
        cudaMemcpyAsync(c->pinned, scratch, n * sizeof *out, cudaMemcpyDeviceToHost, c->stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(c->stream);
    pnb__cuda_note(ctx, error, "reading a sum");
    for (size_t i = 0; i < n; i++)
        out[i] = error == cudaSuccess ? c->pinned[i] : 0;
}

/* ---- recording: CUDA graphs ---- */

static bool record_begin(const pnb_ctx *ctx)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    use(c);
    c->recording.lock();
    c->is_broken = false;
    if (cudaStreamBeginCapture(c->record_stream, cudaStreamCaptureModeRelaxed) == cudaSuccess) {
        c->recorder = std::this_thread::get_id();
        return true;
    }
    (void)cudaGetLastError();
    c->recording.unlock();
    return false;
}

static void *record_end(const pnb_ctx *ctx)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t error = cudaStreamEndCapture(c->record_stream, &graph);
    if (error == cudaSuccess && !c->is_broken)
        error = cudaGraphInstantiate(&exec, graph, 0);
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    c->recorder = std::thread::id();
    c->recording.unlock();
    return exec;
}

static void record_run(const pnb_ctx *ctx, void *recorded)
{
    pnb__cuda_note(ctx,
                   cudaGraphLaunch(static_cast<cudaGraphExec_t>(recorded), pnb__cuda_stream(ctx)),
                   "a recorded run");
}

static void record_free(const pnb_ctx *ctx, void *recorded)
{
    use(pnb__cuda_of(ctx));
    (void)cudaStreamSynchronize(pnb__cuda_of(ctx)->stream);
    if (recorded != NULL)
        (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(recorded));
}

/* The column: pnb_ctx.column. Doubles stay with the processor's table, memory and all. */
static void column(pnb__kernels *k)
{
    if (k->real != PNB__F32)
        return;
    use(pnb__cuda_of(k->ctx));
    pnb__cuda_overwrite(k);
    k->host_memory = false;
    k->mem_alloc = mem_alloc;
    k->mem_free = mem_free;
    k->mem_write = mem_write;
    k->mem_read = mem_read;
    k->mem_copy = mem_copy;
    k->mem_zero = mem_zero;
    k->record_begin = record_begin;
    k->record_end = record_end;
    k->record_run = record_run;
    k->record_free = record_free;
}

static void close_device(pnb_ctx *ctx)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    use(c);
    if (c->stream != NULL)
        (void)cudaStreamSynchronize(c->stream);
    pnb__cublas_close(c);
    for (const std::pair<std::thread::id, void *> &s : c->scratches)
        (void)cudaFree(s.second);
    (void)cudaFree(c->record_scratch);
    (void)cudaFree(c->workspace);
    (void)cudaFreeHost(c->pinned);
    if (c->record_stream != NULL)
        (void)cudaStreamDestroy(c->record_stream);
    if (c->stream != NULL)
        (void)cudaStreamDestroy(c->stream);
    delete c;
    ctx->device_handle = NULL;
}

/* Freed memory stays with the process, for the next graph. */
static cudaError_t keep_freed_memory(int index)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, index);
    if (error == cudaSuccess)
        error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    return error;
}

static pnb_status open_parts(pnb__cuda *c, pnb_error *err)
{
    cudaError_t error = cudaSetDevice(c->index);
    if (error == cudaSuccess)
        error = keep_freed_memory(c->index);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&c->record_stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc(&c->record_scratch, PNB__CUDA_SCRATCH);
    if (error == cudaSuccess)
        error = cudaMalloc(&c->workspace, PNB__CUDA_WORKSPACE);
    if (error == cudaSuccess)
        error = cudaMallocHost(reinterpret_cast<void **>(&c->pinned), 8 * sizeof *c->pinned);
    if (error == cudaErrorMemoryAllocation)
        return fail_memory(c, PNB__CUDA_WORKSPACE + PNB__CUDA_SCRATCH, err);
    return check(c, error, "opening the device", err);
}

static pnb_status find_device(int index, pnb_error *err)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && n == 0))
        return pnb__fail(err, PNB_NOT_FOUND, "cuda:%d: this machine has no CUDA device", index);
    if (error == cudaErrorInsufficientDriver)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "cuda:%d: there is no NVIDIA driver, or one too old for CUDA %d.%d", index,
                         CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (error != cudaSuccess)
        return pnb__fail(err, PNB_UNSUPPORTED, "cuda:%d: %s", index, cudaGetErrorString(error));
    if (index < 0 || index >= n)
        return pnb__fail(err, PNB_NOT_FOUND, "cuda:%d: there %s %d CUDA device%s, numbered from 0",
                         index, n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
    return PNB_OK;
}

extern "C" pnb_status pnb__cuda_open(pnb_ctx *ctx, int index, pnb_error *err)
{
    if (ctx->batch_invariant)
        return pnb__fail(
            err, PNB_UNSUPPORTED,
            "cuda:%d: embeddings with the same bits in batches of every size are not to "
            "be had there: cuBLASLt chooses a kernel by the batch",
            index);
    pnb_status status = find_device(index, err);
    if (status != PNB_OK)
        return status;
    pnb__cuda *c = new (std::nothrow) pnb__cuda();
    if (c == NULL)
        return pnb__fail_nomem(err, sizeof *c);
    c->index = index;
    ctx->device_handle = c;
    status = open_parts(c, err);
    if (status == PNB_OK)
        status = pnb__cublas_open(c, err);
    if (status != PNB_OK) {
        close_device(ctx);
        return status;
    }
    ctx->column = column;
    ctx->close_device = close_device;
    return PNB_OK;
}

extern "C" pnb_status pnb__cuda_look(const pnb_ctx *ctx, pnb__cuda_facts *out, pnb_error *err)
{
    pnb__cuda *c = pnb__cuda_of(ctx);
    cudaDeviceProp found;
    use(c);
    *out = pnb__cuda_facts();
    cudaError_t error = cudaGetDeviceProperties(&found, c->index);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&out->free_bytes, &out->bytes);
    if (error == cudaSuccess)
        error = cudaDriverGetVersion(&out->driver);
    if (error == cudaSuccess)
        error = cudaRuntimeGetVersion(&out->runtime);
    if (error != cudaSuccess)
        return check(c, error, "asking for facts", err);
    std::snprintf(out->name, sizeof out->name, "%s", found.name);
    out->capability[0] = found.major;
    out->capability[1] = found.minor;
    out->n_processors = found.multiProcessorCount;
    out->products = c->cublas.GetVersion();
    return PNB_OK;
}
