/* Sizes and names of element types, and bit-exact half-precision conversions.
 *
 * binary16 has 1 sign, 5 exponent (bias 15) and 10 fraction bits, bfloat16 is the upper half of a
 * binary32. Widening moves the bits and, for binary16 subnormals, lets one float subtraction
 * normalise them; narrowing rounds to nearest, ties to even, on the integer representation, so no
 * result depends on the rounding mode or on fused operations. What may be read from files is
 * decided in safetensors.c and npy.c. */
#include "penumbra/dtype.h"

#include <string.h>

#include "kernels/bf16.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are little-endian and mapped as they are: a big-endian machine needs byte swapping"
#endif

typedef struct dtype_row {
    const char *name;
    size_t size;
} dtype_row;

static const dtype_row dtype_rows[PNB_N_DTYPES] = {
    [PNB_F32] = {"F32", 4},   [PNB_F64] = {"F64", 8}, [PNB_F16] = {"F16", 2},
    [PNB_BF16] = {"BF16", 2}, [PNB_I64] = {"I64", 8}, [PNB_I32] = {"I32", 4},
    [PNB_I16] = {"I16", 2},   [PNB_I8] = {"I8", 1},   [PNB_U8] = {"U8", 1},
    [PNB_BOOL] = {"BOOL", 1}, [PNB_U16] = {"U16", 2}, [PNB_U32] = {"U32", 4},
    [PNB_U64] = {"U64", 8},
};

static bool is_dtype(pnb_dtype dtype)
{
    return (unsigned)dtype < (unsigned)PNB_N_DTYPES;
}

size_t pnb_dtype_size(pnb_dtype dtype)
{
    return is_dtype(dtype) ? dtype_rows[dtype].size : 0;
}

const char *pnb_dtype_name(pnb_dtype dtype)
{
    return is_dtype(dtype) ? dtype_rows[dtype].name : "UNKNOWN";
}

bool pnb_dtype_from_name(pnb_dtype *out, const char *name)
{
    for (int i = 0; i < PNB_N_DTYPES; i++) {
        if (strcmp(dtype_rows[i].name, name) == 0) {
            *out = (pnb_dtype)i;
            return true;
        }
    }
    return false;
}

bool pnb_dtype_is_float(pnb_dtype dtype)
{
    return dtype == PNB_F32 || dtype == PNB_F64 || dtype == PNB_F16 || dtype == PNB_BF16;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(half & 0x7fffu) << 13; /* exponent still has bias 15 */
    uint32_t exponent = rest & 0x0f800000u;
    if (exponent == 0x0f800000u)
        return sign | 0x7f800000u | (rest & 0x007fffffu); /* infinity, NaN: payload kept */
    if (exponent == 0) {
        /* fraction * 2^-24: with the exponent of 2^-14 in front, the subtraction is exact */
        return sign | bits_of(float_of(rest + 0x38800000u) - float_of(0x38800000u));
    }
    return sign | (rest + ((uint32_t)(127 - 15) << 23));
}

static uint16_t narrow_f16(uint32_t bits)
{
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((rest >> 13) & 0x03ffu));
    if (rest >= 0x477ff000u) /* 65520, halfway to 65536, and above */
        return (uint16_t)(sign | 0x7c00u);
    if (rest >= 0x38800000u) { /* normal result: 13 bits fall off */
        uint32_t shifted = rest - ((uint32_t)(127 - 15) << 23);
        return (uint16_t)(sign | ((shifted + 0x0fffu + ((shifted >> 13) & 1u)) >> 13));
    }
    if (rest <= 0x33000000u) /* 2^-25, halfway to the smallest subnormal, ties to 0 */
        return (uint16_t)sign;
    uint32_t shift = 126u - (rest >> 23); /* 14 .. 24 bits fall off */
    uint32_t fraction = (rest & 0x007fffffu) | 0x00800000u;
    uint32_t half = (1u << (shift - 1)) - 1u + ((fraction >> shift) & 1u);
    return (uint16_t)(sign | ((fraction + half) >> shift));
}

void pnb_f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = widen_f16(in[i]);
        memcpy(&out[i], &bits, sizeof(bits)); /* not through a float: x87 would quiet NaNs */
    }
}

void pnb_bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

void pnb_f32_to_f16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = narrow_f16(bits_of(in[i]));
}

void pnb_f32_to_bf16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = pnb__bf16_of(in[i]);
}
