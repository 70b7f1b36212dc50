/* The fast f32 kernels for one instruction set (avx512). The loops are written once, in the .inc
 * files, over the vectors of the simd header; the compiler flags follow from this file's name.
 * No flag or loop is decided here: adding an instruction set is a header and a file like this. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/loop.h"
#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/nest.h"
#include "kernels/cpu/simd_avx512.h"
#include "kernels/host.h"
#include "kernels/kernels.h"

#include "kernels/cpu/loops/math.inc"

#include "kernels/cpu/loops/elementwise.inc"
#include "kernels/cpu/products/tile.inc"

#include "kernels/cpu/loops/attention.inc"
#include "kernels/cpu/loops/dots.inc"
#include "kernels/cpu/products/gemm_finish.inc"

#include "kernels/cpu/products/gemm.inc"
#include "kernels/cpu/products/gemm_bf16_wide.inc"
#include "kernels/cpu/products/tile_i8.h"

#define tiles_i8 pnb__tiles_i8_avx512vnni

#include "kernels/cpu/loops/gru.inc"
#include "kernels/cpu/loops/inclusion.inc"
#include "kernels/cpu/loops/layernorm.inc"
#include "kernels/cpu/loops/rearrange.inc"
#include "kernels/cpu/loops/rows.inc"
#include "kernels/cpu/products/gemm_i8.inc"

#include "kernels/cpu/loops/halves.inc"

#include "kernels/cpu/loops/samples.inc"

#include "kernels/cpu/loops/match.inc"

#include "kernels/cpu/loops/batchnorm.inc"

#include "kernels/cpu/loops/conv_product.inc"

#include "kernels/cpu/loops/winograd.inc"

#include "kernels/cpu/loops/conv2d.inc"
#include "kernels/cpu/loops/pool.inc"

#include "kernels/cpu/loops/optim.inc"

#include "kernels/cpu/table.inc"

void pnb__cpu_overwrite_f32_avx512(pnb__kernels *k)
{
    overwrite(k);
}

void pnb__cpu_overwrite_i8_avx512(pnb__kernels *k)
{
    overwrite_i8(k);
}
