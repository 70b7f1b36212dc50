/* `penumbra info`: opens a path with the reader that fits and lists what it says.
 *
 * An adapter is recognised by its config.json in a directory, a model by any other, an embedding
 * set by an array "mean", a tokenizer by its file name; every other directory or file is tried as a
 * data set. */
#include "commands/info/info.h"
#include "commands/common/encode_use.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/adapt/adapt.h"
#include "commands/common/model_path.h"
#include "commands/common/set_use.h"
#include "encode/weights_hash.h"
#include "penumbra/dataset.h"
#include "penumbra/embeddings.h"
#include "penumbra/model.h"
#include "penumbra/prob.h"
#include "penumbra/safetensors.h"
#include "penumbra/search.h"
#include "sets/settle.h"

static bool has_tokenizer(const char *dir)
{
    static const char *const names[] = {"tokenizer.json",
                                        "spiece.model",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "bpe_simple_vocab_16e6.txt.gz",
                                        "bpe_simple_vocab_16e6.txt",
                                        "vocab.pkl",
                                        "coco_vocab.pkl",
                                        "cub_vocab.pkl",
                                        "vocab.txt"};
    bool found = false;
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        found |= pnb__path_has_file(dir, names[i]);
    return found;
}

/* ---- model ---- */

/* Settings of a transformer. */
static void describe_blocks(const pnb_tower_info *t, pnb__result *r)
{
    pnb__result_int(r, "width", "width", (int64_t)t->width);
    pnb__result_int(r, "layers", "layers", (int64_t)t->n_layers);
    pnb__result_int(r, "heads", "heads", (int64_t)t->n_heads);
    pnb__result_int(r, "mlp_width", "MLP width", (int64_t)t->mlp_width);
    pnb__result_real(r, "layernorm_eps", "LayerNorm eps", t->layernorm_eps, 7);
    pnb__result_text(r, "activation", "activation", t->activation);
    pnb__result_flag(r, "quick_gelu", NULL, t->quick_gelu);
    pnb__result_text(r, "pooling", "read at", t->pooling);
}

static void describe_tower(const pnb_tower_info *t, bool is_text, pnb__result *r)
{
    if (!t->present)
        return;
    pnb__result_begin(r, is_text ? "text" : "vision", is_text ? "text tower" : "image tower");
    if (is_text) {
        pnb__result_int(r, "context_length", "context", (int64_t)t->context_length);
        pnb__result_int(r, "vocab_size", "vocabulary", (int64_t)t->vocab_size);
    } else {
        pnb__result_int(r, "image_width", "image width", (int64_t)t->image_width);
        pnb__result_int(r, "image_height", "image height", (int64_t)t->image_height);
        if (t->patch > 0)
            pnb__result_int(r, "patch", "patch", (int64_t)t->patch);
    }
    if (t->n_layers > 0)
        describe_blocks(t, r);
    if (t->architecture[0] != '\0')
        pnb__result_text(r, "architecture", "architecture", t->architecture);
    pnb__result_text(r, "key_names", "names of weights", t->key_names);
    if (t->n_layers > 0)
        pnb__result_flag(r, "uncertainty", "gives log-variance", t->family == PNB_GAUSSIAN_DIAG);
    else
        pnb__result_text(r, "distributions", "ends in", pnb_family_name(t->family));
    pnb__result_end(r);
}

/* A tokenizer that does not open is a warning here: `check` examines, `info` lists. */
static void describe_beside(pnb__app *app, pnb_encoder *e, const char *dir, pnb__result *r)
{
    const pnb_encoder_opts parts = {.sides = PNB_ENCODE_TEXTS};
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__encoder_add(e, dir, &parts, &err) != PNB_OK)
        pnb__warn(app, "%s", err.text);
    else if (e->assumed_texts[0] != '\0')
        pnb__warn(app, "%s: %s", dir, e->assumed_texts);
    if (e->tokenizer != NULL)
        pnb__describe_tokenizer(e->tokenizer, r);
}

