/* A LoRA adapter as a folder, under peft's names, and what makes a model of it and its base.
 *
 *   adapter_config.json        peft's keys, and "penumbra": {"format", "base_weights_sha256"}
 *   adapter_model.safetensors  base_model.model.<module>.lora_A.weight (r,in), .lora_B.weight
 *                              (out,r), and base_model.model.<name> of what was trained whole
 * The factors are those of the sum W0 + (lora_alpha / r) B A; of another base it would be noise, so
 * the base is known by the SHA-256 of its weights. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "io/json/json.h"
#include "models/lora/lora.h"
#include "penumbra/safetensors.h"

#define FORMAT 1 /* another one means that older programs must not read it */
/* peft's words around the names of modules */
#define PREFIX "base_model.model."
#define FACTOR_A ".lora_A.weight"
#define FACTOR_B ".lora_B.weight"

/* By its two files: the configuration alone may be another tool's beside a model. */
bool pnb__lora_is_dir(const char *dir)
{
    return pnb__path_has_file(dir, PNB__LORA_CONFIG) && pnb__path_has_file(dir, PNB__LORA_WEIGHTS);
}

/* One sentence for whoever opens models, so that it is the same for each command. */
pnb_status pnb__lora_refuse_dir(const char *dir, pnb_error *err)
{
    if (!pnb__lora_is_dir(dir))
        return PNB_OK;
    return pnb__fail(err, PNB_FORMAT,
                     "%s is a LoRA adapter, not a model; `penumbra convert BASE --lora %s --out "
                     "DIR` makes a model of both",
                     dir, dir);
}

/* ---- writing ---- */

/* Arrays in memory of the host, as they are written. */
typedef struct arrays {
    pnb_array_view *items;
    size_t n;
} arrays;

/* Names and bytes are copies of our own. */
static void free_arrays(arrays *a)
{
    for (size_t i = 0; i < a->n; i++) {
        pnb__free((void *)(uintptr_t)a->items[i].data);
        pnb__free((char *)(uintptr_t)a->items[i].name);
    }
    pnb__free(a->items);
}

/* From the device, and under the name that peft would give it. */
static pnb_status add_array(arrays *to, const pnb__param *p, const pnb__kernels *k, pnb_error *err)
{
    size_t bytes = p->n * PNB__REAL_SIZE(k->real);
    pnb_array_view view = {
        .dtype = k->real == PNB__F64 ? PNB_F64 : PNB_F32, .n_dims = p->n_dims, .n_bytes = bytes};
    for (int d = 0; d < p->n_dims; d++)
        view.shape[d] = (int64_t)p->shape[d];
    char *name = pnb__format(PREFIX "%s", p->name);
    void *data = pnb__alloc(PNB_MAX(bytes, (size_t)1));
    view.name = name;
    view.data = data;
    pnb_status status = name != NULL && data != NULL ? PNB_OK : pnb__fail_nomem(err, bytes);
    if (status == PNB_OK)
        status = pnb__param_read_bytes(p, k, bytes, data, err);
    if (status == PNB_OK)
        status = PNB_PUSH(to->items, to->n, err, view);
    if (status != PNB_OK) {
        pnb__free(name);
        pnb__free(data);
    }
    return status;
}

