/* penumbra embed: pictures or captions to an embedding set.
 *
 * Finds out which kind of input was given and hands it to src/encode/job/embed_job.c, which
 * batches, journals and writes. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/encode_use.h"
#include "commands/common/option_rows.h"
#include "commands/embed/embed_stream.h"
#include "commands/embed/split_roots.h"
#include "commands/train/train_words.h"
#include "encode/job/clip_retrieval.h"
#include "encode/job/embed_tensor.h"
#include "program/outputs.h"
#include "program/result_end.h"
#include "program/source_commit.h"
#include "program/together.h"

struct embed_args {
    const char *model, *format, *export_format, *separator, *split, *pixels, *tokens;
    pnb__text_list images, texts, text;
    pnb_dataset_opts dataset;
    pnb_encoder_opts parts;
    pnb_encode_opts how;
    pnb_encode_file file;
    int64_t rank_timeout;
};

#define AT(field) PNB__FIELD(struct embed_args, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(model)),
    PNB__ROW_FILE(
        "out", AT(file.out), "FILE",
        "Embedding set to write, .safetensors, .npy or .jsonl; NAME.ids.jsonl beside NAME.npy or "
        "NAME.safetensors names its rows. - or /dev/stdout: the set alone to standard output, "
        "where only --format jsonl carries the names",
        .letter = 'o', .required = true, .writes = "*|/"),
    PNB__ROW_CHOICE("format", AT(format), "FORMAT", "safetensors|npy|jsonl",
                    "Format of FILE; by default its ending tells"),
    PNB__ROW_CHOICE(
        "export-format", AT(export_format), "TOOL", "clip-retrieval",
        "Write the folder --out as this tool reads it: img_emb/ or text_emb/, and metadata/"),
    PNB__ROW_FILES(
        "images", AT(images), "PATH...",
        "Picture files, globs, folders, tar shards, csv or jsonl sets, Karpathy's json, or - for a "
        "list of paths on standard input; \"#split=...,images=DIR\" behind the json and "
        "\"#captions=DIR,classes=FILE,omit=FILE\" behind a folder as for train",
        .group = "Inputs (one kind)"),
    PNB__ROW_FILES("texts", AT(texts), "FILE...",
                   "Captions: text files (one a line, an empty one too), .jsonl, .csv, tar shards, "
                   "folders, Karpathy's json, or -; settings behind a # as for pictures"),
    PNB__ROW_LIST("text", AT(text), "STR...", "Captions themselves",
                  .instead_of_file = "--texts takes files"),
    PNB__ROW_FILE("pixels", AT(pixels), "FILE",
                  "Ready pictures: a safetensors file with \"pixels\" (B,3,H,W), normalised"),
    PNB__ROW_FILE("tokens", AT(tokens), "FILE",
                  "Ready captions: a safetensors file with \"tokens\" (B,T)"),
    PNB__TEXT_KEY_ROW(AT(dataset.csv_caption_key)),
    PNB__ROW_TEXT("csv-img-key", AT(dataset.csv_img_key), "COLUMN",
                  "Column of picture paths in a csv or tsv file", .fallback = "filepath"),
    PNB__ROW_TEXT("csv-separator", AT(separator), "CHAR",
                  "Separator of a table; told by the header by default"),
    PNB__ROW_TEXT(
        "split", AT(split), "NAME",
        "Split of a data set in CLIP_benchmark's layout, ROOT/NAME/0.tar ... with nshards.txt",
        .fallback = "test"),
    PNB__ROW_INT("batch-size", AT(how.batch_size), "N", "Inputs encoded together",
                 PNB__RANGE(1, 65536), .fallback = "8", .group = "How", .letter = 'b'),
    PNB__MODEL_PARTS_ROWS(AT(parts.tokenizer), AT(parts.preprocess)),
    PNB__PRECISION_ROW(AT(parts.precision)),
    PNB__ROW_INT(
        "save-every", AT(file.save_every), "N",
        "Rows between two parts of the journal that a killed run continues from; a part is "
        "also saved every 20 seconds",
        PNB__RANGE(1, 1e9), .fallback = "4096"),
    PNB__RANK_TIMEOUT_ROW(AT(rank_timeout)),
    PNB__ROW_FLAG(
        "exif", AT(how.exif),
        "Turn pictures as their EXIF orientation says; the pipelines that models were trained "
        "with ignore it"),
    PNB__ROW_FLAG("raw", AT(how.raw),
                  "Keep the lengths of means as the projection gives them: what AsymVLM's adapter "
                  "reads of captions"),
    PNB__ROW_FLAG(
        "activations", AT(how.activations),
        "Embed to what stands before the last projection, in place of the embedding: what "
        "`adapt train --method bayesvlm --model` learns from"),
    PNB__ROW_INT("samples", AT(how.match_samples), "J",
                 "Samples of a row by which match_prob and avg_l2 compare this set, unless told "
                 "otherwise there; 7 for a PCME",
                 PNB__RANGE(1, 10000)),
    PNB__ROW_INT("ttda", AT(how.ttda), "N",
                 "Embed N augmented copies of each input (cropped and flipped pictures, captions "
                 "without some words) and write their mean and variance",
                 PNB__RANGE(2, 1000)),
    PNB__ROW_FLAG("masked", AT(how.masked),
                  "Embed what is left of each input after masking, to compare with the whole",
                  .group = "Masked copies"),
    PNB__ROW_REAL("mask-keep", AT(how.mask_keep), "SHARE",
                  "Share of its patches a masked picture keeps", PNB__RANGE(1e-6, 1),
                  .fallback = "0.25"),
    PNB__ROW_REAL("mask-drop", AT(how.mask_drop), "P",
                  "Probability that a token of a masked caption is deleted", PNB__RANGE(0, 1),
                  .fallback = "0.75"),
};
#undef AT

/* Formats in the order of the enum. */
static const char *const formats[] = {"safetensors", "npy", "jsonl"};

