/* What the next member of an archive must be. */
#ifndef TESTS_IO_TABLES_TAR_MEMBERS_H
#define TESTS_IO_TABLES_TAR_MEMBERS_H

#include "io/tables/tar.h"
#include "tests/io/scratch.h"

enum { BLOCK = 512 };

static inline void expect_member(pnb__tar *t, const char *name, const void *data, size_t n,
                                 uint64_t header_offset)
{
    pnb__tar_member m;
    bool more = false;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_next(t, &m, &more, &err), &err);
    assert_true(more);
    assert_string_equal(m.name, name);
    assert_int_equal(m.size, n);
    assert_int_equal(m.header_offset, header_offset);
    if (n > 0) {
        assert_memory_equal(m.data, data, n);
        assert_ptr_equal(m.data, t->bytes + m.data_offset);
    }
}

static inline void expect_end(pnb__tar *t)
{
    pnb__tar_member m;
    bool more = true;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_next(t, &m, &more, &err), &err);
    assert_false(more);
}

#endif
