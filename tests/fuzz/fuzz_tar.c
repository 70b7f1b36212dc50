/* Any bytes as a tar archive: members lie inside, the reader ends, seeking gives the same member.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/tables/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_member(const pnb__tar *t, const pnb__tar_member *m, size_t size)
{
    volatile uint8_t last = 0;
    if (m->data_offset + m->size > size || m->data_offset < m->header_offset || m->name == NULL)
        abort();
    if (m->size > 0)
        last = m->data[m->size - 1];
    (void)last;
    (void)t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__tar t, other;
    pnb__tar_member m, again;
    bool more = true, more_again = true;
    if (pnb__tar_open_bytes(&t, data, size, "fuzz", NULL) != PNB_OK)
        return 0;
    if (pnb__tar_open_bytes(&other, data, size, "fuzz", NULL) != PNB_OK)
        abort();
    for (uint64_t before = 0; pnb__tar_next(&t, &m, &more, NULL) == PNB_OK && more;
         before = t.position) {
        check_member(&t, &m, size);
        if (t.position <= before || pnb__tar_seek(&other, m.header_offset, NULL) != PNB_OK ||
            pnb__tar_next(&other, &again, &more_again, NULL) != PNB_OK ||
            again.data_offset != m.data_offset || strcmp(again.name, m.name) != 0)
            abort();
    }
    pnb__tar_close(&t);
    pnb__tar_close(&other);
    return 0;
}
