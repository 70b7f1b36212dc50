/* Key tables of the checkpoint layouts (open_clip model.py and transformer.py; timm
 * vision_transformer.py and attention_pool.py as open_clip wraps them; transformers
 * modeling_clip.py and modeling_siglip.py) and the moves they need: rows of a packed q,k,v
 * projection against three matrices, projections stored as x P against x W^T, shapes with leading
 * ones. One table serves reading and writing. */
#include "models/keys/key_mapping.h"

#include <string.h>

#define WHOLE PNB__KEY_WHOLE

/* The blocks of a tower here and in transformers. Ours, open_clip's and timm's keep the projections
 * of q, k and v in one matrix, rows [q; k; v] of (3C,C) with biases (3C), as torch's
 * MultiheadAttention has it: one product instead of three. transformers keeps three (C,C) matrices,
 * the thirds of that one. The others are the same numbers under other names. */
#define VB "visual.transformer.resblocks.#."
#define TB "text.transformer.resblocks.#."
#define HF_BLOCK(OURS, THEIRS)                                                                     \
    {OURS "ln_1.*", THEIRS "layer_norm1.*", WHOLE},                                                \
        {OURS "ln_2.*", THEIRS "layer_norm2.*", WHOLE},                                            \
        {OURS "attn.in_proj_weight", THEIRS "self_attn.q_proj.weight", 0, 1, 0, false},            \
        {OURS "attn.in_proj_weight", THEIRS "self_attn.k_proj.weight", 1, 1, 0, false},            \
        {OURS "attn.in_proj_weight", THEIRS "self_attn.v_proj.weight", 2, 1, 0, false},            \
        {OURS "attn.in_proj_bias", THEIRS "self_attn.q_proj.bias", 0, 1, 0, false},                \
        {OURS "attn.in_proj_bias", THEIRS "self_attn.k_proj.bias", 1, 1, 0, false},                \
        {OURS "attn.in_proj_bias", THEIRS "self_attn.v_proj.bias", 2, 1, 0, false},                \
        {OURS "attn.out_proj.*", THEIRS "self_attn.out_proj.*", WHOLE},                            \
        {OURS "mlp.c_fc.*", THEIRS "mlp.fc1.*", WHOLE},                                            \
    {                                                                                              \
        OURS "mlp.c_proj.*", THEIRS "mlp.fc2.*", WHOLE                                             \
    }

/* ---- image towers ---- */

/* Penumbra's own names are open_clip's. */
static const pnb__key_rule open_clip_vision_rules[] = {{"visual.*", "visual.*", WHOLE}};

/* SigLIP as open_clip wraps it: timm's VisionTransformer under "visual.trunk." with pos_embed
 * (1,N,C) and, in AttentionPoolLatent, a latent (1,1,C) where ours has (N,C) and (C). There q has a
 * matrix of its own (C,C) and k,v share one (2C,C): the first third of ours, and the other two. */
static const pnb__key_rule timm_vision_rules[] = {
    {"visual.conv1.*", "visual.trunk.patch_embed.proj.*", WHOLE},
    {"visual.positional_embedding", "visual.trunk.pos_embed", 0, 3, 1, false},
    {VB "ln_1.*", "visual.trunk.blocks.#.norm1.*", WHOLE},
    {VB "ln_2.*", "visual.trunk.blocks.#.norm2.*", WHOLE},
    {VB "attn.in_proj_weight", "visual.trunk.blocks.#.attn.qkv.weight", WHOLE},
    {VB "attn.in_proj_bias", "visual.trunk.blocks.#.attn.qkv.bias", WHOLE},
    {VB "attn.out_proj.*", "visual.trunk.blocks.#.attn.proj.*", WHOLE},
    {VB "mlp.c_fc.*", "visual.trunk.blocks.#.mlp.fc1.*", WHOLE},
    {VB "mlp.c_proj.*", "visual.trunk.blocks.#.mlp.fc2.*", WHOLE},
    {"visual.ln_post.*", "visual.trunk.norm.*", WHOLE},
    {"visual.attn_pool.probe", "visual.trunk.attn_pool.latent", 0, 3, 2, false},
    {"visual.attn_pool.attn.in_proj_weight", "visual.trunk.attn_pool.q.weight", 0, 1, 0, false},
    {"visual.attn_pool.attn.in_proj_weight", "visual.trunk.attn_pool.kv.weight", 1, 2, 0, false},
    {"visual.attn_pool.attn.in_proj_bias", "visual.trunk.attn_pool.q.bias", 0, 1, 0, false},
    {"visual.attn_pool.attn.in_proj_bias", "visual.trunk.attn_pool.kv.bias", 1, 2, 0, false},
    {"visual.attn_pool.attn.out_proj.*", "visual.trunk.attn_pool.proj.*", WHOLE},
    {"visual.attn_pool.ln.*", "visual.trunk.attn_pool.norm.*", WHOLE},
    {"visual.attn_pool.mlp.c_fc.*", "visual.trunk.attn_pool.mlp.fc1.*", WHOLE},
    {"visual.attn_pool.mlp.c_proj.*", "visual.trunk.attn_pool.mlp.fc2.*", WHOLE},
};

