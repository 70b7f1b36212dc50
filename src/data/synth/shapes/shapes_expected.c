/* How many scenes a caption is expected to fit, apart from the chance of one draw of the set.
 *
 * Of captions that name three shapes a set holds one scene each or none, whatever they leave open:
 * the number found is chance. Colours are drawn evenly and by themselves (shapes_scene.c), so that
 * scenes drawn as these are, but with other colours, are just as likely. The expected number is the
 * sum over all scenes of the share of colourings that the caption is true of. Only the colours that
 * it names matter, and which of its objects have the same: a shape has each of L named colours with
 * a seventh, and another one with the rest, so at most 4^3 colourings are looked at. */
#include <stdlib.h>

#include "base/order.h"
#include "data/synth/shapes/shapes_set.h"

typedef struct expected_job {
    const pnb__shapes_set *set;
    const uint16_t *kinds; /* [scene] bit form * sizes + size: there is such a shape */
    const uint64_t *key;   /* captions with colours by their first use, packed, ascending */
    double *number;        /* [key] */
} expected_job;

static uint16_t kind_bits(int form, int size)
{
    unsigned bits = 0;
    for (int f = 0; f < PNB__N_FORMS; f++)
        for (int z = 0; z < PNB__N_SIZES; z++)
            if ((form == PNB__ANY || form == f) && (size == PNB__ANY || size == z))
                bits |= 1U << (f * PNB__N_SIZES + z);
    return (uint16_t)bits;
}

/* Most scenes lack one of the shapes, which is seen without binding any. */
static bool may_fit(const pnb__shape_query *q, uint16_t kinds)
{
    for (int k = 0; k < q->n_objects; k++)
        if ((kind_bits(q->objects[k].form, q->objects[k].size) & kinds) == 0)
            return false;
    return true;
}

/* The share of a scene's colourings that q is true of; its colours are 0 to n_named - 1. */
static double share_of(const pnb__shape_query *q, int n_named, pnb__scene scene,
                       const pnb_shapes_opts *opts)
{
    int n_colourings = 1;
    double sum = 0;
    for (int k = 0; k < scene.n_shapes; k++)
        n_colourings *= n_named + 1;
    for (int i = 0; i < n_colourings; i++) {
        double share = 1;
        for (int k = 0, rest = i; k < scene.n_shapes; k++, rest /= n_named + 1) {
            scene.shapes[k].colour = rest % (n_named + 1); /* n_named: none of them */
            share *= (scene.shapes[k].colour < n_named ? 1.0 : PNB__N_COLOURS - n_named) /
                     PNB__N_COLOURS;
        }
        sum += pnb__query_matches(q, &scene, opts) ? share : 0;
    }
    return sum;
}

static void expect_range(void *user, size_t begin, size_t end, int thread)
{
    const expected_job *job = user;
    const pnb__shapes_set *s = job->set;
    (void)thread;
    for (size_t c = begin; c < end; c++) {
        pnb__shape_query q, open;
        int n_named = 0;
        pnb__query_unpack(job->key[c], &q);
        open = q;
        for (int k = 0; k < q.n_objects; k++) {
            open.objects[k].colour = PNB__ANY;
            if (q.objects[k].colour != PNB__ANY)
                n_named = PNB_MAX(n_named, q.objects[k].colour + 1);
        }
        for (size_t i = 0; i < s->n; i++)
            if (may_fit(&q, job->kinds[i]) && pnb__query_matches(&open, &s->scenes[i], s->opts))
                job->number[c] += share_of(&q, n_named, s->scenes[i], s->opts);
    }
}

/* The caption with its colours numbered as they come: two alike fit as many scenes. */
static uint64_t key_of(uint64_t packed)
{
    pnb__shape_query q;
    unsigned char number[PNB__ANY + 1], n = 0;
    pnb__query_unpack(packed, &q);
    for (int c = 0; c <= PNB__ANY; c++)
        number[c] = PNB__ANY;
    for (int k = 0; k < q.n_objects; k++) {
        unsigned char colour = q.objects[k].colour;
        if (colour != PNB__ANY && number[colour] == PNB__ANY)
            number[colour] = n++;
        q.objects[k].colour = number[colour];
    }
    return pnb__query_pack(&q);
}

static uint16_t kinds_of(const pnb__scene *scene)
{
    unsigned bits = 0;
    for (int k = 0; k < scene->n_shapes; k++)
        bits |= kind_bits(scene->shapes[k].form, scene->shapes[k].size);
    return (uint16_t)bits;
}

pnb_status pnb__shapes_find_expected(pnb__shapes_set *set, pnb_error *err)
{
    uint64_t *key = NULL;
    uint16_t *kinds = NULL;
    double *number = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(set->expected, set->n_texts + 1, err));
    PNB_TRY(PNB_ALLOC(key, set->n_texts + 1, err));
    PNB_TRY(PNB_ALLOC(kinds, set->n + 1, err));
    for (size_t c = 0; c < set->n_texts; c++)
        key[c] = key_of(set->texts[c]);
    size_t n_keys = pnb__sort_distinct(key, set->n_texts);
    PNB_TRY(PNB_ALLOC_ZERO(number, n_keys + 1, err));
    for (size_t i = 0; i < set->n; i++)
        kinds[i] = kinds_of(&set->scenes[i]);
    expected_job job = {set, kinds, key, number};
    pnb__parallel_for(set->ctx, n_keys, 16, expect_range, &job);
    for (size_t c = 0; c < set->n_texts; c++) {
        uint64_t own = key_of(set->texts[c]);
        const uint64_t *at = bsearch(&own, key, n_keys, sizeof *key, pnb__compare_sizes);
        set->expected[c] = number[at - key];
    }
done:
    pnb__free(key);
    pnb__free(kinds);
    pnb__free(number);
    return status;
}
