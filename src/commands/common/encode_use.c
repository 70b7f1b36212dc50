/* Turns the callbacks of an embedding job into lines on the log, and names into opened models.
 *
 * The encode room knows no program; this is where options that all commands share (seed, largest
 * picture, quiet) and Ctrl-C meet it. */
#include "commands/common/encode_use.h"

#include "commands/common/model_path.h"
#include "commands/common/set_use.h"

pnb_status pnb__encoder_open_named(pnb_encoder *e, pnb__app *app, const char *name,
                                   const pnb_encoder_opts *parts)
{
    pnb_encoder_opts opts = *parts;
    char *dir = NULL;
    *e = (pnb_encoder){0};
    opts.max_image_pixels = app->common.max_image_pixels;
    pnb_status status = pnb__model_path(app, name, &dir, &app->err);
    if (status == PNB_OK)
        status = pnb__encoder_init(e, app->ctx, dir, &opts, &app->err);
    if (status == PNB_OK && e->assumed[0] != '\0')
        pnb__warn(app, "%s: %s", dir, e->assumed);
    if (status == PNB_OK && e->assumed_texts[0] != '\0')
        pnb__warn(app, "%s: %s", dir, e->assumed_texts);
    pnb__free(dir);
    return status;
}

static pnb_status need_variances(const pnb_encoder *e, pnb_family family, pnb_error *err)
{
    if (family == PNB_GAUSSIAN_DIAG || family == PNB_GEN_GAUSSIAN)
        return PNB_OK;
    if (family == PNB_POINT)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s gives points without uncertainty; a probabilistic model is wanted",
                         e->name);
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s gives %s embeddings, which have no variance in each dimension to compare; "
                     "a model that ends in gaussian_diag or gen_gaussian is wanted",
                     e->name, pnb_family_name(family));
}

pnb_status pnb__need_variances(const pnb_encoder *e, int sides, pnb_error *err)
{
    static const pnb_encode_side each[] = {PNB_ENCODE_IMAGES, PNB_ENCODE_TEXTS};
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < PNB_COUNT(each); i++)
        if (sides & (int)each[i])
            status = need_variances(e, pnb__encoder_family(e, each[i]), err);
    return status;
}

pnb_status pnb__need_uncertainty(const pnb_encoder *e, int sides, pnb_error *err)
{
    static const pnb_encode_side each[] = {PNB_ENCODE_IMAGES, PNB_ENCODE_TEXTS};
    for (size_t i = 0; i < PNB_COUNT(each); i++)
        if ((sides & (int)each[i]) != 0 && pnb__encoder_family(e, each[i]) == PNB_POINT)
            return pnb__fail(err, PNB_UNSUPPORTED,
                             "%s gives points without uncertainty for %s; a probabilistic model is "
                             "wanted",
                             e->name, each[i] == PNB_ENCODE_IMAGES ? "pictures" : "captions");
    return PNB_OK;
}

void pnb__describe_tokenizer(const pnb_tokenizer *tokenizer, pnb__result *r)
{
    pnb_padding pad = pnb_tokenizer_padding(tokenizer);
    const char *piece = pad.id >= 0 ? pnb_tokenizer_piece(tokenizer, pad.id) : NULL;
    pnb__result_begin(r, "tokenizer", "tokenizer");
    pnb__result_int(r, "n_ids", "ids", pnb_tokenizer_vocab_size(tokenizer));
    pnb__result_int(r, "pad_id", "pad id", pad.id);
    pnb__result_text(r, "pad_token", "pad token", piece != NULL ? piece : "");
    pnb__result_text(r, "pad_source", "  from", pad.source);
    pnb__result_flag(r, "pad_assumed", "  assumed", pad.assumed);
    pnb__result_int(r, "eos_id", "end id", pnb_tokenizer_eos_id(tokenizer));
    pnb__result_text(r, "clean", "cleaning", pnb_clean_name(pnb_tokenizer_clean(tokenizer)));
    pnb__result_end(r);
}

