/* SVG by libxml2's reader: one element at a time, no tree, no network, no files, no entities in
 * texts, libxml2's own limits (256 levels, 10 MB of a text, expansion of entities) left as they
 * are.
 *
 * Metadata is RDF inside of `metadata`: <rdf:RDF><cc:Work><dc:title>..., with dc:subject as a bag
 * of rdf:li. A dc:title inside of a dc:creator is the name of the creator, so fields are the
 * elements directly below the Work. What would be drawn is weighed on the way (svg_cost.h). */
#include "io/svg/svg_facts.h"

#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "io/svg/svg_cost.h"

void pnb__svg_facts_reset(pnb__svg_facts *facts)
{
    pnb__free(facts->title);
    pnb__free(facts->description);
    pnb__free(facts->language);
    pnb__free(facts->creator);
    for (size_t i = 0; i < facts->n_subjects; i++)
        pnb__free(facts->subjects[i]);
    pnb__free(facts->subjects);
    *facts = (pnb__svg_facts){0};
}

#ifndef PNB_HAVE_RSVG

pnb_status pnb__svg_check(pnb_error *err)
{
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "SVG is not read: this build lacks librsvg and libxml2 (apt-get install "
                     "librsvg2-dev libxml2-dev, then build again)");
}

pnb_status pnb__svg_read(pnb__svg_facts *facts, const char *bytes, size_t n, pnb_error *err)
{
    (void)bytes;
    (void)n;
    *facts = (pnb__svg_facts){0};
    return pnb__svg_check(err);
}

#else

#include <libxml/xmlreader.h>

#include "io/svg/svg_library.h"

static const char SVG_SPACE[] = "http://www.w3.org/2000/svg";
static const char DC_SPACE[] = "http://purl.org/dc/elements/1.1/";

/* One weighs as much as so many elements: a filter and a mask are surfaces of their own. */
enum { SURFACE_WEIGHT = 20, BYTES_A_UNIT = 256, BYTES_A_VERTEX = 4 };

/* Elements that are not drawn, and why. */
static const struct refusal {
    const char *name, *why;
} refusals[] = {
    {"image", "it has a picture inside"},
    {"feImage", "it has a picture inside"},
    {"feTurbulence", "it has a filter without a bound (feTurbulence)"},
    {"feConvolveMatrix", "it has a filter without a bound (feConvolveMatrix)"},
    {"feMorphology", "it has a filter without a bound (feMorphology)"},
};

typedef struct reading {
    const pnb__xml_library *xml;
    xmlTextReaderPtr reader;
    pnb__svg_facts *facts;
    pnb__svg_tree tree;
    size_t open[260]; /* by depth: the element that is open, SIZE_MAX outside of what is drawn */
    int metadata_depth, work_depth, field_depth, style_depth, text_depth; /* -1: not inside */
    bool had_work, is_image;  /* the element at hand is a picture inside */
    bool is_out_of_memory;    /* libxml2 is */
    pnb__buf *field, subject; /* where texts go; NULL nowhere */
    pnb__buf title, description, language, creator;
} reading;

static const char *text_of(const xmlChar *text)
{
    return text != NULL ? (const char *)text : "";
}

/* ---- what is drawn ---- */

static bool is_other_file(const char *href)
{
    href += strspn(href, " \t\r\n");
    return *href != '\0' && *href != '#' && !pnb__starts_with(href, "data:");
}

static pnb_status weigh_attribute(reading *r, size_t node, const char *name, const char *value,
                                  size_t n_bytes, pnb_error *err)
{
    pnb__svg_node *own = &r->tree.nodes[node];
    size_t n = strlen(value);
    if (!strcmp(name, "id"))
        own->id = pnb__svg_id(value, n);
    r->facts->is_incomplete |= r->is_image && !strcmp(name, "href") && is_other_file(value);
    own->weight += (double)n / BYTES_A_UNIT;
    if (!strcmp(name, "filter") || !strcmp(name, "mask") || strstr(value, "filter:") != NULL ||
        strstr(value, "mask:") != NULL)
        own->weight += SURFACE_WEIGHT;
    /* A marker comes once a vertex; a vertex has two numbers of two bytes at least. */
    bool is_marked = pnb__starts_with(name, "marker") || strstr(value, "marker") != NULL;
    return pnb__svg_links_of(&r->tree, node, value, !strcmp(name, "href"),
                             is_marked ? 1 + (double)n_bytes / BYTES_A_VERTEX : 1, err);
}

