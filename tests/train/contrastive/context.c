/* The context of a fresh small model follows its captions, and is said before training. */
#include <math.h>

#include "penumbra/model.h"
#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

static char *path_of(const fixture *f, const char *name, const char *file)
{
    return pnb__format("%s/%s/%s", f->logs, name, file);
}

static void write_table(const char *dir, char *path, size_t size, size_t n_short, size_t n_long,
                        int long_words)
{
    char image_path[512];
    pnb_image image = {0};
    pnb__buf b = {0};
    snprintf(image_path, sizeof image_path, "%s/one.png", dir);
    snprintf(path, size, "%s/table.csv", dir);
    ASSERT_OK(pnb_image_create(&image, 16, 16, 3, &err));
    memset(image.pixels, 90, 16 * 16 * 3);
    ASSERT_OK(pnb_image_save_png(&image, image_path, &err));
    pnb_image_free(&image);
    pnb__buf_puts(&b, "filepath\ttitle\n");
    for (size_t i = 0; i < n_short + n_long; i++) {
        pnb__buf_printf(&b, "%s\t", image_path);
        for (int k = 0; k < (i < n_short ? 10 : long_words); k++)
            pnb__buf_puts(&b, k > 0 ? " word" : "word");
        pnb__buf_puts(&b, "\n");
    }
    ASSERT_OK(pnb__write_file(path, b.data, b.size, &err));
    pnb__buf_reset(&b);
}

/* The context of the table's captions, when this share of them is drawn in one of two templates. */
static pnb__context measured(const fixture *f, size_t n_short, size_t n_long, int long_words,
                             double share)
{
    static const char *const words[] = {"word word"};
    static const char *const templates[] = {"word {}", "word {c} word word"};
    pnb__templates in = {templates, share > 0 ? 2 : 0, share};
    pnb_tokenizer_opts kind = pnb_tokenizer_opts_default();
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_tokenizer *tokenizer = NULL;
    pnb_dataset *set = NULL;
    pnb__context c;
    char path[512];
    write_table(f->dir, path, sizeof path, n_short, n_long, long_words);
    opts.csv_separator = '\t';
    ASSERT_OK(pnb_tokenizer_train(&tokenizer, words, 1, &kind, &err));
    ASSERT_OK(pnb_dataset_open(&set, path, &opts, &err));
    ASSERT_OK(pnb__context_measure(set, tokenizer, &in, &c, &err));
    assert_int_equal(c.n_texts, n_short + n_long);
    pnb_dataset_free(set);
    pnb_tokenizer_free(tokenizer);
    return c;
}

static void test_percentile(void **state)
{
    static const struct {
        size_t n_short, n_long;
        int long_words, length, longest;
        double share_within;
    } cases[] = {
        {200, 0, 0, 11, 11, 1},    {198, 2, 60, 11, 61, 0.99}, {197, 3, 60, 61, 61, 1},
        {100, 100, 75, 76, 76, 1}, {100, 100, 76, 77, 77, 1},  {100, 100, 90, 77, 91, 0.5},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__context c =
            measured(*state, cases[i].n_short, cases[i].n_long, cases[i].long_words, 0);
        assert_int_equal(c.length, cases[i].length);
        assert_int_equal(c.longest, cases[i].longest);
        assert_true(fabs(c.share_within - cases[i].share_within) <= 1e-12);
    }
}

/* 11 tokens bare, 12 in one template and 14 in the other: what is drawn less often than once in a
 * hundred may be cut, nothing else. */
static void test_templates_count(void **state)
{
    static const struct {
        double share;
        int length;
        double share_within;
    } cases[] = {{0.3, 14, 1}, {1, 14, 1}, {0.019, 12, 0.9905}, {0.009, 11, 0.991}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__context c = measured(*state, 200, 0, 0, cases[i].share);
        assert_int_equal(c.length, cases[i].length);
        assert_int_equal(c.longest, 14);
        assert_true(fabs(c.share_within - cases[i].share_within) <= 1e-12);
    }
}

/* Trains a step of `tiny` on captions of 10 words and returns the context of what was saved; the
 * longest of the built-in templates adds four. */
static size_t trained_context(const fixture *f, const char *name, int force, const char *overrides,
                              const char *says)
{
    char path[512];
    pnb_train_opts o = fixture_opts(f, name);
    pnb_train_result r;
    pnb_model *model = NULL;
    write_table(f->dir, path, sizeof path, 8, 0, 0);
    o.model = "tiny";
    o.train_data = path;
    o.val_data = NULL;
    o.batch_size = 4;
    o.epochs = 1;
    o.tokenizer = NULL;
    o.tokenizer_kind = PNB_TOKENIZER_WORD;
    o.force_context_length = force;
    o.config_overrides = overrides;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    char *log_path = path_of(f, name, "out.log"), *log = NULL;
    size_t size = 0;
    ASSERT_OK(pnb__read_file(log_path, 1 << 20, &log, &size, &err));
    const char *said = strstr(log, "Context: "), *start = strstr(log, "Starting at step");
    assert_non_null(start);
    assert_true((said != NULL) == (says != NULL));
    if (says != NULL) {
        assert_true(said < start);
        assert_non_null(strstr(log, says));
    }
    pnb__free(log);
    pnb__free(log_path);
    char *dir = path_of(f, name, "checkpoints/latest");
    ASSERT_OK(pnb_model_load(&model, f->ctx, dir, &err));
    size_t length = pnb_model_get_info(model)->text.context_length;
    pnb_model_free(model);
    pnb__free(dir);
    return length;
}

static void test_tiny_takes_it(void **state)
{
    const fixture *f = *state;
    assert_int_equal(
        trained_context(f, "context_data", 0, NULL, "Context: 15 tokens, which 100.00%"), 15);
    assert_int_equal(trained_context(f, "context_forced", 9, NULL, NULL), 9);
    assert_int_equal(
        trained_context(f, "context_named", 0, "{\"text_cfg\": {\"context_length\": 20}}", NULL),
        20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentile),
        cmocka_unit_test(test_templates_count),
        cmocka_unit_test(test_tiny_takes_it),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
