/* Names of result files such as {dataset}_{pretrained}_{model}_{language}_{task}.json, so that a
 * loop over models and data sets leaves one file each. A slash in a value would be a folder and
 * becomes an underscore. */
#include "program/output_name.h"

#include <string.h>

#include "base/base.h"

static pnb_status add_word(pnb__buf *name, const char *key, size_t n,
                           const pnb__output_words *words, pnb_error *err)
{
    const char *const known[][2] = {{"dataset", words->dataset},
                                    {"pretrained", words->pretrained},
                                    {"model", words->model},
                                    {"language", words->language},
                                    {"task", words->task}};
    for (size_t i = 0; i < PNB_COUNT(known); i++) {
        if (strlen(known[i][0]) != n || memcmp(known[i][0], key, n) != 0)
            continue;
        for (const char *c = known[i][1]; *c != '\0'; c++)
            pnb__buf_putc(name, *c == '/' ? '_' : *c);
        return PNB_OK;
    }
    return pnb__fail(err, PNB_ARG,
                     "--output: {%.*s} is unknown; known are {dataset}, {pretrained}, {model}, "
                     "{language}, {task}",
                     (int)n, key);
}

pnb_status pnb__output_name(char **out, const char *pattern, const pnb__output_words *words,
                            pnb_error *err)
{
    pnb__buf name = {0};
    pnb_status status = PNB_OK;
    *out = NULL;
    pnb__buf_puts(&name, ""); /* a name of nothing is a name, too */
    while (*pattern != '\0') {
        const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
        if (end == NULL) {
            pnb__buf_putc(&name, *pattern++);
            continue;
        }
        PNB_TRY(add_word(&name, pattern + 1, (size_t)(end - pattern - 1), words, err));
        pattern = end + 1;
    }
    if (!name.failed && name.data != NULL)
        *out = pnb__strdup(name.data);
    if (*out == NULL)
        status = pnb__fail_nomem(err, name.size);
done:
    pnb__buf_reset(&name);
    return status;
}
