/* Roots of data sets that lie in one folder a split. */
#ifndef PNB_COMMANDS_EMBED_SPLIT_ROOTS_H
#define PNB_COMMANDS_EMBED_SPLIT_ROOTS_H

#include "program/app.h"

/* Words in which a folder that holds a CLIP_benchmark data set, ROOT/{train,test}/0.tar ... with
 * nshards.txt, has become the shards of `split`, in order of number; anything else stays. Free with
 * pnb__roots_free.
 * Errors  NOT_FOUND (it has other splits only), FORMAT (nshards.txt), NOMEM */
pnb_status pnb__roots_resolve(pnb__app *app, pnb__text_list *out, const pnb__text_list *words,
                              const char *split);
void pnb__roots_free(pnb__text_list *words);

#endif