/* Modules by the names that peft would know them by: those of the factors, without their ending. */
static json_t *target_names(const pnb__lora *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n && list != NULL; i++) {
        const char *name = l->items[i].a.name;
        if (json_array_append_new(list, json_stringn(name, strlen(name) - strlen(FACTOR_A))) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* What peft keeps beside the factors: modules_to_save. */
static json_t *whole_names(pnb__param *const *also, size_t n_also)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n_also && list != NULL; i++)
        if (json_array_append_new(list, json_string(also[i]->name)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* peft reads its own keys and passes over ours. NULL when out of memory. */
static json_t *config_json(const pnb__lora *l, pnb__param *const *also, size_t n_also,
                           const char *base)
{
    json_t *targets = target_names(l), *whole = whole_names(also, n_also);
    if (targets == NULL || whole == NULL) {
        json_decref(targets);
        json_decref(whole);
        return NULL;
    }
    return json_pack("{s:s, s:I, s:f, s:f, s:s, s:b, s:b, s:s, s:o, s:o, s:{s:i, s:s, s:s}}",
                     "peft_type", "LORA", "r", (json_int_t)l->rank, "lora_alpha", l->alpha,
                     "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out", 0, "inference_mode", 1,
                     "base_model_name_or_path", base, "target_modules", targets, "modules_to_save",
                     whole, "penumbra", "format", FORMAT, "base_weights_sha256", l->base_sha256,
                     "targets", l->targets);
}

/* The configuration last: a folder that has it has the arrays. */
pnb_status pnb__lora_save(const pnb__lora *l, pnb__param *const *also, size_t n_also,
                          const char *base, const char *dir, pnb_error *err)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    char *config = pnb__path_join(dir, PNB__LORA_CONFIG);
    char *weights = pnb__path_join(dir, PNB__LORA_WEIGHTS);
    json_t *json = config_json(l, also, n_also, base);
    arrays all = {0};
    pnb_status status = PNB_OK;
    if (config == NULL || weights == NULL || json == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(dir)));
    for (size_t i = 0; i < l->n; i++) {
        PNB_TRY(add_array(&all, &l->items[i].a, &l->kernels, err));
        PNB_TRY(add_array(&all, &l->items[i].b, &l->kernels, err));
    }
    for (size_t i = 0; i < n_also; i++)
        PNB_TRY(add_array(&all, also[i], &l->kernels, err));
    PNB_TRY(pnb__make_dirs(dir, err));
    PNB_TRY(pnb_safetensors_write(weights, all.items, all.n, metadata, err));
    status = pnb__json_save_file(json, config, err);
done:
    free_arrays(&all);
    json_decref(json);
    pnb__free(config);
    pnb__free(weights);
    return status;
}

/* ---- reading ---- */

/* An adapter of a folder: its arrays are mapped, not read. */
typedef struct opened {
    pnb_safetensors *file;
    char *path;
    double rank, alpha;
    size_t n_arrays; /* that the configuration speaks of */
    char base_sha256[65];
} opened;

/* Also of one that could not be opened. */
static void close_adapter(opened *o)
{
    pnb_safetensors_free(o->file);
    pnb__free(o->path);
}

/* Adapters of other tools do not say which weights they belong to, and a wrong base gives no error
 * but wrong embeddings: they are refused. */
static pnb_status read_config(opened *o, const char *path, pnb_error *err)
{
    json_t *root = NULL;
    pnb_status status = pnb__json_load_file(&root, path, 0, err);
    if (status != PNB_OK)
        return status;
    const json_t *own = json_object_get(root, "penumbra");
    const char *sha = json_string_value(json_object_get(own, "base_weights_sha256"));
    const char *kind = json_string_value(json_object_get(root, "peft_type"));
    o->rank = json_number_value(json_object_get(root, "r"));
    o->alpha = json_number_value(json_object_get(root, "lora_alpha"));
    o->n_arrays = 2 * json_array_size(json_object_get(root, "target_modules")) +
                  json_array_size(json_object_get(root, "modules_to_save"));
    const json_t *format = json_object_get(own, "format");
    if (kind == NULL || strcmp(kind, "LORA") != 0)
        status = pnb__fail(err, PNB_UNSUPPORTED, "%s: peft_type is \"%.40s\", LORA is read", path,
                           kind != NULL ? kind : "");
    else if (!(o->rank >= 1) || !(o->alpha > 0) || !isfinite(o->rank) || !isfinite(o->alpha))
        status =
            pnb__fail(err, PNB_FORMAT, "%s: r is %g and lora_alpha %g", path, o->rank, o->alpha);
    else if (sha == NULL || strlen(sha) != 64)
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "%s does not say which weights it belongs to (penumbra."
                           "base_weights_sha256): adapters that `penumbra train --lora-rank` made "
                           "are read",
                           path);
    else if (json_integer_value(format) != FORMAT)
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "%s is not of format %d, which this version reads: it is of a newer one",
                           path, FORMAT);
    else
        memcpy(o->base_sha256, sha, 65);
    json_decref(root);
    return status;
}

/* Arrays that were taken out would leave a part of the base as it was, without a word. */
static pnb_status open_arrays(opened *o, pnb_error *err)
{
    pnb_status status = pnb_safetensors_open(&o->file, o->path, err);
    if (status == PNB_OK && pnb_safetensors_count(o->file) != o->n_arrays)
        status = pnb__fail(err, PNB_FORMAT,
                           "%s has %zu arrays, its " PNB__LORA_CONFIG " names %zu: they are not of "
                           "one adapter, or something is missing",
                           o->path, pnb_safetensors_count(o->file), o->n_arrays);
    return status;
}

/* Both files or neither. */
static pnb_status open_adapter(opened *o, const char *dir, pnb_error *err)
{
    char *config = pnb__path_join(dir, PNB__LORA_CONFIG);
    pnb_status status = PNB_OK;
    *o = (opened){.path = pnb__path_join(dir, PNB__LORA_WEIGHTS)};
    if (config == NULL || o->path == NULL)
        status = pnb__fail_nomem(err, strlen(dir));
    else if (!pnb__path_is_file(config) || !pnb__path_is_file(o->path))
        status = pnb__fail(err, PNB_NOT_FOUND,
                           "%s is no LoRA adapter: " PNB__LORA_CONFIG " and " PNB__LORA_WEIGHTS
                           " are wanted",
                           dir);
    if (status == PNB_OK)
        status = read_config(o, config, err);
    if (status == PNB_OK)
        status = open_arrays(o, err);
    pnb__free(config);
    return status;
}

