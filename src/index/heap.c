/* Bounded heap of the best hits.
 *
 * The worst hit kept is on top, so one comparison refuses most candidates. Scores are never NaN
 * here: the scan refuses them, so comparisons form a total order and the kept set does not depend
 * on the order of arrival. */
#include "index/heap.h"

static void sift_up(pnb__hit *hit, size_t i)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!pnb__hit_before(hit[parent], hit[i]))
            return;
        pnb__hit moved = hit[parent];
        hit[parent] = hit[i];
        hit[i] = moved;
        i = parent;
    }
}

static void sift_down(pnb__hit *hit, size_t n)
{
    size_t i = 0;
    for (;;) {
        size_t worst = i, left = 2 * i + 1, right = left + 1;
        if (left < n && pnb__hit_before(hit[worst], hit[left]))
            worst = left;
        if (right < n && pnb__hit_before(hit[worst], hit[right]))
            worst = right;
        if (worst == i)
            return;
        pnb__hit moved = hit[worst];
        hit[worst] = hit[i];
        hit[i] = moved;
        i = worst;
    }
}

void pnb__heap_push(pnb__heap *heap, pnb__hit hit)
{
    if (heap->n < heap->capacity) {
        heap->hit[heap->n] = hit;
        sift_up(heap->hit, heap->n++);
    } else if (heap->n > 0 && pnb__hit_before(hit, heap->hit[0])) {
        heap->hit[0] = hit;
        sift_down(heap->hit, heap->n);
    }
}
