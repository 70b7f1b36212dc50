/* Bump allocator for things that die together, e.g. everything one training step computes.
 *
 * A list of blocks; `current` is the one being filled, all blocks after it are empty. Reset goes
 * back to the first block and keeps the memory, so a loop that asks for the same things each time
 * stops allocating after its first turn. Under ASan all memory that is not handed out is poisoned,
 * with a gap after each piece, so that overruns and uses after reset are caught. */
#include <string.h>

#include "base/base.h"
#include "base/loop.h"

#ifdef PNB__HAS_ASAN
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define GAP_BYTES 64
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define GAP_BYTES 0
#endif

#define ALIGNMENT 64
#define DEFAULT_BLOCK_BYTES ((size_t)64 * 1024)

struct pnb__arena_block {
    pnb__arena_block *next;
    size_t capacity, used; /* bytes of data, multiples of ALIGNMENT */
    unsigned char pad[ALIGNMENT - sizeof(void *) - 2 * sizeof(size_t)];
    unsigned char data[]; /* aligned because the header fills exactly one unit */
};

void pnb__arena_init(pnb__arena *a, size_t block_bytes)
{
    a->first = a->current = NULL;
    a->block_bytes = block_bytes > 0 ? block_bytes : DEFAULT_BLOCK_BYTES;
}

static pnb__arena_block *block_create(size_t capacity)
{
    size_t bytes;
    if (pnb__add_overflows(capacity, sizeof(pnb__arena_block), &bytes))
        return NULL;
    pnb__arena_block *block = pnb__alloc_aligned(bytes);
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->capacity = capacity;
    block->used = 0;
    POISON(block->data, capacity);
    return block;
}

static bool fits(const pnb__arena_block *block, size_t bytes)
{
    return block->capacity - block->used >= bytes;
}

/* The first block from `current` on with room for `bytes`; a new one at the end if there is none.
 */
static pnb__arena_block *find_block(pnb__arena *a, size_t bytes)
{
    pnb__arena_block *last = NULL;
    for (pnb__arena_block *block = a->current; block != NULL; block = block->next) {
        if (fits(block, bytes))
            return block;
        last = block;
    }
    size_t wanted = PNB_MAX(bytes, a->block_bytes);
    size_t rounded;
    if (pnb__add_overflows(wanted, ALIGNMENT - 1, &rounded))
        return NULL;
    pnb__arena_block *block = block_create(rounded & ~(size_t)(ALIGNMENT - 1));
    if (block == NULL)
        return NULL;
    if (last == NULL)
        a->first = block;
    else
        last->next = block;
    return block;
}

void *pnb__arena_alloc(pnb__arena *a, size_t bytes)
{
    size_t rounded;
    if (pnb__add_overflows(PNB_MAX(bytes, (size_t)1), ALIGNMENT - 1 + GAP_BYTES, &rounded))
        return NULL;
    rounded &= ~(size_t)(ALIGNMENT - 1);
    pnb__arena_block *block = find_block(a, rounded);
    if (block == NULL)
        return NULL;
    a->current = block;
    unsigned char *p = block->data + block->used;
    block->used += rounded;
    UNPOISON(p, bytes);
    memset(p, 0, bytes);
    return p;
}

char *pnb__arena_strdup(pnb__arena *a, const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = pnb__arena_alloc(a, bytes);
    if (copy != NULL)
        memcpy(copy, s, bytes);
    return copy;
}

void pnb__arena_reset(pnb__arena *a)
{
    for (pnb__arena_block *block = a->first; block != NULL; block = block->next) {
        block->used = 0;
        POISON(block->data, block->capacity);
    }
    a->current = a->first;
}

void pnb__arena_free(pnb__arena *a)
{
    pnb__arena_block *block = a->first;
    while (block != NULL) {
        pnb__arena_block *next = block->next;
        UNPOISON(block->data, block->capacity);
        pnb__free_aligned(block);
        block = next;
    }
    a->first = a->current = NULL;
}
