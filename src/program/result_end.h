/* The end of a command: what it found, printed or saved with what is to be said of its sets. */
#ifndef PNB_PROGRAM_RESULT_END_H
#define PNB_PROGRAM_RESULT_END_H

#include "report/result.h"

/* Both add the key `unknown_provenance`, once: the embedding sets in use that do not tell their
 * model or modality (pnb__set_load), if there are any. */
struct pnb__app;
/* The JSON object into a file, whole or not at all. */
pnb_status pnb__result_save(pnb__result *r, struct pnb__app *app, const char *path);
/* The end of a command: prints r as --json asks when `status` is OK and something is in it, frees
 * it in any case. Returns status, or what kept it from being printed. */
pnb_status pnb__result_finish(pnb__result *r, struct pnb__app *app, pnb_status status);

#endif
