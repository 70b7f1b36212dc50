/* penumbra bench encode | train | adapt | search | eval | tokenize: how fast this machine is at it.
 *
 * encode and train share their options' struct, and so do search and eval; what is timed and how
 * lies in src/commands/bench/bench.c, bench_train.c, bench_adapt.c, bench_search.c and tokenize.c.
 */
#include <string.h>

#include "adapt/adapters.def"
#include "commands/bench/bench.h"
#include "commands/bench/bench_adapt.h"
#include "commands/bench/bench_search.h"
#include "commands/bench/bench_train.h"
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/tokenizer/tokenize.h"
#include "penumbra/tokenizer.h"
#include "prob/choices.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__bench_opts, field)
#define MODEL                                                                                      \
    {                                                                                              \
        .name = "model", .letter = 'm', .kind = PNB__OPT_FILE, .at = AT(model),                    \
        .value = "NAME|DIR", .fallback = "ViT-B-16",                                               \
        .help = "Model directory, or a built-in configuration with random weights"                 \
    }
#define BATCH(help_, fallback_)                                                                    \
    {                                                                                              \
        .name = "batch", .letter = 'b', .kind = PNB__OPT_INT, .at = AT(batch_size), .value = "N",  \
        .fallback = fallback_, .min = 1, .max = 1e6, .help = help_                                 \
    }
#define TIMES(TIMES_AT)                                                                            \
    {.name = "seconds",                                                                            \
     .kind = PNB__OPT_REAL,                                                                        \
     .at = TIMES_AT(seconds),                                                                      \
     .value = "S",                                                                                 \
     .fallback = "3",                                                                              \
     .max = 1e6,                                                                                   \
     .help = "Measure at least this long"},                                                        \
    {                                                                                              \
        .name = "repeats", .kind = PNB__OPT_INT, .at = TIMES_AT(min_repeats), .value = "N",        \
        .fallback = "5", .min = 1, .max = 10000, .help = "and at least this often"                 \
    }

static const pnb__option encode_options[] = {
    MODEL,
    PNB__ROW_CHOICE("tower", AT(is_text), "NAME", "image|text", "Which half of the model",
                    .fallback = "image"),
    BATCH("Inputs of one call", "1"),
    PNB__ROW_FLAG("resident", AT(resident),
                  "The tower alone: inputs are written before, results are not read"),
    PNB__ROW_FLAG("steps", AT(steps),
                  "And a table of where one run spends its time, slowest first"),
    PNB__PRECISION_ROW(AT(precision)),
    TIMES(AT)};

static const pnb__option train_options[] = {
    PNB__ROW_FILE("model", AT(model), "NAME|DIR",
                  "Model directory, or a built-in configuration with random weights; ViT-B-16, "
                  "pcme-coco and the like by default, as the objective's paper has it",
                  .letter = 'm'),
    PNB__ROW_CHOICE("objective", AT(objective), "NAME",
                    PNB__CHOICES(PNB_OBJECTIVE_LIST(PNB__CHOICE_OF)),
                    "What the step trains, as in `penumbra train`",
                    .names = PNB_NAMES(PNB_OBJECTIVE_LIST), .fallback = "prolip"),
    PNB__ROW_INT("samples", AT(n_samples), "J",
                 "Samples of an embedding in losses over samples; 7 by default", PNB__RANGE(1, 64)),
    PNB__ROW_CHOICE("precision", AT(train_precision), "NAME",
                    PNB__CHOICES(PNB_TRAIN_PRECISION_LIST(PNB__CHOICE_OF)),
                    "Arithmetic, as in `penumbra train`",
                    .names = PNB_NAMES(PNB_TRAIN_PRECISION_LIST), .fallback = "fp32"),
    BATCH("Pairs of a step", "8"),
    TIMES(AT)};
#undef MODEL
#undef BATCH
#undef AT

static const pnb__command encode = {
    .name = "encode",
    .summary = "time one tower of a model",
    .examples = "penumbra bench encode --model ViT-B-16 --tower text --batch 64 --threads 2 --json",
    PNB__RUNS(encode_options, pnb__bench_opts, pnb__bench_encode)};

static const pnb__command train = {
    .name = "train",
    .summary = "time a whole training step",
    .about = "Batch, both towers, all losses of the objective, with the masked pass where it has "
             "one, backward, AdamW, on rendered shapes and their few words. Arithmetic is counted "
             "as three forward passes of the towers; that of the losses is not.",
    .examples = "penumbra bench train --model tiny --batch 128 --threads 2\n"
                "penumbra bench train --objective pcme --model pcme-cub --batch 8 --samples 7 "
                "--json",
    PNB__RUNS(train_options, pnb__bench_opts, pnb__bench_train)};