/* transformers' CLIPVisionModel and SiglipVisionModel, told apart by which arrays are there.
 * "pre_layrnorm" is the real name. visual_projection is the weight of a Linear, (D,C), where ours
 * is the matrix P (C,D) of x P: transposed. The head's packed projection is torch's and stays. */
static const pnb__key_rule hf_vision_rules[] = {
    {"visual.class_embedding", "vision_model.embeddings.class_embedding", WHOLE},
    {"visual.conv1.*", "vision_model.embeddings.patch_embedding.*", WHOLE},
    {"visual.positional_embedding", "vision_model.embeddings.position_embedding.weight", WHOLE},
    {"visual.ln_pre.*", "vision_model.pre_layrnorm.*", WHOLE},
    {"visual.ln_post.*", "vision_model.post_layernorm.*", WHOLE},
    {"visual.proj", "visual_projection.weight", 0, 3, 0, true},
    HF_BLOCK(VB, "vision_model.encoder.layers.#."),
    {"visual.attn_pool.probe", "vision_model.head.probe", 0, 3, 2, false},
    {"visual.attn_pool.attn.in_proj_weight", "vision_model.head.attention.in_proj_weight", WHOLE},
    {"visual.attn_pool.attn.in_proj_bias", "vision_model.head.attention.in_proj_bias", WHOLE},
    {"visual.attn_pool.attn.out_proj.*", "vision_model.head.attention.out_proj.*", WHOLE},
    {"visual.attn_pool.ln.*", "vision_model.head.layernorm.*", WHOLE},
    {"visual.attn_pool.mlp.c_fc.*", "vision_model.head.mlp.fc1.*", WHOLE},
    {"visual.attn_pool.mlp.c_proj.*", "vision_model.head.mlp.fc2.*", WHOLE},
};

/* ---- text towers ---- */

/* ProLIP, and open_clip's custom_text: a tower of its own under "text.". */
static const pnb__key_rule inner_text_rules[] = {{"text.*", "text.*", WHOLE}};

/* OpenAI's and open_clip's CLIP: the text tower's arrays lie at the top, beside "visual.". The
 * projection has no ".weight": it is a matrix (C,D), not a Linear. */
static const pnb__key_rule top_text_rules[] = {
    {"text.token_embedding.weight", "token_embedding.weight", WHOLE},
    {"text.positional_embedding", "positional_embedding", WHOLE},
    {"text.transformer.resblocks.*", "transformer.resblocks.*", WHOLE},
    {"text.ln_final.*", "ln_final.*", WHOLE},
    {"text.text_projection", "text_projection", WHOLE},
    {"text.text_projection.*", "text_projection.*", WHOLE},
};

/* CLIP's projection is a Linear without bias (transposed); SigLIP's, with one, is its head. */
static const pnb__key_rule hf_text_rules[] = {
    {"text.token_embedding.weight", "text_model.embeddings.token_embedding.weight", WHOLE},
    {"text.positional_embedding", "text_model.embeddings.position_embedding.weight", WHOLE},
    HF_BLOCK(TB, "text_model.encoder.layers.#."),
    {"text.ln_final.*", "text_model.final_layer_norm.*", WHOLE},
    {"text.text_projection", "text_projection.weight", 0, 3, 0, true},
    {"text.text_projection.*", "text_model.head.*", WHOLE},
};

#define TABLE(NAME, RULES)                                                                         \
    {                                                                                              \
        NAME, RULES, PNB_COUNT(RULES)                                                              \
    }
