/* Names of models on the command line. */
#ifndef PNB_COMMANDS_COMMON_MODEL_PATH_H
#define PNB_COMMANDS_COMMON_MODEL_PATH_H

#include "program/app.h"

/* The folder or built-in name behind `name`, allocated (pnb__free):
 *   local-dir:PATH          PATH
 *   hf-hub:ORG/NAME[@REV]   the snapshot in the local cache of Hugging Face
 *   shipped:NAME            a model that comes with the program (share/penumbra/models)
 * anything else stands for itself. Nothing is downloaded.
 * Errors  NOT_FOUND (the text names the folder and the files wanted), ARG (no ORG/NAME, no name) */
pnb_status pnb__model_path(const pnb__app *app, const char *name, char **path, pnb_error *err);

#endif
