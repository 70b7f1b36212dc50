/* Rows that several commands' option tables have in common; each takes the offset of its field. */
#ifndef PNB_COMMANDS_COMMON_OPTION_ROWS_H
#define PNB_COMMANDS_COMMON_OPTION_ROWS_H

/* clang-format off */

/* A field `const char *`: the model. */
#define PNB__MODEL_ROW(at_model)                                                                   \
    {.name = "model",                                                                              \
     .letter = 'm',                                                                                \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_model),                                                                             \
     .value = "DIR",                                                                               \
     .required = true,                                                                             \
     .help = "Model directory, or hf-hub:ORG/NAME from the local cache"}

/* Two fields `const char *`: the two sets of a comparison. */
#define PNB__IMAGES_TEXTS_ROWS(at_images, at_texts)                                                \
    {.name = "images",                                                                             \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_images),                                                                            \
     .value = "SET",                                                                               \
     .required = true,                                                                             \
     .help = "Embedding set of the pictures"},                                                     \
    {.name = "texts",                                                                              \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_texts),                                                                             \
     .value = "SET",                                                                               \
     .required = true,                                                                             \
     .help = "Embedding set of the captions"}

/* A field `bool`. */
#define PNB__TRUST_ROW(at_trust)                                                                   \
    {.name = "trust-calibration",                                                                  \
     .kind = PNB__OPT_FLAG,                                                                        \
     .at = (at_trust),                                                                             \
     .help = "Use a calibration although it, or a set, does not tell its modality and model "      \
             "(files of older versions, .npy without its .json); what differs stays refused"}

/* Two fields `const char *`: where the tokenizer and the preprocessing of a model lie. */
#define PNB__MODEL_PARTS_ROWS(at_tokenizer, at_preprocess)                                         \
    {.name = "tokenizer",                                                                          \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_tokenizer),                                                                         \
     .value = "PATH",                                                                              \
     .help = "Tokenizer file or folder in place of the model directory's"},                        \
    {.name = "preprocess",                                                                         \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_preprocess),                                                                        \
     .value = "FILE",                                                                              \
     .help = "preprocessor_config.json or open_clip_config.json in place of the model "            \
             "directory's; a directory without either is taken as its family's reference "         \
             "prepares pictures, with a warning"}

/* Two lists and two fields `const char *`: what is looked for, and the model that encodes it. */
#define PNB__QUERY_ROWS(at_texts, at_images, at_queries, at_model)                                 \
    {.name = "query-text",                                                                         \
     .kind = PNB__OPT_LIST,                                                                        \
     .instead_of_file = "--queries takes an embedding set",                                                                        \
     .at = (at_texts),                                                                             \
     .value = "STR...",                                                                            \
     .group = "Queries (one kind)",                                                                \
     .help = "Captions"},                                                                          \
    {.name = "query-image",                                                                        \
     .kind = PNB__OPT_FILES,                                                                       \
     .at = (at_images),                                                                            \
     .value = "PATH...",                                                                           \
     .help = "Pictures"},                                                                          \
    {.name = "queries",                                                                            \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_queries),                                                                           \
     .value = "SET",                                                                               \
     .help = "Embedding set of queries, no model needed"},                                         \
    {.name = "model",                                                                              \
     .letter = 'm',                                                                                \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_model),                                                                             \
     .value = "DIR",                                                                               \
     .group = "How",                                                                               \
     .help = "Model directory that made the index; for --query-text and --query-image"}

#define PNB__QUERY_EXIF_ROW(at_exif)                                                               \
    {.name = "exif",                                                                               \
     .kind = PNB__OPT_FLAG,                                                                        \
     .at = (at_exif),                                                                              \
     .help = "Turn pictures as their EXIF orientation says; as given to embed for the index"}

#define PNB__CAPTION_KEY_ROW(at_key)                                                               \
    {.name = "csv-caption-key",                                                                    \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = (at_key),                                                                               \
     .value = "COLUMN",                                                                            \
     .fallback = "title",                                                                          \
     .help = "Column of captions in a csv or tsv file"}

/* Three fields `const char *` and a flag: what belongs together, as pnb_truth_read takes it. */
#define PNB__TRUTH_ROWS(at_truth, at_truth_format, at_split, at_by_class)                          \
    {.name = "truth",                                                                              \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_truth),                                                                             \
     .value = "FILE",                                                                              \
     .help = "What belongs together: a pairs file (picture id, tab, caption id), or the "          \
             "annotations of a data set as docs/formats.md lists them; without it row i belongs "  \
             "to row i"},                                                                          \
    {.name = "truth-format",                                                                       \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = (at_truth_format),                                                                      \
     .value = "NAME",                                                                              \
     .fallback = "auto",                                                                           \
     .choices = "auto|pairs|labels|coco|karpathy|tokens|precomp|folders|id_lists|hierarcaps|"       \
                "dataset",                                                                          \
     .help = "Format of the truth"},                                                               \
    {.name = "split",                                                                              \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = (at_split),                                                                             \
     .value = "NAME",                                                                              \
     .help = "Split of a karpathy file (test, val, train+restval, all) or of class folders "       \
             "(test, or a file of class names); other rows are left out of both sides"},           \
    {.name = "by-class",                                                                           \
     .kind = PNB__OPT_FLAG,                                                                        \
     .at = (at_by_class),                                                                          \
     .help = "Class folders: a caption matches every picture of its class"}

