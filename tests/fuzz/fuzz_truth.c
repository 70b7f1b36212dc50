/* The first byte chooses a format, the rest is the file: reading ends, and every pair of a truth
 * that comes out lies inside the two sets. The file is read as label vectors and as a list of
 * hierarchies too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "penumbra/hierarcaps.h"
#include "penumbra/truth.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Endings by which the reader and the fuzzer tell formats apart. */
static const struct {
    pnb_truth_format format;
    const char *ending;
} FORMATS[] = {
    {PNB_TRUTH_AUTO, ".json"},      {PNB_TRUTH_PAIRS, ".tsv"},       {PNB_TRUTH_LABELS, ".tsv"},
    {PNB_TRUTH_HIERARCAPS, ".csv"}, {PNB_TRUTH_COCO, ".json"},       {PNB_TRUTH_KARPATHY, ".json"},
    {PNB_TRUTH_ID_LISTS, ".json"},  {PNB_TRUTH_PRECOMP, "_ids.txt"}, {PNB_TRUTH_TOKENS, ".token"}};

static void check(const pnb_truth *t, size_t n_images, size_t n_texts)
{
    if (t->n_queries != n_images || t->n_items != n_texts || t->n_pairs == 0 ||
        t->offset[n_images] != t->n_pairs)
        abort();
    for (size_t i = 0; i < t->n_pairs; i++)
        if (t->item[i] >= n_texts)
            abort();
}

static void check_hierarchies(const pnb_hierarcaps *h)
{
    if (h->n == 0 || h->n_levels < 2)
        abort();
    for (size_t i = 0; i < h->n * h->n_levels; i++)
        if (h->text[i][0] == '\0' || strstr(h->text[i], "=>") != NULL)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const IMAGES[] = {"a.jpg", "COCO_val2014_000000000042.jpg", "7"};
    static const char *const TEXTS[] = {"1", "a#0", "7#1", "t"};
    static const char *const SENTENCES[] = {"a cat", "a dog", "a cat", NULL};
    const pnb_truth_rows images = {.n = 3, .ids = IMAGES};
    const pnb_truth_rows texts = {.n = 4, .ids = TEXTS, .texts = SENTENCES};
    char dir[] = "/tmp/penumbra_fuzz_XXXXXX", path[64], beside[64];
    pnb_truth *truth = NULL;
    pnb_label_matrix labels = {0};
    pnb_hierarcaps *hierarchies = NULL;
    if (size == 0 || mkdtemp(dir) == NULL)
        return 0;
    size_t kind = (data[0] & 127) % (sizeof FORMATS / sizeof *FORMATS);
    pnb_truth_read_opts opts = {.format = FORMATS[kind].format, .texts_ask = data[0] > 127};
    snprintf(path, sizeof path, "%s/x%s", dir, FORMATS[kind].ending);
    snprintf(beside, sizeof beside, "%s/x_caps.txt", dir); /* beside x_ids.txt */
    if (scratch_write(path, data + 1, size - 1) && scratch_write(beside, data + 1, size - 1) &&
        pnb_truth_read(&truth, path, &images, &texts, &opts, NULL, NULL) == PNB_OK)
        check(truth, images.n, texts.n);
    if (pnb_label_matrix_load(&labels, path, &images, NULL) == PNB_OK && labels.n != images.n)
        abort();
    if (pnb_hierarcaps_load(&hierarchies, path, NULL) == PNB_OK)
        check_hierarchies(hierarchies);
    pnb_hierarcaps_free(hierarchies);
    pnb_label_matrix_reset(&labels);
    pnb_truth_free(truth);
    unlink(path);
    unlink(beside);
    rmdir(dir);
    return 0;
}
