/* The page that people search with: one document without any other file. */
#ifndef PNB_SERVER_PAGE_PAGE_DOCUMENT_H
#define PNB_SERVER_PAGE_PAGE_DOCUMENT_H

#include "base/base.h"

/* Appends the document; writes the Content-Security-Policy that lets its own style and script run,
 * by their hashes, and nothing else. False where `size` is too small for it. */
bool pnb__page_put(pnb__buf *b, char *policy, size_t size);

#endif
