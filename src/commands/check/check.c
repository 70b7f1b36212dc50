/* The model doctor: architecture, keys, tokenizer and preprocessing of a folder.
 *
 * Every part adds findings; nothing stops at the first error, except that a model which does not
 * open is not run. What the folder leaves open and a guess would fill is a warning that says the
 * guess; a missing tokenizer is an error, because no guess is right. */
#include "commands/check/check.h"
#include "commands/common/encode_use.h"

#include <stdarg.h>
#include <string.h>

#include "base/grow.h"
#include "commands/common/model_path.h"
#include "models/keys/key_check.h"
#include "models/model.h"

enum { MAX_LISTED = 200 };

static const char *const level_names[] = {"ok", "warning", "error"};

void pnb__finding_add(pnb__visit *v, pnb__finding_level level, const char *part, const char *fmt,
                      ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    v->verdict.n_errors += level == PNB__FINDING_ERROR ? 1 : 0;
    v->verdict.n_warnings += level == PNB__FINDING_WARNING ? 1 : 0;
    char *copy = pnb__strdup(text);
    v->no_memory = v->no_memory || copy == NULL;
    if (PNB_PUSH(v->items, v->n, NULL, (pnb__finding){level, part, copy}) != PNB_OK) {
        v->no_memory = true;
        pnb__free(copy);
    }
}

void pnb__finding_fault(pnb__visit *v, const char *part, const pnb_error *err)
{
    if (err->status == PNB_NOMEM)
        v->no_memory = true;
    else
        pnb__finding_add(v, PNB__FINDING_ERROR, part, "%s", err->text);
}

/* ---- architecture and keys ---- */

typedef struct key_counts {
    pnb__visit *visit;
    size_t by_kind[4];
} key_counts;

static void note_key(void *user, pnb__key_kind kind, const char *text)
{
    key_counts *c = user;
    if (c->by_kind[kind]++ < MAX_LISTED && kind != PNB__KEY_IGNORED)
        pnb__finding_add(c->visit, PNB__FINDING_ERROR, "weights", "%s", text);
}

/* Settings of a transformer. */
static void report_blocks(const pnb_tower_info *t, pnb__result *r)
{
    pnb__result_int(r, "width", "width", (int64_t)t->width);
    pnb__result_int(r, "layers", "layers", (int64_t)t->n_layers);
    pnb__result_int(r, "heads", "heads", (int64_t)t->n_heads);
    pnb__result_int(r, "mlp_width", "MLP width", (int64_t)t->mlp_width);
    pnb__result_text(r, "activation", "activation", t->activation);
    pnb__result_text(r, "activation_source", "  from", t->activation_source);
    pnb__result_real(r, "layernorm_eps", "LayerNorm eps", t->layernorm_eps, 7);
    pnb__result_text(r, "layernorm_source", "  from", t->layernorm_source);
    pnb__result_text(r, "pooling", "read at", t->pooling);
    pnb__result_flag(r, "projection", "projected", t->has_projection);
    pnb__result_flag(r, "uncertainty", "gives log-variance", t->family == PNB_GAUSSIAN_DIAG);
}

static void report_tower(const pnb_tower_info *t, const char *key_names, bool is_text,
                         pnb__result *r)
{
    pnb__result_begin(r, is_text ? "text" : "vision", is_text ? "text tower" : "image tower");
    pnb__result_text(r, "key_names", "names of weights", key_names);
    if (t->present && t->n_layers > 0)
        report_blocks(t, r);
    else if (t->present)
        pnb__result_text(r, "distributions", "ends in", pnb_family_name(t->family));
    if (t->architecture[0] != '\0')
        pnb__result_text(r, "architecture", "architecture", t->architecture);
    pnb__result_end(r);
}

static void report_model(const pnb__key_check *e, const key_counts *keys, pnb__result *r)
{
    const pnb_model_info *info = &e->info;
    pnb__result_text(r, "family", "family", info->family);
    pnb__result_text(r, "config", "configuration",
                     e->config[0] ? e->config : "shapes of the weights");
    pnb__result_text(r, "weights", "weights", e->weights);
    pnb__result_text(r, "format", "format", e->format);
    pnb__result_int(r, "embed_dim", "embedding width", (int64_t)info->embed_dim);
    if (info->vision.present) {
        pnb__result_int(r, "image_height", "image height", (int64_t)info->vision.image_height);
        pnb__result_int(r, "image_width", "image width", (int64_t)info->vision.image_width);
        if (info->vision.patch > 0)
            pnb__result_int(r, "patch", "patch", (int64_t)info->vision.patch);
    }
    if (info->text.present) {
        pnb__result_int(r, "context_length", "context", (int64_t)info->text.context_length);
        pnb__result_int(r, "vocab_size", "vocabulary", (int64_t)info->text.vocab_size);
        pnb__result_flag(r, "causal", "causal text", info->text.causal);
    }
    report_tower(&info->vision, pnb__key_mapping_name(e->layout.vision), false, r);
    report_tower(&info->text, pnb__key_mapping_name(e->layout.text), true, r);
    pnb__result_begin(r, "keys", "keys");
    pnb__result_int(r, "expected", "expected", (int64_t)e->n_expected);
    pnb__result_int(r, "found", "found", (int64_t)e->n_found);
    pnb__result_int(r, "missing", "missing", (int64_t)keys->by_kind[PNB__KEY_MISSING]);
    pnb__result_int(r, "mis_shaped", "of another shape or type",
                    (int64_t)keys->by_kind[PNB__KEY_SHAPE]);
    pnb__result_int(r, "unexpected", "unexpected", (int64_t)keys->by_kind[PNB__KEY_UNEXPECTED]);
    pnb__result_int(r, "ignored", "known buffers passed over",
                    (int64_t)keys->by_kind[PNB__KEY_IGNORED]);
    pnb__result_end(r);
}

