/* Captions to ids and back on the command line, and how fast.
 *
 * A model directory is asked for three things besides its vocabulary: the cleaning
 * (tokenizer_kwargs.clean of text_cfg), and the context length (context_length of text_cfg,
 * max_position_embeddings of Hugging Face's text_config). Weights are not opened. */
#include "commands/tokenizer/tokenize.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "commands/bench/bench.h"
#include "io/json/json.h"
#include "models/model_defaults.h"

typedef struct setting {
    pnb_tokenizer *tokenizer;
    int context_length; /* 0: as long as the caption is */
} setting;

/* ---- opening ---- */

static pnb_status load_config(json_t **root, const char *dir, pnb_error *err)
{
    static const char *const names[] = {"config.json", "open_clip_config.json"};
    pnb_status status = PNB_OK;
    *root = NULL;
    for (size_t i = 0; i < PNB_COUNT(names) && *root == NULL && status == PNB_OK; i++) {
        char *path = pnb__path_join(dir, names[i]);
        if (path == NULL)
            return pnb__fail_nomem(err, strlen(dir));
        if (pnb__path_is_file(path))
            status = pnb__json_load_file(root, path, 0, err);
        pnb__free(path);
    }
    return status;
}

static pnb_status set_clean(pnb_tokenizer *tokenizer, const char *name, pnb_error *err)
{
    pnb_clean clean;
    if (name == NULL)
        return PNB_OK;
    if (!pnb_clean_from_name(name, &clean))
        return pnb__fail(err, PNB_FORMAT,
                         "cleaning \"%.40s\": want none, lower, whitespace or "
                         "canonicalize",
                         name);
    pnb_tokenizer_set_clean(tokenizer, clean);
    return PNB_OK;
}

static pnb_status apply_config(setting *s, const char *dir, pnb_error *err)
{
    json_t *root;
    pnb_status status = load_config(&root, dir, err);
    if (status != PNB_OK)
        return status;
    bool clean_assumed;
    status = pnb__tokenizer_configure(s->tokenizer, root, dir, &clean_assumed, err);
    const json_t *open_clip = json_object_get(root, "model_cfg");
    const json_t *text = json_object_get(open_clip != NULL ? open_clip : root, "text_cfg");
    const json_t *length = json_object_get(text, "context_length");
    if (length == NULL)
        length = json_object_get(json_object_get(root, "text_config"), "max_position_embeddings");
    if (json_is_integer(length) && json_integer_value(length) > 1 &&
        json_integer_value(length) < 1 << 20)
        s->context_length = (int)json_integer_value(length);
    json_decref(root);
    return status;
}

static pnb_status open_setting(setting *s, pnb__app *app, const pnb__tokenize_opts *o)
{
    const char *path = o->model != NULL ? o->model : o->tokenizer;
    pnb_status status = pnb_tokenizer_load(&s->tokenizer, path, &app->err);
    if (status == PNB_OK && pnb__path_is_dir(path))
        status = apply_config(s, path, &app->err);
    if (status == PNB_OK)
        status = set_clean(s->tokenizer, o->clean, &app->err);
    if (o->context_length != PNB__INT_UNSET)
        s->context_length = (int)o->context_length;
    if (status != PNB_OK) {
        pnb_tokenizer_free(s->tokenizer);
        s->tokenizer = NULL;
    }
    return status;
}

/* ---- writing ---- */

typedef struct totals {
    int64_t n_texts, n_tokens, n_truncated;
} totals;

typedef struct row {
    int32_t *ids;
    size_t n;
    pnb_token_count count;
} row;

static pnb_status encode(const setting *s, const char *text, row *r, pnb_error *err)
{
    *r = (row){0};
    if (s->context_length == 0) {
        pnb_status status =
            pnb_tokenizer_encode_all(s->tokenizer, text, strlen(text), true, &r->ids, &r->n, err);
        r->count = (pnb_token_count){.n_tokens = (int)r->n, .n_total = (int)r->n};
        return status;
    }
    r->n = (size_t)s->context_length;
    if (PNB_ALLOC(r->ids, r->n, err) != PNB_OK)
        return PNB_NOMEM;
    return pnb_tokenizer_encode(s->tokenizer, text, strlen(text), s->context_length, r->ids,
                                &r->count, err);
}

static const char *piece_of(const setting *s, int32_t id)
{
    const char *piece = pnb_tokenizer_piece(s->tokenizer, id);
    return piece != NULL ? piece : "";
}

