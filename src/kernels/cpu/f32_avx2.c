/* The fast f32 kernels for one instruction set (avx2). The loops are written once, in the .inc
 * files, over the vectors of the simd header; the compiler flags follow from this file's name.
 * No flag or loop is decided here: adding an instruction set is a header and a file like this. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/nest.h"
#include "kernels/cpu/simd_avx2.h"
#include "kernels/host.h"
#include "kernels/kernels.h"

#include "kernels/cpu/math.inc"

#include "kernels/cpu/elementwise.inc"
#include "kernels/cpu/tile.inc"

#include "kernels/cpu/attention.inc"
#include "kernels/cpu/dots.inc"
#include "kernels/cpu/gemm_finish.inc"

#include "kernels/cpu/gemm.inc"
#include "kernels/cpu/gemm_bf16_wide.inc"
#include "kernels/cpu/tile_i8.h"

#include "kernels/cpu/tile_i8.inc"
static const pnb__tile_i8_fn tiles_i8[2][I8_ROWS] = TILE_I8_TABLE;

#include "kernels/cpu/gemm_i8.inc"
#include "kernels/cpu/gru.inc"
#include "kernels/cpu/inclusion.inc"
#include "kernels/cpu/layernorm.inc"
#include "kernels/cpu/rearrange.inc"
#include "kernels/cpu/rows.inc"

#include "kernels/cpu/halves.inc"

#include "kernels/cpu/samples.inc"

#include "kernels/cpu/batchnorm.inc"

#include "kernels/cpu/conv_product.inc"

#include "kernels/cpu/winograd.inc"

#include "kernels/cpu/conv2d.inc"
#include "kernels/cpu/pool.inc"

#include "kernels/cpu/optim.inc"

#include "kernels/cpu/table.inc"

void pnb__cpu_overwrite_f32_avx2(pnb__kernels *k)
{
    overwrite(k);
}

void pnb__cpu_overwrite_i8_avx2(pnb__kernels *k)
{
    overwrite_i8(k);
}
