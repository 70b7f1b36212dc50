/* Rows of embedding sets as JSON, under the names that their arrays have in files.
 *
 * In base64 numbers are little-endian, as OpenAI's service sends them and its clients read them. */
#include "server/set_json.h"

#include "sets/embeddings.h"

void pnb__floats_put(pnb__buf *b, const float *x, size_t n, bool base64)
{
    pnb__buf_putc(b, base64 ? '"' : '[');
    if (base64)
        pnb__base64(b, x, n * sizeof *x);
    for (size_t i = 0; i < n && !base64; i++)
        pnb__buf_printf(b, i > 0 ? ",%.9g" : "%.9g", (double)x[i]);
    pnb__buf_putc(b, base64 ? '"' : ']');
}

void pnb__row_parameters_put(pnb__buf *b, const pnb_embeddings *set, size_t row, bool base64)
{
    for (int which = 1; which < PNB__N_EMBEDDING_ARRAYS; which++) {
        const pnb__embedding_array *a = pnb__embedding_array_at(which);
        size_t width = a->is_per_row ? 1 : set->dim;
        if (!pnb__embedding_has_array(set, which))
            continue;
        pnb__buf_printf(b, ",\"%s\":", a->name);
        pnb__floats_put(b, pnb__embedding_values(set, which) + row * width, width, base64);
    }
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes go out as they lie in memory");