/* The names are what `info` and `check` print. */
static const pnb__key_mapping_table open_clip_vision = TABLE("open_clip", open_clip_vision_rules);
static const pnb__key_mapping_table timm_vision = TABLE("open_clip, timm tower", timm_vision_rules);
static const pnb__key_mapping_table hf_vision = TABLE("Hugging Face", hf_vision_rules);
static const pnb__key_mapping_table inner_text =
    TABLE("open_clip, own text tower", inner_text_rules);
static const pnb__key_mapping_table top_text = TABLE("open_clip", top_text_rules);
static const pnb__key_mapping_table hf_text = TABLE("Hugging Face", hf_text_rules);

const char *pnb__key_mapping_name(const pnb__key_mapping_table *table)
{
    return table == NULL ? "absent" : table->name;
}

bool pnb__key_mapping_is_hf(const pnb__key_mapping *l)
{
    return l->vision == &hf_vision || l->text == &hf_text;
}

bool pnb__key_mapping_has_text_at_top(const pnb__key_mapping *l)
{
    return l->text == &top_text;
}

/* ---- finding the tables ---- */

/* The first pattern that a key starts with decides; `refused` patterns say why instead. Longer
 * beginnings stand before shorter ones: "visual.trunk." is timm's, what else begins with "visual."
 * open_clip's. The towers are told apart separately, since SigLIP in open_clip has timm's image
 * tower beside open_clip's text tower. */
static const struct {
    const char *start;
    bool is_text;
    const pnb__key_mapping_table *table;
    const char *refused;
} signs[] = {
    {"visual.trunk.stem", false, NULL, "a timm image tower that is no SigLIP transformer"},
    {"visual.trunk.", false, &timm_vision, NULL},
    {"visual.layer1.", false, NULL, "CLIP's ResNet image tower; only vision transformers are read"},
    {"visual.", false, &open_clip_vision, NULL},
    {"vision_model.", false, &hf_vision, NULL},
    {"text.transformer.embeddings.", true, NULL,
     "a Hugging Face text tower inside open_clip; only CLIP's and SigLIP's own are read"},
    {"text.transformer.encoder.", true, NULL,
     "a Hugging Face text tower inside open_clip; only CLIP's and SigLIP's own are read"},
    {"text_decoder.", true, NULL, "a CoCa model; only CLIP, SigLIP and ProLIP are read"},
    {"text.", true, &inner_text, NULL},
    {"text_model.", true, &hf_text, NULL},
    {"token_embedding.", true, &top_text, NULL},
};

/* DataParallel saves every key behind "module.". */
static const char *prefix_of(const pnb__weight_file *file)
{
    static const char module_prefix[] = "module.";
    bool has = pnb__weight_file_count(file) > 0 &&
               pnb__starts_with(pnb__weight_file_at(file, 0)->name, module_prefix);
    return has ? module_prefix : "";
}

/* logit_scale is () in open_clip and CLIP, (1) in transformers' SigLIP: written as it was found. */
static size_t scale_dims(const pnb__weight_file *file, const char *prefix)
{
    char key[32];
    snprintf(key, sizeof key, "%slogit_scale", prefix);
    const pnb_array_view *scale = pnb__weight_file_lookup(file, key);
    return scale != NULL && scale->n_dims == 1 ? 1 : 0;
}

static pnb_status no_tower(const pnb__weight_file *file, const char *what, pnb_error *err)
{
    size_t n = pnb__weight_file_count(file);
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s: no image or text tower of %s is recognised among %zu arrays%s%s",
                     file->path, what, n, n > 0 ? "; the first is " : "",
                     n > 0 ? pnb__weight_file_at(file, 0)->name : "");
}

pnb_status pnb__key_mapping_detect(pnb__key_mapping *out, const pnb__weight_file *file,
                                   pnb_error *err)
{
    pnb__key_mapping l = {.prefix = prefix_of(file)};
    size_t n = pnb__weight_file_count(file);
    for (size_t s = 0; s < PNB_COUNT(signs); s++) {
        const pnb__key_mapping_table **slot = signs[s].is_text ? &l.text : &l.vision;
        for (size_t i = 0; *slot == NULL && i < n; i++) {
            const char *key = pnb__weight_file_at(file, i)->name;
            if (!pnb__starts_with(key, l.prefix) ||
                !pnb__starts_with(key + strlen(l.prefix), signs[s].start))
                continue;
            if (signs[s].refused != NULL)
                return pnb__fail(err, PNB_UNSUPPORTED, "%s: %s belongs to %s", file->path, key,
                                 signs[s].refused);
            *slot = signs[s].table;
        }
    }
    if (l.vision == NULL && l.text == NULL)
        return no_tower(file, "CLIP, SigLIP or ProLIP", err);
    l.n_scale_dims = scale_dims(file, l.prefix);
    *out = l;
    return PNB_OK;
}

