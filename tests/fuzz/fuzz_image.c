/* Pictures from strangers: decoded in every mode, then resized and cropped. */
#include <stddef.h>
#include <stdint.h>

#include "penumbra/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libheif 1.15 does not give back 40 bytes of dav1d's where an AVIF's coded picture is empty; no
 * call of its tells that before (heif-convert loses them too). */
const char *__lsan_default_suppressions(void)
{
    return "leak:libdav1d\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_image_opts opts = pnb_image_opts_default();
    opts.max_pixels = 1 << 18;
    for (int mode = 0; mode < 3; mode++) {
        pnb_image image, pixels;
        pnb_error err = PNB_ERROR_INIT;
        opts.keep_alpha = mode == 1;
        opts.native = opts.exif = mode == 2;
        if (pnb_image_decode(&image, data, size, &opts, &err) != PNB_OK)
            continue;
        pnb_preprocess pp = pnb_preprocess_default();
        pp.width = pp.height = 16;
        pp.resize_first = mode == 2;
        pp.mode = (pnb_fit)mode;
        if (pnb_preprocess_pixels(&pp, &image, &pixels, &err) == PNB_OK)
            pnb_image_free(&pixels);
        pnb_image_free(&image);
    }
    return 0;
}
