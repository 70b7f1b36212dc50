/* The scheduler of emulate.h, and what device.cu and products.cu give beside kernels. */
#include "tests/kernels/cuda/emulate.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/cuda/cuda.h"

/* From one stack to another: what a call must keep is pushed, and lies on the stack that is left.
 * The C library's way asks the system each time, and AddressSanitizer's clears a whole stack; it is
 * not told, as what runs here keeps no stacks of its own (tests.cmake). */
extern "C" void emulated_switch(void **from, void *to);
#if defined(__x86_64__)
asm(".text\n.globl emulated_switch\n.type emulated_switch, @function\nemulated_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size emulated_switch, . - emulated_switch\n.section .note.GNU-stack,\"\",@progbits\n.text\n");
#else
#error "emulated threads change stacks on x86-64 alone"
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum { STACK_BYTES = 64 << 10, MOST_THREADS = 1024, SHARED_BYTES = 227 << 10, WARP = 32 };

struct fiber {
    void *place; /* top of its stack while it waits */
    bool is_done;
};

/* Who waits where: a barrier opens when all who still run have come, and counts how often it did.
 */
struct barrier {
    unsigned n_come, n_opened;
};

struct machine {
    fiber fibers[MOST_THREADS];
    unsigned char *stacks;
    unsigned n_threads, n_running, warp_running[MOST_THREADS / WARP], current;
    barrier block, warps[MOST_THREADS / WARP];
    unsigned char slots[MOST_THREADS / WARP][2][WARP * EMULATED_SLOT];
    alignas(64) unsigned char shared[SHARED_BYTES];
    void *host;
    const std::function<void()> *work;
    size_t n_shared;
    unsigned n_launches;
    bool is_backward;
} machine;

unsigned char *stack_of(unsigned i)
{
    return machine.stacks + (size_t)i * STACK_BYTES;
}

void die(const char *what)
{
    std::fprintf(stderr, "emulated CUDA: %s (block %u, thread %u)\n", what, blockIdx.x,
                 machine.current);
    std::abort();
}

void enter(unsigned i)
{
    machine.current = i;
    threadIdx = dim3(i, 0, 0);
}

/* Who hands on for the last time never returns from it, and what AddressSanitizer marked of its frame
 * would lie in the stack of the next thread there. */
#define NEVER_RETURNS __attribute__((no_sanitize_address))

/* Hands on to the next thread that still runs; the host when none does. */
NEVER_RETURNS void hand_on(fiber *from)
{
    unsigned n = machine.n_threads, i = machine.current;
    if (machine.n_running == 0)
        emulated_switch(&from->place, machine.host);
    do
        i = (machine.is_backward ? i + n - 1 : i + 1) % n;
    while (machine.fibers[i].is_done);
    if (&machine.fibers[i] == from)
        return;
    enter(i);
    emulated_switch(&from->place, machine.fibers[i].place);
}

void wait(barrier *b, const unsigned *n_running)
{
    unsigned me = machine.current, opened = b->n_opened;
    b->n_come++;
    for (unsigned turns = 0; b->n_opened == opened; turns++) {
        if (b->n_come >= *n_running) {
            b->n_come = 0;
            b->n_opened++;
            break;
        }
        if (turns > 100000)
            die("some thread never came to a barrier");
        hand_on(&machine.fibers[me]);
    }
}

NEVER_RETURNS void run_thread()
{
    (*machine.work)();
    fiber *f = &machine.fibers[machine.current];
    f->is_done = true;
    machine.n_running--;
    machine.warp_running[machine.current / WARP]--;
    hand_on(f);
}

/* A stack as if emulated_switch had been called at the beginning of run_thread: six registers,
 * where to go on, and a word that makes the stack as a call leaves it. */
void prepare(unsigned i)
{
    enum { REGISTERS = 6 };
    fiber *f = &machine.fibers[i];
    void **top = reinterpret_cast<void **>(stack_of(i) + STACK_BYTES);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(run_thread);
    for (int r = 0; r < REGISTERS; r++)
        *--top = nullptr;
    f->place = top;
    f->is_done = false;
}

void run_block()
{
    unsigned n = machine.n_threads, first = machine.is_backward ? n - 1 : 0;
    machine.block = barrier{};
    machine.n_running = n;
    std::memset(machine.shared, 0xFF, machine.n_shared);
    for (unsigned w = 0; w < (n + WARP - 1) / WARP; w++) {
        machine.warps[w] = barrier{};
        machine.warp_running[w] = PNB_MIN(n - w * WARP, (unsigned)WARP);
    }
    for (unsigned i = 0; i < n; i++)
        prepare(i);
    enter(first);
    emulated_switch(&machine.host, machine.fibers[first].place);
}

} // namespace

void *emulated_shared()
{
    return machine.shared;
}

void __syncthreads()
{
    wait(&machine.block, &machine.n_running);
}

