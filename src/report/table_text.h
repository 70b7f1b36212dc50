/* Tables of a result as csv or Markdown. */
#ifndef PNB_REPORT_TABLE_TEXT_H
#define PNB_REPORT_TABLE_TEXT_H

#include "base/base.h"
#include "report/result.h"

/* Appends the table at a key, one line a row; nothing where it is not there or has no row. csv
 * (RFC 4180) has the columns' keys above it; Markdown their headings, and an empty line behind. */
void pnb__table_append(const pnb__result *r, const char *key, bool is_markdown, pnb__buf *out);

#endif
