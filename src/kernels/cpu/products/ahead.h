/* Memory that will be used soon, fetched a few lines at a time while tiles are computed: weights
 * larger than the caches otherwise arrive at the speed of one miss after the other, and fetched at
 * once they would take the places of the misses of what is computed now. */
#ifndef PNB_KERNELS_CPU_AHEAD_H
#define PNB_KERNELS_CPU_AHEAD_H

#include <stddef.h>

#include "base/loop.h"

typedef struct ahead {
    const char *row;
    size_t ld, rows, width, column, lines_per_step; /* in bytes */
} ahead;

/* n_steps: how often ahead_step will be called meanwhile. */
static inline ahead ahead_in(const void *first, size_t ld, size_t rows, size_t width,
                             size_t n_steps)
{
    size_t lines = rows * ((width + PNB__LINE - 1) / PNB__LINE + 1);
    return (ahead){first, ld, rows, width, 0, lines / (n_steps > 0 ? n_steps : 1) + 1};
}

PNB__INLINE void ahead_step(ahead *a)
{
    const char *row = a->row;
    size_t rows = a->rows, column = a->column;
    for (size_t i = a->lines_per_step; i > 0 && rows > 0; i--) {
        __builtin_prefetch(row + column, 0, 2);
        column += PNB__LINE;
        /* one line more: rows need not start at a line */
        if (column >= a->width + PNB__LINE - 1) {
            column = 0;
            row += a->ld;
            rows--;
        }
    }
    a->row = row, a->rows = rows, a->column = column;
}

/* What a tile's computing leaves time to fetch, step by step: row after row what its sums will be
 * written and added to, and what comes next. NULL: nothing. */
typedef struct pnb__tile_later {
    const char *c, *residual; /* residual: or NULL */
    size_t ld_c, ld_residual; /* in bytes */
    ahead next;
} pnb__tile_later;

/* A row is two lines at most. */
PNB__INLINE void tile_later_step(pnb__tile_later *later, size_t step, size_t rows)
{
    if (step < rows) {
        const char *c = later->c + step * later->ld_c;
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + PNB__LINE, 1);
        if (later->residual != NULL) {
            const char *residual = later->residual + step * later->ld_residual;
            __builtin_prefetch(residual);
            __builtin_prefetch(residual + PNB__LINE);
        }
    }
    ahead_step(&later->next);
}

#endif
