/* Any bytes as a caption and as an answer: rules decide or refuse, counts fit together, and an
 * answer in its one form stays as it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "eval/curation/text_words.h"
#include "penumbra/filter.h"
#include "penumbra/vqa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(const char *text)
{
    pnb__text_words w = {0};
    if (pnb__text_words_read(&w, text, NULL) == PNB_OK) {
        size_t n = strlen(text), in_scripts = 0;
        for (int i = 0; i < PNB_N_SCRIPTS; i++)
            in_scripts += w.of_script[i];
        if (w.n_words > w.n_chars || w.n_chars > n || w.n_visible > w.n_chars ||
            w.n_ascii > w.n_visible || w.n_letters > w.n_visible || in_scripts > w.n_letters)
            abort();
        for (size_t i = 0; i < w.n_words; i++)
            if (w.word[i].begin >= w.word[i].end || w.word[i].end > w.text.size ||
                (i > 0 && w.word[i].begin != w.word[i - 1].end + 1))
                abort();
        if (pnb__text_words_distinct(&w) > w.n_words)
            abort();
    }
    pnb__text_words_reset(&w);
}

static void check_rules(const char *text)
{
    static const char *const blocked[] = {"stock photo", "a b c"};
    const pnb_text_rules_opts opts = {.min_words = 2,
                                      .max_chars = 200,
                                      .min_ascii = 0.5,
                                      .min_script = 0.5,
                                      .max_repeated = 0.5,
                                      .needs_letter = true,
                                      .match = "[a-z]",
                                      .blocked = blocked,
                                      .n_blocked = 2};
    pnb_text_rules *rules = NULL;
    uint32_t failed = 0;
    if (pnb_text_rules_create(&rules, &opts, NULL) == PNB_OK &&
        pnb_text_rules_check(rules, text, &failed, NULL) != PNB_OK && failed != 0)
        abort();
    pnb_text_rules_free(rules);
}

static void check_answer(const char *answer)
{
    char *once = NULL, *twice = NULL;
    if (pnb_vqa_normalise(&once, answer, NULL) == PNB_OK &&
        pnb_vqa_normalise(&twice, once, NULL) == PNB_OK && strlen(twice) > strlen(once))
        abort();
    pnb_vqa_text_free(once);
    pnb_vqa_text_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_words(text);
    check_rules(text);
    check_answer(text);
    free(text);
    return 0;
}
