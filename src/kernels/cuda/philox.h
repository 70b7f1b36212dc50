/* Blocks of Philox4x32-10 on a device: the words that base/random gives on the host.
 *
 * Counter-based, so each thread draws what it needs without state: dropout asks for the words
 * themselves, samples for the normal that a block makes. */
#ifndef PNB_KERNELS_CUDA_PHILOX_H
#define PNB_KERNELS_CUDA_PHILOX_H

#include "kernels/cuda/cuda.h"

struct pnb__cuda_words {
    unsigned c[4];
};

__device__ static inline pnb__cuda_words pnb__cuda_philox(uint64_t seed, uint64_t stream,
                                                          uint64_t counter)
{
    unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
    pnb__cuda_words w = {{static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32),
                          static_cast<unsigned>(stream), static_cast<unsigned>(stream >> 32)}};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * w.c[0];
        uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * w.c[2];
        w.c[0] = static_cast<unsigned>(p1 >> 32) ^ w.c[1] ^ k0;
        w.c[1] = static_cast<unsigned>(p1);
        w.c[2] = static_cast<unsigned>(p0 >> 32) ^ w.c[3] ^ k1;
        w.c[3] = static_cast<unsigned>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return w;
}

#endif