/* Of the three kinds: ProLIP's own is open_clip's with the text under "text."; open_clip's CLIP has
 * the text at the top, its SigLIP a timm tower and the text under "text.". */
pnb__key_mapping pnb__key_mapping_of(pnb__key_mapping_kind kind, const pnb__config *c)
{
    bool siglip =
        c->vision.present ? c->vision.pool == PNB__POOL_MAP : c->family == PNB__FAMILY_SIGLIP;
    pnb__key_mapping l = {.vision = &open_clip_vision, .text = &inner_text, .prefix = ""};
    if (kind == PNB__KEY_MAPPING_HF) {
        l.vision = &hf_vision;
        l.text = &hf_text;
        l.n_scale_dims = siglip ? 1 : 0;
    } else if (kind == PNB__KEY_MAPPING_OPEN_CLIP) {
        l.vision = siglip ? &timm_vision : &open_clip_vision;
        l.text = siglip ? &inner_text : &top_text;
    }
    if (!c->vision.present)
        l.vision = NULL;
    if (!c->text.present)
        l.text = NULL;
    return l;
}

/* ---- patterns ---- */

/* Matches `name`; *layer is the number at '#' (with its length), *rest what '*' covers. */
typedef struct match {
    const char *layer, *rest;
    int n_layer;
} match;

/* "a.#.b.*" against "a.12.b.weight": layer "12", rest "weight". '*' wants at least one character,
 * so "text.text_projection.*" is not met by "text.text_projection". */
static bool pattern_matches(const char *pattern, const char *name, match *m)
{
    *m = (match){"", "", 0};
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            m->rest = name;
            return *name != '\0';
        }
        if (*pattern == '#') {
            m->layer = name;
            while (name[m->n_layer] >= '0' && name[m->n_layer] <= '9')
                m->n_layer++;
            name += m->n_layer;
            if (m->n_layer == 0)
                return false;
        } else if (*name++ != *pattern) {
            return false;
        }
    }
    return *name == '\0';
}

