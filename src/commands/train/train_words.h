/* Words of the command line that name choices of the trainer and its data. */
#ifndef PNB_COMMANDS_TRAIN_TRAIN_WORDS_H
#define PNB_COMMANDS_TRAIN_TRAIN_WORDS_H

#include <stdbool.h>

#include "penumbra/dataset.h"

/* The words are those of the option table and known to be valid. */
pnb_augment pnb__augment_recipe(const char *word); /* none small published */

/* "," or "tab" or "\t" -> the character. */
bool pnb__separator(const char *word, char *out);

/* Applies one "key=numbers" of --aug-cfg; parentheses around the numbers are accepted, as in
 * open_clip's scale='(0.4, 1.0)'. False: unknown key or not its count of numbers. */
bool pnb__augment_set(pnb_augment *augment, const char *word);
const char *pnb__augment_keys(void);

#endif
