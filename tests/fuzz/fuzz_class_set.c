/* The first byte chooses the name of a binary set, the rest is the file (for MNIST and STL-10 also
 * its labels, for CIFAR also its names): opening ends, every sample has a picture that can be read,
 * and no label lies outside int32. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "penumbra/dataset.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *file, *beside;
} SETS[] = {{"test_batch.bin", "batches.meta.txt"},
            {"test.bin", "fine_label_names.txt"},
            {"test_X.bin", "test_y.bin"},
            {"t-images-idx3-ubyte", "t-labels-idx1-ubyte"},
            {"t-images-idx3-ubyte.gz", "t-labels-idx1-ubyte.gz"},
            {"t-images-idx3-ubyte", "classnames.txt"}};

static void check(const pnb_dataset *ds)
{
    size_t n = pnb_dataset_size(ds);
    for (size_t i = 0; i < n && i < 16; i++) {
        pnb_image image;
        pnb_sample s = {0};
        if (pnb_dataset_image(ds, i, &image, NULL) != PNB_OK)
            abort();
        pnb_image_free(&image);
        if (pnb_dataset_get(ds, i, &s, NULL) == PNB_OK && (s.label < -1 || s.label > INT32_MAX))
            abort();
        pnb_sample_reset(&s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[] = "/tmp/penumbra_fuzz_XXXXXX", path[96], beside[96];
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    if (size == 0 || mkdtemp(dir) == NULL)
        return 0;
    size_t kind = (data[0] & 127) % (sizeof SETS / sizeof *SETS);
    size_t n = data[0] > 127 ? (size - 1) / 2 : size - 1; /* the file; the rest lies beside it */
    opts.allow_no_caption = true;
    snprintf(path, sizeof path, "%s/%s", dir, SETS[kind].file);
    snprintf(beside, sizeof beside, "%s/%s", dir, SETS[kind].beside);
    if (scratch_write(path, data + 1, n) &&
        (data[0] <= 127 || scratch_write(beside, data + 1 + n, size - 1 - n)) &&
        pnb_dataset_open(&ds, path, &opts, NULL) == PNB_OK)
        check(ds);
    pnb_dataset_free(ds);
    unlink(path);
    unlink(beside);
    rmdir(dir);
    return 0;
}
