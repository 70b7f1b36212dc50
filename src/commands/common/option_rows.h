/* Rows that several commands' option tables have in common; each takes the offset of its field. */
#ifndef PNB_COMMANDS_COMMON_OPTION_ROWS_H
#define PNB_COMMANDS_COMMON_OPTION_ROWS_H

#include "base/names.h"
#include "penumbra/model.h"
#include "penumbra/truth.h"
#include "prob/choices.h"

/* A field `const char *`: the model. */
#define PNB__MODEL_ROW(at_model)                                                                   \
    PNB__ROW_FILE("model", (at_model), "DIR",                                                      \
                  "Model directory, or hf-hub:ORG/NAME from the local cache, or shipped:tiny",     \
                  .letter = 'm', .required = true)

/* Two fields `const char *`: the two sets of a comparison. */
#define PNB__IMAGES_TEXTS_ROWS(at_images, at_texts)                                                \
    PNB__ROW_FILE("images", (at_images), "SET", "Embedding set of the pictures",                   \
                  .required = true),                                                               \
        PNB__ROW_FILE("texts", (at_texts), "SET", "Embedding set of the captions",                 \
                      .required = true)

/* A field `bool`. */
#define PNB__TRUST_ROW(at_trust)                                                                   \
    PNB__ROW_FLAG("trust-calibration", (at_trust),                                                 \
                  "Use a calibration although it, or a set, does not tell its modality and model " \
                  "(files of older versions, .npy without its .json); what differs stays refused")

/* Two fields `const char *`: where the tokenizer and the preprocessing of a model lie. */
#define PNB__MODEL_PARTS_ROWS(at_tokenizer, at_preprocess)                                         \
    PNB__ROW_FILE("tokenizer", (at_tokenizer), "PATH",                                             \
                  "Tokenizer file or folder in place of the model directory's"),                   \
        PNB__ROW_FILE(                                                                             \
            "preprocess", (at_preprocess), "FILE",                                                 \
            "preprocessor_config.json or open_clip_config.json in place of the model "             \
            "directory's; a directory without either is taken as its family's reference "          \
            "prepares pictures, with a warning")

/* A field pnb_precision: how the model encodes. */
/* An int64_t: seconds, for pnb_peers_set_timeout. */
#define PNB__RANK_TIMEOUT_ROW(at_seconds)                                                          \
    PNB__ROW_INT("rank-timeout", (at_seconds), "SECONDS",                                          \
                 "After so long a process that says nothing to the others, or has not come to "    \
                 "them, is given up, and named",                                                   \
                 PNB__RANGE(1, 1000000.0), .fallback = "600")
#define PNB__PRECISION_ROW(at_precision)                                                           \
    PNB__ROW_CHOICE(                                                                               \
        "precision", (at_precision), "NAME", PNB__CHOICES(PNB_PRECISION_LIST(PNB__CHOICE_OF)),     \
        "Products of the transformer blocks: in floats; on a tile unit (penumbra "                 \
        "info --cpu) from three parts of bfloat16, cosine to fp32 at least 1 - 1e-10, "            \
        "or two, 1 - 1e-9, elsewhere floats again; with weights and activations in "               \
        "bfloat16, 0.9999, faster where the processor multiplies it; in 8 bits, "                  \
        "0.9995, fastest with VNNI or tiles (quantize tells of your data). The set records it",    \
        .names = PNB_NAMES(PNB_PRECISION_LIST), .fallback = "fp32")

/* Two lists and two fields `const char *`: what is looked for, and the model that encodes it. */
#define PNB__QUERY_ROWS(at_texts, at_images, at_queries, at_model)                                 \
    PNB__ROW_LIST("query-text", (at_texts), "STR...", "Captions", .group = "Queries (one kind)",   \
                  .instead_of_file = "--queries takes an embedding set"),                          \
        PNB__ROW_FILES("query-image", (at_images), "PATH...", "Pictures"),                         \
        PNB__ROW_FILE("queries", (at_queries), "SET",                                              \
                      "Embedding set of queries, no model needed"),                                \
        PNB__ROW_FILE("model", (at_model), "DIR",                                                  \
                      "Model directory that made the index; for --query-text and --query-image",   \
                      .group = "How", .letter = 'm')

#define PNB__QUERY_EXIF_ROW(at_exif)                                                               \
    PNB__ROW_FLAG("exif", (at_exif),                                                               \
                  "Turn pictures as their EXIF orientation says; as given to embed for the index")

#define PNB__TEXT_KEY_ROW(at_key)                                                                  \
    PNB__ROW_TEXT("csv-caption-key", (at_key), "COLUMN",                                           \
                  "Column of captions in a csv or tsv file or Parquet table", .fallback = "title")

/* Three fields `const char *` and a flag: what belongs together, as pnb_truth_read takes it. */
#define PNB__TRUTH_ROWS(at_truth, at_truth_format, at_split, at_by_class)                          \
    PNB__ROW_FILE(                                                                                 \
        "truth", (at_truth), "FILE",                                                               \
        "What belongs together: a pairs file (picture id, tab, caption id), or the "               \
        "annotations of a data set as docs/formats.md lists them; without it row i belongs "       \
        "to row i"),                                                                               \
        PNB__ROW_CHOICE("truth-format", (at_truth_format), "NAME",                                 \
                        PNB__CHOICES(PNB_TRUTH_FORMAT_LIST(PNB__CHOICE_OF)),                       \
                        "Format of the truth", .fallback = "auto"),                                \
        PNB__ROW_TEXT(                                                                             \
            "split", (at_split), "NAME",                                                           \
            "Split of a karpathy file (test, val, train+restval, all) or of class folders "        \
            "(test, or a file of class names); other rows are left out of both sides"),            \
        PNB__ROW_FLAG("by-class", (at_by_class),                                                   \
                      "Class folders: a caption matches every picture of its class")

