/* AMX's tile instructions in plain C, bit for bit, after the pseudo-code of Intel's manual (volume
 * 2): eight tiles of up to 16 rows of 64 bytes. Rows and columns beyond a tile's are zero after
 * every instruction that writes it. */
#ifndef PNB_KERNELS_CPU_TILE_EMULATED_H
#define PNB_KERNELS_CPU_TILE_EMULATED_H

#include <stddef.h>
#include <stdint.h>

enum { PNB__TILE_ROWS = 16, PNB__TILE_BYTES = 64, PNB__N_TILES = 8 };

typedef struct pnb__tile {
    size_t rows, row_bytes; /* as LDTILECFG set them */
    unsigned char row[PNB__TILE_ROWS][PNB__TILE_BYTES];
} pnb__tile;

void pnb__tile_zero(pnb__tile *t);
/* TILELOADD, TILESTORED: rows `step` bytes apart in memory. */
void pnb__tile_load(pnb__tile *t, const void *from, size_t step);
void pnb__tile_store(const pnb__tile *t, void *to, size_t step);

/* c (M,N) += a (M,K) b (K,N), pairs or quads of K beside each other in the rows of b.
 * TDPBF16PS: for each pair e += a0 b0 and o += a1 b1 from 0, fused; then c += e + o. All round to
 *            nearest, numbers below the normal range are 0 before and after.
 * TDPB..D:   bytes to sums of 32 bits that wrap around; s signed, u unsigned, a's letter first. */
void pnb__tile_dpbf16ps(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);
void pnb__tile_dpbssd(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);
void pnb__tile_dpbsud(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);
void pnb__tile_dpbusd(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);
void pnb__tile_dpbuud(pnb__tile *c, const pnb__tile *a, const pnb__tile *b);

#endif
