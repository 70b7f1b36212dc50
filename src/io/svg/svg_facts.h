/* What an SVG says about itself, and what drawing it would cost, read before anything is drawn.
 *
 * Drawings come from strangers, and librsvg cannot be stopped once it draws: ten groups of ten
 * references each are 10^10 rectangles, a filter on each of them takes hours. So the references are
 * counted out first, and what has no bound that can be told is not drawn at all. */
#ifndef PNB_IO_SVG_SVG_FACTS_H
#define PNB_IO_SVG_SVG_FACTS_H

#include "base/base.h"

enum {
    PNB__SVG_MAX_BYTES = 8 << 20,
    PNB__SVG_MAX_ELEMENTS = 100000,
    PNB__SVG_MAX_COST = 100000, /* elements drawn, every reference followed */
    PNB__SVG_MAX_TEXT = 4096    /* bytes of a text of the metadata; the rest is cut */
};

/* Texts are of the first rdf Work inside of `metadata`, white space collapsed; NULL where absent.
 */
typedef struct pnb__svg_facts {
    char *title, *description, *language, *creator;
    char **subjects; /* [n_subjects] dc:subject, one rdf:li each */
    size_t n_subjects, n_elements;
    double cost; /* elements drawn, with all that is referred to; infinite for circles */
    /* Why it must not be drawn: what looks different on another machine (text), is decoded without
     * a bound (pictures inside), or costs what cannot be told before. NULL: it may be drawn. */
    const char *refused;
    bool is_incomplete; /* it links to a picture in another file: whoever draws it draws a gap */
} pnb__svg_facts;

/* UNSUPPORTED where the build lacks librsvg and libxml2, or the machine does: the text says what to
 * install. */
pnb_status pnb__svg_check(pnb_error *err);

/* Reads a file of n bytes. Entities are not expanded in texts, nothing outside is fetched. Free
 * with reset; on failure *facts is empty.
 * Errors  FORMAT (no XML, no svg, damaged), LIMIT (bytes, elements), UNSUPPORTED, NOMEM */
pnb_status pnb__svg_read(pnb__svg_facts *facts, const char *bytes, size_t n, pnb_error *err);
void pnb__svg_facts_reset(pnb__svg_facts *facts);

#endif
