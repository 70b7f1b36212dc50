/* The files of the page, as the build embeds them: texts that end in a zero byte. */
#ifndef PNB_SERVER_PAGE_PAGE_FILES_H
#define PNB_SERVER_PAGE_PAGE_FILES_H

extern const char pnb__page_html[], pnb__page_css[], pnb__page_js[];

#endif
