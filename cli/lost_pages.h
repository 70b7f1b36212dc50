/* What becomes of pages of a mapped file that somebody cuts short. */
#ifndef PNB_CLI_LOST_PAGES_H
#define PNB_CLI_LOST_PAGES_H

#include "program/app.h"

/* From now on such a page ends the process with a message, or counts. */
pnb__lost_pages *pnb__watch_lost_pages(void);

#endif
