/* .npy: bytes as NumPy writes them, other versions and spellings, damage, round trips. */
#include "tests/io/scratch.h"

#include "penumbra/npy.h"

typedef struct image {
    unsigned char bytes[512];
    size_t size;
} image;

static image make_image(unsigned version, const char *header, size_t n_data)
{
    image m = {.bytes = {0x93, 'N', 'U', 'M', 'P', 'Y'}, .size = 8};
    size_t n = strlen(header);
    m.bytes[6] = (unsigned char)version;
    for (size_t i = 0; i < (version == 1 ? 2u : 4u); i++)
        m.bytes[m.size++] = (unsigned char)(n >> 8 * i & 255);
    memcpy(m.bytes + m.size, header, n);
    m.size += n;
    for (size_t i = 0; i < n_data; i++)
        m.bytes[m.size++] = (unsigned char)i;
    return m;
}

static void reads_versions_and_spellings(void **state)
{
    (void)state;
    static const struct {
        unsigned version;
        const char *header;
        pnb_dtype dtype;
        int n_dims;
        int64_t shape[2];
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  \n", PNB_F32, 2, {3, 2}},
        {2, "{'shape':(12,),'fortran_order':False,'descr':'<f2'}", PNB_F16, 1, {12}},
        {3, "{\"descr\": \"<f8\", \"fortran_order\": False, \"shape\": (3,)}", PNB_F64, 1, {3}},
        {1, "{'descr': '|u1', 'fortran_order': True, 'shape': (24,), }", PNB_U8, 1, {24}},
        {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3L,), }", PNB_I64, 1, {3}},
        {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 6,), }", PNB_I32, 2, {1, 6}},
        {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4, 6), }", PNB_BOOL, 2, {4, 6}},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        image m = make_image(cases[i].version, cases[i].header, 24);
        pnb_npy a;
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(pnb_npy_load_bytes(&a, m.bytes, m.size, &err), &err);
        assert_int_equal(a.view.dtype, cases[i].dtype);
        assert_int_equal(a.view.n_dims, cases[i].n_dims);
        assert_memory_equal(a.view.shape, cases[i].shape, 8 * (size_t)cases[i].n_dims);
        assert_int_equal(a.view.n_bytes, 24);
        assert_true(pnb_array_is_aligned(&a.view));
        assert_memory_equal(a.data, m.bytes + m.size - 24, 24);
        pnb_npy_reset(&a);
    }
    image scalar = make_image(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4);
    pnb_npy a;
    assert_int_equal(pnb_npy_load_bytes(&a, scalar.bytes, scalar.size, NULL), PNB_OK);
    assert_int_equal(a.view.n_dims, 0);
    assert_int_equal(pnb_array_size(&a.view), 1);
    pnb_npy_reset(&a);
}

static void broken_headers_are_refused(void **state)
{
    (void)state;
#define REST ", 'fortran_order': False, 'shape': (6,), }"
    static const struct {
        const char *header;
        pnb_status status;
        const char *words;
    } cases[] = {
        {"{'descr': '>f4'" REST, PNB_UNSUPPORTED, "little-endian"},
        {"{'descr': '<c8'" REST, PNB_UNSUPPORTED, "<c8"},
        {"{'descr': '|O'" REST, PNB_UNSUPPORTED, "|O"},
        {"{'descr': '|f4'" REST, PNB_UNSUPPORTED, "|f4"},
        {"{'descr': ''" REST, PNB_UNSUPPORTED, "''"},
        {"{'descr': [('f0', '<u8')]" REST, PNB_UNSUPPORTED, "structured"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", PNB_UNSUPPORTED,
         "contiguous"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,), }", PNB_FORMAT, "neither"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6), }", PNB_FORMAT, "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", PNB_FORMAT, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }", PNB_FORMAT, "whole"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", PNB_FORMAT,
         "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
         PNB_FORMAT, "overflows"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,24), }",
         PNB_UNSUPPORTED, "dimensions"},
        {"{'descr': '<f4', 'shape': (6,), }", PNB_FORMAT, "missing"},
        {"{'descr': '<f4', 'descr': '<f4'" REST, PNB_FORMAT, "repeated"},
        {"{'descr': '<f4', 'more': 1" REST, PNB_FORMAT, "unknown"},
        {"{'descr': '<f4'" REST " x", PNB_FORMAT, "after the dict"},
        {"{'descr': '<f4'", PNB_FORMAT, "comma"},
        {"['descr']", PNB_FORMAT, "no dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }", PNB_FORMAT, "need 28"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", PNB_FORMAT, "need 20"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        image m = make_image(1, cases[i].header, 24);
        pnb_npy a;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(pnb_npy_load_bytes(&a, m.bytes, m.size, &err), &err, cases[i].status,
                      cases[i].words);
        assert_null(a.data);
        pnb_npy_reset(&a);
    }
    static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
    for (size_t i = 0; i < sizeof good - 1; i++) { /* also inside words, which C would cut short */
        image m = make_image(1, good, 24);
        pnb_npy a;
        pnb_error err = PNB_ERROR_INIT;
        m.bytes[10 + i] = 0;
        assert_failed(pnb_npy_load_bytes(&a, m.bytes, m.size, &err), &err, PNB_FORMAT, "NUL");
    }
    image m = make_image(4, "{}", 0);
    pnb_npy a;
    assert_int_equal(pnb_npy_load_bytes(&a, m.bytes, m.size, NULL), PNB_UNSUPPORTED);
    m = make_image(2, "{}", 0);
    m.bytes[11] = 0xff; /* header of 4 GB */
    assert_int_equal(pnb_npy_load_bytes(&a, m.bytes, m.size, NULL), PNB_FORMAT);
}

