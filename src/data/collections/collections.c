/* Makes a set of a collection: reads, draws, compares, deals, writes.
 *
 * Each step is a file of this folder; folders, shards and the marker are those of
 * src/data/synth/synth_write.c. */
#include "penumbra/collections.h"

#include <string.h>

#include "data/collections/collection.h"
#include "io/json/json.h"

static const char *const KINDS[] = {"clipart", "stamps", "mixed"};

pnb_collection_opts pnb_collection_opts_default(void)
{
    return (pnb_collection_opts){.size = 64,
                                 .val_share = 0.1,
                                 .test_share = 0.15,
                                 .shard_size = 1000,
                                 .near = 0.97,
                                 .language = "en",
                                 .held_out = "photo",
                                 .emoji = pnb_emoji_opts_default()};
}

static pnb_status check_opts(pnb_collection_kind kind, const pnb_collection_opts *o, pnb_error *err)
{
    if (kind < PNB_COLLECTION_CLIPART || kind > PNB_COLLECTION_MIXED)
        return pnb__fail(err, PNB_ARG, "no such collection");
    if (o->size < 16 || o->size > 512 || o->shard_size < 1)
        return pnb__fail(err, PNB_ARG, "%s: size %d and shards of %zu, wanted 16..512 and 1..",
                         KINDS[kind], o->size, o->shard_size);
    if (!(o->val_share >= 0 && o->test_share >= 0 && o->val_share + o->test_share < 1))
        return pnb__fail(err, PNB_ARG, "%s: shares %g and %g of val and test, together below 1",
                         KINDS[kind], o->val_share, o->test_share);
    if (!(o->near > 0 && o->near <= 1))
        return pnb__fail(err, PNB_ARG, "%s: near-duplicates from %g on, wanted above 0 to 1",
                         KINDS[kind], o->near);
    if (kind == PNB_COLLECTION_MIXED && strcmp(o->language, "en") != 0)
        return pnb__fail(err, PNB_ARG,
                         "mixed: only stamps have a sentence in '%s'; `data stamps "
                         "--language %s` writes it",
                         o->language, o->language);
    return PNB_OK;
}

/* What identifies the set. */
static char *describe(pnb_collection_kind kind, const pnb_collection_opts *o)
{
    pnb__buf b = {0};
    const char *held_out = o->held_out != NULL ? o->held_out : "";
    pnb__json_put(&b,
                  "{\"kind\": %s, \"version\": 1, \"seed\": \"%llu\", \"size\": %d, \"val_share\": "
                  "%f, \"test_share\": %f, \"shard_size\": %zu, \"near\": %f, \"icon_themes\": %i, "
                  "\"stars\": %i, \"sensitive\": %i, \"noisy\": %i, \"language\": %s, "
                  "\"held_out\": %s, \"clipart\": %s, \"stamps\": %s}",
                  KINDS[kind], (unsigned long long)o->seed, o->size, o->val_share, o->test_share,
                  o->shard_size, o->near, o->icon_themes, o->stars, o->sensitive, o->noisy,
                  o->language, held_out, o->clipart != NULL ? o->clipart : "",
                  o->stamps != NULL ? o->stamps : "");
    if (!b.failed)
        return b.data;
    pnb__buf_reset(&b);
    return NULL;
}

static pnb_status read_all(pnb_collection_kind kind, pnb__collection *c, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__arena_init(&c->arena, 1 << 20);
    if (kind != PNB_COLLECTION_STAMPS)
        PNB_TRY(pnb__clipart_read(c, err));
    if (kind != PNB_COLLECTION_CLIPART)
        PNB_TRY(pnb__stamps_read(c, err));
    if (kind == PNB_COLLECTION_MIXED)
        status = pnb__emoji_collect(c, err);
done:
    return status;
}

/* Every style that is to be held out has pictures, and some other style has too. */
static pnb_status check_held_out(const pnb__collection *c, pnb_error *err)
{
    const char *list = c->opts->held_out, *style;
    size_t n, n_held = 0;
    while ((style = pnb__style_next(&list, &n)) != NULL) {
        size_t n_style = 0;
        for (size_t i = 0; i < c->n; i++)
            n_style += strlen(c->items[i].style) == n && !memcmp(c->items[i].style, style, n);
        n_held += n_style;
        if (n_style == 0 || n_held >= c->n)
            return pnb__fail(err, PNB_ARG,
                             "no pictures of the style '%.*s' beside others: styles are "
                             "clipart, drawing, photo and emoji",
                             (int)n, style);
    }
    return PNB_OK;
}

static pnb_status find_concepts(pnb__collection *c, pnb_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].concept = pnb__concept_of(c, c->items[i].name);
        if (c->items[i].concept == NULL)
            return pnb__fail_nomem(err, 64);
    }
    return PNB_OK;
}

static pnb_status make_set(const pnb_ctx *ctx, pnb_collection_kind kind, pnb__collection *c,
                           const pnb__synth_out *out, pnb_error *err)
{
    bool is_mixed = kind == PNB_COLLECTION_MIXED;
    pnb_status status;
    PNB_TRY(read_all(kind, c, err));
    PNB_TRY(pnb__collection_draw(ctx, c, err));
    PNB_TRY(pnb__collection_twins(ctx, c, err));
    if (is_mixed) {
        PNB_TRY(check_held_out(c, err));
        PNB_TRY(find_concepts(c, err));
    }
    PNB_TRY(pnb__collection_split(c, is_mixed, err));
    status = pnb__collection_write(c, out, err);
done:
    return status;
}

pnb_status pnb_collection_build(const pnb_ctx *ctx, pnb_collection_kind kind,
                                const pnb_collection_opts *opts, const char *dir,
                                pnb_collection_stats *stats, pnb_error *err)
{
    pnb_collection_opts o = opts != NULL ? *opts : pnb_collection_opts_default();
    pnb_collection_stats local = {0};
    pnb__collection c = {.opts = &o, .stats = &local};
    pnb__synth_out out = {0};
    char *options = NULL;
    pnb_status status;
    PNB_TRY(check_opts(kind, &o, err));
    if (kind != PNB_COLLECTION_MIXED)
        o.held_out = NULL;
    options = describe(kind, &o);
    if (options == NULL)
        PNB_TRY(pnb__fail_nomem(err, 512));
    PNB_TRY(pnb__synth_begin(&out, dir, options, &local.set, err));
    if (!local.set.reused) {
        PNB_TRY(make_set(ctx, kind, &c, &out, err));
        PNB_TRY(pnb__synth_commit(&out, &local.set, err));
    }
    if (stats != NULL)
        *stats = local;
done:
    pnb__synth_abort(&out);
    pnb__collection_free(&c);
    pnb__free(options);
    return status;
}
