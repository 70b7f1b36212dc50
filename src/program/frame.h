/* From a command line to an exit status. */
#ifndef PNB_PROGRAM_FRAME_H
#define PNB_PROGRAM_FRAME_H

#include "program/app.h"

/* Finds the command, reads its options, runs it and turns the outcome into an exit status. */
int pnb__program_run(const pnb__program *program, int argc, char **argv);

#endif
