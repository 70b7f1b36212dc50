/* Writes a set in the format asked for, and the parts of a journal as one set.
 *
 * Parts are merged row by row on the disk; formats without a merge go through one safetensors file
 * in the journal, which removes it. */
#include "encode/job/clip_retrieval.h"
#include "encode/job/embed_job.h"
#include "encode/job/embed_journal.h"

static pnb_status join_through(const pnb__embed_journal *j, const char *const *parts, size_t n,
                               const pnb_encode_file *file, pnb_error *err)
{
    pnb_embeddings *all = NULL;
    char *path = pnb__path_join(j->dir, "all.safetensors");
    if (path == NULL)
        return pnb__fail_nomem(err, 64);
    pnb_status status = pnb_embeddings_merge(path, parts, n, err);
    if (status == PNB_OK)
        status = pnb_embeddings_load(&all, path, err);
    if (status == PNB_OK)
        status = pnb__embed_save(all, file->format, file->out, err);
    pnb_embeddings_free(all);
    pnb__free(path);
    return status;
}

pnb_status pnb__embed_join(const pnb__embed_journal *j, const pnb_encode_file *file, pnb_error *err)
{
    const char **parts = NULL;
    size_t n = 0;
    pnb_status status = PNB_ALLOC(parts, j->n_parts + 1, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < j->n_parts; i++)
        if (j->parts[i].path != NULL)
            parts[n++] = j->parts[i].path;
    status = file->format == PNB_ENCODE_SAFETENSORS ? pnb_embeddings_merge(file->out, parts, n, err)
                                                    : join_through(j, parts, n, file, err);
    pnb__free(parts);
    return status;
}

pnb_status pnb__embed_save(const pnb_embeddings *set, pnb_encode_format format, const char *path,
                           pnb_error *err)
{
    switch (format) {
    case PNB_ENCODE_NPY:
        return pnb_embeddings_save_npy(set, path, err);
    case PNB_ENCODE_JSONL:
        return pnb_embeddings_save_jsonl(set, path, err);
    case PNB_ENCODE_CLIP_RETRIEVAL:
        return pnb__clip_retrieval_save(set, path, err);
    case PNB_ENCODE_SAFETENSORS:
        break;
    }
    return pnb_embeddings_save(set, path, err);
}