/* By the hash of the file, as embedding sets know their model. */
static pnb_status check_base(const opened *o, const char *base, const char *sha256, pnb_error *err)
{
    if (strcmp(o->base_sha256, sha256) == 0)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "%s was trained on weights %.12s..., and %s has %.12s...: factors of another "
                     "base mean nothing",
                     o->path, o->base_sha256, base, sha256);
}

/* The file is from a stranger: nothing is read by its shape. */
static pnb_status check_shape(const pnb_array_view *a, const pnb__param *p, const char *path,
                              pnb_error *err)
{
    bool fits = a->n_dims == p->n_dims;
    for (int d = 0; fits && d < p->n_dims; d++)
        fits = a->shape[d] == (int64_t)p->shape[d];
    return fits ? PNB_OK
                : pnb__fail(err, PNB_SHAPE, "%s: %s has another shape than the model's", path,
                            a->name);
}

/* One array of the file into a parameter. */
static pnb_status read_into(const opened *o, const pnb_array_view *a, pnb__param *p,
                            const pnb__kernels *k, pnb_error *err)
{
    /* through doubles: whatever type the file has, and no bit of a float is lost */
    double *values = NULL;
    pnb_status status;
    PNB_TRY(check_shape(a, p, o->path, err));
    PNB_TRY(PNB_ALLOC(values, p->n, err));
    PNB_TRY(pnb_array_to_f64(a, values, err));
    for (size_t i = 0; i < p->n; i++)
        if (!isfinite(values[i]))
            PNB_TRY(pnb__fail(err, PNB_NUMERIC, "%s: %s holds %g", o->path, a->name, values[i]));
    status = pnb__param_write(p, k, 0, p->n, values, err);
done:
    pnb__free(values);
    return status;
}

/* By name: the order of the file is its writer's. */
static pnb_status read_param(const opened *o, pnb__param *p, const pnb__kernels *k, pnb_error *err)
{
    char *name = pnb__format(PREFIX "%s", p->name);
    const pnb_array_view *a = name != NULL ? pnb_safetensors_find(o->file, name) : NULL;
    pnb_status status = name == NULL ? pnb__fail_nomem(err, 64)
                        : a == NULL  ? pnb__fail(err, PNB_FORMAT, "%s has no %s", o->path, name)
                                     : read_into(o, a, p, k, err);
    pnb__free(name);
    return status;
}

/* As many arrays as this run trains: one more or less is another choice of matrices or locks. */
pnb_status pnb__lora_load(pnb__lora *l, pnb__param *const *also, size_t n_also, const char *dir,
                          pnb_error *err)
{
    opened o;
    pnb_status status;
    PNB_TRY(open_adapter(&o, dir, err));
    PNB_TRY(check_base(&o, "the base that is given", l->base_sha256, err));
    if (o.rank != l->rank || o.alpha != l->alpha)
        PNB_TRY(pnb__fail(err, PNB_ARG, "%s has rank %g and alpha %g, this run %g and %g", dir,
                          o.rank, o.alpha, l->rank, l->alpha));
    if (pnb_safetensors_count(o.file) != 2 * l->n + n_also)
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "%s has %zu arrays, this run trains %zu: it has other targets", o.path,
                          pnb_safetensors_count(o.file), 2 * l->n + n_also));
    for (size_t i = 0; i < l->n; i++) {
        PNB_TRY(read_param(&o, &l->items[i].a, &l->kernels, err));
        PNB_TRY(read_param(&o, &l->items[i].b, &l->kernels, err));
    }
    for (size_t i = 0; i < n_also; i++)
        PNB_TRY(read_param(&o, also[i], &l->kernels, err));
done:
    close_adapter(&o);
    return status;
}

/* ---- a model of both ---- */

/* The matrix of a module: "x.attn.in_proj" is x.attn.in_proj_weight. */
static pnb__param *matrix_of(pnb_model *m, const char *module, size_t n)
{
    static const char *const endings[] = {".weight", "_weight", ""};
    pnb__param *p = NULL;
    for (size_t i = 0; i < PNB_COUNT(endings) && p == NULL; i++) {
        char *name = pnb__format("%.*s%s", (int)n, module, endings[i]);
        p = name != NULL ? pnb__model_find_param(m, name) : NULL;
        pnb__free(name);
    }
    return p;
}

