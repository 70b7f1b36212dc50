/* Rows of the commands that encode with a model: where its tokenizer and preprocessing lie. */
#ifndef PNB_CLI_MODEL_PARTS_H
#define PNB_CLI_MODEL_PARTS_H

/* Offsets of two fields `const char *` in the command's arguments. */
#define PNB__MODEL_PARTS_ROWS(at_tokenizer, at_preprocess)                                         \
    {.name = "tokenizer",                                                                          \
     .kind = PNB__OPT_FILE,                                                                        \
     .at = (at_tokenizer),                                                                         \
     .value = "PATH",                                                                              \
     .help = "Tokenizer file or folder in place of the model directory's"},                        \
    {                                                                                              \
        .name = "preprocess", .kind = PNB__OPT_FILE, .at = (at_preprocess), .value = "FILE",       \
        .help = "preprocessor_config.json or open_clip_config.json in place of the model "         \
                "directory's; a directory without either is taken as its family's reference "      \
                "prepares pictures, with a warning"                                                \
    }

#endif
