/* Opens the parts of a model directory that must agree and checks that they do.
 *
 * What the directory leaves open about pictures is taken as its family's reference does and said in
 * `assumed`; a tokenizer is never assumed. */
#include "encode/encoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/adapter.h"
#include "base/base.h"
#include "encode/weights_hash.h"
#include "io/json/json.h"
#include "models/lora/lora.h"
#include "models/model.h"
#include "models/model_defaults.h"
#include "penumbra/prob.h"

static pnb_status find_tokenizer(pnb_encoder *e, const char *dir, const char *path, pnb_error *err)
{
    char source[256];
    pnb_status status = pnb_tokenizer_load(&e->tokenizer, path != NULL ? path : dir, err);
    if (status != PNB_NOT_FOUND || path != NULL)
        return status;
    pnb__tokenizer_source(e->model, source, sizeof source);
    if (err != NULL)
        pnb_error_reset(err);
    return pnb__fail(err, PNB_NOT_FOUND,
                     "%s has no tokenizer; copy it from %s, or name another tokenizer", dir,
                     source);
}

/* Appends a sentence to what is said of captions. */
PNB_PRINTF(2, 3) static void note_texts(pnb_encoder *e, const char *format, ...)
{
    size_t n = strlen(e->assumed_texts);
    va_list args;
    if (n > 0)
        n += (size_t)snprintf(e->assumed_texts + n, sizeof e->assumed_texts - n, "; ");
    if (n >= sizeof e->assumed_texts)
        return;
    va_start(args, format);
    vsnprintf(e->assumed_texts + n, sizeof e->assumed_texts - n, format, args);
    va_end(args);
}

static void note_assumed(pnb_encoder *e, const json_t *config, bool clean_assumed)
{
    pnb_padding pad = pnb_tokenizer_padding(e->tokenizer);
    const char *piece = pad.id >= 0 ? pnb_tokenizer_piece(e->tokenizer, pad.id) : NULL;
    if (pad.assumed)
        note_texts(e,
                   "no file says what pads captions; assumed id %d, \"%.40s\": %s (a "
                   "tokenizer_config.json with \"pad_token\" settles it)",
                   PNB_MAX(pad.id, 0), piece != NULL ? piece : "", pad.source);
    else if (pnb__pad_unlike_open_clip(e->tokenizer, config))
        note_texts(e,
                   "captions are padded with id %d (%s), and padding is attended to; but the "
                   "configuration names no hf_tokenizer_name, and open_clip's own tokenizer pads "
                   "with 0, as ProLIP's ViT-H/14 was trained (\"pad_token\": \"!\" there settles "
                   "it)",
                   pad.id, pad.source);
    if (clean_assumed)
        note_texts(e, "no file says how captions are cleaned; assumed canonicalize, as SigLIP was "
                      "trained");
}

