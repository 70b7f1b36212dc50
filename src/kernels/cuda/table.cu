/* Every slot but the mem_ ones, by the list: a slot that this column lacks does not link. */
#include "kernels/cuda/attention.h"

#define OVERWRITE_MEMORY(name)
#define OVERWRITE_REF(name) k->name = pnb__cuda_##name;
#define OVERWRITE_FAST(name) k->name = pnb__cuda_##name;
#define OVERWRITE_FAST_ONLY(name) k->name = NULL;
#define OVERWRITE_I8(name) k->name = pnb__cuda_##name;
#define OVERWRITE_BF16(name) k->name = pnb__cuda_##name;
#define OVERWRITE_HALVES(name) k->name = pnb__cuda_##name;

extern "C" void pnb__cuda_overwrite(pnb__kernels *k)
{
    k->name = "cuda";
    k->gemm_group = 0; /* products read weights as they lie */
    k->gemm_i8_group = k->gemm_bf16_group = 1;
    k->bf16_parts = 3;
    k->parts_gain = true; /* six products on tensor cores against one in floats */
    k->halves_head_dim = PNB__CUDA_HALVES_WIDTH;
    k->halves_gain = true;
    k->i8_halves = false; /* whatever the host's table under this one takes */
#define PNB__KERNEL(column, returns, name, parameters, names) OVERWRITE_##column(name)
#include "kernels/kernels.def"
}
