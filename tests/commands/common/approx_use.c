/* The words of --approx are the kinds of index, and nothing is an exact search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/common/approx_use.h"

static void kinds(void **state)
{
    (void)state;
    for (int i = 0; i < PNB_N_INDEX_KINDS; i++)
        assert_int_equal(pnb__search_kind(pnb_index_kind_name((pnb_index_kind)i)), i);
    assert_int_equal(pnb__search_kind(NULL), PNB_INDEX_EXACT);
    assert_int_equal(pnb__search_kind("hnsw"), PNB_INDEX_HNSW);
    assert_null(pnb_index_kind_name(PNB_N_INDEX_KINDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
