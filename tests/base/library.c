/* A library that is opened late: its functions are there, and what is missing is named with its
 * package. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/library.h"

#define FUNCTIONS(X) X(cos) X(sqrt)

typedef struct maths {
    void *handle;
    FUNCTIONS(PNB__LIBRARY_FIELD)
} maths;

static void opens_and_fills(void **state)
{
    (void)state;
    static const pnb__library library = {"libm.so.6", "libc6", "nothing is counted", false};
    maths found = {0}, *lib = &found;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(PNB_OK, PNB__LIBRARY_OPEN(&lib->handle, &library, FUNCTIONS, &err));
    assert_non_null(lib->handle);
    assert_true(lib->sqrt(9.0) == 3.0);
    assert_true(lib->cos(0.0) == 1.0);
    dlclose(lib->handle);
}

static void names_what_is_missing(void **state)
{
    (void)state;
    static const pnb__library none = {"libpnb_none.so.7", "libpnb7", "no nothing", false};
    static const pnb__library other = {"libm.so.6", "libc6", "no nothing", false};
    static const char *const wrong[] = {"cos", "pnb_no_such_function"};
    maths found = {0}, *lib = &found;
    void *const places[] = {FUNCTIONS(PNB__LIBRARY_PLACE)};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(PNB_UNSUPPORTED, PNB__LIBRARY_OPEN(&lib->handle, &none, FUNCTIONS, &err));
    assert_null(lib->handle);
    assert_string_equal(
        err.text, "no nothing: libpnb_none.so.7: cannot open shared object file: No such file "
                  "or directory; apt-get install libpnb7");
    err = (pnb_error)PNB_ERROR_INIT; /* which keeps the first */
    assert_int_equal(PNB_UNSUPPORTED,
                     pnb__library_open(&lib->handle, &other, wrong, places, 2, &err));
    assert_null(lib->handle);
    assert_non_null(strstr(err.text, "pnb_no_such_function"));
    assert_non_null(strstr(err.text, "; apt-get install libc6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_and_fills),
        cmocka_unit_test(names_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
