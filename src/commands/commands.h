/* The commands of the program, a folder each. */
#ifndef PNB_COMMANDS_COMMANDS_H
#define PNB_COMMANDS_COMMANDS_H

#include "program/app.h"

/* X(name) in the order in which --help lists them: making, using, measuring. */
#define PNB__COMMANDS(X)                                                                           \
    X(data)                                                                                        \
    X(tokenizer)                                                                                   \
    X(init)                                                                                        \
    X(convert)                                                                                     \
    X(average)                                                                                     \
    X(quantize)                                                                                    \
    X(info)                                                                                        \
    X(check)                                                                                       \
    X(train)                                                                                       \
    X(embed)                                                                                       \
    X(adapt)                                                                                       \
    X(collection)                                                                                  \
    X(search)                                                                                      \
    X(classify)                                                                                    \
    X(filter)                                                                                      \
    X(curate)                                                                                      \
    X(traverse)                                                                                    \
    X(explain)                                                                                     \
    X(probe)                                                                                       \
    X(eval)                                                                                        \
    X(calibrate)                                                                                   \
    X(report)                                                                                      \
    X(reproduce)                                                                                   \
    X(bench)                                                                                       \
    X(serve)

#define PNB__COMMAND_DECLARE(name) extern const pnb__command pnb__cmd_##name;
PNB__COMMANDS(PNB__COMMAND_DECLARE)
#undef PNB__COMMAND_DECLARE

/* Libraries of a build, for --version --verbose. */
extern const pnb__part pnb__parts[];

/* Words of the release before; main.c hands them to the frame. */
extern const pnb__retired pnb__retired_commands[];
extern const pnb__command pnb__cmd_tokenize, pnb__cmd_include;

/* Below tokenizer, curate, eval and data, in files of their own. */
extern const pnb__command pnb__cmd_duplicates, pnb__cmd_outliers, pnb__cmd_select;
extern const pnb__command pnb__cmd_eval_retrieval, pnb__cmd_eval_compare, pnb__cmd_eval_measures,
    pnb__cmd_eval_vqa, pnb__cmd_eval_suite, pnb__cmd_eval_noise, pnb__cmd_eval_shift;
extern const pnb__command pnb__cmd_tokenizer_encode, pnb__cmd_tokenizer_decode;
extern const pnb__command pnb__cmd_data_chains, pnb__cmd_data_ambiguous, pnb__cmd_data_clipart;
extern const pnb__command pnb__cmd_data_stamps, pnb__cmd_data_mixed, pnb__cmd_data_corrupt;
extern const pnb__command pnb__cmd_adapt_compare;
extern const pnb__command pnb__cmd_adapt_active;

#endif
