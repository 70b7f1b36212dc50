/* `penumbra convert`: what goes beside the weights.
 *
 * Tokenizer files are copied byte for byte. Preprocessing is a file of its own for Hugging Face and
 * a section of open_clip_config.json for open_clip; both say the same. A preprocessing that
 * open_clip has no words for (a crop smaller than the resize) is warned about: Penumbra reads the
 * carried preprocessor_config.json first, open_clip does not. */
#include "commands/convert/convert.h"

#include <string.h>

#include "base/names.h"
#include "commands/common/model_path.h"
#include "encode/model_files.h"
#include "io/json/json.h"
#include "models/lora/lora.h"
#include "penumbra/image.h"
#include "penumbra/model.h"
#include "penumbra/tokenizer.h"

/* The value of preprocess_cfg, allocated; NULL when out of memory. */
static char *open_clip_words(const pnb_preprocess *pp)
{
    json_t *o = json_pack("{s:[f,f,f], s:[f,f,f], s:s, s:s}", "mean", (double)pp->mean[0],
                          (double)pp->mean[1], (double)pp->mean[2], "std", (double)pp->std[0],
                          (double)pp->std[1], (double)pp->std[2], "interpolation",
                          pnb_filter_name(pp->filter), "resize_mode",
                          pnb__name_at(PNB_NAMES(PNB_FIT_LIST), pp->mode, NULL));
    pnb__buf b = {0};
    if (o != NULL &&
        (pp->fill == 0 || json_object_set_new(o, "fill_color", json_integer(pp->fill)) == 0))
        pnb__json_append_value(&b, o);
    json_decref(o);
    if (b.data == NULL || b.failed) {
        pnb__buf_reset(&b);
        return NULL;
    }
    return b.data;
}

/* A vocabulary that was saved inside the weights goes beside them: the one that the old folder has
 * and the new one lacks. */
static pnb_status carry_words(const pnb__convert_opts *o, size_t *n, pnb_error *err)
{
    pnb_tokenizer *words = NULL;
    char *path = pnb__path_join(o->out, "tokenizer.json");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(o->out));
    pnb_status status = PNB_OK;
    bool is_there = pnb_tokenizer_load(&words, o->out, NULL) != PNB_NOT_FOUND;
    if (!is_there && pnb_tokenizer_load(&words, o->dir, NULL) == PNB_OK) {
        status = pnb_tokenizer_save(words, path, err);
        *n += status == PNB_OK;
    }
    pnb_tokenizer_free(words);
    pnb__free(path);
    return status;
}

static pnb_status carry_all(const pnb__convert_opts *o, const pnb_preprocess *pp, size_t *n,
                            pnb_error *err)
{
    bool resized = o->image_size != PNB__INT_UNSET; /* the old file would contradict the model */
    pnb_status status = pnb__model_files_copy(o->dir, o->out, !resized, n, err);
    if (status == PNB_OK)
        status = carry_words(o, n, err);
    if (status == PNB_OK && pp != NULL && (resized || strcmp(o->to, "open_clip") != 0))
        status = pnb__model_files_add_preprocess(o->out, pp, err);
    return status;
}

static pnb_model_convert_opts model_opts(const pnb__app *app, const pnb__convert_opts *o)
{
    pnb_model_convert_opts c = {.seed = (uint64_t)app->common.seed};
    c.to = strcmp(o->to, "hf") == 0          ? PNB_KEYS_HF
           : strcmp(o->to, "open_clip") == 0 ? PNB_KEYS_OPEN_CLIP
           : strcmp(o->to, "pcme") == 0      ? PNB_KEYS_PCME
           : strcmp(o->to, "pcmepp") == 0    ? PNB_KEYS_PCMEPP
                                             : PNB_KEYS_PROLIP;
    if (o->n_unc_layers != PNB__INT_UNSET)
        c.n_unc_layers = (size_t)o->n_unc_layers;
    if (o->image_size != PNB__INT_UNSET)
        c.sizes.image_height = c.sizes.image_width = (size_t)o->image_size;
    if (o->context_length != PNB__INT_UNSET)
        c.sizes.context_length = (size_t)o->context_length;
    return c;
}

