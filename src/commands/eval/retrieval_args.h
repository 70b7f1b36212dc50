/* Options of every command that measures retrieval between two sets: eval retrieval, eval compare
 * and report take the same ones, by one table and one reading of it. */
#ifndef PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H
#define PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H

#include "commands/common/option_rows.h"
#include "commands/eval/eval_files.h"

typedef struct pnb__retrieval_args {
    const char *truth, *truth_format, *split, *measure, *eccv, *label_vectors;
    const char *uncertainty, *cluster, *binning, *bin_by;
    const char *dataset, *csv, *markdown, *output;
    bool by_class;
    int64_t level, bins, bootstrap;
    pnb__text_list recall_k;
} pnb__retrieval_args;

/* All but the sets. Errors  ARG (a value that is no measure, cut-off ...: wrong usage) */
pnb_status pnb__retrieval_args_read(pnb__app *app, const pnb__retrieval_args *a,
                                    pnb__retrieval_opts *opts);
/* The files to write; `dataset` is the name of the data without --dataset. */
pnb__retrieval_files pnb__retrieval_args_files(const pnb__retrieval_args *a, const char *dataset);

/* What belongs together and how it is ranked, whose figures are resampled and binned, and where the
 * result goes. AT(field) is the offset of a field of pnb__retrieval_args. */
/* clang-format off */
#define PNB__RETRIEVAL_ROWS(AT)                                                                             \
    PNB__TRUTH_ROWS(AT(truth), AT(truth_format), AT(split), AT(by_class)),                         \
    {.name = "level",                                                                              \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(level),                                                                              \
     .value = "N",                                                                                 \
     .min = 0,                                                                                     \
     .max = 7,                                                                                     \
     .help = "Only captions of this level"},                                                       \
    PNB__SETS_MEASURE_ROW(AT(measure)),                                                                 \
    {.name = "recall-k",                                                                           \
     .kind = PNB__OPT_LIST,                                                                        \
     .at = AT(recall_k),                                                                           \
     .value = "K...",                                                                              \
     .help = "Cut-offs of the recall, up to 16; 1 5 10 by default"},                               \
    PNB__COCO_ROWS(AT(eccv), AT(label_vectors))

#define PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT)                                                                       \
    {.name = "bins",                                                                               \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(bins),                                                                               \
     .value = "N",                                                                                 \
     .fallback = "10",                                                                             \
     .min = 2,                                                                                     \
     .max = 256,                                                                                   \
     .group = "Uncertainty",                                                                       \
     .help = "Bins of queries sorted by uncertainty"},                                             \
    {.name = "uncertainty",                                                                        \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = AT(uncertainty),                                                                        \
     .value = "NAME",                                                                              \
     .fallback = "auto",                                                                           \
     .choices = "auto|trace|mean_var|geo_std|inv_kappa|gg_var|cosine",                             \
     .help = "Scalar uncertainty; auto is that of the family: trace, inv_kappa on the sphere, "    \
             "gg_var of generalised Gaussians, and for points cosine, 1 - cosine of a query and "  \
             "its first hit"},                                                                     \
    {.name = "bootstrap",                                                                          \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(bootstrap),                                                                          \
     .value = "N",                                                                                 \
     .fallback = "1000",                                                                           \
     .min = 0,                                                                                     \
     .max = 1000000,                                                                               \
     .help = "Resamples of the clusters for 95% intervals; 0 leaves the intervals out"},           \
    PNB__CLUSTER_ROW(AT(cluster)),                                                                 \
    {.name = "binning",                                                                            \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = AT(binning),                                                                            \
     .value = "NAME",                                                                              \
     .fallback = "equal_count",                                                                    \
     .choices = "equal_count|equal_count_all|equal_width|grove_samples|grove_spacing",             \
     .help = "How the bins that are shown are cut"},                                               \
    {.name = "bin-by",                                                                             \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = AT(bin_by),                                                                             \
     .value = "WHOSE",                                                                             \
     .fallback = "query",                                                                          \
     .choices = "query|hit",                                                                       \
     .help = "Whose uncertainty sorts them: the query's, or that of the item it found"}

#define PNB__RETRIEVAL_RESULT_ROWS(AT)                                                                            \
    {.name = "dataset",                                                                            \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = AT(dataset),                                                                            \
     .value = "NAME",                                                                              \
     .group = "Result",                                                                            \
     .help = "Name of the data set in the result"},                                                \
    {.name = "csv",                                                                                \
     .kind = PNB__OPT_FILE,                                                                        \
     .writes = "*",                                                                                \
     .at = AT(csv),                                                                                \
     .value = "FILE",                                                                              \
     .help = "Also write every figure, one a line"},                                               \
    {.name = "markdown",                                                                           \
     .kind = PNB__OPT_FILE,                                                                        \
     .writes = "*",                                                                                \
     .at = AT(markdown),                                                                           \
     .value = "FILE",                                                                              \
     .help = "Also write the table of a paper"},                                                   \
    {.name = "output",                                                                             \
     .kind = PNB__OPT_FILE,                                                                        \
     .writes = "*",                                                                                \
     .at = AT(output),                                                                             \
     .value = "FILE",                                                                              \
     .help = "Also write the JSON result; {dataset}, {pretrained}, {model}, {language} and {task} " \
             "in the name are filled in, as CLIP_benchmark does"}
/* clang-format on */

#endif