static void truncation_at_every_byte(void **state)
{
    (void)state;
    image m = make_image(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 24);
    for (size_t n = 0; n < m.size; n++) {
        unsigned char *copy = malloc(n + 1);
        pnb_npy a;
        assert_non_null(copy);
        memcpy(copy, m.bytes, n);
        assert_int_equal(pnb_npy_load_bytes(&a, copy, n, NULL), PNB_FORMAT);
        free(copy);
    }
}

static void written_bytes_are_numpys(void **state)
{
    scratch *s = *state;
    const float values[6] = {0, 1, 2, 3, 4, 5};
    pnb_array_view a = {"x", PNB_F32, 2, {2, 3}, values, 24};
    char wanted[128 + 24], *found = NULL;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    memset(wanted, ' ', 128);
    memcpy(wanted, "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
           69);
    wanted[127] = '\n';
    memcpy(wanted + 128, values, 24);
    assert_ok(pnb_npy_save(scratch_path(s, "x.npy"), &a, &err), &err);
    assert_ok(pnb__read_file(s->path, 4096, &found, &n, &err), &err);
    assert_int_equal(n, sizeof(wanted));
    assert_memory_equal(found, wanted, n);
    pnb__free(found);
}

static void round_trips(void **state)
{
    scratch *s = *state;
    unsigned char data[48];
    pnb_error err = PNB_ERROR_INIT;
    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i % 2);
    for (int dtype = 0; dtype < PNB_N_DTYPES; dtype++) {
        for (int n_dims = 0; n_dims <= 3; n_dims++) {
            pnb_array_view a = {"x", (pnb_dtype)dtype, n_dims, {1, 2, 3}, data, 0};
            static const size_t sizes[] = {1, 1, 2, 6};
            pnb_npy b;
            a.n_bytes = sizes[n_dims] * pnb_dtype_size(a.dtype);
            if (dtype == PNB_BF16) {
                pnb_error_reset(&err);
                assert_failed(pnb_npy_save(scratch_path(s, "r.npy"), &a, &err), &err, PNB_DTYPE,
                              "BF16");
                pnb_error_reset(&err);
                continue;
            }
            assert_ok(pnb_npy_save(scratch_path(s, "r.npy"), &a, &err), &err);
            assert_ok(pnb_npy_load(&b, s->path, &err), &err);
            assert_int_equal(b.view.dtype, dtype);
            assert_int_equal(b.view.n_dims, n_dims);
            assert_memory_equal(b.view.shape, a.shape, 8 * (size_t)n_dims);
            assert_memory_equal(b.data, data, a.n_bytes);
            pnb_npy_reset(&b);
        }
    }
    pnb_array_view empty = {"x", PNB_F32, 2, {0, 5}, NULL, 0};
    pnb_npy b;
    assert_ok(pnb_npy_save(scratch_path(s, "r.npy"), &empty, &err), &err);
    assert_ok(pnb_npy_load(&b, s->path, &err), &err);
    assert_int_equal(b.view.shape[1], 5);
    pnb_npy_reset(&b);
    empty.n_bytes = 1;
    assert_failed(pnb_npy_save(s->path, &empty, &err), &err, PNB_SHAPE, "1 bytes");
}

static void missing_files(void **state)
{
    scratch *s = *state;
    pnb_npy a;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_npy_load(&a, scratch_path(s, "none.npy"), &err), &err, PNB_NOT_FOUND, "none");
    pnb_error_reset(&err);
    assert_failed(pnb_npy_load(&a, scratch_file(s, "empty.npy", "", 0), &err), &err, PNB_FORMAT,
                  "not an npy");
    pnb_npy_reset(NULL);
}

#ifdef PNB_FAULTS
static pnb_status save_and_load(scratch *s, pnb_error *err)
{
    const float values[2] = {1, 2};
    pnb_array_view a = {"x", PNB_F32, 1, {2}, values, 8};
    pnb_npy b = {0};
    pnb_status status = pnb_npy_save(scratch_path(s, "f.npy"), &a, err);
    if (status == PNB_OK)
        status = pnb_npy_load(&b, s->path, err);
    pnb_npy_reset(&b);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    fail_every_allocation(save_and_load, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_versions_and_spellings),
        cmocka_unit_test(broken_headers_are_refused),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(written_bytes_are_numpys),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(missing_files),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