/* The one asked for, else what the name ends in, else -1. */
static int format_of(const struct embed_args *a)
{
    const char *dot = strrchr(a->file.out, '.');
    if (a->export_format != NULL)
        return PNB_ENCODE_CLIP_RETRIEVAL;
    const char *name = a->format != NULL ? a->format : dot != NULL ? dot + 1 : "";
    if (a->format == NULL && pnb__is_stdout(a->file.out))
        return PNB_ENCODE_SAFETENSORS;
    for (int i = 0; i < 3; i++)
        if (strcmp(name, formats[i]) == 0)
            return i;
    return -1;
}

/* A format whose names file lies beside it needs its own ending. */
static pnb_status check_out(pnb__app *app, const struct embed_args *a, int format)
{
    char ending[16];
    if (format == PNB_ENCODE_CLIP_RETRIEVAL)
        return pnb__path_is_file(a->file.out) || pnb__is_stdout(a->file.out)
                   ? pnb__fail(&app->err, PNB_ARG, "--out %s: --export-format %s wants a folder",
                               a->file.out, a->export_format)
                   : PNB_OK;
    if (pnb__path_is_dir(a->file.out))
        return pnb__fail(&app->err, PNB_ARG, "--out %s: is a folder; a file is wanted",
                         a->file.out);
    if (format < 0)
        return pnb__fail(&app->err, PNB_ARG,
                         "--out %s: the name must end in .safetensors, .npy or .jsonl",
                         a->file.out);
    snprintf(ending, sizeof ending, ".%s", formats[format]);
    if (pnb__is_stdout(a->file.out) || format == PNB_ENCODE_JSONL ||
        pnb__ends_with(a->file.out, ending))
        return PNB_OK;
    return pnb__fail(&app->err, PNB_ARG, "--out %s: the name must end in %s, as --format %s says",
                     a->file.out, ending, formats[format]);
}

/* Captions read from what will be the file of the rows' names would be lost. */
static pnb_status check_names_file(pnb__app *app, const struct embed_args *a, int format)
{
    pnb_status status = PNB_OK;
    if (format >= PNB_ENCODE_JSONL || pnb__is_stdout(a->file.out))
        return PNB_OK;
    size_t stem = strlen(a->file.out) - strlen(formats[format]) - 1;
    char *names = pnb__format("%.*s.ids.jsonl", (int)stem, a->file.out);
    if (names == NULL)
        return pnb__fail_nomem(&app->err, stem);
    const pnb__text_list *const lists[] = {&a->texts, &a->images};
    for (size_t k = 0; k < PNB_COUNT(lists); k++)
        for (size_t i = 0; i < lists[k]->n && status == PNB_OK; i++)
            if (pnb__path_is_file(names) && pnb__is_same_file(names, lists[k]->items[i]))
                status = pnb__fail(&app->err, PNB_ARG,
                                   "--out %s: %s, which names its rows, is an input; name another",
                                   a->file.out, names);
    pnb__free(names);
    return status;
}

