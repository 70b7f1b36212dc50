/* penumbra tokenizer train | show: learn a vocabulary from captions, look at what it does.
 *
 * Captions come from any source that embed accepts; the algorithm is src/tokenizer's. encode and
 * decode are in tokenize_options.c. */
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "encode/inputs/inputs.h"
#include "penumbra/tokenizer.h"
#include "prob/choices.h"
#include "program/result_end.h"

/* ---- train ---- */

struct train_args {
    pnb__text_list texts;
    const char *caption_key, *out;
    pnb_tokenizer_opts job;
};

#define AT(field) PNB__FIELD(struct train_args, field)
static const pnb__option train_options[] = {
    PNB__ROW_FILES("captions", AT(texts), "SOURCE...",
                   "Text files (one caption a line), .jsonl, .csv, folders, tar shards, or -",
                   .required = true),
    PNB__TEXT_KEY_ROW(AT(caption_key)),
    PNB__ROW_FILE("out", AT(out), "FILE", "tokenizer.json to write, or an existing folder",
                  .required = true, .writes = "*|/"),
    PNB__ROW_CHOICE("kind", AT(job.kind), "KIND", "bpe|word",
                    "Byte-level byte pair encoding, or whole words", .names = "word\0bpe\0",
                    .fallback = "bpe"),
    PNB__ROW_INT("vocab-size", AT(job.vocab_size), "N", "Entries, special tokens included",
                 PNB__RANGE(4, 1e7), .fallback = "1500"),
    PNB__ROW_INT("min-count", AT(job.min_count), "N", "Words or pairs seen less often are left out",
                 PNB__RANGE(1, 1e9), .fallback = "1"),
    PNB__ROW_CHOICE("clean", AT(job.clean), "MODE", PNB__CHOICES(PNB_CLEAN_LIST(PNB__CHOICE_WORD)),
                    "What happens to a caption first", .fallback = "canonicalize"),
};
#undef AT

static pnb_status learn(pnb__app *app, const struct train_args *a, const pnb__text_inputs *texts,
                        pnb_tokenizer **out)
{
    const char **list = calloc(texts->n + 1, sizeof *list);
    if (list == NULL)
        return pnb__fail_nomem(&app->err, texts->n * sizeof *list);
    for (size_t i = 0; i < texts->n; i++)
        list[i] = texts->items[i].text;
    pnb_status status = pnb_tokenizer_train(out, list, texts->n, &a->job, &app->err);
    free(list);
    return status;
}

static pnb_status run_train(pnb__app *app, void *args, pnb__result *r)
{
    const struct train_args *a = args;
    pnb__text_inputs texts = {0};
    pnb_tokenizer *tokenizer = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < a->texts.n; i++)
        PNB_TRY(
            pnb__text_inputs_add(&texts, a->texts.items[i], a->caption_key, app->in, &app->err));
    for (size_t i = 0; i < texts.n_bad; i++)
        pnb__skipped(app, "caption", texts.bad[i]);
    PNB_TRY(learn(app, a, &texts, &tokenizer));
    PNB_TRY(pnb_tokenizer_save(tokenizer, a->out, &app->err));
    pnb__result_text(r, "out", "written", a->out);
    pnb__result_int(r, "n_texts", "captions read", (int64_t)texts.n);
    pnb__result_int(r, "vocab_size", "vocabulary", pnb_tokenizer_vocab_size(tokenizer));
done:
    pnb_tokenizer_free(tokenizer);
    pnb__text_inputs_reset(&texts);
    return status;
}

/* ---- show ---- */

struct show_args {
    const char *tokenizer;
    int context_length;
    pnb__text_list texts;
};

#define AT(field) PNB__FIELD(struct show_args, field)
static const pnb__option show_options[] = {
    PNB__ROW_FILE("tokenizer", AT(tokenizer), "PATH", "tokenizer.json or a model directory",
                  .required = true),
    PNB__ROW_INT("context-length", AT(context_length), "N", "Tokens of a row", PNB__RANGE(2, 65536),
                 .fallback = "64"),
    PNB__ROW_REST("text", AT(texts), "TEXT...", "Captions to encode"),
};
#undef AT

static pnb_status show_one(pnb__app *app, const pnb_tokenizer *tokenizer, const char *text, int n,
                           pnb__result *r)
{
    pnb_token_count count = {0};
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    if (ids == NULL)
        return pnb__fail_nomem(&app->err, (size_t)n * sizeof *ids);
    pnb_status status =
        pnb_tokenizer_encode(tokenizer, text, strlen(text), n, ids, &count, &app->err);
    for (int t = 0; status == PNB_OK && t < count.n_tokens; t++) {
        const char *piece = pnb_tokenizer_piece(tokenizer, ids[t]);
        pnb__result_row(r, "%s %d %d %s", text, t, ids[t], piece != NULL ? piece : "");
    }
    if (count.truncated)
        pnb__warn(app, "'%s': %d tokens were cut to %d", text, count.n_total, n);
    free(ids);
    return status;
}

static pnb_status run_show(pnb__app *app, void *args, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"text", "text"}, {"position", "position"}, {"id", "id"}, {"piece", "piece"}};
    const struct show_args *a = args;
    pnb_tokenizer *tokenizer = NULL;
    pnb_status status;
    PNB_TRY(pnb_tokenizer_load(&tokenizer, a->tokenizer, &app->err));
    pnb__result_int(r, "vocab_size", "vocabulary", pnb_tokenizer_vocab_size(tokenizer));
    pnb__result_text(r, "clean", "cleaning", pnb_clean_name(pnb_tokenizer_clean(tokenizer)));
    pnb__result_int(r, "pad_id", "pad id", pnb_tokenizer_pad_id(tokenizer));
    pnb__result_int(r, "eos_id", "end id", pnb_tokenizer_eos_id(tokenizer));
    pnb__result_int(r, "mask_id", "mask id", pnb_tokenizer_mask_id(tokenizer));
    if (a->texts.n > 0)
        pnb__result_table(r, "tokens", "", columns, 4);
    for (size_t i = 0; i < a->texts.n; i++)
        PNB_TRY(show_one(app, tokenizer, a->texts.items[i], a->context_length, r));
done:
    pnb_tokenizer_free(tokenizer);
    return status;
}

static const pnb__command train = {
    .name = "train",
    .summary = "learn a tokenizer from captions",
    .about = "The same captions give the same file, whatever their order.",
    .examples = "penumbra tokenizer train --captions shapes/train/captions.jsonl --vocab-size 400 "
                "--out tokenizer.json",
    PNB__RUNS(train_options, struct train_args, run_train)};

static const pnb__command show = {
    .name = "show",
    .summary = "show how captions become token ids",
    .examples = "penumbra tokenizer show --tokenizer tokenizer.json 'a red star'",
    PNB__RUNS(show_options, struct show_args, run_show)};

static const pnb__command *const subs[] = {&train, &show, &pnb__cmd_tokenizer_encode,
                                           &pnb__cmd_tokenizer_decode, NULL};
const pnb__command pnb__cmd_tokenizer = {
    .name = "tokenizer",
    .summary = "train a tokenizer, look at one, encode and decode with it",
    .subs = subs};
