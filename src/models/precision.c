/* The precision that a model encodes in.
 *
 * fp32-tiles: both factors as three parts of bfloat16, which hold all bits of a float, and the six
 * products of parts that reach into a float's bits; fast: two parts, three products. Only where a
 * tile unit makes that faster than floats (pnb__kernels.parts_gain).
 * int8: pnb_model_quantize in memory.
 * bf16: x W^T of the blocks' matrices with both factors rounded to bfloat16, summed in floats
 * (gemm_bf16 of kernels.def); LayerNorm, softmax, GELU, residuals, patches, projections and heads
 * stay in floats, patches as two parts where that is faster. A rounding changes a factor by at most
 * 2^-9 of itself, independently of the others, so that a sum over k of them is off by about 2^-9 of
 * its length and not of its largest term; log-variances, whose differences matter, come out of
 * heads in floats. */
#include <math.h>

#include "base/names.h"
#include "models/model.h"
#include "models/weights/quantized_weights.h"

PNB_DEFINE_NAME(pnb_precision_name, pnb_precision, PNB_NAMES(PNB_PRECISION_LIST), "unknown")
PNB_DEFINE_PARSE(pnb_precision_parse, pnb_precision, "precision", PNB_NAMES(PNB_PRECISION_LIST))

/* The matrices that a precision is of: those that can be made small, as nearly all arithmetic is
 * theirs. *n counts them. */
static pnb_status check(const pnb_model *m, size_t *n, pnb_error *err)
{
    *n = 0;
    for (size_t i = 0; i < m->weights.n; i++) {
        const pnb__param *p = &m->weights.items[i].param;
        if (p->store == PNB__STORE_I8)
            return pnb__fail(err, PNB_UNSUPPORTED,
                             "the model's weights are stored in 8 bits (%s); a precision is chosen "
                             "for the model that they were made from",
                             p->name);
        *n += pnb__quantized_is_small(p);
    }
    if (*n == 0)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "a model of family %s has no transformer blocks, so there is nothing to "
                         "multiply in another precision; take fp32",
                         m->info.family);
    return m->weights.kernels.real == PNB__F32
               ? PNB_OK
               : pnb__fail(err, PNB_UNSUPPORTED, "a model opened in doubles stays in them");
}

/* One speaks for all: matrices of blocks are made small together, and a file that holds some of
 * them in 8 bits holds all. */
static bool has_bytes(const pnb_model *m)
{
    for (size_t i = 0; i < m->weights.n; i++)
        if (m->weights.items[i].param.store == PNB__STORE_I8)
            return true;
    return false;
}

/* The weights for good: a second copy in floats, to go back to, would be three times what 8 bits
 * save. Activations in 8 bits also where 7 are faster (AVX2 without VNNI): 7 do not keep the
 * promise. */
static pnb_status make_bytes(pnb_model *m, pnb_error *err)
{
    size_t n = 0;
    if (has_bytes(m))
        return PNB_OK;
    pnb_status status = check(m, &n, err);
    if (status == PNB_OK)
        status = pnb_model_quantize(m, PNB_WEIGHTS_INT8, 8, err);
    if (status == PNB_OK)
        m->precision = PNB_PRECISION_INT8;
    return status;
}

/* Parts of bfloat16 that a factor is multiplied in; 0: floats, or bytes where the weight is. */
static int parts_of(pnb_precision precision)
{
    return precision == PNB_PRECISION_BF16              ? 1
           : precision == PNB_PRECISION_FP32_TILES_FAST ? 2
           : precision == PNB_PRECISION_FP32_TILES      ? 3
                                                        : 0;
}

/* The product that embeds patches has the same shape as a block's and is no matrix of two
 * dimensions; it is not rounded, but takes parts where they gain: two lose less than 2^-16. */
static bool set_patch_parts(const pnb_model *m, pnb__param *p, pnb_precision precision)
{
    int parts = parts_of(precision);
    if (p->n_dims != 4 || p->store != PNB__STORE_REAL)
        return false;
    pnb__param_unpack(p, &m->weights.kernels);
    p->bf16_parts = !m->weights.kernels.parts_gain ? 0 : parts == 1 ? 2 : parts;
    return true;
}

pnb_status pnb_model_set_precision(pnb_model *m, pnb_precision precision, pnb_error *err)
{
    size_t n = 0;
    pnb_status status = PNB_OK;
    if ((unsigned)precision > PNB_PRECISION_INT8)
        return pnb__fail(err, PNB_ARG, "precision %d is not one of pnb_precision", (int)precision);
    if (precision == m->precision)
        return PNB_OK;
    if (m->precision == PNB_PRECISION_INT8)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "the model's weights were replaced by 8 bits for precision int8; open it "
                         "again for another precision");
    if (precision == PNB_PRECISION_INT8)
        return make_bytes(m, err);
    if (precision != PNB_PRECISION_FP32)
        status = check(m, &n, err);
    if (status != PNB_OK)
        return status;
    pnb__model_replan(m); /* graphs know which products they make */
    for (size_t i = 0; i < m->weights.n; i++) {
        pnb__param *p = &m->weights.items[i].param;
        if (set_patch_parts(m, p, precision) || !pnb__quantized_is_small(p))
            continue;
        pnb__param_unpack(p, &m->weights.kernels); /* packed for products of the other kind */
        p->bf16_parts = parts_of(precision);
    }
    m->precision = precision;
    return PNB_OK;
}

pnb_status pnb__model_train_in_bf16(pnb_model *m, pnb_error *err)
{
    size_t n = 0;
    pnb_status status = check(m, &n, err);
    for (size_t i = 0; i < m->weights.n && status == PNB_OK; i++) {
        pnb__param *p = &m->weights.items[i].param;
        p->trains_in_bf16 = pnb__quantized_is_small(p);
    }
    return status;
}

/* Held by tests/models/precision.c. */
pnb_precision_promise pnb_precision_get_promise(pnb_precision precision)
{
    static const pnb_precision_promise promises[] = {
        [PNB_PRECISION_FP32] = {1, 0, 1},
        [PNB_PRECISION_FP32_TILES] = {1 - 1e-10, 1e-5, 0.999},
        [PNB_PRECISION_FP32_TILES_FAST] = {1 - 1e-9, 1e-5, 0.999},
        [PNB_PRECISION_BF16] = {0.9999, 0.01, 0.999},
        [PNB_PRECISION_INT8] = {0.9995, (double)INFINITY, -1}};
    /* a number that is no precision promises what floats do: nothing passes for it */
    return promises[(unsigned)precision < PNB_COUNT(promises) ? (unsigned)precision : 0];
}

/* Parts are not used where they gain nothing. */
bool pnb_model_precision_is_floats(const pnb_model *m, pnb_precision precision)
{
    return precision == PNB_PRECISION_FP32 ||
           (parts_of(precision) > 1 && !m->weights.kernels.parts_gain);
}

pnb_precision pnb_model_get_precision(const pnb_model *m)
{
    return m->precision;
}
