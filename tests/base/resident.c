/* Memory that was touched is counted, and its peak stays when it is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/resident.h"

enum { BYTES = 64 << 20 };

static void touched_pages_count(void **state)
{
    (void)state;
    pnb__resident before, with, after;
    assert_true(pnb__resident_bytes(&before));
    assert_true(before.now <= before.peak);
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 1, BYTES);
    assert_true(pnb__resident_bytes(&with));
    munmap(p, BYTES);
    assert_true(pnb__resident_bytes(&after));
    /* the kernel counts in strides of some pages a thread */
    assert_true(with.now >= before.now + BYTES - (1 << 20));
    assert_true(after.now <= with.now - BYTES + (1 << 20));
    assert_true(after.peak >= with.now - (1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(touched_pages_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
