/* Any bytes as the text of a stamp: what is read is UTF-8, each language comes once, English first.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/stamp_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__stamp_text text;
    pnb_error err = PNB_ERROR_INIT;
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\0';
    if (pnb__stamp_text_parse(&text, copy, size, "stamp.txt", &err) != PNB_OK) {
        if (err.text[0] == '\0' || text.lines != NULL)
            abort();
        free(copy);
        return 0;
    }
    if (text.n == 0 || strcmp(text.lines[0].language, "en") != 0)
        abort();
    for (size_t i = 0; i < text.n; i++)
        if (text.lines[i].text[0] == '\0' ||
            !pnb__utf8_valid(text.lines[i].text, strlen(text.lines[i].text)) ||
            pnb__stamp_text_in(&text, text.lines[i].language) != text.lines[i].text)
            abort();
    pnb__stamp_text_free(&text);
    free(copy);
    return 0;
}