/* The configuration has the last word on cleaning: tokenizer.json has no place for it. */
static pnb_status open_tokenizer(pnb_encoder *e, const char *dir, const char *path, pnb_error *err)
{
    const char *text = pnb_model_config_text(e->model);
    json_t *config = NULL;
    pnb_status status;
    PNB_TRY(find_tokenizer(e, dir, path, err));
    status =
        pnb__model_check_vocabulary(e->model, (size_t)pnb_tokenizer_vocab_size(e->tokenizer), err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", path != NULL ? path : dir);
        return status;
    }
    PNB_TRY(pnb__json_load_bytes(&config, text, strlen(text), dir, err));
    bool clean_assumed = false;
    const char *beside = path == NULL ? dir : pnb__path_is_dir(path) ? path : NULL;
    status = pnb__tokenizer_configure(e->tokenizer, config, beside, &clean_assumed, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", dir);
    else
        note_assumed(e, config, clean_assumed);
done:
    json_decref(config);
    return status;
}

/* Takes the preprocessing of `dir`, or the family's where the folder has none. */
static pnb_status find_preprocess(pnb_encoder *e, const char *dir, const char *path, pnb_error *err)
{
    char notes[PNB__MAX_ASSUMED / 2];
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = pnb_preprocess_load_noted(&e->preprocess, path != NULL ? path : dir, notes,
                                                  sizeof notes, &why);
    if (status == PNB_NOT_FOUND && path == NULL) {
        e->preprocess = pnb__assumed_preprocess(e->model);
        pnb_preprocess_describe(&e->preprocess, notes, sizeof notes);
        snprintf(e->assumed, sizeof e->assumed,
                 "the folder does not say how pictures are prepared; assumed as for family %s: %s",
                 e->info->family, notes);
        return PNB_OK;
    }
    if (status != PNB_OK)
        return pnb__fail(err, status, "%s", why.text);
    if (notes[0] != '\0')
        snprintf(e->assumed, sizeof e->assumed,
                 "the preprocessing does not say everything; assumed: %s", notes);
    return PNB_OK;
}

static pnb_status open_preprocess(pnb_encoder *e, const char *dir, const char *path, pnb_error *err)
{
    const pnb_tower_info *v = &e->info->vision;
    pnb_status status = find_preprocess(e, dir, path, err);
    if (status != PNB_OK)
        return status;
    if ((size_t)e->preprocess.width != v->image_width ||
        (size_t)e->preprocess.height != v->image_height)
        return pnb__fail(
            err, PNB_SHAPE,
            "%s: the preprocessing makes %d x %d pictures, the image tower takes %zu x %zu",
            path != NULL ? path : dir, e->preprocess.width, e->preprocess.height, v->image_width,
            v->image_height);
    return PNB_OK;
}

/* Last part of a path that is a name: "runs/a/" -> "a", "." -> ".". */
static void last_part(const char *dir, char *name, size_t size)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    size_t start = n;
    while (start > 0 && dir[start - 1] != '/')
        start--;
    snprintf(name, size, "%.*s", (int)(n - start), dir + start);
}

/* What training wrote about the checkpoint in `dir`; `*step` stays -1 where it is none. */
static pnb_status read_state(const char *dir, int64_t *epoch, int64_t *step, pnb_error *err)
{
    json_t *root = NULL;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = PNB_OK;
    char *path = pnb__path_join(dir, "state.json");
    *step = *epoch = -1;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    if (pnb__path_is_file(path))
        status = pnb__json_load_file(&root, path, 0, &why);
    if (status == PNB_OK && root != NULL) {
        pnb__jobj o = pnb__json_object(root, path, &why);
        *step = pnb__json_get_int(&o, "step", -1, &why);
        *epoch = pnb__json_get_int(&o, "epoch", -1, &why);
        status = o.status;
    }
    if (status != PNB_OK || *epoch < 0)
        *step = -1; /* a file of that name that training did not write */
    json_decref(root);
    pnb__free(path);
    return status == PNB_NOMEM ? pnb__fail(err, status, "%s", why.text) : PNB_OK;
}

/* A checkpoint of a run is called by the run, its epoch and its step, whatever link names it:
 * "latest" is another model tomorrow. */
static pnb_status name_of_checkpoint(const char *dir, int64_t epoch, int64_t step, char *name,
                                     size_t size, pnb_error *err)
{
    char run[96];
    char *of_run = NULL, *above = NULL, *real = realpath(dir, NULL);
    pnb_status status = PNB_OK;
    if (real == NULL || (above = pnb__path_dir(real)) == NULL) {
        status = pnb__fail_nomem(err, strlen(dir));
        goto done;
    }
    bool in_run = strcmp(pnb__path_base(above), "checkpoints") == 0;
    if (in_run && (of_run = pnb__path_dir(above)) == NULL) {
        status = pnb__fail_nomem(err, strlen(above));
        goto done;
    }
    last_part(in_run ? of_run : real, run, sizeof run);
    snprintf(name, size, "%s-epoch_%lld-step_%lld", run, (long long)epoch, (long long)step);
done:
    pnb__free(of_run);
    pnb__free(above);
    free(real);
    return status;
}

