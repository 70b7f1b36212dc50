/* Memory shared by the decodes of several threads.
 *
 * Whoever comes first is served first, so a large picture is not overtaken for ever; one that is
 * larger than the whole waits until it is alone. */
#include <pthread.h>

#include "io/image/formats/codec.h"

#define BYTES_PER_PIXEL 4

struct pnb_image_budget {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    size_t limit, held;
    uint64_t next, serving; /* numbers of those that wait */
};

pnb_status pnb_image_budget_create(pnb_image_budget **out, int64_t max_pixels, pnb_error *err)
{
    *out = NULL;
    if (max_pixels < 1)
        return pnb__fail(err, PNB_ARG, "max_pixels is %lld: want at least 1",
                         (long long)max_pixels);
    pnb_image_budget *b = pnb__alloc_zero(1, sizeof *b);
    if (b == NULL)
        return pnb__fail_nomem(err, sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->freed, NULL);
    b->limit = (size_t)PNB_MIN(max_pixels, PNB_IMAGE_MAX_PIXELS) * BYTES_PER_PIXEL;
    *out = b;
    return PNB_OK;
}

void pnb_image_budget_free(pnb_image_budget *budget)
{
    if (budget == NULL)
        return;
    pthread_cond_destroy(&budget->freed);
    pthread_mutex_destroy(&budget->lock);
    pnb__free(budget);
}

void pnb__budget_take(pnb_image_budget *b, size_t n_bytes)
{
    pthread_mutex_lock(&b->lock);
    uint64_t number = b->next++;
    while (number != b->serving ||
           (b->held > 0 && (n_bytes > b->limit || b->held > b->limit - n_bytes)))
        pthread_cond_wait(&b->freed, &b->lock);
    b->held += n_bytes;
    b->serving++;
    pthread_cond_broadcast(&b->freed);
    pthread_mutex_unlock(&b->lock);
}

void pnb__budget_give(pnb_image_budget *b, size_t n_bytes)
{
    if (b == NULL || n_bytes == 0)
        return;
    pthread_mutex_lock(&b->lock);
    b->held -= n_bytes;
    pthread_cond_broadcast(&b->freed);
    pthread_mutex_unlock(&b->lock);
}

void pnb_image_release_budget(pnb_image *image)
{
    pnb__budget_give(image->budget, image->held_bytes);
    image->budget = NULL;
    image->held_bytes = 0;
}
