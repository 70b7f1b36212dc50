/* Cuts a text file that lies in memory into its lines.
 *
 * Lines end in "\n" or "\r\n"; the last needs no end. Whether the text is UTF-8 is the caller's to
 * ask: files of ids may hold other bytes. */
#include <string.h>

#include "base/base.h"

pnb_status pnb__line_next(pnb__line_reader *lines, char **line, pnb_error *err)
{
    *line = NULL;
    if (lines->at >= lines->end)
        return PNB_OK;
    if (lines->number == 0 && lines->end - lines->at >= 3 &&
        memcmp(lines->at, "\xEF\xBB\xBF", 3) == 0)
        lines->at += 3;
    char *begin = lines->at, *stop = memchr(begin, '\n', (size_t)(lines->end - begin));
    stop = stop != NULL ? stop : lines->end; /* read_file leaves a 0 byte there */
    *stop = '\0';
    lines->at = stop + 1;
    lines->number++;
    if (strlen(begin) != (size_t)(stop - begin))
        return pnb__fail(err, PNB_FORMAT, "%s line %zu: holds a NUL byte; not a text file",
                         lines->path, lines->number);
    if (stop > begin && stop[-1] == '\r')
        stop[-1] = '\0';
    *line = begin;
    return PNB_OK;
}
