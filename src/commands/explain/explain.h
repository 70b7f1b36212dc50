/* Attribution: how much uncertainty each word of a caption and each patch of a picture removes. */
#ifndef PNB_COMMANDS_EXPLAIN_EXPLAIN_H
#define PNB_COMMANDS_EXPLAIN_EXPLAIN_H

#include "encode/perturb.h"
#include "program/app.h"
#include "program/result_end.h"

typedef enum pnb__patch_removal {
    PNB__PATCH_DROP, /* the encoder does not see the patch, as in the masked pictures of training */
    PNB__PATCH_GREY, /* the patch is filled with the mean colour */
    PNB__PATCH_USUAL /* as the option was not given: DROP where there are patches, else GREY */
} pnb__patch_removal;

typedef struct pnb__explain_cmd {
    const char *model, *tokenizer, *preprocess;
    pnb__text_list texts, images; /* captions; pictures, folders, data sets */
    bool exif;
    pnb__patch_removal removal;
    int cell;         /* patches along the side of a cell; without patches eighths of a picture */
    const char *html; /* page to write or NULL */
} pnb__explain_cmd;

/* One caption or picture taken apart. */
typedef struct pnb__explained {
    char *what; /* the caption, or the picture's name */
    bool is_image;
    pnb_uncertainty kind; /* the family's: trace, inv_kappa, gg_var */
    double trace;         /* of that kind, with everything */
    size_t n;             /* words, or cells in reading order */
    char **word;          /* [n], captions */
    int columns, rows;    /* of cells, pictures */
    double *without;      /* [n] the same when it is left out */
    double *removed;      /* [n] without - trace: what it removes; below 0: it adds */
    double *h;            /* [n] H(whole in what is left); NaN without variances */
    double *kl;      /* [n] KL(whole||left) - KL(left||whole), below 0 where H should be above */
    pnb_image image; /* as the encoder sees it */
} pnb__explained;

/* Errors  UNSUPPORTED (a model without uncertainty), ARG (cells that leave nothing), FORMAT (a
 *         caption without words), and those of encoding */
pnb_status pnb__explain_run(pnb__app *app, const pnb__explain_cmd *cmd, pnb__result *r);

/* For tests: the attribution alone. Free with pnb__explained_reset. */
pnb_status pnb__explain_text(pnb__app *app, pnb_encoder *encoder, const char *text,
                             pnb__explained *out);
pnb_status pnb__explain_image(pnb__app *app, pnb_encoder *encoder, const pnb_image *pixels,
                              const pnb__explain_cmd *cmd, pnb__explained *out);
void pnb__explained_reset(pnb__explained *e);

/* The page: every caption with its words coloured, every picture under its map. */
pnb_status pnb__explain_page(const pnb__explained *items, size_t n, const char *model,
                             const char *path, pnb_error *err);

#endif
