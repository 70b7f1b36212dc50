/* A segmentation as JSON, compressed runs, and a whole file of instances that is its own file of
 * captions: whatever comes, a mask of zeros and ones, lists that fit together, or an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/sources/coco/coco_instances.h"
#include "data/sources/coco/coco_mask.h"
#include "io/json/json.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIDTH = 17, HEIGHT = 11 };

static void try_mask(const uint8_t *data, size_t size)
{
    unsigned char mask[WIDTH * HEIGHT + 1];
    json_t *root = NULL;
    if (pnb__json_load_bytes(&root, (const char *)data, size, "fuzz", NULL) != PNB_OK)
        return;
    memset(mask, 7, sizeof mask);
    pnb_status status = pnb__coco_mask(root, WIDTH, HEIGHT, mask, NULL);
    for (size_t i = 0; status == PNB_OK && i < WIDTH * HEIGHT; i++)
        if (mask[i] > 1)
            abort();
    if (mask[WIDTH * HEIGHT] != 7)
        abort();
    json_decref(root);
}

static void try_runs(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint32_t *runs = malloc((size + 1) * sizeof *runs);
    size_t n = 0, again = 0;
    if (text != NULL && runs != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
        if (pnb__coco_runs(text, NULL, &n, NULL) == PNB_OK &&
            (n > size || pnb__coco_runs(text, runs, &again, NULL) != PNB_OK || again != n))
            abort();
    }
    free(text);
    free(runs);
}

static void try_instances(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/penumbra_fuzz_XXXXXX";
    int file = mkstemp(path);
    pnb__coco_instances c = {0};
    size_t n = 0;
    if (file < 0)
        return;
    close(file);
    if (scratch_write(path, data, size) &&
        pnb__coco_instances_load(&c, path, path, NULL) == PNB_OK) {
        for (size_t i = 0; i < c.n_images; i++) {
            const pnb__coco_image *p = &c.image[i];
            if (p->first + p->n > c.n_annotations || p->width < 1 || p->height < 1)
                abort();
            for (size_t k = p->first; k < p->first + p->n; k++)
                if (c.annotation[k].image_id != p->id || c.annotation[k].category == NULL)
                    abort();
            n += p->n;
        }
        if (n != c.n_annotations)
            abort();
    }
    pnb__coco_instances_free(&c);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_mask(data, size);
    try_runs(data, size);
    try_instances(data, size);
    return 0;
}
