/* What a path holds, told in a few lines. */
#ifndef PNB_APP_DESCRIBE_H
#define PNB_APP_DESCRIBE_H

#include "app/app.h"
#include "app/result.h"

/* A model directory, an embedding set, a tensor file, a tokenizer, or else a data set.
 * Errors  those of the reader that fits */
pnb_status pnb__describe_path(pnb__app *app, const char *path, pnb__result *r);

#endif
