/* Names of results: every word in its braces, slashes that would be folders, what is no word. */
#include "program/output_name.h"

#include "tests/data/fixture.h"

static const pnb__output_words words = {.dataset = "wds/cifar10",
                                        .pretrained = "/a/b",
                                        .model = "ViT-B-16",
                                        .language = "en",
                                        .task = ""};

static void test_names(void **state)
{
    static const char *const pairs[][2] = {{"plain.json", "plain.json"},
                                           {"out/{dataset}_{pretrained}_{model}_{language}.json",
                                            "out/wds_cifar10__a_b_ViT-B-16_en.json"},
                                           {"{model}{model}", "ViT-B-16ViT-B-16"},
                                           {"{language", "{language"}, /* no end: no word */
                                           {"}{language}{", "}en{"},
                                           {"x{task}y", "xy"},
                                           {"{task}", ""},
                                           {"", ""}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(pairs); i++) {
        char *name = NULL;
        ASSERT_OK(pnb__output_name(&name, pairs[i][0], &words, &err));
        assert_string_equal(name, pairs[i][1]);
        pnb__free(name);
    }
}

static void test_unknown_words(void **state)
{
    static const char *const pairs[][2] = {{"{datasets}.json", "{datasets} is unknown"},
                                           {"{data}", "{data} is unknown"},
                                           {"{}", "{} is unknown"},
                                           {"{model}{a {model}", "{a {model} is unknown"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(pairs); i++) {
        pnb_error err = PNB_ERROR_INIT;
        char *name = (char *)(uintptr_t) "left from before";
        assert_int_equal(pnb__output_name(&name, pairs[i][0], &words, &err), PNB_ARG);
        assert_non_null(strstr(err.text, pairs[i][1]));
        assert_non_null(strstr(err.text, "known are {dataset}, {pretrained}, {model}, {language}, "
                                         "{task}"));
        assert_null(name);
    }
}

#ifdef PNB_FAULTS
static void test_no_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        char *name = NULL;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__output_name(&name, "{dataset}", &words, NULL);
        pnb__alloc_fail_after(-1);
        assert_int_equal(status == PNB_OK, name != NULL);
        pnb__free(name);
        if (status == PNB_OK) {
            assert_true(n > 1);
            break;
        }
        assert_int_equal(status, PNB_NOMEM);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown_words),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
