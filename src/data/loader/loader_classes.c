/* Batches with one sample of every class, as CUB Captions are trained on (PCME's CUBSampler): two
 * captions of a class would be each other's negatives, though they may say the same.
 *
 * Each class has an order of its own samples and goes through it before it begins anew, so that an
 * epoch misses none that it has room for; the reference draws all but one sample of a batch with
 * replacement. A class of one sample gives that one to each batch. The order of an epoch is a
 * function of (seed, epoch), as any other. */
#include <stdlib.h>
#include <string.h>

#include "data/loader/loader_internal.h"

void pnb__class_lists_free(pnb__class_lists *c)
{
    pnb__free(c->sorted);
    pnb__free(c->first);
    pnb__free(c->pool);
    pnb__free(c->at);
    pnb__free(c->turn);
    pnb__free(c->class_of);
    *c = (pnb__class_lists){0};
}

/* The number of its class, of every sample. */
static pnb_status read_labels(const pnb_dataset *ds, int64_t *labels, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        pnb_sample s = {0};
        status = pnb_dataset_get(ds, i, &s, err);
        if (status != PNB_OK)
            break;
        labels[i] = s.label;
        if (s.label < 0)
            status = pnb__fail(err, PNB_ARG,
                               "sample %s has no class: batches by class need folders of classes, "
                               "or a number \"label\" of each sample",
                               s.key);
        pnb_sample_reset(&s);
    }
    return status;
}

/* Where each class begins in the sorted list. */
static void find_classes(pnb__class_lists *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || c->sorted[i].label != c->sorted[i - 1].label)
            c->first[c->n_classes++] = i;
        c->class_of[c->sorted[i].place] = (uint32_t)(c->n_classes - 1);
    }
    c->first[c->n_classes] = n;
}

pnb_status pnb__class_lists_create(pnb__class_lists *c, const pnb_dataset *ds, pnb_error *err)
{
    size_t n = pnb_dataset_size(ds);
    int64_t *labels = NULL;
    pnb_status status;
    *c = (pnb__class_lists){0};
    PNB_TRY(PNB_ALLOC(labels, n, err));
    PNB_TRY(read_labels(ds, labels, n, err));
    PNB_TRY(pnb__labels_sort(&c->sorted, labels, n, err));
    PNB_TRY(PNB_ALLOC(c->first, n + 1, err));
    PNB_TRY(PNB_ALLOC(c->pool, n, err));
    PNB_TRY(PNB_ALLOC(c->at, n, err));
    PNB_TRY(PNB_ALLOC(c->turn, n, err));
    PNB_TRY(PNB_ALLOC(c->class_of, n, err));
    find_classes(c, n);
done:
    pnb__free(labels);
    if (status != PNB_OK)
        pnb__class_lists_free(c);
    return status;
}

static size_t size_of(const pnb__class_lists *c, size_t k)
{
    return c->first[k + 1] - c->first[k];
}

/* The next sample of class k, in a new order when all had their turn. */
static uint32_t take_one(pnb__class_lists *c, size_t k, pnb__rng *rng)
{
    uint32_t *own = c->pool + c->first[k];
    if (c->at[k] == size_of(c, k)) {
        pnb__rng_shuffle(rng, own, size_of(c, k));
        c->at[k] = 0;
    }
    return own[c->at[k]++];
}

/* For each batch the first batch_size of a shuffle of the classes: all of them, in an order that
 * says nothing, where there are no more. */
void pnb__class_order(pnb__class_lists *c, pnb__rng *rng, size_t batch_size, size_t n_batches,
                      uint32_t *order)
{
    for (size_t i = 0; i < c->first[c->n_classes]; i++)
        c->pool[i] = (uint32_t)c->sorted[i].place;
    for (size_t k = 0; k < c->n_classes; k++) {
        c->at[k] = size_of(c, k); /* shuffled at the first take */
        c->turn[k] = (uint32_t)k;
    }
    for (size_t b = 0; b < n_batches; b++) {
        pnb__rng_shuffle(rng, c->turn, c->n_classes);
        for (size_t i = 0; i < batch_size; i++)
            order[b * batch_size + i] = take_one(c, c->turn[i], rng);
    }
}

uint32_t pnb__class_other(const pnb__class_lists *c, uint32_t sample, pnb__rng *rng)
{
    size_t k = c->class_of[sample];
    return (uint32_t)c->sorted[c->first[k] + (size_t)pnb__rng_below(rng, size_of(c, k))].place;
}

pnb_status pnb_loader_count_classes(const pnb_dataset *ds, size_t *out, pnb_error *err)
{
    pnb__class_lists c;
    *out = 0;
    pnb_status status = pnb__class_lists_create(&c, ds, err);
    if (status == PNB_OK)
        *out = c.n_classes;
    pnb__class_lists_free(&c);
    return status;
}
