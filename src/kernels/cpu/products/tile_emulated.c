/* The tile unit in plain C: see tile_emulated.h for what each instruction does.
 *
 * Written for exactness and not for speed: it is what machines without the unit test the code for
 * tiles with, and what the unit's results are compared to where there is one. */
#include "kernels/cpu/products/tile_emulated.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/bf16.h"

void pnb__tile_zero(pnb__tile *t)
{
    memset(t->row, 0, sizeof t->row);
}

void pnb__tile_load(pnb__tile *t, const void *from, size_t step)
{
    pnb__tile_zero(t);
    for (size_t r = 0; r < t->rows; r++)
        memcpy(t->row[r], (const unsigned char *)from + r * step, t->row_bytes);
}

void pnb__tile_store(const pnb__tile *t, void *to, size_t step)
{
    for (size_t r = 0; r < t->rows; r++)
        memcpy((unsigned char *)to + r * step, t->row[r], t->row_bytes);
}

static uint16_t half_at(const unsigned char *row, size_t i)
{
    uint16_t half;
    memcpy(&half, row + 2 * i, sizeof half);
    return half;
}

static float sum_at(const unsigned char *row, size_t i)
{
    float sum;
    memcpy(&sum, row + 4 * i, sizeof sum);
    return sum;
}

/* One row of c: even and odd places of K are summed apart from 0, and meet c only at the end. */
static void bf16_row(pnb__tile *c, const unsigned char *a, size_t pairs, const pnb__tile *b,
                     size_t m)
{
    for (size_t n = 0; n < c->row_bytes / 4; n++) {
        float even = 0, odd = 0;
        for (size_t k = 0; k < pairs; k++) {
            even = pnb__bf16_fma(half_at(a, 2 * k), half_at(b->row[k], 2 * n), even);
            odd = pnb__bf16_fma(half_at(a, 2 * k + 1), half_at(b->row[k], 2 * n + 1), odd);
        }
        float both = pnb__flushed(even + odd);
        float sum = pnb__flushed(pnb__flushed(sum_at(c->row[m], n)) + both);
        memcpy(c->row[m] + 4 * n, &sum, sizeof sum);
    }
}

void pnb__tile_dpbf16ps(pnb__tile *c, const pnb__tile *a, const pnb__tile *b)
{
    for (size_t m = 0; m < c->rows; m++)
        bf16_row(c, a->row[m], a->row_bytes / 4, b, m);
}

static int byte_of(unsigned char byte, bool is_signed)
{
    return is_signed ? (signed char)byte : byte;
}

static void bytes(pnb__tile *c, const pnb__tile *a, bool a_signed, const pnb__tile *b,
                  bool b_signed)
{
    for (size_t m = 0; m < c->rows; m++)
        for (size_t n = 0; n < c->row_bytes / 4; n++) {
            uint32_t sum; /* unsigned: wrapping around is defined */
            memcpy(&sum, c->row[m] + 4 * n, sizeof sum);
            for (size_t k = 0; k < a->row_bytes; k++)
                sum += (uint32_t)(byte_of(a->row[m][k], a_signed) *
                                  byte_of(b->row[k / 4][4 * n + k % 4], b_signed));
            memcpy(c->row[m] + 4 * n, &sum, sizeof sum);
        }
}

void pnb__tile_dpbssd(pnb__tile *c, const pnb__tile *a, const pnb__tile *b)
{
    bytes(c, a, true, b, true);
}

void pnb__tile_dpbsud(pnb__tile *c, const pnb__tile *a, const pnb__tile *b)
{
    bytes(c, a, true, b, false);
}

void pnb__tile_dpbusd(pnb__tile *c, const pnb__tile *a, const pnb__tile *b)
{
    bytes(c, a, false, b, true);
}

void pnb__tile_dpbuud(pnb__tile *c, const pnb__tile *a, const pnb__tile *b)
{
    bytes(c, a, false, b, false);
}
