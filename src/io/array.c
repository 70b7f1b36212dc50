/* Array views: checks and conversion to f32, f64 and i64.
 *
 * Bytes come from mapped files where nothing guarantees alignment, so every element is read with
 * memcpy (which compilers turn into a plain load). Conversions are C's, one rounding each; half
 * precision goes through dtype.c. Reading and writing files is left to safetensors*.c and npy.c. */
#include "io/array.h"

#include <string.h>

pnb_status pnb__array_n_bytes(pnb_dtype dtype, const int64_t *shape, int n_dims, size_t *n_bytes,
                              pnb_error *err)
{
    size_t bytes = pnb_dtype_size(dtype);
    bool is_empty = false;
    if (bytes == 0)
        return pnb__fail(err, PNB_DTYPE, "dtype %d is not one of this library", (int)dtype);
    if (n_dims < 0 || n_dims > PNB_MAX_DIMS)
        return pnb__fail(err, PNB_LIMIT, "%d dimensions, at most %d are supported", n_dims,
                         PNB_MAX_DIMS);
    for (int i = 0; i < n_dims; i++) {
        if (shape[i] < 0)
            return pnb__fail(err, PNB_SHAPE, "dimension %d is %lld, wanted 0 or more", i,
                             (long long)shape[i]);
        if (shape[i] == 0)
            is_empty = true;
    }
    for (int i = 0; i < n_dims && !is_empty; i++) {
        if ((uint64_t)shape[i] > SIZE_MAX || pnb__mul_overflows(bytes, (size_t)shape[i], &bytes))
            return pnb__fail(err, PNB_SHAPE, "the product of the shape overflows at dimension %d",
                             i);
    }
    *n_bytes = is_empty ? 0 : bytes;
    return PNB_OK;
}

pnb_status pnb__array_check(const pnb_array_view *a, pnb_error *err)
{
    size_t n_bytes = 0;
    if (a == NULL)
        return pnb__fail(err, PNB_ARG, "array view is NULL");
    pnb_status status = pnb__array_n_bytes(a->dtype, a->shape, a->n_dims, &n_bytes, err);
    if (status != PNB_OK)
        return status;
    if (n_bytes != a->n_bytes)
        return pnb__fail(err, PNB_SHAPE, "%zu bytes, shape and dtype need %zu", a->n_bytes,
                         n_bytes);
    if (n_bytes > 0 && a->data == NULL)
        return pnb__fail(err, PNB_ARG, "%zu bytes but data is NULL", n_bytes);
    return PNB_OK;
}

void pnb__array_describe(const pnb_array_view *a, char *text, size_t size)
{
    int used = snprintf(text, size, "%s [", pnb_dtype_name(a->dtype));
    for (int i = 0; i < a->n_dims && used >= 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", i > 0 ? ", " : "",
                         (long long)a->shape[i]);
    if (used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "]");
}

size_t pnb_array_size(const pnb_array_view *a)
{
    size_t element = pnb_dtype_size(a->dtype);
    return element > 0 ? a->n_bytes / element : 0;
}

bool pnb_array_is_aligned(const pnb_array_view *a)
{
    size_t element = pnb_dtype_size(a->dtype);
    return element > 0 && (uintptr_t)a->data % element == 0;
}

/* One loop per pair of types: X(name, C type on disk). */
#define PLAIN_TYPES(X)                                                                             \
    X(f32, float)                                                                                  \
    X(f64, double)                                                                                 \
    X(i64, int64_t)                                                                                \
    X(i32, int32_t)                                                                                \
    X(i16, int16_t)                                                                                \
    X(i8, int8_t)                                                                                  \
    X(u8, uint8_t)                                                                                 \
    X(u16, uint16_t)                                                                               \
    X(u32, uint32_t)                                                                               \
    X(u64, uint64_t)

#define DEFINE_CONVERSIONS(name, type)                                                             \
    static void name##_to_f32(const unsigned char *p, float *out, size_t n)                        \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x;                                                                                \
            memcpy(&x, p + i * sizeof(x), sizeof(x));                                              \
            out[i] = (float)x;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name##_to_f64(const unsigned char *p, double *out, size_t n)                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x;                                                                                \
            memcpy(&x, p + i * sizeof(x), sizeof(x));                                              \
            out[i] = (double)x;                                                                    \
        }                                                                                          \
    }
PLAIN_TYPES(DEFINE_CONVERSIONS)

static void bool_to_f32(const unsigned char *p, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = p[i] != 0 ? 1.0f : 0.0f;
}

static void bool_to_f64(const unsigned char *p, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = p[i] != 0 ? 1.0 : 0.0;
}

enum { HALF_CHUNK = 512 };

/* Half precision in chunks on the stack: aligned for the converter whatever the file's layout is.
 */
