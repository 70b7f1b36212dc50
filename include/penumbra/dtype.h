/* Element types of arrays on disk, and exact conversions between the floating-point ones.
 *
 * Bytes are little-endian in every file this library writes. Which of these types a file may hold
 * its header says (npy.h: all but BF16, which NumPy does not know). Conversions of whole arrays of
 * any type: pnb_array_to_f32, pnb_array_to_f64 and pnb_array_to_i64 in safetensors.h. */
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

/* Of one element. */
typedef enum pnb_dtype {
    PNB_F32,     /* IEEE 754 binary32: what models and embedding sets are kept in */
    PNB_F64,     /* binary64 */
    PNB_F16,     /* binary16: 11 bits of precision, up to 65504 */
    PNB_BF16,    /* the upper half of a binary32: its range, 8 bits of precision */
    PNB_I64,     /* signed integers: two's complement */
    PNB_I32,     /* of 4 bytes */
    PNB_I16,     /* of 2 bytes */
    PNB_I8,      /* -128 .. 127 */
    PNB_U8,      /* 0 .. 255, such as pixels */
    PNB_BOOL,    /* one byte, 0 or 1 */
    PNB_U16,     /* unsigned integers: of 2 bytes */
    PNB_U32,     /* of 4 bytes */
    PNB_U64,     /* above 2^63 - 1 pnb_array_to_i64 refuses them */
    PNB_N_DTYPES /* how many there are; no type itself */
} pnb_dtype;

/* Bytes of one element, 1 to 8; 0 outside the list. */
size_t pnb_dtype_size(pnb_dtype dtype);

/* Name as safetensors spells it ("F32", "BF16", "BOOL"); "UNKNOWN" outside the list, never NULL. */
const char *pnb_dtype_name(pnb_dtype dtype);

/* Looks a name up, spelled exactly as above: "f32" and "float32" are none. False leaves *out
 * untouched. */
bool pnb_dtype_from_name(pnb_dtype *out, const char *name);

/* True for F32, F64, F16 and BF16: those that pnb_array_to_i64 refuses. False outside the list. */
bool pnb_dtype_is_float(pnb_dtype dtype);

/* ---- conversions ----
 * Of n numbers each; n may be 0, no call fails. `in` and `out` are aligned for their type and do
 * not overlap. Integer operations on the bits: the same on every machine, whatever its rounding
 * mode. */

/* Widen n half-precision numbers. Every value is exact: subnormals, infinities, NaN payloads.
 * Range   any bits are a number
 * Source  IEEE 754-2008 binary16; bfloat16 is the upper half of a binary32 */
void pnb_f16_to_f32(const uint16_t *in, float *out, size_t n);
void pnb_bf16_to_f32(const uint16_t *in, float *out, size_t n);

/* Narrow n floats, rounding to nearest, ties to even. Too large becomes infinity (from 65520 in
 * binary16), too small a subnormal or a zero of the same sign, a NaN a quiet NaN of the same sign
 * that keeps the payload bits that fit. What was widened narrows to the same bits again, but for
 * signalling NaNs, which become quiet. */
void pnb_f32_to_f16(const float *in, uint16_t *out, size_t n);
void pnb_f32_to_bf16(const float *in, uint16_t *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
