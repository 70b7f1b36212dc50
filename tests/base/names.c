/* Names of choices: by place, back again, and what is said of a name that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/names.h"

#define FRUIT_LIST(X)                                                                              \
    X(APPLE, "apple", "grows on trees")                                                            \
    X(PEAR, "pear", "grows on trees too")                                                          \
    X(PEA, "pea", "does not")

typedef enum fruit {
#define FRUIT_ENUM(name, text, sentence) FRUIT_##name,
    FRUIT_LIST(FRUIT_ENUM)
#undef FRUIT_ENUM
        N_FRUITS
} fruit;

#define TOOL_LIST(X) X(SAW, saw) X(AXE, axe)

static void places_have_names(void **state)
{
    (void)state;
    assert_string_equal(pnb__name_at(PNB_NAMES(FRUIT_LIST), FRUIT_APPLE, "?"), "apple");
    assert_string_equal(pnb__name_at(PNB_NAMES(FRUIT_LIST), FRUIT_PEA, "?"), "pea");
    assert_string_equal(pnb__name_at(PNB_SENTENCES(FRUIT_LIST), FRUIT_PEAR, "?"),
                        "grows on trees too");
    assert_string_equal(pnb__name_at(PNB_NAMES_OF_IDENTS(TOOL_LIST), 1, "?"), "axe");
}

static void outside_the_list_there_is_none(void **state)
{
    (void)state;
    assert_string_equal(pnb__name_at(PNB_NAMES(FRUIT_LIST), N_FRUITS, "?"), "?");
    assert_string_equal(pnb__name_at(PNB_NAMES(FRUIT_LIST), (unsigned)-1, "?"), "?");
    assert_null(pnb__name_at(PNB_NAMES_OF_IDENTS(TOOL_LIST), 2, NULL));
    assert_null(pnb__name_at("", 0, NULL));
}

static void a_name_is_read(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    for (unsigned i = 0; i < N_FRUITS; i++) {
        fruit out = N_FRUITS;
        const char *name = pnb__name_at(PNB_NAMES(FRUIT_LIST), i, "?");
        assert_int_equal(pnb__name_choose(&out, "fruit", PNB_NAMES(FRUIT_LIST), name, &err),
                         PNB_OK);
        assert_int_equal(out, i);
    }
}

static void a_stranger_is_told_the_choices(void **state)
{
    (void)state;
    static const char *const strangers[] = {"", "appl", "apples", "Apple", "pe", "plum"};
    for (size_t i = 0; i < PNB_COUNT(strangers); i++) {
        fruit out = FRUIT_PEAR;
        pnb_error err = PNB_ERROR_INIT;
        char wanted[128];
        assert_int_equal(pnb__name_choose(&out, "fruit", PNB_NAMES(FRUIT_LIST), strangers[i], &err),
                         PNB_NOT_FOUND);
        snprintf(wanted, sizeof wanted, "fruit '%s' is unknown; known are apple, pear, pea",
                 strangers[i]);
        assert_string_equal(err.text, wanted);
        assert_int_equal(out, FRUIT_PEAR);
    }
    fruit out = FRUIT_PEAR;
    assert_int_equal(pnb__name_choose(&out, "fruit", PNB_NAMES(FRUIT_LIST), "plum", NULL),
                     PNB_NOT_FOUND);
}

static void long_lists_and_names_are_cut(void **state)
{
    (void)state;
    char names[2048], name[512];
    pnb_error err = PNB_ERROR_INIT;
    fruit out = FRUIT_APPLE;
    memset(names, 'n', sizeof names);
    memset(name, 'x', sizeof name);
    for (size_t i = 99; i < sizeof names; i += 100)
        names[i] = '\0';
    names[sizeof names - 2] = names[sizeof names - 1] = '\0';
    name[sizeof name - 1] = '\0';
    assert_int_equal(pnb__name_choose(&out, "word", names, name, &err), PNB_NOT_FOUND);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(strspn(err.text + 6, "x"), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_have_names),
        cmocka_unit_test(outside_the_list_there_is_none),
        cmocka_unit_test(a_name_is_read),
        cmocka_unit_test(a_stranger_is_told_the_choices),
        cmocka_unit_test(long_lists_and_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
