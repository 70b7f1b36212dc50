/* penumbra curate duplicates | outliers | select: which rows of a set repeat, stand alone, or
 * should be labelled next.
 *
 * A family of commands; each has its options in a file of its own, curate.c does their work. */
#include "commands/commands.h"

static const pnb__command *const subs[] = {&pnb__cmd_duplicates, &pnb__cmd_outliers,
                                           &pnb__cmd_select, NULL};
const pnb__command pnb__cmd_curate = {.name = "curate",
                                      .summary =
                                          "find duplicates and outliers, choose what to label next",
                                      .subs = subs};
