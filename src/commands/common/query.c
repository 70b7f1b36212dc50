/* Command-line words to embedding sets, for commands that take either a set or the things
 * themselves. Everything is embedded in memory: what is typed is small, and long lists are for
 * `embed`, which keeps a journal. */
#include "commands/common/query.h"

#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"

bool pnb__query_given(const pnb__query *w)
{
    return w->set != NULL || w->texts.n > 0 || w->images.n > 0;
}

pnb_status pnb__query_check(pnb__app *app, const pnb__query *w, const char *model)
{
    int kinds = (w->texts.n > 0) + (w->images.n > 0) + (w->set != NULL);
    if (kinds != 1)
        return pnb__usage(app, "%s of --query-text, --query-image, --queries is wanted",
                          kinds == 0 ? "one" : "only one");
    if (w->set == NULL && model == NULL)
        return pnb__usage(app, "--model is missing: it encodes the query");
    if (w->exif && w->images.n == 0)
        return pnb__usage(app, "--exif needs --query-image");
    return PNB_OK;
}

int pnb__query_use(const pnb__query *w)
{
    if (w->set != NULL)
        return 0;
    return (w->texts.n > 0 ? PNB_ENCODE_TEXTS : 0) | (w->images.n > 0 ? PNB_ENCODE_IMAGES : 0);
}

static pnb_status embed_texts(pnb__app *app, pnb_encoder *encoder, const char *const *texts,
                              size_t n, pnb_embeddings **out)
{
    pnb__text_inputs inputs = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++)
        PNB_TRY(pnb__text_inputs_add_text(&inputs, texts[i], &app->err));
    if (inputs.n_bad > 0)
        PNB_TRY(pnb__fail(&app->err, PNB_FORMAT, "%s", inputs.bad[0]));
    status = pnb__embed_texts(app, encoder, &inputs, out);
done:
    pnb__text_inputs_reset(&inputs);
    return status;
}

static pnb_status embed_images(pnb__app *app, pnb_encoder *encoder, const pnb__query *w,
                               pnb_embeddings **out)
{
    pnb__image_inputs *images = NULL;
    pnb_status status =
        pnb__image_inputs_open(&images, w->images.items, w->images.n, app->in, &app->err);
    if (status == PNB_OK)
        status = pnb__embed_images(app, encoder, images, w->exif, out);
    pnb__image_inputs_free(images);
    return status;
}

pnb_status pnb__query_embed(pnb__app *app, pnb_encoder *encoder, const pnb__query *words,
                            pnb_embeddings **out)
{
    if (words->set != NULL)
        return pnb__set_load(out, words->set, app);
    if (words->images.n > 0)
        return embed_images(app, encoder, words, out);
    return embed_texts(app, encoder, words->texts.items, words->texts.n, out);
}

pnb_status pnb__embed_null_text(pnb__app *app, pnb_encoder *encoder, pnb_embeddings **out)
{
    static const char *const empty[] = {""};
    return embed_texts(app, encoder, empty, 1, out);
}
