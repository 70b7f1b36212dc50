/* Any bytes as a row that Postgres sends: refused with a text, or numbers that are written to the
 * same bytes again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/pgcopy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIDTH = 3 };

static void check_again(const uint8_t *data, size_t n, int64_t number, float one, const float *x)
{
    pnb__buf out = {0};
    pnb__pgcopy_row(&out, 3);
    pnb__pgcopy_int(&out, number);
    pnb__pgcopy_float(&out, one);
    pnb__pgcopy_reals(&out, x, WIDTH);
    /* flags of an array and its first index may be others */
    if (!out.failed && (out.size != n || memcmp(out.data, data, 30) != 0 ||
                        memcmp(out.data + n - 24, data + n - 24, 24) != 0))
        abort();
    pnb__buf_reset(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__pgcopy_reader r = {data, data + size};
    pnb_error err = PNB_ERROR_INIT;
    bool is_end = false;
    int64_t number = 0;
    float one = 0, x[WIDTH];
    pnb_status status = pnb__pgcopy_skip_head(&r, &err);
    while (status == PNB_OK && !is_end && r.at < r.end) {
        const unsigned char *begin = r.at;
        status = pnb__pgcopy_next(&r, 3, &is_end, &err);
        if (status != PNB_OK || is_end)
            break;
        status = pnb__pgcopy_get_int(&r, &number, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_get_float(&r, &one, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_get_reals(&r, x, WIDTH, &err);
        if (status == PNB_OK)
            check_again(begin, (size_t)(r.at - begin), number, one, x);
    }
    if (status != PNB_OK && err.text[0] == '\0')
        abort();
    return 0;
}
