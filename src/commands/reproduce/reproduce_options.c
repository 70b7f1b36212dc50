/* penumbra reproduce: options, a subcommand for each row of experiments.def.
 *
 * All have the same options with defaults of their own; what they do is reproduce.c's. */
#include "base/base.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/reproduce/reproduce.h"

#define ABOUT_IMAGES                                                                               \
    "--data is a folder in one of these layouts; anything else is refused.\n"                      \
    "\n"                                                                                           \
    "dataset_coco.json, dataset_flickr30k.json or dataset_flickr8k.json (Karpathy's) with the "    \
    "pictures in images/ or beside it, as COCO's filepath says; train+restval is learned from, "   \
    "test measured. annotations/instances_val2014.json adds PMRP.\n"                               \
    "\n"                                                                                           \
    "images/ and text_c10/ of CUB Captions with trainvalclasses.txt and testclasses.txt: PCME's "  \
    "150 and 50 classes; a caption matches every picture of its class.\n"                          \
    "\n"                                                                                           \
    "train/ and test/ with truth/test.pairs, as `data shapes` and `data emoji` write them; or "    \
    "train/ and test/ alone, each with tar shards or pictures with x.txt or x.json beside them: "  \
    "a caption matches its own picture."

#define ABOUT_SETS                                                                                 \
    "--data is a folder with {train,test}/images.safetensors and texts.safetensors and "           \
    "truth/{train,test}.pairs, as `data ambiguous` writes them and `embed` makes them of any "     \
    "model; val/ beside them is what methods stop by. truth/{val,test}.written.pairs, each "       \
    "caption with the picture it was written for, come before truth/{val,test}.pairs, and "        \
    "test/known.safetensors is scored against. Anything else is refused."

#define ABOUT_NOTHING "No data is needed: what is measured does not depend on it."

#define ABOUT_RUNS                                                                                 \
    "Each stage and seed leaves its result in OUT/results: the same command goes on behind an "    \
    "interruption, passes over what is there and takes more seeds; other settings are refused. "   \
    "The paper's figures stand beside ours in OUT/table.txt, .json, .csv, .md and index.html."
#define BUILT_IN "Without --data the built-in set is made in the folder. "
#define RUNS_IMAGES BUILT_IN ABOUT_RUNS
#define RUNS_SETS BUILT_IN ABOUT_RUNS
#define RUNS_NOTHING ABOUT_RUNS

#define AT(field) PNB__FIELD(pnb__reproduce_opts, field)
#define ROW_DATA                                                                                   \
    PNB__ROW_FILE("data", AT(data), "FOLDER", "Data that you have, in a layout named above")
#define ROW_OUT(word)                                                                              \
    PNB__ROW_FILE("out", AT(out), "FOLDER",                                                        \
                  "Folder of data, models, results and tables; a new one, or this very "           \
                  "experiment's",                                                                  \
                  .letter = 'o', .fallback = word, .writes = "/")
#define ROW_SEEDS                                                                                  \
    PNB__ROW_INT("seeds", AT(n_seeds), "N", "Runs of everything, from --seed on",                  \
                 PNB__RANGE(1, 1000), .fallback = "3")
#define ROW_N(items)                                                                               \
    PNB__ROW_INT("n", AT(n_items), "N", "Pictures of the built-in set, over all splits",           \
                 PNB__RANGE(60, 1e7), .fallback = #items)
#define ROW_STEPS(steps)                                                                           \
    PNB__ROW_INT("max-steps", AT(n_steps), "N", "Steps of each training; 0 is the recipe's",       \
                 PNB__RANGE(0, 1e9), .fallback = #steps)
#define ROW_BATCH(batch)                                                                           \
    PNB__ROW_INT("batch-size", AT(batch_size), "N", "Pairs of a step; 0 is the recipe's",          \
                 PNB__RANGE(0, 1e6), .fallback = #batch, .letter = 'b')
#define OPTIONS_IMAGES(word, items, steps, batch)                                                  \
    ROW_DATA, ROW_OUT(word), ROW_SEEDS, ROW_N(items), ROW_STEPS(steps), ROW_BATCH(batch),          \
        PNB__ROW_LIST("only", AT(only), "NAME...",                                                 \
                      "Only these models or methods, by the names of their files in results/; "    \
                      "what others left there stands in the table as before")
/* a batch is the recipe's */
#define OPTIONS_SETS(word, items, steps, batch)                                                    \
    ROW_DATA, ROW_OUT(word), ROW_SEEDS, ROW_N(items), ROW_STEPS(steps)
#define OPTIONS_NOTHING(word, items, steps, batch)                                                 \
    ROW_OUT(word), ROW_SEEDS,                                                                      \
        PNB__ROW_INT("batch-size", AT(n_items), "N", "Pictures that are encoded at once",          \
                     PNB__RANGE(1, 4096), .fallback = #items, .letter = 'b'),                      \
        PNB__ROW_INT("towers", AT(n_stages), "N",                                                  \
                     "The first N of the table's sizes, which need more time and memory each",     \
                     PNB__RANGE(1, steps), .fallback = #steps)
#define EXAMPLE_IMAGES(word)                                                                       \
    "\npenumbra reproduce " word " --data FOLDER --out " word "-own --max-steps 20000"
#define EXAMPLE_SETS(word) EXAMPLE_IMAGES(word)
#define EXAMPLE_NOTHING(word) "\npenumbra reproduce " word " --towers 3 --threads 1"

#define OPTIONS(id, word, sentence, needs, items, steps, batch)                                    \
    static const pnb__option id##_options[] = {OPTIONS_##needs(word, items, steps, batch)};        \
    static pnb_status id##_run(pnb__app *app, void *args, pnb__result *r)                          \
    {                                                                                              \
        return pnb__reproduce(app, &pnb__experiment_##id, args, r);                                \
    }                                                                                              \
    static const pnb__command id##_command = {                                                     \
        .name = word,                                                                              \
        .summary = sentence,                                                                       \
        .about = ABOUT_##needs "\n\n" RUNS_##needs,                                                \
        .examples = "penumbra reproduce " word EXAMPLE_##needs(word),                              \
        PNB__RUNS(id##_options, pnb__reproduce_opts, id##_run)};
PNB__EXPERIMENTS(OPTIONS)

#define SUB(id, ...) &id##_command,
static const pnb__command *const subs[] = {PNB__EXPERIMENTS(SUB) NULL};

const pnb__command pnb__cmd_reproduce = {
    .name = "reproduce",
    .summary = "run a paper's experiment and print its table with ours beside it",
    .about = "Trains, embeds, adapts and measures as the experiment wants it, on data that you "
             "have or on a built-in set, three seeds by default, and says what may differ from "
             "the paper. A run that was interrupted goes on with the same command.",
    .subs = subs};
