/* Any bytes as an SVG: reading ends, texts are UTF-8 within the limit, a cost is a number, and what
 * nothing was found against is drawn, or refused with words. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/svg/svg_draw.h"
#include "io/svg/svg_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    if (text != NULL && (text[0] == '\0' || strlen(text) > PNB__SVG_MAX_TEXT ||
                         !pnb__utf8_valid(text, strlen(text))))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__svg_facts facts;
    pnb_image image = {0};
    pnb_error err = PNB_ERROR_INIT;
    const char *bytes = (const char *)data;
    if (pnb__svg_read(&facts, bytes, size, &err) != PNB_OK) {
        if (err.text[0] == '\0' || facts.title != NULL)
            abort();
        return 0;
    }
    check_text(facts.title);
    check_text(facts.description);
    check_text(facts.language);
    check_text(facts.creator);
    for (size_t i = 0; i < facts.n_subjects; i++)
        check_text(facts.subjects[i]);
    if (isnan(facts.cost) || facts.cost < 1)
        abort();
    if (facts.refused == NULL && pnb__svg_draw(&image, bytes, size, 16, NULL, &err) != PNB_OK &&
        err.text[0] == '\0')
        abort();
    pnb_image_free(&image);
    pnb__svg_facts_reset(&facts);
    return 0;
}