static void put_json(pnb__buf *b, const setting *s, const char *text, const row *r)
{
    pnb__json_put(b,
                  "{\"text\": %s, \"n_tokens\": %d, \"n_total\": %d, \"truncated\": %i, \"ids\": [",
                  text, r->count.n_tokens, r->count.n_total, r->count.truncated);
    for (size_t i = 0; i < r->n; i++)
        pnb__buf_printf(b, "%s%d", i > 0 ? ", " : "", (int)r->ids[i]);
    pnb__buf_puts(b, "], \"pieces\": [");
    for (size_t i = 0; i < r->n; i++) {
        pnb__buf_puts(b, i > 0 ? ", " : "");
        pnb__json_append_string(b, piece_of(s, r->ids[i]));
    }
    pnb__buf_puts(b, "]}");
}

/* Padding is left out of the text form. */
static void put_text(pnb__buf *b, const setting *s, const char *text, const row *r)
{
    pnb__buf_printf(b, "%s\n", text);
    for (int i = 0; i < r->count.n_tokens; i++)
        pnb__buf_printf(b, "%8d  %s\n", (int)r->ids[i], piece_of(s, r->ids[i]));
    if (r->count.truncated)
        pnb__buf_printf(b, "          cut from %d tokens\n", r->count.n_total);
}

static pnb_status write_ids(pnb__app *app, const setting *s, const char *text, totals *t,
                            pnb__buf *b)
{
    row r;
    pnb_status status = encode(s, text, &r, &app->err);
    if (status == PNB_OK) {
        if (app->common.json)
            put_json(b, s, text, &r);
        else
            put_text(b, s, text, &r);
        t->n_tokens += r.count.n_tokens;
        t->n_truncated += r.count.truncated;
    }
    if (s->context_length == 0)
        pnb_tokenizer_ids_free(r.ids);
    else
        pnb__free(r.ids);
    return status;
}

