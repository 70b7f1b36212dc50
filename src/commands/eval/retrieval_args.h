/* Options of every command that measures retrieval between two sets: eval retrieval, eval compare
 * and report take the same ones, by one table and one reading of it. */
#ifndef PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H
#define PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H

#include "commands/common/option_rows.h"
#include "commands/eval/eval_files.h"
#include "prob/choices.h"

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
#define PNB__RETRIEVAL_ROWS(AT)                                                                    \
    PNB__TRUTH_ROWS(AT(truth), AT(truth_format), AT(split), AT(by_class)),                         \
        PNB__ROW_INT("level", AT(level), "N", "Only captions of this level", PNB__RANGE(0, 7)),    \
        PNB__SETS_MEASURE_ROW(AT(measure)),                                                        \
        PNB__ROW_LIST("recall-k", AT(recall_k), "K...",                                            \
                      "Cut-offs of the recall, up to 16; 1 5 10 by default"),                      \
        PNB__COCO_ROWS(AT(eccv), AT(label_vectors))

#define PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT)                                                        \
    PNB__ROW_INT("bins", AT(bins), "N", "Bins of queries sorted by uncertainty",                   \
                 PNB__RANGE(2, 256), .fallback = "10", .group = "Uncertainty"),                    \
        PNB__ROW_CHOICE(                                                                           \
            "uncertainty", AT(uncertainty), "NAME", "auto" PNB__UNCERTAINTY_CHOICES,               \
            "Scalar uncertainty; auto is that of the family: trace, inv_kappa on the sphere, "     \
            "gg_var of generalised Gaussians, and for points cosine, 1 - cosine of a query and "   \
            "its first hit",                                                                       \
            .fallback = "auto"),                                                                   \
        PNB__ROW_INT("bootstrap", AT(bootstrap), "N",                                              \
                     "Resamples of the clusters for 95% intervals; 0 leaves the intervals out",    \
                     PNB__RANGE(0, 1000000), .fallback = "1000"),                                  \
        PNB__CLUSTER_ROW(AT(cluster)),                                                             \
        PNB__ROW_CHOICE("binning", AT(binning), "NAME",                                            \
                        "equal_count|equal_count_all|equal_width|grove_samples|grove_spacing",     \
                        "How the bins that are shown are cut", .fallback = "equal_count"),         \
        PNB__ROW_CHOICE("bin-by", AT(bin_by), "WHOSE", "query|hit",                                \
                        "Whose uncertainty sorts them: the query's, or that of the item it found", \
                        .fallback = "query")

#define PNB__RETRIEVAL_RESULT_ROWS(AT)                                                             \
    PNB__ROW_TEXT("dataset", AT(dataset), "NAME", "Name of the data set in the result",            \
                  .group = "Result"),                                                              \
        PNB__ROW_FILE("csv", AT(csv), "FILE", "Also write every figure, one a line",               \
                      .writes = "*"),                                                              \
        PNB__ROW_FILE("markdown", AT(markdown), "FILE", "Also write the table of a paper",         \
                      .writes = "*"),                                                              \
        PNB__ROW_FILE(                                                                             \
            "output", AT(output), "FILE",                                                          \
            "Also write the JSON result; {dataset}, {pretrained}, {model}, {language} and {task} " \
            "in the name are filled in, as CLIP_benchmark does",                                   \
            .writes = "*")

#endif
