/* The table of families: a row for each word of the list, in its order, each with a name of its own
 * and at least one tower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "models/tower.h"

static void rows_are_those_of_the_list(void **state)
{
    (void)state;
#define NAME_OF(NAME, word) #word,
    static const char *const words[] = {PNB__MODEL_FAMILY_LIST(NAME_OF)};
#undef NAME_OF
    assert_int_equal(pnb__n_model_families, PNB_COUNT(words));
    for (size_t i = 0; i < PNB_COUNT(words); i++) {
        const pnb__family_calls *f = pnb__model_families[i];
        assert_string_equal(f->name, words[i]);
        assert_true(f->image != NULL || f->text != NULL);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(f->name, pnb__model_families[k]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_those_of_the_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