static pnb_status weigh_attributes(reading *r, size_t node, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_bytes = 0;
    for (int pass = 0; pass < 2 && status == PNB_OK; pass++) {
        int more = r->xml->xmlTextReaderMoveToFirstAttribute(r->reader);
        for (; more == 1 && status == PNB_OK;
             more = r->xml->xmlTextReaderMoveToNextAttribute(r->reader)) {
            const char *value = text_of(r->xml->xmlTextReaderConstValue(r->reader));
            if (pass == 0)
                n_bytes += strlen(value);
            else
                status = weigh_attribute(r, node,
                                         text_of(r->xml->xmlTextReaderConstLocalName(r->reader)),
                                         value, n_bytes, err);
        }
    }
    r->xml->xmlTextReaderMoveToElement(r->reader);
    return status;
}

static pnb_status add_drawn(reading *r, int depth, const char *name, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(refusals); i++)
        if (!r->facts->refused && !strcmp(name, refusals[i].name))
            r->facts->refused = refusals[i].why;
    size_t parent = depth > 0 ? r->open[depth - 1] : SIZE_MAX, node = r->tree.n_nodes;
    PNB_TRY(PNB_PUSH(r->tree.nodes, r->tree.n_nodes, err,
                     (pnb__svg_node){.parent = parent, .weight = 1}));
    r->open[depth] = node;
    r->is_image = !strcmp(name, "image");
    if (!strcmp(name, "style"))
        r->style_depth = depth;
    if (!strcmp(name, "text") && r->text_depth < 0)
        r->text_depth = depth;
    status = weigh_attributes(r, node, err);
done:
    return status;
}

/* A style sheet may put a filter on any element: its references are not followed, so it has none.
 */
static void look_at_style(reading *r, const char *text)
{
    if (strstr(text, "url") != NULL || strstr(text, "@import") != NULL ||
        strstr(text, "filter") != NULL)
        r->facts->refused = "its style sheet refers to other things";
}

/* ---- metadata ---- */

/* Appends with white space collapsed, at most PNB__SVG_MAX_TEXT bytes, cut before a whole letter.
 */
static void append_text(pnb__buf *b, const char *text)
{
    for (const char *p = text; *p;) {
        uint32_t point;
        size_t n = pnb__utf8_decode(p, strlen(p) < 4 ? strlen(p) : 4, &point);
        if (n == 0 || b->size + n + 1 > PNB__SVG_MAX_TEXT)
            return;
        if (strchr(" \t\r\n", *p) != NULL) {
            if (b->size > 0 && b->data[b->size - 1] != ' ')
                pnb__buf_putc(b, ' ');
        } else {
            pnb__buf_append(b, p, n);
        }
        p += n;
    }
}

static void start_field(reading *r, int depth, const char *name)
{
    static const char *const names[] = {"title", "description", "language", "creator", "subject"};
    pnb__buf *const buffers[] = {&r->title, &r->description, &r->language, &r->creator,
                                 &r->subject};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        if (!strcmp(name, names[i])) {
            r->field = buffers[i];
            r->field_depth = depth;
        }
}

static pnb_status end_subject(reading *r, pnb_error *err)
{
    pnb_status status = pnb__buf_check(&r->subject, err);
    size_t n = r->subject.size;
    while (n > 0 && r->subject.data[n - 1] == ' ')
        n--;
    if (status == PNB_OK && n > 0) {
        char *copy = pnb__strndup(r->subject.data, n);
        status = copy == NULL ? pnb__fail_nomem(err, n)
                              : PNB_PUSH(r->facts->subjects, r->facts->n_subjects, err, copy);
        if (status != PNB_OK)
            pnb__free(copy);
    }
    r->subject.size = 0;
    return status;
}