/* The chain of the sets that a model with an adapter makes: opened as embed opens it. */
static pnb_status describe_attached(pnb__app *app, const char *dir, pnb__result *r)
{
    const pnb_encoder_opts weights_alone = {0};
    pnb_encoder e = {.model = NULL};
    pnb_adapter_facts facts;
    if (!pnb__path_has_dir(dir, "adapter"))
        return PNB_OK;
    pnb_status status = pnb__encoder_init(&e, app->ctx, dir, &weights_alone, &app->err);
    if (status == PNB_OK && e.adapter != NULL) {
        pnb_adapter_describe(e.adapter, &facts);
        pnb__result_begin(r, "adapter", "adapter");
        pnb__result_text(r, "name", "name", facts.link->name);
        pnb__result_text(r, "sha256", "SHA-256", facts.link->sha256);
        pnb__result_text(r, "model", "of the model", e.name);
        pnb__result_text(r, "family", "makes sets of", pnb_family_name(facts.family));
        pnb__result_flag(r, "images", "pictures go through it",
                         pnb__encoder_adapts(&e, PNB_ENCODE_IMAGES));
        pnb__result_flag(r, "texts", "captions go through it",
                         pnb__encoder_adapts(&e, PNB_ENCODE_TEXTS));
        pnb__result_end(r);
    }
    pnb__encoder_reset(&e);
    return status;
}

static pnb_status describe_model(pnb__app *app, const char *dir, pnb__result *r)
{
    pnb_model *model = NULL;
    char hex[65];
    pnb_status status = pnb_model_load(&model, app->ctx, dir, &app->err);
    if (status == PNB_OK)
        status = pnb__weights_hash(model, hex, &app->err);
    if (status != PNB_OK) {
        pnb_model_free(model);
        return status;
    }
    const pnb_model_info *info = pnb_model_get_info(model);
    pnb__result_text(r, "kind", "kind", "model");
    pnb__result_text(r, "family", "family", info->family);
    pnb__result_int(r, "n_params", "parameters", (int64_t)info->n_params);
    pnb__result_int(r, "weight_bytes", "weights in bytes", (int64_t)info->weight_bytes);
    pnb__result_text(r, "weights_stored", "weights kept in", info->weights_stored);
    if (pnb_model_quantization(model) != NULL)
        pnb__result_text(r, "quantization", "made small with", pnb_model_quantization(model));
    pnb__result_text(r, "weights_sha256", "SHA-256", hex);
    pnb__result_int(r, "embed_dim", "embedding width", (int64_t)info->embed_dim);
    pnb__result_flag(r, "probabilistic", "gives variances", info->is_probabilistic);
    if (info->vision.has_unc || info->text.has_unc)
        pnb__result_text(r, "text_uncertainty_source", "text log-variance from",
                         pnb_text_unc_source_name(info->text_unc_source));
    if (!isnan(info->match_a)) {
        pnb__result_real(r, "match_a", "a of match_prob", info->match_a, 4);
        pnb__result_real(r, "match_b", "b of match_prob", info->match_b, 4);
    } else {
        pnb__result_real(r, "logit_scale", "logit scale a", info->logit_scale, 4);
        pnb__result_real(r, "logit_bias", "logit bias b", info->logit_bias, 4);
    }
    pnb__result_flag(r, "has_tokenizer", "has a tokenizer", has_tokenizer(dir));
    describe_tower(&info->vision, false, r);
    describe_tower(&info->text, true, r);
    pnb_encoder e = {.model = model, .info = info};
    if (info->text.present && has_tokenizer(dir))
        describe_beside(app, &e, dir, r);
    status = describe_attached(app, dir, r);
    pnb__encoder_reset(&e);
    return status;
}

/* ---- embedding set and tensors ---- */

static void describe_uncertainty(const pnb_embeddings *set, pnb__result *r)
{
    double *u = NULL;
    double low = INFINITY, high = -INFINITY, sum = 0;
    if (set->family == PNB_POINT || set->n == 0 ||
        pnb__row_uncertainty(set, PNB__UNCERTAINTY_AUTO, &u, NULL) != PNB_OK)
        return;
    for (size_t i = 0; i < set->n; i++) {
        low = fmin(low, u[i]);
        high = fmax(high, u[i]);
        sum += u[i];
    }
    pnb__result_text(r, "uncertainty", "uncertainty",
                     pnb_uncertainty_name(pnb__own_uncertainty(set)));
    pnb__result_real(r, "uncertainty_min", "  least", low, 5);
    pnb__result_real(r, "uncertainty_mean", "  mean", sum / (double)set->n, 5);
    pnb__result_real(r, "uncertainty_max", "  greatest", high, 5);
    pnb__free(u);
}

static void describe_link(pnb__result *r, const char *kind, const char *name, const char *sha256,
                          const char *leaves)
{
    const char *const cells[] = {kind, name, sha256, leaves};
    for (size_t i = 0; i < PNB_COUNT(cells); i++)
        pnb__result_cell_text(r, cells[i][0] != '\0' ? cells[i] : NULL);
}