/* A list on standard input is rank 0's alone until it tells the others. */
static pnb_status share_input(pnb__app *app, const struct embed_args *a)
{
    const pnb__text_list *const lists[] = {&a->images, &a->texts};
    for (size_t k = 0; k < PNB_COUNT(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            if (strcmp(lists[k]->items[i], "-") == 0)
                return pnb__together_share_input(app);
    return PNB_OK;
}

/* Opens the pictures or reads the captions. */
static pnb_status open_inputs(pnb__app *app, const struct embed_args *a, pnb__image_inputs **images,
                              pnb__text_inputs *texts)
{
    pnb_dataset_opts opts = a->dataset;
    pnb__text_list words = {0};
    pnb_status status;
    if (a->separator != NULL && !pnb__separator(a->separator, &opts.csv_separator))
        return pnb__usage(app, "--csv-separator %s: one character is wanted", a->separator);
    texts->csv_separator = opts.csv_separator;
    PNB_TRY(share_input(app, a));
    PNB_TRY(pnb__roots_resolve(app, &words, a->images.n > 0 ? &a->images : &a->texts, a->split));
    if (a->images.n > 0) {
        PNB_TRY(
            pnb__image_inputs_open_with(images, words.items, words.n, app->in, &opts, &app->err));
        pnb__image_inputs_report(*images, pnb__encode_skipped, app);
    } else {
        status = pnb__text_inputs_read(app, texts, &words, &a->text, opts.csv_caption_key);
    }
done:
    pnb__roots_free(&words);
    return status;
}

/* Rows that clip-retrieval would take for others' are refused before they are made. */
static pnb_status check_export(pnb__app *app, const struct embed_args *a,
                               const pnb__image_inputs *images, const pnb__text_inputs *texts)
{
    if (a->export_format == NULL)
        return PNB_OK;
    size_t n = images != NULL ? pnb__image_inputs_count(images) : texts->n;
    return pnb__clip_retrieval_check(a->file.out, images == NULL, n, &app->err);
}

/* Everything but the standard output is a job with a journal, unless the input is a ready tensor.
 */
static pnb_status embed_source(pnb__app *app, const struct embed_args *a, pnb_encoder *encoder,
                               const pnb__embed_source *source, pnb_encode_result *result)
{
    pnb_encode_opts opts = a->how;
    pnb_encode_file file = a->file;
    pnb__encode_watch watch;
    pnb_embeddings *set = NULL;
    file.format = (pnb_encode_format)format_of(a);
    file.maker = pnb__source_commit();
    pnb__encode_opts_init(&opts, app);
    opts.ranks = app->ranks;
    if (source->row == NULL)
        pnb__encode_watch_init(&watch, app, source->is_text ? "captions" : "pictures", &opts);
    if (source->row == NULL && !pnb__is_stdout(a->file.out)) {
        pnb_status written = pnb__embed_file(encoder, source, &opts, &file, result, &app->err);
        app->is_agreed = written == PNB_INTERRUPTED; /* at a meeting of all */
        return written;
    }
    pnb_status status = pnb__embed_set(encoder, source, &opts, &set, result, &app->err);
    app->is_agreed = status == PNB_INTERRUPTED;
    if (status == PNB_OK && pnb__together_writes(app))
        status = pnb__is_stdout(a->file.out)
                     ? pnb__embed_stream(set, file.format, app->out, &app->err)
                     : pnb__embed_save(set, file.format, file.out, &app->err);
    pnb_embeddings_free(set);
    return status;
}

static pnb_status embed(pnb__app *app, const struct embed_args *a, pnb_encode_result *result)
{
    int use = a->images.n > 0              ? PNB_ENCODE_IMAGES
              : a->texts.n + a->text.n > 0 ? PNB_ENCODE_TEXTS
                                           : 0;
    pnb_encoder_opts parts = a->parts;
    pnb_encoder encoder = {0};
    pnb__image_inputs *images = NULL;
    pnb__text_inputs texts = {0};
    pnb__embed_tensor tensor = {0};
    pnb_status status;
    parts.sides = use;
    if (use != 0) {
        PNB_TRY(open_inputs(app, a, &images, &texts));
        PNB_TRY(check_export(app, a, images, &texts));
    }
    PNB_TRY(pnb__encoder_open_named(&encoder, app, a->model, &parts));
    if (use == 0)
        PNB_TRY(pnb__embed_tensor_load(&tensor, &encoder, a->tokens != NULL ? a->tokens : a->pixels,
                                       a->tokens != NULL, &app->err));
    const pnb__embed_source source = use == PNB_ENCODE_IMAGES  ? pnb__image_inputs_source(images)
                                     : use == PNB_ENCODE_TEXTS ? pnb__text_inputs_source(&texts)
                                                               : tensor.source;
    status = embed_source(app, a, &encoder, &source, result);
done:
    pnb__embed_tensor_reset(&tensor);
    pnb__text_inputs_reset(&texts);
    pnb__image_inputs_free(images);
    pnb__encoder_reset(&encoder);
    return status;
}

static void defaults(void *args)
{
    *(struct embed_args *)args = (struct embed_args){.dataset = pnb_dataset_opts_default(),
                                                     .how = pnb_encode_opts_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const struct embed_args *a = args;
    int kinds = (a->images.n > 0) + (a->texts.n + a->text.n > 0) + (a->pixels != NULL) +
                (a->tokens != NULL);
    if (kinds != 1)
        return pnb__usage(app, "%s of --images, --texts or --text, --pixels, --tokens is wanted",
                          kinds == 0 ? "one" : "only one");
    if (a->how.exif && a->images.n == 0)
        return pnb__usage(app, "--exif needs --images");
    if (a->export_format != NULL && a->format != NULL)
        return pnb__usage(app, "--format or --export-format, not both");
    if (a->how.masked && (a->pixels != NULL || a->tokens != NULL))
        return pnb__usage(app, "--masked needs --images or --texts");
    if (a->how.ttda > 0 && (a->pixels != NULL || a->tokens != NULL))
        return pnb__usage(app, "--ttda needs --images or --texts");
    if (a->how.raw && (a->how.ttda > 0 || a->how.activations))
        return pnb__usage(app, "--raw is about embeddings of one pass: neither --ttda nor "
                               "--activations");
    if (a->how.ttda > 0 && (a->how.masked || a->how.activations))
        return pnb__usage(app,
                          "--ttda makes copies of its own: neither --masked nor --activations");
    pnb_encode_result result = {0};
    int format = format_of(a);
    pnb_peers_set_timeout(app->ranks, (double)a->rank_timeout);
    pnb_status status = check_out(app, a, format);
    if (status == PNB_OK)
        status = check_names_file(app, a, format);
    if (status == PNB_OK)
        status = embed(app, a, &result);
    if (status != PNB_OK)
        return status;
    if (pnb__is_stdout(a->file.out) && pnb__together_writes(app))
        app->out = app->log; /* the set alone is there */
    if (result.n_truncated > 0)
        pnb__warn(app, "%zu caption%s longer than the model's context and cut", result.n_truncated,
                  result.n_truncated == 1 ? " was" : "s were");
    if (result.n_unknown > 0)
        pnb__warn(
            app,
            "%zu caption%s no word that the vocabulary knows; such captions are told apart by "
            "their length at most",
            result.n_unknown, result.n_unknown == 1 ? " has" : "s have");
    pnb__result_text(r, "out", "written", a->file.out);
    pnb__result_int(r, "n_rows", "rows", (int64_t)result.n_rows);
    pnb__result_int(r, "n_skipped", "skipped", (int64_t)app->n_skipped);
    pnb__result_int(r, "n_truncated", "captions cut", (int64_t)result.n_truncated);
    pnb__result_int(r, "n_unknown", NULL, (int64_t)result.n_unknown);
    pnb__result_int(r, "n_continued", NULL, (int64_t)result.n_continued);
    pnb__result_real(r, "seconds", "seconds", result.seconds, 2);
    pnb__result_real(r, "waited_seconds", NULL, result.waited_s, 3);
    return PNB_OK;
}

const pnb__command pnb__cmd_embed = {
    .name = "embed",
    .summary = "turn pictures or captions into an embedding set",
    .about =
        "Each row becomes a distribution: a unit mean and log-variances. Pictures that "
        "cannot be read are named on standard error and left out, and the exit status is 3 "
        "then. A run that was killed continues when the same command is given again: parts whose "
        "pictures were replaced meanwhile are made again, and another model, option, device "
        "or program begins anew.\n\n"
        "Under mpirun, srun or torchrun each process embeds its share and rank 0 writes, in a "
        "folder that all see: the bytes of one process, whatever their number, and a run that was "
        "killed may go on with another number of them.",
    .examples = "penumbra embed --model model --images photos/ --out images.safetensors\n"
                "penumbra embed --model model --texts captions.txt --out texts.safetensors\n"
                "find . -name '*.jpg' | penumbra embed -m model --images - -o images.npy\n"
                "penumbra embed --model model --text 'a red star' --out query.safetensors",
    .joins = true,
    .defaults = defaults,
    PNB__RUNS(options, struct embed_args, run)};
