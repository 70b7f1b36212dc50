/* What a row does not say of its counterpart. Of a sample of pairs it is known where either row
 * alone is placed, x and x'; what the row's own process says there differs by
 *   strayed_d = (mean_d(x') - mean_d(x))^2
 * and the mean of it over pairs whose rows lie near a new one is the spread of
 *   p(g | z) = int p(g | x) p(x | z) dx       Venkataramanan et al. 2025, section 3.3
 * where x is the latent that the pair may have, given one of its rows. It is taken from what was
 * seen, not by slopes of the mean: counterparts of vague rows lie a lengthscale away. */
#include <string.h>

#include "adapt/grove/grove.h"

enum { CHUNK = PNB__GROVE_CHUNK };

/* Of n pairs from `begin` on; room (2 D,n). */
static pnb_status find_chunk(pnb__grove *g, int side, pnb__grove_reading *w, size_t begin, size_t n,
                             double *room, pnb_error *err)
{
    pnb__grove_part *part = &g->part[side];
    const pnb__grove_part *other = &g->part[!side];
    size_t d = part->d;
    double *here = room, *there = room + d * n;
    pnb_status status = pnb__grove_say(w, part->found + begin * g->q, n, here, NULL, err);
    if (status == PNB_OK)
        status = pnb__grove_say(w, other->found + begin * g->q, n, there, NULL, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        for (size_t k = 0; k < d; k++) {
            double by = there[k * n + i] - here[k * n + i];
            part->strayed[(begin + i) * d + k] = by * by;
        }
    return status;
}

pnb_status pnb__grove_find_strays(pnb__grove *g, int side, pnb_error *err)
{
    pnb__grove_part *part = &g->part[side];
    double *room = NULL;
    pnb__grove_reading *w = NULL;
    pnb_status status;
    pnb__free(part->strayed);
    part->strayed = NULL;
    PNB_TRY(PNB_ALLOC_ROWS(part->strayed, part->n_missed, part->d, err));
    PNB_TRY(PNB_ALLOC_ROWS(room, 2 * part->d, (size_t)CHUNK, err));
    PNB_TRY(pnb__grove_reading_open(&w, g, side, err));
    for (size_t begin = 0; begin < part->n_missed; begin += CHUNK)
        PNB_TRY(find_chunk(g, side, w, begin, PNB_MIN(part->n_missed - begin, (size_t)CHUNK), room,
                           err));
done:
    pnb__grove_reading_free(w);
    pnb__free(room);
    return status;
}
