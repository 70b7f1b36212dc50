/* Packed shards: gzip and zstd streams that lie about what they hold unfold to no more than was
 * allowed, or to an error with a text; the map is the packed file or the unpacked one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/unpack.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 };
static const char *const names[] = {"d/shard.tar.gz"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    pnb__map m = {0};
    pnb_error err = PNB_ERROR_INIT;
    if (size == 0 || !pnb__is_packed(data, size) || !folder_make(&f, names, 1, data, 0))
        return 0;
    scratch_write(folder_path(&f, names[0], path), data, size);
    if (pnb__map_open(&m, path, &err) != PNB_OK)
        abort();
    pnb_status status = pnb__unpack_map(&m, path, MOST, &err);
    REQUIRE_TOLD(status, err);
    if (status == PNB_OK ? m.size == 0 || m.size > MOST : m.size != size)
        abort();
    unsigned sum = 0;
    for (size_t i = 0; i < m.size; i++)
        sum += m.data[i];
    if (status != PNB_OK && memcmp(m.data, data, size) != 0)
        abort();
    (void)sum;
    pnb__map_close(&m);
    folder_remove(&f);
    return 0;
}
