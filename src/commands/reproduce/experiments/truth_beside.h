/* The second table of truth-table: leads before controls. */
#ifndef PNB_COMMANDS_REPRODUCE_TRUTH_BESIDE_H
#define PNB_COMMANDS_REPRODUCE_TRUTH_BESIDE_H

#include "commands/reproduce/reproduce.h"

/* Field of the pictures' rows that holds their number of shapes. */
#define PNB__TRUTH_SHAPES_FIELD "ambiguity.n_shapes"

/* The table "beside": a line for each method and side, its rho, the best control and the lead. */
void pnb__truth_beside_put(const pnb__reproduction *run, pnb__result *r);
/* The page's section of it. */
void pnb__truth_beside_draw(const pnb__reproduction *run, pnb__page *page);

#endif