/* The chain: weights first, then the adapters in the order in which the rows went through them. */
static void describe_chain(const pnb_embeddings_info *info, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"kind", "link"}, {"name", "name"}, {"sha256", "SHA-256"}, {"leaves", "leaves alone"}};
    pnb__result_table(r, "provenance", "where the rows come from", columns, PNB_COUNT(columns));
    describe_link(r, "weights", info->model, info->weights_sha256, "");
    for (size_t i = 0; i < info->adapters.n; i++) {
        const pnb_adapter_link *link = &info->adapters.items[i];
        describe_link(r, "adapter", link->name, link->sha256,
                      link->leaves_images && link->leaves_texts ? "image, text"
                      : link->leaves_images                     ? "image"
                      : link->leaves_texts                      ? "text"
                                                                : "");
    }
}

static pnb_status describe_set(pnb__app *app, const char *path, pnb__result *r)
{
    pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
    pnb_embeddings *set = NULL;
    opts.allow_missing_ids = true;
    pnb_status status = pnb__ends_with(path, ".npy")
                            ? pnb_embeddings_load_npy(&set, path, &app->err)
                            : pnb_embeddings_load_with(&set, path, &opts, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "kind", "kind", "embedding set");
    pnb__result_text(r, "family", "family", pnb_family_name(set->family));
    pnb__result_int(r, "n", "rows", (int64_t)set->n);
    pnb__result_int(r, "dim", "width", (int64_t)set->dim);
    pnb__result_text(r, "modality", "modality", set->info.modality);
    pnb__result_text(r, "model", "model", set->info.model);
    pnb__result_text(r, "weights_sha256", "SHA-256 of its weights", set->info.weights_sha256);
    pnb__result_text(r, "preprocess", "preprocessing", set->info.preprocess);
    if (set->info.n_embeddings > 1)
        pnb__result_int(r, "n_embeddings", "embeddings a row", (int64_t)set->info.n_embeddings);
    if (set->info.measure[0] != '\0')
        pnb__result_text(r, "measure", "compared by", set->info.measure);
    pnb__result_int(r, "seed", "seed", (int64_t)set->info.seed);
    pnb__result_real(r, "logit_scale", "logit scale a", set->info.logit_scale, 4);
    pnb__result_real(r, "logit_bias", "logit bias b", set->info.logit_bias, 4);
    if (set->info.match_a > 0) {
        pnb__result_real(r, "match_a", "a of match_prob", set->info.match_a, 4);
        pnb__result_real(r, "match_b", "b of match_prob", set->info.match_b, 4);
    }
    if (set->info.match_samples > 0)
        pnb__result_int(r, "match_samples", "samples of a row", (int64_t)set->info.match_samples);
    if (set->info.precision[0] != '\0')
        pnb__result_text(r, "precision", "precision of its products", set->info.precision);
    describe_uncertainty(set, r);
    describe_chain(&set->info, r);
    status = pnb__set_note(app, path, set);
    pnb_embeddings_free(set);
    return status;
}

static void describe_array(const pnb_array_view *a, pnb__result *r)
{
    char shape[96] = "";
    size_t n = 0;
    for (int d = 0; d < a->n_dims && n < sizeof shape; d++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld", d > 0 ? "x" : "",
                              (long long)a->shape[d]);
    pnb__result_row(r, "%s %s %s %zu", a->name, pnb_dtype_name(a->dtype),
                    a->n_dims == 0 ? "scalar" : shape, a->n_bytes);
}

static pnb_status describe_tensors(pnb__app *app, const char *path, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"name", "name"}, {"dtype", "type"}, {"shape", "shape"}, {"bytes", "bytes"}};
    pnb_safetensors *file = NULL;
    pnb_status status = pnb_safetensors_open(&file, path, &app->err);
    if (status != PNB_OK)
        return status;
    if (pnb_safetensors_find(file, "mean") != NULL) {
        pnb_safetensors_free(file);
        return describe_set(app, path, r);
    }
    if (pnb_safetensors_warning(file) != NULL)
        pnb__warn(app, "%s: %s", path, pnb_safetensors_warning(file));
    pnb__result_text(r, "kind", "kind", "tensors");
    pnb__result_int(r, "n_arrays", "arrays", (int64_t)pnb_safetensors_count(file));
    pnb__result_table(r, "arrays", "", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < pnb_safetensors_count(file); i++)
        describe_array(pnb_safetensors_at(file, i), r);
    pnb_safetensors_free(file);
    return PNB_OK;
}

/* ---- the rest ---- */

