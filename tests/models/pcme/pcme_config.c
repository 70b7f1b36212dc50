/* Settings that make a model, and those that are refused with the rule they break. */
#include "tests/models/pcme/drawn.h"

static void refused(pnb__pcme_config c, const char *words)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__pcme_config_check(&c, "config.json", &err), PNB_ARG);
    if (strstr(err.text, words) == NULL || strstr(err.text, "config.json: ") != err.text)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_check(void **state)
{
    (void)state;
    pnb__pcme_config c = small;
    assert_int_equal(pnb__pcme_config_check(&c, "", NULL), PNB_OK);
    c = small, c.embed_dim = 2; /* the toy of two dimensions */
    assert_int_equal(pnb__pcme_config_check(&c, "", NULL), PNB_OK);
    c = small, c.embed_dim = 7;
    refused(c, "embed_dim is 7; each direction of the GRU has half of it");
    c = small, c.embed_dim = 0;
    refused(c, "embed_dim is 0");
    c = small, c.word_dim = 1;
    refused(c, "word vectors of 1 and features of 10 numbers");
    c = small, c.vocab_size = 1;
    refused(c, "a vocabulary of 1 words");
    c = small, c.n_embeddings = 0;
    refused(c, "n_embeddings is 0");
}

/* PVSE has K embeddings and no uncertainty, VSE neither attention nor uncertainty. */
static void test_baselines(void **state)
{
    (void)state;
    pnb__pcme_config pvse = small, vse = small;
    pvse.n_embeddings = 4, pvse.with_uncertainty = false;
    vse.with_attention = vse.with_uncertainty = false;
    assert_int_equal(pnb__pcme_config_check(&pvse, "", NULL), PNB_OK);
    assert_int_equal(pnb__pcme_config_check(&vse, "", NULL), PNB_OK);
    pvse.with_uncertainty = true;
    refused(pvse, "4 embeddings come from as many heads of attention, and have no uncertainty");
    vse.n_embeddings = 2;
    refused(vse, "2 embeddings");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check),
                                       cmocka_unit_test(test_baselines)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
