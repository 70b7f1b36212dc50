/* The public calls: each makes its inputs a source and hands it to the one loop of embed_job.c.
 *
 * What a caller may get wrong is checked here; commands check their options where they are given.
 * Nothing is read from a standard input, which is the process's and not the library's. */
#include "penumbra/encode.h"

#include <string.h>

#include "encode/inputs/inputs.h"
#include "encode/job/embed_job.h"

pnb_encode_opts pnb_encode_opts_default(void)
{
    return (pnb_encode_opts){.batch_size = 32, .mask_keep = 0.25, .mask_drop = 0.75};
}

static pnb_status check(const pnb_encoder *e, pnb_encode_side side, const pnb_encode_opts *o,
                        pnb_error *err)
{
    if (side != PNB_ENCODE_TEXTS && side != PNB_ENCODE_IMAGES)
        return pnb__fail(err, PNB_ARG, "side %d is neither images nor texts", (int)side);
    bool is_open = side == PNB_ENCODE_TEXTS ? e->tokenizer != NULL : e->preprocess.width > 0;
    if (!is_open)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s was opened without the side for %s", e->dir,
                         side == PNB_ENCODE_TEXTS ? "texts" : "pictures");
    if (o->batch_size < 1 || !(o->mask_keep > 0 && o->mask_keep <= 1) ||
        !(o->mask_drop >= 0 && o->mask_drop <= 1))
        return pnb__fail(err, PNB_ARG,
                         "batches of %zu, mask_keep %g, mask_drop %g: wanted are 1 or more, (0, 1] "
                         "and [0, 1]",
                         o->batch_size, o->mask_keep, o->mask_drop);
    return PNB_OK;
}

static pnb_status encode(pnb_encoder *e, const pnb__embed_source *source,
                         const pnb_encode_opts *opts, pnb_embeddings **out, pnb_error *err)
{
    const pnb_encode_opts usual = pnb_encode_opts_default();
    const pnb_encode_opts *o = opts != NULL ? opts : &usual;
    pnb_status status = check(e, source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES, o, err);
    if (status == PNB_OK && source->n == 0)
        status = pnb__fail(err, PNB_NOT_FOUND, "there is no input to encode");
    return status == PNB_OK ? pnb__embed_set(e, source, o, out, NULL, err) : status;
}

pnb_status pnb_encode_texts(pnb_encoder *e, const char *const *texts, size_t n,
                            const pnb_encode_opts *opts, pnb_embeddings **out, pnb_error *err)
{
    pnb__text_inputs inputs = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++) {
        if (texts[i] == NULL)
            PNB_TRY(pnb__fail(err, PNB_ARG, "text %zu is NULL", i));
        PNB_TRY(pnb__text_inputs_add_text(&inputs, texts[i], err));
        if (inputs.n_bad > 0)
            PNB_TRY(pnb__fail(err, PNB_FORMAT,
                              "text %zu is not valid UTF-8, or longer than %d bytes", i,
                              PNB_TOKENIZER_MAX_BYTES));
    }
    const pnb__embed_source source = pnb__text_inputs_source(&inputs);
    status = encode(e, &source, opts, out, err);
done:
    pnb__text_inputs_reset(&inputs);
    return status;
}

/* pnb__embed_source.image: a copy, which the reader frees. */
static pnb_status copy_image(const void *user, size_t i, const pnb_image_opts *opts, pnb_image *out,
                             pnb_error *err)
{
    const pnb_image *from = (const pnb_image *)user + i;
    enum { PALETTE_BYTES = 256 * 3 };
    (void)opts;
    pnb_status status = pnb_image_create(out, from->width, from->height, from->channels, err);
    if (status != PNB_OK)
        return status;
    memcpy(out->pixels, from->pixels,
           (size_t)from->width * (size_t)from->height * (size_t)from->channels);
    out->mode = from->mode;
    if (from->palette == NULL)
        return PNB_OK;
    out->palette = pnb__alloc(PALETTE_BYTES);
    if (out->palette == NULL)
        return pnb__fail_nomem(err, PALETTE_BYTES);
    memcpy(out->palette, from->palette, PALETTE_BYTES);
    return PNB_OK;
}