pnb_status pnb__text_inputs_read(pnb__app *app, pnb__text_inputs *c, const pnb__text_list *files,
                                 const pnb__text_list *texts, const char *caption_key)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < files->n; i++)
        status = pnb__text_inputs_add(c, files->items[i], caption_key, app->in, &app->err);
    for (size_t i = 0; status == PNB_OK && texts != NULL && i < texts->n; i++)
        status = pnb__text_inputs_add_text(c, texts->items[i], &app->err);
    for (size_t i = 0; i < c->n_bad; i++)
        pnb__skipped(app, "caption", c->bad[i]);
    if (status == PNB_OK && c->n == 0)
        status = pnb__fail(&app->err, PNB_NOT_FOUND, "no captions were found in the inputs");
    return status;
}

void pnb__encode_skipped(void *user, const char *what, const char *why)
{
    pnb__skipped(user, what, why);
}

/* ---- watching ---- */

static bool is_wanted(void *user, size_t done, size_t total)
{
    (void)done;
    (void)total;
    return !pnb__is_interrupted(user);
}

void pnb__encode_opts_init(pnb_encode_opts *opts, pnb__app *app)
{
    opts->seed = (uint64_t)app->common.seed;
    opts->watch = (pnb_watch){is_wanted, app};
}

pnb_encode_opts pnb__encode_opts(pnb__app *app)
{
    pnb_encode_opts opts = pnb_encode_opts_default();
    pnb__encode_opts_init(&opts, app);
    return opts;
}

static bool show(void *user, size_t done, size_t total)
{
    pnb__encode_watch *w = user;
    if (!w->has_started) {
        if (done > 0)
            pnb__say(w->app, "continuing after %zu of %zu inputs", done, total);
        pnb__progress_start(&w->progress, w->app, "embedding", w->unit, done, total);
    } else if (done < total) {
        pnb__progress_update(&w->progress, done, NULL);
    }
    w->has_started = true;
    if (done == total)
        pnb__progress_finish(&w->progress, done);
    return !pnb__is_interrupted(w->app);
}

void pnb__encode_watch_init(pnb__encode_watch *w, pnb__app *app, const char *unit,
                            pnb_encode_opts *opts)
{
    *w = (pnb__encode_watch){.app = app, .unit = unit};
    opts->watch = (pnb_watch){show, w};
    opts->skipped = pnb__encode_skipped;
    opts->skipped_user = app;
}

/* ---- sets in memory ---- */

static pnb_status noted(pnb__app *app, pnb_embeddings *const *set, pnb_status status)
{
    if (status == PNB_OK)
        pnb__note_precision(app, "what is encoded now", *set);
    return status;
}

pnb_status pnb__embed_texts(pnb__app *app, pnb_encoder *encoder, const pnb__text_inputs *texts,
                            pnb_embeddings **out)
{
    const pnb_encode_opts opts = pnb__encode_opts(app);
    const pnb__embed_source source = pnb__text_inputs_source(texts);
    return noted(app, out, pnb__embed_set(encoder, &source, &opts, out, NULL, &app->err));
}

pnb_status pnb__embed_images(pnb__app *app, pnb_encoder *encoder, const pnb__image_inputs *images,
                             bool exif, pnb_embeddings **out)
{
    pnb_encode_opts opts = pnb__encode_opts(app);
    const pnb__embed_source source = pnb__image_inputs_source(images);
    opts.exif = exif;
    return noted(app, out, pnb__embed_set(encoder, &source, &opts, out, NULL, &app->err));
}

pnb_status pnb__embed_all(pnb__app *app, pnb_encoder *encoder, const pnb__embed_source *source,
                          const char *unit, bool exif, pnb_embeddings **out)
{
    pnb_encode_opts opts = pnb__encode_opts(app);
    pnb__encode_watch watch;
    opts.exif = exif;
    pnb__encode_watch_init(&watch, app, unit, &opts);
    return noted(app, out, pnb__embed_set(encoder, source, &opts, out, NULL, &app->err));
}