/* Does a rule of the table without a weight of ours name the array? */
static bool is_passed_over(const pnb__key_mapping_table *table, const char *key)
{
    match m;
    for (size_t i = 0; table != NULL && i < table->n; i++)
        if (table->rules[i].name == NULL && pattern_matches(table->rules[i].key, key, &m))
            return true;
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Position numbers, the causal mask, and OpenAI's three numbers: all follow from the configuration.
 * torch counts the batches that a batch norm saw, for an average that these models do not use. */
bool pnb__key_mapping_ignores(const pnb__key_mapping *l, const char *key)
{
    static const char *const buffers[] = {"vision_model.embeddings.position_ids",
                                          "text_model.embeddings.position_ids",
                                          "attn_mask",
                                          "text.attn_mask",
                                          "input_resolution",
                                          "context_length",
                                          "vocab_size"};
    bool is_plain =
        l->plain_taken && (strcmp(key, l->plain_scale) == 0 || strcmp(key, l->plain_bias) == 0);
    if (is_plain || !pnb__starts_with(key, l->prefix))
        return is_plain;
    key += strlen(l->prefix);
    if (l->plain_scale != NULL && strcmp(key, "logit_scale") == 0)
        return true; /* CLIP's temperature, which PCME++ keeps beside a and b of its own */
    for (size_t i = 0; i < PNB_COUNT(buffers); i++)
        if (strcmp(key, buffers[i]) == 0)
            return true;
    return ends_with(key, ".num_batches_tracked") || is_passed_over(l->vision, key) ||
           is_passed_over(l->text, key);
}

/* Has the file an array that a rule of the table names? */
static bool is_in_file(const pnb__key_mapping_table *table, const pnb__weight_file *file,
                       const char *prefix)
{
    match m;
    for (size_t i = 0; i < pnb__weight_file_count(file); i++) {
        const char *key = pnb__weight_file_at(file, i)->name;
        for (size_t r = 0; r < table->n && pnb__starts_with(key, prefix); r++)
            if (table->rules[r].name != NULL &&
                pattern_matches(table->rules[r].key, key + strlen(prefix), &m))
                return true;
    }
    return false;
}

pnb_status pnb__key_mapping_choose(pnb__key_mapping *out, const pnb__weight_file *file,
                                   const pnb__key_mapping_table *vision,
                                   const pnb__key_mapping_table *text, pnb_error *err)
{
    const char *prefix = prefix_of(file);
    pnb__key_mapping l = {.prefix = prefix, .n_scale_dims = scale_dims(file, prefix)};
    l.vision = is_in_file(vision, file, prefix) ? vision : NULL;
    l.text = is_in_file(text, file, prefix) ? text : NULL;
    if (l.vision == NULL && l.text == NULL)
        return no_tower(file, vision->name, err);
    *out = l;
    return PNB_OK;
}

/* The other pattern with what was matched; what is too long is cut and then found nowhere. */
static void expand(char *out, size_t size, const char *prefix, const char *pattern, const match *m)
{
    size_t n = (size_t)snprintf(out, size, "%s", prefix);
    for (; *pattern != '\0' && n + 1 < size; pattern++) {
        if (*pattern == '#')
            n += (size_t)snprintf(out + n, size - n, "%.*s", m->n_layer, m->layer);
        else if (*pattern == '*')
            n += (size_t)snprintf(out + n, size - n, "%s", m->rest);
        else
            out[n++] = *pattern;
        if (n < size)
            out[n] = '\0';
    }
}

/* Parts come in the order of the table, q before k before v; a rule for the whole weight ends the
 * search. The pair's two numbers have their names in every layout, as () or (1). */
size_t pnb__key_mapping_parts(const pnb__key_mapping *l, const char *name,
                              pnb__key_mapping_part parts[3])
{
    size_t n = 0;
    match m;
    if (strcmp(name, "logit_scale") == 0 || strcmp(name, "logit_bias") == 0) {
        bool is_plain = l->plain_scale != NULL && !l->plain_taken;
        parts[0] = (pnb__key_mapping_part){.n_thirds = 3, .n_lead = (int)l->n_scale_dims};
        if (is_plain)
            snprintf(parts[0].key, sizeof parts[0].key, "%s",
                     name[6] == 's' ? l->plain_scale : l->plain_bias);
        else
            snprintf(parts[0].key, sizeof parts[0].key, "%s%s", l->prefix, name);
        return 1;
    }
    const pnb__key_mapping_table *table = pnb__starts_with(name, "text.") ? l->text : l->vision;
    for (size_t i = 0; table != NULL && i < table->n && n < 3; i++) {
        const pnb__key_rule *r = &table->rules[i];
        if (r->name == NULL || !pattern_matches(r->name, name, &m))
            continue;
        parts[n] = (pnb__key_mapping_part){.first_third = r->first_third,
                                           .n_thirds = r->n_thirds,
                                           .n_lead = r->n_lead,
                                           .transpose = r->transpose};
        expand(parts[n].key, sizeof parts[n].key, l->prefix, r->key, &m);
        n++;
        if (r->n_thirds == 3)
            break;
    }
    return n;
}

/* ---- moving values ----
 *
 * The moves, C the width, D the embedding, N the patches:
 *
 *     ours                              a file's
 *     attn.in_proj_weight (3C,C)        q, k, v (C,C) each, or q (C,C) and kv (2C,C): rows joined
 *     attn.in_proj_bias (3C)            the same of (C)
 *     proj, text_projection (C,D)       the weight (D,C) of a Linear: transposed, x P = x W^T
 *     positional_embedding (N,C)        (1,N,C)
 *     attn_pool.probe (C)               (1,1,C)
 *     logit_scale ()                    (1)
 *
 * Gathering makes ours of a file's, scattering the opposite; both move bytes and change no value,
 * so that a model that goes there and back has the same bits. */

typedef struct shape {
    int n;
    size_t dims[PNB__DIMS];
} shape;

/* Shape of one part without leading ones: rows / 3 * n_thirds of a packed weight, (columns, rows)
 * of a transposed one. */
static shape part_shape(const pnb__param *p, const pnb__key_mapping_part *part)
{
    shape s = {.n = p->n_dims};
    for (int i = 0; i < p->n_dims; i++)
        s.dims[i] = p->shape[i];
    if (part->n_thirds < 3)
        s.dims[0] = s.dims[0] / 3 * part->n_thirds;
    if (part->transpose && s.n == 2) {
        size_t rows = s.dims[0];
        s.dims[0] = s.dims[1];
        s.dims[1] = rows;
    }
    return s;
}

/* "768,2304", as messages about shapes have it. */
static void print_shape(pnb__buf *b, int n, const size_t *dims)
{
    for (int i = 0; i < n; i++)
        pnb__buf_printf(b, i ? ",%zu" : "%zu", dims[i]);
}

/* Leading ones of the file's shape are passed over, wherever they come from: (1,N,C) is (N,C).
 * `any_rows`: the first dimension may be another, for position tables that will be resized. */
static pnb_status check_shape(const shape *want, const pnb_array_view *a, bool any_rows,
                              pnb_error *err)
{
    int skip = 0;
    while (skip < a->n_dims && a->n_dims - skip > want->n && a->shape[skip] == 1)
        skip++;
    bool same = a->n_dims - skip == want->n;
    for (int i = 0; same && i < want->n; i++)
        same = (i == 0 && any_rows) || a->shape[skip + i] == (int64_t)want->dims[i];
    if (same)
        return PNB_OK;
    pnb__buf found = {0}, wanted = {0};
    for (int i = 0; i < a->n_dims; i++)
        pnb__buf_printf(&found, i ? ",%lld" : "%lld", (long long)a->shape[i]);
    print_shape(&wanted, want->n, want->dims);
    pnb_status status = pnb__fail(err, PNB_SHAPE, "%s: file has (%s), config needs (%s)", a->name,
                                  found.data ? found.data : "", wanted.data ? wanted.data : "");
    pnb__buf_reset(&found);
    pnb__buf_reset(&wanted);
    return status;
}

/* The array of one part, of a type that numbers can be: real ones, or 8-bit with scales beside
 * (quantized_weights.h). */
static pnb_status find_part(const pnb__weight_file *file, const pnb__param *p,
                            const pnb__key_mapping_part *part, bool any_rows,
                            const pnb_array_view **out, pnb_error *err)
{
    const pnb_array_view *a = pnb__weight_file_lookup(file, part->key);
    if (a == NULL)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s is missing from the file; does its configuration belong to these "
                         "weights?",
                         part->key);
    shape want = part_shape(p, part);
    pnb_status status = check_shape(&want, a, any_rows, err);
    if (status == PNB_OK && a->dtype != PNB_F32 && a->dtype != PNB_F64 && a->dtype != PNB_F16 &&
        a->dtype != PNB_BF16 && a->dtype != PNB_I8)
        status = pnb__fail(err, PNB_DTYPE, "%s: dtype %s is not a floating-point type", part->key,
                           pnb_dtype_name(a->dtype));
    *out = a;
    return status;
}

