/* A set to the standard output, in the forms that have no second file.
 *
 * The stream stays the program's: what is written goes through a copy of its descriptor, which can
 * be closed and whose errors are then known. */
#include "commands/embed/embed_stream.h"

#include <unistd.h>

#include "sets/embeddings.h"

/* A copy of the stream's descriptor, so that closing the output leaves the stream alone. */
static pnb_status open_stream(pnb__out_file *f, FILE *stream, pnb_error *err)
{
    int fd = fflush(stream) == 0 ? dup(fileno(stream)) : -1;
    *f = (pnb__out_file){.path = pnb__strdup("the standard output")};
    if (f->path == NULL) {
        if (fd >= 0)
            close(fd);
        return pnb__fail_nomem(err, 32);
    }
    f->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (f->file != NULL)
        return PNB_OK;
    pnb_status status = pnb__fail_errno(err, "cannot write", f->path);
    if (fd >= 0)
        close(fd);
    pnb__out_abort(f);
    return status;
}

pnb_status pnb__embed_stream(const pnb_embeddings *set, pnb_encode_format format, FILE *stream,
                             pnb_error *err)
{
    pnb__out_file f = {0};
    pnb_status status = open_stream(&f, stream, err);
    if (status != PNB_OK)
        return status;
    switch (format) {
    case PNB_ENCODE_NPY:
        return pnb__embeddings_stream_npy(set, &f, err);
    case PNB_ENCODE_JSONL:
        return pnb__embeddings_stream_jsonl(set, &f, err);
    case PNB_ENCODE_CLIP_RETRIEVAL: /* has no stream */
    case PNB_ENCODE_SAFETENSORS:
        break;
    }
    return pnb__embeddings_stream(set, &f, err);
}