/* Two fields `const char *`. */
#define PNB__COCO_ROWS(at_eccv, at_label_vectors)                                                  \
    {.name = "eccv",                                                                               \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_eccv),                                                                              \
     .value = "DIR",                                                                               \
     .help = "Folder of ECCV Caption's lists (eccv_caption/data): adds COCO 1K and 5K, CxC and "   \
             "ECCV figures; the original pairs are the truth when none is given. COCO 1K (5 "     \
             "folds) and 5K need no folder where --truth is a Karpathy file whose split of 5,000 " \
             "pictures the sets hold"},                                                            \
    {.name = "label-vectors",                                                                      \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_label_vectors),                                                                     \
     .value = "FILE",                                                                              \
     .help = "Labels of the pictures (COCO instances json, npy or csv): adds PMRP, in the folds "  \
             "of COCO 1K too where there are any"}

/* A field `const char *`. */
#define PNB__CLUSTER_ROW(at_cluster)                                                               \
    {.name = "cluster",                                                                            \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = (at_cluster),                                                                           \
     .value = "KEY",                                                                               \
     .help = "Field of the ids files: rows of one value were sampled together and are resampled "  \
             "together. Without it what the truth connects: a picture with its captions, all of a "\
             "class. Captions drawn one by one made intervals far too narrow"}

/* The same where pictures alone are judged: nothing but a field says which belong together. */
#define PNB__PICTURE_CLUSTER_ROW(at_cluster)                                                       \
    {.name = "cluster",                                                                            \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = (at_cluster),                                                                           \
     .value = "KEY",                                                                               \
     .help = "Field of the pictures' ids file: pictures of one value (a scene, a video, a "        \
             "patient) were taken together and are resampled together in the 95% intervals; "      \
             "without it each by itself"}

#define PNB__MEASURE_ROW(at_measure)                                                               \
    {.name = "measure",                                                                            \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = (at_measure),                                                                           \
     .value = "NAME",                                                                              \
     .fallback = "csd",                                                                            \
     .choices = "csd|mean|w2|kl|jeffreys|js|elk|bhattacharyya|inclusion|inclusion_published|"      \
                "avg_l2|match_prob|vmf|vmf_exact|power_spherical",                                                               \
     .help = "Measure between two embeddings"}

#define PNB__UNCERTAINTY_ROW(at_uncertainty)                                                       \
    {.name = "uncertainty",                                                                        \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = (at_uncertainty),                                                                       \
     .value = "NAME",                                                                              \
     .fallback = "trace",                                                                          \
     .choices = "trace|mean_var|geo_std",                                                          \
     .help = "Scalar uncertainty of a Gaussian row"}

#define PNB__SET_ROW(at_set)                                                                       \
    {.name = "set",                                                                                \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_set),                                                                               \
     .value = "SET",                                                                               \
     .required = true,                                                                             \
     .help = "Embedding set"}

#define PNB__EXIF_ROW(at_exif)                                                                     \
    {.name = "exif",                                                                               \
     .kind = PNB__OPT_FLAG,                                                                        \
     .at = (at_exif),                                                                              \
     .help = "Turn pictures as their EXIF orientation says"}

/* Where both sides are sets: the measure may follow from their families. */
#define PNB__SETS_MEASURE_ROW(at_measure)                                                          \
    {.name = "measure",                                                                            \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = (at_measure),                                                                           \
     .value = "NAME",                                                                              \
     .fallback = "auto",                                                                           \
     .choices = "auto|csd|mean|w2|kl|jeffreys|js|elk|bhattacharyya|inclusion|"                     \
                "inclusion_published|avg_l2|match_prob|vmf|vmf_exact|power_spherical",             \
     .help = "Measure between two embeddings; auto is csd, and for sets on the sphere the "        \
             "likelihood of their family (vmf, power_spherical)"}

/* Fields of a pnb__claims_sets: what the figures of learned uncertainty are measured on. */
#define PNB__CLAIMS_MASKED_ROWS(at_images, at_texts)                                               \
    {.name = "masked-images",                                                                      \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_images),                                                                            \
     .value = "SET",                                                                               \
     .help = "The same pictures by `embed --masked`"},                                             \
    {.name = "masked-texts",                                                                       \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_texts),                                                                             \
     .value = "SET",                                                                               \
     .help = "The same captions by `embed --masked`"}

#define PNB__CLAIMS_CONTROL_ROWS(at_images, at_texts, at_masked_images, at_masked_texts)           \
    {.name = "control-images",                                                                     \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_images),                                                                            \
     .value = "SET",                                                                               \
     .group = "Control: the same sets by a model whose log-variance head is untrained",            \
     .help = "Pictures"},                                                                          \
    {.name = "control-texts",                                                                      \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_texts),                                                                             \
     .value = "SET",                                                                               \
     .help = "Captions"},                                                                          \
    {.name = "control-masked-images",                                                              \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_masked_images),                                                                     \
     .value = "SET",                                                                               \
     .help = "Masked pictures"},                                                                   \
    {.name = "control-masked-texts",                                                               \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_masked_texts),                                                                      \
     .value = "SET",                                                                               \
     .help = "Masked captions"}

/* clang-format on */

#endif