/* ---- search and eval ---- */

#define AT(field) PNB__FIELD(pnb__bench_search_opts, field)
#define AT_TIMES(field) AT(times.field)
#define SIZE_ROW(name_, letter_, at_, fallback_, max_, help_)                                      \
    {                                                                                              \
        .name = name_, .letter = letter_, .kind = PNB__OPT_INT, .at = at_, .value = "N",           \
        .fallback = fallback_, .min = 1, .max = max_, .help = help_                                \
    }

static const pnb__option search_options[] = {
    SIZE_ROW("n", 'n', AT(n), "100000", 1e9, "Rows of the index"),
    PNB__ROW_CHOICE(
        "index", AT(index), "KIND", "flat|int8|bf16|hnsw|ivf",
        "What looks for the rows: all as they are, a copy in one or two bytes a number, "
        "a graph or cells of FAISS",
        .fallback = "flat"),
    PNB__ROW_REAL("recall", AT(recall), "SHARE", "hnsw and ivf: share of the true hits to aim at",
                  PNB__RANGE(0.01, 1), .fallback = "0.99"),
    PNB__ROW_INT("centres", AT(n_centres), "N",
                 "Rows and queries lie around so many directions, as embeddings of a model do in "
                 "heaps; 0: anywhere, where no index but flat finds its way",
                 PNB__RANGE(0, 1e9), .fallback = "0"),
    PNB__ROW_INT("factors", AT(n_factors), "N",
                 "Rows and queries are sums of so many directions and a little of their own, as "
                 "embeddings of a model vary in few ways; 0: in all",
                 PNB__RANGE(0, 65536), .fallback = "0"),
    SIZE_ROW("dim", 'd', AT(dim), "512", 65536, "Width of an embedding"),
    SIZE_ROW("queries", 'Q', AT(n_queries), "100", 1e8, "Queries of one call"),
    SIZE_ROW("k", 'k', AT(k), "10", 1e6, "Hits of a query"),
    PNB__MEASURE_ROW(AT(measure)),
    PNB__ROW_INT("samples", AT(n_samples), "J", "Samples of a row for avg_l2 and match_prob",
                 PNB__RANGE(1, 10000), .fallback = "7"),
    TIMES(AT_TIMES)};

static const pnb__option eval_options[] = {
    SIZE_ROW("captions", 'n', AT(n), "25000", 1e9, "Captions, shared out evenly"),
    SIZE_ROW("images", 'Q', AT(n_queries), "5000", 1e8, "Pictures"),
    SIZE_ROW("dim", 'd', AT(dim), "512", 65536, "Width of an embedding"),
    PNB__MEASURE_ROW(AT(measure)), TIMES(AT_TIMES)};
#undef AT

/* ---- adapt ---- */

#define METHOD_WORD(name, word, ...) "|" word
#define AT(field) PNB__FIELD(pnb__bench_adapt_opts, field)
static const pnb__option adapt_options[] = {
    PNB__ROW_CHOICE("method", AT(method), "NAME", PNB__CHOICES(PNB__ADAPTERS(METHOD_WORD)),
                    "What is learned: `penumbra adapt methods` tells", .required = true),
    SIZE_ROW("batch", 'b', AT_TIMES(batch_size), "64", 32768,
             "Pairs of a step, and captions that the adapter is applied to at once"),
    SIZE_ROW("dim", 'd', AT(dim), "512", 65536, "Width of an embedding"),
    PNB__ROW_INT("pairs", AT(n_pairs), "N",
                 "Made pairs that it learns from; four batches by default, at least 1,024",
                 PNB__RANGE(2, 1e8)),
    PNB__ROW_CHOICE(
        "recipe", AT(options.recipe), "WHICH", PNB__CHOICES(PNB_ADAPT_RECIPE_LIST(PNB__CHOICE_OF)),
        "Optimiser and network: the paper's, or those for few pairs", .fallback = "published"),
    PNB__ROW_INT("inducing", AT(options.inducing), "M", "grove: inducing points a side; 250",
                 PNB__RANGE(1, 65536)),
    PNB__ROW_INT("latent", AT(options.latent_dim), "Q", "grove: axes of the latent space; 5",
                 PNB__RANGE(1, 1024)),
    PNB__ROW_FLAG("shared-covariance", AT(options.shared_covariance),
                  "grove: one covariance of inducing values for all outputs"),
    PNB__ROW_FLAG("per-output", AT(options.per_output),
                  "grove: inducing points, kernel and covariance for each output, mixed, as the "
                  "released code"),
    TIMES(AT_TIMES)};
#undef METHOD_WORD
#undef TIMES
#undef SIZE_ROW
#undef AT_TIMES
#undef AT

