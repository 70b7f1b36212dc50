/* Binary COPY: the bytes of the manual, and back. */
#include "tests/io/scratch.h"

#include <math.h>

#include "io/tables/pgcopy.h"

static void bytes(void **state)
{
    (void)state;
    static const unsigned char
        wanted[] = {'P', 'G', 'C', 'O',  'P',  'Y',  '\n', 0xff, '\r', '\n', 0, 0,
                    0,   0,   0,   0,    0,    0,    0,                            /* head */
                    0,   4,                                                        /* four fields */
                    0,   0,   0,   8,    0,    0,    0,    0,    0,    0,    1, 2, /* bigint 258 */
                    0,   0,   0,   1,    'a',  0xff, 0xff, 0xff, 0xff,             /* text, null */
                    0,   0,   0,   28,   0,    0,    0,    1,    0,    0,    0, 0,
                    0,   0,   2,   0xbc, 0,    0,    0,    1,    0,    0,    0, 1, /* real[1] */
                    0,   0,   0,   4,    0x3f, 0x80, 0,    0,    0xff, 0xff};
    static const float one = 1;
    pnb__buf out = {0};
    pnb__pgcopy_begin(&out);
    pnb__pgcopy_row(&out, 4);
    pnb__pgcopy_int(&out, 258);
    pnb__pgcopy_text(&out, "a");
    pnb__pgcopy_text(&out, NULL);
    pnb__pgcopy_reals(&out, &one, 1);
    pnb__pgcopy_end(&out);
    assert_int_equal(out.size, sizeof wanted);
    assert_memory_equal(out.data, wanted, sizeof wanted);
    out.size = 0;
    pnb__pgcopy_vector(&out, &one, 1);
    static const unsigned char vector[] = {0, 0, 0, 8, 0, 1, 0, 0, 0x3f, 0x80, 0, 0};
    assert_int_equal(out.size, sizeof vector);
    assert_memory_equal(out.data, vector, sizeof vector);
    out.size = 0;
    pnb__pgcopy_double(&out, -2);
    assert_memory_equal(out.data, "\0\0\0\10\300\0\0\0\0\0\0\0", 12);
    pnb__buf_reset(&out);
}

static void back(void **state)
{
    (void)state;
    enum { N = 600 }; /* more than one piece */
    float x[N], y[N] = {0}, z = 0;
    int64_t number = 0;
    bool is_end = true;
    pnb__buf out = {0};
    pnb_error err = PNB_ERROR_INIT;
    for (int i = 0; i < N; i++)
        x[i] = i == 5 ? -INFINITY : (float)i / 7;
    pnb__pgcopy_begin(&out);
    pnb__pgcopy_row(&out, 3);
    pnb__pgcopy_int(&out, -9);
    pnb__pgcopy_float(&out, -0.5f);
    pnb__pgcopy_reals(&out, x, N);
    pnb__pgcopy_end(&out);
    pnb__pgcopy_reader r = {(unsigned char *)out.data, (unsigned char *)out.data + out.size};
    assert_ok(pnb__pgcopy_skip_head(&r, &err), &err);
    assert_ok(pnb__pgcopy_next(&r, 3, &is_end, &err), &err);
    assert_false(is_end);
    assert_ok(pnb__pgcopy_get_int(&r, &number, &err), &err);
    assert_ok(pnb__pgcopy_get_float(&r, &z, &err), &err);
    assert_ok(pnb__pgcopy_get_reals(&r, y, N, &err), &err);
    assert_true(number == -9 && z == -0.5f);
    assert_memory_equal(x, y, sizeof x);
    assert_ok(pnb__pgcopy_next(&r, 3, &is_end, &err), &err);
    assert_true(is_end && r.at == r.end);
    for (size_t n = 0; n < 60; n++) { /* cut anywhere */
        r = (pnb__pgcopy_reader){(unsigned char *)out.data, (unsigned char *)out.data + n};
        pnb_error_reset(&err);
        pnb_status status = pnb__pgcopy_skip_head(&r, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_next(&r, 3, &is_end, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_get_int(&r, &number, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_get_float(&r, &z, &err);
        if (status == PNB_OK)
            status = pnb__pgcopy_get_reals(&r, y, N, &err);
        assert_int_equal(status, PNB_FORMAT);
    }
    pnb__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes), cmocka_unit_test(back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
