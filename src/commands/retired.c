/* Words that were commands of their own in release 0.1 and are subcommands or options now. They
 * take the options they took, and a line says what to type instead; they go with the next release.
 */
#include "commands/commands.h"

const pnb__retired pnb__retired_commands[] = {
    {&pnb__cmd_duplicates, "curate duplicates", "curate duplicates"},
    {&pnb__cmd_outliers, "curate outliers", "curate outliers"},
    {&pnb__cmd_select, "curate select", "curate select"},
    {&pnb__cmd_tokenize, "tokenizer encode` or `penumbra tokenizer decode", "tokenizer encode"},
    {&pnb__cmd_include, "search --inclusion contains|inside", NULL}, /* not of every search */
    {NULL, NULL, NULL},
};
