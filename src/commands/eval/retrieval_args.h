/* Options of every command that measures retrieval between two sets: eval retrieval, eval compare
 * and report take the same ones, by one table and one reading of it. */
#ifndef PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H
#define PNB_COMMANDS_EVAL_RETRIEVAL_ARGS_H

#include "commands/common/option_rows.h"
#include "commands/eval/eval_files.h"
#include "prob/choices.h"

/* What the rows fill: the job, where its result goes, and words that it does not take as they are.
 */
typedef struct pnb__retrieval_args {
    pnb__retrieval_opts job;
    pnb__retrieval_files files;
    pnb__text_list recall_k;
} pnb__retrieval_args;

/* Before the words are read: figures of everything the rows choose, with 1,000 resamples. */
pnb__retrieval_args pnb__retrieval_args_default(void);
/* What does not go together of a truth file, its split and --class-key: wrong usage. */
pnb_status pnb__retrieval_truth_check(pnb__app *app, const pnb__retrieval_opts *job);
/* Behind them: what is not in a row. `dataset` is the name of the data without --dataset.
 * Errors  ARG (a value that is no cut-off, a split of no truth: wrong usage) */
pnb_status pnb__retrieval_args_read(pnb__app *app, pnb__retrieval_args *a, const char *dataset);

/* What belongs together and how it is ranked, whose figures are resampled and binned, and where the
 * result goes. AT(field) is the offset of a field of pnb__retrieval_args. */
#define PNB__RETRIEVAL_ROWS(AT)                                                                    \
    PNB__TRUTH_ROWS(AT(job.truth), AT(job.read.format), AT(job.read.split),                        \
                    AT(job.read.by_class)),                                                        \
        PNB__CLASS_KEY_ROW(AT(job.class_key)),                                                     \
        PNB__ROW_INT("level", AT(job.level), "N", "Only captions of this level",                   \
                     PNB__RANGE(0, 7)),                                                            \
        PNB__SETS_MEASURE_ROW(AT(job.measure)),                                                    \
        PNB__MATCH_ROWS(AT(job.match.n_samples), AT(job.match.a), AT(job.match.b)),                \
        PNB__ROW_LIST("recall-k", AT(recall_k), "K...",                                            \
                      "Cut-offs of the recall, up to 16; 1 5 10 by default"),                      \
        PNB__COCO_ROWS(AT(job.eccv), AT(job.label_vectors))

#define PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT)                                                        \
    PNB__ROW_INT("bins", AT(job.n_bins), "N", "Bins of queries sorted by uncertainty",             \
                 PNB__RANGE(2, 256), .fallback = "10", .group = "Uncertainty"),                    \
        PNB__ROW_CHOICE(                                                                           \
            "uncertainty", AT(job.uncertainty), "NAME", "auto" PNB__UNCERTAINTY_CHOICES,           \
            "Scalar uncertainty; auto is that of the family: trace, inv_kappa on the sphere, "     \
            "gg_var of generalised Gaussians (aleatoric and epistemic are its parts, where the "   \
            "set has epistemic variances), and for points cosine, 1 - cosine of a query and "      \
            "its first hit",                                                                       \
            .names = PNB__UNCERTAINTY_NAMES, .fallback = "auto"),                                  \
        PNB__ROW_INT("bootstrap", AT(job.n_resamples), "N",                                        \
                     "Resamples of the clusters for 95% intervals; 0 leaves the intervals out",    \
                     PNB__RANGE(0, 1000000), .fallback = "1000"),                                  \
        PNB__CLUSTER_ROW(AT(job.cluster)),                                                         \
        PNB__ROW_CHOICE("binning", AT(job.binning), "NAME",                                        \
                        PNB__CHOICES(PNB_BINNING_LIST(PNB__CHOICE_OF)),                            \
                        "How the bins that are shown are cut", .fallback = "equal_count"),         \
        PNB__ROW_CHOICE("bin-by", AT(job.bin_by_hit), "WHOSE", "query|hit",                        \
                        "Whose uncertainty sorts them: the query's, or that of the item it found", \
                        .fallback = "query")

#define PNB__RETRIEVAL_RESULT_ROWS(AT)                                                             \
    PNB__ROW_TEXT("dataset", AT(files.dataset), "NAME", "Name of the data set in the result",      \
                  .group = "Result"),                                                              \
        PNB__ROW_FILE("csv", AT(files.csv), "FILE", "Also write every figure, one a line",         \
                      .writes = "*"),                                                              \
        PNB__ROW_FILE("markdown", AT(files.markdown), "FILE", "Also write the table of a paper",   \
                      .writes = "*"),                                                              \
        PNB__ROW_FILE(                                                                             \
            "output", AT(files.output), "FILE",                                                    \
            "Also write the JSON result; {dataset}, {pretrained}, {model}, {language} and {task} " \
            "in the name are filled in, as CLIP_benchmark does",                                   \
            .writes = "*")

#endif