static pnb_status start_metadata(reading *r, int depth, const char *name, const char *space,
                                 pnb_error *err)
{
    if (r->work_depth < 0 && !r->had_work && !strcmp(name, "Work"))
        r->work_depth = depth;
    else if (r->work_depth >= 0 && depth == r->work_depth + 1 && !strcmp(space, DC_SPACE))
        start_field(r, depth, name);
    else if (r->field == &r->subject && !strcmp(name, "li"))
        return end_subject(r, err); /* what stood before the first li */
    return PNB_OK;
}

/* ---- the file ---- */

static pnb_status start_element(reading *r, int depth, pnb_error *err)
{
    const char *name = text_of(r->xml->xmlTextReaderConstLocalName(r->reader));
    const char *space = text_of(r->xml->xmlTextReaderConstNamespaceUri(r->reader));
    bool is_svg = space[0] == '\0' || !strcmp(space, SVG_SPACE);
    if (++r->facts->n_elements > PNB__SVG_MAX_ELEMENTS)
        return pnb__fail(err, PNB_LIMIT, "SVG: more than %d elements", (int)PNB__SVG_MAX_ELEMENTS);
    if (depth == 0 && (!is_svg || strcmp(name, "svg") != 0))
        return pnb__fail(err, PNB_FORMAT, "SVG: the first element is '%.40s', not svg", name);
    r->open[depth] = SIZE_MAX;
    if (r->metadata_depth >= 0)
        return start_metadata(r, depth, name, space, err);
    if (is_svg && !strcmp(name, "metadata"))
        r->metadata_depth = depth;
    else if (is_svg && (depth == 0 || r->open[depth - 1] != SIZE_MAX))
        return add_drawn(r, depth, name, err);
    return PNB_OK;
}

static pnb_status end_element(reading *r, int depth, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (r->field == &r->subject &&
        !strcmp(text_of(r->xml->xmlTextReaderConstLocalName(r->reader)), "li"))
        status = end_subject(r, err);
    if (depth == r->field_depth) {
        if (status == PNB_OK && r->field == &r->subject)
            status = end_subject(r, err);
        r->field = NULL;
        r->field_depth = -1;
    }
    if (depth == r->work_depth) {
        r->had_work = true;
        r->work_depth = -1;
    }
    if (depth == r->metadata_depth)
        r->metadata_depth = -1;
    if (depth == r->style_depth)
        r->style_depth = -1;
    if (depth == r->text_depth)
        r->text_depth = -1;
    return status;
}

static pnb_status take_node(reading *r, pnb_error *err)
{
    int kind = r->xml->xmlTextReaderNodeType(r->reader);
    int depth = r->xml->xmlTextReaderDepth(r->reader);
    const char *text = NULL;
    if (depth < 0 || depth >= (int)PNB_COUNT(r->open))
        return pnb__fail(err, PNB_LIMIT, "SVG: nested more than %d deep", (int)PNB_COUNT(r->open));
    if (kind == XML_READER_TYPE_ELEMENT) {
        bool is_empty = r->xml->xmlTextReaderIsEmptyElement(r->reader) == 1;
        pnb_status status = start_element(r, depth, err);
        return status == PNB_OK && is_empty ? end_element(r, depth, err) : status;
    }
    if (kind == XML_READER_TYPE_END_ELEMENT)
        return end_element(r, depth, err);
    if (kind == XML_READER_TYPE_TEXT || kind == XML_READER_TYPE_CDATA)
        text = text_of(r->xml->xmlTextReaderConstValue(r->reader));
    if (text && r->field)
        append_text(r->field, text);
    if (text && r->style_depth >= 0)
        look_at_style(r, text);
    if (text && r->text_depth >= 0 && strspn(text, " \t\r\n") < strlen(text))
        r->facts->refused = "it has text, whose fonts differ from machine to machine";
    return PNB_OK;
}

