/* The set that an embedding job fills: of which family and width, and what its record says of how
 * rows were made.
 * Names and numbers are the job's. */
#include "encode/job/embed_rows.h"

#include <string.h>

#include "models/model.h"
#include "sets/provenance.h"

/* Rows before the last projection are no embeddings: their chain says so, and nothing compares them
 * with those. The link's hash is that of the weights. */
static pnb_status describe_activations(pnb_embeddings_info *info, pnb_error *err)
{
    pnb_adapter_link link = {.name = "activations"};
    snprintf(link.sha256, sizeof link.sha256, "%s", info->weights_sha256);
    return pnb__adapter_links_add(&info->adapters, &link, err);
}

/* Activations are points of a width of their own. */
static pnb_status create_set(pnb_encoder *encoder, pnb_encode_side side,
                             const pnb_encode_opts *opts, size_t n, pnb_embeddings **out,
                             pnb_error *err)
{
    if (!opts->activations && opts->ttda > 0)
        return pnb_embeddings_create(out, PNB_GAUSSIAN_DIAG, n, pnb__encoder_dim(encoder, side),
                                     err);
    if (!opts->activations)
        return pnb__encoder_make_rows(encoder, side, n, out, err);
    bool is_text = side == PNB_ENCODE_TEXTS;
    size_t width =
        pnb__model_activations(encoder->model, is_text ? PNB__TEXT_SIDE : PNB__IMAGE_SIDE);
    pnb_status status = pnb__encoder_need_plain(encoder, "encoding activations", err);
    if (status != PNB_OK)
        return status;
    if (width == 0)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: its %s tower ends in no projection, nothing stands before one",
                         encoder->name, is_text ? "text" : "image");
    return pnb_embeddings_create(out, PNB_POINT, n, width, err);
}

pnb_status pnb__embed_rows_make(pnb_encoder *encoder, const pnb__embed_source *source,
                                const pnb_encode_opts *opts, size_t n, pnb_embeddings **out,
                                pnb_error *err)
{
    bool is_text = source->is_text;
    pnb_encode_side side = is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES;
    pnb_status status = create_set(encoder, side, opts, n, out, err);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_info *info = &(*out)->info;
    pnb_encoder_describe(encoder, side, opts->seed, info);
    if (opts->match_samples > 0)
        info->match_samples = opts->match_samples;
    size_t length = strlen(info->preprocess), size = sizeof info->preprocess;
    if (opts->exif && !is_text)
        snprintf(info->preprocess + length, size - length, ", EXIF applied");
    length = strlen(info->preprocess);
    if (opts->ttda > 0)
        snprintf(info->preprocess + length, size - length, ", %zu augmented passes", opts->ttda);
    if (opts->masked && is_text)
        snprintf(info->preprocess + length, size - length, ", tokens deleted with %g",
                 opts->mask_drop);
    else if (opts->masked)
        snprintf(info->preprocess + length, size - length, ", patches kept %g", opts->mask_keep);
    length = strlen(info->preprocess);
    if (opts->raw || pnb__encoder_keeps_lengths(encoder, side))
        snprintf(info->preprocess + length, size - length, PNB__LENGTHS_KEPT);
    return opts->activations ? describe_activations(info, err) : PNB_OK;
}
