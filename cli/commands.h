/* The commands of the program, one file each. */
#ifndef PNB_CLI_COMMANDS_H
#define PNB_CLI_COMMANDS_H

#include "app/app.h"

extern const pnb__command pnb__cmd_data;
extern const pnb__command pnb__cmd_tokenizer;
extern const pnb__command pnb__cmd_tokenize;
extern const pnb__command pnb__cmd_init;
extern const pnb__command pnb__cmd_convert;
extern const pnb__command pnb__cmd_info;
extern const pnb__command pnb__cmd_quantize;
extern const pnb__command pnb__cmd_check;
extern const pnb__command pnb__cmd_train;
extern const pnb__command pnb__cmd_embed;
extern const pnb__command pnb__cmd_eval;
extern const pnb__command pnb__cmd_calibrate;
extern const pnb__command pnb__cmd_search;
extern const pnb__command pnb__cmd_report;
extern const pnb__command pnb__cmd_bench;

#endif
