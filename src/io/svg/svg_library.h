/* libxml2, librsvg and cairo, opened when the first SVG comes: together they bring forty libraries,
 * whose loading would be most of the start of every program. Only where PNB_HAVE_RSVG. */
#ifndef PNB_IO_SVG_SVG_LIBRARY_H
#define PNB_IO_SVG_SVG_LIBRARY_H

#include <libxml/xmlreader.h>

#include "base/library.h"

#define PNB__XML_FUNCTIONS(X)                                                                      \
    X(xmlInitParser)                                                                               \
    X(xmlReaderForMemory)                                                                          \
    X(xmlFreeTextReader)                                                                           \
    X(__xmlStructuredError)                                                                        \
    X(__xmlStructuredErrorContext)                                                                 \
    X(xmlTextReaderRead)                                                                           \
    X(xmlTextReaderNodeType)                                                                       \
    X(xmlTextReaderDepth)                                                                          \
    X(xmlTextReaderIsEmptyElement)                                                                 \
    X(xmlTextReaderConstLocalName)                                                                 \
    X(xmlTextReaderConstNamespaceUri)                                                              \
    X(xmlTextReaderConstValue)                                                                     \
    X(xmlTextReaderMoveToFirstAttribute)                                                           \
    X(xmlTextReaderMoveToNextAttribute)                                                            \
    X(xmlTextReaderMoveToElement)                                                                  \
    X(xmlTextReaderGetParserLineNumber)

typedef struct pnb__xml_library {
    void *handle;
    PNB__XML_FUNCTIONS(PNB__LIBRARY_FIELD)
} pnb__xml_library;

/* A library stays loaded; opening it again only counts.  Errors  UNSUPPORTED: what to install */
pnb_status pnb__xml_open(pnb__xml_library *lib, pnb_error *err);
void pnb__xml_close(pnb__xml_library *xml);

#define PNB__SVG_LOST "SVG is not read"

#endif
