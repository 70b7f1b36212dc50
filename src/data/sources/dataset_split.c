/* From the folder a classification set was unpacked into to the files of one of its splits. Each
 * known form is a list of files to look for; the first that has the split wins. Reading them is the
 * business of the readers. */
#include <string.h>

#include "data/sources/dataset_internal.h"

/* Names below the root, of which the first is looked for; `source` is what to open. */
static const struct {
    const char *split, *file, *source;
} FORMS[] = {
    {"train", "data_batch_1.bin", "data_batch_{1..5}.bin"}, /* CIFAR-10 */
    {"test", "test_batch.bin", "test_batch.bin"},
    {"train", "train.bin", "train.bin"}, /* CIFAR-100 */
    {"test", "test.bin", "test.bin"},
    {"train", "train_X.bin", "train_X.bin"}, /* STL-10 */
    {"test", "test_X.bin", "test_X.bin"},
    {"unlabeled", "unlabeled_X.bin", "unlabeled_X.bin"},
    {"train", "train-images-idx3-ubyte", "train-images-idx3-ubyte"}, /* MNIST */
    {"train", "train-images-idx3-ubyte.gz", "train-images-idx3-ubyte.gz"},
    {"train", "train-images.idx3-ubyte", "train-images.idx3-ubyte"},
    {"test", "t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
    {"test", "t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"},
    {"test", "t10k-images.idx3-ubyte", "t10k-images.idx3-ubyte"},
};

/* What folders of a split are called. */
static const char *const SPLITS[] = {"train", "test", "val", "valid", "validation", "dev"};

/* Splits of the forms that the folder holds, for the message. */
static void list_splits(const char *root, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < PNB_COUNT(FORMS); i++)
        if (pnb__path_has_file(root, FORMS[i].file) && strstr(text, FORMS[i].split) == NULL)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "",
                     FORMS[i].split);
}

/* Whether all folders in `root`, at least one, are named as splits: then their names are no
 * classes. `text` gets them. */
static pnb_status holds_splits_only(const char *root, char *text, size_t size, bool *yes,
                                    pnb_error *err)
{
    pnb__paths names = {0};
    pnb_status status = pnb__list_dir(&names, root, err);
    text[0] = 0;
    *yes = status == PNB_OK;
    for (size_t i = 0; i < names.n && *yes; i++) {
        bool is_split = false, is_dir = pnb__path_has_dir(root, names.items[i]);
        for (size_t k = 0; k < PNB_COUNT(SPLITS); k++)
            is_split = is_split || strcmp(names.items[i], SPLITS[k]) == 0;
        if (is_dir && is_split)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "",
                     names.items[i]);
        *yes = !is_dir || is_split || names.items[i][0] == '.';
    }
    *yes = *yes && text[0] != 0;
    pnb__paths_free(&names);
    return status;
}

static pnb_status take(char **out, char *path, pnb_error *err)
{
    *out = path;
    return path ? PNB_OK : pnb__fail_nomem(err, 4096);
}

static pnb_status no_split(const char *root, const char *split, const char *has, pnb_error *err)
{
    return pnb__fail(err, PNB_NOT_FOUND, "%s: has no split \"%s\"; it has %s", root, split, has);
}

pnb_status pnb_dataset_split(char **out, const char *root, const char *split, pnb_error *err)
{
    char found[64];
    *out = NULL;
    if (!pnb__path_is_dir(root))
        return take(out, pnb__strdup(root), err);
    for (size_t i = 0; i < PNB_COUNT(FORMS); i++)
        if (strcmp(FORMS[i].split, split) == 0 && pnb__path_has_file(root, FORMS[i].file))
            return take(out, pnb__path_join(root, FORMS[i].source), err);
    list_splits(root, found, sizeof found);
    if (found[0] != 0)
        return no_split(root, split, found, err);
    char *below = pnb__path_join(root, split);
    if (below && pnb__path_is_dir(below))
        return take(out, below, err);
    pnb__free(below);
    bool is_split_above = false;
    pnb_status status = holds_splits_only(root, found, sizeof found, &is_split_above, err);
    if (status == PNB_OK && is_split_above)
        status = no_split(root, split, found, err);
    return status == PNB_OK ? take(out, pnb__strdup(root), err) : status;
}

void pnb_dataset_path_free(char *path)
{
    pnb__free(path);
}
