/* Finding rows of an embedding set by the names other people's files give them. */
#ifndef PNB_TRUTH_ID_RESOLVER_H
#define PNB_TRUTH_ID_RESOLVER_H

#include "base/base.h"
#include "penumbra/truth.h"

typedef enum pnb__name_kind { PNB__NAMES_IMAGES, PNB__NAMES_TEXTS } pnb__name_kind;

/* One way to call a row; of several rows that a name fits, those of the lowest tier count. */
typedef struct pnb__alias {
    size_t name; /* offset into the pool */
    size_t row;
    int tier;
} pnb__alias;

typedef struct pnb__id_resolver {
    const pnb_truth_rows *rows;
    pnb__name_kind kind;
    pnb__buf pool;
    pnb__alias *alias; /* sorted by name, tier, row */
    size_t n;
    pnb__alias *by_text; /* sorted by caption, row; NULL for pictures */
    size_t n_texts;
    uint8_t *taken; /* [rows] a caption's row was given away by text */
    bool unnamed;   /* ids are absent or the row numbers */
} pnb__id_resolver;

/* Free with pnb__id_resolver_reset, after a failure too. */
pnb_status pnb__id_resolver_init(pnb__id_resolver *names, pnb__name_kind kind,
                                 const pnb_truth_rows *rows, pnb_error *err);
void pnb__id_resolver_reset(pnb__id_resolver *names);

/* Row of a name, -1 when there is none. ARG when it fits two rows equally well. */
pnb_status pnb__id_resolver_find(const pnb__id_resolver *names, const char *name, int64_t *row,
                                 pnb_error *err);
/* The first row with this caption (trimmed) that was not given away yet, the first of all when all
 * were, -1 when there is none: equal captions of a file go to equal captions of a set one by one,
 * and all to one row where the set holds each caption once. */
int64_t pnb__id_resolver_take_text(pnb__id_resolver *names, const char *text);

/* Length of a name without an ending such as ".jpg". */
size_t pnb__without_ending(const char *name, size_t n);

#endif
