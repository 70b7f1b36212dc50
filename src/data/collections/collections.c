/* Makes a set of a collection: reads, draws, compares, deals, writes.
 *
 * Each step is a file of this folder; folders, shards and the marker are those of
 * src/data/synth/synth_write.c. */
#include "penumbra/collections.h"

#include <assert.h>
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

/* Of pictures; who reads a package gives its items one (pnb__collected.style). */
static const char *const STYLES[] = {"clipart", "drawing", "photo", "emoji"};

static size_t style_at(const char *name, size_t n)
{
    size_t k = 0;
    while (k < PNB_COUNT(STYLES) && (strlen(STYLES[k]) != n || memcmp(STYLES[k], name, n) != 0))
        k++;
    return k;
}

/* Names by commas, each once, and not all of them; NULL: none. */
static pnb_status read_styles(const char *list, bool is_held[PNB_COUNT(STYLES)], pnb_error *err)
{
    size_t n_held = 0;
    memset(is_held, 0, PNB_COUNT(STYLES) * sizeof *is_held);
    while (list != NULL) {
        size_t n = strcspn(list, ","), k = style_at(list, n);
        if (k == PNB_COUNT(STYLES) || is_held[k])
            return pnb__fail(
                err, PNB_ARG, "mixed: '%.*s' %s: styles are clipart, drawing, photo and emoji",
                (int)n, list, k == PNB_COUNT(STYLES) ? "is no style" : "is held out twice");
        is_held[k] = true;
        n_held++;
        list = list[n] == ',' ? list + n + 1 : NULL;
    }
    return n_held < PNB_COUNT(STYLES)
               ? PNB_OK
               : pnb__fail(err, PNB_ARG,
                           "mixed: all styles are held out, none is left to learn from");
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
    bool is_held[PNB_COUNT(STYLES)];
    return kind == PNB_COLLECTION_MIXED ? read_styles(o->held_out, is_held, err) : PNB_OK;
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

/* Marks the pictures of styles that are held out: each has some, and some other style has too. */
static pnb_status hold_out_styles(pnb__collection *c, pnb_error *err)
{
    bool is_held[PNB_COUNT(STYLES)];
    size_t n_of[PNB_COUNT(STYLES)] = {0}, n_held = 0;
    pnb_status status = read_styles(c->opts->held_out, is_held, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < c->n; i++) {
        size_t k = style_at(c->items[i].style, strlen(c->items[i].style));
        assert(k < PNB_COUNT(STYLES));
        c->items[i].is_new_style = is_held[k];
        n_held += is_held[k];
        n_of[k]++;
    }
    for (size_t k = 0; k < PNB_COUNT(STYLES); k++)
        if (is_held[k] && (n_of[k] == 0 || n_held == c->n))
            return pnb__fail(err, PNB_NOT_FOUND, "no pictures of the style '%s' beside others here",
                             STYLES[k]);
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
        PNB_TRY(hold_out_styles(c, err));
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