static void half_to_f32(pnb_dtype dtype, const unsigned char *p, float *out, size_t n)
{
    uint16_t chunk[HALF_CHUNK];
    for (size_t i = 0; i < n; i += HALF_CHUNK) {
        size_t count = PNB_MIN(n - i, (size_t)HALF_CHUNK);
        memcpy(chunk, p + i * sizeof(chunk[0]), count * sizeof(chunk[0]));
        if (dtype == PNB_F16)
            pnb_f16_to_f32(chunk, out + i, count);
        else
            pnb_bf16_to_f32(chunk, out + i, count);
    }
}

static void half_to_f64(pnb_dtype dtype, const unsigned char *p, double *out, size_t n)
{
    float chunk[HALF_CHUNK];
    for (size_t i = 0; i < n; i += HALF_CHUNK) {
        size_t count = PNB_MIN(n - i, (size_t)HALF_CHUNK);
        half_to_f32(dtype, p + i * sizeof(uint16_t), chunk, count);
        for (size_t j = 0; j < count; j++)
            out[i + j] = (double)chunk[j];
    }
}

typedef struct conversion {
    void (*f32)(const unsigned char *, float *, size_t);
    void (*f64)(const unsigned char *, double *, size_t);
} conversion;

/* F16 and BF16 are empty rows: they go through half_to_*. */
static const conversion conversions[PNB_N_DTYPES] = {
    [PNB_F32] = {f32_to_f32, f32_to_f64}, [PNB_F64] = {f64_to_f32, f64_to_f64},
    [PNB_I64] = {i64_to_f32, i64_to_f64}, [PNB_I32] = {i32_to_f32, i32_to_f64},
    [PNB_I16] = {i16_to_f32, i16_to_f64}, [PNB_I8] = {i8_to_f32, i8_to_f64},
    [PNB_U8] = {u8_to_f32, u8_to_f64},    [PNB_BOOL] = {bool_to_f32, bool_to_f64},
    [PNB_U16] = {u16_to_f32, u16_to_f64}, [PNB_U32] = {u32_to_f32, u32_to_f64},
    [PNB_U64] = {u64_to_f32, u64_to_f64},
};

/* Only an array without numbers may go nowhere. */
static pnb_status check_conversion(const pnb_array_view *a, const void *out, pnb_error *err)
{
    pnb_status status = pnb__array_check(a, err);
    if (status == PNB_OK && out == NULL && pnb_array_size(a) > 0)
        return pnb__fail(err, PNB_ARG, "out is NULL");
    return status;
}

pnb_status pnb_array_to_f32(const pnb_array_view *a, float *out, pnb_error *err)
{
    pnb_status status = check_conversion(a, out, err);
    size_t n = status == PNB_OK ? pnb_array_size(a) : 0;
    if (n == 0)
        return status;
    if (conversions[a->dtype].f32 != NULL)
        conversions[a->dtype].f32(a->data, out, n);
    else
        half_to_f32(a->dtype, a->data, out, n);
    return PNB_OK;
}

pnb_status pnb_array_to_f64(const pnb_array_view *a, double *out, pnb_error *err)
{
    pnb_status status = check_conversion(a, out, err);
    size_t n = status == PNB_OK ? pnb_array_size(a) : 0;
    if (n == 0)
        return status;
    if (conversions[a->dtype].f64 != NULL)
        conversions[a->dtype].f64(a->data, out, n);
    else
        half_to_f64(a->dtype, a->data, out, n);
    return PNB_OK;
}

static uint64_t load_bits(const unsigned char *p, size_t element)
{
    uint64_t bits = 0;
    memcpy(&bits, p, element); /* little-endian: dtype.c refuses other machines */
    return bits;
}

pnb_status pnb_array_to_i64(const pnb_array_view *a, int64_t *out, pnb_error *err)
{
    pnb_status status = pnb__array_check(a, err);
    if (status != PNB_OK)
        return status;
    if (pnb_dtype_is_float(a->dtype))
        return pnb__fail(err, PNB_DTYPE, "%s holds %s, wanted integers",
                         a->name != NULL ? a->name : "array", pnb_dtype_name(a->dtype));
    bool is_signed =
        a->dtype == PNB_I64 || a->dtype == PNB_I32 || a->dtype == PNB_I16 || a->dtype == PNB_I8;
    size_t element = pnb_dtype_size(a->dtype), n = pnb_array_size(a);
    if (n > 0 && out == NULL)
        return pnb__fail(err, PNB_ARG, "out is NULL");
    for (size_t i = 0; i < n && a->dtype == PNB_U64; i++) { /* before anything is written */
        if (load_bits((const unsigned char *)a->data + i * element, element) > INT64_MAX)
            return pnb__fail(err, PNB_NUMERIC, "element %zu is above the largest I64", i);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = load_bits((const unsigned char *)a->data + i * element, element);
        unsigned shift = (unsigned)(64 - 8 * element);
        if (a->dtype == PNB_BOOL)
            bits = bits != 0;
        else if (is_signed)
            bits = (uint64_t)((int64_t)(bits << shift) >> shift); /* sign extension */
        memcpy(&out[i], &bits, sizeof(bits));
    }
    return PNB_OK;
}
