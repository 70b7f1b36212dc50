/* Writes an embedding set in blocks of rows.
 *
 * The header of a safetensors file says how long each array is, and arrays lie one behind the
 * other, so with the number of rows known a row of each array has its place from the start; the
 * writer goes there. Names come whole when the set is opened: they are small beside the arrays. */
#include "sets/set_writer.h"

#include <string.h>
#include <sys/types.h>

static pnb_status open_ids(pnb__set_writer *w, const pnb_embeddings *like, const char *path,
                           pnb_error *err)
{
    char *ids_path = NULL;
    pnb_status status = pnb__swap_suffix(&ids_path, path, ".safetensors", ".ids.jsonl", err);
    if (status == PNB_OK)
        status = pnb__ids_writer_open(&w->ids, ids_path, err);
    if (status == PNB_OK)
        status = pnb__ids_writer_append(&w->ids, like, err);
    pnb__free(ids_path);
    return status;
}

pnb_status pnb__set_writer_open(pnb__set_writer *w, const pnb_embeddings *like, const char *path,
                                pnb_error *err)
{
    char hash[65];
    pnb_status status;
    *w = (pnb__set_writer){.n = like->n};
    PNB_TRY(open_ids(w, like, path, err));
    pnb__ids_hash(like, hash);
    PNB_TRY(pnb__embeddings_open_arrays(&w->arrays, &(pnb__array_target){path, NULL}, like, like->n,
                                        hash, w->which, err));
    w->first = ftello(w->arrays.out.file);
    if (w->first < 0)
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "%s: rows of several arrays are written in turn, which only a file "
                           "allows",
                           path);
done:
    if (status != PNB_OK)
        pnb__set_writer_abort(w);
    return status;
}

static pnb_status check_block(const pnb__set_writer *w, const pnb_embeddings *block, pnb_error *err)
{
    const char *path = w->arrays.out.path;
    size_t row_bytes = 0;
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++)
        if (pnb__embedding_has_array(block, i))
            row_bytes += pnb__embedding_count(block, i) / block->n * sizeof(float);
    if (w->n * row_bytes != w->arrays.n_total)
        return pnb__fail(err, PNB_ARG, "%s: a block of another family or width", path);
    if (block->n > w->n - w->n_written)
        return pnb__fail(err, PNB_ARG, "%s: %zu rows behind %zu, announced were %zu", path,
                         block->n, w->n_written, w->n);
    return pnb_embeddings_check_values(block, err);
}

pnb_status pnb__set_writer_append(pnb__set_writer *w, const pnb_embeddings *block, pnb_error *err)
{
    pnb_status status = check_block(w, block, err);
    off_t begin = (off_t)w->first;
    for (size_t i = 0; i < w->arrays.n && status == PNB_OK; i++) {
        int array = w->which[w->arrays.order[i]];
        size_t row_bytes = pnb__embedding_count(block, array) / block->n * sizeof(float);
        if (fseeko(w->arrays.out.file, begin + (off_t)(w->n_written * row_bytes), SEEK_SET) != 0)
            status = pnb__fail_errno(err, "cannot write", w->arrays.out.path);
        else
            status = pnb__st_writer_append(&w->arrays, pnb__embedding_values(block, array),
                                           block->n * row_bytes, err);
        begin += (off_t)(w->n * row_bytes);
    }
    if (status == PNB_OK)
        w->n_written += block->n;
    return status;
}

pnb_status pnb__set_writer_commit(pnb__set_writer *w, pnb_error *err)
{
    pnb_status status = pnb__embeddings_commit(&w->ids, &w->arrays, err);
    pnb__set_writer_abort(w);
    return status;
}

void pnb__set_writer_abort(pnb__set_writer *w)
{
    pnb__st_writer_abort(&w->arrays);
    pnb__ids_writer_abort(&w->ids);
    *w = (pnb__set_writer){0};
}
