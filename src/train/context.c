/* How many tokens a fresh small model reads: as many as its training captions need.
 *
 * The built-in configuration `tiny` has a context that fits short captions only; a caption that is
 * cut loses what tells it apart. So the context is the 99th percentile of the captions' lengths in
 * tokens, special ones included, and at most CLIP's 77, because attention's cost grows with it. */
#include <string.h>

#include "io/json.h"
#include "train/trainer.h"

enum { MOST_TOKENS = 77, LEAST_TOKENS = 4, MOST_SAMPLES = 20000 };

static pnb_status count_sample(const pnb_tokenizer *tokenizer, const pnb_sample *s,
                               size_t n_of[MOST_TOKENS + 2], pnb__context *c, pnb_error *err)
{
    for (size_t k = 0; k < s->n_captions; k++) {
        const char *text = s->captions[k];
        int32_t ids[MOST_TOKENS];
        pnb_token_count count;
        pnb_status status =
            pnb_tokenizer_encode(tokenizer, text, strlen(text), MOST_TOKENS, ids, &count, err);
        if (status != PNB_OK)
            return status;
        n_of[PNB_MIN(count.n_total, MOST_TOKENS + 1)]++;
        c->longest = PNB_MAX(c->longest, count.n_total);
        c->n_captions++;
    }
    return PNB_OK;
}

pnb_status pnb__context_measure(const pnb_dataset *set, const pnb_tokenizer *tokenizer,
                                pnb__context *out, pnb_error *err)
{
    size_t n_of[MOST_TOKENS + 2] = {0}, n = pnb_dataset_size(set), within = 0;
    size_t step = n / MOST_SAMPLES + 1;
    pnb_status status = PNB_OK;
    *out = (pnb__context){0};
    for (size_t i = 0; i < n && status == PNB_OK; i += step) {
        pnb_sample s = {0};
        if (pnb_dataset_get(set, i, &s, NULL) == PNB_OK) /* the loader names what is unreadable */
            status = count_sample(tokenizer, &s, n_of, out, err);
        pnb_sample_reset(&s);
    }
    if (status != PNB_OK)
        return status;
    for (int length = 0; length <= MOST_TOKENS; length++) {
        within += n_of[length];
        out->length = length;
        out->n_within = within;
        if (length >= LEAST_TOKENS && 100 * within >= 99 * out->n_captions)
            break;
    }
    return PNB_OK;
}

/* Whoever names a length gets it: --force-context-length, an override, another configuration. */
static bool is_open(const pnb__trainer *t, const char *name)
{
    json_t *given = NULL;
    const char *overrides = t->opts->config_overrides;
    if (strcmp(name, "tiny") != 0 || t->opts->force_context_length > 0)
        return false;
    if (overrides != NULL &&
        pnb__json_load_bytes(&given, overrides, strlen(overrides), "overrides", NULL) != PNB_OK)
        return false; /* refused where it is merged */
    bool open = json_object_get(json_object_get(given, "text_cfg"), "context_length") == NULL;
    json_decref(given);
    return open;
}

pnb_status pnb__context_choose(pnb__trainer *t, const char *name, json_t *config, pnb_error *err)
{
    if (!is_open(t, name))
        return PNB_OK;
    pnb_status status = pnb__context_measure(t->train, t->tokenizer, &t->context, err);
    if (status != PNB_OK || t->context.n_captions == 0)
        return status;
    json_t *text = json_object_get(config, "text_cfg");
    if (json_object_set_new(text, "context_length", json_integer(t->context.length)) != 0)
        return pnb__fail_nomem(err, 0);
    return PNB_OK;
}