static void check_defaults(pnb__visit *v, const pnb_model_info *info)
{
    const pnb_tower_info *towers[] = {&info->vision, &info->text};
    static const char *const names[] = {"image tower", "text tower"};
    for (size_t i = 0; i < 2; i++) {
        const pnb_tower_info *t = towers[i];
        if (!t->present)
            pnb__finding_add(v, PNB__FINDING_WARNING, "model", "there is no %s in the weights",
                             names[i]);
        else if (t->activation_source != NULL &&
                 strstr(t->activation_source, "default of transformers") != NULL)
            pnb__finding_add(v, PNB__FINDING_WARNING, "model",
                             "%s: activation %s is transformers' default; the file does not say it",
                             names[i], t->activation);
    }
}

/* ---- tokenizer ---- */

static void check_vocabulary(pnb__visit *v)
{
    size_t vocab = (size_t)pnb_tokenizer_vocab_size(v->model.tokenizer);
    size_t table = v->model.info->text.vocab_size;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__model_check_vocabulary(v->model.model, vocab, &err) != PNB_OK)
        pnb__finding_add(v, PNB__FINDING_ERROR, "tokenizer", "%s", err.text);
    else if (vocab < table)
        pnb__finding_add(v, PNB__FINDING_WARNING, "tokenizer",
                         "%zu ids for an embedding table of %zu", vocab, table);
}

/* Decoded text without blanks at its ends equals the caption, capitals aside. */
static void check_round_trip(pnb__visit *v)
{
    static const char sentence[] = "two cats on a pink blanket";
    const pnb_tokenizer *t = v->model.tokenizer;
    pnb_error err = PNB_ERROR_INIT;
    char *text = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    pnb_status status =
        pnb_tokenizer_encode_all(t, sentence, strlen(sentence), true, &ids, &n_ids, &err);
    if (status == PNB_OK)
        status = pnb_tokenizer_decode(t, ids, n_ids, &text, &err);
    if (status != PNB_OK) {
        pnb__finding_fault(v, "tokenizer", &err);
    } else {
        const char *begin = text + strspn(text, " ");
        size_t n = strlen(begin);
        while (n > 0 && begin[n - 1] == ' ')
            n--;
        bool same = n == strlen(sentence) && strncmp(begin, sentence, n) == 0;
        if (same)
            pnb__finding_add(v, PNB__FINDING_OK, "tokenizer", "\"%s\" is %zu ids and back the same",
                             sentence, n_ids);
        else
            pnb__finding_add(v, PNB__FINDING_WARNING, "tokenizer", "\"%s\" comes back as \"%.*s\"",
                             sentence, (int)n, begin);
    }
    pnb_text_free(text);
    pnb_tokenizer_ids_free(ids);
}

/* Padding is attended to in ProLIP and SigLIP: the id, who says it, and whether it is a guess. */
static void check_padding(pnb__visit *v)
{
    pnb_padding pad = pnb_tokenizer_padding(v->model.tokenizer);
    if (v->model.assumed_texts[0] != '\0')
        pnb__finding_add(v, PNB__FINDING_WARNING, "tokenizer", "%s", v->model.assumed_texts);
    if (!pad.assumed)
        pnb__finding_add(v, PNB__FINDING_OK, "tokenizer", "captions are padded with id %d: %s",
                         pad.id, pad.source);
}

/* The cleaning of captions: told by open_clip's configuration only. */
static void check_cleaning(pnb__visit *v)
{
    pnb_clean clean = pnb_tokenizer_clean(v->model.tokenizer);
    pnb_clean trained = v->model.info->trained_clean;
    if (strstr(v->model.assumed_texts, "cleaned") != NULL)
        return; /* told with the rest of what is assumed */
    if (clean == PNB_CLEAN_NONE && trained != PNB_CLEAN_NONE)
        pnb__finding_add(v, PNB__FINDING_WARNING, "tokenizer",
                         "captions are not cleaned: nothing in the folder asks for it, but %s "
                         "models were trained on captions cleaned by '%s'",
                         v->model.info->family, pnb_clean_name(trained));
    else
        pnb__finding_add(v, PNB__FINDING_OK, "tokenizer", "cleaning: %s", pnb_clean_name(clean));
}

