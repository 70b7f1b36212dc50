/* penumbra adapt train | apply | methods: frozen embeddings in, distributions out.
 *
 * Options only; adapt.c does the work, src/adapt has the methods. */
#include "adapt/adapters.def"
#include "base/base.h"
#include "commands/adapt/adapt.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"

#define METHOD_WORD(name, word, ...) "|" word
#define UNCERTAIN_WORDS PNB__CHOICES(PNB_ADAPT_UNCERTAIN_LIST(PNB__CHOICE_OF))

/* ---- train ---- */

#define AT(field) PNB__FIELD(pnb__adapt_train_opts, field)
static const pnb__option train_options[] = {
    PNB__ROW_CHOICE("method", AT(method), "NAME", PNB__CHOICES(PNB__ADAPTERS(METHOD_WORD)),
                    "What is learned: `penumbra adapt methods` tells", .required = true),
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of the pictures"),
    PNB__ROW_FILE("texts", AT(texts), "SET",
                  "Embedding set of the captions; a side that is not given is left alone"),
    PNB__ROW_FILE("truth", AT(truth), "FILE",
                  "What belongs together, in any format of docs/formats.md: only rows of its pairs "
                  "are learned from; without it all rows"),
    PNB__ROW_CHOICE("truth-format", AT(read.format), "NAME",
                    PNB__CHOICES(PNB_TRUTH_FORMAT_LIST(PNB__CHOICE_OF)), "Format of the truth",
                    .fallback = "auto"),
    PNB__ROW_TEXT("split", AT(read.split), "NAME",
                  "Split of a karpathy file (train, val, test, restval, all) or of class folders"),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder of the adapter", .letter = 'o', .required = true,
                  .writes = "/"),
    PNB__ROW_CHOICE("uncertain", AT(options.uncertain), "WHICH", UNCERTAIN_WORDS,
                    "conformity, whitened: rows unlike the others are the uncertain ones, or, as "
                    "the papers on CLIP's geometry have it, those like all the others",
                    .fallback = "rare", .group = "Options of methods"),
    PNB__ROW_REAL("shrinkage", AT(options.shrinkage), "SHARE",
                  "whitened: share of the mean variance in the covariance; that of Ledoit and Wolf "
                  "by default",
                  PNB__RANGE(0, 1)),
};
#undef AT

static void train_defaults(void *args)
{
    *(pnb__adapt_train_opts *)args = (pnb__adapt_train_opts){.read = pnb_truth_read_opts_default(),
                                                             .options = pnb_adapter_opts_default()};
}

static pnb_status run_train(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_train_opts *o = args;
    if (o->images == NULL && o->texts == NULL)
        return pnb__usage(app, "--images or --texts is needed, or both");
    if (o->truth == NULL && o->read.split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    if (o->truth != NULL && (o->images == NULL || o->texts == NULL))
        return pnb__usage(app,
                          "--truth speaks of pictures and captions: give --images and --texts");
    return pnb__adapt_train(app, o, r);
}

static const pnb__command cmd_train = {
    .name = "train",
    .summary = "learn an adapter from embedding sets",
    .about =
        "The model stays as it is: an adapter is learned from what it embedded, and turns its sets "
        "into distributions. What it makes names it, and is compared only with what went through "
        "it too, or was left alone by it.",
    .examples = "penumbra adapt train --method whitened --images images.safetensors --texts "
                "texts.safetensors --out whitened\n"
                "penumbra adapt train --method conformity --images images.safetensors --texts "
                "texts.safetensors --truth dataset_coco.json --split train --out conformity",
    .defaults = train_defaults,
    PNB__RUNS(train_options, pnb__adapt_train_opts, run_train)};

/* ---- apply ---- */

#define AT(field) PNB__FIELD(pnb__adapt_apply_opts, field)
static const pnb__option apply_options[] = {
    PNB__ROW_FILE("adapter", AT(adapter), "DIR", "Folder that adapt train wrote", .required = true),
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of pictures"),
    PNB__ROW_FILE("texts", AT(texts), "SET", "Embedding set of captions, in place of pictures"),
    PNB__ROW_FILE("out", AT(out), "FILE", "The set that comes out", .letter = 'o', .required = true,
                  .writes = ".safetensors|.npy"),
};
#undef AT

static pnb_status run_apply(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_apply_opts *o = args;
    if ((o->images == NULL) == (o->texts == NULL))
        return pnb__usage(app, "one of --images and --texts is needed");
    return pnb__adapt_apply(app, o, r);
}

static const pnb__command cmd_apply = {
    .name = "apply",
    .summary = "put an embedding set through an adapter",
    .about = "Rows, names and everything else of the set stay; the adapter stands at the end of "
             "its chain, as info prints it. Embeddings of other weights than those the adapter was "
             "learned from are refused.",
    .examples = "penumbra adapt apply --adapter whitened --images images.safetensors --out "
                "images.whitened.safetensors",
    PNB__RUNS(apply_options, pnb__adapt_apply_opts, run_apply)};

/* ---- methods ---- */

static pnb_status run_methods(pnb__app *app, void *args, pnb__result *r)
{
    (void)app, (void)args;
    pnb__adapt_put_methods(r);
    return PNB_OK;
}

static const pnb__command cmd_methods = {
    .name = "methods",
    .summary = "list what adapters learn, by which paper, and what it costs",
    .examples = "penumbra adapt methods",
    .run = run_methods};

static const pnb__command *const subs[] = {&cmd_train, &cmd_apply, &cmd_methods, NULL};
const pnb__command pnb__cmd_adapt = {.name = "adapt",
                                     .summary = "turn embeddings of a frozen model into "
                                                "distributions",
                                     .subs = subs};
