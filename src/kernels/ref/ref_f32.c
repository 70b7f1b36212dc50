/* The reference table for floats: every slot in plain C, one thread, sums in double.
 * It is the oracle of the tests and what `--device ref` runs. The loops are in the .inc files,
 * written once for both real types; formulas stand at their tops. */
#include "kernels/bf16.h"
#include "kernels/host.h"
#include "kernels/ref/real.h"
#include "kernels/ref/scalar.h"

typedef float real;

#include "kernels/ref/elementwise.inc"

#include "kernels/ref/attention.inc"
#include "kernels/ref/batchnorm.inc"
#include "kernels/ref/best.inc"
#include "kernels/ref/conv2d.inc"
#include "kernels/ref/dots.inc"
#include "kernels/ref/draws.inc"
#include "kernels/ref/gather.inc"
#include "kernels/ref/gemm.inc"

#include "kernels/ref/gemm_bf16.inc"

#include "kernels/ref/gemm_i8.inc"
#include "kernels/ref/gru.inc"
#include "kernels/ref/half_values.inc"
#include "kernels/ref/halves.inc"
#include "kernels/ref/inclusion.inc"
#include "kernels/ref/layernorm.inc"
#include "kernels/ref/linalg.inc"
#include "kernels/ref/optim.inc"
#include "kernels/ref/pool.inc"
#include "kernels/ref/rows.inc"
#include "kernels/ref/samples.inc"

#include "kernels/ref/pairs.inc"

#define FILL_HALVES(table, name) (table)->name = name;
#include "kernels/ref/fill.inc"

void pnb__kernels_ref_f32(pnb__kernels *k)
{
    fill_table(k);
    k->name = "ref";
    k->real = PNB__F32;
    k->halves_head_dim = SIZE_MAX;
}
