/* A command that several processes run together: tied before anything is said of its options, so
 * that what goes wrong is said once. */
#ifndef PNB_PROGRAM_TOGETHER_H
#define PNB_PROGRAM_TOGETHER_H

#include "program/app.h"

/* Ties the processes that a launcher started, for a command that works so; app->ranks stays NULL
 * alone, and where the command works alone, whose outputs then are refused (outputs.h). All but
 * rank 0 fall silent but for failures of their own. `args` are the command's, as far as they could
 * be read: --rank-timeout says how long the others are waited for. Errors  those of pnb_launch_read
 * and pnb_peers_open; ARG (another program: named) */
pnb_status pnb__together_open(pnb__app *app, const pnb__program *program,
                              const pnb__command *command, const void *args);
/* Before a context is made: cpu beside cuda is refused, since their rows differ in rounding; of
 * several devices of a kind each process has its own.  Errors  ARG (named) */
pnb_status pnb__together_agree_device(pnb__app *app, pnb_device device);
/* Tells the others of a failure that they do not know of. */
void pnb__together_fail(pnb__app *app, pnb_status status);
/* Whether this process prints what went wrong. */
bool pnb__together_speaks(const pnb__app *app);
/* Whether this process writes the outputs of a command that several run. */
bool pnb__together_writes(const pnb__app *app);
/* Launchers give standard input to rank 0: from now on app->in has it on all of them.
 * Errors  IO, NOMEM, those of other ranks */
pnb_status pnb__together_share_input(pnb__app *app);
void pnb__together_close(pnb__app *app);

/* Whether processes of this job share this one's processors: several are on the machine, and the
 * launcher bound them to none. */
bool pnb__together_is_crowded(const pnb__app *app);
/* Threads of a process that shares its machine with others of its job, where nobody names a number:
 * its part of the processors, unless the launcher bound it to some of them. 0 alone: all. */
int pnb__together_threads(const pnb__app *app);

#endif