void __syncwarp(unsigned)
{
    unsigned w = machine.current / WARP;
    wait(&machine.warps[w], &machine.warp_running[w]);
}

/* One of two, by turns: who comes to the barrier writes where nobody reads any more. */
unsigned char *emulated_slots()
{
    unsigned w = machine.current / WARP;
    return machine.slots[w][machine.warps[w].n_opened % 2];
}

void emulated_launch(dim3 blocks, unsigned threads, size_t shared,
                     const std::function<void()> &thread)
{
    if (threads == 0 || threads > MOST_THREADS || shared > SHARED_BYTES || blocks.x == 0 ||
        blocks.y == 0 || blocks.z == 0)
        die("a launch that no device takes");
    if (machine.stacks == nullptr)
        machine.stacks = static_cast<unsigned char *>(
            std::aligned_alloc(64, (size_t)MOST_THREADS * STACK_BYTES));
    machine.n_threads = threads;
    machine.n_shared = shared;
    machine.work = &thread;
    machine.is_backward = machine.n_launches++ % 2 != 0;
    gridDim = blocks;
    blockDim = dim3(threads);
    for (unsigned z = 0; z < blocks.z; z++)
        for (unsigned y = 0; y < blocks.y; y++)
            for (unsigned x = 0; x < blocks.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block();
            }
}

/* ---- what the device gives ---- */

void *pnb__cuda_scratch(const pnb_ctx *)
{
    alignas(64) static unsigned char scratch[PNB__CUDA_SCRATCH];
    return scratch;
}

void *pnb__cuda_borrow(const pnb_ctx *, size_t bytes)
{
    return std::malloc(bytes + 1);
}

void pnb__cuda_return(const pnb_ctx *, void *p)
{
    std::free(p);
}

void pnb__cuda_read_back(const pnb_ctx *ctx, size_t n, double *out)
{
    std::memcpy(out, pnb__cuda_scratch(ctx), n * sizeof *out);
}

namespace
{

double element(const void *p, pnb__cuda_type type, size_t at)
{
    if (type == PNB__CUDA_F32)
        return static_cast<const float *>(p)[at];
    if (type == PNB__CUDA_I8)
        return static_cast<const signed char *>(p)[at];
    return __uint_as_float(static_cast<unsigned>(static_cast<const uint16_t *>(p)[at]) << 16);
}

/* op(A) or op(B)^T of one of the batch, (rows, k) in doubles: every number is read where it lies,
 * and the sums below need not be watched. */
std::vector<double> rows_of(const pnb__cuda_product *p, bool is_a, size_t b)
{
    size_t rows = is_a ? p->m : p->n, ld = is_a ? p->lda : p->ldb;
    size_t first = b * (is_a ? p->batch_a : p->batch_b);
    bool by_columns = is_a ? p->trans_a : !p->trans_b;
    std::vector<double> out(rows * p->k);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < p->k; k++)
            out[i * p->k + k] = element(is_a ? p->a : p->b, p->type,
                                        first + (by_columns ? k * ld + i : i * ld + k));
    return out;
}

__attribute__((no_sanitize("address", "undefined"))) double dot(const double *x, const double *y,
                                                                size_t n)
{
    double sums[8] = {0, 0, 0, 0, 0, 0, 0, 0}, sum = 0;
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t e = 0; e < 8; e++)
            sums[e] += x[k + e] * y[k + e];
    for (; k < n; k++)
        sum += x[k] * y[k];
    for (size_t e = 0; e < 8; e++)
        sum += sums[e];
    return sum;
}

void put(const pnb__cuda_product *p, size_t b, size_t i, size_t j, double sum)
{
    size_t at = b * p->batch_c + i * p->ldc + j;
    if (p->type == PNB__CUDA_I8) {
        static_cast<int *>(p->c)[at] = static_cast<int>(sum);
        return;
    }
    float value = static_cast<float>(static_cast<double>(p->alpha) * sum);
    if (p->bias != nullptr)
        value += static_cast<float>(element(p->bias, p->type_c, j));
    if (p->beta != 0)
        value += p->beta * static_cast<const float *>(p->d)[b * p->batch_c + i * p->ldd + j];
    if (p->type_c == PNB__CUDA_F32) {
        static_cast<float *>(p->c)[at] = value;
        return;
    }
    unsigned bits = __float_as_uint(value);
    static_cast<uint16_t *>(p->c)[at] =
        static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

} // namespace

void pnb__cuda_multiply(const pnb_ctx *, const pnb__cuda_product *p)
{
    for (size_t b = 0; b < p->n_batch; b++) {
        const std::vector<double> x = rows_of(p, true, b), y = rows_of(p, false, b);
        for (size_t i = 0; i < p->m; i++)
            for (size_t j = 0; j < p->n; j++)
                put(p, b, i, j, dot(x.data() + i * p->k, y.data() + j * p->k, p->k));
    }
}
