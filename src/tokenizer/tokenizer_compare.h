/* Whether two tokenizers are one. */
#ifndef PNB_TOKENIZER_TOKENIZER_COMPARE_H
#define PNB_TOKENIZER_TOKENIZER_COMPARE_H

#include "penumbra/tokenizer.h"

enum { PNB__TOKENIZER_WHY = 256 };

/* What the second gives other ids by, in words behind "its tokenizer is another: "; "" where
 * nothing was found, whatever files they come from. Their padding is not looked at, which a model's
 * configuration may still say.  Errors  those of encoding */
pnb_status pnb__tokenizer_compare(const pnb_tokenizer *first, const pnb_tokenizer *second,
                                  char why[PNB__TOKENIZER_WHY], pnb_error *err);

#endif
