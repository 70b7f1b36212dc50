/* What a made set holds, as every command that makes one shows it. */
#ifndef PNB_COMMANDS_DATA_DATA_STATS_H
#define PNB_COMMANDS_DATA_DATA_STATS_H

#include "penumbra/synth.h"
#include "report/result.h"

/* Options that made sets share: where to, and the splits of `what` ("scenes", "pictures"). */
#define PNB__MADE_OUT_ROW(at_out)                                                                  \
    PNB__ROW_FILE("out", (at_out), "DIR",                                                          \
                  "Folder to write; one that already holds this very set is left alone",           \
                  .required = true, .writes = "/")
#define PNB__MADE_SHARD_ROW(at_size)                                                               \
    PNB__ROW_INT("shard-size", (at_size), "N", "Samples in one tar file", PNB__RANGE(1, 1e7),      \
                 .fallback = "1000")
#define PNB__MADE_SPLIT_ROWS(what, at_val, at_test)                                                \
    PNB__ROW_REAL("val-share", (at_val), "SHARE", "Share of the " what " in the validation split", \
                  PNB__RANGE(0, 0.9), .fallback = "0.1"),                                          \
        PNB__ROW_REAL("test-share", (at_test), "SHARE", "Share of the " what " in the test split", \
                      PNB__RANGE(0, 0.9), .fallback = "0.1")
/* Usage where they leave nothing to train on. */
struct pnb__app;
pnb_status pnb__data_check_shares(struct pnb__app *app, double val_share, double test_share);

/* `n_levels` rows of captions, and the counts. */
void pnb__data_put_stats(const char *dir, const pnb_synth_stats *stats, int n_levels,
                         pnb__result *r);

#endif
