/* Optimiser updates for a whole list of parameters (ref/optim.inc has the equations).
 *
 * Up to 28 parameters go with one launch, in a structure that is the kernels' argument: a block
 * finds its parameter by halving. SGD, Adam and AdamW take chunks of 4,096 elements, one pass over
 * memory. AdamP and SGDP decide on the device how to project, in three launches:
 *   1. rows, up to 256 blocks of them to a parameter: moments, and of each row the products of
 * parameter and gradient; a block keeps the largest cosine of its rows and the sums for the whole
 * layer
 *   2. a block for each parameter adds those up in order and decides: rows, layer or no projection
 *   3. rows again: the step, with the row's own sums where rows are projected
 * What 1 and 2 leave lies in the scratch memory. Moments and sums are in double, the quotient of
 * Adam's direction in float. Parameters that are not projected have chunks in place of rows. */
#include "kernels/cuda/teams.h"

namespace
{

enum { LISTED = 28, CHUNK = 4096, MOST_BLOCKS = 256, SUMS = 5, LONG_ROW = 2048 };

/* What an update needs of one parameter. The gradient is g = grad_scale * grad + l2 * param. */
struct update {
    float *param, *m, *v;
    const float *grad;
    size_t n, cols;       /* cols: of a row, or the length of a chunk */
    unsigned first_block; /* of the launch */
    unsigned per_block;   /* rows of each block */
    double grad_scale, l2, decay_rate, step, keep_m, keep_v, fresh_m, wd_ratio;
    float inv_root, eps, delta; /* inv_root: 1 / sqrt(1 - beta2^step) */
    bool is_first, nesterov, project;
};

struct update_list {
    update of[LISTED];
    unsigned n, n_blocks;
};

__device__ const update &update_of_block(const update_list &list)
{
    unsigned low = 0, high = list.n;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (list.of[middle].first_block <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return list.of[low];
}

/* ---- SGD, Adam, AdamW: an element at a time ---- */

struct sgd_step {
    __device__ void operator()(const update &a, size_t i) const
    {
        double p = static_cast<double>(a.param[i]);
        double g = a.grad_scale * static_cast<double>(a.grad[i]) + a.l2 * p, step = g;
        if (a.keep_m != 0) { /* the first buffer is the first gradient, undamped */
            double buffer = a.is_first ? g : a.keep_m * static_cast<double>(a.m[i]) + a.fresh_m * g;
            a.m[i] = static_cast<float>(buffer);
            step = a.nesterov ? g + a.keep_m * buffer : buffer;
        }
        a.param[i] = static_cast<float>(p - a.step * step);
    }
};

/* New moments of an element, as stored. */
__device__ inline void adam_moments(const update &a, size_t i, double g, float *m, float *v)
{
    *m = static_cast<float>(a.keep_m * static_cast<double>(a.m[i]) + a.fresh_m * g);
    *v = static_cast<float>(a.keep_v * static_cast<double>(a.v[i]) + (1 - a.keep_v) * g * g);
    a.m[i] = *m;
    a.v[i] = *v;
}

struct adam_step {
    __device__ void operator()(const update &a, size_t i) const
    {
        double p = static_cast<double>(a.param[i]);
        float m, v;
        adam_moments(a, i, a.grad_scale * static_cast<double>(a.grad[i]) + a.l2 * p, &m, &v);
        float direction = m / (sqrtf(v) * a.inv_root + a.eps);
        a.param[i] =
            static_cast<float>(p * (1 - a.decay_rate) - a.step * static_cast<double>(direction));
    }
};

template <class F> __global__ void chunks_kernel(update_list list)
{
    const F f = {};
    const update &a = update_of_block(list);
    size_t begin = static_cast<size_t>(blockIdx.x - a.first_block) * CHUNK;
    size_t end = PNB_MIN(begin + CHUNK, a.n);
    for (size_t i = begin + threadIdx.x; i < end; i += PNB__CUDA_THREADS)
        f(a, i);
}

/* ---- AdamP and SGDP ---- */

/* What a block of rows finds: the largest cosine of a row, and over all its elements the sums of
 * p g, p p, g g and p times the direction. A parameter has room for MOST_BLOCKS of them. */
enum { MOST_COSINE, SUM_PG, SUM_PP, SUM_GG, SUM_PD };
struct row_sums {
    double of[SUMS];
};

enum { PROJECT_NOTHING, PROJECT_ROWS, PROJECT_LAYER };
struct decision {
    double how, inv, dot; /* of the layer: 1 / (|p| + eps) and p . direction / (|p| + eps) */
};

/* What is subtracted from the parameter before projection, up to the step size. */
template <bool adam>
__device__ inline double direction_of(const update &a, size_t i, double m, float v)
{
    double g = a.nesterov ? a.grad_scale * static_cast<double>(a.grad[i]) : 0;
    if (!adam)
        return a.nesterov ? g + a.keep_m * m : m;
    double mean = a.nesterov ? a.keep_m * m + a.fresh_m * g : m;
    return static_cast<double>(static_cast<float>(mean) / (sqrtf(v) * a.inv_root + a.eps));
}

template <bool adam> __device__ inline double move_moments(const update &a, size_t i, double g)
{
    float m, v = 0;
    if (adam) {
        adam_moments(a, i, g, &m, &v);
    } else { /* unlike SGD's the first buffer is damped too */
        double old = a.is_first ? 0 : a.keep_m * static_cast<double>(a.m[i]);
        a.m[i] = m = static_cast<float>(old + a.fresh_m * g);
    }
    return direction_of<adam>(a, i, static_cast<double>(m), v);
}

__device__ inline double cosine_of(double pg, double pp, double gg, double eps)
{
    return fabs(pg) / (PNB_MAX(sqrt(pp), eps) * PNB_MAX(sqrt(gg), eps));
}

/* Moments and sums of one row; the result is this thread's part of the sums, but for the cosine. */
template <bool adam, int TEAM>
__device__ void first_row(const update &a, size_t row, unsigned lane, row_sums *block)
{
    const size_t begin = row * a.cols, end = PNB_MIN(begin + a.cols, a.n);
    double pg = 0, pp = 0, gg = 0, pd = 0;
    for (size_t i = begin + lane; i < end; i += TEAM) {
        double p = static_cast<double>(a.param[i]);
        double g = a.grad_scale * static_cast<double>(a.grad[i]);
        double d = move_moments<adam>(a, i, g);
        pg += p * g;
        pp += p * p;
        gg += g * g;
        pd += p * d;
    }
    if (!a.project)
        return;
    block->of[SUM_PG] += pg;
    block->of[SUM_PP] += pp;
    block->of[SUM_GG] += gg;
    block->of[SUM_PD] += pd;
    double cosine = cosine_of(team_sum<TEAM>(pg), team_sum<TEAM>(pp), team_sum<TEAM>(gg),
                              static_cast<double>(a.eps));
    if (cosine > block->of[MOST_COSINE])
        block->of[MOST_COSINE] = cosine;
}

/* Rows of this block, in turn to its teams. */
template <bool adam, int TEAM> __device__ void first_rows(const update &a, row_sums *block)
{
    const size_t n_rows = (a.n + a.cols - 1) / a.cols;
    const size_t first = static_cast<size_t>(blockIdx.x - a.first_block) * a.per_block;
    const size_t end = PNB_MIN(first + a.per_block, n_rows);
    for (size_t r = first + threadIdx.x / TEAM; r < end; r += PNB__CUDA_THREADS / TEAM)
        first_row<adam, TEAM>(a, r, threadIdx.x % TEAM, block);
}

template <bool adam> __global__ void first_kernel(update_list list, row_sums *found)
{
    const update &a = update_of_block(list);
    row_sums mine = {};
    if (a.cols > LONG_ROW)
        first_rows<adam, PNB__CUDA_THREADS>(a, &mine);
    else
        first_rows<adam, PNB__CUDA_WARP>(a, &mine);
    if (!a.project)
        return;
    mine.of[MOST_COSINE] = pnb__cuda_block(mine.of[MOST_COSINE], pnb__cuda_most());
    for (int k = SUM_PG; k < SUMS; k++)
        mine.of[k] = pnb__cuda_block_sum(mine.of[k]);
    if (threadIdx.x == 0)
        found[blockIdx.x] = mine;
}

__device__ decision decide(const update &a, const row_sums &all)
{
    const double eps = static_cast<double>(a.eps), delta = static_cast<double>(a.delta);
    decision d = {PROJECT_NOTHING, 1 / (sqrt(all.of[SUM_PP]) + eps), 0};
    d.dot = d.inv * all.of[SUM_PD];
    if (all.of[MOST_COSINE] < delta / sqrt(static_cast<double>(a.cols)))
        d.how = PROJECT_ROWS;
    else if (cosine_of(all.of[SUM_PG], all.of[SUM_PP], all.of[SUM_GG], eps) <
             delta / sqrt(static_cast<double>(a.n)))
        d.how = PROJECT_LAYER;
    return d;
}

/* Block i decides for parameter i. */
__global__ void decide_kernel(update_list list, const row_sums *found, decision *decisions)
{
    const update &a = list.of[blockIdx.x];
    const unsigned end =
        blockIdx.x + 1 < list.n ? list.of[blockIdx.x + 1].first_block : list.n_blocks;
    const unsigned at = a.first_block + threadIdx.x; /* MOST_BLOCKS are as many as threads */
    row_sums all = {};
    if (a.project && at < end)
        all = found[at];
    all.of[MOST_COSINE] = pnb__cuda_block(all.of[MOST_COSINE], pnb__cuda_most());
    for (int k = SUM_PG; k < SUMS; k++)
        all.of[k] = pnb__cuda_block_sum(all.of[k]);
    if (threadIdx.x == 0)
        decisions[blockIdx.x] = a.project ? decide(a, all) : decision{PROJECT_NOTHING, 0, 0};
}

/* p = p * decay - step * (direction - p_n * (p_n . direction)) over a row */
template <bool adam, int TEAM>
__device__ void last_row(const update &a, const decision &d, size_t row, unsigned lane)
{
    const size_t begin = row * a.cols, end = PNB_MIN(begin + a.cols, a.n);
    double inv = d.inv, dot = d.dot;
    if (d.how == PROJECT_ROWS) {
        double pp = 0, pd = 0;
        for (size_t i = begin + lane; i < end; i += TEAM) {
            double p = static_cast<double>(a.param[i]);
            pp += p * p;
            pd += p * direction_of<adam>(a, i, static_cast<double>(a.m[i]), adam ? a.v[i] : 0);
        }
        inv = 1 / (sqrt(team_sum<TEAM>(pp)) + static_cast<double>(a.eps));
        dot = inv * team_sum<TEAM>(pd);
    }
    const double part = d.how == PROJECT_NOTHING ? 0 : inv * dot;
    const double decay = 1 - a.decay_rate * (d.how == PROJECT_NOTHING ? 1 : a.wd_ratio);
    for (size_t i = begin + lane; i < end; i += TEAM) {
        double p = static_cast<double>(a.param[i]);
        double to = direction_of<adam>(a, i, static_cast<double>(a.m[i]), adam ? a.v[i] : 0);
        a.param[i] = static_cast<float>(p * decay - a.step * (to - p * part));
    }
}

template <bool adam, int TEAM> __device__ void last_rows(const update &a, const decision &d)
{
    const size_t n_rows = (a.n + a.cols - 1) / a.cols;
    const size_t first = static_cast<size_t>(blockIdx.x - a.first_block) * a.per_block;
    const size_t end = PNB_MIN(first + a.per_block, n_rows);
    for (size_t r = first + threadIdx.x / TEAM; r < end; r += PNB__CUDA_THREADS / TEAM)
        last_row<adam, TEAM>(a, d, r, threadIdx.x % TEAM);
}

template <bool adam> __global__ void last_kernel(update_list list, const decision *decisions)
{
    const update &a = update_of_block(list);
    const decision d = decisions[&a - list.of];
    if (a.cols > LONG_ROW)
        last_rows<adam, PNB__CUDA_THREADS>(a, d);
    else
        last_rows<adam, PNB__CUDA_WARP>(a, d);
}

/* ---- lists on the host ---- */

enum kind { SGD, ADAM, ADAMW, ADAMP, SGDP };

update update_of(const pnb__optim_args &a, kind k)
{
    const bool is_sgd = k == SGD || k == SGDP;
    const double steps = static_cast<double>(a.step);
    update u = {};
    u.param = static_cast<float *>(a.param);
    u.grad = static_cast<const float *>(a.grad);
    u.m = static_cast<float *>(a.m);
    u.v = static_cast<float *>(a.v);
    u.n = a.n;
    u.grad_scale = a.grad_scale;
    u.l2 = k == SGD || k == ADAM ? a.weight_decay : 0;
    u.decay_rate = k == SGD || k == ADAM ? 0 : a.lr * a.weight_decay;
    if (k == SGDP)
        u.decay_rate /= 1 - a.momentum;
    u.step = is_sgd ? a.lr : a.lr / (1 - pow(a.beta1, steps));
    u.keep_m = is_sgd ? a.momentum : a.beta1;
    u.fresh_m = is_sgd ? 1 - a.dampening : 1 - a.beta1;
    u.keep_v = a.beta2;
    u.inv_root = static_cast<float>(1 / sqrt(1 - pow(a.beta2, steps)));
    u.eps = static_cast<float>(a.eps);
    u.delta = static_cast<float>(a.delta);
    u.wd_ratio = a.wd_ratio;
    u.is_first = a.step == 1;
    u.nesterov = a.nesterov;
    u.project = (k == ADAMP || k == SGDP) && a.project;
    u.cols = u.project ? a.cols : static_cast<size_t>(CHUNK);
    return u;
}

/* Adds a parameter, with its rows shared out to blocks as they come, or most_blocks of them. */
void list_update(update_list *list, update u, size_t most_blocks)
{
    size_t n_rows = (u.n + u.cols - 1) / u.cols;
    size_t per_block = most_blocks == 0 ? 1 : (n_rows + most_blocks - 1) / most_blocks;
    u.first_block = list->n_blocks;
    u.per_block = static_cast<unsigned>(per_block);
    list->n_blocks += static_cast<unsigned>((n_rows + per_block - 1) / per_block);
    list->of[list->n++] = u;
}

void launch_list(const pnb_ctx *ctx, const update_list &list, kind k)
{
    decision *decisions = static_cast<decision *>(pnb__cuda_scratch(ctx));
    row_sums *found = reinterpret_cast<row_sums *>(decisions + LISTED);
    const dim3 blocks(list.n_blocks), deciders(list.n);
    if (k == SGD) {
        pnb__cuda_launch(ctx, chunks_kernel<sgd_step>, blocks, PNB__CUDA_THREADS, 0, list);
    } else if (k == ADAM || k == ADAMW) {
        pnb__cuda_launch(ctx, chunks_kernel<adam_step>, blocks, PNB__CUDA_THREADS, 0, list);
    } else {
        pnb__cuda_launch(ctx, k == ADAMP ? first_kernel<true> : first_kernel<false>, blocks,
                         PNB__CUDA_THREADS, 0, list, found);
        pnb__cuda_launch(ctx, decide_kernel, deciders, PNB__CUDA_THREADS, 0, list, found,
                         decisions);
        pnb__cuda_launch(ctx, k == ADAMP ? last_kernel<true> : last_kernel<false>, blocks,
                         PNB__CUDA_THREADS, 0, list, decisions);
    }
}

void optimise(const pnb_ctx *ctx, const pnb__optim_args *args, size_t n_args, kind k)
{
    static_assert(sizeof(update_list) < 4000, "the argument of a kernel");
    static_assert(LISTED * (sizeof(decision) + MOST_BLOCKS * sizeof(row_sums)) < PNB__CUDA_SCRATCH,
                  "the scratch memory");
    update_list list = {};
    const size_t most_blocks = k == ADAMP || k == SGDP ? MOST_BLOCKS : 0;
    for (size_t i = 0; i < n_args; i++) {
        if (args[i].n > 0)
            list_update(&list, update_of(args[i], k), most_blocks);
        if (list.n == LISTED || (i + 1 == n_args && list.n > 0)) {
            launch_list(ctx, list, k);
            list = update_list{};
        }
    }
}

} // namespace

extern "C" void pnb__cuda_sgd(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list)
{
    optimise(ctx, list, n_list, SGD);
}

extern "C" void pnb__cuda_adam(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list)
{
    optimise(ctx, list, n_list, ADAM);
}

extern "C" void pnb__cuda_adamw(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list)
{
    optimise(ctx, list, n_list, ADAMW);
}

extern "C" void pnb__cuda_adamp(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list)
{
    optimise(ctx, list, n_list, ADAMP);
}

extern "C" void pnb__cuda_sgdp(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list)
{
    optimise(ctx, list, n_list, SGDP);
}
