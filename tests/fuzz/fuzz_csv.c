/* The first byte is the separator, the rest a table: reading ends, and fields are strings. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__csv c;
    bool more = true;
    if (size == 0 ||
        pnb__csv_open_bytes(&c, data + 1, size - 1, (char)data[0], "fuzz", NULL) != PNB_OK)
        return 0;
    while (more) {
        size_t before = c.position, total = 0;
        pnb_status status = pnb__csv_next(&c, &more, NULL);
        if (status == PNB_SHAPE && c.position > before)
            continue;
        if (status != PNB_OK || !more)
            break;
        for (size_t i = 0; i < c.n_columns; i++)
            total += strlen(c.fields[i]) + strlen(c.header[i]);
        if (c.position <= before || c.row_offset < before || total > 2 * size)
            abort();
    }
    pnb__csv_close(&c);
    return 0;
}
