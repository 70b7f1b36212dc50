/* How a tile reads rows that lie apart: a pointer for every three, the others one and two strides
 * behind it, which an address can say without a register of its own. Left to itself, GCC 12 keeps
 * an index or a pointer for each row in memory, and tiles of few rows wait for them. */
#ifndef PNB_KERNELS_CPU_ROW_POINTERS_H
#define PNB_KERNELS_CPU_ROW_POINTERS_H

#define PNB__ROW_POINTERS(rows) (((rows) + 2) / 3)

/* Sums with it are made anew in an address instead of being kept in further registers. */
#define PNB__KEEP_IN_REGISTER(x) __asm__("" : "+r"(x))

#endif
