/* Times as people write them: read, written, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/common/rows/row_filter.h"

static void times_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_end;
        int64_t wanted;
    } cases[] = {{"1970-01-01", false, 0},
                 {"1970-01-01", true, 86399},
                 {"2000-02-29T12:30:15", false, 951827415},
                 {"2000-02-29 12:30:15Z", true, 951827415},
                 {"2024-12-31", false, 1735603200},
                 {"1969-12-31T23:59:59Z", false, -1},
                 {"-5", false, -5},
                 {"1717171717", true, 1717171717}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        int64_t found = 0;
        assert_true(pnb__time_read(cases[i].text, cases[i].is_end, &found));
        assert_int_equal(found, cases[i].wanted);
    }
}

static void no_times(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "yesterday",
                                        "2023-02-29",
                                        "2024-04-31",
                                        "2024-13-01",
                                        "2024-00-10",
                                        "2024-01-01T25:00:00",
                                        "2024-01-01T10:00",
                                        "2024-01-01x",
                                        "2024-01-01T10:00:00+02",
                                        "1.5"};
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        int64_t found = 7;
        assert_false(pnb__time_read(texts[i], false, &found));
    }
}

/* Every day of 140 years, and what is read of what was written. */
static void there_and_back(void **state)
{
    (void)state;
    for (int64_t t = -2208988800; t < 2208988800; t += 86399) {
        char text[32];
        int64_t back = 0;
        pnb__time_text(t, text);
        assert_true(pnb__time_read(text, false, &back));
        assert_int_equal(back, t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_read), cmocka_unit_test(no_times),
                                       cmocka_unit_test(there_and_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
