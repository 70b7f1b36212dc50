/* Texts and what cleaning makes of them. */
#ifndef TESTS_TOKENIZER_CLEAN_SUPPORT_H
#define TESTS_TOKENIZER_CLEAN_SUPPORT_H

#include "tests/tokenizer/support.h"
#include "tokenizer/clean/html_unescape.h"

typedef struct clean_case {
    const char *text, *want;
} clean_case;

static inline void expect_clean(pnb_clean clean, const clean_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *got;
        size_t n_got;
        assert_int_equal(
            pnb_clean_text(clean, cases[i].text, strlen(cases[i].text), &got, &n_got, NULL),
            PNB_OK);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("case %zu \"%s\": \"%s\", want \"%s\"", i, cases[i].text, got, cases[i].want);
        assert_int_equal(n_got, strlen(got));
        pnb_text_free(got);
    }
}

#endif
