/* Runs the lines of torchvision.txt: crops and changes of colour as torchvision 0.14 makes them of
 * Pillow's pictures, as hashes of the pixels. */
#ifndef PNB_TESTS_DATA_LOADER_TORCHVISION_H
#define PNB_TESTS_DATA_LOADER_TORCHVISION_H

#include "data/loader/augment_internal.h"
#include "tests/data/fixture.h"

#define IMAGES PNB_SOURCE_DIR "/tests/io/data/image/"
#define EXPECTED PNB_SOURCE_DIR "/tests/data/torchvision.txt"

static inline uint64_t fnv1a(const pnb_image *image)
{
    uint64_t h = 0xcbf29ce484222325u;
    size_t n = (size_t)image->width * (size_t)image->height * 3;
    for (size_t i = 0; i < n; i++)
        h = (h ^ image->pixels[i]) * 0x100000001b3u;
    return h;
}

static inline pnb_image load_image(const char *name)
{
    char path[512];
    pnb_image image;
    snprintf(path, sizeof path, IMAGES "%s", name);
    ASSERT_OK(pnb_image_load(&image, path, NULL, &err));
    return image;
}

/* Does one operation on the picture; false where it is another test's. */
typedef bool do_operation(pnb_image *image, const char *operation, const char *numbers);

/* Every line that `run` does must give its hash, and there are `n_wanted` of them. */
static inline void expect_torchvision(do_operation *run, int n_wanted)
{
    char text[256], file[64], operation[32];
    int n_lines = 0, n_wrong = 0, at = 0;
    FILE *f = fopen(EXPECTED, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        if (text[0] == '#' || sscanf(text, "%63s %31s %n", file, operation, &at) != 2)
            continue;
        unsigned long long hash = strtoull(strrchr(text, ' '), NULL, 16);
        pnb_image image = load_image(file);
        if (run(&image, operation, text + at)) {
            n_lines++;
            if (fnv1a(&image) != hash) {
                print_error("differs: %s", text);
                n_wrong++;
            }
        }
        pnb_image_free(&image);
    }
    fclose(f);
    assert_int_equal(n_lines, n_wanted);
    assert_int_equal(n_wrong, 0);
}

#endif