static pnb_status describe_tokenizer(pnb__app *app, const char *path, pnb__result *r)
{
    pnb_tokenizer *tokenizer = NULL;
    pnb_status status = pnb_tokenizer_load(&tokenizer, path, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "kind", "kind", "tokenizer");
    pnb__result_int(r, "vocab_size", "vocabulary", pnb_tokenizer_vocab_size(tokenizer));
    pnb__result_text(r, "clean", NULL, pnb_clean_name(pnb_tokenizer_clean(tokenizer)));
    pnb__describe_tokenizer(tokenizer, r);
    pnb_tokenizer_free(tokenizer);
    return PNB_OK;
}

static pnb_status describe_dataset(pnb__app *app, const char *path, pnb__result *r)
{
    static const char *const forms[PNB_N_DATASET_KINDS] = {
        [PNB_DATASET_AUTO] = "unknown",   [PNB_DATASET_TAR] = "tar shards",
        [PNB_DATASET_CSV] = "table",      [PNB_DATASET_DIR] = "folder",
        [PNB_DATASET_JSONL] = "jsonl",    [PNB_DATASET_KARPATHY] = "Karpathy's json",
        [PNB_DATASET_BINARY] = "binary",  [PNB_DATASET_SYNTHETIC] = "synthetic",
        [PNB_DATASET_PARQUET] = "Parquet"};
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *set = NULL;
    size_t n_texts = 0, n_unreadable = 0;
    opts.allow_no_caption = true;
    pnb_status status = pnb_dataset_open(&set, path, &opts, &app->err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < pnb_dataset_size(set); i++) {
        pnb_sample sample = {0};
        if (pnb_dataset_get(set, i, &sample, NULL) == PNB_OK)
            n_texts += sample.n_texts;
        else
            n_unreadable++;
        pnb_sample_reset(&sample);
    }
    for (size_t i = 0; i < pnb_dataset_n_warnings(set); i++)
        pnb__warn(app, "%s", pnb_dataset_warning(set, i));
    for (size_t i = 0; i < pnb_dataset_n_notes(set); i++)
        pnb__warn(app, "%s", pnb_dataset_note(set, i));
    pnb__result_text(r, "kind", "kind", "data set");
    pnb__result_text(r, "form", "form", forms[pnb_dataset_get_kind(set)]);
    pnb__result_int(r, "n_samples", "pictures", (int64_t)pnb_dataset_size(set));
    pnb__result_int(r, "n_texts", "captions", (int64_t)n_texts);
    pnb__result_int(r, "n_unreadable", "unreadable records", (int64_t)n_unreadable);
    pnb_dataset_free(set);
    return PNB_OK;
}

static pnb_status describe_adapter(pnb__app *app, const char *path, pnb__result *r)
{
    pnb_adapter *adapter = NULL;
    pnb_status status = pnb_adapter_load(&adapter, app->ctx, path, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "kind", "kind", "adapter");
    pnb__adapt_put(adapter, r);
    pnb_adapter_free(adapter);
    return PNB_OK;
}

static pnb_status describe_resolved(pnb__app *app, const char *path, pnb__result *r)
{
    bool is_dir = pnb__path_is_dir(path);
    pnb__result_text(r, "path", "path", path);
    bool is_adapter = false;
    pnb_status status = is_dir ? pnb_adapter_is_dir(&is_adapter, path, &app->err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    if (is_adapter)
        return describe_adapter(app, path, r);
    if (pnb_model_is_dir(path))
        return describe_model(app, path, r);
    if (!is_dir &&
        (pnb__ends_with(path, ".safetensors") || pnb__ends_with(path, ".safetensors.index.json")))
        return describe_tensors(app, path, r);
    if (!is_dir && pnb__ends_with(path, ".npy"))
        return describe_set(app, path, r);
    const bool is_karpathy =
        pnb__starts_with(pnb__path_base(path), "dataset"); /* _coco, _flickr30k */
    if (!is_dir && !is_karpathy &&
        (pnb__ends_with(path, ".json") || pnb__ends_with(path, ".model")))
        return describe_tokenizer(app, path, r);
    return describe_dataset(app, path, r);
}

pnb_status pnb__info_run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__info_opts *opts = args;
    char *resolved = NULL;
    int n_wanted = opts->is_cpu + opts->is_gpu + (opts->path != NULL);
    if (n_wanted != 1)
        return pnb__usage(
            app, n_wanted > 1 ? "--cpu and --gpu tell of this machine: one of them, no PATH with it"
                              : "PATH is missing; or --cpu for the processor, --gpu");
    if (opts->is_gpu)
        return pnb__info_gpu(app, r);
    if (opts->is_cpu)
        return pnb__info_cpu(app, r);
    pnb_status status = pnb__model_path(app, opts->path, &resolved, &app->err);
    if (status == PNB_OK)
        status = describe_resolved(app, resolved, r);
    pnb__free(resolved);
    return status;
}
