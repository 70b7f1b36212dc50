/* Which file of a folder holds the weights, and one way to read them.
 *
 * The order is open_clip's (factory.py: safetensors first, its own names before transformers'); a
 * sharded set is found by its index, beside the whole file of the same name. */
#include "models/weight_file.h"

static const char *const names[] = {
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "model.safetensors",
    "model.safetensors.index.json",
};

/* Known names of files that hold pickles. */
static const char *const pickle_names[] = {
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "pytorch_model.pth",
    "model.pth",
    "model.pt",
};

/* Path of the first of `list` that is there, allocated; NULL also when out of memory. */
static char *first_of(const char *dir, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *path = pnb__path_join(dir, list[i]);
        if (path != NULL && pnb__path_is_file(path))
            return path;
        pnb__free(path);
    }
    return NULL;
}

pnb_status pnb__weight_file_open(pnb__weight_file *f, const char *path, pnb_error *err)
{
    *f = (pnb__weight_file){.path = pnb__strdup(path)};
    if (f->path == NULL)
        return pnb__fail_nomem(err, 0);
    pnb_status status = pnb_safetensors_open(&f->arrays, path, err);
    if (status != PNB_OK)
        pnb__weight_file_close(f);
    return status;
}

pnb_status pnb__weight_file_find(char **out, const char *dir, pnb_error *err)
{
    *out = first_of(dir, names, PNB_COUNT(names));
    if (*out != NULL)
        return PNB_OK;
    char *path = first_of(dir, pickle_names, PNB_COUNT(pickle_names));
    pnb_status status =
        path != NULL ? pnb__fail(err, PNB_UNSUPPORTED,
                                 "%s is a PyTorch pickle, and %s has no safetensors file; save the "
                                 "weights as model.safetensors",
                                 path, dir)
                     : pnb__fail(err, PNB_NOT_FOUND,
                                 "%s has no weights: looked for open_clip_model.safetensors, "
                                 "open_clip_pytorch_model.safetensors, model.safetensors and "
                                 "model.safetensors.index.json",
                                 dir);
    pnb__free(path);
    return status;
}

bool pnb__weight_file_exists(const char *dir)
{
    char *path = first_of(dir, names, PNB_COUNT(names));
    bool found = path != NULL;
    pnb__free(path);
    return found;
}

void pnb__weight_file_close(pnb__weight_file *f)
{
    pnb_safetensors_free(f->arrays);
    pnb__free(f->path);
    *f = (pnb__weight_file){0};
}

size_t pnb__weight_file_count(const pnb__weight_file *f)
{
    return f->arrays == NULL ? 0 : pnb_safetensors_count(f->arrays);
}

const pnb_array_view *pnb__weight_file_at(const pnb__weight_file *f, size_t i)
{
    return pnb_safetensors_at(f->arrays, i);
}

const pnb_array_view *pnb__weight_file_lookup(const pnb__weight_file *f, const char *name)
{
    return f->arrays == NULL ? NULL : pnb_safetensors_find(f->arrays, name);
}

const char *pnb__weight_file_warning(const pnb__weight_file *f)
{
    return f->arrays == NULL ? NULL : pnb_safetensors_warning(f->arrays);
}

const char *pnb__weight_file_metadata(const pnb__weight_file *f, const char *key)
{
    return f->arrays == NULL ? NULL : pnb_safetensors_metadata(f->arrays, key);
}

pnb_status pnb__weight_file_sha256(const pnb__weight_file *f, char hex[65], pnb_error *err)
{
    return pnb_safetensors_sha256(f->arrays, hex, err);
}