/* "320 1125, 7" to ids. */
static pnb_status read_ids(const char *text, row *r, pnb_error *err)
{
    r->n = 0;
    if (PNB_ALLOC(r->ids, strlen(text) / 2 + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (const char *at = text + strspn(text, " ,\t\r"); *at != '\0';) {
        char *end;
        long long id = strtoll(at, &end, 10);
        if (end == at || strchr(" ,\t\r", *end) == NULL || id < 0 || id > INT32_MAX)
            return pnb__fail(err, PNB_ARG, "'%.40s': want ids with spaces or commas between", at);
        r->ids[r->n++] = (int32_t)id;
        at = end + strspn(end, " ,\t\r");
    }
    return PNB_OK;
}

static pnb_status write_text(pnb__app *app, const setting *s, const char *text, totals *t,
                             pnb__buf *b)
{
    row r = {0};
    char *back = NULL;
    pnb_status status;
    PNB_TRY(read_ids(text, &r, &app->err));
    PNB_TRY(pnb_tokenizer_decode(s->tokenizer, r.ids, r.n, &back, &app->err));
    if (app->common.json)
        pnb__json_put(b, "{\"text\": %s, \"n_tokens\": %zu}", back, r.n);
    else
        pnb__buf_printf(b, "%s\n", back);
    t->n_tokens += (int64_t)r.n;
done:
    pnb_text_free(back);
    pnb__free(r.ids);
    return status;
}

static pnb_status flush(pnb__app *app, pnb__buf *b)
{
    pnb_status status = PNB_OK;
    if (b->failed)
        status = pnb__fail_nomem(&app->err, b->size);
    else if (b->size > 0 && fwrite(b->data, 1, b->size, app->out) != b->size)
        status = pnb__fail_errno(&app->err, "write", "standard output");
    b->size = 0;
    return status;
}

static pnb_status write_all(pnb__app *app, const setting *s, bool decode,
                            const pnb__text_inputs *texts, totals *t)
{
    pnb_status status = PNB_OK;
    pnb__buf b = {0};
    bool json = app->common.json;
    pnb_padding pad = pnb_tokenizer_padding(s->tokenizer);
    pnb__buf_puts(&b, json ? "{\"captions\": [" : "");
    for (size_t i = 0; i < texts->n && status == PNB_OK; i++, t->n_texts++) {
        if (pnb__is_interrupted(app))
            status = pnb__fail(&app->err, PNB_INTERRUPTED, "after %zu captions", i);
        pnb__buf_puts(&b, !json ? "" : i > 0 ? ",\n" : "\n");
        if (status == PNB_OK)
            status = decode ? write_text(app, s, texts->items[i].text, t, &b)
                            : write_ids(app, s, texts->items[i].text, t, &b);
        if (status == PNB_OK && b.size > 1 << 16)
            status = flush(app, &b);
    }
    if (status == PNB_OK && json)
        pnb__json_put(&b,
                      "],\n\"clean\": %s, \"pad_id\": %d, \"vocab_size\": %d, \"pad_source\": %s, "
                      "\"pad_assumed\": %i, \"n_texts\": %lld, \"n_tokens\": %lld, "
                      "\"n_truncated\": %lld}\n",
                      pnb_clean_name(pnb_tokenizer_clean(s->tokenizer)),
                      pnb_tokenizer_pad_id(s->tokenizer), pnb_tokenizer_vocab_size(s->tokenizer),
                      pad.source, pad.assumed, (long long)t->n_texts, (long long)t->n_tokens,
                      (long long)t->n_truncated);
    if (status == PNB_OK)
        status = flush(app, &b);
    pnb__buf_reset(&b);
    return status;
}

pnb_status pnb__tokenize(pnb__app *app, const pnb__tokenize_opts *opts,
                         const pnb__text_inputs *texts)
{
    setting s = {0};
    totals t = {0};
    pnb_status status = open_setting(&s, app, opts);
    if (status == PNB_OK)
        status = write_all(app, &s, opts->decode, texts, &t);
    if (status == PNB_OK && !opts->decode)
        pnb__say(app, "%lld captions, %lld tokens, %lld captions were cut", (long long)t.n_texts,
                 (long long)t.n_tokens, (long long)t.n_truncated);
    pnb_tokenizer_free(s.tokenizer);
    return status;
}

/* ---- how fast ---- */

static pnb_status encode_all(const setting *s, const pnb__text_inputs *texts, int64_t *n_tokens,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    *n_tokens = 0;
    for (size_t i = 0; i < texts->n && status == PNB_OK; i++) {
        int32_t *ids;
        size_t n;
        const char *text = texts->items[i].text;
        status = pnb_tokenizer_encode_all(s->tokenizer, text, strlen(text), false, &ids, &n, err);
        *n_tokens += (int64_t)n;
        pnb_tokenizer_ids_free(ids);
    }
    return status;
}

static pnb_status time_all(pnb__app *app, const setting *s, const pnb__bench_tokenize_opts *o,
                           const pnb__text_inputs *texts, pnb__result *r)
{
    enum { MAX_REPEATS = 10000 };
    double bytes = 0, *seconds = pnb__alloc_array(MAX_REPEATS, sizeof *seconds);
    size_t n = 0;
    int64_t n_tokens = 0;
    if (seconds == NULL)
        return pnb__fail_nomem(&app->err, MAX_REPEATS * sizeof *seconds);
    for (size_t i = 0; i < texts->n; i++)
        bytes += (double)strlen(texts->items[i].text);
    pnb_status status = encode_all(s, texts, &n_tokens, &app->err);
    double start = pnb__now_s();
    while (status == PNB_OK && n < MAX_REPEATS &&
           (n < o->min_repeats || pnb__now_s() - start < o->seconds)) {
        double before = pnb__now_s();
        status = encode_all(s, texts, &n_tokens, &app->err);
        seconds[n++] = pnb__now_s() - before;
    }
    if (status == PNB_OK && n > 0) {
        pnb__bench_times times = pnb__bench_summarise(seconds, n);
        pnb__result_int(r, "n_texts", "captions", (int64_t)texts->n);
        pnb__result_int(r, "n_tokens", "tokens", n_tokens);
        pnb__result_text(r, "clean", "cleaning", pnb_clean_name(pnb_tokenizer_clean(s->tokenizer)));
        pnb__result_real(r, "bytes", "bytes of text", bytes, 0);
        pnb__result_int(r, "n_repeats", "repeats", (int64_t)times.n);
        pnb__result_real(r, "median_s", "median, seconds", times.median_s, 4);
        pnb__result_real(r, "min_s", "fastest, seconds", times.min_s, 4);
        pnb__result_real(r, "max_s", "slowest, seconds", times.max_s, 4);
        pnb__result_real(r, "mb_per_s", "MB/s on one thread", bytes / times.median_s / 1e6, 2);
    }
    pnb__free(seconds);
    return status;
}

pnb_status pnb__bench_tokenize(pnb__app *app, const pnb__bench_tokenize_opts *opts,
                               const pnb__text_inputs *texts, pnb__result *r)
{
    setting s = {0};
    pnb_status status = open_setting(&s, app, &opts->tokenize);
    if (status == PNB_OK)
        status = time_all(app, &s, opts, texts, r);
    pnb_tokenizer_free(s.tokenizer);
    return status;
}
