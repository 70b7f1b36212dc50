/* Any bytes as a preprocessing configuration: what is accepted must be within bounds, and bring a
 * small picture to its size. The file lies in memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "penumbra/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Large targets are left out, they only cost time. */
static void use(const pnb_preprocess *pp)
{
    pnb_image in, out;
    if (pp->width > 256 || pp->height > 256 || pp->resize_to > 256)
        return;
    if (pnb_image_create(&in, 5, 3, 4, NULL) != PNB_OK ||
        pnb_preprocess_pixels(pp, &in, &out, NULL) != PNB_OK || out.width != pp->width ||
        out.height != pp->height || out.channels != 3)
        abort();
    pnb_image_free(&in);
    pnb_image_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_preprocess pp;
    pnb_error err = PNB_ERROR_INIT;
    char path[64], assumed[128];
    int in = memfd_create("fuzz", 0);
    if (in < 0 || write(in, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", in);
    if (pnb_preprocess_load_noted(&pp, path, assumed, sizeof assumed, &err) != PNB_OK) {
        if (err.status == PNB_OK || err.text[0] == '\0')
            abort();
    } else {
        if (pp.width < 1 || pp.height < 1 || pnb_filter_name(pp.filter) == NULL ||
            strlen(assumed) >= sizeof assumed)
            abort();
        use(&pp);
    }
    close(in);
    return 0;
}
