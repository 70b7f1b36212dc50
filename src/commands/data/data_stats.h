/* What a made set holds, as every command that makes one shows it. */
#ifndef PNB_COMMANDS_DATA_DATA_STATS_H
#define PNB_COMMANDS_DATA_DATA_STATS_H

#include "penumbra/synth.h"
#include "report/result.h"

/* `n_levels` rows of captions, and the counts. */
void pnb__data_put_stats(const char *dir, const pnb_synth_stats *stats, int n_levels,
                         pnb__result *r);

#endif
