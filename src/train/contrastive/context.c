/* How many tokens a fresh small model reads: as many as its training captions need.
 *
 * The built-in configuration `tiny` has a context that fits short captions only; a caption that is
 * cut loses what tells it apart. So the context is the 99th percentile of the captions' lengths in
 * tokens, special ones included, and at most CLIP's 77, because attention's cost grows with it.
 * A caption counts as it is drawn: bare with probability 1 - template_share, else in a template; it
 * is measured in one of them, each in its turn, which is their uniform draw over many captions. */
#include <string.h>

#include "data/loader/loader_internal.h"
#include "io/json/json.h"
#include "train/contrastive/contrastive.h"

enum { MOST_TOKENS = 77, LEAST_TOKENS = 4, MOST_SAMPLES = 20000 };

typedef struct tally {
    const pnb_tokenizer *tokenizer;
    double share_of[MOST_TOKENS + 2]; /* captions of each length, by the probability of the draw */
    pnb__context context;
} tally;

/* Adds `weight` to the text's length. Longer texts share the last place: only "too long"
 * matters. */
static pnb_status count_text(tally *t, const char *text, size_t n, double weight, pnb_error *err)
{
    int32_t ids[MOST_TOKENS];
    pnb_token_count count;
    pnb_status status = pnb_tokenizer_encode(t->tokenizer, text, n, MOST_TOKENS, ids, &count, err);
    if (status != PNB_OK)
        return status;
    t->share_of[PNB_MIN(count.n_total, MOST_TOKENS + 1)] += weight;
    t->context.longest = PNB_MAX(t->context.longest, count.n_total);
    return PNB_OK;
}

/* Caption k stands in template k mod n: over many captions each template gets its n-th part. */
static pnb_status count_in_template(tally *t, const char *text, const pnb__templates *in,
                                    pnb_error *err)
{
    pnb__buf b = {0};
    pnb__template_fill(&b, in->texts[t->context.n_texts % in->n], text);
    pnb_status status = b.failed ? pnb__fail_nomem(err, strlen(text))
                                 : count_text(t, b.data, b.size, in->share, err);
    pnb__buf_reset(&b);
    return status;
}

/* Every caption of a sample may be drawn, with 1 - share bare and with share in a template. */
static pnb_status count_sample(tally *t, const pnb_sample *s, const pnb__templates *in,
                               pnb_error *err)
{
    double share = in->n > 0 ? in->share : 0;
    pnb_status status = PNB_OK;
    for (size_t k = 0; k < s->n_texts && status == PNB_OK; k++) {
        const char *text = s->texts[k];
        if (share < 1)
            status = count_text(t, text, strlen(text), 1 - share, err);
        if (status == PNB_OK && share > 0)
            status = count_in_template(t, text, in, err);
        t->context.n_texts++;
    }
    return status;
}

/* The least length l with sum_(l' <= l) p(l') >= 0.99. Rounding of the sum must not cost a
 * token. */
pnb_status pnb__context_measure(const pnb_dataset *set, const pnb_tokenizer *tokenizer,
                                const pnb__templates *in, pnb__context *out, pnb_error *err)
{
    tally t = {.tokenizer = tokenizer};
    /* every step-th sample: a share of 0.99 of 20,000 is known to a tenth of a percent */
    size_t n = pnb_dataset_size(set), step = n / MOST_SAMPLES + 1;
    pnb_status status = PNB_OK;
    double within = 0;
    for (size_t i = 0; i < n && status == PNB_OK; i += step) {
        pnb_sample s = {0};
        if (pnb_dataset_get(set, i, &s, NULL) == PNB_OK) /* the loader names what is unreadable */
            status = count_sample(&t, &s, in, err);
        pnb_sample_reset(&s);
    }
    if (status != PNB_OK)
        return status;
    for (int length = 0; length <= MOST_TOKENS; length++) {
        within += t.share_of[length];
        t.context.length = length;
        t.context.share_within = within / (double)PNB_MAX(t.context.n_texts, 1);
        if (length >= LEAST_TOKENS && t.context.share_within >= 0.99 - 1e-9)
            break;
    }
    *out = t.context;
    return PNB_OK;
}

/* Whoever names a length gets it: --force-context-length, an override, another configuration. */
static bool is_open(const pnb__contrastive *c, const char *name)
{
    json_t *given = NULL;
    const char *overrides = c->opts->config_overrides;
    if ((strcmp(name, "tiny") != 0 && !pnb__ends_with(name, "-tiny")) ||
        c->opts->force_context_length > 0)
        return false;
    if (overrides != NULL &&
        pnb__json_load_bytes(&given, overrides, strlen(overrides), "overrides", NULL) != PNB_OK)
        return false; /* refused where it is merged */
    bool open = json_object_get(json_object_get(given, "text_cfg"), "context_length") == NULL;
    json_decref(given);
    return open;
}

/* A number in the configuration from here on: checkpoints and resumed runs read it there. */
pnb_status pnb__context_choose(pnb__contrastive *c, const char *name, json_t *config,
                               pnb_error *err)
{
    if (!is_open(c, name))
        return PNB_OK;
    pnb__templates in = {c->opts->templates, c->opts->n_templates, c->opts->template_share};
    pnb_status status = pnb__context_measure(c->train, c->tokenizer, &in, &c->context, err);
    if (status != PNB_OK || c->context.n_texts == 0)
        return status;
    json_t *text = json_object_get(config, "text_cfg");
    if (json_object_set_new(text, "context_length", json_integer(c->context.length)) != 0)
        return pnb__fail_nomem(err, 0);
    return PNB_OK;
}
