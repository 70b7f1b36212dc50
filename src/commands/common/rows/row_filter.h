/* Options that say which rows of a collection are meant. */
#ifndef PNB_COMMANDS_COMMON_ROW_FILTER_H
#define PNB_COMMANDS_COMMON_ROW_FILTER_H

#include "penumbra/store.h"
#include "program/app.h"

typedef struct pnb__row_filter {
    pnb__text_list tags;
    const char *since, *until;               /* times as typed */
    double min_uncertainty, max_uncertainty; /* NaN: not given */
} pnb__row_filter;

/* Rows of the struct that AT says the place of. */
#define PNB__ROW_FILTER_ROWS(at_tags, at_since, at_until, at_min, at_max)                          \
    PNB__ROW_LIST("tags", (at_tags), "TAG...", "Rows that have all of these tags",                 \
                  .group = "Which rows of the collection"),                                        \
        PNB__ROW_TEXT("since", (at_since), "TIME",                                                 \
                      "Rows of inputs no older than this: 2024-05-31, 2024-05-31T18:00:00 (UTC), " \
                      "or Unix seconds"),                                                          \
        PNB__ROW_TEXT("until", (at_until), "TIME",                                                 \
                      "Rows of inputs no newer than this; of a day, "                              \
                      "its end"),                                                                  \
        PNB__ROW_REAL("min-uncertainty", (at_min), "U", "Rows at least this uncertain"),           \
        PNB__ROW_REAL("max-uncertainty", (at_max), "U", "Rows at most this uncertain")

/* *given: whether any is there. The lists of `args` must outlive the filter. Errors  ARG (usage) */
pnb_status pnb__row_filter_read(pnb__app *app, const pnb__row_filter *args, pnb_store_filter *out,
                                bool *given);
bool pnb__row_filter_given(const pnb__row_filter *args);

/* Unix seconds as "2024-05-31T18:00:00Z", and back; of a day without a time its first second, or
 * with `is_end` its last. False: no such time. */
void pnb__time_text(int64_t seconds, char text[32]);
bool pnb__time_read(const char *text, bool is_end, int64_t *out);

#endif