/* A field `const char *`. */
#define PNB__CLASS_KEY_ROW(at_class_key)                                                           \
    PNB__ROW_TEXT("class-key", (at_class_key), "FIELD",                                            \
                  "In place of --truth a field of both ids files (class, label): rows of one "     \
                  "value belong together, a caption to every picture of its class")

/* Two fields `const char *`. */
#define PNB__COCO_ROWS(at_eccv, at_label_vectors)                                                  \
    PNB__ROW_FILE(                                                                                 \
        "eccv", (at_eccv), "DIR",                                                                  \
        "Folder of ECCV Caption's lists (eccv_caption/data): adds COCO 1K and 5K, CxC and "        \
        "ECCV figures; the original pairs are the truth when none is given. COCO 1K (5 "           \
        "folds) and 5K need no folder where --truth is a Karpathy file whose split of 5,000 "      \
        "pictures the sets hold"),                                                                 \
        PNB__ROW_FILE(                                                                             \
            "label-vectors", (at_label_vectors), "FILE",                                           \
            "Labels of the pictures (COCO instances json, npy or csv): adds PMRP, in the folds "   \
            "of COCO 1K too where there are any")

/* A field `const char *`. */
#define PNB__CLUSTER_ROW(at_cluster)                                                               \
    PNB__ROW_TEXT(                                                                                 \
        "cluster", (at_cluster), "KEY",                                                            \
        "Field of the ids files: rows of one value were sampled together and are resampled "       \
        "together. Without it what the truth connects: a picture with its captions, all of a "     \
        "class. Captions drawn one by one made intervals far too narrow")

/* The same where pictures alone are judged: nothing but a field says which belong together. */
#define PNB__IMAGE_CLUSTER_ROW(at_cluster)                                                         \
    PNB__ROW_TEXT("cluster", (at_cluster), "KEY",                                                  \
                  "Field of the pictures' ids file: pictures of one value (a scene, a video, a "   \
                  "patient) were taken together and are resampled together in the 95% intervals; " \
                  "without it each by itself")

#define PNB__MEASURE_ROW(at_measure)                                                               \
    PNB__ROW_CHOICE("measure", (at_measure), "NAME", PNB__CHOICES(PNB__MEASURE_CHOICES),           \
                    "Measure between two embeddings", .names = PNB__MEASURE_NAMES,                 \
                    .fallback = "csd")

#define PNB__UNCERTAINTY_ROW(at_uncertainty)                                                       \
    PNB__ROW_CHOICE("uncertainty", (at_uncertainty), "NAME",                                       \
                    PNB__CHOICES(PNB__ROW_UNCERTAINTY_CHOICES),                                    \
                    "Scalar uncertainty of a Gaussian row; the last two are parts of a "           \
                    "generalised Gaussian's, where the set has epistemic variances",               \
                    .names = PNB__UNCERTAINTY_NAMES, .fallback = "trace")

#define PNB__SET_ROW(at_set)                                                                       \
    PNB__ROW_FILE("set", (at_set), "SET", "Embedding set", .required = true)

#define PNB__EXIF_ROW(at_exif)                                                                     \
    PNB__ROW_FLAG("exif", (at_exif), "Turn pictures as their EXIF orientation says")

/* Where both sides are sets: the measure may follow from their families. */
#define PNB__SETS_MEASURE_ROW(at_measure)                                                          \
    PNB__ROW_CHOICE("measure", (at_measure), "NAME", "auto" PNB__MEASURE_CHOICES,                  \
                    "Measure between two embeddings; auto is csd, for sets on the sphere the "     \
                    "likelihood of their family (vmf, power_spherical), and for adapted sets "     \
                    "what the adapter names",                                                      \
                    .names = PNB__MEASURE_NAMES, .fallback = "auto")

/* Fields of a pnb__uncertainty_report_sets: what the figures of learned uncertainty are measured
 * on. */
#define PNB__CLAIMS_MASKED_ROWS(at_images, at_texts)                                               \
    PNB__ROW_FILE("masked-images", (at_images), "SET", "The same pictures by `embed --masked`"),   \
        PNB__ROW_FILE("masked-texts", (at_texts), "SET", "The same captions by `embed --masked`")

#define PNB__CLAIMS_CONTROL_ROWS(at_images, at_texts, at_masked_images, at_masked_texts)           \
    PNB__ROW_FILE("control-images", (at_images), "SET", "Pictures",                                \
                  .group =                                                                         \
                      "Control: the same sets by a model whose log-variance head is untrained"),   \
        PNB__ROW_FILE("control-texts", (at_texts), "SET", "Captions"),                             \
        PNB__ROW_FILE("control-masked-images", (at_masked_images), "SET", "Masked pictures"),      \
        PNB__ROW_FILE("control-masked-texts", (at_masked_texts), "SET", "Masked captions")

#endif
