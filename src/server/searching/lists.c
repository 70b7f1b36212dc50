/* Lists of inputs to sets, and two sets to a measure.
 *
 * The model's own scale and bias say what a score is worth between a picture and a caption that no
 * adapter has changed, by the similarity it was trained on; of other pairs nothing does. */
#include "server/searching/lists.h"

#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "prob/measure.h"
#include "sets/set_rows.h"
#include "sets/settle.h"

static pnb_status join_lists(const pnb__inputs *lists, size_t n_lists, pnb__inputs *all,
                             pnb_error *err)
{
    for (size_t i = 0; i < n_lists; i++)
        for (size_t k = 0; k < lists[i].n; k++) {
            if (lists[i].items[k].is_image != lists[i].items[0].is_image)
                return pnb__fail(err, PNB_ARG,
                                 "captions and pictures in one list: ask for each kind by itself");
            pnb_status status = PNB_PUSH(all->items, all->n, err, lists[i].items[k]);
            if (status != PNB_OK)
                return status;
        }
    return PNB_OK;
}

pnb_status pnb__server_encode_lists(pnb__served *s, const pnb__http_request *q,
                                    const pnb__inputs *lists, size_t n_lists, pnb_embeddings **sets,
                                    pnb_error *err)
{
    pnb__inputs all = {0};
    pnb__encoded e = {0};
    size_t at = 0;
    pnb_status status;
    for (size_t i = 0; i < n_lists; i++)
        sets[i] = NULL;
    PNB_TRY(join_lists(lists, n_lists, &all, err));
    PNB_TRY(pnb__server_encode(s, q, &all, &e, err));
    for (size_t i = 0; i < n_lists; at += lists[i++].n) {
        const pnb_embeddings *of = all.items[at].is_image ? e.images : e.texts;
        PNB_TRY(pnb_embeddings_select(&sets[i], of, e.row + at, lists[i].n, err));
    }
done:
    for (size_t i = 0; i < n_lists && status != PNB_OK; i++) {
        pnb_embeddings_free(sets[i]);
        sets[i] = NULL;
    }
    pnb__encoded_reset(&e);
    pnb__inputs_reset(&all);
    return status;
}

/* ---- two sets ---- */

static bool has_model_odds(const pnb_embeddings *a, const pnb_embeddings *b, pnb_measure measure)
{
    return pnb__measure_has_logits(measure) && strcmp(a->info.modality, b->info.modality) != 0 &&
           a->info.adapters.n + b->info.adapters.n == 0 && isfinite(a->info.logit_scale) &&
           isfinite(a->info.logit_bias);
}

pnb_status pnb__compared_init(pnb__compared *c, const pnb_embeddings *a, const pnb_embeddings *b,
                              const char *measure, pnb_error *err)
{
    pnb_measure asked = PNB__MEASURE_AUTO;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status;
    *c = (pnb__compared){.opts = pnb_measure_opts_default()};
    if (measure != NULL && pnb_measure_parse(&asked, measure, &why) != PNB_OK)
        PNB_TRY(pnb__fail(err, PNB_ARG, "'measure': %s", why.text)); /* a word, not a place */
    PNB_TRY(pnb__measure_of_sets(&asked, a, b, err));
    PNB_TRY(pnb__set_view(&c->a, a, asked, err));
    PNB_TRY(pnb__set_view(&c->b, b, asked, err));
    PNB_TRY(pnb__measure_settle(&c->measure, asked, &c->a.rows, &c->b.rows, err));
    if (a->info.match_a > 0 && isfinite(a->info.match_b)) {
        c->opts.match_a = a->info.match_a;
        c->opts.match_b = a->info.match_b;
    }
    if (a->info.match_samples > 0)
        c->opts.n_samples = a->info.match_samples;
    c->has_probability = has_model_odds(a, b, c->measure);
    c->scale = a->info.logit_scale;
    c->bias = a->info.logit_bias;
done:
    return status;
}

void pnb__compared_reset(pnb__compared *c)
{
    pnb_view_reset(&c->a);
    pnb_view_reset(&c->b);
}