static void adapt_defaults(void *args)
{
    *(pnb__bench_adapt_opts *)args = (pnb__bench_adapt_opts){.options = pnb_adapter_opts_default()};
}

static const pnb__command adapt = {
    .name = "adapt",
    .summary = "time a training step of an adapter, and a batch put through it",
    .about = "Steps of `adapt train` as it trains, on made pairs, all but the first one or two. "
             "Methods without steps learn once from all pairs, and fit_s is what that took. "
             "infer_s is of --batch captions that were not learned from.",
    .examples = "penumbra bench adapt --method asymvlm-vmf --batch 2048 --dim 512 --threads 2\n"
                "penumbra bench adapt --method grove --batch 64 --dim 512 --inducing 250 --latent "
                "5 --shared-covariance --json",
    .defaults = adapt_defaults,
    PNB__RUNS(adapt_options, pnb__bench_adapt_opts, pnb__bench_adapt)};

static const pnb__command search = {
    .name = "search",
    .summary = "time top-k search on synthetic sets",
    .about = "Unit means in random directions with log-variances around -8, made anew from the "
             "seed. One call searches all queries in an index that was prepared before. Beside it "
             "stand the machine's sgemm rate (the faster of our kernels and OpenBLAS) and the "
             "bandwidth of its memory, both measured in the same run, and the recall of the hits "
             "against all pairs scored in double precision.",
    .examples = "penumbra bench search --n 1000000 --dim 512 --queries 1000 --measure csd --json",
    PNB__RUNS(search_options, pnb__bench_search_opts, pnb__bench_search)};

static const pnb__command eval = {
    .name = "eval",
    .summary = "time the evaluation of retrieval both ways on synthetic sets",
    .about = "Ranks of every true pair among all captions and among all pictures, and the figures "
             "that follow from them.",
    .examples = "penumbra bench eval --captions 25000 --images 5000 --dim 512 --threads 2",
    PNB__RUNS(eval_options, pnb__bench_search_opts, pnb__bench_eval)};

/* ---- tokenize ---- */

struct tokenize_job {
    pnb__bench_tokenize_opts bench;
    pnb__text_list texts;
};

#define AT(field) PNB__FIELD(struct tokenize_job, field)
static const pnb__option tokenize_options[] = {
    PNB__ROW_FILE("tokenizer", AT(bench.tokenize.tokenizer), "PATH",
                  "Anything that `penumbra tokenizer encode` opens, or a model directory",
                  .required = true),
    PNB__ROW_FILES(
        "texts", AT(texts), "FILE...",
        "Captions: text files (one a line, an empty one too), .jsonl, tar shards, folders, or -",
        .required = true),
    PNB__ROW_CHOICE("clean", AT(bench.tokenize.clean), "MODE",
                    PNB__CHOICES(PNB_CLEAN_LIST(PNB__CHOICE_WORD)),
                    "What happens to a caption first; by default what the model says"),
    PNB__ROW_REAL("seconds", AT(bench.seconds), "S", "Measure at least this long",
                  PNB__RANGE(0, 1e6), .fallback = "3"),
    PNB__ROW_INT("repeats", AT(bench.min_repeats), "N", "and at least this often",
                 PNB__RANGE(1, 10000), .fallback = "5"),
};
#undef AT

static pnb_status run_tokenize(pnb__app *app, void *args, pnb__result *r)
{
    struct tokenize_job *job = args;
    pnb__text_inputs texts = {0};
    pnb_status status = PNB_OK;
    job->bench.tokenize.context_length = PNB__INT_UNSET;
    for (size_t i = 0; i < job->texts.n && status == PNB_OK; i++)
        status = pnb__text_inputs_add(&texts, job->texts.items[i], "title", app->in, &app->err);
    if (status == PNB_OK)
        status = pnb__bench_tokenize(app, &job->bench, &texts, r);
    pnb__text_inputs_reset(&texts);
    return status;
}

static const pnb__command tokenize = {
    .name = "tokenize",
    .summary = "time one thread turning captions into token ids",
    .examples = "penumbra bench tokenize --tokenizer model --texts captions.txt",
    PNB__RUNS(tokenize_options, struct tokenize_job, run_tokenize)};

static const pnb__command *const subs[] = {&encode, &train,    &adapt, &search,
                                           &eval,   &tokenize, NULL};
const pnb__command pnb__cmd_bench = {
    .name = "bench",
    .summary = "measure the speed of encoding, training, adapters, search and evaluation",
    .about = "Median, least and most seconds over the repeats, items a second, GFLOP/s, and the "
             "share of the sgemm rate measured in the same run.",
    .subs = subs};