/* The repository's name of a snapshot in Hugging Face's cache, whose own name is a commit id; of a
 * checkpoint its run's; else the folder's, behind links. */
static pnb_status name_of(const char *dir, char *name, size_t size, pnb_error *err)
{
    const char *repo = strstr(dir, "/models--"), *end = repo ? strstr(repo, "/snapshots/") : NULL;
    int64_t epoch, step;
    if (end != NULL) {
        repo += strlen("/models--");
        snprintf(name, size, "%.*s", (int)(end - repo), repo);
        return PNB_OK;
    }
    pnb_status status = read_state(dir, &epoch, &step, err);
    if (status != PNB_OK)
        return status;
    if (step >= 0)
        return name_of_checkpoint(dir, epoch, step, name, size, err);
    last_part(dir, name, size);
    return PNB_OK;
}

/* Its files have the names of a model's, and would be read as a broken one. */
static pnb_status refuse_adapter(const char *dir, pnb_error *err)
{
    bool is_adapter = false;
    pnb_status status = pnb__lora_refuse_dir(dir, err);
    if (status == PNB_OK)
        status = pnb_adapter_is_dir(&is_adapter, dir, err);
    if (status != PNB_OK || !is_adapter)
        return status;
    return pnb__fail(err, PNB_FORMAT,
                     "%s is an adapter, not a model; `penumbra adapt attach MODEL %s --out DIR` "
                     "makes a model of both",
                     dir, dir);
}

pnb_status pnb__encoder_init(pnb_encoder *e, const pnb_ctx *ctx, const char *dir,
                             const pnb_encoder_opts *parts, pnb_error *err)
{
    *e = (pnb_encoder){.max_image_pixels = parts->max_image_pixels};
    pnb__workers_init(&e->workers);
    pnb_status status = name_of(dir, e->name, sizeof e->name, err);
    if (status == PNB_OK && (e->dir = pnb__strdup(dir)) == NULL)
        status = pnb__fail_nomem(err, strlen(dir));
    if (status == PNB_OK)
        status = refuse_adapter(dir, err);
    if (status == PNB_OK)
        status = pnb_model_load(&e->model, ctx, dir, err);
    if (status == PNB_OK)
        status = pnb_model_set_precision(e->model, parts->precision, err);
    if (status != PNB_OK)
        return status;
    e->info = pnb_model_get_info(e->model);
    status = pnb__weights_hash(e->model, e->weights_sha256, err);
    if (status == PNB_OK)
        status = pnb__encoder_open_adapter(e, ctx, err);
    if (status != PNB_OK)
        return status;
    return pnb__encoder_add(e, dir, parts, err);
}

pnb_status pnb__encoder_borrow(pnb_encoder *e, const char *name, pnb_model *model,
                               const pnb_tokenizer *tokenizer, const pnb_preprocess *preprocess,
                               pnb_error *err)
{
    const char *hash = NULL;
    *e = (pnb_encoder){.is_borrowed = true,
                       .model = model,
                       .info = pnb_model_get_info(model),
                       .tokenizer = (pnb_tokenizer *)(uintptr_t)tokenizer, /* it is only read */
                       .preprocess = *preprocess};
    pnb__workers_init(&e->workers);
    snprintf(e->name, sizeof e->name, "%s", name);
    pnb_status status = pnb_model_weights_sha256(model, &hash, err);
    if (status == PNB_OK)
        snprintf(e->weights_sha256, sizeof e->weights_sha256, "%s", hash);
    if (status == PNB_OK && (e->dir = pnb__strdup(name)) == NULL)
        status = pnb__fail_nomem(err, strlen(name));
    return status;
}

/* Journals tell apart what was opened with other files. */
static pnb_status keep_path(char **to, const char *path, pnb_error *err)
{
    if (path == NULL)
        return PNB_OK;
    pnb__free(*to);
    *to = pnb__strdup(path);
    return *to != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
}