/* out (cols, rows) = in (rows, cols) transposed, elements of `size` bytes: bits are moved, whatever
 * the type. Only projections (C,D) are, once a model, so no blocking is worth its lines. */
static void transpose(unsigned char *out, const unsigned char *in, size_t rows, size_t cols,
                      size_t size)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            memcpy(out + (c * rows + r) * size, in + (r * cols + c) * size, size);
}

/* Joins parts into one weight in the file's type, so that converting happens once and half types
 * stay half. Part k begins at its third of the bytes; a transposed one is a whole weight. */
static pnb_status gather_copy(const pnb__param *p, const pnb__key_mapping_part *parts,
                              const pnb_array_view *const *arrays, size_t n, pnb__gathered *out,
                              pnb_error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += arrays[i]->n_bytes;
        if (arrays[i]->dtype != arrays[0]->dtype)
            return pnb__fail(err, PNB_DTYPE,
                             "%s is %s, %s is %s; the parts of one weight must be "
                             "alike",
                             parts[0].key, pnb_dtype_name(arrays[0]->dtype), parts[i].key,
                             pnb_dtype_name(arrays[i]->dtype));
    }
    unsigned char *copy = pnb__alloc(PNB_MAX(bytes, (size_t)1));
    if (copy == NULL)
        return pnb__fail_nomem(err, bytes);
    for (size_t i = 0; i < n; i++) {
        size_t at = bytes / 3 * parts[i].first_third; /* 0 for a whole weight */
        if (parts[i].transpose)
            transpose(copy + at, arrays[i]->data, p->shape[1], p->shape[0],
                      pnb_dtype_size(arrays[i]->dtype));
        else if (arrays[i]->n_bytes > 0)
            memcpy(copy + at, arrays[i]->data, arrays[i]->n_bytes);
    }
    out->owned = copy;
    out->view.data = copy;
    out->view.n_bytes = bytes;
    return PNB_OK;
}

