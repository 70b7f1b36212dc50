/* Memory of this process as the system counts it. */
#ifndef PNB_BASE_RESIDENT_H
#define PNB_BASE_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pnb__resident {
    size_t now, peak; /* bytes that lie in memory, and the most that ever did */
} pnb__resident;

/* false: the system does not say (no /proc); *out is 0 then. */
bool pnb__resident_bytes(pnb__resident *out);

#endif