pnb_status pnb__encoder_add(pnb_encoder *e, const char *dir, const pnb_encoder_opts *parts,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    if ((parts->sides & PNB_ENCODE_TEXTS) && !e->info->text.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: this model has no text tower", dir);
    if ((parts->sides & PNB_ENCODE_IMAGES) && !e->info->vision.present)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: this model has no image tower", dir);
    if (parts->sides & PNB_ENCODE_TEXTS)
        status = open_tokenizer(e, dir, parts->tokenizer, err);
    if (status == PNB_OK && (parts->sides & PNB_ENCODE_IMAGES))
        status = open_preprocess(e, dir, parts->preprocess, err);
    if (status == PNB_OK)
        status = keep_path(&e->parts[0], parts->tokenizer, err);
    if (status == PNB_OK)
        status = keep_path(&e->parts[1], parts->preprocess, err);
    return status;
}

pnb_status pnb_encoder_open(pnb_encoder **out, const pnb_ctx *ctx, const char *dir,
                            const pnb_encoder_opts *opts, pnb_error *err)
{
    const pnb_encoder_opts weights_alone = {0};
    pnb_encoder_opts parts = opts != NULL ? *opts : weights_alone;
    pnb_encoder *e = pnb__alloc_zero(1, sizeof *e);
    if (e == NULL)
        return pnb__fail_nomem(err, sizeof *e);
    pnb_status status = pnb__encoder_init(e, ctx, dir, &weights_alone, err);
    if (status == PNB_OK && parts.sides == 0)
        parts.sides = (e->info->vision.present ? PNB_ENCODE_IMAGES : 0) |
                      (e->info->text.present ? PNB_ENCODE_TEXTS : 0);
    if (status == PNB_OK)
        status = pnb__encoder_add(e, dir, &parts, err);
    if (status == PNB_OK)
        *out = e;
    else
        pnb_encoder_free(e);
    return status;
}

void pnb_encoder_free(pnb_encoder *e)
{
    if (e == NULL)
        return;
    pnb__encoder_reset(e);
    pnb__free(e);
}

const pnb_model_info *pnb_encoder_model_info(const pnb_encoder *e)
{
    return e->info;
}

const char *pnb_encoder_assumed(const pnb_encoder *e, pnb_encode_side side)
{
    return side == PNB_ENCODE_TEXTS ? e->assumed_texts : e->assumed;
}

void pnb__encoder_reset(pnb_encoder *e)
{
    pnb__workers_reset(&e->workers);
    pnb_adapter_free(e->adapter);
    if (!e->is_borrowed) {
        pnb_tokenizer_free(e->tokenizer);
        pnb_model_free(e->model);
    }
    pnb__free(e->dir);
    for (size_t i = 0; i < PNB_COUNT(e->parts); i++)
        pnb__free(e->parts[i]);
    *e = (pnb_encoder){0};
}

static void describe_text(const pnb_encoder *e, char *text, size_t size)
{
    int n = snprintf(text, size, "context %zu, clean %s", e->info->text.context_length,
                     e->tokenizer != NULL ? pnb_clean_name(pnb_tokenizer_clean(e->tokenizer))
                                          : "unknown");
    if (e->tokenizer != NULL && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", pad %d", pnb_tokenizer_pad_id(e->tokenizer));
}

static pnb_adapter_side side_of(pnb_encode_side side)
{
    return side == PNB_ENCODE_TEXTS ? PNB_ADAPTER_TEXTS : PNB_ADAPTER_IMAGES;
}

bool pnb__encoder_adapts(const pnb_encoder *e, pnb_encode_side side)
{
    pnb_adapter_facts facts;
    if (e->adapter == NULL)
        return false;
    pnb_adapter_describe(e->adapter, &facts);
    return facts.side[side_of(side)].is_adapted;
}

bool pnb__encoder_keeps_lengths(const pnb_encoder *e, pnb_encode_side side)
{
    pnb_adapter_facts facts;
    if (!pnb__encoder_adapts(e, side))
        return false;
    pnb_adapter_describe(e->adapter, &facts);
    return pnb__ends_with(facts.side[side_of(side)].origin->preprocess, PNB__LENGTHS_KEPT);
}

void pnb_encoder_describe(const pnb_encoder *e, pnb_encode_side side, uint64_t seed,
                          pnb_embeddings_info *info)
{
    bool is_text = side == PNB_ENCODE_TEXTS;
    *info = (pnb_embeddings_info){.seed = seed,
                                  .logit_scale = e->info->logit_scale,
                                  .logit_bias = e->info->logit_bias,
                                  .match_a = e->info->match_a,
                                  .match_b = e->info->match_b};
    info->n_embeddings = e->info->n_embeddings;
    if (e->info->match_a > 0) /* NaN: it has none */
        info->match_samples = pnb_measure_opts_default().n_samples;
    if (e->info->measure != NULL && e->info->is_probabilistic)
        snprintf(info->measure, sizeof info->measure, "%s", e->info->measure);
    snprintf(info->modality, sizeof info->modality, "%s", is_text ? "text" : "image");
    snprintf(info->model, sizeof info->model, "%s", e->name);
    snprintf(info->weights_sha256, sizeof info->weights_sha256, "%s", e->weights_sha256);
    if (pnb_model_get_precision(e->model) != PNB_PRECISION_FP32)
        snprintf(info->precision, sizeof info->precision, "%s",
                 pnb_precision_name(pnb_model_get_precision(e->model)));
    if (is_text)
        describe_text(e, info->preprocess, sizeof info->preprocess);
    else if (e->preprocess.width > 0)
        pnb_preprocess_describe(&e->preprocess, info->preprocess, sizeof info->preprocess);
    if (pnb__encoder_adapts(e, side)) {
        pnb_adapter_facts facts;
        pnb_adapter_describe(e->adapter, &facts);
        info->adapters = (pnb_adapter_links){1, {*facts.link}};
        pnb__adapter_describe_scores(e->adapter, info);
    }
}

static pnb_family tower_family(const pnb_encoder *e, pnb_encode_side side)
{
    return side == PNB_ENCODE_TEXTS ? e->info->text.family : e->info->vision.family;
}

pnb_family pnb__encoder_family(const pnb_encoder *e, pnb_encode_side side)
{
    pnb_adapter_facts facts;
    if (!pnb__encoder_adapts(e, side))
        return tower_family(e, side);
    pnb_adapter_describe(e->adapter, &facts);
    return facts.family;
}

size_t pnb__encoder_dim(const pnb_encoder *e, pnb_encode_side side)
{
    pnb_adapter_facts facts;
    if (!pnb__encoder_adapts(e, side))
        return e->info->embed_dim;
    pnb_adapter_describe(e->adapter, &facts);
    return facts.side[side_of(side)].dim_out;
}

pnb_status pnb__encoder_make_set(const pnb_encoder *e, pnb_encode_side side, size_t n,
                                 pnb_embeddings **out, pnb_error *err)
{
    return pnb_embeddings_create(out, tower_family(e, side), n, e->info->embed_dim, err);
}

pnb_status pnb__encoder_make_rows(const pnb_encoder *e, pnb_encode_side side, size_t n,
                                  pnb_embeddings **out, pnb_error *err)
{
    return pnb__encoder_adapts(e, side)
               ? pnb__adapter_make_set(out, e->adapter, side_of(side), n, err)
               : pnb__encoder_make_set(e, side, n, out, err);
}

pnb_status pnb__encoder_need_plain(const pnb_encoder *e, const char *what, pnb_error *err)
{
    pnb_adapter_facts facts;
    if (e->adapter == NULL)
        return PNB_OK;
    pnb_adapter_describe(e->adapter, &facts);
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s has the adapter %s beside it, and %s looks at the model alone: name the "
                     "folder that the adapter was attached to",
                     e->dir, facts.link->name, what);
}