/* Where libxml2 tells of errors, a thread's own: those of memory are told without the reader, and
 * what nobody takes is printed. */
static void take_error(void *user, xmlErrorPtr error)
{
    reading *r = user;
    r->is_out_of_memory = r->is_out_of_memory || error->code == XML_ERR_NO_MEMORY;
}

static pnb_status keep(char **out, const pnb__buf *b, pnb_error *err)
{
    size_t n = b->size;
    while (n > 0 && b->data[n - 1] == ' ')
        n--;
    pnb_status status = pnb__buf_check(b, err);
    if (status != PNB_OK || n == 0)
        return status;
    *out = pnb__strndup(b->data, n);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, n);
}

static pnb_status read_all(reading *r, pnb_error *err)
{
    pnb_status status = PNB_OK;
    int more;
    while ((more = r->xml->xmlTextReaderRead(r->reader)) == 1)
        PNB_TRY(take_node(r, err));
    if (more < 0 || r->facts->n_elements == 0)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "SVG: damaged XML at line %d",
                          r->xml->xmlTextReaderGetParserLineNumber(r->reader)));
    PNB_TRY(keep(&r->facts->title, &r->title, err));
    PNB_TRY(keep(&r->facts->description, &r->description, err));
    PNB_TRY(keep(&r->facts->language, &r->language, err));
    PNB_TRY(keep(&r->facts->creator, &r->creator, err));
    PNB_TRY(pnb__svg_cost(&r->tree, &r->facts->cost, err));
    if (!(r->facts->cost <= PNB__SVG_MAX_COST))
        r->facts->refused = isinf(r->facts->cost) ? "its references go in circles"
                                                  : "its references multiply beyond the limit";
done:
    return status;
}

/* Whatever libxml2 could not have is no damage of the file, nor is what was read all of it. */
static pnb_status read_told(reading *r, const char *bytes, size_t n, pnb_error *err)
{
    const pnb__xml_library *xml = r->xml;
    xmlStructuredErrorFunc *teller = xml->__xmlStructuredError(), told_before = *teller;
    void **user = xml->__xmlStructuredErrorContext(), *user_before = *user;
    pnb_error why = PNB_ERROR_INIT;
    *teller = take_error;
    *user = r;
    r->reader = xml->xmlReaderForMemory(bytes, (int)n, NULL, NULL,
                                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    pnb_status status = r->reader != NULL ? read_all(r, &why)
                        : n == 0          ? pnb__fail(&why, PNB_FORMAT, "SVG: an empty file")
                                          : pnb__fail_nomem(&why, n);
    if (r->reader != NULL)
        xml->xmlFreeTextReader(r->reader);
    *teller = told_before;
    *user = user_before;
    if (r->is_out_of_memory)
        return pnb__fail_nomem(err, n);
    return status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s", why.text);
}

pnb_status pnb__svg_read(pnb__svg_facts *facts, const char *bytes, size_t n, pnb_error *err)
{
    pnb__xml_library xml = {0};
    reading r = {.xml = &xml,
                 .facts = facts,
                 .metadata_depth = -1,
                 .work_depth = -1,
                 .field_depth = -1,
                 .style_depth = -1,
                 .text_depth = -1};
    pnb_status status;
    *facts = (pnb__svg_facts){0};
    if (n > PNB__SVG_MAX_BYTES)
        return pnb__fail(err, PNB_LIMIT, "SVG: %zu bytes, at most %d are read", n,
                         (int)PNB__SVG_MAX_BYTES);
    PNB_TRY(pnb__xml_open(&xml, err));
    status = read_told(&r, bytes, n, err);
done:
    pnb__xml_close(&xml);
    pnb__svg_tree_reset(&r.tree);
    pnb__buf *const buffers[] = {&r.title, &r.description, &r.language, &r.creator, &r.subject};
    for (size_t i = 0; i < PNB_COUNT(buffers); i++)
        pnb__buf_reset(buffers[i]);
    if (status != PNB_OK)
        pnb__svg_facts_reset(facts);
    return status;
}

#endif
