/* penumbra tokenizer encode | decode: captions to token ids and pieces, or ids back to text; and
 * `penumbra tokenize`, the older word for both.
 *
 * tokenize.c does the work, src/tokenizer knows the vocabularies. */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/tokenizer/tokenize.h"
#include "penumbra/tokenizer.h"
#include "prob/choices.h"

struct tokenize_args {
    pnb__tokenize_opts job;
    const char *caption_key;
    pnb__text_list text, texts;
};

#define AT(field) PNB__FIELD(struct tokenize_args, field)
#define TOKENIZER_ROWS                                                                             \
    PNB__ROW_FILE("model", AT(job.model), "DIR",                                                   \
                  "Model directory: its vocabulary, cleaning and context length", .letter = 'm'),  \
        PNB__ROW_FILE(                                                                             \
            "tokenizer", AT(job.tokenizer), "PATH",                                                \
            "tokenizer.json, spiece.model, bpe_simple_vocab_16e6.txt.gz, vocab.json beside "       \
            "merges.txt, a list of words (vocab.pkl, vocab.txt), or a folder with one of them")
#define ENCODE_ROWS                                                                                \
    TOKENIZER_ROWS,                                                                                \
        PNB__ROW_LIST("text", AT(text), "STR...",                                                  \
                      "Captions themselves; without --text and --texts, lines of standard input",  \
                      .instead_of_file = "--texts takes files"),                                   \
        PNB__ROW_FILES(                                                                            \
            "texts", AT(texts), "FILE...",                                                         \
            "Captions: text files (one a line, an empty one too), .jsonl, .csv, tar shards, "      \
            "folders, or -"),                                                                      \
        PNB__TEXT_KEY_ROW(AT(caption_key)),                                                        \
        PNB__ROW_INT(                                                                              \
            "context-length", AT(job.context_length), "N",                                         \
            "Tokens of a row, padded and cut; by default the model's, and without a model no row " \
            "is cut",                                                                              \
            PNB__RANGE(1, 1048576)),                                                               \
        PNB__ROW_CHOICE("clean", AT(job.clean), "MODE",                                            \
                        PNB__CHOICES(PNB_CLEAN_LIST(PNB__CHOICE_WORD)),                            \
                        "What happens to a caption first; by default what the model says")

static const pnb__option encode_options[] = {ENCODE_ROWS};
static const pnb__option decode_options[] = {
    TOKENIZER_ROWS,
    PNB__ROW_LIST("text", AT(text), "STR...",
                  "Rows of ids; without --text and --texts, lines of standard input",
                  .instead_of_file = "--texts takes files"),
    PNB__ROW_FILES("texts", AT(texts), "FILE...",
                   "Text files, a row of ids a line, or - for standard input")};
static const pnb__option tokenize_options[] = {
    ENCODE_ROWS,
    PNB__ROW_FLAG("decode", AT(job.decode),
                  "The captions are ids with spaces or commas between: print their text"),
};
#undef AT

static pnb_status collect(pnb__app *app, const struct tokenize_args *a, pnb__text_inputs *texts)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < a->text.n && status == PNB_OK; i++)
        status = pnb__text_inputs_add_text(texts, a->text.items[i], &app->err);
    for (size_t i = 0; i < a->texts.n && status == PNB_OK; i++)
        status = pnb__text_inputs_add(texts, a->texts.items[i], a->caption_key, app->in, &app->err);
    if (a->text.n == 0 && a->texts.n == 0)
        status = pnb__text_inputs_add(texts, "-", a->caption_key, app->in, &app->err);
    for (size_t i = 0; i < texts->n_bad && status == PNB_OK; i++)
        pnb__skipped(app, "caption", texts->bad[i]);
    return status;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const struct tokenize_args *a = args;
    pnb__text_inputs texts = {0};
    (void)r; /* rows are written as they come */
    if ((a->job.model == NULL) == (a->job.tokenizer == NULL))
        return pnb__usage(app, a->job.model == NULL ? "one of --model and --tokenizer is wanted"
                                                    : "only one of --model and --tokenizer");
    pnb_status status = collect(app, a, &texts);
    if (status == PNB_OK)
        status = pnb__tokenize(app, &a->job, &texts);
    pnb__text_inputs_reset(&texts);
    return status;
}

/* Ids are as long as they are, and nothing is cleaned. */
static pnb_status run_decode(pnb__app *app, void *args, pnb__result *r)
{
    struct tokenize_args *a = args;
    a->job.context_length = PNB__INT_UNSET;
    a->job.decode = true;
    a->caption_key = "title";
    return run(app, a, r);
}

const pnb__command pnb__cmd_tokenizer_encode = {
    .name = "encode",
    .summary = "show captions as token ids and pieces",
    .about = "Ids are those of the reference tokenizers, special tokens included. With a context "
             "length every row is padded to it and cut so that the end token stays.\n\n"
             "What pads is what the model's files say: T5's <pad> (0), say, in "
             "tokenizer_config.json. Where they are silent: SigLIP and ProLIP pad with </s> (1), "
             "open_clip's CLIP with 0, Hugging Face's CLIP with its end token (49407), as their "
             "released models do, because padding is attended to.\n\n"
             "Cleaning repairs damaged text as ftfy does where it need not guess, undoes HTML "
             "references, then: lower, whitespace or canonicalize. Vocabularies of "
             "bpe_simple_vocab_16e6.txt.gz come with lower, others with none.",
    .examples = "penumbra tokenizer encode --model model --text 'a red star' 'two dogs'\n"
                "penumbra tokenizer encode --tokenizer spiece.model --texts captions.txt "
                "--context-length 64 --json",
    PNB__RUNS(encode_options, struct tokenize_args, run)};

const pnb__command pnb__cmd_tokenizer_decode = {
    .name = "decode",
    .summary = "show rows of ids as text",
    .about = "A row is ids with spaces or commas between. Special tokens are left out of the text.",
    .examples = "penumbra tokenizer decode --tokenizer tokenizer.json --text '320 1125 539'",
    PNB__RUNS(decode_options, struct tokenize_args, run_decode)};

const pnb__command pnb__cmd_tokenize = {
    .name = "tokenize",
    .summary = "show captions as token ids and pieces, or ids as text",
    .about = "The older word for `penumbra tokenizer encode` and `penumbra tokenizer decode`.",
    PNB__RUNS(tokenize_options, struct tokenize_args, run)};
