/* The list of pictures and captions that a truth file holds: growing arrays and a pool of texts.
 *
 * Readers of single formats (truth_json.c, truth_text.c, truth_folders.c) fill it, truth_read.c
 * joins it with the rows of sets. Offset 0 of the pool is one NUL byte and stands for "no text". */
#include "truth/ground_truth.h"

#include <string.h>

#include "base/grow.h"

void pnb__ground_truth_reset(pnb__ground_truth *c)
{
    pnb__buf_reset(&c->pool);
    pnb__free(c->image);
    pnb__free(c->text);
    pnb__free(c->pair);
    *c = (pnb__ground_truth){0};
}

size_t pnb__ground_truth_intern(pnb__ground_truth *c, const char *text, size_t n)
{
    if (c->pool.size == 0)
        pnb__buf_putc(&c->pool, '\0');
    size_t at = c->pool.size;
    pnb__buf_append(&c->pool, text, n);
    pnb__buf_putc(&c->pool, '\0');
    return c->pool.failed ? 0 : at;
}

const char *pnb__ground_truth_get(const pnb__ground_truth *c, size_t text)
{
    return text == 0 ? "" : c->pool.data + text;
}

pnb_status pnb__ground_truth_image(pnb__ground_truth *c, pnb__image image, pnb_error *err)
{
    if (c->pool.failed)
        return pnb__fail_nomem(err, c->pool.size);
    return PNB_PUSH(c->image, c->n_images, err, image);
}

pnb_status pnb__ground_truth_text(pnb__ground_truth *c, pnb__text_ref text, pnb_error *err)
{
    if (c->pool.failed)
        return pnb__fail_nomem(err, c->pool.size);
    return PNB_PUSH(c->text, c->n_texts, err, text);
}

pnb_status pnb__ground_truth_pair(pnb__ground_truth *c, size_t image, size_t text, pnb_error *err)
{
    pnb_status status = pnb__grow_one(&c->pair, c->n_pairs, 2 * sizeof *c->pair, err);
    if (status != PNB_OK)
        return status;
    c->pair[2 * c->n_pairs] = (int64_t)image;
    c->pair[2 * c->n_pairs + 1] = (int64_t)text;
    c->n_pairs++;
    return PNB_OK;
}
