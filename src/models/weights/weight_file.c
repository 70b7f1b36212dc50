/* The weights of a model: where a folder keeps them and which path they came by.
 *
 * Reading is the checkpoint reader's business (src/io/weights/checkpoint.c: safetensors, PyTorch,
 * shards), and so is the order of search. */
#include "models/weights/weight_file.h"

#include "io/weights/shards.h"

enum { MAX_PATH = 4096 };

/* Which of a folder's weight files counts is decided in one place for all readers, and named in
 * what a model says of itself: two files of different weights beside each other are a common
 * mistake. */
pnb_status pnb__weight_file_find(char **out, const char *dir, pnb_error *err)
{
    char path[MAX_PATH];
    *out = NULL;
    pnb_status status = pnb_checkpoint_locate(path, sizeof path, dir, err);
    if (status != PNB_OK)
        return status;
    *out = pnb__strdup(path);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, 0);
}

bool pnb__weight_file_exists(const char *dir)
{
    char path[MAX_PATH];
    return pnb_checkpoint_locate(path, sizeof path, dir, NULL) == PNB_OK;
}

pnb_status pnb__weight_file_open(pnb__weight_file *f, const char *path, pnb_error *err)
{
    *f = (pnb__weight_file){.path = pnb__strdup(path)};
    if (f->path == NULL)
        return pnb__fail_nomem(err, 0);
    pnb_status status = pnb_checkpoint_open(&f->arrays, path, err);
    if (status != PNB_OK)
        pnb__weight_file_close(f);
    return status;
}

void pnb__weight_file_close(pnb__weight_file *f)
{
    pnb_checkpoint_free(f->arrays);
    pnb__free(f->path);
    *f = (pnb__weight_file){0};
}

size_t pnb__weight_file_count(const pnb__weight_file *f)
{
    return f->arrays == NULL ? 0 : pnb_checkpoint_count(f->arrays);
}

const pnb_array_view *pnb__weight_file_at(const pnb__weight_file *f, size_t i)
{
    return pnb_checkpoint_at(f->arrays, i);
}

const pnb_array_view *pnb__weight_file_lookup(const pnb__weight_file *f, const char *name)
{
    return f->arrays == NULL ? NULL : pnb_checkpoint_find(f->arrays, name);
}

const char *pnb__weight_file_warning(const pnb__weight_file *f)
{
    return f->arrays == NULL ? NULL : pnb_checkpoint_warning(f->arrays);
}

const char *pnb__weight_file_metadata(const pnb__weight_file *f, const char *key)
{
    return f->arrays == NULL ? NULL : pnb_checkpoint_metadata(f->arrays, key);
}

pnb_status pnb__weight_file_sha256(const pnb__weight_file *f, char hex[65], pnb_error *err)
{
    return pnb_checkpoint_sha256(f->arrays, hex, err);
}

pnb_status pnb__weight_file_check(const pnb__weight_file *f, pnb_error *err)
{
    return f->arrays != NULL ? pnb__checkpoint_check_files(f->arrays, err) : PNB_OK;
}