pnb_status pnb__key_mapping_gather(const pnb__key_mapping *l, const pnb__weight_file *file,
                                   const pnb__param *p, bool any_rows, pnb__gathered *out,
                                   pnb_error *err)
{
    pnb__key_mapping_part parts[3];
    const pnb_array_view *arrays[3] = {NULL, NULL, NULL};
    size_t n = pnb__key_mapping_parts(l, p->name, parts);
    *out = (pnb__gathered){0};
    if (n == 0)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "the configuration needs %s, which the layout of %s has no place for",
                         p->name, file->path);
    for (size_t i = 0; i < n; i++) {
        pnb_status status = find_part(file, p, &parts[i], any_rows, &arrays[i], err);
        if (status != PNB_OK)
            return status;
    }
    out->view = *arrays[0];
    out->view.name = p->name;
    out->view.n_dims = p->n_dims;
    for (int i = 0; i < p->n_dims; i++)
        out->view.shape[i] = (int64_t)p->shape[i];
    if (any_rows) /* the file's own number of rows; position tables are never packed or transposed
                   */
        out->view.shape[0] = arrays[0]->shape[arrays[0]->n_dims - p->n_dims];
    if (n == 1 && !parts[0].transpose)
        return PNB_OK; /* a view into the map */
    return gather_copy(p, parts, arrays, n, out, err);
}

/* The inverse of gathering one part: a view into the packed rows, a transposed copy, leading ones
 * put in front. */
static pnb_status scatter_one(const pnb__key_mapping_part *part, const pnb_array_view *in,
                              pnb__arena *arena, pnb_array_view *out)
{
    pnb_array_view v = *in;
    v.name = pnb__arena_strdup(arena, part->key);
    if (v.name == NULL)
        return PNB_NOMEM;
    v.n_bytes = in->n_bytes / 3 * part->n_thirds;
    if (part->n_thirds < 3) {
        v.shape[0] = in->shape[0] / 3 * (int64_t)part->n_thirds;
        v.data = (const unsigned char *)in->data + in->n_bytes / 3 * part->first_third;
    } else {
        v.n_bytes = in->n_bytes;
    }
    if (part->transpose) {
        void *copy = pnb__arena_alloc(arena, PNB_MAX(in->n_bytes, (size_t)1));
        if (copy == NULL)
            return PNB_NOMEM;
        transpose(copy, in->data, (size_t)in->shape[0], (size_t)in->shape[1],
                  pnb_dtype_size(in->dtype));
        v.data = copy;
        v.shape[0] = in->shape[1];
        v.shape[1] = in->shape[0];
    }
    for (int i = v.n_dims - 1; i >= 0 && part->n_lead > 0; i--)
        v.shape[i + part->n_lead] = v.shape[i];
    for (int i = 0; i < part->n_lead; i++)
        v.shape[i] = 1;
    v.n_dims += part->n_lead;
    *out = v;
    return PNB_OK;
}

pnb_status pnb__key_mapping_scatter(const pnb__key_mapping *l, const pnb_array_view *in,
                                    pnb__arena *arena, pnb_array_view *views, size_t *n,
                                    pnb_error *err)
{
    pnb__key_mapping_part parts[3];
    size_t n_parts = pnb__key_mapping_parts(l, in->name, parts);
    if (n_parts == 0)
        return pnb__fail(err, PNB_UNSUPPORTED, "that layout has no place for %s", in->name);
    for (size_t i = 0; i < n_parts; i++)
        if (scatter_one(&parts[i], in, arena, &views[(*n)++]) != PNB_OK)
            return pnb__fail_nomem(err, in->n_bytes);
    return PNB_OK;
}
