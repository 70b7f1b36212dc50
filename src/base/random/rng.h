/* One round of Philox4x32, shared by what makes one block and what makes many side by side; and the
 * normal of a block.
 *
 *   (c0,c1,c2,c3) <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef PNB_BASE_RNG_H
#define PNB_BASE_RNG_H

#include <stdint.h>

#include "base/loop.h"

#define PNB__PHILOX_ROUNDS 10
#define PNB__PHILOX_WEYL_0 0x9E3779B9u /* what the key grows by: the golden ratio */
#define PNB__PHILOX_WEYL_1 0xBB67AE85u /* and sqrt(3) - 1 */

/* Four words by name and by value: of an array in a loop the compiler makes no vectors. */
typedef struct pnb__philox {
    uint32_t c0, c1, c2, c3;
} pnb__philox;

PNB__UNCHECKED PNB__INLINE pnb__philox pnb__philox_round(pnb__philox c, uint32_t k0, uint32_t k1)
{
    uint64_t p0 = (uint64_t)0xD2511F53u * c.c0, p1 = (uint64_t)0xCD9E8D57u * c.c2;
    return (pnb__philox){(uint32_t)(p1 >> 32) ^ c.c1 ^ k0, (uint32_t)p1,
                         (uint32_t)(p0 >> 32) ^ c.c3 ^ k1, (uint32_t)p0};
}

/* The normal that four words of a block give. */
double pnb__rng_normal_of(const uint32_t words[4]);

#endif