/* W += (alpha / r) B A by the product that training makes: the bits are those it saw. */
static pnb_status add_product(const opened *o, pnb_model *m, pnb__param *w, const pnb_array_view *a,
                              const pnb_array_view *b, pnb_error *err)
{
    const pnb__kernels *k = &m->weights.kernels;
    size_t rank = a->n_dims == 2 ? (size_t)a->shape[0] : 0;
    size_t out = w->n_dims == 2 ? w->shape[0] : 0, in = out > 0 ? w->shape[1] : 0;
    pnb__param factors[2] = {{.name = a->name, .n_dims = 2, .shape = {rank, in}, .n = rank * in},
                             {.name = b->name, .n_dims = 2, .shape = {out, rank}, .n = out * rank}};
    const pnb_array_view *const views[2] = {a, b};
    /* a file that names a bias or a vector as a module is damaged, or no adapter of this model */
    pnb_status status = PNB_OK;
    if ((double)rank != o->rank && out > 0)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %s has rank %zu, " PNB__LORA_CONFIG " says %g, which the sum is "
                         "scaled by",
                         o->path, a->name, rank, o->rank);
    if (out == 0)
        return pnb__fail(err, PNB_SHAPE, "%s: %s is no factor of %s", o->path, a->name, w->name);
    for (size_t i = 0; i < 2 && status == PNB_OK; i++) {
        status = pnb__param_alloc(&factors[i], k, factors[i].n * PNB__REAL_SIZE(k->real), err);
        if (status == PNB_OK)
            status = read_into(o, views[i], &factors[i], k, err);
    }
    if (status == PNB_OK)
        pnb__param_add_product(w, o->alpha / o->rank, &factors[1], &factors[0], k);
    for (size_t i = 0; i < 2; i++)
        pnb__param_free(&factors[i], k, factors[i].n * PNB__REAL_SIZE(k->real));
    return status;
}

/* A factor A with its B, or what was trained whole; B alone comes with its A. */
static pnb_status merge_array(const opened *o, pnb_model *m, const pnb_array_view *a,
                              pnb_error *err)
{
    if (!pnb__starts_with(a->name, PREFIX))
        return pnb__fail(err, PNB_FORMAT, "%s: %.100s does not begin with " PREFIX, o->path,
                         a->name);
    const char *name = a->name + strlen(PREFIX);
    bool is_a = pnb__ends_with(name, FACTOR_A), is_b = pnb__ends_with(name, FACTOR_B);
    /* trained whole: it takes the place of the base's */
    if (!is_a && !is_b) {
        pnb__param *p = pnb__model_find_param(m, name);
        return p != NULL ? read_into(o, a, p, &m->weights.kernels, err)
                         : pnb__fail(err, PNB_FORMAT, "%s: the model has no %.100s", o->path, name);
    }
    size_t n = strlen(name) - strlen(FACTOR_A);
    char *other = pnb__format(PREFIX "%.*s%s", (int)n, name, is_a ? FACTOR_B : FACTOR_A);
    const pnb_array_view *b = other != NULL ? pnb_safetensors_find(o->file, other) : NULL;
    pnb__param *w = matrix_of(m, name, n);
    pnb_status status = PNB_OK;
    if (other == NULL)
        status = pnb__fail_nomem(err, n);
    else if (b == NULL)
        status = pnb__fail(err, PNB_FORMAT, "%s: %.100s stands without its other factor", o->path,
                           a->name);
    else if (w == NULL)
        status =
            pnb__fail(err, PNB_FORMAT, "%s: the model has no matrix for %.100s", o->path, a->name);
    else if (is_a)
        status = add_product(o, m, w, a, b, err);
    pnb__free(other);
    return status;
}

/* Weights leave the file's map before they are changed; the base on disk stays as it is. */
pnb_status pnb_model_merge_lora(pnb_model **out, const pnb_ctx *ctx, const char *base,
                                const char *adapter, pnb_error *err)
{
    pnb_model *m = NULL;
    const char *sha256 = NULL;
    opened o;
    pnb_status status;
    *out = NULL;
    PNB_TRY(open_adapter(&o, adapter, err));
    PNB_TRY(pnb_model_load(&m, ctx, base, err));
    PNB_TRY(pnb_model_weights_sha256(m, &sha256, err));
    PNB_TRY(check_base(&o, base, sha256, err));
    PNB_TRY(pnb__weights_make_owned(&m->weights, err));
    for (size_t i = 0; i < pnb_safetensors_count(o.file); i++)
        PNB_TRY(merge_array(&o, m, pnb_safetensors_at(o.file, i), err));
    PNB_TRY(pnb__model_weights_changed(m, err));
    *out = m;
    m = NULL;
done:
    close_adapter(&o);
    pnb_model_free(m);
    return status;
}
