/* What AMX gives of this core, moment by moment, for bench/README.md.
 *
 *   time_tiles [WINDOWS]      default 2000, of 500 steps each
 *
 * A step is the four products of 32 rows with 32 columns, or the four loads they need from the
 * first cache, or both. Prints the nanoseconds of a step: least, quarters, most; and beside them a
 * loop of plain additions, which says whether the core is shared: a guest cannot see its neighbour.
 * The numbers are random, as zeros draw less power. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#if defined(__x86_64__)

typedef struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} configuration;

#define LOAD(t, from)                                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((size_t)64) : "memory")
#define MULTIPLY(c, a, b)                                                                          \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")

enum {
    MOST_WINDOWS = 1000000,
    STEPS = 500,
    TILE = 1024,
    PRODUCTS = 0,
    LOADS,
    BOTH,
    ADDITIONS,
    N_KINDS
};

static void multiply_once(const unsigned char *p)
{
    (void)p;
    MULTIPLY(0, 4, 6);
    MULTIPLY(1, 4, 7);
    MULTIPLY(2, 5, 6);
    MULTIPLY(3, 5, 7);
}

static void load_once(const unsigned char *p)
{
    LOAD(4, p);
    LOAD(6, p + TILE);
    LOAD(7, p + 2 * TILE);
    LOAD(5, p + 3 * TILE);
}

static void do_both(const unsigned char *p)
{
    LOAD(4, p);
    LOAD(6, p + TILE);
    MULTIPLY(0, 4, 6);
    LOAD(7, p + 2 * TILE);
    MULTIPLY(1, 4, 7);
    LOAD(5, p + 3 * TILE);
    MULTIPLY(2, 5, 6);
    MULTIPLY(3, 5, 7);
}

static void add_once(const unsigned char *p)
{
    (void)p;
    __asm__ volatile(".rept 32\nadd $1,%%rax\nadd $1,%%rcx\n.endr" ::: "rax", "rcx", "cc");
}

static void (*const kinds[N_KINDS])(const unsigned char *) = {multiply_once, load_once, do_both,
                                                              add_once};
static const char *const names[N_KINDS] = {"4 products", "4 loads", "both", "64 additions"};

static double window(int kind, const unsigned char *p)
{
    double start = pnb__now_s();
    for (int i = 0; i < STEPS; i++)
        kinds[kind](p);
    return (pnb__now_s() - start) / STEPS * 1e9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int n, double *found[N_KINDS])
{
    unsigned char *tiles = pnb__alloc_aligned(4 * TILE);
    configuration c = {.palette = 1};
    pnb__rng rng;
    if (tiles == NULL)
        exit(1);
    pnb__rng_init(&rng, 1, 0);
    for (size_t i = 0; i < 2 * TILE; i++) /* halves of about 1 */
        ((uint16_t *)(void *)tiles)[i] = (uint16_t)(0x3f80 + (pnb__rng_u32(&rng) & 0x803f));
    for (int t = 0; t < 8; t++)
        c.rows[t] = 16, c.row_bytes[t] = 64;
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
    load_once(tiles);
    for (int i = 0; i < n; i++)
        for (int kind = 0; kind < N_KINDS; kind++)
            found[kind][i] = window(kind, tiles);
    __asm__ volatile("tilerelease");
    pnb__free_aligned(tiles);
}

int main(int argc, char **argv)
{
    pnb__cpu cpu = pnb__cpu_look();
    char *end = NULL;
    long asked = argc > 1 ? strtol(argv[1], &end, 10) : 2000;
    int n = asked > MOST_WINDOWS || (end != NULL && (end == argv[1] || *end != '\0'))
                ? 0
                : (int)PNB_MAX(asked, 0L);
    double *found[N_KINDS];
    if (!cpu.amx_allowed || !cpu.amx_bf16 || n < 1) {
        fprintf(stderr,
                n < 1 ? "time_tiles: WINDOWS is 1 to 1000000\n"
                      : "time_tiles: this processor has no tiles, or the system keeps them\n");
        return 2;
    }
    for (int kind = 0; kind < N_KINDS; kind++)
        if ((found[kind] = malloc((size_t)n * sizeof(double))) == NULL)
            return 1;
    measure(n, found);
    printf("%s, nanoseconds of a step in %d windows\n%-14s %8s %8s %8s %8s %8s\n", cpu.name, n, "",
           "least", "quarter", "median", "quarter", "most");
    for (int kind = 0; kind < N_KINDS; kind++) {
        double *x = found[kind];
        qsort(x, (size_t)n, sizeof *x, by_size);
        printf("%-14s %8.1f %8.1f %8.1f %8.1f %8.1f\n", names[kind], x[0], x[n / 4], x[n / 2],
               x[3 * n / 4], x[n - 1]);
        free(x);
    }
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "time_tiles: this processor has no tiles\n");
    return 2;
}

#endif