static void check_tokenizer(pnb__visit *v, pnb__result *r)
{
    pnb_error err = PNB_ERROR_INIT;
    const pnb_encoder_opts parts = {.sides = PNB_ENCODE_TEXTS};
    if (!v->model.info->text.present)
        return;
    pnb__encoder_add(&v->model, v->dir, &parts, &err);
    if (v->model.tokenizer == NULL) {
        pnb__finding_fault(v, "tokenizer", &err);
        return;
    }
    pnb__describe_tokenizer(v->model.tokenizer, r);
    check_vocabulary(v);
    check_padding(v);
    check_cleaning(v);
    check_round_trip(v);
}

/* ---- preprocessing ---- */

static void check_preprocess(pnb__visit *v)
{
    char text[256];
    pnb_error err = PNB_ERROR_INIT;
    const pnb_encoder_opts parts = {.sides = PNB_ENCODE_IMAGES};
    if (!v->model.info->vision.present)
        return;
    if (pnb__encoder_add(&v->model, v->dir, &parts, &err) != PNB_OK) {
        pnb__finding_fault(v, "preprocessing", &err);
        v->model.preprocess = (pnb_preprocess){0}; /* no run with a size that does not fit */
        return;
    }
    pnb_preprocess_describe(&v->model.preprocess, text, sizeof text);
    if (v->model.assumed[0] != '\0')
        pnb__finding_add(v, PNB__FINDING_WARNING, "preprocessing", "%s", v->model.assumed);
    else
        pnb__finding_add(v, PNB__FINDING_OK, "preprocessing", "%s", text);
}

/* ---- the whole ---- */

static void report_findings(const pnb__visit *v, pnb__result *r)
{
    static const pnb__column columns[] = {{"level", ""}, {"part", ""}, {"text", ""}};
    pnb__result_int(r, "n_errors", "errors", (int64_t)v->verdict.n_errors);
    pnb__result_int(r, "n_warnings", "warnings", (int64_t)v->verdict.n_warnings);
    pnb__result_table(r, "findings", "findings", columns, PNB_COUNT(columns));
    for (size_t i = 0; i < v->n; i++) {
        pnb__result_row(r, "%s %s %s", level_names[v->items[i].level], v->items[i].part,
                        v->items[i].text != NULL ? v->items[i].text : "");
    }
}

static void run_checks(pnb__visit *v, pnb__result *r)
{
    pnb_error err = PNB_ERROR_INIT;
    const pnb_encoder_opts none = {0};
    if (pnb__encoder_init(&v->model, v->app->ctx, v->dir, &none, &err) != PNB_OK) {
        pnb__finding_fault(v, "model", &err);
        return;
    }
    check_tokenizer(v, r);
    check_preprocess(v);
    pnb__check_forward(v);
    pnb__check_golden(v);
    pnb__check_published(v);
    pnb__check_precisions(v, r);
}

static void examine(pnb__visit *v, pnb__result *r)
{
    pnb__key_check e;
    pnb_error err = PNB_ERROR_INIT;
    key_counts keys = {.visit = v};
    pnb_status status = pnb__model_check_keys(&e, v->app->ctx, v->dir, note_key, &keys, &err);
    if (status != PNB_OK) {
        pnb__finding_fault(v, "model", &err);
    } else {
        report_model(&e, &keys, r);
        if (e.warning != NULL)
            pnb__finding_add(v, PNB__FINDING_WARNING, "weights", "%s", e.warning);
        if (v->verdict.n_errors == 0)
            pnb__finding_add(v, PNB__FINDING_OK, "weights", "all %zu keys are there and fit",
                             e.n_expected);
        check_defaults(v, &e.info);
    }
    pnb__key_check_reset(&e);
    if (v->verdict.n_errors == 0)
        run_checks(v, r);
}

pnb_status pnb__check_model(pnb__app *app, const char *name, const pnb__check_inputs *inputs,
                            pnb__verdict *verdict, pnb__result *r)
{
    char *dir = NULL;
    pnb_status status = pnb__model_path(app, name, &dir, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__visit v = {.app = app, .dir = dir, .inputs = inputs};
    pnb__result_text(r, "path", "path", dir);
    examine(&v, r);
    report_findings(&v, r);
    *verdict = v.verdict;
    if (v.no_memory)
        status = pnb__fail(&app->err, PNB_NOMEM, "out of memory while examining %s", name);
    for (size_t i = 0; i < v.n; i++)
        pnb__free(v.items[i].text);
    pnb__free(v.items);
    pnb__encoder_reset(&v.model);
    pnb__free(dir);
    return status;
}
