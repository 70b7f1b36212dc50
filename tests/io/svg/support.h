/* SVG of our own for the tests of this folder. */
#ifndef TESTS_IO_SVG_SUPPORT_H
#define TESTS_IO_SVG_SUPPORT_H

#include "io/svg/svg_facts.h"
#include "tests/io/scratch.h"

#define SVG_OPEN                                                                                   \
    "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "      \
    "width=\"100\" height=\"50\">"

/* Skips where the build lacks librsvg. */
static inline void need_svg(void)
{
    if (pnb__svg_check(NULL) != PNB_OK) {
        print_message("skipped: needs librsvg2-dev libxml2-dev\n");
        skip();
    }
}

static inline void read_svg(pnb__svg_facts *facts, const char *text)
{
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__svg_read(facts, text, strlen(text), &err) != PNB_OK)
        fail_msg("%s", err.text);
}

/* Why the drawing is not drawn; "" when it is. */
static inline const char *refusal_of(const char *inside)
{
    static char why[200];
    pnb__svg_facts facts;
    char *text = pnb__format("%s%s</svg>", SVG_OPEN, inside);
    read_svg(&facts, text);
    snprintf(why, sizeof why, "%s", facts.refused != NULL ? facts.refused : "");
    pnb__svg_facts_reset(&facts);
    pnb__free(text);
    return why;
}

#endif
