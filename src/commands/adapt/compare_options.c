/* penumbra adapt compare: options.
 *
 * compare.c does the work. The sets of train, val and test come as three groups of the same. */
#include "commands/adapt/compare.h"

#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"

#define RECIPE_WORDS PNB__CHOICES(PNB_ADAPT_RECIPE_LIST(PNB__CHOICE_OF))

#define AT(field) PNB__FIELD(pnb__adapt_compare_opts, field)
static const pnb__option options[] = {
    PNB__ROW_LIST("methods", AT(methods), "NAME...",
                  "What is compared: names of `penumbra adapt methods`, or all, as without it"),
    PNB__ROW_LIST(
        "sweep", AT(sweeps), "NAME=VALUES...",
        "An option of `adapt train` with values and commas between them: every method "
        "that reads it is learned again with each, as METHOD@NAME=VALUE; share, shots and "
        "classes are read by all of them",
        .instead_of_file = "write the options themselves"),
    PNB__ROW_FILE("images", AT(train.images), "SET", "Pictures that are learned from",
                  .required = true),
    PNB__ROW_FILE("texts", AT(train.texts), "SET", "Captions that are learned from",
                  .required = true),
    PNB__ROW_FILE(
        "truth", AT(train.truth), "FILE",
        "What belongs together among them; without it methods that need pairs are absent"),
    PNB__ROW_CHOICE("truth-format", AT(read.format), "NAME",
                    PNB__CHOICES(PNB_TRUTH_FORMAT_LIST(PNB__CHOICE_OF)), "Format of all truths",
                    .fallback = "auto"),
    PNB__ROW_TEXT("split", AT(split), "NAME", "Split of --truth, where it has several"),
    PNB__ROW_FILE("out", AT(out), "FOLDER",
                  "Folder of adapters, sets, and the table as text, JSON, csv, Markdown and a page",
                  .letter = 'o', .required = true, .writes = "/"),
    PNB__FEWER_PAIRS_ROWS(AT(fewer.share), AT(fewer.shots), AT(fewer.n_classes),
                          AT(fewer.class_key)),
    PNB__ROW_FILE("val-images", AT(val.images), "SET",
                  "Pictures held out, by which methods that train stop",
                  .group = "Held-out rows (all three or none)"),
    PNB__ROW_FILE("val-texts", AT(val.texts), "SET", "Captions held out"),
    PNB__ROW_FILE("val-truth", AT(val.truth), "FILE", "What belongs together among them"),
    PNB__ROW_TEXT("val-split", AT(val_split), "NAME", "Split of --val-truth"),
    PNB__ROW_FILE("test-images", AT(test.images), "SET", "Pictures that are measured on",
                  .group = "Measured", .required = true),
    PNB__ROW_FILE("test-texts", AT(test.texts), "SET", "Captions that are measured on",
                  .required = true),
    PNB__ROW_FILE("test-truth", AT(test.truth), "FILE",
                  "What belongs together among them; without it row i to row i"),
    PNB__ROW_TEXT("test-split", AT(test_split), "NAME", "Split of --test-truth"),
    PNB__ROW_FILE("known", AT(known), "SET",
                  "What the captions of --test-texts stand for, row by row: known.safetensors of "
                  "`data ambiguous`"),
    PNB__ROW_FILE("label-vectors", AT(label_vectors), "FILE",
                  "Labels of the pictures of --test-images: adds PMRP"),
    PNB__ROW_INT("bins", AT(n_bins), "N", "Bins of queries sorted by uncertainty",
                 PNB__RANGE(2, 256), .fallback = "10"),
    PNB__ROW_INT("bootstrap", AT(n_resamples), "N",
                 "Resamples of pictures with their captions for 95% intervals; 0: none",
                 PNB__RANGE(0, 1000000), .fallback = "1000"),
    PNB__ROW_INT("seeds", AT(n_seeds), "N",
                 "Seeds of every method that draws something, from --seed on", PNB__RANGE(1, 1000),
                 .fallback = "5", .group = "Methods that train"),
    PNB__ROW_CHOICE("recipe", AT(recipe), "NAME", RECIPE_WORDS,
                    "Optimiser, rate, batch and epochs: for few pairs, or those of the papers",
                    .fallback = "auto"),
    PNB__ROW_INT("steps", AT(steps), "N", "Steps in place of the recipe's epochs",
                 PNB__RANGE(0, 1e9), .fallback = "0"),
};
#undef AT

static void defaults(void *args)
{
    *(pnb__adapt_compare_opts *)args =
        (pnb__adapt_compare_opts){.read = pnb_truth_read_opts_default()};
}

static bool sweeps_classes(const pnb__text_list *sweeps)
{
    bool sweeps_them = false;
    for (size_t i = 0; i < sweeps->n; i++)
        sweeps_them = sweeps_them || strncmp(sweeps->items[i], "shots=", 6) == 0 ||
                      strncmp(sweeps->items[i], "classes=", 8) == 0;
    return sweeps_them;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__adapt_compare_opts *o = args;
    int n_val = (o->val.images != NULL) + (o->val.texts != NULL) + (o->val.truth != NULL);
    if (n_val != 0 && n_val != 3)
        return pnb__usage(app, "--val-images, --val-texts and --val-truth go together: %d of three",
                          n_val);
    if ((o->split != NULL && o->train.truth == NULL) ||
        (o->val_split != NULL && o->val.truth == NULL) ||
        (o->test_split != NULL && o->test.truth == NULL))
        return pnb__usage(app, "a split is a part of a truth file, and none is given");
    const char *misuse =
        pnb__fewer_pairs_misuse(&o->fewer, o->train.truth != NULL, sweeps_classes(&o->sweeps));
    if (misuse != NULL)
        return pnb__usage(app, "%s", misuse);
    return pnb__adapt_compare(app, o, r);
}

const pnb__command pnb__cmd_adapt_compare = {
    .name = "compare",
    .summary = "learn adapters by all methods and put what they reach into one table",
    .about =
        "Every method learns on the first sets with every seed, is applied to the sets of test and "
        "measured by its own measure. Beside them stand the frozen rows and two controls that "
        "learned nothing: an untrained head, and the length of captions. A method that cannot "
        "learn is listed with its reason. A sentence a method says what its figures do beside the "
        "controls'.",
    .examples = "penumbra adapt compare --images ambiguous/train/images.safetensors --texts "
                "ambiguous/train/texts.safetensors --truth ambiguous/truth/train.pairs "
                "--test-images ambiguous/test/images.safetensors --test-texts "
                "ambiguous/test/texts.safetensors --test-truth "
                "ambiguous/truth/test.written.pairs --known ambiguous/test/known.safetensors "
                "--out comparison\n"
                "penumbra adapt compare --methods grove probvlm --images cub.i.safetensors --texts "
                "cub.t.safetensors --truth cub.pairs --shots 3 --classes 150 --class-key class "
                "--sweep inducing=50,150,250 fit=exact --test-images test.i.safetensors "
                "--test-texts test.t.safetensors --test-truth test.pairs --out few-shot\n"
                "penumbra adapt compare --methods grove --images coco.i.safetensors --texts "
                "coco.t.safetensors --truth coco.pairs --sweep share=0.2,0.4,0.6,0.8 "
                "latent-dim=2,5,10,20 --test-images flickr.i.safetensors --test-texts "
                "flickr.t.safetensors --test-truth flickr.pairs --out transfer",
    .defaults = defaults,
    PNB__RUNS(options, pnb__adapt_compare_opts, run)};