static pnb_status label_by_number(const void *user, size_t i, pnb_embeddings *set, size_t row,
                                  pnb_error *err)
{
    char number[32];
    (void)user;
    snprintf(number, sizeof number, "%zu", i);
    return pnb_embeddings_set_id(set, row, number, err);
}

pnb_status pnb_encode_images(pnb_encoder *e, const pnb_image *images, size_t n,
                             const pnb_encode_opts *opts, pnb_embeddings **out, pnb_error *err)
{
    const pnb__embed_source source = {
        .n = n, .user = images, .image = copy_image, .label = label_by_number};
    for (size_t i = 0; i < n; i++)
        if (images[i].pixels == NULL || images[i].width < 1 || images[i].height < 1 ||
            images[i].channels < 1 || images[i].channels > 4)
            return pnb__fail(err, PNB_ARG, "image %zu: %d x %d with %d channels%s is no picture", i,
                             images[i].width, images[i].height, images[i].channels,
                             images[i].pixels == NULL ? " and no pixels" : "");
    return encode(e, &source, opts, out, err);
}

/* ---- files ---- */

typedef struct files {
    pnb__image_inputs *images;
    pnb__text_inputs inputs;
    pnb__embed_source source;
} files;

static void files_reset(files *f)
{
    pnb__image_inputs_free(f->images);
    pnb__text_inputs_reset(&f->inputs);
}

static pnb_status files_open(files *f, pnb_encode_side side, const char *const *paths, size_t n,
                             const pnb_encode_opts *o, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (side == PNB_ENCODE_IMAGES) {
        PNB_TRY(pnb__image_inputs_open(&f->images, paths, n, NULL, err));
        if (o->skipped != NULL)
            pnb__image_inputs_report(f->images, o->skipped, o->skipped_user);
        f->source = pnb__image_inputs_source(f->images);
        return PNB_OK;
    }
    for (size_t i = 0; i < n; i++)
        PNB_TRY(pnb__text_inputs_add(&f->inputs, paths[i], "title", NULL, err));
    if (f->inputs.n_bad > 0 && o->skipped == NULL)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s", f->inputs.bad[0]));
    for (size_t i = 0; i < f->inputs.n_bad; i++)
        o->skipped(o->skipped_user, "caption", f->inputs.bad[i]);
    f->source = pnb__text_inputs_source(&f->inputs);
done:
    return status;
}

pnb_status pnb_encode_files(pnb_encoder *e, pnb_encode_side side, const char *const *paths,
                            size_t n, const pnb_encode_opts *opts, pnb_embeddings **out,
                            pnb_error *err)
{
    const pnb_encode_opts usual = pnb_encode_opts_default();
    const pnb_encode_opts *o = opts != NULL ? opts : &usual;
    files f = {0};
    pnb_status status;
    PNB_TRY(check(e, side, o, err)); /* before anything is read */
    PNB_TRY(files_open(&f, side, paths, n, o, err));
    status = encode(e, &f.source, o, out, err);
done:
    files_reset(&f);
    return status;
}

pnb_status pnb_encode_to_file(pnb_encoder *e, pnb_encode_side side, const char *const *paths,
                              size_t n, const pnb_encode_opts *opts, const pnb_encode_file *file,
                              pnb_encode_result *result, pnb_error *err)
{
    const pnb_encode_opts usual = pnb_encode_opts_default();
    const pnb_encode_opts *o = opts != NULL ? opts : &usual;
    files f = {0};
    pnb_status status;
    PNB_TRY(check(e, side, o, err));
    if (file->out == NULL || file->out[0] == '\0')
        PNB_TRY(pnb__fail(err, PNB_ARG, "the set needs the name of a file"));
    if ((unsigned)file->format > PNB_ENCODE_CLIP_RETRIEVAL)
        PNB_TRY(pnb__fail(err, PNB_ARG, "format %d is none", (int)file->format));
    PNB_TRY(files_open(&f, side, paths, n, o, err));
    status = pnb__embed_file(e, &f.source, o, file, result, err);
done:
    files_reset(&f);
    return status;
}