static pnb_status convert(pnb__app *app, const pnb__convert_opts *o, pnb__result *r)
{
    pnb_preprocess pp;
    char notes[1024];
    size_t n_carried = 0;
    pnb_error *err = &app->err;
    pnb_status status = pnb_preprocess_load(&pp, o->dir, NULL);
    bool knows = status == PNB_OK;
    if (status == PNB_NOMEM)
        return pnb__fail_nomem(err, 0);
    if (knows && o->image_size != PNB__INT_UNSET) {
        pp.width = pp.height = (int)o->image_size;
        pp.resize_to = 0;
    }
    char *words = knows ? open_clip_words(&pp) : NULL;
    if (knows && words == NULL)
        return pnb__fail_nomem(err, 0);
    pnb_model_convert_opts c = model_opts(app, o);
    c.preprocess_json = words;
    PNB_TRY(pnb_model_convert(app->ctx, o->dir, o->out, &c, notes, err));
    PNB_TRY(carry_all(o, knows ? &pp : NULL, &n_carried, err));
    if (!knows && c.to != PNB_KEYS_PCME) /* it is known of that family */
        pnb__warn(app, "%s does not say how pictures are prepared; neither does %s", o->dir,
                  o->out);
    if (knows && pp.resize_to > 0 && c.to == PNB_KEYS_OPEN_CLIP)
        pnb__warn(app,
                  "open_clip has no words for resizing to %d and cropping to %d: it will "
                  "differ from this model",
                  pp.resize_to, pp.width);
    if (notes[0] != '\0')
        pnb__warn(app, "%s", notes);
    pnb__result_text(r, "from", "from", o->dir);
    pnb__result_text(r, "dir", "written", o->out);
    pnb__result_text(r, "layout", "layout", o->to);
    pnb__result_int(r, "n_carried", "tokenizer and preprocessor files", (int64_t)n_carried);
    pnb__result_text(r, "notes", NULL, notes);
done:
    pnb__free(words);
    return status;
}

/* A layout is another matter: whoever wants both converts twice. */
static pnb_status check_words(pnb__app *app, const pnb__convert_opts *o)
{
    if (o->lora == NULL && o->to == NULL)
        return pnb__usage(app, "--to LAYOUT is missing, or --lora ADAPTER to be merged");
    if (o->lora != NULL &&
        (o->to != NULL || o->image_size != PNB__INT_UNSET || o->context_length != PNB__INT_UNSET ||
         o->n_unc_layers != PNB__INT_UNSET))
        return pnb__usage(app, "--lora merges an adapter into its base and changes nothing else: "
                               "convert the merged model with --to and --force-...");
    return PNB_OK;
}

static pnb_status merge(pnb__app *app, const pnb__convert_opts *o, pnb__result *r)
{
    pnb_model *model = NULL;
    size_t n_carried = 0;
    pnb_status status;
    if (pnb_model_is_dir(o->out))
        return pnb__fail(&app->err, PNB_EXISTS, "%s holds a model already; give another --out",
                         o->out);
    /* a folder that is both is neither to train */
    if (pnb__lora_is_dir(o->out))
        return pnb__fail(&app->err, PNB_EXISTS, "%s holds an adapter; give another --out", o->out);
    PNB_TRY(pnb_model_merge_lora(&model, app->ctx, o->dir, o->lora, &app->err));
    PNB_TRY(pnb_model_save(model, o->out, &app->err));
    PNB_TRY(pnb__model_files_copy(o->lora, o->out, true, &n_carried, &app->err));
    pnb__result_text(r, "from", "base", o->dir);
    pnb__result_text(r, "lora", "adapter", o->lora);
    pnb__result_text(r, "dir", "written", o->out);
    pnb__result_int(r, "n_carried", "tokenizer and preprocessor files", (int64_t)n_carried);
done:
    pnb_model_free(model);
    return status;
}

pnb_status pnb__convert_model(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__convert_opts *opts = args;
    char *dir = NULL;
    pnb_status checked = check_words(app, opts);
    if (checked != PNB_OK)
        return checked;
    if (opts->to != NULL && opts->n_unc_layers != PNB__INT_UNSET && strcmp(opts->to, "pcmepp") != 0)
        return pnb__usage(app, "--unc-layers goes with --to pcmepp: a %s model has no second path",
                          opts->to);
    pnb_status status = pnb__model_path(app, opts->dir, &dir, &app->err);
    if (status == PNB_OK) {
        pnb__convert_opts o = *opts;
        o.dir = dir;
        status = o.lora != NULL ? merge(app, &o, r) : convert(app, &o, r);
    }
    pnb__free(dir);
    return status;
}
