/* Element types of arrays on disk, and exact conversions between the floating-point ones.
 *
 * Bytes are little-endian in every file this library writes. */
#ifndef PENUMBRA_DTYPE_H
#define PENUMBRA_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most dimensions any array of this library has; files with more are UNSUPPORTED. */
#define PNB_MAX_DIMS 8

typedef enum pnb_dtype {
    PNB_F32,  /* IEEE 754 binary32: what models and embedding sets are kept in */
    PNB_F64,  /* binary64 */
    PNB_F16,  /* binary16: 11 bits of precision, up to 65504 */
    PNB_BF16, /* the upper half of a binary32: its range, 8 bits of precision */
    PNB_I64,  /* integers: two's complement */
    PNB_I32,
    PNB_I16,
    PNB_I8,
    PNB_U8,
    PNB_BOOL, /* one byte, 0 or 1 */
    PNB_U16,
    PNB_U32,
    PNB_U64,
    PNB_N_DTYPES /* how many there are; no type itself */
} pnb_dtype;

/* Bytes of one element; 0 outside the list. */
size_t pnb_dtype_size(pnb_dtype dtype);

/* Name as safetensors spells it ("F32", "BF16", "BOOL"); "UNKNOWN" outside the list, never NULL. */
const char *pnb_dtype_name(pnb_dtype dtype);

/* Looks a name up, spelled exactly as above. False leaves *out untouched. */
bool pnb_dtype_from_name(pnb_dtype *out, const char *name);

/* True for F32, F64, F16 and BF16: those that pnb_array_to_i64 refuses. */
bool pnb_dtype_is_float(pnb_dtype dtype);

/* ---- conversions ---- of n numbers each; n may be 0, no call fails */
/* Widen n half-precision numbers. Every value is exact: subnormals, infinities, NaN payloads.
 * `in` and `out` are aligned for their type and do not overlap.
 * Source  IEEE 754-2008 binary16; bfloat16 is the upper half of a binary32 */
void pnb_f16_to_f32(const uint16_t *in, float *out, size_t n);
void pnb_bf16_to_f32(const uint16_t *in, float *out, size_t n);

/* What was widened narrows to the same bits again.
 * Narrow n floats, rounding to nearest, ties to even. Too large becomes infinity, a NaN becomes a
 * quiet NaN of the same sign that keeps the payload bits that fit. */
void pnb_f32_to_f16(const float *in, uint16_t *out, size_t n);
void pnb_f32_to_bf16(const float *in, uint16_t *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
