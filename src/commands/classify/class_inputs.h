/* Pictures to classify with the classes they belong to. */
#ifndef PNB_COMMANDS_CLASSIFY_CLASS_INPUTS_H
#define PNB_COMMANDS_CLASSIFY_CLASS_INPUTS_H

#include "commands/classify/class_names.h"
#include "commands/classify/id_file.h"
#include "encode/encoder.h"
#include "encode/inputs/inputs.h"
#include "penumbra/embeddings.h"
#include "program/app.h"

/* How a data set is read. */
typedef struct pnb__class_source_opts {
    const char *split;                       /* "test" */
    const char *csv_img_key, *csv_label_key; /* NULL: as pnb_dataset_opts */
    const pnb__text_list *words; /* all that was named when it is more than `what`; or NULL */
    bool exif;
} pnb__class_source_opts;

/* An embedding set, or pictures that have yet to be embedded. */
typedef struct pnb__class_source {
    char *what;                /* as named; for a data set the split's files */
    pnb__image_inputs *images; /* NULL for an embedding set */
    pnb_embeddings *set;       /* after pnb__class_source_embed */
    pnb__texts classes;        /* names that the source gives, by number; may be empty */
    int32_t *label;            /* (set->n) after pnb__class_source_label, -1 unknown */
    bool exif;
} pnb__class_source;

/* Opens an embedding set (.safetensors or .npy), a data set, or pictures: several words, a picture
 * file, a glob, or "-", one path a line of standard input. Release with pnb__class_source_reset,
 * after a failure too. */
pnb_status pnb__class_source_open(pnb__class_source *s, pnb__app *app, const char *what,
                                  const pnb__class_source_opts *opts);
/* Embeds what was opened as pictures; nothing to do for a set. */
pnb_status pnb__class_source_embed(pnb__class_source *s, pnb__app *app, pnb_encoder *encoder);

/* Numbers every row by the classes: from `labels` (a file of `id TAB class`, class a name or a
 * number; NULL: none) or from what the rows carry. Names count first; where some are unknown but
 * the source has as many classes, or names none, its numbers are taken.
 * Errors  NOT_FOUND (an id or a class that is not there), ARG (a number past the classes, a name
 *         that two classes share), FORMAT */
pnb_status pnb__class_source_label(pnb__class_source *s, const pnb__texts *classes,
                                   const char *labels, pnb_error *err);
/* Row of each input, row[pnb__image_inputs_count(s->images)], SIZE_MAX where it was skipped.
 * Errors  NOMEM, and those of naming a row */
pnb_status pnb__class_source_rows(const pnb__class_source *s, size_t *row, pnb_error *err);
void pnb__class_source_reset(pnb__class_source *s);

/* "label" (-1) and "class" (NULL; else free with pnb__free) of a row's extra fields. */
pnb_status pnb__row_class(const pnb_embeddings *set, size_t row, int64_t *label, char **name,
                          pnb_error *err);

#endif
